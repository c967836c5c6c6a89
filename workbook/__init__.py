"""The CS336 workbook: a language model from nothing, and answers that prove themselves."""

from collections.abc import Callable
from importlib import import_module

__version__ = "0.2.0"
__all__ = ["answer", "check", "hint", "look_up", "reveal", "tick"]


def lazy(package: str, homes: dict[str, str]) -> Callable:
    """A package's `__getattr__`: a public name's module is loaded when the name is asked for.

    `homes` has the module of each name. So `import workbook.tokenization` loads no numba, and
    `from workbook.tokenization import train_bpe` no more than it needs.
    """

    def get(name: str):
        if name not in homes:
            known = ", ".join(homes)
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {known}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return get


__getattr__ = lazy(__name__, dict.fromkeys(__all__, "study.verbs"))
