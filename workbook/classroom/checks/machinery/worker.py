"""A learner's code runs in a process of its own: it may crash, hang, multiply or change anything.

A *server* process has torch and the checks loaded. For each request it forks a *worker*, which
calls one of our functions with what the request holds, and sends back each value as soon as it is
there; so what was found before a crash is not lost. Whatever the code changed ends with the worker.
Where a system cannot fork (Windows), the server answers one request itself, and the next server is
started at once, so that it is warm by the time it is needed.

    this process                 server                       worker
    Server.start()      ->       imports torch, checks
    results(...)        ->       reads the request, forks ->  calls the function
                        <-----------------------------------  started, value, value, done
                        <-       "ended", exit status

An attempt may write to any open file by its number, and so into the channel. Each message bears the
key of its request, and what has another one is passed over. Only "done" says that a worker came to
its end: with which status it ends is up to the attempt.
"""

import atexit
import builtins
import ctypes
import gc
import importlib
import io
import json
import logging
import multiprocessing
import os
import pickle
import pkgutil
import queue
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import psutil

with suppress(ImportError):  # on Windows
    import resource

from workbook import config
from workbook.bench import family, kill
from workbook.classroom import checks
from workbook.classroom.checks.machinery import transfer
from workbook.classroom.checks.machinery.timeout import Stopwatch, on_swallowed
from workbook.classroom.checks.machinery.verdicts import fault_of_ours

CAN_FORK = hasattr(os, "fork")
PR_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>
MOST_CHILDREN = 48  # processes below it: a pool for each core of a large machine
LOOK_SECONDS = 0.2  # between two looks at the clock and at the children
POLL_SECONDS = 0.01  # between two looks of a server at its worker
MOST_WRITTEN = 2**28  # bytes of a file, that of what is printed, too: so no loop fills the disk
KEPT_OUTPUT = 20_000  # bytes of what was printed that a report may quote from
# What a function of ours may raise for whoever asks.
ERRORS = {"PackError": transfer.PackError, "ValueError": ValueError, "OSError": OSError}
# The number of the channel: code that counts through open files ends below it. macOS has 256.
CHANNEL = 240
DEEPEST = 20_000  # nested calls: honest recursion needs fewer, and millions of them fill the memory
START_SECONDS = 120.0  # for a server to import torch
TAIL = 600  # characters of what was printed last, for the error of a process that ended

# A process that is started with -c has no file: the workers of a pool, which run the main file
# again wherever `if __name__ == "__main__":` is missing, have nothing to run here.
CODE = """
import sys
sys.path.insert(0, {root!a})
import workbook  # this one, whichever is installed
sys.path.append(sys.path.pop(0))
from workbook.classroom.checks.machinery import worker
worker.serve()
"""


class EndedError(OSError):
    """The process ended, took too long or started too many others; the message says which.

    `status` is the exit status (the negative number of a signal), and None if it was ended by us.
    """

    def __init__(self, message: str, status: int | None = None):
        super().__init__(message)
        self.status = status
        self.is_killed = status == -9  # as the system does where memory runs out: no fault was seen


class _Channel:
    """What a server, a worker or a copy of one sends its messages through."""

    def __init__(self, file: BinaryIO, key: str = ""):
        self.file = file
        self.key = key

    def send(self, kind: str, value: Any) -> None:
        """Send a message; end this process if that is not possible any more."""
        # In one call: a line is then whole or not there. What an attempt wrote is no part of it.
        line = b"\n" + json.dumps([self.key, kind, value]).encode() + b"\n"
        try:
            self.file.write(line)
        except OSError:
            with suppress(OSError):
                os.write(2, b"The file that leads to the check was closed.\n")
            _leave(1)


def _message(line: bytes, key: str) -> tuple[str, Any] | None:
    """The kind and the value of a message; None if it is no message, or has another key."""
    with suppress(ValueError, TypeError, RecursionError):
        found, kind, value = json.loads(line)
        if found == key:
            return kind, value
    return None


# In the process that asks.


class Server:
    """The server of this process, and the channel to it."""

    def __init__(self):
        self.owner = os.getpid()  # a fork of this process must not share the channel
        # -P: no file of the working folder is imported in place of Python's own.
        # -u: what was printed before a crash is not lost.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-u", "-c", CODE.format(root=str(config.PACKAGE.parent))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C comes to us alone, and we end it
        )
        self.key = ""  # of the request that it is at
        self.messages: queue.SimpleQueue = queue.SimpleQueue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        """Put every message of the server into the queue, and at last how it ended itself."""
        for line in self.process.stdout:
            if message := _message(line, self.key):
                self.messages.put(message)
        self.messages.put(("ended", self.process.wait()))

    def is_usable(self) -> bool:
        """Whether it is ours, and still there."""
        return self.owner == os.getpid() and self.process.poll() is None

    def ask(self, request: dict) -> None:
        """Send a request; if the server is gone, its last message says so."""
        self.key = secrets.token_hex()
        with suppress(OSError):
            pickle.dump({**request, "key": self.key}, self.process.stdin)
            self.process.stdin.flush()

    def next_message(self) -> tuple[str, Any] | None:
        """The next message; None if there is none so far."""
        try:
            return self.messages.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            return None

    def end_worker(self, worker: int) -> bool:
        """Kill its worker, and wait until it says that this has ended; whether it did."""
        end(worker)
        return any((self.next_message() or [""])[0] == "ended" for _ in range(100))

    def close(self) -> None:
        """End the server, and what it is working on."""
        if self.owner == os.getpid():
            end(self.process.pid)
            self.process.wait()
            self.reader.join(timeout=10)
            for pipe in (self.process.stdin, self.process.stdout):
                with suppress(OSError):  # the rest of a request that nobody reads any more
                    pipe.close()


_idle: list[Server] = []
is_inside = False  # a worker: what judges an attempt there must not ask for another worker


def start() -> None:
    """Have a server ready; it imports what it needs while this process goes on."""
    if not any(server.is_usable() for server in _idle):
        _idle.append(Server())


def _take() -> Server:
    """A server that nobody else uses."""
    with suppress(IndexError):  # there is none, or another thread was faster
        while True:
            server = _idle.pop()
            if server.is_usable():
                return server
            server.close()
    return Server()


@atexit.register
def close() -> None:
    """End all servers; the next request starts a new one."""
    while _idle:
        _idle.pop().close()


def _request(function: Callable, arguments: tuple, home: Path, printed: Path) -> dict[str, Any]:
    """What a server is told: the call, and the state of this process that it repeats there."""
    return {
        "function": (function.__module__, function.__name__),
        "arguments": transfer.pack(arguments),
        "home": str(home),  # the working folder: some open a log when they are imported
        "printed": str(printed),
        "path": [os.path.abspath(p) if os.path.isdir(p or ".") else p for p in sys.path],
        # So that code may ask for a GPU when it is imported, and use it in a copy of its process:
        # https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#poison-fork-in-multiprocessing
        "environment": {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", **os.environ},
        "argv": sys.argv,
        # With "fork", worker processes know the functions of a notebook; with "spawn" they do not.
        "start_method": multiprocessing.get_start_method(allow_none=True),
        "recursion_limit": sys.getrecursionlimit(),
        "log_level": logging.getLogger().level,  # some report a loss by `logging.info`
    }


def results(function: Callable, *arguments: Any, seconds: float) -> Iterator[Any]:
    """Yield what a generator function yields in a process of its own, as it comes.

    Args:
        function: a function of ours, which is looked up by its name there.
        arguments: what it is called with; a learner's functions and classes, too. What it yields
            must be of a kind that JSON can hold.
        seconds: the processor time that each value may take, the process's and its children's.

    When this generator is closed, the process and all that it started are ended.
    Requests of several threads go to servers of their own.
    Raises: EndedError; `transfer.PackError` for arguments that cannot be sent, or loaded there;
    ValueError and OSError of the function itself, also a ValueError that says so if the workbook
    failed there.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder, "home")
        printed = Path(folder, "printed")
        home.mkdir()
        printed.touch()
        request = _request(function, arguments, home, printed)
        server = _take()
        worker = status = watch = None
        is_done = False
        try:
            server.ask(request)
            while status is None:
                message = server.next_message()
                if message is None and is_done:
                    break
                if message is None:  # measured only where nothing comes at once
                    pid = worker or server.process.pid
                    watch = watch or Stopwatch(seconds if worker else START_SECONDS, pid)
                    _expect_in_bounds(pid, watch, printed)
                    continue
                kind, value = message
                watch = None
                if kind == "started":
                    worker = value
                elif kind == "ended":
                    status = value
                elif kind == "value":
                    yield value
                elif kind == "done":
                    is_done = True
                else:
                    raise ERRORS[kind](value)
            if worker is None:  # nothing of the learner's was run
                raise ValueError(f"the process that checks could not start: Python {_how(status)}")
            if not is_done:
                raise EndedError(f"Python {_how(status)}; {_tail(printed)}", status)
        finally:
            # One that says it ended what it has not begun is not to be trusted.
            is_free = worker is not None and (status is not None or server.end_worker(worker))
            if is_free and server.is_usable() and not _idle:
                _idle.append(server)
            else:  # it is dead, or still at this request, or one is enough
                server.close()
            if not CAN_FORK:
                start()


def result(function: Callable, *arguments: Any, seconds: float) -> Any:
    """The one value that a generator function of ours yields there. Raises: as `results`."""
    values = list(results(function, *arguments, seconds=seconds))
    if not values:
        raise EndedError("Python ended without an answer")
    return values[-1]


def forked(function: Callable, *arguments: Any, printed: Path, seconds: float) -> Any:
    """The one value that a generator function of ours yields in a copy of this worker.

    For a worker that needs another process, and has run nothing of the learner's yet: it has all
    loaded that a new server would load first. Where a system cannot fork, it asks one.

    Args:
        printed: the file that the function writes its output to, for the error.

    Raises: EndedError.
    """
    if not CAN_FORK:
        return result(function, *arguments, seconds=seconds)
    reading, writing = os.pipe()
    key = secrets.token_hex()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        pid = os.fork()  # from 3.12 on it warns of threads: a worker has none, but a test may
    if pid == 0:
        os.setsid()  # a group of its own, which can be ended as a whole
        on_swallowed(lambda _: None)  # a verdict is the worker's to send
        channel = _Channel(os.fdopen(writing, "wb", buffering=0), key)
        try:
            *_, value = function(*arguments)
            channel.send("value", value)
        except BaseException:
            os.write(2, traceback.format_exc().encode())  # its end is quoted
            _leave(1)
        _leave(0)
    os.close(writing)
    watch = Stopwatch(seconds, pid)
    try:
        with os.fdopen(reading, "rb", buffering=0) as answers:
            message = None
            received = b""
            while message is None:
                if select.select([answers], [], [], LOOK_SECONDS)[0]:
                    part = answers.read(2**16)
                    if not part:  # it has ended
                        break
                    *lines, received = (received + part).split(b"\n")
                    message = next(filter(None, (_message(line, key) for line in lines)), None)
                if message is None:
                    _expect_in_bounds(pid, watch, printed)
    finally:
        end(pid)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if message is None:
        raise EndedError(f"Python {_how(status)}; {_tail(printed)}", status)
    return message[1]


def _expect_in_bounds(pid: int, watch: Stopwatch, printed: Path) -> None:
    """Raise EndedError if a worker has used up its time, or multiplies."""
    if watch.is_over():
        raise EndedError(f"it was stopped after {watch.seconds:g} s; {_tail(printed)}")
    below = len(family(pid)) - 1
    if below > MOST_CHILDREN:
        raise EndedError(
            f"it started {below} processes, more than {MOST_CHILDREN}, so all of them were"
            " stopped; give a pool fewer workers, and put what a script does under"
            ' `if __name__ == "__main__":`'
        )


def _how(status: int) -> str:
    """How a process ended, in words."""
    if status < 0:
        return f"was ended by signal {-status} ({signal.strsignal(-status)})"
    return f"ended with status {status}"


def _tail(printed: Path) -> str:
    text = printed.read_text("utf-8", errors="replace").strip()[-TAIL:]
    return f"its last output: {text}" if text else "it printed nothing"


def end(pid: int) -> None:
    """End a process and all those below it, and those that it left behind in its group."""
    with suppress(psutil.Error):
        psutil.Process(pid).suspend()  # so that it starts no more of them while we look
    kill(family(pid))
    if hasattr(os, "killpg"):
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


# In the server.


def serve() -> None:
    """Answer requests until the channel closes, each in a process of its own."""
    _adopt_orphans()
    requests = os.fdopen(os.dup(0), "rb")
    os.dup2(1, CHANNEL, inheritable=False)
    channel = _Channel(os.fdopen(CHANNEL, "wb", buffering=0))
    with open(os.devnull, "r+b") as nowhere:
        for number in (0, 1, 2):
            os.dup2(nowhere.fileno(), number)
    threads = _load()
    while (request := _read_request(requests)) is not None:
        channel.key = request["key"]
        if not CAN_FORK:
            _answer(request, channel, threads)
        if (worker := os.fork()) == 0:
            os.close(requests.fileno())
            _answer(request, channel, threads)
        while (status := os.waitpid(worker, os.WNOHANG)) == (0, 0):
            # Nothing is asked meanwhile: if there is something to read, whoever asks has ended.
            if select.select([requests], [], [], POLL_SECONDS)[0]:
                end(worker)
                return
        with suppress(OSError):  # what it left behind in its group
            os.killpg(worker, signal.SIGKILL)
        _end_orphans()
        channel.send("ended", os.waitstatus_to_exitcode(status[1]))


def _adopt_orphans() -> None:
    """Let processes that an attempt detaches become children of this one, where Linux can do so."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_orphans() -> None:
    """End what a worker detached, by `setsid` or a double fork: it is below this server now."""
    with suppress(ChildProcessError):  # once there is none left
        while True:
            kill(family()[1:])
            os.waitpid(-1, 0)


def _load() -> int:
    """Import what checks need, and use what torch loads at its first use, once for all workers.

    Returns the number of threads that torch would use. In this process it uses one: a fork has
    none of the others, and OpenMP would wait there for ever for those that it had started here.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for _, name, _ in pkgutil.walk_packages(checks.__path__, f"{checks.__name__}."):
        importlib.import_module(name)
    weight = torch.nn.Parameter(torch.ones(2, 2))
    weight.grad = (weight @ weight).cos().detach()
    # The first step takes seconds. There is no backward pass: where torch sees a GPU, the first one
    # starts threads, and then refuses every other one in a fork.
    torch.optim.SGD([weight]).step()
    # No worker looks for garbage among all of this again, which takes a fifth of a second each time
    # because every page that the collector touches is copied after a fork.
    gc.freeze()
    return threads


def _read_request(requests: BinaryIO) -> dict | None:
    """The next request; None if the channel was closed."""
    with suppress(EOFError, pickle.UnpicklingError):
        return pickle.load(requests)
    return None


# In the worker.


_printed: Path | None = None  # the file that holds what was printed in this worker
_channel: _Channel | None = None


def output() -> str:
    """What was printed in this worker and by its children, as far as it is kept."""
    if _printed is None:
        return ""
    with _printed.open("rb") as file:
        return file.read(KEPT_OUTPUT).decode("utf-8", errors="ignore").rstrip()


def finish(value: Any) -> None:
    """Send a last value and end this worker at once, whatever it is in the middle of."""
    _channel.send("value", value)
    _channel.send("done", None)
    _leave(0)


def _leave(status: int) -> NoReturn:
    """End this worker with all its children; threads that go on end with it."""
    kill(family()[1:])
    os._exit(status)


def _answer(request: dict, channel: _Channel, threads: int) -> None:
    """Call the function of a request, send each value that it yields, and end the process.

    torch may use as many threads there as it is told.
    """
    import torch

    torch.set_num_threads(threads)
    _move_in(request)
    global _channel, is_inside
    _channel = channel
    is_inside = True
    channel.send("started", os.getpid())
    pid = os.getpid()
    try:
        module, name = request["function"]
        arguments = transfer.unpack(request["arguments"])
        for value in getattr(importlib.import_module(module), name)(*arguments):
            if os.getpid() != pid:  # a copy that the attempt forked
                os._exit(0)
            channel.send("value", value)
        channel.send("done", None)
    except tuple(ERRORS.values()) as error:
        kind = next(name for name, kind in ERRORS.items() if isinstance(error, kind))
        channel.send(kind, str(error))
    except BaseException as error:
        os.write(2, traceback.format_exc().encode())  # its end is quoted
        if fault := fault_of_ours(error):
            channel.send("ValueError", fault.rstrip("."))
        _leave(1)
    _leave(0)


def _move_in(request: dict) -> None:
    """Take over the path, the environment and the folder of a request; catch what is printed."""
    if hasattr(os, "setsid"):
        os.setsid()  # a group of its own, which can be ended as a whole
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        with suppress(ValueError, OSError):  # where the limit is lower already
            resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_WRITTEN, MOST_WRITTEN))
    global _printed
    _printed = Path(request["printed"])
    with _printed.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    # Written at once, so that nothing is lost in a crash; if it is closed, the file stays open.
    raw = open(1, "wb", buffering=0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stderr = io.TextIOWrapper(raw, "utf-8", "replace", write_through=True)
    sys.__stdout__ = sys.__stderr__ = sys.stdout  # type: ignore[misc]
    sys.stdin = io.StringIO()
    builtins.input = _no_input
    set_recursion_limit = sys.setrecursionlimit
    sys.setrecursionlimit = lambda limit: set_recursion_limit(min(limit, DEEPEST))
    sys.setrecursionlimit(request["recursion_limit"])
    logging.getLogger().setLevel(request["log_level"])
    sys.path[:] = request["path"]
    sys.argv[:] = request["argv"]
    multiprocessing.set_start_method(request["start_method"], force=True)
    os.environ.clear()
    os.environ.update(request["environment"], MPLBACKEND="Agg")  # no window, nothing inline
    os.chdir(request["home"])
    # What is left behind there, as by a pool that is ended, goes with the request's folder.
    tempfile.tempdir = os.environ["TMPDIR"] = str(Path(request["home"]).parent)
    importlib.invalidate_caches()
    warnings.simplefilter("default")
    warnings.simplefilter("ignore", ResourceWarning)  # a file left open is not reported
    warnings.showwarning = lambda message, kind, *_: print(f"{kind.__name__}: {message}")
    # What fails in a thread or a destructor is not the verdict's business.
    sys.unraisablehook = lambda info: None
    threading.excepthook = lambda info: None


def _no_input(prompt: object = "") -> str:
    raise EOFError("a check cannot answer input(): pass values as arguments instead")
