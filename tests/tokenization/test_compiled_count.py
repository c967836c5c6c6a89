"""Compiled counts are those of the readable counter, in one table or in many, cut or whole."""

from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import regex
from fast_helpers import TEXTS, as_counter, counted
from hypothesis import given
from hypothesis import strategies as st

from workbook.tokenization import spans
from workbook.tokenization.compiled import count, table
from workbook.tokenization.compiled.machine import padded
from workbook.tokenization.pretokens import PATTERN
from workbook.tokenization.spans import count_pretokens

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


@pytest.fixture
def text(tmp_path, monkeypatch):
    """A file that is cut into hundreds of spans, a few to a task."""
    monkeypatch.setattr(spans, "SPANS_PER_TASK", 7)
    monkeypatch.setattr(spans, "SPAN", 64)
    path = tmp_path / "text.txt"
    lines = (f"It's {END}the  ünï 天 {number % 97:,}\r\n{END}\n" for number in range(900))
    path.write_bytes("".join(lines).encode())
    return path


def test_a_file_is_counted_as_the_readable_way_does(text):
    expected = count_pretokens(text, [END])
    assert as_counter(count.count_file(text, [END])) == expected
    for pool in (ThreadPoolExecutor(2), ProcessPoolExecutor(2)):
        with pool as executor:
            assert as_counter(count.count_file(text, [END], executor)) == expected


def test_invalid_utf8_is_refused_with_its_place(text, monkeypatch):
    data = text.read_bytes()
    text.write_bytes(data[:5000] + b"\xff" + data[5000:])
    with pytest.raises(ValueError, match=r"not UTF-8: byte 0xff at offset 5,000"):
        count.count_file(text, [END])
    for piece in (1, 2, 3, 5, 7):  # characters lie across the pieces that are checked one by one
        with monkeypatch.context() as patch:
            patch.setattr("workbook.tokenization.compiled.text.BLOCK", 4 + piece)
            with pytest.raises(ValueError, match=r"not UTF-8: byte 0xff at offset 5,000"):
                count.count_file(text, [END])
    text.write_bytes(data + "é".encode()[:-1])
    with pytest.raises(ValueError, match=rf"byte 0xc3 at offset {len(data):,}"):
        count.count_file(text, [END])


def test_files_of_nothing_and_of_nuls_are_counted(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"")
    assert as_counter(count.count_file(path)) == Counter()
    path.write_bytes(bytes(3_000_000))
    assert as_counter(count.count_file(path)) == {"\0" * 3_000_000: 1}
    path.write_bytes(b"x" * 1_000_000)
    assert as_counter(count.count_file(path)) == {"x" * 1_000_000: 1}


def test_a_hundred_thousand_special_tokens_in_a_row_hold_nothing(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(END.encode() * 100_000 + b"a")
    assert as_counter(count.count_file(path, [END])) == {"a": 1}
