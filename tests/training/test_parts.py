"""A run is made of parts, and of whose parts it was made is known ever after."""

from dataclasses import replace

import numpy as np
import pytest
import tiny_runs

from workbook.optimizer import optimizers
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import data
from workbook.training.parts import NAMES, Maker, Parts
from workbook.training.train import run_folder

CONFIG = tiny_runs.tiny()
OURS = Parts.ours(CONFIG)


def mine(**given):
    """These parts, which count as a learner's."""
    made_by = {name: Maker(f"mine:{name}", f"hash of {name}") for name in given}
    return given | {"made_by": made_by}


def test_every_part_is_called_and_the_same_parts_make_the_same_run(tmp_path):
    called = set()

    def noted(name):
        return lambda *args, **kwargs: (called.add(name), getattr(OURS, name)(*args, **kwargs))[1]

    names = set(NAMES) - {"tokenizer", "decode"}
    parts = mine(**{name: noted(name) for name in names})
    theirs = tiny_runs.trained(tmp_path / "theirs", parts=parts)
    ours = tiny_runs.trained(tmp_path / "ours")
    assert called == names
    tiny_runs.assert_same(theirs, ours)
    assert theirs.made_of["model"] == "mine:model" and ours.made_of == {}


def test_a_run_of_other_parts_is_another_run(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    parts = mine(clipping=optimizers.clip_gradients)
    changed = parts | {"made_by": {"clipping": Maker("mine:clipping", "another hash")}}
    folders = {run_folder(CONFIG, replace(OURS, **each)) for each in ({}, parts, changed)}
    assert len(folders) == 3 and run_folder(CONFIG) in folders
    run = tiny_runs.trained(tmp_path / "run", parts=parts)
    for other in (None, changed):
        with pytest.raises(ValueError, match="another config"):
            tiny_runs.trained(run.folder, parts=other)
    assert tiny_runs.trained(run.folder, pytest.fail, parts=parts).log.equals(run.log)


class Bytes(Tokenizer):
    """A learner's tokenizer that makes an id of each byte, with the vocabulary of ours."""

    def __init__(self, vocab, merges, special_tokens):
        super().__init__(vocab, merges, special_tokens)
        self.calls = []

    def encode(self, text):
        self.calls.append(text)
        head = text.removesuffix("<|endoftext|>")
        return [*head.encode(), *([256] if head != text else [])]


class TestTokenizer:
    """The data of a run whose tokenizer is a learner's."""

    @pytest.fixture(autouse=True)
    def corpus(self, tmp_path, monkeypatch):
        monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
        text = tmp_path / "text.txt"
        text.write_text("ab é<|endoftext|>\nabab<|endoftext|>\n" * 30, encoding="utf-8")
        vocab = {i: bytes([i]) for i in range(256)} | {256: b"<|endoftext|>", 257: b"ab"}
        ours = Tokenizer(vocab, [(b"a", b"b")], ["<|endoftext|>"])
        monkeypatch.setattr(data.token_files, "tokenizer_for", lambda name: ("tiny-258", ours))
        monkeypatch.setattr(data.corpora, "path", lambda *_: text)
        monkeypatch.setattr(data.corpora, "record", lambda *_: {})
        self.config = replace(CONFIG, model=replace(CONFIG.model, vocab_size=258))
        self.text, self.folder = text.read_text(encoding="utf-8"), tmp_path / "tokens"

    def test_other_tokens_have_files_of_their_own_and_lengths_in_bytes(self):
        found = data.prepare(self.config, Bytes, "a1b2")
        assert bytes(np.asarray(found.train)[:5].astype(np.uint8)) == "ab é".encode()
        assert found.token_bytes[np.asarray(found.train)].sum() == len(self.text.encode())
        assert len(list((self.folder / "tiny-258-mine-a1b2").glob("text-*.npy"))) == 1
        again = data.prepare(self.config, Bytes, "a1b2")
        assert again.tokenizer.calls == [self.text, "<|endoftext|>"]  # nothing is encoded twice

    def test_one_that_cuts_like_ours_takes_the_tokens_of_ours(self):
        found = data.prepare(self.config, Tokenizer, "a1b2")
        assert [path.name for path in self.folder.iterdir()] == ["tiny-258"]
        assert np.array_equal(found.train, data.prepare(self.config).train)
