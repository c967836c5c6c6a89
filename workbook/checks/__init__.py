"""The checker of every problem that has one, by id. One file a topic; `base` is what they share."""

from collections.abc import Callable

CHECKS: dict[str, Callable] = {}
