"""Solved problems are asked about again, guesses are kept, hours are planned."""

import io
import json
import math
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from workbook import calibration, predict, recall
from workbook.classroom import cli
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study import copy, progress, records
from workbook.classroom.study import recall as recalling

TODAY = date.today()


@pytest.fixture
def study(study, monkeypatch):
    """A study folder that we are in; three problems were solved two days ago, one today."""
    monkeypatch.setenv("WORKBOOK_STUDY", str(study.folder))
    for problem in ("linear", "softmax", "data_loading", "rope"):
        with study.changing(problem, None) as entry:
            entry.reach("correct")
            entry.day = entry.day if problem == "rope" else str(TODAY - timedelta(days=2))
    return study


def value_of(problem):
    return recalling.variant(problem, 0).value


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_variant_can_be_answered_in_one_way(problem):
    record = recalling.questions()[problem]
    many = math.prod(map(len, record["choose"].values()))
    variants = [recalling.variant(problem, number) for number in range(many)]
    assert len({question.text for question in variants}) == many > 3  # no two ask the same
    for question in variants[:12]:
        right = question.value
        assert question.accepts(right) and question.accepts(f" {right} ")
        assert not question.accepts("no idea") and not question.accepts("")
        if isinstance(right, tuple):
            assert question.accepts(list(right)) and question.accepts(torch.Size(right))
            assert not question.accepts(right[::-1]) or right == right[::-1]
        elif isinstance(right, str):
            assert question.accepts(right.encode()) and not question.accepts(right + "x")
        else:
            assert math.isfinite(right) and question.accepts(f"{right:,}")
            counts = isinstance(right, int)
            assert question.accepts(right if counts else float(f"{right:.3g}"))
            assert not question.accepts(right + 1 if counts else 1.05 * right)
    assert len({str(question.value) for question in variants}) > 1 and question.why.endswith(".")


RIGHT = {  # worked out by hand, for the first variant
    "rope": lambda d_k, k, position: position * 10_000 ** (-2 * k / d_k),
    "transformer_block": lambda d, f: 4 * d * d + 3 * d * f + 2 * d,
    "layer_norm_ablation": lambda layers, d: (2 * layers + 1) * d,
    "adamw": lambda lr, decay, w, g: -lr * math.copysign(1, g) - lr * decay * w,
    "train_bpe_expts_owt": lambda dashes: math.ceil(math.log2(dashes)),
}


@pytest.mark.parametrize("problem", RIGHT)
def test_our_functions_agree_with_the_formula(problem):
    for number in range(9):
        question = recalling.variant(problem, number)
        assert question.accepts(RIGHT[problem](**question.chosen)), question.text


def test_a_problem_and_its_mistake_are_told_once_a_day(study, monkeypatch):
    soon = recalling.Topic(str(TODAY))
    monkeypatch.setattr(recalling, "topics_of", lambda _: {"rope": soon, "rope: no pairs": soon})
    assert str(recalling.ask(study, {}, "")).count("rope on") == 1


def test_what_was_solved_days_ago_comes_back_at_growing_distances(study):
    shown = str(recall())
    assert "rope" not in shown and "`recall(first, second, third)`, words" in shown
    assert "1. linear: " in shown and "3. data_loading: " in shown
    told = str(recall(value_of("linear"), 1.5))
    assert "linear: ✓" in told and "softmax: ✗ not 1.5, but" in told
    assert "data_loading: ○ skipped" in told and told.count("\n") == 3
    assert recalling.topics_of(study)["linear"].due == str(TODAY + timedelta(days=3))
    assert "Nothing to recall today. Next: rope on" in str(recall())
    for days in (3, 7, 21, 21):
        topic = recalling.topics_of(study)["rope"]
        asked = recalling.questions_on(study, {"rope": topic})
        recalling.settle(study, asked, [asked["rope"].question.value], TODAY)
        assert recalling.topics_of(study)["rope"].due == str(TODAY + timedelta(days=days))


def test_old_answers_are_not_judged_by_new_questions(study, capsys):
    recall()
    recall(None, None, None)
    recall(1, 2, 3)  # the same cell, run again
    assert "3 answers, but 0 questions were asked just now" in capsys.readouterr().out
    assert recalling.topics_of(study)["linear"].asked == 1


def test_a_terminal_asks_one_by_one(study, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{value_of('linear')}\n\n6\n"))
    assert cli.main(["study"]) == 0
    assert "To recall, if you like: linear, softmax, data_loading" in capsys.readouterr().out
    assert cli.main(["recall"]) == 0
    printed = capsys.readouterr().out
    assert "linear: ✓" in printed and "softmax: ○" in printed and "data_loading: ✗" in printed


def test_a_guess_is_kept_and_shown_beside_the_measurement(study, capsys):
    assert predict("loss at step 0", ...) is None and predict("loss", measured=3.0) is None
    calibration()
    assert "Noted for loss at step 0: 5." in str(predict("loss at step 0", 5))
    predict("loss at step 0", measured=7.5)
    assert "your guess of 5 stands" in str(predict("loss at step 0", 7.5))
    assert "Noted for FLOPs: 350,000,000,000." in str(predict("FLOPs", 3.5e11))
    predict("merges", 30)
    predict("merges", measured=10)
    predict("bytes", "many")
    calibration()
    printed = capsys.readouterr().out
    assert "No guess has been" in printed and "you guessed 5, it is 7.5; ratio 0.667" in printed
    assert "above 0, from 1e-100 to 1e100, got a str: 'many'" in printed
    assert "Guesses so far: 2. The median" in printed


def test_a_guess_under_a_misspelt_name_is_said_where_it_is_measured(study, capsys):
    predict("los at step 0", 5)
    predict("loss at step 0", measured=7.5)
    told = capsys.readouterr().out
    assert 'noted for "los at step 0", and this is "loss at step 0"' in told
    predict("the pieces of a sentence", measured=7.5)
    assert not capsys.readouterr().out


GUESSES = [5, Fraction(10, 2), Decimal("5.0"), np.int64(5), np.float32(5), np.array([5])]
GUESSES += [torch.tensor(5.0), torch.tensor([5]), torch.tensor(5, dtype=torch.bfloat16)]


def test_a_guess_may_be_a_number_of_any_kind(study, capsys):
    for number, guess in enumerate(GUESSES):
        assert str(predict(f"guess {number}", guess)) == (
            f"✎ Noted for guess {number}: 5. Now run the cell below."
        )
        predict(f"guess {number}", measured=GUESSES[-1 - number])
    kept = json.loads(study.path.with_name("guesses.json").read_text("utf-8"))
    assert list(kept.values()) == [{"guess": 5.0, "measured": 5.0}] * len(GUESSES)
    assert capsys.readouterr().out.count("you guessed 5, it is 5; ratio 1.") == len(GUESSES)


NO_GUESSES = [  # and what is said of each
    ("5", "a str: '5'; write the number alone, without quotes"),
    (True, "a bool: True"),
    (np.True_, "a bool"),
    (0, "an int: 0"),
    (-3.5, "a float: -3.5"),
    (math.nan, "a float: nan"),
    (np.float32("inf"), "a float32"),
    (10**400, "an int: 1000"),
    (10**5000, "an int"),
    (Decimal("sNaN"), "a Decimal"),
    (Fraction(1, 10**400), "a Fraction"),
    (1 + 2j, "a complex: (1+2j)"),
    (np.array([1, 2]), "a ndarray"),
    (torch.zeros(0), "a Tensor"),
    (torch.ones(1, device="meta"), "a Tensor"),
    ([5], "a list: [5]"),
    (print, "the builtin_function_or_method `print`"),
]


def test_what_is_no_guess_is_said_and_not_noted(study, capsys):
    for guess, said in NO_GUESSES:
        assert predict("loss", guess) is None
        printed = capsys.readouterr().out
        assert f"expected a number above 0, from 1e-100 to 1e100, got {said}" in printed
    assert predict(3, 5) is None
    assert "expected what is measured, in a few words, got an int: 3" in capsys.readouterr().out
    assert not study.path.with_name("guesses.json").exists()


def test_what_cannot_be_compared_with_a_guess_takes_no_guess_away(study, capsys):
    predict("merges", 30)
    predict("merges", measured=10)
    predict("loss", 5)
    for measured in (math.nan, math.inf, -2.0, np.float64("nan"), 1e300, None, "many"):
        predict("loss", measured=measured)
        predict("merges", measured=measured)
    printed = capsys.readouterr().out
    assert printed.count("with which no guess can be compared. Your guess is kept.") == 12
    predict("loss", measured=0)
    assert "you guessed 5, it is 0; there is no ratio to 0." in capsys.readouterr().out
    assert "your guess of 5 stands" in str(predict("loss", 7))
    calibration()
    assert "Guesses so far: 1." in capsys.readouterr().out


def test_nothing_is_said_to_be_noted_that_could_not_be_stored(study, monkeypatch):
    recall()
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(records, "write_json", full)
    assert "○ Not noted: 5. Your progress could not be saved (OSError: " in str(predict("loss", 5))
    told = str(recall(value_of("linear")))
    assert "linear: ✓" in told and "could not be saved (OSError" in told and "Again" not in told


def test_worked_notebooks_keep_and_show_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORKBOOK_STUDY", raising=False)
    assert predict("loss", 3) is None
    predict("loss", measured=3.5)
    assert "asks three questions" in str(recall()) and not [*tmp_path.iterdir()]
    assert capsys.readouterr().out == ""


def test_the_plan_adds_up(study):
    left = sum(problem.minutes for problem in PROBLEMS.values()) - 150  # of 6 points of code
    assert f"about {left / 60:.0f} hours" in progress.plan(study.parts())
    assert "train_bpe 15 375 min ●●● ○ open" in " ".join(progress.progress_table(study).split())


def test_a_study_folder_tells_assistants_what_they_may_do(study):
    (study.folder / "CLAUDE.md").write_text("Mine.")
    copy.make_copies(study.folder)
    contract = (study.folder / "AGENTS.md").read_text("utf-8")
    assert "`workbook twin`" in contract and (study.folder / "CLAUDE.md").read_text() == "Mine."


def test_a_right_answer_is_right_however_it_is_written():
    rate = recalling.Variant("How many hours do 825 GB take?", "2.2917", {}, "")
    for given in (2.2917, "2.29", "≈ 2.29", "2.29 h", "2.29 hours", np.float32(2.29), "about 2.29"):
        assert rate.accepts(given) is True, given
    for given in (torch.tensor(2.29), Fraction(229, 100), Decimal("2.29")):
        assert rate.accepts(given) is True, given
    for given in ("137 min", "2.29 GB", "no idea", "", True, [2.29], torch.ones(2)):
        assert rate.accepts(given) is None, given
    small = recalling.Variant("What is the slope?", "-0.01", {}, "")
    assert small.accepts("\N{MINUS SIGN}0.01") and small.accepts("+0.01") is False


def test_what_cannot_be_read_is_asked_again_and_is_not_wrong(study):
    topic = recalling.Topic(TODAY.isoformat(), 2, 5)
    asked = recalling.questions_on(study, {"rope": topic})
    said = str(recalling.settle(study, asked, ["hm"], TODAY))
    assert "rope: ○ hm cannot be read as an answer: it is asked again." in said
    assert study.notes(recalling.Topic) == {} and "✗" not in said
    said = str(recalling.settle(study, asked, [np.ones(2)], TODAY))
    assert "cannot be read as an answer: it is asked again." in said
