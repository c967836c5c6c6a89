"""A time limit for a learner's code, in processor time: that the machine is busy is not its fault.

It stops code between two lines of Python, so that a verdict can name the line. What does not come
back to Python, or throws the stop away again and again, is ended with its process (`worker`).
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil

from workbook.bench import family

WALL_TIMES = 10  # in wall time a limit is this many times as long
# Of a core, and at least so many seconds, the tick of the clock: who uses less than that waits. Who
# works on two cores with forty others was seen to get 0.007.
IDLE_SHARE, IDLE_SECONDS = 0.002, 0.02
LOOK_SECONDS = 0.25  # between two looks at the clock, and between two stops
SWALLOWED = 4  # stops that the code may throw away: a `finally` of its own may need one


class TimedOut(Exception):  # noqa: N818 - read as a fact
    """The code was stopped, or it swallowed the stop and came back late."""

    def __init__(self, seconds: float):
        super().__init__(f"stopped after {seconds:g} s")
        self.seconds = seconds


class Stopped(BaseException):
    """Raised inside the code that ran too long. No `except Exception` catches it."""


def has_children() -> bool:
    """Whether this process has children; True where a system cannot tell without a search."""
    if not hasattr(os, "waitid"):
        return True
    try:
        # It only looks: a child that has ended is left for whoever waits for it.
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def processor_seconds(pid: int | None = None) -> float:
    """The processor time of a process (None: of this one) and of all that it started."""
    if pid is None and not has_children():  # the usual case, without a search of all processes
        return sum(os.times()[:4])  # its own and that of children which have ended
    total = 0.0
    for member in family(pid):
        with suppress(psutil.Error):
            total += sum(member.cpu_times()[:4])  # user, system, and those of ended children
    return total


class Stopwatch:
    """Tells when a process, with all that it started, has had its time.

    That is when it has used `seconds` of processor time; or when it has used next to none for as
    long, because then it waits for something that does not come; or after ten times as long.
    """

    def __init__(self, seconds: float, pid: int | None = None):
        self.seconds = seconds
        self.pid = pid
        self.begun = self.last_busy = time.monotonic()
        self.cost = 0.0  # of looking, if this process looks at itself
        self.before = self.used_then = processor_seconds(pid)  # `then` is when it was last busy

    def is_over(self) -> bool:
        """Whether the time is up, as of now."""
        started = time.process_time()
        now = time.monotonic()
        used = processor_seconds(self.pid) - self.cost
        if used - self.used_then > max(IDLE_SECONDS, IDLE_SHARE * (now - self.last_busy)):
            self.last_busy = now
            self.used_then = used
        if self.pid is None:
            self.cost += time.process_time() - started
        return (
            used - self.before >= self.seconds
            or now - self.last_busy >= max(self.seconds, 1.0)
            or now - self.begun >= WALL_TIMES * self.seconds
        )


def time_is_up(seconds: float) -> Callable[[], bool]:
    """A function that tells whether `seconds` have been used, for loops that go on until then."""
    watch = Stopwatch(seconds)
    # Looking at processes takes a while, and before that time is up by the wall clock it is not up.
    return lambda: time.monotonic() - watch.begun >= seconds and watch.is_over()


class _Limit:
    """A call that is being timed."""

    # The calls that are being timed, one inside the other. A single alarm serves all of them.
    active: list["_Limit"] = []  # noqa: RUF012 - there is one alarm in a process
    handler: Any = None  # of the alarm before
    swallowed: Callable[[TimedOut], Any] | None = None

    def __init__(self, seconds: float):
        self.watch = Stopwatch(seconds)
        self.process = os.getpid()
        self.stops = 0  # that were raised so far
        self.stop = type("Stopped", (Stopped,), {})  # one class per call: calls may be nested

    def begin(self) -> None:
        if not self.active:
            _Limit.handler = signal.signal(signal.SIGALRM, _on_alarm)
        self.active.append(self)
        _set_alarm()

    def end(self) -> None:
        if self not in self.active:
            return
        self.active.remove(self)
        if os.getpid() != self.process:  # the code forked: this copy must not do what follows
            os._exit(0)
        _set_alarm()
        if not self.active:
            signal.signal(signal.SIGALRM, self.handler or signal.SIG_DFL)


def _set_alarm(seconds: float | None = None) -> None:
    """Set the alarm for when the first of the limits may be over; off, if there is none.

    A process cannot use more than a second per second, but for its children: that is why nothing
    is measured before the wall clock says so. The alarm repeats, because one may be lost: if it
    comes right before the main thread begins to wait for a lock, Python handles it after that wait.
    """
    now = time.monotonic()
    ends = [limit.watch.begun + limit.watch.seconds - now for limit in _Limit.active]
    if seconds is None:
        seconds = max(LOOK_SECONDS, min(ends)) if ends else 0
    signal.setitimer(signal.ITIMER_REAL, seconds, LOOK_SECONDS)  # 0 seconds: off


def _on_alarm(signum: int, frame: Any) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)  # on a busy machine a look outlasts the next alarm
    for limit in list(_Limit.active):  # the outermost first
        if limit.stops or limit.watch.is_over():
            _set_alarm(LOOK_SECONDS)
            limit.stops += 1
            if limit.stops > SWALLOWED and _Limit.swallowed:
                _Limit.swallowed(TimedOut(limit.watch.seconds))
            raise limit.stop
    _set_alarm()


def limited(seconds: float, function: Callable[[], Any]) -> Any:
    """Return what the function returns. Raises: TimedOut, with what it was doing as the cause.

    Where there is no alarm (on Windows, and on other threads than the main one) it runs as long as
    it likes: there, only the limit of its process holds.

    A stop that breaks into a destructor is thrown away by the interpreter; the next one follows.
    A child process that the function forked ends where it would return: it is a copy of this
    process, and would repeat what follows.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not (is_main and hasattr(signal, "setitimer")):
        return function()
    limit = _Limit(seconds)
    try:
        limit.begin()
        try:
            result = function()
        finally:
            limit.end()  # a stop may arrive in here as well
    except BaseException as error:
        limit.end()
        if limit.stops:
            raise TimedOut(seconds) from error
        raise
    if limit.stops:
        raise TimedOut(seconds)
    return result


def on_swallowed(action: Callable[[TimedOut], Any]) -> None:
    """Set what is done about code that throws every stop away; it should end the process."""
    _Limit.swallowed = staticmethod(action)
