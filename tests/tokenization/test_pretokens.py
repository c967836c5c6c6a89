"""Pre-tokens are those of the pattern on the whole text, however text comes and is cut."""

from itertools import pairwise

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st
from pretoken_helpers import MARKED, SPECIALS, pretokens_of

from workbook.tokenization.pretokens import PATTERN, pretokenize


def cut(text: str, places: list[int]) -> list[str]:
    bounds = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]


@given(MARKED, st.lists(st.integers(0, 1000)), SPECIALS)
@example(" \r\x1c111", [], [])  # which Python takes for white space, and the pattern does not
def test_pieces_give_the_pretokens_of_the_pretokens_of(text, places, special_tokens):
    expected = pretokens_of(text, special_tokens)
    assert list(pretokenize(cut(text, places), special_tokens)) == expected
    assert list(pretokenize(text, special_tokens)) == expected  # single characters


def test_long_pieces_are_cut_without_a_trace():
    text = "It's 12 o'clock,   said \n\n the  mouse. " * 5_000
    assert list(pretokenize([text])) == regex.findall(PATTERN, text)


def test_of_special_tokens_that_begin_together_the_longest_wins_and_ends_a_document():
    # Inside one text the last of three spaces belongs to the word; at the end there is no word.
    pieces = ["x   <|a|>", "<|b|>y"]
    assert list(pretokenize(pieces, ["<|a|>", "<|a|><|b|>"])) == ["x", "   ", "<|a|><|b|>", "y"]


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
