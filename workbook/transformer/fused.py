"""The parts of `nn` with torch's own kernels: the same values and gradients, faster.

A kernel that does in one pass what the textbook does in five accesses memory less often. A model
takes its parts from here if its config says `kernels="fused"`.
"""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from workbook.transformer import nn
from workbook.transformer.nn import causal_mask, check_in_range

# Already single calls.
Embedding = nn.Embedding
Linear = nn.Linear


class RMSNorm(nn.RMSNorm):
    """`nn.RMSNorm` in one kernel, or where torch has none, on a CPU, in few passes."""

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        high = x.to(nn.float_type(x))
        weight = self.weight.to(high.dtype)
        # torch.compile fuses the plain formula by itself.
        if x.device.type == "cpu" and not torch.compiler.is_compiling():
            return Normalise.apply(high, weight, self.eps).to(x.dtype)
        return functional.rms_norm(high, weight.shape, weight, self.eps).to(x.dtype)


class Normalise(torch.autograd.Function):
    """y = n ⊙ gain with n = s x and s = 1 / √(mean(x²) + ε): what RMSNorm computes.

    A gradient g of y gives Σ g ⊙ n for the gain, summed over all vectors. With h = g ⊙ gain, it
    gives s h - s² x mean(h ⊙ n) for x: the part along x drops out, since y ignores how long x is.
    Passes over memory cost more than arithmetic here, so results overwrite what is used up.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, eps: float) -> Tensor:
        # √(Σ x²) in one pass; `x.square().mean()` would write all the squares to memory first.
        # (..., 1)
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = torch.rsqrt(length.square() / x.shape[-1] + eps)
        normed = x * scale
        # `normed` follows from x and scale, but computing it again would be one more pass.
        ctx.save_for_backward(x, gain, scale, normed)
        return normed * gain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, gain, scale, normed = ctx.saved_tensors
        # Σ g ⊙ n over all vectors: (..., d_model) -> (d_model,).
        product = grad * normed
        for_gain = product.reshape(-1, len(gain)).sum(0)
        # mean(h ⊙ n) for each vector, (..., 1), in the memory of a product that is used up.
        along = product.mul_(gain).mean(-1, keepdim=True)
        # s h - s² x mean(h ⊙ n): three passes over one tensor, and no temporary besides it.
        for_x = (grad * gain).mul_(scale).addcmul_(x, along * scale.square(), value=-1)
        return for_x, for_gain, None


class SwiGLU(nn.SwiGLU):
    """`nn.SwiGLU` with a SiLU that keeps nothing but its input for the backward pass."""

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        # The textbook's version keeps the sigmoid as well; this kernel computes it again on the way
        # back.
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class SiLUFeedForward(nn.SiLUFeedForward):
    """`nn.SiLUFeedForward` with the same SiLU."""

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        return self.w2(functional.silu(self.w1(x)))


class RotaryPositionalEmbedding(nn.RotaryPositionalEmbedding):
    """`nn.RotaryPositionalEmbedding` with each pair as one complex number, times cos + i sin.

    This is how Su et al. 2021 introduce it, in eq. 12. torch.compile cannot compile complex
    numbers, so it gets the textbook's form, and so do Apple's GPUs.
    """

    def forward(
        self,
        x: Float[Tensor, "... seq d_k"],
        token_positions: Int[Tensor, "... seq"] | None = None,
        first: int = 0,
    ) -> Float[Tensor, "... seq d_k"]:
        if torch.compiler.is_compiling() or x.device.type == "mps":
            return super().forward(x, token_positions, first)
        turns = self.table(x.shape[-2], token_positions, first)
        high = torch.promote_types(x.dtype, turns.dtype)
        # (..., d_k) as d_k / 2 complex numbers: the memory is the same, only read another way.
        pairs = torch.view_as_complex(x.to(high).unflatten(-1, (-1, 2)))
        # (a + ib)(cos + i sin) = (a cos - b sin) + i (a sin + b cos): the rotation matrix again.
        turned = pairs * torch.view_as_complex(turns.to(high))
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)


def causal_attention(
    Q: Float[Tensor, "... queries d_k"],
    K: Float[Tensor, "... keys d_k"],
    V: Float[Tensor, "... keys d_v"],
) -> Float[Tensor, "... queries d_v"]:
    """Attention in which no query sees a later key; the queries are the last positions.

    A fused kernel never writes the scores to memory: its backward pass computes them again. In half
    precision that is slow on a CPU, so if gradients are needed there, `BlockedAttention` is used,
    and so it is on Apple's GPUs.
    """
    queries = Q.shape[-2]
    keys = K.shape[-2]
    device = Q.device.type
    needs_gradients = torch.is_grad_enabled()
    if device == "mps" or (device == "cpu" and needs_gradients and Q.dtype.itemsize < 4):
        # Dividing Q, (queries, d_k), costs less than dividing the scores, (queries, keys).
        scaled = Q / math.sqrt(Q.shape[-1])
        flat = (x.reshape(-1, *x.shape[-2:]) for x in (scaled, K, V))
        return BlockedAttention.apply(*flat).reshape(*V.shape[:-2], queries, V.shape[-1])
    if device == "meta":  # where nothing is computed, matmuls are counted: those of the textbook
        return nn.causal_attention(Q, K, V)
    all_seen = queries == 1  # a single query is the last position, and may see every key
    # torch's `is_causal` puts the diagonal into the top left corner. That is right only for as many
    # queries as keys; with a cache the queries are the last rows, so they get a mask of ours.
    mask = None if all_seen or queries == keys else causal_mask(queries, keys, Q.device)
    return functional.scaled_dot_product_attention(
        Q, K, V, attn_mask=mask, is_causal=queries == keys and not all_seen
    )


class BlockedAttention(torch.autograd.Function):
    """Causal attention, a block of queries at a time: no scores with keys after the block.

        queries   4  x x x x        In four blocks, 10 of the 16 squares are computed, in both
                  3  x x x          passes. Only the scores in the last square of a row need a mask.
                  2  x x
                  1  x
                     1 2 3 4  keys

    Q, already divided by √d_k, K and V are (heads, positions, features).
    """

    @staticmethod
    def forward(ctx: Any, Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
        queries = Q.shape[-2]
        keys = K.shape[-2]
        size = max(64, math.ceil(queries / 4))  # many small matmuls would be slow
        ends = [*range(size, queries, size), queries]
        ctx.blocks = [
            (slice(start, end), slice(keys - queries + end))  # its queries, and the keys they see
            for start, end in zip([0, *ends], ends, strict=False)
        ]
        maps = []
        heads = []
        for block, seen in ctx.blocks:
            # (heads, queries of the block, keys up to its end)
            scores = torch.bmm(Q[:, block], K[:, seen].mT)
            length = scores.shape[-2]
            # Among the last keys, those of the block itself, a query sees its own and those before.
            scores[..., -length:] += scores.new_full((length, length), -math.inf).triu(1)
            # Autocast may compute a softmax in float32; the backward pass needs one type.
            maps.append(torch.softmax(scores, dim=-1).to(V.dtype))
            heads.append(torch.bmm(maps[-1], V[:, seen]))
        # The maps, not the scores: a softmax's derivative needs its result alone.
        ctx.save_for_backward(Q, K, V, *maps)
        return torch.cat(heads, dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        Q, K, V, *maps = ctx.saved_tensors
        for_Q = []
        for_K = torch.zeros_like(K)
        for_V = torch.zeros_like(V)
        for (block, seen), weights in zip(ctx.blocks, maps, strict=True):
            # Added up, since later blocks look at the same keys and values again.
            for_V[:, seen] += torch.bmm(weights.mT, grad[:, block])
            for_weights = torch.bmm(grad[:, block], V[:, seen].mT)
            # p ⊙ (g - Σ p ⊙ g) for each row p of the map, in one kernel.
            for_scores = torch._softmax_backward_data(for_weights, weights, -1, weights.dtype)
            for_Q.append(torch.bmm(for_scores, K[:, seen]))
            for_K[:, seen] += torch.bmm(for_scores.mT, Q[:, block])
        return torch.cat(for_Q, dim=1), for_K, for_V


def cross_entropy(
    logits: Float[Tensor, "... vocab"], targets: Int[Tensor, "..."]
) -> Float[Tensor, ""]:
    """`nn.cross_entropy` in one kernel."""
    check_in_range(targets, logits.shape[-1], "target", "the vocabulary")
    return functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]).to(nn.float_type(logits)), targets.flatten().long()
    )
