"""A time limit for code that we did not write and cannot trust to stop by itself."""

import _thread
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

from workbook.checks.tripwire import Tripwire

REPEAT_SECONDS = 0.5  # between two tries: long enough for a `finally` of the learner's to tidy up
NEAR = 50  # frames: what the end of a `limit` calls is never as deep
end_process, process_id = os._exit, os.getpid  # as they are before an attempt can replace them


class TimedOut(Exception):  # noqa: N818 - read as a fact, like `limit`
    """The code inside a `limit` was stopped, or it swallowed the stop and came back late."""

    def __init__(self, seconds: float):
        super().__init__(f"stopped after {seconds:g} s")
        self.seconds = seconds


class Stopped(BaseException):
    """What is raised inside the code that ran too long. No `except Exception` catches it."""


class limit:  # noqa: N801 - read as a phrase: `with limit(5):`
    """A block that is stopped after `seconds`; `TimedOut` is raised where it ends.

    On the main thread of Unix an alarm signal interrupts even a sleep. Elsewhere the exception is
    planted from a second thread, and arrives when the interpreter runs its next line. Neither
    breaks into one long call of C code, such as `sum(range(10**12))`: it stops when that returns.

    A bare `except:` in an endless loop would swallow the stop. Where there is a `Tripwire`, the
    second stop puts it up. On Python 3.11 the exception, when it is thrown away, sets off the next
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
            self.tripwire.stretch()
        self.expired = True

    def _on_unraisable(self, unraisable) -> None:
        if not issubclass(unraisable.exc_type, Stopped):
            self.old_hook(unraisable)

    def _on_alarm(self, signum, frame) -> None:
        # Raised at the door, the stop would leave the alarm on for whatever comes after the block.
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
    """What the function returns, or `TimedOut`.

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
