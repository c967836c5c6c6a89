import pytest
import torch
from attempts import optimizer_adamw as attempts

from workbook.classroom.checks import optimizer, verdicts
from workbook.classroom.checks.optimizer import moved, same
from workbook.classroom.study.verbs import check
from workbook.optimizer import optimizers


@pytest.mark.parametrize("solution", attempts.RIGHT)
def test_a_right_class_is_accepted(solution):
    report = check("adamw", solution)
    assert report.status == "correct", report


@pytest.mark.parametrize(("wrong", "words"), attempts.WRONG)
def test_a_mistake_is_called_by_its_name(wrong, words):
    report = check("adamw", wrong)
    assert report.status == "wrong" and words in report.message, report


@pytest.mark.parametrize(
    ("attempt", "words"),
    [*attempts.ALMOST, *((each, "not from scratch yet") for each in attempts.NOT_FROM_SCRATCH)],
)
def test_a_closure_that_comes_late_and_what_is_not_from_scratch_are_almost_right(attempt, words):
    report = check("adamw", attempt)
    assert report.status == "almost" and words in report.message, report


def test_what_is_not_written_yet_is_not_attempted():
    class Empty(torch.optim.Optimizer):
        def __init__(self, params, lr, betas, eps, weight_decay): ...

    class Raising(Empty):
        def step(self, closure=None):
            raise NotImplementedError

    class Passing(Empty):
        def step(self, closure=None):
            """Only a docstring."""

    for attempt in (None, ..., Empty, Raising, Passing):
        assert check("adamw", attempt).status == "not attempted"


@pytest.mark.parametrize("attempt", [7, "AdamW", lambda params: params, [1, 2]])
def test_what_is_no_class_is_told_in_words(attempt):
    report = check("adamw", attempt)
    assert report.status == "wrong" and "not a class" in report.message


def test_an_endless_step_is_stopped(monkeypatch, judged_here):
    monkeypatch.setitem(verdicts.call.__kwdefaults__, "seconds", 0.5)

    class Endless(attempts.Handout):
        def step(self, closure=None):
            while True:
                pass

    report = check("adamw", Endless)
    assert report.status == "wrong" and "stopped" in report.message


def test_the_failing_case_stands_beside_what_was_expected():
    report = check("adamw", attempts.but(decay=attempts.no_decay))
    rows = dict(report.rows)
    assert "weight_decay=0.5" in rows["input"] and "step 3: p0.grad" in rows["input"]
    assert rows["expected"].startswith("[0.8") and rows["got"] != rows["expected"]


def test_the_reference_agrees_with_the_package_and_with_torch():
    forms = (optimizers.AdamW, False, "after"), (torch.optim.AdamW, True, "before")
    for case in optimizer.MOVES:
        for make, *form in forms:
            assert same(*optimizer.Stepper(make).run(case), moved(case, *form)), (make, case)
