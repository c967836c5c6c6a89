"""Records are lines of the files of an experiment, added whole or not at all."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tiny_runs
from made_records import ENVIRONMENT, config, kept, record

from workbook.experiments import records
from workbook.experiments.records import RUNS
from workbook.training.trainer import Run


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The folder of records."""
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    monkeypatch.setattr(records.settings, "shipped", lambda: tmp_path / "nothing")
    return tmp_path / "runs"


def seeds_in(path):
    return [line["config"]["seed"] for line in records.read_lines(path).values()]


def test_a_record_is_what_the_folder_of_the_run_was(tmp_path):
    made = record(tmp_path / "one", config(seed=1), [4.0, 3.5, 3.0])
    lines = (made.folder / "log.jsonl").read_text()
    (made.folder / "log.jsonl").write_text(lines.replace("3.5", "null", 1))
    (made.folder / "sample.json").write_text(json.dumps({"text": "A\u2028fox.\r\n"}))
    lost = record(tmp_path / "lost", config(seed=2), [9.0], diverged=True)
    for run in (made, lost):
        records.keep_record("seeds", run, tiny_runs.data())
        found = records.find_record(run.config)
        assert found.levels == records.levels(run.config, tiny_runs.data())
        assert found.config == records.load_run(run.folder).config == run.config
        assert found.log.equals(run.log) and list(found.log) == list(run.log)
        for name in ("environment", "outcome", "status", "sample", "loss", "made_of", "flags"):
            assert getattr(found, name) == getattr(run, name)
    assert {run.config.seed: run.study for run in records.all_records()} == {1: "seeds", 2: "seeds"}
    assert records.find_record(config(seed=3)) is None


def test_a_damaged_file_of_records_is_told_with_its_name(tmp_path, place):
    kept("seeds", tmp_path, config(), [4.0, 3.0])
    run = records.find_record(config())
    for path in place.glob("*.jsonl"):
        whole = path.read_text()
        path.write_text('{"key": "other"}')
        with pytest.raises(ValueError, match=str(path)):
            _ = records.all_records(), run.environment, run.log
        path.write_text(whole)


def test_the_name_of_a_file_of_records_may_hold_dots(tmp_path, place):
    kept("seeds.v1.5", tmp_path, config(), [4.0, 3.0])
    assert [run.loss for run in records.all_records()] == [3.0]


def test_a_run_has_one_line_and_an_environment_too(tmp_path, place):
    for losses in ([4.0, 3.0], [4.0, 2.0]):
        kept("seeds", tmp_path, config(), losses)
    kept("others", tmp_path, config(seed=1), [4.0, 3.0])
    assert records.find_record(config()).loss == 2.0
    names = [f"{study}{kind}" for study in ("others", "seeds") for kind in (records.LOGS, RUNS)]
    assert sorted(file.name for file in place.glob("[!.]*")) == ["environments.jsonl", *names]
    assert all(len(file.read_text().splitlines()) == 1 for file in place.glob("*.jsonl"))
    (environment,) = records.read_lines(place / records.ENVIRONMENTS).values()
    assert environment | {records.PEAK: 1e9} == ENVIRONMENT


def test_a_record_cut_short_is_none_and_can_be_kept_again(tmp_path, place, monkeypatch):
    kept("seeds", tmp_path, config(seed=1), [4.0, 3.0])
    write = records.atomic_write

    def full(path):
        if path.name.endswith(RUNS):
            raise OSError("no space left on device")
        return write(path)

    with monkeypatch.context() as patch:
        patch.setattr(records, "atomic_write", full)
        with pytest.raises(OSError, match="no space"):
            kept("seeds", tmp_path, config(seed=2), [4.0, 2.0])
    assert records.find_record(config(seed=2)) is None
    assert [run.config.seed for run in records.all_records()] == [1]
    kept("seeds", tmp_path, config(seed=2), [4.0, 2.0])
    assert seeds_in(place / "seeds.runs.jsonl") == [1, 2]


def test_workers_side_by_side_lose_no_record(tmp_path, place):
    with ThreadPoolExecutor(4) as executor:  # a lock holds for threads as it does for processes
        seeds = range(20)
        made = [executor.submit(kept, "seeds", tmp_path, config(seed=n), [4, 3]) for n in seeds]
        assert [future.result() for future in made] == [None] * 20
    assert sorted(seeds_in(place / "seeds.runs.jsonl")) == [*seeds]
    assert len(records.read_lines(place / "seeds.logs.jsonl")) == 20


def test_a_run_that_goes_on_is_not_kept(tmp_path):
    (tmp_path / "outcome.json").write_text(
        json.dumps({"status": "running", "step": 1, "flags": []})
    )
    with pytest.raises(ValueError, match="is running; wait until it has ended"):
        records.keep_record("seeds", Run(tiny_runs.tiny(), tmp_path), tiny_runs.data())


def test_records_in_a_temporary_folder_do_not_mix_with_the_others(tmp_path):
    usual = config()
    other = config(seed=1)
    kept("seeds", tmp_path, usual, [4.0, 3.0])
    with records.temporary_folder() as folder:
        assert records.folders() == (folder,)
        assert records.find_record(usual) is None
        kept("seeds", tmp_path, other, [4.0, 2.0])
        assert [run.loss for run in records.all_records()] == [2.0]
    assert not folder.exists()
    assert [run.loss for run in records.all_records()] == [3.0]


@pytest.mark.parametrize("entropy", [None, 1.0])
def test_the_levels_are_of_the_ids_evaluated_on_in_nats_a_token(entropy):
    lengths = np.full(tiny_runs.VOCAB_SIZE, 2)
    data = tiny_runs.data(entropy=entropy, floor=0.5, token_bytes=lengths)
    levels = records.levels(config(), data)
    assert levels.text < levels.counting
    assert levels.counting == records.unigram_loss(data.train, data.validation[1:257], 64)
    assert levels.guessing == pytest.approx(math.log(64))
    assert levels.text == pytest.approx((entropy or 0.5) * math.log(2) * 2)
    assert levels.known is (entropy is not None)
    assert (levels.bytes_per_token, levels.train_tokens) == (2.0, len(data.train))


def test_counting_lies_between_the_entropy_of_the_counts_and_blind_guessing(monkeypatch):
    tokens = tiny_runs.ids(20_000)
    loss = records.unigram_loss(tokens, tokens, tiny_runs.VOCAB_SIZE)
    shares = np.bincount(tokens) / len(tokens)
    entropy = -(shares * np.log(shares)).sum()
    assert entropy <= loss < min(entropy + 0.01, math.log(tiny_runs.VOCAB_SIZE))
    monkeypatch.setattr(records, "BLOCK", 777)  # many blocks are counted like one
    assert records.unigram_loss(tokens, tokens, tiny_runs.VOCAB_SIZE) == loss
    unseen = records.unigram_loss(np.zeros(8, int), np.array([1]), 2)
    assert unseen == pytest.approx(math.log(10)), "a token that training never saw is possible"
