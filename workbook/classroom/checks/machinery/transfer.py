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
import typing
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.machinery import PathFinder
from multiprocessing.pool import Pool
from types import CodeType, FunctionType, ModuleType
from typing import Any, NewType

import cloudpickle

from workbook.classroom.checks.machinery.verdicts import (
    CACHED,
    WRAPPERS,
    failure,
    is_learners,
    kind_of,
    layers_of,
)

# How deep lists may be nested inside one another. Python 3.11 counts their levels as if they were
# calls, of which it allows a thousand; later versions have a limit that no setting moves.
MOST_LEVELS = 20_000
STACK_BYTES = 64 * 2**20  # of the thread that copies: it needs up to a kilobyte for each level
_packing = threading.Lock()  # these limits, and what cloudpickle is told, hold in all threads


def _lru_cache_again(cached: Any) -> tuple:
    """Make a cache again for the function that it wraps: it starts empty."""
    attributes = {name: v for name, v in vars(cached).items() if name != "cache_parameters"}
    return _cached, (cached.__wrapped__, cached.cache_parameters()), attributes


def _cached(function: Callable, parameters: dict[str, Any]) -> Callable:
    return lru_cache(**parameters)(function)


def _weak_reference_again(reference: weakref.ref) -> tuple:
    target = reference()
    return (weakref.ref, (target,)) if target is not None else (_dead_reference, ())


def _dead_reference() -> weakref.ref:
    return weakref.ref(set())


# What pickle would look up by its name. In a notebook there is nothing to import that has it.
BY_NAME: dict[type, Callable[[Any], tuple]] = {
    CACHED: _lru_cache_again,
    NewType: lambda made: (NewType, (made.__name__, made.__supertype__)),
}
if hasattr(typing, "TypeAliasType"):  # from Python 3.12 on
    BY_NAME[typing.TypeAliasType] = lambda made: (type(made), (made.__name__, made.__value__))
# What a notebook makes once and its functions share. It cannot be copied, but made again.
MADE_AGAIN: dict[type, Callable[[Any], tuple]] = {
    ThreadPoolExecutor: lambda pool: (ThreadPoolExecutor, (pool._max_workers,)),
    ProcessPoolExecutor: lambda pool: (ProcessPoolExecutor, (pool._max_workers,)),
    Pool: lambda pool: (Pool, (pool._processes,)),
    type(threading.Lock()): lambda lock: (threading.Lock, ()),
    type(threading.RLock()): lambda lock: (threading.RLock, ()),
    weakref.ref: _weak_reference_again,
}
DYNAMO = "torch._dynamo.eval_frame"  # the module of the functions that `torch.compile` returns
QUITTERS = ("ExitAutocall", "ZMQExitAutocall")  # a kernel's `exit`, which would end the kernel


class PackError(Exception):
    """An object that cannot be copied into another process; the message names it, or says why."""


class _Pickler(cloudpickle.Pickler):
    """Copies what cloudpickle does, and takes along what wraps a function, or is made only once."""

    def reducer_override(self, value: Any) -> Any:
        for name in ("stdout", "stderr"):
            if value is getattr(sys, name):
                return getattr, (sys, name)
        kind = type(value)
        if kind is CodeType:
            return _code_again, (value.co_filename, *self.dispatch_table[CodeType](value)[1])
        if kind.__name__ in QUITTERS:
            return getattr, (sys, "exit")
        if kind in MADE_AGAIN:
            return MADE_AGAIN[kind](value)
        if kind in BY_NAME and not _goes_by_name(value):
            return BY_NAME[kind](value)
        # A module of a class of its own, such as one that imports its parts at their first use.
        if issubclass(kind, ModuleType) and kind is not ModuleType:
            return import_module, (value.__name__,)
        compiled_from = _compiled_from(value)
        if compiled_from is not None and not _goes_by_name(value):
            return _itself, (compiled_from,)
        return super().reducer_override(value)


def _code_again(filename: str, *parts: Any) -> CodeType:
    """Code with the name of its file, which cloudpickle leaves out from 3.1.3 on: lines need it."""
    return CodeType(*parts).replace(co_filename=filename)


def _goes_by_name(value: Any) -> bool:
    """Whether an import in another process finds this very object under its name."""
    module = getattr(value, "__module__", None)
    by_value = {"__main__", *cloudpickle.cloudpickle.list_registry_pickle_by_value()}
    found = None if module in by_value else sys.modules.get(module)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def _compiled_from(value: Any) -> Any:
    """The function that torch has compiled to this one, or None: a check compiles nothing."""
    if type(value).__name__ == "ScriptFunction":
        return getattr(value, "_torchdynamo_inline", None)
    # A function that wraps a compiled one, by `functools.wraps`, has taken over its attributes.
    is_torchs = isinstance(value, FunctionType) and value.__globals__.get("__name__") == DYNAMO
    return getattr(value, "_torchdynamo_orig_callable", None) if is_torchs else None


def _itself(value: Any) -> Any:
    return value


def _dumps(value: Any) -> bytes:
    """Pickle a value, however deep it is nested, in a thread that has the stack for it."""
    limit = sys.getrecursionlimit()
    size = threading.stack_size(STACK_BYTES)
    try:
        sys.setrecursionlimit(MOST_LEVELS)
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(_pickled, value).result()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)


def _pickled(value: Any) -> bytes:
    with io.BytesIO() as file:
        try:
            _Pickler(file).dump(value)
        except (SystemExit, KeyboardInterrupt) as error:  # the user's own comes to the main thread
            raise pickle.PicklingError(failure(error)) from error
        return file.getvalue()


def pack(arguments: tuple) -> dict[str, Any]:
    """The arguments as a dict of plain values and bytes, for `unpack`. Raises: PackError."""
    with _packing:
        hidden = list(_not_importable())
        for module in hidden:
            cloudpickle.register_pickle_by_value(module)
        try:
            pickled = _dumps(arguments)
        except Exception as error:
            culprit = "your code cannot be copied"
            with suppress(Exception, SystemExit):  # an object may raise wherever it is looked at
                culprit = _culprit(arguments)
            raise PackError(f"{culprit} ({failure(error)})") from error
        finally:
            for module in hidden:
                cloudpickle.unregister_pickle_by_value(module)
    cells = {name: entry for name, entry in [*linecache.cache.items()] if _is_cell(entry)}
    return {"pickled": pickled, "cells": cells}


def unpack(packed: dict[str, Any]) -> tuple:
    """The arguments of `pack`, in another process. Raises: PackError."""
    linecache.cache.update(packed["cells"])
    try:
        arguments = pickle.loads(packed["pickled"])
    except BaseException as error:
        reason = failure(error)
        raise PackError(f"your code cannot be loaded in another process ({reason})") from error
    main = vars(sys.modules["__main__"])
    # The workers of a pool look a notebook's functions up by their names in `__main__`.
    for function in functions_of(arguments):
        if function.__globals__.get("__name__") == "__main__":
            main.update(function.__globals__)
    return arguments


def _not_importable() -> Iterator[ModuleType]:
    """The modules that an import would not find again, such as a file loaded by its path."""
    is_found = cache(_is_found)  # a package is looked for once, not for each of its modules
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name == "__main__" or not isinstance(file, str) or not is_learners(file):
            continue
        # Under another name than its own it is an alias, which has a real one.
        if getattr(module, "__name__", None) == name and not is_found(name.partition(".")[0]):
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
    """The Python functions of an attempt: methods of every kind, and what is wrapped, included."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from functions_of(item)
    elif isinstance(value, partial):
        yield from functions_of(value.func)
    elif isinstance(value, (FunctionType, *WRAPPERS)):
        yield from layers_of(value)
    else:
        kind = value if inspect.isclass(value) else type(value)
        members = [member for base in kind.__mro__ for member in vars(base).values()]
        for member in members:
            yield from layers_of(member)


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
