"""Plans ask for runs in rounds; what has a record is not made again, and what broke off goes on."""

import math
import os
import time
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import pytest
import tiny_runs
import torch

from workbook.classroom import cli
from workbook.experiments import plans, records, results, studies
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import data as training_data
from workbook.training import presets, train
from workbook.training.presets import varied

WORDS = {number: b" %d" % number for number in range(1, tiny_runs.VOCAB_SIZE)}
TOKENIZER = Tokenizer(WORDS | {tiny_runs.END: b"<|endoftext|>"}, [], ["<|endoftext|>"])


@pytest.fixture(autouse=True)
def made_runs(tmp_path, monkeypatch):
    """A data folder of one's own, runs that take a second, and a count of those that are made."""
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    monkeypatch.setattr(records.settings, "shipped", lambda: tmp_path / "nothing")
    text = tmp_path / "text.txt"
    text.write_text("A fox ran to the hill.")
    monkeypatch.setattr(plans.corpora, "path", lambda *_: text)  # that samples are compared with
    monkeypatch.setattr(train, "matmul_peak", lambda *_: 1e15)
    monkeypatch.setitem(plans.DRAWN, "max_new_tokens", 8)
    data = tiny_runs.data(tokenizer=TOKENIZER)
    for module in (plans, training_data):
        monkeypatch.setattr(module, "prepare", lambda config: data)
    made = []
    begin = train.Trainer.begin
    monkeypatch.setattr(
        train.Trainer, "begin", lambda self, state: (made.append(state), begin(self, state))
    )
    return made


def at_rate(rate):
    return varied(tiny_runs.tiny(), max_learning_rate=rate)


def rates(*values):
    found = yield {
        f"rate {each}": varied(tiny_runs.tiny(), max_learning_rate=each) for each in values
    }
    return found


def two_rounds():
    """A plan whose second round depends on the first."""
    found = yield from rates(1e-2, 1e-3)
    best = min(found.values(), key=lambda result: result.loss)
    return found | (yield {"again": varied(best.config, seed=1)})


def test_a_plan_is_led_from_round_to_round_and_no_run_is_made_twice(made_runs):
    first = plans.run_plans({"one": rates(1e-2)})["one"]["rate 0.01"]
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


def test_a_plan_goes_as_far_as_the_records_lead(made_runs):
    first = plans.run_plans({"one": rates(1e-2)})["one"]
    stage = plans.Stage(two_rounds())
    stage.advance()
    assert not stage.over and [config.name for config in stage.missing()] == ["rate-0.001"]
    assert stage.so_far() == first


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


def test_a_run_that_broke_off_goes_on(made_runs, monkeypatch):
    update = train.Trainer.update

    def struck(self):
        if self.step == 14:
            raise KeyboardInterrupt
        return update(self)

    with monkeypatch.context() as patch:
        patch.setattr(train.Trainer, "update", struck)
        with pytest.raises(KeyboardInterrupt):
            plans.run_plans({"one": rates(1e-2)})
    found = plans.run_plans({"one": rates(1e-2)})["one"]
    assert made_runs[0] is None and made_runs[1]["iteration"] == 12
    assert found["rate 0.01"].steps == 24


def test_a_record_names_what_the_run_was_made_from_and_a_full_disk_loses_no_run(
    made_runs, tmp_path, monkeypatch
):
    def full(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(records, "atomic_write", full)
        with pytest.raises(OSError, match="no space"):
            plans.run_plans({"one": rates(1e-2)})
    assert not list((tmp_path / "runs").glob("*.jsonl"))
    run = plans.run_plans({"one": rates(1e-2)})["one"]["rate 0.01"]
    assert len(made_runs) == 1, "the run itself was lost"
    named = {"device", "precision", "threads", "versions", "commit", "processor"}
    assert named <= set(run.environment) and run.sample["text"]
    assert [run.config.name for run in records.all_records()] == ["rate-0.01"]
    assert not list(tmp_path.rglob("*.pt")), "a run with its record keeps no checkpoints"


def test_a_run_that_the_clock_ends_has_the_machine_for_itself(monkeypatch):
    together, seen = set(), []
    make = plans.make_run

    def watched(study, config, *arguments):
        together.add(config.key)
        seen.append([config.max_seconds is not None, len(together)])
        time.sleep(0.05)  # in which the other worker may take the next one
        make(study, config, *arguments)
        seen[-1][1] = max(seen[-1][1], len(together))
        together.remove(config.key)

    def timed():
        return (
            yield {f"seed {n}": varied(tiny_runs.tiny(), max_seconds=60, seed=n) for n in (1, 2)}
        )

    monkeypatch.setattr(plans, "make_run", watched)
    with ThreadPoolExecutor(2) as executor:
        found = plans.run_plans({"board": timed(), "rates": rates(1e-2, 1e-3, 3e-3)}, executor)
    assert len(found["board"]) == 2 and len(found["rates"]) == 3
    assert [beside for clocked, beside in seen if clocked] == [1, 1]
    assert max(beside for clocked, beside in seen if not clocked) == 2


def test_batches_in_parts_make_the_same_run(made_runs):
    size = tiny_runs.tiny().batch_size
    made = plans.run_plans({"one": rates(1e-2)}, accumulation=3 * size)["one"]["rate 0.01"]
    assert records.all_records()[0].config.accumulation == size
    assert plans.run_plans({"one": rates(1e-2)})["one"]["rate 0.01"] == made
    assert len(made_runs) == 1


class Clock:
    """A clock that says 0, until a run has taken three steps."""

    def __init__(self, monkeypatch):
        self.now, update = 0, train.Trainer.update

        def counted(trainer):
            found = update(trainer)
            self.now += trainer.step == 3
            return found

        monkeypatch.setattr(train.Trainer, "update", counted)
        for module in (plans, train.guards):
            monkeypatch.setattr(module, "time", self)

    def time(self):
        return self.now


def test_only_a_long_run_is_compiled():
    long = replace(presets.gpu(), compile=True)
    assert long.tokens > plans.WORTH_COMPILING and plans.as_computed(long, 1) == long
    short = plans.as_computed(replace(long, steps=1_000), 1)
    assert not short.compile and short.key == replace(long, steps=1_000).key
    assert not plans.as_computed(replace(long, compile=False), 1).compile


@pytest.mark.parametrize("pool", [nullcontext, partial(ThreadPoolExecutor, 1)])
def test_at_a_given_time_runs_stop_and_go_on_later(made_runs, monkeypatch, pool):
    with monkeypatch.context() as patch, pool() as executor:
        Clock(patch)
        # With workers, a run that was still waiting may be the first to say so.
        with pytest.raises(KeyboardInterrupt, match=r"stopped after step 3|the time is up"):
            plans.run_plans({"two": two_rounds()}, executor, until=1)
        with pytest.raises(KeyboardInterrupt, match="the time is up"):
            plans.run_plans({"two": two_rounds()}, executor, until=1)
    assert len(made_runs) == 1
    assert len(plans.run_plans({"two": two_rounds()})["two"]) == 3
    assert made_runs[1]["iteration"] == 3, "it was begun anew"


def test_every_worker_takes_one_thread_and_a_gpu_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(plans.devices, "gpus", lambda: ["3", "7"])
    begun = tmp_path / "begun"  # in a folder of its own: a worker may make others beside it
    begun.mkdir()
    with plans.process_pool(2) as executor:
        found = [executor.submit(place_of_worker, begun, 2) for _ in range(2)]
        assert sorted(each.result() for each in found) == [("3", 1), ("7", 1)]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_worker_finds_its_gpu_alone():
    with plans.process_pool(1) as executor:
        assert executor.submit(torch.cuda.device_count).result() == 1


def place_of_worker(folder, workers):
    """The GPU and the threads of this process, when as many as there are have begun."""
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < workers:
        time.sleep(0.01)
    return os.environ.get("CUDA_VISIBLE_DEVICES"), torch.get_num_threads()


def test_a_worker_that_is_killed_is_told(made_runs):
    class Dead(Executor):
        def submit(self, *_):
            raise BrokenExecutor

    with pytest.raises(OSError, match=r"a worker was killed.*fewer workers"):
        plans.run_plans({"one": rates(1e-2)}, Dead())


def test_runs_are_named_as_they_begin_and_only_then(made_runs, capsys):
    plans.run_plans({"one": rates(1e-2, 1e-3)})
    names = [f"one: rate-{rate}, 3,072 tokens" for rate in (0.01, 0.001)]
    assert capsys.readouterr().err.splitlines() == names
    plans.run_plans({"one": rates(1e-2)})
    assert capsys.readouterr().err == ""


class TestTheCommand:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        """One experiment of three runs, made in this process."""
        study = studies.Study("What is it for?", lambda scale: two_rounds())
        monkeypatch.setattr(studies, "STUDIES", {"small": study})
        monkeypatch.setattr(plans, "process_pool", lambda workers: nullcontext())

    def test_lists_runs_and_shows(self, made_runs, capsys):
        assert cli.main(["experiments", "list"]) == 0
        shown = capsys.readouterr().out
        assert "0 runs, more to come" in shown and "What is it for?" in shown
        assert cli.main(["experiments", "show", "small"]) == 0
        assert "2 more runs are needed" in capsys.readouterr().out
        assert cli.main(["experiments", "run"]) == 0
        assert "small: 3 runs in " in capsys.readouterr().out
        assert cli.main(["experiments", "run", "small", "--workers", "1"]) == 0
        assert len(made_runs) == 3
        capsys.readouterr()
        assert cli.main(["experiments", "list"]) == 0
        assert "more to come" not in capsys.readouterr().out
        assert cli.main(["experiments", "show", "small"]) == 0
        shown = capsys.readouterr().out
        assert "missing" not in shown
        for word in ("again", "max_learning_rate", "validation_loss", "finished"):
            assert word in shown

    def test_stops_in_time_and_calls_that_no_error(self, made_runs, monkeypatch, capsys):
        update = train.Trainer.update

        def late(self):
            now = time.monotonic()
            monkeypatch.setattr(time, "time", lambda: now + 1e10)
            return update(self)

        monkeypatch.setattr(train.Trainer, "update", late)
        assert cli.main(["experiments", "run", "--minutes", "1"]) == 0
        assert "The time is up, and all runs are saved" in capsys.readouterr().out
        monkeypatch.undo()

    def test_is_refused_under_torchrun(self, made_runs, monkeypatch, capsys):
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert cli.main(["experiments", "run"]) == 2
        assert "leave it out, and give --workers N" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["run", "smal"], "'smal' is not an experiment; pick from small"),
            (["show", "small", "--scale", "huge"], "'huge' is not a scale; choose from laptop"),
        ],
    )
    def test_says_what_there_is_instead(self, arguments, message, capsys):
        assert cli.main(["experiments", *arguments]) == 2
        assert message in capsys.readouterr().err
