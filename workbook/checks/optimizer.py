"""The checks of the learning rate's schedule, of gradient clipping and of AdamW."""

import copy
import inspect
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import product
from math import isclose, isfinite, isnan  # by name: an attempt may replace math's
from typing import Any, NamedTuple

import torch
from torch import nn

from workbook.checks.calling import bind, call_part
from workbook.checks.engine import Exercise, Program, judge, mistake
from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.verdicts import (
    NotAttempted,
    Words,
    Wrong,
    call,
    expect_class,
    is_stub,
    kind_of,
)
from workbook.optimizer.optimizers import AdamW

# float32 keeps 7 digits; the values are of size 1, and a few steps are taken.
RELATIVE, ABSOLUTE = 1e-5, 1e-6


def same(one: Sequence[float], other: Sequence[float]) -> bool:
    """True where two lists of numbers agree as far as float32 can tell, NaN with NaN."""
    return len(one) == len(other) and all(map(_alike, one, other))


def _alike(a: float, b: float) -> bool:
    if not (isfinite(a) and isfinite(b)):
        return a == b or (isnan(a) and isnan(b))
    return isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def row(values: Sequence[float]) -> Words:
    """Numbers as a learner reads them, six digits each."""
    return Words(f"[{', '.join(f'{value:.6g}' for value in values)}]")


# The schedule.


class Steps(NamedTuple):
    """Settings of a schedule, and the steps whose learning rates are asked for."""

    highest: float
    lowest: float
    warmup: int
    end: int
    steps: tuple[int, ...]
    what: str = ""


def scheduled(it: int, highest: float, lowest: float, warmup: int, end: int) -> float:
    """The learning rate of a step."""
    if it < warmup:
        return it / warmup * highest
    if it > end:
        return lowest
    done = (it - warmup) / (end - warmup)
    share = (1 + math.cos(math.pi * done)) / 2
    return lowest + share * (highest - lowest)


def shares(case: Steps) -> list[float]:
    """The learning rates as shares of the maximum, so that small ones count as much."""
    return [scheduled(it, *case[:4]) / case.highest for it in case.steps]


BEGIN, WARM, OVER = "if it < warmup:", "it / warmup * highest", "if it > end:"
DONE, COS = "(it - warmup) / (end - warmup)", "(1 + math.cos(math.pi * done)) / 2"
BETWEEN = "lowest + share * (highest - lowest)"
THE_WARM_UP = "The warm-up is it / warmup_iters * max: "
THE_COSINE = (
    "The cosine goes from 0 to π as (it - warmup_iters) / (cosine_cycle_iters - warmup_iters) goes "
    "from 0 to 1: "
)
THE_RATE = "The learning rate is min + 1/2 (1 + cos(...)) (max - min): "
THE_REST = "After cosine_cycle_iters the learning rate stays at the minimum"
SCHEDULE_MISTAKES = (
    mistake(THE_WARM_UP + "yours is one step ahead; the first learning rate, at it = 0, is 0.",
            WARM, "(it + 1) / warmup * highest"),
    mistake(THE_WARM_UP + "yours counts both it and warmup_iters one too high.",
            WARM, "(it + 1) / (warmup + 1) * highest"),
    mistake(THE_WARM_UP + "yours divides by one too many.", WARM, "it / (warmup + 1) * highest"),
    mistake(THE_WARM_UP + "yours divides by one too few.",
            WARM, "it / max(1, warmup - 1) * highest"),
    mistake(THE_WARM_UP + "yours begins at the minimum; it begins at 0.",
            WARM, "lowest + it / warmup * (highest - lowest)"),
    mistake(THE_WARM_UP + "yours is at the maximum at once.", WARM, "highest"),
    mistake(THE_WARM_UP + "yours stays at the minimum.", WARM, "lowest"),
    mistake(THE_WARM_UP + "yours divides whole numbers with //, which rounds down to 0.",
            WARM, "it // warmup * highest"),
    mistake(THE_WARM_UP + "yours lacks the maximum.", WARM, "it / warmup"),
    mistake(THE_WARM_UP + "yours rises to the minimum.", WARM, "it / warmup * lowest"),
    mistake(THE_WARM_UP + "yours divides by cosine_cycle_iters.", WARM, "it / end * highest"),
    mistake(THE_COSINE + "yours takes it / cosine_cycle_iters, so that it does not begin at the "
            "maximum.",
            DONE, "it / end"),
    mistake(
        THE_COSINE + "yours divides by cosine_cycle_iters alone, and does not get to the minimum.",
        DONE, "(it - warmup) / end"
    ),
    mistake(THE_COSINE + "yours does not subtract warmup_iters above the line.",
            DONE, "it / (end - warmup)"),
    mistake(THE_COSINE + "yours divides by one too many.",
            DONE, "(it - warmup) / (end - warmup + 1)"),
    mistake(THE_COSINE + "yours divides by one too few.",
            DONE, "(it - warmup) / (end - warmup - 1)"),
    mistake(THE_COSINE + "yours is one step ahead.", DONE, "(it - warmup + 1) / (end - warmup)"),
    mistake(THE_COSINE + "yours divides whole numbers with //, which rounds down to 0.",
            DONE, "(it - warmup) // (end - warmup)"),
    mistake(THE_COSINE + "π is missing.", "math.pi * done", "done"),
    mistake(THE_COSINE + "`cos` takes radians, not degrees.", "math.pi * done", "180 * done"),
    mistake(THE_COSINE + "2π is a whole turn.", "math.pi * done", "2 * math.pi * done"),
    mistake(THE_COSINE + "π/2 is only half of the way.", "math.pi * done", "math.pi / 2 * done"),
    mistake(THE_RATE + "the 1/2 is missing.", COS, "1 + math.cos(math.pi * done)"),
    mistake(THE_RATE + "the 1/2 belongs to the sum, and yours is to the 1 alone.",
            COS, "1 / 2 + math.cos(math.pi * done)"),
    mistake(THE_RATE + "1 is not added to the cosine.", COS, "math.cos(math.pi * done) / 2"),
    mistake(THE_RATE + "you took the bare cosine.", COS, "math.cos(math.pi * done)"),
    mistake(THE_RATE + "with 1 - cos it rises.", COS, "(1 - math.cos(math.pi * done)) / 2"),
    mistake(THE_RATE + "that is a sine.", COS, "(1 + math.sin(math.pi * done)) / 2"),
    mistake(THE_RATE + "you took a straight line.", COS, "1 - done"),
    mistake(THE_RATE + "min is not added.", BETWEEN, "share * (highest - lowest)"),
    mistake(THE_RATE + "yours goes up by max in place of max - min.",
            BETWEEN, "lowest + share * highest"),
    mistake(THE_RATE + "yours falls to 0, and not to min.", BETWEEN, "share * highest"),
    mistake(THE_REST + ": yours follows the cosine, which rises again.",
            OVER, "if it > end == warmup:"),
    mistake(THE_REST + ", not at 0.", OVER, f"{OVER}\n    return 0.0\n{OVER}"),
    mistake(THE_REST + ", not at the maximum.", OVER, f"{OVER}\n    return highest\n{OVER}"),
    mistake("The maximum and the minimum are swapped: max comes first.",
            BEGIN, f"lowest, highest = highest, lowest\n{BEGIN}"),
    mistake("cosine_cycle_iters counts from step 0, warm-up included, not from the warm-up's end.",
            BEGIN, f"end += warmup\n{BEGIN}"),
    mistake("The whole schedule is one step ahead: it = 0 is the first step, with learning rate 0.",
            BEGIN, f"it += 1\n{BEGIN}"),
    mistake("The whole schedule is one step late: steps are counted from it = 0.",
            BEGIN, f"it = max(0, it - 1)\n{BEGIN}"),
)  # fmt: skip
SCHEDULES = (
    Steps(0.8, 0.2, 4, 12, tuple(range(20))),
    Steps(3e-4, 3e-5, 100, 1000, (0, 1, 50, 99, 100, 101, 550, 999, 1000, 1001, 1500, 5000)),
)
ODD_SCHEDULES = (
    Steps(1.0, 0.0, 0, 10, tuple(range(15)), "warmup_iters = 0"),
    # Where the cosine has no room, step 6 itself may have either learning rate: not asked for.
    Steps(1.0, 0.1, 6, 6, (0, 3, 5, 7, 10), "cosine_cycle_iters = warmup_iters"),
)

NO_ROOM = (
    "With warmup_iters = 0 there is no warm-up: ask `it < warmup_iters` before dividing.",
    "With cosine_cycle_iters = warmup_iters there is no cosine: ask `it > cosine_cycle_iters` "
    "before dividing.",
)


def learning_rates(schedule: Any, case: Steps) -> list[float]:
    """The learner's rates, as shares of the maximum. Raises: Wrong."""
    names = ("max_learning_rate", "min_learning_rate", "warmup_iters", "cosine_cycle_iters")
    settings = dict(zip(names, case[:4], strict=True))
    return [
        _number(call_part(schedule, {"it": it, **settings}, given=one(it, case)), one(it, case))
        / case.highest
        for it in case.steps
    ]


def one(it: int, case: Steps) -> Words:
    """One call of a schedule, as the learner would type it."""
    return Words(f"schedule({it}, {case.highest}, {case.lowest}, {case.warmup}, {case.end})")


def _number(value: Any, given: Words) -> float:
    """What a call returned, as a float; a tensor with one element is one too."""
    if value is None:
        raise Wrong(
            "It returns nothing.",
            given=given,
            expected=Words("a number"),
            got=None,
            mistake="One of the three branches has no `return`, or no branch fits this step.",
        )
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise Wrong(
            "It returns no number.",
            given=given,
            expected=Words("a float"),
            got=Words(kind_of(value)),
        ) from None


def _first_wrong_step(case: Steps, asked: list[float], got: list[float]) -> Wrong:
    """What is said of rates that are wrong: the first step, and the stage that it belongs to."""
    at = next(i for i in range(len(asked)) if not same(asked[i : i + 1], got[i : i + 1]))
    it = case.steps[at]
    stage = "warm-up" if it < case.warmup else "cosine" if it <= case.end else "rest"
    return Wrong(
        f"The learning rate of step {it} is not right. It belongs to the {stage}.",
        given=one(it, case),
        expected=Words(f"{asked[at] * case.highest:.6g}"),
        got=Words(f"{got[at] * case.highest:.6g}"),
    )


SCHEDULE = Exercise(
    program=Program(
        scheduled,
        shares,
        places={
            "it / warmup": "the warm-up",
            "if it <": "where the warm-up ends",
            "if it >": "where the cosine ends",
            "done =": "how far the cosine has come",
            "share =": "the cosine",
            "return lowest +": "how the cosine becomes a learning rate",
        },
    ),
    mistakes=SCHEDULE_MISTAKES,
    cases=SCHEDULES,
    corners=ODD_SCHEDULES,
    run=learning_rates,
    same=same,
    report=_first_wrong_step,
)


def learning_rate_schedule(attempt: Any, part: str | None = None) -> str:
    """Praise for a right function; raises `Wrong` with the first step that fails."""
    found, remarks = judge(SCHEDULE, attempt), []
    for wrong in list(found.found):
        if wrong.weight == "corner" and isinstance(wrong.error, ValueError | AssertionError):
            found.found.remove(wrong)  # refusing such settings is a choice; a wrong rate is not
            remarks.append(f"{wrong.case.what} is refused, and may be asked for.")
        elif wrong.weight == "corner" and isinstance(wrong.error, ZeroDivisionError):
            wrong.mistake = NO_ROOM[bool(wrong.case.warmup)]
    if not found:
        with found("style"):
            expect_from_scratch(lambda: learning_rates(attempt, SCHEDULES[0]), [attempt])
    return found.verdict("Warm-up, cosine and what comes after agree with the formula.", remarks)


# Clipping.

VALUE = 2.0  # of every entry of every parameter


class Gradients(NamedTuple):
    """Gradients by parameter, None where there is none, and the limit of their norm."""

    gradients: tuple[tuple[float, ...] | None, ...]
    limit: float
    square: bool = False  # the four entries are a matrix
    generator: bool = False  # the parameters can be gone through only once

    def parameters(self) -> list[nn.Parameter]:
        """New parameters with these gradients."""
        made = []
        for gradient in self.gradients:
            shape = (2, 2) if self.square else (len(gradient or (0.0,)),)
            parameter = nn.Parameter(torch.full(shape, VALUE, dtype=torch.float32, device="cpu"))
            if gradient is not None:
                values = torch.tensor(gradient, dtype=torch.float32, device="cpu")
                parameter.grad = values.reshape(shape)
            made.append(parameter)
        return made


def clipped(case: Gradients) -> list[float]:
    """All gradients after clipping, one after the other."""
    gradients = [p.grad for p in case.parameters() if p.grad is not None]
    total = sum((g**2).sum() for g in gradients)
    norm = torch.sqrt(total)
    for g in gradients:
        if norm > case.limit:
            g.mul_(case.limit / norm)
    return [value for g in gradients for value in g.flatten().tolist()]


THE_NORM = "The norm is the root of the sum of the squares of all entries of all gradients: "
NORM, TOTAL, OWN = (
    "torch.sqrt(total)",
    "sum((g**2).sum() for g in gradients)",
    "[g.norm() for g in gradients]",
)
LOOP, WANTED, CHANGE = "for g in gradients:", "if norm > case.limit:", "g.mul_(case.limit / norm)"
CLIPPING_MISTAKES = (
    mistake(THE_NORM + "you took each parameter's own, which changes the direction of the step.",
            WANTED, f"norm = g.norm()\n{WANTED}"),
    mistake(THE_NORM + "the root is missing.", NORM, "total"),
    mistake(THE_NORM + "you took the largest entry.",
            NORM, "max(g.abs().max() for g in gradients)"),
    mistake(THE_NORM + "you added absolute values (l1).",
            NORM, "sum(g.abs().sum() for g in gradients)"),
    mistake(THE_NORM + "you took a mean.",
            NORM, "torch.sqrt(total / sum(g.numel() for g in gradients))"),
    mistake(THE_NORM + "you added the norms of the parameters: add squares.", NORM, f"sum({OWN})"),
    mistake(THE_NORM + "you took the largest of the parameters' norms.", NORM, f"max({OWN})"),
    mistake(THE_NORM + "you took the first parameter's.", NORM, "gradients[0].norm()"),
    mistake(THE_NORM + "you took the last parameter's.", NORM, "gradients[-1].norm()"),
    mistake(THE_NORM + "you took the mean of the parameters' norms.",
            NORM, f"sum({OWN}) / len(gradients)"),
    mistake(THE_NORM + "you scaled while you were still adding up. Two loops are needed.",
            NORM, "torch.zeros(())", WANTED, f"norm = torch.hypot(norm, g.norm())\n{WANTED}"),
    mistake(THE_NORM + "you took the parameters, not their gradients.",
            NORM, "VALUE * math.sqrt(sum(g.numel() for g in gradients))"),
    mistake(
        THE_NORM + "`torch.linalg.norm(g, 2)` of a matrix is its largest singular value. Flatten "
        "it.",
        TOTAL, "sum(torch.linalg.norm(g, 2) ** 2 for g in gradients)"
    ),
    mistake("Gradients below the limit stay as they are: yours are scaled up to it.",
            WANTED, "if norm:"),
    mistake("The condition is turned round: scale where the norm is above the limit.",
            WANTED, "if 0 < norm < case.limit:"),
    mistake("The norm is compared with 1, and not with max_l2_norm.", WANTED, "if norm > 1:"),
    mistake("The factor is upside down: it is max_l2_norm / norm.",
            CHANGE, "g.mul_(norm / case.limit)"),
    mistake("The gradients are scaled to the norm 1, and not to max_l2_norm.",
            CHANGE, "g.mul_(1 / norm)"),
    mistake("The factor is not divided by the norm.", CHANGE, "g.mul_(case.limit)"),
    mistake("The factor is divided by the square of the norm.",
            CHANGE, "g.mul_(case.limit / norm**2)"),
    mistake("Each entry is cut to the limit for itself, which changes the direction of the step: "
            "scale all by one factor.",
            WANTED, "if True:", CHANGE, "g.clamp_(-case.limit, case.limit)"),
    mistake("The gradients are as before: nothing that was computed reached them. `grad = grad * "
            "scale` only gives a name a new value; `p.grad.mul_(scale)` writes into the tensor.",
            CHANGE, "pass"),
    mistake("All gradients have become 0.", WANTED, "if norm < math.inf:", CHANGE, "g.zero_()"),
    mistake("Only the last gradient is scaled: scale in a second loop over all parameters.",
            LOOP, "for g in gradients[-1:]:"),
    mistake("Only the first gradient is scaled.", LOOP, "for g in gradients[:1]:"),
)  # fmt: skip
GRADIENTS = (
    Gradients(((3.0, 4.0),), 1.0),
    Gradients(((0.3, -0.4),), 1.0),
    Gradients(((1.2, -1.6),), 2.5),
    Gradients(((3.0, 0.5), (-4.0,)), 1.0),
    Gradients(((4.0,), (2.0, -1.0), (0.0, 2.0)), 2.5),
    Gradients(((3.0, 0.5), None, (-4.0,)), 2.0),
    Gradients(((1.0, -2.0, 3.0, 4.0),), 3.0, square=True),
    Gradients(((0.0, 0.0),), 1.0),
    # The course's own test hands in a list; a training loop hands in `model.parameters()`.
    Gradients(((6.0,), (-2.0, 3.0)), 1.5, generator=True),
)


def gradients_after(clip: Any, case: Gradients) -> list[float]:
    """All gradients after the learner's clipping. Raises: Wrong where anything else was changed."""
    parameters = case.parameters()
    handed_in = (p for p in parameters) if case.generator else list(parameters)
    call_part(clip, {"parameters": handed_in, "max_l2_norm": case.limit}, given=as_code(case))
    for parameter in parameters:
        values = parameter.detach().flatten().tolist()
        if any(value != VALUE for value in values):
            raise Wrong(
                "The parameters themselves were changed.",
                given=as_code(case),
                expected=Words(f"p = {row([VALUE] * len(values))} as before"),
                got=Words(f"p = {row(values)}"),
                mistake="Scale `p.grad`, and not `p` or `p.data`.",
            )
    pairs = zip(parameters, case.gradients, strict=True)
    after = [parameter.grad for parameter, gradient in pairs if gradient is not None]
    if any(gradient is None for gradient in after):
        raise Wrong(
            "A gradient is gone.",
            given=as_code(case),
            got=Words("p.grad is None"),
            mistake="Scale the gradients, and leave them where they are.",
        )
    return [float(value) for gradient in after for value in gradient.flatten()]


def as_code(case: Gradients) -> Words:
    """The case as the learner would type it."""
    names = [f"p{i}" for i in range(len(case.gradients))] if len(case.gradients) > 1 else ["p"]
    if case.square:
        (a, b, c, d), *_ = case.gradients
        values = f"p.grad = [[{a}, {b}], [{c}, {d}]]"
    else:
        grads = zip(names, case.gradients, strict=True)
        values = "; ".join(f"{name}.grad = {g and list(g)}" for name, g in grads)
    every = ", ".join(names)
    held = f"iter([{every}])" if case.generator else f"[{every}]"
    return Words(f"{values}; clip({held}, {case.limit})")


def _gradients_beside(case: Gradients, asked: list[float], got: list[float]) -> Wrong:
    claim = "The gradients are not right afterwards."
    if case.generator:
        claim = "With `model.parameters()`, which is a generator, nothing is clipped."
    return Wrong(claim, given=as_code(case), expected=row(asked), got=row(got))


CLIPPING = Exercise(
    program=Program(
        clipped,
        places={
            "total =": "the sum of squares",
            "norm =": "the norm",
            "if norm": "when the gradients are scaled",
            "g.mul": "how each gradient is scaled",
        },
    ),
    mistakes=CLIPPING_MISTAKES,
    cases=GRADIENTS,
    run=gradients_after,
    same=same,
    report=_gradients_beside,
    errors={
        r"NoneType": "A parameter that took no part in the loss has `p.grad` None: skip it.",
        r"leaf Variable|view of a leaf": "Change `p.grad`, and not the parameter itself.",
    },
)


def gradient_clipping(attempt: Any, part: str | None = None) -> str:
    """Praise for a right function; raises `Wrong` with the first gradients that fail."""
    found, remarks = judge(CLIPPING, attempt), []
    if not found:
        with found("style"):
            expect_from_scratch(lambda: gradients_after(attempt, GRADIENTS[0]), [attempt])
    for wrong in found.found:
        if wrong.case and wrong.case.generator:
            wrong.mistake = (
                "A generator can be gone through only once: make a list of it first. Otherwise "
                "`clip(model.parameters(), 1.0)` does nothing."
            )
    parameter = nn.Parameter(torch.zeros(2))
    before = parameter.grad = torch.tensor([3.0, 4.0])
    if not found:
        call_part(attempt, {"parameters": [parameter], "max_l2_norm": 1.0})
        if parameter.grad is not before:
            remarks.append(
                "`p.grad` is a new tensor each time; `p.grad.mul_(scale)` would change the old one "
                "in place and need no memory."
            )
    return found.verdict("All gradients are scaled together, and only where they must be.", remarks)


# AdamW.

Values = tuple[float, ...]
ALMOST_NONE = 1e-7  # a weight decay that changes nothing that float32 can tell; 0 may be refused


class Moves(NamedTuple):
    """Parameters, their gradients at each step, and the settings."""

    parameters: tuple[Values, ...]
    gradients: tuple[tuple[Values | None, ...], ...]  # by step, then by parameter
    weight_decay: float = ALMOST_NONE
    lr: float = 0.1
    betas: tuple[float, float] = (0.8, 0.96)
    eps: float = 1e-8
    rates: Values = ()  # of each step, set in `param_groups`, where a schedule changes it
    resumed: int | None = None  # after how many steps a new optimizer loads the state of the old
    own: tuple[Values, ...] = ()  # (learning rate, decay) of a second group, with parameter 1
    hint: str | None = None  # what to look at where this is the first case that fails


update = AdamW.update  # (self, theta, group, state)


def moved(case: Moves, of_torch: bool, decay: str) -> list[float]:
    """All parameters after the last step, one after the other."""
    settings = ((case.lr, case.weight_decay), *case.own)
    groups = [{"lr": lr, "weight_decay": decays} for lr, decays in settings]
    thetas = [torch.tensor(values, dtype=torch.float64) for values in case.parameters]
    states = [{} for _ in thetas]
    for step, gradients in enumerate(case.gradients):
        groups[0]["lr"] = case.rates[step] if case.rates else case.lr
        if step == case.resumed:
            states = copy.deepcopy(states)
        for i, theta in enumerate(thetas):
            group, state, gradient = groups[i * bool(case.own)], states[i], gradients[i]
            if gradient is None:
                continue
            theta.grad = torch.tensor(gradient, dtype=torch.float64)
            # In torch's form ε is added to √v / √(1 - β2ᵗ), and so counts less at first.
            times = math.sqrt(1 - case.betas[1] ** (state.get("t", 0) + 1)) if of_torch else 1.0
            group.update(betas=case.betas, decay=decay, eps=case.eps * times, times=times)
            update(None, theta, group, state)
    return [value for theta in thetas for value in theta.tolist()]


def after_steps(case: Moves) -> list[list[float]]:
    """The parameters by each right form: the handout's ε or torch's, decay first or last."""
    orders = ("after", "before") if case.weight_decay > ALMOST_NONE else ("after",)
    return [moved(case, *form) for form in product((False, True), orders)]


def decayed(factor: str) -> tuple[str, ...]:
    """The edits that make `factor` the factor of the decay."""
    return tuple(
        text
        for order in ("before", "after")
        for text in (
            f'"{order}":\n        theta.mul_(1 - lr * group["weight_decay"])',
            f'"{order}":\n    theta.mul_({factor})',
        )
    )


DECAY = 'group["weight_decay"]'
BETAS, EPS, TIMES = 'group["betas"]', 'v.sqrt() + group["eps"]', 'group["times"]'
CORRECTED, FROM_ONE = (
    "lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)",
    'state["t"] = state.get("t", 0) + 1',
)
FIRST, SECOND = (
    "m.mul_(beta1).add_(g, alpha=1 - beta1)",
    "v.mul_(beta2).addcmul_(g, g, value=1 - beta2)",
)
STEPPED, SUBTRACTED = "theta.addcdiv_(m", "value=-lr_t"
UPDATE, RATE = "update(None, theta, group, state)", "case.rates[step] if case.rates else case.lr"
STATES, SAVED, EACH = "[{} for _ in thetas]", "copy.deepcopy(states)", "in enumerate(thetas):"
REBOUND = (
    "Nothing is changed: `p = p - ...` only gives the name a new value. `p -= ...` or `p.data = "
    "...` writes into the parameter."
)
DECOUPLED = "AdamW's decay is kept apart from the gradient: θ ← θ - α λ θ, beside the step. "
CORRECTION = "Both averages start at 0, so the rate of step t is α √(1 - β2ᵗ) / (1 - β1ᵗ): "
ADAMW_MISTAKES = (
    mistake(REBOUND, STEPPED, "theta.clone().addcdiv_(m", *decayed("1")),
    mistake(
        "The step is computed, but nothing is changed by it: `p = p - ...` only gives the name a "
        "new value.",
        STEPPED, "theta.clone().addcdiv_(m"
    ),
    mistake(DECOUPLED + "Yours has no decay.", *decayed("1")),
    mistake(DECOUPLED + "Yours adds λ θ to the gradient, which is Adam with L2: then the decay is "
            "divided by √v like everything else.",
            "theta.grad, _rem", f"theta.grad + {DECAY} * theta, _rem", *decayed("1")),
    mistake(DECOUPLED + "Yours is not multiplied by the learning rate α.",
            *decayed(f"1 - {DECAY}")),
    mistake(DECOUPLED + "Yours takes the corrected rate α_t for it, and it is the plain α.",
            *decayed(f"1 - lr_t * {DECAY}")),
    mistake(DECOUPLED + "Yours makes the parameters grow: the sign is wrong.",
            *decayed(f"1 + lr * {DECAY}")),
    mistake(DECOUPLED + "Yours is multiplied by the learning rate twice.",
            *decayed(f"1 - lr * lr * {DECAY}")),
    mistake(DECOUPLED + "Yours is applied twice.", *decayed(f"(1 - lr * {DECAY}) ** 2")),
    mistake("The weight decay is always 0.01: take the one that was handed in.",
            *decayed("1 - lr * 0.01")),
    mistake("The two betas are swapped: β1 belongs to m, β2 to v.", BETAS, f"{BETAS}[::-1]"),
    mistake("The betas are always 0.9 and 0.999: take those that were handed in.",
            BETAS, "(0.9, 0.999)"),
    mistake("The betas are always 0.9 and 0.95: take those that were handed in.",
            BETAS, "(0.9, 0.95)"),
    mistake("The learning rate is always 0.001: take the one that was handed in.",
            'group["lr"], group', "1e-3, group"),
    mistake("ε is always 1e-8: take the one that was handed in.",
            EPS, f"v.sqrt() + 1e-8 * {TIMES}"),
    mistake(CORRECTION + "there is no bias correction in yours.", CORRECTED, "lr"),
    mistake(CORRECTION + "only m is corrected.", CORRECTED, "lr / (1 - beta1**t)"),
    mistake(CORRECTION + "only v is corrected.", CORRECTED, "lr * math.sqrt(1 - beta2**t)"),
    mistake(CORRECTION + "the root over 1 - β2ᵗ is missing.",
            CORRECTED, "lr * (1 - beta2**t) / (1 - beta1**t)"),
    mistake(CORRECTION + "yours is upside down.",
            CORRECTED, "lr * (1 - beta1**t) / math.sqrt(1 - beta2**t)"),
    mistake(CORRECTION + "in yours β1 and β2 have changed places.",
            CORRECTED, "lr * math.sqrt(1 - beta1**t) / (1 - beta2**t)"),
    mistake("t begins at 0: the first step is t = 1.",
            FROM_ONE, f"{FROM_ONE}\nt = torch.tensor(t - 1.0)"),
    mistake("t is one too large: the first step is t = 1.", FROM_ONE, f"{FROM_ONE}\nt += 1"),
    mistake("t stays 1: it counts the steps.", FROM_ONE, f"{FROM_ONE}\nt = 1"),
    mistake("t goes up for each parameter: it must count steps, so keep it with each parameter's "
            "state.",
            FROM_ONE, f'{FROM_ONE}\nt = group["calls"] = group.get("calls", 0) + 1'),
    mistake("The corrected rate α_t is written over α, so the next parameter's is corrected twice.",
            CORRECTED, f'{CORRECTED}\ngroup["lr"] = lr_t'),
    mistake("The corrected rate α_t is written over α, and so the corrections pile up from step to "
            "step.",
            CORRECTED, f'{CORRECTED}\ngroup["lr"] = lr_t', RATE,
            'case.rates[step] if case.rates else groups[0]["lr"]'),
    mistake("All parameters share one m and one v: each needs its own, in self.state[p].",
            STATES, "[{}] * len(thetas)"),
    mistake(
        "Each step begins with an empty state: m, v and t must outlast the step, in self.state[p].",
        UPDATE, "update(None, theta, group, {})"
    ),
    mistake("m and v begin at zero in each step: write the new ones back to self.state[p].",
            UPDATE, f'{UPDATE}\ndel state["m"], state["v"]'),
    mistake("m begins at zero in each step: write it back.", UPDATE, f'{UPDATE}\ndel state["m"]'),
    mistake("v begins at zero in each step: write it back.", UPDATE, f'{UPDATE}\ndel state["v"]'),
    mistake(
        "A schedule sets `group['lr']` in `param_groups` before each step: read the learning rate "
        "there, each time, and not from an attribute that `__init__` stored.",
        RATE, "case.rates[0] if case.rates else case.lr"
    ),
    mistake(
        "`state_dict` does not hold m, v and t: keep them in `self.state[p]`, and not in lists or "
        "dicts of your own, or a run that is resumed begins anew.",
        SAVED, "[{} for _ in states]"
    ),
    mistake("`state_dict` does not hold t: keep it in `self.state[p]` too, not on `self`.",
            SAVED, '[{**state, "t": 0} for state in states]'),
    mistake("`state_dict` does not hold m and v: keep them in `self.state[p]`.",
            SAVED, '[{"t": state["t"]} for state in states]'),
    mistake("m lacks the factor 1 - β1 of the gradient.", FIRST, "m.mul_(beta1).add_(g)"),
    mistake("In m, β1 and 1 - β1 are swapped: β1 keeps the old.",
            FIRST, "m.mul_(1 - beta1).add_(g, alpha=beta1)"),
    mistake("The step takes g itself, not its average m.", FIRST, "m.copy_(g)"),
    mistake("v lacks the factor 1 - β2 of the square.", SECOND, "v.mul_(beta2).addcmul_(g, g)"),
    mistake("In v, β2 and 1 - β2 are swapped: β2 keeps the old.",
            SECOND, "v.mul_(1 - beta2).addcmul_(g, g, value=beta2)"),
    mistake("v averages g² and not g: square it.",
            SECOND, "v.mul_(beta2).add_(g, alpha=1 - beta2)"),
    mistake("v averages g² and not |g|: square it.",
            SECOND, "v.mul_(beta2).add_(g.abs(), alpha=1 - beta2)"),
    mistake("The root of v is missing.", EPS, f'v / {TIMES} + group["eps"]'),
    mistake("ε stands inside the root, and belongs outside: √v + ε.",
            EPS, f'(v + group["eps"] * {TIMES}).sqrt()'),
    mistake("ε is missing: it keeps a gradient of 0 from being divided by 0.", EPS, "v.sqrt()"),
    mistake("ε is subtracted, and belongs added: √v + ε.", EPS, 'v.sqrt() - group["eps"]'),
    mistake("The step goes up the hill: subtract it.", SUBTRACTED, "value=lr_t"),
    mistake(
        "A parameter without gradient took no part in this loss: leave it alone, decay included.",
        "continue", "gradient = [0.0] * len(theta)"
    ),
    mistake("A parameter without gradient is skipped (`continue`), and those after it are not.",
            "continue", "break"),
    mistake("Only the first group is stepped: go through all of `self.param_groups`.",
            EACH, "in enumerate(thetas[:1] if case.own else thetas):"),
    mistake("All groups get the settings of the first, or those that `__init__` stored: read lr, "
            "betas, eps and weight_decay from the group of the parameter.",
            "groups[i * bool(case.own)]", "groups[0]"),
)  # fmt: skip
ONE, OTHER = (1.0, -2.0, 0.5), (-0.5, 1.5, 3.0)
# The sizes differ from step to step, or both averages would keep the same proportion.
G1, G2, G3 = (0.3, -0.1, 2.0), (-0.6, -0.4, 0.5), (0.1, 0.9, -1.0)
H1, H2, H3 = (1.0, 0.2, -0.3), (0.5, -0.7, 0.1), (-0.2, 2.0, 0.4)
THREE, BOTH = ((G1,), (G2,), (G3,)), ((G1, H1), (G2, H2), (G3, H3))
# Each case adds one thing to those before it, so where it is the first that fails, that is told.
MOVES = (
    Moves((ONE,), ((G1,),),
          hint="The first step, from averages of zero, changes each entry by about the learning "
          "rate, whatever the size of its gradient."),
    Moves((ONE,), THREE,
          hint="The first step is right, and the next are not: look at what is kept from step to "
          "step, which is m, v and t."),
    Moves((ONE,), THREE, weight_decay=0.5,
          hint="Almost without decay all steps are right: look at the decay, θ ← θ - α λ θ."),
    Moves((ONE,), THREE, eps=0.3,
          hint="With ε = 1e-8 all steps are right: look at where ε stands, √v + ε."),
    Moves((ONE,), THREE, lr=0.02, betas=(0.95, 0.7), weight_decay=0.1,
          hint="With other settings it was right: is one of them typed in somewhere?"),
    Moves(((1.0, 2.0),), (((0.0, 0.5),), ((0.0, -0.2),)),
          hint="An entry whose gradient is 0 stays where it is, apart from the decay."),
    Moves((ONE, OTHER), BOTH, weight_decay=0.2,
          hint="With one parameter it is right, and with two it is not: is something kept for both "
          "together?"),
    Moves((ONE, OTHER), ((G1, None), (G2, None)), weight_decay=0.5),
    Moves((ONE, OTHER), ((None, H1), (None, H2)), weight_decay=0.5),
    Moves((ONE, OTHER), BOTH, weight_decay=0.5, own=((0.02, 0.5),)),
    Moves((ONE, OTHER), BOTH, weight_decay=0.5, own=((0.1, ALMOST_NONE),)),
    Moves((ONE,), THREE, rates=(0.1, 0.03, 0.4)),
    Moves((ONE,), (*THREE, (H1,)), resumed=2),
)  # fmt: skip


class Stepper:
    """A learner's class at work: made, given gradients, stepped, saved and loaded."""

    def __init__(self, attempt: type):
        self.attempt, self.notes = attempt, {}

    def make(self, params: Any, case: Moves) -> Any:
        """An optimizer with the settings of a case."""
        lr, decay = (case.rates or (case.lr,))[0], case.weight_decay
        settings = {"lr": lr, "betas": case.betas, "eps": case.eps, "weight_decay": decay}
        with suppress(TypeError, ValueError):
            if {"beta1", "beta2"} <= inspect.signature(self.attempt).parameters.keys():
                beta1, beta2 = settings.pop("betas")
                settings |= {"beta1": beta1, "beta2": beta2}
        given = steps_as_code(case)
        args, kwargs, _ = bind(self.attempt, {"params": params, **settings}, given=given)
        return call(self.attempt, *args, given=given, **kwargs)

    def run(self, case: Moves) -> list[float]:
        """The parameters after the steps of a case. Raises: Wrong."""
        given = steps_as_code(case)
        thetas = [parameter(values) for values in case.parameters]
        if case.own:
            lr, decay = self.keys(case)
            if decay is None and case.own[0][1] != case.weight_decay:
                return after_steps(case)[0]  # no group can have a decay of its own
            own = {lr: case.own[0][0], **({decay: case.own[0][1]} if decay else {})}
            optimizer = self.make([{"params": thetas[:1]}, {"params": thetas[1:], **own}], case)
        else:  # a generator, as `model.parameters()` is
            optimizer = self.make((theta for theta in thetas), case)
        for i, gradients in enumerate(case.gradients):
            if i == case.resumed:
                state = copy.deepcopy(call(optimizer.state_dict, given=given))
                thetas = [parameter(theta.tolist()) for theta in thetas]
                optimizer = self.make(thetas, case)
                call(optimizer.load_state_dict, state, given=given)
            if case.rates:
                for group in optimizer.param_groups:
                    group[self.keys(case)[0]] = case.rates[i]
            self.step(optimizer, thetas, gradients, given)
        return [value for theta in thetas for value in theta.flatten().tolist()]

    def step(self, optimizer: Any, thetas: list, gradients: Sequence, given: Words) -> None:
        """Take one step with these gradients. Raises: Wrong where they are rewritten."""
        for theta, gradient in zip(thetas, gradients, strict=True):
            theta.grad = None if gradient is None else parameter(gradient).detach()
        call(optimizer.step, given=given)
        for theta, gradient in zip(thetas, gradients, strict=True):
            if gradient is None:
                continue
            after = None if theta.grad is None else theta.grad.flatten().tolist()
            # A step that clears gradients spoils little. One that rewrites them spoils what is
            # accumulated or logged.
            if any(gradient) and not any(after or ()):
                self.notes["clears"] = (
                    "`step` clears the gradients, which torch's optimizers leave to `zero_grad`: "
                    "what is logged or accumulated after the step is gone."
                )
            elif not same(after, list(gradient)):
                raise Wrong(
                    "The step rewrote a gradient.",
                    given=given,
                    expected=Words(f"p.grad = {row(gradient)} as before"),
                    got=Words(f"p.grad = {row(after)}"),
                    mistake="`grad` is the parameter's own tensor: `grad += ...` or "
                    "`grad.mul_(...)` writes into it. Make a new tensor; and keep the decay out "
                    "of the gradient.",
                )

    def keys(self, case: Moves) -> tuple[str, str | None]:
        """The names under which a group keeps rate and decay. Raises: Wrong without a rate."""
        case = MOVES[2]._replace(gradients=())
        group = self.make([parameter(ONE)], case).param_groups[0]
        by_value = {value: key for key, value in group.items() if type(value) is float}
        lr, decay = (
            name if name in group else by_value.get(value)
            for name, value in (("lr", case.lr), ("weight_decay", case.weight_decay))
        )
        if lr is None:
            raise Wrong(
                "The learning rate is not in `param_groups`.",
                given="AdamW([p], lr=0.1, ...).param_groups[0]",
                expected=Words("a dict with the key 'lr'"),
                got=Words(f"a dict with the keys {', '.join(map(repr, group))}"),
                mistake="A schedule changes `group['lr']` before each step. Hand the settings to "
                "`super().__init__(params, defaults)` as a dict, and read them from the group.",
            )
        if lr != "lr":
            self.notes["lr"] = (
                f"Your groups call the learning rate {lr!r}; torch, and every schedule, calls it "
                "'lr'."
            )
        return lr, decay

    def try_closure(self) -> None:
        """Note where `step(closure)` does not work as in torch, which the course leaves open.

        Raises `Wrong` where the closure is called, but too late.
        """
        case, theta, loss, calls = MOVES[0], parameter(ONE), torch.tensor(3.0), []
        optimizer = self.make([theta], case)

        def closure() -> torch.Tensor:
            calls.append(theta.tolist())
            theta.grad = parameter(G1).detach()
            return loss

        try:
            inspect.signature(optimizer.step).bind(closure)
        except (TypeError, ValueError):
            self.notes["closure"] = (
                "Torch's optimizers also take `step(closure)`, which works out a loss."
            )
            return
        given = Words(f"p = {list(ONE)}; step(closure), where it sets p.grad and returns the loss")
        returned = call(optimizer.step, closure, given=given)
        if not calls:
            self.notes["closure"] = (
                "The closure that `step` takes is never called: `loss = None if closure is None "
                "else closure()` would do it."
            )
        elif not moved_alike(after_steps(case), theta.tolist()):
            raise Wrong(
                "`step(closure)` does not make the closure's step.",
                given=given,
                expected=row(after_steps(case)[0]),
                got=row(theta.tolist()),
                mistake="Call the closure first: it sets the gradients that the step takes.",
            )
        elif returned is not loss:
            self.notes["closure"] = (
                "Torch's `step(closure)` returns what the closure returned, the loss."
            )


def parameter(values: Iterable[float]) -> nn.Parameter:
    """A float32 parameter on the CPU, whatever the defaults of torch are."""
    return nn.Parameter(torch.tensor(list(values), dtype=torch.float32, device="cpu"))


def moved_alike(rights: list, got: list) -> bool:
    """Whether one of the right forms gives this; the same of two references, or of two attempts."""
    if isinstance(rights[0], list) and isinstance(got[0], list):
        return all(map(same, rights, got))
    return any(same(right, got) for right in (rights if isinstance(rights[0], list) else [rights]))


def steps_as_code(case: Moves) -> Words:
    """The case as code, with the gradients of each step."""
    names = ["p"] if len(case.parameters) == 1 else [f"p{i}" for i in range(len(case.parameters))]
    values = "; ".join(f"{n} = {list(v)}" for n, v in zip(names, case.parameters, strict=True))
    held = ", ".join(names)
    if case.own:
        lr, decay = case.own[0]
        held = f"{{'params': [p0]}}, {{'params': [p1], 'lr': {lr}, 'weight_decay': {decay}}}"
    settings = f"betas={case.betas}, eps={case.eps}, weight_decay={case.weight_decay}"
    lines = [f"{values}; AdamW([{held}], lr={case.lr}, {settings})"]
    for i, gradients in enumerate(case.gradients):
        grads = [f"{n}.grad = {g and list(g)}" for n, g in zip(names, gradients, strict=True)]
        before = f"group['lr'] = {case.rates[i]}; " if case.rates else ""
        if i == case.resumed:
            before = "a new AdamW loads the state_dict of this one; "
        lines.append(f"step {i + 1}: {before}{'; '.join(grads)}")
    return Words("\n".join(lines))


def _moves_beside(case: Moves, rights: list[list[float]], got: list[float]) -> Wrong:
    """What is said of wrong parameters, beside the right form that comes closest."""

    def distance(right: list[float]) -> float:
        gap = sum(abs(a - b) for a, b in zip(right, got, strict=False))
        return gap if math.isfinite(gap) else math.inf

    return Wrong(
        "The parameters are not right after the steps.",
        given=steps_as_code(case),
        expected=row(min(rights, key=distance)),
        got=row(got),
        mistake=case.hint,
    )


ADAMW = Exercise(
    program=Program(
        AdamW.update,
        moved,
        after_steps,
        places={
            "m.mul_": "the average m",
            "v.mul_": "the average v",
            "lr_t =": "the corrections",
            "addcdiv_": "the step",
            "theta.mul_": "the decay",
            't = state["t"]': "how t is counted",
        },
    ),
    mistakes=ADAMW_MISTAKES,
    cases=MOVES,
    run=Stepper.run,
    same=moved_alike,
    report=_moves_beside,
    errors={
        r"leaf Variable|view of a leaf": "Autograd watches the parameter. Change it without "
        "autograd: `p.data`, or all of the step under `torch.no_grad()`.",
        r"empty parameter list": "`params` is used up before it reaches `super().__init__`: it may "
        "be a generator, as `model.parameters()` is. Hand it on as it came.",
        r"ZeroDivisionError": "t begins at 1: with t = 0 both corrections are zero.",
        r"no attribute '(?:param_groups|state|defaults|_\w+)'": "Call `super().__init__(params, "
        "defaults)`, with a dict of the settings: it makes `param_groups` and `state`.",
        r"KeyError: '(lr|betas|eps|weight_decay)'": "The group has no such key: put it into the "
        "dict that goes to `super().__init__(params, defaults)`.",
        r"KeyError": "Before the first step `self.state[p]` is an empty dict: put zeros for m and "
        "v, and t, into it.",
        r"NoneType": "A parameter that took no part in the loss has `p.grad` None: skip it.",
    },
)


def adamw(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first case that fails."""
    expect_class(
        attempt, "AdamW(params, lr, betas, eps, weight_decay), a subclass of torch.optim.Optimizer"
    )
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
    # The first optimizer of a process loads torch's compiler, which takes seconds: no call of a
    # learner is to be stopped for that.
    torch.optim.SGD([parameter((0.0,))], lr=0.1)
    stepper, results = Stepper(attempt), []
    with suppress(Wrong):  # an error is told by the judge
        results = [stepper.run(MOVES[1]) for _ in range(2)]
    if results and not same(*results):
        raise Wrong(
            "A second optimizer gives another result than the first did with the same input.",
            given=steps_as_code(MOVES[1]),
            expected=row(results[0]),
            got=row(results[1]),
            mistake="Something is kept outside of the instance: an attribute of the class, a "
            "global, or a dict as default argument. `self.state` belongs to one optimizer.",
        )
    found = judge(ADAMW, stepper)
    if not found:
        with found("use"):
            stepper.try_closure()
    if not found:
        with found("style"):
            expect_from_scratch(lambda: stepper.run(MOVES[0]), [attempt])
    praise = "The parameters move like the reference's, in the handout's form or in torch's."
    return found.verdict(praise, stepper.notes.values())
