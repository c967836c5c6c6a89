"""Ctrl-C at a good moment: the step in hand is finished and saved before the run stops."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Ctrl-C or "interrupt the kernel"; a cluster's warning, in two ways; a terminal that was closed.
# Windows lacks the last two.
NAMES = ("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP")
STOPS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))
HANG_UP = getattr(signal, "SIGHUP", None)


class Wish:
    """Whether somebody has asked for an end."""

    def __init__(self):
        self.said: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.said is not None


@contextmanager
def wish_to_stop() -> Iterator[Wish]:
    """A wish that the first signal to stop makes true; a second one stops at once.

    Outside of the main thread signals cannot be caught, and do what they always do. SIGHUP stays
    ignored where it is, as under `nohup`.
    """
    wish = Wish()
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return
    before = {number: signal.getsignal(number) for number in STOPS}
    if before.get(HANG_UP) is signal.SIG_IGN:
        del before[HANG_UP]

    def hear(number, _frame):
        wish.said = signal.Signals(number)
        signal.signal(number, before[number] or signal.SIG_DFL)

    for number in before:
        signal.signal(number, hear)
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
