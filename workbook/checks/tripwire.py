"""How code that swallowed a stop is stopped all the same, from Python 3.12 on."""

import _thread
import sys
import sysconfig
from pathlib import Path

# These are spared: they have to tidy up.
OURS = (str(Path(__file__).resolve().parents[1]), sysconfig.get_path("stdlib"), "<frozen")


class Tripwire:
    """Has every line of the code inside a `limit` raise the stop again, wherever it goes on.

    The lines of an `except` clause are among them, and what is raised there leaves its `try`: so no
    number of layers around each other outlasts it.
    """

    is_there = hasattr(sys, "monitoring")

    def __init__(self, stop: type[BaseException]):
        """To be made where the limit begins: what runs then, or waits for it, is not inside."""
        self.stop = stop
        self.thread = _thread.get_ident()
        self.tool = None
        self.outside, frame = set(), sys._getframe(2)
        while frame is not None:
            self.outside.add(frame.f_code)
            frame = frame.f_back

    def stretch(self) -> None:
        """Put it up, unless it is up or other tools have taken all places."""
        watch = sys.monitoring
        free = [tool for tool in range(6) if watch.get_tool(tool) is None]
        if self.tool is None and free:
            self.tool = free[-1]
            watch.use_tool_id(self.tool, "workbook")
            watch.register_callback(self.tool, watch.events.LINE, self._on_line)
            watch.set_events(self.tool, watch.events.LINE)

    def _on_line(self, code, line: int) -> None:
        inside = code not in self.outside and not code.co_filename.startswith(OURS)
        if inside and _thread.get_ident() == self.thread:
            raise self.stop

    def remove(self) -> None:
        """Take it away, if it is up."""
        if self.tool is not None:
            sys.monitoring.set_events(self.tool, sys.monitoring.events.NO_EVENTS)
            sys.monitoring.register_callback(self.tool, sys.monitoring.events.LINE, None)
            sys.monitoring.free_tool_id(self.tool)
            self.tool = None
