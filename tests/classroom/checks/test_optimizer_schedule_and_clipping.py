import pytest
from attempts import optimizer_schedule_and_clipping as attempts

from workbook.classroom.study.verbs import check
from workbook.optimizer import optimizers


@pytest.mark.parametrize(("problem", "solution"), attempts.RIGHT)
def test_what_is_right_is_accepted(problem, solution, judged_here):
    report = check(problem, solution)
    assert report.status == "correct", report


@pytest.mark.parametrize(("problem", "wrong", "words"), attempts.WRONG)
def test_a_mistake_is_called_by_its_name(problem, wrong, words, judged_here):
    report = check(problem, wrong)
    assert report.status == "wrong" and words in report.message, report


def test_the_first_wrong_step_of_a_schedule_stands_beside_the_right_one():
    report = check("learning_rate_schedule", lambda it, a, b, w, c: a)
    rows = dict(report.rows)
    assert rows == {"input": "schedule(0, 0.8, 0.2, 4, 12)", "expected": "0", "got": "0.8"}


@pytest.mark.parametrize(("problem", "attempt", "words"), attempts.ALMOST)
def test_what_leaves_a_corner_open_or_is_not_from_scratch_is_almost_right(
    problem, attempt, words, judged_here
):
    report = check(problem, attempt)
    assert report.status == "almost" and words in report.message, report


@pytest.mark.parametrize("problem", ["learning_rate_schedule", "gradient_clipping"])
def test_what_is_no_function_is_told_in_words(problem, judged_here):
    for thing in (7, "schedule", optimizers.AdamW):
        report = check(problem, thing)
        assert report.status == "wrong" and "not a function" in report.message
