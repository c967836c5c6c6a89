"""What stops a run before its last step, and what casts doubt on its curve.

- `ClimbWatch`: the loss climbs and does not come down. A single bad batch is not divergence, and
  many spikes heal. So means of ten logged losses are compared, and the run goes on as long as they
  stay near the lowest so far.
- `TimeLimit`: the time is up.
- `stop_on_signal`: Ctrl-C, or a cluster's warning; the current step is finished and saved first.
- `before_training`, `too_good`: flags, that is, sentences that say why a loss looks better than
  the model is. They stop nothing; whoever reads the log sees them beside the curve.
"""

import math
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median_low

import numpy as np
import torch
from torch import Tensor, nn

from workbook.training.data import TrainData, shared_documents
from workbook.training.evaluate import Evaluation

WINDOW = 10  # logged losses
RECENT = 5  # steps whose median time predicts that of the next


@dataclass
class ClimbWatch:
    """How far the mean of the last ten logged losses has climbed. Checkpoints store its fields."""

    lowest: float = math.inf  # of the means so far; at first, the loss of the untrained model
    recent: list[float] = field(default_factory=list)

    def climbed(self, loss: float) -> float:
        """Nats between the mean of the last ten losses and the lowest mean so far; 0 at first."""
        self.recent = [*self.recent, loss][-WINDOW:]
        if len(self.recent) < WINDOW:
            return 0.0
        mean = sum(self.recent) / WINDOW
        self.lowest = min(self.lowest, mean)
        return mean - self.lowest


class TimeLimit:
    """Whether another step would end within `max_seconds`; None: it always would.

    A step is expected to take the median time of the last five. So one slow step does not end a run
    early, nor does anything that is not a step: setting up, evaluating, saving, the sessions before
    this one. The first step of a session does not count either, because compiling is part of it.
    """

    def __init__(self, max_seconds: float | None):
        self.max_seconds = max_seconds
        self.steps = 0  # of this session
        self.recent: deque[float] = deque(maxlen=RECENT)  # seconds of a step

    def is_up(self, elapsed: float, step: float) -> bool:
        """Whether another step would end too late. Ask after each step.

        `elapsed` is all the time that the run has taken so far, and `step` that of the last step
        alone, both in seconds.
        """
        self.steps += 1
        if self.steps > 1:
            self.recent.append(step)
        expected = median_low(self.recent) if self.recent else 0.0
        return self.max_seconds is not None and elapsed + expected > self.max_seconds

    def share(self, elapsed: float) -> float:
        """The share of the time that has passed, 0 to 1; 0 without a limit."""
        return min(elapsed / self.max_seconds, 1.0) if self.max_seconds else 0.0


# Ctrl-C or "interrupt the kernel"; a cluster's warning, in two ways; a terminal that was closed.
# Windows lacks the last two.
NAMES = ("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP")
STOPS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))
HANG_UP = getattr(signal, "SIGHUP", None)


@dataclass
class StopFlag:
    """Whether the run was asked to stop, or it is past `until`, in seconds of `time.time()`."""

    until: float = math.inf
    asked: bool = False

    @property
    def is_set(self) -> bool:
        """Whether the run is to stop after the current step."""
        return self.asked or time.time() >= self.until


@contextmanager
def stop_on_signal(until: float = math.inf) -> Iterator[StopFlag]:
    """A flag that the first stop signal sets; the second one stops the process at once.

    It is also set once it is past `until`. Outside the main thread signals cannot be caught, and do
    what they always do. SIGHUP stays ignored if it was, as under `nohup`.
    """
    stop = StopFlag(until)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in STOPS}
    if before.get(HANG_UP) is signal.SIG_IGN:
        del before[HANG_UP]

    def set_flag(number, _frame):
        stop.asked = True
        signal.signal(number, before[number] or signal.SIG_DFL)

    for number in before:
        signal.signal(number, set_flag)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


TOO_GOOD = "too good to be true"
TOLERANCE = 1e-4  # of the largest logit: another token elsewhere may change how sums are rounded


@torch.no_grad()
def looks_ahead(model: nn.Module, inputs: Tensor) -> str | None:
    """A flag if a later token changes an earlier logit: the model reads the answers.

    From each of a few places on, the tokens of one sequence are changed, and all logits before it
    are compared. Logits that are not finite cannot be compared, and raise a flag of their own.
    """
    sequence, length = inputs[:1], inputs.shape[-1]
    was_training = model.training
    model.eval()
    logits = model(sequence).float()
    if not logits.isfinite().all():
        model.train(was_training)
        return "logits are infinite or NaN before the first step: the forward pass overflows"
    changes = {}  # by place
    for place in {1, length // 2, length - 1} & set(range(1, length)):
        changed = sequence.clone()
        changed[:, place:] = (changed[:, place:] + 1) % logits.shape[-1]
        changes[place] = (model(changed).float() - logits)[:, :place].abs().max().item()
    model.train(was_training)
    limit = TOLERANCE * logits.abs().max().item()
    for place, change in changes.items():
        if not change <= limit:  # also true for NaN
            return (
                f"other tokens from position {place} on change logits before it by {change:.2g}:"
                " the model sees what it should predict; is the causal mask missing?"
            )
    return None


def targets_shifted(inputs: Tensor, targets: Tensor) -> str | None:
    """A flag if the targets of a batch are not its inputs one position later."""
    if inputs.shape == targets.shape and torch.equal(inputs[:, 1:], targets[:, :-1]):
        return None
    return (
        "targets are not the inputs one position later: the model learns to copy, or to predict"
        " something else"
    )


def splits_apart(data: TrainData) -> str | None:
    """A flag if the train and validation splits share documents."""
    if data.end_id is None:
        if np.shares_memory(data.train, data.validation):
            return "train and validation are the same tokens: the loss shows memory, not skill"
        return None
    shared = shared_documents(data)
    if shared:
        return (
            f"documents of the validation split that are in the train split too: {shared:,}; the"
            " validation loss shows memory as well as skill"
        )
    return None


def before_training(
    model: nn.Module, data: TrainData, inputs: Tensor, targets: Tensor
) -> list[str]:
    """The flags that can be raised before the first step."""
    flags = (targets_shifted(inputs, targets), splits_apart(data), looks_ahead(model, inputs))
    return [flag for flag in flags if flag]


def too_good(found: Evaluation, data: TrainData) -> str | None:
    """A flag if the loss is lower than any honest model's could be."""
    if not found.bits_per_byte < data.floor:  # NaN is not too good
        return None
    return (
        f"{TOO_GOOD}: {found.bits_per_byte:.3f} bits per byte on the validation split,"
        f" below the floor of {data.floor:.3f} ({data.floor_reason}); look for targets in the"
        " input, shared documents, or a wrong count of bytes"
    )
