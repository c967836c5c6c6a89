import numpy as np
import pytest
import torch
from attempts import data_loading as attempts

from workbook.classroom.study.verbs import check
from workbook.training.data import get_batch


@pytest.mark.parametrize("solution", attempts.RIGHT)
def test_a_right_function_is_accepted(solution, judged_here):
    report = check("data_loading", solution)
    assert report.status == "correct", report


@pytest.mark.parametrize(("wrong", "words"), attempts.WRONG)
def test_a_mistake_is_called_by_its_name(wrong, words, judged_here):
    report = check("data_loading", wrong)
    assert report.status == "wrong" and words in report.message, report


def test_our_own_function_is_almost_right():
    assert check("data_loading", get_batch).status == "almost"


def test_a_fair_function_is_never_called_unfair(judged_here):
    for _ in range(5):
        assert check("data_loading", attempts.sliding).status == "correct"  # seeded by nobody


def test_the_learners_own_random_numbers_go_on_as_if_nothing_had_happened():
    torch.manual_seed(5)
    np.random.seed(5)
    expected = torch.rand(3).tolist(), np.random.rand(3).tolist()
    torch.manual_seed(5)
    np.random.seed(5)
    check("data_loading", attempts.seeded)
    assert (torch.rand(3).tolist(), np.random.rand(3).tolist()) == expected
