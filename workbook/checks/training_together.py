"""The check of the training script: a small run, and one that goes on from its checkpoint.

What is judged is what the run does, as `watched` sees it; of what it reports only whether it does,
and whether that is what the model's losses are. `CONTRACT` says what a script must offer.
"""

import inspect
import math
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import torch

from workbook.checks import apart
from workbook.checks.settings import Settings, Unmet
from workbook.checks.verdicts import (
    ENDLESS,
    Findings,
    NotAttempted,
    Words,
    Wrong,
    call,
    is_stub,
    kind_of,
    work_of,
)
from workbook.checks.watched import MOST_PARAMETERS, of_function, watching, write_data
from workbook.config import ModelConfig
from workbook.transformer.model import TransformerLM

STEPS, MORE = 20, 30  # of the first run, and of the one that goes on to more
STOP = 15  # the step after which a run is interrupted
FUNCTION_SECONDS = 30.0
SCRIPT_SECONDS = 60.0
LAST_SECONDS = 30.0  # beyond it for torch to load, and where a script cannot be stopped
FALLS = 0.5  # nats per token: much less than 20 steps bring
TINY = 1e-6  # a learning rate at which nothing is learned
CONTRACT = (
    "A script is run as `python train.py --steps 20 ...`: each setting is an option of argparse, "
    "click or typer with a usual name, such as --train_path and --valid_path (token files, uint16 "
    "as .npy or .bin), --vocab_size, --context_length, --d_model, --num_layers, --num_heads, "
    "--d_ff, --batch_size, --steps, --lr, --checkpoint_path, --resume, --log_every, --eval_every; "
    "any other option has a default. A function takes the same by name, as a dict or as a "
    "dataclass."
)
FOREIGN = (
    "The file holds uint16: read it with that dtype, and a .npy file with np.load, since np.memmap "
    "takes its header for ids."
)
VALID = r"val(?:id(?:ation)?)?|eval(?:uation)?|dev|test|held.?out"
UNUSED = "The setting is read, and then another value is used."
ASKS = "Take every answer as an option, not by input()."
FINAL = re.compile("^(it ended|EOFError|SyntaxError|IndentationError)")  # in any form of the data
NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?(?![\w.]\d)|\b(?:nan|inf)\b", re.I
)
STEP = re.compile(r"\b(?:step|it|iter|iteration)s?\W{0,3}(\d+)", re.I)


@dataclass
class Seen:
    """What was seen of one run, and the files that it left."""

    settings: Settings
    steps: int
    rates: list[float]
    trained: list[dict | None]
    evaluated: list[dict]
    shapes: list[list[int]]
    layers: int
    parameters: int
    backward: int
    no_gradient: bool
    uncleared: bool
    too_many: bool
    memory_map: bool
    foreign: bool
    logged: list[list]
    error: str
    unmet: str
    no_options: bool
    timed_out: bool
    asked: dict[str, str]
    printed: str
    texts: str
    returned: list[list]
    raw: bool
    failure: Wrong | None = None  # what it raised, or that it was stopped
    checkpoints: list[Path] = field(default_factory=list)

    @property
    def losses(self) -> list[float]:
        """The loss of each step, as it was seen."""
        return [each["loss"] for each in self.trained if each]

    @property
    def validations(self) -> list[float]:
        """Losses on validation data, as they were seen."""
        own = not {"valid_data", "data_folder"} & self.asked.keys()  # split off by the script
        return [each["loss"] for each in self.evaluated if each["valid"] or own]

    def reported(self, valid: bool) -> list[float]:
        """The losses that it reports, of either split."""
        named = [*self.logged, *self.returned, *_read(self.texts)]
        found = [value for name, value in named if _is_loss(name, valid)]
        seen = self.validations if valid else self.losses
        if not found:  # numbers without a name, where they follow the losses
            found = [value for name, value in named if not re.search("[a-z]{2}", _label(name))]
            told = [any(abs(each - loss) < 0.1 + 0.1 * loss for each in found) for loss in seen]
            found = found if sum(told) > len(seen) / 2 else []
        return [each for each in found if math.isfinite(each)]


class Script:
    """A script, with the arguments that the learner gives it."""

    is_script = True

    def __init__(self, command: list[str]):
        self.command = command

    def __str__(self) -> str:
        return shlex.join(["python", Path(self.command[0]).name, *self.command[1:]])

    def run(self, settings: Settings) -> Seen:
        """Run it in a process of its own. Raises: Wrong where it ends that, or never ends."""
        try:
            found = apart.result(
                "workbook.checks.watched:of_script",
                *(self.command, asdict(settings), settings.folder, SCRIPT_SECONDS),
                seconds=SCRIPT_SECONDS + LAST_SECONDS,
            )
        except apart.EndedError as error:
            said = re.sub("^nothing came for", "it did not end in", str(error))
            slow = said != str(error)
            raise Wrong(
                "It did not end by itself."
                if slow
                else "It ended Python, or too much was started.",
                given=str(self),
                got=Words(said),
                mistake=ENDLESS if slow else None,
                timed_out=slow,
            ) from error
        seen = Seen(settings, **found)
        if seen.error:
            slow = seen.timed_out
            seen.failure = Wrong(
                "It did not end by itself." if slow else "It raised an error.",
                given=f"{self}, with {settings.steps} steps",
                got=Words(seen.error),
                mistake=ENDLESS if slow else ASKS if "EOFError" in seen.error else None,
                timed_out=slow,
            )
        return seen


class Function:
    """A function, or a class with a method that trains."""

    is_script = False

    def __init__(self, attempt: Callable):
        self.attempt = attempt

    def __str__(self) -> str:
        return f"{getattr(self.attempt, '__name__', 'train')}(...)"

    def run(self, settings: Settings) -> Seen:
        """Run it in this process. Raises: Wrong, NotAttempted."""
        torch.manual_seed(0)
        given = f"{self}, with {settings.steps} steps"
        options = {"seconds": FUNCTION_SECONDS, "given": given}
        with chdir(settings.folder), watching(settings) as watch:

            def train() -> Any:
                function, made = self.attempt, None
                if inspect.isclass(function):
                    made = call(function, **settings.arguments(function, _parts()), **options)
                    function = getattr(made, work_of(self.attempt))
                returned = call(function, **settings.arguments(function, _parts()), **options)
                return returned if made is None else [returned, made]

            try:
                found = of_function(train, watch, Path(settings.folder))
            except Unmet as error:
                raise NotAttempted(
                    f"It asks for `{error}`, which the check has not. {CONTRACT}"
                ) from error
            except Wrong as wrong:
                found = of_function(lambda: None, watch, Path(settings.folder))
                return Seen(settings, **found, failure=wrong)
        return Seen(settings, **found)


def _parts() -> dict[str, Callable]:
    """What makes the model and the optimizer for a function that does not make them itself."""
    shape = Settings("", STEPS)
    names = ("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff")
    made: dict[str, Any] = {}

    def model() -> TransformerLM:
        if "model" not in made:
            config = ModelConfig(**{name: getattr(shape, name) for name in names})
            made["model"] = TransformerLM.from_config(config)
        return made["model"]

    def optimizer() -> torch.optim.Optimizer:
        return torch.optim.AdamW(model().parameters(), lr=1e-2)

    return {"model": model, "lm": model, "optimizer": optimizer, "optim": optimizer}


def training_together(attempt: Any, part: str | None = None) -> str:
    """Praise for a script or function that trains; raises `Wrong` with what it does not do."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        run = _run_of(attempt, Path(folder))
        first = _first(run, Path(folder, "run"))
        found, remarks = Findings(), []
        _judge_first(found, run, first, remarks)
        if not found.in_use:
            _judge_resumed(found, run, first)
    praise = f"It trained for {STEPS} steps as it was told, and went on from its checkpoint."
    if first.losses:
        praise += f" Its loss fell from {first.losses[0]:.2f} to {first.losses[-1]:.2f}."
    return found.verdict(praise, remarks)


def _run_of(attempt: Any, folder: Path) -> Script | Function:
    """What runs an attempt; raises NotAttempted where there is nothing to run."""
    if attempt is None or attempt is ... or is_stub(attempt):
        raise NotAttempted
    if isinstance(attempt, ModuleType):
        attempt = Path(getattr(attempt, "__file__", None) or "")
    if isinstance(attempt, str | Path):
        return Script(_command(str(attempt), folder))
    if inspect.isclass(attempt) and not work_of(attempt):
        raise NotAttempted(f"`{attempt.__name__}` has no method `train`. {CONTRACT}")
    if not callable(attempt):
        raise Wrong("This is no script.", expected=Words(CONTRACT), got=Words(kind_of(attempt)))
    return Function(attempt)


def _command(text: str, folder: Path) -> list[str]:
    """The path and the arguments of a script, which is handed in as a path, a command or a text."""
    if "\n" in text.strip():
        if not re.search(r"^\s*(import|from|def|class)\s", text, re.M):
            raise NotAttempted(f"That is a text, and no script. {CONTRACT}")
        path = folder / "train.py"
        lines = [line for line in text.splitlines() if not line.startswith(("%", "!"))]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return [str(path)]
    if not text.strip():
        raise NotAttempted
    try:
        words = shlex.split(text.strip().lstrip("!"))
    except ValueError:  # a quotation mark that is never closed
        words = []
    script = next((i for i, word in enumerate(words) if word.endswith(".py")), None)
    if script is None or not Path(words[script]).is_file():
        missing = "" if script is None else f"There is no file {words[script]}. "
        raise NotAttempted(f"{missing}Hand in the path of your script, or its function. {CONTRACT}")
    return words[script:]


def _first(run: Script | Function, folder: Path) -> Seen:
    """The first run; the data come in another form where it cannot read the usual one."""
    outcomes: list[Seen] = []
    form: dict[str, bool] = {}
    for number in range(2 if run.is_script else 3):
        place = Path(f"{folder}-{number}")
        write_data(place)
        try:
            seen = run.run(Settings(str(place), STEPS, **form))
        except Wrong:
            if outcomes:
                break
            raise
        outcomes.append(seen)
        seen.checkpoints = _checkpoints(place)
        is_final = seen.failure and (seen.failure.timed_out or FINAL.search(seen.error))
        can_read = not seen.foreign and (seen.steps or not seen.failure)
        if can_read or is_final or "train_data" not in seen.asked:
            break
        form = {"arrays": True} if number else {"raw": not seen.raw}
    # Where none comes as far as to a step, the first says most, unless it asks for arrays.
    far = (each for each in outcomes if each.steps and not each.foreign)
    best = next(far, outcomes[-1 if "arrays" in outcomes[-1].asked else 0])
    if best.failure and best.foreign:
        best.failure.mistake = FOREIGN
    if best.unmet:
        raise NotAttempted(f"It asks for `{best.unmet}`, which the check has not. {CONTRACT}")
    if best.no_options:
        raise NotAttempted(f"It takes no options, so nothing can be set from outside. {CONTRACT}")
    return best


def _checkpoints(folder: Path) -> list[Path]:
    """The files that may be checkpoints, the newest last."""
    known = folder / "data"
    found = [
        path
        for path in folder.rglob("*")
        if path.is_file() and known not in path.parents and path.stat().st_size > 2_000
    ]
    found = [path for path in found if path.suffix.lower() not in (".csv", ".png", ".txt", ".log")]
    torchs = [path for path in found if path.read_bytes()[:2] in (b"PK", b"\x80\x02")]
    return sorted(torchs or found, key=lambda path: path.stat().st_mtime_ns)


def _judge_first(found: Findings, run: Any, seen: Seen, remarks: list[str]) -> None:
    """Judge what the first run did."""
    given = f"{run}, with {STEPS} steps"
    asked = seen.asked

    def wrong(claim: str, got: str = "", mistake: str | None = None, expected: str = "") -> Wrong:
        rows = {"expected": expected, "got": got}
        rows = {name: Words(text) for name, text in rows.items() if text}
        return Wrong(claim, given=given, mistake=mistake, **rows)

    lacks_file = seen.failure and re.search("FileNotFound|No such file", str(seen.failure.rows))
    if not {"train_data", "data_folder"} & asked.keys() and (lacks_file or not seen.failure):
        raise NotAttempted(f"It has no setting for the training data. {CONTRACT}")
    with found("use"):
        if seen.parameters > MOST_PARAMETERS:
            names = [each for each in ("d_model", "num_layers", "vocab_size") if each not in asked]
            raise wrong(
                "Its model is not of the size that it was told.",
                f"{seen.parameters:,} parameters",
                f"These cannot be set from outside: {', '.join(names)}." if names else UNUSED,
                "about 30,000",
            )
        if seen.failure and seen.failure.timed_out and seen.steps:
            seen.failure.mistake = f"It had taken {seen.steps} of {seen.settings.steps} steps."
        if seen.failure:
            raise seen.failure
    if found:
        return
    if not {"steps", "epochs", "tokens"} & asked.keys() or (seen.too_many and "steps" not in asked):
        raise NotAttempted(f"It has no setting for the number of steps. {CONTRACT}")
    _judge_steps(found, seen, wrong)
    if found:
        return
    _judge_sizes(found, seen, wrong)
    _judge_learning(found, seen, wrong)
    _judge_reports(found, seen, wrong, remarks)
    with found("use"):
        if not seen.checkpoints:
            raise wrong(
                "It leaves no checkpoint.",
                mistake="Save one every so many steps and after the last, at a path that can be "
                "set." + ("" if "checkpoint" in asked else " No setting of yours says where."),
            )
    if not seen.memory_map and not seen.settings.arrays:
        remarks.append(
            "The data are read into memory as a whole: `np.load(path, mmap_mode='r')`, or "
            "`np.memmap` for bare numbers, reads only the windows that are drawn."
        )


def _judge_steps(found: Findings, seen: Seen, wrong: Callable) -> None:
    steps = seen.steps or seen.backward
    with found("use"):
        if seen.too_many:
            claim = f"It was told to take {STEPS} steps, and was stopped after {steps}."
            raise wrong(claim, mistake=UNUSED)
        if not steps:
            mistake = "Is the loop entered? A step is `loss.backward()` and `optimizer.step()`."
            raise wrong("It ended without a step.", seen.printed[-200:] or "nothing", mistake)
        if not seen.steps or not seen.backward:
            missing = "optimizer.step()" if not seen.steps else "loss.backward()"
            raise wrong(f"`{missing}` is never called.", mistake="So no weight ever changes.")
        if abs(steps - STEPS) > 1:
            parts = seen.backward > 1.5 * steps
            mistake = "Is a step counted for each part of a batch?" if parts else None
            raise wrong("It takes another number of steps than it was told.",
                        f"{steps} steps", mistake, f"{STEPS} steps")  # fmt: skip
    with found("corner"):
        if steps == STEPS + 1 or steps == STEPS - 1:
            more = "more" if steps > STEPS else "less"
            ends = "Look at the ends of the loop: range(steps) has `steps` numbers."
            raise wrong(f"It takes one step {more} than it was told.", mistake=ends)


def _judge_sizes(found: Findings, seen: Seen, wrong: Callable) -> None:
    """Judge whether the settings are obeyed, and can be set at all."""
    settings, asked = seen.settings, seen.asked
    batches = [each["shape"] for each in seen.trained if each]
    sizes = {size for shape in seen.shapes for size in shape}
    matrices = [shape for shape in seen.shapes if len(shape) > 1]
    values = {  # by setting: what was seen
        "vocab_size": settings.vocab_size if settings.vocab_size in sizes or not sizes
        else max(max(shape) for shape in matrices),
        "d_model": settings.d_model if settings.d_model in sizes or not sizes
        else "a width that is none of its matrices'",
        "num_layers": seen.layers or settings.num_layers,
        "context_length": batches[0][1] if batches else settings.context_length,
        "batch_size": batches[0][0] if batches else settings.batch_size,
    }  # fmt: skip
    if batches and settings.batch_size % batches[0][0] == 0 and seen.backward > seen.steps:
        values["batch_size"] = settings.batch_size  # in parts
    for name, value in values.items():
        with found("use"):
            if name in asked and value != getattr(settings, name):
                raise wrong(
                    f"`{asked[name]}` is not obeyed.",
                    f"{name} is {value}" if isinstance(value, int) else value,
                    UNUSED,
                    f"{name} is {getattr(settings, name)}",
                )
    names = ["context_length", "batch_size"]
    names += [] if "model" in asked else ["d_model", "num_layers", "num_heads", "max_learning_rate"]
    with found("corner"):
        if missing := [name for name in names if name not in asked]:
            raise wrong(
                f"These cannot be set from outside: {', '.join(missing)}.",
                mistake="You will want to change each of them without editing the file.",
            )


def _judge_learning(found: Findings, seen: Seen, wrong: Callable) -> None:
    losses = seen.losses or seen.reported(valid=False)
    rate = max((each for each in seen.rates if math.isfinite(each)), default=math.nan)
    with found("use"):
        if seen.foreign:
            raise wrong("It trains on ids that are not in the file.", mistake=FOREIGN)
        if any(each and each["valid"] for each in seen.trained):
            raise wrong("It trains on the validation data.", mistake="Are the two paths mixed up?")
        if not all(map(math.isfinite, losses)):
            raise wrong("Its loss is nan or infinite.", mistake="Is the log taken of 0?")
        if len(losses) > 1 and fmean(losses[-3:]) > losses[0] - FALLS:
            got = f"{losses[0]:.2f} at first, {fmean(losses[-3:]):.2f} at last"
            raise wrong("The loss does not fall.", got, _why_not(seen, rate))
    with found("use"):
        if seen.uncleared:
            raise wrong(
                "Gradients of earlier steps are added to those of the next.",
                mistake="Call `optimizer.zero_grad()` once in each step.",
            )


def _why_not(seen: Seen, rate: float) -> str:
    """The likely reason why a loss does not fall."""
    reported = seen.reported(valid=False)
    if seen.no_gradient:
        return "No parameter of the optimizer has a gradient: is it another model's?"
    if not rate > TINY:
        return f"The learning rate is {rate:g} at every step."
    if rate < 1e-3:
        asked = "max_learning_rate" in seen.asked
        return (
            f"The learning rate never comes above {rate:g}; 0.01 was "
            + ("asked for. " if asked else "wanted, and cannot be set. ")
            + ("" if "warmup_iters" in seen.asked else "Can the warm-up be set?")
        )
    if reported and seen.losses and min(reported[-3:]) < seen.losses[-1] - FALLS:
        return (
            "What is reported falls, but the model does not learn the next id: are the targets "
            "shifted by one?"
        )
    return "Is `optimizer.step()` called after `loss.backward()`, and on the model that is run?"


def _judge_reports(found: Findings, seen: Seen, wrong: Callable, remarks: list[str]) -> None:
    for valid, losses in ((False, seen.losses), (True, seen.validations)):
        split = "validation" if valid else "training"
        every = "eval_every" if valid else "log_every"
        reported = seen.reported(valid)
        can_wait = every not in seen.asked and (not valid or "valid_data" in seen.asked)
        with found("corner" if can_wait and not reported else "use"):
            if valid and not losses and seen.evaluated and seen.losses:
                raise wrong(
                    "Its validation loss is not one of the validation data.",
                    mistake="The batches come from the training data: are the two mixed up?",
                )
            if not reported:
                words = "It is computed, but not printed, logged or returned." if losses else None
                if can_wait:
                    words = f"Add an option that says how often, such as --{every}."
                elif valid and not losses:
                    words = (
                        "Every so many steps, take the loss of validation batches under no_grad."
                    )
                raise wrong(f"No {split} loss is reported in {STEPS} steps.", mistake=words)
            if losses and not _plausible(reported, losses):
                sums = _plausible([each / n for each in reported for n in range(2, 65)], losses)
                raise wrong(
                    f"The {split} loss that it reports is not that of the model.",
                    f"{reported[-1]:.4g}",
                    "Is it a sum over batches or tokens? Report the mean." if sums else None,
                    f"about {losses[-1]:.2f}",
                )
    with_grad = any(each["grad"] for each in seen.evaluated)
    if with_grad:
        remarks.append(
            "Validation needs no gradients: under `torch.no_grad()` it takes less memory."
        )


def _plausible(reported: list[float], losses: list[float]) -> bool:
    """True where some number reported is near the losses that were seen, or their perplexity."""
    room = 0.3
    low, high = min(losses) * 0.8 - room, max(losses) * 1.2 + room
    return any(
        low <= each <= high or (each > 1 and low <= math.log(each) <= high) for each in reported
    )


def _judge_resumed(found: Findings, run: Script | Function, first: Seen) -> None:
    """Run it once more, from the checkpoint, and judge whether it goes on."""
    way = first.asked.get("resume")
    given = f"{run}, with {MORE} steps" + (f" and `{way}`" if way else ", once more")
    known = len(found)
    with found("use" if way else "corner"):
        seen, failure = _again(run, first, MORE)
        if failure or not (seen.steps or seen.backward):
            # Some go on with the same settings alone, where a run was interrupted.
            if _goes_on_after_interruption(run, first):
                return
            if failure:
                failure.claim = f"To go on from its checkpoint failed. {failure.claim}"
                raise failure
        steps, begun, ended = seen.steps or seen.backward, first.losses[:1], first.losses[-1:]
        low = _is_low(seen, first)
        if not way and not (low and steps < MORE):
            raise Wrong(
                "It cannot go on from its checkpoint.",
                given=given,
                mistake="Add a setting for the checkpoint to go on from, such as --resume: it "
                "loads model, optimizer and step number before the loop.",
            )
        if seen.losses and not low:
            raise Wrong(
                "A resumed run starts over.",
                given=given,
                expected=Words(f"a first loss near {ended[0]:.2f}, where it stopped"),
                got=Words(f"{seen.losses[0]:.2f}; the first run began with {begun[0]:.2f}"),
                mistake="The weights of the checkpoint are not loaded, or into another model.",
            )
    if len(found) > known:
        return
    counted = [int(each) for each in STEP.findall(seen.printed)]
    with found("corner"):
        if not steps:
            raise Wrong(
                "A resumed run takes no more steps.",
                given=given,
                mistake="The number of steps that is asked for now counts, not the old one.",
            )
        if steps >= MORE and max(counted, default=0) <= MORE:
            raise Wrong(
                "A resumed run has the old weights, but counts its steps from 0 again.",
                given=given,
                expected=Words(f"{MORE - STEPS} steps more, up to {MORE}"),
                got=Words(f"{steps} steps"),
                mistake="Begin the loop at the step number of the checkpoint: the learning rate "
                "depends on it.",
            )


def _again(run: Script | Function, before: Seen, steps: int) -> tuple[Seen | None, Wrong | None]:
    """Run it from the newest checkpoint of a run; what was seen, and what it raised."""
    settings = replace(
        before.settings,
        steps=steps,
        raw=before.raw,
        stop_at=None,
        resume=str(before.checkpoints[-1]),
        asked={},
    )
    try:
        seen = run.run(settings)
    except Wrong as wrong:
        return None, wrong
    return seen, seen.failure


def _goes_on_after_interruption(run: Script | Function, first: Seen) -> bool:
    """Interrupt a run, and tell whether the same call takes the rest of its steps."""
    place = Path(f"{first.settings.folder}-interrupted")
    write_data(place)
    settings = replace(first.settings, folder=str(place), raw=first.raw, stop_at=STOP, asked={})
    try:
        stopped = run.run(settings)
    except Wrong:
        return False
    stopped.checkpoints = _checkpoints(place)
    if stopped.failure or not stopped.checkpoints:
        return False
    seen, failure = _again(run, stopped, STEPS)
    return not failure and 0 < seen.steps < STEPS and _is_low(seen, first)


def _is_low(seen: Seen, first: Seen) -> bool:
    """Whether the first loss of a run is nearer to the last than to the first of another."""
    if not (seen.losses and first.losses):
        return True
    begun, ended = first.losses[0], first.losses[-1]
    return seen.losses[0] < begun - 0.4 * (begun - ended)


def _read(text: str) -> Iterator[tuple[str, float]]:
    """Yield the numbers in a text, each with the words before it in its line."""
    for line in re.split(r"[\n\r]", text):
        before, end = "", 0
        for match in NUMBER.finditer(line):
            words = line[end : match.start()]
            yield f"{before}|{words}", float(match[0])
            before, end = f"{before} {words}"[-200:], match.end()


def _label(name: str) -> str:
    """The words between a number and the one before it, without those of a tensor's repr."""
    label = name.rpartition("|")[2].lower()
    return re.sub(r"\btensor\(|\bgrad_fn=<\w+|\bdevice=\W*\w+", "", label)


def _is_loss(name: str, valid: bool) -> bool:
    """True where a name says loss, of the split that is meant."""
    before, label = name.lower().rpartition("|")[0], _label(name)
    if re.search(
        r"acc|time|sec|lr\b|rate|norm|tok|batch|size|interval|every|best.?step", label[-24:]
    ):
        return False
    says_valid = re.search(rf"(?<![a-z])(?:{VALID})(?![a-z])", label.replace("_", " "))
    says_train = re.search(r"train", label)
    says_loss = re.search(r"loss|nll|perplexity|ppl|cross.?entropy|\bce\b", label)
    if not says_valid and not says_train:
        earlier = [
            *re.finditer(rf"(?<![a-z])(?:{VALID}|train\w*)(?![a-z])", before.replace("_", " "))
        ]
        says_valid = says_loss and earlier and not earlier[-1][0].startswith("train")
    if valid:
        return bool(says_valid and not re.search(r"(step|iter|epoch)\w*\W*$", label))
    return bool((says_loss or says_train) and not says_valid
                and not re.search(r"(step|iter|epoch)\w*\W*$", label))  # fmt: skip
