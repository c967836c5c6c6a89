"""Right parts that are made and called as learners' repositories do it, not as the handout does."""

import torch
from einops import einsum, rearrange, repeat
from jaxtyping import Float, Int
from torch import Tensor, nn

from attempts import transformer_right_heads as heads
from attempts.transformer_lists import almost, mistake, right
from attempts.transformer_right import (
    Embedding,
    Linear,
    RMSNorm,
    RotaryPositionalEmbedding,
    SwiGLU,
    drawn,
)
from attempts.transformer_right_functions import attention
from attempts.transformer_right_heads import Steps

# Multi-head attention.


@right("multihead_self_attention")
class RotatesBothAtOnce(Steps):
    """RoPE is made outside, once for all layers."""

    def __init__(self, d_model, num_heads, max_seq_len=None, rope=None, device=None, dtype=None):
        super().__init__(d_model, num_heads)
        self.rope = rope

    def heads_of(self, x, positions):
        q, k, v = (self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        return *((q, k) if self.rope is None else self.rope(q, k, positions)), v


@right("multihead_self_attention")
class RopeInForward(Steps):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)

    def forward(self, x, rope=None, token_positions=None):
        self.rope = rope
        return super().forward(x, token_positions)


@right("multihead_self_attention")
class PositionsInRows(Steps):
    """Positions are of shape (1, seq) or (batch, seq), as in the course's tests."""

    def turn(self, x, positions):
        return super().turn(
            x, None if positions is None else positions[:, None].expand(*x.shape[:-1])
        )


@right("multihead_self_attention")
class WithACache(Steps):
    def forward(self, x, token_positions=None, kv_cache=None):
        return super().forward(x, token_positions), kv_cache


@right("multihead_self_attention")
class OnlyWithRope(nn.Module):
    """The second of two classes; the matrices of all three roles in one."""

    def __init__(self, d_model, num_heads, theta, max_seq_len):
        super().__init__()
        self.num_heads = num_heads
        self.fc_qkv, self.fc_out = Linear(d_model, 3 * d_model), Linear(d_model, d_model)
        self.rope = RotaryPositionalEmbedding(theta, d_model // num_heads, max_seq_len)

    def forward(self, x, token_positions):
        q, k, v = rearrange(self.fc_qkv(x), "b s (n h d) -> n b h s d", n=3, h=self.num_heads)
        seen = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
        gathered = attention(
            self.rope(q, token_positions), self.rope(k, token_positions), v, mask=seen
        )
        return self.fc_out(rearrange(gathered, "b h s d -> b s (h d)"))


@right("multihead_self_attention")
class RopeOfAllThree(Steps):
    def __init__(self, d_model, num_heads, theta=None, d_k=None, max_sequence_length=None):
        theta = None if d_k is None else theta
        super().__init__(d_model, num_heads, max_sequence_length, theta)


@right("multihead_self_attention")
class Compiled(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        self.attend = torch.compile(self.attend)


@right("rmsnorm")
class GainInARow(nn.Module):
    """A gain of shape (1, d_model), as some write it to be broadcast."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps, self.g = eps, nn.Parameter(torch.ones(1, d_model))

    def forward(self, x):
        high = x.float()
        return (high * (high.square().mean(-1, keepdim=True) + self.eps).rsqrt() * self.g).to(x)


@mistake("rmsnorm", "`g` has the wrong shape")
class GainOfAnotherSize(RMSNorm):
    def __init__(self, d_model, eps=1e-5):
        super().__init__(d_model, eps)
        del self.weight
        self.g = nn.Parameter(torch.ones(2, d_model))


@almost("multihead_self_attention", "stored transposed")
class InputsFirst(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        del self.q_proj, self.k_proj, self.v_proj, self.output_proj
        self.W_Q, self.W_K = drawn(d_model, d_model), drawn(d_model, d_model)
        self.W_V, self.W_O = drawn(d_model, d_model), drawn(d_model, d_model)

    def heads_of(self, x, positions):
        q, k, v = (self.split(x @ w) for w in (self.W_Q, self.W_K, self.W_V))
        return self.turn(q, positions), self.turn(k, positions), v

    def out(self, x):
        return x @ self.W_O


# Blocks.


@right("transformer_block")
class RopeInForwardBlock(heads.TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.attn = RopeInForward(d_model, num_heads)

    def forward(self, x, rope=None, token_positions=None):
        x = x + self.attn(self.ln1(x), rope, token_positions)
        return x + self.ffn(self.ln2(x))


@right("transformer_lm")
class RopeInForwardModel(nn.Module):
    def __init__(self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff):
        super().__init__()
        self.embed = Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            RopeInForwardBlock(d_model, num_heads, d_ff) for _ in range(num_layers)
        )
        self.final_norm, self.output_embed = RMSNorm(d_model), Linear(d_model, vocab_size)

    def forward(self, x, rope, token_positions=None):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x, rope, token_positions)
        return self.output_embed(self.final_norm(x))


@mistake("transformer_lm", "the gain `ln_final.weight` does not start at 1")
class DrawnGain(heads.TransformerLM):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        nn.init.normal_(self.ln_final.weight)


# Those that do less than ours: fewer axes, own names, own ways.


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
        self.mhsa = heads.OwnMatrices(d_model, num_heads, max_seq_len, theta)
        self.pre_ffn_rmsnorm = RMSNorm(d_model)
        self.ffn = SwiGLU(d_model, d_ff)

    def forward(self, x, token_positions):
        x = x + self.mhsa(self.pre_mhsa_rmsnorm(x), token_positions)
        return x + self.ffn(self.pre_ffn_rmsnorm(x))
