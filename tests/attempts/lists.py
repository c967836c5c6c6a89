"""Attempts at the problems of chapters 2 to 6, right and wrong, gathered as they are read.

The modules that use these decorators fill the list when they are imported. Most usual mistakes are
in the catalogues, and each of those is tried (`test_catalogue`): the wrong attempts are for what no
edit of the reference shows.
"""

from collections.abc import Callable
from typing import Any

ATTEMPTS: list[tuple[str, Any, str, str]] = []  # problem, attempt, status, words that are said


def judged(problem: str, status: str, words: str) -> Callable:
    """A decorator: the check of this problem gives this status to the attempt, with these words."""

    def add(attempt: Any) -> Any:
        ATTEMPTS.append((problem, attempt, status, words))
        return attempt

    return add


def right(problem: str) -> Callable:
    """A decorator: the attempt is right."""
    return judged(problem, "correct", "")


def mistake(problem: str, words: str) -> Callable:
    """A decorator: the attempt has a mistake, which the check must call by these words."""
    return judged(problem, "wrong", words)


def almost(problem: str, words: str) -> Callable:
    """A decorator: right but for a corner, or not from scratch, which these words say."""
    return judged(problem, "almost", words)
