"""The checks of the learning rate schedule, of gradient clipping and of AdamW."""

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from workbook.classroom.checks.machinery.calling import (
    Runner,
    call_bound,
    call_part,
    for_optimizer,
    meaning,
)
from workbook.classroom.checks.machinery.engine import (
    NO_GROUPS,
    Exercise,
    Program,
    instead_of,
    judge,
    mistake,
)
from workbook.classroom.checks.machinery.from_scratch import check_style
from workbook.classroom.checks.machinery.verdicts import (
    NotAttempted,
    Prose,
    Wrong,
    call,
    expect,
    expect_class,
    is_untouched,
    kind_of,
    meant,
)
from workbook.optimizer.optimizers import AdamW

# float32 keeps 7 digits; the values are of size 1, and a few steps are taken.
RELATIVE, ABSOLUTE = 1e-5, 1e-6


def same(one: Sequence[float], other: Sequence[float]) -> bool:
    """True where two lists of numbers agree as far as float32 can tell, NaN with NaN."""
    return len(one) == len(other) and np.allclose(one, other, RELATIVE, ABSOLUTE, equal_nan=True)


def _row(values: Sequence[float]) -> Prose:
    """Numbers as a learner reads them, six digits each."""
    numbers = ", ".join(f"{value:.6g}" for value in values)
    return Prose(numbers if len(values) == 1 else f"[{numbers}]")


def _beside(claim: str) -> Callable[[Any, Sequence[float], Sequence[float]], Wrong]:
    """The report of an exercise whose results are lists of numbers."""
    return lambda case, right, got: Wrong(claim, given=case, expected=_row(right), got=_row(got))


def _listed(name: str, tensors: Sequence[tuple | None]) -> str:
    """The numbers of each parameter, or of its gradient; `name` has a {} for the index."""
    return "; ".join(f"{name.format(i)} = {values}" for i, values in enumerate(tensors))


# The schedule.


class ScheduleStep(NamedTuple):
    """A step, and the settings of a schedule."""

    it: int
    highest: float
    lowest: float
    warmup: int
    end: int
    what: str = ""

    def __str__(self) -> str:
        return f"schedule{self[:5]}"


def scheduled(it: int, highest: float, lowest: float, warmup: int, end: int) -> float:
    """The learning rate of a step."""
    if it < warmup:  # where the warm-up ends
        return it / warmup * highest  # the warm-up
    if it > end:  # where the cosine ends
        return lowest
    done = (it - warmup) / (end - warmup)  # how far along the cosine a step is
    share = (1 + math.cos(math.pi * done)) / 2  # the cosine
    return lowest + share * (highest - lowest)  # how the cosine becomes a learning rate


BEGIN, OVER = "if it < warmup:", "if it > end:"
SCHEDULE_MISTAKES = (
    *instead_of(
        "it / warmup * highest",
        {
            "yours is one step ahead; it = 0 is the first step.": "(it + 1) / warmup * highest",
            "yours divides by a number one too large or too small.": (
                "(it + 1) / (warmup + 1) * highest",
                "it / max(1, warmup - 1) * highest",
            ),
            "yours divides by cosine_cycle_iters.": "it / end * highest",
            "yours does not multiply by max.": "it / warmup",
            "`//` cuts the fraction off.": "it // warmup * highest",
            "yours starts at the minimum, not at 0.": (
                "lowest + it / warmup * highest",
                "lowest + it / warmup * (highest - lowest)",
            ),
            "yours is at the maximum right away.": "highest",
            "yours never goes below the minimum.": "max(lowest, it / warmup * highest)",
            "at it = 0 that is 0, and yours is not.": "max(it, 1) / warmup * highest",
        },
        "The warm-up is it / warmup_iters * max: ",
    ),
    *instead_of(
        "(it - warmup) / (end - warmup)",
        {
            "yours does not start at the maximum.": "it / end",
            "yours does not reach the minimum.": "(it - warmup) / end",
            "yours does not subtract warmup_iters in the numerator.": "it / (end - warmup)",
            "`it - warmup` needs parentheses.": "it - warmup / (end - warmup)",
            "yours is off by one step.": (
                "(it - warmup + 1) / (end - warmup)",
                "(it - warmup - 1) / (end - warmup)",
                "(it - warmup) / (end - warmup + 1)",
                "(it - warmup) / (end - warmup - 1)",
                "(it - warmup + 1) / (end - warmup + 1)",
            ),
        },
        "The cosine is of π (it - warmup_iters) / (cosine_cycle_iters - warmup_iters): ",
    ),
    *instead_of(
        "math.pi * done",
        {
            "π is missing.": "done",
            "2π is a whole turn.": "2 * math.pi * done",
            "π/2 is only half the way.": "math.pi / 2 * done",
            "`math.cos` takes radians, not degrees.": "180 * done",
            "it is in radians already, so convert nothing.": "math.radians(math.pi * done)",
        },
        "The cosine's angle goes from 0 to π: ",
    ),
    *instead_of(
        "(1 + math.cos(math.pi * done)) / 2",
        {
            "the 1/2 is missing.": "1 + math.cos(math.pi * done)",
            "the 1/2 applies to the whole sum.": "1 / 2 + math.cos(math.pi * done)",
            "you took the bare cosine.": "math.cos(math.pi * done)",
            "the 1 + is missing.": "math.cos(math.pi * done) / 2",
            "with 1 - cos it rises.": "(1 - math.cos(math.pi * done)) / 2",
            "you took a straight line.": "1 - done",
        },
        "The learning rate is min + 1/2 (1 + cos(...)) (max - min): ",
    ),
    *instead_of(
        "lowest + share * (highest - lowest)",
        {
            "min is not added.": "share * (highest - lowest)",
            "yours has the factor max instead of max - min.": "lowest + share * highest",
            "yours falls to 0, not to min.": "share * highest",
            "max and min are swapped in the difference.": "lowest + share * (lowest - highest)",
        },
        "The learning rate is min + 1/2 (1 + cos(...)) (max - min): ",
    ),
    *instead_of(
        OVER,
        {
            ": yours follows the cosine, which rises again.": (
                "if it > end == warmup:",
                "if it > end + warmup:",
            ),
            ", not at 0.": f"{OVER}\n    return 0.0\n{OVER}",
            ", not at the maximum.": f"{OVER}\n    return highest\n{OVER}",
        },
        "After cosine_cycle_iters the learning rate stays at the minimum",
    ),
    *instead_of(
        BEGIN,
        {
            "Yours returns a factor of the"
            " maximum.": f"lowest, highest = lowest / highest, 1\n{BEGIN}",
            "Maximum and minimum are swapped.": f"lowest, highest = highest, lowest\n{BEGIN}",
            "cosine_cycle_iters counts from 0, not from the warm-up's"
            " end.": f"end += warmup\n{BEGIN}",
            "The whole schedule is one step ahead: it = 0 is the first step.": f"it += 1\n{BEGIN}",
            "The whole schedule is a step late: it = 0 is the"
            " first.": f"it = max(0, it - 1)\n{BEGIN}",
            "At it = 0 the warm-up gives 0: yours does something else at that step.": (
                f"if it == 0:\n    return highest\n{BEGIN}",
                f"if it == 0:\n    return lowest\n{BEGIN}",
                "if 0 < it < warmup:",
            ),
            "The condition of the warm-up is reversed: `it < warmup_iters`.": "if it > warmup:",
            "The step itself is returned: compute its learning rate.": f"return float(it)\n{BEGIN}",
            "Check `it < warmup_iters` before dividing: warmup_iters may be 0.": "if it <= warmup:",
        },
    ),
    mistake(
        "Where the two are equal there is no cosine: check `it > cosine_cycle_iters` first.",
        OVER,
        "if (it - warmup) / (end - warmup) > 1:",
    ),
)


def learning_rate(schedule: Any, case: ScheduleStep) -> list[float]:
    """The learner's learning rate of one step. Raises: Wrong."""
    names = ("it", "max_learning_rate", "min_learning_rate", "warmup_iters", "cosine_cycle_iters")
    value = call_part(schedule, dict(zip(names, case, strict=False)), given=case)
    try:
        return [float(value + 0.0)]  # a str cannot be added to
    except (TypeError, ValueError, RuntimeError):
        raise Wrong(
            "It does not return a number.",
            given=case,
            got=Prose(kind_of(value)),
            mistake="Return a float in each of the three branches.",
        ) from None


def steps(its: Iterable[int], *settings: Any) -> tuple[ScheduleStep, ...]:
    """Several steps of one schedule."""
    return tuple(ScheduleStep(it, *settings) for it in its)


SCHEDULE = Exercise(
    program=Program(scheduled, call=lambda function, case: [function(*case[:5])]),
    mistakes=SCHEDULE_MISTAKES,
    cases=(
        *steps(range(20), 0.8, 0.1, 4, 12),
        *steps((0, 1, 50, 99, 100, 101, 550, 999, 1000, 1001, 1500, 5000), 0.3, 0.03, 100, 1000),
    ),
    corners=(
        *steps(range(15), 1.0, 0.0, 0, 10, "warmup_iters = 0"),
        # With no room for the cosine, step 6 itself may have either learning rate: not checked.
        *steps((0, 3, 5, 7, 10), 1.0, 0.1, 6, 6, "cosine_cycle_iters = warmup_iters"),
    ),
    run=learning_rate,
    same=same,
    report=_beside("The learning rate of this step is wrong."),
)


def learning_rate_schedule(attempt: Any) -> str:
    """Praise for a right function; raises `Wrong` with the first step that fails."""
    findings = judge(SCHEDULE, attempt)
    refusals = (ValueError, AssertionError)
    # To refuse the settings of a corner is a choice; a wrong rate there is none.
    for wrong in [*findings.wrongs]:
        if wrong.weight != "use" and isinstance(wrong.error, refusals):
            findings.wrongs.remove(wrong)
    check_style(findings, lambda: learning_rate(attempt, SCHEDULE.cases[6]), [attempt])
    return findings.verdict("Warm-up, cosine and what comes after agree with the formula.")


# Clipping.

NO_GRADIENT = "A parameter that took no part in the loss has `p.grad` None: skip it."

VALUE = 2.0  # of every entry of every parameter


class Gradients(NamedTuple):
    """Gradients by parameter, None where there is none, and the limit of their norm."""

    gradients: tuple[tuple | None, ...]
    limit: float
    generator: bool = False  # the parameters can be iterated over only once

    @property
    def seldom(self) -> bool:
        """Whether an error is a corner only: the handout's function takes a list."""
        return self.generator

    def parameters(self) -> list[nn.Parameter]:
        """New parameters with these gradients."""
        made = []
        for gradient in self.gradients:
            values = torch.tensor(gradient or (0.0,), dtype=torch.float32, device="cpu")
            made.append(nn.Parameter(torch.full_like(values, VALUE)))
            made[-1].grad = None if gradient is None else values
        return made

    def __str__(self) -> str:
        held = f"[{', '.join(f'p{i}' for i in range(len(self.gradients)))}]"
        held = f"iter({held})" if self.generator else held
        return f"{_listed('p{}.grad', self.gradients)}; clip({held}, {self.limit})"


def clipped(case: Gradients) -> list[float]:
    """All gradients after clipping, one after the other."""
    gradients = [p.grad for p in case.parameters() if p.grad is not None]
    total: Any = sum((g**2).sum() for g in gradients)  # the sum of squares
    norm = torch.sqrt(total)  # the norm
    for g in gradients:
        if norm > case.limit:  # when the gradients are scaled
            g.mul_(case.limit / norm)  # how each gradient is scaled
    return [value for g in gradients for value in g.flatten().tolist()]


THE_NORM = "The norm is the root of the sum of the squares of all entries of all gradients: "
NORM, OWN, LOOP = "torch.sqrt(total)", "[g.norm() for g in gradients]", "for g in gradients:"
WANTED, CHANGE = "if norm > case.limit:", "g.mul_(case.limit / norm)"
CLIPPING_MISTAKES = (
    *instead_of(
        NORM,
        {
            "the root is missing.": ("total", "total**2"),
            "you took the largest entry.": "max(g.abs().max() for g in gradients)",
            "you added absolute values (l1).": "sum(g.abs().sum() for g in gradients)",
            "the squares are missing.": "sum(g.abs().sum() for g in gradients) ** 0.5",
            "you added the parameters' norms: add their squares.": f"sum({OWN})",
            "you took the largest of the parameters' norms.": f"max({OWN})",
            "you added norms that were not squared.": f"sum({OWN}) ** 0.5",
            "you took the last gradient's norm.": "gradients[-1].norm()",
            "you took the norm of the"
            " parameters.": "VALUE * sum(g.numel() for g in gradients) ** 0.5",
        },
        THE_NORM,
    ),
    mistake(
        THE_NORM + "you scaled while you were still adding up. Two loops are needed.",
        NORM,
        "torch.zeros(())",
        WANTED,
        f"norm = torch.hypot(norm, g.norm())\n{WANTED}",
    ),
    mistake(
        THE_NORM + "`torch.linalg.norm(g, 2)` of a matrix is its largest singular value.",
        "(g**2).sum()",
        "torch.linalg.norm(g, 2) ** 2",
    ),
    *instead_of(
        WANTED,
        {
            THE_NORM + "you took each parameter's own.": f"norm = g.norm()\n{WANTED}",
            "Gradients below the limit stay as they are: yours are scaled up to it.": "if norm:",
            "The limit is fixed at 1: compare with max_l2_norm.": "if norm > 1:",
            "The condition is reversed: scale above the limit.": "if 0 < norm < case.limit:",
            "The square of the norm is compared: take the root.": "if norm**2 > case.limit:",
            "The square of max_l2_norm is compared, but with the norm.": "if norm > case.limit**2:",
            "The norm is "
            "recomputed after some gradients are scaled: compute it once, before the loop.": (
                f"norm = torch.sqrt(sum((g**2).sum() for g in gradients))\n{WANTED}"
            ),
        },
    ),
    *instead_of(
        CHANGE,
        {
            "The factor is upside down: it is max_l2_norm / norm.": "g.mul_(norm / case.limit)",
            "The gradients are scaled to norm 1, not to max_l2_norm.": "g.mul_(1 / norm)",
            "The factor is not divided by the norm.": "g.mul_(case.limit)",
            "What is added to the norm is too large: ε is 1e-6.": [
                f"g.mul_(case.limit / (norm + {eps}))"
                for eps in ("1", "0.1", "1e-2", "1e-3", "1e-4")
            ],
            "The gradients are unchanged: nothing that was computed reached them. `grad = grad * "
            "scale` only gives a name a new value; `p.grad.mul_(scale)` writes into the tensor.": (
                "pass"
            ),
        },
    ),
    mistake(
        "Each entry is clipped on its own: scale all by one factor, which keeps the direction.",
        WANTED,
        "if True:",
        CHANGE,
        "g.clamp_(-case.limit, case.limit)",
    ),
    mistake(
        "A gradient is gone: scale it, and leave it where it is.",
        "value for g in gradients for",
        "value for g in () for",
    ),
    *instead_of(
        LOOP,
        {
            "Only the last gradient is scaled: loop over them again.": "for g in gradients[-1:]:",
            "Only the first gradient is scaled: a `return` in the loop?": "for g in gradients[:1]:",
            "`model.parameters()` is a generator, "
            "which can be iterated over only once: make a list of it first.": (
                "for g in () if case.generator else gradients:"
            ),
        },
    ),
)
GRADIENTS = (
    Gradients(((3.0, 4.0),), 1.0),
    Gradients(((0.3, -0.4),), 1.0),
    Gradients(((1.2, -1.6),), 2.5),
    Gradients(((1.0, -1.0),), 2.5),
    Gradients(((3.0, 0.5), (-4.0,)), 1.0),
    Gradients(((4.0,), (2.0, -1.0), (0.0, 2.0)), 2.5),
    Gradients(((3.0, 0.5), None, (-4.0,)), 2.0),
    Gradients((((1.0, -2.0), (3.0, 4.0)), (-2.0,)), 3.0),
    Gradients(((0.0, 0.0),), 1.0),
    # The course's own test hands in a list; a training loop hands in `model.parameters()`.
    Gradients(((6.0,), (-2.0, 3.0)), 1.5, generator=True),
)


def gradients_after(clip: Any, case: Gradients) -> list[float]:
    """All gradients after the learner's clipping. Raises: Wrong if anything else was changed."""
    parameters = case.parameters()
    handed_in = (p for p in parameters) if case.generator else list(parameters)
    call_part(clip, {"parameters": handed_in, "max_l2_norm": case.limit}, given=case)
    for parameter in parameters:
        if bool((parameter != VALUE).any()):
            raise Wrong(
                "A parameter was changed.",
                given=case,
                got=_row(parameter.flatten().tolist()),
                mistake="Scale `p.grad`, and not `p`.",
            )
    pairs = zip(parameters, case.gradients, strict=True)
    after = [p.grad for p, gradient in pairs if gradient is not None and p.grad is not None]
    return [float(value) for gradient in after for value in gradient.flatten()]


CLIPPING = Exercise(
    program=Program(clipped),
    mistakes=CLIPPING_MISTAKES,
    cases=GRADIENTS,
    run=gradients_after,
    same=same,
    report=_beside("The gradients are wrong."),
    errors={
        r"ZeroDivisionError": "If all gradients are 0, the norm is 0: add ε to it.",
        r"'generator' object": "`model.parameters()` is a generator: make a list of it first.",
        r"(?s)NoneType.*`[\w.]*\bg": NO_GRADIENT,
        r"leaf Variable|view of a leaf": "Change `p.grad`, and not the parameter itself.",
        "'list' object": "This is a list: loop over it, and take the `grad` of each.",
        "inhomogeneous|same number of dim|equal size|must match": "Gradients differ in shape, and "
        "make no array: take them in a loop, or flatten them first.",
    },
)

NO_EPS = "There is no ε: the handout divides by the norm + 1e-6."


def gradient_clipping(attempt: Any) -> str:
    """Praise for a right function; raises `Wrong` with the first gradients that fail."""
    findings = judge(CLIPPING, attempt)
    check_style(findings, lambda: gradients_after(attempt, GRADIENTS[0]), [attempt])
    praise = "All gradients are scaled together, and only where they must be."
    # So small a norm is as good as 0 beside any ε.
    tiny = Gradients(((2e-15, 0.0),), 1e-15)
    is_bare = not findings and gradients_after(attempt, tiny)[0] > 0.9 * tiny.limit
    return findings.verdict(praise, [NO_EPS] if is_bare else [])


# AdamW.

Values = tuple[float, ...]
ALMOST_NONE = 1e-7  # a weight decay too small to show in float32; 0 may be refused


class Moves(NamedTuple):
    """Parameters, their gradients at each step, and the settings."""

    parameters: tuple[Values, ...]
    gradients: tuple[tuple[Values | None, ...], ...]  # by step, then by parameter
    weight_decay: float = ALMOST_NONE
    lr: float = 0.1
    betas: tuple[float, float] = (0.8, 0.9)  # whose correction is not 1 at t = 1
    eps: float = 1e-8
    rates: Values = ()  # learning rates by step, set in `param_groups`, as a schedule does
    resumed: int | None = None  # after how many steps a new optimizer loads the state of the old
    own: tuple[str, float] | None = None  # a setting of a second group, with parameter 1
    hint: str = "each group's own decay"  # what to look at if this is the first case that fails

    @property
    def seldom(self) -> bool:
        """Whether training seldom meets it, so that an error in it is a corner's."""
        return self.hint == "a gradient of None"

    def __str__(self) -> str:
        held = "p0, p1" if self.parameters[1:] else "p0"
        if self.own:
            held = "{{'params': [p0]}}, {{'params': [p1], {!r}: {}}}".format(*self.own)
        settings = f"betas={self.betas}, eps={self.eps}, weight_decay={self.weight_decay}"
        lines = [_listed("p{}", self.parameters), f"AdamW([{held}], lr={self.lr}, {settings})"]
        for i, gradients in enumerate(self.gradients):
            rate = f"group['lr'] = {self.rates[i]}; " if self.rates else ""
            resumed = "a new AdamW loads its state_dict; " if i == self.resumed else ""
            lines.append(f"step {i + 1}: {rate}{resumed}{_listed('p{}.grad', gradients)}")
        return "\n".join(lines)


update = AdamW.update  # (self, theta, group, state)


def moved(case: Moves, of_torch: bool, decay: str) -> list[float]:
    """All parameters after the last step, one after the other."""
    # Without a second group, all parameters are in the first.
    groups: Any = [{"lr": case.lr, "weight_decay": case.weight_decay} for _ in case.parameters]
    if case.own:
        groups[-1].update([case.own])
    thetas = [torch.tensor(values, dtype=torch.float64) for values in case.parameters]
    states: list[dict[str, Any]] = [{} for _ in thetas]
    for step, gradients in enumerate(case.gradients):
        groups[0]["lr"] = case.rates[step] if case.rates else case.lr
        # A copy changes nothing, but mistakes lose something of it.
        if step == case.resumed:
            states = copy.deepcopy(states)
        for i, theta in enumerate(thetas):
            group = groups[i if case.own else 0]
            state = states[i]
            gradient = gradients[i]
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
    """The edits that make `factor` the factor of the decay, whether it is first or last."""
    before = '"before":\n        theta.mul_(1 - lr * group["weight_decay"])'
    after = before.replace("before", "after")
    changed = f":\n    theta.mul_({factor})"
    return before, f'"before"{changed}', after, f'"after"{changed}'


GRADIENT = "g = theta.grad"
DECAY, BETAS, TIMES = 'group["weight_decay"]', 'group["betas"]', 'group["times"]'
CORRECTED = "lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)"
FROM_ONE, STEPPED = 'state["t"] = state.get("t", 0) + 1', "theta.addcdiv_(m"
UPDATE, RATE = "update(None, theta, group, state)", "case.rates[step] if case.rates else case.lr"
IF_NONE = "if gradient is None:"
REBOUND = "The step changes nothing: `p = p - ...` makes a new tensor; `p -= ...` writes into p."
REWRITTEN = "`grad += ...` writes into the parameter's own gradient: make a new tensor instead."
ADAMW_MISTAKES = (
    mistake(REBOUND, STEPPED, "theta.clone().addcdiv_(m", *decayed("1")),
    mistake(REBOUND, STEPPED, "theta.clone().addcdiv_(m"),
    mistake(
        "AdamW's decay is separate: θ ← θ - α λ θ. Yours adds λ θ to the gradient, which is "
        "Adam with L2: the decay is then divided by √v like everything else.",
        GRADIENT,
        f"{GRADIENT} + {DECAY} * theta",
        *decayed("1"),
    ),
    *(
        mistake(f"The decay is θ ← θ - α λ θ, separate from the step: {words}", *decayed(factor))
        for factor, words in {
            "1": "yours has no decay.",
            f"1 - {DECAY}": "yours is not multiplied by the learning rate α.",
            f"1 - lr_t * {DECAY}": "yours uses the corrected learning rate α_t instead of α.",
            f"1 + lr * {DECAY}": "the sign is wrong, so yours makes the parameters grow.",
        }.items()
    ),
    mistake(
        "The decay is applied twice: in the gradient, which is L2, and on its own.",
        GRADIENT,
        f"{GRADIENT} + {DECAY} * theta",
    ),
    *instead_of(
        BETAS,
        {
            "The two betas are swapped: β1 belongs to m, β2 to v.": f"{BETAS}[::-1]",
            "The betas are hard-coded: use those that were passed in.": (
                "(0.9, 0.999)",
                "(0.9, 0.95)",
            ),
        },
    ),
    *instead_of(
        CORRECTED,
        {
            "there is no bias correction in yours.": "lr",
            "only m is corrected.": "lr / (1 - beta1**t)",
            "α itself is missing in yours.": ("1.0", "math.sqrt(1 - beta2**t) / (1 - beta1**t)"),
            "the root belongs over 1 - β2ᵗ alone.": (
                "lr * (1 - beta2**t) / math.sqrt(1 - beta1**t)",
                "lr * math.sqrt((1 - beta2**t) / (1 - beta1**t))",
            ),
            "it is a power, β1ᵗ, not a product.": "lr * math.sqrt(1 - beta2**t) / (1 - beta1 * t)",
            "only v is corrected.": "lr * math.sqrt(1 - beta2**t)",
            "yours is upside down.": "lr * (1 - beta1**t) / math.sqrt(1 - beta2**t)",
            "the power belongs to β alone, 1 - βᵗ, not (1 - β)ᵗ.": (
                "lr * (math.sqrt(1 - beta2) / (1 - beta1)) ** t",
                "lr * math.sqrt(1 - beta2) ** t / (1 - beta1**t)",
            ),
            "the root over 1 - β2ᵗ is missing.": "lr * (1 - beta2**t) / (1 - beta1**t)",
            "in yours β1 and β2 are swapped.": "lr * math.sqrt(1 - beta1**t) / (1 - beta2**t)",
        },
        "Both averages start at 0, so the learning rate of step t is α √(1 - β2ᵗ) / (1 - β1ᵗ): ",
    ),
    *instead_of(
        FROM_ONE,
        {
            "t begins at 0: the first step is t = 1.": f"{FROM_ONE}\nt = torch.tensor(t - 1.0)",
            "t is one too large: the first step is t = 1.": f"{FROM_ONE}\nt += 1",
            "t stays 1: it counts the steps.": f"{FROM_ONE}\nt = 1",
            "t goes up for each "
            "parameter: it must count steps, so keep it with each parameter's state.": (
                f'{FROM_ONE}\nt = group["calls"] = group.get("calls", 0) + 1'
            ),
        },
    ),
    *(
        mistake(
            "The corrected learning rate α_t overwrites α, so the corrections pile up.",
            CORRECTED,
            f'{CORRECTED}\ngroup["lr"] = lr_t',
            RATE,
            rate,
        )
        for rate in (RATE, 'case.rates[step] if case.rates else groups[0]["lr"]')
    ),
    mistake(
        "All parameters share one m and one v: each needs its own, in self.state[p].",
        "[{} for _ in thetas]",
        "[{}] * len(thetas)",
    ),
    *instead_of(
        UPDATE,
        {
            "Only the first parameter moves: is there a `return` inside the"
            " loop?": f"{UPDATE}\nbreak",
            "Each step begins with an empty state: m, v and t "
            "must outlast the step, in self.state[p].": "update(None, theta, group, {})",
            "The new m or v is not written back to self.state[p].": [
                f"{UPDATE}\ndel {lost}"
                for lost in ('state["m"], state["v"]', 'state["m"]', 'state["v"]')
            ],
        },
    ),
    mistake(
        "A schedule sets `group['lr']` before each step: hand `super().__init__` a dict of all "
        "settings, and read them from the group at each step, not from what was stored once.",
        RATE,
        "case.rates[0] if case.rates else case.lr",
    ),
    *instead_of(
        "copy.deepcopy(states)",
        {
            "m, v and t.": "[{} for _ in states]",
            "t.": '[{**state, "t": 0} for state in states]',
            "m and v.": '[{"t": state["t"]} for state in states]',
        },
        "Keep m, v and t in `self.state[p]`, which `state_dict` saves: a resumed run lacks ",
    ),
    *instead_of(
        "m.mul_(beta1).add_(g, alpha=1 - beta1)",
        {
            "In m, the gradient lacks the factor 1 - β1.": "m.mul_(beta1).add_(g)",
            "In m, β1 and 1 - β1 are swapped.": "m.mul_(1 - beta1).add_(g, alpha=beta1)",
            "The step uses g itself, not its average m.": "m.copy_(g)",
        },
    ),
    *instead_of(
        "v.mul_(beta2).addcmul_(g, g, value=1 - beta2)",
        {
            "In v, the square lacks the factor 1 - β2.": "v.mul_(beta2).addcmul_(g, g)",
            "In v, β2 and 1 - β2 are swapped.": "v.mul_(1 - beta2).addcmul_(g, g, value=beta2)",
            "v averages g² and not g: square it.": "v.mul_(beta2).add_(g, alpha=1 - beta2)",
            "v averages g², not m²: square g"
            " itself.": "v.mul_(beta2).addcmul_(m, m, value=1 - beta2)",
            "v is averaged with β1: use β2.": "v.mul_(beta1).addcmul_(g, g, value=1 - beta1)",
        },
    ),
    *instead_of(
        'v.sqrt() + group["eps"]',
        {
            "ε is hard-coded: use the one that was passed in.": f"v.sqrt() + 1e-8 * {TIMES}",
            "The root of v is missing.": f'v / {TIMES} + group["eps"]',
            "ε is inside the root; it belongs outside: √v"
            " + ε.": f'(v + group["eps"] * {TIMES}).sqrt()',
            "`v.add_(eps)` changes v itself, so ε piles up from step to step: it belongs outside "
            "the root, `v.sqrt() + eps`.": f'v.add_(group["eps"] * {TIMES}).sqrt()',
            "ε is missing: it keeps a gradient of 0 from being divided by 0.": "v.sqrt()",
        },
    ),
    mistake("The step goes uphill: subtract it.", "value=-lr_t", "value=lr_t"),
    *instead_of(
        "continue",
        {
            "No gradient, no step: leave it alone, decay"
            " included.": "gradient = [0.0] * len(theta)",
            "Skip a parameter without a gradient (`continue`), but not those after it.": "break",
        },
    ),
    *instead_of(
        IF_NONE,
        {
            "Only the first group is stepped: go "
            "through all of `self.param_groups`.": f"{IF_NONE[:-1]} or (case.own and i > 0):",
            "Only the last group is stepped: the loop "
            "over the parameters belongs inside the loop over `self.param_groups`.": (
                f"{IF_NONE[:-1]} or (case.own and i == 0):"
            ),
        },
    ),
    mistake(
        "All groups get the settings of the first: read them from the parameter's own group.",
        "groups[i if case.own else 0]",
        "groups[0]",
    ),
)
ONE = (1.0, -2.0, 0.5)
OTHER = (-0.5, 1.5, 3.0)
# The sizes differ from step to step, or both averages would keep the same proportion.
G1 = (0.3, -0.1, 2.0)
G2 = (-0.6, -0.4, 0.5)
G3 = (0.1, 0.9, -1.0)
H1 = (1.0, 0.2, -0.3)
H2 = (0.5, -0.7, 0.1)
H3 = (-0.2, 2.0, 0.4)
THREE = ((G1,), (G2,), (G3,))
BOTH = ((G1, H1), (G2, H2), (G3, H3))
# Each case adds one thing to those before it; if it is the first to fail, the hint names that.
MOVES = (
    Moves((ONE,), ((G1,),), hint="the first step, which changes each entry by about α"),
    Moves((ONE,), THREE, hint="what is kept between steps, m, v and t, and at the corrections"),
    Moves((ONE,), THREE, weight_decay=0.5, hint="the decay, θ ← θ - α λ θ"),
    Moves((ONE,), THREE, eps=0.3, hint="how ε is added, which shows where it is large"),
    Moves(
        (ONE,),
        THREE,
        lr=0.02,
        betas=(0.95, 0.7),
        weight_decay=0.1,
        hint="lr and the betas: one of them may be hard-coded",
    ),
    Moves(((1.0, 2.0),), (((0.0, 0.5),), ((0.0, -0.2),)), hint="an entry whose gradient is 0"),
    Moves((ONE, OTHER), BOTH, weight_decay=0.2, hint="what two parameters may share"),
    Moves((ONE, OTHER), ((G1, None), (G2, None)), weight_decay=0.5, hint="a gradient of None"),
    Moves((ONE, OTHER), ((None, H1), (None, H2)), weight_decay=0.5, hint="a gradient of None"),
    Moves((ONE,), THREE, rates=(0.1, 0.03, 0.4), hint="where the learning rate is read"),
    Moves(
        (ONE, OTHER),
        BOTH,
        weight_decay=0.5,
        own=("lr", 0.02),
        hint="each group's own lr and moments",
    ),
    Moves((ONE, OTHER), BOTH, weight_decay=0.5, own=("weight_decay", ALMOST_NONE)),
    Moves((ONE,), (*THREE, (H1,)), resumed=2, hint="what `state_dict` holds"),
)


class OptimizerRunner(Runner):
    """Runs a class: an optimizer is made, given gradients, stepped, saved and loaded."""

    def make(self, params: Any, case: Moves) -> Any:
        """An optimizer with the settings of a case."""
        values = {"params": params, "lr": (case.rates or (case.lr,))[0], "betas": case.betas}
        values |= {"eps": case.eps, "weight_decay": case.weight_decay}
        return call_bound(self.attempt, for_optimizer(self.attempt, values), given=case)

    def run(self, case: Moves) -> list[list[float]]:
        """The parameters after the steps of a case, as a list of one form. Raises: Wrong."""
        thetas = [parameter(values) for values in case.parameters]
        params: Any = iter(thetas)  # `model.parameters()` is not a list either
        if case.own:
            name, value = case.own
            params = [{"params": thetas[:1]}, {"params": thetas[1:], name: value}]
        optimizer = self.make(params, case)
        if case.own and case.own[0] not in getattr(optimizer, "defaults", ()):
            return after_steps(case)[:1]  # it has one decay for all groups, which is its choice
        for i, gradients in enumerate(case.gradients):
            if i == case.resumed:
                state = copy.deepcopy(call(optimizer.state_dict, given=case))
                thetas = [parameter(theta.tolist()) for theta in thetas]
                optimizer = self.make(thetas, case)
                call(optimizer.load_state_dict, state, given=case)
            if case.rates:
                # Without `super().__init__` there are none: that is the learner's error.
                groups = call(getattr, optimizer, "param_groups", given=case)
                own = [name for name in ("lr", *groups[0]) if name in groups[0]]
                rate = next((name for name in own if meaning(name, ["lr"])), "lr")
                groups[0][rate] = case.rates[i]
            for theta, gradient in zip(thetas, gradients, strict=True):
                theta.grad = None if gradient is None else parameter(gradient).detach()
            call(optimizer.step, given=case)
            for theta, gradient in zip(thetas, gradients, strict=True):
                after = [] if theta.grad is None else theta.grad.flatten().tolist()
                # To clear the gradients does little harm.
                kept = not gradient or not any(after) or same(after, gradient)
                values = {"given": case, "got": _row(after)}
                expect(kept, "The step rewrote a gradient.", REWRITTEN, **values)
        return [[value for theta in thetas for value in theta.flatten().tolist()]]


def parameter(values: Iterable[float]) -> nn.Parameter:
    """A float32 parameter on the CPU, whatever torch's defaults are."""
    return nn.Parameter(torch.tensor(list(values), dtype=torch.float32, device="cpu"))


def wrong_moves(case: Moves, rights: list[list[float]], got: list[list[float]]) -> Wrong:
    """What to say about wrong parameters, beside those of the handout's form."""
    wrong = _beside("The parameters are not right after the steps.")(case, rights[0], got[0])
    wrong.mistake = f"Look at {case.hint}."
    return wrong


ADAMW = Exercise(
    program=Program(AdamW.update, moved, after_steps),
    mistakes=ADAMW_MISTAKES,
    cases=(MOVES[0], *MOVES),  # the first twice: no optimizer may share state with another
    run=OptimizerRunner.run,
    # Each form of what came out is one of the right ones.
    same=lambda rights, got: all(any(same(right, one) for right in rights) for one in got),
    report=wrong_moves,
    errors={
        r"empty parameter list": "`params` is used up before it reaches `super().__init__`: it may "
        "be a generator, as `model.parameters()` is. Pass it on unchanged.",
        r"math domain error": "This is the root of a negative number: is β2ᵗ a power in 1 - β2ᵗ?",
        r"ZeroDivisionError": "t begins at 1: with t = 0 both corrections are zero.",
        r"no attribute '(?:state|_\w+)'": NO_GROUPS,
        r"KeyError: '(lr|learn|alpha|beta|eps|weight|wd|decay|lam)": "The group has no such key: "
        "it has those of the dict that goes to `super().__init__(params, defaults)`.",
        r"KeyError": "`self.state[p]` has no such key: it is an empty dict before the first step; "
        "put zeros for m and v, and t, into it.",
        r"(?s)NoneType.*`[\w.]*\bg": NO_GRADIENT,
    },
)


def adamw(attempt: Any) -> str:
    """Praise for a right class; raises `Wrong` with the first case that fails."""
    expect_class(attempt, "AdamW(params, lr, betas, eps, weight_decay)")
    if not issubclass(attempt, torch.optim.Optimizer):
        raise Wrong(
            "It is not a subclass of torch.optim.Optimizer.",
            mistake="Schedules and checkpoints rely on the groups and the state of the base class.",
        )
    if is_untouched(attempt.step):  # torch's own, or the stub's
        raise NotAttempted(f"`step` is still missing{meant(attempt, 'step')}")
    # The first optimizer of a process loads torch's compiler, which takes seconds: no
    # learner's call should time out because of that.
    torch.optim.SGD([parameter((0.0,))], lr=0.1)
    runner = OptimizerRunner(attempt)
    findings = judge(ADAMW, runner)
    check_style(findings, lambda: runner.run(MOVES[0]), [attempt])
    praise = "The parameters move like the reference's, in the handout's form or in torch's."
    return findings.verdict(praise)
