"""The check of the training script: a small run, and one that goes on from its checkpoint.

What is judged is what the run does, as `watched` sees it; of its reports, only that there are some
and that they match the model's losses. `CONTRACT` says what a script must offer.
"""

import inspect
import math
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import chdir, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch

from workbook.checks import verdicts, watched, worker
from workbook.checks.calling import signature_of
from workbook.checks.verdicts import ENDLESS, Findings, NotAttempted, NotJudged, Words, Wrong
from workbook.checks.watched import TINY, Seen, Settings

STEPS, MORE = 20, 30  # of the first run, and of the one that goes on to more
STOP = 15  # the step after which a run is interrupted
FUNCTION_SECONDS = 30.0
SCRIPT_SECONDS = 60.0
LAST_SECONDS = 30.0  # on top, for torch to load, and for a script that cannot be stopped
FALLS = 0.5  # nats per token: much less than 20 steps bring
CONTRACT = (
    "A script is run as `python train.py --steps 20 ...`: each setting is an option that --help "
    "lists, with a usual name, such as --train_path and --valid_path (token files of uint16, for "
    "np.memmap or np.load), --vocab_size, --context_length, --d_model, --num_layers, --num_heads, "
    "--d_ff, --batch_size, --steps, --lr, --checkpoint_path, --resume, --log_every, --eval_every; "
    "any other option needs a default. A function takes the same settings by name, as a dict or as "
    "a dataclass."
)
FOREIGN = "The file holds uint16: read it with that dtype."
UNUSED = "The setting is read, but then another value is used."
IN_MEMORY = (
    "The data are read into memory as a whole: `np.load(path, mmap_mode='r')`, or `np.memmap` for "
    "bare numbers, reads only the windows that are drawn."
)
ASKS = "Take every value as an option, not from input()."
NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?(?![\w.]\d)|\b(?:nan|inf)\b", re.I
)
STEP = re.compile(r"\b(?:step|it|iter|iteration)s?\W{0,3}(\d+)", re.I)
SPLIT = re.compile(
    r"(?<![a-z])(?:(val(?:id(?:ation)?)?|eval(?:uation)?|dev|test|held.?out)|train\w*)(?![a-z])"
)
LOSS = re.compile(r"loss|nll|perplexity|ppl|cross.?entropy|\bce\b")
NO_LOSS = re.compile(r"acc|time|sec|lr\b|rate|norm|tok|batch|size|interval|every|best.?step")


@dataclass
class Script:
    """A script, with the arguments that the learner gives it."""

    command: list[str]

    def __str__(self) -> str:
        return shlex.join(["python", Path(self.command[0]).name, *self.command[1:]])

    def run(self, settings: Settings) -> tuple[Seen, Wrong | None]:
        """Run it in a process of its own: what was seen, and what it raised.

        Raises: Wrong if it ends that process, or never ends; NotAttempted.
        """
        given = f"{self}, with {settings.steps} steps"
        try:
            found = worker.result(
                "workbook.checks.watched:of_script",
                *(self.command, asdict(settings), SCRIPT_SECONDS),
                seconds=SCRIPT_SECONDS + LAST_SECONDS,
            )
        except worker.EndedError as error:
            too_slow = error.status is None and "stopped after" in str(error)
            raise _failed(str(error), given, timed_out=too_slow, ended=True) from error
        seen = Seen(**found)
        if seen.lacks:
            raise NotJudged(f"{seen.lacks} {CONTRACT}")
        failure = seen.error and _failed(seen.error, given, timed_out=seen.timed_out)
        return seen, failure or None


def _failed(said: str, given: str, *, timed_out: bool, ended: bool = False) -> Wrong:
    claim = "It ended Python, or started too many processes." if ended else "It raised an error."
    return Wrong(
        "It did not end by itself." if timed_out else claim,
        given=given,
        got=Words(said),
        mistake=ENDLESS if timed_out else ASKS if "EOFError" in said else None,
        timed_out=timed_out,
    )


@dataclass
class Function:
    """A function, or a class with a method that trains."""

    attempt: Callable

    def __str__(self) -> str:
        return f"{getattr(self.attempt, '__name__', 'train')}(...)"

    def run(self, settings: Settings) -> tuple[Seen, Wrong | None]:
        """Run it in this process: what was seen, and what it raised. Raises: NotAttempted."""
        torch.manual_seed(0)
        options = {"seconds": FUNCTION_SECONDS, "given": f"{self}, with {settings.steps} steps"}
        function, made, returned, failure = self.attempt, None, None, None
        with chdir(settings.folder), watched.watching(settings) as watch:
            try:
                with suppress(watched.Enough):
                    if inspect.isclass(function):
                        made = verdicts.call(function, **settings.arguments(function), **options)
                        function = getattr(made, verdicts.work_of(self.attempt))
                    if function is self.attempt and not signature_of(function):  # it reads sys.argv
                        words = verdicts.call(watched.words_of_help, self._main, watch, **options)
                        arguments = {"arguments": list(settings.options(words))}
                        function = self._main
                    else:
                        arguments = settings.arguments(function)
                    returned = verdicts.call(function, **arguments, **options)
            except watched.Unmet as error:
                raise NotJudged(f"{watched.UNMET.format(error)} {CONTRACT}") from error
            except Wrong as wrong:
                failure = wrong
            if watch.is_asking and not failure:
                raise NotJudged(f"{watched.NO_OPTIONS} {CONTRACT}")
            return watch.finish([returned, made]), failure

    def _main(self, arguments: list[str]) -> Any:
        with patch.object(sys, "argv", ["train.py", *arguments]):
            return self.attempt()


def training_together(attempt: Any, part: str | None = None) -> str:
    """Praise for a script or function that trains; raises `Wrong` with what it does not do."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        run = _run_of(attempt)
        settings = Settings(str(Path(folder, "first")), STEPS)
        watched.write_data(Path(settings.folder))
        first, failure = run.run(settings)
        found = Findings()
        _judge_first(found, run, settings, first, failure)
        if not found.in_use:
            _judge_resumed(found, run, settings, first)
    praise = f"It trained for {STEPS} steps as it was told, and went on from its checkpoint."
    if first.losses:
        praise += f" Its loss fell from {first.losses[0]:.2f} to {first.losses[-1]:.2f}."
    return found.verdict(praise, [] if first.memory_map else [IN_MEMORY])


def _run_of(attempt: Any) -> Script | Function:
    """What runs an attempt; raises NotAttempted where there is nothing to run."""
    if attempt is None or attempt is ... or verdicts.is_stub(attempt):
        raise NotAttempted
    if isinstance(attempt, str | Path):
        return Script(_command(str(attempt)))
    if inspect.isclass(attempt) and not verdicts.work_of(attempt):
        raise NotJudged(f"`{attempt.__name__}` has no method `train`. {CONTRACT}")
    if not callable(attempt):
        raise Wrong(
            "This is neither a script nor a function.",
            expected=Words(CONTRACT),
            got=Words(verdicts.kind_of(attempt)),
        )
    return Function(attempt)


def _command(text: str) -> list[str]:
    """The path and the arguments of a script, which is handed in as a path or a command."""
    try:
        words = shlex.split(text.strip().lstrip("!"))
    except ValueError:  # a quotation mark that is never closed
        words = []
    script = next((i for i, word in enumerate(words) if word.endswith(".py")), None)
    if script is None or not Path(words[script]).is_file():
        missing = "" if script is None else f"There is no file {words[script]}. "
        raise NotJudged(f"{missing}Hand in the path of your script, or its function. {CONTRACT}")
    return [str(Path(words[script]).resolve()), *words[script + 1 :]]


def _checkpoints(settings: Settings) -> list[Path]:
    """The files that may be checkpoints, the newest last."""
    folder = Path(settings.folder)
    others = [path for path in folder.rglob("*") if folder / "data" not in path.parents]
    found = [path for path in others if path.is_file() and path.stat().st_size > 2_000]
    found = [path for path in found if path.read_bytes()[:2] in (b"PK", b"\x80\x02")]
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)


def _judge_first(
    found: Findings, run: Any, settings: Settings, seen: Seen, failure: Wrong | None
) -> None:
    """Judge what the first run did."""
    asked, wrong = seen.asked, partial(_wrong, f"{run}, with {STEPS} steps")
    lacks_file = failure and re.search("FileNotFound|No such file", str(failure.rows))
    if not {"train_path", "data_dir"} & asked.keys() and (lacks_file or not failure):
        raise NotJudged(f"It has no setting for the training data. {CONTRACT}")
    with found("use"):
        if seen.parameters > watched.MOST_PARAMETERS:
            raise wrong(
                "Its model does not have the size that was asked for.",
                f"{seen.parameters:,} parameters",
                "Can all sizes be set from outside, and does the model use them?",
                "about 30,000",
            )
        if failure:
            if failure.timed_out and seen.steps:
                failure.mistake = f"It had taken {seen.steps} of {STEPS} steps."
            elif seen.foreign:
                failure.mistake = FOREIGN
            raise failure
    if found:
        return
    known = {"steps"} if seen.too_many else {"steps", "epochs", "total_tokens"}
    if not known & asked.keys():
        raise NotJudged(f"It has no setting for the number of steps. {CONTRACT}")
    _judge_steps(found, seen, wrong)
    if found:
        return
    _judge_sizes(found, seen, wrong)
    _judge_learning(found, seen, wrong)
    _judge_reports(found, seen, wrong)
    with found("use"):
        if not _checkpoints(settings):
            where = "" if "checkpoint_path" in asked else " None of your settings says where."
            advice = "Save one at intervals and after the last step, at a path that can be set."
            raise wrong("It leaves no checkpoint.", mistake=advice + where)


def _wrong(given: str, claim: str, got="", mistake: str | None = None, expected="") -> Wrong:
    rows = {"expected": expected, "got": got}
    rows = {name: Words(text) for name, text in rows.items() if text}
    return Wrong(claim, given=given, mistake=mistake, **rows)


def _judge_steps(found: Findings, seen: Seen, wrong: Callable) -> None:
    steps = seen.steps or seen.backward
    with found("use"):
        if seen.too_many:
            claim = f"It was told to take {STEPS} steps, but was stopped after {steps}."
            raise wrong(claim, mistake=UNUSED)
        if not steps:
            mistake = "Is the loop entered? A step is `loss.backward()` and `optimizer.step()`."
            raise wrong("It took no step.", seen.printed[-200:] or "nothing", mistake)
        if not seen.steps or not seen.backward:
            missing = "optimizer.step()" if not seen.steps else "loss.backward()"
            raise wrong(f"`{missing}` is never called.", mistake="So no weight ever changes.")
        if abs(steps - STEPS) > 1:
            mistake = "Is a step counted for each part of a batch?"
            mistake = mistake if seen.backward > 1.5 * steps else None
            claim = "It does not take as many steps as it was told to."
            raise wrong(claim, f"{steps} steps", mistake, f"{STEPS} steps")
    with found("corner"):
        if steps not in (STEPS, 0) and not found:
            more = "many" if steps > STEPS else "few"
            ends = "Look at where the loop starts and ends: range(steps) has `steps` numbers."
            raise wrong(f"It takes one step too {more}.", mistake=ends)


def _judge_sizes(found: Findings, seen: Seen, wrong: Callable) -> None:
    """Judge whether the settings are applied, and can be set at all."""
    asked, sizes = seen.asked, {size for shape in seen.shapes for size in shape}
    values: dict[str, Any] = {"num_layers": seen.layers}  # by setting: what was seen, if anything
    for name in ("vocab_size", "d_model"):
        if sizes and TINY[name] not in sizes:
            values[name] = max(sizes) if name == "vocab_size" else "not a size of any matrix"
    if batches := [each["shape"] for each in seen.trained if each]:
        batch, values["context_length"] = batches[0]
        in_parts = TINY["batch_size"] % batch == 0 and seen.backward > seen.steps
        values["batch_size"] = TINY["batch_size"] if in_parts else batch
    for name, value in values.items():
        with found("use"):
            if name in asked and value and value != TINY[name]:
                claim, told = f"`{asked[name]}` is not applied.", f"{name} is {TINY[name]}"
                raise wrong(claim, f"{name} is {value}", UNUSED, told)
    names = ("context_length", "batch_size", "d_model", "num_layers", "num_heads")
    with found("corner"):
        if missing := [name for name in (*names, "max_learning_rate") if name not in asked]:
            claim = f"These cannot be set from outside: {', '.join(missing)}."
            advice = "You will want to change each of them without editing the file."
            raise wrong(claim, mistake=advice)


def _judge_learning(found: Findings, seen: Seen, wrong: Callable) -> None:
    losses = seen.losses or _reported(seen, "train")
    rate = max((each for each in seen.rates if math.isfinite(each)), default=math.nan)
    with found("use"):
        if seen.foreign:
            raise wrong("It trains on ids that are not in the file.", mistake=FOREIGN)
        if any(each and each["valid"] for each in seen.trained):
            raise wrong("It trains on the validation data.", mistake="Are the two paths mixed up?")
        if not all(map(math.isfinite, losses)):
            raise wrong("Its loss is nan or infinite.", mistake="Does it take the log of 0?")
        if len(losses) > 1 and fmean(losses[-3:]) > losses[0] - FALLS:
            got = f"{losses[0]:.2f} at first, {fmean(losses[-3:]):.2f} at the end"
            raise wrong("The loss does not fall.", got, _why_not(seen, rate))
    with found("use"):
        if seen.uncleared:
            claim = "Gradients of earlier steps are added to those of the next."
            raise wrong(claim, mistake="Call `optimizer.zero_grad()` once in each step.")


def _why_not(seen: Seen, rate: float) -> str:
    """The likely reason why a loss does not fall."""
    reported = _reported(seen, "train")
    if seen.no_gradient:
        return "No parameter of the optimizer has a gradient: are they another model's?"
    if not rate > 1e-6:
        return f"The learning rate is {rate:g} at every step."
    if rate < 1e-3:
        return f"The learning rate never rises above {rate:g}; 0.01 was asked for."
    if reported and seen.losses and min(reported[-3:]) < seen.losses[-1] - FALLS:
        return "The reported loss falls, but not for the next id: are targets one position later?"
    return "Is `optimizer.step()` called after `loss.backward()`, and for the model that is run?"


def _judge_reports(found: Findings, seen: Seen, wrong: Callable) -> None:
    for split, losses in (("training", seen.losses), ("validation", seen.validations)):
        valid = split == "validation"
        every = "eval_every" if valid else "log_every"
        reported = _reported(seen, "valid" if valid else "train")
        can_wait = every not in seen.asked and (not valid or "valid_path" in seen.asked)
        with found("corner" if can_wait and not reported else "use"):
            if valid and not losses and seen.evaluated and seen.losses:
                claim = "Its validation loss is not that of the validation data."
                raise wrong(claim, mistake="Are the two paths, or their batches, mixed up?")
            if not reported:
                words = "It is computed, but not printed, logged or returned." if losses else None
                if valid and not losses:
                    words = "Compute the loss of validation batches at intervals."
                if can_wait:
                    words = f"Add an option that says how often, such as --{every}."
                raise wrong(f"No {split} loss is reported in {STEPS} steps.", mistake=words)
            if losses and not _plausible(reported, losses):
                sums = _plausible([each / n for each in reported for n in range(2, 65)], losses)
                raise wrong(
                    f"The {split} loss that it reports is not that of the model.",
                    f"{reported[-1]:.4g}",
                    "Is it a sum over batches or tokens? Report the mean." if sums else None,
                    f"about {losses[-1]:.2f}",
                )


def _reported(seen: Seen, meant: str) -> list[float]:
    """The losses of a split, "train" or "valid", that a run reports: the words before say which."""
    found = []
    for line in re.split(r"[\n\r]", seen.texts.lower().replace("_", " ")):
        split, end = "train", 0
        for match in NUMBER.finditer(line):
            label = re.sub(r"\btensor\(|\bgrad fn=<\w+", "", line[end : match.start()])
            end, said = match.end(), SPLIT.findall(label)
            split = ("valid" if said[-1] else "train") if said else split
            is_loss = said or LOSS.search(label) or not re.search("[a-z]{2}", label)
            counts = match[0].lstrip("+-").isdigit()  # steps
            if split == meant and is_loss and not counts and not NO_LOSS.search(label[-24:]):
                found.append(float(match[0]))
    return [each for each in found if math.isfinite(each)]


def _plausible(reported: list[float], losses: list[float]) -> bool:
    """True where some number reported is near the losses that were seen, or their perplexity."""
    low, high = min(losses) * 0.8 - 0.3, max(losses) * 1.2 + 0.3
    either = [*reported, *(math.log(each) for each in reported if each > 1)]
    return any(low <= each <= high for each in either)


def _judge_resumed(
    found: Findings, run: Script | Function, settings: Settings, first: Seen
) -> None:
    """Run it once more, from the checkpoint, and judge whether it goes on."""
    way = first.asked.get("resume")
    again = f" and `{way}`" if way else ", once more"
    wrong = partial(_wrong, f"{run}, with {MORE} steps{again}")
    known = len(found)
    with found("use" if way else "corner"):
        seen, failure = _again(run, settings, MORE)
        steps, low = seen.steps or seen.backward, _is_low(seen, first)
        if failure or not steps:
            # Some go on with just the same settings, if a run was interrupted.
            if _goes_on_after_interruption(run, settings, first):
                return
            if failure:
                failure.claim = f"Going on from its checkpoint failed. {failure.claim}"
                raise failure
        if not way and not (low and steps < MORE):
            claim = "It cannot go on from its checkpoint."
            mistake = "Add a setting for the checkpoint to go on from, such as --resume: it loads "
            raise wrong(
                claim, mistake=f"{mistake}model, optimizer and step number before the loop."
            )
        if not low:
            raise wrong(
                "A resumed run starts over.",
                f"{seen.losses[0]:.2f}; the first run began with {first.losses[0]:.2f}",
                "The weights of the checkpoint are not loaded, or are loaded into another model.",
                f"a first loss near {first.losses[-1]:.2f}, where the first one stopped",
            )
    if len(found) > known:
        return
    with found("corner"):
        if not steps:
            mistake = "What counts is the number of steps asked for now, not the old one."
            raise wrong("A resumed run takes no further steps.", mistake=mistake)
        counted = max(map(int, STEP.findall(seen.printed)), default=0)
        if steps >= MORE and counted <= MORE:  # else they come on top of the old ones
            raise wrong(
                "A resumed run has the old weights, but counts its steps from 0 again.",
                f"{steps} steps",
                "Begin the loop at the step number of the checkpoint: the learning rate depends "
                "on it.",
                f"{MORE - STEPS} more steps, up to {MORE}",
            )


def _again(run: Script | Function, before: Settings, steps: int) -> tuple[Seen, Wrong | None]:
    """Run it from the newest checkpoint of a run: what was seen, and what it raised."""
    resume = str(_checkpoints(before)[-1])
    return run.run(replace(before, steps=steps, stop_at=None, resume=resume, asked={}))


def _goes_on_after_interruption(run: Script | Function, settings: Settings, first: Seen) -> bool:
    """Interrupt a run, and tell whether the same call takes the rest of its steps."""
    place = Path(f"{settings.folder}-interrupted")
    watched.write_data(place)
    settings = replace(settings, folder=str(place), stop_at=STOP, asked={})
    _, failure = run.run(settings)
    if failure or not _checkpoints(settings):
        return False
    seen, failure = _again(run, settings, STEPS)
    return not failure and 0 < seen.steps < STEPS and _is_low(seen, first)


def _is_low(seen: Seen, first: Seen) -> bool:
    """Whether the first loss of a run is well below that of another, towards its last."""
    if not (seen.losses and first.losses):
        return True
    begun, ended = first.losses[0], first.losses[-1]
    return seen.losses[0] < begun - 0.4 * (begun - ended)
