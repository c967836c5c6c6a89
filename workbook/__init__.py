"""The CS336 workbook: a language model from nothing, and answers that prove themselves."""

from importlib import import_module

__version__ = "0.1.0"
__all__ = ["answer", "check", "hint", "look_up", "reveal"]


def __getattr__(name: str):
    """Hand out the notebook verbs on first use, so that `import workbook` stays light."""
    if name in __all__:
        return getattr(import_module("workbook.study.verbs"), name)
    raise AttributeError(f"module 'workbook' has no attribute {name!r}")
