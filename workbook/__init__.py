"""The CS336 workbook: a language model from nothing, and answers that prove themselves."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers; to run it would load what nobody asked for
    from workbook.classroom import mine as mine
    from workbook.classroom.study.hardening import harden
    from workbook.classroom.study.verbs import answer, check, hint, look_up, reveal, tick

__version__ = "0.2.0"
__all__ = ["answer", "check", "harden", "hint", "look_up", "reveal", "tick"]


def lazy(package: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`: a public name's module is loaded when the name is asked for.

    `homes` has the module of each name. So `import workbook.tokenization` loads no numba, and
    `from workbook.tokenization import train_bpe` no more than it needs.
    """

    def get(name: str) -> Any:
        if name not in homes:
            known = ", ".join(homes)
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {known}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return get


_verbs = lazy(
    __name__,
    {**dict.fromkeys(__all__, "classroom.study.verbs"), "harden": "classroom.study.hardening"},
)


def __getattr__(name: str) -> Any:
    """`check` and its friends, and `mine`: loaded when they are asked for."""
    if name == "mine":
        return import_module(f"{__name__}.classroom.mine")
    verb = _verbs(name)  # AttributeError for any other name
    return import_module(f"{__name__}.classroom.study.verbs").kindly(verb)
