"""A training process is killed, and its run ends as if nothing had happened.

`make test` kills one, `make stress` many at random instants, with one thread and with two.
"""

import os
import random
import signal
import time
from functools import cache

import pytest
import tiny_runs
import torch

from workbook.training import checkpoints
from workbook.training import log as runlog
from workbook.training.trainer import CHECKPOINTS, Run

STRESS = int(os.environ.get("STRESS", "0"))
SETTINGS = {"steps": 40, "checkpoint_every": 3, "eval_every": 20}


def work(folder, threads, killed_at=None):
    """Train in a process of its own; as many threads give the same bits."""
    torch.set_num_threads(threads)
    death = tiny_runs.at_step(killed_at, lambda: os.kill(os.getpid(), signal.SIGKILL))
    tiny_runs.trained(folder, death, **SETTINGS)


def finish(folder, threads, processes=1):
    """The run, after so many processes wanted it at the same time."""
    started = [tiny_runs.forked(work, folder, threads) for _ in range(processes)]
    for process in started:
        process.join()
        assert process.exitcode == 0
    return Run(tiny_runs.tiny(**SETTINGS), folder)


@pytest.fixture(scope="module")
def whole_runs(tmp_path_factory):
    """A run that nobody disturbed, by its number of threads; made when it is asked for."""
    return cache(lambda threads: finish(tmp_path_factory.mktemp("whole"), threads))


def test_a_killed_run_that_two_processes_finish_has_the_same_bits(tmp_path, whole_runs):
    process = tiny_runs.forked(work, tmp_path, 1, 14)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert checkpoints.newest(tmp_path / CHECKPOINTS)["iteration"] == 12
    compare(finish(tmp_path, 1, processes=2), whole_runs(1))


@pytest.mark.stress
@pytest.mark.skipif(not STRESS, reason="a part of `make stress`")
@pytest.mark.parametrize("threads", [1, 2])
def test_killed_at_any_instant_a_run_goes_on_to_the_same_bits(tmp_path, threads, whole_runs):
    whole = whole_runs(threads)
    instants = random.Random()  # other ones every time: that is the point
    number = 0
    killed = 0
    places = set()
    while killed < 4 * STRESS or len(places) < 2:
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


def wait_for_lines(folder, process, more):
    """Return when the log has so many lines more, or the process has ended."""
    log = folder / runlog.LINES
    begin = None
    while process.is_alive():
        lines = log.read_bytes().count(b"\n") if log.exists() else 0
        begin = lines if begin is None else min(begin, lines)  # a resumed run cuts some off
        if lines >= begin + more:
            return
        time.sleep(0.001)


def compare(run, whole):
    """The run is as it was without a kill, and nothing was left over."""
    tiny_runs.assert_same(run, whole)
    assert run.flags == whole.flags == []
    assert run.status == "finished"
    left = [file.name for file in (run.folder / CHECKPOINTS).iterdir()]
    assert len([name for name in left if name.endswith(".pt")]) == 2
