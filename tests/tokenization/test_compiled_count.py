"""Compiled counts are those of the readable counter, in one table or in many, cut or whole."""

from collections import Counter

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from pretoken_helpers import TEXTS, as_counter, counted

from workbook.tokenization.compiled import count, table
from workbook.tokenization.compiled.machine import padded
from workbook.tokenization.pretokens import PATTERN

END = "<|e|>"


@given(TEXTS)
def test_counts_equal_a_counter(string):
    assert as_counter(counted(string)) == Counter(regex.findall(PATTERN, string))


@given(st.lists(TEXTS, max_size=4))
def test_tables_add_up(strings):
    total = table.Table(capacity=2)
    for string in strings:
        count.add_counts(total, counted(string))
    expected = Counter(pretoken for s in strings for pretoken in regex.findall(PATTERN, s))
    assert as_counter(count.counts_of(total)) == expected


def test_long_pretokens_are_told_apart_by_their_bytes():
    words = [f"{'x' * length}{end}" for length in range(1, 60) for end in ("", "y", "z")]
    found = as_counter(counted(" ".join(words * 2)))
    assert found[f" {'x' * 59}z"] == 2
    assert found == Counter(regex.findall(PATTERN, " ".join(words * 2)))


def test_equal_keys_of_long_pretokens_are_no_proof():
    """Of two words made so that their keys are equal, one is found and the other is not."""
    one = np.frombuffer(b"twenty-four bytes it has", np.uint64)
    other = one.copy()
    other[0] = int.from_bytes(b"Twenty-f", "little")
    other[1] ^= mixed(24 ^ int(one[0])) ^ mixed(24 ^ int(other[0]))
    words = [padded(word.tobytes()) for word in (one, other)]
    keys = [table.keys_of(word.ctypes.data, 24) for word in words]
    assert keys[0] == keys[1]
    entries = table.Table()
    slots = [table.entry(entries.address, words[0].ctypes.data, 24)]
    slots += [table.find(entries.address, word.ctypes.data, 24) for word in words]
    assert slots[0] == slots[1] != slots[2]


def mixed(value: int) -> int:
    """A step of the hash in `keys_of`, in Python's own numbers."""
    value = value * int(table.MIX_A) % 2**64
    return value ^ value >> 32


@pytest.mark.parametrize("special", ["<|e|>", "abc", " ", "é"])
def test_documents_end_at_special_tokens(special):
    string = f"one{special}  two {special}{special}abd 's{special}"
    expected = Counter()
    for part in string.split(special):
        expected.update(regex.findall(PATTERN, part))
    assert as_counter(counted(string, [special])) == expected
