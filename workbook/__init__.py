"""The CS336 workbook: a language model from nothing, and answers that prove themselves."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers; to run it would load what nobody asked for
    from workbook.classroom import mine as mine
    from workbook.classroom.study.guesses import calibration, predict
    from workbook.classroom.study.hardening import harden
    from workbook.classroom.study.recall import recall
    from workbook.classroom.study.verbs import answer, check, hint, look_up, reveal, tick

__version__ = "0.2.0"
__all__ = [
    "answer",
    "calibration",
    "check",
    "harden",
    "hint",
    "look_up",
    "predict",
    "recall",
    "reveal",
    "tick",
]


def lazy(package: str, homes: dict[str, str]) -> tuple[Callable[..., Any], ...]:
    """A package's `__getattr__` and `__dir__`: a name's module is loaded when it is asked for.

    `homes` has the module of each public name. So `import workbook.tokenization` loads no numba,
    `from workbook.tokenization import train_bpe` no more than it needs, and completion shows both
    names before anything is loaded.
    """

    def get(name: str) -> Any:
        if name not in homes:
            known = ", ".join(homes)
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {known}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return get, lambda: sorted(homes)


HOMES = dict.fromkeys(__all__, "classroom.study.verbs")
HOMES |= {"harden": "classroom.study.hardening", "recall": "classroom.study.recall"}
HOMES |= dict.fromkeys(("predict", "calibration"), "classroom.study.guesses")
_verbs, _ = lazy(__name__, HOMES)


def __getattr__(name: str) -> Any:
    """`check` and its friends, and `mine`: loaded when they are asked for."""
    if name == "mine":
        return import_module(f"{__name__}.classroom.mine")
    verb = _verbs(name)  # AttributeError for any other name
    return import_module(f"{__name__}.classroom.study.verbs").kindly(verb)


def __dir__() -> list[str]:
    return [*__all__, "mine", "__version__"]
