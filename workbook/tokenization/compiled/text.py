"""Text in the form that compiled code takes: UTF-8 in memory, cut into documents.

    I t ' s <|endoftext|> t h e _ o w l <|endoftext|> h o o t s
    |-----|               |-----------|               |-------|      documents

Nothing is copied without need: a string's own bytes are read where Python has them.
"""

import codecs
import ctypes
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from workbook.files import changed
from workbook.tokenization.compiled import machine
from workbook.tokenization.compiled.kernels import INT, compiled, kernel
from workbook.tokenization.compiled.machine import PADDING, array_at, byte, padded, word
from workbook.tokenization.compiled.scan import not_ascii_at
from workbook.tokenization.pretokens import longest_first
from workbook.tokenization.spans import cuts_between, not_utf8, place_to_cut

COPIED = 1 << 12  # bytes at the end of a text in which a place for its last cut is looked for
NO_SPECIAL = -1  # the "id" where a text ends without a special token
# What compiled code is told of special tokens: how many there are, and the addresses of all else.
NUMBER, LETTERS, EDGES, IDS = range(0, 32, 8)

# Python raises what the function does; and no other thread runs, which it needs.
_utf8 = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.POINTER(ctypes.c_ssize_t))(
    ("PyUnicode_AsUTF8AndSize", ctypes.pythonapi)
)


class SpecialTokens:
    """Special tokens for compiled code, the longest first, as bytes one after the other."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        # Of those that begin at one place, the first that matches wins: so the longest.
        self.tokens = longest_first(ids)
        encoded = [token.encode() for token in self.tokens]
        self.letters = padded(b"".join(encoded))
        # Token i lies between edges i and i + 1.
        self.edges = np.cumsum([0, *map(len, encoded)])
        self.ids = np.array([ids[token] for token in self.tokens], np.int64)
        held = self.letters, self.edges, self.ids
        self.facts = np.array([len(self.ids), *(array.ctypes.data for array in held)])
        self.address = self.facts.ctypes.data


@compiled
def next_special(at, end, special):
    """Where the first special token from an address begins and ends, and its id.

    Without one, both are the end of the text. `special` is the address of `SpecialTokens`.
    """
    number = np.int64(word(special + NUMBER))
    letters = np.int64(word(special + LETTERS))
    edges = array_at(np.int64(word(special + EDGES)), number + 1)
    for block in range(at, end, machine.BLOCK):
        # 64 bytes at a time: most blocks hold no such letter, and are done.
        candidates = np.uint64(0)  # where a first letter is
        for index in range(number):
            candidates |= machine.bytes_equal(block, byte(letters + edges[index]))
        while candidates != 0:
            start = block + machine.trailing_zeros(candidates)
            # Clears the lowest bit that is set.
            candidates &= candidates - np.uint64(1)
            for index in range(number):
                token = letters + edges[index]
                stop = start + edges[index + 1] - edges[index]
                if stop <= end and machine.same_bytes(start, token, stop - start):
                    ids = np.int64(word(special + IDS))
                    return start, stop, np.int64(word(ids + 8 * index))
    return end, end, NO_SPECIAL


def utf8_of(text: str) -> np.ndarray:
    """The UTF-8 bytes of a string, where Python keeps them: with the string, which they hold.

    Raises: UnicodeEncodeError if the text holds a lone surrogate.
    """
    size = ctypes.c_ssize_t()
    # Python keeps a string's UTF-8 with it once it was asked for; for ASCII it is the string.
    address = _utf8(text, ctypes.byref(size))
    memory: Any = (ctypes.c_uint8 * size.value).from_address(address)
    memory.string = text  # so that it lives as long as the array
    return np.frombuffer(memory, np.uint8)


def spans_of(data: np.ndarray, special_tokens: Sequence[str]) -> Iterator[np.ndarray]:
    """UTF-8 bytes in memory in parts like those of a file, which stay in the processor's cache."""

    def read(start: int, length: int) -> bytes:
        return data[start : start + length].tobytes()

    *cuts, size = cuts_between(read, len(data), special_tokens)
    # What lies behind the bytes may not be read, so the last part is copied: a small one, as fresh
    # memory takes as long as the ids of what is in it.
    start = max(cuts[-1], size - COPIED)
    place = place_to_cut(read(start, COPIED), [token.encode() for token in special_tokens])
    if place is not None:
        cuts.append(start + place)
    for start, end in pairwise([*cuts, size]):
        if end + PADDING <= size:
            yield data[start:end]
        else:
            yield padded(data[start:end])[: end - start]


def read_spans(path: Path, cuts: Sequence[int]) -> Iterator[np.ndarray]:
    """The bytes of a file between the cuts, each span in the memory of the one before.

    Raises: ValueError if the file is not UTF-8, or ends before the last cut.
    """
    # Before any memory is taken: with cuts in disorder a length would be negative.
    lengths = [end - start for start, end in pairwise(cuts)]
    if min(lengths, default=-1) < 0:
        raise ValueError(f"a part of a file lies between ascending cuts, got {list(cuts)}")
    longest = max(lengths)
    # One piece of memory for all spans: fresh memory costs a page fault every 4 kB.
    memory = np.empty(longest + PADDING, np.uint8)
    with path.open("rb") as file:
        file.seek(cuts[0])
        for start, end in pairwise(cuts):
            span = memory[: end - start]
            if file.readinto(span.data) < len(span):
                raise changed(path)
            check_utf8(path, start, span)
            yield span


def check_utf8(path: Path, start: int, data: np.ndarray) -> None:
    """Raise ValueError if the bytes of a file that begin at `start` are not UTF-8."""
    begin = machine.text_address(data)
    # Compiled code finds the place, fast; Python's decoder then says what is wrong there.
    at = first_not_utf8(begin, begin + len(data)) - begin
    try:
        codecs.utf_8_decode(data[at : at + 4].data, "strict", True)  # which has the words for it
    except UnicodeDecodeError as error:
        raise not_utf8(path, start + at, error) from error


@kernel(INT, INT)
def first_not_utf8(at, end):
    """The address of the first byte that is not part of a UTF-8 character; `end` if all are."""
    while at < end:
        # 64 bytes of ASCII at once, which is most of most texts.
        length = machine.BLOCK if not_ascii_at(at) == 0 else character_length(at, end)
        if length == 0:
            break
        at += length
    return min(at, end)


@compiled
def character_length(at, end):
    """The length of a UTF-8 character, or of up to 64 of ASCII, at an address; 0 if it is none."""
    first = byte(at)
    # Read before it is known whether there is one: the padding allows that.
    second = byte(at + 1)
    if first < 0x80:
        return min(machine.trailing_zeros(not_ascii_at(at)), end - at)
    if first < 0xC2 or first > 0xF4:
        return 0
    lowest = 0x80
    highest = 0xBF
    if first == 0xE0:
        lowest = 0xA0  # below, it is a longer form than the character needs
    elif first == 0xED:
        highest = 0x9F  # above, it is a surrogate
    elif first == 0xF0:
        lowest = 0x90  # below, it is a longer form than needed
    elif first == 0xF4:
        highest = 0x8F  # above, there are no code points
    # The first byte says how long the character is; only its second is restricted further.
    length = 2 + (first >= 0xE0) + (first >= 0xF0)
    if second < lowest or second > highest or at + length > end:
        return 0
    for step in range(2, length):
        if byte(at + step) & 0xC0 != 0x80:
            return 0
    return length
