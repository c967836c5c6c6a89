"""Ids are tiktoken's on the same ranks, decoding inverts encoding, and streams change nothing."""

import pickle
import subprocess
import sys
from itertools import count, islice, pairwise

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from workbook.tokenization.bpe import train_bpe
from workbook.tokenization.pretokens import PATTERN
from workbook.tokenization.simple import ByteTokenizer, CharacterTokenizer, WordTokenizer
from workbook.tokenization.spans import count_pretokens
from workbook.tokenization.tokenizer import Tokenizer, compression_ratio

END, LONGER = "<|endoftext|>", "<|endoftext|><|endoftext|>"
CORPUS = (
    "Once upon a time the owl's tiny mouse said: 'it's 1,000 o'clock, isn't it?'  \n\n"
    "The weather was nice. Le café naïve coûte 3 €. 天气很好。我们去公园。 🙂🙂 aaaaaaaaaa\r\n"
) * 3
TEXTS = st.text(st.sampled_from("abet htowls'mI1,. \n\r好天éü🙂|<>")) | st.text()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("bpe") / "corpus.txt"
    path.write_bytes(CORPUS.encode())
    return train_bpe(path, 360, [END])


@pytest.fixture(scope="module")
def tokenizer(trained):
    return Tokenizer(*trained, [END, LONGER])


@pytest.fixture(scope="module")
def peer(tokenizer):
    specials = {token: tokenizer.encode(token)[0] for token in tokenizer.special_tokens}
    ranks = {
        token: id_
        for id_, token in tokenizer.vocab.items()
        if token.decode("latin-1") not in specials
    }
    return tiktoken.Encoding(
        "peer", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=specials
    )


@given(TEXTS)
def test_ids_equal_tiktoken_on_the_same_ranks(tokenizer, peer, text):
    assert tokenizer.encode(text) == peer.encode(text, allowed_special="all")


@given(st.integers(0, 10_000), st.integers(0, 200))
def test_ids_of_real_text_equal_tiktoken(tokenizer, peer, start, length):
    text = (CORPUS + END)[start % len(CORPUS) :][:length]
    assert tokenizer.encode(text) == peer.encode(text, allowed_special="all")


@given(TEXTS)
def test_decode_inverts_encode(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(TEXTS, st.lists(st.integers(0, 1000)))
def test_a_stream_gives_the_ids_of_the_whole(tokenizer, text, places):
    text = text + END + text
    bounds = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    pieces = [text[start:end] for start, end in pairwise(bounds)]
    assert list(tokenizer.encode_iterable(pieces)) == tokenizer.encode(text)


@given(st.lists(st.integers(0, 360)))
def test_any_ids_decode_to_their_bytes_with_replacement(tokenizer, ids):
    expected = b"".join(tokenizer.vocab[id_] for id_ in ids).decode("utf-8", errors="replace")
    assert tokenizer.decode(ids) == expected


def test_a_stream_is_read_no_further_than_needed(tokenizer):
    taken = count()
    ids = tokenizer.encode_iterable(f"owl {next(taken)} " for _ in iter(int, 1))
    assert len(list(islice(ids, 10))) == 10
    assert next(taken) < 20


def test_overlapping_special_tokens_the_longest_wins(tokenizer):
    double = tokenizer.encode(LONGER)
    single = tokenizer.encode(END)
    assert (len(double), len(single)) == (1, 1)
    assert tokenizer.encode(END * 3) == double + single
    assert tokenizer.decode(double) == LONGER


def test_special_tokens_the_vocabulary_lacks_are_appended(trained):
    vocab, merges = trained
    tokenizer = Tokenizer(vocab, merges, [END, "<|pad|>", "<|user|>"])
    assert tokenizer.encode("<|pad|><|user|>") == [len(vocab), len(vocab) + 1]
    assert tokenizer.encode(END) == [0]
    assert tokenizer.vocab_size == len(vocab) + 2
    assert len(vocab) == 360  # the caller's own dictionary stays as it was
    once = Tokenizer(vocab, merges, (token for token in ["<|pad|>"]))
    assert once.encode("<|pad|>") == [len(vocab)]


def test_without_special_tokens_their_text_is_ordinary(trained):
    tokenizer = Tokenizer(*trained)
    assert len(tokenizer.encode(END)) > 1
    assert tokenizer.decode(tokenizer.encode(END)) == END


def test_merges_are_applied_in_the_order_learnt():
    vocab = dict(enumerate([b"a", b"b", b"c", b"bc", b"ab", b"abc"]))
    tokenizer = Tokenizer(vocab, [(b"b", b"c"), (b"a", b"b")])
    assert tokenizer.encode("abc") == [0, 3]  # not ab + c, which comes first in the text
    assert tokenizer.encode("abab") == [4, 4]


def test_a_vocabulary_in_any_order_works(trained):
    vocab, merges = trained
    turned = {1000 - id_: token for id_, token in vocab.items()}
    ids = [1000 - id_ for id_ in Tokenizer(vocab, merges).encode(CORPUS)]
    assert Tokenizer(turned, merges).encode(CORPUS) == ids


def test_a_very_long_word_takes_no_quadratic_time(tokenizer):
    word = "owlmouse" * 12_500
    assert tokenizer.decode(tokenizer.encode(word)) == word


def test_files_keep_the_tokenizer(tmp_path, trained):
    tokenizer = Tokenizer(*trained, [END, "<|im start é|>"])
    files = tmp_path / "vocab.json", tmp_path / "merges.txt"
    tokenizer.save(*files)
    again = Tokenizer.from_files(*files, [END, "<|im start é|>"])
    assert (again.vocab, again.merges) == (tokenizer.vocab, tokenizer.merges)
    assert again.encode(CORPUS + END) == tokenizer.encode(CORPUS + END)


@pytest.mark.parametrize(
    "special", [" a b ", "\n", '"', "é", "ÿ", "Ġlow", "Ã©", "#version", "日", "«e»"]
)
def test_files_keep_special_tokens_of_any_letters(tmp_path, trained, special):
    tokenizer = Tokenizer(*trained, [special])
    tokenizer.save(tmp_path / "vocab.json", tmp_path / "merges.txt")
    again = Tokenizer.from_files(tmp_path / "vocab.json", tmp_path / "merges.txt", [special])
    assert again.vocab == tokenizer.vocab
    assert again.encode(f"low{special}é ÿ") == tokenizer.encode(f"low{special}é ÿ")


def test_a_large_file_is_encoded_by_its_name(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr("workbook.tokenization.tokenizer.COMPILED_FROM", 1)
    path = tmp_path / "text.txt"
    path.write_bytes(f"the cat{END}".encode() * 9)
    assert tokenizer.encode_file(str(path)).tolist() == tokenizer.encode(f"the cat{END}" * 9)


def test_another_process_gets_the_same_tokenizer(tokenizer):
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again.encode(CORPUS + LONGER) == tokenizer.encode(CORPUS + LONGER)


LONG_SPECIAL = """
from workbook.tokenization import tokenizer
from workbook.tokenization.tokenizer import Tokenizer

long = "a" * 20_000
for others in ([], ["<|end|>"]):
    for compiled_from in (1 << 30, 0):
        tokenizer.COMPILED_FROM = compiled_from
        one = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], [long, *others])
        assert one.encode(f"{long * 2}{long[1:]} ") == [256, 256, *[97] * 19_999, 32]
"""


def test_a_special_token_of_many_equal_letters_is_found_at_once():
    subprocess.run([sys.executable, "-c", LONG_SPECIAL], timeout=120, check=True)


def test_wrong_inputs_are_clear_errors(tokenizer, trained):
    with pytest.raises(ValueError, match="id 4000 is not in the vocabulary"):
        tokenizer.decode([4000])
    with pytest.raises(ValueError, match="id -1 is not"):
        tokenizer.decode([-1])
    with pytest.raises(TypeError, match=r"an id is an integer, got 3\.0"):
        tokenizer.decode([3.0])
    with pytest.raises(TypeError, match="an id is an integer, got 'a'"):
        tokenizer.decode("abc")
    with pytest.raises(TypeError, match=r"decode takes a list of ids, got 5; .*\[5\]"):
        tokenizer.decode(5)
    for vocab in ({0: "a"}, {"a": 0}, {b"a": 0}, {2.5: b"a"}, {0: bytearray(b"a")}):
        with pytest.raises(TypeError, match="vocab maps ids to bytes, got"):
            Tokenizer(vocab, [])
    with pytest.raises(TypeError, match="encode takes a string, got bytes"):
        tokenizer.encode(b"abc")
    with pytest.raises(TypeError, match="expected pieces of str"):
        list(tokenizer.encode_iterable([b"abc"]))
    with pytest.raises(ValueError, match="lone surrogate"):
        tokenizer.encode("a\ud800b")
    with pytest.raises(ValueError, match=r"needs the token b'qz'"):
        Tokenizer(trained[0], [(b"q", b"z")])
    with pytest.raises(ValueError, match=r"merge 1 is two tokens, got 3: \(b'a', b'b', b'c'\)"):
        Tokenizer(trained[0], [trained[1][0], (b"a", b"b", b"c")])
    with pytest.raises(ValueError, match=r"an id is 0 or more, got -5 for b'far'"):
        Tokenizer(trained[0] | {-5: b"far"}, trained[1])
    with pytest.raises(ValueError, match=r"special token '<.ud800>' holds a lone surrogate"):
        Tokenizer(*trained, ["<\ud800>"])
    with pytest.raises(ValueError, match=r"lacks the byte b'z'"):
        Tokenizer({0: b"a"}, []).encode("az")


STREAM_IN_ONE_MEGABYTE = """
import resource, sys, psutil
from workbook.tokenization.tokenizer import Tokenizer
tokenizer = Tokenizer.from_files(sys.argv[1], sys.argv[2], ["<|endoftext|>"])
with open(sys.argv[3], encoding="utf-8") as file:
    limit = psutil.Process().memory_info().vms + 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (limit, -1))
    print(sum(1 for _ in tokenizer.encode_iterable(file)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
def test_a_stream_needs_less_than_a_megabyte(tmp_path, tokenizer):
    files = [tmp_path / name for name in ("vocab.json", "merges.txt", "text.txt")]
    tokenizer.save(*files[:2])
    # 5 MB with 30,000 different words, so that a cache without a bound would show.
    lines = (f"{CORPUS[: number % 90]} word{number % 30_000:x}{END}\n" for number in range(60_000))
    files[2].write_text("".join(lines), encoding="utf-8")
    command = [sys.executable, "-c", STREAM_IN_ONE_MEGABYTE, *map(str, files)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 1_000_000


SIMPLE = [
    CharacterTokenizer(),
    ByteTokenizer(),
    WordTokenizer(["the", " owl", "!", " "]),
]


@pytest.mark.parametrize("simple", SIMPLE, ids=lambda simple: type(simple).__name__)
def test_all_tokenizers_share_the_interface(simple):
    text = "the owl!"
    ids = simple.encode(text)
    assert simple.decode(ids) == text
    assert list(simple.encode_iterable(["th", "e ow", "l!"])) == ids
    assert all(0 <= id_ < simple.vocab_size for id_ in ids)
    with pytest.raises(TypeError, match="encode takes a string"):
        simple.encode(b"the")


@given(TEXTS)
def test_characters_and_bytes_round_trip(text):
    for simple in (CharacterTokenizer(), ByteTokenizer()):
        assert simple.decode(simple.encode(text)) == text
    assert compression_ratio(text + "a", ByteTokenizer().encode(text + "a")) == 1


def test_unknown_words_share_one_id(tmp_path):
    (tmp_path / "text.txt").write_text("the owl the owl the owl the mouse")
    words = WordTokenizer.from_counts(count_pretokens(tmp_path / "text.txt"), 3)
    assert words.decode(words.encode(" the cat")) == " the<unk>"
    assert words.vocab_size == 3
    with pytest.raises(ValueError, match="id 3 is not"):
        words.decode([3])


def test_no_tokens_have_no_compression_ratio():
    with pytest.raises(ValueError, match="no token"):
        compression_ratio("", [])
