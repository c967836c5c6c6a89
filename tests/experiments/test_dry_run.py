"""A dry run tells which runs are missing, what they cost and what is missing, and does no more."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import made_records
import numpy as np
import pytest
import tiny_runs
import torch
from made_records import Imagined
from torch import Tensor

from workbook import accounting, cli
from workbook import config as settings
from workbook.accounting.measured import peak_bytes
from workbook.corpora import corpora
from workbook.experiments import dry_run, records, studies
from workbook.experiments.dry_run import (
    disk_finding,
    memory_bytes,
    memory_finding,
    seconds_of,
    text_finding,
)
from workbook.training import checkpoints, presets, train
from workbook.training.presets import varied
from workbook.training.train import Run, Trainer

PEAK = 1e12  # FLOP/s
TINY = tiny_runs.tiny()
LAPTOP = varied(presets.laptop(), device="cpu", precision="float32")
SMALL = 20_000  # bytes


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A data folder of one's own with short stories, and a machine whose speed is known."""
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    short = replace(corpora.CORPORA["stories"], sizes={"train": SMALL, "validation": SMALL})
    monkeypatch.setitem(corpora.CORPORA, "stories", short)
    monkeypatch.setattr(records, "folders", lambda: (tmp_path / "data" / "runs",))
    monkeypatch.setattr(dry_run, "matmul_peak", lambda *_: PEAK)
    return tmp_path / "data"


def free(monkeypatch, size):
    monkeypatch.setattr(dry_run, "free_memory", lambda device: size)


class TestTime:
    def test_it_follows_from_the_flops_of_all_tokens_and_evaluations(self):
        evaluated = 4 * TINY.eval_tokens / 3  # at steps 0, 8, 16 and 24; forward is a third
        flops = accounting.flops_per_token(TINY.model) * (TINY.tokens + evaluated)
        capped = replace(TINY, max_seconds=1e-9)
        assert seconds_of([TINY, capped]) == pytest.approx([flops / (0.3 * PEAK), 1e-9], rel=1e-12)

    def test_the_course_s_run_takes_as_long_as_its_formula_says(self):
        config = presets.full()
        # 6 FLOPs for each of 17.6 million parameters in products and each token, and attention's
        tokens = 327_680_000 + 21 * config.eval_tokens / 3
        products = 6 * (10_000 * 512 + 4 * (4 * 512**2 + 3 * 512 * 1_344)) + 12 * 4 * 256 * 512
        assert seconds_of([config])[0] == pytest.approx(products * tokens / (0.3 * PEAK), rel=1e-12)

    def test_recorded_runs_on_such_a_device_say_how_much_of_the_peak_is_reached(
        self, folder, monkeypatch
    ):
        environment = made_records.ENVIRONMENT | {"peak_flops_per_second": 1e9}
        monkeypatch.setattr(made_records, "ENVIRONMENT", environment)
        config = replace(TINY, precision="float32")
        run = made_records.record(folder / "runs", config, [4.0] * 25)  # two seconds a step
        assert seconds_of([run.config])[0] == pytest.approx(48 * 1e9 / PEAK, rel=1e-12)
        monkeypatch.setitem(environment, "device", "a GPU")
        made_records.record(folder / "runs", config, [4.0] * 25)
        assert dry_run.mfu("cpu", "float32") == dry_run.ASSUMED_MFU

    def test_the_recorded_runs_would_have_been_foretold(self, monkeypatch):
        given = settings.shipped() / "data" / "runs"
        monkeypatch.setattr(records, "folders", lambda: (given,))
        share = dry_run.mfu("cpu", "bfloat16")
        ratios = [
            dry_run.flops(run.config, run.steps)
            / (run.environment["peak_flops_per_second"] * share * run.seconds)
            for run in records.load_all()
            if not run.diverged
        ]
        assert len(ratios) > 50 and min(ratios) > 0.4 and max(ratios) < 2.5

    def test_workers_have_one_thread_each(self, monkeypatch):
        monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
        assert seconds_of([TINY], workers=4) == pytest.approx([4 * seconds_of([TINY])[0]])


class TestARunForANotebook:
    def test_is_the_small_one_until_the_large_one_has_finished(self, monkeypatch, capsys):
        large, small = replace(presets.full(), device="cpu"), TINY
        assert dry_run.at_hand(large, small) is small
        said = capsys.readouterr().out
        hours = seconds_of([large])[0] / 3_600
        assert "`workbook train full` makes it" in said and f" {hours:,.1f} hours on" in said
        monkeypatch.setattr(dry_run, "is_done", lambda run: run.config == large)
        assert dry_run.at_hand(large, small) is large
        assert capsys.readouterr().out == ""

    def test_is_not_foretold_where_it_is_small_itself(self, capsys):
        assert dry_run.at_hand(TINY, TINY) is TINY
        assert capsys.readouterr().out == ""


class TestCorpora:
    @pytest.mark.parametrize(("name", "size"), [("tinystories", 10_000), ("owt", 32_000)])
    def test_what_has_to_be_downloaded_is_asked_for_by_its_command(self, folder, name, size):
        (words, todo), written = text_finding(
            varied(LAPTOP, corpus=name, corpus_bytes=None, vocab_size=size)
        )
        volume = corpora.CORPORA[name].volume
        assert todo == f"`workbook data get {name}` downloads {volume}"
        assert words == f"{name}: no train and no validation text on this disk"
        assert not folder.exists(), "something was made"
        # 11.9 GB and 0.3 GB of text: the course's sample, unpacked, and packed beside it
        lowest = {"tinystories": 4.6e9, "owt": 2 * 12.2e9 + 4.7e9}[name]
        assert lowest <= written < 1.1 * lowest

    def test_what_is_made_here_is_ready_and_not_made_yet(self, folder):
        found, written = text_finding(varied(LAPTOP, corpus_bytes=SMALL))
        assert found == ("stories: its text is made first", "")
        assert written == 4 * SMALL and not folder.exists()

    def test_what_is_on_the_disk_is_found(self, folder):
        config = replace(LAPTOP, corpus_bytes=None)
        paths = [corpora.path("stories", split) for split in corpora.SPLITS]
        here = "stories: on this disk", ""
        assert text_finding(config) == (here, sum(path.stat().st_size for path in paths))
        (folder / "tokens" / "stories-2048").mkdir(parents=True)
        for path in paths:
            np.save(folder / "tokens" / "stories-2048" / f"{path.stem}.npy", np.zeros(4))
        assert text_finding(config) == (here, 0)

    def test_a_model_with_another_vocabulary_is_told(self):
        (words, todo), _ = text_finding(varied(LAPTOP, vocab_size=512))
        assert "tokenizer with vocab_size=2,048, the model 512" in words
        assert todo == "give the model vocab_size=2048"

    def test_an_unknown_corpus_is_refused(self):
        with pytest.raises(ValueError, match="is not a corpus; there are stories"):
            text_finding(replace(LAPTOP, corpus="novels"))


def a_trainer(config):
    data = tiny_runs.data(train=tiny_runs.ids(4_096), token_bytes=np.ones(config.model.vocab_size))
    trainer = Trainer(Run(config, Path()), data)
    trainer.update()
    return trainer


class TestDisk:
    def test_a_checkpoint_is_as_large_as_was_said(self, tmp_path):
        trainer = a_trainer(varied(LAPTOP, batch_size=1))
        path = tmp_path / "checkpoint.pt"
        checkpoints.save_checkpoint(trainer.model, trainer.optimizer, 1, path)
        assert path.stat().st_size == pytest.approx(dry_run.checkpoint_bytes(LAPTOP), rel=0.01)

    def test_a_run_keeps_as_many_as_was_said(self, tmp_path):
        config = tiny_runs.tiny(log_every=2, keep_checkpoints=3)
        run = train.train(config, tiny_runs.data(), tmp_path / "run")
        assert len(checkpoints.saved(run.folder / "checkpoints")) == dry_run.checkpoints(config)
        assert dry_run.checkpoints(config) == 3
        assert dry_run.checkpoints(tiny_runs.tiny(checkpoint_every=24)) == 1

    def test_it_holds_texts_and_for_each_worker_a_run_s_checkpoints_and_one(self, monkeypatch):
        needed = dry_run.checkpoint_bytes(LAPTOP) * 3 * (LAPTOP.keep_checkpoints + 1) + 100
        for size, ready in ((needed, True), (needed - 1, False)):
            usage = SimpleNamespace(free=size)
            monkeypatch.setattr(dry_run.shutil, "disk_usage", lambda place, usage=usage: usage)
            _, todo = disk_finding([LAPTOP, replace(LAPTOP, seed=1)], 100, workers=3)
            assert (not todo) is ready
        assert todo.startswith("make room, or set WORKBOOK_DATA")


class TestMemory:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "changes", [{}, {"context_length": 256, "d_model": 64, "num_heads": 8}, {"norm": "post"}]
    )
    @pytest.mark.parametrize("precision", ["float32", "bfloat16"])
    def test_a_step_needs_at_most_what_was_said(self, changes, precision):
        config = varied(LAPTOP, batch_size=2, vocab_size=512, precision=precision, **changes)
        trainer = a_trainer(config)
        state = [value for each in trainer.optimizer.state.values() for value in each.values()]
        there = [*trainer.model.parameters(), *trainer.model.buffers()]
        there += [value for value in state if isinstance(value, Tensor)]
        measured = peak_bytes(trainer.update, there)
        said = memory_bytes(config) - dry_run.PROCESS
        if precision == "float32":
            assert measured == pytest.approx(said, rel=0.03)
        else:
            assert said / 2.2 < measured < 1.02 * said

    def test_a_batch_that_is_too_large_is_told_the_accumulation_that_would_fit(self, monkeypatch):
        config = varied(LAPTOP, batch_size=384)
        free(monkeypatch, 1_500_000_000)
        words, todo = memory_finding(config)
        assert words == "stories, batch 384 needs 4.0 GB; 1.5 GB free on cpu"
        parts = [replace(config, accumulation=n) for n in range(1, 385) if 384 % n == 0]
        fits = next(each for each in parts if memory_bytes(each) <= 1.5e9)
        assert todo.endswith(f"in {fits.accumulation} parts: `--accumulation {fits.accumulation}`")
        assert not memory_finding(fits)[1]

    def test_many_workers_are_told_to_be_fewer(self, monkeypatch):
        free(monkeypatch, 3 * memory_bytes(LAPTOP))
        assert not memory_finding(LAPTOP, workers=3)[1]
        assert memory_finding(LAPTOP, workers=4)[1] == "use --workers 3"

    def test_where_not_one_sequence_fits_it_says_so(self, monkeypatch):
        free(monkeypatch, 1_000_000)
        assert "not even one sequence" in memory_finding(LAPTOP)[1]

    def test_what_is_free_is_asked_of_the_machine(self):
        assert 0 < dry_run.free_memory(torch.device("cpu")) < 1e15


class TestTheCommand:
    def test_says_what_is_missing_for_the_course_s_sizes(self, folder, capsys):
        arguments = ["experiments", "run", "learning_rate", "--scale", "full", "--dry-run"]
        assert cli.main(arguments) == 1
        out = capsys.readouterr().out
        assert "learning_rate    runs to make next: " in out
        assert re.search(r"tinystories +128 +\d+ ", out) and "hours in all" in out
        assert "1. `workbook data get tinystories` downloads 2.3 GB\n" in out
        assert "owt" not in out, "this plan does not read it"
        assert not folder.exists(), "something was written"

    def test_all_plans_together_say_that_more_runs_may_follow(self, capsys):
        assert cli.main(["experiments", "run", "--scale", "cpu", "--dry-run"]) == 1
        out = capsys.readouterr().out
        assert "`workbook data get tinystories`" in out and "perhaps more after them" in out

    def test_needs_no_download_on_the_laptop(self, folder, capsys, monkeypatch):
        free(monkeypatch, 16_000_000_000)
        arguments = ["experiments", "run", "batch_size", "--workers", "2", "--dry-run"]
        assert cli.main(arguments) == 0
        out = capsys.readouterr().out
        assert out.endswith("\nReady.\n")
        assert "stories: its text is made first" in out and "for 2 workers" in out
        assert "by 2 workers with one thread each" in out
        assert not folder.exists()

    def test_batches_in_parts_need_less_memory(self, capsys, monkeypatch):
        arguments = ["experiments", "run", "batch_size", "--workers", "1", "--dry-run"]
        asked = next(studies.STUDIES["batch_size"].plan(studies.laptop_scale()))
        last = max(asked.values(), key=lambda config: config.batch_size)
        free(monkeypatch, memory_bytes(replace(last, accumulation=4)))
        assert cli.main(arguments) == 1
        assert "`--accumulation 4`" in capsys.readouterr().out
        assert cli.main([*arguments, "--accumulation", "4"]) == 0

    def test_a_single_run_has_one_too(self, capsys, monkeypatch):
        assert cli.main(["train", "laptop", "--steps", "100", "--dry-run"]) == 0
        assert re.search(r"stories +8 +1 ", capsys.readouterr().out)
        free(monkeypatch, 600_000_000)
        assert cli.main(["train", "laptop", "--batch-size", "64", "--dry-run"]) == 1
        assert "--accumulation" in capsys.readouterr().out

    def test_where_all_runs_have_records_there_is_nothing_to_do(self, capsys, monkeypatch):
        monkeypatch.setattr(records, "find", lambda config: Imagined(config, None, 2.0))

        def plan():
            return (yield {"one": TINY})

        assert dry_run.report_plans({"one": plan()}) == 0
        assert capsys.readouterr().out.endswith(
            "All runs have their records. There is nothing to do.\n"
        )
