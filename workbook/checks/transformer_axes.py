"""How the axes of heads and positions are split, swapped and joined, and the usual wrong ways."""

from collections.abc import Callable

from torch import Tensor

from workbook.checks.text_variants import Variant


def split(x: Tensor, heads: int) -> Tensor:
    """Heads in front of positions."""
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


def merge(x: Tensor) -> Tensor:
    """The numbers of all heads side by side."""
    return x.transpose(-2, -3).flatten(-2)


def _straight(x: Tensor, heads: int) -> Tensor:
    return x.reshape(*x.shape[:-2], heads, x.shape[-2], -1)


def _straight_back(x: Tensor) -> Tensor:
    return x.reshape(*x.shape[:-3], x.shape[-2], -1)


def _interleaved(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (-1, heads)).movedim(-1, -3)


def _interleaved_back(x: Tensor) -> Tensor:
    return x.movedim(-3, -1).flatten(-2)


def _unswapped(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (heads, -1))


def _unswapped_under_a_mask(x: Tensor, heads: int) -> Tensor:
    if x.shape[-2] != heads:
        raise RuntimeError("a mask for positions does not fit the scores of heads")
    return _unswapped(x, heads)


def _heads(mistake: str, split: Callable = split, merge: Callable = merge) -> Variant:
    return Variant("heads", lambda: (split, merge), mistake)


STRAIGHT = (
    "The heads are split without the transpose: first (seq, heads, d_head), then swap the two "
    "axes. Viewed straight as (heads, seq, d_head) the numbers of positions and heads mix."
)
INTERLEAVED = (
    "The heads are interleaved: head h takes every num_heads-th number. It should take d_head "
    "numbers in a row: (heads d_head), not (d_head heads)."
)
UNSWAPPED = (
    "Heads attend to heads: (seq, heads, d_head) needs seq and heads swapped before attention."
)
IN_AXES = (
    _heads(STRAIGHT, _straight),
    _heads(STRAIGHT, _straight, _straight_back),
    _heads(INTERLEAVED, _interleaved),
    _heads(INTERLEAVED, _interleaved, _interleaved_back),
    _heads(UNSWAPPED, _unswapped),
    _heads(UNSWAPPED, _unswapped, lambda x: x.flatten(-2)),
    _heads(UNSWAPPED, _unswapped_under_a_mask),
    _heads(
        "It is one head as wide as the model: `num_heads` plays no part.",
        lambda x, heads: x.unsqueeze(-3),
    ),
    _heads(
        "The heads are put together without the transpose back: first swap to "
        "(seq, heads, d_head), then join the last two axes.",
        merge=_straight_back,
    ),
    _heads(
        "The heads are interleaved when they are put together: (heads d_head), not (d_head heads).",
        merge=_interleaved_back,
    ),
    _heads("The heads are added up: put them side by side.", merge=lambda x: x.sum(-3)),
    _heads("The heads are averaged: put them side by side.", merge=lambda x: x.mean(-3)),
)
