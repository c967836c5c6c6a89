"""Training: a config goes in, a folder with a log, checkpoints and a trained model comes out.

    batch -> loss -> gradients -> clip -> AdamW -> now and then: log, evaluate, save

`textbook.py` is this loop and nothing else; read it first.

A run that was stopped by a crash, Ctrl-C or a power cut goes on from its last checkpoint when it is
started again with the same config; on a CPU with the same number of threads, bit for bit.

`torchrun --nproc-per-node 2 -m workbook train laptop` trains with two processes. Each draws
the same batch and computes its share of the sequences. `DistributedDataParallel` averages the
gradients, so all weights stay equal, and the loss is that of one process with the whole batch.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import psutil
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from workbook import accounting
from workbook.config import TrainConfig, data_folder
from workbook.files import locked, remove_leftovers, say, write_json
from workbook.optimizer.floats import FORMATS
from workbook.tokenization import token_files
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import checkpoints, devices, guards, log
from workbook.training.checkpoints import State
from workbook.training.data import TrainData
from workbook.training.devices import matmul_peak
from workbook.training.evaluate import Evaluation, evaluate
from workbook.training.guards import ClimbWatch
from workbook.training.log import Record
from workbook.training.parts import Parts

if TYPE_CHECKING:
    import pandas as pd

CHECKPOINTS = "checkpoints"
IN_A_CHECKPOINT: dict[str, type] = {  # what a run goes on from, and of which type
    "data": dict,
    "precision": str,
    "order": Tensor,
    "watch": dict,
    "model": dict,
    "optimizer": dict,
    "iteration": int,
    "tokens": int,
    "seconds": float,
    "finished": bool,
    "flags": list,
    "random": dict,
    "log": int,
}
LESS_MEMORY = "choose a smaller batch_size or context_length, or a larger accumulation"


class DivergedError(ValueError):
    """The loss has climbed and stayed up, or the loss or the gradients are NaN or infinite."""


@dataclass(frozen=True)
class Run:
    """A run on disk, in progress or over: a folder with a log and, if `train` made it, weights."""

    config: TrainConfig
    folder: Path
    parts: Parts | None = field(default=None, kw_only=True)  # what it is made of; None: ours

    def __repr__(self) -> str:
        step = "" if self.status == "new" else f" at step {self.outcome['step']:,}"
        name = self.config.name
        steps = self.config.steps
        return f"Run({name!r} of {steps:,} steps, {self.status}{step}, in {str(self.folder)!r})"

    @cached_property
    def log(self) -> "pd.DataFrame":
        """The log, one row per logged step, as it was when first read."""
        return log.read_log(self.folder)

    @property
    def environment(self) -> Record:
        """Where it began: device, precision, threads, versions, commit."""
        return log.load_json(self.folder / log.ENVIRONMENT, device=str, precision=str)

    @property
    def outcome(self) -> Record:
        """How far it has come: its "status", the last "step", the "reason" and the "flags"."""
        return log.load_json(self.folder / log.OUTCOME, **log.HOW_IT_ENDED)

    @property
    def status(self) -> str:
        """New, running, stopped, diverged or finished."""
        return str(self.outcome["status"]) if (self.folder / log.OUTCOME).is_file() else "new"

    @property
    def flags(self) -> list[str]:
        """The reasons not to believe the curve; empty if every check passes."""
        return list(self.outcome["flags"])

    @property
    def precision(self) -> str:
        """The precision of its matmuls, such as "bfloat16"."""
        return str(self.environment["precision"])

    @property
    def diverged(self) -> bool:
        """Whether it was given up."""
        return self.status == "diverged"

    @property
    def steps(self) -> int:
        """The steps it took: fewer than asked for if it diverged or ran out of time."""
        if self.log.empty:
            raise ValueError(f"nothing is logged in {self.folder}: was {log.LINES} emptied?")
        return int(self.log.index[-1])

    @property
    def tokens(self) -> int:
        """The tokens it was trained on."""
        return int(self._last("tokens"))

    @property
    def seconds(self) -> float:
        """The time it took."""
        return self._last("seconds")

    @property
    def loss(self) -> float:
        """The last validation loss in nats per token; infinite for a run that diverged."""
        return math.inf if self.diverged else self._last("validation_loss")

    @property
    def bits_per_byte(self) -> float:
        """The last validation loss in bits per byte; infinite for a run that diverged."""
        return math.inf if self.diverged else self._last("validation_bits_per_byte")

    def _last(self, name: str) -> float:
        """The last number that was logged under a name. Raises: ValueError if there is none."""
        logged = self.log.reindex(columns=[name])[name].dropna()
        if logged.empty:
            raise ValueError(f"no {name} is logged in {self.folder}: was {log.LINES} cut?")
        return float(logged.iloc[-1])

    @property
    def sample(self) -> Record | None:
        """The "text" that the model wrote, and how; None if none was written."""
        path = self.folder / log.SAMPLE
        return log.load_json(path, text=str) if path.is_file() else None

    @property
    def made_of(self) -> dict[str, str]:
        """Where the parts that are not ours come from, by name; empty if all are ours."""
        parts = log.inner(log.load_json(self.folder / log.CONFIG), "parts")
        return log.inner(parts, "places")

    def model(self) -> nn.Module:
        """The model as it was last saved, on the CPU. A record of a run has none."""
        # The newest that can be read: a damaged one is passed over.
        state = checkpoints.newest(self.folder / CHECKPOINTS)
        if state is None:
            raise FileNotFoundError(f"{self.folder} holds no checkpoint, so no model; train again")
        # Made anew with random weights, which the checkpoint's then replace.
        model = (self.parts or Parts.ours(self.config)).model(self.config.model)
        checkpoints.restore(state, model)
        return model.eval()


def run_folder(config: TrainConfig, parts: Parts | None = None) -> Path:
    """The folder of a run of this config inside the data folder: each config has its own.

    A run made of other parts has a folder of its own, and so has one whose precision is forced: no
    model is ever taken for another.
    """
    asked = devices.asked_precision(config.precision)
    forced = f"-{asked}" if asked != config.precision else ""
    made_of = f"-mine-{parts.key}" if parts and parts.made_by else ""
    # The key is a hash of all settings: runs that differ in one of them never meet in a folder.
    return data_folder() / "trained" / f"{config.name}-{config.key}{forced}{made_of}"


def asked_for(config: TrainConfig, parts: Parts) -> Record:
    """Everything that decides how a run goes, as its folder stores it."""
    # Stored as JSON beside the log, so that a run can be understood without this code.
    asked = asdict(config)
    if parts.made_by:
        versions = {f"your {name}": maker.hash[:8] for name, maker in parts.made_by.items()}
        asked["parts"] = {"key": parts.key, "places": parts.places, "versions": versions}
    return asked


def train(
    config: TrainConfig,
    data: TrainData,
    folder: str | os.PathLike[str] | None = None,
    listeners: Sequence[log.Listener] = (),
    parts: Parts | None = None,
    until: float = math.inf,
) -> Run:
    """Train, or finish what an earlier call began; a finished run is not repeated.

    In the same `folder`, with more steps in its config, a run goes on where it ended.
    `data` is what it trains on, such as `prepare(config)`. `folder` is where the run is kept; None:
    its place in the data folder. Each of `listeners` is called with every record of the log.
    `parts` is what the run is made of; None: ours. `until` is the time, in seconds of
    `time.time()`, at which it stops as if asked to.
    Raises: DivergedError; KeyboardInterrupt, after the current step has been saved; OSError if a
    checkpoint cannot be written. The last checkpoint survives all of them.
    """
    if not isinstance(data, TrainData):
        kind = type(data).__name__
        raise TypeError(f"train takes the data second, such as prepare(config), not a {kind}")
    # Everything below calls these parts, never one of ours by name.
    parts = parts or Parts.ours(config)
    run = Run(config, Path(folder or run_folder(config, parts)), parts=parts)
    if is_done(run):  # checked without a lock, so that it works on a read-only disk too
        return run
    # Training seeds all generators; whoever called goes on as if nothing had been drawn.
    before = checkpoints.random_state()
    try:
        # Outside of everything else: each process has to leave the group, whatever happens.
        with devices.process_group(config.device):
            # Of several processes, only the first holds the lock, reads and writes. The others
            # get from it what they need.
            if devices.process_rank() > 0:
                Trainer(run, data).run(until)
                return run
            with locked(run.folder):
                for place in (run.folder, run.folder / log.TOKENIZER):
                    remove_leftovers(place, age=0)  # nobody else writes here now
                # Under the lock, or two processes could both find the folder free.
                log.claim_folder(run.folder, asked_for(config, parts))
                with log.RunLog(run.folder, listeners) as run_log:
                    Trainer(run, data, run_log).run(until)
    finally:
        checkpoints.restore_random_state(before)  # the caller's random numbers go on undisturbed
    return run


def is_done(run: Run) -> bool:
    """Whether the run has finished, and its model can be loaded."""
    if run.status != "finished" or not (run.folder / log.LINES).is_file():
        return False
    # The log may say so while the newest checkpoint is damaged, or was removed.
    state = checkpoints.newest(run.folder / CHECKPOINTS) or {}
    # The newest checkpoint has to be of this very config, and of the end of its run.
    made_of = run.parts or Parts.ours(run.config)
    is_same = state.get("config") == run.config.key and state.get("parts") == made_of.key
    return is_same and state["finished"]


class Trainer:
    """A run in progress: the model, and everything that changes from step to step.

    `run_log` is open for writing; None in all processes but the first, which writes the files.
    """

    def __init__(self, run: Run, data: TrainData, run_log: log.RunLog | None = None) -> None:
        config = run.config
        self.config = config
        self.folder = run.folder
        self.data = data
        self.log = run_log
        self.parts = parts = run.parts or Parts.ours(config)
        self.processes = devices.process_count()
        # Equal parts, because a mean of means is the mean of the batch only then.
        if config.batch_size % (config.accumulation * self.processes):
            raise ValueError(
                f"batch_size={config.batch_size} cannot be cut into {self.processes} processes ·"
                f" accumulation={config.accumulation} equal parts; change one of the three"
            )
        # Where and in which precision: asked for, or the best that this machine has.
        self.device = devices.pick_device(config.device)
        self.precision = devices.pick_precision(self.device, config.precision)
        devices.tune(self.device)
        # Before the model is made, as its first weights are drawn from these generators.
        checkpoints.seed_everything(config.seed)
        # Drawn on the CPU: the same weights whatever the device.
        self.model = parts.model(config.model).to(self.device)
        # `forward` shares its weights with `model`, which is what is evaluated and saved: the names
        # in a checkpoint are the same with and without torch.compile and several processes.
        self.forward: Any = devices.compiled(self.model) if config.compile else self.model
        if self.processes > 1:
            # It begins by sending the first process's weights to all others.
            self.forward = DistributedDataParallel(self.forward)
        # After `.to(device)`: the optimizer holds on to the tensors that it is given.
        self.optimizer = parts.optimizer(self.model.parameters(), config.optimizer)
        # The data have a generator of their own: evaluating or saving does not change their order.
        self.order = torch.Generator().manual_seed(config.seed)
        # From here on: what changes from step to step, and what a checkpoint keeps.
        self.step = self.tokens = 0
        self.seconds = 0.0  # that the run had taken by the end of the last step
        self.pause = 0.0  # seconds of the longest evaluation or checkpoint
        self.watch = ClimbWatch()
        self.finished = False
        self.flags: list[str] = []

    def run(self, until: float = math.inf) -> None:
        """Take the steps that are left, and record how the run ends."""
        folder = self.folder / CHECKPOINTS
        # From here on Ctrl-C only sets a flag, which the loop asks between two steps.
        with guards.stop_on_signal(until) as asked_to_stop:
            self.begin(devices.from_first_process(lambda: checkpoints.newest(folder)))
            try:
                # Whatever ends the run early is recorded with its reason, and then raised all the
                # same.
                self.take_steps(asked_to_stop)
            except BaseException as error:
                with suppress(OSError):  # the disk may be full
                    is_diverged = isinstance(error, DivergedError)
                    self.outcome("diverged" if is_diverged else "stopped", str(error))
                raise
            self.outcome("finished")

    def begin(self, state: State | None) -> None:
        """Go on from the state of a checkpoint, or begin anew if there is none."""
        if state is not None:
            self.resume(state)
        # What the machine reaches in one large matmul: the MFU is a share of it.
        # Measured and not looked up: data sheets promise what no program reaches.
        self.peak = matmul_peak(self.precision, str(self.device))
        if state is None:
            self.describe_and_check()
        # What came before does not count as the run's time; what earlier sessions took does.
        self.started = time.perf_counter() - self.seconds
        if state is None:
            # Guessing costs ln V, so the first point of the curve says whether the model is sound.
            untrained = self.validation()
            self.watch = ClimbWatch(untrained["validation_loss"])
            if self.log:
                self.log.append({"step": 0, "tokens": 0, "seconds": 0.0, **untrained})
        # The clock of steps begins here: what came before was not training.
        self.end_pause()
        self.outcome("running")

    def describe_and_check(self) -> None:
        """Record where the run begins, and check whether its curve can be trusted."""
        if self.log is None:
            return
        self.log.truncate(0)  # of a session that ended before it saved anything
        environment = log.environment(
            **devices.describe(self.device, self.precision),
            processes=self.processes,
            peak_flops_per_second=self.peak,
        )
        write_json(self.folder / log.ENVIRONMENT, environment)
        if isinstance(self.data.tokenizer, Tokenizer):  # a learner's is opened with their parts
            token_files.save_tokenizer(self.data.tokenizer, self.folder / log.TOKENIZER)
        # This batch has a generator of its own, or the first step would get another batch.
        context = self.config.model.context_length
        order = torch.Generator()
        batch = self.parts.get_batch(self.data.train, 2, context, self.device, order)
        self.flags = guards.before_training(self.model, self.data, *batch)

    def take_steps(self, asked_to_stop: Callable[[], bool]) -> None:
        """The loop of the run: steps, and between them what is due.

        When `asked_to_stop`, it saves and raises KeyboardInterrupt. All processes decide alike,
        because they see the same loss and the same clock: if one of them alone raised an error, the
        others would wait for it forever.
        """
        config = self.config
        while not self.finished:
            # On a GPU these two are promises: it may still be computing them.
            loss, norm = self.update()
            # The rest of the loop decides what happens between two steps.
            # Decided first, because the last step evaluates and saves, whatever its number.
            self.finished = self.time_is_up() or self.step >= config.steps
            stops = devices.any_process(asked_to_stop())  # a signal may reach one process alone
            evaluates = self.is_due(config.eval_every)
            logs = evaluates or self.is_due(config.log_every)
            saves = stops or self.is_due(config.checkpoint_every)
            # Reading a loss on a GPU means waiting for it, so there it is read only when needed.
            if logs or saves or self.device.type == "cpu":
                self.check_finite(loss, norm)
            # Evaluated before it is saved: a checkpoint then counts on a log that has this line.
            if logs:
                self.record(loss, norm, evaluates)
            if saves:
                self.save()
            if stops and not self.finished:
                # Only now, when the step is saved: the next session begins with the one after it.
                raise KeyboardInterrupt(
                    f"stopped after step {self.step:,}, which is saved; make the same call to go on"
                )
            if logs or saves:
                self.end_pause()

    def is_due(self, every: int) -> bool:
        """Whether to do now what is done every so many steps, and after the last one."""
        return self.finished or self.step % every == 0

    def end_pause(self) -> None:
        """Go on measuring steps: evaluating and saving do not count in tokens per second."""
        # Tokens per second are counted from here.
        self.mark = time.perf_counter(), self.tokens
        ended = self.seconds
        self.seconds = self.clock()
        self.pause = max(self.pause, self.seconds - ended)

    def time_is_up(self) -> bool:
        """Whether another step, as long as this one, would end after the time limit.

        An evaluation or a checkpoint that is due first is taken to last its longest time so far;
        after the last step, they do not count.
        """
        ended = self.seconds
        self.seconds = self.clock()
        # The step that would follow, and what comes before it, must fit into the time that is left.
        due = self.is_due(self.config.eval_every) or self.is_due(self.config.checkpoint_every)
        step = self.seconds - ended
        pause = self.pause if due else 0.0
        return self.seconds + pause + step > (self.config.max_seconds or math.inf)

    def update(self) -> tuple[Tensor, Tensor]:
        """Take one step; return the loss of its batch and the norm of the gradients."""
        config = self.config
        context = self.config.model.context_length
        # (batch_size, context) each: inputs, and the same one token later.
        batch = self.parts.get_batch(
            self.data.train, config.batch_size, context, self.device, self.order
        )
        # Every process draws the same batch, and computes its share of the sequences.
        rank = devices.process_rank()
        inputs, targets = (ids.chunk(self.processes)[rank] for ids in batch)
        # Added up on the device: `item` after each piece would wait for it.
        loss = torch.zeros((), device=self.device)
        pieces = zip(*(ids.chunk(config.accumulation) for ids in (inputs, targets)), strict=True)
        for number, (some_inputs, some_targets) in enumerate(pieces, 1):
            # Each process adds up the gradients of its pieces; they are averaged over the
            # processes only with the last piece.
            is_last = self.processes == 1 or number == config.accumulation
            with nullcontext() if is_last else self.forward.no_sync():
                with devices.autocast(self.device, self.precision):
                    # Divided here, so that the sum over the pieces is the mean of the batch.
                    some_loss = self.parts.loss(self.forward(some_inputs), some_targets)
                    some_loss = some_loss / config.accumulation
                # Gradients of the pieces add up in `.grad`, as nothing sets them to None in
                # between.
                some_loss.backward()
            loss += some_loss.detach()
            self.tokens += some_inputs.numel() * self.processes
        # Of all processes, so that every one of them sees the same loss, and stops at the same
        # step.
        loss = devices.process_mean(loss)
        # After the backward pass all processes hold the same gradients, and clip them alike.
        norm = self.parts.clipping(self.model.parameters(), config.optimizer.max_l2_norm)
        # Counted before the rate is asked for, so that the first step is step 1.
        self.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        # A step along NaN would spoil the weights. On a GPU the norm is not tested, as that would
        # mean waiting for it (`save` refuses spoilt weights).
        if self.device.type != "cpu" or bool(norm.isfinite()):
            self.optimizer.step()
        # To None, not to zeros: the next backward pass then writes instead of adding.
        self.optimizer.zero_grad()
        return loss, norm

    def learning_rate(self) -> float:
        """The learning rate of this step; steps count from 1 here, so none is wasted at rate 0.

        If the time limit will end the run before its last step, the schedule follows the share of
        the time that has passed.
        """
        schedule = self.config.optimizer
        end = self.config.cosine_cycle_iters
        rates = schedule.max_learning_rate, schedule.min_learning_rate
        # Without a limit the share is 0, and the steps alone decide.
        share = min(self.seconds / (self.config.max_seconds or math.inf), 1.0)
        step = max(self.step, round(share * end))
        return self.parts.schedule(step, *rates, schedule.warmup_iters, end)

    def clock(self) -> float:
        """The seconds so far; with a time limit, the same in every process.

        It waits for the GPU then, so it is called once per step.
        """
        if self.config.max_seconds is None:
            return self.elapsed()
        # Else the clock would be read while the GPU still works on the steps before.
        devices.synchronize(self.device)
        return devices.process_mean(torch.tensor(self.elapsed(), device=self.device)).item()

    def elapsed(self) -> float:
        """The seconds that the run has taken, in this session and those before."""
        return time.perf_counter() - self.started

    def check_finite(self, loss: Tensor, norm: Tensor) -> None:
        """Raise DivergedError if a number is NaN or infinite; the checkpoints stay as they are."""
        if not (loss.isfinite() and norm.isfinite()):
            self.give_up(
                f"the loss is {loss.item():.4g} and the norm of the gradients {norm.item():.4g}"
            )

    def give_up(self, reason: str) -> NoReturn:
        """Raise DivergedError; the last checkpoint stays."""
        advice = "a smaller max_learning_rate or a longer warm-up may help"
        raise DivergedError(f"{reason} at step {self.step:,}; {advice}")

    def record(self, loss: Tensor, norm: Tensor, evaluates: bool) -> None:
        """Write a line of the log, with a validation loss if `evaluates`.

        Raises: DivergedError if the loss has climbed too far.
        """
        devices.synchronize(self.device)
        # Since the last pause: tokens per second are those of training alone.
        began, tokens = self.mark
        speed = (self.tokens - tokens) / (time.perf_counter() - began)
        # FLOPs that the model needs, not those that were computed: waste does not raise an MFU.
        flops = accounting.flops_per_token(self.config.model) * speed / self.processes
        if flops > self.peak:  # then the machine was busy when its peak was measured
            self.peak = max(self.peak, matmul_peak(self.precision, str(self.device)))
        line = {
            "step": self.step,
            "tokens": self.tokens,
            "seconds": self.elapsed(),
            "train_loss": loss.item(),
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "gradient_norm": norm.item(),
            "tokens_per_second": speed,
            "mfu": flops / self.peak,
        }
        if evaluates:  # a line without it has fewer columns, and the table NaN there
            line |= self.validation()
        if self.log:
            self.log.append(line)
        # After the line is written: the log shows what the run was given up for.
        climbed = self.watch.climbed(line["train_loss"])
        if climbed > self.config.divergence:
            self.give_up(f"the mean of {guards.WINDOW} losses has climbed by {climbed:.2f} nats")

    def validation(self) -> dict[str, float]:
        """The loss on the validation split in three units; in the end, a flag if it is too good."""
        context = self.config.model.context_length
        size = self.config.eval_tokens
        # By one process alone, as all of them have the same weights.
        work = partial(evaluate, self.model, self.data, context, size)
        evaluation: Evaluation = devices.from_first_process(
            partial(work, device=self.device, precision=self.precision)
        )
        if self.finished:  # before, nobody would read it, and the floor takes time to compute
            flag = guards.too_good(evaluation.bits_per_byte, self.data)
            if flag:
                self.flags.append(flag)
        return {f"validation_{unit}": value for unit, value in evaluation._asdict().items()}

    def save(self) -> None:
        """Write a checkpoint with everything needed to go on."""
        # A spoilt checkpoint would replace a good one, and nothing could be resumed from it.
        if not all(weight.isfinite().all() for weight in self.model.parameters()):
            self.give_up("a weight is NaN or infinite")  # and keep the checkpoint before
        if self.log is None:
            return
        # The log comes last: `position` forces it to disk, so no checkpoint is ahead of its log.
        state = {
            "config": self.config.key,
            "parts": self.parts.key,
            "precision": devices.name_of(self.precision),
            "data": self.data.made_from,
            "iteration": self.step,
            "finished": self.finished,
            "watch": asdict(self.watch),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": checkpoints.random_state(),
            "order": self.order.get_state(),
            "tokens": self.tokens,
            "seconds": self.elapsed(),
            "flags": self.flags,
            "log": self.log.position(),
        }
        checkpoints.keep_last(state, self.folder / CHECKPOINTS, self.config.keep_checkpoints)
        self.outcome("running")

    def resume(self, state: State) -> None:
        """Restore the run as it was when `state` was saved, including its log.

        A run keeps the precision that it began in, even on a machine that would choose another.
        Raises: ValueError if the data have changed, or another program's checkpoint is the newest.
        """
        if wrong := log.misfit(state, IN_A_CHECKPOINT):
            raise ValueError(
                f"the newest checkpoint in {self.folder / CHECKPOINTS} {wrong}, so `train` did not"
                " write it; move it elsewhere"
            )
        # Only hashes are stored; they say that something changed, and which of the files.
        data = self.data.made_from
        if changed := [name for name in data if data[name] != state["data"].get(name)]:
            raise ValueError(
                f"{self.folder} holds a run on other data: {' and '.join(changed)} changed since it"
                " was saved. Restore the old data, or give another folder for a new run"
            )
        # A curve that changes its precision halfway would be that of no one run.
        self.precision = FORMATS[state["precision"]].dtype
        # Weights, moments, every random generator, the order of the data, and the log.
        checkpoints.restore(state, self.model, self.optimizer)
        checkpoints.restore_random_state(state["random"])
        self.order.set_state(state["order"])
        self.step = state["iteration"]
        self.tokens = state["tokens"]
        self.seconds = state["seconds"]
        self.flags = state["flags"]
        self.watch = ClimbWatch(**state["watch"])
        # The config differs if the run was made longer; or in any way if the folder had only
        # checkpoints and no config to compare with, perhaps those of a run with more steps.
        is_same = state["config"] == self.config.key
        is_over = self.step >= self.config.steps
        self.finished = is_over or (is_same and state["finished"])
        if not is_same and is_over:
            self.flags.append(
                f"no step was taken: its checkpoint, of another config, is of step {self.step:,}"
            )
        elif not is_same:
            self.flags.append(
                f"it went on from step {self.step:,} with a changed config, such as more steps, so"
                " its learning rates are those of no one run"
            )
        if self.log:
            # Lines of steps after the checkpoint would stand there twice, since they are done
            # again.
            self.log.truncate(state["log"])
            if self.log.position() < state["log"]:
                self.flags.append("the log's first lines are missing: the file was removed or cut")

    def outcome(self, status: str, reason: str = "") -> None:
        """Record how far the run has come, and the reasons not to believe its curve."""
        if self.log:
            content = {"status": status, "step": self.step, "reason": reason, "flags": self.flags}
            write_json(self.folder / log.OUTCOME, content)


def train_and_print(
    config: TrainConfig, folder: str | os.PathLike[str] | None = None, parts: Parts | None = None
) -> Run:
    """Train and print how it goes, as the command line does; arguments as in `train`.

    Raises: as `train`; ValueError if the memory is not enough.
    """
    parts = parts or Parts.ours(config)
    place = Path(folder or run_folder(config, parts))

    def show(record: Record) -> None:
        if record["step"] == 0:
            begun = log.load_json(place / log.ENVIRONMENT)
            print("matmuls in {precision} on {device}, threads: {threads}".format(**begun))
        print(*progress_lines(config, record), sep="\n", flush=True)

    run = Run(config, place, parts=parts)
    if not is_done(run):
        if foretold := lack_of_memory(config):
            say(foretold)
        try:
            # Several processes may all prepare the data: a lock lets one of them make each file.
            data = parts.prepare(config)
        except MemoryError as error:
            raise ValueError(
                "the memory was not enough to make tokens of the text: to train a tokenizer, its"
                " longest word (a piece without a space or line end) takes about 45 times its bytes"
            ) from error
        try:
            train(config, data, place, [show], parts)
        except (MemoryError, RuntimeError) as error:  # of NumPy, and of torch
            if isinstance(error, RuntimeError) and "memory" not in str(error):
                raise
            raise ValueError(f"the memory was not enough: {LESS_MEMORY}") from error
    if os.environ.get("RANK", "0") == "0":  # of several processes, the first one prints
        print(f"trained: {run.folder}")
        for flag in run.flags:
            print(f"do not trust this curve yet: {flag}")
    return run


def lack_of_memory(config: TrainConfig) -> str:
    """In a sentence, that a step needs more memory than is free, and what to do; "": it does not.

    The bytes are an estimate for our model in float32, for each of several processes.
    """
    # The parts of a batch that are computed one after another, and in several processes.
    pieces = config.accumulation * int(os.environ.get("WORLD_SIZE", "1"))
    needed = accounting.peak_bytes(config.model, max(config.batch_size // pieces, 1)).total
    device = devices.pick_device(config.device)
    if device.type == "cuda":  # the GPU that this process will have, of several
        number = int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count()
        free = torch.cuda.mem_get_info(number)[0]
    else:
        free = psutil.virtual_memory().available
    if needed <= free:
        return ""
    sizes = f"about {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are free"
    return f"a step needs {sizes}: {LESS_MEMORY}"


def progress_lines(config: TrainConfig, record: Record) -> list[str]:
    """A record of the log as lines for a terminal of 80 columns; an evaluation has its own line.

    >>> from workbook.training import preset
    >>> record = {"step": 100, "seconds": 12.0, "train_loss": 3.2, "validation_loss": 3.3}
    >>> record |= {"validation_bits_per_byte": 1.4, "tokens_per_second": 30_514.0, "mfu": 0.35}
    >>> print(*progress_lines(preset("laptop"), record), sep="\\n")
    step 100 of 800  loss 3.200  30,514 tokens/s  MFU 35%  0:01:24 left
    step 100 of 800  validation 3.300  1.400 bits/byte
    """
    found = {name: value for name, value in record.items() if name.startswith("validation")}
    step = {name: value for name, value in record.items() if name not in found}
    lines = [progress_line(config, step) + time_left(config, step)] if record["step"] else []
    return [*lines, progress_line(config, found | {"step": record["step"]})] if found else lines


def progress_line(config: TrainConfig, record: Record) -> str:
    """A record of the log as a readable line."""
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


def time_left(config: TrainConfig, record: Record) -> str:
    """How long the steps after this record take at the pace of those before; "" if none is known.

    >>> from workbook.training import preset
    >>> time_left(preset("laptop", steps=100), {"step": 25, "seconds": 30.0})
    '  0:01:30 left'
    """
    if not 0 < record["step"] < config.steps:
        return ""
    # As if all steps, with their share of evaluations, took as long as those so far.
    left = record["seconds"] * (config.steps / record["step"] - 1)
    limit = (config.max_seconds or math.inf) - record["seconds"]
    return f"  {timedelta(seconds=round(max(min(left, limit), 0)))} left"
