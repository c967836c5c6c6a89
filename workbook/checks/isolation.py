"""What a check puts back: whatever a learner's code may have changed around itself.

This is no sandbox. It keeps an honest mistake in one cell from spoiling the next one.
"""

import builtins
import ctypes
import gc
import io
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import psutil

KEPT_OUTPUT = 2_000  # bytes of print-out that a report may quote from
GRACE_SECONDS = 0.3  # for threads and processes that are about to end by themselves


class Tape(io.BufferedIOBase):
    """A file in memory that keeps the beginning of what is written and counts the rest."""

    def __init__(self):
        self.kept = bytearray()
        self.total = 0

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        self.total += len(data)
        self.kept += bytes(data[: max(0, KEPT_OUTPUT - len(self.kept))])
        return len(data)

    def close(self) -> None:
        """Do nothing: code that closes its standard output must not silence what comes after."""

    def text(self) -> str:
        """What was kept, and how much was not."""
        text = self.kept.decode("utf-8", errors="ignore")
        rest = self.total - len(self.kept)
        return f"{text}... and {rest:,} bytes more" if rest else text


class Isolation:
    """What happened inside: the print-out, and whether the user pressed Ctrl-C."""

    def __init__(self):
        self.tape = Tape()
        self.interrupted = False
        self.warnings: list[warnings.WarningMessage] = []

    @property
    def output(self) -> str:
        """What was printed, then each warning on a line."""
        notes = [f"{w.category.__name__}: {w.message}" for w in self.warnings[:5]]
        return "\n".join(filter(None, [self.tape.text().rstrip(), *notes]))


@contextmanager
def isolated() -> Iterator[Isolation]:
    """A block after which the state of the process is as it was before, printing included."""
    isolation = Isolation()
    with ExitStack() as stack:  # put back from the last to the first
        for keep in (_keep_random, _keep_numbers, _keep_process):
            stack.callback(_quietly, keep())
        isolation.warnings = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", ResourceWarning)  # a file left open is not asked about
        stack.callback(_quietly, _catch_output(isolation.tape))
        stack.callback(_quietly, _catch_interrupts(isolation))
        for keep in (_keep_threads, _keep_processes):  # ended while their noise is still caught
            stack.callback(_quietly, keep())
        stack.callback(_keep_builtins())  # first of all: the others call them
        yield isolation


def _quietly(undo: Callable[[], None]) -> None:
    with suppress(Exception):
        undo()


def _keep_builtins() -> Callable[[], None]:
    """Restore names such as `print`; meanwhile `input` fails instead of waiting for an answer."""
    namespace, saved = vars(builtins), dict(vars(builtins))

    def no_input(prompt=""):
        raise EOFError("a check answers no questions: pass values as arguments, not with input()")

    builtins.input = no_input

    def undo():
        namespace.update(saved)
        for name in namespace.keys() - saved.keys():
            del namespace[name]

    return undo


def _keep_random() -> Callable[[], None]:
    """Restore the random states of the standard library and of numpy and torch, where loaded."""
    undos = [_later(random.setstate, random.getstate())]
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if hasattr(numpy, "random"):
        undos.append(_later(numpy.random.set_state, numpy.random.get_state()))
    if hasattr(torch, "get_rng_state"):
        undos.append(_later(torch.set_rng_state, torch.get_rng_state()))
        if torch.cuda.is_initialized():
            undos.append(_later(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
    return _all(undos)


def _keep_numbers() -> Callable[[], None]:
    """Restore how numpy and torch treat numbers: errors, default dtype, gradients."""
    undos = []
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if hasattr(numpy, "geterr"):
        settings = numpy.geterr()
        undos.append(lambda: numpy.seterr(**settings))
    if hasattr(torch, "get_default_dtype"):
        undos.append(_later(torch.set_default_dtype, torch.get_default_dtype()))
        undos.append(_later(torch.set_grad_enabled, torch.is_grad_enabled()))
    return _all(undos)


def _keep_process() -> Callable[[], None]:
    """Restore folder, environment, import path and the interpreter's own settings."""
    environment, path = dict(os.environ), list(sys.path)
    undos = [
        _later(sys.setrecursionlimit, sys.getrecursionlimit()),
        _later(sys.setswitchinterval, sys.getswitchinterval()),
        _later(sys.settrace, sys.gettrace()),
        _later(sys.setprofile, sys.getprofile()),
        _later(gc.enable if gc.isenabled() else gc.disable),
    ]
    with suppress(OSError):  # the current folder may have been deleted
        undos.append(_later(os.chdir, os.getcwd()))
    for name in ("excepthook", "displayhook", "unraisablehook"):
        undos.append(_later(setattr, sys, name, getattr(sys, name)))
    undos.append(_later(setattr, threading, "excepthook", threading.excepthook))
    sys.unraisablehook = threading.excepthook = lambda info: None

    def restore_names():
        sys.path[:] = path
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)

    return _all([*undos, restore_names])


def _catch_output(tape: Tape) -> Callable[[], None]:
    """Send print-outs to the tape, and what child processes or C code write to nowhere."""
    saved = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    descriptors = {}
    with open(os.devnull, "r+b", buffering=0) as nowhere:
        for number in (0, 1, 2):
            with suppress(OSError):  # a process without a terminal may lack them
                descriptors[number] = os.dup(number)
                os.dup2(nowhere.fileno(), number)
    sys.stdin = io.StringIO()
    sys.stdout = sys.stderr = io.TextIOWrapper(tape, encoding="utf-8", write_through=True)

    def undo():
        for name, stream in saved.items():
            setattr(sys, name, stream)
        for number, copy in descriptors.items():
            os.dup2(copy, number)
            os.close(copy)

    return undo


def _catch_interrupts(isolation: Isolation) -> Callable[[], None]:
    """Restore the signal handlers; tell the user's own Ctrl-C from a raised KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    saved = {number: signal.getsignal(number) for number in signal.valid_signals()}

    def on_interrupt(number, frame):
        isolation.interrupted = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, on_interrupt)

    def undo():
        for number, handler in saved.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)

    return undo


def _keep_threads() -> Callable[[], None]:
    """Let threads that were left behind end, then plant a SystemExit in those that go on."""
    before = set(threading.enumerate())

    def undo():
        left = _joined(set(threading.enumerate()) - before)
        for thread in left:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            )
        _joined(left)

    return undo


def _joined(threads: set[threading.Thread]) -> set[threading.Thread]:
    """Those of the threads that have not ended after a short wait for all of them together."""
    deadline = time.monotonic() + GRACE_SECONDS
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return {thread for thread in threads if thread.is_alive()}


def _keep_processes() -> Callable[[], None]:
    """End child processes that were left behind, except the helpers of `multiprocessing`."""
    this = psutil.Process()
    before = set(this.children(recursive=True))

    def undo():
        left = [child for child in this.children(recursive=True) if child not in before]
        left = [child for child in left if not _is_helper(child)]
        if left:
            _, left = psutil.wait_procs(left, timeout=GRACE_SECONDS)
        for end in (psutil.Process.terminate, psutil.Process.kill):
            for child in left:
                with suppress(psutil.NoSuchProcess):
                    end(child)
            _, left = psutil.wait_procs(left, timeout=1) if left else ([], [])

    return undo


def _is_helper(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        line = " ".join(process.cmdline())
        return "multiprocessing.resource_tracker" in line or "multiprocessing.forkserver" in line
    return False


def _later(function: Callable, *args) -> Callable[[], None]:
    return lambda: function(*args)


def _all(undos: list[Callable[[], None]]) -> Callable[[], None]:
    def undo():
        for each in undos:
            _quietly(each)

    return undo
