"""Right parts that do less than ours: fewer axes, own names, own ways. The check must take them."""

import math

import torch
from einops import einsum, rearrange, repeat
from jaxtyping import Float, Int
from torch import Tensor, nn

from attempts import transformer_right_heads
from attempts.transformer_lists import almost, right
from attempts.transformer_right import Linear, RMSNorm, RotaryPositionalEmbedding, SwiGLU
from attempts.transformer_right_functions import attention, softmax


@right("embedding")
class TwoAxes(nn.Module):
    """Takes (batch, seq) only."""

    def __init__(self, num_embeddings: int, embedding_dim: int, device=None, dtype=None):
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(num_embeddings, embedding_dim, dtype=dtype))
        nn.init.trunc_normal_(self.weights, 0, 1, -3, 3)

    def forward(self, ids: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq d"]:
        batch, _ = ids.shape
        return torch.stack([self.weights[ids[i]] for i in range(batch)])


@right("rmsnorm")
class ThreeAxes(nn.Module):
    """Takes (batch, seq, d_model) only."""

    def __init__(self, d_model: int, eps: float = 1e-5, device=None, dtype=None):
        super().__init__()
        self.eps, self.d_model = eps, d_model
        self.g = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        kind, x = x.dtype, x.to(torch.float32)
        rms = torch.sqrt(einsum(x**2 + self.eps, "b s d -> b s") / self.d_model)
        return ((x / rearrange(rms, "b s -> b s 1")) * self.g).to(kind)


@almost("rope", "of shape (batch, seq)")
class SharedPositions(nn.Module):
    """Takes positions of shape (seq,) only, and turns by full matrices."""

    def __init__(self, theta: float, d_k: int, max_seq_len: int, device=None):
        super().__init__()
        angles = torch.arange(max_seq_len)[:, None] / theta ** (
            (2 * torch.arange(1, d_k / 2 + 1) - 2) / d_k
        )
        even = torch.arange(0, d_k, 2)
        turns = torch.zeros(max_seq_len, d_k, d_k)
        turns[:, even, even] = turns[:, even + 1, even + 1] = angles.cos()
        turns[:, even + 1, even] = angles.sin()
        turns[:, even, even + 1] = -angles.sin()
        self.register_buffer("turns", turns, persistent=False)

    def forward(self, x, token_positions):
        return einsum(x, self.turns[token_positions], "... s i, s o i -> ... s o")


@right("scaled_dot_product_attention")
def batches_only(Q, K, V, mask=None):
    *_, queries, d_k = Q.shape
    leading = Q.shape[:-2]
    scores = torch.bmm(Q.reshape(-1, queries, d_k), K.reshape(-1, *K.shape[-2:]).mT)
    scores = scores.view(*leading, queries, -1) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.matmul(softmax(scores, -1), V)


@right("multihead_self_attention")
class FixedMask(nn.Module):
    """A persistent mask as long as the context; positions made inside for each sequence."""

    def __init__(self, d_model, num_heads, max_seq_len=1024, theta=None, device=None, dtype=None):
        super().__init__()
        self.num_heads, self.d_head = num_heads, d_model // num_heads
        self.query, self.key = Linear(d_model, d_model), Linear(d_model, d_model)
        self.value, self.fc_out = Linear(d_model, d_model), Linear(d_model, d_model)
        size = max_seq_len or 1024
        self.register_buffer("mask", torch.triu(torch.ones(size, size), 1).bool())
        if theta:
            self.rope = RotaryPositionalEmbedding(theta, self.d_head, size)

    def forward(self, x, token_positions=None):
        batch, seq, d_model = x.size()
        if token_positions is None:
            token_positions = repeat(torch.arange(seq), "s -> b s", b=batch)
        if token_positions.ndim == 2:
            token_positions = token_positions[:, None]
        heads = [
            layer(x).reshape(batch, seq, self.num_heads, self.d_head).permute(0, 2, 1, 3)
            for layer in (self.query, self.key, self.value)
        ]
        if hasattr(self, "rope"):
            heads[:2] = [self.rope(head, token_positions) for head in heads[:2]]
        gathered = attention(*heads, mask=~self.mask[:seq, :seq])
        return self.fc_out(gathered.permute(0, 2, 1, 3).reshape(batch, seq, d_model))


@right("transformer_block")
class PositionsWanted(nn.Module):
    """`forward` insists on positions."""

    def __init__(self, d_model, num_heads, d_ff, max_seq_len, theta, device=None, dtype=None):
        super().__init__()
        self.pre_mhsa_rmsnorm = RMSNorm(d_model)
        self.mhsa = transformer_right_heads.OwnMatrices(d_model, num_heads, max_seq_len, theta)
        self.pre_ffn_rmsnorm = RMSNorm(d_model)
        self.ffn = SwiGLU(d_model, d_ff)

    def forward(self, x, token_positions):
        x = x + self.mhsa(self.pre_mhsa_rmsnorm(x), token_positions)
        return x + self.ffn(self.pre_ffn_rmsnorm(x))


@right("multihead_self_attention")
class TurnsOnlyByPositions(transformer_right_heads.MultiHeadSelfAttention):
    """No positions, no RoPE."""

    def turn(self, x, positions):
        return x if positions is None else super().turn(x, positions)


@right("transformer_block")
class HandsPositionsOn(transformer_right_heads.TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, d_ff)
        self.attn = TurnsOnlyByPositions(d_model, num_heads, max_seq_len, theta)
