"""Pre-tokens are those of the pattern on the whole text, however text comes and is cut."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice, pairwise, repeat

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from workbook.tokenization import pretokens, spans
from workbook.tokenization.pretokens import PATTERN, pretokenize
from workbook.tokenization.spans import count_pretokens, cut_points

# Characters that the pattern tells apart, and pieces of the special tokens used below.
TEXTS = st.text(st.sampled_from("ab'sLlre19 \n\t\u00a0\u3000é好🙂\u0301!<|>\r\x1c\x85")) | st.text()
SPECIALS = st.lists(
    st.sampled_from(["<|", "<|>", "|>", "a b", "'s", " ", "\n\n", "好"]), max_size=4
)


def whole(text: str, special_tokens=()) -> list[str]:
    """The pre-tokens by the obvious way: split the whole text, then match each part."""
    longest_first = sorted(special_tokens, key=len, reverse=True)
    parts = [text]
    if longest_first:
        parts = regex.split("(" + "|".join(map(regex.escape, longest_first)) + ")", text)
    return list(
        chain.from_iterable(
            [part] if part in special_tokens else regex.findall(PATTERN, part) for part in parts
        )
    )


def cut(text: str, places: list[int]) -> list[str]:
    bounds = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]


@given(TEXTS, st.lists(st.integers(0, 1000)), SPECIALS)
def test_pieces_give_the_pretokens_of_the_whole(text, places, special_tokens):
    assert list(pretokenize(cut(text, places), special_tokens)) == whole(text, special_tokens)


@given(TEXTS, SPECIALS)
def test_single_characters_give_the_pretokens_of_the_whole(text, special_tokens):
    assert list(pretokenize(text, special_tokens)) == whole(text, special_tokens)


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


@pytest.mark.parametrize(
    ("special_tokens", "error", "words"),
    [
        ("<|e|>", TypeError, r"list of strings.*write \['<\|e\|>'\]"),
        ([b"<|e|>"], TypeError, "decode it"),
        ([""], ValueError, "empty"),
        (["<\ud800>"], ValueError, r"special token '<\\ud800>' holds a lone surrogate"),
    ],
)
def test_bad_special_tokens_are_refused(special_tokens, error, words):
    with pytest.raises(error, match=words):
        list(pretokenize(["text"], special_tokens))


def test_bytes_are_refused_as_text():
    with pytest.raises(TypeError, match="decode bytes"):
        list(pretokenize([b"text"]))


@pytest.fixture
def small_spans(monkeypatch):
    """Spans of 64 bytes and pieces of 16, so that a small file is cut in many places."""
    monkeypatch.setattr(pretokens, "PIECE", 16)
    monkeypatch.setattr(spans, "SPAN", 64)


@given(text=TEXTS.map(lambda text: text * 40), special_tokens=SPECIALS)
def test_no_pretoken_lies_across_a_cut(tmp_path_factory, text, special_tokens):
    path = tmp_path_factory.mktemp("cut") / "text.txt"
    path.write_bytes(text.encode("utf-8", errors="replace"))
    data = path.read_bytes()
    cuts = cut_points(path, special_tokens, span=16)
    parts = [data[start:end].decode() for start, end in pairwise(cuts)]
    together = list(chain.from_iterable(whole(part, special_tokens) for part in parts))
    assert together == whole(data.decode(), special_tokens)


@pytest.mark.parametrize(
    "line", ["one two, it's 3\r\n", "天气很好。\n", "Привет мир\n", "x<|e|> y"]
)
def test_long_texts_of_many_scripts_are_cut(tmp_path, line):
    path = tmp_path / "text.txt"
    path.write_bytes((line * 200).encode())
    assert len(cut_points(path, ["<|e|>"], span=256)) > 5


def test_an_executor_counts_the_same(tmp_path, small_spans):
    path = tmp_path / "text.txt"
    path.write_bytes("It's <|e|>the  ünï 天 1,000\r\n<|e|>\n".encode() * 50)
    expected = Counter(whole(path.read_bytes().decode(), ["<|e|>"]))
    del expected["<|e|>"]
    assert count_pretokens(path, ["<|e|>"]) == expected
    with ThreadPoolExecutor(2) as executor:
        assert count_pretokens(path, ["<|e|>"], executor) == expected
        (tmp_path / "empty").touch()
        assert count_pretokens(tmp_path / "empty", ["<|e|>"], executor) == Counter()


def test_invalid_utf8_is_refused_with_its_place(tmp_path, small_spans):
    path = tmp_path / "text.txt"
    path.write_bytes(b"good text, " * 20 + b"\xff" + b" more")
    with pytest.raises(ValueError, match=r"not UTF-8: byte 0xff at offset 220"):
        count_pretokens(path)
    path.write_bytes("a file that ends inside é".encode()[:-1])
    with pytest.raises(ValueError, match=r"byte 0xc3 at offset 24"):
        count_pretokens(path)


def test_a_missing_file_is_a_clear_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="expected a UTF-8 text file"):
        count_pretokens(tmp_path / "nowhere.txt")
