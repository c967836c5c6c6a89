"""The CS336 workbook: a language model from nothing, and answers that prove themselves."""

from typing import TYPE_CHECKING, Any

from workbook.lazy import __version__ as __version__
from workbook.lazy import lazy

if TYPE_CHECKING:  # for editors and type checkers; to run it would load what nobody asked for
    from workbook.classroom import mine as mine
    from workbook.classroom.mine.hardening import harden
    from workbook.classroom.study.examples import examples
    from workbook.classroom.study.guesses import calibration, predict
    from workbook.classroom.study.recall import recall
    from workbook.classroom.study.verbs import answer, check, hint, look_up, reveal, tick

__all__ = [
    "answer",
    "calibration",
    "check",
    "examples",
    "harden",
    "hint",
    "look_up",
    "predict",
    "recall",
    "reveal",
    "tick",
]

HOMES = dict.fromkeys(__all__, "classroom.study.verbs")
HOMES |= {"harden": "classroom.mine.hardening", "recall": "classroom.study.recall"}
HOMES |= {"examples": "classroom.study.examples"}
HOMES |= dict.fromkeys(("predict", "calibration"), "classroom.study.guesses")
_verbs, _ = lazy(__name__, HOMES)


def __getattr__(name: str) -> Any:
    """`check` and its friends, and `mine`: loaded when they are asked for."""
    if name == "mine":
        from workbook.classroom import mine

        return mine
    verb = _verbs(name)  # AttributeError for any other name
    from workbook.classroom.study.verbs import kindly

    return kindly(verb)


def __dir__() -> list[str]:
    return [*__all__, "mine", "__version__"]
