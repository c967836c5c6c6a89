"""The compiled scanner ends pre-tokens where `regex` does, in whatever text."""

import random
import sys
from itertools import pairwise

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from pretoken_helpers import ODD, STRESS, TEXTS, odd_strings

from workbook.tokenization.compiled import scan
from workbook.tokenization.compiled.machine import byte, compiled, leading_letters, padded, word
from workbook.tokenization.pretokens import PATTERN, whole_pretokens

NO_SPECIAL = regex.compile("(?!)")


@compiled
def pretoken_ends(at, end, kinds, ends):
    number = 0
    while at < end:
        at = scan.token_end(at, end, kinds)
        ends[number] = at
        number += 1
    return number


def ends_in(data: bytes) -> np.ndarray:
    """Where the compiled scanner ends pre-tokens."""
    source = padded(data)
    start = source.ctypes.data
    ends = np.empty(len(data) + 1, np.int64)
    number = pretoken_ends(start, start + len(data), scan.character_kinds().ctypes.data, ends)
    return ends[:number] - start


def scanned(string: str) -> list[str]:
    data = string.encode()
    return [data[a:b].decode() for a, b in pairwise([0, *ends_in(data).tolist()])]


@settings(max_examples=500)
@given(TEXTS)
def test_boundaries_equal_regex(string):
    assert scanned(string) == regex.findall(PATTERN, string)


@given(st.text(st.sampled_from(ODD.encode("ascii", "ignore").decode())))
def test_boundaries_of_ascii_equal_regex(string):
    """In the readable tokenizer too, which has a pattern of its own for ASCII."""
    expected = regex.findall(PATTERN, string)
    assert scanned(string) == expected
    assert whole_pretokens(string, NO_SPECIAL) == expected


def test_boundaries_equal_regex_on_every_character():
    """Each code point between letters, spaces and digits, in one long text of them all."""
    draw = random.Random(0)
    codes = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    draw.shuffle(codes)
    between = ["", " ", "  ", "\n", "a", "1", "'s", "\u3000", "!"]
    string = "".join(chr(code) + draw.choice(between) for code in codes)
    assert scanned(string) == regex.findall(PATTERN, string)


@pytest.mark.stress
def test_boundaries_equal_regex_in_a_hundred_thousand_strings():
    draw = random.Random(STRESS)
    for _ in range(50 * STRESS):
        strings = odd_strings(draw, 2000)
        source = padded("".join(strings).encode())
        sizes = np.array([len(string.encode()) for string in strings])
        ends = np.empty(len(source), np.int64)
        stops = source.ctypes.data + np.cumsum(sizes)
        number = ends_of_each(stops - sizes, stops, scan.character_kinds().ctypes.data, ends)
        expected = [len(part.encode()) for s in strings for part in regex.findall(PATTERN, s)]
        assert np.array_equal(ends[:number] - source.ctypes.data, np.cumsum(expected)), (
            f"STRESS={STRESS} shows it"
        )


@compiled
def ends_of_each(starts, stops, kinds, ends):
    number = 0
    for index in range(len(starts)):
        at = starts[index]
        while at < stops[index]:
            at = scan.token_end(at, stops[index], kinds)
            ends[number] = at
            number += 1
    return number


@given(st.text(st.sampled_from("az@[`{AZ0é\x00\x7f"), min_size=8))
def test_leading_letters_counts_ascii_letters(string):
    eight = string.encode()[:8]
    expected = len(regex.match(rb"[A-Za-z]*", eight)[0])
    assert leading_letters(np.frombuffer(eight, np.uint64)[0]) == expected


def test_memory_is_read_where_it_lies():
    source = padded(b"Once upon")
    assert read_byte(source.ctypes.data + 8) == ord("n")
    assert int(read_word(source.ctypes.data + 1)).to_bytes(8, "little") == b"nce upon"


@compiled
def read_byte(address):
    return byte(address)


@compiled
def read_word(address):
    return word(address)
