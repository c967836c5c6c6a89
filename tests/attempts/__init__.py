"""Attempts as learners write them, right and wrong, to test what `check` says of them."""
