"""The engine: each mistake in a catalogue is one, can be told from the others, and is found."""

import importlib
import pkgutil
from dataclasses import replace
from typing import NamedTuple

import pytest

from workbook.classroom import checks
from workbook.classroom.checks.machinery import engine
from workbook.classroom.checks.machinery.engine import Exercise, Program, judge, mistake, shrink
from workbook.classroom.checks.machinery.verdicts import Prose, Wrong

RAISED = object()  # stands for the result of a call that raised an error


def found():
    """Every exercise with cases in the checks, by its place: others are for learners' tests."""
    for module in pkgutil.iter_modules(checks.__path__):
        names = vars(importlib.import_module(f"workbook.classroom.checks.{module.name}"))
        for name, exercise in names.items():
            if isinstance(exercise, Exercise) and exercise.cases:
                yield f"{module.name}.{name}", exercise


def outcomes(exercise, mistake=None):
    """What the reference returns for each case with a mistake in it."""
    results = []
    edited = exercise.program.edited(mistake)
    for case in (*exercise.cases, *exercise.corners):
        try:
            results.append(exercise.expected(case, edited))
        except Exception:
            results.append(RAISED)
    return results


def agree(exercise, ones, others):
    def same(one, other):
        is_error = one is RAISED or other is RAISED
        return one is other if is_error else exercise.same(one, other)

    return all(map(same, ones, others))


@pytest.mark.slow
def test_each_mistake_shows_in_a_case_and_none_looks_like_one_with_other_words():
    offenders = []
    for name, exercise in found():
        seen = [("the reference", outcomes(exercise))]
        for each in exercise.mistakes:
            made = outcomes(exercise, each)
            for words, other in seen:
                if words != each.words and agree(exercise, other, made):
                    offenders.append(f"{name}: {each.words} = {words}")
            seen.append((each.words, made))
    assert not offenders, "\n".join(offenders)


def test_each_place_is_in_its_reference():
    for name, exercise in found():
        source = exercise.program.source
        assert [piece for piece in exercise.program.places if piece not in source] == [], name


def area(case):
    width, height = case
    half = width * height
    return half / 2


AREA = Exercise(
    program=Program(area, places={"half =": "the product"}),
    mistakes=(
        mistake("The half is missing.", "half / 2", "half"),
        mistake("Added, not multiplied.", "width * height", "(width + height)"),
    ),
    cases=((3.0, 4.0), (2.0, 5.0), (1.0, 6.0)),
    corners=((0.0, 2.0),),
    run=lambda attempt, case: attempt(*case),
    same=lambda one, other: one == other,
    report=lambda case, asked, got: Wrong("It differs.", given=Prose(f"area{case}"), got=got),
)


def verdict(attempt):
    with pytest.raises(Wrong) as raised:
        judge(AREA, attempt).verdict("Right.")
    return raised.value


def test_a_right_attempt_is_praised_and_a_mistake_is_named():
    assert judge(AREA, lambda w, h: w * h / 2).verdict("Right.") == "Right."
    assert verdict(lambda w, h: w * h).mistake == "The half is missing."


def test_where_no_mistake_fits_a_mutant_tells_where_to_look():
    assert verdict(lambda w, h: w / h / 2).mistake.startswith("Look at the product: an operator")
    assert verdict(lambda w, h: 7.5).mistake is None


def test_a_mistake_is_named_only_if_it_explains_a_quarter_of_what_is_wrong():
    exercise = replace(AREA, cases=tuple((width, 3.0) for width in (1.0, 2.0, 3.0, 4.0, 5.0)))

    def without_the_half(widest):
        found = judge(exercise, lambda w, h: w * h if w <= widest else -w)
        return found.wrongs[0].mistake

    assert without_the_half(widest=1) is None
    assert without_the_half(widest=2) == "The half is missing."


def test_what_goes_wrong_is_looked_into_only_for_a_while(monkeypatch):
    calls = []

    def added(w, h):
        calls.append((w, h))
        return (w + h) / 2

    assert verdict(added).mistake == "Added, not multiplied."
    assert {*calls} == {*AREA.cases, *AREA.corners}
    calls.clear()
    monkeypatch.setattr(engine, "CAUSE_SECONDS", 0.0)
    assert verdict(added).mistake is None
    assert {*calls} == {AREA.cases[0]}


def test_a_corner_is_a_finding_of_its_own():
    def fails_for_zero(w, h):
        return 1 / w * w * w * h / 2 if w else None

    wrong = verdict(fails_for_zero)
    assert wrong.weight == "corner" and wrong.rows[0] == ("input", "area(0.0, 2.0)")


def test_corners_of_one_kind_are_one_finding():
    class Square(NamedTuple):
        side: float
        what: str

        def __iter__(self):
            return iter((self.side, self.side))

    corners = Square(0.0, "small"), Square(0.1, "small"), Square(9.0, "large"), Square(0.2, "small")
    found = judge(replace(AREA, corners=corners), lambda w, h: w * h / 2 + (w == h) * w)
    assert [wrong.case.side for wrong in found.wrongs] == [0.1, 9.0]


def test_what_changes_from_call_to_call_is_told():
    calls = []

    def drifting(w, h):
        calls.append(w)
        return w * h / 2 + len(calls)

    assert "a different result the second time" in verdict(drifting).mistake


def test_a_text_shrinks_to_what_still_fails():
    assert shrink("some words, a needle, more", lambda text: "need" in text) == "need"
