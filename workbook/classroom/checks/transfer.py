"""How a learner's functions, classes and values travel into the process that judges them.

What is defined in a notebook goes as a whole (by cloudpickle), with the source of its cells, so
that a verdict can quote the line. What comes from a file goes by its name, and is imported again;
if an import would not find that file, it goes as a whole, too.
"""

import inspect
import io
import linecache
import os
import pickle
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from importlib.machinery import PathFinder
from multiprocessing.pool import Pool
from types import FunctionType, MethodType, ModuleType
from typing import Any

import cloudpickle

from workbook.classroom.checks.verdicts import is_learners, kind_of

# What a notebook makes once and its functions share. It cannot be copied, but made again.
MADE_AGAIN = {
    ThreadPoolExecutor: lambda pool: (ThreadPoolExecutor, (pool._max_workers,)),
    ProcessPoolExecutor: lambda pool: (ProcessPoolExecutor, (pool._max_workers,)),
    Pool: lambda pool: (Pool, (pool._processes,)),
    type(threading.Lock()): lambda lock: (threading.Lock, ()),
    type(threading.RLock()): lambda lock: (threading.RLock, ()),
}
QUITTERS = ("ExitAutocall", "ZMQExitAutocall")  # a kernel's `exit`, which would end the kernel


class PackError(Exception):
    """An object that cannot be copied into another process; the message names it."""


class _Pickler(cloudpickle.Pickler):
    """Copies what cloudpickle does, and makes pools, locks and the standard output again."""

    def reducer_override(self, value: Any) -> Any:
        for name in ("stdout", "stderr"):
            if value is getattr(sys, name):
                return getattr, (sys, name)
        if type(value).__name__ in QUITTERS:
            return getattr, (sys, "exit")
        again = MADE_AGAIN.get(type(value))
        return again(value) if again else super().reducer_override(value)


def _dumps(value: Any) -> bytes:
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


def pack(arguments: tuple) -> dict[str, Any]:
    """The arguments as a dict of plain values and bytes, for `unpack`. Raises: PackError."""
    hidden = list(_not_importable())
    for module in hidden:
        cloudpickle.register_pickle_by_value(module)
    try:
        pickled = _dumps(arguments)
    except Exception as error:
        raise PackError(f"{_culprit(arguments)} ({type(error).__name__}: {error})") from error
    finally:
        for module in hidden:
            cloudpickle.unregister_pickle_by_value(module)
    cells = {name: entry for name, entry in linecache.cache.items() if _is_cell(entry)}
    return {"pickled": pickled, "cells": cells}


def unpack(packed: dict[str, Any]) -> tuple:
    """The arguments of `pack`, in another process. Raises: whatever an import there raises."""
    linecache.cache.update(packed["cells"])
    arguments = pickle.loads(packed["pickled"])
    main = vars(sys.modules["__main__"])
    # The workers of a pool look a notebook's functions up by their names in `__main__`.
    for function in functions_of(arguments):
        if function.__globals__.get("__name__") == "__main__":
            main.update(function.__globals__)
    return arguments


def _not_importable() -> Iterator[ModuleType]:
    """The modules that an import would not find again, such as a file loaded by its path."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name == "__main__" or not isinstance(file, str) or not is_learners(file):
            continue
        # Under another name than its own it is an alias, which has a real one.
        if getattr(module, "__name__", None) == name and not _is_found(name.partition(".")[0]):
            yield module


def _is_found(package: str) -> bool:
    """Whether an import would find this package, and not another one of its name."""
    spec = PathFinder.find_spec(package)
    loaded = getattr(sys.modules.get(package), "__file__", None) or (spec and spec.origin)
    return bool(spec) and os.path.realpath(loaded or "") == os.path.realpath(spec.origin or "")


def _is_cell(entry: Any) -> bool:
    """Whether an entry of linecache has no file that it could be read from again."""
    return isinstance(entry, tuple) and len(entry) == 4 and entry[1] is None


def functions_of(value: Any) -> Iterator[FunctionType]:
    """The Python functions that an attempt consists of, its class's methods included."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from functions_of(item)
    elif isinstance(value, partial):
        yield from functions_of(value.func)
    elif isinstance(value, MethodType):
        yield from functions_of(value.__func__)
    elif isinstance(value, FunctionType):
        yield value
    else:
        kind = value if inspect.isclass(value) else type(value)
        members = [member for base in kind.__mro__ for member in vars(base).values()]
        yield from (member for member in members if isinstance(member, FunctionType))


def _culprit(arguments: tuple) -> str:
    """Name what cannot be copied: a variable that the code uses, or the object itself."""
    for function in functions_of(arguments):
        used = {name: function.__globals__.get(name) for name in function.__code__.co_names}
        for name, value in used.items():
            try:
                _dumps(value)
            except Exception:
                return f"`{name}` is {kind_of(value)}, which cannot be copied"
    return f"{kind_of(arguments[1] if len(arguments) > 1 else arguments)} cannot be copied"
