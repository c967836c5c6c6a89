"""Ids are tiktoken's on the same ranks, in plain Python and compiled, however the text comes."""

import pickle
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from itertools import count, islice, pairwise
from unittest.mock import Mock

import numpy as np
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from pretoken_helpers import STRESS, TEXTS, pretokens_of, random_strings

from workbook.tokenization import engine, spans
from workbook.tokenization.bpe import train_bpe
from workbook.tokenization.compiled import encode, make_encoder
from workbook.tokenization.compiled.text import spans_of, utf8_of
from workbook.tokenization.pretokens import PATTERN
from workbook.tokenization.tokenizer import PlainTokenizer, Tokenizer

END, LONGER = "<|endoftext|>", "<|endoftext|><|endoftext|>"
CORPUS = (
    "Once upon a time the owl's tiny mouse said: 'it's 1,000 o'clock, isn't it?'  \n\n"
    "The weather was nice. Le café naïve coûte 3 €. 天气很好。我们去公园。 🙂🙂 aaaaaaaaaa\r\n"
) * 3
# Letters of the corpus, so that merges apply, and odd characters.
LETTERS = st.text(st.sampled_from("abet htowls'mI1,. \n\r好天éü🙂|<>")) | TEXTS
SPECIALS = ["mouse", " the", "he", "天气", "<|a|>", "<|a|><|b|>", " ", "\n\n", "é"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("bpe") / "corpus.txt"
    path.write_bytes(CORPUS.encode())
    return train_bpe(path, 360, [END])


class Readable(Tokenizer):
    """A tokenizer that never goes through the compiled engine by itself."""

    def _take_encoder(self, size):
        return None


@pytest.fixture(scope="module")
def readable(trained):
    return Readable(*trained, [END, LONGER])


@pytest.fixture(scope="module")
def plain(trained):
    return PlainTokenizer(*trained, [END, LONGER])


class Compiled(Tokenizer):
    """A tokenizer for which every text is long enough for the compiled engine."""

    def _pays_off(self, size):
        return True


@pytest.fixture(scope="module")
def compiled(trained):
    return Compiled(*trained, [END, LONGER])


@cache
def encoder_of(one: Tokenizer) -> encode.CompiledEncoder | None:
    """The compiled encoder with the ids of a tokenizer."""
    return make_encoder(one.id_of, one.merges, one.special_ids, one._dtype)


def compiled_ids(one: Tokenizer, text: str) -> list[int]:
    """The ids by the compiled engine, which must have an encoder for it: in both ways."""
    encoder = encoder_of(one)
    assert encoder is not None
    data = utf8_of(text)
    ids = encoder.encode_spans(spans_of(data, one.special_tokens), len(data)).tolist()
    assert encoder.encode(text).tolist() == ids
    return ids


@pytest.fixture(scope="module")
def peer(readable):
    """tiktoken on the same ranks."""
    specials = {token: readable.encode(token)[0] for token in readable.special_tokens}
    ranks = {token: id_ for id_, token in readable.vocab.items()}
    for token in specials:
        del ranks[token.encode()]
    return tiktoken.Encoding(
        "peer", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=specials
    )


@pytest.mark.stress
@settings(max_examples=100 * STRESS)
@given(LETTERS | st.integers(0, 2 * len(CORPUS)).map(lambda start: CORPUS[start // 2 :][:300]))
def test_ids_equal_tiktoken_on_the_same_ranks(plain, readable, peer, text):
    """In all three ways: the textbook's, remembered, and compiled."""
    for string in (text, text + END + text):
        ids = peer.encode(string, allowed_special="all")
        assert plain.encode(string) == readable.encode(string) == ids
        assert compiled_ids(readable, string) == ids
        assert readable.decode(ids) == string


def test_words_of_every_length_have_tiktokens_ids(readable, peer):
    """Few bytes are merged in another way than many."""
    letters = "".join(filter(str.isalpha, CORPUS))
    words = [letters[at : at + size] for size in range(1, 50) for at in range(0, 2_000, 37)]
    assert compiled_ids(readable, " ".join(words)) == peer.encode(" ".join(words))


@pytest.mark.stress
def test_random_strings_have_tiktokens_ids(readable, peer):
    """Each is a document of its own."""
    strings = random_strings()
    while chunk := list(islice(strings, 10_000)):
        text = END.join(chunk)
        assert compiled_ids(readable, text) == peer.encode(text, allowed_special="all")


@settings(max_examples=STRESS * 100)
@given(LETTERS, st.lists(st.integers(0, 1000)))
def test_a_stream_gives_the_ids_of_the_whole(plain, readable, compiled, text, places):
    text = text + END + text
    bounds = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    pieces = [text[start:end] for start, end in pairwise(bounds)]
    ids = readable.encode(text)
    for one in (plain, readable, compiled):
        assert list(one.encode_iterable(pieces)) == ids


@given(st.lists(st.integers(0, 360)))
def test_any_ids_decode_to_their_bytes_with_replacement(readable, ids):
    expected = b"".join(readable.vocab[id_] for id_ in ids).decode("utf-8", errors="replace")
    assert readable.decode(ids) == expected


def test_a_stream_is_read_no_further_than_needed(readable):
    taken = count()
    ids = readable.encode_iterable(f"owl {next(taken)} " for _ in iter(int, 1))
    assert len(list(islice(ids, 10))) == 10
    assert next(taken) < 20


@given(st.lists(st.sampled_from(SPECIALS), max_size=5), st.lists(st.sampled_from([*SPECIALS, "t"])))
def test_special_tokens_of_any_text_are_found(trained, specials, parts):
    """Of those that begin at one place, the longest."""
    one = Tokenizer(*trained, specials)
    text = "".join(parts)
    expected = []
    for pretoken in pretokens_of(text, specials):
        special = [token_id for token_id, token in one.vocab.items() if token == pretoken.encode()]
        expected += special if pretoken in specials else Tokenizer(*trained).encode(pretoken)
    for ids in (one.encode(text), one.encode_iterable([text]), compiled_ids(one, text)):
        assert list(ids) == expected
    assert PlainTokenizer(*trained, specials).encode(text) == expected


def test_special_tokens_the_vocabulary_lacks_are_appended(trained):
    vocab, merges = trained
    one = Tokenizer(vocab, merges, [END, "<|pad|>", "<|user|>"])
    assert one.encode("<|pad|><|user|>") == [len(vocab), len(vocab) + 1]
    assert one.encode(END) == [0]
    assert one.vocab_size == len(vocab) + 2
    assert len(vocab) == 360  # the caller's own dictionary stays as it was


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64])
def test_ids_may_be_integers_of_numpy(dtype):
    one = Tokenizer({dtype(byte): bytes([byte]) for byte in range(256)}, [], [END])
    assert one.vocab_size == 257
    assert one.encode(f"a{END}") == compiled_ids(one, f"a{END}") == [97, 256]
    assert all(type(token_id) is int for token_id in one.encode("low"))


def test_of_two_ids_for_the_same_bytes_text_gets_the_lower(trained):
    vocab, merges = trained
    one = Tokenizer(vocab | {5000: vocab[300]}, merges)
    assert compiled_ids(one, CORPUS) == Tokenizer(vocab, merges).encode(CORPUS)


@pytest.mark.parametrize("shift", [(1 << 20) - 300, 1 << 20, (1 << 32) - 5_000])
def test_ids_may_be_large_and_in_any_order(readable, shift):
    """Some or all are too large to be packed three to a number; the merges alone have an order."""
    vocab = {shift + 400 - token_id: token for token_id, token in readable.vocab.items()}
    one = Tokenizer(vocab, readable.merges, readable.special_tokens)
    text = CORPUS + LONGER + "xylitol owlowlowl" + END
    expected = [shift + 400 - token_id for token_id in readable.encode(text)]
    assert compiled_ids(one, text) == one.encode(text) == expected


def test_an_array_has_the_ids_of_the_list(readable, compiled):
    for text in ("", CORPUS + END + LONGER):
        for one in (readable, compiled):
            ids = one.encode_array(text)
            assert ids.dtype == np.uint16
            assert ids.tolist() == one.encode(text) == readable.encode(text)
    far = Tokenizer(readable.vocab | {1 << 31: b"far away"}, readable.merges)
    assert far.encode_array("low").dtype == np.uint32


HALVES = [END[:5], END[5:], "", END, END + END, "low" + END, END + "the", LONGER[:-1], LONGER[-1:]]


def batch_of(one: Tokenizer, texts: Iterable[str]) -> list[list[int]]:
    """The ids of each text of a batch."""
    ids, starts = one.encode_batch(texts)
    assert ids.dtype == np.uint16 and starts[0] == 0 and starts[-1] == len(ids)
    return [ids[start:stop].tolist() for start, stop in pairwise(starts)]


@settings(max_examples=STRESS * 50)
@given(texts=st.lists(st.sampled_from(HALVES) | LETTERS, max_size=30))
def test_a_batch_has_the_ids_of_each_text(readable, compiled, texts):
    expected = [readable.encode(text) for text in texts]
    for one in (readable, compiled):
        assert batch_of(one, iter(texts)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_cores_share_a_large_batch(readable, compiled, monkeypatch, threads):
    monkeypatch.setattr("workbook.tokenization.tokenizer.BATCH_PER_THREAD", 1_000)
    monkeypatch.setattr("workbook.config.cores", lambda: threads)
    long = CORPUS * 4_800
    assert len(long) > encode.FEW_BYTES
    texts = [
        *islice(random_strings(), 300),
        long,
        "",
        f"{CORPUS}{END}",
        long + END,
        *["low"] * 999,
        "天" * 999,
    ]
    assert batch_of(compiled, texts) == [readable.encode(text) for text in texts]
    assert batch_of(compiled, []) == []
    ids = compiled.encode_batch(texts)[0]
    before = ids.copy()
    compiled.encode_batch(texts[::-1])
    assert np.array_equal(ids, before), "a later call writes to other memory"


def test_a_text_in_memory_is_encoded_span_by_span(readable, compiled, monkeypatch):
    monkeypatch.setattr(spans, "SPAN", 64)
    one = Tokenizer(readable.vocab, readable.merges, [END, LONGER, "ow th", " "])
    other = pickle.loads(pickle.dumps(one))
    text = (CORPUS + END + LONGER + "the low the天 low\n") * 9
    expected = list(other.encode_iterable([text]))
    assert one.encode(text) == one.encode_array(text).tolist() == expected
    assert compiled.encode(text) == readable.encode(text)


def test_very_long_words_and_rows_of_special_tokens_take_seconds(plain, readable):
    word = "owlmouse" * 12_500
    assert readable.encode(word[:9_999]) == plain.encode(word[:9_999])
    assert readable.decode(readable.encode(word)) == word
    for text in (word * 10, "\0" * 300_000, END * 99_999):
        assert readable.decode(compiled_ids(readable, text)) == text


def test_words_are_merged_once_but_long_ones_are_not_kept_in_memory(readable, monkeypatch):
    merged = []
    merge = Tokenizer.merge

    def noting(self, pretoken):
        merged.append(pretoken)
        return merge(self, pretoken)

    monkeypatch.setattr(Tokenizer, "merge", noting)
    long = "x" * 1_000
    text = f"owlowl{long[:9]} {long}"
    assert readable.encode(text) == readable.encode(text)
    assert merged == [f"owlowl{long[:9]}", f" {long}", f" {long}"]
    merged.clear()
    assert [*readable.encode_iterable([text, "\n", text])]
    assert merged == [f"owlowl{long[:9]}", f" {long}", "\n", f" {long}"]


def test_the_memory_of_the_encoder_is_bounded(readable, monkeypatch):
    """Tables that fill up are emptied, in the middle of a text, and no id changes."""
    monkeypatch.setattr(encode, "MOST_SLOTS", 1 << 14)
    monkeypatch.setattr(encode, "MOST_BYTES", 1 << 17)
    one = pickle.loads(pickle.dumps(readable))
    text = " ".join(f"{number:x}owl" * (1 + number % 5) for number in range(20_000))
    expected = readable.encode(text)
    encoder = encoder_of(one)
    for _ in range(2):
        assert encoder.encode(text).tolist() == expected
    assert len(encoder.table.slots) == 1 << 14
    assert encoder.table.pool_used < 1 << 18


def test_pairs_of_zeros_are_told_from_free_places():
    merges = [(b"\0", b"\0"), (b"\0\0", b"a"), (b"\0", b"\x01"), (b"\x01", b"\0")]
    tokens = [bytes([byte]) for byte in range(256)] + [left + right for left, right in merges]
    one = Tokenizer(dict(enumerate(tokens)), merges)
    for text in ("\0", "\0\0", "\0\0\0a", "\0\x01\0\x01\0\0", "a\0b"):
        assert compiled_ids(one, text) == PlainTokenizer(one.vocab, merges).encode(text)


def test_the_table_owns_its_keys(readable):
    """A second text at the address of the first is not taken for it."""
    texts = [f"{letter * 40} {letter}b" for letter in "abc"]
    for text in texts * 2:
        assert compiled_ids(readable, text) == readable.encode(text)


def test_odd_vocabularies_fall_back(trained, monkeypatch):
    monkeypatch.setattr(engine, "pays_off", lambda size: True)
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
        assert one._take_encoder(1) is None
        expected = PlainTokenizer(one.vocab, one.merges).encode("abc abcd " * 9)
        assert one.encode("abc abcd " * 9) == expected


def test_files_keep_the_tokenizer(tmp_path, trained):
    files = tmp_path / "vocab.json", tmp_path / "merges.txt"
    odd = ["<|im start é|>", "\n", '"', "é", "Ġlow", "Ã©", "#version", "日", "«e»"]
    for special in odd:
        one = Tokenizer(*trained, [END, special])
        one.save(*files)
        again = Tokenizer.from_files(*files, [END, special])
        assert (again.vocab, again.merges) == (one.vocab, one.merges)
        text = f"{CORPUS}{END}low{special}é ÿ"
        assert again.encode(text) == one.encode(text)


def test_a_special_token_of_many_equal_letters_is_found_at_once(readable):
    """`regex` would take minutes, `re` takes a moment."""
    long = "a" * 20_000
    one = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], [long, END])
    text = f"{long * 2}{long[1:]} "
    ids = [256, 256, *[97] * 19_999, 32]
    assert one.encode(text) == compiled_ids(one, text) == ids


def test_ids_that_stand_for_nothing_are_refused(readable):
    for ids, error, words in (
        ([-1], ValueError, "id -1 is not in the vocabulary"),
        ([3.0], TypeError, r"an id is an integer, got 3\.0"),
        (5, TypeError, r"decode takes a list of ids, got 5; .*\[5\]"),
    ):
        with pytest.raises(error, match=words):
            readable.decode(ids)


def test_a_vocabulary_that_does_not_fit_its_merges_is_refused(trained):
    vocab, merges = trained
    for odd, pairs, error, words in (
        ({0: "a"}, [], TypeError, "vocab maps ids to bytes, got"),
        ({"a": 0}, [], TypeError, "vocab maps ids to bytes, got"),
        (vocab, [(b"q", b"z")], ValueError, "needs the token b'qz'"),
        (vocab, [merges[0], (b"a", b"b", b"c")], ValueError, "merge 1 is two tokens, both bytes"),
        (vocab, [("t", "h")], ValueError, "merge 0 is two tokens, both bytes, got .'t', 'h'"),
        (vocab | {-5: b"far"}, merges, ValueError, "an id is 0 or more, got -5 for b'far'"),
    ):
        with pytest.raises(error, match=words):
            Tokenizer(odd, pairs)
    with pytest.raises(ValueError, match=r"lacks the byte b'z'"):
        Tokenizer({0: b"a"}, []).encode("az")


def batch_with(one, text):
    return one.encode_batch(["a", text])


def test_lone_surrogates_and_bytes_are_refused_by_both_engines(readable, compiled):
    for one in (readable, compiled):
        for method in (
            one.encode,
            one.encode_array,
            lambda text, one=one: one.encode_batch(["a", text]),
        ):
            for text in ("\ud800", "ab " * 9_999 + "\ud800"):  # not in the first piece
                with pytest.raises(UnicodeEncodeError, match="allowed: text") as raised:
                    method(text)
                assert (raised.value.start, raised.value.end) == (len(text) - 1, len(text))
            with pytest.raises(UnicodeEncodeError, match=r"position 3-4: .* joins pairs"):
                method("an \ud83d\udc4d")
            with pytest.raises(TypeError, match="encode takes a string, got bytes"):
                method(b"abc")
        with pytest.raises(TypeError, match=r"a list of texts; write \['abc'\]"):
            one.encode_batch("abc")
    assert compiled.encode("abc") == readable.encode("abc")


STREAM_IN_ONE_MEGABYTE = """
import resource, sys, psutil
from workbook.tokenization.tokenizer import Tokenizer
tokenizer = Tokenizer.from_files(sys.argv[1], sys.argv[2], ["<|endoftext|>"])
with open(sys.argv[3], encoding="utf-8") as file:
    limit = psutil.Process().memory_info().vms + 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (limit, -1))
    print(sum(1 for _ in tokenizer.encode_iterable(file)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
def test_a_stream_needs_less_than_a_megabyte(tmp_path, readable):
    files = [tmp_path / name for name in ("vocab.json", "merges.txt", "text.txt")]
    readable.save(*files[:2])
    # 2 MB, and all words are different, so that a cache without a bound would show.
    lines = (f"{CORPUS[: number % 90]} word{number:x}{END}\n" for number in range(25_000))
    files[2].write_text("".join(lines), "utf-8")
    command = [sys.executable, "-c", STREAM_IN_ONE_MEGABYTE, *map(str, files)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 400_000


@pytest.fixture
def text(tmp_path, monkeypatch):
    """A file that is cut into dozens of spans, a few to a task, and shared by threads."""
    monkeypatch.setattr(spans, "SPANS_PER_TASK", 7)
    monkeypatch.setattr(spans, "PER_THREAD", 1)
    monkeypatch.setattr(spans, "SPAN", 256)
    path = tmp_path / "text.txt"
    path.write_bytes((CORPUS + END).encode() * 20)
    return path


def test_a_file_gives_the_ids_of_its_text(text, readable, compiled):
    expected = readable.encode(text.read_bytes().decode())
    for one in (readable, compiled):
        for pool in (nullcontext(), ThreadPoolExecutor(2), ProcessPoolExecutor(2)):
            with pool as executor:
                ids = one.encode_file(text, executor)
            assert ids.dtype == np.uint16 and ids.tolist() == expected


def test_threads_may_share_a_tokenizer(compiled, readable, monkeypatch):
    made = Mock(side_effect=make_encoder)
    monkeypatch.setattr("workbook.tokenization.compiled.make_encoder", made)
    texts = [CORPUS[start:] * 20 for start in range(0, 200, 20)]
    with ThreadPoolExecutor(4) as executor:
        ids = list(executor.map(compiled.encode, texts))
    assert ids == [readable.encode(text) for text in texts]
    assert made.call_count <= 4


def test_pickling_keeps_the_tokenizer_and_not_what_it_remembers(compiled):
    ids = compiled.encode(CORPUS + LONGER)
    assert pickle.loads(pickle.dumps(compiled)).encode(CORPUS + LONGER) == ids
    assert len(pickle.dumps(compiled)) < 50_000
