"""What stops a run before its last step, and what casts doubt on its curve.

- `ClimbWatch`: the loss climbs and does not come down. A single bad batch is not divergence, and
  many spikes heal. So means of ten logged losses are compared, and the run goes on as long as they
  stay near the lowest so far.
- `stop_on_signal`: Ctrl-C, or a cluster's warning; the current step is finished and saved first.
- `before_training`, `too_good`: flags, that is, sentences that say why a loss looks better than
  the model is. They stop nothing; whoever reads the log sees them beside the curve.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import torch
from torch import Tensor, nn

from workbook.training.data import TrainData

WINDOW = 10  # logged losses


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
        # From the lowest mean, not from the last: a slow climb counts as much as a fast one.
        return mean - self.lowest


# Ctrl-C or "interrupt the kernel"; a cluster's warning, in two ways; a terminal that was closed.
# Windows lacks the last two.
NAMES = ("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP")
STOPS = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]


@contextmanager
def stop_on_signal(until: float = math.inf) -> Iterator[Callable[[], bool]]:
    """A function that says whether the run is to stop: it was asked to, or is past `until`.

    `until` is in seconds of `time.time()`. The first stop signal asks; the second one stops the
    process at once. Outside the main thread signals cannot be caught, and do what they always do.
    """
    signals: list[int] = []

    def asked_to_stop() -> bool:
        # Asked between two steps: nothing is interrupted in the middle of one.
        return bool(signals) or time.time() >= until

    # Python lets only the main thread set handlers.
    if threading.current_thread() is not threading.main_thread():
        yield asked_to_stop
        return
    handlers = {number: signal.getsignal(number) for number in STOPS}
    # Under `nohup`, SIGHUP is ignored and stays so. A handler that is not Python's is None.
    before = {number: old for number, old in handlers.items() if old not in (signal.SIG_IGN, None)}

    def note(number: int, _frame: FrameType | None) -> None:
        # A handler may run between any two instructions, so it does no more than take a note.
        signals.append(number)
        signal.signal(number, before[number])  # the next one does what it always did

    for number in before:
        signal.signal(number, note)
    try:
        yield asked_to_stop
    finally:
        # Whoever called `train` finds the signals as they were.
        for number, handler in before.items():
            signal.signal(number, handler)


TOLERANCE = 1e-4  # of the largest logit: another token elsewhere may change how sums are rounded


@torch.no_grad()
def looks_ahead(model: nn.Module, inputs: Tensor) -> str | None:
    """A flag if a later token changes an earlier logit: the model reads the answers.

    The second half of one sequence is changed, and the logits of the first half are compared.
    Logits that are not finite cannot be compared, and raise a flag of their own.
    """
    # Dropout would change logits as well, at random.
    model.eval()
    logits = model(inputs[:1]).float()
    place = max(1, inputs.shape[1] // 2)
    changed = inputs[:1].clone()
    # Every token of the second half becomes another one, and none leaves the vocabulary.
    changed[:, place:] = (changed[:, place:] + 1) % logits.shape[-1]
    # Positions before `place` cannot have seen any of it, if the mask is right.
    change = (model(changed).float() - logits)[:, :place].abs().max().item()
    model.train()
    if not logits.isfinite().all():
        return "logits are infinite or NaN before the first step: the forward pass overflows"
    if change <= TOLERANCE * logits.abs().max().item():
        return None
    return (
        f"other tokens from position {place} on change logits before it by {change:.2g}:"
        " the model sees what it should predict; is the causal mask missing?"
    )


def targets_shifted(inputs: Tensor, targets: Tensor) -> str | None:
    """A flag if the targets of a batch are not its inputs one position later."""
    # Targets that equal the inputs are the usual mistake: the loss falls to 0, as the model copies.
    if inputs.shape == targets.shape and torch.equal(inputs[:, 1:], targets[:, :-1]):
        return None
    return (
        "targets are not the inputs one position later: the model learns to copy, or to predict"
        " something else"
    )


def splits_apart(data: TrainData) -> str | None:
    """A flag if the train and validation splits share documents."""
    if not data.shared_documents:
        return None
    # A document in both splits may have been learnt by heart, and then says nothing of others.
    return (
        "documents of the validation split that are in the train split too:"
        f" {data.shared_documents:,}; the validation loss shows memory as well as skill"
    )


def before_training(
    model: nn.Module, data: TrainData, inputs: Tensor, targets: Tensor
) -> list[str]:
    """The flags that can be raised before the first step, from a batch of the training data."""
    flags = (targets_shifted(inputs, targets), splits_apart(data), looks_ahead(model, inputs))
    return [flag for flag in flags if flag]


def too_good(bits_per_byte: float, data: TrainData) -> str | None:
    """A flag if the validation loss is lower than any honest model's could be."""
    # In bits per byte, since a loss per token depends on how long tokens are.
    if not bits_per_byte < data.floor:  # NaN is not too good
        return None
    return (
        f"too good to be true: {bits_per_byte:.3f} bits per byte on the validation split,"
        f" below the floor of {data.floor:.3f} ({data.floor_reason}); look for targets in the"
        " input, shared documents, or a wrong count of bytes"
    )
