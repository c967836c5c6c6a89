"""Text in the form that compiled code takes: padded bytes, checked, cut into documents."""

import codecs
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workbook.files import changed
from workbook.tokenization.compiled.machine import padded
from workbook.tokenization.pretokens import longest_first
from workbook.tokenization.spans import BLOCK, not_utf8


class Documents(NamedTuple):
    """A text, the addresses where its documents start and end, and the special tokens between."""

    text: np.ndarray  # uint8, padded at the end, with a 0 after each document
    starts: np.ndarray  # int64
    ends: np.ndarray  # int64
    specials: list[bytes]  # the special token after each document but the last


def special_bytes(special_tokens: Sequence[str]) -> re.Pattern[bytes]:
    """A pattern that finds special tokens in bytes: of those that begin together, the longest."""
    specials = [re.escape(token.encode()) for token in longest_first(special_tokens)]
    return re.compile(b"|".join(specials) or b"(?!)")


def documents_of(data: bytes, special: re.Pattern[bytes]) -> Documents:
    """The documents between the special tokens of UTF-8 bytes."""
    text, matches = padded(data), list(special.finditer(data))
    edges = [0, *(edge for match in matches for edge in match.span()), len(data)]
    starts, ends = np.array(edges, np.int64).reshape(-1, 2).T
    text[ends] = 0  # the special token is not read again
    address = text.ctypes.data
    return Documents(text, starts + address, ends + address, [match[0] for match in matches])


def read_documents(
    path: Path, special_tokens: Sequence[str], cuts: Sequence[int]
) -> Iterator[Documents]:
    """The documents of a file, span by span between the cuts.

    Raises: ValueError if the file is not UTF-8, or ends before the last cut.
    """
    special = special_bytes(special_tokens)
    with path.open("rb") as file:
        for start, end in pairwise(cuts):
            file.seek(start)
            data = file.read(end - start)
            if len(data) < end - start:
                raise changed(path)
            check_utf8(path, start, data)
            yield documents_of(data, special)


def check_utf8(path: Path, start: int, data: bytes) -> None:
    """Raise ValueError if the bytes of a file that begin at `start` are not UTF-8.

    It works block by block: strings as long as a span would fragment the process's memory.
    """
    at, view = 0, memoryview(data)
    while at < len(data):
        piece = view[at : at + BLOCK]
        try:
            _, used = codecs.utf_8_decode(piece, "strict", at + len(piece) == len(data))
        except UnicodeDecodeError as error:
            raise not_utf8(path, start + at, error) from error
        at += used
