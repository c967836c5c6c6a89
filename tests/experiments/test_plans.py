"""Plans ask for runs in rounds; what has a record is not made again, and what broke off goes on."""

import io
import math
import os
import time
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count

import pytest
import tiny_runs
import torch
from tqdm import tqdm

from workbook.classroom import cli
from workbook.experiments import plans, records, results, studies
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import presets, trainer
from workbook.training.presets import varied

WORDS = {number: b" %d" % number for number in range(1, tiny_runs.VOCAB_SIZE)}
TOKENIZER = Tokenizer(WORDS | {tiny_runs.END: b"<|endoftext|>"}, [], ["<|endoftext|>"])


@pytest.fixture
def place():
    """The folder of records, which is empty at first."""
    with records.temporary_folder() as folder:
        yield folder


@pytest.fixture(autouse=True)
def made_runs(place, tmp_path, monkeypatch):
    """A data folder of one's own, runs that take a second, and a list of those that are made.

    The list holds the checkpoint that each went on from, or None.
    """
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    text = tmp_path / "text.txt"
    text.write_text("A fox ran to the hill.")
    monkeypatch.setattr(plans.corpora, "path", lambda *_: text)  # that samples are compared with
    monkeypatch.setattr(trainer, "matmul_peak", lambda *_: 1e15)
    monkeypatch.setitem(plans.DRAWN, "max_new_tokens", 8)
    data = tiny_runs.data(tokenizer=TOKENIZER)
    monkeypatch.setattr(plans, "prepare", lambda config: data)
    made = []
    begin = trainer.Trainer.begin

    def noted(self, state):
        made.append(state)
        begin(self, state)

    monkeypatch.setattr(trainer.Trainer, "begin", noted)
    return made


def at_rate(rate):
    return varied(tiny_runs.tiny(), max_learning_rate=rate)


def rates(*values):
    return (yield {f"rate {rate}": at_rate(rate) for rate in values})


def two_rounds():
    """A plan whose second round depends on the first."""
    found = yield from rates(1e-2, 1e-3)
    best = min(found.values(), key=lambda result: result.loss)
    return found | (yield {"again": varied(best.config, seed=1)})


def test_a_plan_is_led_from_round_to_round_and_no_run_is_made_twice(made_runs):
    first = plans.run_plans({"one": rates(1e-2)})["one"]["rate 0.01"]
    stage = plans.Stage(two_rounds())
    stage.advance()
    assert not stage.over and [config.name for config in stage.missing()] == ["rate-0.001"]
    assert stage.so_far() == {"rate 0.01": first}

    made = plans.run_plans({"two": two_rounds(), "same": rates(1e-3, 1e-2)})
    found = made["two"]
    assert list(found) == ["rate 0.01", "rate 0.001", "again"]
    assert found["again"].config.optimizer.max_learning_rate == 1e-2
    assert found["rate 0.01"].loss < found["rate 0.001"].loss < 1.1 * math.log(64)
    assert made["same"]["rate 0.01"] == found["rate 0.01"] == first and first.study == "one"
    played = plans.Stage(two_rounds())
    played.advance()
    assert played.over and played.returned == played.so_far()
    assert {label: run.loss for label, run in played.returned.items()} == {
        label: run.loss for label, run in found.items()
    }
    assert records.find_record(replace(first.config, name="x")).loss == first.loss
    assert len(made_runs) == 3, "a run was made twice"


def test_a_bar_shows_the_tokens_of_all_runs_that_were_asked_for(made_runs, monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(plans, "progress_bar", partial(tqdm, file=shown, bar_format="{n}/{total}"))
    with pytest.raises(KeyboardInterrupt):
        plans.run_plans({"two": two_rounds()}, until=After(3))
    with ThreadPoolExecutor(1) as executor:
        plans.run_plans({"two": two_rounds()}, executor)
    tokens = tiny_runs.tiny().tokens
    seen = shown.getvalue().split("\r")
    assert f"0/{2 * tokens}" in seen, seen


def test_a_run_that_diverges_is_a_result(made_runs):
    bad = varied(tiny_runs.tiny(), max_learning_rate=1e30, max_l2_norm=math.inf, warmup_iters=1)

    def plan():
        return (yield {"bad": bad, "good": tiny_runs.tiny()})

    found = plans.run_plans({"plan": plan()})["plan"]
    assert found["bad"].diverged and found["bad"].loss == math.inf
    assert "norm of the gradients" in found["bad"].outcome["reason"]
    assert found["bad"].steps < found["good"].steps == 24
    assert found["bad"].sample is None and found["good"].sample["text"]
    plans.run_plans({"plan": plan()})
    assert len(made_runs) == 2
    table = results.runs_table(found)
    assert table["status"].tolist() == ["diverged", "finished"]
    assert {"max_learning_rate", "max_l2_norm", "warmup_iters"} <= {*table} and "seed" not in table


def test_a_record_names_its_origin_and_a_full_disk_loses_no_run(made_runs, tmp_path, place):
    in_the_way = place / "one.logs.jsonl"
    in_the_way.mkdir(parents=True)
    with pytest.raises(OSError, match=in_the_way.name):
        plans.run_plans({"one": rates(1e-2)})
    in_the_way.rmdir()
    assert records.all_records() == []
    run = plans.run_plans({"one": rates(1e-2)})["one"]["rate 0.01"]
    assert len(made_runs) == 1, "the run itself was lost"
    named = {"device", "precision", "threads", "versions", "commit", "processor"}
    assert named <= set(run.environment) and run.sample["text"]
    assert [run.config.name for run in records.all_records()] == ["rate-0.01"]
    assert not list(tmp_path.rglob("*.pt")), "a run with its record keeps no checkpoints"


def test_a_run_that_the_clock_ends_has_the_machine_for_itself():
    free = tiny_runs.tiny()
    other = tiny_runs.tiny(seed=1)
    timed = tiny_runs.tiny(max_seconds=60)
    assert plans.may_begin(free, [other]) and plans.may_begin(timed, [])
    assert not plans.may_begin(timed, [free]) and not plans.may_begin(free, [timed])
    assert not plans.may_begin(replace(free, name="x"), [free]), "plans share runs"


def test_batches_in_parts_make_the_same_run_and_a_run_is_named_as_it_begins(made_runs, capsys):
    made = plans.run_plans({"one": rates(1e-2)}, accumulation=6)["one"]["rate 0.01"]
    assert records.all_records()[0].config.accumulation == 2  # which divides a batch of 8, too
    assert plans.run_plans({"one": rates(1e-2)})["one"]["rate 0.01"] == made
    assert len(made_runs) == 1
    assert capsys.readouterr().err == "one: rate-0.01, 3,072 tokens\n"


def test_only_a_long_run_is_compiled():
    long = replace(presets.gpu(), compile=True)
    assert long.tokens > plans.WORTH_COMPILING and plans.as_computed(long, 1) == long
    short = plans.as_computed(replace(long, steps=1_000), 1)
    assert not short.compile and short.key == replace(long, steps=1_000).key
    assert not plans.as_computed(replace(long, compile=False), 1).compile


class After:
    """A time that has come once it has been compared with the clock so often."""

    def __init__(self, times):
        self.left = times

    def __le__(self, now):
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("pool", [nullcontext, partial(ThreadPoolExecutor, 1)])
def test_at_a_given_time_runs_stop_and_go_on_later(made_runs, pool):
    with pool() as executor:
        # With workers, a run that was still waiting may be the first to say so.
        until = After(3)  # before the run, and after each of its steps
        with pytest.raises(KeyboardInterrupt, match=r"stopped after step 3|the time is up"):
            plans.run_plans({"two": two_rounds()}, executor, until)
        with pytest.raises(KeyboardInterrupt, match="the time is up"):
            plans.run_plans({"two": two_rounds()}, executor, until)
    assert len(made_runs) == 1
    assert len(plans.run_plans({"two": two_rounds()})["two"]) == 3
    assert made_runs[1]["iteration"] == 3, "it was begun anew"


def test_every_worker_takes_one_thread_and_the_next_gpu(monkeypatch):
    monkeypatch.setattr(plans.devices, "gpus", lambda: ["3", "7"])
    with plans.process_pool(3) as executor:
        (places,) = executor._initargs
        found = [places.get() for _ in range(3)]
        assert found == ["3", "7", "3"]
        for place in found:
            places.put(place)
        assert executor.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result() == "3"
        assert executor.submit(torch.get_num_threads).result() == 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_worker_finds_its_gpu_alone():
    with plans.process_pool(1) as executor:
        assert executor.submit(torch.cuda.device_count).result() == 1


def test_a_worker_that_is_killed_is_told(made_runs):
    class Dead(Executor):
        def submit(self, *_):
            raise BrokenExecutor

    with pytest.raises(OSError, match=r"a worker was killed.*fewer workers"):
        plans.run_plans({"one": rates(1e-2)}, Dead())


class TestTheCommand:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        """One experiment of three runs, made in this process."""
        study = studies.Study("What is it for?", lambda scale: two_rounds())
        monkeypatch.setattr(studies, "STUDIES", {"small": study})
        monkeypatch.setattr(plans, "process_pool", lambda workers: nullcontext())

    def test_lists_runs_and_shows(self, made_runs, capsys):
        def said(*words):
            assert cli.main(["experiments", *words]) == 0
            return capsys.readouterr().out

        assert "small             0+  What is it for?" in said("list")
        assert "2 more runs are needed" in said("show", "small")
        assert "small: 3 runs in " in said("run")
        said("run", "small", "--workers", "1")
        assert len(made_runs) == 3
        assert "small             3   What is it for?" in said("list")
        shown = said("show", "small")
        for word in ("again", "max_learning_rate", "validation_loss", "finished"):
            assert word in shown and "missing" not in shown

    def test_stops_in_time_and_calls_that_no_error(self, monkeypatch, capsys):
        clock = count(time.time(), 10)
        monkeypatch.setattr(time, "time", lambda: next(clock))
        assert cli.main(["experiments", "run", "--minutes", "1"]) == 0
        assert "The time is up, and all runs are saved" in capsys.readouterr().out

    def test_is_refused_under_torchrun(self, monkeypatch, capsys):
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert cli.main(["experiments", "run"]) == 2
        assert "leave it out, and give --workers N" in capsys.readouterr().err

    def test_says_what_there_is_instead(self, capsys):
        for arguments, message in (
            (["run", "smal"], "'smal' is not an experiment; pick from small"),
            (["show", "small", "--scale", "huge"], "'huge' is not a scale; choose from laptop"),
        ):
            assert cli.main(["experiments", *arguments]) == 2
            assert message in capsys.readouterr().err
