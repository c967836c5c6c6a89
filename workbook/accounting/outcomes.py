"""All numbers that can come out of a part of a problem, and which switches have to be flipped.

Every switch alone and with one other, and those that many people flip also by threes and fours.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product

from workbook.accounting.answers import answers
from workbook.accounting.assumptions import Assumptions, Switch, asked, switches
from workbook.config import Edition

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
