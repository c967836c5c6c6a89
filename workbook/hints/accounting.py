"""What a model and its training cost."""

HINTS: dict[str, tuple[str, str]] = {}
