import pytest
from attempts import optimizer_schedule_and_clipping as attempts

from workbook.classroom.study.verbs import check
from workbook.optimizer import optimizers


@pytest.mark.parametrize("solution", attempts.RIGHT_SCHEDULES)
def test_a_right_schedule_is_accepted(solution):
    report = check("learning_rate_schedule", solution)
    assert report.status == "correct", report


@pytest.mark.parametrize(("wrong", "words"), attempts.WRONG_SCHEDULES)
def test_a_mistake_in_a_schedule_is_called_by_its_name(wrong, words):
    report = check("learning_rate_schedule", wrong)
    assert report.status == "wrong" and words in report.message, report


def test_the_first_wrong_step_of_a_schedule_stands_beside_the_right_one():
    report = check("learning_rate_schedule", lambda it, a, b, w, c: a)
    rows = dict(report.rows)
    assert rows == {"input": "schedule(0, 0.8, 0.2, 4, 12)", "expected": "0", "got": "0.8"}


@pytest.mark.parametrize("solution", attempts.RIGHT_CLIPS)
def test_right_clipping_is_accepted(solution):
    report = check("gradient_clipping", solution)
    assert report.status == "correct", report


@pytest.mark.parametrize(("wrong", "words"), attempts.WRONG_CLIPS)
def test_a_mistake_in_clipping_is_called_by_its_name(wrong, words):
    report = check("gradient_clipping", wrong)
    assert report.status == "wrong" and words in report.message, report


@pytest.mark.parametrize(("problem", "attempt", "words"), attempts.ALMOST)
def test_what_leaves_a_corner_open_or_is_not_from_scratch_is_almost_right(problem, attempt, words):
    report = check(problem, attempt)
    assert report.status == "almost" and words in report.message, report


def test_settings_of_a_corner_may_be_refused():
    assert check("learning_rate_schedule", attempts.wants_room).status == "correct"


@pytest.mark.parametrize("problem", ["learning_rate_schedule", "gradient_clipping"])
def test_what_is_not_written_yet_is_not_attempted(problem):
    def raising(*arguments):
        raise NotImplementedError

    def passing(*arguments):
        """Only a docstring."""

    for attempt in (None, ..., raising, passing):
        assert check(problem, attempt).status == "not attempted"


@pytest.mark.parametrize("problem", ["learning_rate_schedule", "gradient_clipping"])
@pytest.mark.parametrize("attempt", [7, "schedule", optimizers.AdamW, [1.0]])
def test_what_is_no_function_is_told_in_words(problem, attempt):
    report = check(problem, attempt)
    assert report.status == "wrong" and "not a function" in report.message
