"""Whether a difference between two settings is more than the luck of the seeds.

Runs that differ only in their seed end with different losses; their spread says how different. A
difference between two settings is claimed only if shuffling which run had which setting would
rarely show one as large: an exact permutation test, which assumes nothing about how losses are
distributed.

A run that diverged has an infinite loss, which a mean cannot hold. It counts as far worse than any
run that ended, so the setting that diverges more often is the worse one. Where both diverge as
often, the means of the other runs are compared.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev

RARE = 0.05  # p-value: below it a difference is claimed
FAR = 1e4  # times the highest loss: what a diverged run counts as, above any mean of others


@dataclass(frozen=True)
class Spread:
    """The losses of runs that differ only in their seed."""

    losses: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Their mean; infinite where a run diverged."""
        return fmean(self.losses)

    @property
    def deviation(self) -> float:
        """Their sample standard deviation; infinite where a run diverged."""
        return math.inf if self.diverged else stdev(self.losses)

    @property
    def diverged(self) -> int:
        """How many of the runs diverged."""
        return len(self.losses) - len(ended(self.losses))

    def __str__(self) -> str:
        if self.diverged:
            return f"{self.diverged} of {len(self.losses)} seeds diverged"
        return f"{self.mean:.3f} ± {self.deviation:.3f} ({len(self.losses)} seeds)"


@dataclass(frozen=True)
class Difference:
    """How much higher the losses of one setting are than those of another."""

    nats: float  # of the means of the runs that ended; infinite where one diverges more often
    chance: float  # p-value: of a difference as large, either way, if the setting did nothing

    @property
    def claimed(self) -> bool:
        """Whether luck is a poor explanation."""
        return self.chance < RARE


def spread(losses: Sequence[float]) -> Spread:
    """The spread of at least two losses. Raises: ValueError for fewer, or for nan."""
    if len(losses) < 2:
        raise ValueError(f"expected the losses of at least 2 seeds, got {len(losses)}")
    refuse_nan(losses)
    return Spread(tuple(losses))


def difference(losses: Sequence[float], others: Sequence[float]) -> Difference:
    """How much higher `losses` are than `others`, and whether that can be luck.

    >>> found = difference([2.9, 3.0, 3.1], [2.1, 2.0, 1.9, 2.05, 1.95])
    >>> round(found.nats, 3), round(found.chance, 3), found.claimed
    (1.0, 0.018, True)

    Raises: ValueError without a loss on each side, or for nan.
    """
    if not losses or not others:
        raise ValueError(
            f"expected losses of both settings, got {len(losses)} and {len(others)}; run what is"
            " missing first"
        )
    refuse_nan([*losses, *others])
    far = FAR * max(map(abs, ended([*losses, *others])), default=1.0)
    everything = [far if math.isinf(loss) else loss for loss in (*losses, *others)]
    size, total = len(losses), sum(everything)

    def gap_of_means(part: float) -> float:  # from the sum of one side, whose size is fixed
        return part / size - (total - part) / (len(everything) - size)

    seen = gap_of_means(sum(everything[:size]))
    permuted = [gap_of_means(sum(part)) for part in combinations(everything, size)]
    close = 1e-12 * max(map(abs, everything))  # sums in another order may differ by a bit
    as_large = sum(abs(each) >= abs(seen) - close for each in permuted)
    return Difference(mean_gap(losses, others), as_large / len(permuted))


def false_alarm(seeds: int, others: int) -> float:
    """The chance that so many losses are all below so many others, if the settings do nothing.

    Their ranks are then random, and one of all ways to choose them has the lowest.

    >>> false_alarm(2, 3)
    0.1
    """
    return 1 / math.comb(seeds + others, seeds)


def mean_gap(losses: Sequence[float], others: Sequence[float]) -> float:
    """The mean of `losses` less that of `others`, of the runs that ended.

    Infinite where one setting diverged more often; 0 where both always did.
    """
    mine, theirs = ended(losses), ended(others)
    more = len(theirs) * len(losses) - len(mine) * len(others)  # the sign of the shares' difference
    if more:
        return math.copysign(math.inf, more)
    return fmean(mine) - fmean(theirs) if mine else 0.0


def ended(losses: Sequence[float]) -> list[float]:
    """The losses of the runs that did not diverge."""
    return [loss for loss in losses if not math.isinf(loss)]


def refuse_nan(losses: Sequence[float]) -> None:
    """Raise ValueError for a loss that is nan: a run that diverged has an infinite one."""
    if any(map(math.isnan, losses)):
        raise ValueError(f"a loss of {losses} is no number; a run that diverged has inf")
