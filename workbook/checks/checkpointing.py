"""The check of checkpointing: a run is saved and goes on; from the file it goes on the same way."""

import io
import operator
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from workbook.checks.calling import call_part
from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.verdicts import Findings, NotAttempted, Words, Wrong, is_stub, kind_of

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
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)

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
        return [
            float(x)
            for s in states
            for name in sorted(s)
            for x in torch.as_tensor(s[name]).flatten()
        ]


def checkpointing(attempt: Any, part: str | None = None) -> str:
    """Praise for a right pair of functions; raises `Wrong` with what is not restored."""
    save, load = _pair(attempt)
    found, notes = Findings(), {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "run.pt"
        with found("use"):
            _check(save, load, str(path), path, "'run.pt'", notes)
        if not found:
            path = Path(folder) / "second.ckpt"
            with found("corner"):
                _check(save, load, path, path, "Path('second.ckpt')", notes)
            with found("corner"):
                _check(save, load, io.BytesIO(), None, "io.BytesIO()", notes)
            if found:
                found.passes.append("With a path as a str everything is restored.")
    if not found:
        run, out = SmallRun(seed=0), io.BytesIO()
        with found("style"):
            expect_from_scratch(lambda: _saved(save, run, out, Words(SAVE)), [save, load])
    praise = "A new model and optimizer go on exactly as the saved ones did."
    return found.verdict(praise, notes.values())


def _pair(attempt: Any) -> tuple[Callable, Callable]:
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
    return tuple(attempt)


def _saved(save: Callable, run: SmallRun, out: Any, given: Words) -> None:
    """Save a run by the learner's function."""
    names = ("model", "optimizer", "iteration", "out")
    values = zip(names, (run.model, run.optimizer, ITERATION, out), strict=True)
    _told(save, dict(values), given)


def _check(save: Callable, load: Callable, out: Any, path: Path | None, said: str, notes: dict):
    """Raise `Wrong` unless a run that was saved in `out` goes on the same from there."""
    run = SmallRun(seed=0).steps(1, 2, 3)
    weights, moments, there = run.weights(), run.moments(), set(os.listdir())
    given = Words(f"save_checkpoint(model, optimizer, {ITERATION}, {said})")
    _saved(save, run, out, given)
    if (run.weights(), run.moments()) != (weights, moments):
        raise Wrong(
            "Saving changed the model or the optimizer.",
            given=given,
            mistake="Training goes on after a checkpoint: leave both as they are.",
        )
    src = _stored(out, path, given, set(os.listdir()) - there)
    after = run.steps(4, 5, 6).weights()
    if WHOLE.search(src.getvalue() if path is None else Path(src).read_bytes()):
        notes["whole"] = (
            "The file holds whole objects, not only tensors: it can be loaded only where the code "
            "of their classes is the same, and by running code from the file. Store "
            "`state_dict()` of both."
        )

    other = SmallRun(seed=1)
    fresh, parameters = other.weights(), list(other.model.parameters())
    given = Words(f"{given}\nload_checkpoint({said}, new_model, new_optimizer)")
    values = {"src": src, "model": other.model, "optimizer": other.optimizer}
    iteration = _told(load, values, given)
    _expect_weights(other, weights, fresh, after, given)
    _expect_optimizer(other, moments, parameters, given)
    _expect_iteration(iteration, given)
    if not other.model.training:
        notes["eval"] = "Loading switched the model to `eval()`, and training goes on."
    resumed = other.steps(4, 5, 6).weights()
    if resumed != after:
        raise Wrong(
            "The resumed run is another one after three steps.",
            given=given,
            expected=after[:4],
            got=resumed[:4],
            mistake="Something of the optimizer is not restored.",
        )


def _told(function: Callable, values: dict[str, Any], given: Words) -> Any:
    """What a call returns; an error is told with what it usually comes from."""
    try:
        return call_part(function, values, given=given)
    except Wrong as failure:
        said = f"{type(failure.error).__name__}: {failure.error}"
        known = (words for piece, words in ERRORS.items() if re.search(piece, said))
        failure.mistake = next(known, failure.mistake)
        raise


def _stored(out: Any, path: Path | None, given: Words, elsewhere: set[str]) -> Any:
    """What to load from: the same bytes in another place, so that only the file can be known.

    `elsewhere` are the files that appeared in the working folder.
    """
    if path is None:
        if out.closed:
            raise Wrong(
                "The file object is closed afterwards.",
                given=given,
                mistake="Whoever opened a file closes it: write into it, and leave it open.",
            )
        if not out.getvalue():
            raise Wrong(
                "Nothing was written into the file object.",
                given=given,
                mistake="`torch.save(state, out)` writes into a file that is open, too.",
            )
        return io.BytesIO(out.getvalue())
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
    return str(moved) if isinstance(out, str) else moved


def _expect_weights(
    run: SmallRun, weights: list[float], fresh: list[float], after: list[float], given: Words
) -> None:
    got = run.weights()
    if got == weights:
        return
    mistake = "Some of the model's tensors are not restored."
    if got == fresh:
        mistake = (
            "The model that was handed in is as before. `model = ...` only gives the name a new "
            "value: `model.load_state_dict(...)` writes into it."
        )
    elif got == after:
        mistake = (
            "That is the model as it went on after the checkpoint: it is kept in memory, as a "
            "global, and not read from the file."
        )
    elif max(abs(a - b) for a, b in zip(got, weights, strict=True)) < 0.02:
        mistake = "The weights are rounded: store them in the type that they have."
    raise Wrong(
        "The weights are not those that were saved.",
        given=given,
        expected=weights[:4],
        got=got[:4],
        mistake=mistake,
    )


def _expect_optimizer(
    run: SmallRun, moments: list[float], parameters: list[nn.Parameter], given: Words
) -> None:
    """Raise `Wrong` unless the optimizer is as it was, and still moves this model."""
    if any(a is not b for a, b in zip(run.model.parameters(), parameters, strict=True)):
        raise Wrong(
            "The model has other parameters than before.",
            given=given,
            expected=Words("the same tensors, with other values"),
            got=Words("new tensors"),
            mistake="The optimizer holds the old ones, and will move these: write into them, as "
            "`load_state_dict` does.",
        )
    got = run.moments()
    if got != moments:
        raise Wrong(
            "The optimizer is not as it was.",
            given=given,
            expected=Words(f"the moments and the step of all parameters: {moments[:3]} ..."),
            got=Words(f"{got[:3]} ..." if got else "an empty state"),
            mistake="Only the model was restored: AdamW's averages begin at zero again, and the "
            "loss jumps."
            if not got
            else "Something of `optimizer.state_dict()` was lost or changed.",
        )
    rate = run.optimizer.param_groups[0]["lr"]
    if rate != 0.03:
        raise Wrong(
            "The optimizer's settings are not as they were.",
            given=given,
            expected=Words("param_groups[0]['lr'] = 0.03, as the schedule had set it"),
            got=rate,
            mistake="Store all of `optimizer.state_dict()`: it holds `param_groups` as well.",
        )


def _expect_iteration(iteration: Any, given: Words) -> None:
    """Raise `Wrong` unless the number that was saved came back."""
    try:
        right = not isinstance(iteration, bool) and operator.index(iteration) == ITERATION
    except TypeError:
        right = False
    if right:
        return
    mistake = "Return the number that was saved."
    if iteration is None:
        mistake = "Nothing is returned: end with the number of the step that was saved."
    elif isinstance(iteration, tuple | list | dict):
        mistake = "Model and optimizer are changed in place: return the number of the step alone."
    elif isinstance(iteration, float | str):
        mistake = "It is a whole number: store and return it as an int."
    elif iteration == ITERATION + 1:
        mistake = "Return the number as it was saved; what comes next is the caller's affair."
    elif iteration == 0:
        mistake = "The number is lost: store it beside the two state dicts."
    raise Wrong(
        "The step's number does not come back.",
        given=given,
        expected=ITERATION,
        got=iteration if isinstance(iteration, int | float | str) else Words(kind_of(iteration)),
        mistake=mistake,
    )
