"""Compiled merges are those of the naive algorithm, and `train_bpe` gives them for large files."""

import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretoken_helpers import as_counter, counted, merges_of

from workbook.tokenization import bpe, spans
from workbook.tokenization.bpe import train_bpe, train_incremental, train_naive
from workbook.tokenization.compiled import count, merge

END = "<|endoftext|>"
WORDS = st.lists(st.text(st.sampled_from("abc"), max_size=12) | st.text(max_size=6), max_size=40)


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
    path = tmp_path / "text.txt"
    line = "It's {:,} o'clock,  said the 天 fox number {}.\r\n" + END + "\n"
    lines = (line.format(number % 97, number) for number in range(1_000))
    path.write_bytes("".join(lines).encode())
    return path


def test_small_and_large_files_give_the_same_merges(text, monkeypatch):
    size = text.stat().st_size
    results = []
    for limit in (size, size + 1):  # compiled, then readable
        monkeypatch.setattr(bpe, "COMPILED_FROM", limit)
        results.append(train_bpe(text, 500, [END, " fox"]))
        for pool in (ThreadPoolExecutor(2), ProcessPoolExecutor(2)):
            with pool as executor:
                results.append(train_bpe(text, 500, [END, " fox"], executor=executor))
    assert all(result == results[0] for result in results)
    assert len(results[0][0]) > 400


def test_only_large_files_wait_for_a_compiler(text, monkeypatch):
    monkeypatch.setattr("workbook.tokenization.compiled.train", lambda *_: 1 / 0)
    assert text.stat().st_size < spans.COMPILED_FROM
    train_bpe(text, 300, [END])
    with text.open("ab") as file:
        file.truncate(spans.COMPILED_FROM)
    with pytest.raises(ZeroDivisionError):
        train_bpe(text, 300, [END])
