"""Text in the form that compiled code takes: UTF-8 in memory, cut into documents.

    a b c <|endoftext|> d e f <|endoftext|> g h
    |---|               |---|               |-|      documents, and which special token follows

Nothing is copied without need: a string's own bytes are read where Python has them.
"""

import codecs
import ctypes
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workbook.files import changed
from workbook.tokenization.compiled.kernels import INT, INTS, ROWS, kernel
from workbook.tokenization.compiled.machine import (
    BLOCK,
    PADDING,
    byte,
    bytes_equal,
    padded,
    same_bytes,
    trailing_zeros,
)
from workbook.tokenization.pretokens import longest_first
from workbook.tokenization.spans import BLOCK as DECODED
from workbook.tokenization.spans import cuts_between, not_utf8

# Python raises what the function does; and no other thread runs, which it needs.
_utf8 = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.POINTER(ctypes.c_ssize_t))(
    ("PyUnicode_AsUTF8AndSize", ctypes.pythonapi)
)


class Documents(NamedTuple):
    """The documents of a text, and the special tokens between them."""

    text: np.ndarray  # uint8; at least `PADDING` bytes behind it can be read
    starts: np.ndarray  # int64, addresses
    ends: np.ndarray
    specials: np.ndarray  # int64, the number of the special token after each; -1 after the last


class SpecialTokens:
    """Special tokens for compiled code: of those that begin together, it finds the longest."""

    def __init__(self, special_tokens: Sequence[str]) -> None:
        self.tokens = longest_first(special_tokens)
        encoded = [token.encode() for token in self.tokens]
        self.text = padded(b"".join(encoded))
        self.address = self.text.ctypes.data
        self.edges = np.cumsum([0, *map(len, encoded)])
        self.shortest = min(map(len, encoded), default=1)


def documents_of(text: np.ndarray, special: SpecialTokens) -> Documents:
    """The documents between the special tokens of UTF-8 bytes, behind which more can be read."""
    start, end = text.ctypes.data, text.ctypes.data + len(text)
    found = np.empty((len(text) // special.shortest, 3), np.int64)
    found = found[: find_specials(start, end, special.address, special.edges, found)]
    starts, ends = np.append(start, found[:, 1]), np.append(found[:, 0], end)
    return Documents(text, starts, ends, np.append(found[:, 2], -1))


@kernel(INT, INT, INT, INTS, ROWS)
def find_specials(at, end, tokens, edges, found):
    """Write the start, the end and the number of each special token; return how many there are."""
    number = 0
    for block in range(at, end, BLOCK):
        candidates = np.uint64(0)  # where a first letter is
        for index in range(len(edges) - 1):
            candidates |= bytes_equal(block, byte(tokens + edges[index]))
        while candidates != 0:
            start = block + trailing_zeros(candidates)
            candidates &= candidates - np.uint64(1)
            for index in range(len(edges) - 1):
                stop = start + edges[index + 1] - edges[index]
                token = tokens + edges[index]
                if at <= start and stop <= end and same_bytes(start, token, stop - start):
                    found[number, 0], found[number, 1], found[number, 2] = start, stop, index
                    number, at = number + 1, stop
                    break
    return number


def utf8_of(text: str) -> np.ndarray:
    """The UTF-8 bytes of a string, to be used while it is held: Python keeps them with it.

    Raises: UnicodeEncodeError if the text holds a lone surrogate.
    """
    size = ctypes.c_ssize_t()
    address = ctypes.cast(_utf8(text, ctypes.byref(size)), ctypes.POINTER(ctypes.c_uint8))
    return np.ctypeslib.as_array(address, (size.value,))


def spans_of(data: np.ndarray, special_tokens: Sequence[str]) -> Iterator[np.ndarray]:
    """UTF-8 bytes in memory in parts like those of a file, which stay in the processor's cache."""

    def read(start: int, length: int) -> bytes:
        return data[start : start + length].tobytes()

    for start, end in pairwise(cuts_between(read, len(data), special_tokens)):
        if end + PADDING <= len(data):
            yield data[start:end]
        else:  # what lies behind the bytes may not be read
            yield padded(data[start:end])[: end - start]


def read_spans(path: Path, cuts: Sequence[int]) -> Iterator[np.ndarray]:
    """The bytes of a file between the cuts, each span in the memory of the one before.

    Raises: ValueError if the file is not UTF-8, or ends before the last cut.
    """
    longest = max(end - start for start, end in pairwise(cuts))
    memory = padded(bytes(longest))
    with path.open("rb") as file:
        file.seek(cuts[0])
        for start, end in pairwise(cuts):
            span = memory[: end - start]
            if file.readinto(span) < len(span):
                raise changed(path)
            check_utf8(path, start, span)
            yield span


def check_utf8(path: Path, start: int, data: np.ndarray) -> None:
    """Raise ValueError if the bytes of a file that begin at `start` are not UTF-8.

    It works block by block: strings as long as a span would fragment the process's memory.
    """
    at = 0
    while at < len(data):
        piece = data[at : at + DECODED]
        try:
            _, used = codecs.utf_8_decode(piece, "strict", at + len(piece) == len(data))
        except UnicodeDecodeError as error:
            raise not_utf8(path, start + at, error) from error
        at += used
