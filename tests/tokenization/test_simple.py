"""Tokenizers of characters, bytes and words share the interface of BPE's."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbook.tokenization.simple import ByteTokenizer, CharacterTokenizer, WordTokenizer
from workbook.tokenization.tokenizer import compression_ratio

TOKENIZERS = [CharacterTokenizer(), ByteTokenizer(), WordTokenizer(["the", " owl", "!", " "])]


@pytest.mark.parametrize("simple", TOKENIZERS, ids=lambda simple: type(simple).__name__)
def test_all_tokenizers_share_the_interface(simple):
    text = "the owl!"
    ids = simple.encode(text)
    assert simple.decode(ids) == text
    assert list(simple.encode_iterable(["th", "e ow", "l!"])) == ids
    assert all(0 <= id_ < simple.vocab_size for id_ in ids)
    with pytest.raises(TypeError, match="encode takes a string"):
        simple.encode(b"the")


@given(st.text())
def test_characters_and_bytes_round_trip(text):
    for simple in (CharacterTokenizer(), ByteTokenizer()):
        assert simple.decode(simple.encode(text)) == text
    assert compression_ratio(text + "a", ByteTokenizer().encode(text + "a")) == 1


def test_unknown_words_share_one_id():
    words = WordTokenizer.from_counts(Counter({" the": 2, "the": 1, " owl": 3, " mouse": 1}), 3)
    assert words.decode(words.encode(" the cat")) == " the<unk>"
    assert words.vocab_size == 3
    with pytest.raises(ValueError, match="id 3 is not"):
        words.decode([3])


def test_every_tokenizer_gives_its_tokens_as_bytes():
    assert ByteTokenizer().tokens("ü") == [(0xC3, b"\xc3"), (0xBC, b"\xbc")]
    assert WordTokenizer(["a"]).tokens("a ü") == [(1, b"a"), (0, b"<unk>")]
