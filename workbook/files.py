"""Files that are either whole or not there, and folders that one process works in at a time."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
    """Nothing; inside, no other process is at this folder: it waits, and finds what was made here.

    The lock is the system's, and ends with the process, however that ends: `lockf`, because a lock
    by `flock` would live on in workers that were forked meanwhile. Of several processes that work
    together, one asks for it and the others do not (`really`).
    """
    if not really or fcntl is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield
