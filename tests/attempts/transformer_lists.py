"""Attempts at the problems of chapter 3 and the loss, right and wrong, gathered as they are read.

The modules `transformer_right*` and `transformer_wrong*` fill the lists when they are imported.
"""

from collections.abc import Callable

RIGHT: list[tuple[str, Callable]] = []  # the problem and the attempt
WRONG: list[tuple[str, Callable, str]] = []  # and words that the check must say
ALMOST: list[tuple[str, Callable, str]] = []  # right but for a corner, or not from scratch


def right(problem: str) -> Callable:
    """A decorator: the function or class is a right attempt at this problem."""

    def add(attempt: Callable) -> Callable:
        RIGHT.append((problem, attempt))
        return attempt

    return add


def mistake(problem: str, words: str) -> Callable:
    """A decorator: the check of this problem must say these words of the attempt."""

    def add(attempt: Callable) -> Callable:
        WRONG.append((problem, attempt, words))
        return attempt

    return add


def almost(problem: str, words: str) -> Callable:
    """A decorator: the attempt is right, but for what the check must say in these words."""

    def add(attempt: Callable) -> Callable:
        ALMOST.append((problem, attempt, words))
        return attempt

    return add
