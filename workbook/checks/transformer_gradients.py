"""Whether gradients flow through a learner's code, and are the right ones."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from workbook.checks.tensors import alike, beside, drawn, kind
from workbook.checks.transformer_trial import Case, failure_words
from workbook.checks.verdicts import Words, Wrong

CUT = (
    "Something cuts the way back: `.detach()`, `.data`, `.item()`, `torch.no_grad`, or a new "
    "tensor made of numbers. (A tensor that is not an `nn.Parameter` gets no gradient either.)"
)
CHANGED = "It changes the tensor that it was given in place: whoever calls it may need it again."
IN_PLACE = (
    "A tensor that is needed later is changed in place (`x -= ...`, `x[...] = ...`, a method "
    "whose name ends in _). Make a new one."
)


def check_gradients(
    run: Callable[[Case], Any],
    reference: Callable[[Case], Tensor],
    case: Case,
    parameters: Callable[[], Iterable[tuple[str, Tensor]]] = list,
) -> list[str]:
    """Raise `Wrong` unless the gradients that a right result sends back are the right ones.

    Those of the inputs are compared with the reference's; of the `parameters` of what ran, it is
    asked that there are any. Returns remarks on what is allowed, but no good habit.
    """
    wanted, leaves = _wanting(case)
    try:
        result = run(wanted)
    except Wrong as failure:
        if "in-place" in failure_words(failure):
            failure.mistake = IN_PLACE
        failure.claim = "It raised an error when gradients are asked for."
        raise
    given = Words(str(case))
    if not result.requires_grad:
        raise Wrong("No gradient can flow through the result.", given=given, mistake=CUT)
    # Weighted differently, because the sum of a row of softmax has no gradient at all.
    weights = drawn(*result.shape, seed=99) if result.ndim else torch.tensor(1.0)
    try:
        (result * weights).sum().backward()
    except RuntimeError as error:
        got = Words(str(error).partition(". ")[0])
        raise Wrong("The way back fails.", given=given, got=got, mistake=IN_PLACE) from error
    expected = _expected(reference, case, weights)
    for name, leaf in leaves.items():
        if leaf.grad is None:
            raise Wrong(f"No gradient comes back to {name}.", given=given, mistake=CUT)
        if not alike(leaf.grad, expected[name], 1e-3):
            right, got = beside(expected[name], leaf.grad)
            claim = f"The result is right, but the gradient that comes back to {name} is not."
            raise Wrong(claim, given=given, expected=right, got=got, mistake=CUT)
    for name, parameter in parameters():
        if parameter.grad is None:
            claim = f"No gradient comes back to the parameter `{name}`."
            raise Wrong(claim, given=given, mistake=CUT)
    changed = any(not wanted.inputs[name].eq(leaf).all() for name, leaf in leaves.items())
    remarks = [CHANGED] if changed else []
    if result.dtype != case.dtype:
        types = f"{kind(case.dtype)} goes in, {kind(result.dtype)} comes out"
        remarks.append(f"The type changes: {types}.")
    return remarks


def _wanting(case: Case) -> tuple[Case, dict[str, Tensor]]:
    """The case with inputs that want a gradient, as if computed from the leaves beside them."""
    leaves = {
        name: value.clone().requires_grad_()
        for name, value in case.inputs.items()
        if isinstance(value, Tensor) and value.is_floating_point()
    }
    computed = {name: leaf.clone() for name, leaf in leaves.items()}
    return replace(case, inputs={**case.inputs, **computed}), leaves


def _expected(
    reference: Callable[[Case], Tensor], case: Case, weights: Tensor
) -> dict[str, Tensor]:
    case, leaves = _wanting(case)
    if not leaves:
        return {}
    with torch.enable_grad():
        (reference(case) * weights).sum().backward()
    return {name: leaf.grad for name, leaf in leaves.items()}
