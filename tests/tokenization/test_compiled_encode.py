"""The compiled encoder gives the readable tokenizer's ids, which are tiktoken's, on any text."""

import pickle
import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import tiktoken
from fast_helpers import STRESS, TEXTS, odd_strings
from hypothesis import given
from hypothesis import strategies as st

from workbook.tokenization import spans, tokenizer
from workbook.tokenization.bpe import train_bpe
from workbook.tokenization.compiled import encode
from workbook.tokenization.pretokens import PATTERN
from workbook.tokenization.spans import cut_points
from workbook.tokenization.tokenizer import Tokenizer

END = "<|endoftext|>"
CORPUS = (
    "Once upon a time the owl's tiny mouse said: 'it's 1,000 o'clock, isn't it?'  \n\n"
    "The weather was nice. Le café naïve coûte 3 €. 天气很好。我们去公园。 🙂🙂 aaaaaaaaaa\r\n"
) * 3
SPECIALS = ["mouse", " the", "he", "天气", "<|a|>", "<|a|><|b|>", " ", "\n\n", "é"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("bpe") / "corpus.txt"
    path.write_bytes(CORPUS.encode())
    return train_bpe(path, 400, [END])


@pytest.fixture(scope="module")
def readable(trained):
    return Tokenizer(*trained, [END])


@pytest.fixture
def compiled(trained, monkeypatch):
    """The same tokenizer where every text is long enough for the compiled engine."""
    monkeypatch.setattr(tokenizer, "COMPILED_FROM", 0)
    return Tokenizer(*trained, [END])


def compiled_ids(one: Tokenizer, text: str) -> list[int]:
    """The ids by the compiled engine, in which the tokenizer must have an encoder."""
    with one.compiled_encoder() as encoder:
        assert encoder is not None
        return encoder.encode(text).tolist()


@given(TEXTS)
def test_ids_equal_the_readable_tokenizers(readable, text):
    assert compiled_ids(readable, text + END + text) == readable.encode(text + END + text)


@pytest.fixture(scope="module")
def peer(readable):
    """tiktoken on the same ranks."""
    ranks = {token: id_ for id_, token in readable.vocab.items() if token != END.encode()}
    return tiktoken.Encoding(
        "peer", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={END: 0}
    )


@given(st.integers(0, 10_000), st.integers(0, 300))
def test_ids_of_real_text_equal_tiktoken(readable, peer, start, length):
    text = (CORPUS + END)[start % len(CORPUS) :][:length]
    assert compiled_ids(readable, text) == peer.encode(text, allowed_special="all")


@pytest.mark.stress
def test_ids_of_a_hundred_thousand_strings_equal_tiktoken(readable, peer):
    draw = random.Random(STRESS)
    for _ in range(50 * STRESS):
        text = END.join(odd_strings(draw, 2000))
        assert compiled_ids(readable, text) == peer.encode(text, allowed_special="all")


@given(st.lists(st.sampled_from(SPECIALS), max_size=5), st.lists(st.sampled_from([*SPECIALS, "t"])))
def test_special_tokens_of_any_text_are_found(trained, specials, parts):
    one = Tokenizer(*trained, specials)
    text = "".join(parts)
    expected = list(one.encode_iterable([text]))
    assert compiled_ids(one, text) == expected
    assert one.encode(text) == expected


def test_a_hundred_thousand_special_tokens_in_a_row(readable):
    assert compiled_ids(readable, END * 100_000) == [0] * 100_000


@pytest.mark.parametrize("length", [1 << 10, (1 << 10) + 1, 4_000])
def test_long_words_equal_the_readable_tokenizers(readable, length):
    text = " ".join(("owlmouse" * 600)[start:][:length] for start in range(3))
    assert compiled_ids(readable, text) == readable.encode(text)


def test_a_word_of_a_megabyte_and_a_text_of_nuls_take_seconds(readable):
    word = "owlmouse" * 131_072
    assert readable.decode(compiled_ids(readable, word)) == word
    assert readable.decode(compiled_ids(readable, "\0" * 300_000)) == "\0" * 300_000


def test_the_memory_of_the_encoder_is_bounded(readable, monkeypatch):
    """Tables that fill up are emptied, in the middle of a text, and no id changes."""
    monkeypatch.setattr(encode, "MOST_SLOTS", 1 << 14)
    monkeypatch.setattr(encode, "MOST_BYTES", 1 << 17)
    one = pickle.loads(pickle.dumps(readable))
    text = " ".join(f"{number:x}owl" * (1 + number % 5) for number in range(40_000))
    expected = readable.encode(text)
    with one.compiled_encoder() as encoder:
        for _ in range(2):
            assert encoder.encode(text).tolist() == expected
    assert len(encoder.table.slots) == 1 << 14
    assert encoder.table.pool_used + 8 * encoder.used_pieces < 1 << 18


def test_the_table_owns_its_keys(readable):
    """A second text at the address of the first is not taken for it."""
    texts = [f"{letter * 40} {letter}b" for letter in "abc"]
    for text in texts * 2:
        assert compiled_ids(readable, text) == readable.encode(text)


def test_odd_vocabularies_fall_back(trained, monkeypatch):
    monkeypatch.setattr(tokenizer, "COMPILED_FROM", 0)
    vocab, merges = trained
    no_z = {id_: token for id_, token in vocab.items() if token != b"z"}
    twice = [(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"a", b"bc")]
    tokens = [b"ab", b"bc", b"abc", b"qq", b"qqq"]
    more = vocab | dict(enumerate(tokens, start=1000))
    for one in (
        Tokenizer(no_z, merges),
        Tokenizer(more, twice),
        Tokenizer(more, [(b"qq", b"q")]),  # no merge makes "qq"
        Tokenizer(vocab | {1 << 40: b"zzz"}, merges),  # ids that need more than 32 bits
    ):
        with one.compiled_encoder() as encoder:
            assert encoder is None
        assert one.encode("abc abcd " * 9) == list(one.encode_iterable(["abc abcd " * 9]))


def test_of_two_ids_for_the_same_bytes_text_gets_the_lower(trained):
    vocab, merges = trained
    one = Tokenizer(vocab | {5000: vocab[300]}, merges)
    assert compiled_ids(one, CORPUS) == Tokenizer(vocab, merges).encode(CORPUS)


def test_lone_surrogates_are_refused_alike(readable, compiled):
    for one in (readable, compiled):
        with pytest.raises(ValueError, match=r"'\\ud800' holds a lone surrogate"):
            one.encode("\ud800")
        with pytest.raises(TypeError, match="encode takes a string, got bytes"):
            one.encode(b"abc")
    assert compiled.encode("abc") == readable.encode("abc")


@pytest.fixture
def text(tmp_path, monkeypatch):
    """A file that is cut into a hundred spans, a few to a task."""
    monkeypatch.setattr(spans, "SPANS_PER_TASK", 7)
    monkeypatch.setattr(spans, "SPAN", 256)
    path = tmp_path / "text.txt"
    path.write_bytes((CORPUS + END).encode() * 40)
    return path


def test_a_file_gives_the_ids_of_its_text(text, readable, compiled):
    expected = readable.encode(text.read_bytes().decode())
    for one in (readable, compiled):
        for executor in (None, ThreadPoolExecutor(2), ProcessPoolExecutor(2)):
            ids = one.encode_file(text, executor)
            assert ids.dtype == np.uint16
            assert ids.tolist() == expected
            if executor:
                executor.shutdown()


def test_spans_together_are_the_file(text, compiled):
    cuts = cut_points(text, [END])
    parts = [list(compiled.encode_spans(text, [start, end])) for start, end in pairwise(cuts)]
    whole = np.concatenate(list(compiled.encode_spans(text, cuts)))
    assert np.array_equal(np.concatenate([ids for part in parts for ids in part]), whole)


def test_files_that_are_empty_or_no_utf8(tmp_path, readable, compiled):
    path = tmp_path / "text.txt"
    for one in (readable, compiled):
        path.write_bytes(b"")
        assert one.encode_file(path).tolist() == []
        path.write_bytes("a file that ends inside é".encode()[:-1])
        with pytest.raises(ValueError, match=r"not UTF-8: byte 0xc3 at offset 24"):
            one.encode_file(path)
        with pytest.raises(FileNotFoundError, match="expected a UTF-8 text file"):
            one.encode_file(tmp_path / "nowhere.txt")


def test_threads_may_share_a_tokenizer(compiled, readable):
    texts = [CORPUS[start:] * 20 for start in range(0, 200, 10)]
    with ThreadPoolExecutor(4) as executor:
        ids = list(executor.map(compiled.encode, texts))
    assert ids == [readable.encode(text) for text in texts]
    assert len(compiled._idle_encoders) <= 4


def test_a_tokenizer_that_has_encoded_can_be_pickled(compiled):
    ids = compiled.encode(CORPUS)
    assert pickle.loads(pickle.dumps(compiled)).encode(CORPUS) == ids
