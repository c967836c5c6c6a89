"""The checks of chapter 7: no honest table of runs is refused, and what cannot be is named."""

import math

import pandas as pd
import pytest
from attempts import runs
from attempts.runs import LR, NAN, PRE, ROW, pair, sweep

from workbook.classroom import checks
from workbook.classroom.checks.by_problem import CHECKS
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study.verbs import check
from workbook.experiments import results
from workbook.experiments.studies import STUDIES

OF_RUNS = [p for p in PROBLEMS.values() if CHECKS[p.id] is getattr(checks.runs, p.id, None)]
HIGH = runs.LOSSES | {3e-2: 4.9, 1e-1: 5.5}
FIGURES = ("steps", "batch_size", "context_length", "tokens", "perplexity", "bits_per_byte")
KINDS = {"norm": "pre", "position": "rope", "ffn": "silu", "corpus": "owt", "learning_rate": 1}
ODD = [
    object(),
    [object()],
    {object(): object()},
    [[1], [2, 3]],
    10**400,
    -1,
    (NAN, NAN),
    [KINDS | dict.fromkeys(FIGURES, 0) | {"loss": "x"}] * 3,
    [KINDS | dict.fromkeys(FIGURES, 0) | {"loss": 0}] * 3,
    [KINDS | dict.fromkeys(FIGURES, math.inf) | {"loss": -1.4}] * 3,
]
PARTS = [(problem.id, part) for problem in OF_RUNS for part in problem.parts or (None,)]


def test_in_another_profile_too_only_impossible_tables_are_refused(monkeypatch, judged_here):
    monkeypatch.setenv("WORKBOOK_PROFILE", "full")
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    assert set(runs.RIGHT) == set(PARTS) == set(runs.WRONG)
    for (problem, part), attempts in runs.RIGHT.items():
        for attempt in attempts:
            report = check(problem, attempt, part)
            assert report.status == "possible", (attempt, report)
        assert check(problem, runs.WRONG[problem, part][0][0], part).status == "wrong", problem


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "part", "study"),
    [
        (LR, "a", "learning_rate"),
        (LR, "b", "learning_rate"),
        (runs.BATCH, None, "batch_size"),
        (runs.NORMS, None, "layer_norm"),
        (runs.POST, None, "pre_norm"),
        (runs.NOPE, None, "no_position"),
        (runs.SILU, None, "swiglu"),
        (runs.WEB, None, "main_experiment"),
        (runs.BOARD, None, "leaderboard"),
        *[(runs.LOG, None, study) for study in STUDIES],
    ],
)
def test_the_records_of_the_workbook_are_right(problem, part, study, judged_here):
    report = check(problem, results.runs_table(runs.recorded(study)), part)
    assert report.status == "possible", report


def test_what_the_handout_asks_is_asked_of_tinystories_alone(monkeypatch, judged_here):
    high = sweep({rate: loss + 0.9 for rate, loss in runs.LOSSES.items()})
    low = sweep({rate: loss + 0.4 for rate, loss in runs.LOSSES.items()})
    assert "On TinyStories 1.45 is asked" in check(LR, high, "a").message
    monkeypatch.setenv("WORKBOOK_PROFILE", "full")
    assert "2.31 is not low enough" in check(LR, high, "a").message
    assert "with 1.41 on tinystories" in check(LR, runs.SWEEP, "a").message
    assert "with 1.81 on tinystories" in check(LR, low, "a").message


OF_SEEDS = runs.table("norm loss seed", (*PRE, 1), (*runs.POST_NORM, 2))
OF_RATES = runs.table("norm loss learning_rate", (*PRE, 1e-2), (*runs.POST_NORM, 1e-4))
PRE_ROW = {"norm": "Pre ", "loss": 1.41, "position": "rope"}
OF_TEXTS = runs.table("corpus loss", ("tinystories", 1.4), ("owt", 3.9))
WEB_LOSSES = {rate: loss + 2 for rate, loss in runs.LOSSES.items()}
PRAISED = [
    # A loss that stays high counts where no run diverged.
    (LR, "b", sweep(HIGH), "10 times below"),
    (
        LR,
        "b",
        sweep(runs.LOSSES | {2e-2: NAN}),
        "below 0.02, which diverges. Not looked at: whether all read equally many tokens",
    ),
    (LR, "a", sweep(WEB_LOSSES, corpus="owt"), "asks for simple stories: these are owt"),
    (runs.POST, None, pair("norm", PRE, ("post", 20.5)), "20.5 is worse than blind guessing"),
    (runs.POST, None, pair("norm", PRE, ("post", NAN)), "All runs with `norm` post diverged"),
    (runs.POST, None, pd.DataFrame(OF_SEEDS).set_index(["norm", "seed"]), "no `seed` in common"),
    (runs.POST, None, [PRE_ROW, {"norm": "post", "loss": 1.5}], "do not name it"),
    (runs.POST, None, OF_SEEDS, "They have no `seed` in common"),
    (runs.POST, None, OF_RATES, "No learning rate was tried with both"),
    (runs.POST, None, [*OF_SEEDS, {"norm": "none", "loss": 2}], "their `norm` is neither pre nor"),
    (
        runs.POST,
        None,
        [ROW | {"norm": "pre"}, {"norm": "post", "loss": 2}],
        "some runs have no `tok",
    ),
    (runs.WEB, None, OF_TEXTS, "Not looked at: whether all read equally many tokens"),
    (runs.BOARD, None, [{"loss": 2.9, "seconds": 2600, "corpus": "owt"}], "below 3.08"),
    (runs.LOG, None, [ROW, {"loss": 2}], "Without `seconds`: 1 of them"),
    (runs.POST, None, pair("norm", PRE, ("post", 1.42)), "+0.01 nats per token"),
    (runs.LOG, None, [ROW, ROW | {"loss": math.inf}], "none of which contradicts itself"),
]


@pytest.mark.parametrize(("problem", "part", "attempt", "words"), PRAISED)
def test_praise_says_what_the_runs_show(problem, part, attempt, words, judged_here):
    report = check(problem, attempt, part)
    assert report.status == "possible" and words in report.message + "\n", report


def test_the_leaderboard_has_the_time_of_the_edition_and_a_loss_to_beat(monkeypatch, judged_here):
    def said(loss, minutes):
        run = {"loss": loss, "seconds": 60 * minutes, "corpus": "owt"}
        return check(runs.BOARD, [run]).message

    assert "The limit is 90 minutes" in said(3.3, 60)
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    monkeypatch.setenv("WORKBOOK_PROFILE", "full")
    assert "edition 2026 allows 45" in said(3.3, 92)
    assert "5 is not below 5" in said(5.0, 40)
    assert "Before version 26.0.3" in said(3.3, 60)


@pytest.mark.parametrize(("problem", "part"), PARTS)
def test_no_object_breaks_a_check(problem, part, judged_here):
    unfilled = [KINDS | {"loss": ...}, KINDS | {"loss": ...}]
    assert check(problem, unfilled, part).status == "not attempted"
    for odd in ODD:
        report = check(problem, odd, part)
        assert report.status in ("wrong", "not attempted"), odd
        assert "could not be examined" not in report.message, odd


def test_a_kind_under_another_name_is_said_with_what_was_found(judged_here):
    rows = [{"norm": "pre-norm", "loss": 5.4}, {"norm": "none", "loss": 5.8}]
    told = str(check("layer_norm_ablation", rows))
    assert 'with "none"; yours have "pre-norm", "none".' in told
