"""Wrong RoPE, attention layers, blocks and models: each has one mistake, which the check must name.

Most usual mistakes are in the catalogues, and each of those is tried (`test_catalogue`). Here are
some as learners write them, and what no edit of the reference shows.
"""

import torch
from torch import nn

from attempts import transformer_right
from attempts.transformer_lists import mistake
from attempts.transformer_right import RMSNorm, RotaryPositionalEmbedding
from attempts.transformer_right_heads import Steps, TransformerBlock, TransformerLM

# RoPE.


@mistake("rope", "never filled")
class Unfilled(RotaryPositionalEmbedding):
    def forward(self, x, token_positions):
        return torch.rand_like(x)


@mistake("rope", "nothing to learn")
class LearnedAngles(RotaryPositionalEmbedding):
    def __init__(self, theta, d_k, max_seq_len):
        super().__init__(theta, d_k, max_seq_len)
        cos = self.cos
        del self.cos
        self.cos = nn.Parameter(cos)


@mistake("rope", "last position")
class OneTooShort(RotaryPositionalEmbedding):
    def __init__(self, theta, d_k, max_seq_len):
        super().__init__(theta, d_k, max_seq_len - 1)


# Attention layers.


def heads(words, **changes):
    """Multi-head attention with some of its steps changed."""
    mistake("multihead_self_attention", words)(type("Changed", (Steps,), changes))


heads("call `.contiguous()`", merge=lambda self, x: x.transpose(1, 2).view(*x[:, 0].shape[:2], -1))


@mistake("multihead_self_attention", "`torch.nn.Linear`")
class OfTorch(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        for name in ("q_proj", "k_proj", "v_proj", "output_proj"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))


@mistake("multihead_self_attention", "made for d_model numbers")
class RopeOfTheModel(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        if theta is not None:
            self.rope = RotaryPositionalEmbedding(theta, d_model, max_seq_len)


@mistake("multihead_self_attention", "Right without RoPE. It cannot be called")
class WithoutRope(Steps):
    """The first of two classes, of which the other has RoPE."""

    def __init__(self, d_model, num_heads, device=None, dtype=None):
        super().__init__(d_model, num_heads)


@mistake("multihead_self_attention", "an input of shape (3, 4, 8) after (1, 3, 8), fails")
class KeptMask(Steps):
    """The mask of the first call serves every call."""

    def seen(self, length):
        self.mask = getattr(self, "mask", super().seen(length))
        return self.mask


# Blocks.


@mistake("transformer_block", "the backward pass fails")
class AddsInPlace(TransformerBlock):
    def forward(self, x):
        y = x + self.attn(self.ln1(x))
        y += self.ffn(self.ln2(y))
        return y


@mistake("transformer_block", "shape (1, 1, 8) after (1, 3, 8), fails")
class BlockOfKeptMask(TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
        self.attn = KeptMask(d_model, num_heads, max_seq_len, theta)


@mistake("transformer_block", "There is a bias")
class WithLayerNorm(TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = RMSNorm(d_model)


# Language models.


@mistake("transformer_lm", "an input of shape (1, 3) after (1, 1), fails")
class ModelOfKeptMask(TransformerLM):
    def __init__(self, vocab, length, d_model, layers, heads, d_ff, theta):
        super().__init__(vocab, length, d_model, 0, heads, d_ff, theta)
        blocks = (BlockOfKeptMask(d_model, heads, d_ff, length, theta) for _ in range(layers))
        self.layers = nn.ModuleList(blocks)


@mistake("transformer_lm", "share one weight")
class Tied(TransformerLM):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.lm_head.weight = self.token_embeddings.weight


@mistake("transformer_lm", "leave out `pos_emb.weight`")
class LearnedPositions(TransformerLM):
    def __init__(self, vocab_size, context_length, d_model, *others):
        super().__init__(vocab_size, context_length, d_model, *others)
        self.pos_emb = transformer_right.Embedding(context_length, d_model)


@mistake("transformer_lm", "repeats one block")
class OneBlock(TransformerLM):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.layers = nn.ModuleList([self.layers[0]] * len(self.layers))


@mistake("transformer_lm", "rounded to a multiple of 64")
class RoundedWidth(TransformerLM):
    def __init__(self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff, theta):
        sizes = (vocab_size, context_length, d_model, num_layers, num_heads)
        super().__init__(*sizes, (d_ff + 63) // 64 * 64, theta)


for words, change in (
    ("axes of length 1", lambda logits: logits.squeeze()),
    ("something is random", lambda logits: logits + torch.randn(1)),
):
    forward = lambda self, ids, change=change: change(TransformerLM.forward(self, ids))  # noqa: E731
    mistake("transformer_lm", words)(type("Changed", (TransformerLM,), {"forward": forward}))


@mistake("transformer_lm", "must be long")
class OfFloats(TransformerLM):
    def forward(self, ids):
        return super().forward(ids.float())
