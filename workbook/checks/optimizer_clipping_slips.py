"""Clipping in stages, on plain numbers, and the mistakes that are made in each."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from workbook.checks.optimizer_values import quotient
from workbook.checks.text_variants import Variant, stages

VALUE = 2.0  # of every entry of every parameter
EPS = 1e-6

Gradient = tuple[float, ...]


class Case(NamedTuple):
    """Gradients by parameter, None where there is none, and the limit of their norm."""

    gradients: tuple[Gradient | None, ...]
    limit: float
    square: bool = False  # the four entries are a matrix
    generator: bool = False  # the parameters can be gone through only once


def l2(values: Sequence[float]) -> float:
    """The root of the sum of squares."""
    return math.sqrt(sum(value * value for value in values))


def together(case: Case, gradients: list[Gradient]) -> list[float]:
    """The norm that each gradient is scaled by: the same one, of all entries together."""
    return [l2([value for gradient in gradients for value in gradient])] * len(gradients)


RIGHT: dict[str, Callable] = {
    "norms": together,
    "wanted": lambda norm, limit: norm > limit,
    "scale": lambda norm, limit: quotient(limit, norm + EPS),
    "apply": lambda value, scale, limit: value * scale,
    "reach": lambda position, many: True,
}


def clipped(case: Case, variants: tuple[Variant, ...] = ()) -> list[float]:
    """All gradients after clipping, with the right way of each stage or the variants."""
    do = stages(RIGHT, variants)
    gradients = [gradient for gradient in case.gradients if gradient is not None]
    norms, many = do["norms"](case, gradients), len(gradients)
    result = []
    for position, (gradient, norm) in enumerate(zip(gradients, norms, strict=True)):
        wanted = do["wanted"](norm, case.limit) and do["reach"](position, many)
        scale = do["scale"](norm, case.limit)
        for value in gradient:
            result.append(do["apply"](value, scale, case.limit) if wanted else value)
    return result


def _of_all(function: Callable[[list[float]], float]) -> Callable:
    """One number of all entries, for every gradient."""

    def norms(case: Case, gradients: list[Gradient]) -> list[float]:
        return [function([v for gradient in gradients for v in gradient])] * len(gradients)

    return norms


def _of_each(function: Callable[[list[float]], float]) -> Callable:
    """One number made of the gradients' own norms, for every gradient."""

    def norms(case: Case, gradients: list[Gradient]) -> list[float]:
        return [function([l2(gradient) for gradient in gradients])] * len(gradients)

    return norms


def _running(case: Case, gradients: list[Gradient]) -> list[float]:
    own = [l2(gradient) for gradient in gradients]
    return [l2(own[: i + 1]) for i in range(len(own))]


def _spectral(case: Case, gradients: list[Gradient]) -> list[float]:
    """Like the right one, with the largest singular value in place of a matrix's l2 norm."""
    if not case.square:
        return together(case, gradients)
    a, b, c, d = gradients[0]
    squares, determinant = a * a + b * b + c * c + d * d, a * d - b * c
    return [math.sqrt((squares + math.sqrt(squares**2 - 4 * determinant**2)) / 2)]


NORM = "The norm is the root of the sum of the squares of all entries of all gradients: "
SLIPS = (
    Variant(
        "norms",
        lambda case, gradients: [l2(gradient) for gradient in gradients],
        NORM + "you took each parameter's own, which changes the direction of the step.",
    ),
    Variant("norms", _of_all(lambda v: sum(x * x for x in v)), NORM + "the root is missing."),
    Variant("norms", _of_all(lambda v: max(map(abs, v))), NORM + "you took the largest entry."),
    Variant("norms", _of_all(lambda v: sum(map(abs, v))), NORM + "you added absolute values (l1)."),
    Variant("norms", _of_all(lambda v: l2(v) / math.sqrt(len(v))), NORM + "you took a mean."),
    Variant("norms", _of_each(sum), NORM + "you added the norms of the parameters: add squares."),
    Variant("norms", _of_each(max), NORM + "you took the largest of the parameters' norms."),
    Variant("norms", _of_each(lambda own: own[0]), NORM + "you took the first parameter's."),
    Variant("norms", _of_each(lambda own: own[-1]), NORM + "you took the last parameter's."),
    Variant(
        "norms",
        _of_each(lambda own: sum(own) / len(own)),
        NORM + "you took the mean of the parameters' norms.",
    ),
    Variant(
        "norms",
        _running,
        NORM + "you scaled while you were still adding up. Two loops are needed.",
    ),
    Variant(
        "norms",
        lambda case, gradients: [VALUE * math.sqrt(sum(map(len, gradients)))] * len(gradients),
        NORM + "you took the parameters, not their gradients.",
    ),
    Variant(
        "norms",
        _spectral,
        NORM + "`torch.linalg.norm(g, 2)` of a matrix is its largest singular value. Flatten it.",
    ),
    Variant(
        "wanted",
        lambda norm, limit: True,
        "Gradients below the limit stay as they are: yours are scaled up to it.",
    ),
    Variant(
        "wanted",
        lambda norm, limit: norm < limit,
        "The condition is turned round: scale where the norm is above the limit.",
    ),
    Variant(
        "wanted",
        lambda norm, limit: norm > 1,
        "The norm is compared with 1, and not with max_l2_norm.",
    ),
    Variant(
        "scale",
        lambda norm, limit: quotient(norm, limit),
        "The factor is upside down: it is max_l2_norm / norm.",
    ),
    Variant(
        "scale",
        lambda norm, limit: quotient(1.0, norm + EPS),
        "The gradients are scaled to the norm 1, and not to max_l2_norm.",
    ),
    Variant("scale", lambda norm, limit: limit, "The factor is not divided by the norm."),
    Variant(
        "scale",
        lambda norm, limit: quotient(limit, norm * norm + EPS),
        "The factor is divided by the square of the norm.",
    ),
    Variant(
        "apply",
        lambda value, scale, limit: min(max(value, -limit), limit),
        "Each entry is cut to the limit for itself, which changes the direction of the step: scale "
        "all by one factor.",
    ),
    Variant(
        "apply",
        lambda value, scale, limit: value,
        "The gradients are as before: a name was given a new value, as in `grad = grad * scale`. "
        "Write into the tensor: `p.grad.mul_(scale)`.",
    ),
    Variant(
        "apply",
        lambda value, scale, limit: 0.0,
        "All gradients have become 0.",
    ),
    Variant(
        "reach",
        lambda position, many: position == many - 1,
        "Only the last gradient is scaled: scale in a second loop over all parameters.",
    ),
    Variant(
        "reach",
        lambda position, many: position == 0,
        "Only the first gradient is scaled.",
    ),
)
