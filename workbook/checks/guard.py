"""Keep an attempt from outlasting or damaging the notebook: a time limit, and state put back.

`limited` stops code that may not stop by itself, even if it swallows the stop. `isolated` restores
whatever an attempt may have changed around itself. This is not a sandbox: it keeps
an honest mistake in one cell from spoiling the next one.
"""

import _thread
import atexit
import builtins
import ctypes
import decimal
import gc
import io
import logging
import os
import re
import signal
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any

import psutil

from workbook.config import PACKAGE

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None

STDLIB = sysconfig.get_path("stdlib")
# Files that contain none of the learner's lines.
NOT_THEIRS = (str(PACKAGE), *{STDLIB, sysconfig.get_path("purelib")}, "<frozen", "<reference>")
TIDYING = (str(PACKAGE), STDLIB, "<frozen")  # files whose lines are not stopped: they tidy up
REPEAT_SECONDS = 0.5  # between two tries: long enough for a `finally` of the learner's to tidy up
NEAR = 50  # frames: `limit.__exit__` never calls that deep
end_process, process_id = os._exit, os.getpid  # as they are before an attempt can replace them
DEEPEST = 20_000  # nested calls: honest recursion needs fewer, and millions of them fill the memory
KEPT_OUTPUT = 2_000  # bytes of printed output that a report may quote from
GRACE_SECONDS = 0.3  # for threads and processes that are about to end by themselves
# What an attempt may change for everybody else. Functions that it may replace:
PATCHED = "os sys time math random signal atexit numpy torch torch.nn.functional builtins"
# Settings: an attribute, or the function that reads it, the one that writes it begins with set.
SETTINGS = """
    random.getstate numpy.random.get_state torch.get_rng_state
    sys.getrecursionlimit sys.getswitchinterval sys.gettrace sys.getprofile
    torch.get_default_dtype torch.is_grad_enabled torch.is_anomaly_enabled
    torch.get_deterministic_debug_mode torch.get_float32_matmul_precision
    torch.backends.mkldnn.enabled torch.backends.cudnn.benchmark torch.backends.cudnn.deterministic
"""


class TimedOut(Exception):  # noqa: N818 - read as a fact, like `limit`
    """The code inside a `limit` was stopped, or it swallowed the stop and came back late."""

    def __init__(self, seconds: float):
        super().__init__(f"stopped after {seconds:g} s")
        self.seconds = seconds


class Stopped(BaseException):
    """Raised inside the code that ran too long. No `except Exception` catches it."""


class EndedProcess(Exception):  # noqa: N818 - read as a fact
    """An attempt called a function that ends Python; its name, such as os._exit, is the message."""


class limit:  # noqa: N801 - read as a phrase: `with limit(5):`
    """A block that is stopped after `seconds`; `TimedOut` is raised where it ends.

    On the main thread on Unix an alarm signal interrupts even a sleep. Elsewhere the exception is
    planted from a second thread, and arrives when the interpreter runs its next line. Neither
    breaks into one long call of C code, such as `sum(range(10**12))`: it stops when that returns.

    A bare `except:` in an endless loop would swallow the stop. From Python 3.12 on, the second stop
    starts a tripwire, which raises it again at every line, also at those of an `except` clause, and
    what is raised there leaves its `try`. On Python 3.11 the exception, when it is thrown away,
    sets off the next one: its `__del__` is a C function, which trips the alarm without running a
    line of Python, and the alarm goes off at the loop's next turn, outside the `try`. Either way no
    number of nested `try` blocks outlasts it.

    A stop that breaks into a destructor, or into a callback of the garbage collector, is thrown
    away by the interpreter. Another one follows, so it need not be reported.

    A child process that the block forked ends where it would leave the block: it is a copy of
    this process, and would repeat the work that follows.
    """

    has_tripwire = hasattr(sys, "monitoring")

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.expired = False
        self.tool = None  # the tripwire, by its number among the tools of `sys.monitoring`
        self.stop = type("Stopped", (Stopped,), {})  # one class per block: blocks may be nested

    def __enter__(self) -> "limit":
        self.active = True
        self.process, self.thread = process_id(), _thread.get_ident()
        self.outside = {frame.f_code for frame, _ in traceback.walk_stack(sys._getframe(1))}
        self.started = time.monotonic()
        self.old_hook, sys.unraisablehook = sys.unraisablehook, self._on_unraisable
        main = threading.current_thread() is threading.main_thread()
        self.by_signal = main and hasattr(signal, "setitimer")
        if self.by_signal:
            self._trip_when_swallowed(partial(_thread.interrupt_main, signal.SIGALRM))
            self.old_handler = signal.signal(signal.SIGALRM, self._on_alarm)
            self.old_timer = signal.setitimer(signal.ITIMER_REAL, self.seconds, REPEAT_SECONDS)
        else:
            self.done = threading.Event()
            self.watcher = threading.Thread(target=self._watch, daemon=True)
            self.watcher.start()
        return self

    def __exit__(self, kind, error, trace) -> bool:
        self.active = False
        if process_id() != self.process:
            end_process(isinstance(error, Exception))  # status 1, but not for a SystemExit
        self.close()
        if self.expired:
            raise TimedOut(self.seconds) from error
        return False

    def close(self) -> None:
        """Take away everything that would stop the code after the block. May be called again."""
        self.active = False
        if self.tool is not None:
            sys.monitoring.set_events(self.tool, sys.monitoring.events.NO_EVENTS)
            sys.monitoring.register_callback(self.tool, sys.monitoring.events.LINE, None)
            sys.monitoring.free_tool_id(self.tool)
            self.tool = None
        with suppress(AttributeError):
            del self.stop.__del__
        if self.by_signal:  # give an outer limit, or another user, its handler and time back
            signal.setitimer(signal.ITIMER_REAL, 0)
            if self.old_handler is not None:  # None: set by C code, cannot be put back from Python
                signal.signal(signal.SIGALRM, self.old_handler)
            remaining, interval = self.old_timer
            if remaining:
                remaining -= time.monotonic() - self.started
                signal.setitimer(signal.ITIMER_REAL, max(remaining, 0.001), interval)
        else:
            self.done.set()
            self.watcher.join()  # from here on no other stop is planted
            # One that is on its way must arrive here. Python can also be told to drop it, but 3.11
            # then takes it for due ever after, and hangs in the first call under a profiler.
            with suppress(self.stop):
                for _ in range(2):  # exceptions from other threads arrive where a loop turns
                    pass
        sys.unraisablehook = self.old_hook

    def _trip_when_swallowed(self, trip: Callable) -> None:
        if not self.has_tripwire:
            self.stop.__del__ = staticmethod(trip)

    def _expire(self) -> None:
        """Note that time is up; the second time, the first stop was swallowed."""
        if self.expired and self.has_tripwire and self.tool is None:
            watch = sys.monitoring
            self.tool = next((i for i in reversed(range(6)) if watch.get_tool(i) is None), None)
            if self.tool is not None:  # else other tools have taken all places
                watch.use_tool_id(self.tool, "workbook")
                watch.register_callback(self.tool, watch.events.LINE, self._on_line)
                watch.set_events(self.tool, watch.events.LINE)
        self.expired = True

    def _on_line(self, code, line: int) -> None:
        inside = code not in self.outside and not code.co_filename.startswith(TIDYING)
        if inside and _thread.get_ident() == self.thread:
            raise self.stop

    def _on_unraisable(self, unraisable) -> None:
        if not issubclass(unraisable.exc_type, Stopped):
            self.old_hook(unraisable)

    def _on_alarm(self, signum, frame) -> None:
        # Raised inside `__exit__`, the stop would leave the alarm on after the block. Only the
        # nearest frames are checked: walking millions of them, as an endless recursion leaves,
        # takes longer than the alarm's interval, and the `raise` would never be reached.
        leaving = limit.__exit__.__code__
        near = islice(traceback.walk_stack(frame), NEAR)
        if self.active and not any(each.f_code is leaving for each, _ in near):
            self._expire()
            raise self.stop

    def _watch(self) -> None:
        raise_in_thread = _raiser(self.thread, self.stop)
        if self.done.wait(self.seconds):
            return
        self._trip_when_swallowed(raise_in_thread)
        while self.active:
            self._expire()
            raise_in_thread()
            self.done.wait(REPEAT_SECONDS)


def limited(seconds: float, function: Callable[[], Any]) -> Any:
    """Return what the function returns. Raises: TimedOut.

    Safer than the bare block on threads other than the main one: there, a stop that arrives while
    the block ends interrupts the first line of `limit.__exit__`, before anything is cleaned up.
    """
    block = limit(seconds)
    try:
        with block:
            return function()
    except block.stop as stop:
        block.close()
        raise TimedOut(seconds) from stop


class Isolation(io.BufferedIOBase):
    """What happened inside: the beginning of the output, warnings, and the user's own Ctrl-C."""

    def __init__(self):
        self.kept, self.total = bytearray(), 0
        self.interrupted = False
        self.warnings: list[warnings.WarningMessage] = []

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        self.total += len(data)
        self.kept += bytes(data[: max(0, KEPT_OUTPUT - len(self.kept))])
        return len(data)

    def close(self) -> None:
        """Do nothing: code that closes its standard output must not silence what comes after."""

    def on_interrupt(self, signum, frame) -> None:
        """Tell the user's own Ctrl-C from a KeyboardInterrupt that an attempt raises."""
        self.interrupted = True
        raise KeyboardInterrupt

    @property
    def output(self) -> str:
        """What was printed, as far as it was kept, then each warning on a line."""
        rest = self.total - len(self.kept)
        text = self.kept.decode("utf-8", errors="ignore")
        text = f"{text}... and {rest:,} more bytes" if rest else text.rstrip()
        notes = [f"{w.category.__name__}: {w.message}" for w in self.warnings[:5]]
        return "\n".join(filter(None, [text, *notes]))


@contextmanager
def isolated() -> Iterator[Isolation]:
    """A block after which the state of the process is as it was before, printing included.

    Its working directory is an empty folder of its own, which is removed with all that it holds.
    """
    isolation = Isolation()
    with ExitStack() as stack:  # put back from the last to the first
        finally_do = partial(stack.callback, _quietly)
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        stack.enter_context(decimal.localcontext())
        for read, write in _state():
            with suppress(Exception):  # one that this version or machine lacks
                finally_do(_put_back, read, write, read())
        with suppress(OSError):  # the current folder may have been deleted
            sys.path[:] = [os.path.abspath(p) if os.path.isdir(p or ".") else p for p in sys.path]
        os.chdir(folder)
        sys.unraisablehook = threading.excepthook = lambda info: None
        isolation.warnings = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", ResourceWarning)  # a file left open is not reported
        _catch_output(isolation, finally_do)
        with suppress(ValueError):  # on another thread than the main one
            signal.signal(signal.SIGINT, isolation.on_interrupt)
        # These are ended while their output is still caught.
        finally_do(_end_threads, set(threading.enumerate()))
        with suppress(psutil.Error, OSError):  # such as without /proc
            finally_do(_end_processes, set(psutil.Process().children(recursive=True)))
        registered = []
        finally_do(lambda: [atexit.unregister(function) for function in registered])
        for name in PATCHED.split():  # put back first of all: the others call them
            names = vars(sys.modules[name]) if name in sys.modules else {}
            stack.callback(names.update, {k: v for k, v in names.items() if callable(v)})
        _tame_functions(registered)
        yield isolation


def _quietly(undo: Callable, *args) -> None:
    with suppress(Exception):
        undo(*args)


def _put_back(read: Callable, write: Callable, saved: Any) -> None:
    with suppress(Exception):  # arrays and tensors are not equal or unequal as a whole
        if read() == saved:
            return
    write(saved)


def _state() -> Iterator[tuple[Callable, Callable]]:
    """How to read, and how to write back, each thing that an attempt may change around itself."""
    for dotted in SETTINGS.split():
        module, _, name = dotted.rpartition(".")
        module = sys.modules.get(module)
        if callable(read := getattr(module, name, None)):
            yield read, getattr(module, re.sub("^(get|is)", "set", name))
        else:
            yield partial(getattr, module, name), partial(setattr, module, name)
    yield partial(getattr, threading, "excepthook"), partial(setattr, threading, "excepthook")
    yield os.getcwd, os.chdir
    yield _umask, os.umask
    yield gc.isenabled, lambda enabled: gc.enable() if enabled else gc.disable()
    yield gc.get_threshold, lambda saved: gc.set_threshold(*saved)
    root = logging.getLogger()
    yield lambda: root.level, root.setLevel
    yield lambda: root.manager.disable, logging.disable
    contents = [vars(sys), vars(builtins), os.environ, sys.path, sys.argv, root.handlers]
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if hasattr(numpy, "geterr"):  # not if it is only partly imported
        yield numpy.geterr, lambda saved: numpy.seterr(**saved)
        yield numpy.get_printoptions, lambda saved: numpy.set_printoptions(**saved)
    if hasattr(torch, "get_default_device"):
        contents.append(vars(torch._tensor_str.PRINT_OPTS))
        yield torch.get_default_device, _set_default_device
        for device in ("cpu", "cuda"):
            is_on, switch = torch.is_autocast_enabled, torch.set_autocast_enabled
            yield partial(is_on, device), partial(switch, device)
        if torch.cuda.is_initialized():
            yield torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all
    for each in contents:
        yield partial(list if isinstance(each, list) else dict, each), partial(_refill, each)
    for kind in {getattr(resource, n) for n in dir(resource) if n.startswith("RLIMIT_")}:
        yield partial(resource.getrlimit, kind), partial(_set_limit, kind)
    for number in signal.valid_signals():
        yield partial(signal.getsignal, number), partial(signal.signal, number)
    if hasattr(signal, "pthread_sigmask"):
        yield partial(signal.pthread_sigmask, signal.SIG_BLOCK, ()), _set_mask


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _refill(container: list | MutableMapping, saved: list | dict) -> None:
    if isinstance(container, list):
        container[:] = saved
        return
    for name in container.keys() - saved.keys():
        del container[name]
    container.update(saved)


def _set_default_device(device) -> None:
    torch = sys.modules["torch"]
    torch.set_default_device(None if device.type == "cpu" else device)  # None: without a detour


def _set_limit(kind: int, saved: tuple[int, int]) -> None:
    resource.setrlimit(kind, (saved[0], resource.getrlimit(kind)[1]))
    resource.setrlimit(kind, saved)  # only an administrator may raise the hard limit


def _set_mask(mask: set) -> None:
    with suppress(ValueError):  # on another thread than the main one
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # a pending one must not end this process
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _catch_output(isolation: Isolation, finally_do: Callable) -> None:
    """Keep the beginning of what is printed; discard what child processes or C code write."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    with open(os.devnull, "r+b", buffering=0) as nowhere:
        for number in (0, 1, 2):
            with suppress(OSError):  # a process without a terminal may lack them
                copy = os.dup(number)
                finally_do(os.close, copy)
                finally_do(os.dup2, copy, number)
                os.dup2(nowhere.fileno(), number)
    sys.stdin = sys.__stdin__ = io.StringIO()
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(isolation, "utf-8", write_through=True)
    sys.stderr = sys.__stderr__ = sys.stdout


def _end_threads(before: set[threading.Thread]) -> None:
    """Let threads that were left behind end, then plant a SystemExit in those that go on."""
    for _ in range(2):
        until = time.monotonic() + GRACE_SECONDS
        for thread in set(threading.enumerate()) - before:
            thread.join(max(0.0, until - time.monotonic()))
        for thread in set(threading.enumerate()) - before:
            _raiser(thread.ident, SystemExit)()


def _raiser(thread: int, error: type[BaseException]) -> Callable[[], Any]:
    """A C function that plants an exception in a thread, where it is raised at the next line."""
    plant = ctypes.pythonapi.PyThreadState_SetAsyncExc
    return partial(plant, ctypes.c_ulong(thread), ctypes.py_object(error))


def _end_processes(before: set[psutil.Process]) -> None:
    """End child processes that were left behind, except the helpers of `multiprocessing`."""
    left = set(psutil.Process().children(recursive=True)) - before
    left = [child for child in left if not _is_helper(child)]
    _, left = psutil.wait_procs(left, timeout=GRACE_SECONDS)
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for child in left:
            with suppress(psutil.NoSuchProcess):
                end(child)
        _, left = psutil.wait_procs(left, timeout=1)


def _is_helper(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        line = " ".join(process.cmdline())
        return "multiprocessing.resource_tracker" in line or "multiprocessing.forkserver" in line
    return False


def _tame_functions(registered: list) -> None:
    """Tame the functions that would end, hang or fill the process.

    What the learner's code registers to be called at exit is added to the list.
    """
    register, set_recursion_limit = atexit.register, sys.setrecursionlimit

    def no_input(prompt=""):
        raise EOFError("a check cannot answer input(): pass values as arguments instead")

    def register_and_note(function, *args, **kwargs):
        if not sys._getframe(1).f_code.co_filename.startswith(NOT_THEIRS):
            registered.append(function)
        return register(function, *args, **kwargs)

    builtins.input = no_input
    atexit.register = register_and_note
    os._exit, os.abort = _refused("_exit"), _refused("abort")
    sys.setrecursionlimit = lambda limit: set_recursion_limit(min(limit, DEEPEST))
    sys.setrecursionlimit(sys.getrecursionlimit())
    if hasattr(signal, "pthread_sigmask"):
        block = signal.pthread_sigmask  # but not the alarm that ends what takes too long
        signal.pthread_sigmask = lambda how, mask: block(how, set(mask) - {signal.SIGALRM})


def _refused(name: str) -> Callable:
    """A stand-in for `os._exit` or `os.abort` that still lets child processes end themselves."""
    end, process = getattr(os, name), process_id()

    def refuse(*status):
        if process_id() != process:
            end(*status)
        raise EndedProcess(f"os.{name}")

    return refuse
