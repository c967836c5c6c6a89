"""One run in progress: everything that changes from step to step, and how a step is made.

batch -> loss -> gradients -> clip -> AdamW -> now and then: log, evaluate, save

Training: a config goes in, a folder with a log, checkpoints and a trained model comes out.

A run that was stopped, by a crash, Ctrl-C or a power cut, is started again with the same config,
and goes on from its last checkpoint; on a CPU with as many threads, to the same bits.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import torch

from workbook import accounting
from workbook import config as settings
from workbook.accounting.measured import matmul_peak
from workbook.config import TrainConfig
from workbook.files import locked, write_json
from workbook.optimizer import optimizers
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import checkpoints, devices, guards, log
from workbook.training import log as runlog
from workbook.training.data import TrainData, random_starts, train_data, windows
from workbook.training.evaluate import evaluate
from workbook.training.guards import WINDOW, ClimbWatch, TimeLimit, Wish, wish_to_stop
from workbook.training.processes import Team, own_device, team
from workbook.transformer.model import PARTS, TransformerLM

CHECKPOINTS = "checkpoints"
# What a checkpoint must hold, so that a run can go on from it.
KEPT = (
    "config",
    "precision",
    "data",
    "iteration",
    "finished",
    "watch",
    "model",
    "optimizer",
    "scaler",
    "random",
    "order",
    "tokens",
    "seconds",
    "flags",
    "log",
)


class DivergedError(ValueError):
    """The loss has climbed and stayed up, or it or the gradients are no finite numbers any more."""


class Trainer:
    """A run in progress: the model, and all that is needed to go on."""

    def __init__(self, config: TrainConfig, folder: Path, data: TrainData, members: Team):
        self.config, self.folder, self.data, self.team = config, folder, data, members
        if config.batch_size % (config.accumulation * members.size):
            raise ValueError(
                f"batch_size={config.batch_size} does not fall into {members.size} processes ·"
                f" accumulation={config.accumulation} equal parts"
            )
        self.device = devices.pick_device(config.device)
        if members.size > 1 and self.device.type == "cuda":
            self.device = torch.device(own_device())
        self.precision = devices.pick_precision(self.device, config.precision)
        devices.tune(self.device)
        checkpoints.seed_everything(config.seed)
        # Drawn on the CPU: the same weights whatever the device.
        self.model = TransformerLM.from_config(config.model).to(self.device)
        self.forward = devices.compiled(self.model) if config.compile else self.model
        self.cross_entropy = PARTS[config.model.kernels].cross_entropy
        self.optimizer = optimizers.from_config(self.model.parameters(), config.optimizer)
        self.scaler = torch.amp.GradScaler(
            self.device.type, enabled=self.precision == torch.float16
        )
        self.order = torch.Generator().manual_seed(config.seed)  # of the data
        self.step = self.tokens = 0
        self.seconds = 0.0  # of the sessions before this one
        self.watch, self.limit = ClimbWatch(), TimeLimit(config.max_seconds)
        self.finished, self.status = False, "new"
        self.flags: list[str] = []
        self.lap: Callable[[str], object] = lambda part: None  # for whoever times the parts

    def open_log(self, listeners: Sequence[log.Listener]) -> log.RunLog:
        """The log of the run; only one process of several writes it."""
        self.log = log.RunLog(self.folder, listeners) if self.team.leads else log.NoLog()
        return self.log

    def begin(self, state: dict | None) -> None:
        """Go on from a checkpoint, or begin anew where there is none."""
        self.made_from = self.data.made_from()
        if state is not None:
            self.resume(state)
        self.peak = matmul_peak(self.precision, str(self.device))
        self.started = time.perf_counter()
        if state is None:
            self.begin_anew()
        self.outcome("running")

    def begin_anew(self) -> None:
        """Write down where the run begins, and look whether its curve can be trusted."""
        self.log.truncate(0)
        self.log.describe(
            log.environment(
                **devices.describe(self.device, self.precision),
                processes=self.team.size,
                peak_flops_per_second=self.peak,
            )
        )
        if self.team.leads:
            context = self.config.model.context_length
            starts = random_starts(len(self.data.train), 2, context, torch.Generator())
            batch = windows(self.data.train, starts, context, self.device)
            self.flags = guards.before_training(self.model, self.data, *batch)
        found = self.validation()
        self.watch = ClimbWatch(found["validation_loss"])
        self.log.append({"step": 0, "tokens": 0, "seconds": 0.0, **found})

    def run_to_end(self, wish: Wish) -> None:
        """Take the steps that are left; on a wish to stop, save and raise KeyboardInterrupt."""
        try:
            self.take_steps(wish)
        except BaseException as error:
            if self.status == "running":
                with suppress(OSError):  # the disk may be full
                    self.outcome("stopped", str(error))
            raise

    def take_steps(self, wish: Wish) -> None:
        """The loop of the run: steps, and between them what is due."""
        config = self.config
        mark, since = time.perf_counter(), self.step
        while not self.finished:
            start = self.clock()
            loss, norm = self.update()
            end = self.clock()
            self.finished = self.limit.is_up(end, end - start) or self.step == config.steps
            logs, evaluates, saves = (
                self.step % every == 0 or self.finished
                for every in (config.log_every, config.eval_every, config.checkpoint_every)
            )
            stops = self.team.agree(bool(wish))
            if self.device.type == "cpu" or logs or evaluates or saves or stops:
                self.check_finite(loss, norm)  # on a GPU this waits for the step
            if logs or evaluates:
                devices.synchronize(self.device)
                spent = time.perf_counter() - mark
                self.record(loss, norm, (self.step - since) / spent, evaluates)
            if saves or stops:
                self.save()
            if stops and not self.finished:
                self.outcome("stopped")
                raise KeyboardInterrupt(
                    f"stopped after step {self.step:,}, which is saved; the same call goes on"
                )
            if logs or evaluates or saves:
                mark, since = time.perf_counter(), self.step
        self.outcome("finished")

    def update(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The loss of one batch, and the norm of its gradients; the weights are one step on."""
        config, context = self.config, self.config.model.context_length
        parts = config.accumulation
        starts = random_starts(len(self.data.train), config.batch_size, context, self.order)
        own = starts[self.team.share(config.batch_size)]
        loss = torch.zeros((), device=self.device)
        for chunk in own.chunk(parts):
            inputs, targets = windows(self.data.train, chunk, context, self.device)
            self.lap("data")
            with devices.autocast(self.device, self.precision):
                part = self.cross_entropy(self.forward(inputs), targets) / parts
            self.lap("forward")
            self.scaler.scale(part).backward()
            loss += part.detach()
            self.tokens += inputs.numel() * self.team.size
            self.lap("backward")
        gradients = [weight.grad for weight in self.model.parameters()]
        self.team.average([*gradients, loss])
        self.scaler.unscale_(self.optimizer)
        norm = optimizers.clip_gradients(self.model.parameters(), config.optimizer.max_l2_norm)
        self.lap("clip")
        self.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        if self.scaler.is_enabled() or self.device.type != "cpu" or bool(norm.isfinite()):
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.optimizer.zero_grad()
        self.lap("update")
        return loss, norm

    def learning_rate(self) -> float:
        """The learning rate of this step; steps count from 1 here, so none is wasted on 0.

        A run with a time limit that will not get through its steps is as far as its time is.
        """
        schedule, end = self.config.optimizer, self.config.cosine_cycle_iters
        return optimizers.cosine_schedule(
            max(self.step, round(self.limit.share(self.clock()) * end)),
            schedule.max_learning_rate,
            schedule.min_learning_rate,
            schedule.warmup_iters,
            end,
        )

    def clock(self) -> float:
        """The seconds so far, the same in every process; 0 where no limit asks for them."""
        if self.config.max_seconds is None:
            return 0.0
        devices.synchronize(self.device)
        seconds = torch.tensor(self.elapsed(), device=self.device)
        self.team.average([seconds])
        return seconds.item()

    def check_finite(self, loss: torch.Tensor, norm: torch.Tensor) -> None:
        """Raise DivergedError where a number is none; what is on the disk stays as it is."""
        skipped = self.scaler.is_enabled()  # it leaves such a step out and scales less
        if loss.isfinite() and (skipped or norm.isfinite()):
            return
        self.give_up(
            f"the loss is {loss.item():.4g} and the norm of the gradients {norm.item():.4g}"
        )

    def give_up(self, what: str) -> NoReturn:
        """Raise DivergedError; the reason is written down, and the last checkpoint stays."""
        good = checkpoints.saved(self.folder / CHECKPOINTS)
        last = f"the last good checkpoint is {good[0].name}" if good else "nothing was saved yet"
        advice = "a smaller max_learning_rate or a longer warm-up may help"
        reason = f"{what} at step {self.step:,}; {last}; {advice}"
        self.outcome("diverged", reason)
        raise DivergedError(reason)

    def record(self, loss: torch.Tensor, norm: torch.Tensor, rate: float, evaluates: bool) -> None:
        """Write a line of the log; `rate` is in steps a second."""
        tokens = self.config.batch_size * self.config.model.context_length * rate
        flops = accounting.flops_per_token(self.config.model) * tokens / self.team.size
        if flops > self.peak:  # then the machine was busy when its peak was measured
            self.peak = max(self.peak, matmul_peak(self.precision, str(self.device)))
        line = {
            "step": self.step,
            "tokens": self.tokens,
            "seconds": self.elapsed(),
            "train_loss": loss.item(),
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "gradient_norm": norm.item(),
            "tokens_per_second": tokens,
            "mfu": flops / self.peak,
        }
        self.log.append(line | (self.validation() if evaluates else {}))
        climbed = self.watch.climbed(line["train_loss"])
        if climbed > self.config.divergence:
            self.give_up(f"the mean of {WINDOW} losses has climbed by {climbed:.2f} nats")
        self.lap("log")

    def validation(self) -> dict[str, float]:
        """The loss on the validation split in three units; raises flags where it is too good."""
        config = self.config
        found = evaluate(
            self.model,
            self.data.validation,
            self.data.token_bytes,
            config.model.context_length,
            config.eval_tokens,
            device=self.device,
            precision=self.precision,
        )
        for flag in guards.while_training(config, self.data, self.step, self.tokens, found):
            if flag.split(":")[0] not in {old.split(":")[0] for old in self.flags}:
                self.flags.append(flag)
        return {
            "validation_loss": found.loss,
            "validation_perplexity": found.perplexity,
            "validation_bits_per_byte": found.bits_per_byte,
        }

    def elapsed(self) -> float:
        """The seconds that the run has taken, in this session and those before."""
        return self.seconds + time.perf_counter() - self.started

    def save(self) -> None:
        """Write a checkpoint that has all it takes to go on."""
        if not all(weight.isfinite().all() for weight in self.model.parameters()):
            bad = torch.tensor(math.nan)  # the last step spoilt them: keep the file before it
            self.check_finite(bad, bad)
        if self.team.leads:
            checkpoints.keep(
                {
                    "config": self.config.key,
                    "precision": devices.name_of(self.precision),
                    "data": self.made_from,
                    "iteration": self.step,
                    "finished": self.finished,
                    "watch": self.watch.state(),
                    "model": self.model.state_dict(),
                    "optimizer": self.optimizer.state_dict(),
                    "scaler": self.scaler.state_dict(),
                    "random": checkpoints.random_state(),
                    "order": self.order.get_state(),
                    "tokens": self.tokens,
                    "seconds": self.elapsed(),
                    "flags": self.flags,
                    "log": self.log.position(),
                },
                self.folder / CHECKPOINTS,
                self.config.keep_checkpoints,
            )
            self.outcome("running")
        self.team.wait()

    def resume(self, state: dict) -> None:
        """Be where the run was when it was saved, the log as well.

        A run keeps the precision that it was begun in, also on a machine that would choose another.
        Raises: ValueError for the checkpoint of another config, of other tokens, or where another
        precision is forced.
        """
        if state["config"] != self.config.key:
            raise ValueError(
                f"{self.folder} holds a run of another config ({state['config']}, not"
                f" {self.config.key}); give another folder"
            )
        now, then = self.made_from, state["data"]
        if changed := [name for name in now if now[name] != then.get(name)]:
            raise ValueError(
                f"{self.folder} holds a run on other data: {' and '.join(changed)} changed since it"
                " was saved. Put back what was there, or give another folder for a new run"
            )
        asked = devices.asked_precision(self.config.precision)
        if asked not in ("auto", state["precision"]):
            raise ValueError(
                f"{self.folder} holds a run in {state['precision']}, and WORKBOOK_PRECISION forces"
                f" {asked}; unset it, or give another folder"
            )
        self.precision = devices.DTYPES[state["precision"]]
        checkpoints.restore(state, self.model, self.optimizer)
        self.scaler.load_state_dict(state["scaler"])
        checkpoints.restore_random_state(state["random"])
        self.order.set_state(state["order"])
        self.step, self.tokens = state["iteration"], state["tokens"]
        self.seconds, self.flags = state["seconds"], state["flags"]
        self.watch.restore(state["watch"])
        self.finished = state["finished"]
        if self.team.leads and self.log.position() < state["log"]:
            self.flags.append(
                f"lines of the log are missing: it is shorter than it was at step {self.step:,}, so"
                " the curve has a gap"
            )
        self.log.truncate(state["log"])

    def outcome(self, status: str, reason: str = "") -> None:
        """Write down how far the run has come, and what speaks against believing it."""
        self.status = status
        if self.team.leads:
            content = {"status": status, "step": self.step, "reason": reason, "flags": self.flags}
            write_json(self.folder / log.OUTCOME, content)


if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DivergedError", "Run", "run_folder", "train", "trained"]


@dataclass(frozen=True)
class Run:
    """A run on disk, in progress or over: its folder has the log, `train`'s the weights as well."""

    config: TrainConfig
    folder: Path

    @cached_property
    def log(self) -> "pd.DataFrame":
        """The log, one row per logged step, as it is when it is first asked for."""
        return runlog.read(self.folder)

    @property
    def environment(self) -> dict:
        """Where it was begun: device, precision, threads, versions, commit."""
        return runlog.load_json(self.folder / runlog.ENVIRONMENT)

    @property
    def outcome(self) -> dict:
        """How far it has come: its "status", the last "step", the "reason" and the "flags"."""
        return runlog.load_json(self.folder / runlog.OUTCOME)

    @property
    def status(self) -> str:
        """The word for that: new, running, stopped, diverged or finished."""
        return self.outcome["status"] if (self.folder / runlog.OUTCOME).is_file() else "new"

    @property
    def flags(self) -> list[str]:
        """What speaks against believing the curve; empty where every check holds."""
        return self.outcome["flags"]

    @property
    def precision(self) -> str:
        """What its matmuls are computed in, such as "bfloat16"."""
        return self.environment["precision"]

    @property
    def diverged(self) -> bool:
        """Whether it was given up."""
        return self.status == "diverged"

    @property
    def steps(self) -> int:
        """The steps it took: fewer than it was asked for if it diverged or ran out of time."""
        return int(self.log.index[-1])

    @property
    def tokens(self) -> int:
        """The tokens it was trained on."""
        return int(self.log["tokens"].iloc[-1])

    @property
    def seconds(self) -> float:
        """The time it took."""
        return float(self.log["seconds"].iloc[-1])

    @property
    def loss(self) -> float:
        """The last validation loss in nats per token; infinite for a run that diverged."""
        return self._last("validation_loss")

    @property
    def bits_per_byte(self) -> float:
        """The last validation loss in bits per byte; infinite for a run that diverged."""
        return self._last("validation_bits_per_byte")

    def _last(self, name: str) -> float:
        return math.inf if self.diverged else float(self.log[name].dropna().iloc[-1])

    @property
    def sample(self) -> dict | None:
        """The "text" that the model wrote, and how; None where none was written."""
        path = self.folder / runlog.SAMPLE
        return runlog.load_json(path) if path.is_file() else None

    def model(self) -> TransformerLM:
        """The model as it was last saved, on the CPU. A record of a run has none."""
        state = checkpoints.newest(self.folder / CHECKPOINTS, ["model"])
        model = TransformerLM.from_config(self.config.model)
        checkpoints.restore(state, model)
        return model.eval()


def run_folder(config: TrainConfig) -> Path:
    """Where a run of this config lies in the data folder: each config has one place.

    Forced precisions have theirs beside it, so a model of one never passes for that of another.
    """
    asked = devices.asked_precision(config.precision)
    forced = f"-{asked}" if asked != config.precision else ""
    return settings.data_folder() / "trained" / f"{config.name}-{config.key}{forced}"


def trained(
    config: TrainConfig, listeners: Sequence[runlog.Listener] = ()
) -> tuple[TransformerLM, Tokenizer]:
    """The model of a config, trained first unless it lies in the data folder, and its tokenizer."""
    run = train(config, listeners=listeners)
    return run.model(), train_data(config).tokenizer


def train(
    config: TrainConfig,
    folder: str | os.PathLike | None = None,
    data: TrainData | None = None,
    listeners: Sequence[runlog.Listener] = (),
) -> Run:
    """The finished run of a config; what of it is done already is not done again.

    `folder` is its place unless the data folder's will do, `data` what it trains on unless the
    config's corpus. Each of `listeners` is called with every record of the log.
    Raises: DivergedError; KeyboardInterrupt, after the step in hand has been saved; OSError where a
    checkpoint cannot be written. All of them leave the last checkpoint.
    """
    run = Run(config, Path(folder) if folder is not None else run_folder(config))
    if is_done(run):  # which can be asked for without a lock, on a disk that is read-only too
        return run
    before = checkpoints.random_state()
    try:
        with team(config.device) as members, locked(run.folder, members.leads):
            members.wait()  # for the leader to have the folder to itself
            if members.leads:
                runlog.claim(run.folder, asdict(config))
            state = checkpoints.newest(run.folder / CHECKPOINTS, KEPT)
            data = data or members.in_turn(lambda: train_data(config))
            trainer = Trainer(config, run.folder, data, members)
            with trainer.open_log(listeners), wish_to_stop() as wish:
                trainer.begin(state)
                trainer.run_to_end(wish)
    finally:
        checkpoints.restore_random_state(before)  # whoever called us draws on as if we had not
    return run


def is_done(run: Run) -> bool:
    """Whether the run has finished in a precision that will do, and its model can be loaded."""
    if run.status != "finished":
        return False
    state = checkpoints.newest(run.folder / CHECKPOINTS)
    if state is None or state.get("config") != run.config.key or not state.get("finished"):
        return False
    asked = devices.asked_precision(run.config.precision)
    return asked in ("auto", state.get("precision", asked))  # earlier versions did not store theirs


def train_and_tell(config: TrainConfig, folder: str | os.PathLike | None = None) -> None:
    """Train and print how it goes, as the command line does."""
    place = Path(folder) if folder is not None else run_folder(config)

    def tell(record: dict) -> None:
        if record["step"] == 0:
            found = runlog.load_json(place / runlog.ENVIRONMENT)
            print("matmuls in {precision} on {device}, threads: {threads}".format(**found))
        print(told(config, record), flush=True)

    run = train(config, place, listeners=[tell])
    if os.environ.get("RANK", "0") == "0":  # of several processes one speaks
        print(f"trained: {run.folder}")
        for flag in run.flags:
            print(f"not to be believed yet: {flag}")


def told(config: TrainConfig, record: dict) -> str:
    """A record of the log as a line to read."""
    words = [f"step {record['step']:,} of {config.steps:,}"]
    for name, text in (
        ("train_loss", "loss {:.3f}"),
        ("validation_loss", "validation {:.3f}"),
        ("validation_bits_per_byte", "{:.3f} bits/byte"),
        ("tokens_per_second", "{:,.0f} tokens/s"),
        ("mfu", "MFU {:.0%}"),
    ):
        if record.get(name) is not None:
            words.append(text.format(record[name]))
    return "  ".join(words)
