"""Whether a difference between runs is more than the luck of the seed.

Runs with other seeds and else the same settings differ; how much is their spread. A difference
between two settings is only claimed where the runs of one are so far apart from those of the other
that shuffling which run had which setting would rarely show as much: an exact permutation test. It
assumes nothing about how losses are distributed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev

RARE = 0.05  # of all ways to deal the runs out: below it a difference is claimed


@dataclass(frozen=True)
class Spread:
    """The losses of runs that differ by their seed alone."""

    losses: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Their mean."""
        return fmean(self.losses)

    @property
    def deviation(self) -> float:
        """Their sample standard deviation."""
        return stdev(self.losses)

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.deviation:.3f} ({len(self.losses)} seeds)"


@dataclass(frozen=True)
class Difference:
    """How much higher the losses of one setting are than those of another."""

    nats: float  # of the means
    chance: float  # of a difference as large, either way, if the setting did nothing

    @property
    def claimed(self) -> bool:
        """Whether luck is a poor explanation."""
        return self.chance < RARE

    def __str__(self) -> str:
        words = "a difference" if self.claimed else "no difference that these runs can show"
        return f"{self.nats:+.3f} nats, p = {self.chance:.3f}: {words}"


def spread(losses: Sequence[float]) -> Spread:
    """The spread of at least two losses. Raises: ValueError for fewer."""
    if len(losses) < 2:
        raise ValueError(f"expected the losses of at least 2 seeds, got {len(losses)}")
    return Spread(tuple(losses))


def difference(losses: Sequence[float], others: Sequence[float]) -> Difference:
    """How much higher the first losses are than the others, and whether that can be luck.

    >>> str(difference([2.9, 3.0, 3.1], [2.1, 2.0, 1.9, 2.05, 1.95]))
    '+1.000 nats, p = 0.018: a difference'
    """
    everything, size = [*losses, *others], len(losses)
    total = sum(everything)

    def apart(part: float) -> float:  # the means of the first `size` losses and of the rest
        return part / size - (total - part) / (len(everything) - size)

    seen = apart(sum(losses))
    dealt = [apart(sum(part)) for part in combinations(everything, size)]
    close = 1e-12 * max(map(abs, everything))  # sums in another order may differ by a bit
    as_large = sum(abs(each) >= abs(seen) - close for each in dealt)
    return Difference(seen, as_large / len(dealt))
