"""What the learner has attempted, solved and answered, kept in `study/.workbook/progress.json`.

It is written only by notebooks and commands that run inside a study folder: one that holds the
folder `.workbook`. The worked notebooks lie elsewhere and leave no trace.
"""

import ast
import inspect
import json
import linecache
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbook.files import locked, write_json

MARK = ".workbook"
# Of parts; "" stands for a problem without parts.
LISTS = ("attempted", "correct", "almost", "answered")


class Progress:
    """The record of one study folder.

    By problem: the parts attempted, those that were correct once, those that were almost correct
    but never more, those that have an answer, and under "source" the code of the last attempt at
    each part that was correct, or almost.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        self.path = self.folder / MARK / "progress.json"

    def read(self) -> dict[str, dict]:
        """Read the record of every problem so far; move a file aside that cannot be read."""
        try:
            problems = json.loads(self.path.read_text(encoding="utf-8"))["problems"]
            for entry in problems.values():
                entry.setdefault("almost", [])  # records of earlier versions have none
                kinds = [type(entry[key]) for key in (*LISTS, "source")]
                if kinds != [list, list, list, list, dict]:
                    raise ValueError
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError):
            aside = self.path.with_name(f"progress-broken-{time.time_ns()}.json")
            os.replace(self.path, aside)
            _warn(
                f"{self.path} could not be read. It is kept as {aside.name}; counting starts anew."
            )
            return {}
        return problems

    @contextmanager
    def changing(self, problem: str) -> Iterator[dict]:
        """Give the record of one problem, to be changed in place; store it when the block ends."""
        with locked(self.path.parent):  # other kernels write to it too
            problems = self.read()
            yield problems.setdefault(problem, {**{key: [] for key in LISTS}, "source": {}})
            write_json(self.path, {"version": 1, "problems": problems})

    def forget(self, problem: str) -> None:
        """Start counting anew for one problem."""
        with self.changing(problem) as entry:
            entry.update({key: [] for key in LISTS}, source={})


def current(start: str | os.PathLike | None = None) -> Progress | None:
    """Find the record of the study folder around `start`, by default the working directory."""
    here = Path(start or Path.cwd()).resolve()
    return next((Progress(up) for up in (here, *here.parents) if (up / MARK).is_dir()), None)


def record_check(problem: str, part: str | None, status: str, attempt: Any) -> None:
    """Note in the current study folder, if any, that an attempt was checked. Never raises."""
    if status == "not attempted":
        return
    part = part or ""
    with _stopping_no_cell():
        if progress := current():
            with progress.changing(problem) as entry:
                _include(entry["attempted"], part)
                if status == "correct":
                    _include(entry["correct"], part)
                    entry["almost"] = [other for other in entry["almost"] if other != part]
                elif status == "almost" and part not in entry["correct"]:
                    _include(entry["almost"], part)
                else:
                    return
                entry["source"][part] = source_of(attempt)


def record_answer(problem: str, part: str | None, text: str) -> None:
    """Note in the current study folder, if any, that a part is answered, or, by an empty text,
    that it no longer is. Never raises."""
    part = part or ""
    with _stopping_no_cell():
        progress = current()
        if progress and text.strip():
            with progress.changing(problem) as entry:
                _include(entry["answered"], part)
        elif progress and part in progress.read().get(problem, {}).get("answered", []):
            with progress.changing(problem) as entry:
                entry["answered"].remove(part)


@contextmanager
def _stopping_no_cell() -> Iterator[None]:
    """Keep what goes wrong here out of the learner's cell: a full disk is no wrong attempt."""
    try:
        yield
    except Exception as error:
        _warn(f"Your progress could not be noted ({type(error).__name__}: {error}).")


def source_of(attempt: Any) -> str:
    """Get the code of a function or class, of each in a tuple; the repr of any other value."""
    if isinstance(attempt, tuple) and any(callable(item) for item in attempt):
        return "\n\n".join(source_of(item) for item in attempt)
    try:
        return inspect.getsource(attempt)
    except (TypeError, OSError):
        return (_class_source(attempt) if isinstance(attempt, type) else None) or repr(attempt)


def _class_source(cls: type) -> str | None:
    """Get the code of a class from a notebook cell, through the lines that its methods come from.

    `inspect` looks for a class in the file of its module, and a notebook has none.
    """
    for method in vars(cls).values():
        code = getattr(inspect.unwrap(method), "__code__", None) if callable(method) else None
        if code is None:
            continue
        cell = "".join(linecache.getlines(code.co_filename))
        for node in ast.walk(ast.parse(cell)):
            if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                return ast.get_source_segment(cell, node)
    return None


def _include(parts: list[str], part: str) -> None:
    """Add a part once, in order."""
    parts[:] = sorted({*parts, part})


def _warn(message: str) -> None:
    """Print one line beside the learner's output, not in it."""
    print(message, file=sys.stderr)
