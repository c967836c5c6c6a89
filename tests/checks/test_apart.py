"""A process of its own for a learner's code: values come back, and nothing of it stays."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from workbook.checks import apart

HERE = "tests.checks.test_apart:"


def counts(n):
    yield from range(n)


def fails():
    yield 1
    raise ValueError("no such thing")


def crashes():
    yield 1
    print("before the end")
    os._exit(3)


def hangs(file):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(file).write_text(str(child.pid))
    yield 1
    time.sleep(600)


def multiplies():
    for _ in range(100):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    time.sleep(600)
    yield 1


def test_values_come_back_in_order():
    assert list(apart.results(HERE + "counts", 3, seconds=60)) == [0, 1, 2]


def test_its_errors_are_raised_here():
    found = apart.results(HERE + "fails", seconds=60)
    assert next(found) == 1
    with pytest.raises(ValueError, match="no such thing"):
        next(found)


def test_what_came_before_a_crash_is_there():
    found = apart.results(HERE + "crashes", seconds=60)
    assert next(found) == 1
    with pytest.raises(apart.EndedError, match="status 3; its last output: before the end"):
        next(found)


def test_one_that_hangs_is_ended_with_its_children(tmp_path):
    file = tmp_path / "pid"
    found = apart.results(HERE + "hangs", str(file), seconds=15)
    assert next(found) == 1
    with pytest.raises(apart.EndedError, match="nothing came for 15 s"):
        next(found)
    assert ends(lambda: not is_running(int(file.read_text())))


def test_one_that_is_left_is_ended_too(tmp_path):
    file = tmp_path / "pid"
    found = apart.results(HERE + "hangs", str(file), seconds=60)
    next(found)
    found.close()
    assert ends(lambda: not is_running(int(file.read_text())))


def test_too_many_children_are_all_ended():
    before = {each.pid for each in psutil.process_iter()}
    with pytest.raises(apart.EndedError, match="processes, more than 48"):
        apart.result(HERE + "multiplies", seconds=60)
    assert ends(lambda: not sleepers(before))


def ends(is_over) -> bool:
    """Wait for what was killed to be gone: a busy system takes a moment."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not is_over():
        time.sleep(0.1)
    return is_over()


def sleepers(before) -> list:
    found = []
    for each in psutil.process_iter(["cmdline", "status"]):
        if each.pid not in before and "time.sleep(600)" in " ".join(each.info["cmdline"] or []):
            found += [each] if each.info["status"] != psutil.STATUS_ZOMBIE else []
    return found


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
