"""The check of checkpointing: a run is saved and goes on, and from the file it must do the same."""

import copy
import io
import tempfile
from collections.abc import Callable, Iterable
from operator import eq
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor, nn

from workbook.classroom.checks.machinery.calling import Runner, call_part, meaning, parameters_of
from workbook.classroom.checks.machinery.engine import Exercise, Program, instead_of, judge, mistake
from workbook.classroom.checks.machinery.from_scratch import check_style
from workbook.classroom.checks.machinery.verdicts import (
    NotAttempted,
    Prose,
    Wrong,
    call,
    expect,
    is_untouched,
    kind_of,
)

ITERATION = 7
# A piece of an error's text, and what it usually comes from.
ERRORS = {
    r"not BytesIO|BytesIO' object has no": "`out` and `src` may also be open files, which have no "
    "path: `torch.save` and `torch.load` take both, so pass them on as they are.",
    "'Sequential' object has no": "Any `nn.Module` may be saved, not only your own: take its "
    "`state_dict()`, and what your model has besides only if it is there.",
    "expected 'f' to be": "`torch.save(state, out)`: what is saved comes first, then where to.",
    r"PosixPath|WindowsPath": "`out` and `src` may be a pathlib.Path: `os.fspath` makes it a str.",
    r"[Uu]nsupported global": "The file holds whole objects, which `torch.load` refuses, since "
    "loading them can run any code. Store the `state_dict()` of both.",
    r"EOFError|Ran out of input|not a ZIP|PytorchStreamReader|invalid load key|Unsupported op": (
        "What is read is not what was written: the file is incomplete, or an open one is read"
        " twice."
    ),
    r"KeyError: Parameter|'int' object has no attribute": "Hand the optimizer's state to "
    "`optimizer.load_state_dict(...)`, which assigns each average to its parameter.",
    r"parameter group|size mismatch|Missing key": "Store the `state_dict()` of the model and that "
    "of the optimizer, and load each into its counterpart.",
}


WEIGHTS = "The weights are not those that were saved."


class SmallRun:
    """A small training run, whose data depend on the number of the step alone."""

    def __init__(self, seed: int):
        torch.manual_seed(seed)
        layers = nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)
        self.model = nn.Sequential(*layers).to("cpu", torch.float32)
        self.parameters = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(self.parameters, lr=0.01)

    def steps(self, *numbers: int) -> "SmallRun":
        """The run itself, after the steps with these numbers; a schedule sets each one's lr."""
        for number in numbers:
            self.optimizer.param_groups[0]["lr"] = 0.01 * number
            x = torch.arange(12, dtype=torch.float32, device="cpu").reshape(4, 3).sin() * number
            self.optimizer.zero_grad()
            self.model(x).square().mean().backward()
            self.optimizer.step()
        return self

    def held(self) -> tuple[list[float], list[float]]:
        """All the numbers of the model, and all of the optimizer's state."""
        states = [self.optimizer.state.get(p, {}) for p in self.model.parameters()]
        moments = [torch.as_tensor(s[name]) for s in states for name in sorted(s)]
        return _numbers(self.model.parameters()), _numbers(moments)

    def now(self, iteration: Any) -> dict[str, Any]:
        """Everything that a checkpoint restores, by the claim to make if it does not."""
        held = zip(self.model.parameters(), self.parameters, strict=True)
        same = all(p is old for p, old in held)
        weights, moments = self.held()
        if type(iteration) is not int:
            iteration = "nothing" if iteration is None else "something other than an int"
        return {
            "The model's parameters were replaced.": "the old ones" if same else "new ones",
            WEIGHTS: weights,
            "The optimizer's state is not what was saved.": moments,
            "The optimizer's settings differ.": f"lr={self.optimizer.param_groups[0]['lr']:g}",
            "The step number that comes back is not the saved one.": iteration,
            "The resumed run differs after three steps.": self.steps(4, 5, 6).held()[0],
        }


def _numbers(tensors: Iterable[Tensor]) -> list[float]:
    return [x for tensor in tensors for x in tensor.detach().flatten().tolist()]


class FileForm(NamedTuple):
    """What a checkpoint is written to: as code, and made from the path of a file."""

    code: str
    make: Callable[[Path], Any]
    what: str = ""

    def __str__(self) -> str:
        return f"""save_checkpoint(model, optimizer, {ITERATION}, {self.code});
load_checkpoint({self.code}, new_model, new_optimizer)
# of Sequential(Linear(3, 4), Tanh(), Linear(4, 2)) after 3 steps of AdamW, the last at lr=0.03"""


def restored(form: FileForm) -> dict[str, Any]:
    """What a new run has after it has loaded a checkpoint of another; `form` changes nothing."""
    run = SmallRun(seed=0).steps(1, 2, 3)
    model, optimizer = copy.deepcopy((run.model.state_dict(), run.optimizer.state_dict()))
    run.steps(4, 5, 6)
    new = SmallRun(seed=1)
    new.model.load_state_dict(model)
    new.optimizer.load_state_dict(optimizer)
    return new.now(ITERATION)


MODEL, OPTIMIZER = "new.model.load_state_dict(model)", "new.optimizer.load_state_dict(optimizer)"
MISTAKES = (
    *instead_of(
        MODEL,
        {
            "The model that was passed in is as before. `model = ...`, or `p = ...` in a "
            "loop, only gives the name a new value: `model.load_state_dict(...)` writes into it.": (
                "pass"
            ),
            "The optimizer still holds the old "
            "parameters, and will update those: write into them, as `load_state_dict` does.": (
                "new.model.load_state_dict(model, assign=True)"
            ),
        },
    ),
    *instead_of(
        OPTIMIZER,
        {
            "Only the model was restored, or an optimizer other than the one that was "
            "passed in: AdamW's averages begin at zero again, and the loss jumps.": "pass",
            "Store its `param_groups`"
            " too.": f'{OPTIMIZER}\nnew.optimizer.param_groups[0]["lr"] = 0.01',
        },
    ),
    mistake(
        "Both that were passed in are as before: `model = ...` only gives the name a new "
        "value, and `model.load_state_dict(...)` writes into it.",
        MODEL,
        "pass",
        OPTIMIZER,
        "pass",
    ),
    mistake(
        "Those are the weights of the run that went on, from memory and not from the file.",
        "copy.deepcopy(",
        "(",
        MODEL,
        "new.model.load_state_dict(run.model.state_dict())",
    ),
    *instead_of(
        "new.now(ITERATION)",
        {
            "Nothing is returned: return the step number that was saved.": "new.now(None)",
            "Return the step number alone, as an int.": "new.now('an int')",
            "Return the number as it was saved, not the next one.": "new.now(ITERATION + 1)",
            "The number is lost: store it beside the two state dicts.": "new.now(0)",
        },
    ),
)
EMPTY = (
    "Write to `out` itself, as `torch.save(state, out)` does, and leave an open file open: what is "
    "kept in memory, in a folder, or under another name is not there when another process loads it."
)


def _beside(form: FileForm, asked: dict, got: dict) -> Wrong:
    """The verdict on the first thing that is not restored; it claims nothing if all is."""
    claim = next((claim for claim in asked if asked[claim] != got[claim]), "")
    expected, value = (Prose(shorten(str(state.get(claim)), 80)) for state in (asked, got))
    lost = "Something is lost or changed on the way: store and load both `state_dict()` in full."
    return Wrong(claim, given=form, expected=expected, got=value, mistake=lost)


TORCH_LOAD = torch.load
NO_PLACE = (
    "`torch.load` without `map_location` cannot load what a GPU has saved where there is none: pass"
    ' `map_location="cpu"`, or the device of the model.'
)


class CheckpointRunner(Runner):
    """Runs two functions: the first saves, the second loads."""

    stays_put = False  # whether tensors are loaded to the device that they were saved on

    def noted_load(self, *args: Any, **kwargs: Any) -> Any:
        """Stands for `torch.load`, and notes whether it is told where to put what it loads."""
        self.stays_put |= len(args) < 2 and kwargs.get("map_location") is None
        return TORCH_LOAD(*args, **kwargs)

    def run(self, form: FileForm) -> dict[str, Any]:
        """What a new run has after loading. Raises: Wrong."""
        run = SmallRun(seed=0).steps(1, 2, 3)
        new = SmallRun(seed=1)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            path = Path(folder, "run.pt")
            out = form.make(path)
            before = run.held()
            self.write(run, out, form)
            expect(
                run.held() == before,
                "Saving changed the model or the optimizer.",
                "Leave both alone.",
                given=form,
            )
            is_open = isinstance(out, io.BytesIO)
            if is_open:
                path.write_bytes(b"" if out.closed else out.getvalue())
            if not path.is_file() or not path.stat().st_size:
                raise Wrong("`out` is empty afterwards, or closed.", given=form, mistake=EMPTY)
            run.steps(4, 5, 6)  # which must not show in what is loaded
            src = io.BytesIO(path.read_bytes()) if is_open else out
            _, load = self.attempt
            values = {"src": src, "model": new.model, "optimizer": new.optimizer}
            with patch.object(torch, "load", self.noted_load):
                iteration = call_part(load, values, given=form)
        return call(new.now, iteration, given=form)

    def write(self, run: SmallRun, out: Any, form: FileForm) -> None:
        """Save a run in `out`."""
        save, _ = self.attempt
        values = {"model": run.model, "optimizer": run.optimizer}
        call_part(save, {**values, "iteration": ITERATION, "out": out}, given=form)


FORMS = (FileForm("'run.pt'", str),)
OTHERS = (
    FileForm("Path('run.pt')", Path, "a pathlib.Path"),
    FileForm("io.BytesIO()", lambda path: io.BytesIO(), "an open file"),
)
restoring = Program(restored)
CHECKPOINTS = Exercise(
    restoring, MISTAKES, FORMS, CheckpointRunner.run, eq, _beside, ERRORS, corners=OTHERS
)


def checkpointing(attempt: Any) -> str:
    """Praise for a right pair of functions; raises `Wrong` with what is not restored."""
    runner = CheckpointRunner(_pair(attempt))
    findings = judge(CHECKPOINTS, runner)
    run = SmallRun(seed=0)
    _, form = CHECKPOINTS.corners
    check_style(findings, lambda: runner.write(run, io.BytesIO(), form), runner.attempt)
    praise = "A new model and optimizer go on exactly as the saved ones did."
    return findings.verdict(praise, [NO_PLACE] if runner.stays_put else [])


def _pair(attempt: Any) -> list[Callable]:
    """The two functions, `save` first: it takes the step. Raises unless there are two."""
    if not isinstance(attempt, tuple | list) or len(attempt) != 2:
        raise _not_two(attempt)
    missing = [is_untouched(one) for one in attempt]
    if any(missing):
        raise NotAttempted("" if all(missing) else "One of the two functions is still missing.")
    if not all(map(callable, attempt)):
        raise _not_two(attempt)

    def is_load(one: Any) -> tuple[bool, bool]:
        takes_step = any(meaning(p.name, ["iteration"]) for p in parameters_of(one))
        return not takes_step, "load" in getattr(one, "__name__", "")

    return sorted(attempt, key=is_load)


def _not_two(attempt: Any) -> Wrong:
    names = "(save_checkpoint, load_checkpoint)"
    return Wrong("Two functions are needed.", expected=Prose(names), got=Prose(kind_of(attempt)))
