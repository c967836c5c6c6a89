"""Files that are written whole or not at all, folders for one process at a time, notebooks."""

import builtins
import gc
import json
import os
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout
from tqdm import tqdm

LOCK = ".lock"
SILENT_SECONDS = 1  # seconds that a process waits before it says so
LEFT_OVER = 24 * 3600  # seconds after which no process writes a file any more


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """A file open for writing ("w" is UTF-8 text with "\\n" line ends, "wb" bytes).

    It takes `path`'s place only when the block ends without an error, and on every failure the
    old file is left as it was. The temporary file lies in the same folder, because a rename is
    atomic only inside one file system. An old file's permissions are kept; those of a new one are
    what the umask leaves.
    """
    path = Path(path)
    make_folder(path.parent)
    if path.is_dir():
        raise IsADirectoryError(
            f"{path} is a folder, but a file is to be written there; rename the folder"
        )
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    remove_leftovers(path.parent)
    # `tempfile` would let only the owner read it, whatever the umask.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, mode.replace("w", "x"), **text) as file:
            with suppress(FileNotFoundError):  # before the first byte, so that none leaks
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            error.filename = str(path)  # a full disk does not say which file it was for
        raise


def remove_leftovers(folder: Path, name: str = "*", age: float = LEFT_OVER) -> None:
    """Remove from a folder what processes that were killed have left of their writes.

    `name` is that of the file that they wrote. Whoever holds the lock under which it is written
    removes what is of any `age`, in seconds: a corpus that is half written takes as much of the
    disk as a whole one.
    """
    for left in folder.glob(f".{name}.{'[0-9a-f]' * 16}.tmp"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime >= age:
                left.unlink()


def write_json(path: Path, content: object) -> None:
    """Write `content` to a JSON file, whole or not at all."""
    with atomic_write(path) as file:
        json.dump(content, file, indent=1, ensure_ascii=False)
        file.write("\n")


def notebooks_in(folder: str | os.PathLike[str]) -> list[Path]:
    """List the notebooks of a folder by name, without hidden files and pipes.

    macOS leaves a `._01_unicode.ipynb` beside each file on some disks, and a save of Jupyter's that
    is cut short a `.~01_unicode.ipynb`. No file browser shows them.
    """
    return [path for path in files_like(folder, "[!.]*.ipynb") if not path.is_fifo()]


def files_like(folder: str | os.PathLike[str], pattern: str) -> list[Path]:
    """List by name what matches a pattern in a folder; nothing if there is no such folder.

    Raises: OSError for one that cannot be read, which `glob` takes for an empty one: what lies in
    it would be made again, over what is there.
    """
    if not os.path.isdir(folder):
        return []
    return sorted(path for path in Path(folder).iterdir() if path.match(pattern))


def make_folder(folder: Path) -> None:
    """Make a folder and those above it. Raises: OSError that names a file in the way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        first = next(part for part in (folder, *folder.parents) if os.path.lexists(part))
        raise type(error)(
            f"cannot make the folder {folder}: {first} is a file; rename it, or name another folder"
        ) from error


def free_space(place: Path) -> tuple[Path, int]:
    """The innermost folder at or above a place that is there, and the free bytes of its disk."""
    place = place.absolute()
    folder = next(folder for folder in (place, *place.parents) if folder.is_dir())
    return folder, shutil.disk_usage(folder).free


def expect_room(target: Path, size: int) -> None:
    """Raise OSError if the disk has no room for `size` bytes at `target`."""
    folder, free = free_space(target)
    if free < size:
        raise OSError(
            f"{target.name} needs {size / 1e9:,.2f} GB, and {folder} has {free / 1e9:,.2f} GB free;"
            " make room, or set WORKBOOK_DATA to a folder elsewhere"
        )


@contextmanager
def unchanged(path: Path, before: tuple[int, int] | None = None) -> Iterator[None]:
    """Guard the reading of a file: ValueError if it changes meanwhile, or is replaced or removed.

    So nothing is made from two different texts. `before` is its `file_state` at an earlier time,
    if it must not have changed since then either.
    """
    before = before or file_state(path)
    try:
        yield
    except (OSError, ValueError) as error:
        if file_state(path) != before:
            raise changed(path) from error
        raise
    if file_state(path) != before:
        raise changed(path)


def file_state(path: Path) -> tuple[int, int] | None:
    """The size of a file and when it was last written to; None if it is missing."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return state.st_size, state.st_mtime_ns


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes, read a block at a time."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def changed(path: Path) -> ValueError:
    """The error for a file that is no longer what it was when reading began."""
    return ValueError(
        f"{path} changed while it was read, or was replaced or removed; wait until nothing writes"
        " to it any more, then try again"
    )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder: one thread of one process works in it at a time.

    Another thread or process that wants the lock waits, says so if that takes long, and finds what
    was made here. A thread must not lock the same folder twice. The system releases the lock with
    the process, however that ends; processes that were forked meanwhile do not hold it.
    A folder that we may only read, such as one that a class shares, needs no lock: whoever finds
    all that is wanted there goes on, and whoever wants to make something fails with its name.
    """
    folder = Path(folder).resolve()
    make_folder(folder)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=SILENT_SECONDS)
    except Timeout:
        say(f"waiting until {folder} is free: another process or thread is using it")
        lock.acquire()
    except OSError:
        if os.access(folder, os.W_OK):
            raise
    try:
        yield
    finally:
        lock.release()


@contextmanager
def no_collection() -> Iterator[None]:
    """Let Python not look for cycles of objects while a block makes thousands that have none.

    It would look through all objects of the process, again and again.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def progress_bar(*args: Any, **options: Any) -> tqdm:
    """A bar of tqdm's for somebody who watches, at a terminal or in a notebook; none in a log.

    A notebook's standard error is no terminal, but shows a bar as one does. There a builtin of
    IPython's is at hand while a cell runs.
    """
    return tqdm(*args, disable=False if hasattr(builtins, "get_ipython") else None, **options)


def say(words: str) -> None:
    """Tell the user on standard error, unless nobody listens there: work goes on all the same."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):  # a broken pipe; a closed file
            # At a terminal, over the progress bar that may stand there; the bar comes again below.
            over = "\r\x1b[K" if sys.stderr.isatty() else ""
            print(over + words, file=sys.stderr, flush=True)
