"""Right attention layers, blocks and models, as learners write them."""

import math

import torch
from einops import einsum, rearrange
from torch import nn

from attempts import transformer_right
from attempts.transformer_lists import mistake, right
from attempts.transformer_right import (
    Linear,
    RotaryPositionalEmbedding,
    drawn,
    flat,
    silu,
)
from attempts.transformer_right_functions import attention, softmax

MultiHeadSelfAttention = right("multihead_self_attention")(flat.MultiHeadSelfAttention)
TransformerBlock = right("transformer_block")(flat.TransformerBlock)
TransformerLM = right("transformer_lm")(flat.TransformerLM)


class Steps(MultiHeadSelfAttention):
    """Right multi-head attention, in steps to change; positions have an axis for the heads."""

    def split(self, x):
        return rearrange(x, "... s (h d) -> ... h s d", h=self.num_heads)

    def turn(self, x, positions):
        if self.rope is None:
            return x
        return self.rope(x, torch.arange(x.shape[-2]) if positions is None else positions)

    def merge(self, x):
        return rearrange(x, "... h s d -> ... s (h d)")

    def seen(self, length):
        return torch.ones(length, length, dtype=torch.bool).tril()

    def heads_of(self, x, positions):
        q, k, v = (self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        return self.turn(q, positions), self.turn(k, positions), v

    def attend(self, q, k, v):
        return attention(q, k, v, self.seen(q.shape[-2]))

    def out(self, x):
        return self.output_proj(x)

    def forward(self, x, token_positions=None):
        return self.out(self.merge(self.attend(*self.heads_of(x, token_positions))))


@right("multihead_self_attention")
class ByViews(Steps):
    """Batch, time and channels unpacked, as in many tutorials: three axes and no more."""

    def forward(self, x, token_positions=None):
        b, t, c = x.shape
        q = self.q_proj(x).view(b, t, self.num_heads, c // self.num_heads).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.num_heads, c // self.num_heads).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.num_heads, c // self.num_heads).transpose(1, 2)
        q, k = self.turn(q, token_positions), self.turn(k, token_positions)
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.num_heads)
        scores = scores + torch.full((t, t), -torch.inf).triu(1)
        out = softmax(scores, -1) @ v
        return self.output_proj(out.transpose(1, 2).contiguous().view(b, t, c))


@right("multihead_self_attention")
class Fused(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        del self.q_proj, self.k_proj, self.v_proj
        self.qkv_proj = Linear(d_model, 3 * d_model)

    def forward(self, x, token_positions=None):
        self.q_proj, self.k_proj, self.v_proj = (
            lambda x, i=i: self.qkv_proj(x).chunk(3, -1)[i] for i in range(3)
        )
        return super().forward(x, token_positions)


@mistake("multihead_self_attention", "supposes that `qkv_proj.weight` holds")
class FusedHeadByHead(Fused):
    """Each head's queries, keys and values stand together, as in GPT-NeoX."""

    def forward(self, x, token_positions=None):
        fused = rearrange(
            self.qkv_proj(x), "... (h three d) -> three ... (h d)", three=3, h=self.num_heads
        )
        self.q_proj, self.k_proj, self.v_proj = (lambda x, i=i: fused[i] for i in range(3))
        return Steps.forward(self, x, token_positions)


@right("multihead_self_attention")
class OwnMatrices(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        del self.q_proj, self.k_proj, self.v_proj, self.output_proj
        self.W_Q, self.W_K = drawn(d_model, d_model), drawn(d_model, d_model)
        self.W_V, self.W_O = drawn(d_model, d_model), drawn(d_model, d_model)

    def forward(self, x, token_positions=None):
        q, k, v = (self.split(x @ w.T) for w in (self.W_Q, self.W_K, self.W_V))
        q, k = self.turn(q, token_positions), self.turn(k, token_positions)
        seen = torch.arange(x.shape[-2])[:, None] >= torch.arange(x.shape[-2])
        return rearrange(attention(q, k, v, seen), "... h s d -> ... s (h d)") @ self.W_O.T


class Head(nn.Module):
    def __init__(self, d_model, d_head, rope):
        super().__init__()
        self.query, self.key = Linear(d_model, d_head), Linear(d_model, d_head)
        self.value = Linear(d_model, d_head)
        self.rope = rope

    def forward(self, x, token_positions):
        q, k, v = self.query(x), self.key(x), self.value(x)
        if self.rope is not None:
            q, k = self.rope(q, token_positions), self.rope(k, token_positions)
        rows = []
        for i in range(x.shape[-2]):  # position by position, without a mask
            rows.append(attention(q[..., i : i + 1, :], k[..., : i + 1, :], v[..., : i + 1, :]))
        return torch.cat(rows, -2)


@right("multihead_self_attention")
class ListOfHeads(nn.Module):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__()
        d_head = d_model // num_heads
        rope = None if theta is None else RotaryPositionalEmbedding(theta, d_head, max_seq_len)
        self.heads = nn.ModuleList(Head(d_model, d_head, rope) for _ in range(num_heads))
        self.proj = Linear(d_model, d_model)

    def forward(self, x, token_positions=None):
        positions = torch.arange(x.shape[-2]) if token_positions is None else token_positions
        return self.proj(torch.cat([head(x, positions) for head in self.heads], -1))


@mistake("multihead_self_attention", "fit, but not in this shape")
class OneMatrixAHead(Steps):
    """Weights of three axes, for an einsum."""

    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        del self.q_proj, self.k_proj, self.v_proj, self.output_proj
        d_head = d_model // num_heads
        self.wq, self.wk, self.wv = (
            nn.Parameter(drawn(d_model, d_model).detach().view(num_heads, d_model, d_head))
            for _ in range(3)
        )
        self.wo = nn.Parameter(drawn(d_model, d_model).detach().view(num_heads, d_head, d_model))

    def forward(self, x, token_positions=None):
        q, k, v = (einsum(x, w, "... s c, h c d -> ... h s d") for w in (self.wq, self.wk, self.wv))
        q, k = self.turn(q, token_positions), self.turn(k, token_positions)
        seen = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
        return einsum(attention(q, k, v, seen), self.wo, "... h s d, h d c -> ... s c")


@right("transformer_block")
class BlockOfFused(TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
        self.attn = Fused(d_model, num_heads, max_seq_len, theta)
        self.ffn = transformer_right.SwiGLUFused(d_model, d_ff)


class OtherNames(nn.Module):
    """Names that would mean something else inside attention."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate, self.in_proj = Linear(d_model, d_ff), Linear(d_model, d_ff)
        self.out_proj = Linear(d_ff, d_model)

    def forward(self, x):
        return self.out_proj(silu(self.gate(x)) * self.in_proj(x))


@right("transformer_block")
class BlockOfNamesAsInAttention(TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
        self.ffn = OtherNames(d_model, d_ff)
