"""Keep an attempt from outlasting or damaging the notebook: a time limit, and a state put back.

`limited` stops code that nobody can trust to stop by itself, also where it swallows the stop.
`isolated` restores whatever an attempt may have changed around itself. This is no sandbox: it keeps
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
import random
import signal
import sys
import sysconfig
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

import psutil

from workbook.config import PACKAGE

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None

STDLIB = sysconfig.get_path("stdlib")
# Files that no line of a learner's is in.
NOT_THEIRS = (str(PACKAGE), *{STDLIB, sysconfig.get_path("purelib")}, "<frozen")
TIDYING = (str(PACKAGE), STDLIB, "<frozen")  # files whose lines are not stopped: they tidy up
REPEAT_SECONDS = 0.5  # between two tries: long enough for a `finally` of the learner's to tidy up
NEAR = 50  # frames: what the end of a `limit` calls is never as deep
end_process, process_id = os._exit, os.getpid  # as they are before an attempt can replace them
DEEPEST = 20_000  # nested calls: honest recursion needs fewer, and millions of them fill the memory
PATCHED = "os sys time math random signal atexit numpy torch torch.nn.functional"  # and builtins
STREAMS = ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")
KEPT_OUTPUT = 2_000  # bytes of print-out that a report may quote from
GRACE_SECONDS = 0.3  # for threads and processes that are about to end by themselves


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

    On the main thread of Unix an alarm signal interrupts even a sleep. Elsewhere the exception is
    planted from a second thread, and arrives when the interpreter runs its next line. Neither
    breaks into one long call of C code, such as `sum(range(10**12))`: it stops when that returns.

    A bare `except:` in an endless loop would swallow the stop. Where there is a `Tripwire`, the
    second stop starts it. On Python 3.11 the exception, when it is thrown away, sets off the next
    one: its `__del__` is a C function, which trips the alarm without running a line of Python, and
    the alarm goes off at the loop's next turn, outside the `try`. Each layer costs one turn.

    A stop that breaks into a destructor, or into a callback of the garbage collector, is thrown
    away by the interpreter. The next one comes, so nobody needs to be told of it.

    A child process that the block forked ends where it would leave the block: it is a copy of us,
    and would go on with our work beside us.
    """

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.expired = False
        self.stop = type("Stopped", (Stopped,), {})  # one class a block: blocks may be nested

    def __enter__(self) -> "limit":
        self.active = True
        self.process = process_id()
        self.started = time.monotonic()
        self.tripwire = Tripwire(self.stop)
        self.old_hook, sys.unraisablehook = sys.unraisablehook, self._on_unraisable
        main = threading.current_thread() is threading.main_thread()
        self.by_signal = main and hasattr(signal, "setitimer")
        if self.by_signal:
            self._trip_when_swallowed(partial(_thread.interrupt_main, signal.SIGALRM))
            self.old_handler = signal.signal(signal.SIGALRM, self._on_alarm)
            self.old_timer = signal.setitimer(signal.ITIMER_REAL, self.seconds, REPEAT_SECONDS)
        else:
            self.done = threading.Event()
            self.thread = _thread.get_ident()
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
        self.tripwire.remove()
        if self.by_signal:
            self._restore_alarm()
        else:
            self.done.set()
            self.watcher.join()  # from here on no other stop is planted
        if "__del__" in vars(self.stop):
            del self.stop.__del__
        if not self.by_signal:
            self._let_it_arrive()
        sys.unraisablehook = self.old_hook

    def _let_it_arrive(self) -> None:
        """Catch a stop that is on its way, so that it does not break into what comes after.

        It must arrive. Python can also be told to drop it, but 3.11 then takes it for due ever
        after, and hangs in the first call under a profiler.
        """
        with suppress(self.stop):
            for _ in range(2):  # exceptions from other threads arrive where a loop turns
                pass

    def _trip_when_swallowed(self, trip) -> None:
        if not Tripwire.is_there:
            self.stop.__del__ = staticmethod(trip)

    def _expire(self) -> None:
        """Note that the time is over; the second time, the first stop was swallowed."""
        if self.expired and Tripwire.is_there:
            self.tripwire.start()
        self.expired = True

    def _on_unraisable(self, unraisable) -> None:
        if not issubclass(unraisable.exc_type, Stopped):
            self.old_hook(unraisable)

    def _on_alarm(self, signum, frame) -> None:
        # Raised inside `__exit__`, the stop would leave the alarm on after the block.
        if self.active and not _is_leaving(frame):
            self._expire()
            raise self.stop

    def _restore_alarm(self) -> None:
        """Give an outer limit, or another user of the alarm, its handler and its remaining time."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self.old_handler is not None:  # None: set by C code, cannot be put back from Python
            signal.signal(signal.SIGALRM, self.old_handler)
        remaining, interval = self.old_timer
        if remaining:
            remaining -= time.monotonic() - self.started
            signal.setitimer(signal.ITIMER_REAL, max(remaining, 0.001), interval)

    def _watch(self) -> None:
        raise_in_thread = partial(
            ctypes.pythonapi.PyThreadState_SetAsyncExc,
            ctypes.c_ulong(self.thread),
            ctypes.py_object(self.stop),
        )
        if self.done.wait(self.seconds):
            return
        self._trip_when_swallowed(raise_in_thread)
        while self.active:
            self._expire()
            raise_in_thread()
            self.done.wait(REPEAT_SECONDS)


def limited(seconds: float, function: Callable[[], Any]) -> Any:
    """Return what the function returns. Raises: TimedOut.

    Safer than the bare block on other threads than the main one: there, a stop that is on its way
    while the block ends breaks into the first line of `limit.__exit__`, and nothing was taken away.
    """
    block = limit(seconds)
    try:
        with block:
            return function()
    except block.stop as stop:
        block.close()
        raise TimedOut(seconds) from stop


def _is_leaving(frame: FrameType | None) -> bool:
    """Whether the end of a `limit` is what an alarm broke into.

    Only the nearest frames are asked. To walk millions of them, as an endless recursion leaves,
    takes longer than the alarm waits to ring again: the handler would never come to its stop.
    """
    for _ in range(NEAR):
        if frame is None:
            return False
        if frame.f_code is limit.__exit__.__code__:
            return True
        frame = frame.f_back
    return False


class Tripwire:
    """Raise the stop again at every line of the code inside a `limit`, from Python 3.12 on.

    It is for code that swallowed the stop. The lines of an `except` clause are among those, and
    what is raised there leaves its `try`: so no number of nested `try` blocks outlasts it.
    """

    is_there = hasattr(sys, "monitoring")

    def __init__(self, stop: type[BaseException]):
        """Remember what runs where the limit begins, or waits for it: that is not inside."""
        self.stop = stop
        self.thread = _thread.get_ident()
        self.tool = None
        self.outside, frame = set(), sys._getframe(2)
        while frame is not None:
            self.outside.add(frame.f_code)
            frame = frame.f_back

    def start(self) -> None:
        """Watch every line from now on, unless other tools have taken all places."""
        watch = sys.monitoring
        free = [tool for tool in range(6) if watch.get_tool(tool) is None]
        if self.tool is None and free:
            self.tool = free[-1]
            watch.use_tool_id(self.tool, "workbook")
            watch.register_callback(self.tool, watch.events.LINE, self._on_line)
            watch.set_events(self.tool, watch.events.LINE)

    def _on_line(self, code, line: int) -> None:
        inside = code not in self.outside and not code.co_filename.startswith(TIDYING)
        if inside and _thread.get_ident() == self.thread:
            raise self.stop

    def remove(self) -> None:
        """Stop watching."""
        if self.tool is not None:
            sys.monitoring.set_events(self.tool, sys.monitoring.events.NO_EVENTS)
            sys.monitoring.register_callback(self.tool, sys.monitoring.events.LINE, None)
            sys.monitoring.free_tool_id(self.tool)
            self.tool = None


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
    """A block after which the state of the process is as it was before, printing included.

    Its working directory is an empty folder of its own, which is removed with all that it holds.
    """
    isolation = Isolation()
    with ExitStack() as stack:  # put back from the last to the first
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        stack.enter_context(decimal.localcontext())
        for keep in (_keep_random, _keep_numbers, _keep_process, _keep_limits):
            stack.callback(_quietly, keep())
        os.chdir(folder)
        isolation.warnings = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", ResourceWarning)  # a file left open is not asked about
        stack.callback(_quietly, _catch_output(isolation.tape))
        stack.callback(_quietly, _catch_interrupts(isolation))
        for keep in (_keep_threads, _keep_processes):  # ended while their noise is still caught
            stack.callback(_quietly, keep())
        stack.callback(_keep_functions())  # first of all: the others call them
        yield isolation


def _quietly(undo: Callable[[], None]) -> None:
    with suppress(Exception):
        undo()


def _keep_functions() -> Callable[[], None]:
    """Restore names such as `print` and `torch.exp`; meanwhile a few do less than usual."""
    namespace, saved = vars(builtins), dict(vars(builtins))
    modules = [vars(sys.modules[name]) for name in PATCHED.split() if sys.modules.get(name)]
    before = [(module, dict(module)) for module in modules]
    added = _replace_functions()

    def undo():
        namespace.update(saved)
        for name in namespace.keys() - saved.keys():
            del namespace[name]
        for module, functions in before:
            for name, function in functions.items():
                if module.get(name) is not function and callable(function):
                    module[name] = function
        for function in added:
            atexit.unregister(function)

    return undo


def _replace_functions() -> list[Callable]:
    """Tame the functions that would end, hang or fill the process.

    Gives the list in which what the learner's code registers to be called at exit is collected.
    """
    register, set_recursion_limit = atexit.register, sys.setrecursionlimit
    added = []

    def no_input(prompt=""):
        raise EOFError("a check answers no questions: pass values as arguments, not with input()")

    def register_and_note(function, *args, **kwargs):
        if not sys._getframe(1).f_code.co_filename.startswith(NOT_THEIRS):
            added.append(function)
        return register(function, *args, **kwargs)

    builtins.input = no_input
    atexit.register = register_and_note
    os._exit, os.abort = _refused("_exit"), _refused("abort")
    sys.setrecursionlimit = lambda limit: set_recursion_limit(min(limit, DEEPEST))
    sys.setrecursionlimit(sys.getrecursionlimit())
    if hasattr(signal, "pthread_sigmask"):
        block = signal.pthread_sigmask  # but not the alarm that ends what takes too long
        signal.pthread_sigmask = lambda how, mask: block(how, set(mask) - {signal.SIGALRM})
    return added


def _refused(name: str) -> Callable:
    """`os._exit` or `os.abort` for this process; its children may end themselves."""
    end, process_id, process = getattr(os, name), os.getpid, os.getpid()

    def refuse(*status):
        if process_id() != process:
            end(*status)
        raise EndedProcess(f"os.{name}")

    return refuse


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
    """Restore how numpy and torch treat and print numbers: errors, dtypes, gradients, devices."""
    settings = []
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if hasattr(numpy, "geterr"):
        settings += [
            (numpy.geterr, lambda saved: numpy.seterr(**saved)),
            (numpy.get_printoptions, lambda saved: numpy.set_printoptions(**saved)),
        ]
    if hasattr(torch, "get_default_dtype"):
        printing = vars(torch._tensor_str.PRINT_OPTS)
        settings += [
            (torch.get_default_dtype, torch.set_default_dtype),
            (torch.is_grad_enabled, torch.set_grad_enabled),
            (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
            (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
            (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
            (lambda: torch.get_default_device(), _set_default_device),
            (lambda: dict(printing), printing.update),
            _attribute(torch.backends.mkldnn, "enabled"),
            _attribute(torch.backends.cudnn, "benchmark"),
            _attribute(torch.backends.cudnn, "deterministic"),
            _autocast(torch, "cpu"),
            _autocast(torch, "cuda"),
        ]
    return _restoring(settings)


def _set_default_device(device) -> None:
    torch = sys.modules["torch"]
    torch.set_default_device(None if device.type == "cpu" else device)  # None: without a detour


def _autocast(torch, device: str) -> tuple[Callable, Callable]:
    return partial(torch.is_autocast_enabled, device), partial(torch.set_autocast_enabled, device)


def _attribute(thing, name: str) -> tuple[Callable, Callable]:
    return partial(getattr, thing, name), partial(setattr, thing, name)


def _keep_process() -> Callable[[], None]:
    """Restore folder, environment, import path and the interpreter's own settings."""
    environment, path, arguments = dict(os.environ), list(sys.path), list(sys.argv)
    root, mask = logging.getLogger(), os.umask(0o077)
    os.umask(mask)
    undos = [
        _later(sys.setrecursionlimit, sys.getrecursionlimit()),
        _later(sys.setswitchinterval, sys.getswitchinterval()),
        _later(sys.settrace, sys.gettrace()),
        _later(sys.setprofile, sys.getprofile()),
        _later(gc.enable if gc.isenabled() else gc.disable),
        _later(gc.set_threshold, *gc.get_threshold()),
        _later(os.umask, mask),
        _later(logging.disable, root.manager.disable),
        _later(root.setLevel, root.level),
        _later(setattr, root, "handlers", list(root.handlers)),
        _later(setattr, sys, "argv", arguments),
    ]
    with suppress(OSError):  # the current folder may have been deleted
        undos.append(_later(os.chdir, os.getcwd()))
        sys.path[:] = map(_wherever_we_are, path)
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


def _wherever_we_are(entry: str) -> str:
    """An entry of the import path that goes on to name the same folder: "" is the current one."""
    return os.path.abspath(entry) if entry == "" or os.path.isdir(entry) else entry


def _keep_limits() -> Callable[[], None]:
    """Restore how much memory, how many files and so on the process may have."""
    if resource is None:
        return lambda: None

    def set_soft(kind, saved):  # only an administrator may raise the hard limit
        resource.setrlimit(kind, (saved[0], resource.getrlimit(kind)[1]))

    kinds = {getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}
    return _restoring(
        [
            (partial(resource.getrlimit, kind), write)
            for kind in kinds
            for write in (partial(set_soft, kind), partial(resource.setrlimit, kind))
        ]
    )


def _catch_output(tape: Tape) -> Callable[[], None]:
    """Send print-outs to the tape, and what child processes or C code write to nowhere."""
    saved = {name: getattr(sys, name) for name in STREAMS}
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    descriptors = {}
    with open(os.devnull, "r+b", buffering=0) as nowhere:
        for number in (0, 1, 2):
            with suppress(OSError):  # a process without a terminal may lack them
                descriptors[number] = os.dup(number)
                os.dup2(nowhere.fileno(), number)
    sys.stdin = sys.__stdin__ = io.StringIO()
    sys.stdout = sys.stderr = io.TextIOWrapper(tape, encoding="utf-8", write_through=True)
    sys.__stdout__ = sys.__stderr__ = sys.stdout

    def undo():
        for name, stream in saved.items():
            setattr(sys, name, stream)
        for number, copy in descriptors.items():
            os.dup2(copy, number)
            os.close(copy)

    return undo


def _catch_interrupts(isolation: Isolation) -> Callable[[], None]:
    """Restore what signals do; tell the user's own Ctrl-C from a raised KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    saved = {number: signal.getsignal(number) for number in signal.valid_signals()}
    mask = hasattr(signal, "pthread_sigmask") and signal.pthread_sigmask(signal.SIG_BLOCK, ())

    def on_interrupt(number, frame):
        isolation.interrupted = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, on_interrupt)

    def undo():
        if mask is not False and signal.pthread_sigmask(signal.SIG_BLOCK, ()) != mask:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)  # one that waited is not to end us
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
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
    try:
        this = psutil.Process()
        before = set(this.children(recursive=True))
    except (psutil.Error, OSError):  # such as without /proc
        return lambda: None

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


def _restoring(settings: list[tuple[Callable, Callable]]) -> Callable[[], None]:
    """Write back what each (read, write) reads now, where it reads something else by then."""

    def undo(read, write, saved):
        if read() != saved:
            write(saved)

    undos = []
    for read, write in settings:
        with suppress(Exception):  # one that this version or machine lacks
            undos.append(partial(undo, read, write, read()))
    return _all(undos)


def _all(undos: list[Callable[[], None]]) -> Callable[[], None]:
    def undo():
        for each in undos:
            _quietly(each)

    return undo
