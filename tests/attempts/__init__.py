"""Attempts as learners write them, right and wrong, to test what `check` says of them."""

from collections.abc import Callable


def catalogue() -> tuple[list[tuple[type, str]], Callable]:
    """A list of wrong classes with words that the check must say of each, and its decorator."""
    wrong: list[tuple[type, str]] = []

    def mistake(words: str) -> Callable:
        def add(one: type) -> type:
            wrong.append((one, words))
            return one

        return add

    return wrong, mistake
