"""Watched training is `train_naive`; differences are counted; a token's tree holds its merges."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbook.tokenization import watch
from workbook.tokenization.bpe import train_incremental, train_naive
from workbook.tokenization.tokenizer import Tokenizer
from workbook.tokenization.watch import first_difference, merges_behind

WORDS = st.dictionaries(st.text("ab é", min_size=1, max_size=6), st.integers(1, 9), max_size=6)
TOY = {"low": 5, "lower": 2, "widest": 3, "newest": 6}


@given(WORDS, st.integers(0, 12))
def test_watched_training_makes_the_merges_of_the_naive_one(counts, num_merges):
    steps = watch.training_steps(counts, num_merges)
    assert list(steps[-1].merges) == train_naive(counts, num_merges)
    assert [len(step.merges) for step in steps] == list(range(len(steps)))
    for step, after in pairwise(steps):
        assert step.ranking[0][0] == step.tied[0] == after.merges[-1] == max(step.tied)


@given(WORDS, st.text("ab é\n", max_size=20))
def test_merges_in_turn_give_the_tokens_of_the_tokenizer(counts, text):
    merges = train_naive(counts, 12)
    tokens = [bytes([byte]) for byte in range(256)] + [left + right for left, right in merges]
    found = Tokenizer(dict(enumerate(tokens)), merges).tokens(text)
    assert watch.apply_merges(text, merges) == [token for _, token in found]


def test_the_first_difference_is_counted_and_explained():
    right = train_naive(TOY, 4)
    assert first_difference(right, list(right), TOY) is None
    for merges, step, first_count, second_count, words in (
        ([(b"e", b"s")], 1, 9, 9, "a tie, and the greater pair is the second"),
        ([(b"x", b"y")], 1, 0, 9, "b'x' + b'y' (0 times) against b's' + b't' (9 times)"),
        ([*right[:3], (b"w", b"est")], 4, 6, 7, "the more frequent pair goes first"),
        (right[:2], 3, 0, 7, ": one list ends while the other goes on"),
    ):
        difference = first_difference(merges, right, TOY)
        counts_before = difference.first_count, difference.second_count
        assert (difference.step, *counts_before) == (step, first_count, second_count)
        assert words in str(difference)


def test_the_parts_of_a_token_join_to_it_and_are_older():
    merges = train_incremental(TOY | {"----------": 2}, 20)
    waiting = [merges_behind(left + right, merges) for left, right in merges]
    while waiting:
        node = waiting.pop()
        if len(node.token) == 1:
            assert node == watch.Ancestor(node.token)
        else:
            assert tuple(part.token for part in node.parts) == merges[node.merge - 1]
            assert all(part.merge < node.merge for part in node.parts)
        waiting += node.parts
    with pytest.raises(ValueError, match=r"no merge makes b'<.end.>'"):
        merges_behind(b"<|end|>", merges)


def test_the_first_of_two_merges_that_make_the_same_bytes_counts():
    merges = [(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"a", b"bc")]
    assert merges_behind(b"abc", merges).merge == 3
