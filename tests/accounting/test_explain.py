"""Someone's number is reproduced by the assumptions that yield it, and no others are blamed.

What is said of single numbers is in `test_published` and, of those that are handed in, in
`attempts.accounting`.
"""

import random
from dataclasses import replace
from functools import partial

import pytest
from work import calls

from workbook import config
from workbook.accounting.answers import answers
from workbook.accounting.assumptions import FIELDS, SWITCHES, Assumptions, asked, switches
from workbook.accounting.explain import Amount, explain, ways

MODEL, ADAMW = "transformer_accounting", "adamwAccounting"


def test_accidents_are_rare():
    """Of numbers drawn at random, few are explained, and hardly any by more than two changes."""
    draw = random.Random(0)
    many = explained = 0
    for _ in range(500):
        power = 3 ** draw.uniform(-1, 1)
        for problem, part, right, unit in (
            (MODEL, "a", 2_127_057_600, "parameters"),
            (MODEL, "a", 8.508, "GB"),
            (MODEL, "b", 4.513e12, "FLOPs"),
            (ADAMW, "b", 20, "GB"),
            (ADAMW, "d", 5_115, "days"),
        ):
            explanations = ways(problem, Amount.of(f"{right * power:.2e}", unit), part)
            explained += bool(explanations)
            many += bool(explanations) and len(explanations[0].changes) > 2
    assert explained < 0.2 * 2_500 and many < 0.02 * 2_500


def test_an_explanation_comes_while_you_wait():
    for problem, part, unit in ((MODEL, "d", "FLOPs"), (ADAMW, "b", "GB")):
        assert calls(partial(explain, problem, 3.21, unit, part)) < 200_000


def test_every_switch_changes_some_answer():
    used = set()
    for problem, part in FIELDS:
        for edition in config.EDITIONS:
            for size in ("small", "xl") if part == "d" and problem == MODEL else ("xl",):
                base = asked(problem, part, edition, size)
                for switch in switches(problem, part, base):
                    flipped = replace(base, **{switch.field: switch.value})
                    if answers(problem, part, flipped) != answers(problem, part, base):
                        used.add(switch)
    assert used == {switch for switch in SWITCHES if switch.value != "xl"}
    assert all(hasattr(Assumptions(), switch.field) for switch in SWITCHES)


def test_what_cannot_be_explained_is_a_clear_error():
    for arguments, message in [
        (("linear", 3, "GB", "a"), r"nothing is counted in linear \(a\); choose from transformer"),
        ((MODEL, float("nan"), "GB", "a"), "expected a positive, finite number, got nan"),
        ((MODEL, "three", "GB", "a"), "expected a number such as 1.56e9, got 'three'"),
        (
            (MODEL, 3, "gigs", "a"),
            "no unit is called 'gigs'; the units are parameters, million parameters",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            explain(*arguments)
