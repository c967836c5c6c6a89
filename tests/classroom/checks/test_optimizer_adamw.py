import torch
from attempts import optimizer_adamw as attempts

from workbook.classroom.checks import optimizer
from workbook.classroom.checks.optimizer import moved, same
from workbook.classroom.study.verbs import check
from workbook.optimizer import optimizers


def test_the_failing_case_stands_beside_what_was_expected(judged_here):
    report = check("adamw", attempts.but(decay=lambda lr, decay: 1))
    rows = dict(report.rows)
    assert "weight_decay=0.5" in rows["input"] and "step 3: p0.grad" in rows["input"]
    assert rows["expected"].startswith("[0.8") and rows["got"] != rows["expected"]


def test_the_reference_agrees_with_the_package_and_with_torch():
    forms = (optimizers.AdamW, False, "after"), (torch.optim.AdamW, True, "before")
    for case in optimizer.MOVES:
        for make, *form in forms:
            ours = optimizer.OptimizerRunner(make).run(case)
            assert same(*ours, moved(case, *form)), (make, case)
