"""Files that are either whole or not there, and folders that one process works in at a time."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, where nobody keeps two processes apart
    fcntl = None

LOCK = ".lock"


@contextmanager
def atomic_write(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    """A file open for writing ("w" is UTF-8 text with "\\n" line ends, "wb" bytes).

    It takes `path`'s place only when the block ends without an error, and on every failure the
    old file is left as it was. The temporary file lies in the same folder, because a rename is
    atomic only inside one file system. The permissions are those of the old file, and of a new one
    what the umask leaves.
    """
    path = Path(path)
    make_folder(path.parent)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder where a file is to be written; rename it")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    # `tempfile` would give the owner alone a right to it, whatever the umask.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, mode.replace("w", "x"), **text) as file:
            with suppress(FileNotFoundError):  # before the first byte: nobody reads what he may not
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_folder(folder: Path) -> None:
    """Make a folder and those above it. Raises: OSError that says where a file is in the way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        first = next(part for part in (folder, *folder.parents) if os.path.lexists(part))
        raise type(error)(
            f"the folder {folder} cannot be made: {first} is a file; rename it, or take another"
        ) from error


@contextmanager
def unchanged(path: Path, before: tuple[int, int] | None = None) -> Iterator[None]:
    """Inside, a file may be read: ValueError where it changes meanwhile, or is replaced or removed.

    So nothing is made of two different texts. `before` is its `file_state` at an earlier time, if
    it must not have changed since then either.
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
    """The size of a file and when it was written to; None where it is missing."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


def changed(path: Path) -> ValueError:
    """The error for a file that is no longer what it was when reading began."""
    return ValueError(
        f"{path} changed while it was read, or was replaced or removed; wait until nothing writes"
        " to it any more, then call again"
    )


@contextmanager
def alone(folder: Path, really: bool = True) -> Iterator[None]:
    """Nothing; inside, no other process is at this folder: it waits, and finds what was made here.

    The lock is the system's, and ends with the process, however that ends: `lockf`, because a lock
    by `flock` would live on in workers that were forked meanwhile. Of several processes that work
    together, one asks for it and the others do not (`really`).
    """
    if not really or fcntl is None:
        yield
        return
    make_folder(folder)
    with (folder / LOCK).open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield
