"""The check of the training script: a small run, and one that goes on from its checkpoint.

A run is judged by its steps, its log and its checkpoint; `watched` runs it. `CONTRACT` says what a
script or a function must offer.
"""

import math
import re
import shlex
from collections import Counter
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from types import FunctionType, MethodType
from typing import Any

import numpy as np
from torch import Tensor

from workbook.checks import verdicts, watched, worker
from workbook.checks.calling import signature_of
from workbook.checks.verdicts import Findings, NotAttempted, NotJudged, Words, Wrong
from workbook.checks.watched import SECONDS, Seen

SPARE_SECONDS = 20.0  # for a run that cannot be stopped, until its process is ended
STEPS, MORE = 20, 30  # of the first run, and of the one that goes on to more
# Each id of the text is followed by one of four, all equally likely. No model that predicts the
# next id gets below ln 4; one that is asked for the id it is given does. In the validation text
# some ids are replaced by strange ones, so its loss is higher; and whether a run trained on them
# shows in the optimizer's state: rows of an embedding that were never looked up are still 0.
COMMON_IDS, STRANGE_IDS = range(1, 17), range(40, 50)
FOLLOWERS, STRANGE_SHARE = 4, 0.2
LEARNED = 2.4  # a loss that takes more than knowing how often each id occurs (ln 16 = 2.8)
FALLS = 0.3  # nats per token: much less than 20 steps bring, and than strange ids cost
CONTRACT = (
    "A script takes these options, a function these parameters or **settings: train_path, "
    "valid_path (uint16, for np.memmap or np.load), vocab_size, context_length, d_model, "
    "num_layers, num_heads, d_ff, batch_size, steps, lr, log_every, eval_every, save_every, "
    "checkpoint_path (a file), resume (a checkpoint or None). Any other needs a default. Both "
    "losses are printed, or in a .log, .txt or .jsonl: `train_loss=3.2`, `val_loss=3.3` or JSON."
)
WANTED = "valid_path context_length d_model num_layers num_heads batch_size resume"
INSTALL = "Install it first; for a repository of yours, `pip install --no-deps -e FOLDER`."
UNUSED = "The setting is read, but then another value is used."
FOREIGN = "The file holds uint16: read it with that dtype."
IN_MEMORY = "It reads all data into memory: use np.memmap, or np.load with mmap_mode='r'."


def training_together(attempt: Any, part: str | None = None) -> str:
    """Praise for a script or function that trains; raises `Wrong` with what it does not do."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        _write_data(Path(folder))
        trainer, found = Trainer(attempt, Path(folder)), Findings()
        for judge in (_judge_steps, _judge_log, _judge_checkpoint, _judge_resumed):
            if not found.in_use:
                with found("use"):
                    judge(trainer, found)
    praise = f"It trained for {STEPS} steps as it was told, and went on from its checkpoint."
    if losses := trainer.first.losses():
        praise += f" Its loss fell from {losses[0]:.2f} to {losses[-1]:.2f}."
    return found.verdict(praise, [] if trainer.first.memory_map else [IN_MEMORY])


def _write_data(folder: Path) -> None:
    """Write the token files of both splits, as bare numbers in uint16."""
    (folder / "checkpoints").mkdir()
    draw = np.random.default_rng(0)
    for name, strange in (("train", 0.0), ("valid", STRANGE_SHARE)):
        place, ids = 0, []
        for _ in range(2_000):
            place = (7 * place + 1 + 3 * draw.integers(FOLLOWERS)) % len(COMMON_IDS)
            ids.append(draw.choice(STRANGE_IDS) if draw.random() < strange else COMMON_IDS[place])
        np.array(ids, dtype=np.uint16).tofile(folder / f"{name}.bin")


class Trainer:
    """A script, or a function, that trains: how it is told its settings, and its runs."""

    def __init__(self, attempt: Any, folder: Path):
        """Find out which settings it has. Raises: NotAttempted."""
        if attempt is None or attempt is ... or verdicts.is_untouched(attempt):
            raise NotAttempted
        self.attempt, self.folder, self.steps, self.told = attempt, folder, 0, " --help"
        self.extra, parameters = [], []
        if isinstance(attempt, str | Path):
            self.attempt, *self.extra = _command(str(attempt))
            self.name = shlex.join(["python", Path(self.attempt).name, *self.extra])
        elif isinstance(attempt, FunctionType | MethodType):
            parameters = [p for p in signature_of(attempt) or [] if p.kind is not p.VAR_POSITIONAL]
            self.name = f"{getattr(attempt, '__name__', 'train')}(...)"
        else:
            raise NotJudged(f"This is {verdicts.kind_of(attempt)}. {CONTRACT}")
        names, known = [each.name for each in parameters], self._values(STEPS)
        for each in parameters:
            if each.kind is each.VAR_KEYWORD:
                names += re.findall(r"\w+", CONTRACT)  # all that it names
            elif each.default is each.empty and each.name not in known:
                raise NotJudged(f"It asks for `{each.name}`, which is no setting. {CONTRACT}")
        # A function such as `main()` or `main(argv=None)` reads the command line, as a script does.
        self.has_options = not any(name in known for name in names)
        if self.has_options:
            names = re.findall(r"--[\w-]+", self._run(["--help"]).log)
        plain = {name.lstrip("-").replace("-", "_"): name for name in names}
        # By setting: the option or parameter.
        self.asked = {name: plain[name] for name in known if name in plain}
        if missing := {"train_path", "checkpoint_path", "steps"} - self.asked.keys():
            raise NotJudged(f"It has no setting {' and '.join(sorted(missing))}. {CONTRACT}")
        self.first = self.run(STEPS)
        self.path, self.saved = watched.checkpoint(folder / "checkpoints")

    def _values(self, steps: int, resume: Path | None = None) -> dict[str, Any]:
        """The values of all settings, by name."""
        return {
            "train_path": str(self.folder / "train.bin"), "steps": steps, "lr": 1e-2,
            "valid_path": str(self.folder / "valid.bin"), "resume": resume and str(resume),
            "checkpoint_path": str(self.folder / "checkpoints" / "run.pt"), "batch_size": 8,
            "vocab_size": 61, "context_length": 16, "d_model": 32, "num_layers": 2, "num_heads": 4,
            "d_ff": 64, "log_every": 1, "eval_every": 5, "save_every": 10,
            # Beyond the contract: the handout's own, where an attempt has them.
            "max_learning_rate": 1e-2, "min_learning_rate": 1e-3, "warmup_iters": 2,
            "cosine_cycle_iters": steps, "weight_decay": 0.01, "max_l2_norm": 1.0,
            "rope_theta": 10_000.0, "seed": 0, "device": "cpu",
        }  # fmt: skip

    def run(self, steps: int, resume: Path | None = None) -> Seen:
        """Train. Raises: Wrong if it fails, ends its process or never ends; NotAttempted."""
        values = {name: x for name, x in self._values(steps, resume).items() if name in self.asked}
        words = []
        for name, value in values.items():
            words += [] if value is None else [self.asked[name], str(value)]
        self.steps, self.told = steps, f", {steps} steps{' from its checkpoint' if resume else ''}"
        return self._run(words + self.extra) if self.has_options else self._run([], **values)

    def _run(self, words: list[str], **values: Any) -> Seen:
        """Run it once, in a process of its own, with words of a command line or with values."""
        for path in self._logs():
            path.unlink()
        request = (self.attempt, words, values, str(self.folder), self.steps)
        limits = {"printed": self.folder / watched.PRINTED, "seconds": SECONDS + SPARE_SECONDS}
        try:
            seen = Seen(**worker.forked(watched.observed, *request, **limits))
        except worker.EndedError as error:
            raise self.wrong("It ended Python, or did not end by itself.", str(error)) from error
        seen.log = "\n".join(path.read_text("utf-8", errors="replace") for path in self._logs())
        if self.steps:
            print(seen.log)  # its beginning is shown beside what is wrong
        if re.match(r"SystemExit: 2\b|ModuleNotFound|PackageNotFound", seen.error):
            advice = INSTALL if "NotFound" in seen.error else CONTRACT
            raise NotJudged(f"{seen.error}. {seen.log[-300:].strip()} {advice}")
        if seen.error:
            is_index = re.search("out of (range|bounds)", seen.error)
            raise self.wrong(seen.claim, seen.error, FOREIGN if is_index else seen.mistake)
        return seen

    def _logs(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.suffix in watched.LOGS)

    def wrong(self, claim: str, got: str = "", mistake: str | None = None) -> Wrong:
        """A mistake of the last run."""
        rows = {"got": Words(got)} if got else {}
        return Wrong(claim, given=self.name + self.told, mistake=mistake, **rows)


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


def _judge_steps(trainer: Trainer, found: Findings) -> None:
    """Judge how many steps the first run took, and what can be set."""
    wrong, steps = trainer.wrong, trainer.first.steps
    if trainer.first.stopped:
        claim = f"It was told to take {STEPS} steps, but was stopped after {steps}."
        raise wrong(claim, mistake=UNUSED)
    if not steps:
        raise wrong("It took no step: `optimizer.step()` is never called.")
    with found("use" if abs(steps - STEPS) > 1 else "corner"):
        if steps != STEPS:
            mistake = "Look at where the loop starts and ends: range(steps) has `steps` numbers."
            claim = "It does not take as many steps as it was told to."
            raise wrong(claim, f"{steps} steps", mistake)
    with found("corner"):
        lr = "max_learning_rate" if "max_learning_rate" in trainer.asked else "lr"
        if missing := [name for name in (*WANTED.split(), lr) if name not in trainer.asked]:
            mistake = "A run is changed without editing the file, and goes on where it stopped."
            raise wrong(f"These cannot be set from outside: {', '.join(missing)}.", mistake=mistake)


def _judge_log(trainer: Trainer, found: Findings) -> None:
    """Judge the losses that the first run logged."""
    wrong, seen, used = trainer.wrong, trainer.first, _ids_used(trainer.saved)
    losses = {"training": seen.losses(), "validation": seen.losses(validation=True)}
    with found("use" if {"log_every", "eval_every"} <= trainer.asked.keys() else "corner"):
        if missing := [split for split, logged in losses.items() if not logged]:
            claim = f"No {' and no '.join(missing)} loss is reported in {STEPS} steps."
            mistake = "Print `train_loss=3.21` and `val_loss=3.25`, as often as an option says."
            raise wrong(claim, mistake=mistake)
    if 0 in used:
        raise wrong("It trains on ids that are not in the file.", mistake=FOREIGN)
    if used & {*STRANGE_IDS}:
        raise wrong("It trains on the validation data.", mistake="Are the two paths mixed up?")
    if not all(map(math.isfinite, losses["training"] + losses["validation"])):
        raise wrong("Its loss is nan or infinite.", mistake="Does it take the log of 0?")
    if seen.uncleared:
        raise wrong("Gradients of earlier steps are added up: call `optimizer.zero_grad()`.")
    train = losses["training"] or [math.nan]
    first, last = train[0], fmean(train[-3:])
    valid = losses["validation"][-1] if losses["validation"] else math.nan
    got = f"training loss {first:.2f} at first, {last:.2f} at the end; validation loss {valid:.2f}"
    if last > first - FALLS:
        mistake = "Is `optimizer.step()` called after `loss.backward()`, and for the same model?"
        if seen.no_gradient:
            mistake = "`loss.backward()` is never called, or it is for another model's parameters."
        elif max(seen.rates) < 1e-3:
            mistake = f"The learning rate is never above {max(seen.rates):g}; 0.01 was asked for."
        raise wrong("The loss does not fall.", got, mistake)
    if last < math.log(FOLLOWERS) - 0.3:
        claim = "Its loss is lower than that of the next id can be."
        raise wrong(claim, got, "Are the targets one position later than the inputs?")
    if valid > 1.5 * first + 1:
        claim = "The validation loss that it reports is not that of the model."
        raise wrong(claim, got, "Is it a sum over batches or tokens? Report the mean.")
    if last < LEARNED and valid < last + FALLS:
        claim = "Its validation loss is not that of the validation data, which is higher."
        raise wrong(claim, got, "Are the two paths, or their batches, mixed up?")


def _ids_used(saved: dict[str, Any]) -> set[int]:
    """The ids that an embedding was trained on, by the optimizer's state; none if unknown."""
    for name, value in saved.items():
        if watched.OPTIMIZERS.search(name) and getattr(value, "shape", ()) == (61, 32):
            rows = value.any(1)
            if not rows.all():
                return set(rows.nonzero().flatten().tolist())
    return set()


def _judge_checkpoint(trainer: Trainer, found: Findings) -> None:
    """Judge whether the checkpoint holds what a run needs to go on, in the sizes asked for."""
    wrong, saved = trainer.wrong, trainer.saved
    if not saved:
        raise wrong("It leaves no checkpoint that `torch.load` can read without your code.")
    weights = {name: x for name, x in saved.items() if isinstance(x, Tensor)}
    weights = {name: x for name, x in weights.items() if not watched.OPTIMIZERS.search(name)}
    if not (weights and any(map(watched.OPTIMIZERS.search, saved))):
        missing = "optimizer's state" if weights else "model's weights"
        mistake = "A run goes on from `model.state_dict()`, `optimizer.state_dict()` and the step."
        raise wrong(f"The checkpoint does not hold the {missing}.", mistake=mistake)
    # Without its number, the name of a weight that every block has comes once per block.
    times = Counter(re.sub(r"\.\d+\.", ".", name, count=1) for name in weights).values()
    sizes = {size for weight in weights.values() for size in weight.shape}
    for name, is_applied in (
        ("vocab_size", 61 in sizes), ("d_model", 32 in sizes),
        ("num_layers", 2 in times or max(times) == 1),
    ):  # fmt: skip
        if name in trainer.asked and not is_applied:
            raise wrong(f"`{trainer.asked[name]}` is not applied.", mistake=UNUSED)
    step = watched.step_of(saved)
    if step in (0, 1):
        raise wrong(f"It saved at step {step} only: save at the end, too, or as `save_every` says.")
    with found("corner"):
        if step is None:
            raise wrong("The checkpoint does not hold the number of the step, as `iteration`.")


def _judge_resumed(trainer: Trainer, found: Findings) -> None:
    """Run it once more, from the checkpoint, and judge whether it goes on where it stopped."""
    if "resume" not in trainer.asked:
        return
    wrong, first, seen = trainer.wrong, trainer.first, trainer.run(MORE, trainer.path)
    old, new = first.losses(), seen.losses()
    if old and new and new[0] > old[0] - 0.4 * (old[0] - old[-1]):
        got = f"{new[0]:.2f}; the first run began with {old[0]:.2f} and ended with {old[-1]:.2f}"
        mistake = "Are the weights of the checkpoint loaded, or loaded into another model?"
        raise wrong("A resumed run starts over.", got, mistake)
    step, now = map(watched.step_of, (trainer.saved, watched.checkpoint(trainer.path.parent)[1]))
    with found("corner"):
        if not seen.steps:
            raise wrong("A resumed run takes no further steps, though more are asked for.")
        if None not in (step, now) and abs(step + seen.steps - now) > 1:
            claim = "A resumed run has the old weights, but counts its steps from 0 again."
            got = f"{seen.steps} steps from step {step} on, and then a checkpoint of step {now}"
            raise wrong(claim, got, "Begin the loop at the step of the checkpoint.")
        if seen.rates[0] == first.rates[0] != first.rates[-1] and len({*seen.rates[:3]}) > 1:
            claim = "A resumed run has the old weights, but begins its learning rates again."
            mistake = "Compute the rate from the step, or save the scheduler's state as well."
            raise wrong(claim, f"{seen.rates[0]:g} at first, as in the first run", mistake)
