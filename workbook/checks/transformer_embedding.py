"""The check of `Embedding`, and the usual ways in which it goes wrong."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from workbook.checks.tensors import alike, beside, drawn
from workbook.checks.text_variants import Variant
from workbook.checks.transformer_functions import open_question, praise
from workbook.checks.transformer_initial import check_drawn
from workbook.checks.transformer_modules import Learner, check_module, module_remarks
from workbook.checks.transformer_trial import Case, Topic
from workbook.checks.verdicts import Words, Wrong

SIGNATURE = "class Embedding with Embedding(num_embeddings, embedding_dim)"

RIGHT: dict[str, Callable] = {"look up": lambda weight, ids: weight[ids]}
ROW_0 = "Row 0 is treated as padding: it is a vector like any other, and learns like any other."
VARIANTS = (
    Variant("look up", lambda weight, ids: weight[ids - 1], "Off by one: row id - 1 was taken."),
    Variant(
        "look up",
        lambda weight, ids: weight[(ids + 1) % len(weight)],
        "Off by one: row id + 1 was taken.",
    ),
    Variant(
        "look up",
        lambda weight, ids: weight[ids] * math.sqrt(weight.shape[1]),
        "The vectors are multiplied by √d_model, as in the first Transformer: the course does not.",
    ),
    Variant("look up", lambda weight, ids: weight[ids] * (ids > 0).unsqueeze(-1), ROW_0),
    Variant(
        "look up",
        lambda weight, ids: weight[ids] / weight[ids].norm(dim=-1, keepdim=True),
        "The vectors are brought to length 1.",
    ),
    Variant(
        "look up",
        lambda weight, ids: weight[ids].sum(-2),
        "The vectors of a sequence are added up: each id keeps its own.",
    ),
    Variant("look up", lambda weight, ids: weight[ids.flatten()], "The axes of the ids are lost."),
    Variant(
        "look up", lambda weight, ids: weight[: ids.shape[-1]], "Positions, not ids, are used."
    ),
)


def reference(case: Case, stages: dict[str, Callable]) -> Tensor:
    """The rows that the ids of a case name."""
    return stages["look up"](case.weights["weight"].double(), case.inputs["token_ids"])


def _case(ids: list, what: str = "") -> Case:
    inputs = {"token_ids": torch.tensor(ids)}
    return Case(
        "Embedding(4, 2)(token_ids)", inputs, (4, 2), {"weight": drawn(4, 2, seed=1)}, what=what
    )


TOPIC = Topic(
    cases=(
        _case([[1]]),
        _case([[2, 0, 3, 2]]),
        _case([[0, 1, 1], [3, 2, 0]]),
    ),
    reference=reference,
    right=RIGHT,
    variants=VARIANTS,
)


def embedding(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    case = TOPIC.cases[1]
    learner = check_module(attempt, TOPIC, SIGNATURE, case)
    remarks = module_remarks(learner)
    _check_rows(learner, case)
    (weight,) = learner.make(256, 64).parameters()
    others = {
        math.sqrt(2 / (256 + 64)): "That is the standard deviation of Linear: here it is 1.",
        math.sqrt(1 / 64): "The standard deviation is 1/√d_model: here it is 1.",
        0.02: "The standard deviation is GPT-2's 0.02: here it is 1.",
    }
    check_drawn(weight, 1.0, others, "Embedding(256, 64)")
    if (weight[0] == 0).all():
        raise Wrong("Row 0 of a new embedding is 0.", mistake=ROW_0)
    for ids in ([1, 0], [[[0], [1]], [[3], [1]]]):
        case, axes = _case(ids), torch.tensor(ids).ndim
        remarks += open_question(learner, TOPIC, case, f"Ids with {axes} axes, not 2, fail.")
    return praise("The right rows, and a right first weight.", remarks)


def _check_rows(learner: Learner, case: Case) -> None:
    """Raise `Wrong` unless each row learns as often as its id comes."""
    learner(case).sum().backward()
    ((name, parameter),) = learner.module.named_parameters()
    ids = case.inputs["token_ids"]
    asked = torch.stack([(ids == row).sum().expand(2) for row in range(4)]).float()
    if not alike(parameter.grad, asked):
        right, got = beside(asked, parameter.grad)
        raise Wrong(
            f"The gradient of `{name}` is not the right one.",
            given=Words(f"the gradient of the sum, for {case}"),
            expected=right,
            got=got,
            mistake=ROW_0 if not parameter.grad[0].any() else None,
        )
