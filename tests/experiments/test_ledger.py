"""Verdicts on published claims are computed, and agree with those that were recorded by hand."""

import doctest

import pytest

from workbook.experiments import published
from workbook.experiments.published import OTHERWISE, RIGHT, SLIP, UNEXPLAINED

PROBLEMS = ("transformer_accounting", "adamwAccounting")
LEDGERS = {problem: published.judge_accounting(problem) for problem in PROBLEMS}


def test_the_examples_hold():
    assert doctest.testmod(published).failed == 0


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_computed_verdict_agrees_with_the_recorded_one(problem):
    agree = {"right": {RIGHT}, "wrong": {OTHERWISE, SLIP, "wrong"}, "assumption": {OTHERWISE}}
    for place, row in LEDGERS[problem].iterrows():
        if row["claimed"] == "5116 days":  # 5,115.2, rounded up: recorded as right
            assert row["computed"] == SLIP and "0.016 % too much" in row["cause"]
            continue
        assert row["computed"] in agree[row["recorded"]], (place, row["claimed"])


@pytest.mark.parametrize(
    ("problem", "claimed", "words"),
    [
        ("transformer_accounting", "2127056000", "final norm"),
        ("transformer_accounting", "5.80 GB", "GiB"),
        ("transformer_accounting", "3.02e12", "head"),
        ("transformer_accounting", "133.42e12", "two matrices"),
        ("transformer_accounting", "attention share 19.35, 24.24, 28.57 %", "6,400"),
        ("adamwAccounting", "10.49 B + 26.17 GB, batch 5", "one map"),
        ("adamwAccounting", "16.15 B + 26.17 GB, batch 3", "residual"),
        ("adamwAccounting", "4.6 days", "1,000"),
    ],
)
def test_the_cause_of_a_wrong_number_is_named(problem, claimed, words):
    rows = LEDGERS[problem]
    (cause,) = rows.loc[rows["claimed"] == claimed, "cause"]
    assert words in cause


def test_the_other_edition_has_other_verdicts():
    assert published.judge_claim("transformer_accounting", "a", "1.6405e9", "2026") == (RIGHT, "")
    assert (
        published.judge_claim("transformer_accounting", "a", "2127057600", "2026")[0] == OTHERWISE
    )


def test_a_number_from_nowhere_is_not_explained():
    verdict, cause = published.judge_claim("transformer_accounting", "a", "9.123456e9")
    assert verdict == UNEXPLAINED and cause == "no stated assumption gives this"


@pytest.mark.parametrize(
    ("claimed", "verdict"),
    [("the MLP", RIGHT), ("the attention scores", "wrong"), ("the layers", "wrong")],
)
def test_a_part_in_words_is_judged(claimed, verdict):
    assert published.judge_claim("transformer_accounting", "c", claimed)[0] == verdict
