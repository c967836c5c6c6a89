"""What packages hand out before anything is loaded: their names, and the version of this one.

It imports nothing of ours, so that each chapter can stand on it.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

__version__ = "0.2.0"


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
