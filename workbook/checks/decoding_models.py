"""Models without any learning, to try `decode` on: what they say next can be worked out."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from workbook.checks.decoding_slips import SHARES, VOCAB

SURE = 40.0  # a logit so far above the others that the rest is never drawn


class Model(nn.Module):
    """Logits for ids. It names its context as models do, and notes how it was called."""

    def __init__(self, vocab_size: int, context_length: int):
        super().__init__()
        self.context_length = self.max_seq_len = context_length
        self.vocab_size, self.device = vocab_size, torch.device("cpu")
        self.config = SimpleNamespace(context_length=context_length, vocab_size=vocab_size)
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float32, device="cpu"))
        self.longest = 0
        self.with_gradients = False

    def forward(self, ids: Tensor, *others: Any, **named: Any) -> Tensor:
        if not isinstance(ids, Tensor):
            raise TypeError(
                f"the model takes a tensor of ids (1, T), and got a {type(ids).__name__}"
            )
        if ids.is_floating_point():
            raise TypeError(f"the model takes a tensor of whole numbers, and got {ids.dtype}")
        self.longest = max(self.longest, ids.shape[-1])
        self.with_gradients |= torch.is_grad_enabled()
        return self.logits(ids) * self.scale


class Sure(Model):
    """Leaves no choice: the next id follows from all that are seen, and from where they stand."""

    def __init__(self, context_length: int):
        super().__init__(VOCAB, context_length)

    def logits(self, ids: Tensor) -> Tensor:
        places = torch.arange(2, ids.shape[-1] + 2, device=ids.device)
        following = ((ids + 1) * places).cumsum(-1) % VOCAB
        return SURE * nn.functional.one_hot(following, VOCAB).to(torch.float32)


class Undecided(Model):
    """Says the same of each next id, whatever came before."""

    def __init__(self):
        super().__init__(len(SHARES), 4096)
        # The 3 changes no probability, but makes the logits unlike the logarithms of any.
        self.row = torch.tensor(SHARES, dtype=torch.float32, device="cpu").log() + 3

    def logits(self, ids: Tensor) -> Tensor:
        return self.row.expand(*ids.shape, len(SHARES))
