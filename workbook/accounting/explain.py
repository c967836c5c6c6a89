"""All numbers that can come out of a part of a problem, and which switches have to be flipped.

Every switch alone and with one other, and those that many people flip also by threes and fours.

Which assumptions give someone's number: a search, fewest changes first.

Every switch may be flipped, alone or with one other; switches that many people flip also by threes
and fours. What comes out is compared with the digits that were quoted: in the unit that was quoted,
in the one that may have been meant, and with a factor of 1,000 lost or gained. The more changes,
the more numbers are reached by accident: so what is rare comes in pairs at the most.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product
from typing import Any

from workbook.accounting.answers import answers
from workbook.accounting.assumptions import FIELDS, Assumptions, Switch, asked, switches
from workbook.accounting.quoted import Quoted, number, numbers
from workbook.accounting.training import GB, GiB
from workbook.config import EDITIONS, Edition

MOST_CHANGES = 4


@dataclass(frozen=True)
class Outcome:
    """What comes out after some switches were flipped."""

    value: float
    quantity: str
    unit: str
    flipped: tuple[Switch, ...]


@cache
def outcomes(problem: str, part: str, edition: Edition, size: str) -> dict[str, list[Outcome]]:
    """All that can come out, by unit, in the order of the values."""
    base = asked(problem, part, edition, size)
    reached: dict[frozenset[Switch], dict] = {frozenset(): answers(problem, part, base)}
    found = [Outcome(a.value, _name(n, size), a.unit, ()) for n, a in reached[frozenset()].items()]
    for flipped in _combinations(problem, part, base):
        given = replace(base, **{switch.field: switch.value for switch in flipped})
        result = reached[frozenset(flipped)] = answers(problem, part, given)
        fewer = [reached[frozenset(flipped) - {switch}] for switch in flipped]
        for name, answer in result.items():
            if answer.value > 0 and all(answer != less.get(name) for less in fewer):
                found.append(Outcome(answer.value, _name(name, size), answer.unit, flipped))
    by_unit: dict[str, list[Outcome]] = {}
    for outcome in sorted(found, key=lambda outcome: outcome.value):
        by_unit.setdefault(outcome.unit, []).append(outcome)
    return by_unit


def _name(name: str, size: str) -> str:
    return name if size == "xl" else f"{name}, GPT-2 {size}"


def _combinations(problem: str, part: str, base: Assumptions) -> Iterator[tuple[Switch, ...]]:
    """Switches to flip together, fewest first; by threes and fours only those of many people."""
    options = switches(problem, part, base)
    usual = {field: tuple(s for s in some if s.often) for field, some in options.items()}
    for count in range(1, MOST_CHANGES + 1):
        pool = options if count <= 2 else {field: some for field, some in usual.items() if some}
        for fields in combinations(pool, count):
            yield from product(*(pool[field] for field in fields))


SHOWN = 3  # explanations of each number
LOST = "a factor of 1,000 is lost"
GAINED = "a factor of 1,000 is too many"
IDS = {"adamw_accounting": "adamwAccounting"}  # of edition 2026
SIZES = ("small", "medium", "large")
# Numbers that the problems state: nobody has to explain them.
GIVEN = {2, 4, 16, 25, 32, 48, 80, 0.5, 50, 1_024, 1_600, 4_288, 6_400, 16_384, 50_257}
GIVEN |= {400_000, 80e9}


@dataclass(frozen=True)
class Explanation:
    """A number that agrees with the quoted one, and what has to be changed to get it."""

    quantity: str  # such as "parameters", "largest batch"
    value: float  # in bytes, FLOPs, seconds, or as it is
    unit: str
    changes: tuple[str, ...]  # in words; none: it is what the problem asks for
    flipped: tuple[Switch, ...] = ()  # those of them that are assumptions

    def __str__(self) -> str:
        if not self.changes:
            return f"{self.quantity}, as the problem states it"
        return f"{self.quantity}, when {listed(self.changes)}"


@dataclass(frozen=True)
class Found:
    """A quoted number with its explanations, best first; there may be none."""

    quoted: Quoted
    explanations: tuple[Explanation, ...]

    def __str__(self) -> str:
        if not self.explanations:
            return f"{self.quoted.text}: no stated assumption gives this"
        fewest = len(self.explanations[0].changes)
        ties = [each for each in self.explanations if len(each.changes) == fewest]
        words = "; or ".join(map(str, ties[:SHOWN]))
        more = len(ties) - SHOWN
        return f"{self.quoted.text}: {words}" + (f"; and {more} more ways" if more > 0 else "")


@dataclass(frozen=True)
class Explained:
    """What `explain` found, number by number."""

    numbers: tuple[Found, ...]

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """All that were found, for all the numbers."""
        return tuple(each for found in self.numbers for each in found.explanations)

    def __bool__(self) -> bool:
        return bool(self.explanations)

    def __str__(self) -> str:
        return "\n".join(map(str, self.numbers)) or "no number to explain"

    __repr__ = __str__


def explain(
    problem: str, value: Any, part: str | None = None, edition: Edition = "2025"
) -> Explained:
    """The assumptions, units or omissions that give someone's number, fewest changes first.

    `value` is a number, several, or a text as it was written. Where several numbers have one cause
    in common, it comes first. Without `part` all parts of the problem are tried.

    >>> explain("transformer_accounting", 2_127_056_000)
    2127056000: parameters, when the final norm is left out
    >>> explain("transformer_accounting", "3.21e12", part="b")
    3.21e12: no stated assumption gives this
    """
    every = [(each, ways(problem, each, part, edition)) for each in quoted_in(value)]
    every = [(each, found) for each, found in every if found or each.value not in GIVEN]
    shared = shared_cause([found for _, found in every])
    return Explained(tuple(Found(each, _told(found, shared)) for each, found in every))


def shared_cause(every: list[tuple[Explanation, ...]]) -> tuple[Switch, ...]:
    """The switches that explain most of several numbers at once, two at least; the fewest such."""
    counts: dict[tuple[Switch, ...], int] = {}
    for found in every:
        if found and found[0].changes:
            for flipped in dict.fromkeys(each.flipped for each in found if each.flipped):
                counts[flipped] = counts.get(flipped, 0) + 1
    most = max(counts.values(), default=0)
    return min((f for f, count in counts.items() if count == most > 1), key=len, default=())


def _told(found: tuple[Explanation, ...], shared: tuple[Switch, ...]) -> tuple[Explanation, ...]:
    """The explanations worth telling: the shared one, then those of hardly more than the fewest."""
    if not found or not found[0].changes:
        return found[:1]
    first = tuple(each for each in found if shared and each.flipped == shared)
    fewest = len(found[0].changes)
    rest = (each for each in found if len(each.changes) <= fewest + 1 and each not in first)
    return (*first, *rest)


def quoted_in(value: Any) -> list[Quoted]:
    """The numbers of an attempt: a number, a text, or several of them in a tuple, list or dict."""
    if isinstance(value, str):
        return numbers(value)
    if isinstance(value, dict):
        return numbers(", ".join(f"{key}: {each}" for key, each in value.items()))
    if isinstance(value, tuple | list):
        return [each for item in value for each in quoted_in(item)]
    if isinstance(value, int | float):
        return [number(value)]
    raise TypeError(f"expected a number or a text, got a {type(value).__name__}")


def ways(
    problem: str, quoted: Quoted, part: str | None = None, edition: Edition = "2025"
) -> tuple[Explanation, ...]:
    """The explanations of one number, those with fewest changes first."""
    problem = IDS.get(problem, problem)
    parts = sorted({p for name, p in FIELDS if name == problem})
    if not parts:
        raise ValueError(
            f"nothing is counted in {problem!r}; there are transformer_accounting, adamwAccounting"
        )
    if part is not None and part not in parts:
        raise ValueError(f"{problem} has the parts {', '.join(parts)}; there is no part {part!r}")
    if edition not in EDITIONS:
        raise ValueError(f"edition {edition!r} is none of {', '.join(EDITIONS)}")
    best: dict[tuple, tuple[tuple, Explanation]] = {}
    for each in [part] if part else parts:
        for size in SIZES if (problem, each) == ("transformer_accounting", "d") else ("xl",):
            for rank, way in _matches(quoted, outcomes(problem, each, edition, size)):
                known = way.quantity, way.changes
                if known not in best or rank < best[known][0]:
                    best[known] = rank, way
    return tuple(way for _, way in sorted(best.values(), key=lambda pair: pair[0]))


# By what a plain number may have to be multiplied to be in the unit that answers are in.
_PLAIN = {
    "count": (1, 1e6, 1e9),
    "bytes": (1, GB, GiB),
    "bytes a sequence": (1, GB, GiB),
    "flops": (1, 1e9, 1e12, 1e15),
    "share": (1, 0.01),
    "seconds": (1, 3_600, 86_400, 365 * 86_400),
    "factor": (1,),
    "batch": (1,),
    "per parameter": (1,),
}
_UNITS_OF = {  # of answers, by the kind of a quoted number
    "count": ("count", "flops"),
    "flops": ("flops", "per parameter"),
    "bytes": ("bytes", "bytes a sequence"),
}


_HOURS_AND_DAYS = {"day": (1 / 24, "hours are called days"), "hour": (24, "days are called hours")}
ALONE = {words for _, words in _HOURS_AND_DAYS.values()}  # slips that are tried with nothing else


def readings(quoted: Quoted) -> Iterator[tuple[str, float, str]]:
    """The units that a number may be in, each with a factor and with a slip in words, or none."""
    if not quoted.kind:
        for unit, scales in _PLAIN.items():
            coarse = quoted.digits < 2 and unit not in ("batch", "per parameter")
            for scale in () if coarse else scales:
                yield unit, scale, ""
        if quoted.digits > 1:
            for scale in _PLAIN["seconds"][1:]:
                yield "seconds", scale * 1_000, LOST
        if quoted.digits > 1 and quoted.value >= 1e6:
            for unit in ("count", "bytes", "flops"):
                yield unit, 1_000, LOST
                yield unit, 1 / 1_000, GAINED
        return
    units = _UNITS_OF.get(quoted.kind, (quoted.kind,))
    for unit in units:
        yield unit, 1, ""
    if quoted.kind == "bytes" and quoted.unit[:1].lower() in "kmgt" and quoted.digits > 1:
        ratio = (1024 / 1000) ** (" kmgt".index(quoted.unit[:1].lower()))
        name = quoted.unit.replace("i", "").replace("bytes", "B")
        slip = (1 / ratio, f"{name} are called {quoted.unit}")
        if not quoted.binary:
            slip = (ratio, f"{name[0]}iB are called {quoted.unit}")
        for unit in units:
            yield unit, *slip
    if quoted.kind == "seconds" and (name := quoted.unit.rstrip("s").lower()) in ("hour", "day"):
        yield "seconds", *_HOURS_AND_DAYS[name]
    if quoted.kind in ("bytes", "flops", "seconds", "count") and quoted.digits > 1:
        for unit in units:
            yield unit, 1_000, LOST
            yield unit, 1 / 1_000, GAINED


def _matches(
    quoted: Quoted, reached: dict[str, list[Outcome]]
) -> Iterator[tuple[tuple, Explanation]]:
    """Every outcome that agrees with a number, with its rank: the lower, the better."""
    for unit, scale, slip in readings(quoted):
        some = reached.get(unit, ())
        value = quoted.value * scale
        if not value:
            continue
        half = max(quoted.half * scale, 1e-9 * value)
        if unit in ("batch", "per parameter"):
            half = 0.0 if float(quoted.value).is_integer() else 1e-9
        low = bisect_left(some, value - half, key=lambda outcome: outcome.value)
        high = bisect_right(some, value + half, key=lambda outcome: outcome.value)
        for outcome in some[low:high]:
            words = tuple(switch.words for switch in outcome.flipped) + (slip,) * bool(slip)
            rare = sum(not switch.often for switch in outcome.flipped)
            if rare and (len(words) > 2 or slip in (LOST, GAINED)):
                continue
            if slip in ALONE and outcome.flipped:
                continue
            rank = len(words), rare, abs(outcome.value - value) / value
            yield rank, Explanation(outcome.quantity, outcome.value, unit, words, outcome.flipped)


def listed(words: tuple[str, ...]) -> str:
    """Clauses joined to a sentence: "A, B and C"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
