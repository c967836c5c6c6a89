"""A training process is killed at random instants, and its run ends as if nothing had happened.

`make test` kills it a few times, `make stress` thirty times as often, with two threads as well.
"""

import os
import random
import signal
import time
from functools import cache

import pandas as pd
import pytest
import tiny_runs
import torch

from workbook.training import checkpoints
from workbook.training import log as runlog
from workbook.training import train as trainer
from workbook.training.train import CHECKPOINTS, Run, train

STRESS = int(os.environ.get("STRESS", "1"))
KILLS = 4 * STRESS
CURVE = ["tokens", "train_loss", "learning_rate", "gradient_norm", "validation_loss"]
SETTINGS = {"steps": 60, "checkpoint_every": 3, "eval_every": 20}


def work(folder, threads):
    """Train in a process of its own; as many threads give the same bits."""
    torch.set_num_threads(threads)
    trainer.matmul_peak = lambda *_: 1e15
    train(tiny_runs.tiny(**SETTINGS), tiny_runs.data(), folder)


def finish(folder, threads):
    process = tiny_runs.forked(work, folder, threads)
    process.join()
    assert process.exitcode == 0
    return Run(tiny_runs.tiny(**SETTINGS), folder)


@pytest.fixture(scope="module")
def whole_runs(tmp_path_factory):
    """A run that nobody disturbed, by its number of threads; made when it is asked for."""
    return cache(lambda threads: finish(tmp_path_factory.mktemp("whole"), threads))


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.parametrize("threads", [1, 2] if STRESS > 1 else [1])
def test_killed_at_any_instant_a_run_goes_on_to_the_same_bits(tmp_path, threads, whole_runs):
    whole = whole_runs(threads)
    instants = random.Random()  # other ones every time: that is the point
    number, killed, places = 0, 0, set()
    while killed < KILLS or len(places) < 2:
        folder = tmp_path / f"killed-{number}"
        process = tiny_runs.forked(work, folder, threads)
        wait_for_lines(folder, process, instants.randrange(25))
        time.sleep(instants.uniform(0, 0.02))
        process.kill()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
        state = checkpoints.newest(folder / CHECKPOINTS)  # raises where none can be read
        places.add(state["iteration"] if state else 0)
        if state and state["iteration"] == SETTINGS["steps"]:
            compare(finish(folder, threads), whole)
            number += 1
    compare(finish(folder, threads), whole)


@pytest.mark.slow
def test_two_processes_that_want_the_same_run_make_it_once(tmp_path, whole_runs):
    both = [tiny_runs.forked(work, tmp_path / "both", 1) for _ in range(2)]
    for process in both:
        process.join()
        assert process.exitcode == 0
    compare(Run(tiny_runs.tiny(**SETTINGS), tmp_path / "both"), whole_runs(1))


def wait_for_lines(folder, process, more):
    """Return when the log has so many lines more, or the process has ended."""
    log, begin = folder / runlog.LINES, None
    while process.is_alive():
        lines = log.read_bytes().count(b"\n") if log.exists() else 0
        begin = lines if begin is None else min(begin, lines)  # a resumed run cuts some off
        if lines >= begin + more:
            return
        time.sleep(0.001)


def compare(run, whole):
    """Every figure that does not depend on the clock is equal, and so are all weights."""
    pd.testing.assert_frame_equal(run.log[CURVE], whole.log[CURVE], check_exact=True)
    for one, other in zip(run.model().parameters(), whole.model().parameters(), strict=True):
        assert torch.equal(one, other)
    assert run.flags == whole.flags == []
    assert runlog.load_json(run.folder / runlog.OUTCOME)["status"] == "finished"
    left = [file.name for file in (run.folder / CHECKPOINTS).iterdir()]
    assert len([name for name in left if name.endswith(".pt")]) == 2
