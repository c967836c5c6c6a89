"""A run is made of parts, and of whose parts it was made is known ever after."""

from dataclasses import replace

import numpy as np
import pytest

from tests import tiny_runs
from workbook.optimizer import optimizers
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import data
from workbook.training import train as trainer
from workbook.training.parts import NAMES, Maker, Parts
from workbook.training.train import run_folder, train

CONFIG = tiny_runs.tiny(steps=12, checkpoint_every=5)


@pytest.fixture(autouse=True)
def no_peak(monkeypatch):
    monkeypatch.setattr(trainer, "matmul_peak", lambda *_: 1e15)


def with_parts(**given) -> Parts:
    """Our parts but for those given, which count as a learner's."""
    made_by = {name: Maker(f"mine:{name}", f"hash of {name}") for name in given}
    return replace(Parts.ours(CONFIG), **given, made_by=made_by)


def test_every_part_is_called_and_the_same_parts_make_the_same_run(tmp_path):
    called = set()

    def noted(name):
        ours = getattr(Parts.ours(CONFIG), name)
        return lambda *args, **kwargs: (called.add(name), ours(*args, **kwargs))[1]

    names = set(NAMES) - {"tokenizer", "decode"}
    parts = with_parts(**{name: noted(name) for name in names})
    theirs = train(CONFIG, tiny_runs.data(), tmp_path / "theirs", parts=parts)
    ours = train(CONFIG, tiny_runs.data(), tmp_path / "ours")
    assert called == names
    for column in ("train_loss", "validation_loss", "gradient_norm"):
        assert theirs.log[column].equals(ours.log[column])
    assert theirs.made_of["model"] == "mine:model" and ours.made_of == {}


def test_a_run_of_other_parts_is_another_run(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    parts = with_parts(clipping=optimizers.clip_gradients)
    changed = replace(parts, made_by={"clipping": Maker("mine:clipping", "another hash")})
    folders = {run_folder(CONFIG, each) for each in (None, Parts.ours(CONFIG), parts, changed)}
    assert len(folders) == 3
    run = train(CONFIG, tiny_runs.data(), tmp_path / "run", parts=parts)
    for other in (None, changed):
        with pytest.raises(ValueError, match="another config"):
            train(CONFIG, tiny_runs.data(), run.folder, parts=other)
    assert train(CONFIG, tiny_runs.data(), run.folder, parts=parts).log.equals(run.log)


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
        self.text, self.ours, self.folder = text, ours, tmp_path / "tokens"

    def test_other_tokens_have_files_of_their_own_and_lengths_in_bytes(self):
        found = data.prepare(self.config, Bytes, "a1b2")
        assert bytes(np.asarray(found.train)[:5].astype(np.uint8)) == "ab é".encode()
        size = len(self.text.read_text(encoding="utf-8").replace("<|endoftext|>", "").encode())
        ends = 60 * len("<|endoftext|>")
        assert found.token_bytes[np.asarray(found.train)].sum() == size + ends
        assert len(list((self.folder / "tiny-258-mine-a1b2").glob("text-*.npy"))) == 1
        again = data.prepare(self.config, Bytes, "a1b2")
        sample = self.text.read_text(encoding="utf-8")
        assert again.tokenizer.calls == [sample, "<|endoftext|>"]  # nothing is encoded twice

    def test_one_that_cuts_like_ours_takes_the_tokens_of_ours(self):
        found = data.prepare(self.config, Tokenizer, "a1b2")
        assert [path.name for path in self.folder.iterdir()] == ["tiny-258"]
        ours = data.prepare(self.config)
        assert np.array_equal(found.train, ours.train)
