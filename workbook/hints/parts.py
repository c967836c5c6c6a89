"""Chapter 3: the parts of the model, and the loss."""

HINTS: dict[str, tuple[str, str]] = {}
