"""Watched training is `train_naive`, and the plain way to cut a text is the tokenizer's."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from workbook.tokenization.bpe import train_naive
from workbook.tokenization.simple import ByteTokenizer, CharacterTokenizer, WordTokenizer
from workbook.tokenization.tokenizer import Tokenizer
from workbook.tokenization.watch import apply_merges, training_steps

words = st.dictionaries(st.text("ab é", min_size=1, max_size=6), st.integers(1, 9), max_size=6)


@given(words, st.integers(0, 12))
def test_watched_training_makes_the_merges_of_the_naive_one(counts, num_merges):
    steps = training_steps(counts, num_merges)
    assert list(steps[-1].merges) == train_naive(counts, num_merges)
    assert [len(step.merges) for step in steps] == list(range(len(steps)))
    for step, after in pairwise(steps):
        assert step.ranking[0][0] == step.tied[0] == after.merges[-1] == max(step.tied)


@given(words, st.text("ab é\n", max_size=20))
def test_a_text_is_cut_as_the_tokenizer_cuts_it(counts, text):
    merges = train_naive(counts, 12)
    tokens = [bytes([byte]) for byte in range(256)] + [left + right for left, right in merges]
    tokenizer = Tokenizer(dict(enumerate(tokens)), merges)
    found = tokenizer.tokens(text)
    assert apply_merges(text, merges) == [token for _, token in found]
    assert [token_id for token_id, _ in found] == tokenizer.encode(text)


def test_every_tokenizer_falls_into_pieces():
    assert ByteTokenizer().tokens("ü") == [(0xC3, b"\xc3"), (0xBC, b"\xbc")]
    assert CharacterTokenizer().tokens("ü") == [(0xFC, b"\xc3\xbc")]
    assert WordTokenizer(["a"]).tokens("a ü") == [(1, b"a"), (0, b"<unk>")]
