"""Text in, ids out: a text read in blocks, its ids stored as arrays and read without loading."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from workbook.files import atomic_write, unchanged
from workbook.tokenization.tokenizer import token_dtype

BLOCK = 1 << 18  # ids or characters in memory at a time


def read_text(path: str | os.PathLike) -> Iterator[str]:
    """The text of a UTF-8 file in blocks, its line ends as they are.

    Raises: ValueError where the file changes meanwhile.
    """
    path = Path(path)
    with unchanged(path), path.open(encoding="utf-8", newline="") as file:
        while block := file.read(BLOCK):
            yield block


def write_tokens(path: str | os.PathLike, ids: Iterable[int], vocab_size: int) -> int:
    """How many ids were written to `path`, a `.npy` file; they come one by one and go in blocks.

    Raises: ValueError where an id is not below `vocab_size` (a plain cast would store another id).
    """
    ids, dtype, written = iter(ids), token_dtype(vocab_size), 0
    with atomic_write(path, "wb") as file:
        _write_header(file, dtype, written)
        while block := list(islice(ids, BLOCK)):
            if min(block) < 0 or max(block) >= vocab_size:
                raise ValueError(
                    f"ids from {min(block)} to {max(block)} do not fit a vocabulary of "
                    f"{vocab_size:,}; pass the vocab_size of the tokenizer that made them"
                )
            file.write(np.array(block, dtype).tobytes())
            written += len(block)
        file.seek(0)
        _write_header(file, dtype, written)  # of the same length: it leaves room for larger counts
    return written


def join_tokens(path: str | os.PathLike, parts: Sequence[Path]) -> int:
    """How many ids the token files `parts`, of one type, hold, now in a row in `path`."""
    arrays = [read_tokens(part) for part in parts]
    with atomic_write(path, "wb") as file:
        _write_header(file, arrays[0].dtype, sum(map(len, arrays)))
        for array in arrays:
            for start in range(0, len(array), BLOCK):
                file.write(array[start : start + BLOCK].tobytes())
    return sum(map(len, arrays))


def _write_header(file, dtype: np.dtype, length: int) -> None:
    header = {"descr": dtype.newbyteorder("<").str, "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(file, header)


def read_tokens(path: str | os.PathLike) -> np.ndarray:
    """The ids in a token file, left on disk: only what is looked at is read.

    Raises: FileNotFoundError; ValueError where the file is damaged.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is no file; encode the corpus first, as 02_bpe does")
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} is no whole token file ({error}); remove it, and encode the corpus again"
        ) from error
