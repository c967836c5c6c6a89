"""How well a model predicts text that it was not trained on, in three units.

nats per token     the loss itself
perplexity         exp of it: how many equally likely tokens the model hesitates between
bits per byte      the loss per byte of text: models with different tokenizers can be compared
"""

import math
from typing import NamedTuple

import torch
from torch import nn

from workbook.training import devices, loss_bounds
from workbook.training.data import TrainData, windows
from workbook.transformer import fused

TOGETHER = 32  # windows that go through the model at a time


class Evaluation(NamedTuple):
    """The mean loss over some text in three units."""

    loss: float  # nats per token
    perplexity: float  # infinite if exp of the loss overflows
    bits_per_byte: float


@torch.no_grad()
def evaluate(
    model: nn.Module,
    data: TrainData,
    context_length: int,
    max_tokens: int,
    device: torch.device | str = "cpu",
    precision: torch.dtype = torch.float32,
) -> Evaluation:
    """The loss on the first `max_tokens` validation tokens, in windows that do not overlap.

    What does not fill a window is left out.
    """
    device = torch.device(device)
    # The same windows at every call, so that a change of the loss is a change of the model.
    ids = data.validation
    # One token less than there are: the last one has none after it to predict.
    count = min(max_tokens, len(ids) - 1) // context_length
    if count < 1:
        raise ValueError(
            f"{len(ids):,} ids and max_tokens={max_tokens:,} do not fill one window of"
            f" {context_length:,} and its targets; increase the smaller of the two"
        )
    starts = torch.arange(count) * context_length
    # A mean of batch means would be wrong: the last batch may be smaller. So sums are kept.
    nats, size = 0.0, 0
    # A learner's model may have dropout, which must be off here and on again afterwards.
    was_training = model.training
    model.eval()
    for some_starts in starts.split(TOGETHER):
        inputs, targets = windows(ids, some_starts, context_length, device)
        with devices.autocast(device, precision):
            logits = model(inputs)
        # A Python float adds up in float64, on the CPU.
        nats += fused.cross_entropy(logits, targets).item() * targets.numel()
        # The bytes of the very tokens that were predicted, not an average of the corpus.
        size += int(data.token_bytes[targets.cpu().numpy()].sum())
    model.train(was_training)
    tokens = count * context_length
    loss = nats / tokens
    return Evaluation(
        loss=loss,
        # exp(710) is too large for a float, and Python raises there.
        perplexity=math.exp(loss) if loss < 700 else math.inf,
        bits_per_byte=loss_bounds.bits_per_byte(loss, size / tokens),
    )
