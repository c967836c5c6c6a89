import atexit
import builtins
import decimal
import gc
import logging
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy
import psutil
import pytest

from workbook.checks import guard
from workbook.checks.guard import DEEPEST, EndedProcess, TimedOut, isolated, limit
from workbook.checks.verdicts import Wrong, call

try:
    import resource

    FILE_SIZE = resource.RLIMIT_FSIZE
except ImportError:  # Windows has no such limits
    resource = None

# The time limit.


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


HANGING = [loops, sleeps, swallows, swallows_twice, swallows_in_layers, swallows_in_finally]


@pytest.mark.parametrize("attempt", [*HANGING, comes_back_late])
def test_an_attempt_that_hangs_is_stopped(attempt):
    with pytest.raises(Wrong, match=r"stopped after 0.3 s") as caught:
        call(attempt, 2, seconds=0.3)
    assert caught.value.timed_out


@pytest.mark.parametrize("attempt", [loops, swallows, swallows_twice])
def test_it_is_stopped_on_another_thread_as_well(attempt):
    """Where no signal arrives, as on all threads of Windows."""
    with ThreadPoolExecutor(1) as pool, pytest.raises(Wrong) as caught:
        pool.submit(call, attempt, 2, seconds=0.3).result(120)
    assert caught.value.timed_out


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
    return subprocess.run(run, capture_output=True, text=True, timeout=300, check=True).stdout


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
    assert "function calls" in printed_by(PROFILED)


# What is put back.


def spoil(folder):
    os.chdir(folder)
    os.environ["SPOILT"] = "yes"
    os.environ.pop("PATH", None)
    sys.path.insert(0, "spoilt")
    sys.setrecursionlimit(5_000)
    random.seed(0)
    numpy.random.seed(0)
    numpy.seterr(all="ignore")
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.close(1)
    sys.stdout.close()
    sys.stderr = None
    sys.__stdout__.close()
    sys.argv.append("spoilt")
    decimal.getcontext().prec = 3
    gc.set_threshold(1)
    logging.disable()
    logging.basicConfig(level=logging.DEBUG)
    numpy.set_printoptions(precision=1)
    time.sleep = math.exp = numpy.exp = None
    os.umask(0o777)
    if resource:
        resource.setrlimit(FILE_SIZE, (10**9, resource.getrlimit(FILE_SIZE)[1]))
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    builtins.print = builtins.len = None
    builtins.spoilt = True
    warnings.simplefilter("ignore")


def umask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def state():
    return (
        os.getcwd(),
        dict(os.environ),
        list(sys.path),
        sys.getrecursionlimit(),
        random.getstate(),
        str(numpy.random.get_state()),
        numpy.geterr(),
        [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)],
        (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stdout__.closed),
        list(sys.argv),
        decimal.getcontext().prec,
        gc.get_threshold(),
        (logging.root.manager.disable, logging.root.level, list(logging.root.handlers)),
        numpy.get_printoptions(),
        (time.sleep, math.exp, numpy.exp, os._exit, os.abort, sys.setrecursionlimit),
        atexit.register,
        umask(),
        resource and resource.getrlimit(FILE_SIZE),
        resource and signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        dict(vars(builtins)),
        list(warnings.filters),
    )


def test_everything_is_put_back_after_an_error_too(tmp_path, capfd):
    before = state()
    with pytest.raises(ZeroDivisionError), isolated():
        spoil(tmp_path)
        1 / 0  # noqa: B018
    assert state() == before
    print("heard")
    os.write(1, b"by all\n")
    assert sorted(capfd.readouterr().out.splitlines()) == ["by all", "heard"]


def test_a_folder_that_was_deleted_is_no_obstacle(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with isolated() as isolation:
        print("all the same")
    assert isolation.output == "all the same"


@pytest.mark.slow
def test_how_torch_draws_computes_and_prints_is_put_back():
    torch = pytest.importorskip("torch")

    def settings():
        return (
            torch.get_rng_state().tolist(),
            torch.get_default_dtype(),
            torch.is_grad_enabled(),
            torch.is_anomaly_enabled(),
            torch.get_deterministic_debug_mode(),
            torch.get_float32_matmul_precision(),
            torch.get_default_device(),
            torch.is_autocast_enabled("cpu"),
            torch.backends.mkldnn.enabled,
            torch.allclose,
            torch.nn.functional.softmax,
            repr(torch.tensor([1 / 3])),
        )

    before = settings()
    with isolated():
        torch.manual_seed(7)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.set_anomaly_enabled(True)
        torch.use_deterministic_algorithms(True)
        torch.set_float32_matmul_precision("medium")
        torch.set_default_device("meta")
        torch.set_autocast_enabled("cpu", True)
        torch.backends.mkldnn.enabled = False
        torch.allclose = torch.nn.functional.softmax = lambda *args: True
        torch.set_printoptions(precision=1)
    assert settings() == before


def test_print_outs_and_warnings_are_kept_and_shortened(capfd):
    with isolated() as isolation:
        print("a line")
        print("x" * 10_000_000, file=sys.stderr)
        sys.stdout.buffer.write(b"bytes")
        os.write(2, b"from below")
        subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
        warnings.warn("look out", stacklevel=1)
    assert isolation.output.startswith("a line\nxxxx")
    assert isolation.output.endswith("more bytes\nUserWarning: look out")
    assert len(isolation.output) < 2_200
    assert capfd.readouterr() == ("", "")


def test_input_does_not_wait():
    with isolated(), pytest.raises(EOFError, match="cannot answer input"):
        input("n? ")


def test_processes_left_behind_are_ended():
    with isolated():
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    assert not psutil.pid_exists(process.pid)
    process.wait()


def test_threads_left_behind_are_ended():
    before = threading.active_count()
    with isolated():
        threading.Thread(target=loops, args=[2], daemon=True).start()
        threading.Thread(target=time.sleep, args=[0.1]).start()
    assert threading.active_count() == before


def test_a_file_left_open_and_a_thread_that_fails_are_no_print_out(tmp_path):
    (tmp_path / "text").touch()
    with isolated() as isolation:
        open(tmp_path / "text").read()  # noqa: SIM115
        threading.Thread(target=lambda: 1 / 0).start()
    assert isolation.output == ""


def test_the_working_directory_is_a_folder_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "neighbour_of_a_learner.py").write_text("VALUE = 7")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    with isolated():
        import neighbour_of_a_learner

        folder = Path.cwd()
        Path("left.txt").touch()
    assert neighbour_of_a_learner.VALUE == 7
    assert not folder.exists() and Path.cwd() == tmp_path
    assert not (tmp_path / "left.txt").exists()


@pytest.mark.parametrize("end", ["_exit", "abort"])
def test_ending_the_process_is_refused(end):
    with isolated(), pytest.raises(EndedProcess, match=rf"os\.{end}"):
        getattr(os, end)(*[0] * (end == "_exit"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_child_may_end_itself():
    with isolated():
        child = os.fork()
        if child == 0:
            try:
                os._exit(7)
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 7


def test_recursion_has_an_end():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10**9)
    with isolated():
        assert sys.getrecursionlimit() == DEEPEST
        sys.setrecursionlimit(10**9)
        assert sys.getrecursionlimit() == DEEPEST
        sys.setrecursionlimit(5_000)
        assert sys.getrecursionlimit() == 5_000
    assert sys.getrecursionlimit() == 10**9
    sys.setrecursionlimit(before)


AT_EXIT = """
import atexit
from workbook.checks.guard import isolated
with isolated():
    atexit.register(print, "of the attempt")
atexit.register(print, "of the user")
"""


def test_what_was_to_be_called_at_exit_is_not():
    assert printed_by(AT_EXIT) == "of the user\n"


@pytest.mark.parametrize("error", [psutil.NoSuchProcess(1), FileNotFoundError("/proc/stat")])
def test_processes_that_cannot_be_listed_are_no_obstacle(monkeypatch, error):
    def fails():
        raise error

    monkeypatch.setattr(psutil, "Process", fails)
    with isolated() as isolation:
        print("all the same")
    assert isolation.output == "all the same"
