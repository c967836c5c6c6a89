"""The check of `SwiGLU`, and the usual ways in which it goes wrong."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from workbook.checks.tensors import drawn
from workbook.checks.text_variants import Variant
from workbook.checks.transformer_functions import open_question, praise
from workbook.checks.transformer_linear import RIGHT as LINEAR
from workbook.checks.transformer_linear import VARIANTS as IN_LINEAR
from workbook.checks.transformer_modules import check_module, module_remarks
from workbook.checks.transformer_trial import Case, Topic

SIGNATURE = "class SwiGLU with SwiGLU(d_model, d_ff)"


def _gated(activation: Callable, linear: Callable, x: Tensor, w1, w2, w3) -> Tensor:
    return linear(activation(linear(x, w1)) * linear(x, w3), w2)


FEED_FORWARD: dict[str, Callable] = {
    **LINEAR,
    "activation": functional.silu,
    "gate": _gated,
}


def feed_forward(stages: dict[str, Callable], x: Tensor, weights: dict[str, Tensor]) -> Tensor:
    """SwiGLU by its stages; `weights` by the names w1.weight, w2.weight and w3.weight."""
    w1, w2, w3 = (weights[f"w{number}.weight"].double() for number in (1, 2, 3))
    return stages["gate"](stages["activation"], stages["linear"], x, w1, w2, w3)


def reference(case: Case, stages: dict[str, Callable]) -> Tensor:
    """What the layer makes of the input of a case."""
    return feed_forward(stages, case.inputs["x"].double(), case.weights)


def _gate(function: Callable, mistake: str) -> Variant:
    return Variant("gate", function, mistake)


NOT_SILU = "SiLU is x · sigmoid(x): here it is "
IN_FEED_FORWARD = (
    _gate(
        lambda act, lin, x, w1, w2, w3: lin(act(lin(x, w3)) * lin(x, w1), w2),
        "W1 and W3 are swapped: SiLU belongs to W1 x, the gate, and not to W3 x.",
    ),
    _gate(
        lambda act, lin, x, w1, w2, w3: lin(act(lin(x, w1)), w2) * lin(x, w3),
        "The gate comes after W2 instead of before: W2 (SiLU(W1 x) ⊙ W3 x).",
    ),
    _gate(
        lambda act, lin, x, w1, w2, w3: lin(act(lin(x, w1)), w2) * lin(lin(x, w3), w2),
        "W2 is used on each side: multiply first, then apply W2 once.",
    ),
    _gate(
        lambda act, lin, x, w1, w2, w3: lin(act(lin(x, w1) * lin(x, w3)), w2),
        "SiLU comes after the product: it belongs to W1 x alone.",
    ),
    _gate(
        lambda act, lin, x, w1, w2, w3: lin(act(lin(x, w1)) * act(lin(x, w3)), w2),
        "SiLU is applied to W3 x too: only W1 x goes through it.",
    ),
    _gate(
        lambda act, lin, x, w1, w2, w3: lin(act(lin(x, w1)), w2),
        "There is no gate: SiLU(W1 x) must be multiplied by W3 x.",
    ),
    _gate(
        lambda act, lin, x, w1, w2, w3: lin(act(lin(x, w1)) + lin(x, w3), w2),
        "The gate is added: SiLU(W1 x) and W3 x are multiplied, number by number.",
    ),
    _gate(
        lambda act, lin, x, w1, w2, w3: act(lin(x, w1)) * lin(x, w3),
        "W2 is missing: it leads back from d_ff to d_model.",
    ),
    _gate(
        lambda act, lin, x, w1, w2, w3: act(_gated(act, lin, x, w1, w2, w3)),
        "SiLU is applied to the result as well: only W1 x goes through it.",
    ),
    _gate(
        lambda act, lin, x, w1, w2, w3: x + _gated(act, lin, x, w1, w2, w3),
        "x is added inside: that is the block's business.",
    ),
    _gate(
        lambda act, lin, x, w1, w2, w3: lin(lin(x, w1) * lin(x, w3), w2),
        "There is no SiLU: W1 x must go through it.",
    ),
    Variant("activation", torch.sigmoid, NOT_SILU + "sigmoid(x) alone."),
    Variant("activation", torch.relu, NOT_SILU + "a ReLU."),
    Variant("activation", functional.gelu, NOT_SILU + "a GELU."),
    Variant("activation", lambda x: functional.gelu(x, approximate="tanh"), NOT_SILU + "a GELU."),
    Variant("activation", torch.tanh, NOT_SILU + "a tanh."),
    Variant("activation", lambda x: x * torch.sigmoid(1.702 * x), NOT_SILU + "a GELU, nearly."),
    Variant("activation", lambda x: x * torch.sigmoid(-x), NOT_SILU + "x · sigmoid(-x)."),
    Variant("activation", lambda x: x / (1 + x.exp()), NOT_SILU + "x · sigmoid(-x)."),
    Variant("activation", functional.softplus, NOT_SILU + "a softplus."),
)


def _case(*leading: int, d_model: int = 2, d_ff: int = 3, what: str = "") -> Case:
    weights = {
        "w1.weight": drawn(d_ff, d_model, seed=1),
        "w2.weight": drawn(d_model, d_ff, seed=2),
        "w3.weight": drawn(d_ff, d_model, seed=3),
    }
    made = f"SwiGLU({d_model}, {d_ff})(x)"
    x = drawn(*leading, d_model, seed=4)
    return Case(made, {"x": x}, (d_model, d_ff), weights, what=what)


TOPIC = Topic(
    cases=(
        _case(1, 1),
        _case(1, 2, d_model=3, d_ff=3),
        _case(1, 2, d_model=4, d_ff=2),
        _case(2, 3),
    ),
    reference=reference,
    right=FEED_FORWARD,
    variants=(*IN_FEED_FORWARD, IN_LINEAR[0]),
)


def positionwise_feedforward(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = check_module(attempt, TOPIC, SIGNATURE, TOPIC.cases[3])
    remarks = module_remarks(learner)
    for axes, leading in ((2, (2,)), (4, (2, 1, 3))):
        case = _case(*leading)
        remarks += open_question(learner, TOPIC, case, f"Inputs with {axes} axes, not 3, fail.")
    return praise("It is W2 (SiLU(W1 x) ⊙ W3 x).", remarks)
