"""Attempts as learners write them: right ones pass, and mistakes are called by their names.

Those that train are with their check.
"""

import pytest
from attempts import (  # noqa: F401 - they fill the list
    bpe_wrong,
    checkpointing,
    data_loading,
    decoding,
    lists,
    optimizer_adamw,
    optimizer_schedule_and_clipping,
    tokenizer_wrong,
    transformer_wrong,
)

from workbook.classroom.study.verbs import check

# The problems whose attempts take longest to judge.
SLOW = "train_bpe", "tokenizer", "decoding", "multihead_self_attention", "transformer_lm"


def named(problem, attempt, status, words):
    return f"{problem}: {words or getattr(attempt, '__name__', status)}"


def marks(problem):
    return pytest.mark.slow if problem in SLOW else ()


@pytest.mark.parametrize(
    ("problem", "attempt", "status", "words"),
    [pytest.param(*case, id=named(*case), marks=marks(case[0])) for case in lists.ATTEMPTS],
)
def test_an_attempt_is_judged_and_its_mistake_named(problem, attempt, status, words, judged_here):
    report = check(problem, attempt)
    assert report.status == status and words.lower() in str(report).lower(), report


def test_a_fair_function_is_never_called_unfair(judged_here):
    for _ in range(5):
        assert check("data_loading", data_loading.sliding).status == "correct"  # seeded by nobody
