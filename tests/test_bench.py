"""The cost of a run is measured whole: its children's memory, its errors, where its time goes."""

import os
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

from workbook import bench
from workbook.bench import measured, profile

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
    """A file that is there once a sample has met the process that holds much."""
    memory, file = bench._memory, tmp_path / "seen"

    def watched(pid):
        found = memory(pid)
        if max(found, default=0) > HELD:
            file.touch()
        return found

    monkeypatch.setattr(bench, "_memory", watched)
    return file


def spin():
    return sum(number * number for number in range(200_000))


@pytest.mark.timeout(300)
def test_memory_of_the_run_is_seen_and_that_of_this_process_is_not(seen):
    mine = bytearray(b"x") * (3 * HELD)
    start = time.perf_counter()
    run = measured(hold, until=seen)
    assert 0 < run.seconds < time.perf_counter() - start  # without the start of the process
    assert run.result == HELD
    assert HELD < run.peak_bytes < len(mine)
    assert HELD < run.parent_peak_bytes <= run.peak_bytes


@pytest.mark.timeout(300)
def test_a_child_counts_in_the_whole_and_not_in_the_parent(seen):
    run = measured(hold_in_child, seen)
    assert run.peak_bytes > HELD > run.parent_peak_bytes > 0


def test_an_error_of_the_function_is_raised_here_and_a_process_that_dies_is_a_clear_one():
    with pytest.raises(ValueError, match="invalid literal"):
        measured(int, "three")
    with pytest.raises(RuntimeError, match="the process was killed; was there enough memory"):
        measured(os._exit, 3)


@pytest.mark.timeout(300)
def test_nothing_runs_on_when_the_wait_is_interrupted(monkeypatch):
    started = []

    def interrupt(pid):
        started.append(pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "_memory", interrupt)
    with pytest.raises(KeyboardInterrupt):
        measured(time.sleep, 10_000)
    assert not bench.psutil.pid_exists(started[0])


def test_a_profile_names_the_work_slowest_first():
    table = profile(spin)
    assert list(table.columns) == ["function", "calls", "seconds", "share"]
    assert table["seconds"].is_monotonic_decreasing
    assert table["share"].sum() == pytest.approx(1)
    assert table.loc[table["calls"].idxmax(), "function"] == "test_bench.<genexpr>"
