"""The check of `softmax`, and the usual ways in which it goes wrong."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from workbook.checks.tensors import drawn
from workbook.checks.text_variants import Variant
from workbook.checks.transformer_functions import check_function, praise
from workbook.checks.transformer_trial import Case, Topic
from workbook.checks.verdicts import expect_function

SIGNATURE = "softmax(x, dim)"

RIGHT: dict[str, Callable] = {
    "axis": lambda dim: dim,
    "shift": lambda x, dim: x - x.amax(dim, keepdim=True),
    "power": torch.exp,
    "total": lambda powers, dim: powers.sum(dim, keepdim=True),
    "finish": lambda shares: shares,
}


def reference(case: Case, stages: dict[str, Callable]) -> Tensor:
    """Softmax by its stages."""
    x, dim = case.inputs["x"].double(), stages["axis"](case.inputs["dim"])
    powers = stages["power"](stages["shift"](x, dim))
    return stages["finish"](powers / stages["total"](powers, dim))


NO_SHIFT = (
    "exp of a large number overflows to inf (and exp of very negative ones is 0 everywhere): take "
    "the maximum along `dim` away first. That changes nothing else."
)
NO_KEEPDIM = (
    "The sum, or the maximum, lost its axis: without `keepdim=True` it is matched with another one."
)
VARIANTS = (
    Variant("shift", lambda x, dim: x, NO_SHIFT),
    Variant(
        "shift",
        lambda x, dim: x - x.max(),
        "The maximum of the whole tensor was taken away. A row far below it becomes 0 / 0: take "
        "the maximum along `dim`.",
    ),
    Variant(
        "shift",
        lambda x, dim: x - x.amin(dim, keepdim=True),
        "The smallest number was taken away, not the largest: exp still overflows.",
    ),
    Variant(
        "shift",
        lambda x, dim: x - x.mean(dim, keepdim=True),
        "The mean was taken away, not the maximum: exp still overflows.",
    ),
    Variant(
        "shift",
        lambda x, dim: x - x.amax(-1, keepdim=True),
        "The maximum is that of the last axis, whatever `dim` is.",
    ),
    Variant(
        "shift",
        lambda x, dim: x - x.amax(0, keepdim=True),
        "The maximum is that of axis 0, whatever `dim` is.",
    ),
    Variant("shift", lambda x, dim: x - x.amax(dim), NO_KEEPDIM),
    Variant("power", torch.exp2, "2 was raised to the power, not e: use `torch.exp`."),
    Variant("power", lambda x: torch.exp(-x), "The sign is turned: exp(-x), not exp(x)."),
    Variant("power", lambda x: x, "The numbers were divided by their sum: exp comes first."),
    Variant(
        "total",
        lambda powers, dim: powers.sum(),
        "Divided by the sum of the whole tensor: each row along `dim` must add up to 1.",
    ),
    Variant("total", lambda powers, dim: powers.sum(dim), NO_KEEPDIM),
    Variant(
        "total",
        lambda powers, dim: powers.sum(-1, keepdim=True),
        "The sum is that of the last axis, whatever `dim` is.",
    ),
    Variant(
        "total",
        lambda powers, dim: powers.mean(dim, keepdim=True),
        "Divided by the mean, not by the sum.",
    ),
    Variant(
        "total",
        lambda powers, dim: powers.norm(dim=dim, keepdim=True),
        "Divided by the root of the squares, not by the sum.",
    ),
    Variant("total", lambda powers, dim: torch.ones(()), "The division by the sum is missing."),
    Variant("axis", lambda dim: -1, "The wrong axis: `dim` is ignored, the last axis is taken."),
    Variant("axis", lambda dim: 0, "The wrong axis: `dim` is ignored, and axis 0 is taken."),
    Variant("axis", lambda dim: 1, "The wrong axis: `dim` is ignored, and axis 1 is taken."),
    Variant(
        "finish", torch.log, "This is the logarithm of softmax: the numbers should add up to 1."
    ),
)


def _case(x: Tensor, dim: int, what: str = "") -> Case:
    return Case("softmax(x, dim)", {"x": x, "dim": dim}, what=what)


FAR_APART = torch.tensor([[1000.0, 1001.0, 1002.0], [-1.0, 0.0, 1.0]])
TOPIC = Topic(
    cases=(
        _case(torch.tensor([1.0, 2.0, 3.0]), -1),
        _case(drawn(2, 3, seed=1), -1),
        _case(drawn(2, 3, seed=1), 0),
        _case(drawn(3, 3, seed=2), -1),
        _case(drawn(3, 3, seed=2), 0),
        _case(drawn(2, 3, 2, seed=3), 1),
        _case(drawn(2, 3, 2, seed=3), -3),
        _case(drawn(2, 2, 2, 2, seed=4), 2),
        _case(torch.tensor([1000.0, 1001.0, 999.0]), 0, "large numbers"),
        _case(torch.tensor([-1000.0, -1001.0, -999.0]), -1, "very negative numbers"),
        _case(FAR_APART, -1, "rows that are far apart"),
        _case(FAR_APART.T.contiguous(), 0, "columns that are far apart"),
        _case(torch.tensor([0.5, -torch.inf, 1.5]), -1, "numbers of -inf, as a mask makes them"),
    ),
    reference=reference,
    right=RIGHT,
    variants=VARIANTS,
)


def softmax(attempt: Any, part: str | None = None) -> str:
    """Praise for a right softmax; raises `Wrong` with the first input that fails."""
    expect_function(attempt, SIGNATURE)
    remarks = check_function(attempt, TOPIC, _case(drawn(2, 3, seed=1), -1))
    return praise("Right along every axis, and large numbers do not overflow.", remarks)
