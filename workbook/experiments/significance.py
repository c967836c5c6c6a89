"""Whether a difference between two settings is more than the luck of the seeds.

Runs that differ only in their seed end with different losses. Two settings are compared seed by
seed: a pair has the same seed, so the same batches in the same order, and what both have in common
cancels. A t-test of the pairs' differences says how often luck alone would make a mean difference
as large; it assumes that they are normally distributed, which five pairs neither show nor refute.
(A permutation of five pairs has 32 outcomes, so its p is never below 2/32 = 0.06.)

If you make many comparisons, one turns out "significant" sooner or later. Holm's correction keeps
the chance of even one false claim among all of them at 5 %.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TypeVar

Label = TypeVar("Label", bound=Hashable)  # of a comparison

RARE = 0.05  # chance of a false claim, over all comparisons that are made together


@dataclass(frozen=True)
class Spread:
    """The losses of runs that differ only in their seed: a deviation needs two."""

    losses: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Their mean; infinite if a run diverged."""
        return fmean(self.losses)

    @property
    def deviation(self) -> float:
        """Their sample standard deviation; infinite if a run diverged."""
        return math.inf if self.diverged else stdev(self.losses)

    @property
    def diverged(self) -> int:
        """How many of the runs diverged."""
        return sum(map(math.isinf, self.losses))

    def __str__(self) -> str:
        if self.diverged:
            return f"{self.diverged} of {len(self.losses)} seeds diverged"
        if len(self.losses) == 1:
            return f"{self.mean:.3f} (1 seed)"
        return f"{self.mean:.3f} ± {self.deviation:.3f} ({len(self.losses)} seeds)"


@dataclass(frozen=True)
class PairedDifference:
    """How much higher the losses of one setting are than those of another, seed by seed."""

    gaps: tuple[float, ...]  # nats per token, one per seed; infinite where one of the two diverged

    @property
    def nats(self) -> float:
        """The mean of the gaps; infinite if a run diverged."""
        return fmean(self.gaps)

    @property
    def error(self) -> float:
        """The standard error of the mean; infinite if a run diverged."""
        if not math.isfinite(self.nats):
            return math.inf
        return stdev(self.gaps) / math.sqrt(len(self.gaps))

    @property
    def chance(self) -> float:
        """The p-value: how often luck makes a mean as large, either way; 1 if a run diverged."""
        if not math.isfinite(self.error):
            return 1.0
        if self.error == 0:
            return 1.0 if self.nats == 0 else 0.0
        return t_tails(self.nats / self.error, len(self.gaps) - 1)

    def smallest_claim(self, comparisons: int = 1) -> float:
        """The smallest mean that would be claimed with this error, as the next of its family.

        `comparisons` is how many are made together and not claimed: Holm's steps allow 5 % divided
        by these.
        """
        return t_quantile(RARE / comparisons, len(self.gaps) - 1) * self.error


def paired_difference(losses: Mapping[int, float], others: Mapping[int, float]) -> PairedDifference:
    """How much higher `losses` are than `others`, both by seed, over the seeds of both.

    >>> gap = paired_difference({1: 2.9, 2: 3.0, 3: 3.2}, {1: 2.1, 2: 2.0, 3: 2.3, 4: 9.0})
    >>> round(gap.nats, 3), round(gap.error, 3), round(gap.chance, 3)
    (0.9, 0.058, 0.004)

    Raises: ValueError for fewer than two seeds that both have.
    """
    shared = [seed for seed in losses if seed in others]
    if len(shared) < 2:
        raise ValueError(
            f"expected at least 2 seeds that both settings have, got {[*losses]} and {[*others]};"
            " run what is missing first"
        )
    pairs = [(losses[seed], others[seed]) for seed in shared]
    # Two runs that both diverged have no gap; inf - inf would be nan.
    return PairedDifference(tuple(0.0 if a == b else a - b for a, b in pairs))


def in_words(chance: float) -> str:
    """A p-value with its sign of comparison, such as "= 0.0123" or, if it is tiny, "< 0.0001".

    >>> in_words(0.01234), in_words(1e-7)
    ('= 0.0123', '< 0.0001')
    """
    return f"= {chance:.4f}" if chance >= 0.0001 else "< 0.0001"


def claimed(differences: Mapping[Label, PairedDifference]) -> dict[Label, bool]:
    """Which of some differences may be claimed together, by Holm's correction.

    The smallest p of m must be below 5 % / m, the next below 5 % / (m - 1), and so on; after the
    first that is not, nothing is claimed. Source: Holm 1979, "A Simple Sequentially Rejective
    Multiple Test Procedure".
    """
    verdicts = dict.fromkeys(differences, False)
    by_chance = sorted(differences, key=lambda label: differences[label].chance)
    for rank, label in enumerate(by_chance):
        if differences[label].chance >= RARE / (len(differences) - rank):
            break
        verdicts[label] = True
    return verdicts


def t_tails(t: float, freedom: int) -> float:
    """The chance that Student's t lies beyond ±t, with `freedom` degrees of freedom.

    >>> round(t_tails(2.776, 4), 3)
    0.05

    Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", eq. 26.7.3 and 26.7.4.
    """
    angle = math.atan(abs(t) / math.sqrt(freedom))
    cosine = math.cos(angle)
    sine = math.sin(angle)
    odd = freedom % 2
    # A finite sum: cos + 2/3 cos³ + ... for an odd number of degrees, 1 + 1/2 cos² + ... for even.
    term = total = cosine if odd else 1.0
    for power in range(2 + odd, freedom - 1, 2):
        term *= (power - 1) / power * cosine**2
        total += term
    if not odd:
        return max(0.0, 1.0 - sine * total)
    return max(0.0, 1.0 - 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0)))


def t_quantile(chance: float, freedom: int) -> float:
    """The t beyond which, on either side, Student's t lies with this chance.

    >>> round(t_quantile(0.05, 4), 3)
    2.776
    """
    low, high = 0.0, 1.0  # the tails have no inverse in closed form: bisect
    while t_tails(high, freedom) > chance:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tails(middle, freedom) > chance else (low, middle)
    return high
