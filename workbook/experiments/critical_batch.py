"""How large a batch pays: the steps to one loss by batch size, and the bend in them.

A larger batch takes fewer steps to a loss, but never fewer than some number; a smaller one takes
less text, but never less than some amount. In between lies the critical batch. There a run takes
twice the fewest steps and twice the least text:

    steps = fewest · (1 + critical / batch)        text = least · (1 + batch / critical)

Source: McCandlish, Kaplan, Amodei & the OpenAI Dota Team 2018, "An Empirical Model of Large-Batch
Training", eq. 2.11 and 2.12 (their S_min is `fewest`, B_crit is `critical`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import linear_regression
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class BatchCurve:
    """The two numbers of the curve of steps over batch size."""

    fewest: float  # steps to the loss, however large the batch
    critical: float  # sequences; 0 where no batch was small, inf where none was large

    def steps(self, batch_size: float) -> float:
        """The steps that a batch of this size takes to the loss."""
        return self.fewest * (1 + self.critical / batch_size)


def steps_to(log: "pd.DataFrame", loss: float) -> float:
    """The step at which the validation loss first is `loss`, on a line between evaluations.

    Infinite where the run never came so low.
    """
    held_out = log["validation_loss"].dropna()
    before = None
    for step, value in held_out.items():
        if value <= loss:
            if before is None:
                return float(step)
            early, high = before
            return early + (step - early) * (high - loss) / (high - value)
        before = step, value
    return math.inf


def fit_batch_curves(
    logs: Mapping[int, "pd.DataFrame"],
) -> dict[float, tuple[dict[int, float], BatchCurve]]:
    """By loss, the steps that each batch size took to it, and the curve through them.

    The losses are those that the runs ended at, as far as four batch sizes came as low.
    """
    found = {}
    for loss in sorted(log["validation_loss"].dropna().iloc[-1] for log in logs.values())[3:]:
        steps = {size: steps_to(log, loss) for size, log in logs.items()}
        steps = {size: count for size, count in steps.items() if math.isfinite(count)}
        found[float(loss)] = steps, fit_batch_curve(steps)
    return found


def growth_exponent(values: Mapping[float, float]) -> float:
    """The power with which values grow: 1/2 for a root, by a straight line between logarithms.

    >>> round(power({8: 2.0, 32: 4.0, 128: 8.0}), 6)
    0.5
    """
    line = linear_regression([*map(math.log, values)], [*map(math.log, values.values())])
    return line.slope


def fit_batch_curve(steps: Mapping[float, float]) -> BatchCurve:
    """The curve nearest to the steps by batch size, each step count taken relative to itself.

    Raises: ValueError for fewer than three batch sizes, through which many curves would pass.
    """
    if len(steps) < 3:
        raise ValueError(f"expected the steps of at least 3 batch sizes, got {len(steps)}")
    # Least squares of fewest/steps + slope/(batch · steps) = 1, in two unknowns.
    pairs = [(1 / count, 1 / (batch * count)) for batch, count in steps.items()]
    xx, xy, yy = (
        sum(x * x for x, _ in pairs),
        sum(x * y for x, y in pairs),
        sum(y * y for _, y in pairs),
    )
    sx, sy = (sum(values) for values in zip(*pairs, strict=True))
    determinant = xx * yy - xy * xy
    fewest, slope = (sx * yy - sy * xy) / determinant, (sy * xx - sx * xy) / determinant
    if fewest <= 0:
        return BatchCurve(0.0, math.inf)
    return BatchCurve(fewest, max(slope, 0.0) / fewest)
