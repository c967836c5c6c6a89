"""A dry run tells what is asked for, what it costs and what is missing, and does nothing else."""

import random
from dataclasses import replace

import pytest
import tiny_runs
import torch

from workbook import accounting, cli
from workbook.corpora import corpora
from workbook.experiments import dry_run, records
from workbook.experiments.dry_run import Cost, groups, step_seconds
from workbook.experiments.foresight import Imagined
from workbook.experiments.studies import at_rate
from workbook.training import presets
from workbook.training.presets import varied
from workbook.training.train import Trainer

PEAK = 1e12  # FLOP/s
TINY = tiny_runs.tiny()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A data folder of one's own with short stories, and a machine whose speed is known."""
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    short = replace(corpora.CORPORA["stories"], sizes={"train": 20_000, "validation": 20_000})
    monkeypatch.setitem(corpora.CORPORA, "stories", short)
    monkeypatch.setattr(records, "folders", lambda: (tmp_path / "data" / "runs",))
    monkeypatch.setattr(dry_run, "matmul_peak", lambda *_: PEAK)
    monkeypatch.setattr(dry_run.psutil, "cpu_percent", lambda *_: 0.0)
    return tmp_path


@pytest.fixture
def updates(monkeypatch):
    """The steps that are taken, which take no time."""
    taken = []
    monkeypatch.setattr(Trainer, "update", lambda self: taken.append(self.config))
    return taken


def test_twenty_steps_are_measured_after_two_that_do_not_count(updates, monkeypatch):
    clock = iter(range(1_000))  # each look at it is a second later
    monkeypatch.setattr(dry_run.time, "perf_counter", lambda: float(next(clock)))
    assert step_seconds(TINY) == (1 / 20, 20)
    assert len(updates) == 22


def test_fewer_steps_are_measured_where_they_take_long(updates, monkeypatch):
    clock = iter(range(0, 1_000, 9))  # each look at it is nine seconds later
    monkeypatch.setattr(dry_run.time, "perf_counter", lambda: float(next(clock)))
    seconds, steps = step_seconds(TINY)
    assert (steps, len(updates)) == (6, 8)
    assert seconds == pytest.approx(9 / 6, rel=1e-12)


def test_a_step_of_more_than_a_minute_is_not_taken_again(updates, monkeypatch):
    clock = iter(range(0, 1_000, 90))
    monkeypatch.setattr(dry_run.time, "perf_counter", lambda: float(next(clock)))
    assert step_seconds(TINY) == (90.0, 1)
    assert len(updates) == 1


def test_a_measurement_takes_real_steps_and_leaves_nothing_behind(folder):
    torch.manual_seed(0)
    random.seed(0)
    before = torch.get_rng_state(), random.getstate()
    seconds, steps = step_seconds(replace(TINY, accumulation=2, max_seconds=1e-9))
    assert seconds > 0 and steps > 0
    assert torch.equal(torch.get_rng_state(), before[0]) and random.getstate() == before[1]
    assert list(folder.iterdir()) == []


def test_hours_come_from_the_flops_of_all_tokens_and_evaluations():
    per_token = accounting.flops_per_token(TINY.model)
    evaluated = 4 * TINY.eval_tokens / 3  # at steps 0, 8, 16 and 24; forward is a third
    cost = Cost(2, TINY, PEAK, (0.5, 20))
    flops = per_token * (TINY.tokens + evaluated)
    assert cost.expected() == pytest.approx(flops / (0.3 * PEAK), rel=1e-12)
    in_steps = 24 + evaluated / (TINY.batch_size * TINY.model.context_length)
    assert cost.measured() == pytest.approx(0.5 * in_steps, rel=1e-12)


def test_the_course_s_run_takes_as_long_as_its_formula_says():
    config = presets.tinystories()
    cost = Cost(1, config, 100e12, None)
    # 6 FLOPs for each of 17.6 million parameters in products and each token, and attention's
    tokens = 327_680_000 + 21 * config.eval_tokens / 3
    products = 6 * (10_000 * 512 + 4 * (4 * 512**2 + 3 * 512 * 1_344)) + 12 * 4 * 256 * 512
    assert cost.expected() == pytest.approx(products * tokens / 30e12, rel=1e-12)


def test_workers_of_one_thread_share_the_hours(updates, monkeypatch):
    costs, threads = [Cost(3, TINY, PEAK, (900.0, 20))], torch.get_num_threads()
    alone, shared = (dry_run.look_at_hours(costs, [], n).text for n in (None, 2))
    hours = 3 * costs[0].measured() / 3_600
    assert f"{hours:.2g} h as measured" in alone and f"{hours / 2:.2g} h as measured" in shared
    seen = []

    def step(config):
        seen.append(torch.get_num_threads())
        return 1.0, 20

    monkeypatch.setattr(dry_run, "step_seconds", step)
    dry_run.told([TINY], [], 2)
    assert seen == [1] and torch.get_num_threads() == threads


def test_a_run_with_a_time_limit_takes_no_longer():
    config = replace(TINY, max_seconds=1.5)
    assert Cost(1, config, 1.0, (100.0, 20)).expected() == 1.5
    assert Cost(1, config, 1.0, (100.0, 20)).measured() == 1.5


def test_runs_that_cost_the_same_are_measured_once():
    same = [at_rate(TINY, 1e-3), replace(TINY, seed=1), replace(TINY, name="another")]
    other = [replace(TINY, batch_size=4), varied(TINY, ffn="silu"), replace(TINY, steps=48)]
    assert [len(group) for group in groups([*same, *other])] == [3, 1, 1, 1]


def test_a_dry_run_of_the_course_s_sizes_says_what_is_missing(folder, updates, capsys):
    status = cli.main(["experiments", "run", "learning_rate", "--scale", "full", "--dry-run"])
    out = capsys.readouterr().out
    assert status == 1
    assert "learning_rate    runs to make next: 10" in out
    assert "at least 10; later rounds depend on their results." in out
    assert "327,680,000" in out and "30% of 1,000 GFLOP/s" in out
    assert "1. `workbook data get tinystories` downloads 2.3 GB\n" in out
    assert "owt" not in out, "this plan does not read it"
    assert not (folder / "data").exists(), "something was written"


def test_all_plans_together_read_both_corpora(updates, capsys):
    assert cli.main(["experiments", "run", "--scale", "full-cpu", "--dry-run"]) == 1
    out = capsys.readouterr().out
    assert "`workbook data get owt`" in out
    assert "40,960,000" in out and "at least 10;" in out


def test_a_dry_run_on_the_laptop_needs_no_download(folder, updates, capsys, monkeypatch):
    monkeypatch.setattr("workbook.experiments.needs.free_memory", lambda device: 16_000_000_000)
    monkeypatch.setattr(dry_run, "free_memory", lambda device: 16_000_000_000)
    assert cli.main(["experiments", "run", "batch_size", "--workers", "2", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert out.endswith("\nReady.\n")
    assert "stories: first its text is made" in out and "for 2 workers" in out
    assert "workers of one thread each: 2" in out
    assert not (folder / "data").exists()


def test_a_single_run_can_be_rehearsed(folder, updates, capsys):
    assert cli.main(["train", "laptop", "--steps", "100", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "102,400" in out and "stories, batch 8" in out
    assert "of 20 steps" in out
    assert cli.main(["train", "tinystories-cpu", "--dry-run"]) == 1
    assert "40,960,000" in capsys.readouterr().out


def test_a_step_without_room_is_not_measured(updates, capsys, monkeypatch):
    monkeypatch.setattr("workbook.experiments.needs.free_memory", lambda device: 600_000_000)
    monkeypatch.setattr(dry_run, "free_memory", lambda device: 600_000_000)
    assert cli.main(["train", "laptop", "--batch-size", "64", "--dry-run"]) == 1
    out = capsys.readouterr().out
    assert "not measured: no room" in out and updates == []
    assert "--accumulation" in out and "make room in memory" in out


def test_a_gpu_that_runs_out_of_memory_is_told(capsys, monkeypatch):
    def struck(config):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(dry_run, "step_seconds", struck)
    assert dry_run.tell_run(varied(presets.laptop(), device="cpu")) == 1
    assert "make room in memory, so that a step can be measured" in capsys.readouterr().out


def test_a_busy_machine_is_told(updates, capsys, monkeypatch):
    monkeypatch.setattr(dry_run.psutil, "cpu_percent", lambda *_: 80.0)
    dry_run.tell_run(presets.laptop())
    assert "Other programs keep 80% of the processor busy" in capsys.readouterr().out


def test_where_all_runs_have_records_there_is_nothing_to_do(capsys, monkeypatch):
    monkeypatch.setattr(records, "find", lambda config: Imagined(config, None, 2.0))

    def plan():
        return (yield {"one": TINY})

    assert dry_run.tell({"one": plan()}) == 0
    assert capsys.readouterr().out.endswith(
        "All runs have their records. There is nothing to do.\n"
    )
