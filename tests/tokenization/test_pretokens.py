"""Pre-tokens are those of the pattern on the whole text, however text comes and is cut."""

from itertools import islice, pairwise, repeat

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from pretoken_helpers import MARKED, SPECIALS, pretokens_of

from workbook.tokenization.pretokens import PATTERN, pretokenize


def cut(text: str, places: list[int]) -> list[str]:
    bounds = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]


@given(MARKED, st.lists(st.integers(0, 1000)), SPECIALS)
def test_pieces_give_the_pretokens_of_the_pretokens_of(text, places, special_tokens):
    expected = pretokens_of(text, special_tokens)
    assert list(pretokenize(cut(text, places), special_tokens)) == expected
    assert list(pretokenize(text, special_tokens)) == expected  # single characters


def test_long_pieces_are_cut_without_a_trace():
    text = "It's 12 o'clock,   said \n\n the  mouse. " * 5_000
    assert list(pretokenize([text])) == regex.findall(PATTERN, text)


def test_pretokens_come_before_the_stream_ends():
    endless = pretokenize(repeat("to be or "))
    assert list(islice(endless, 4)) == ["to", " be", " or", " to"]


def test_a_special_token_that_begins_another_waits_for_the_longer():
    pieces = ["x<|a|>", "<|b|>y"]
    assert list(pretokenize(pieces, ["<|a|>", "<|a|><|b|>"])) == ["x", "<|a|><|b|>", "y"]


def test_a_document_ends_at_a_special_token():
    # Inside one text the last of three spaces belongs to the word; at the end there is no word.
    assert list(pretokenize(["a   <|e|> b"], ["<|e|>"])) == ["a", "   ", "<|e|>", " b"]


def test_bad_special_tokens_and_bytes_are_refused():
    for special_tokens, error, words in (
        ("<|e|>", TypeError, r"list of strings.*write \['<\|e\|>'\]"),
        ([b"<|e|>"], TypeError, "decode it"),
        ([""], ValueError, "empty"),
    ):
        with pytest.raises(error, match=words):
            list(pretokenize(["text"], special_tokens))
    with pytest.raises(TypeError, match="decode bytes"):
        list(pretokenize([b"text"]))
