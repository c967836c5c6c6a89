"""The check of `RotaryPositionalEmbedding`, and the usual ways in which it goes wrong."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from workbook.checks.tensors import drawn
from workbook.checks.text_variants import Variant
from workbook.checks.transformer_functions import open_question, praise
from workbook.checks.transformer_modules import check_module, module_remarks
from workbook.checks.transformer_trial import Case, Topic

SIGNATURE = (
    "class RotaryPositionalEmbedding with RotaryPositionalEmbedding(theta, d_k, max_seq_len)"
)


def _angles(positions: Tensor, d_k: int, theta: float) -> Tensor:
    return positions.unsqueeze(-1) * theta ** (-torch.arange(0, d_k, 2).double() / d_k)


def _turned(even: Tensor, odd: Tensor, angles: Tensor) -> tuple[Tensor, Tensor]:
    cos, sin = angles.cos(), angles.sin()
    return even * cos - odd * sin, even * sin + odd * cos


def _woven(even: Tensor, odd: Tensor) -> Tensor:
    return torch.stack((even, odd), -1).flatten(-2)


def _pairs(x: Tensor, angles: Tensor) -> Tensor:
    return _woven(*_turned(x[..., 0::2], x[..., 1::2], angles))


ROPE: dict[str, Callable] = {
    "positions": lambda positions: positions,
    "angles": _angles,
    "turn": _pairs,
}


def rotated(stages: dict[str, Callable], x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """RoPE by its stages."""
    positions = stages["positions"](positions).double()
    return stages["turn"](x, stages["angles"](positions, x.shape[-1], theta))


def reference(case: Case, stages: dict[str, Callable]) -> Tensor:
    """What RoPE makes of the input of a case."""
    x, positions = case.inputs["x"].double(), case.inputs["token_positions"]
    return rotated(stages, x, positions, case.arguments[0])


def _turn(function: Callable, mistake: str) -> Variant:
    return Variant("turn", function, mistake)


def _exponent(of: Callable[[Tensor, int], Tensor], mistake: str) -> Variant:
    """A variant of theta's exponent, as a function of k = 0, 1, 2 ... and d_k."""

    def angles(positions: Tensor, d_k: int, theta: float) -> Tensor:
        return positions.unsqueeze(-1) * theta ** -of(torch.arange(d_k // 2).double(), d_k)

    return Variant("angles", angles, mistake)


def _tables(x: Tensor, partner: Tensor, angles: Tensor) -> Tensor:
    return x * angles.cos() + partner * angles.sin()


HALVES = (
    "RoPE on halves: number k is turned with number k + d_k/2, as Llama's code does. The course "
    "turns neighbours, (0, 1), (2, 3), and so on."
)
MIXED = (
    "The angles are in another order than the pairs: neighbours 2k and 2k + 1 share angle k, so "
    "that each angle comes twice in a row (`repeat_interleave`, not `cat`)."
)
SIGN = "The sign of the rotation: it is (x cos - y sin, x sin + y cos) for a pair (x, y)."
EXPONENT = "The exponent of theta is wrong: the frequency of pair k = 0, 1, ... is theta^(-2k/d_k)"
IN_ROPE = (
    _turn(
        lambda x, angles: torch.cat(_turned(*x.chunk(2, -1), angles), -1),
        HALVES,
    ),
    _turn(
        lambda x, angles: torch.cat(_turned(*x.chunk(2, -1), -angles), -1),
        f"{HALVES} And: {SIGN}",
    ),
    _turn(
        lambda x, angles: torch.cat(_turned(x[..., 0::2], x[..., 1::2], angles), -1),
        "Neighbours are turned, but written back as two halves: weave them together again.",
    ),
    _turn(
        lambda x, angles: _woven(*_turned(*x.chunk(2, -1), angles)),
        "Halves are turned, but written back as neighbours: the course turns neighbours.",
    ),
    _turn(
        lambda x, angles: _tables(
            x, _woven(-x[..., 1::2], x[..., 0::2]), torch.cat((angles, angles), -1)
        ),
        MIXED,
    ),
    _turn(
        lambda x, angles: _tables(
            x,
            torch.cat((-x.chunk(2, -1)[1], x.chunk(2, -1)[0]), -1),
            angles.repeat_interleave(2, -1),
        ),
        HALVES,
    ),
    _turn(lambda x, angles: _pairs(x, -angles), SIGN),
    _turn(lambda x, angles: _pairs(x, math.pi / 2 - angles), "Sine and cosine are swapped."),
    _turn(
        lambda x, angles: _tables(
            x, _woven(x[..., 1::2], x[..., 0::2]), angles.repeat_interleave(2, -1)
        ),
        f"A minus is missing. {SIGN}",
    ),
    _turn(
        lambda x, angles: _tables(
            _woven(x[..., 0::2], -x[..., 1::2]),
            _woven(-x[..., 1::2], x[..., 0::2]),
            angles.repeat_interleave(2, -1),
        ),
        SIGN,
    ),
    _turn(
        lambda x, angles: _woven(*_turned(x[..., 0::2], x[..., 1::2], angles)[::-1]),
        "The two numbers of each pair come back in the wrong order.",
    ),
    _turn(
        lambda x, angles: x + _woven(angles.sin(), angles.cos()),
        "Sines and cosines are added to x: RoPE turns x by them.",
    ),
    _turn(lambda x, angles: x, "x comes back as it was."),
    Variant("positions", lambda p: p + 1, "Positions are off by one: they count from 0."),
    Variant("positions", lambda p: p - 1, "Positions are off by one: they count from 0."),
    Variant(
        "positions",
        lambda p: torch.arange(p.shape[-1]).expand(p.shape),
        "`token_positions` is ignored: take the angles of these positions, not of 0, 1, 2, ...",
    ),
    Variant("positions", lambda p: p * 0, "Every position is turned like position 0."),
    _exponent(lambda k, d: 2 * (k + 1) / d, f"{EXPONENT}: here k begins at 1."),
    _exponent(lambda k, d: (2 * k + 1) / d, f"{EXPONENT}: here it is (2k + 1)/d_k."),
    _exponent(lambda k, d: (2 * k - 1) / d, f"{EXPONENT}: here it is (2k - 1)/d_k."),
    _exponent(lambda k, d: k / d, f"{EXPONENT}: here the 2 is missing."),
    _exponent(lambda k, d: 4 * k / d, f"{EXPONENT}: here it is 4k/d_k, the 2 came twice."),
    _exponent(lambda k, d: -2 * k / d, f"{EXPONENT}: here the minus is missing."),
    _exponent(lambda k, d: k, f"{EXPONENT}: here it is not divided by d_k."),
    _exponent(lambda k, d: 2 * k, f"{EXPONENT}: here it is not divided by d_k."),
    _exponent(lambda k, d: k * 0, f"{EXPONENT}: here all pairs turn alike."),
    _exponent(lambda k, d: k * 0 + 1, f"{EXPONENT}: here all pairs turn alike."),
    _exponent(lambda k, d: 2 * k.flip(0) / d, f"{EXPONENT}: here the last pair turns fastest."),
    _exponent(lambda k, d: 2 * k / max(d - 2, 1), f"{EXPONENT}: here it ends at -1."),
    Variant(
        "angles",
        lambda positions, d_k, theta: _angles(positions, d_k, 10_000.0),
        "`theta` is ignored: 10,000 is taken.",
    ),
    Variant(
        "angles",
        lambda positions, d_k, theta: 2 * math.pi * _angles(positions, d_k, theta),
        "There is a factor of 2π: the angle is position · theta^(-2k/d_k) itself.",
    ),
    Variant(
        "angles",
        lambda positions, d_k, theta: torch.deg2rad(_angles(positions, d_k, theta)),
        "The angles are taken as degrees: they are in radians.",
    ),
)


def _case(x: Tensor, positions: list, theta: float = 50.0, what: str = "") -> Case:
    arguments = (theta, x.shape[-1], 8)
    made = f"RotaryPositionalEmbedding({theta:g}, {x.shape[-1]}, 8)(x, token_positions)"
    return Case(made, {"x": x, "token_positions": torch.tensor(positions)}, arguments, what=what)


TOPIC = Topic(
    cases=(
        _case(drawn(1, 3, 4, seed=1), [0, 1, 2]),
        _case(drawn(1, 3, 4, seed=1), [3, 0, 5]),
        _case(drawn(1, 2, 6, seed=2), [1, 2], 10_000.0),
        _case(drawn(2, 3, 4, seed=3), [0, 1, 2], what="a batch"),
        _case(drawn(3, 3, 4, seed=4), [4, 1, 0], what="a batch"),
        _case(drawn(2, 3, 2, 4, seed=5), [1, 6], what="two leading dimensions"),
        _case(drawn(1, 1, 4, seed=7), [7], what="the last position, max_seq_len - 1"),
        _case(drawn(1, 8, 2, seed=8), list(range(8)), 10_000.0, "as many positions as fit"),
    ),
    reference=reference,
    right=ROPE,
    variants=IN_ROPE,
)


def rope(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = check_module(attempt, TOPIC, SIGNATURE, TOPIC.cases[3])
    case = TOPIC.cases[1]
    half = Case(
        case.made,
        {**case.inputs, "x": case.inputs["x"].bfloat16()},
        case.arguments,
        {},
        torch.bfloat16,
    )
    remarks = module_remarks(learner)
    for case, remark in (
        (_case(drawn(3, 4, seed=6), [0, 2, 1]), "An x of two axes, (seq, d_k), fails."),
        (
            _case(drawn(2, 3, 4, seed=6), [[0, 1, 2], [5, 3, 4]]),
            "Positions of their own for each sequence, of shape (batch, seq), fail.",
        ),
        (half, "An x in bfloat16 fails, or comes back in another type."),
    ):
        remarks += open_question(learner, TOPIC, case, remark)
    return praise("Neighbours are turned by the positions that are handed in.", remarks)
