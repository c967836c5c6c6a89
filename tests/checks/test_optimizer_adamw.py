import pytest
import torch
from attempts import optimizer_adamw_right, optimizer_adamw_wrong

from workbook.checks import optimizer_adamw, verdicts
from workbook.checks.optimizer_adamw_answers import predicted
from workbook.checks.optimizer_adamw_slips import SLIPS
from workbook.checks.optimizer_values import same
from workbook.optimizer import optimizers
from workbook.study.verbs import check

CASES = (*optimizer_adamw.CASES, optimizer_adamw.SCHEDULED, optimizer_adamw.RESUMED)


@pytest.mark.parametrize("solution", optimizer_adamw_right.RIGHT)
def test_a_right_class_is_accepted(solution):
    report = check("adamw", solution)
    assert report.status == "correct", report


@pytest.mark.parametrize(("wrong", "words"), optimizer_adamw_wrong.WRONG)
def test_a_mistake_is_called_by_its_name(wrong, words):
    report = check("adamw", wrong)
    assert report.status == "wrong" and words in report.message, report


def test_what_is_not_written_yet_is_not_attempted():
    class Begun(torch.optim.Optimizer):
        def __init__(self, params, lr, betas, eps, weight_decay):
            super().__init__(params, {"lr": lr})

    class Empty(torch.optim.Optimizer):
        def __init__(self, params, lr, betas, eps, weight_decay): ...

    class Raising(Begun):
        def step(self, closure=None):
            raise NotImplementedError

    class Passing(Begun):
        def step(self, closure=None):
            """Only a docstring."""

    for attempt in (None, ..., Begun, Empty, Raising, Passing):
        assert check("adamw", attempt).status == "not attempted"


@pytest.mark.parametrize("attempt", [7, "AdamW", lambda params: params, [1, 2]])
def test_what_is_no_class_is_told_in_words(attempt):
    report = check("adamw", attempt)
    assert report.status == "wrong" and "not a class" in report.message


def test_an_endless_step_is_stopped(monkeypatch):
    monkeypatch.setitem(verdicts.call.__kwdefaults__, "seconds", 0.5)

    class Endless(optimizer_adamw_right.Handout):
        def step(self, closure=None):
            while True:
                pass

    report = check("adamw", Endless)
    assert report.status == "wrong" and "stopped" in report.message


def test_the_failing_case_stands_beside_what_was_expected():
    report = check("adamw", optimizer_adamw_wrong.NoDecay)
    rows = dict(report.rows)
    assert "weight_decay=0.5" in rows["input"] and "step 3: p.grad" in rows["input"]
    assert rows["expected"].startswith("[0.8") and rows["got"] != rows["expected"]


def test_what_the_course_leaves_open_is_told_but_not_refused():
    message = check("adamw", optimizer_adamw_right.OtherKeys).message
    assert "'alpha'" in message and "step(closure)" in message
    assert (
        "The closure that `step` takes is never called"
        in check("adamw", optimizer_adamw_right.Strict).message
    )


def test_the_small_reference_agrees_with_the_package_and_with_torch():
    for case in optimizer_adamw.CASES:
        for make, form in ((optimizers.AdamW, 0), (torch.optim.AdamW, 3)):
            learner = optimizer_adamw.Learner(make)
            assert same(learner.run(case), predicted(case)[form]), (make, case)


def test_each_known_mistake_shows_and_no_two_look_alike():
    right = [predicted(case) for case in CASES]
    seen = {}
    for slip in SLIPS:
        outcomes = [predicted(case, (slip,)) for case in CASES]
        assert not all(
            any(same(wrong, form) for form in forms)
            for forms, wrongs in zip(right, outcomes, strict=True)
            for wrong in wrongs
        ), slip
        assert repr(outcomes) not in seen, (slip, seen[repr(outcomes)])
        seen[repr(outcomes)] = slip
