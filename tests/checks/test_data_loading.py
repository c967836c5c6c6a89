import numpy as np
import pytest
import torch
from attempts import data_loading as attempts

from workbook.study.verbs import check


@pytest.mark.parametrize("solution", attempts.RIGHT)
def test_a_right_function_is_accepted(solution):
    report = check("data_loading", solution)
    assert report.status == "correct", report


@pytest.mark.parametrize(("wrong", "words"), attempts.WRONG)
def test_a_mistake_is_called_by_its_name(wrong, words):
    report = check("data_loading", wrong)
    assert report.status == "wrong" and words in report.message, report


@pytest.mark.parametrize(("attempt", "words"), attempts.ALMOST)
def test_a_narrow_type_and_our_own_function_are_almost_right(attempt, words):
    report = check("data_loading", attempt)
    assert report.status == "almost" and words in report.message, report


def test_the_type_of_the_file_is_told_but_not_refused():
    for attempt in (attempts.by_other_names, attempts.never_converted):
        assert "The batches are uint16" in check("data_loading", attempt).message


def test_all_that_is_wrong_is_told_at_once():
    message = check("data_loading", attempts.late_and_on_the_cpu).message
    assert "The last start is never drawn" in message and "`device` is not used" in message


def test_reading_the_whole_file_is_told_but_not_refused():
    assert "the whole memory map is copied" in check("data_loading", attempts.whole_file).message
    assert "Worth knowing" not in check("data_loading", attempts.by_index).message


def test_a_fair_function_is_never_called_unfair():
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


def test_what_is_not_written_yet_is_not_attempted():
    def raising(dataset, batch_size, context_length, device):
        raise NotImplementedError

    def passing(dataset, batch_size, context_length, device):
        """Only a docstring."""

    def begun(dataset, batch_size, context_length, device):
        torch.randint(len(dataset), (batch_size,))

    for attempt in (None, ..., raising, passing, begun):
        assert check("data_loading", attempt).status == "not attempted"
