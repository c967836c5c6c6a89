"""The records of a study folder: JSON files in `.workbook/`, of which nothing is ever lost.

`RecordEntry` is what a record keeps under a name; its subclasses are the list of all records. A
file may hold anything: a full disk cuts it short, git writes its conflict marks into it, somebody
edits it. What can be understood counts, and one bad entry costs no other. A file that holds more
than was understood is kept aside, as `NAME-broken-....json`, before it is written over, and that is
said.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args, get_origin

from workbook.files import atomic_write, locked, say, write_json

VERSION = 3


@dataclass
class RecordEntry:
    """What a record keeps under one name. A subclass refuses, by ValueError, what cannot be."""

    file: ClassVar[str]  # in `.workbook/`
    head: ClassVar[dict[str, Any]] = {}  # what is written to the file beside its content
    gone: ClassVar[tuple[str, ...]] = ()  # fields that an earlier version of the workbook stored

    @classmethod
    def content(cls, stored: dict[str, Any]) -> dict[str, Any]:
        """What can be understood of such a file, without its version: here, entries by name."""
        return read_entries(cls, stored)


Kind = TypeVar("Kind", bound=RecordEntry)


class LaterVersionError(OSError):
    """A record was written by a later version of the workbook: it is not touched."""


def read(folder: Path, kind: type[Kind]) -> dict[str, Any]:
    """Read the record of a kind from a folder `.workbook`; keep it aside first if it is damaged."""
    path = folder / kind.file
    content, is_all = _understood(path, kind)
    if is_all:
        return content
    try:
        with locked(folder):  # so that no other kernel writes to it, or keeps it aside, meanwhile
            return _mended(path, kind)
    except LaterVersionError:
        raise
    except OSError as error:  # a full disk, or a folder that we may only read
        say(
            f"{path} cannot be read, or not all of it, and stays as it is: no copy of it can be"
            f" kept aside ({error})."
        )
        return content


@contextmanager
def changing(folder: Path, kind: type[Kind]) -> Iterator[dict[str, Any]]:
    """Give the content of a record, to be changed in place; store it when the block ends."""
    path = folder / kind.file
    with locked(folder):  # other kernels write to it too
        content = _mended(path, kind)
        yield content
        _write(path, kind, content)


def read_entries(kind: type[Kind], stored: Any) -> dict[str, Kind]:
    """Those of the stored entries that can be understood, by name."""
    understood = {}
    for name, entry in as_dict(stored).items():
        with suppress(ValueError, TypeError, ArithmeticError, RecursionError):
            if is_text(name):
                understood[name] = _entry(kind, entry)
    return understood


def is_text(value: Any) -> bool:
    """Whether a value is a text that can be written: JSON may hold half of a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_dict(stored: Any) -> dict[str, Any]:
    """What JSON calls an object; an empty one for anything else."""
    return stored if isinstance(stored, dict) else {}


def _entry(kind: type[Kind], stored: Any) -> Kind:
    """Make an entry of what is stored. Raises: ValueError, TypeError, ArithmeticError."""
    if not isinstance(stored, dict):
        raise TypeError("expected an object")
    known = {}
    for each in fields(kind):
        if each.name in stored:
            known[each.name] = stored[each.name]
            if not _fits(known[each.name], each.type):
                raise TypeError(f"{each.name} is of another type")
    json.dumps(known, ensure_ascii=False, allow_nan=False).encode()  # ValueError: cannot be written
    return kind(**known)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value from JSON is of the type that a field is annotated with."""
    if get_origin(kind) is list:
        (member,) = get_args(kind)
        return isinstance(value, list) and all(_fits(one, member) for one in value)
    if isinstance(value, bool):  # which Python takes for an int
        return kind is bool
    if isinstance(value, int) and isinstance(0.0, kind):
        return True  # a whole number where a float is meant
    return isinstance(value, kind)


def _understood(path: Path, kind: type[Kind]) -> tuple[dict[str, Any], bool]:
    """What a file holds that can be understood, and whether that is all that it holds."""
    nothing = kind.content({})
    try:
        path.lstat()
    except PermissionError:  # of a folder: nobody knows what it holds
        return nothing, False
    except OSError:
        return nothing, True
    has_doubles = False

    def as_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_doubles
        members = dict(pairs)
        has_doubles |= len(members) < len(pairs)  # the last of the same name counts
        return members

    try:
        if not path.is_file():  # a folder, a pipe, which would let us wait, a link to nowhere
            return nothing, False
        # From bytes, JSON is read in UTF-8, 16 and 32, with a byte order mark or without.
        stored = json.loads(path.read_bytes(), object_pairs_hook=as_object)
        version = as_dict(stored).get("version")
        if isinstance(version, int) and not isinstance(version, bool):
            if version > VERSION:
                raise LaterVersionError(
                    f"{path} is of a later version of the workbook: update this one"
                )
            del stored["version"]
        content = kind.content(stored)
        return content, not has_doubles and _holds(content, stored)
    # The first if another kernel has just kept it aside: our caller looks again, under the lock.
    except (FileNotFoundError, PermissionError, ValueError, RecursionError):
        return nothing, False


def _holds(content: Any, stored: Any) -> bool:
    """Whether what was understood, written again, would hold all that is stored."""
    if isinstance(content, RecordEntry):
        stored = {name: value for name, value in stored.items() if name not in content.gone}
        content = asdict(content)
    if not (isinstance(content, dict) and isinstance(stored, dict)):
        return content == stored
    return all(name in content and _holds(content[name], stored[name]) for name in stored)


def _mended(path: Path, kind: type[Kind]) -> dict[str, Any]:
    """What a file holds that can be understood. One that holds more is kept aside, and said.

    Only whoever holds the folder's lock may call this.
    """
    content, is_all = _understood(path, kind)
    if is_all:
        return content
    names = (f"{path.stem}-broken-{number}{path.suffix}" for number in count(time.time_ns()))
    aside = next(path.with_name(name) for name in names if not os.path.lexists(path.parent / name))
    if content == kind.content({}):
        os.replace(path, aside)
        say(f"{path} cannot be read: it is kept as {aside.name}, and a new one begins.")
    else:
        # A copy: if we are killed between the two steps, what can be understood is still there.
        with atomic_write(aside, "wb") as file:
            file.write(path.read_bytes())
        _write(path, kind, content)
        say(f"Some of {path} cannot be read: it is kept as {aside.name}, and the rest counts.")
    return content


def _write(path: Path, kind: type[Kind], content: dict[str, Any]) -> None:
    write_json(path, kind.head | _plain(content))


def _plain(content: Any) -> Any:
    """Turn entries, at any depth, into what JSON can hold."""
    if isinstance(content, RecordEntry):
        return asdict(content)
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    return content
