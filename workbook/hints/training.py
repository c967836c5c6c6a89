"""Chapters 4 to 6: optimizers, training, writing text."""

HINTS: dict[str, tuple[str, str]] = {}
