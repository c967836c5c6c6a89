"""Whether new weights are drawn from the distribution that the course names."""

from collections.abc import Mapping
from math import isclose, isfinite  # by name: an attempt may replace math's

from torch import Tensor

from workbook.checks.verdicts import Words, Wrong

CUT = 3  # standard deviations
CUT_STD = 0.98658  # of N(0, 1) without what lies beyond 3


def check_drawn(weight: Tensor, std: float, others: Mapping[float, str], made: str) -> None:
    """Raise `Wrong` unless a large matrix looks like N(0, std²) cut at three deviations.

    `others` are standard deviations that come of usual mistakes, each with its words.
    """
    weight = weight.detach().double().flatten()
    spread, largest = weight.std().item(), weight.abs().max().item()
    asked = Words(f"numbers from N(0, {std:.4g}²), cut at ±{CUT * std:.4g}")
    found = {
        "given": Words(f"a new {made}"),
        "expected": asked,
        "got": Words(
            f"standard deviation {spread:.4g}, mean {weight.mean().item():.2g}, "
            f"largest {largest:.4g}"
        ),
    }
    claim = "The weight is not drawn as the course asks."
    if not isfinite(spread):
        mistake = "`torch.empty` holds whatever was in memory: fill it."
    elif spread < 1e-12 or weight.unique().numel() < 10:
        mistake = "All numbers are (nearly) the same: rows that start equal stay equal. Draw them."
    elif abs(weight.mean().item()) > 0.1 * spread:
        mistake = "The mean is not 0." + (
            " `torch.rand` gives 0 to 1." if weight.min() >= 0 else ""
        )
    elif largest < 1.9 * spread:
        mistake = "The numbers are uniform, not normal."
    elif not isclose(spread, std * CUT_STD, rel_tol=0.04):
        mistake = next(
            (
                words
                for other, words in others.items()
                if any(isclose(spread, f * other, rel_tol=0.02) for f in (1, CUT_STD))
            ),
            _too_narrow(spread, largest, std),
        )
    elif largest > CUT * std * 1.001:
        mistake = (
            "The distribution is not cut at 3 standard deviations. The limits of `trunc_normal_` "
            f"are numbers, not multiples: a=-{CUT * std:.4g}, b={CUT * std:.4g}."
        )
    else:
        return
    raise Wrong(claim, **found, mistake=mistake)


def _too_narrow(spread: float, largest: float, std: float) -> str | None:
    if spread < std and 0.9 * std < largest <= 2.001 * std:
        return "The distribution is cut too early: the limits are ±3 standard deviations."
    return f"The standard deviation is about {spread / std:.2g} times what it should be."
