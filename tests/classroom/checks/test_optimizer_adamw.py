import torch
from attempts import optimizer_adamw as attempts

from workbook.classroom.checks import optimizer, verdicts
from workbook.classroom.checks.optimizer import moved, same
from workbook.classroom.study.verbs import check
from workbook.optimizer import optimizers


def test_what_is_no_class_is_told_in_words(judged_here):
    for thing in (7, "AdamW", lambda params: params):
        report = check("adamw", thing)
        assert report.status == "wrong" and "not a class" in report.message


def test_an_endless_step_is_stopped(monkeypatch, judged_here):
    monkeypatch.setitem(verdicts.call.__kwdefaults__, "seconds", 0.5)

    class Endless(attempts.Plain):
        def step(self, closure=None):
            while True:
                pass

    report = check("adamw", Endless)
    assert report.status == "wrong" and "stopped" in report.message


def test_the_failing_case_stands_beside_what_was_expected(judged_here):
    report = check("adamw", attempts.but(decay=lambda lr, decay: 1))
    rows = dict(report.rows)
    assert "weight_decay=0.5" in rows["input"] and "step 3: p0.grad" in rows["input"]
    assert rows["expected"].startswith("[0.8") and rows["got"] != rows["expected"]


def test_the_reference_agrees_with_the_package_and_with_torch():
    forms = (optimizers.AdamW, False, "after"), (torch.optim.AdamW, True, "before")
    for case in optimizer.MOVES:
        for make, *form in forms:
            assert same(*optimizer.Stepper(make).run(case), moved(case, *form)), (make, case)
