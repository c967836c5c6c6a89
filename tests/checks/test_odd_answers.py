"""What is handed in may be empty, endless, or nothing that anybody thought of."""

import pytest

from workbook.study.verbs import check

NUL = "\x00"


def status(problem, attempt, part):
    return check(problem, attempt, part).status


@pytest.mark.parametrize("nothing", [[], (), {}, set(), " "])
def test_an_empty_collection_is_no_attempt(nothing):
    assert status("unicode2", nothing, "a") == "not attempted"


def test_sizes_that_belong_to_no_encoding_are_not_called_right():
    assert status("unicode2", {1: {2: 3}}, "a") == "read"


def test_a_text_is_not_cut_at_nul_and_nul_is_one_character():
    assert status("unicode1", "The string is cut at the null character.", "c") == "wrong"
    assert status("unicode1", "The string is not cut at the null character.", "c") == "read"
    assert status("unicode1", NUL * 2, "a") == "wrong"


@pytest.mark.parametrize("text", ["1" * 200_000, "x" * 2_000_000, "a. " * 100_000])
@pytest.mark.parametrize(
    ("problem", "part"),
    [("unicode2", "a"), ("train_bpe_tinystories", "a"), ("tokenizer_experiments", "c")],
)
def test_a_text_that_is_far_too_long_is_refused_at_once(problem, part, text):
    report = check(problem, text, part)
    assert report.status == "wrong" and "longer than an answer can be" in report.message
