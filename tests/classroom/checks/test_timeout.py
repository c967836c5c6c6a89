"""The time limit: in processor time, nested, and gone when the call is over."""

import os
import signal
import subprocess
import sys
import time

import pytest
from work import PATIENCE

from workbook.classroom.checks.machinery import timeout
from workbook.classroom.checks.machinery.timeout import Stopwatch, TimedOut, limited
from workbook.classroom.checks.machinery.verdicts import Wrong, call

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no alarm")


def loops(n):
    while True:
        pass


def sleeps(n):
    time.sleep(100)


def needs_two_stops(n):
    try:
        time.sleep(100)
    except BaseException:
        loops(n)


def comes_back_late(n):
    try:
        time.sleep(100)
    except BaseException:
        return n * n


@pytest.mark.parametrize("attempt", [loops, sleeps, needs_two_stops, comes_back_late])
def test_an_attempt_that_hangs_is_stopped(attempt):
    with pytest.raises(Wrong, match=r"stopped after 0.3 s") as caught:
        call(attempt, 2, seconds=0.3, given="attempt(2)")
    assert caught.value.timed_out


def printed_by(program):
    """What a program prints in a process of its own, which may hang or multiply."""
    run = [sys.executable, "-c", program]
    return subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


LOSES_AN_ALARM = """
import signal, threading
from workbook.classroom.checks.machinery.timeout import TimedOut, limited

def loses_one():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    signal.sigwait({signal.SIGALRM})  # it has come, and Python never hears of it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    threading.Event().wait(60)

try:
    print(limited(0.3, loses_one))
except TimedOut as error:
    print(error)
"""


def test_a_lost_alarm_is_followed_by_another():
    # In a process without other threads: one of them might take the alarm instead.
    assert printed_by(LOSES_AN_ALARM) == "stopped after 0.3 s\n"


def test_what_ends_in_time_and_an_error_pass():
    assert limited(30, lambda: time.sleep(0.1) or "done") == "done"
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    with pytest.raises(KeyError):
        limited(1, lambda: {}[3])


def test_limits_may_be_nested():
    def outer():
        with pytest.raises(TimedOut, match=r"stopped after 0.1 s"):
            limited(0.1, lambda: loops(2))
        loops(2)

    with pytest.raises(TimedOut, match=r"stopped after 0.4 s"):
        limited(0.4, outer)


def test_the_outer_limit_holds_inside_the_inner_one():
    with pytest.raises(TimedOut, match=r"stopped after 0.2 s"):
        limited(0.2, lambda: limited(60, lambda: loops(2)))


# A fake clock: [wall time, processor time] of a process; a test moves it.


@pytest.fixture
def clock(monkeypatch):
    clock = [0.0, 0.0]
    monkeypatch.setattr(timeout.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(timeout, "processor_seconds", lambda pid=None: clock[1])
    return clock


def is_over_after(clock, watch, wall, processor):
    clock[:] = clock[0] + wall, clock[1] + processor
    return watch.is_over()


def test_a_busy_machine_is_not_the_codes_fault(clock):
    watch = Stopwatch(5)
    for _ in range(9):  # a twentieth of a core
        assert not is_over_after(clock, watch, 5, 0.25)
    assert is_over_after(clock, watch, 5, 0.25)  # ten times as long: in any case


def test_looking_at_the_clock_is_no_work(monkeypatch):
    """Sleep would else be taken for work, and end after ten times as long."""
    monkeypatch.setattr(timeout, "WALL_TIMES", 10**6)
    with pytest.raises(TimedOut):
        limited(1, lambda: time.sleep(100))


def test_a_look_may_outlast_the_next_alarm(monkeypatch):
    def slow(pid=None, look=timeout.processor_seconds):
        time.sleep(0.05)
        return look(pid)

    monkeypatch.setattr(timeout, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(timeout, "processor_seconds", slow)
    with pytest.raises(TimedOut):
        limited(0.2, lambda: loops(2))


def test_processor_time_counts_of_all_children_together_and_waiting_as_well(clock):
    watch = Stopwatch(5)
    assert not is_over_after(clock, watch, 1, 4.9)
    assert is_over_after(clock, watch, 0.1, 0.2)
    watch = Stopwatch(5)
    assert not is_over_after(clock, watch, 4, 1)
    assert not is_over_after(clock, watch, 4, 0)
    assert is_over_after(clock, watch, 1, 0)  # nothing for as long as the limit


BURNS = "import time\nwhile time.process_time() < 0.5: pass"


def of_children():
    return timeout.processor_seconds() - sum(os.times()[:2])


def test_processor_time_of_children_is_seen():
    before = of_children()
    subprocess.run([sys.executable, "-c", BURNS], check=True)
    ended = of_children()
    assert ended - before > 0.4
    living = subprocess.Popen([sys.executable, "-c", f"{BURNS}\ntime.sleep(600)"])
    give_up = time.monotonic() + PATIENCE
    while of_children() < ended + 0.4 and time.monotonic() < give_up:
        time.sleep(0.05)
    seen = of_children() - ended
    living.kill()
    living.wait()
    # The kernel counts in hundredths, and a difference of two sums rounds.
    assert seen > 0.39


FORKS = """
import os, sys
from workbook.classroom.checks.machinery.timeout import limited

children = []
for leave in (lambda: None, sys.exit, lambda: 1 / 0):
    def forks():
        children.append(os.fork())
        if children[-1] == 0:
            leave()
    try:
        limited(60, forks)
    except BaseException:
        print("a child is here")
    print("after the call", flush=True)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_child_that_the_code_forked_ends_with_the_call():
    assert printed_by(FORKS) == "after the call\n" * 3 + "[0, 0, 0]\n"
