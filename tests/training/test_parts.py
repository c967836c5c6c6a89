"""A run is made of parts, and of whose parts it was made is known ever after."""

from dataclasses import replace

import numpy as np
import pytest
import tiny_runs

from workbook.optimizer import optimizers
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import data
from workbook.training.parts import NAMES, Maker, Parts
from workbook.training.trainer import run_folder

CONFIG = tiny_runs.tiny()
OURS = Parts.ours(CONFIG)


def mine(**given):
    """These parts, which count as a learner's."""
    made_by = {name: Maker(f"mine:{name}", f"hash of {name}") for name in given}
    return given | {"made_by": made_by}


@pytest.mark.slow
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
    for other, here in (({}, "none"), (changed, "another ")):
        words = rf"another config \(your clipping: hash of  there, {here} here\); give"
        with pytest.raises(ValueError, match=words):
            tiny_runs.trained(run.folder, parts=other)
    assert tiny_runs.trained(run.folder, pytest.fail, parts=parts).log.equals(run.log)


class Same(Tokenizer):
    """A learner's tokenizer."""


class Bytes(Tokenizer):
    """One that makes an id of each byte, with the vocabulary of ours."""

    def encode(self, text):
        return [*text.encode()]


class TestTokenizer:
    """The data of a run whose tokenizer is a learner's."""

    @pytest.fixture(autouse=True)
    def corpus(self, tmp_path, monkeypatch):
        monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
        text = tmp_path / "text.txt"
        text.write_text("ab é<|endoftext|>\nabab<|endoftext|>\n" * 30, "utf-8")
        vocab = {i: bytes([i]) for i in range(256)} | {256: b"<|endoftext|>", 257: b"ab"}
        ours = Tokenizer(vocab, [(b"a", b"b")], ["<|endoftext|>"])
        monkeypatch.setattr(data.token_files, "tokenizer_for", lambda *_, **__: ("tiny-258", ours))
        monkeypatch.setattr(data.corpora, "path", lambda *_: text)
        monkeypatch.setattr(data.corpora, "record", lambda *_: {})
        self.config = replace(CONFIG, model=replace(CONFIG.model, vocab_size=258))
        self.text = text.read_text("utf-8")
        self.folder = tmp_path / "tokens"

    def test_one_with_other_ids_is_refused_before_anything_is_encoded(self):
        with pytest.raises(ValueError, match="your tokenizer gives other ids than ours: `workbook"):
            data.prepare(self.config, Bytes)
        assert not self.folder.exists()

    def test_one_with_our_ids_takes_our_tokens_and_decodes(self):
        found = data.prepare(self.config, Same)
        ours = data.prepare(self.config)
        assert type(found.tokenizer) is Same and found.made_from == ours.made_from
        assert found.token_bytes[found.train].sum() == len(self.text.encode())
        assert np.array_equal(found.train, ours.train)
