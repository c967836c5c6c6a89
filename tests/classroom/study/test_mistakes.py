"""Mistakes that a check has named are kept, asked about, planted, shown and forgotten."""

import json
from datetime import date, timedelta

import pytest
import torch
from attempts import transformer_right_functions as right

from workbook import check, harden, recall
from workbook.classroom import cli
from workbook.classroom.checks import own_code
from workbook.classroom.checks.machinery import judging
from workbook.classroom.checks.machinery.engine import Exercise
from workbook.classroom.mine import hardening
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study import mistakes, progress, solutions, update
from workbook.classroom.study import recall as recalling

TODAY = date.today()


def without_maximum(x, dim):
    powers = torch.exp(x)
    return powers / powers.sum(dim, keepdim=True)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study folder that we are in, with a mistake made two days ago in a solved problem."""
    (tmp_path / "study" / ".workbook").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "study")
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    study = progress.Progress(tmp_path / "study")
    assert check("softmax", without_maximum).likely
    assert check("softmax", right.softmax).status == "correct"
    return study


def two_days_ago(study):
    """Let all that happened have happened then."""
    then = str(TODAY - timedelta(days=2))
    study.keep_notes(
        mistakes.OwnMistake,
        {name: mistakes.OwnMistake([then]) for name in mistakes.own_mistakes(study)},
    )
    with study.changing("softmax", None) as entry:
        entry.day = then


@pytest.mark.slow
def test_problem_words_and_day_are_kept_and_nothing_else(study):
    check("softmax", without_maximum)
    kept = json.loads((study.folder / ".workbook" / "mistakes.json").read_text())
    ((name, entry),) = kept.items()
    assert name.startswith("softmax: exp of a large number overflows")
    assert entry == {"days": [TODAY.isoformat()]}


@pytest.mark.slow
def test_recall_begins_with_it_a_day_later_and_judges_the_line(study):
    assert "Nothing to recall" in str(recall())
    two_days_ago(study)
    shown = str(recall())
    assert "1. softmax: A check told you this: exp of a large number overflows" in shown
    assert "2. softmax: Your `mine/softmax.py` runs on" in shown
    asked = recalling.questions_on(study, recalling.due_now(study, TODAY))
    first, second = (each.question for each in asked.values())
    assert f"{first.value:>3}  " in first.code
    told = str(recall(first.value, second.value))
    assert told.count("softmax: ✓") == 2 and "It was `" in told
    due = {topic.due for topic in recalling.topics_of(study).values()}
    assert due == {str(TODAY + timedelta(days=3))}
    assert "Nothing to recall" in str(recall())


@pytest.mark.slow
def test_a_mistake_that_is_made_again_starts_over(study):
    two_days_ago(study)
    asked = recalling.questions_on(study, recalling.due_now(study, TODAY))
    for _ in range(3):
        recalling.settle(study, asked, [each.question.value for each in asked.values()], TODAY)
        topics = recalling.topics_of(study)
        asked = {name: each._replace(topic=topics[name]) for name, each in asked.items()}
    (name,) = mistakes.own_mistakes(study)
    assert topics[name].due == str(TODAY + timedelta(days=21))
    again = str(TODAY + timedelta(days=5))
    study.keep_notes(mistakes.OwnMistake, {name: mistakes.OwnMistake([str(TODAY), again])})
    assert recalling.topics_of(study)[name].due == str(TODAY + timedelta(days=6))
    assert recalling.topics_of(study)[name].stage == 0


def test_mistakes_leave_room_for_another_topic(study):
    two_days_ago(study)
    then = str(TODAY - timedelta(days=2))
    kinds = ("one.", "two.", "three.")
    more = {f"softmax: {kind}": mistakes.OwnMistake([then]) for kind in kinds}
    study.keep_notes(mistakes.OwnMistake, more)
    due = list(recalling.due_now(study, TODAY))
    assert len(due) == 3 and due[-1] == "softmax" and "softmax" not in due[:2]
    assert len(recalling.questions_on(study, {"softmax: one.": recalling.Topic(then)})) == 1


@pytest.mark.slow
def test_two_topics_of_a_problem_are_not_one_question(study):
    two_days_ago(study)
    unknown = {"softmax: x": mistakes.OwnMistake(["2026-01-01"])}
    study.keep_notes(mistakes.OwnMistake, unknown | {"softmax: ": unknown["softmax: x"]})
    (study.folder / "mine" / "softmax.py").unlink()
    due = recalling.due_now(study, TODAY)
    texts = [each.question.text for each in recalling.questions_on(study, due).values()]
    assert len(texts) == len(set(texts)) == 3 and "softmax: " not in due


def test_study_shows_the_commonest_with_its_place(study, capsys):
    for days in (1, 2, 3):
        name = f"rope: {days}"
        then = [str(TODAY - timedelta(days=day)) for day in range(days)]
        study.keep_notes(mistakes.OwnMistake, {name: mistakes.OwnMistake(then)})
    assert cli.main(["study"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Yours")]
    assert shown[0] == "Yours, 3 days: rope: 3 (See 03_transformer.ipynb, rope.)"
    assert len(shown) == 3


@pytest.mark.slow
def test_harden_plants_a_kind_that_was_made_before(study):
    source = (study.folder / "mine" / "softmax.py").read_text()
    details = PROBLEMS["softmax"]
    usual = next(hardening.mistakes_in(details, source))

    def likely(source):
        asked = solutions.judge_source, details, None, source, hardening.TOP_SECONDS
        return judging.from_worker(*asked).likely

    named = [likely(hunt.source) for hunt in hardening.mistakes_in(details, source)]
    kind = next(name for name in named[1:] if name and name != named[0])
    then = mistakes.OwnMistake(["2026-01-01"])
    study.keep_notes(mistakes.OwnMistake, {f"softmax: {kind}": then})
    mistakes.forget_mistakes(study, "rope")
    harden("softmax")
    planted = study.notes(hardening.Hunt)["softmax"]
    assert planted.changed != usual.changed
    assert likely(planted.source) in mistakes.kinds_of(study, "softmax")


@pytest.mark.slow
def test_they_can_be_deleted_and_go_with_a_reset(study, monkeypatch):
    monkeypatch.setattr(update, "_rewrite", lambda path, name, change: (path, ""))
    mistakes.forget_mistakes(study, "rope")
    assert mistakes.own_mistakes(study)
    mistakes.forget_mistakes(study, "softmax")
    assert mistakes.own_mistakes(study) == {}
    check("softmax", without_maximum)
    (study.folder / ".workbook" / "mistakes.json").unlink()
    assert mistakes.own_mistakes(study) == {} and cli.main(["study"]) == 0
    assert study.of("softmax", None).is_solved


@pytest.mark.parametrize("problem", [name for name, each in PROBLEMS.items() if each.form])
def test_a_mistake_in_one_line_has_that_line_for_an_answer(problem):
    for exercise in own_code.exercises_of(problem):
        assert isinstance(exercise, Exercise)
        for mistake in exercise.mistakes:
            (fields,) = own_code.questions_on_mistake(problem, mistake.words)
            for each in fields:
                shown = each["code"].splitlines()[each["line"] - 1]
                assert shown.startswith(f"{each['line']:>3}  ") and each["answer"] == str(
                    each["line"]
                )
                assert each["text"].endswith("Write its number.")
