"""Right modules of the model, as learners write them.

Those of the handout's names are the made-up repository's, which is right as a whole.
"""

import math

import torch
from made_repositories import module
from torch import nn

from attempts.lists import almost, judged, mistake, right

flat = module("flat", "cs336_basics/model.py")
Linear = flat.Linear
Embedding = flat.Embedding
RMSNorm = flat.RMSNorm
SwiGLU = flat.SwiGLU
RotaryPositionalEmbedding = flat.RotaryPositionalEmbedding
silu = flat.silu
for part in (Linear, Embedding, RMSNorm):
    right(part.__name__.lower())(part)
right("positionwise_feedforward")(SwiGLU)
right("rope")(RotaryPositionalEmbedding)


def drawn(d_out, d_in):
    std = math.sqrt(2 / (d_in + d_out))
    weight = torch.empty(d_out, d_in)
    return nn.Parameter(nn.init.trunc_normal_(weight, 0.0, std, -3 * std, 3 * std))


@right("positionwise_feedforward")
class OfUsualWidth(SwiGLU):
    """Takes multiples of 64 only, which the handout advises."""

    def __init__(self, d_model, d_ff):
        if d_ff % 64:
            raise ValueError("d_ff must be a multiple of 64")
        super().__init__(d_model, d_ff)


@right("embedding")
class TwoAxes(Embedding):
    """Takes (batch, seq) only."""

    def forward(self, token_ids):
        assert token_ids.ndim == 2
        return super().forward(token_ids)


@judged("rmsnorm", "correct", "and weights in float32, its result is in float32: convert it back")
class RMSNormAsInLlama(nn.Module):
    """Rounded before the gain, which is a row, of shape (1, d_model); x has three axes."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.g = nn.Parameter(torch.ones(1, d_model))

    def forward(self, x):
        assert x.ndim == 3
        high = x.float()
        return (high * (high.square().mean(-1, keepdim=True) + self.eps).rsqrt()).to(x) * self.g


@almost("rmsnorm", "an axis of length 1 is added in front")
class RMSNormOfThreeAxes(RMSNormAsInLlama):
    def forward(self, x):
        return super().forward(x.reshape(-1, *x.shape[-2:]))


@right("positionwise_feedforward")
class SwiGLUFused(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w13 = Linear(d_model, 2 * d_ff)
        self.w2 = Linear(d_ff, d_model)

    def forward(self, x):
        gate, up = self.w13(x).chunk(2, -1)
        return self.w2(silu(gate) * up)


@right("positionwise_feedforward")
class SwiGLUOfRoundWidth(SwiGLUFused):
    """It insists on what the handout advises."""

    def __init__(self, d_model, d_ff):
        assert d_ff % 64 == 0, "d_ff should be a multiple of 64"
        super().__init__(d_model, d_ff)


@mistake("positionwise_feedforward", "not understood: `there.weight`, `beside.weight`")
class SwiGLUOfStrangeNames(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.there = Linear(d_model, d_ff)
        self.beside = Linear(d_model, d_ff)
        self.back = Linear(d_ff, d_model)

    def forward(self, x):
        return self.back(silu(self.beside(x)) * self.there(x))


@right("rope")
class RopeOfOtherOrder(RotaryPositionalEmbedding):
    def __init__(self, d_model: int, base: float, context_length: int, device=None):
        super().__init__(base, d_model, context_length, device)

    def forward(self, token_positions, x):
        return super().forward(x, token_positions)


@right("rope")
class RopeOfComplexNumbers(nn.Module):
    def __init__(self, theta, d_k, max_seq_len):
        super().__init__()
        frequencies = theta ** (-torch.arange(0, d_k, 2) / d_k)
        angles = torch.arange(max_seq_len)[:, None] * frequencies
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x, token_positions):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * self.turns[token_positions]).flatten(-2).type_as(x)


@mistake("rope", "a row for each of max_seq_len positions, however short x is.")
class RopeOfAShortTable(RotaryPositionalEmbedding):
    def forward(self, x, token_positions):
        whole = self.cos, self.sin
        self.cos, self.sin = (table[: x.shape[-2]] for table in whole)
        turned = super().forward(x, token_positions)
        self.cos, self.sin = whole
        return turned


@judged("rope", "correct", "convert it back, `.to(x.dtype)`")
@judged("rope", "correct", "on a GPU it fails, at line")
class RopeOfPlainTables(RotaryPositionalEmbedding):
    """Tables that `.to` leaves where they are, in float32 whatever x is."""

    def __init__(self, theta, d_k, max_seq_len, dtype=None):
        super().__init__(theta, d_k, max_seq_len)
        angles = torch.arange(max_seq_len, dtype=dtype).float()[:, None] * theta ** (
            -torch.arange(0, d_k, 2) / d_k
        )
        del self.cos, self.sin
        self.cos = angles.cos()
        self.sin = angles.sin()


@mistake("rope", "positions (batch, seq) work, and positions (seq,) do not")
class RopeOfRows(RotaryPositionalEmbedding):
    def forward(self, x, token_positions):
        return super().forward(x, token_positions[:, : x.shape[-2]])


def of_positions_in(dtype):
    class Rope(RopeOfPlainTables):
        def __init__(self, theta, d_k, max_seq_len):
            super().__init__(theta, d_k, max_seq_len, dtype)

    return Rope


almost("rope", "positions are in half precision")(of_positions_in(torch.float16))
mistake("rope", "positions are in half precision")(of_positions_in(torch.bfloat16))


@almost("rope", "of shape (batch, seq)")
class SharedPositions(RotaryPositionalEmbedding):
    """Takes positions of shape (seq,) only."""

    def forward(self, x, token_positions):
        assert token_positions.ndim == 1
        return super().forward(x, token_positions)
