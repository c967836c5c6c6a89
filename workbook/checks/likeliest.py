"""Which of the known mistakes explain what a learner's code did, for any problem."""

import time
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from workbook.checks.text_variants import Variant

ENOUGH = 1 / 4  # of the wrong outcomes
PATIENCE = 2.0  # seconds spent on pairs of mistakes


def likeliest(
    variants: Sequence[Variant],
    failed: Any,
    outcomes: Sequence[Any],
    fits: Callable[[tuple[Variant, ...], Any], bool],
    pairs: bool,
) -> tuple[Variant, ...]:
    """The mistake, or the two where `pairs` are tried, that explain most; empty where none does.

    `fits(mistakes, outcome)` tells whether they give that outcome. They must give the failed one,
    must not spoil an outcome whose flag `right` is set, and must give `ENOUGH` of the wrong ones:
    one small case alone looks like many a mistake.
    """
    wrong = [outcome for outcome in outcomes if not outcome.right]

    def agree(mistakes: tuple[Variant, ...]) -> bool:
        right = (outcome for outcome in outcomes if outcome.right)
        return (
            fits(mistakes, failed)
            and all(fits(mistakes, outcome) for outcome in right)
            and sum(fits(mistakes, outcome) for outcome in wrong) >= ENOUGH * len(wrong)
        )

    def score(mistakes: tuple[Variant, ...]) -> int:
        return sum(fits(mistakes, outcome) for outcome in outcomes)

    singles = [(variant,) for variant in variants if agree((variant,))]
    best = max(singles, key=score, default=())
    if pairs and not (best and score(best) == len(outcomes)):
        until = time.monotonic() + PATIENCE
        for two in combinations(variants, 2):
            if time.monotonic() > until:
                break
            if two[0].stage != two[1].stage and agree(two) and score(two) == len(outcomes):
                return two
    return best
