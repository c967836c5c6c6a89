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
from pathlib import Path

import numpy
import psutil
import pytest

from workbook.checks.guard import DEEPEST, EndedProcess, isolated

try:
    import resource

    FILE_SIZE = resource.RLIMIT_FSIZE
except ImportError:  # Windows has no such limits
    resource = None


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


def test_everything_is_put_back(tmp_path, capfd):
    before = state()
    with isolated():
        spoil(tmp_path)
    assert state() == before
    print("heard")
    os.write(1, b"by all\n")
    assert sorted(capfd.readouterr().out.splitlines()) == ["by all", "heard"]


def test_it_is_put_back_after_an_error_too(tmp_path):
    before = state()
    with pytest.raises(ZeroDivisionError), isolated():
        spoil(tmp_path)
        1 / 0  # noqa: B018
    assert state() == before


def test_a_folder_that_was_deleted_is_no_obstacle(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with isolated() as isolation:
        print("all the same")
    assert isolation.output == "all the same"


@pytest.mark.slow
def test_the_random_state_of_torch_is_put_back():
    torch = pytest.importorskip("torch")
    before = torch.get_rng_state()
    with isolated():
        torch.manual_seed(7)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
def test_how_torch_computes_and_prints_is_put_back():
    torch = pytest.importorskip("torch")

    def settings():
        return (
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
    assert isolation.output.endswith("bytes more\nUserWarning: look out")
    assert len(isolation.output) < 2_200
    assert capfd.readouterr() == ("", "")


def test_input_does_not_wait():
    with isolated(), pytest.raises(EOFError, match="answers no questions"):
        input("n? ")


def test_processes_left_behind_are_ended():
    with isolated():
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    assert not psutil.pid_exists(process.pid)
    process.wait()


def count(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1_000))


def test_threads_left_behind_are_ended():
    before = threading.active_count()
    with isolated():
        threading.Thread(target=count, args=[100], daemon=True).start()
        threading.Thread(target=count, args=[0.1]).start()
    assert threading.active_count() == before


def test_a_file_left_open_is_no_print_out(tmp_path):
    (tmp_path / "text").touch()
    with isolated() as isolation:
        open(tmp_path / "text").read()  # noqa: SIM115
    assert isolation.output == ""


def test_a_thread_that_fails_is_no_warning():
    with isolated():
        threading.Thread(target=lambda: 1 / 0).start()


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
    run = [sys.executable, "-c", AT_EXIT]
    assert subprocess.run(run, capture_output=True, check=True).stdout == b"of the user\n"


@pytest.mark.parametrize("error", [psutil.NoSuchProcess(1), FileNotFoundError("/proc/stat")])
def test_processes_that_cannot_be_listed_are_no_obstacle(monkeypatch, error):
    def fails():
        raise error

    monkeypatch.setattr(psutil, "Process", fails)
    with isolated() as isolation:
        print("all the same")
    assert isolation.output == "all the same"
