"""How well a model predicts text that it was not trained on, in three units.

nats per token     the loss itself
perplexity         exp of it: how many equally likely tokens the model hesitates between
bits per byte      the loss per byte of text: models with different tokenizers can be compared
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from workbook.training import devices
from workbook.training.data import windows
from workbook.transformer import fused


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The mean loss over some text."""

    loss: float  # nats per token
    tokens: int
    bytes: int

    @property
    def perplexity(self) -> float:
        """exp of the loss; infinite if that overflows."""
        return math.exp(self.loss) if self.loss < 700 else math.inf

    @property
    def bits_per_byte(self) -> float:
        """The bits that the text costs with this model, divided by its bytes."""
        return self.loss * self.tokens / math.log(2) / self.bytes


@torch.no_grad()
def evaluate(
    model: nn.Module,
    ids: np.ndarray,
    token_bytes: np.ndarray,
    context_length: int,
    max_tokens: int,
    batch_size: int = 32,
    device: torch.device | str = "cpu",
    precision: torch.dtype = torch.float32,
) -> Evaluation:
    """The loss on the first `max_tokens` tokens of `ids`, in windows that do not overlap.

    `token_bytes` has the length of each token in bytes, by token id. What does not fill a window is
    left out. The windows do not depend on `batch_size`: two evaluations can be compared.
    """
    device = torch.device(device)
    count = min(max_tokens, len(ids) - 1) // context_length
    if count < 1:
        raise ValueError(
            f"{len(ids):,} ids and max_tokens={max_tokens:,} do not fill one window of"
            f" {context_length:,} and its targets; increase the smaller of the two"
        )
    starts = torch.arange(count) * context_length
    total, size = torch.zeros((), dtype=torch.float64), 0
    was_training = model.training
    model.eval()
    for part in starts.split(batch_size):
        inputs, targets = windows(ids, part, context_length, device)
        with devices.autocast(device, precision):
            logits = model(inputs)
        total += fused.cross_entropy(logits, targets).item() * targets.numel()
        size += int(token_bytes[targets.cpu().numpy()].sum())
    model.train(was_training)
    tokens = count * context_length
    return Evaluation(loss=total.item() / tokens, tokens=tokens, bytes=size)
