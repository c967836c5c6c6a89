"""The check of the training script: a small run, and one that goes on from its checkpoint.

A run is judged by its steps, its log and its checkpoint; `watched` runs it. `CONTRACT` says what a
script or a function must offer.
"""

import ast
import inspect
import math
import random
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import chdir
from itertools import count
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workbook.classroom.checks.machinery import watched, worker
from workbook.classroom.checks.machinery.calling import Runner, signature_of
from workbook.classroom.checks.machinery.verdicts import (
    KILLED,
    LACKS,
    Findings,
    NotAttempted,
    NotJudged,
    Prose,
    Wrong,
    expect,
    is_untouched,
    kind_of,
)
from workbook.classroom.checks.machinery.watched import RUN_SECONDS, Seen

SPARE_SECONDS = 20.0  # for a run that cannot be stopped, until its process is ended
STEPS, MORE = 20, 30  # of the first run, and of the one that goes on to more
# Each id of the text is followed by one of four, all equally likely. No model that predicts the
# next id gets below ln 4; one that is asked for the id it is given does. In the validation text
# some ids are replaced by strange ones, so its loss is higher; and whether a run trained on them
# shows in the optimizer's state: rows of an embedding that were never looked up are still 0.
COMMON_IDS = range(1, 17)
STRANGE_IDS = range(40, 50)
FOLLOWERS, STRANGE_SHARE = 4, 0.2
# Nats per token: a fall that is much less than 20 steps bring, and than strange ids cost; a loss
# that takes more than knowing how often each id occurs (ln 16 = 2.8).
FALLS, LEARNED = 0.3, 2.4
# The settings of a script or function, and their values in the first run, in its folder.
SETTINGS: dict[str, Any] = {"train_path": "train.bin", "valid_path": "valid.bin"}
SETTINGS |= {"checkpoint_path": "saved/run.pt", "vocab_size": 61, "context_length": 16}
SETTINGS |= {"d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 64, "batch_size": 8}
SETTINGS |= {"lr": 1e-2, "steps": STEPS, "log_every": 1}
SETTINGS |= {"eval_every": 5, "save_every": 10, "resume": None}
CONTRACT = (
    "A script takes these options, a function these parameters or **settings, and any other has a "
    f"default: {', '.join(SETTINGS)} (a checkpoint or None). Data are in uint16, for np.memmap or "
    "np.load. Both losses are printed, or in a .log, .txt or .jsonl: `train_loss=3`, `val_loss=3`."
)
# What a script with options of its own uses to read them.
READS_OPTIONS = re.compile(
    r"\b(parse_\w*args\w*|sys\.argv|click|typer|tyro|fire|hydra|docopt|absl)\b"
)
NEEDED = {"train_path", "checkpoint_path", "steps"}
WANTED = SETTINGS.keys() - NEEDED - {"vocab_size", "d_ff", "log_every", "eval_every", "save_every"}
FOREIGN = "The file holds uint16: read it with that dtype."
MIXED = "Are the two paths, or their batches, mixed up?"


def training_together(attempt: Any) -> str:
    """Praise for a script or function that trains; raises `Wrong` with what it does not do."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        _write_data(Path(folder))
        runner = ScriptRunner(attempt, Path(folder))
        findings = Findings()
        for judge in (_judge_steps, _judge_log, _judge_checkpoint, _judge_resumed):
            if not findings.in_use:
                with findings("use"):
                    judge(runner, findings)
    praise = f"It trained for {STEPS} steps as it was told, and went on from its checkpoint."
    return findings.verdict(praise, runner.remarks)


def _write_data(folder: Path, number: int = 0) -> None:
    """Write the token files of both splits, as bare numbers in uint16.

    Those of any other number than 0 are shorter, of other texts and lengths.
    """
    (folder / "saved").mkdir()
    draw = np.random.default_rng(number)
    for name, strange in (("train", 0.0), ("valid", STRANGE_SHARE)):
        place = 0
        ids = []
        for _ in range(300 * number or 2_000):
            place = (7 * place + 1 + 3 * int(draw.integers(FOLLOWERS))) % len(COMMON_IDS)
            ids.append(draw.choice(STRANGE_IDS) if draw.random() < strange else COMMON_IDS[place])
        np.array(ids, dtype=np.uint16).tofile(folder / f"{name}.bin")


class ScriptRunner(Runner):
    """Runs a script, or a function, that trains: a case is the settings that it is told."""

    def __init__(self, attempt: Any, folder: Path):
        """Find out which settings it has, and run it once. Raises: NotAttempted."""
        if attempt is None or attempt is ... or is_untouched(attempt):
            raise NotAttempted
        super().__init__(attempt)
        self.folder = folder
        self.remarks: list[str] = []
        self.extra = []
        names = []
        if isinstance(attempt, str | Path):
            self.attempt, *self.extra = _command(str(attempt))
        elif callable(attempt) and not inspect.isclass(attempt):
            names = _parameters(attempt)
        else:
            raise NotJudged(f"This is {kind_of(attempt)}. {CONTRACT}")
        # A function such as `main()` or `main(argv=None)` reads the command line, as a script does.
        self.has_options = not names
        if self.has_options:
            names = re.findall(r"--[\w-]+", self._run(["--help"]).log)
        # By setting: the option or parameter.
        self.asked = {name.lstrip("-").replace("-", "_"): name for name in names}
        if missing := NEEDED - self.asked.keys():
            raise NotJudged(f"It lacks the settings {', '.join(sorted(missing))}. {CONTRACT}")
        self.first = self.run(SETTINGS)
        self.path, self.saved = watched.checkpoint(folder / "saved")

    def run(self, case: Mapping[str, Any]) -> Seen:
        """Train. Raises: Wrong if it fails, ends its process or never ends; NotAttempted."""
        values = {name: x for name, x in case.items() if name in self.asked}
        if not self.has_options:
            return self._run([], case["steps"], values)
        words = [f"{self.asked[name]}={x}" for name, x in values.items() if x is not None]
        return self._run(words + self.extra, case["steps"])

    def _run(self, words: list[str], steps: int = 0, values: dict | None = None) -> Seen:
        """Run it once, in a process of its own, with words of a command line or with values."""
        for path in self._logs():
            path.unlink()
        request = (self.attempt, words, values or {}, str(self.folder), steps)
        limits: Any = {
            "printed": self.folder / watched.PRINTED,
            "seconds": RUN_SECONDS + SPARE_SECONDS,
        }
        try:
            seen = Seen(**worker.forked(watched.observed, *request, **limits))
        except worker.EndedError as error:
            if error.is_killed:
                raise NotJudged(f"{error}. {KILLED}") from error
            raise Wrong("It ended Python, or did not end.", got=Prose(str(error))) from error
        seen.log = "\n".join(path.read_text("utf-8", errors="replace") for path in self._logs())
        # A script may read what lies in its repository, such as a config: that gets a copy.
        above = Path(self.attempt).parents if isinstance(self.attempt, str) else ()
        here = self.folder / seen.missing
        copies = [folder / seen.missing for folder in above]
        theirs = next((path for path in copies if path.is_file()), None)
        if theirs and not here.exists() and here.suffix not in watched.LOGS:
            here.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(theirs, here)
            return self._run(words, steps, values)
        if steps:
            print(seen.log)  # its beginning is shown beside what is wrong
        if LACKS.search(seen.error) or re.match(r"SystemExit: 2\b|PackageNot", seen.error):
            raise NotJudged(f"{seen.error}. {seen.log[-300:].strip()} {CONTRACT}")
        is_asked = steps or seen.error.startswith("no result") or _reads_options(self.attempt)
        if seen.error and not is_asked:
            raise NotJudged(f"It takes no settings, and ends with {seen.error}. {CONTRACT}")
        mistake = FOREIGN if re.search("out of (range|bounds)", seen.error) else None
        if values and seen.error.startswith("KeyError"):  # a function, probably with **settings
            mistake = f"These are the settings: {', '.join(SETTINGS)}."
        expect(not seen.error, seen.claim, mistake, got=Prose(seen.error))
        return seen

    def _logs(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.suffix in watched.LOGS)


def _parameters(function: Callable) -> list[str]:
    """The settings among a function's parameters. Raises: NotJudged where it needs any other."""
    names: list[str] = []
    for parameter in signature_of(function) or []:
        if parameter.kind is parameter.VAR_KEYWORD:
            names += SETTINGS
        elif parameter.name in SETTINGS:
            names.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise NotJudged(f"It asks for `{parameter.name}`, which is no setting. {CONTRACT}")
    return names


def _reads_options(attempt: Any) -> bool:
    """Whether the file of a script or function uses what reads a command line."""
    code = getattr(inspect.unwrap(attempt), "__code__", None)
    path = Path(code.co_filename if code else attempt)
    text = path.read_text("utf-8", errors="replace") if path.is_file() else ""
    text = text.partition("\nif __name__")[0] if code else text  # where no function gets
    return bool(READS_OPTIONS.search(text))


def function_that_trains(path: Path) -> str:
    """The function of a file that takes the settings of a run; "" for a script with options.

    A file that cannot be parsed is a script: running it says what is wrong.
    """
    text = path.read_text("utf-8", errors="replace")
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError):
        return ""
    if READS_OPTIONS.search(text):
        return ""
    for statement in statements:
        if isinstance(statement, ast.FunctionDef):
            arguments = statement.args
            names = {one.arg for one in (*arguments.args, *arguments.kwonlyargs)}
            takes_all = arguments.kwarg is not None and "train" in statement.name
            if names >= NEEDED or takes_all:
                return statement.name
    return ""


def _command(text: str) -> list[str]:
    """The path and the arguments of a script, which is handed in as a path or a command."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quotation mark that is never closed
        words = []
    while words and not words[0].endswith(".py"):
        words.pop(0)
    if not words or not Path(words[0]).is_file():
        raise NotJudged(f"There is no such script. {CONTRACT}")
    return [str(Path(words[0]).resolve()), *words[1:]]


def _judge_steps(runner: ScriptRunner, findings: Findings) -> None:
    """Judge how many steps the first run took, and what can be set."""
    steps = runner.first.steps
    expect(steps, "It took no step: `optimizer.step()` is never called.")
    with findings("use" if abs(steps - STEPS) > 1 else "corner"):
        expect(steps == STEPS, f"It took {steps} steps, but was told to take {STEPS}.")
    with findings("corner"):
        missing = ", ".join(sorted(WANTED - runner.asked.keys()))
        expect(not missing, f"These cannot be set from outside: {missing}.")


def _judge_log(runner: ScriptRunner, findings: Findings) -> None:
    """Judge the losses that the first run logged."""
    seen = runner.first
    used = _ids_used(runner.saved)
    train = seen.losses()
    valid = seen.losses(validation=True)
    with findings("use" if {"log_every", "eval_every"} <= runner.asked.keys() else "corner"):
        split = "validation" if train else "training"
        expect(
            train and valid,
            f"No {split} loss is reported: print `train_loss=3.21` and `val_loss=3.25`.",
        )
    expect(0 not in used, "It trains on ids that are not in the file.", FOREIGN)
    expect(not used & {*STRANGE_IDS}, "It trains on the validation data.", MIXED)
    expect(all(map(math.isfinite, train + valid)), "Its loss is nan or infinite.")
    expect(not seen.uncleared, "Gradients add up: call `optimizer.zero_grad()` before each step.")
    if train:
        _judge_losses(seen, train[0], fmean(train[-3:]), valid[-1] if valid else math.nan)


def _judge_losses(seen: Seen, first: float, last: float, valid: float) -> None:
    """Judge the training loss at first and in the end, and that of validation, nan for none."""
    got = Prose(f"training loss {first:.2f}, in the end {last:.2f}; validation loss {valid:.2f}")
    mistake = "Is `optimizer.step()` called after `loss.backward()`, and for the same model?"
    if seen.no_gradient:
        mistake = "`loss.backward()` is never called, or it is for another model's parameters."
    elif max(seen.rates) < 1e-3:
        mistake = f"The learning rate is never above {max(seen.rates):g}; 0.01 was asked for."
    expect(last <= first - FALLS, "The loss does not fall.", mistake, got=got)
    expect(
        last >= math.log(FOLLOWERS) - FALLS,
        "Its loss is too low: are the targets one position later than the inputs?",
        got=got,
    )
    expect(not valid > 1.5 * first + 1, "Its validation loss is a sum: report the mean.", got=got)
    same = last < LEARNED and valid < last + FALLS
    expect(not same, "Its validation loss is too low for the validation data.", MIXED, got=got)


def _ids_used(saved: dict[str, Any]) -> set[int]:
    """The ids that an embedding was trained on, by the optimizer's state; none if unknown."""
    for name, value in saved.items():
        is_embedding = getattr(value, "shape", ()) == (61, 32) and watched.OPTIMIZERS.search(name)
        if is_embedding and not value.any(1).all():
            return set(value.any(1).nonzero().flatten().tolist())
    return set()


def _judge_checkpoint(runner: ScriptRunner, findings: Findings) -> None:
    """Judge whether the checkpoint holds what a run needs to go on, in the sizes asked for."""
    saved = runner.saved
    is_state = watched.OPTIMIZERS.search
    expect(saved, "It leaves no checkpoint that `torch.load` can read without your code.")
    weights = {n: x for n, x in saved.items() if isinstance(x, Tensor) and not is_state(n)}
    missing = "optimizer's state" if weights else "model's weights"
    expect(weights and any(map(is_state, saved)), f"The checkpoint does not hold the {missing}.")
    # Without its number, the name of a weight that every block has comes once per block.
    times = Counter(re.sub(r"\.\d+\.", ".", name, count=1) for name in weights).values()
    sizes = {size for weight in weights.values() for size in weight.shape}
    applied = {name: SETTINGS[name] in sizes for name in ("vocab_size", "d_model")}
    applied["num_layers"] = 2 in times or max(times) == 1
    for name, is_applied in applied.items():
        expect(is_applied or name not in runner.asked, f"`{name}` is not applied.")
    step = watched.step_of(saved)
    expect(step not in (0, 1), f"It saved at step {step} only: save at the end, too.")
    with findings("corner"):
        expect(step is not None, "It saves no number of the step, as `iteration`.")


def _judge_resumed(runner: ScriptRunner, findings: Findings) -> None:
    """Run it once more, from the checkpoint, and judge whether it goes on where it stopped."""
    if "resume" not in runner.asked:
        return
    first = runner.first
    seen = runner.run(SETTINGS | {"steps": MORE, "resume": str(runner.path)})
    old = first.losses()
    new = seen.losses()
    if old and new:
        expect(
            new[0] <= old[0] - 0.4 * (old[0] - old[-1]),
            f"A resumed run starts over at {new[0]:.2f}: are the last weights saved and loaded?",
        )
    saved = runner.saved, watched.checkpoint(runner.path.parent)[1]
    counted, counts = map(watched.steps_counted, saved)
    expect(
        not seen.steps == counts != counted,
        "A resumed run begins with a new optimizer: load its state from the checkpoint, too.",
    )
    step, now = map(watched.step_of, saved)
    with findings("corner"):
        expect(seen.steps, "A resumed run takes no further steps, though more are asked for.")
        again = seen.rates[0] == first.rates[0] != first.rates[-1] and len({*seen.rates[:3]}) > 1
        expect(not again, "A resumed run begins its learning rates again: compute them by step.")
        _expect_the_rest(runner, seen.steps, counted or step, is_exact=counted > 0)
    with findings("corner"):
        expect(
            None in (step, now) or abs(step + seen.steps - now) <= 1,
            "A resumed run counts its steps from 0 again.",
            "Begin at the saved step.",
        )


def _expect_the_rest(runner: ScriptRunner, steps: int, at: float | None, is_exact: bool) -> None:
    """Raise unless a resumed run took the steps that were left, or `MORE` further ones.

    Arguments:
        at: the steps before the checkpoint, by the optimizer's own counter, which `is_exact`, or by
            the number that was saved, which may be that of the last step; None: unknown.
    """
    if at is None:
        return
    left = round(MORE - at)
    if steps == MORE:
        runner.remarks.append(
            "a resumed run takes `steps` further ones: the handout's loop goes on up to `steps`."
        )
        return
    expect(
        abs(steps - left) <= (0 if is_exact else 1),
        f"A resumed run took {steps} steps. From step {at:g} up to step {MORE} there are {left}.",
        "Is the saved step the number of steps that were taken, and does the loop begin with it?",
    )


def small_case(attempt: Any) -> tuple[str, Callable[[], Any]]:
    """The first run, for questions about a learner's code: in words, and what trains.

    It changes this process for good. Raises: Wrong for a function that reads the command line.
    """
    values = {name: SETTINGS[name] for name in _parameters(attempt)}
    expect(values.keys() >= NEEDED, CONTRACT)
    # Each run has another text and other random numbers: what depends on them is not asked about.
    texts = count(1)
    random.seed = np.random.seed = torch.manual_seed = lambda *seed: None  # type: ignore

    def train() -> None:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder, chdir(folder):
            _write_data(Path(), next(texts))
            attempt(**values)

    watched.stand_in()
    words = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return f"{attempt.__name__}({words})", train
