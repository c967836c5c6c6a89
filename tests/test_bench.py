"""The cost of a run is measured whole: its children's memory, its errors, where its time goes."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import count
from unittest.mock import Mock

import psutil
import pytest

from workbook import bench
from workbook.bench import measured, timed

HELD = 150_000_000  # bytes


def hold(until):
    """Fill much memory, and keep it until there is a file `until`."""
    block = bytearray(b"x") * HELD
    while not until.exists():
        time.sleep(0.01)
    return len(block)


def hold_in_child(until):
    with ProcessPoolExecutor(1) as executor:
        return executor.submit(hold, until).result()


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """A file that is there once a sample has met the process that holds much, or never will."""
    memory = psutil.Process.memory_full_info
    file = tmp_path / "seen"
    looks = count()

    def watched(process):
        found = memory(process)
        if found.uss > HELD or next(looks) > 10_000:  # at 20 a second, and ten are enough
            file.touch()
        return found

    monkeypatch.setattr(psutil.Process, "memory_full_info", watched)
    return file


def test_memory_of_the_run_is_seen_and_that_of_this_process_is_not(seen):
    mine = bytearray(b"x") * (3 * HELD)
    start = time.perf_counter()
    run = measured(hold, until=seen)
    assert 0 < run.seconds < time.perf_counter() - start  # without the start of the process
    assert run.result == HELD
    assert HELD < run.peak_bytes < len(mine)
    assert HELD < run.parent_peak_bytes <= run.peak_bytes


def test_a_child_counts_in_the_whole_and_not_in_the_parent(seen):
    run = measured(hold_in_child, seen)
    assert run.peak_bytes > HELD > run.parent_peak_bytes > 0


def test_an_error_of_the_function_is_raised_here_and_a_process_that_dies_is_a_clear_one():
    with pytest.raises(ValueError, match="invalid literal"):
        measured(int, "three")
    with pytest.raises(RuntimeError, match="the process was killed; was there enough memory"):
        measured(os._exit, 3)


def touch_late(path):
    time.sleep(60)
    path.touch()


def test_nothing_runs_on_when_the_wait_is_interrupted(tmp_path, monkeypatch):
    interrupted = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(psutil.Process, "memory_full_info", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measured(touch_late, tmp_path / "late")
    assert not (tmp_path / "late").exists()


def test_the_best_of_several_times_and_the_longest_are_kept():
    clock = iter([0, 5, 10, 12, 20, 23]).__next__
    timing = timed(max, 3, 4, rounds=3, clock=clock)
    assert (timing.result, timing.seconds, timing.best) == (4, [5, 2, 3], 2)
    assert str(timing) == "2.00 s (best of 3, the longest 5.00 s)"


def test_a_busy_machine_is_told_from_a_quiet_one(tmp_path, monkeypatch):
    def disturbance(*measured):
        monkeypatch.setattr(bench, "busy_threads", lambda: measured)
        return bench.disturbance()

    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    assert disturbance(0.99, 100e9, 2) is None
    assert disturbance(0.99, 90e9, 2) is None
    assert disturbance(0.99, 40e9, 1) is None  # one thread: another peak
    assert "100 GFLOP/s before" in disturbance(0.99, 70e9, 2)
    assert "only 60% of their cores' time" in disturbance(0.60, 100e9, 2)


def test_a_trace_has_each_operation_and_complains_of_nothing(tmp_path, capfd):
    import torch  # not above: the processes of the other tests would load it too

    square = torch.ones(64, 64)
    taken = bench.trace(lambda: (square @ square).exp_(), tmp_path / "trace.json")
    assert list(taken.values()) == sorted(taken.values(), reverse=True)
    events = json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    assert {"aten::mm", "aten::exp_"} <= taken.keys() & {event.get("name") for event in events}
    assert capfd.readouterr().err == ""


def test_a_family_is_what_a_search_of_all_processes_finds():
    """Children of a thread and their children too; and nothing of a process that has ended."""
    forks = [sys.executable, "-c", "import os; os.fork(); print(flush=True); input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with ThreadPoolExecutor(1) as thread:
        starts = thread.submit(subprocess.Popen, forks, **pipes)
        with starts.result() as copied, subprocess.Popen(["sleep", "60"]) as sleeps:
            copied.stdout.read(2)  # both have begun
            started = [psutil.Process(each.pid) for each in (copied, sleeps)]
            this, *others = bench.family()
            assert this == psutil.Process() and {*started} <= {*others}
            family = bench.family(copied.pid)
            assert family == [started[0], *started[0].children()] and len(family) == 2
            for _ in range(2):  # what has ended is passed over
                bench.kill([*started, *family])
            assert copied.wait() == sleeps.wait() == -9
            assert bench.family(copied.pid) == []
