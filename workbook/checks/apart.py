"""A learner's code in a process of its own: it may crash, hang or multiply without harm.

The process runs a generator function of ours, and each value that it yields comes back as JSON as
soon as it is there. So what was found before a crash is not lost.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from workbook import config

MOST_CHILDREN = 48  # processes below it: a pool for each core of a large machine
LOOK_EVERY = 0.1  # seconds
TAIL = 600  # characters of what it printed last, for the error

# A process that is started with -c has no file: the workers of a pool, which run the main file
# again wherever `if __name__ == "__main__":` is missing, have nothing to run here.
CODE = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback: this process is not the user's own
sys.path.insert(0, {root!a})
import workbook  # this one, whichever is installed
sys.path.append(sys.path.pop(0))
from workbook.checks import apart
apart.serve({function!a}, {arguments!a}, {results!a})
"""


class EndedError(OSError):
    """The process ended, was too slow or started too many others; the message says which."""


def results(function: str, *arguments: Any, seconds: float) -> Iterator[Any]:
    """Yield what a generator function yields in a process of its own, as it comes.

    Args:
        function: "module:name" of a function of ours.
        arguments: what it is called with; anything that JSON can hold, like what it yields.
        seconds: the time that each value may take.

    When this generator is closed, the process and all that it started are ended.
    Raises: EndedError; ValueError and OSError of the function itself.
    """
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        lines, printed = Path(folder, "results"), Path(folder, "printed")
        lines.touch()
        code = CODE.format(
            root=str(config.PACKAGE.parent),
            function=function,
            arguments=json.dumps(arguments),
            results=str(lines),
        )
        with printed.open("wb") as output, lines.open(encoding="utf-8") as reader:
            process = subprocess.Popen(
                # -P: no file of the working directory is imported in place of Python's own;
                # -u: what it printed before a crash is not lost
                [sys.executable, "-P", "-u", "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,  # some open a log where they are, when they are imported
                start_new_session=True,  # Ctrl-C comes to us alone, and we end it
            )
            try:
                for kind, value in _lines(process, reader, seconds, printed):
                    if kind != "result":
                        raise {"ValueError": ValueError}.get(kind, OSError)(value)
                    yield value
            finally:
                end(process.pid)
                process.wait()


def result(function: str, *arguments: Any, seconds: float) -> Any:
    """The one value that a generator function of ours yields there. Raises: as `results`."""
    *_, found = results(function, *arguments, seconds=seconds)
    return found


def _lines(process, reader, seconds: float, printed: Path) -> Iterator[tuple[str, Any]]:
    """The lines that the process has written, until it ends as it should."""
    begun, line = time.monotonic(), ""
    while True:
        over = process.poll() is not None  # asked before the last look at what it wrote
        while part := reader.readline():
            line += part
            if line.endswith("\n"):
                yield tuple(json.loads(line))
                begun, line = time.monotonic(), ""
        if over:
            if process.returncode:
                raise EndedError(f"Python ended with status {process.returncode}; {_tail(printed)}")
            return
        if time.monotonic() - begun > seconds:
            raise EndedError(f"nothing came for {seconds:g} s, so it was stopped; {_tail(printed)}")
        with suppress(psutil.Error):
            below = len(psutil.Process(process.pid).children(recursive=True))
            if below > MOST_CHILDREN:
                raise EndedError(
                    f"it started {below} processes, more than {MOST_CHILDREN}, so all of them were"
                    " stopped; give a pool fewer workers, and put what a script does under"
                    ' `if __name__ == "__main__":`'
                )
        time.sleep(LOOK_EVERY)


def _tail(printed: Path) -> str:
    text = printed.read_text("utf-8", errors="replace").strip()[-TAIL:]
    return f"its last output: {text}" if text else "it printed nothing"


def end(pid: int) -> None:
    """End a process and all those below it."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        process.suspend()  # so that it starts no more of them while we look
        family = [process, *process.children(recursive=True)]
        for each in family:
            with suppress(psutil.Error):
                each.kill()


def serve(function: str, arguments: str, results: str) -> None:
    """Call the function in this process, and write each value that it yields to a file."""
    module, _, name = function.partition(":")
    with Path(results).open("a", encoding="utf-8", buffering=1) as file:

        def write(kind: str, value: Any) -> None:
            file.write(json.dumps([kind, value]) + "\n")
            file.flush()

        try:
            for value in getattr(import_module(module), name)(*json.loads(arguments)):
                write("result", value)
        except (ValueError, OSError) as error:
            write("ValueError" if isinstance(error, ValueError) else "OSError", str(error))
