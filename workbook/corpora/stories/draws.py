"""Weighted draws from small tables, and the exact price of each draw in bits.

The number of places in a table is a power of two, and each option fills a share of them in
proportion to its weight. A draw is one look-up at a random place. So the probability of an option
is a known fraction, its price -log2(p) is known when the table is made, and only whole numbers
decide what is drawn: the same on every machine.
"""

import math
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Option = TypeVar("Option")
PLACES_PER_OPTION = 16  # at least: keeps the shares of rare options near their weights
UNIT = 360_360  # divisible by 1 to 15, so that the first weights are whole numbers


def zipf_weights(n: int) -> list[int]:
    """n weights that fall like 1 / (rank + 4), from rank 1: the Zipf-Mandelbrot law.

    >>> zipf_weights(3)
    [72072, 60060, 51480]
    """
    return [UNIT // (rank + 4) for rank in range(1, n + 1)]


class DrawTable(Generic[Option]):
    """Options to draw from: `places[random_bits(width)]` is a pair (price in bits, option)."""

    def __init__(self, options: Sequence[Option], weights: Sequence[int]):
        self.width = (PLACES_PER_OPTION * len(options) - 1).bit_length() if len(options) > 1 else 0
        size = 1 << self.width
        total = sum(weights)
        counts = [max(1, weight * size // total) for weight in weights]
        by_loss = sorted(range(len(weights)), key=lambda n: -(weights[n] * size % total))
        for n in by_loss[: size - sum(counts)]:  # what rounding left over
            counts[n] += 1
        assert sum(counts) == size, f"{weights} are too uneven for a table of {size} places"
        self.places: list[tuple[float, Option]] = []
        for option, count in zip(options, counts, strict=True):
            self.places += [(self.width - math.log2(count), option)] * count

    def draw_other(
        self, random_bits: Callable[[int], int], taken: Sequence[tuple[float, Option]]
    ) -> tuple[tuple[float, Option], float]:
        """A random place that is none of `taken`, and its price among those that are left.

        Drawing again until the place is new costs nothing extra: a decoder knows what is taken, so
        draws that hit it need not be encoded. The options that are left share the whole
        probability, so each of them becomes cheaper.

        >>> DrawTable("ab", [1, 1]).draw_other(lambda width: 0, [(1.0, "b")])
        ((1.0, 'a'), 0.0)
        """
        place = self.places[random_bits(self.width)]
        while place in taken:
            place = self.places[random_bits(self.width)]
        left = 1.0 - sum(2.0**-price for price, _ in taken)
        return place, place[0] + math.log2(left)
