"""A dry run tells which runs are missing and how long they take, and does no more."""

from dataclasses import replace
from types import SimpleNamespace

import made_records
import pytest
import tiny_runs
import torch

from workbook import accounting, files
from workbook.classroom import cli
from workbook.experiments import dry_run, records
from workbook.experiments.dry_run import checkpoint_bytes, seconds_of
from workbook.optimizer import optimizers
from workbook.training import checkpoints, presets
from workbook.training.presets import varied
from workbook.training.trainer import run_folder
from workbook.transformer.model import TransformerLM

PEAK = 1e12  # FLOP/s
TINY = tiny_runs.tiny()
LAPTOP = varied(presets.laptop(), device="cpu", precision="float32")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A data folder of one's own, no records, and a machine whose speed is known."""
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(dry_run, "matmul_peak", lambda *_: PEAK)
    with records.temporary_folder():
        yield tmp_path / "data"


class TestTime:
    def test_it_follows_from_the_flops_of_all_tokens_and_evaluations(self):
        evaluated = 4 * TINY.eval_tokens / 3  # at steps 0, 8, 16 and 24; forward is a third
        flops = accounting.flops_per_token(TINY.model) * (TINY.tokens + evaluated)
        capped = replace(TINY, max_seconds=1e-9)
        assert seconds_of([TINY, capped]) == pytest.approx([flops / (0.3 * PEAK), 1e-9], rel=1e-12)

    def test_recorded_runs_on_such_a_device_say_how_much_of_the_peak_is_reached(self, tmp_path):
        config = replace(TINY, precision="float32")
        made_records.kept("one", tmp_path, config, [4.0] * 25)  # two seconds a step, peak 1e9
        assert seconds_of([config])[0] == pytest.approx(48 * 1e9 / PEAK, rel=1e-12)
        assert dry_run.recorded_mfu("a GPU", "float32") == dry_run.ASSUMED_MFU

    def test_a_model_too_small_for_a_gpu_does_not_say_how_fast_it_is(self, tmp_path, monkeypatch):
        monkeypatch.setitem(made_records.ENVIRONMENT, "device", "a GPU")
        made_records.kept("one", tmp_path, replace(TINY, precision="float32"), [4.0] * 25)
        assert dry_run.recorded_mfu("a GPU", "float32") == dry_run.ASSUMED_MFU

    @pytest.mark.slow
    def test_the_recorded_runs_would_have_been_foretold(self, monkeypatch):
        shipped = dry_run.settings.shipped() / "data" / "runs"
        monkeypatch.setattr(records, "folders", lambda: (shipped,))
        share = dry_run.recorded_mfu("cpu", "bfloat16")
        ratios = [
            dry_run.flops(run.config, run.steps)
            / (run.environment["peak_flops_per_second"] * share * run.seconds)
            for run in records.all_records()
            if not run.diverged and run.environment["device"] == "cpu"
        ]
        near = [ratio for ratio in ratios if 0.4 < ratio < 2.5]
        assert len(ratios) > 50 and len(near) > 0.95 * len(ratios)  # a few shared the machine

    def test_workers_have_one_thread_each(self, monkeypatch):
        monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
        assert seconds_of([TINY], workers=4) == pytest.approx([4 * seconds_of([TINY])[0]])


def test_a_run_for_a_notebook_is_the_small_one_until_the_large_one_has_finished(capsys):
    large = TINY
    small = replace(TINY, steps=4)
    assert dry_run.at_hand(large, small) is small
    words = capsys.readouterr().out
    hours = seconds_of([large])[0] / 3_600
    assert "`workbook train tiny` makes it" in words and f" {hours:,.1f} hours on" in words
    tiny_runs.trained(run_folder(large))
    assert dry_run.at_hand(large, small) is large
    assert dry_run.at_hand(small, small) is small
    assert capsys.readouterr().out == ""


class TestDisk:
    def test_a_checkpoint_is_as_large_as_was_said(self, tmp_path):
        config = varied(LAPTOP, batch_size=1, checkpoint_every=LAPTOP.steps)
        model = TransformerLM.from_config(config.model)
        optimizer = optimizers.from_config(model.parameters(), config.optimizer)
        model(torch.zeros(1, 8, dtype=torch.int64)).sum().backward()
        optimizer.step()
        checkpoints.save_checkpoint(model, optimizer, 1, tmp_path / "one.pt")
        size = (tmp_path / "one.pt").stat().st_size
        assert 2 * size == pytest.approx(checkpoint_bytes(config), rel=0.01)

    @pytest.mark.parametrize("changes", [{"keep_checkpoints": 3}, {"checkpoint_every": 24}])
    def test_a_run_keeps_as_many_as_was_said_and_writes_one_more(self, tmp_path, changes):
        run = tiny_runs.trained(tmp_path / "run", **changes)
        saved = len(checkpoints.saved(run.folder / "checkpoints"))
        parameters = accounting.parameters(run.config.model).total
        assert checkpoint_bytes(run.config) == (saved + 1) * 12 * parameters

    def test_room_is_needed_for_each_worker(self, monkeypatch, capsys):
        needed = 3 * checkpoint_bytes(LAPTOP)
        for free, status in ((needed, 0), (needed - 1, 1)):
            usage = SimpleNamespace(free=free)
            monkeypatch.setattr(files.shutil, "disk_usage", lambda place, usage=usage: usage)
            assert dry_run.report_runs([LAPTOP, replace(LAPTOP, seed=1)], workers=3) == status
        assert "make room, or set WORKBOOK_DATA" in capsys.readouterr().out


class TestTheCommand:
    def test_says_what_is_missing_for_the_course_s_sizes(self, folder, capsys):
        arguments = ["experiments", "run", "learning_rate", "--scale", "full", "--dry-run"]
        assert cli.main(arguments) == 1
        out = capsys.readouterr().out
        assert "learning_rate    runs to make next: 16, and perhaps more after them" in out
        assert "16 runs: about " in out
        assert "1. `workbook data get tinystories` downloads 2.3 GB\n" in out
        assert "owt" not in out, "this plan does not read it"
        assert not folder.exists(), "something was written"

    def test_needs_no_download_on_the_laptop(self, folder, capsys):
        assert cli.main(["experiments", "run", "batch_size", "--workers", "2", "--dry-run"]) == 0
        out = capsys.readouterr().out
        assert out.endswith("\nReady.\n") and "hours with 2 workers." in out
        assert not folder.exists()

    def test_a_single_run_has_one_too(self, capsys):
        assert cli.main(["train", "laptop", "--steps", "100", "--dry-run"]) == 0
        assert "1 runs: about 0." in capsys.readouterr().out
        assert cli.main(["train", "laptop", "--batch-size", "1000000000", "--dry-run"]) == 1
        assert "1. a step needs about " in capsys.readouterr().out
        assert cli.main(["train", "laptop", "--corpus", "novels", "--dry-run"]) == 2
        assert "is not a corpus; there are stories" in capsys.readouterr().err

    def test_where_all_runs_have_records_there_is_nothing_to_do(self, capsys, tmp_path):
        made_records.kept("one", tmp_path, TINY, [4.0, 2.0])

        def plan():
            return (yield {"one": TINY})

        assert dry_run.report_plans({"one": plan()}) == 0
        assert "All runs have their records. There is nothing to do." in capsys.readouterr().out
