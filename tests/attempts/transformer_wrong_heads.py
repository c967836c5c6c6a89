"""Wrong RoPE, attention layers, blocks and models: each has one mistake, which the check must name.

Most usual mistakes are in the catalogues, and each of those is tried (`test_catalogue`). Here are
some as learners write them, and what no edit of the reference shows.
"""

import torch
from torch import nn

from attempts import transformer_right
from attempts.transformer_lists import mistake
from attempts.transformer_right import Linear, RMSNorm, RotaryPositionalEmbedding
from attempts.transformer_right_heads import Steps, TransformerBlock, TransformerLM

# RoPE.


def rope(words, turn):
    """RoPE with another way to turn x by its cosines and sines."""

    class Rope(RotaryPositionalEmbedding):
        def forward(self, x, token_positions):
            return turn(x, self.cos[token_positions], self.sin[token_positions])

    mistake("rope", words)(Rope)


def halves(x, cos, sin):
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)


def overwritten_in_place(x, cos, sin):
    x[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    x[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    return x


rope("RoPE on halves", halves)
rope("computed from the other's new value", overwritten_in_place)
rope("All of it is 0", lambda x, cos, sin: torch.zeros_like(x))
rope("never filled", lambda x, cos, sin: torch.rand_like(x))


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


def straight(self, x):
    return x.reshape(*x.shape[:-2], self.heads, x.shape[-2], -1)


heads("without the transpose", split=straight)
heads("call `.contiguous()`", merge=lambda self, x: x.transpose(1, 2).view(*x[:, 0].shape[:2], -1))
heads("no causal mask", seen=lambda self, n: torch.ones(n, n, dtype=torch.bool))
heads("ignored", turn=lambda self, x, p: Steps.turn(self, x, None))
heads("output projection is missing", out=lambda self, x: x + 0 * self.output_proj(x))


@mistake("multihead_self_attention", "RoPE on halves")
class LlamasRope(Steps):
    def turn(self, x, positions):
        if self.rope is None:
            return x
        positions = torch.arange(x.shape[-2]) if positions is None else positions
        return halves(x, self.rope.cos[positions], self.rope.sin[positions])


@mistake("multihead_self_attention", "names or shapes other than")
class StrangeNames(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        self.further = Linear(d_model, d_model)


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


@mistake("multihead_self_attention", "your third argument is `use_rope`; which one is `theta`?")
class NoPlaceForTheta(Steps):
    def __init__(self, d_model, num_heads, use_rope=True):
        super().__init__(d_model, num_heads, 16, 50.0 if use_rope else None)


@mistake("multihead_self_attention", "Right without RoPE. It cannot be called")
class WithoutRope(Steps):
    """The first of two classes, of which the other has RoPE."""

    def __init__(self, d_model, num_heads, device=None, dtype=None):
        super().__init__(d_model, num_heads)


@mistake("multihead_self_attention", "need an axis for the heads")
class PositionsInABatch(Steps):
    """Positions of shape (batch, seq), which a batch of 1 or of num_heads hides."""

    def turn(self, x, positions):
        positions = torch.arange(x.shape[-2]) if positions is None else positions
        return super().turn(x, positions.expand(len(x), -1))


@mistake("multihead_self_attention", "an input of shape (3, 4, 8) after (1, 3, 8), fails")
class KeptMask(Steps):
    """The mask of the first call serves every call."""

    def seen(self, length):
        self.mask = getattr(self, "mask", super().seen(length))
        return self.mask


# Blocks.


def block(words):
    """A decorator for another forward of a block."""

    def add(forward):
        mistake("transformer_block", words)(
            type("Changed", (TransformerBlock,), {"forward": forward})
        )
        return forward

    return add


@block("Post-norm instead of pre-norm")
def post_norm(self, x):
    x = self.ln1(x + self.attn(x))
    return self.ln2(x + self.ffn(x))


@block("the backward pass fails")
def adds_in_place(self, x):
    y = x + self.attn(self.ln1(x))
    y += self.ffn(self.ln2(y))
    return y


@block("`token_positions` is ignored")
def counts_from_0(self, x, token_positions=None):
    x = x + self.attn(self.ln1(x))
    return x + self.ffn(self.ln2(x))


def block_of(layer):
    """What makes right blocks, but for their attention layer."""

    class Block(TransformerBlock):
        def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
            super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
            self.attn = layer(d_model, num_heads, max_seq_len, theta)

    return Block


def without_theta(d_model, num_heads, *rope):
    return Steps(d_model, num_heads)


mistake("transformer_block", "is `theta`")(block_of(without_theta))
mistake("transformer_block", "RoPE on halves")(block_of(LlamasRope))
mistake("transformer_block", "shape (1, 1, 8) after (1, 3, 8), fails")(block_of(KeptMask))


@mistake("transformer_block", "share one weight")
class OneNorm(TransformerBlock):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.ln2 = self.ln1


@mistake("transformer_block", "There is a bias")
class WithLayerNorm(TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = RMSNorm(d_model)


@mistake("transformer_block", "`ln1.weight` does not start at 1")
class DrawnGain(TransformerBlock):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        nn.init.normal_(self.ln1.weight)


@mistake("transformer_block", "shapes in this line do not fit")
class BlockWithRopeOfTheModel(TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
        self.attn.rope = RotaryPositionalEmbedding(theta, d_model, max_seq_len)


# Language models.


def model_with(words, make):
    """A language model with other blocks."""

    class Model(TransformerLM):
        def __init__(self, vocab, length, d_model, layers, heads, d_ff, theta):
            super().__init__(vocab, length, d_model, layers, heads, d_ff, theta)
            self.layers = nn.ModuleList(
                make(d_model, heads, d_ff, length, theta) for _ in range(layers)
            )

    mistake("transformer_lm", words)(Model)


model_with("is `theta`", block_of(without_theta))
model_with("Post-norm instead of", type("PostNorm", (TransformerBlock,), {"forward": post_norm}))
model_with("an input of shape (1, 3) after (1, 1), fails", block_of(KeptMask))


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


@mistake("transformer_lm", "hidden from torch")
class PlainList(TransformerLM):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        layers = list(self.layers)
        del self.layers
        self.layers = layers


@mistake("transformer_lm", "Missing: `ln_final.weight`")
class NoFinalNorm(TransformerLM):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.ln_final = nn.Identity()


@mistake("transformer_lm", "rounded to a multiple of 64")
class RoundedWidth(TransformerLM):
    def __init__(self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff, theta):
        sizes = (vocab_size, context_length, d_model, num_layers, num_heads)
        super().__init__(*sizes, (d_ff + 63) // 64 * 64, theta)


@mistake("transformer_lm", "nothing fills `lm_head.weight`")
class UnfilledHead(TransformerLM):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.lm_head.weight = nn.Parameter(torch.empty_like(self.lm_head.weight))


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
