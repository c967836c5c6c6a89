"""Right costs pass in whatever form they come, wrong ones are told which assumption gives them."""

import csv

import numpy
import pytest
from attempts.accounting import ADAMW, MODEL, READ, RIGHT, RIGHT_2026, UNCLEAR, WRONG

from workbook import config
from workbook.study.verbs import check


@pytest.mark.parametrize(
    ("problem", "part", "attempt"), [*RIGHT, (MODEL, "a", numpy.int64(2127057600))]
)
def test_right_answers_of_2025_pass_in_many_forms(problem, part, attempt):
    report = check(problem, attempt, part)
    assert report.status == "correct", report


@pytest.mark.parametrize(("problem", "part", "attempt"), RIGHT_2026)
def test_right_answers_of_2026_pass_in_its_edition(problem, part, attempt, monkeypatch):
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    report = check(problem, attempt, part)
    assert report.status == "correct", report


@pytest.mark.parametrize(("problem", "part", "attempt", "words"), WRONG)
def test_wrong_answers_are_told_why(problem, part, attempt, words):
    report = check(problem, attempt, part)
    assert report.status == "wrong" and words in report.message, report


@pytest.mark.parametrize(("problem", "part", "attempt"), READ)
def test_a_sentence_is_read_and_facts_are_shown(problem, part, attempt):
    report = check(problem, attempt, part)
    assert report.status == "read" and report.facts, report


@pytest.mark.parametrize(("problem", "part", "attempt", "words"), UNCLEAR)
def test_neither_unit_nor_label_is_guessed(problem, part, attempt, words):
    report = check(problem, attempt, part)
    assert report.status == "not attempted" and words in report.message, report


def test_the_other_editions_value_is_recognised_as_such(monkeypatch):
    report = check(MODEL, 1640452800, "a")
    assert report.status == "correct"
    assert "right in edition 2026" in report.claim and "WORKBOOK_EDITION=2026" in report.claim
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    assert "right in edition 2025" in check(MODEL, "4.5133e12", "b").claim


def test_an_open_choice_is_named():
    assert "three matrices (SwiGLU). Say so" in check(ADAMW, "34 GB", "a").claim


def test_verdicts_on_published_claims_agree():
    path = config.repository() / "data" / "reported" / "claims.csv"
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["problem"] in (MODEL, ADAMW)]
    for row in rows:
        values, units = row["value"].split("; "), row["unit"].split("; ")
        numbers = [
            f"{v} {u}" if u != "largest part" else v for v, u in zip(values, units, strict=True)
        ]
        attempt = numbers[0] if len(numbers) == 1 else tuple(numbers)
        if row["part"] == "d" and units[0] == "%":
            attempt = {"attention": attempt}
        report = check(row["problem"], attempt, row["part"])
        fine = row["verdict"] in ("right", "assumption")
        assert report.status == ("correct" if fine else "wrong"), (row, report)


@pytest.mark.parametrize(("part", "attempt"), [("a", ""), ("b", None), ("e", ...), ("d", ())])
def test_nothing_to_judge_is_said_so(part, attempt):
    assert check(MODEL, attempt, part).status == "not attempted"


@pytest.mark.parametrize("attempt", [-3, float("nan"), 10**400, b"12", {1, 2}, "4 " * 11_000])
def test_what_is_no_number_is_refused_in_words(attempt):
    report = check(MODEL, attempt, "a")
    assert report.status == "wrong" and "raised" not in report.message, report


@pytest.mark.parametrize(
    ("attempt", "part"),
    [(2127057600, "a"), (2127056000, "a"), (4513336524800, "b"), (149522795724800, "e")],
)
def test_the_part_is_guessed_from_the_number(attempt, part):
    assert check(MODEL, attempt).part == part
