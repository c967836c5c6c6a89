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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbook.files import atomic_write

MARK = ".workbook"
PATIENCE = 1.0  # seconds that another kernel may hold the file before it is taken for dead
LISTS = ("attempted", "correct", "answered")  # of parts; "" stands for a problem without parts


class Progress:
    """The record of one study folder.

    By problem: the parts attempted, those that were correct once, those that have an answer, and
    under "source" the code of the last attempt at each part that passed.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        self.path = self.folder / MARK / "progress.json"

    def read(self) -> dict[str, dict]:
        """Read the record of every problem so far; move a file aside that cannot be read."""
        try:
            problems = json.loads(self.path.read_text(encoding="utf-8"))["problems"]
            for entry in problems.values():
                if not (isinstance(entry["source"], dict) and _are_lists_of_str(entry)):
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
        with _locked(self.path.with_suffix(".lock")):
            problems = self.read()
            yield problems.setdefault(problem, {**{key: [] for key in LISTS}, "source": {}})
            with atomic_write(self.path) as file:
                json.dump({"version": 1, "problems": problems}, file, indent=1, ensure_ascii=False)

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
    if status != "not attempted":
        _record(lambda: _note_check(problem, part or "", status == "correct", attempt))


def record_answer(problem: str, part: str | None, text: str) -> None:
    """Note in the current study folder, if any, that a part is answered, or, by an empty text,
    that it no longer is. Never raises."""
    _record(lambda: _note_answer(problem, part or "", bool(text.strip())))


def _record(note: Callable[[], None]) -> None:
    """Keep what goes wrong here out of the learner's cell: a full disk is no wrong attempt."""
    try:
        note()
    except Exception as error:
        _warn(f"Your progress could not be noted ({type(error).__name__}: {error}).")


def _note_check(problem: str, part: str, is_correct: bool, attempt: Any) -> None:
    if (progress := current()) is None:
        return
    with progress.changing(problem) as entry:
        _include(entry["attempted"], part)
        if is_correct:
            _include(entry["correct"], part)
            entry["source"][part] = source_of(attempt)


def _note_answer(problem: str, part: str, is_answered: bool) -> None:
    if (progress := current()) is None:
        return
    if not is_answered and part not in progress.read().get(problem, {}).get("answered", []):
        return
    with progress.changing(problem) as entry:
        if is_answered:
            _include(entry["answered"], part)
        else:
            entry["answered"].remove(part)


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


@contextmanager
def _locked(lock: Path) -> Iterator[None]:
    """Hold the lock file; take over one that stays, for the kernel that left it died."""
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            break
        except (FileExistsError, PermissionError):  # the second on Windows, while it is removed
            if time.monotonic() > give_up:
                break
            time.sleep(0.01)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _are_lists_of_str(entry: dict) -> bool:
    return all(
        isinstance(entry[key], list) and all(isinstance(part, str) for part in entry[key])
        for key in LISTS
    )


def _include(parts: list[str], part: str) -> None:
    """Add a part once, in order."""
    parts[:] = sorted({*parts, part})


def _warn(message: str) -> None:
    """Print one line beside the learner's output, not in it."""
    print(message, file=sys.stderr)
