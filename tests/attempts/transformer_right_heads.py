"""Right attention layers, blocks and models, as learners write them, make them and call them."""

from functools import cache

import torch
from einops import rearrange
from torch import nn

from attempts.lists import almost, judged, mistake, right
from attempts.transformer_right import (
    Linear,
    RMSNorm,
    RMSNormAsInLlama,
    RotaryPositionalEmbedding,
    SwiGLU,
    SwiGLUFused,
    drawn,
    flat,
    silu,
)
from attempts.transformer_right_functions import attention, softmax

shared_rope = cache(RotaryPositionalEmbedding)
MultiHeadSelfAttention = right("multihead_self_attention")(flat.MultiHeadSelfAttention)
TransformerBlock = right("transformer_block")(flat.TransformerBlock)


@right("transformer_block")
class BlockOfUsualWidth(TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len, theta):
        assert d_ff % 64 == 0, "d_ff must be a multiple of 64"
        super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)


TransformerLM = right("transformer_lm")(flat.TransformerLM)


class Steps(MultiHeadSelfAttention):
    """Right multi-head attention, in steps to change."""

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

    def forward(self, x, token_positions=None):
        return self.output_proj(self.merge(self.attend(*self.heads_of(x, token_positions))))


@right("multihead_self_attention")
class Fused(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        del self.q_proj, self.k_proj, self.v_proj
        self.qkv_proj = Linear(d_model, 3 * d_model)

    def forward(self, x, token_positions=None):
        parts = (lambda x, i=i: self.qkv_proj(x).chunk(3, -1)[i] for i in range(3))
        self.q_proj, self.k_proj, self.v_proj = parts
        return super().forward(x, token_positions)


@mistake("multihead_self_attention", "supposes that `qkv_proj.weight` holds")
class FusedHeadByHead(Fused):
    """Each head's queries, keys and values stand together, as in GPT-NeoX."""

    def forward(self, x, token_positions=None):
        fused = rearrange(self.qkv_proj(x), "... (h n d) -> n ... (h d)", n=3, h=self.num_heads)
        self.q_proj, self.k_proj, self.v_proj = (lambda x, i=i: fused[i] for i in range(3))
        return Steps.forward(self, x, token_positions)


@right("multihead_self_attention")
class OwnMatrices(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        del self.q_proj, self.k_proj, self.v_proj, self.output_proj
        self.W_Q = drawn(d_model, d_model)
        self.W_K = drawn(d_model, d_model)
        self.W_V = drawn(d_model, d_model)
        self.W_O = drawn(d_model, d_model)

    def times(self, x, weight):
        return x @ weight.T

    def heads_of(self, x, positions):
        q, k, v = (self.split(self.times(x, w)) for w in (self.W_Q, self.W_K, self.W_V))
        return self.turn(q, positions), self.turn(k, positions), v

    def output_proj(self, x):
        return self.times(x, self.W_O)


@right("multihead_self_attention")
class SharedRope(Steps):
    """All attentions of one size have the same layer for RoPE."""

    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        if theta is not None:
            self.rope = shared_rope(theta, d_model // num_heads, max_seq_len)


@judged("multihead_self_attention", "correct", "(batch, seq) need an axis for the heads")
class InsistsOnPositions(OwnMatrices):
    """With RoPE, `forward` does not count positions itself."""

    def turn(self, x, positions):
        assert self.rope is None or positions is not None, "RoPE requires token_positions"
        return super().turn(x, positions)


@almost("multihead_self_attention", "stored transposed")
class InputsFirst(OwnMatrices):
    def times(self, x, weight):
        return x @ weight


@mistake("multihead_self_attention", "fit, but not in this shape")
class OneMatrixAHead(OwnMatrices):
    """Weights of three axes."""

    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        self.W_Q = nn.Parameter(self.W_Q.detach().unflatten(1, (num_heads, -1)))

    def times(self, x, weight):
        return x @ weight.flatten(1).T


class Head(nn.Module):
    def __init__(self, d_model, d_head, rope):
        super().__init__()
        self.query = Linear(d_model, d_head)
        self.key = Linear(d_model, d_head)
        self.value = Linear(d_model, d_head)
        self.rope = rope

    def forward(self, x, token_positions):
        q = self.query(x)
        k = self.key(x)
        v = self.value(x)
        if self.rope is not None:
            q = self.rope(q, token_positions)
            k = self.rope(k, token_positions)
        seen = torch.arange(x.shape[-2])[:, None] >= torch.arange(x.shape[-2])
        return attention(q, k, v, seen)


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


@right("multihead_self_attention")
class HeadsThatNeedPositions(ListOfHeads):
    """Without positions, `table[None]` is all of a table of angles, whatever the length of x."""

    def forward(self, x, token_positions=None):
        return self.proj(torch.cat([head(x, token_positions) for head in self.heads], -1))


@right("multihead_self_attention")
class FixedMask(Steps):
    """A mask as long as the context, which is saved; views of three axes, as in tutorials."""

    def __init__(self, d_model, num_heads, max_seq_len=1024, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        self.register_buffer("mask", super().seen(max_seq_len or 1024))

    def split(self, x):
        b, t, c = x.size()
        return x.view(b, t, self.num_heads, c // self.num_heads).transpose(1, 2)

    def seen(self, length):
        return self.mask[:length, :length]


@judged("multihead_self_attention", "correct", "on a GPU it fails, at line")
class MasksInPlace(Steps):
    """Changes the scores in place, which the kernels of "meta" let pass."""

    def attend(self, q, k, v):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores.masked_fill_(~self.seen(q.shape[-2]), -torch.inf)
        return softmax(scores, -1) @ v


@judged("multihead_self_attention", "correct", "does not rotate: let it count 0, 1, 2")
class RotatesOnDemand(MultiHeadSelfAttention):
    def forward(self, x, token_positions=None):
        rope = self.rope
        self.rope = None if token_positions is None else rope
        try:
            return super().forward(x, token_positions)
        finally:
            self.rope = rope


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
class WithACache(Steps):
    def forward(self, x, token_positions=None, kv_cache=None):
        return super().forward(x, token_positions), kv_cache


@right("multihead_self_attention")
class OnlyWithRope(nn.Module):
    """The second of two classes; the matrices of all three roles in one."""

    def __init__(self, d_model, num_heads, theta, max_seq_len):
        super().__init__()
        self.num_heads = num_heads
        self.fc_qkv = Linear(d_model, 3 * d_model)
        self.fc_out = Linear(d_model, d_model)
        self.rope = RotaryPositionalEmbedding(theta, d_model // num_heads, max_seq_len)

    def forward(self, x, token_positions):
        q, k, v = rearrange(self.fc_qkv(x), "b s (n h d) -> n b h s d", n=3, h=self.num_heads)
        seen = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
        q = self.rope(q, token_positions)
        k = self.rope(k, token_positions)
        return self.fc_out(rearrange(attention(q, k, v, seen), "b h s d -> b s (h d)"))


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


# Blocks.


@right("transformer_block")
class BlockOfFused(TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
        self.attn = Fused(d_model, num_heads, max_seq_len, theta)
        self.ffn = SwiGLUFused(d_model, d_ff)


@right("transformer_block")
class ListOfNorms(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__()
        self.norms = nn.ModuleList([RMSNorm(d_model), RMSNorm(d_model)])
        self.attn = Steps(d_model, num_heads, max_seq_len, theta)
        self.ffn = SwiGLU(d_model, d_ff)

    def forward(self, x):
        x = x + self.attn(self.norms[0](x))
        return x + self.ffn(self.norms[1](x))


class OtherNames(nn.Module):
    """Names that would mean something else inside attention."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate = Linear(d_model, d_ff)
        self.in_proj = Linear(d_model, d_ff)
        self.out_proj = Linear(d_ff, d_model)

    def forward(self, x):
        return self.out_proj(silu(self.gate(x)) * self.in_proj(x))


@right("transformer_block")
class BlockOfNamesAsInAttention(TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
        self.ffn = OtherNames(d_model, d_ff)


@right("transformer_block")
class PositionsWanted(nn.Module):
    """`forward` insists on positions."""

    def __init__(self, d_model, num_heads, d_ff, max_seq_len, theta, device=None, dtype=None):
        super().__init__()
        self.pre_mhsa_rmsnorm = RMSNorm(d_model)
        self.pre_ffn_rmsnorm = RMSNorm(d_model)
        self.mhsa = OwnMatrices(d_model, num_heads, max_seq_len, theta)
        self.ffn = SwiGLU(d_model, d_ff)

    def forward(self, x, token_positions):
        x = x + self.mhsa(self.pre_mhsa_rmsnorm(x), token_positions)
        return x + self.ffn(self.pre_ffn_rmsnorm(x))


class RopeInForwardBlock(TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.attn = RopeInForward(d_model, num_heads)

    def forward(self, x, rope=None, token_positions=None):
        x = x + self.attn(self.ln1(x), rope, token_positions)
        return x + self.ffn(self.ln2(x))


# Models.


@right("transformer_lm")
class RopeInForwardModel(TransformerLM):
    def __init__(self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff):
        super().__init__(vocab_size, context_length, d_model, 0, num_heads, d_ff, None)
        blocks = (RopeInForwardBlock(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.layers = nn.ModuleList(blocks)

    def forward(self, x, rope, token_positions=None):
        x = self.token_embeddings(x)
        for layer in self.layers:
            x = layer(x, rope, token_positions)
        return self.lm_head(self.ln_final(x))


@right("transformer_lm")
class HeadInSteps(TransformerLM):
    """The last two layers have numbers for names."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.final = nn.Sequential(self.ln_final, self.lm_head)
        del self.ln_final, self.lm_head

    def forward(self, x):
        x = self.token_embeddings(x)
        for layer in self.layers:
            x = layer(x)
        return self.final(x)


@right("transformer_lm")
class GainsInRows(TransformerLM):
    """Gains of shape (1, d_model)."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.ln_final = RMSNormAsInLlama(sizes[2])
        for layer in self.layers:
            layer.ln1 = RMSNormAsInLlama(sizes[2])
            layer.ln2 = RMSNormAsInLlama(sizes[2])


@mistake("transformer_lm", "the gain `ln_final.weight` does not start at 1")
class DrawnGain(TransformerLM):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        nn.init.normal_(self.ln_final.weight)
