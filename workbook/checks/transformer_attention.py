"""The check of `scaled_dot_product_attention`, and the usual ways in which it goes wrong."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from workbook.checks.tensors import drawn
from workbook.checks.text_variants import Variant
from workbook.checks.transformer_functions import called, check_function, open_question, praise
from workbook.checks.transformer_trial import Case, Topic
from workbook.checks.verdicts import expect_function

SIGNATURE = "scaled_dot_product_attention(Q, K, V, mask)"
NEVER = -1e9  # what many write in place of -inf; a row with nothing else becomes uniform


def _masked(scores: Tensor, mask: Tensor | None, fill: float = -math.inf) -> Tensor:
    return scores if mask is None else scores.masked_fill(~mask, fill)


RIGHT: dict[str, Callable] = {
    "divisor": lambda Q, K, V: math.sqrt(Q.shape[-1]),
    "scores": lambda Q, K: Q @ K.transpose(-1, -2),
    "masked": _masked,
    "weigh": lambda scores: torch.softmax(scores, -1),
    "order": lambda scores, mask, masked, weigh: weigh(masked(scores, mask)),
    "gather": lambda weights, V: weights @ V,
}


def attend(stages: dict[str, Callable], Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None):
    """Attention by its stages."""
    scores = stages["scores"](Q, K) / stages["divisor"](Q, K, V)
    weights = stages["order"](scores, mask, stages["masked"], stages["weigh"])
    return stages["gather"](weights, V)


def reference(case: Case, stages: dict[str, Callable]) -> Tensor:
    """What attention makes of the inputs of a case."""
    Q, K, V = (case.inputs[name].double() for name in "QKV")
    return attend(stages, Q, K, V, case.inputs["mask"])


def _mask(change: Callable[[Tensor, Tensor], Tensor], mistake: str) -> Variant:
    """A variant of the masking, for the calls that have a mask."""
    return Variant(
        "masked",
        lambda scores, mask: scores if mask is None else change(scores, mask),
        mistake,
    )


INVERTED = "The mask is inverted: True means that the query may look at the key."
TO_ZERO = (
    "The masked scores become 0, and exp(0) is 1: these keys still count. They must become "
    "-inf (or a hugely negative number), before the softmax."
)
ADDED = "The mask itself is added to the scores, as 0 and 1: add 0 and -inf."
SQUARE_ROOT = "Divided by d_k, not by its square root."
NO_SHIFT = "The softmax takes exp of large scores, which overflows: take the maximum away first."

SCALES = (
    Variant("divisor", lambda Q, K, V: 1.0, "The scores are not scaled: divide by √d_k."),
    Variant("divisor", lambda Q, K, V: Q.shape[-1], SQUARE_ROOT),
    Variant(
        "divisor",
        lambda Q, K, V: 1 / math.sqrt(Q.shape[-1]),
        "The scores are multiplied by √d_k: divide by it.",
    ),
    Variant(
        "divisor",
        lambda Q, K, V: math.sqrt(V.shape[-1]),
        "Scaled by d_v, the width of the values: it is d_k, the width of queries and keys.",
    ),
    Variant(
        "divisor",
        lambda Q, K, V: V.shape[-1],
        "Scaled by d_v, and without the square root: divide by √d_k.",
    ),
    Variant(
        "divisor",
        lambda Q, K, V: math.sqrt(K.shape[-2]),
        "Scaled by the number of keys: it is √d_k, by the width of queries and keys.",
    ),
    Variant(
        "divisor",
        lambda Q, K, V: math.sqrt(Q.shape[-2]),
        "Scaled by the number of queries: it is √d_k, by the width of queries and keys.",
    ),
    Variant("divisor", lambda Q, K, V: Q.shape[-1] ** 0.25, "Divided by the fourth root of d_k."),
    Variant("divisor", lambda Q, K, V: Q.shape[-1] / 2, "Divided by half of d_k, not by its root."),
)
MASKS = (
    _mask(lambda scores, mask: _masked(scores, ~mask), INVERTED),
    _mask(lambda scores, mask: _masked(scores, ~mask, NEVER), INVERTED),
    _mask(lambda scores, mask: scores, "The mask is not used."),
    _mask(lambda scores, mask: _masked(scores, mask, 0.0), TO_ZERO),
    _mask(lambda scores, mask: _masked(scores, ~mask, 0.0), f"{INVERTED} And: {TO_ZERO}"),
    _mask(lambda scores, mask: scores + mask.double(), ADDED),
    _mask(lambda scores, mask: scores + (~mask).double(), ADDED),
    _mask(lambda scores, mask: scores - (~mask).double(), ADDED),
    _mask(
        lambda scores, mask: scores + (~mask).double() * -math.inf,
        "0 times -inf is no number: put -inf in with `masked_fill` or `torch.where`.",
    ),
    _mask(lambda scores, mask: _masked(scores, mask, math.inf), "Masked scores become +inf."),
    _mask(
        lambda scores, mask: _masked(scores, mask.transpose(-1, -2)),
        "The mask is transposed: its rows are the queries, its columns the keys.",
    ),
    Variant(
        "order",
        lambda scores, mask, masked, weigh: weigh(scores) * (1 if mask is None else mask),
        "The mask comes after the softmax, and the weights no longer add up to 1: mask the scores "
        "before it.",
    ),
)
WEIGHTS = (
    Variant(
        "weigh",
        lambda scores: torch.softmax(scores, -2),
        "The wrong softmax axis: it runs over the queries. Each query's weights, along the keys "
        "(the last axis), must add up to 1.",
    ),
    Variant(
        "weigh",
        lambda scores: torch.softmax(scores, 0),
        "The wrong softmax axis: it runs over axis 0. It must run over the keys, the last axis.",
    ),
    Variant(
        "weigh",
        lambda scores: torch.softmax(scores, 1),
        "The wrong softmax axis: it runs over axis 1. It must run over the keys, the last axis.",
    ),
    Variant(
        "weigh",
        lambda scores: torch.softmax(scores.flatten(-2), -1).unflatten(-1, scores.shape[-2:]),
        "The wrong softmax axis: it runs over queries and keys together, not over the keys.",
    ),
    Variant("weigh", lambda scores: scores, "The softmax is missing."),
    Variant("weigh", lambda scores: scores.exp() / scores.exp().sum(-1, keepdim=True), NO_SHIFT),
    Variant("weigh", torch.exp, "The weights do not add up to 1: exp is not yet a softmax."),
    Variant("weigh", torch.sigmoid, "A sigmoid stands where the softmax should be."),
)
PRODUCTS = (
    Variant(
        "scores",
        lambda Q, K: K @ Q.transpose(-1, -2),
        "Queries and keys are swapped: the scores need one row for each query, Q Kᵀ.",
    ),
    Variant("scores", lambda Q, K: Q @ K, "K is not transposed: the scores are Q Kᵀ."),
    Variant(
        "gather",
        lambda weights, V: weights.transpose(-1, -2) @ V,
        "The weights are transposed before they meet V.",
    ),
    Variant("gather", lambda weights, V: weights, "These are the weights: multiply them by V."),
)
VARIANTS = (*SCALES, *MASKS, *WEIGHTS, *PRODUCTS)


def _case(
    *leading: int, mask: Tensor | None = None, what: str = "", queries=2, scale=1.0, d_k=4
) -> Case:
    inputs = {
        "Q": scale * drawn(*leading, queries, d_k, seed=1),
        "K": scale * drawn(*leading, 3, d_k, seed=2),
        "V": drawn(*leading, 3, 5, seed=3),
        "mask": mask,
    }
    return Case(SIGNATURE, inputs, what=what)


SEEN = torch.tensor([[True, False, True], [False, False, True]])
TOPIC = Topic(
    cases=(
        _case(1),
        _case(1, mask=SEEN),
        _case(1, queries=3, mask=torch.ones(3, 3, dtype=torch.bool).tril()),
        _case(2),
        _case(2, mask=SEEN),
        _case(2, mask=torch.stack((SEEN, SEEN.flip(1)))),
        _case(2, 3, what="two leading dimensions"),
        _case(2, 3, mask=SEEN, what="two leading dimensions"),
        _case(2, 3, queries=3, mask=torch.ones(3, 3, dtype=torch.bool).tril()),
        _case(1, d_k=6, what="another d_k"),  # 4 is its own root times 2, and 4 · 0.5
        _case(1, scale=100.0, what="large scores"),
    ),
    reference=reference,
    right=RIGHT,
    variants=VARIANTS,
)


def scaled_dot_product_attention(attempt: Any, part: str | None = None) -> str:
    """Praise for right attention; raises `Wrong` with the first input that fails."""
    expect_function(attempt, SIGNATURE)
    remarks = check_function(attempt, TOPIC, _case(2, mask=SEEN))
    matrices = "Plain matrices, without leading axes, fail."
    remarks += open_question(called(attempt), TOPIC, _case(mask=SEEN), matrices)
    return praise("Right with and without a mask, for any leading dimensions.", remarks)
