"""The checks of the learning rate's schedule and of gradient clipping."""

import math
from typing import Any, NamedTuple

import torch
from torch import nn

from workbook.checks.calling import call_part
from workbook.checks.engine import Exercise, Program, judge, mistake
from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.optimizer_values import row, same
from workbook.checks.verdicts import Words, Wrong, kind_of

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
    errors={
        "ZeroDivisionError": "With warmup_iters = 0 there is no warm-up: ask `it < warmup_iters` "
        "before dividing."
    },
)


def learning_rate_schedule(attempt: Any, part: str | None = None) -> str:
    """Praise for a right function; raises `Wrong` with the first step that fails."""
    found, remarks = judge(SCHEDULE, attempt), []
    for wrong in list(found.found):
        if wrong.weight == "corner" and isinstance(wrong.error, ValueError | AssertionError):
            found.found.remove(wrong)  # refusing such settings is a choice; a wrong rate is not
            remarks.append(f"{wrong.case.what} is refused, and may be asked for.")
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
    what: str = ""

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
)
# The course's own test hands in a list; a training loop hands in `model.parameters()`.
ONCE = Gradients(((6.0,), (-2.0, 3.0)), 1.5, generator=True, what="a generator")


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
    corners=(ONCE,),
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
        if wrong.weight == "corner":
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
