import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from workbook.checks import guard
from workbook.checks.guard import TimedOut, limit
from workbook.checks.verdicts import Wrong, call


def loops(n):
    while True:
        pass


def sleeps(n):
    time.sleep(100)


def swallows(n):
    while True:
        try:  # noqa: SIM105
            time.sleep(0.01)
        except:  # noqa: E722
            pass


def swallows_twice(n):
    while True:
        try:
            swallows(n)
        except BaseException:
            continue


def swallows_in_finally(n):
    while True:
        try:
            time.sleep(100)
        finally:
            continue  # noqa: B012


def swallows_in_layers(n):
    while True:
        with suppress(BaseException):
            swallows_twice(n)


def comes_back_late(n):
    try:
        time.sleep(100)
    except BaseException:
        return n * n


HANGING = [
    loops,
    sleeps,
    swallows,
    swallows_twice,
    swallows_in_layers,
    swallows_in_finally,
    comes_back_late,
]


@pytest.mark.parametrize("attempt", HANGING)
def test_an_attempt_that_hangs_is_stopped(attempt):
    with pytest.raises(Wrong, match=r"stopped after 0.3 s") as caught:
        call(attempt, 2, seconds=0.3)
    assert caught.value.timed_out


def on_a_thread(attempt):
    """What `call` raises on a thread that gets no signals, as all of Windows' do not."""
    raised = []

    def run():
        try:
            call(attempt, 2, seconds=0.3)
        except Wrong as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(120)
    return raised


@pytest.mark.parametrize("attempt", [loops, swallows, swallows_twice])
def test_it_is_stopped_on_another_thread_as_well(attempt):
    (wrong,) = on_a_thread(attempt)
    assert wrong.timed_out


def test_what_ends_in_time_is_left_alone():
    with limit(30):
        time.sleep(0.1)
    assert not hasattr(signal, "setitimer") or signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_limits_may_be_nested():
    with pytest.raises(TimedOut, match=r"stopped after 0.4 s"), limit(0.4):
        with pytest.raises(TimedOut, match=r"stopped after 0.1 s"), limit(0.1):
            swallows(2)
        swallows(2)


def test_an_error_of_the_attempt_passes():
    with pytest.raises(KeyError), limit(1):
        raise KeyError(3)


class Lingers:
    """Its destructor takes so long that the time is over inside it."""

    def __del__(self):
        time.sleep(0.3)
        raise KeyError("of the attempt")


def test_a_stop_inside_a_destructor_is_lost_without_a_word(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: reported.append(lost.exc_type))

    def lets_go(n):
        lingers = Lingers()
        del lingers
        loops(n)

    with pytest.raises(TimedOut), limit(0.1):
        lets_go(2)
    assert reported == []
    with pytest.raises(TimedOut), limit(0.5):
        lets_go(2)
    assert reported == [KeyError]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no alarm")
def test_an_alarm_of_somebody_else_goes_off_all_the_same():
    rung = []
    old = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    old_timer = signal.setitimer(signal.ITIMER_REAL, 1.5)
    with pytest.raises(TimedOut), limit(0.1):
        swallows(2)
    assert rung == []
    give_up = time.monotonic() + 120
    while not rung and time.monotonic() < give_up:
        time.sleep(0.01)
    signal.signal(signal.SIGALRM, old)
    signal.setitimer(signal.ITIMER_REAL, *old_timer)
    assert rung == [True]


def test_an_alarm_at_the_end_of_the_block_does_not_outlive_it(monkeypatch):
    """Letting go of a hoard takes longer than the alarm waits to ring again."""
    monkeypatch.setattr(guard, "REPEAT_SECONDS", 0.01)
    # A stop in a destructor is reported to this hook; pytest's takes longer than 0.01 s, and is
    # itself stopped. One that is C and does nothing cannot be.
    monkeypatch.setattr(sys, "unraisablehook", id)

    def hoards():
        held = [[number] for number in range(500_000)]
        while held:
            pass

    for _ in range(3):
        with pytest.raises(TimedOut), limit(0.2):
            hoards()
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def printed_by(program):
    """What a program prints in a process of its own, which may hang or multiply."""
    run = [sys.executable, "-c", program]
    return subprocess.run(run, capture_output=True, text=True, timeout=120, check=True).stdout


DIVES = """
import sys
from workbook.checks import guard
from workbook.checks.verdicts import Wrong, call

def dives(n):
    while n == 0:
        pass
    return dives(n - 1)

guard.REPEAT_SECONDS = 0.01
sys.setrecursionlimit(10**9)
try:
    call(dives, 300_000, seconds=1)
except Wrong as wrong:
    print(wrong)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no alarm")
def test_the_next_alarm_does_not_interrupt_the_one_that_stops_a_deep_recursion():
    """To walk as many frames takes longer than the alarm waits to ring again."""
    assert printed_by(DIVES) == "It was stopped after 1 s.\n"


FORKS = """
import os, sys
from workbook.checks.guard import limit

children = []
for leave in (lambda: None, sys.exit, lambda: 1 / 0):
    try:
        with limit(60):
            children.append(os.fork())
            if children[-1] == 0:
                leave()
    except BaseException:
        print("a child is here")
    print("after the block", flush=True)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_child_that_the_block_forked_ends_with_the_block():
    assert printed_by(FORKS) == "after the block\n" * 3 + "[0, 0, 1]\n"


SURFACES = """
import sys, threading, time
from workbook.checks import guard

def surfaces(n):
    while n == 0:
        if time.monotonic() > begun + 0.97:
            raise KeyError
    return surfaces(n - 1)

def run():
    global begun
    begun = time.monotonic()
    try:
        guard.limited(1, lambda: surfaces(300_000))
    except (KeyError, guard.TimedOut):
        begun = time.monotonic()
        while time.monotonic() < begun + 3 * guard.REPEAT_SECONDS:
            pass
        print("undisturbed")

guard.REPEAT_SECONDS = 0.1
sys.setrecursionlimit(10**9)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def test_a_stop_that_comes_while_the_block_ends_does_not_outlive_it():
    """It finds the stack being unwound, and waits until there is a line to break into."""
    assert printed_by(SURFACES) == "undisturbed\n"


PROFILED = """
import cProfile, threading, time
from workbook.checks.guard import TimedOut, limited

def loop():
    while True:
        pass

def work():
    for seconds, function in [(60, int), (0.05, loop), (60, int)]:
        try:
            limited(seconds, function)
        except TimedOut:
            pass

thread = threading.Thread(target=work)
thread.start()
thread.join()
cProfile.runctx("list(map(ord, 'abc'))", {}, {})
cProfile.Profile().runcall(lambda: [x for x in range(3)])
"""


def test_a_limit_on_another_thread_leaves_nothing_that_hangs_a_profiler():
    done = subprocess.run([sys.executable, "-c", PROFILED], timeout=300, check=False)
    assert done.returncode == 0
