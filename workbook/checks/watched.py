"""A training run that is watched: its steps, losses, batches and sizes, whatever it prints.

`watching` looks at a run from inside its process: each call of a model, of `backward` and of an
optimizer's `step`. `of_function` and `of_script` give what was seen, in values that JSON can hold.
"""

import builtins
import io
import logging
import os
import re
import runpy
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from workbook.checks.guard import NOT_THEIRS, Stopped, TimedOut, limited
from workbook.checks.settings import Settings, Unmet

# The text repeats itself, so 20 steps learn much of it. One id is in the training data alone, and
# another one in the validation data alone: every window of a batch tells where it comes from.
PATTERN = (3, 17, 42, 8, 29, 55, 11, 36, 20)
TRAIN_ID, VALID_ID = 50, 51
TRAIN_TOKENS, VALID_TOKENS = 2_000, 400
PATIENCE = 3  # times the steps that were asked for; then the run is stopped
MOST_PARAMETERS = 1_000_000  # the settings ask for thirty thousand or so
MOST_PARTS = 8  # of a batch, where gradients are accumulated
KEPT = 200_000  # characters of print-out
LOGS = (".csv", ".jsonl", ".json", ".log", ".txt", ".tsv")
MOST_LOG = 1_000_000  # bytes of a file that may be a log
# Modules that report to a service; in a script these stand-ins take their places.
SERVICES = ("wandb", "tensorboardX", "torch.utils.tensorboard", "trackio", "swanlab")


class Enough(Stopped):
    """Of the run more is not needed, such as where it takes many more steps than it was told."""


class NoOptions(BaseException):
    """A script that takes steps without having asked for any option."""


def write_data(folder: Path) -> None:
    """Write the token files of both splits, as .npy and as bare numbers (.bin), in uint16."""
    (folder / "data").mkdir(parents=True)
    (folder / "checkpoints").mkdir()
    for names, mark, size in (
        (("train",), TRAIN_ID, TRAIN_TOKENS),
        (("valid", "val", "validation"), VALID_ID, VALID_TOKENS),
    ):
        text = np.resize(np.array([*PATTERN, mark], dtype=np.uint16), size)
        for name in names:
            np.save(folder / "data" / f"{name}.npy", text)
            text.tofile(folder / "data" / f"{name}.bin")


class Watch:
    """What was seen of a run."""

    def __init__(self, settings: Settings, is_script: bool):
        self.settings, self.is_script = settings, is_script
        self.depth = 0  # of calls of modules inside one another
        self.ids: Tensor | None = None  # that the model was called with last
        self.model: nn.Module | None = None
        self.waiting: dict | None = None  # a result of the model, before any `backward`
        self.seen: list[dict] = []  # results that the current step has trained on
        self.had_options = not is_script
        self.printed = Printed()
        self.found: dict[str, Any] = {
            "steps": 0, "rates": [], "trained": [], "evaluated": [], "shapes": [], "layers": 0,
            "parameters": 0, "backward": 0, "no_gradient": False, "uncleared": False,
            "too_many": False, "memory_map": False, "foreign": False, "logged": [], "error": "",
            "unmet": "", "no_options": False, "timed_out": False, "asked": settings.asked,
        }  # fmt: skip
        self.parameters: list[Tensor] = []  # that the last step has moved
        self.first: torch.optim.Optimizer | None = None

    # --- The model

    def call_module(self, original: Callable, module: nn.Module, *args, **kwargs) -> Any:
        """Stand for `nn.Module.__call__`."""
        if self.depth == 0:
            given = [*args, *kwargs.values()]
            ids = next((each for each in given if _are_ids(each)), None)
            if ids is not None:
                self.ids, most = ids, self.settings.vocab_size
                self.found["foreign"] |= bool(((ids < 0) | (ids >= most)).any())
            if self.model is None or len(list(module.parameters())) > self.size:
                self.model, self.size = module, len(list(module.parameters()))
        self.depth += 1
        try:
            out = original(module, *args, **kwargs)
        finally:
            self.depth -= 1
        if self.depth == 0:
            self.look_at(out)
        return out

    def look_at(self, out: Any) -> None:
        """Note the loss of logits."""
        if isinstance(out, tuple | list):
            out = next((each for each in out if _is_3d(each)), None)
        out = getattr(out, "logits", out)
        ids = self.ids
        if not _is_3d(out) or ids is None or out.shape[:2] != ids.shape:
            return
        if out.shape[-1] != self.settings.vocab_size:
            return
        if self.waiting:  # without `no_grad`, but never trained on
            self.evaluated(self.waiting)
        with torch.no_grad():
            here = ids[:, 1:].to(torch.int64)
            valid, train = ((ids == each).any().item() for each in (VALID_ID, TRAIN_ID))
            loss = nn.functional.cross_entropy(
                out[:, :-1].float().reshape(-1, out.shape[-1]), here.reshape(-1)
            )
        seen = {
            "loss": loss.item(), "shape": [*ids.shape], "valid": valid and not train,
            "grad": out.requires_grad,
        }  # fmt: skip
        if out.requires_grad:
            self.waiting = seen
        else:
            self.evaluated(seen)

    def evaluated(self, seen: dict) -> None:
        """Keep what the model said of a batch that it was not trained on."""
        self.found["evaluated"].append(seen)

    def backward(self, original: Callable, loss: Tensor, *args, **kwargs) -> Any:
        """Stand for `Tensor.backward`."""
        if self.parameters:  # the first since a step, so nothing of that may be left
            left = (p.grad for p in self.parameters)
            self.found["uncleared"] |= any(g is not None and g.count_nonzero() > 0 for g in left)
            self.parameters = []
        if self.waiting:
            self.seen.append(self.waiting)
            self.waiting = None
        self.found["backward"] += 1
        if self.found["backward"] > MOST_PARTS * PATIENCE * self.settings.steps:
            self.found["too_many"] = True
            raise Enough
        return original(loss, *args, **kwargs)

    def after_step(self, optimizer: torch.optim.Optimizer, *_) -> None:
        """Count a step of the optimizer."""
        found = self.found
        if not self.had_options:
            raise NoOptions
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self.first = self.first or optimizer
        if optimizer is not self.first:  # it has others of the parameters, in the same step
            self.parameters += parameters
            if found["steps"] == 1:
                found["shapes"] += [[*p.shape] for p in parameters]
            return
        self.parameters = parameters
        if not found["steps"]:
            found["shapes"] = [[*p.shape] for p in self.parameters]
            if self.size >= len(self.parameters):  # else parts of the model were called
                found["layers"] = _layers([name for name, _ in self.model.named_parameters()])
            found["no_gradient"] = all(p.grad is None for p in self.parameters)
            found["parameters"] = sum(p.numel() for p in self.parameters)
            if found["parameters"] > MOST_PARAMETERS:  # 20 steps would take minutes
                raise Enough
        found["steps"] += 1
        found["rates"].append(float(optimizer.param_groups[0].get("lr", "nan")))
        found["trained"].append(self.seen[0] if self.seen else None)
        self.seen = []
        if found["steps"] == self.settings.stop_at:
            raise Enough
        if found["steps"] >= PATIENCE * self.settings.steps:
            found["too_many"] = True
            raise Enough

    # --- What it asks for, and what it says

    def parse(self, original: Callable, parser: Any, args: Any = None, *rest, **named) -> Any:
        """Stand for `ArgumentParser.parse_known_args`."""
        if self.parsing:
            return original(parser, args, *rest, **named)
        self.had_options = self.parsing = True
        try:
            given = [*self.settings.options(parser), *self.extra]  # the last one counts
            return original(parser, given, *rest, **named)
        finally:
            self.parsing = False

    size, parsing, extra = 0, False, ()

    def click(self, original: Callable, command: Any, context: Any, args: list[str]) -> Any:
        """Stand for `Command.parse_args` of click, which typer has as well."""
        if not hasattr(command, "commands"):  # a group only picks the one that is meant
            self.had_options = True
            args = [*self.settings.click_options(command.params), *self.extra]
        return original(command, context, args)

    def log(self, *args, **kwargs) -> None:
        """Take what is reported to a service."""
        for each in (*args, *kwargs.values()):
            if isinstance(each, dict):
                self.found["logged"] += [[str(k), float(v)] for k, v in each.items() if _is_real(v)]
        if args and isinstance(args[0], str) and len(args) > 1 and _is_real(args[1]):
            self.found["logged"].append([args[0], float(args[1])])  # add_scalar(name, value, step)


class Printed(io.TextIOBase):
    """The beginning of what is printed; all of it goes on to where it went before."""

    def __init__(self):
        self.parts, self.size, self.before = [], 0, sys.stdout

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.size < KEPT:
            self.parts.append(text)
            self.size += len(text)
        return self.before.write(text)

    def flush(self) -> None:
        self.before.flush()

    def fileno(self) -> int:
        return self.before.fileno()

    def __getattr__(self, name: str) -> Any:  # such as `buffer` and `reconfigure`
        return getattr(self.before, name)

    def __str__(self) -> str:
        return "".join(self.parts)


class _StandIn(ModuleType):
    """A module, a run of it and all that they have: what is logged is kept, the rest is nothing."""

    def __init__(self, name: str, log: Callable):
        super().__init__(name)
        self.__path__ = []
        self.__dict__["log"] = self.__dict__["add_scalar"] = self.__dict__["add_scalars"] = log
        self.__dict__["watching"] = log

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **kwargs) -> "_StandIn":
        return self

    def __setattr__(self, name: str, value: Any) -> None: ...

    def __setitem__(self, name: str, value: Any) -> None: ...

    def __enter__(self) -> "_StandIn":
        return self

    def __exit__(self, *_) -> None: ...


@contextmanager
def watching(settings: Settings, is_script: bool = False, extra: list[str] = ()) -> Iterator[Watch]:
    """A block in which a run is watched; afterwards everything is as before.

    What it prints is kept. `extra` stands in the command line already.
    """
    watch = Watch(settings, is_script)
    watch.extra = extra
    with ExitStack() as stack:

        def replace(holder: Any, name: str, new: Callable) -> None:
            old = getattr(holder, name)
            stack.callback(setattr, holder, name, old)
            setattr(holder, name, new(old))

        def always(new: Callable) -> Callable:
            return lambda old: new

        def method(take: Callable) -> Callable:
            return lambda old: lambda *args, **kwargs: take(old, *args, **kwargs)

        replace(nn.Module, "__call__", method(watch.call_module))
        replace(torch.Tensor, "backward", method(watch.backward))
        # It would take longer than the run, and hide the calls.
        replace(torch, "compile", lambda _: lambda model=None, **_: model or (lambda it: it))
        replace(nn.Module, "compile", lambda _: lambda *args, **kwargs: None)
        argparse = sys.modules.get("argparse") or __import__("argparse")
        replace(argparse.ArgumentParser, "parse_known_args", method(watch.parse))
        for name in ("click", "typer._click.core"):  # typer has a copy of its own
            with suppress(ImportError):
                library = import_module(name) if is_script else sys.modules.get(name)
                if library is not None:
                    replace(library.Command, "parse_args", method(watch.click))
        memory_map = np.memmap.__new__

        def mapped(kind, *args, **kwargs):
            watch.found["memory_map"] = True
            return memory_map(kind, *args, **kwargs)

        np.memmap.__new__ = mapped
        stack.callback(setattr, np.memmap, "__new__", memory_map)
        hook = register_optimizer_step_post_hook(watch.after_step)
        stack.callback(hook.remove)
        for name in SERVICES:
            service = sys.modules.get(name)
            stand_in = _StandIn(name, watch.log)
            if is_script:
                sys.modules[name] = stand_in
            elif service is not None:  # the learner's own module has its name already
                for each in ("init", "log", "finish", "watch", "save", "login"):
                    if hasattr(service, each):
                        replace(service, each, always(getattr(stand_in, each)))
        handler = logging.StreamHandler(watch.printed)
        handler.setFormatter(logging.Formatter("%(message)s"))
        for name in ("stdout", "stderr"):
            old = getattr(sys, name)
            stack.callback(setattr, sys, name, old)
            setattr(sys, name, watch.printed)
        if not is_script:  # what was set up before writes to where we do not look
            logging.getLogger().addHandler(handler)
            stack.callback(logging.getLogger().removeHandler, handler)
        yield watch


def of_function(call: Callable[[], Any], watch: Watch, folder: Path) -> dict[str, Any]:
    """What was seen of a run that a function makes; an error of its own is raised."""
    returned = None
    with suppress(Enough):
        returned = call()
    return seen(watch, folder, returned)


def of_script(
    command: list[str], settings: dict, folder: str, seconds: float
) -> Iterator[dict[str, Any]]:
    """Run a script as `python script.py` would, in this process, and yield what was seen of it.

    After so many seconds it is stopped, where it lets itself be stopped.
    """
    script, *extra = command
    path = Path(script)
    os.chdir(folder)
    os.environ |= {"WANDB_MODE": "disabled", "MPLBACKEND": "Agg", "PYTHONUNBUFFERED": "1"}
    builtins.input, metadata.version = _no_input, _version
    torch.set_num_threads(1)
    sys.argv = [script, *extra]
    root, name = path.parent, path.stem
    while (root / "__init__.py").is_file():  # it may import `from .neighbour`
        root, name = root.parent, f"{root.name}.{name}"
    sys.path[:0] = dict.fromkeys(map(str, (path.parent, root)))
    torch.manual_seed(0)
    with watching(Settings(**settings), True, extra) as watch:
        found = watch.found
        try:
            if root == path.parent:
                limited(seconds, lambda: runpy.run_path(script, run_name="__main__"))
            else:
                options = {"run_name": "__main__", "alter_sys": True}
                limited(seconds, lambda: runpy.run_module(name, **options))
        except Enough:
            pass
        except TimedOut as error:
            found["error"] = f"it was {error}"
            found["timed_out"] = True
        except NoOptions:
            found["no_options"] = True
        except Unmet as error:
            found["unmet"] = str(error)
        except SystemExit as ended:
            if ended.code not in (None, 0):
                said = str(watch.printed).strip()[-300:]
                found["error"] = f"it ended with status {ended.code}; it printed last: {said}"
        except BaseException as error:
            found["error"] = _in_words(error)
        if not watch.had_options:  # a path of its own may not be there
            lacks = re.search(r"FileNotFound|sys\.argv", found["error"])
            found["no_options"] |= not found["error"] or bool(lacks)
        yield seen(watch, Path(folder))


def seen(watch: Watch, folder: Path, returned: Any = None) -> dict[str, Any]:
    """All that was seen, with what the run printed, returned and wrote."""
    if watch.waiting:
        watch.evaluated(watch.waiting)
    printed = str(watch.printed)
    texts = [printed]
    known = folder / "data"
    for path in sorted(folder.rglob("*")):
        is_log = path.suffix in LOGS and known not in path.parents and path.is_file()
        if is_log and path.stat().st_size < MOST_LOG:
            texts.append(_table(path) or path.read_text("utf-8", errors="replace"))
    return watch.found | {
        "printed": printed[-2_000:],
        "texts": "\n".join(texts)[-KEPT:],
        "returned": list(_numbers(returned)),
        "raw": bool(watch.settings.raw),
    }


def _table(path: Path) -> str:
    """The lines of a table, each number with the name of its column before it; "" for others."""
    lines = path.read_text("utf-8", errors="replace").splitlines()
    mark = next((each for each in ",\t;" if lines and each in lines[0]), None)
    names = lines[0].split(mark) if mark and path.suffix in (".csv", ".tsv", ".txt", ".log") else []
    if not names or re.search(r"\d\.\d", lines[0]):
        return ""
    return "\n".join(
        ", ".join(f"{name}: {value}" for name, value in zip(names, line.split(mark), strict=False))
        for line in lines[1:]
    )


def _numbers(value: Any, name: str = "", depth: int = 0) -> Iterator[list]:
    """Yield the numbers in what a run returns, each with the names that lead to it."""
    if depth > 5:
        return
    if _is_real(value):
        yield [name, float(value)]
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _numbers(each, f"{name} {key}", depth + 1)
    elif isinstance(value, list | tuple):
        for each in value[:1_000]:
            yield from _numbers(each, name, depth + 1)
    elif isinstance(value, np.ndarray | Tensor) and value.ndim == 1:
        yield from _numbers(value.tolist(), name, depth + 1)
    elif hasattr(value, "to_dict"):
        yield from _numbers(value.to_dict("list"), name, depth + 1)
    elif not isinstance(value, nn.Module | type) and hasattr(value, "__dict__"):
        for key, each in vars(value).items():
            if re.search("loss|history|log|record|metric|val|result", key, re.I):
                yield from _numbers(each, f"{name} {key}", depth + 1)


def _is_real(value: Any) -> bool:
    if isinstance(value, np.generic | Tensor | np.ndarray):
        return (value.numel() if isinstance(value, Tensor) else value.size) == 1
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_ids(value: Any) -> bool:
    is_tensor = isinstance(value, Tensor) and value.ndim == 2
    return is_tensor and not value.is_floating_point() and value.dtype != torch.bool


def _is_3d(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 3 and value.is_floating_point()


def _layers(names: list[str]) -> int:
    """How many blocks a model has, by the names of its parameters; 0 where they do not tell."""
    numbers: dict[str, set[str]] = {}  # by what is the same in each block
    for name in names:
        if found := re.search(r"(?:^|\.)(\d+)\.", name):
            numbers.setdefault(name[: found.start()] + name[found.end() :], set()).add(found[1])
    counts = Counter(map(len, numbers.values()))
    return counts.most_common(1)[0][0] if counts else 0


def _version(name: str) -> str:
    """The version of a package, or "0": the course's asks for its own, installed or not."""
    try:
        return metadata.distribution(name).version
    except metadata.PackageNotFoundError:
        return "0"


def _no_input(prompt: str = "") -> str:
    raise EOFError("a check answers no questions: take options, and ask nothing with input()")


def _in_words(error: BaseException) -> str:
    """An error with its place in the learner's code."""
    frames = traceback.extract_tb(error.__traceback__)
    frames = [each for each in frames if not each.filename.startswith(NOT_THEIRS)]
    place = f", at line {frames[-1].lineno} of {Path(frames[-1].filename).name}" if frames else ""
    code = f": `{frames[-1].line}`" if frames and frames[-1].line else ""
    text = str(error) if len(str(error)) < 400 else f"{str(error)[:400]}..."
    return f"{type(error).__name__}: {text}{place}{code}"
