"""The parts of `nn` with torch's own kernels: the same values and gradients, faster.

A kernel that does in one pass what the textbook does in five accesses memory less often. A model
takes its parts from here if its config says `kernels="fused"`.
"""

import math

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import Module, functional

from workbook.transformer import nn
from workbook.transformer.nn import causal_mask, check_in_range

Embedding = nn.Embedding  # already a single call


class Linear(nn.Linear):
    """`nn.Linear` in one call."""

    def forward(self, x: Float[Tensor, "... d_in"]) -> Float[Tensor, "... d_out"]:
        return functional.linear(x, self.weight)


class RMSNorm(nn.RMSNorm):
    """`nn.RMSNorm` in one kernel."""

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        high = x.to(nn.float_type(x))
        weight = self.weight.to(high.dtype)
        return functional.rms_norm(high, weight.shape, weight, self.eps).to(x.dtype)


class SwiGLU(nn.SwiGLU):
    """`nn.SwiGLU` with a SiLU that keeps nothing but its input for the backward pass."""

    def __init__(self, d_model: int, d_ff: int, device=None, dtype=None):
        Module.__init__(self)
        self.w1 = Linear(d_model, d_ff, device, dtype)
        self.w2 = Linear(d_ff, d_model, device, dtype)
        self.w3 = Linear(d_model, d_ff, device, dtype)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class SiLUFeedForward(nn.SiLUFeedForward):
    """`nn.SiLUFeedForward` with the same SiLU."""

    def __init__(self, d_model: int, d_ff: int, device=None, dtype=None):
        Module.__init__(self)
        self.w1 = Linear(d_model, d_ff, device, dtype)
        self.w2 = Linear(d_ff, d_model, device, dtype)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        return self.w2(functional.silu(self.w1(x)))


class RotaryPositionalEmbedding(nn.RotaryPositionalEmbedding):
    """`nn.RotaryPositionalEmbedding` with each pair as one complex number, times cos + i sin.

    This is how Su et al. 2021 introduce it, in eq. 12. torch.compile cannot compile complex
    numbers, so it gets the textbook's form, and so do Apple's GPUs.
    """

    def _fill(self) -> None:
        super()._fill()
        self.register_buffer("turns", torch.stack((self.cos, self.sin), -1), persistent=False)

    def forward(
        self,
        x: Float[Tensor, "... seq d_k"],
        token_positions: Int[Tensor, "... seq"] | None = None,
        first: int = 0,
    ) -> Float[Tensor, "... seq d_k"]:
        if torch.compiler.is_compiling() or x.device.type == "mps":
            return super().forward(x, token_positions, first)
        turns = self.turns[self.rows(x.shape[-2], token_positions, first)]
        high = torch.promote_types(x.dtype, turns.dtype)
        pairs = torch.view_as_complex(x.to(high).unflatten(-1, (-1, 2)))
        turned = pairs * torch.view_as_complex(turns.to(high))
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)


def causal_attention(
    Q: Float[Tensor, "... queries d_k"],
    K: Float[Tensor, "... keys d_k"],
    V: Float[Tensor, "... keys d_v"],
) -> Float[Tensor, "... queries d_v"]:
    """Attention in which no query sees a later key; the queries are the last positions.

    A fused kernel never writes the scores to memory: its backward pass computes them again. In half
    precision that is slow on a CPU, so if gradients are needed there, only the softmax is fused.
    """
    queries, keys = Q.shape[-2], K.shape[-2]
    slow_backward = Q.dtype.itemsize < 4 and torch.is_grad_enabled()
    if Q.device.type == "cuda" or (Q.device.type == "cpu" and not slow_backward):
        all_seen = queries == 1  # a single query is the last position, and may see every key
        mask = None if all_seen or queries == keys else causal_mask(queries, keys, Q.device)
        return functional.scaled_dot_product_attention(
            Q, K, V, attn_mask=mask, is_causal=queries == keys and not all_seen
        )
    scores = einsum(Q / math.sqrt(Q.shape[-1]), K, "... q d_k, ... k d_k -> ... q k")
    later = ~causal_mask(queries, keys, Q.device)
    weights = torch.softmax(scores.masked_fill(later, -math.inf), dim=-1)
    return einsum(weights.to(V.dtype), V, "... q k, ... k d_v -> ... q d_v")


def cross_entropy(
    logits: Float[Tensor, "... vocab"], targets: Int[Tensor, "..."]
) -> Float[Tensor, ""]:
    """`nn.cross_entropy` in one kernel."""
    check_in_range(targets, logits.shape[-1], "target", "the vocabulary")
    return functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]).to(nn.float_type(logits)), targets.flatten().long()
    )
