"""A training run in a process of its own: how it is started, and what is seen of it.

A few numbers of its steps are noted inside the process; its log and its checkpoint are on the disk.
"""

import os
import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from workbook.classroom.checks.machinery.engine import usual
from workbook.classroom.checks.machinery.loading import replace_trackers
from workbook.classroom.checks.machinery.modules import as_it_is
from workbook.classroom.checks.machinery.timeout import Stopped
from workbook.classroom.checks.machinery.verdicts import (
    NotAttempted,
    Wrong,
    call,
    failure,
    unfinished,
)

RUN_SECONDS = 40.0  # for one run
PRINTED = "printed.txt"
LOGS = (".txt", ".log", ".jsonl")
# "train_loss=3.21", {"val/loss": 3.25}, "loss: tensor(3.21)"
NUMBER = r"-?\d+\.?\d*(?:e[-+]?\d+)?|nan|inf"
LOSS = re.compile(rf"([\w/. -]{{0,40}}loss)[\"']?\s*[:=]?\s*(?:[\w.]+\()?({NUMBER})", re.I)
VALIDATION = re.compile(r"(?<![a-z])e?val(?!.*train)", re.I)
# What an optimizer saves, and the number of the step, by the keys that lead to it.
OPTIMIZERS = re.compile(r"(^|\.)(param_groups|state\.\d+)\.")
COUNT = re.compile(r"(^|\.)state\.\d+\.(step|t|it\w*)$")
STEP = re.compile(r"(^|\.)(global_)?(it|iter|iteration|step)(_?num)?$|^\d+$", re.I)


@dataclass
class Seen:
    """What was seen of one run, in values that JSON can hold."""

    steps: int = 0
    rates: list[float] = field(default_factory=list)  # the learning rate of each step
    no_gradient: bool = False  # nothing that the optimizer changes has one
    uncleared: bool = False  # gradients were left over when the next ones came
    claim: str = ""  # in general, how it failed
    error: str = ""
    missing: str = ""  # the file that it did not find
    log: str = ""

    def losses(self, validation: bool = False) -> list[float]:
        """The losses in its log, of one of the two splits."""
        losses = LOSS.findall(self.log)
        return [float(x) for name, x in losses if bool(VALIDATION.search(name)) == validation]


def checkpoint(folder: Path) -> tuple[Path | None, dict[str, Any]]:
    """The newest checkpoint below a folder: its path, and what it holds, by the keys to it."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        with suppress(Exception):  # another file
            return path, dict(_flat(torch.load(path, map_location="cpu", weights_only=False)))
    return None, {}


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all that is in dicts and lists inside one another, each after the keys to it."""
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(part, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def step_of(saved: dict[str, Any]) -> int | None:
    """The number of the step after which a checkpoint was saved.

    It has one of the usual names, or is the number that the optimizer counts.
    """
    outside = {name: x for name, x in saved.items() if not OPTIMIZERS.search(name)}
    numbers = {name: x for name, x in outside.items() if type(x) is int}
    counted = steps_counted(saved)
    usual = [x for name, x in numbers.items() if STEP.search(name)]
    others = [x for x in numbers.values() if x == counted > 0]
    return max(usual or others, default=None)


def steps_counted(saved: dict[str, Any]) -> float:
    """The number of steps that the optimizer's state in a checkpoint counts; 0 if it does not."""
    counts = [x for name, x in saved.items() if COUNT.search(name) and not getattr(x, "shape", ())]
    return max(map(float, counts), default=0)


# In the process of the run, which ends with it: nothing is put back there.


def observed(attempt: Any, words: list, values: dict, folder: str, steps: int) -> Iterator[dict]:
    """Run an attempt once in this process, and yield what was seen.

    Args:
        attempt: the path of a script as a str, or a function.
        words: of the command line, as in sys.argv.
        values: of the function's parameters, by name.
        folder: where it runs, and where what it prints is written.
        steps: that it was told to take.
    """
    with open(Path(folder, PRINTED), "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    os.environ["COLUMNS"] = "400"  # so that --help cuts no name
    sys.argv = [str(attempt), *words]
    seen = Seen()
    _watch(seen, 3 * steps)  # then the run is stopped
    start = (lambda: _run_script(Path(attempt))) if isinstance(attempt, str) else attempt
    try:
        call(start, seconds=RUN_SECONDS, given="", **values)
    except Stopped:
        pass  # after more steps than it was told to take
    except NotAttempted as nothing:
        seen.claim = unfinished(nothing).claim
        seen.error = failure(nothing.__cause__ or nothing)
    except Wrong as wrong:
        if getattr(wrong.error, "code", 1):  # `sys.exit()` is no error
            seen.claim = " ".join(filter(None, [wrong.claim, wrong.mistake or usual(wrong.error)]))
            seen.error = dict(wrong.rows)["got"]
            seen.missing = str(getattr(wrong.error, "filename", None) or "")
    yield asdict(seen)


def _run_script(path: Path) -> None:
    """Run a script as `python path` does, or as `python -m` if it is part of a package."""
    top = next(folder for folder in path.parents if not (folder / "__init__.py").is_file())
    # A repository is seldom installed: its packages lie in a folder above the script.
    sys.path[:] = [str(path.parent), *sys.path, *map(str, path.parents)]
    name = ".".join(path.relative_to(top).with_suffix("").parts)
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _watch(seen: Seen, most_steps: int) -> None:
    """Note what this process does from now on."""
    stand_in()
    backward = Tensor.backward
    optimizers: list[Optimizer] = []
    moved: list[Tensor] = []  # parameters, by the last step

    def clear_before(loss: Tensor, *args, **kwargs) -> Any:
        # At the first call after a step, no gradient may be left.
        seen.uncleared |= any(p.grad is not None and bool(p.grad.any()) for p in moved)
        moved.clear()
        return backward(loss, *args, **kwargs)

    def count_step(optimizer: Optimizer, *_) -> None:
        optimizers.append(optimizer)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        moved.extend(parameters)
        if optimizer is optimizers[0]:  # another one has the other parameters
            seen.no_gradient = all(p.grad is None for p in parameters)
            seen.steps += 1
            seen.rates.append(float(optimizer.param_groups[0].get("lr", "nan")))
            if seen.steps >= most_steps:
                raise Stopped

    Tensor.backward = clear_before  # type: ignore[assignment, method-assign]
    register_optimizer_step_post_hook(count_step)


def stand_in() -> None:
    """Let a run in this process read our data, compile nothing and report to nobody."""
    load = np.load

    def load_numbers(file: Any, mmap_mode: Any = None, **options: Any) -> Any:
        if not str(file).endswith(".bin"):
            return load(file, mmap_mode, **options)
        return np.memmap(file, np.uint16, "r")  # the data have no header; `np.load` must be right

    np.load = load_numbers  # type: ignore[assignment]
    torch.compile = as_it_is  # compiling takes long
    replace_trackers(also_installed=True)
