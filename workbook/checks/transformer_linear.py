"""The check of `Linear`, and the usual ways in which it goes wrong."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from workbook.checks.tensors import drawn
from workbook.checks.text_variants import Variant
from workbook.checks.transformer_functions import open_question, praise
from workbook.checks.transformer_initial import check_drawn
from workbook.checks.transformer_modules import check_module, module_remarks
from workbook.checks.transformer_trial import Case, Topic

SIGNATURE = "class Linear with Linear(in_features, out_features)"

RIGHT: dict[str, Callable] = {"linear": lambda x, weight: x @ weight.T}

VARIANTS = (
    Variant(
        "linear",
        lambda x, weight: x @ weight,
        "The product is `x @ W`. The weight has one row for each output, so that it is `x @ W.T` "
        "(y = W x for a single vector).",
    ),
    Variant(
        "linear",
        lambda x, weight: x @ weight.T / math.sqrt(x.shape[-1]),
        "The result is divided by √d_in: the scale belongs to the first weights only.",
    ),
    Variant("linear", lambda x, weight: x @ weight.T + 1, "A bias of 1 is added."),
    Variant("linear", lambda x, weight: torch.relu(x @ weight.T), "A ReLU follows: leave it out."),
)


def reference(case: Case, stages: dict[str, Callable]) -> Tensor:
    """What the layer makes of the input of a case."""
    return stages["linear"](case.inputs["x"].double(), case.weights["weight"].double())


def _case(*leading: int, sizes: tuple[int, int] = (3, 2), what: str = "") -> Case:
    return Case(
        f"Linear{sizes}(x)",
        {"x": drawn(*leading, sizes[0], seed=1)},
        sizes,
        {"weight": drawn(sizes[1], sizes[0], seed=2)},
        what=what,
    )


TOPIC = Topic(
    cases=(
        _case(1),
        _case(2),
        _case(2, sizes=(3, 3)),
        _case(2, 2, what="two leading dimensions"),
    ),
    reference=reference,
    right=RIGHT,
    variants=VARIANTS,
)


def linear(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = check_module(attempt, TOPIC, SIGNATURE, _case(2))
    remarks = module_remarks(learner)
    d_in, d_out = 64, 256
    (weight,) = learner.make(d_in, d_out).parameters()
    others = {
        2 / (d_in + d_out): "The variance was taken for the standard deviation: √ is missing.",
        math.sqrt(1 / (d_in + d_out)): "The 2 is missing: the variance is 2 / (d_in + d_out).",
        math.sqrt(2 / d_in): "The variance is 2 / d_in, not 2 / (d_in + d_out).",
        math.sqrt(2 / d_out): "The variance is 2 / d_out, not 2 / (d_in + d_out).",
        math.sqrt(1 / d_in): "The variance is 1 / d_in, not 2 / (d_in + d_out).",
        math.sqrt(1 / d_out): "The variance is 1 / d_out, not 2 / (d_in + d_out).",
        1.0: "The standard deviation is 1: these are plain `randn`, not scaled at all.",
        0.02: "The standard deviation is GPT-2's 0.02: the course asks for √(2 / (d_in + d_out)).",
    }
    check_drawn(weight, math.sqrt(2 / (d_in + d_out)), others, f"Linear({d_in}, {d_out})")
    for case, remark in (
        (_case(), "A single vector, without leading axes, fails."),
        (_case(2, 1, 2), "Three leading axes fail."),
    ):
        remarks += open_question(learner, TOPIC, case, remark)
    return praise("Right values, and a right first weight.", remarks)
