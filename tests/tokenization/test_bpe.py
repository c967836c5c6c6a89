"""Training gives the merges of the textbook algorithm, and a vocabulary in the stated order."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbook.tokenization import engine
from workbook.tokenization.bpe import train_bpe, train_in_python, train_incremental, train_naive

END = "<|endoftext|>"
WORDS = st.text(st.sampled_from("abc"), min_size=1, max_size=12) | st.text(min_size=1, max_size=8)
COUNTS = st.dictionaries(WORDS, st.integers(1, 5), max_size=12)

TOY = {"low": 5, "lower": 2, "widest": 3, "newest": 6}


def write(path, text):
    path.write_bytes(text.encode())
    return path


def paper(counts: dict[str, int], num_merges: int) -> list[tuple[bytes, bytes]]:
    """Another way to the same merges: on ids, with words as strings of private characters.

    Every symbol is one character, so a merge is `str.replace`, which joins from left to right.
    """
    tokens = {chr(0xE000 + byte): bytes([byte]) for byte in range(256)}
    words = [("".join(chr(0xE000 + byte) for byte in w.encode()), counts[w]) for w in counts]
    merges = []
    for number in range(num_merges):
        pairs = Counter()
        for word, count in words:
            for left, right in pairwise(word):
                pairs[left + right] += count
        if not pairs:
            break
        _, *merge, best = max((pairs[pair], *map(tokens.get, pair), pair) for pair in pairs)
        merges.append(tuple(merge))
        tokens[chr(0xF0000 + number)] = b"".join(merge)
        words = [(word.replace(best, chr(0xF0000 + number)), count) for word, count in words]
    return merges


@given(COUNTS, st.integers(0, 40))
def test_naive_equals_an_independent_trainer(counts, num_merges):
    assert train_naive(counts, num_merges) == paper(counts, num_merges)


@given(COUNTS, st.integers(0, 40))
def test_incremental_equals_naive(counts, num_merges):
    assert train_incremental(counts, num_merges) == train_naive(counts, num_merges)


def test_the_toy_corpus_of_the_handout():
    expected = ["s t", "e st", "o w", "l ow", "w est", "n e", "ne west", "w i", "wi d", "wid est"]
    expected += ["low e", "lowe r"]
    merges = [tuple(map(str.encode, merge.split())) for merge in expected]
    for train in (train_naive, train_incremental):
        assert train(TOY, 100) == merges


def test_a_prefix_is_the_smaller_of_two_byte_strings():
    # Once "ab" and "abc" are tokens, both stand before x equally often.
    counts = {"ab": 50, "abc": 40, "abx": 3, "abcx": 3}
    for train in (train_naive, train_incremental):
        assert train(counts, 3) == [(b"a", b"b"), (b"ab", b"c"), (b"abc", b"x")]


def test_ids_are_special_tokens_then_bytes_then_merges(tmp_path):
    path = write(tmp_path / "text.txt", "low low<|b|>low<|a|>")
    vocab, merges = train_bpe(path, 261, ["<|b|>", "<|a|>"])
    assert [vocab[0], vocab[1], vocab[2], vocab[257]] == [b"<|b|>", b"<|a|>", b"\x00", b"\xff"]
    assert list(vocab) == list(range(261))
    assert [left + right for left, right in merges] == [vocab[258], vocab[259], vocab[260]]


def test_special_tokens_are_boundaries_and_never_counted(tmp_path):
    text = write(tmp_path / "text.txt", "ab<|e|>cd" * 9 + " xy")
    vocab, merges = train_bpe(text, 300, ["<|e|>"])
    assert (b"<", b"|") not in merges
    assert not any(b"bc" in token for token in vocab.values())


def test_special_tokens_come_in_any_kind_of_collection(tmp_path):
    path = write(tmp_path / "text.txt", f"low{END}lower" * 3)
    right = train_bpe(path, 260, [END])
    for tokens in [(END,), {END}, {END: 1}, (token for token in [END]), [END, END]]:
        assert train_bpe(path, 260, tokens) == right
    assert train_bpe(path, 260, None) == train_bpe(path, 260, [])
    vocab, _ = train_bpe(path, 300, set("hgfedcba"))
    assert [vocab[token_id].decode() for token_id in range(8)] == sorted("hgfedcba")


def test_text_that_runs_out_of_pairs_gives_a_smaller_vocabulary(tmp_path):
    vocab, merges = train_bpe(write(tmp_path / "text.txt", "abc abc"), 1000, [])
    assert len(vocab) == 256 + len(merges)
    assert vocab[len(vocab) - 1] in (b" abc", b"abc")
    assert train_bpe(write(tmp_path / "empty.txt", ""), 1000, [END])[1] == []


def test_bad_arguments_are_clear_errors(tmp_path):
    path = write(tmp_path / "text.txt", "text")
    with pytest.raises(ValueError, match=r"vocab_size=256 is too small.*at least 257"):
        train_bpe(path, 256, [END])
    with pytest.raises(TypeError, match="list of strings"):
        train_bpe(path, 300, END)
    with pytest.raises(TypeError, match="vocab_size is a whole number"):
        train_bpe(path, 300.5, [END])
    with pytest.raises(FileNotFoundError, match="is not a file"):
        train_bpe(tmp_path, 300, [END])


def test_training_in_python_and_compiled_gives_the_same_merges(tmp_path, monkeypatch):
    path = write(tmp_path / "text.txt", f"One day,  the 天 fox said: it's mine!{END}\n" * 300)
    monkeypatch.setattr(engine, "pays_off", lambda size: True)
    _, merges = train_bpe(path, 300, [END, " fox"])
    for workers in (0, 2):
        assert train_in_python(path, 300, [END, " fox"], workers=workers) == merges
