"""Which assumptions give someone's number: each alone, and those that people often combine.

The number is compared, to the digits that were written, with all that can come out of a problem:
in the unit that was written, in the one that may have been meant (GiB for GB), and with a factor of
1,000 lost or gained. The explanations with the fewest changes come first.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cache
from itertools import combinations

from workbook.accounting.answers import Quantity, answers
from workbook.accounting.assumptions import COMBINED, FIELDS, Switch, asked, switches
from workbook.accounting.training import DAY, GB, HOUR, GiB
from workbook.config import Edition

MOST_CHANGES = max(map(len, COMBINED))
ASKED_SIZES = ("small", "medium", "large")  # that (d) of transformer_accounting asks about
UNITS: dict[str, tuple[str, float]] = {  # as written: what is measured, and how many of its unit
    "parameters": ("count", 1),
    "million parameters": ("count", 1e6),
    "billion parameters": ("count", 1e9),
    "FLOPs": ("flops", 1),
    "GFLOPs": ("flops", 1e9),
    "TFLOPs": ("flops", 1e12),
    "PFLOPs": ("flops", 1e15),
    "FLOPs per parameter": ("per parameter", 1),
    "bytes": ("bytes", 1),
    "KB": ("bytes", 1_000),
    "MB": ("bytes", 1_000**2),
    "MiB": ("bytes", 1_024**2),
    "GB": ("bytes", GB),
    "GiB": ("bytes", GiB),
    "TB": ("bytes", 1_000 * GB),
    "%": ("share", 0.01),
    "times": ("factor", 1),
    "sequences": ("batch", 1),
    "seconds": ("seconds", 1),
    "minutes": ("seconds", 60),
    "hours": ("seconds", HOUR),
    "days": ("seconds", DAY),
    "years": ("seconds", 365.25 * DAY),
}
# Other spellings, in small letters; that of a unit itself is known in any letters.
SPELLINGS = {
    "params": "parameters",
    "param": "parameters",
    "million": "million parameters",
    "million params": "million parameters",
    "billion": "billion parameters",
    "billion params": "billion parameters",
    "flop": "FLOPs",
    "gflop": "GFLOPs",
    "tflop": "TFLOPs",
    "pflop": "PFLOPs",
    "flops/parameter": "FLOPs per parameter",
    "byte": "bytes",
    "percent": "%",
    "x": "times",
    "s": "seconds",
    "sec": "seconds",
    "second": "seconds",
    "min": "minutes",
    "h": "hours",
    "hour": "hours",
    "d": "days",
    "day": "days",
    "year": "years",
}
MISTAKEN = {"MB": "MiB", "MiB": "MB", "GB": "GiB", "GiB": "GB"}


@dataclass(frozen=True)
class Amount:
    """A number as somebody wrote it: its digits say how far it may be rounded."""

    value: float  # in bytes, FLOPs, seconds, or as a share of 1
    half: float  # half a unit of the last digit that is written
    kind: str  # what is measured: the first column of `UNITS`
    unit: str  # as written
    digits: int  # significant ones
    text: str  # number and unit as written

    @classmethod
    def of(cls, value: str | float, unit: str, text: str = "") -> "Amount":
        """The amount of `value` in `unit`, one of `UNITS`; a str keeps the zeros of "5.80".

        >>> Amount.of("5.80", "GB").half, Amount.of("1.56e9", "parameters").digits
        (5000000.0, 3)
        """
        if unit not in UNITS:
            raise ValueError(f"no unit is called {unit!r}; the units are {', '.join(UNITS)}")
        try:
            number = Decimal(str(value))
        except InvalidOperation:
            raise ValueError(f"expected a number such as 1.56e9, got {value!r}") from None
        if not number.is_finite() or number <= 0:
            raise ValueError(f"expected a positive, finite number, got {value!r}")
        kind, scale = UNITS[unit]
        # 5.80 is 580 · 10⁻²: three digits, and it may be off by half of 10⁻².
        digits = len(number.as_tuple().digits)
        half = 0.5 * 10.0 ** (number.adjusted() - digits + 1) * scale
        return cls(float(number) * scale, half, kind, unit, digits, text or f"{value} {unit}")

    def slips(self) -> Iterator[tuple[float, str]]:
        """The factors by which it may be off, each with a slip in words; first 1 and no slip."""
        yield 1.0, ""
        if self.digits > 1 and (meant := MISTAKEN.get(self.unit)):
            yield UNITS[meant][1] / UNITS[self.unit][1], f"{meant} are called {self.unit}"
        if self.digits > 1 and self.kind in ("bytes", "flops", "seconds", "count"):
            yield 1_000.0, "a factor of 1,000 is lost"
            yield 1 / 1_000, "a factor of 1,000 is too many"


@dataclass(frozen=True)
class Explanation:
    """A number that comes out after some switches were flipped, and a slip in writing it down."""

    quantity: str  # such as "parameters", "largest batch"
    value: float  # in bytes, FLOPs, seconds, or as it is
    kind: str  # as in `Quantity`
    flipped: tuple[Switch, ...] = ()
    slip: str = ""

    @property
    def changes(self) -> tuple[str, ...]:
        """Everything that has to be changed, in words; none: it is what the problem asks for."""
        words = [switch.words for switch in self.flipped]
        return (*words, self.slip) if self.slip else tuple(words)

    def __str__(self) -> str:
        if not self.changes:
            return f"{self.quantity}, as the problem states it"
        return f"{self.quantity}, when {joined(self.changes)}"


def unit_named(text: str) -> str | None:
    """The unit of `UNITS` that a text spells, in any letters; None if it is none.

    >>> unit_named("gb"), unit_named("Tflop"), unit_named("furlongs")
    ('GB', 'TFLOPs', None)
    """
    known = {unit.lower(): unit for unit in UNITS} | SPELLINGS
    return known.get(" ".join(text.lower().split()))


def explain(problem: str, value: str | float, unit: str, part: str) -> str:
    """The assumptions, units or omissions that give someone's number, fewest changes first.

    `unit` is one of `UNITS`; the problem is that of edition 2025, which others have solved.

    >>> print(explain("transformer_accounting", 2_127_056_000, "parameters", "a"))
    2127056000 parameters: parameters, when the final norm is left out
    >>> print(explain("transformer_accounting", "3.21e12", "FLOPs", "b"))
    3.21e12 FLOPs: no stated assumption gives this
    """
    amount = Amount.of(value, unit)
    explanations = ways(problem, amount, part)
    if not explanations:
        return f"{amount.text}: no stated assumption gives this"
    ties = [str(way) for way in explanations if len(way.changes) == len(explanations[0].changes)]
    return f"{amount.text}: {'; or '.join(ties)}"


def ways(problem: str, amount: Amount, part: str, edition: Edition = "2025") -> list[Explanation]:
    """All explanations of one number, those with fewest changes first."""
    agreeing = []
    for outcome in outcomes(problem, part, edition):
        for scale, slip in amount.slips():
            # A number without rounding agrees too, where floats differ in their last digits.
            half = max(amount.half, 1e-9 * amount.value) * scale
            if outcome.kind == amount.kind and abs(outcome.value - amount.value * scale) <= half:
                agreeing.append(replace(outcome, slip=slip))
    return sorted(agreeing, key=lambda way: len(way.changes))


@cache
def outcomes(problem: str, part: str, edition: Edition) -> list[Explanation]:
    """All numbers that can come out of a part, those with the fewest changes first."""
    if (problem, part) not in FIELDS:
        known = ", ".join(f"{name} ({letter})" for name, letter in FIELDS)
        raise ValueError(f"nothing is counted in {problem} ({part}); choose from {known}")
    numbers = []
    for size in ASKED_SIZES if (problem, part) == ("transformer_accounting", "d") else ("xl",):
        base = asked(problem, part, edition, size)
        of_size = "" if size == "xl" else f", GPT-2 {size}"
        results: dict[tuple[Switch, ...], dict[str, Quantity]] = {}
        for flipped in _combinations(switches(problem, part, base)):
            assumed = replace(base, **{switch.field: switch.value for switch in flipped})
            results[flipped] = answers(problem, part, assumed)
            # A switch that makes no difference to the others does not explain a number.
            fewer = [results[flipped[:i] + flipped[i + 1 :]] for i in range(len(flipped))]
            for name, number in results[flipped].items():
                if number.value > 0 and all(number != less.get(name) for less in fewer):
                    numbers.append(Explanation(name + of_size, number.value, number.kind, flipped))
    return sorted(numbers, key=lambda outcome: len(outcome.flipped))


def _combinations(options: list[Switch]) -> list[tuple[Switch, ...]]:
    """Switches to flip together, fewest first: none, each alone, and the subsets of `COMBINED`."""
    together: list[tuple[Switch, ...]] = [(), *((switch,) for switch in options)]
    for count in range(2, MOST_CHANGES + 1):
        for group in COMBINED:
            usual = [switch for switch in options if (switch.field, switch.value) in group.items()]
            together += combinations(usual, count)
    return list(dict.fromkeys(together))  # groups overlap


def joined(clauses: tuple[str, ...]) -> str:
    """Clauses joined into a list: "A, B and C"."""
    return " and ".join(filter(None, (", ".join(clauses[:-1]), clauses[-1])))
