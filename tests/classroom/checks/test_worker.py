"""A process of its own for a learner's code: values come back, and nothing of it stays."""

import functools
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import torch
from work import PATIENCE

from workbook.classroom.checks.machinery import verdicts, worker
from workbook.classroom.checks.machinery.worker import EndedError, result, results
from workbook.classroom.study.verbs import check, judge_attempt


@pytest.fixture(scope="module", autouse=True)
def two_threads():
    """The servers of this file may use two threads; one reads the variable when it starts."""
    with pytest.MonkeyPatch.context() as patch:
        worker.close()
        patch.setenv("OMP_NUM_THREADS", "2")
        yield
        worker.close()


@pytest.fixture(autouse=True)
def named(monkeypatch, tmp_path):
    """What a test starts can be told by the name of its folder."""
    monkeypatch.setenv("STARTED_BY", str(tmp_path))


def start_sleeper(**options):
    program = "import time; time.sleep(600)"
    subprocess.Popen([sys.executable, "-S", "-c", program, os.environ["STARTED_BY"]], **options)


def has_ended(process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def sleepers() -> list:
    """What this test has started and has not ended."""
    found = psutil.process_iter(["cmdline"])
    name = os.environ["STARTED_BY"]
    return [p for p in found if name in (p.info["cmdline"] or []) and not has_ended(p)]


def ends(is_over) -> bool:
    """Wait for what was killed to be gone: a busy system takes a moment."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not is_over():
        time.sleep(0.1)
    return is_over()


def counts(n):
    yield from range(n)


def fails():
    yield 1
    raise ValueError("no such thing")


def crashes():
    yield 1
    print("before the end")
    os._exit(3)


def writes_junk():
    write_everywhere(b'junk\n[1\n3\n["value"]\n["", "value", 2]\n' + b"[" * 9999 + b"\n...")
    yield 1


def write_everywhere(text):
    for number in range(3, 256):  # the channel is one of these
        with suppress(OSError):
            os.write(number, text)


def says_nothing():
    yield from ()


def exits_unheard():
    yield 1
    os._exit(0)


def hangs():
    start_sleeper()
    yield 1
    time.sleep(600)


def multiplies():
    for _ in range(100):
        start_sleeper()
    time.sleep(600)
    yield 1


def multiplies_matrices():
    yield torch.get_num_threads()
    yield (torch.ones(1000, 1000) @ torch.ones(1000, 1000)).sum().item()
    yield torch.randn(2_000_000).cos().exp().numel()


def test_a_worker_computes_with_as_many_threads_as_torch_would_use():
    ask = "import torch; print(torch.get_num_threads())"
    threads = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout
    assert [*results(multiplies_matrices, seconds=60)] == [int(threads), 1e9, 2_000_000]


def test_values_and_errors_come_back_in_order_and_what_came_before_a_crash():
    assert list(results(counts, 3, seconds=60)) == [0, 1, 2]
    for function, error, words in (
        (fails, ValueError, "no such thing"),
        (crashes, EndedError, "status 3; its last output: before the end"),
    ):
        values = results(function, seconds=60)
        assert next(values) == 1
        with pytest.raises(error, match=words):
            next(values)
    with pytest.raises(ValueError, match=r"itself failed \(TypeError: .* not of your code"):
        result(verdicts.shown, seconds=60)  # without its argument


def test_junk_in_the_channel_is_passed_over():
    assert result(writes_junk, seconds=60) == 1


def test_no_answer_is_an_error():
    with pytest.raises(EndedError, match="without an answer"):
        result(says_nothing, seconds=60)


def test_values_before_an_exit_are_not_taken_for_all():
    values = results(exits_unheard, seconds=60)
    assert next(values) == 1
    with pytest.raises(EndedError, match="ended with status 0"):
        next(values)


def test_one_that_hangs_or_is_left_is_ended_with_its_children():
    values = results(hangs, seconds=3)
    assert next(values) == 1
    with pytest.raises(EndedError, match="stopped after 3 s"):
        next(values)
    assert ends(lambda: not sleepers())
    values = results(hangs, seconds=60)
    next(values)
    assert ends(sleepers)  # so that they can be told
    values.close()
    assert ends(lambda: not sleepers())


def leaves_a_thread(fails):
    threading.Thread(target=time.sleep, args=[600]).start()
    yield 1
    if fails:
        raise KeyError("an error that nobody foresaw")


def test_a_thread_that_never_ends_keeps_no_process_alive():
    assert list(results(leaves_a_thread, False, seconds=60)) == [1]
    values = results(leaves_a_thread, True, seconds=60)
    assert next(values) == 1
    with pytest.raises(EndedError, match=r"status 1; (.|\n)*an error that nobody"):
        next(values)


def test_too_many_children_are_all_ended():
    with pytest.raises(EndedError, match="processes, more than 48"):
        result(multiplies, seconds=60)
    assert ends(lambda: not sleepers())


def copies(file):
    """In a worker: what comes of copies of it."""
    options = {"printed": Path(file), "seconds": 3}
    yield worker.forked(counts, 3, **options)
    yield worker.forked(writes_junk, **options)
    for function in (crashes, hangs, says_nothing):
        try:
            yield worker.forked(function, **options)
        except EndedError as error:
            yield str(error)


def on_the_gpu():
    """A backward pass there, and one in this process's own thread."""
    for device in ("cuda", "cpu"):
        x = torch.ones(2, device=device, requires_grad=True)
        (x * x).sum().backward()
        yield x.grad.tolist()


def a_copy_on_the_gpu(file):
    assert torch.cuda.is_available()  # learners' files ask when they are imported
    yield worker.forked(on_the_gpu, printed=Path(file), seconds=60)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_workers_of_one_server_train_where_there_is_a_gpu():
    for _ in range(2):
        assert list(results(on_the_gpu, seconds=60)) == [[2.0, 2.0]] * 2
        assert result(a_copy_on_the_gpu, os.devnull, seconds=60) == [2.0, 2.0]


def test_a_worker_may_ask_for_a_copy_of_itself(tmp_path):
    file = tmp_path / "printed"
    file.touch()
    found = results(copies, str(file), seconds=60)
    assert next(found) == 2
    assert next(found) == 1
    assert next(found).startswith("Python ended with status 3")
    assert next(found).startswith("it was stopped after 3 s")
    assert next(found).startswith("Python ended with status 1")
    assert ends(lambda: not sleepers())


def test_requests_of_several_threads_do_not_mix():
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda n: [*results(counts, n, seconds=60)], (1, 3))
        assert list(found) == [[0], [0, 1, 2]]


def test_a_server_that_was_killed_or_given_up_is_replaced_and_spoils_no_request(monkeypatch):
    worker.close()
    before = set(psutil.Process().children())
    worker.start()
    (server,) = set(psutil.Process().children()) - before
    server.kill()
    server.wait()
    with monkeypatch.context() as patch:
        patch.setattr(worker, "START_SECONDS", 0.0)  # a server that takes too long to start
        patch.setattr(worker, "LOOK_SECONDS", 0.0)
        with pytest.raises(EndedError, match="stopped after 0 s"):
            result(counts, 3, seconds=60)
    assert list(results(counts, 2, seconds=60)) == [0, 1]


def test_a_server_ends_with_the_process_that_asked():
    """Killed in the middle of a request, it can say nothing any more."""
    program = f"""
import sys
from workbook.classroom.checks.machinery import verdicts, worker
sys.path[:] = {sys.path!r}
from {__name__} import hangs
for _ in worker.results(hangs, seconds=600):
    print(worker.__name__, flush=True)
"""
    asks = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    asks.stdout.readline()
    family = psutil.Process(asks.pid).children(recursive=True)
    asks.kill()
    asks.wait()
    asks.stdout.close()
    assert len(family) == 3  # the server, the worker and its child
    assert ends(lambda: all(has_ended(each) for each in family))


# Attempts that hang, or hurt the process that they run in. The next one must not notice.


def softmax(x, dim):
    y = torch.exp(x - x.max(dim, keepdim=True).values)
    return y / y.sum(dim, keepdim=True)


def swallows(x, dim):
    while True:
        with suppress(BaseException):
            while True:
                with suppress(BaseException):
                    time.sleep(100)


def test_code_that_throws_every_stop_away_is_stopped():
    report = judge_attempt("softmax", swallows)
    assert (report.status, report.claim) == ("wrong", "It was stopped after 5 s.")
    assert "a loop never ends" in report.likely


def leaves_a_process(x, dim):
    start_sleeper(start_new_session=True)
    return softmax(x, dim)


def leaves_an_orphan(x, dim):
    if os.fork() == 0:  # the sleeper's parent ends, and nobody sees whose child it was
        start_sleeper()
        os._exit(0)
    os.wait()
    return softmax(x, dim)


def detaches(x, dim):
    program = "import time; time.sleep(600)"
    name = os.environ["STARTED_BY"]
    os.system(f"setsid {sys.executable} -S -c '{program}' '{name}' &")
    return softmax(x, dim)


def becomes_a_daemon(x, dim):
    if os.fork() == 0:
        os.setsid()
        start_sleeper(start_new_session=True)
        os._exit(0)
    os.wait()
    return softmax(x, dim)


LEAVING = [leaves_a_process, leaves_an_orphan]
if sys.platform == "linux":  # elsewhere nobody can find what has detached itself
    LEAVING += [detaches, becomes_a_daemon]


@pytest.mark.parametrize("attempt", LEAVING)
def test_what_an_attempt_leaves_running_ends_with_its_process(attempt):
    assert judge_attempt("softmax", attempt).status == "correct"
    assert ends(lambda: not sleepers())


def exits(x, dim):
    os._exit(0)


def exits_as_if_done(x, dim):
    os._exit(86)


def aborts(x, dim):
    os.abort()


def kills_itself(x, dim):
    os.kill(os.getpid(), signal.SIGKILL)


def forges_a_verdict(x, dim):
    report = judge_attempt("softmax", None).to_json() | {"status": "correct"}
    for message in (["value", report], ["done", None], ["ended", 0]):
        for keyed in (message, ["", *message], [None, *message]):
            write_everywhere(b"\n" + json.dumps(keyed).encode() + b"\n")
    os._exit(0)


def crashes_python(x, dim):
    os.kill(os.getpid(), signal.SIGSEGV)


def dives(x, dim):
    sys.setrecursionlimit(10**9)
    return dives(x, dim)


def forks(x, dim):
    os.fork()
    return softmax(x, dim)


def asks(x, dim):
    return input("x? ")


ENDING = [
    (exits, "`os._exit` end Python itself"),
    (exits_as_if_done, "`os._exit` end Python itself"),
    (forges_a_verdict, "`os._exit` end Python itself"),
    (aborts, "signal 6"),
    (crashes_python, "signal 11"),
    (dives, "RecursionError"),
    (asks, "a check cannot answer input()"),
]


@pytest.mark.parametrize(("attempt", "words"), ENDING)
def test_an_attempt_that_ends_its_process_is_reported(attempt, words):
    report = judge_attempt("softmax", attempt)
    assert report.status == "wrong" and words in str(report)
    assert judge_attempt("softmax", softmax).status == "correct"


def test_a_process_that_was_killed_judges_nothing():
    report = judge_attempt("softmax", kills_itself)
    assert report.status == "not attempted" and "Not judged: Python was ended by" in str(report)


def writes_to_every_file(x, dim):
    write_everywhere(b'...["ended", 0]')
    return softmax(x, dim)


def closes_files(x, dim):
    os.closerange(3, 100)
    return softmax(x, dim)


def ends_its_server(x, dim):
    os.kill(os.getppid(), signal.SIGKILL)
    return softmax(x, dim)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there, the server judges itself")
@pytest.mark.parametrize("attempt", [writes_to_every_file, closes_files, ends_its_server])
def test_no_write_close_or_kill_changes_this_verdict_or_the_next(attempt):
    for each in (attempt, softmax, softmax):
        report = judge_attempt("softmax", each)
        assert report.status == "correct", report


def closes_all_files(x, dim):
    os.closerange(0, 1000)
    return softmax(x, dim)


def test_a_closed_channel_is_a_verdict_and_spoils_no_other():
    assert judge_attempt("softmax", closes_all_files).status == "wrong"
    assert judge_attempt("softmax", softmax).status == "correct"


class Refuses(type):
    def __getattribute__(cls, name):
        raise RuntimeError("no attributes")


class RefusesComparison(type):
    def __eq__(cls, other):
        raise RuntimeError("no comparison")

    def __hash__(cls):
        raise RuntimeError("no hash")

    def __instancecheck__(cls, value):
        raise RuntimeError("no instances")


class Works:
    def __call__(self, x, dim):
        return softmax(x, dim)


class HasNoClass(Works):
    @property
    def __class__(self):
        raise RuntimeError("no class")


class HasNoAttributes(Works):
    def __getattribute__(self, name):
        raise SystemExit


class CannotBeCopied(Works):
    def __reduce__(self):
        raise UnspeakableError


class CannotBeLoaded(Works):
    def __init__(self):
        self.state = 1

    def __setstate__(self, state):
        raise UnspeakableError


class CannotBeShown(Works):
    def __repr__(self):
        raise RuntimeError("no text")

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    def __hash__(self):
        raise RuntimeError("no hash")

    def __bool__(self):
        raise RuntimeError("no truth")


class UnspeakableError(ValueError):
    def __str__(self):
        raise RuntimeError("no text")


def raises_the_unspeakable(x, dim):
    raise UnspeakableError


REFUSING = {
    "a metaclass without attributes": lambda: Refuses("Of", (), {}),
    "a metaclass that cannot be compared": lambda: RefusesComparison("Of", (), {}),
    **{kind.__name__: kind for kind in (HasNoClass, HasNoAttributes)},
    **{kind.__name__: kind for kind in (CannotBeCopied, CannotBeLoaded, UnspeakableError)},
}


@pytest.mark.parametrize("kind", REFUSING)
def test_an_object_that_cannot_be_looked_at_gets_a_verdict(kind):
    refusing = REFUSING[kind]()
    reports = [check(name, refusing) for name in ("softmax", "linear", "training_together")]
    reports.append(check("softmax", lambda x, dim: refusing))
    for report in reports:
        assert report.status in ("not attempted", "wrong"), report
        assert "fault of the workbook" not in str(report)


def test_what_cannot_be_shown_or_compared_is_judged_by_what_it_does():
    def wraps_itself(x, dim):
        return softmax(x, dim)

    assert check("softmax", CannotBeShown()).status == "correct"
    assert (
        check("softmax", functools.update_wrapper(wraps_itself, wraps_itself)).status == "correct"
    )
    assert check("softmax", raises_the_unspeakable).status == "wrong"
    assert check("softmax", lambda x, dim: CannotBeShown()).status == "wrong"


def prints(x, dim):
    print("a line")
    print("x" * 10_000_000, file=sys.stderr)
    os.write(2, b"from below")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    warnings.warn("look out", stacklevel=1)
    return x


def cheats(x, dim):
    for name in ("allclose", "isclose", "equal"):
        setattr(torch, name, lambda *args, **kwargs: True)
    return x * 0


def recurses_deep(x, dim):
    def sums(n, k):
        return n + sums(n, k - 1) if k else 0

    sys.setrecursionlimit(10**6)
    assert sums(1, 5_000) == 5_000
    return softmax(x, dim)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_fork_and_deep_calls_are_fine_and_a_replaced_comparison_helps_nobody():
    assert judge_attempt("softmax", forks).status == "correct"
    assert judge_attempt("softmax", recurses_deep).status == "correct"
    assert judge_attempt("softmax", cheats).status == "wrong"


def test_the_users_own_interrupt_passes():
    # A shell starts what it runs in the background with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            result(hangs, seconds=600)
    finally:
        signal.signal(signal.SIGINT, before)
    assert judge_attempt("softmax", softmax).status == "correct"


def closes_its_output(x, dim):
    print("heard")
    sys.stdout.close()
    os.close(1)
    sys.stderr = None
    return x


def test_print_outs_and_warnings_come_back_shortened(capfd):
    printed = dict(judge_attempt("softmax", prints).rows)["printed"]
    assert printed.startswith("a line\nxxxx")
    assert len(printed) < 700
    assert dict(judge_attempt("softmax", closes_its_output).rows)["printed"].startswith("heard")
    assert capfd.readouterr() == ("", "")


def finds_a_neighbour(x, dim):
    import neighbour_of_a_learner

    Path("left.txt").touch()
    tempfile.mkdtemp(prefix="left_by_a_learner_")
    return neighbour_of_a_learner.softmax(x, dim)


def test_the_working_directory_and_the_one_for_temporary_files_are_its_own(tmp_path, monkeypatch):
    source = "from tests.classroom.checks.test_worker import softmax\n"
    (tmp_path / "neighbour_of_a_learner.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    monkeypatch.delitem(sys.modules, "neighbour_of_a_learner", raising=False)
    before = [*Path(tempfile.gettempdir()).glob("left_by_a_learner_*")]
    assert judge_attempt("softmax", finds_a_neighbour).status == "correct"
    assert not (tmp_path / "left.txt").exists()
    assert [*Path(tempfile.gettempdir()).glob("left_by_a_learner_*")] == before


def test_a_server_that_cannot_start_is_no_fault_of_an_attempt(monkeypatch):
    worker.close()
    fails = "import sys\nsys.stdin.buffer.read(1)  # the request\nsys.exit(1)"  # as a broken import
    monkeypatch.setattr(worker, "CODE", fails)
    with pytest.raises(ValueError, match="could not start: Python ended with status 1"):
        worker.result(math.sqrt, 4, seconds=1)


def prints_without_end(x, dim):
    while True:
        print("y" * 100_000)


def test_what_is_printed_without_end_fills_no_disk():
    report = check("softmax", prints_without_end)
    assert report.status == "wrong"
    assert "is there a `print` in an endless loop?" in report.message
