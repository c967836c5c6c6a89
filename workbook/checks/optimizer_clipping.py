"""The check of gradient clipping: gradients before and after, and nothing else changed."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from workbook.checks.optimizer_clipping_slips import SLIPS, VALUE, Case, clipped
from workbook.checks.optimizer_values import Outcome, mistake, row, same
from workbook.checks.text_variants import Variant
from workbook.checks.verdicts import Words, Wrong, call, expect_function

SIGNATURE = "clip(parameters, max_l2_norm)"
CASES = (
    Case(((3.0, 4.0),), 1.0),
    Case(((0.3, -0.4),), 1.0),
    Case(((1.2, -1.6),), 2.5),
    Case(((3.0, 0.5), (-4.0,)), 1.0),
    Case(((4.0,), (2.0, -1.0), (0.0, 2.0)), 2.5),
    Case(((3.0, 0.5), None, (-4.0,)), 2.0),
    Case(((1.0, -2.0, 3.0, 4.0),), 3.0, square=True),
    Case(((0.0, 0.0),), 1.0),
)
# Left open by the course, whose test hands in a list.
ONCE = Case(((6.0,), (-2.0, 3.0)), 1.5, generator=True)
# A piece of an error's text, and what it usually comes from.
ERRORS = {
    r"NoneType": "A parameter that took no part in the loss has `p.grad` None: skip it.",
    r"leaf Variable|view of a leaf": "Change `p.grad`, and not the parameter itself.",
}


def gradient_clipping(attempt: Any, part: str | None = None) -> str:
    """Praise for a right function; raises `Wrong` with the first gradients that fail."""
    expect_function(attempt, SIGNATURE)
    outcomes, notes = [], set()
    for case in CASES:
        outcomes.append(_outcome(attempt, case, notes))
        if not outcomes[-1].right:
            _report(attempt, outcomes)
    if not _works_once(attempt):
        notes.add(
            "Worth knowing: `model.parameters()` is a generator, which can be gone through only "
            "once, and with one nothing is clipped here. Make a list of it first."
        )
    return " ".join(["All gradients are scaled together, and only where they must be.", *notes])


def _works_once(attempt: Callable) -> bool:
    """True where parameters may also come from a generator."""
    try:
        return _outcome(attempt, ONCE, set()).right
    except Wrong:
        return False


def _outcome(attempt: Callable, case: Case, notes: set[str]) -> Outcome:
    """What becomes of the gradients of a case. `notes` gets what is worth knowing beside it."""
    parameters = [_parameter(case, gradient) for gradient in case.gradients]
    before = [parameter.grad for parameter in parameters]
    given = (parameter for parameter in parameters) if case.generator else list(parameters)
    try:
        call(attempt, given, case.limit, given=described(case))
    except Wrong as failure:
        said = dict(failure.rows).get("got", "")
        known = (words for piece, words in ERRORS.items() if re.search(piece, said))
        failure.mistake = next(known, failure.mistake)
        return Outcome(case, "error", False, failure)
    _expect_untouched(parameters, case)
    after = [
        parameter.grad
        for parameter, gradient in zip(parameters, case.gradients, strict=True)
        if gradient is not None
    ]
    if any(gradient is None for gradient in after):
        raise Wrong(
            "A gradient is gone.",
            given=described(case),
            got=Words("p.grad is None"),
            mistake="Scale the gradients, and leave them where they are.",
        )
    if any(
        old is not None and p.grad is not old for p, old in zip(parameters, before, strict=True)
    ):
        notes.add(
            "Worth knowing: `p.grad` is a new tensor each time; `p.grad.mul_(scale)` would change "
            "the old one in place and need no memory."
        )
    got = [float(value) for gradient in after for value in gradient.flatten()]
    return Outcome(case, got, same(got, clipped(case)))


def _parameter(case: Case, gradient: Sequence[float] | None) -> nn.Parameter:
    shape = (2, 2) if case.square else (len(gradient or (0.0,)),)
    parameter = nn.Parameter(torch.full(shape, VALUE, dtype=torch.float32, device="cpu"))
    if gradient is not None:
        parameter.grad = torch.tensor(gradient, dtype=torch.float32, device="cpu").reshape(shape)
    return parameter


def _expect_untouched(parameters: list[nn.Parameter], case: Case) -> None:
    """Raise `Wrong` where the parameters themselves were changed."""
    for parameter in parameters:
        values = parameter.detach().flatten().tolist()
        if any(value != VALUE for value in values):
            raise Wrong(
                "The parameters themselves were changed.",
                given=described(case),
                expected=Words(f"p = {row([VALUE] * len(values))} as before"),
                got=Words(f"p = {row(values)}"),
                mistake="Scale `p.grad`, and not `p` or `p.data`.",
            )


def described(case: Case) -> Words:
    """The case as code."""
    names = [f"p{i}" for i in range(len(case.gradients))] if len(case.gradients) > 1 else ["p"]
    if case.square:
        (a, b, c, d), *_ = case.gradients
        values = f"p.grad = [[{a}, {b}], [{c}, {d}]]"
    else:
        grads = zip(names, case.gradients, strict=True)
        values = "; ".join(f"{name}.grad = {g and list(g)}" for name, g in grads)
    all_of_them = ", ".join(names)
    held = f"iter([{all_of_them}])" if case.generator else f"[{all_of_them}]"
    return Words(f"{values}; clip({held}, {case.limit})")


def _predicted(case: Case, variants: tuple[Variant, ...] = ()) -> list[list[float]]:
    return [clipped(case, variants)]


def _report(attempt: Callable, outcomes: list[Outcome]) -> None:
    """Raise what is wrong with the last outcome, with the likely mistake."""
    failed = outcomes[-1]
    if failed.failure:
        raise failed.failure
    more = [_outcome(attempt, case, set()) for case in CASES[len(outcomes) :]]
    raise Wrong(
        "The gradients are not right afterwards.",
        given=described(failed.given),
        expected=row(clipped(failed.given)),
        got=row(failed.got),
        mistake=mistake(SLIPS, [*outcomes, *more], _predicted),
    )
