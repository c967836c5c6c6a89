"""Wrong RoPE and attention layers: each has one mistake, which the check must name."""

import math

import torch
from einops import rearrange
from torch import nn

from attempts import transformer_right_heads
from attempts.transformer_lists import mistake
from attempts.transformer_right import Linear, RotaryPositionalEmbedding
from attempts.transformer_right_functions import attention, softmax


def rope(words, frequencies=None, shift=0, turn=None, take=None):
    """RoPE with another way to get angles, positions or the turn itself."""

    class Rope(nn.Module):
        def __init__(self, theta, d_k, max_seq_len):
            super().__init__()
            k = torch.arange(d_k // 2)
            f = theta ** (-2 * k / d_k) if frequencies is None else frequencies(k, d_k, theta)
            self.angles = (torch.arange(max_seq_len) + shift)[:, None] * f

        def forward(self, x, token_positions):
            angles = self.angles[token_positions if take is None else take(x, token_positions)]
            cos, sin = angles.cos(), angles.sin()
            if turn is not None:
                return turn(x, cos, sin)
            even, odd = x[..., 0::2], x[..., 1::2]
            return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

    mistake("rope", words)(Rope)


def halves(x, cos, sin):
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)


def as_in_llama(x, cos, sin):
    first, second = x.chunk(2, -1)
    cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def backwards(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos + odd * sin, odd * cos - even * sin), -1).flatten(-2)


def not_woven(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.cat((even * cos - odd * sin, even * sin + odd * cos), -1)


def mixed_tables(x, cos, sin):
    partner = torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
    return x * torch.cat((cos, cos), -1) + partner * torch.cat((sin, sin), -1)


def no_minus(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos + odd * sin, even * sin + odd * cos), -1).flatten(-2)


rope("RoPE on halves", turn=halves)
rope("RoPE on halves", turn=as_in_llama)
rope("sign of the rotation", turn=backwards)
rope("interleave them", turn=not_woven)
rope("repeat_interleave", turn=mixed_tables)
rope("sign of the rotation", turn=no_minus)
rope("Sine and cosine are swapped", turn=lambda x, cos, sin: backwards(x, sin, -cos))
rope("off by one", shift=1)
rope("`token_positions` is ignored", take=lambda x, p: torch.arange(x.shape[-2]))
rope("exponent of theta", lambda k, d, theta: theta ** (-2 * (k + 1) / d))
rope("exponent of theta", lambda k, d, theta: theta ** (-k / d))
rope("exponent of theta", lambda k, d, theta: theta ** (-4 * k / d))
rope("exponent of theta", lambda k, d, theta: theta ** (2 * k / d))
rope("exponent of theta", lambda k, d, theta: theta ** (-2.0 * k))
rope("`theta` is ignored", lambda k, d, theta: 10_000.0 ** (-2 * k / d))
rope("exponent of theta", lambda k, d, theta: torch.ones(len(k)))
rope("taken as degrees", lambda k, d, theta: torch.rad2deg(theta ** (-2 * k / d)))
rope("nothing is rotated", turn=lambda x, cos, sin: x)
rope("All of it is 0", turn=lambda x, cos, sin: torch.zeros_like(x))
rope("never filled", turn=lambda x, cos, sin: torch.rand_like(x))


def overwritten(x, cos, sin):
    x = x.clone()
    x[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    x[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return x


def overwritten_in_place(x, cos, sin):
    x[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    x[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    return x


rope("computed from the other's new value", turn=overwritten)
rope("computed from the other's new value", turn=overwritten_in_place)


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


class Steps(transformer_right_heads.MultiHeadSelfAttention):
    """Right multi-head attention, in steps to change."""

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


def heads(words, **changes):
    """Multi-head attention with some of its steps changed."""
    mistake("multihead_self_attention", words)(type("Changed", (Steps,), changes))


def triangle(make):
    return lambda self, length: make(torch.ones(length, length, dtype=torch.bool))


def with_a_large_number(make):
    def attend(self, q, k, v):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        seen = make(torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool))
        return softmax(scores.masked_fill(~seen, -1e9), -1) @ v

    return attend


def straight(self, x):
    return x.reshape(*x.shape[:-2], self.heads, x.shape[-2], -1)


def whole(self, x, positions):
    rope = RotaryPositionalEmbedding(50.0, x.shape[-1], 6)
    positions = torch.arange(x.shape[-2]) if positions is None else positions
    q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
    if self.rope is not None:
        q, k = rope(q, positions), rope(k, positions)
    return self.split(q), self.split(k), self.split(v)


def turned(which):
    def heads_of(self, x, positions):
        parts = [self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj)]
        turn = [self.turn(part, positions) for part in parts]
        return tuple(turn[i] if i in which else parts[i] for i in range(3))

    return heads_of


def turned_before_the_swap(self, x, positions):
    parts = [
        rearrange(p(x), "b s (h d) -> b s h d", h=self.heads) for p in (self.q_proj, self.k_proj)
    ]
    if self.rope is not None:
        positions = torch.arange(x.shape[-2]) if positions is None else positions
        parts = [self.rope(part, positions) for part in parts]
    return *(part.transpose(1, 2) for part in parts), self.split(self.v_proj(x))


def scaled(by):
    def attend(self, q, k, v):
        scores = (q @ k.mT / by(q)).masked_fill(~self.seen(q.shape[-2]), -math.inf)
        return softmax(scores, -1) @ v

    return attend


heads("without the transpose", split=straight)
heads("interleaved", split=lambda self, x: rearrange(x, "... s (d h) -> ... h s d", h=self.heads))
heads(
    "interleaved",
    split=lambda self, x: rearrange(x, "... s (d h) -> ... h s d", h=self.heads),
    merge=lambda self, x: rearrange(x, "... h s d -> ... s (d h)"),
)
heads("put together in", merge=lambda self, x: x.reshape(*x.shape[:-3], x.shape[-2], -1))
heads("put together in", merge=lambda self, x: rearrange(x, "... h s d -> ... s (d h)"))
heads("one head as wide", split=lambda self, x: x[..., None, :, :])
heads(
    "Heads attend to heads",
    split=lambda self, x: rearrange(x, "... s (h d) -> ... s h d", h=self.heads),
    merge=lambda self, x: rearrange(x, "... s h d -> ... s (h d)"),
)
heads(
    "without the transpose:",
    split=straight,
    merge=lambda self, x: x.reshape(*x.shape[:-3], x.shape[-2], -1),
)
heads("no causal mask", seen=triangle(lambda ones: ones))
heads("diagonal is masked", seen=triangle(lambda ones: ones.tril(-1)))
heads("diagonal is masked", attend=with_a_large_number(lambda ones: ones.tril(-1)))
heads("mask is inverted", seen=triangle(lambda ones: ones.triu(1)))
heads("mask is inverted", attend=with_a_large_number(lambda ones: ones.triu(1)))
heads("mask is inverted", seen=triangle(lambda ones: ones.triu()))
heads("off by one", seen=triangle(lambda ones: ones.tril(1)))
heads("√d_model", attend=scaled(lambda q: (q.shape[-1] * q.shape[-3]) ** 0.5))
heads("not scaled", attend=scaled(lambda q: 1))
heads("not by its square root", attend=scaled(lambda q: q.shape[-1]))
heads("whole d_model", heads_of=whole)
heads("Scaled by √num_heads", attend=scaled(lambda q: q.shape[-3] ** 0.5))
heads(
    "as the width of a head",
    split=lambda self, x: x.unflatten(-1, (-1, self.heads)).transpose(1, 2),
)
heads("so use `x @ W.T`", out=lambda self, x: x @ self.output_proj.weight)
heads("call `.contiguous()`", merge=lambda self, x: x.transpose(1, 2).view(*x[:, 0].shape[:2], -1))
heads(
    "softmax runs over the heads",
    attend=lambda self, q, k, v: (
        softmax((q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~self.seen(q.shape[-2]), -1e9), 1) @ v
    ),
)
heads("to the values too", heads_of=turned((0, 1, 2)))
heads("to the queries only", heads_of=turned((0,)))
heads("before the axes of heads and positions", heads_of=turned_before_the_swap)
heads("RoPE is missing", heads_of=turned(()))
heads("ignored", turn=lambda self, x, p: Steps.turn(self, x, None))
heads("output projection is missing", out=lambda self, x: x + 0 * self.output_proj(x))
heads(
    "queries, keys and values are swapped",
    attend=lambda self, q, k, v: attention(k, q, v, self.seen(q.shape[-2])),
)


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


@mistake("multihead_self_attention", "x is added inside")
class WithResidual(Steps):
    def forward(self, x, token_positions=None):
        return x + super().forward(x, token_positions)


@mistake("multihead_self_attention", "is used twice")
class KeysByQueries(Steps):
    def heads_of(self, x, positions):
        q, _, v = super().heads_of(x, positions)
        return q, q, v


@mistake("multihead_self_attention", "is used twice")
class QueriesByKeys(Steps):
    def heads_of(self, x, positions):
        _, k, v = super().heads_of(x, positions)
        return k, k, v


@mistake("multihead_self_attention", "your third argument is `use_rope`; which one is `theta`?")
class NoPlaceForTheta(Steps):
    def __init__(self, d_model, num_heads, use_rope=True):
        super().__init__(d_model, num_heads, 16, 50.0 if use_rope else None)


@mistake("multihead_self_attention", "Right without RoPE. It cannot be called")
class WithoutRope(Steps):
    """The first of two classes, of which the other has RoPE."""

    def __init__(self, d_model, num_heads, device=None, dtype=None):
        super().__init__(d_model, num_heads)


class PositionsInABatch(Steps):
    """Positions of shape (batch, seq), which a batch of 1 or of num_heads hides."""

    def turn(self, x, positions):
        positions = torch.arange(x.shape[-2]) if positions is None else positions
        return super().turn(x, positions.expand(len(x), -1))


mistake("multihead_self_attention", "need an axis for the heads")(PositionsInABatch)


class KeptMask(Steps):
    """The mask of the first call serves every call."""

    def seen(self, length):
        self.mask = getattr(self, "mask", super().seen(length))
        return self.mask


mistake(
    "multihead_self_attention",
    "a second call, with an input of shape (3, 4, 8) after (1, 3, 8), fails",
)(KeptMask)
