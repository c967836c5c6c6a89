"""The checks of chapter 7: no honest table of runs is refused, and what cannot be is named."""

import math

import pytest
from attempts.pairs import EXPERIMENTS
from attempts.runs import (
    BATCH,
    BOARD,
    LOG,
    LR,
    NAN,
    NOPE,
    NORMS,
    POST,
    RIGHT,
    ROW,
    SILU,
    SWEEP,
    WEB,
    WRONG,
    recorded,
)

from workbook.experiments import results
from workbook.experiments.studies import STUDIES
from workbook.study.problems import PROBLEMS
from workbook.study.verbs import check

OF_RUNS = [problem for problem in PROBLEMS.values() if problem.check == "runs"]
HIGH = SWEEP | {3e-2: 4.9, 1e-1: 5.5}
FIGURES = ("steps", "batch_size", "context_length", "tokens", "perplexity", "bits_per_byte", "lr")
ODD = [len, object(), [object()], {object(): object()}, b"1.4", {1, 2}, [[1], [2, 3]], 10**400, -1,
       (NAN, NAN), [dict.fromkeys(FIGURES, 0) | {"loss": "x"}] * 3,
       [dict.fromkeys(FIGURES, math.inf) | {"loss": -1.4}] * 3]  # fmt: skip
PARTS = [(problem.id, part) for problem in OF_RUNS for part in problem.parts or (None,)]


@pytest.mark.parametrize(("profile", "edition"), [("laptop", "2025"), ("full", "2026")])
def test_no_honest_table_is_refused(profile, edition, monkeypatch):
    monkeypatch.setenv("WORKBOOK_PROFILE", profile)
    monkeypatch.setenv("WORKBOOK_EDITION", edition)
    assert set(RIGHT) == set(PARTS) == set(EXPERIMENTS)
    for (problem, part), attempts in RIGHT.items():
        for attempt in attempts:
            report = check(problem, attempt, part)
            assert report.status == "correct", (attempt, report)
    for (problem, part), (right, wrong) in EXPERIMENTS.items():
        assert check(problem, right, part).status == "correct", problem
        assert check(problem, wrong, part).status == "wrong", problem


@pytest.mark.parametrize(("place", "attempts"), WRONG.items())
def test_what_no_run_can_be_is_named(place, attempts):
    problem, part = place
    for attempt, words in attempts:
        report = check(problem, attempt, part)
        assert report.status == "wrong" and words in report.message, (attempt, report)


@pytest.mark.parametrize(
    ("problem", "part", "study"),
    [(LR, "a", "learning_rate"), (LR, "b", "learning_rate"), (BATCH, None, "batch_size"),
     (NORMS, None, "layer_norm"), (POST, None, "pre_norm"), (NOPE, None, "no_position"),
     (SILU, None, "swiglu"), (WEB, None, "main_experiment"), (BOARD, None, "leaderboard"),
     *[(LOG, None, study) for study in STUDIES]],
)  # fmt: skip
def test_the_records_of_the_workbook_and_their_tables_are_right(problem, part, study):
    runs = recorded(study)
    for attempt in (runs, [*runs.values()], results.table(runs)):
        report = check(problem, attempt, part)
        assert report.status == "correct", report
    (first, *_) = runs.values()
    for log in (first, first.log):
        assert check(LOG, log).status == "correct"


def test_all_that_is_wrong_is_told_at_once():
    report = check(LR, {1e-4: 1.9, 1e-3: 0.1, 3e-3: 0.05}, "a")
    assert "lower than any model" in report.claim and len(report.also) == 1


def test_what_the_handout_asks_is_asked_of_tinystories_alone(monkeypatch):
    assert "on TinyStories 1.45 is asked" in check(LR, 2.3, "a").message
    monkeypatch.setenv("WORKBOOK_PROFILE", "full")
    assert "2.3 is not low enough" in check(LR, 2.3, "a").message
    assert "1.41 is low enough: 1.45 is asked" in check(LR, SWEEP, "a").message
    assert "low enough for a CPU" in check(LR, 1.9, "a").message


@pytest.mark.parametrize(
    ("problem", "part", "attempt", "words"),
    [
        (LR, "b", HIGH, "10 times below"),  # a loss that stays high counts where no run diverged
        (LR, "b", HIGH | {3e-1: NAN}, "10 times below"),
        (LR, "b", SWEEP | {1e-1: NAN}, "Bisect further"),
        (LR, "b", SWEEP | {2e-2: NAN}, "below one that diverges.\n"),
        (POST, None, {"pre": 1.41, "post": 1.42}, "+0.01 nats per token with one run of each kind"),
        (POST, None, {"pre": [1.41, 1.45], "post": [1.42, 1.46]}, "token, which may be luck"),
        (POST, None, {"pre": [1.41, 1.42, 1.43, 1.40], "post": [1.5, 1.51, 1.52, 1.53]},
         "+0.1 nats per token, which luck rarely explains (p = 0.029)"),
        (LOG, None, [ROW, ROW], "Did everything work?"),
        (LOG, None, [ROW, ROW | {"loss": math.inf}], "none of which contradicts itself.\n"),
    ],
)  # fmt: skip
def test_praise_says_what_the_runs_show(problem, part, attempt, words):
    report = check(problem, attempt, part)
    assert report.status == "correct" and words in report.message + "\n"


def test_a_width_of_another_model_is_asked_about():
    assert check(SILU, 3_072).status == "not attempted"


def test_the_leaderboard_has_the_time_of_the_edition_and_a_loss_to_beat(monkeypatch):
    assert "60 of 90 minutes" in check(BOARD, (3.3, 60)).message
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    monkeypatch.setenv("WORKBOOK_PROFILE", "full")
    assert "the 45 that edition 2026 allows" in check(BOARD, (3.3, 91)).message
    assert "less than 5 is asked for" in check(BOARD, (5.0, 40)).message
    assert "Before version 26.0.3" in check(BOARD, (3.3, 60)).message
    assert "is the split clean" in check(BOARD, 2.5).message


@pytest.mark.parametrize(("problem", "part"), PARTS)
def test_a_stub_is_no_attempt_no_object_breaks_a_check_and_no_text_is_judged(problem, part):
    for nothing in (None, "", " ", {}, [], (), {1e-3: ..., 1e-2: ...}, {"pre": ..., "post": ...}):
        assert check(problem, nothing, part).status == "not attempted", nothing
    for odd in ODD:
        report = check(problem, odd, part)
        assert report.status in ("wrong", "not attempted"), odd
        assert "could not be examined" not in report.message, odd
    for text in ("The best loss is 0.02.", "Post-norm is significantly better.", "1e-3 " * 3_000):
        report = check(problem, text, part)
        assert report.status == "read" and 2 <= len(report.facts) <= 4


def test_who_has_nothing_yet_is_told_what_to_hand_in():
    for problem in PROBLEMS.values():
        if problem.kind == "written":
            assert set(problem.takes) == set(problem.parts or [""]), problem.id
        for part, words in problem.takes.items():
            assert check(problem.id, ..., part).message == (
                f"Nothing to check yet. Hand in {words}. Then run this cell again."
            )
