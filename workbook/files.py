"""Files that are either whole or not there, and folders that one process works in at a time."""

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, where two processes are not kept apart
    fcntl = None

LOCK = ".lock"
_thread_locks: dict[Path, threading.Lock] = {}  # by folder
if hasattr(os, "register_at_fork"):  # a copy of a held lock would never be released
    os.register_at_fork(after_in_child=_thread_locks.clear)


@contextmanager
def atomic_write(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    """A file open for writing ("w" is UTF-8 text with "\\n" line ends, "wb" bytes).

    It takes `path`'s place only when the block ends without an error, and on every failure the
    old file is left as it was. The temporary file lies in the same folder, because a rename is
    atomic only inside one file system.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with open(handle, mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def alone(folder: Path, really: bool = True) -> Iterator[None]:
    """Hold the lock of a folder: one thread of one process works in it at a time.

    Whoever else asks says that it waits, waits, and then finds what was made here. Of several
    processes that work together, one asks and the others do not (`really`). Do not ask twice.

    The system's lock ends with the process, however that ends. It is `lockf`, because a lock by
    `flock` would live on in workers that were forked meanwhile; but all threads of a process hold
    it together, so a lock of Python's keeps those apart.
    """
    if not really:
        yield
        return
    folder = Path(folder).resolve()
    if folder.is_file():
        raise NotADirectoryError(f"{folder} is a file; give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        thread_lock = _thread_locks.setdefault(folder, threading.Lock())
        if not thread_lock.acquire(blocking=False):
            _say_who_waits(folder)
            thread_lock.acquire()
        held.callback(thread_lock.release)
        if fcntl is not None:
            file = held.enter_context((folder / LOCK).open("w"))
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):  # held: which of the two, the system decides
                _say_who_waits(folder)
                fcntl.lockf(file, fcntl.LOCK_EX)
        yield


def _say_who_waits(folder: Path) -> None:
    words = f"waiting until {folder} is free: another process or thread works in it"
    print(words, file=sys.stderr, flush=True)
