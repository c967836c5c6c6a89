"""Token files hold the ids of their text; a run that was killed is resumed, not repeated."""

import json
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from hashlib import sha256

import numpy as np
import pytest

from workbook.classroom import cli
from workbook.files import LOCK
from workbook.tokenization import spans, token_files
from workbook.tokenization.bpe import train_bpe
from workbook.tokenization.token_files import fingerprint, read_tokens, tokenize_file
from workbook.tokenization.tokenizer import Tokenizer

END = "<|endoftext|>"


@pytest.fixture(autouse=True)
def small_spans(monkeypatch):
    monkeypatch.setattr(spans, "SPANS_PER_TASK", 5)
    monkeypatch.setattr(spans, "SPAN", 512)


def test_a_text_comes_back_in_blocks_with_its_line_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(spans, "BLOCK", 4)
    text = "Eins\r\nzwei\ndreißig 🐉\r"
    (tmp_path / "text.txt").write_bytes(text.encode())
    blocks = list(token_files.read_text(tmp_path / "text.txt"))
    assert "".join(blocks) == text
    assert max(map(len, blocks)) == 4


def test_a_file_that_is_missing_or_cut_short_is_a_clear_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="encode the corpus first"):
        read_tokens(tmp_path / "ids.npy")
    for left in (0, 50, 128, 1000):
        np.save(tmp_path / "ids.npy", np.arange(500, dtype=np.uint16))
        os.truncate(tmp_path / "ids.npy", left)
        with pytest.raises(ValueError, match=r"ids\.npy is not a complete token file .*remove it"):
            read_tokens(tmp_path / "ids.npy")


def test_a_damaged_header_is_a_clear_error_whatever_numpy_makes_of_it(tmp_path):
    path = tmp_path / "ids.npy"
    refused = 0
    np.save(path, np.arange(500, dtype=np.uint16))
    data = path.read_bytes()
    for place in range(128):
        for bit in (1, 8):
            damaged = bytearray(data)
            damaged[place] ^= bit
            path.write_bytes(damaged)
            try:
                read_tokens(path)
            except ValueError as error:
                assert "is not a complete token file" in str(error)
                refused += 1
    assert refused > 200


# --- A text to a token file ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "text.txt"
    lines = (f"The {number}th owl said: it's 天 {number:x}.\n{END}\n" for number in range(1_000))
    path.write_bytes("".join(lines).encode())
    return path


@pytest.fixture(scope="module")
def tokenizer(source):
    return Tokenizer(*train_bpe(source, 300, [END]), [END])


@pytest.fixture(scope="module")
def expected(source, tokenizer):
    return tokenizer.encode(source.read_bytes().decode())


@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor, ProcessPoolExecutor])
def test_a_token_file_holds_the_ids_of_its_text(tmp_path, source, tokenizer, expected, pool):
    target = tmp_path / "ids.npy"
    with pool(2) if pool else nullcontext() as executor:
        assert tokenize_file(tokenizer, source, target, executor) == len(expected)
    assert read_tokens(target).tolist() == expected
    assert read_tokens(target).dtype == np.uint16
    assert made_in(tmp_path) == ["ids.json", "ids.npy"]


def made_in(folder):
    """The names of the files in a folder, but for the lock that keeps processes apart."""
    return sorted(path.name for path in folder.iterdir() if path.name != LOCK)


def test_processes_that_ask_for_the_same_do_not_disturb_each_other(
    tmp_path, source, tokenizer, expected
):
    target = tmp_path / "ids.npy"
    with ProcessPoolExecutor(2) as pool:
        asked = [pool.submit(tokenize_file, tokenizer, source, target) for _ in range(4)]
        assert {each.result() for each in asked} == {len(expected)}
    assert read_tokens(target).tolist() == expected


def test_what_is_made_is_not_made_again(tmp_path, source, tokenizer, monkeypatch):
    target = tmp_path / "ids.npy"
    number = tokenize_file(tokenizer, source, target)
    monkeypatch.setattr(token_files, "encode_shard", lambda *_: 1 / 0)
    assert tokenize_file(tokenizer, source, target) == number
    other = Tokenizer(tokenizer.vocab, tokenizer.merges[:9], [END])
    with pytest.raises(ZeroDivisionError):
        tokenize_file(other, source, target)
    for damaged in (target, tmp_path / "ids.json"):
        whole = damaged.read_bytes()
        damaged.write_bytes(whole[:100])
        with pytest.raises(ZeroDivisionError):
            tokenize_file(tokenizer, source, target)
        damaged.write_bytes(whole)


def test_an_empty_text_has_a_token_file_too_and_one_that_is_no_utf8_has_none(tmp_path, tokenizer):
    text = tmp_path / "text.txt"
    target = tmp_path / "ids.npy"
    text.touch()
    assert tokenize_file(tokenizer, text, target) == len(read_tokens(target)) == 0
    target.unlink()
    text.write_bytes(b"owl " * 2_000 + b"\xff")
    with pytest.raises(ValueError, match="not UTF-8: byte 0xff at offset 8,000"):
        tokenize_file(tokenizer, text, target)
    assert not target.exists()


def test_an_interrupted_run_is_carried_on(tmp_path, source, tokenizer, expected, monkeypatch):
    made = []
    encode_shard = token_files.encode_shard

    def interrupted_once(*arguments):
        made.append(arguments[-1].name)
        if len(made) == 4:
            raise KeyboardInterrupt
        return encode_shard(*arguments)

    monkeypatch.setattr(token_files, "encode_shard", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        tokenize_file(tokenizer, source, tmp_path / "ids.npy")
    assert not (tmp_path / "ids.npy").exists()
    tokenize_file(tokenizer, source, tmp_path / "ids.npy")
    assert made[2:6] == ["2.npy", "3.npy", "3.npy", "4.npy"] and len(made) > 10
    assert read_tokens(tmp_path / "ids.npy").tolist() == expected
    assert made_in(tmp_path) == ["ids.json", "ids.npy"]


def test_the_command_encodes_both_splits(tmp_path, folder, capsys):
    command = ["data", "tokenize", "stories", "--size", "40kB", "--workers", "1"]
    assert cli.main(command) == 0
    printed = capsys.readouterr().out
    for split in ("train", "validation"):
        path = tmp_path / "tokens" / "stories-270" / f"{split}.npy"
        assert f"{path}  {len(read_tokens(path)):,} tokens" in printed
    given = ["--vocab", str(folder / "vocab.json"), "--merges", str(folder / "merges.txt")]
    assert cli.main([*command, *given]) == 0
    assert cli.main([*command, *given[:2]]) == 2
    assert "belong together" in capsys.readouterr().err


def text_of(folder, split, size):
    path = folder / f"{split}-{size}.txt"
    path.write_bytes((f"Once the owl was {split}.\n{END}\n".encode() * 2_000)[: size or 20_000])
    return path


def test_equal_tokenizers_have_one_fingerprint(tokenizer):
    vocab = tokenizer.vocab
    merges = tokenizer.merges
    vocab_of_numpy = {np.int64(key): vocab[key] for key in sorted(vocab)[::-1]}
    same = Tokenizer(vocab_of_numpy, [list(merge) for merge in merges], [END])
    assert fingerprint(same) == fingerprint(tokenizer)
    others = [
        Tokenizer(vocab, merges[:-1], [END]),
        Tokenizer(vocab, [*merges[:-2], merges[-1], merges[-2]], [END]),
        Tokenizer(vocab | {len(vocab): b"owls"}, merges, [END]),
        Tokenizer(vocab, merges),
    ]
    assert len({fingerprint(one) for one in (tokenizer, *others)}) == 1 + len(others)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the default tokenizer of the stories lies, with a small text to train it on."""
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    monkeypatch.setitem(token_files.DEFAULTS, "stories", (30_000, 270))
    monkeypatch.setattr(
        token_files.corpora, "path", lambda name, split, size=None: text_of(tmp_path, split, size)
    )
    return tmp_path / "tokenizers" / "stories-270"


def test_a_default_tokenizer_has_a_record_of_what_it_is(folder, monkeypatch):
    name, one = token_files.tokenizer_for("stories")
    record = json.loads((folder / "record.json").read_text())
    assert [record[key] for key in ("corpus", "bytes", "vocab_size")] == ["stories", 30_000, 270]
    for file in ("vocab.json", "merges.txt"):
        assert record[file] == sha256((folder / file).read_bytes()).hexdigest()
    # It is trained once, and read where nothing can be written.
    for module, function in ((token_files, "locked"), (token_files.bpe, "train_bpe")):
        monkeypatch.setattr(module, function, lambda *_: 1 / 0)
    again, other = token_files.tokenizer_for("stories")
    assert (name, again) == ("stories-270", "stories-270")
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize("file", ["vocab.json", "merges.txt"])
def test_a_damaged_tokenizer_is_refused_by_name(folder, file):
    token_files.tokenizer_for("stories")
    (folder / file).write_bytes((folder / file).read_bytes()[:-9])
    refused = pytest.raises(ValueError, match=f"{folder / file} has changed .* remove {folder},")
    with refused:
        token_files.tokenizer_for("stories")
    (folder / file).unlink()
    with refused:
        token_files.tokenizer_for("stories")


def test_a_damaged_record_of_a_tokenizer_is_refused(folder):
    token_files.tokenizer_for("stories")
    path = folder / "record.json"
    facts = json.loads(path.read_text())
    for special_tokens in (3, None, END, [[END]]):
        path.write_text(json.dumps(facts | {"special_tokens": special_tokens}))
        with pytest.raises(ValueError, match=r"record\.json has changed .* trained again"):
            token_files.tokenizer_for("stories")
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"has changed .* trained again"):
        token_files.tokenizer_for("stories")


def test_what_a_killed_training_left_is_not_taken_for_a_tokenizer(folder):
    """The record is written last: without one, the files that are there may be of two trainings."""
    _, whole = token_files.tokenizer_for("stories")
    (folder / "record.json").unlink()
    (folder / "vocab.json").write_text("{}")
    assert fingerprint(token_files.tokenizer_for("stories")[1]) == fingerprint(whole)
