"""Which assumptions give someone's number: a search, fewest changes first.

Every switch may be flipped, alone or with one other; those that many people flip also in threes and
fours. The result is compared with the digits that were written: in the unit that was written, in
the one that may have been meant, and with a factor of 1,000 lost or gained. The more changes, the
more numbers are reached by accident: so rare switches come at most in pairs.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cache
from itertools import combinations, product

from workbook.accounting.answers import answers
from workbook.accounting.assumptions import FIELDS, Assumptions, Switch, asked, switches
from workbook.accounting.training import DAY, GB, HOUR, GiB
from workbook.config import EDITIONS, Edition

SHOWN = 3  # explanations of each number
MOST_CHANGES = 4
SIZES = ("small", "medium", "large")  # that (d) of transformer_accounting asks about
LOST, GAINED = "a factor of 1,000 is lost", "a factor of 1,000 is too many"
# Hours for days and days for hours: tried with nothing else, since times agree by accident.
TIMES = {"day": (1 / 24, "hours are called days"), "hour": (24, "days are called hours")}
UNITS = {  # as written: what is measured, and how many of its unit
    "parameters": ("count", 1),
    "FLOPs": ("flops", 1),
    "GFLOPs": ("flops", 1e9),
    "TFLOPs": ("flops", 1e12),
    "FLOPs per parameter": ("per parameter", 1),
    "bytes": ("bytes", 1),
    "MB": ("bytes", 1_000**2),
    "MiB": ("bytes", 1_024**2),
    "GB": ("bytes", GB),
    "GiB": ("bytes", GiB),
    "%": ("share", 0.01),
    "times": ("factor", 1),
    "sequences": ("batch", 1),
    "seconds": ("seconds", 1),
    "hours": ("seconds", HOUR),
    "days": ("seconds", DAY),
}
# The units of figures that a kind of number may be meant in, if not only its own.
_MEANT = {
    "count": ("count", "flops"),
    "flops": ("flops", "per parameter"),
    "bytes": ("bytes", "bytes per sequence"),
}


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
        _, digits, exponent = number.as_tuple()
        half = 0.5 * 10.0**exponent * scale
        text = text or f"{value} {unit}"
        return cls(float(number) * scale, half, kind, unit, len(digits), text)

    def readings(self) -> Iterator[tuple[str, float, str]]:
        """The units of figures that it may be in, with a factor and a slip in words, or ""."""
        slips = [(1.0, "")]
        letter = self.unit[:1].upper()
        if self.kind == "bytes" and letter and letter in "KMGT" and self.digits > 1:
            ratio = 1.024 ** (1 + "KMGT".index(letter))
            if "ib" in self.unit.lower():
                slips.append((1 / ratio, f"{letter}B are called {self.unit}"))
            else:
                slips.append((ratio, f"{letter}iB are called {self.unit}"))
        if self.kind == "seconds" and (name := self.unit.rstrip("s").lower()) in TIMES:
            slips.append(TIMES[name])
        if self.kind in ("bytes", "flops", "seconds", "count") and self.digits > 1:
            slips += [(1_000.0, LOST), (1 / 1_000, GAINED)]
        for scale, slip in slips:
            for unit in _MEANT.get(self.kind, (self.kind,)):
                yield unit, scale, slip


@dataclass(frozen=True)
class Explanation:
    """A number that comes out after some switches were flipped, and a slip in writing it down."""

    quantity: str  # such as "parameters", "largest batch"
    value: float  # in bytes, FLOPs, seconds, or as it is
    unit: str  # as in `Figure`
    flipped: tuple[Switch, ...] = ()
    slip: str = ""

    @property
    def changes(self) -> tuple[str, ...]:
        """Everything that has to be changed, in words; none: it is what the problem asks for."""
        return tuple(switch.words for switch in self.flipped) + (self.slip,) * bool(self.slip)

    def __str__(self) -> str:
        if not self.changes:
            return f"{self.quantity}, as the problem states it"
        return f"{self.quantity}, when {listed(self.changes)}"


@dataclass(frozen=True)
class Found:
    """An amount with its explanations, best first; there may be none."""

    amount: Amount
    explanations: tuple[Explanation, ...]

    def __repr__(self) -> str:
        if not self.explanations:
            return f"{self.amount.text}: no stated assumption gives this"
        fewest = len(self.explanations[0].changes)
        ties = [each for each in self.explanations if len(each.changes) == fewest]
        more = f"; and {len(ties) - SHOWN} more ways" if len(ties) > SHOWN else ""
        return f"{self.amount.text}: {'; or '.join(map(str, ties[:SHOWN]))}{more}"


def explain(
    problem: str,
    value: str | float,
    unit: str,
    part: str | None = None,
    edition: Edition = "2025",
) -> Found:
    """The assumptions, units or omissions that give someone's number, fewest changes first.

    `unit` is one of `UNITS`. Without `part` all parts of the problem are tried.

    >>> explain("transformer_accounting", 2_127_056_000, "parameters")
    2127056000 parameters: parameters, when the final norm is left out
    >>> explain("transformer_accounting", "3.21e12", "FLOPs", part="b")
    3.21e12 FLOPs: no stated assumption gives this
    """
    amount = Amount.of(value, unit)
    return Found(amount, ways(problem, amount, part, edition))


def ways(
    problem: str, amount: Amount, part: str | None = None, edition: Edition = "2025"
) -> tuple[Explanation, ...]:
    """All explanations of one number, those with fewest changes first."""
    if problem == "adamw_accounting":  # its id in edition 2026
        problem = "adamwAccounting"
    parts = sorted({p for name, p in FIELDS if name == problem})
    if not parts:
        known = ", ".join(dict.fromkeys(name for name, _ in FIELDS))
        raise ValueError(f"nothing is counted in {problem!r}; choose from {known}")
    if part is not None and part not in parts:
        raise ValueError(f"{problem} has the parts {', '.join(parts)}; there is no part {part!r}")
    if edition not in EDITIONS:
        raise ValueError(f"edition {edition!r} is not one of {', '.join(EDITIONS)}")
    best: dict[tuple, tuple[tuple, Explanation]] = {}
    for each in [part] if part else parts:
        for size in SIZES if (problem, each) == ("transformer_accounting", "d") else ("xl",):
            for rank, way in _matches(amount, outcomes(problem, each, edition, size)):
                known = way.quantity, way.changes
                if known not in best or rank < best[known][0]:
                    best[known] = rank, way
    return tuple(way for _, way in sorted(best.values(), key=lambda pair: pair[0]))


@cache
def outcomes(problem: str, part: str, edition: Edition, size: str) -> dict[str, list[Explanation]]:
    """All numbers that can come out of a part, by unit, in the order of their values."""
    base = asked(problem, part, edition, size)
    which = "" if size == "xl" else f", GPT-2 {size}"
    reached: dict[frozenset[Switch], dict] = {}
    found = []
    for flipped in _combinations(problem, part, base):
        given = replace(base, **{switch.field: switch.value for switch in flipped})
        result = reached[frozenset(flipped)] = answers(problem, part, given)
        # A switch that makes no difference to the others does not explain a number.
        fewer = [reached[frozenset(flipped) - {switch}] for switch in flipped]
        for name, figure in result.items():
            if figure.value > 0 and all(figure != less.get(name) for less in fewer):
                found.append(Explanation(name + which, figure.value, figure.unit, flipped))
    by_unit: dict[str, list[Explanation]] = {}
    for outcome in sorted(found, key=lambda outcome: outcome.value):
        by_unit.setdefault(outcome.unit, []).append(outcome)
    return by_unit


def _combinations(problem: str, part: str, base: Assumptions) -> Iterator[tuple[Switch, ...]]:
    """Switches to flip together, fewest first; in threes and fours only those of many people."""
    options = switches(problem, part, base)
    usual = {field: tuple(s for s in some if s.often) for field, some in options.items()}
    for count in range(MOST_CHANGES + 1):
        pool = options if count <= 2 else {field: some for field, some in usual.items() if some}
        for fields in combinations(pool, count):
            yield from product(*(pool[field] for field in fields))


def _matches(
    amount: Amount, reached: dict[str, list[Explanation]]
) -> Iterator[tuple[tuple, Explanation]]:
    """Every outcome that agrees with a number, with its rank: the lower, the better."""
    for unit, scale, slip in amount.readings():
        some = reached.get(unit, ())
        value = amount.value * scale
        if not value:
            continue
        half = max(amount.half * scale, 1e-9 * value)
        if unit in ("batch", "per parameter"):  # whole numbers, which are never rounded
            half = 0.0 if float(amount.value).is_integer() else 1e-9
        low = bisect_left(some, value - half, key=lambda outcome: outcome.value)
        high = bisect_right(some, value + half, key=lambda outcome: outcome.value)
        for outcome in some[low:high]:
            way = replace(outcome, slip=slip)
            rare = sum(not switch.often for switch in way.flipped)
            if rare and (len(way.changes) > 2 or slip in (LOST, GAINED)):
                continue
            if way.flipped and any(slip == words for _, words in TIMES.values()):
                continue
            yield (len(way.changes), rare, abs(way.value - value) / value), way


def listed(words: tuple[str, ...]) -> str:
    """Clauses joined into a list: "A, B and C"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
