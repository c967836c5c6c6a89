"""The check of the class `AdamW`: parameters after a few steps, and what an optimizer must keep."""

import inspect
import math
from collections.abc import Sequence
from typing import Any

import torch

from workbook.checks.optimizer_adamw_answers import (
    Learner,
    described,
    numbers,
    parameter,
    predicted,
    step,
)
from workbook.checks.optimizer_adamw_reference import ALMOST_NONE, FORMS, Case, after_steps
from workbook.checks.optimizer_adamw_slips import SLIPS
from workbook.checks.optimizer_values import Outcome, mistake, row, same
from workbook.checks.verdicts import NotAttempted, Words, Wrong, call, expect_class, is_stub

SIGNATURE = "AdamW(params, lr, betas, eps, weight_decay), a subclass of torch.optim.Optimizer"
ONE, OTHER = (1.0, -2.0, 0.5), (-0.5, 1.5, 3.0)
# The sizes differ from step to step, or both averages would keep the same proportion.
G1, G2, G3 = (0.3, -0.1, 2.0), (-0.6, -0.4, 0.5), (0.1, 0.9, -1.0)
H1, H2, H3 = (1.0, 0.2, -0.3), (0.5, -0.7, 0.1), (-0.2, 2.0, 0.4)
# Each case adds one thing to those before it, so where the first fails, that is told at least.
CASES_AND_WORDS = {
    Case(
        (ONE,), ((G1,),)
    ): "The first step, from averages of zero, changes each entry by about the "
    "learning rate, whatever the size of its gradient.",
    Case((ONE,), ((G1,), (G2,), (G3,))): "The first step is right, and the next are not: look at "
    "what is kept from step to step, which is m, v and t.",
    Case((ONE,), ((G1,), (G2,), (G3,)), weight_decay=0.5): "Almost without decay all steps are "
    "right: look at the decay, θ ← θ - α λ θ.",
    Case(
        (ONE,), ((G1,), (G2,), (G3,)), eps=0.3
    ): "With ε = 1e-8 all steps are right: look at where ε stands, √v + ε.",
    Case((ONE,), ((G1,), (G2,), (G3,)), lr=0.02, betas=(0.95, 0.7), weight_decay=0.1): "With other "
    "settings it was right: is one of them typed in somewhere?",
    Case(
        ((1.0, 2.0),), (((0.0, 0.5),), ((0.0, -0.2),))
    ): "An entry whose gradient is 0 stays where it is, apart from the decay.",
    Case(
        (ONE, OTHER), ((G1, H1), (G2, H2), (G3, H3)), weight_decay=0.2
    ): "With one parameter it is "
    "right, and with two it is not: is something kept for both together?",
    Case((ONE, OTHER), ((G1, None), (G2, None)), weight_decay=0.5): "A parameter without gradient "
    "stays as it is.",
    Case((ONE, OTHER), ((None, H1), (None, H2)), weight_decay=0.5): "A parameter without gradient "
    "is skipped (`continue`), and those after it are not.",
}
CASES = tuple(CASES_AND_WORDS)
SCHEDULED = Case((ONE,), ((G1,), (G2,), (G3,)), rates=(0.1, 0.03, 0.4))
RESUMED = Case((ONE,), ((G1,), (G2,), (G3,), (H1,)), resumed=2)


def adamw(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first case that fails."""
    expect_class(attempt, SIGNATURE)
    if not issubclass(attempt, torch.optim.Optimizer):
        bases = ", ".join(base.__name__ for base in attempt.__bases__)
        raise Wrong(
            "It is no subclass of torch.optim.Optimizer.",
            expected=Words("class AdamW(torch.optim.Optimizer)"),
            got=Words(f"class {attempt.__name__}({bases})"),
            mistake="The base class keeps parameters in groups, clears gradients, and saves and "
            "loads the state: schedules and checkpoints count on it.",
        )
    if is_stub(attempt.__init__) or is_stub(inspect.unwrap(attempt.step)):
        raise NotAttempted("`__init__` or `step` is still to write.")
    learner = Learner(attempt)
    outcomes: list[Outcome] = []
    for case in CASES:
        _expect_right(learner, outcomes, case)
    _find_keys(learner)
    _check_groups(learner)
    _expect_right(learner, outcomes, SCHEDULED)
    _expect_right(learner, outcomes, RESUMED)
    _try_closure(learner)
    _check_fresh(learner, outcomes[0])
    praise = "The parameters move like the reference's, in the handout's form or in torch's."
    return " ".join([praise, *(["Worth knowing:"] if learner.notes else []), *learner.notes])


def _expect_right(learner: Learner, outcomes: list[Outcome], case: Case) -> None:
    """Note the outcome of a case, and raise what is wrong with it."""
    outcome = learner.outcome(case)
    outcomes.append(outcome)
    if outcome.right:
        return
    _check_fresh(learner, outcomes[0])
    if outcome.failure:
        raise outcome.failure
    more = [learner.outcome(other) for other in CASES[len(outcomes) :]]
    raise Wrong(
        "The parameters are not right after the steps.",
        given=described(case),
        expected=row(_nearest(predicted(case), outcome.got)),
        got=row(outcome.got),
        mistake=mistake(SLIPS, [*outcomes, *more], predicted) or CASES_AND_WORDS.get(case),
    )


def _nearest(rights: Sequence[Sequence[float]], got: Sequence[float]) -> Sequence[float]:
    """The result of the right form that comes closest to what the learner has."""

    def distance(right: Sequence[float]) -> float:
        gap = sum(abs(a - b) for a, b in zip(right, got, strict=False))
        return gap if math.isfinite(gap) else math.inf

    return min(rights, key=distance)


def _find_keys(learner: Learner) -> None:
    """Learn under which names a group keeps rate and decay. Raises: Wrong where it has none."""
    case = Case((ONE,), (), weight_decay=0.5)
    optimizer = learner.make([parameter(ONE)], case, described(case))
    group = optimizer.param_groups[0]
    keys = {value: key for key, value in group.items() if type(value) is float}
    keys |= {case.lr: "lr"} if "lr" in group else {}
    keys |= {case.weight_decay: "weight_decay"} if "weight_decay" in group else {}
    if case.lr not in keys:
        raise Wrong(
            "The learning rate is not in `param_groups`.",
            given="AdamW([p], lr=0.1, ...).param_groups[0]",
            expected=Words("a dict with the key 'lr'"),
            got=Words(f"a dict with the keys {', '.join(map(repr, group))}"),
            mistake="A schedule changes `group['lr']` before each step. Hand the settings to "
            "`super().__init__(params, defaults)` as a dict, and read them from the group.",
        )
    learner.lr_key, learner.decay_key = keys[case.lr], keys.get(case.weight_decay, "")
    if learner.lr_key != "lr":
        learner.notes.append(
            f"Your groups call the learning rate {learner.lr_key!r}; torch, and every schedule, "
            "calls it 'lr'."
        )


def _check_groups(learner: Learner) -> None:
    """Raise `Wrong` unless each group of parameters is treated by its own settings."""
    first, second = CASES[2], Case((OTHER,), ((H1,), (H2,), (H3,)), lr=0.02, weight_decay=0.5)
    own = {learner.lr_key: second.lr}
    if learner.decay_key:
        second = second._replace(weight_decay=ALMOST_NONE)
        own[learner.decay_key] = second.weight_decay
    thetas = [parameter(ONE), parameter(OTHER)]
    settings = ", ".join(f"{name!r}: {value}" for name, value in own.items())
    shown = Words(
        f"AdamW([{{'params': [p0]}}, {{'params': [p1], {settings}}}], lr={first.lr}, "
        f"weight_decay={first.weight_decay}, ...), 3 steps"
    )
    groups = [{"params": [thetas[0]]}, {"params": [thetas[1]], **own}]
    optimizer = learner.make(groups, first, shown)
    for (g,), (h,) in zip(first.gradients, second.gradients, strict=True):
        step(optimizer, thetas, (g, h), shown)
    got = numbers(thetas)
    rights = [after_steps(first, form) + after_steps(second, form) for form in FORMS]
    if any(same(got, right) for right in rights):
        return
    alike = second._replace(lr=first.lr, weight_decay=first.weight_decay)
    mistakes = {
        "Only the first group is stepped: go through all of `self.param_groups`.": [
            after_steps(first, form) + list(OTHER) for form in FORMS
        ],
        "All groups get the settings of the first, or those that `__init__` stored: read lr, betas,"
        " eps and weight_decay from the group of the parameter.": [
            after_steps(first, form) + after_steps(alike, form) for form in FORMS
        ],
    }
    known = (words for words, guesses in mistakes.items() if any(same(got, g) for g in guesses))
    raise Wrong(
        "With two groups of parameters the result is not right.",
        given=shown,
        expected=row(_nearest(rights, got)),
        got=row(got),
        mistake=next(known, "Read lr, betas, eps and weight_decay from the parameter's group."),
    )


def _try_closure(learner: Learner) -> None:
    """Note where `step(closure)` does not work as in torch, which the course leaves open.

    Raises `Wrong` where the closure is called, but too late.
    """
    case, theta = CASES[0], parameter(ONE)
    optimizer = learner.make([theta], case, described(case))
    loss, calls = torch.tensor(3.0), []

    def closure() -> torch.Tensor:
        calls.append(theta.tolist())
        theta.grad = parameter(G1).detach()
        return loss

    try:
        inspect.signature(optimizer.step).bind(closure)
    except (TypeError, ValueError):
        learner.notes.append(
            "Torch's optimizers also take `step(closure)`, which works out a loss."
        )
        return
    shown = Words(f"p = {list(ONE)}; step(closure), where closure sets p.grad and returns the loss")
    returned = call(optimizer.step, closure, given=shown)
    if not calls:
        learner.notes.append(
            "The closure that `step` takes is never called: `loss = None if closure is None else "
            "closure()` would do it."
        )
    elif not any(same(numbers([theta]), right) for right in predicted(case)):
        raise Wrong(
            "`step(closure)` does not make the closure's step.",
            given=shown,
            expected=row(_nearest(predicted(case), theta.tolist())),
            got=row(theta.tolist()),
            mistake="Call the closure first: it sets the gradients that the step takes.",
        )
    elif returned is not loss:
        learner.notes.append("Torch's `step(closure)` returns what the closure returned, the loss.")


def _check_fresh(learner: Learner, first: Outcome) -> None:
    """Raise `Wrong` where a new optimizer knows something of an earlier one."""
    again = learner.outcome(first.given)
    if again.failure or same(again.got, first.got):
        return
    raise Wrong(
        "A second optimizer gives another result than the first did with the same input.",
        given=described(first.given),
        expected=row(_nearest(predicted(first.given), first.got)),
        got=row(again.got),
        mistake="Something is kept outside of the instance: an attribute of the class, a global, "
        "or a dict as default argument. `self.state` belongs to one optimizer.",
    )
