"""What the checks of optimizers, schedules and clipping share: numbers compared and shown."""

import math
from collections.abc import Callable, Sequence
from math import isclose, isfinite, isnan  # by name: an attempt may replace math's
from typing import Any, NamedTuple

from workbook.checks.likeliest import likeliest
from workbook.checks.text_variants import Variant
from workbook.checks.verdicts import Words, Wrong

# float32 keeps 7 digits; the values are of size 1, and a few steps are taken.
RELATIVE, ABSOLUTE = 1e-5, 1e-6
TINY = 1e-30


class Outcome(NamedTuple):
    """What a learner's code made of one input: numbers, or "error"."""

    given: Any
    got: Sequence[float] | str
    right: bool
    failure: Wrong | None = None  # where it raised an error


def same(one: Sequence[float] | str, other: Sequence[float] | str) -> bool:
    """True where two lists of numbers agree as far as float32 can tell, NaN with NaN."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return len(one) == len(other) and all(map(_alike, one, other))


def _alike(a: float, b: float) -> bool:
    if not (isfinite(a) and isfinite(b)):
        return a == b or (isnan(a) and isnan(b))
    return isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def row(values: Sequence[float]) -> Words:
    """Numbers as a learner reads them, six digits each."""
    return Words(f"[{', '.join(f'{value:.6g}' for value in values)}]")


def quotient(numerator: float, denominator: float) -> float:
    """A quotient as a tensor has it: no error for a zero below the line."""
    if denominator == 0 or math.isnan(denominator):
        return (
            math.nan if numerator == 0 or denominator != 0 else math.copysign(math.inf, numerator)
        )
    return numerator / denominator


def mistake(
    variants: Sequence[Variant],
    outcomes: Sequence[Outcome],
    predicted: Callable[[Any, tuple[Variant, ...]], Sequence[Sequence[float] | str]],
) -> str | None:
    """The known mistake, or two, that explain the last outcome and contradict no right one.

    `predicted` gives what the reference with these mistakes makes of an input, one result for each
    way in which the problem may be solved.
    """

    def fits(mistakes: tuple[Variant, ...], outcome: Outcome) -> bool:
        try:
            guesses = predicted(outcome.given, mistakes)
        except (ArithmeticError, ValueError):  # two mistakes may leave nothing to compute with
            return False
        return any(same(guess, outcome.got) for guess in guesses)

    failed = next(outcome for outcome in outcomes if not outcome.right)
    best = likeliest(variants, failed, outcomes, fits, pairs=not isinstance(failed.got, str))
    return " And: ".join(variant.mistake for variant in best) or None
