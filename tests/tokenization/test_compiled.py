"""Compiled code finds pre-tokens like `regex`, counts like `Counter`, merges like `train_naive`."""

import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from pretoken_helpers import ODD, STRESS, TEXTS, as_counter, counted, merges_of, odd_strings

from workbook.tokenization import compiled, engine
from workbook.tokenization.bpe import train_bpe, train_incremental, train_naive
from workbook.tokenization.compiled import count, merge, scan, table
from workbook.tokenization.compiled.kernels import OPTIONS
from workbook.tokenization.compiled.machine import leading_letters, padded
from workbook.tokenization.compiled.text import documents_of, special_bytes
from workbook.tokenization.pretokens import PATTERN, whole_pretokens
from workbook.tokenization.tokenizer import Tokenizer

END = "<|endoftext|>"
WORDS = st.lists(st.text(st.sampled_from("abc"), max_size=12) | st.text(max_size=6), max_size=40)

# --- Scanning ------------------------------------------------------------------------------------


@njit(**OPTIONS)
def ends_of_each(starts, stops, kinds, ends):
    number = 0
    for index in range(len(starts)):
        at = starts[index]
        while at < stops[index]:
            at = scan.token_end(at, stops[index], kinds)
            ends[number] = at
            number += 1
    return number


def ends_in(strings: list[str]) -> np.ndarray:
    """Where the compiled scanner ends pre-tokens, in strings that special tokens separate.

    The special tokens are left out when the bytes are numbered.
    """
    special = "'ll\0then"  # would go on with anything that came before it
    sizes = [len(string.encode()) for string in strings]
    documents = documents_of(special.join(strings).encode(), special_bytes([special]))
    assert len(documents.starts) == len(strings)
    ends = np.empty(len(documents.text), np.int64)
    kinds = scan.character_kinds().ctypes.data
    number = ends_of_each(documents.starts, documents.ends, kinds, ends)
    document = np.searchsorted(documents.ends, ends[:number])
    gone = documents.starts[document] - np.append(0, np.cumsum(sizes))[document]
    return ends[:number] - gone


def scanned(string: str) -> list[str]:
    data = string.encode()
    return [data[a:b].decode() for a, b in pairwise([0, *ends_in([string]).tolist()])]


@settings(max_examples=500)
@given(TEXTS)
def test_boundaries_equal_regex(string):
    assert scanned(string) == regex.findall(PATTERN, string)


@given(st.text(st.sampled_from(ODD.encode("ascii", "ignore").decode())))
def test_boundaries_of_ascii_equal_regex(string):
    """In the readable tokenizer too, which has a pattern of its own for ASCII."""
    expected = regex.findall(PATTERN, string)
    assert scanned(string) == expected
    assert whole_pretokens(string, regex.compile("(?!)")) == expected


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
        expected = [len(part.encode()) for s in strings for part in regex.findall(PATTERN, s)]
        assert np.array_equal(ends_in(strings), np.cumsum(expected)), f"STRESS={STRESS} shows it"


@given(st.text(st.sampled_from("az@[`{AZ0é\x00\x7f"), min_size=8))
def test_leading_letters_counts_ascii_letters(string):
    eight = string.encode()[:8]
    expected = len(regex.match(rb"[A-Za-z]*", eight)[0])
    assert letters_of(np.frombuffer(eight, np.uint64)[0]) == expected


@njit(**OPTIONS)
def letters_of(eight):
    return leading_letters(eight)


# --- Counting ------------------------------------------------------------------------------------


@given(TEXTS)
def test_counts_equal_a_counter(string):
    assert as_counter(counted(string)) == Counter(regex.findall(PATTERN, string))


@given(st.lists(TEXTS, max_size=4))
def test_tables_add_up(strings):
    total = table.PretokenTable(capacity=2)
    for string in strings:
        count.add_counts(total, counted(string))
    expected = Counter(pretoken for s in strings for pretoken in regex.findall(PATTERN, s))
    assert as_counter(count.Counts(*total.contents())) == expected


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
    keys = [keys_in(word.ctypes.data, 24) for word in words]
    assert keys[0] == keys[1]
    entries = table.PretokenTable()
    slot = entered(entries.address, words[0].ctypes.data, 24)
    found = [found_in(entries.address, word.ctypes.data, 24) for word in words]
    assert slot == found[0] != found[1]


@njit(**OPTIONS)
def keys_in(at, length):
    return table.keys_of(at, length)


@njit(**OPTIONS)
def entered(entries, at, length):
    return table.entry(entries, at, length)


@njit(**OPTIONS)
def found_in(entries, at, length):
    return table.find_slot(entries, at, length)


def mixed(value: int) -> int:
    """A step of the hash in `keys_of`, in Python's own numbers."""
    value = value * int(table.MIX_A) % 2**64
    return value ^ value >> 32


def test_what_follows_a_document_is_never_read():
    """Else each document of this text would take as long as all that follow it: minutes."""
    text = "ab" * 300_000
    assert as_counter(counted(text, ["b"])) == {"a": 300_000}
    assert as_counter(counted(text, ["bab"])) == {"a": 150_000}


def test_documents_end_at_special_tokens():
    for special in ("<|e|>", "abc", " ", "é"):
        string = f"one{special}  two {special}{special}abd 's{special}"
        expected = Counter()
        for part in string.split(special):
            expected.update(regex.findall(PATTERN, part))
        assert as_counter(counted(string, [special])) == expected


# --- Merging -------------------------------------------------------------------------------------


@given(WORDS, st.integers(0, 60))
def test_merges_equal_naive(words, number):
    counts = counted(" ".join(words))
    assert merges_of(counts, number) == train_naive(as_counter(counts), number)


@given(st.text(st.sampled_from("ab"), max_size=60), st.integers(1, 9))
def test_runs_and_overlaps_merge_as_naive(word, copies):
    counts = counted(" ".join([word] * copies + [word[::-1], word + word]))
    assert merges_of(counts, 99) == train_naive(as_counter(counts), 99)


@settings(max_examples=200)
@given(st.lists(st.text(st.sampled_from("ab"), max_size=30), max_size=12))
def test_no_two_merges_make_the_same_bytes(words):
    merges = merges_of(counted(" ".join(words)), 1000)
    assert len({left + right for left, right in merges}) == len(merges)


def test_more_bytes_than_32_bit_places_reach_are_refused():
    words = count.Counts(np.zeros(0, np.uint8), np.full(2, 2**30), np.ones(2, np.int64))
    with pytest.raises(
        ValueError, match="2,147,483,650 bytes of different pre-tokens are too many"
    ):
        merge.learn_merges(words, 1)


def test_merges_of_many_words_equal_incremental():
    draw = random.Random(1)
    words = ["".join(draw.choices("etaoin shrdlué", k=draw.randint(1, 14))) for _ in range(5_000)]
    counts = counted(" ".join(words))
    assert merges_of(counts, 1_000) == train_incremental(as_counter(counts), 1_000)


def test_memory_that_runs_short_is_enlarged(monkeypatch):
    """The merges stay the same where the arrays of pairs and spellings begin too small."""
    draw = random.Random(2)
    letters = [chr(code) for code in range(0x4E00, 0x4E00 + 2_000)]
    counts = counted(" ".join("".join(draw.choices(letters, k=9)) for _ in range(1_500)))
    enlarged = []
    doubled = merge.doubled
    monkeypatch.setattr(merge, "doubled", lambda array: enlarged.append(1) or doubled(array))
    merges = merges_of(counts, 9_000)
    assert enlarged
    assert merges == train_incremental(as_counter(counts), 9_000)


def test_counts_need_64_bits():
    counts = counted("ab ab cd")
    huge = count.Counts(counts.text, counts.lengths, counts.counts * (1 << 60))
    assert merges_of(huge, 9) == merges_of(counts, 9)


def test_nothing_to_merge_gives_no_merges():
    assert merges_of(counted(""), 9) == []
    assert merges_of(counted("a b"), 0) == []
    assert merges_of(counted("ab"), 1 << 40) == [(b"a", b"b")]


@pytest.fixture
def text(tmp_path):
    """A text of 60 kB, long enough for the engine if it is ready."""
    path = tmp_path / "text.txt"
    line = "It's {:,} o'clock,  said the 天 fox number {}.\r\n" + END + "\n"
    lines = (line.format(number % 97, number) for number in range(1_000))
    path.write_bytes("".join(lines).encode())
    assert 60_000 < path.stat().st_size < 62_000
    return path


def test_small_and_large_files_give_the_same_merges(text, monkeypatch):
    results = []
    for is_compiled in (True, False):
        monkeypatch.setattr(engine, "pays_off", lambda size, answer=is_compiled: answer)
        results.append(train_bpe(text, 500, [END, " fox"]))
        for pool in (ThreadPoolExecutor(2), ProcessPoolExecutor(2)):
            with pool as executor:
                results.append(train_bpe(text, 500, [END, " fox"], executor=executor))
    assert all(result == results[0] for result in results)
    assert len(results[0][0]) > 400


def test_small_and_large_texts_give_the_same_ids(text, monkeypatch):
    content = text.read_bytes().decode()
    results = []
    for is_compiled in (True, False):
        monkeypatch.setattr(engine, "pays_off", lambda size, answer=is_compiled: answer)
        one = Tokenizer(*train_bpe(text, 500, [END]), [END])
        results += [one.encode(content), list(one.encode_array(content))]
        results.append(list(one.encode_file(text)))
    assert all(result == results[0] for result in results)


@pytest.fixture
def calls(monkeypatch):
    """What is asked of the engine, which then does as always."""
    names = []
    for name in ("train_on_file", "make_encoder"):
        function = getattr(compiled, name)
        counting = lambda *job, name=name, do=function: names.append(name) or do(*job)  # noqa: E731
        monkeypatch.setattr(compiled, name, counting)
    return names


def train_and_encode(path):
    one = Tokenizer(*train_bpe(path, 300, [END]), [END])
    one.encode(path.read_bytes().decode())
    one.encode_file(path)


@pytest.mark.parametrize(("loaded", "on_disk"), [(True, False), (False, True), (True, True)])
def test_an_engine_that_is_ready_takes_texts_of_50_kb(text, monkeypatch, calls, loaded, on_disk):
    monkeypatch.setattr(engine, "loaded", loaded)
    monkeypatch.setattr(engine, "is_on_disk", lambda: on_disk)
    train_and_encode(text)
    assert calls == ["train_on_file", "make_encoder"]
    calls.clear()
    with text.open("ab") as file:
        file.truncate(49_000)
    train_and_encode(text)
    assert calls == []


def test_only_large_files_wait_for_a_compiler(text, monkeypatch, calls):
    monkeypatch.setattr(engine, "is_on_disk", lambda: False)
    monkeypatch.setattr(engine, "loaded", False)
    train_and_encode(text)
    assert calls == []
    with text.open("ab") as file:
        file.truncate(5 << 20)
    train_bpe(text, 300, [END])
    assert calls == ["train_on_file"]
