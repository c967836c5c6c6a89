"""The compiled engine agrees with `regex`, with the naive trainer and the readable tokenizer."""

import random
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from workbook.bpe import train_incremental, train_naive
from workbook.fastbpe import count, merge, scan, table, text
from workbook.fastbpe.machine import byte, compiled, leading_letters, padded, word
from workbook.pretokens import PATTERN

ODD = "'sdmtlverSDMT \n\t\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2003\u2028\u202f\u3000\u200b"
ODD += "²½Ⅷaé中🙂\u0301_-<|0"
TEXTS = st.text(st.sampled_from(ODD)) | st.text()


@compiled
def pretoken_ends(at, end, kinds, ends):
    number = 0
    while at < end:
        at = scan.token_end(at, end, kinds)
        ends[number] = at
        number += 1
    return number


def scanned(string: str) -> list[str]:
    """The pre-tokens of the compiled scanner."""
    data = string.encode()
    source = padded(data)
    start = source.ctypes.data
    ends = np.empty(len(data) + 1, np.int64)
    number = pretoken_ends(start, start + len(data), scan.character_kinds().ctypes.data, ends)
    edges = [0, *(ends[:number] - start).tolist()]
    return [data[a:b].decode() for a, b in pairwise(edges)]


@settings(max_examples=1000)
@given(TEXTS)
def test_boundaries_equal_regex(string):
    assert scanned(string) == regex.findall(PATTERN, string)


def test_boundaries_equal_regex_on_every_character():
    """Each code point between letters, spaces and digits, in one long text of them all."""
    draw = random.Random(0)
    codes = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    draw.shuffle(codes)
    between = ["", " ", "  ", "\n", "a", "1", "'s", "\u3000", "!"]
    string = "".join(chr(code) + draw.choice(between) for code in codes)
    assert scanned(string) == regex.findall(PATTERN, string)


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


def counted(string: str, special: str | None = None) -> count.Counts:
    entries = table.Table(capacity=4)
    pattern = regex.compile(regex.escape(special.encode())) if special else None
    count.count_text(entries, text.documents_of(padded(string.encode()), pattern))
    return count.counts_of(entries)


def as_counter(counts: count.Counts) -> Counter[str]:
    stops = np.cumsum(counts.lengths)
    return Counter(
        {
            bytes(counts.text[stop - length : stop]).decode(): number
            for stop, length, number in zip(
                stops.tolist(), counts.lengths.tolist(), counts.counts.tolist(), strict=True
            )
        }
    )


@given(TEXTS)
def test_counts_equal_a_counter(string):
    assert as_counter(counted(string)) == Counter(regex.findall(PATTERN, string))


def test_long_pretokens_are_told_apart_by_their_bytes():
    words = [f"{'x' * length}{end}" for length in range(1, 60) for end in ("", "y", "z")]
    assert as_counter(counted(" ".join(words * 2)))[f" {'x' * 59}z"] == 2
    expected = Counter(regex.findall(PATTERN, " ".join(words * 2)))
    assert as_counter(counted(" ".join(words * 2))) == expected


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
    arguments = entries.slots.ctypes.data, len(entries.slots), entries.pool.ctypes.data
    slots = [table.find(*arguments, words[0].ctypes.data, 24)]
    table.claim(slots[0], arguments[2], entries.used.ctypes.data, words[0].ctypes.data, 24)
    slots += [table.find(*arguments, word.ctypes.data, 24) for word in words]
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
    assert as_counter(counted(string, special)) == expected


def merges_of(counts: count.Counts, number: int) -> list[tuple[bytes, bytes]]:
    tokens = [bytes([value]) for value in range(256)]
    merges = []
    for left, right in merge.learn_merges(counts, number).tolist():
        merges.append((tokens[left], tokens[right]))
        tokens.append(tokens[left] + tokens[right])
    return merges


WORDS = st.lists(st.text(st.sampled_from("abc"), max_size=12) | st.text(max_size=6), max_size=40)


@settings(max_examples=300)
@given(WORDS, st.integers(0, 60))
def test_merges_equal_naive(words, number):
    counts = counted(" ".join(words))
    assert merges_of(counts, number) == train_naive(as_counter(counts), number)


def test_merges_of_many_words_equal_incremental():
    draw = random.Random(1)
    words = ["".join(draw.choices("etaoin shrdlué", k=draw.randint(1, 14))) for _ in range(20_000)]
    counts = counted(" ".join(words))
    assert merges_of(counts, 3_000) == train_incremental(as_counter(counts), 3_000)


def test_counts_need_64_bits():
    counts = counted("ab ab cd")
    huge = count.Counts(counts.text, counts.lengths, counts.counts * (1 << 40))
    assert merges_of(huge, 9) == merges_of(counts, 9)
