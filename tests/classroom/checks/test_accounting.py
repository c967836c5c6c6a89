"""Costs: what each edition asks, and an open choice; more in `test_written`."""

import numpy as np
import pytest
from attempts.accounting import ADAMW, MODEL, OF_THE_OTHER, RIGHT_2026

from workbook.classroom.study.verbs import check


@pytest.mark.parametrize(("place", "attempts"), RIGHT_2026.items())
def test_right_answers_of_2026_pass_in_its_edition(place, attempts, monkeypatch, judged_here):
    problem, part = place
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    for attempt in attempts:
        report = check(problem, attempt, part)
        assert report.status == "correct", (attempt, report)


def test_the_other_editions_value_is_recognised_as_such(monkeypatch, judged_here):
    report = check(MODEL, 1640452800, "a")
    assert report.status == "correct"
    assert "right in edition 2026" in report.claim and "WORKBOOK_EDITION=2026" in report.claim
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    assert "right in edition 2025" in check(MODEL, "4.5133e12", "b").claim


@pytest.mark.parametrize(("place", "attempts"), OF_THE_OTHER.items())
def test_once_one_number_is_the_other_editions_all_are_judged_by_it(place, attempts, judged_here):
    problem, part = place
    for attempt in attempts:
        report = check(problem, attempt, part)
        assert report.status == "correct" and "right in edition 2026" in report.claim, report


def test_the_scores_under_the_name_of_attention_are_a_question(judged_here):
    report = check(MODEL, {"growth": 33.1, "attention": 55.2}, "e")
    assert report.status == "correct" and "are these the scores and weighted" in report.claim
    assert "the scores" not in check(MODEL, {"attention": 29.4}, "c").claim


def test_a_right_number_is_called_by_its_key_and_an_open_choice_is_named(judged_here):
    assert "three matrices (SwiGLU). Say so" in check(ADAMW, "34 GB", "a").claim
    assert check(ADAMW, {"gradients_gb": 6.54}, "a").claim == "6.54 GB (`gradients_gb`): right."


INCOMPLETE = [
    (ADAMW, "d", 5000, "two significant digits"),
    (ADAMW, "b", {"a": 15.5}, "right. Still missing: b, batch."),
    (MODEL, "d", {"small": {}}, "Still missing: small, medium, large."),
    (MODEL, "d", {"small": {"flops": 3.5e11}, "large": {...}}, "Still missing: medium, large."),
]


@pytest.mark.parametrize(("problem", "part", "attempt", "words"), INCOMPLETE)
def test_a_part_of_an_answer_is_told_what_is_missing(problem, part, attempt, words, judged_here):
    report = check(problem, attempt, part)
    assert report.heading.endswith("not judged") and words in report.claim, report


def test_a_number_may_be_numpys(judged_here):
    assert check(MODEL, np.int64(1640452800), "a").status == "correct"
    gradients = {"gradients_gb": np.float32(6.54)}
    assert check(ADAMW, gradients, "a").claim == "6.54 GB (`gradients_gb`): right."


def test_what_python_takes_for_a_number_is_not_always_one(judged_here):
    assert "True cannot be the `flops`" in check(MODEL, True, "b").claim
    assert "no number in a text is judged" in check(MODEL, "4,51 TFLOPs", "b").claim


def test_numbers_of_two_editions_are_no_answer_whichever_is_set(monkeypatch, judged_here):
    for edition in ("2025", "2026"):
        monkeypatch.setenv("WORKBOOK_EDITION", edition)
        report = check(MODEL, {"parameters": 2.127e9, "gb": 6.56}, "a")
        assert report.status == "wrong" and "two editions" in report.claim, report
