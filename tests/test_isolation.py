import builtins
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy
import psutil
import pytest

from workbook.checks.isolation import isolated


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
    builtins.print = builtins.len = None
    builtins.spoilt = True
    warnings.simplefilter("ignore")


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
        (sys.stdin, sys.stdout, sys.stderr),
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
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_default_dtype() is torch.float32
    assert torch.is_grad_enabled()


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
