"""The check of checkpointing: a run is saved and goes on; from the file it goes on the same way."""

import copy
import io
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from workbook.checks.calling import call_part
from workbook.checks.engine import Exercise, Program, judge, mistake
from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.verdicts import NotAttempted, Words, Wrong, is_stub, kind_of

SAVE = "save_checkpoint(model, optimizer, iteration, out)"
LOAD = "load_checkpoint(src, model, optimizer)"
ITERATION = 7
WHOLE = re.compile(rb"torch\.(nn\.modules|optim)")  # in a file that holds a model or an optimizer
# A piece of an error's text, and what it usually comes from.
ERRORS = {
    r"not BytesIO|BytesIO' object has no": "`out` and `src` may also be files that are open, and "
    "these have no path: `torch.save` and `torch.load` take both, so hand them on as they are.",
    r"PosixPath|WindowsPath": "`out` and `src` may be a pathlib.Path as well as a str: "
    "`os.fspath` makes a str of either.",
    r"weights_only|WeightsUnpickler|Unsupported global": "The file holds whole objects, which "
    "`torch.load` refuses, since loading them can run any code. Store `state_dict()` of both.",
    r"EOFError|Ran out of input|not a ZIP|PytorchStreamReader|invalid load key": "What was written "
    "is not what is read: the file is not finished, or it is read in another form.",
    r"parameter group|size mismatch|Missing key": "What was stored does not fit: store the "
    "`state_dict()` of the model and that of the optimizer, and load each into its own.",
}


class SmallRun:
    """A small training run, whose data depend on the number of the step alone."""

    def __init__(self, seed: int):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layers = nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)
            self.model = nn.Sequential(*layers).to("cpu", torch.float32)
        self.parameters = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(self.parameters, lr=0.01)

    def steps(self, *numbers: int) -> "SmallRun":
        """The run itself, after the steps with these numbers; a schedule sets the rate of each."""
        for number in numbers:
            for group in self.optimizer.param_groups:
                group["lr"] = 0.01 * number
            x = torch.arange(12, dtype=torch.float32, device="cpu").reshape(4, 3).sin() * number
            self.optimizer.zero_grad()
            with torch.enable_grad():
                self.model(x).square().mean().backward()
            self.optimizer.step()
        self.optimizer.zero_grad()
        return self

    def weights(self) -> list[float]:
        """All the numbers of the model."""
        return [float(x) for p in self.model.parameters() for x in p.detach().flatten()]

    def moments(self) -> list[float]:
        """All the numbers of the optimizer's state."""
        states = [self.optimizer.state.get(p, {}) for p in self.model.parameters()]
        entries = [torch.as_tensor(s[name]).flatten() for s in states for name in sorted(s)]
        return [float(x) for entry in entries for x in entry]

    def now(self, iteration: Any) -> dict[str, Any]:
        """All that a checkpoint restores, and the weights after three more steps."""
        if isinstance(iteration, torch.Tensor | np.integer):
            iteration = int(iteration)
        held = zip(self.model.parameters(), self.parameters, strict=True)
        same = all(p is old for p, old in held)
        return {
            "parameters": "the same tensors" if same else "new tensors",
            "weights": self.weights(),
            "moments": self.moments(),
            "lr": self.optimizer.param_groups[0]["lr"],
            "iteration": iteration if type(iteration) is int else type(iteration).__name__,
            "later": self.steps(4, 5, 6).weights(),
        }


class Form(NamedTuple):
    """In what a checkpoint is written, as code."""

    code: str
    what: str = ""


def restored(form: Form) -> dict[str, Any]:
    """What a new run has after it has loaded a checkpoint of another; `form` changes nothing."""
    run = SmallRun(seed=0).steps(1, 2, 3)
    model, optimizer = copy.deepcopy((run.model.state_dict(), run.optimizer.state_dict()))
    run.steps(4, 5, 6)
    new = SmallRun(seed=1)
    new.model.load_state_dict(model)
    new.optimizer.load_state_dict(optimizer)
    return new.now(ITERATION)


MODEL, OPTIMIZER = "new.model.load_state_dict(model)", "new.optimizer.load_state_dict(optimizer)"
RETURNED = "new.now(ITERATION)"
MISTAKES = (
    mistake("The model that was handed in is as before. `model = ...` only gives the name a new "
            "value: `model.load_state_dict(...)` writes into it.",
            MODEL, "pass"),
    mistake("Only the model was restored: AdamW's averages begin at zero again, and the loss "
            "jumps.",
            OPTIMIZER, "pass"),
    mistake("That is the run as it went on after the checkpoint: it is kept in memory, as a "
            "global, and not read from the file.",
            "copy.deepcopy(", "(", MODEL, "new.model.load_state_dict(run.model.state_dict())"),
    mistake("The weights are rounded: store them in the type that they have.",
            MODEL, "new.model.load_state_dict({k: v.half() for k, v in model.items()})"),
    mistake("The optimizer holds the old parameters, and will move these: write into them, as "
            "`load_state_dict` does.",
            MODEL, "new.model.load_state_dict(model, assign=True)"),
    mistake("Store all of `optimizer.state_dict()`: it holds `param_groups` as well.",
            OPTIMIZER, f'{OPTIMIZER}\nnew.optimizer.param_groups[0]["lr"] = 0.01'),
    mistake("Nothing is returned: end with the number of the step that was saved.",
            RETURNED, "new.now(None)"),
    mistake("Model and optimizer are changed in place: return the number of the step alone.",
            RETURNED, "new.now((ITERATION,))"),
    mistake("Model and optimizer are changed in place: return the number of the step alone.",
            RETURNED, "new.now({})"),
    mistake("It is a whole number: store and return it as an int.", RETURNED, "new.now('7')"),
    mistake("It is a whole number: store and return it as an int.", RETURNED, "new.now(7.0)"),
    mistake("Return the number as it was saved; what comes next is the caller's affair.",
            RETURNED, "new.now(ITERATION + 1)"),
    mistake("The number is lost: store it beside the two state dicts.", RETURNED, "new.now(0)"),
)  # fmt: skip
DIFFERENT = {  # by what differs first: a claim, and what is said where no mistake fits
    "parameters": ("The model has other parameters than before.", None),
    "weights": (
        "The weights are not those that were saved.",
        "Some of the model's tensors are not restored.",
    ),
    "moments": (
        "The optimizer is not as it was.",
        "Something of `optimizer.state_dict()` was lost or changed.",
    ),
    "lr": ("The optimizer's settings are not as they were.", None),
    "iteration": ("The step's number does not come back.", "Return the number that was saved."),
    "later": (
        "The resumed run is another one after three steps.",
        "Something of the optimizer is not restored.",
    ),
}


def _beside(form: Form, asked: dict, got: dict) -> Wrong:
    """What is said of the first thing that is not restored."""
    name = next(name for name in DIFFERENT if asked[name] != got[name])
    claim, fallback = DIFFERENT[name]
    expected, value = (
        Words(f"{each[name][:4]} ...") if isinstance(each[name], list) else each[name]
        for each in (asked, got)
    )
    return Wrong(
        claim, given=_as_code(form, load=True), expected=expected, got=value, mistake=fallback
    )


def _as_code(form: Form, load: bool = False) -> Words:
    loaded = f"\nload_checkpoint({form.code}, new_model, new_optimizer)" if load else ""
    return Words(f"save_checkpoint(model, optimizer, {ITERATION}, {form.code}){loaded}")


class Pair(NamedTuple):
    """A learner's two functions, and what to tell of them."""

    save: Callable
    load: Callable
    notes: dict[str, str]

    def run(self, form: Form) -> dict[str, Any]:
        """What a new run has after loading. Raises: Wrong."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            path = Path(folder, "run.pt")
            out = {"'": str(path), "P": path}.get(form.code[0]) or io.BytesIO()
            run, there = SmallRun(seed=0).steps(1, 2, 3), set(os.listdir())
            before = run.weights(), run.moments()
            self.write(run, out, form)
            if (run.weights(), run.moments()) != before:
                raise Wrong(
                    "Saving changed the model or the optimizer.",
                    given=_as_code(form),
                    mistake="Training goes on after a checkpoint: leave both as they are.",
                )
            data, src = _stored(out, path, _as_code(form), set(os.listdir()) - there)
            run.steps(4, 5, 6)
            if WHOLE.search(data):
                self.notes["whole"] = (
                    "The file holds whole objects, not only tensors: it can be loaded only where "
                    "the code of their classes is the same, and by running code from the file. "
                    "Store `state_dict()` of both."
                )
            new = SmallRun(seed=1)
            values = {"src": src, "model": new.model, "optimizer": new.optimizer}
            iteration = call_part(self.load, values, given=_as_code(form, load=True))
        if not new.model.training:
            self.notes["eval"] = "Loading switched the model to `eval()`, and training goes on."
        return new.now(iteration)

    def write(self, run: SmallRun, out: Any, form: Form) -> None:
        """Save a run in `out`."""
        values = {"model": run.model, "optimizer": run.optimizer}
        call_part(self.save, {**values, "iteration": ITERATION, "out": out}, given=_as_code(form))


def _stored(out: Any, path: Path, given: Words, elsewhere: set[str]) -> tuple[bytes, Any]:
    """The bytes in `out`, and the same in another place, so that only they can be known.

    `elsewhere` are the files that appeared in the working folder.
    """
    if isinstance(out, io.BytesIO):
        if out.closed or not out.getvalue():
            raise Wrong(
                "Nothing is in the file object afterwards, or it is closed.",
                given=given,
                mistake="Whoever opened a file closes it: write into it, and leave it open."
                if out.closed
                else "`torch.save(state, out)` writes into a file that is open, too.",
            )
        return out.getvalue(), io.BytesIO(out.getvalue())
    if not path.exists():
        beside = [file.name for file in path.parent.iterdir()]
        mistake = (
            "Nothing was written: what is kept in memory, or in a file of your own choice, is not "
            "there when another process loads `src`. `torch.save(state, out)` writes it."
        )
        if beside:
            mistake = "The name was changed, perhaps by an ending that was added: write to `out`."
        elif elsewhere:
            mistake = "It was written under a name of your own: write to `out`."
        raise Wrong(
            "There is no file of that name afterwards.",
            given=given,
            expected=Words(path.name),
            got=Words(", ".join([*beside, *elsewhere]) or "no file at all"),
            mistake=mistake,
        )
    moved = path.rename(path.with_name("moved-" + path.name))
    return moved.read_bytes(), str(moved) if isinstance(out, str) else moved


CHECKPOINTS = Exercise(
    program=Program(restored),
    mistakes=MISTAKES,
    cases=(Form("'run.pt'"),),
    corners=(Form("Path('run.pt')", "a pathlib.Path"), Form("io.BytesIO()", "an open file")),
    run=Pair.run,
    same=lambda one, other: one == other,
    report=_beside,
    errors=ERRORS,
)


def checkpointing(attempt: Any, part: str | None = None) -> str:
    """Praise for a right pair of functions; raises `Wrong` with what is not restored."""
    pair = _pair(attempt)
    found = judge(CHECKPOINTS, pair)
    if not found:
        run, out = SmallRun(seed=0), io.BytesIO()
        with found("style"):
            expect_from_scratch(
                lambda: pair.write(run, out, CHECKPOINTS.corners[1]), [pair.save, pair.load]
            )
    elif found.found[0].weight == "corner":
        found.passes.append("With a path as a str everything is restored.")
    praise = "A new model and optimizer go on exactly as the saved ones did."
    return found.verdict(praise, pair.notes.values())


def _pair(attempt: Any) -> Pair:
    """The two functions, in this order. Raises unless there are two."""
    if isinstance(attempt, dict):
        attempt = sorted(attempt.values(), key=lambda one: "load" in getattr(one, "__name__", ""))
    if not isinstance(attempt, tuple | list) or len(attempt) != 2:
        raise Wrong(
            "Two functions are needed.",
            expected=Words(f"the pair (save_checkpoint, load_checkpoint): {SAVE} and {LOAD}"),
            got=Words(kind_of(attempt)),
        )
    if any(one is None or one is ... or is_stub(one) for one in attempt):
        raise NotAttempted
    for one in attempt:
        if not callable(one):
            raise Wrong("One of the two is no function.", got=Words(kind_of(one)))
    names = [getattr(one, "__name__", "") for one in attempt]
    if "load" in names[0] and "save" in names[1]:
        raise Wrong(
            "They are the wrong way round.",
            expected=Words("(save_checkpoint, load_checkpoint)"),
            got=Words(f"({', '.join(names)})"),
        )
    return Pair(*attempt, {})
