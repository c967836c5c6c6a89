"""The check of `RMSNorm`, and the usual ways in which it goes wrong."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from workbook.checks.tensors import drawn
from workbook.checks.text_variants import Variant
from workbook.checks.transformer_functions import open_question, praise
from workbook.checks.transformer_modules import check_module, module_remarks
from workbook.checks.transformer_trial import Case, Topic

SIGNATURE = "class RMSNorm with RMSNorm(d_model, eps=1e-5)"

NORM: dict[str, Callable] = {
    "high": lambda x: x.double(),
    "eps": lambda eps: 1e-5 if eps is None else eps,
    "centre": lambda x: x,
    "mean square": lambda x: x.square().mean(-1, keepdim=True),
    "root": lambda mean_square, eps: (mean_square + eps).sqrt(),
    "gain": lambda x, gain: x * gain,
}


def normalised(
    stages: dict[str, Callable], x: Tensor, gain: Tensor, eps: float | None = None
) -> Tensor:
    """RMS normalisation by its stages."""
    x = stages["centre"](stages["high"](x))
    root = stages["root"](stages["mean square"](x), stages["eps"](eps))
    return stages["gain"](x / root, gain.to(x.dtype))


def reference(case: Case, stages: dict[str, Callable]) -> Tensor:
    """What the norm makes of the input of a case."""
    eps = case.arguments[1] if len(case.arguments) > 1 else None
    dtype = case.dtype
    return normalised(stages, case.inputs["x"], case.weights["weight"].to(dtype), eps)


OUTSIDE = "ε is outside the root: it is √(mean of squares + ε), not √(mean of squares) + ε."
AXIS = "Each vector, along the last axis, has its own root mean square."
IN_NORM = (
    Variant("root", lambda square, eps: square.sqrt() + eps, OUTSIDE),
    Variant(
        "root", lambda square, eps: square.sqrt(), "ε is missing: a vector of zeros gives 0 / 0."
    ),
    Variant(
        "root",
        lambda square, eps: square.clamp(min=eps).sqrt(),
        "ε is a lower limit here: it must be added to the mean of squares.",
    ),
    Variant(
        "root", lambda square, eps: (square + eps * eps).sqrt(), "ε is squared: add it as it is."
    ),
    Variant("root", lambda square, eps: square + eps, "The square root is missing."),
    Variant(
        "root",
        lambda square, eps: 1 / (square + eps).sqrt(),
        "Multiplied by the root: divide by it.",
    ),
    Variant(
        "centre",
        lambda x: x - x.mean(-1, keepdim=True),
        "This is LayerNorm: the mean is subtracted. RMSNorm leaves the mean where it is.",
    ),
    Variant(
        "mean square",
        lambda x: x.var(-1, keepdim=True, unbiased=False),
        "Divided by the standard deviation, which takes the mean away: it is the mean of squares.",
    ),
    Variant(
        "mean square",
        lambda x: x.var(-1, keepdim=True),
        "Divided by the standard deviation, which takes the mean away (and counts n - 1): it is "
        "the mean of squares.",
    ),
    Variant(
        "mean square",
        lambda x: x.square().sum(-1, keepdim=True),
        "The squares are summed, not averaged: it is the root *mean* square.",
    ),
    Variant(
        "mean square", lambda x: x.abs().mean(-1, keepdim=True).square(), "The squares are missing."
    ),
    Variant("mean square", lambda x: x.mean(-1, keepdim=True), "The squares are missing."),
    Variant("mean square", lambda x: x.square().mean(), f"One mean of the whole tensor. {AXIS}"),
    Variant("mean square", lambda x: x.square().mean(0, keepdim=True), f"The wrong axis. {AXIS}"),
    Variant("mean square", lambda x: x.square().mean(1, keepdim=True), f"The wrong axis. {AXIS}"),
    Variant("mean square", lambda x: x.square().mean(-2, keepdim=True), f"The wrong axis. {AXIS}"),
    Variant(
        "mean square",
        lambda x: x.square().mean(-1),
        "The mean lost its axis: without `keepdim=True` it is matched with another one.",
    ),
    Variant("gain", lambda x, gain: x, "The gain is forgotten: multiply by the weight."),
    Variant("gain", lambda x, gain: x * (1 + gain), "1 + gain: the weight itself is the gain."),
    Variant("gain", lambda x, gain: x + gain, "The gain is added: it must be multiplied."),
)
VARIANTS = (
    *IN_NORM,
    Variant(
        "high",
        lambda x: x,
        "Missing upcast: in half precision the squares overflow. Begin with `x.to(torch.float32)`.",
    ),
    Variant("eps", lambda eps: 1e-5, "The `eps` that is handed in is not used."),
    *(
        Variant("eps", lambda eps, e=e: e if eps is None else eps, "The default of `eps` is 1e-5.")
        for e in (1e-3, 1e-4, 1e-6, 1e-7, 1e-8, 1e-12, torch.finfo(torch.float32).eps)
    ),
)  # fmt: skip

GAIN = torch.tensor([0.5, 2.0, -1.0, 1.5])


def _case(x: Tensor, *eps: float, what: str = "", dtype=torch.float32) -> Case:
    made = f"RMSNorm({', '.join(map(str, (4, *eps)))})(x)"
    return Case(made, {"x": x.to(dtype)}, (4, *eps), {"weight": GAIN}, dtype, what)


TOPIC = Topic(
    cases=(
        _case(drawn(1, 1, 4, seed=1), 0.5),
        _case(drawn(1, 2, 4, seed=1)),
        _case(drawn(2, 1, 4, seed=2) + 1, 0.5),
        _case(drawn(1, 2, 4, seed=2, std=0.003, digits=4), what="small numbers, so that ε matters"),
        _case(drawn(4, 4, 4, seed=3), 0.5),
        _case(drawn(2, 3, 4, seed=4), 0.5),
        _case(torch.zeros(1, 1, 4), what="only zeros"),
        _case(drawn(1, 2, 4, seed=6, std=300, digits=0), dtype=torch.float16),
        _case(drawn(1, 2, 4, seed=7), dtype=torch.bfloat16),
        _case(drawn(1, 2, 4, seed=8), dtype=torch.float64),
    ),
    reference=reference,
    right=NORM,
    variants=VARIANTS,
    typed=True,
)


def rmsnorm(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = check_module(attempt, TOPIC, SIGNATURE, TOPIC.cases[2])
    remarks = module_remarks(learner)
    (weight,) = learner.make(4).parameters()
    if not weight.eq(1).all():
        remarks.append("The gain does not begin at 1, where a new norm changes only the length.")
    for axes, leading in ((2, (2,)), (4, (2, 1, 3))):
        case = _case(drawn(*leading, 4, seed=5), 0.5)
        remarks += open_question(learner, TOPIC, case, f"Inputs with {axes} axes, not 3, fail.")
    return praise("Right values, in half precision too, and the type that came in.", remarks)
