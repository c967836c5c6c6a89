"""Wrong blocks and language models: each has one mistake, which the check must name."""

import torch
from torch import nn

from attempts import transformer_right, transformer_right_heads
from attempts.transformer_lists import mistake
from attempts.transformer_right import RMSNorm
from attempts.transformer_right_functions import softmax
from attempts.transformer_wrong_heads import (
    KeptMask,
    LlamasRope,
    PositionsInABatch,
    Steps,
    triangle,
)


def block(words):
    """A decorator for another forward of a block."""

    def add(forward):
        bases = (transformer_right_heads.TransformerBlock,)
        mistake("transformer_block", words)(type("Changed", bases, {"forward": forward}))
        return forward

    return add


@block("Post-norm instead of pre-norm")
def post_norm(self, x):
    x = self.ln1(x + self.attn(x))
    return self.ln2(x + self.ffn(x))


@block("residual stream is normalised")
def normed_stream(self, x):
    x = self.ln1(x)
    x = x + self.attn(x)
    x = self.ln2(x)
    return x + self.ffn(x)


@block("in parallel")
def parallel(self, x):
    return x + self.attn(self.ln1(x)) + self.ffn(self.ln2(x))


@block("block's input")
def from_the_start(self, x):
    return x + self.ffn(self.ln2(x + self.attn(self.ln1(x))))


@block("gets the first one's output")
def normed_twice(self, x):
    normed = self.ln1(x)
    x = x + self.attn(normed)
    return x + self.ffn(self.ln2(normed))


def attend(self, x):
    return x + self.attn(self.ln1(x))


def feed(self, x):
    return x + self.ffn(self.ln2(x))


def in_turn(first, second):
    return lambda self, x: second(self, first(self, x))


for words, first, second in (
    (
        "norm before the feed-forward layer",
        attend,
        lambda self, x: x + self.ffn(x) + 0 * self.ln2(x),
    ),
    (
        "Both residual connections",
        lambda self, x: self.attn(self.ln1(x)),
        lambda self, x: self.ffn(self.ln2(x)),
    ),
    ("The feed-forward layer is missing", attend, lambda self, x: x),
    ("Attention is missing", lambda self, x: x, feed),
    ("used twice", attend, lambda self, x: x + self.ffn(self.ln1(x))),
    ("missing around attention", lambda self, x: self.attn(self.ln1(x)), feed),
    ("missing around the feed-forward", attend, lambda self, x: self.ffn(self.ln2(x))),
    ("before attention", feed, attend),
    ("in the second half", attend, lambda self, x: self.ln2(x + self.ffn(x))),
    ("in the first half", lambda self, x: self.ln1(x + self.attn(x)), feed),
):
    block(words)(in_turn(first, second))


def block_with(words, **parts):
    """A block with other parts, made by functions of its arguments."""

    class Block(transformer_right_heads.TransformerBlock):
        def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
            super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
            for name, make in parts.items():
                setattr(self, name, make(d_model, num_heads, d_ff, max_seq_len, theta))

    mistake("transformer_block", words)(Block)


def swapped_gate(self, x):
    return self.w2(transformer_right.silu(self.w3(x)) * self.w1(x))


SwappedGate = type("SwappedGate", (transformer_right.SwiGLU,), {"forward": swapped_gate})
block_with("is `theta`", attn=lambda d, h, *rest: Steps(d, h))
block_with("axis for the heads", attn=lambda d, h, d_ff, *rope: PositionsInABatch(d, h, *rope))
block_with(
    "shape (1, 1, 8) after (1, 3, 8), fails", attn=lambda d, h, d_ff, *rope: KeptMask(d, h, *rope)
)
block_with("RoPE on halves", attn=lambda d, h, d_ff, *rope: LlamasRope(d, h, *rope))
block_with("W1 and W3 are swapped", ffn=lambda d, h, d_ff, *rope: SwappedGate(d, d_ff))
block_with("`theta` is ignored", attn=lambda d, h, f, length, theta: Steps(d, h, length, 10_000.0))


def model(words):
    """A decorator for another forward of the language model."""

    def add(forward):
        bases = (transformer_right_heads.TransformerLM,)
        mistake("transformer_lm", words)(type("Changed", bases, {"forward": forward}))
        return forward

    return add


def through(self, ids):
    x = self.token_embeddings(ids)
    for layer in self.layers:
        x = layer(x)
    return x


@model("final norm")
def no_final_norm(self, ids):
    return self.lm_head(through(self, ids)) + 0 * self.ln_final.weight.sum()


@model("The blocks are not all used")
def one_block(self, ids):
    return self.lm_head(self.ln_final(self.layers[0](self.token_embeddings(ids))))


@model("√d_model")
def scaled_embeddings(self, ids):
    x = self.token_embeddings(ids) * 8**0.5
    for layer in self.layers:
        x = layer(x)
    return self.lm_head(self.ln_final(x))


@model("`ln_final` is used once")
def normed_early(self, ids):
    x = self.ln_final(self.token_embeddings(ids))
    for layer in self.layers:
        x = layer(x)
    return self.lm_head(x)


@model("`ln_final` is used once")
def normed_after_each(self, ids):
    x = self.token_embeddings(ids)
    for layer in self.layers:
        x = self.ln_final(layer(x))
    return self.lm_head(x)


def model_with(words, make):
    """A language model with other blocks."""

    class Model(transformer_right_heads.TransformerLM):
        def __init__(self, vocab, length, d_model, layers, heads, d_ff, theta):
            super().__init__(vocab, length, d_model, layers, heads, d_ff, theta)
            self.layers = nn.ModuleList(
                make(d_model, heads, d_ff, length, theta) for _ in range(layers)
            )

    mistake("transformer_lm", words)(Model)


PostNorm = type("PostNorm", (transformer_right_heads.TransformerBlock,), {"forward": post_norm})
model_with(
    "is `theta`", lambda d, h, d_ff, *rope: transformer_right_heads.TransformerBlock(d, h, d_ff)
)
model_with("Post-norm instead of pre-norm", PostNorm)


def block_of(layer):
    """What makes right blocks, but for their attention layer."""

    def make(*arguments):
        block = transformer_right_heads.TransformerBlock(*arguments)
        d_model, heads, _, *rope = arguments
        block.attn = layer(d_model, heads, *rope)
        return block

    return make


all_seen = {"seen": triangle(lambda ones: ones)}
model_with("no causal mask", block_of(type("NoMask", (Steps,), all_seen)))
model_with("need an axis for the heads", block_of(PositionsInABatch))
model_with("A second call, with an input of shape (1, 3) after (1, 1), fails", block_of(KeptMask))


@mistake("transformer_lm", "share one weight")
class Tied(transformer_right_heads.TransformerLM):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.lm_head.weight = self.token_embeddings.weight


@mistake("transformer_lm", "leave out `pos_emb.weight`")
class LearnedPositions(transformer_right_heads.TransformerLM):
    def __init__(self, vocab_size, context_length, d_model, *others):
        super().__init__(vocab_size, context_length, d_model, *others)
        self.pos_emb = transformer_right.Embedding(context_length, d_model)


@mistake("transformer_block", "share one weight")
class OneNorm(transformer_right_heads.TransformerBlock):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.ln2 = self.ln1


@mistake("transformer_lm", "repeats one block")
class OneBlock(transformer_right_heads.TransformerLM):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.layers = nn.ModuleList([self.layers[0]] * len(self.layers))


@mistake("transformer_lm", "hidden from torch")
class PlainList(transformer_right_heads.TransformerLM):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        layers = list(self.layers)
        del self.layers
        self.layers = layers


@mistake("transformer_lm", "Missing: `ln_final.weight`")
class NoFinalNorm(transformer_right_heads.TransformerLM):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.ln_final = nn.Identity()


@mistake("transformer_block", "There is a bias")
class WithLayerNorm(transformer_right_heads.TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = RMSNorm(d_model)


@mistake("transformer_block", "`ln1.weight` does not start at 1")
class DrawnGain(transformer_right_heads.TransformerBlock):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        nn.init.normal_(self.ln1.weight)


def logits(self, ids):
    return self.lm_head(self.ln_final(through(self, ids)))


for words, forward in (
    ("softmax at the end", lambda self, ids: softmax(logits(self, ids), -1)),
    ("softmax at the end", lambda self, ids: softmax(logits(self, ids), -1).log()),
    ("Only the last position", lambda self, ids: logits(self, ids)[:, -1]),
    ("Only the last position", lambda self, ids: logits(self, ids)[:, -1:]),
    ("likeliest ids", lambda self, ids: logits(self, ids).argmax(-1)),
    ("axes of length 1", lambda self, ids: logits(self, ids).squeeze()),
    ("something is random", lambda self, ids: logits(self, ids) + torch.randn(1)),
    ("must be long", lambda self, ids: logits(self, ids.float())),
):
    model(words)(forward)


@block("`token_positions` is ignored")
def counts_from_0(self, x, token_positions=None):
    x = x + self.attn(self.ln1(x))
    return x + self.ffn(self.ln2(x))


@block("the backward pass fails")
def adds_in_place(self, x):
    y = x + self.attn(self.ln1(x))
    y += self.ffn(self.ln2(y))
    return y


@mistake("transformer_lm", "rounded to a multiple of 64")
class RoundedWidth(transformer_right_heads.TransformerLM):
    def __init__(self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff, theta):
        sizes = (vocab_size, context_length, d_model, num_layers, num_heads)
        super().__init__(*sizes, (d_ff + 63) // 64 * 64, theta)


@mistake("transformer_lm", "your seventh argument is `use_rope`; which one is `rope_theta`?")
class NoPlaceForTheta(transformer_right_heads.TransformerLM):
    def __init__(
        self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff, use_rope=True
    ):
        super().__init__(vocab_size, context_length, d_model, num_layers, num_heads, d_ff, 50.0)


@mistake("transformer_lm", "nothing fills `lm_head.weight`")
class UnfilledHead(transformer_right_heads.TransformerLM):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.lm_head.weight = nn.Parameter(torch.empty_like(self.lm_head.weight))


@mistake("transformer_block", "shapes in this line do not fit")
class RopeOfTheModel(transformer_right_heads.TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
        self.attn.rope = transformer_right.RotaryPositionalEmbedding(theta, d_model, max_seq_len)
