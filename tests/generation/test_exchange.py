"""What is saved for other libraries gives the same ids there; what they save gives theirs here."""

import base64
import json

import pytest
import tiktoken
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tiktoken.load import load_tiktoken_bpe
from tokenizers import decoders, models, pre_tokenizers, trainers

from workbook.generation.formats import (
    load_tiktoken,
    load_tokenizer_json,
    save_tiktoken,
    save_tokenizer_json,
)
from workbook.tokenization.bpe import train_bpe
from workbook.tokenization.pretokens import PATTERN
from workbook.tokenization.tokenizer import Tokenizer

END, PAD = "<|endoftext|>", "<|pad é|>"
CORPUS = (
    "Once upon a time the owl's tiny mouse said: 'it's 1,000 o'clock, isn't it?'  \n\n"
    "The weather was nice. Le café naïve coûte 3 €. 天气很好。我们去公园。 🙂🙂 aaaaaaaaaa\r\n"
) * 3
# Characters that every Unicode version of the last ten years knows alike.
TEXTS = st.text(st.sampled_from("abet htowls'mI1,. \n\r\t好天éü🙂|<>½²\u3000\u00a0\u0301"))
TEXTS = TEXTS | TEXTS.map(lambda text: text + END + text + PAD)


@pytest.fixture(scope="module", autouse=True)
def tiktoken_reads_files_anew():
    """Without this it keeps copies by path, and might open the file of an earlier run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exchange")
    (folder / "corpus.txt").write_bytes(CORPUS.encode())
    return folder


@pytest.fixture(scope="module")
def ours(folder):
    return Tokenizer(*train_bpe(folder / "corpus.txt", 420, [END]), [END, PAD])


@pytest.fixture(scope="module")
def hugging_face(folder, ours):
    save_tokenizer_json(ours, folder / "ours.json")
    return tokenizers.Tokenizer.from_file(str(folder / "ours.json"))


@pytest.fixture(scope="module")
def from_tiktoken(folder, ours):
    specials = save_tiktoken(ours, folder / "ours.tiktoken")
    ranks = load_tiktoken_bpe(str(folder / "ours.tiktoken"))
    return tiktoken.Encoding(
        "ours", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=specials
    )


@given(TEXTS)
def test_others_give_our_ids_on_what_we_save(ours, hugging_face, from_tiktoken, text):
    ids = ours.encode(text)
    assert hugging_face.encode(text).ids == ids
    assert from_tiktoken.encode(text, allowed_special="all") == ids
    assert hugging_face.decode(ids, skip_special_tokens=False) == text


def test_what_we_save_we_load(folder, ours, hugging_face, from_tiktoken):
    again = load_tokenizer_json(folder / "ours.json")
    assert (again.vocab, again.merges) == (ours.vocab, ours.merges)
    specials = {END: ours.encode(END)[0], PAD: ours.encode(PAD)[0]}
    again = load_tiktoken(folder / "ours.tiktoken", specials)
    assert (again.vocab, again.merges) == (ours.vocab, ours.merges)


@pytest.fixture(scope="module")
def theirs(folder):
    """A tokenizer that Hugging Face's library trained."""
    theirs = tokenizers.Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=[END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator([CORPUS], trainer)
    theirs.save(str(folder / "theirs.json"))
    return theirs


@pytest.fixture(scope="module")
def loaded(folder, theirs):
    return load_tokenizer_json(folder / "theirs.json")


@given(TEXTS)
def test_we_give_hugging_faces_ids_on_what_it_saves(theirs, loaded, text):
    assert loaded.encode(text) == theirs.encode(text).ids


def test_we_give_tiktokens_ids_on_its_ranks(folder, ours):
    """Ranks with the bytes in another order, as in the published files."""
    tokens = [bytes([value ^ 33]) for value in range(256)]
    tokens += [left + right for left, right in ours.merges]
    lines = (base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))
    (folder / "ranks.tiktoken").write_bytes(b"".join(lines))
    peer = tiktoken.Encoding(
        "peer",
        pat_str=PATTERN,
        mergeable_ranks=load_tiktoken_bpe(str(folder / "ranks.tiktoken")),
        special_tokens={END: 9_999},
    )
    loaded = load_tiktoken(folder / "ranks.tiktoken", {END: 9_999})
    assert loaded.merges == ours.merges
    text = CORPUS + END + "\x00~"
    assert loaded.encode(text) == peer.encode(text, allowed_special="all")


def test_special_tokens_that_are_words_survive(folder, ours):
    token = next(left + right for left, right in ours.merges[::-1] if b" " in left).decode()
    one = Tokenizer(ours.vocab, ours.merges, [token, END])
    save_tokenizer_json(one, folder / "words.json")
    peer = tokenizers.Tokenizer.from_file(str(folder / "words.json"))
    assert peer.encode(CORPUS + END).ids == one.encode(CORPUS + END)
    assert load_tokenizer_json(folder / "words.json").encode(CORPUS) == one.encode(CORPUS)


def test_a_special_token_that_reads_like_a_byte_is_refused(tmp_path, ours):
    with pytest.raises(ValueError, match=r"'é' is also how .* writes the token b'\\xe9'"):
        save_tokenizer_json(Tokenizer(ours.vocab, ours.merges, ["é"]), tmp_path / "x.json")
    assert list(tmp_path.iterdir()) == []


def test_ids_that_are_no_ranks_are_refused(tmp_path, ours):
    turned = {1000 - id_: token for id_, token in ours.vocab.items()}
    with pytest.raises(ValueError, match="do not rise in the order of its merges"):
        save_tiktoken(Tokenizer(turned, ours.merges), tmp_path / "x.tiktoken")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pre_tokenizer": None}, "pre_tokenizer None"),
        ({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True}}, "add_prefix_space"),
        ({"pre_tokenizer": {"type": "ByteLevel", "use_regex": False}}, "use_regex=false"),
        ({"normalizer": {"type": "NFC"}}, "normalizer NFC"),
        ({"padding": {"pad_id": 0}}, "padding set"),
        ({"model": {"type": "Unigram", "vocab": []}}, "model Unigram"),
        ({"added_tokens": [{"id": 0, "content": "<m>", "lstrip": True}]}, "lstrip of '<m>'"),
        ({"model": 3}, "is no tokenizer.json"),
    ],
)
def test_tokenizers_of_another_kind_are_refused_by_name(folder, hugging_face, change, words):
    told = json.loads((folder / "ours.json").read_text(encoding="utf-8"))
    (folder / "other.json").write_text(json.dumps(told | change))
    with pytest.raises(ValueError, match=words):
        load_tokenizer_json(folder / "other.json")


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "x").write_text("not json")
    with pytest.raises(ValueError, match=r"is no tokenizer\.json"):
        load_tokenizer_json(tmp_path / "x")
    with pytest.raises(ValueError, match="line 1: expected a token in base64"):
        load_tiktoken(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"YQ== 0\nYWJj 1\n")
    with pytest.raises(ValueError, match="no merge of two tokens makes b'abc'"):
        load_tiktoken(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"YQ== 0\n")
    with pytest.raises(ValueError, match=r"id of the special token '<\|e\|>' is a rank"):
        load_tiktoken(tmp_path / "x", {"<|e|>": 0})
    for load in (load_tiktoken, load_tokenizer_json):
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "nowhere")
