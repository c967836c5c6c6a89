"""What a check puts back: whatever a learner's code may have changed around itself.

This is no sandbox. It keeps an honest mistake in one cell from spoiling the next one.
"""

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
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import psutil

from workbook.checks.verdicts import NOT_THEIRS, Words, Wrong

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None

DEEPEST = 20_000  # nested calls: honest recursion needs fewer, and millions of them fill the memory
PATCHED = "os sys time math random signal atexit numpy torch torch.nn.functional"  # and builtins
STREAMS = ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")
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
        raise Wrong(
            "It ended the Python process.",
            got=Words(f"a call of os.{name}"),
            mistake="A function hands its result back with `return`, and reports by raising.",
        )

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
