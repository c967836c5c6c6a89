"""Right modules of the model, as learners write them.

Those of the handout's names are the made-up repository's, which is right as a whole.
"""

import math

import torch
from made_repositories import module
from torch import nn

from attempts.transformer_lists import mistake, right

flat = module("flat", "cs336_basics/model.py")
Linear, Embedding, RMSNorm, SwiGLU = flat.Linear, flat.Embedding, flat.RMSNorm, flat.SwiGLU
RotaryPositionalEmbedding, silu = flat.RotaryPositionalEmbedding, flat.silu
for part in (Linear, Embedding, RMSNorm):
    right(part.__name__.lower())(part)
right("positionwise_feedforward")(SwiGLU)
right("rope")(RotaryPositionalEmbedding)


def drawn(d_out, d_in, **kinds):
    std = math.sqrt(2 / (d_in + d_out))
    return nn.Parameter(
        nn.init.trunc_normal_(torch.empty(d_out, d_in, **kinds), 0.0, std, -3 * std, 3 * std)
    )


@right("linear")
class LinearOutFirst(Linear):
    def __init__(self, dim_out: int, dim_in: int, *, use_bias: bool = False, device="cpu"):
        super().__init__(dim_in, dim_out, device)


@right("rmsnorm")
class RMSNormAsInLlama(RMSNorm):
    def __init__(self, d_model, eps=1e-5):
        super().__init__(d_model, eps)
        self.d_model = d_model

    def forward(self, x):
        high = x.float()
        return self.weight * (high * torch.rsqrt((high**2).mean(-1, keepdim=True) + self.eps)).to(
            x.dtype
        )


@right("positionwise_feedforward")
class SwiGLUFused(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w13, self.w2 = Linear(d_model, 2 * d_ff), Linear(d_ff, d_model)

    def forward(self, x):
        gate, up = self.w13(x).chunk(2, -1)
        return self.w2(silu(gate) * up)


@mistake("positionwise_feedforward", "not understood: `there.weight`, `beside.weight`")
class SwiGLUOfStrangeNames(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.there, self.beside = Linear(d_model, d_ff), Linear(d_model, d_ff)
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
    def __init__(self, theta, d_k, max_seq_len, device=None, dtype=None):
        super().__init__()
        frequencies = theta ** (-torch.arange(0, d_k, 2) / d_k)
        angles = torch.arange(max_seq_len)[:, None] * frequencies
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x, token_positions=None):
        if token_positions is None:
            token_positions = torch.arange(x.shape[-2])
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * self.turns[token_positions]).flatten(-2).type_as(x)
