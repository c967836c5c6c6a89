"""What runs need is what they take: texts, disk and memory, without making any of it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_runs
import torch
from torch import Tensor

from workbook.accounting.measured import peak_bytes
from workbook.corpora import corpora
from workbook.experiments import needs
from workbook.experiments.needs import (
    Text,
    look_at_disk,
    look_at_memory,
    look_at_text,
    memory_bytes,
)
from workbook.training import checkpoints, presets, train
from workbook.training import log as runlog
from workbook.training.presets import varied
from workbook.training.processes import Team
from workbook.training.train import Trainer

LAPTOP = varied(presets.laptop(), device="cpu", precision="float32")
SMALL = 20_000  # bytes


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A data folder of one's own, in which stories are short."""
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    short = replace(corpora.CORPORA["stories"], sizes={"train": SMALL, "validation": SMALL})
    monkeypatch.setitem(corpora.CORPORA, "stories", short)
    return tmp_path / "data"


def room(monkeypatch, size):
    monkeypatch.setattr(needs, "free_memory", lambda device: size)


@pytest.mark.parametrize(("name", "vocab_size"), [("tinystories", 10_000), ("owt", 32_000)])
def test_a_corpus_that_has_to_be_downloaded_is_asked_for_by_its_command(folder, name, vocab_size):
    found = look_at_text(Text(name, None, vocab_size))
    volume = corpora.CORPORA[name].volume
    assert not found.ready
    assert found.todo == f"`workbook data get {name}` downloads {volume}"
    assert found.text == f"{name}: no train and no validation text on this disk"
    assert not folder.exists(), "something was made"


def test_what_is_made_here_is_ready_and_not_made_yet(folder):
    found = look_at_text(Text("stories", SMALL, 2_048))
    assert found.ready and not folder.exists()
    assert "first its text is made, then a tokenizer of 2,048 ids is trained" in found.text
    assert f"`workbook data tokenize stories --size {SMALL}`" in found.text


def test_what_is_on_the_disk_is_found(folder):
    text = Text("stories", None, 2_048)
    paths = [corpora.path("stories", split) for split in corpora.SPLITS]
    assert text.missing == [] and not text.has_tokenizer and not text.has_ids
    assert text.bytes == sum(path.stat().st_size for path in paths)
    (folder / "tokenizers" / "stories-2048").mkdir(parents=True)
    (folder / "tokenizers" / "stories-2048" / "vocab.json").touch()
    assert "first its ids are written;" in look_at_text(text).text
    (folder / "tokens" / "stories-2048").mkdir(parents=True)
    for path in paths:
        np.save(folder / "tokens" / "stories-2048" / f"{path.stem}.npy", np.zeros(4))
    assert look_at_text(text).text == "stories: text, tokenizer and ids are on this disk"
    assert text.bytes_to_come == 0


def test_a_model_with_another_vocabulary_is_told():
    found = look_at_text(Text("stories", None, 512))
    assert found.todo == "give the model vocab_size=2048"


def test_an_unknown_corpus_is_refused():
    with pytest.raises(ValueError, match="is no corpus; there are stories"):
        look_at_text(Text("novels", None, 512))


def test_a_packed_text_needs_room_beside_its_unpacked_self():
    packed, plain = Text("owt", None, 32_000), Text("tinystories", None, 10_000)
    assert plain.bytes == 2.3e9 and plain.bytes_to_come == 2 * plain.bytes
    # 11.9 GB and 0.3 GB of text: the course's sample, unpacked
    assert 12.2e9 < packed.bytes < 1.1 * 12.2e9
    assert packed.bytes_to_come == 2 * packed.bytes + 4.7e9


def a_trainer(config):
    data = tiny_runs.data(train=tiny_runs.ids(4_096), token_bytes=np.ones(config.model.vocab_size))
    trainer = Trainer(config, folder=None, data=data, members=Team())
    trainer.update()
    return trainer


def test_a_checkpoint_is_as_large_as_was_said(tmp_path):
    trainer = a_trainer(varied(LAPTOP, batch_size=1))
    path = tmp_path / "checkpoint.pt"
    checkpoints.save_checkpoint(trainer.model, trainer.optimizer, 1, path)
    assert path.stat().st_size == pytest.approx(needs.checkpoint_bytes(LAPTOP), rel=0.01)


def test_logs_and_kept_checkpoints_of_a_run_are_as_many_as_was_said(tmp_path, monkeypatch):
    config = tiny_runs.tiny(log_every=2, keep_checkpoints=3)
    run = train.train(config, tmp_path / "run", tiny_runs.data())
    assert len(checkpoints.saved(run.folder / "checkpoints")) == needs.checkpoints(config) == 3
    log = run.folder / runlog.LINES
    count = len(log.read_text().splitlines())
    assert needs.lines(config) / 1.5 < count <= needs.lines(config)
    assert needs.LINE / 1.5 < log.stat().st_size / count < needs.LINE * 1.5
    assert needs.checkpoints(tiny_runs.tiny(checkpoint_every=24)) == 1


def test_the_disk_holds_all_checkpoints_and_one_more_for_each_worker(monkeypatch):
    each = needs.checkpoint_bytes(LAPTOP)
    text = Text("stories", LAPTOP.corpus_bytes, 2_048).bytes_to_come
    wanted = each * (2 * LAPTOP.keep_checkpoints + 3) + text
    wanted += 2 * 2 * needs.LINE * needs.lines(LAPTOP)
    for free, ready in ((wanted, True), (wanted - 1, False)):
        usage = SimpleNamespace(free=free)
        monkeypatch.setattr(needs.shutil, "disk_usage", lambda place, usage=usage: usage)
        found = look_at_disk([LAPTOP, replace(LAPTOP, seed=1)], workers=3)
        assert found.ready is ready
    assert found.todo.startswith("make room, or set WORKBOOK_DATA")


@pytest.mark.parametrize(
    "changes", [{}, {"context_length": 256, "d_model": 64, "num_heads": 8}, {"norm": "post"}]
)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_step_needs_at_most_the_memory_that_was_said(changes, precision):
    config = varied(LAPTOP, batch_size=2, vocab_size=512, precision=precision, **changes)
    trainer = a_trainer(config)
    state = [value for each in trainer.optimizer.state.values() for value in each.values()]
    there = [*trainer.model.parameters(), *trainer.model.buffers()]
    there += [value for value in state if isinstance(value, Tensor)]
    measured = peak_bytes(trainer.update, there)
    said = memory_bytes(config) - needs.PROCESS
    if precision == "float32":
        assert measured == pytest.approx(said, rel=0.03)
    else:
        assert said / 2.2 < measured < 1.02 * said


def test_a_batch_that_is_too_large_is_told_the_accumulation_that_would_fit(monkeypatch):
    config = varied(LAPTOP, batch_size=384)
    room(monkeypatch, 1_500_000_000)
    (found,) = look_at_memory([config, replace(config, seed=1)])
    assert found.text == "stories, batch 384 needs 4.0 GB; 1.5 GB free on cpu"
    fits = [n for n in range(1, 385) if 384 % n == 0 and memory_bytes(config, n) <= 1.5e9]
    assert f"with accumulation={min(fits)}:" in found.todo
    assert look_at_memory([varied(config, accumulation=min(fits))])[0].ready


def test_many_workers_are_told_to_be_fewer(monkeypatch):
    room(monkeypatch, 3 * memory_bytes(LAPTOP))
    assert look_at_memory([LAPTOP], workers=3)[0].ready
    (found,) = look_at_memory([LAPTOP], workers=4)
    assert found.todo == "take --workers 3"


def test_where_not_one_sequence_fits_it_says_so(monkeypatch):
    room(monkeypatch, 1_000_000)
    (found,) = look_at_memory([LAPTOP])
    assert "not even one sequence" in found.todo


def test_the_largest_step_of_all_is_named(monkeypatch):
    room(monkeypatch, 10_000_000_000)
    (found,) = look_at_memory([LAPTOP, varied(LAPTOP, batch_size=16)])
    assert found.ready and "(stories, batch 16); 10.0 GB free on cpu" in found.text


def test_the_memory_of_the_machine_is_that_which_is_available():
    assert 0 < needs.free_memory(torch.device("cpu")) < 1e15
