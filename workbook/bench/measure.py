"""What a function costs: seconds, memory of all its processes, and where the time goes."""

import cProfile
import multiprocessing
import pstats
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    import pandas as pd  # only `profile` needs it: a process that is measured must not pay for it

SAMPLE_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run of a function in a process of its own."""

    result: Any
    seconds: float  # of the call alone: without the start of the process
    peak_bytes: int  # of the process and all its children together, the interpreter included
    parent_peak_bytes: int  # of the process without its children: what `RUSAGE_SELF` would say


def measured(function: Callable, *args, **kwargs) -> Measured:
    """What `function(*args, **kwargs)` returned, took and held at its peak, children included.

    The run has a fresh process, so nothing that was allocated before counts, and children are
    seen: a figure for the parent alone misses a pool's workers, where the work may be. Memory that
    processes share counts once where the system tells (Linux), and is sampled 20 times a second.
    The function, its arguments and its result must fit between processes: no lambda, nothing that
    is defined in a notebook. Its exception is raised here.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(there, function, args, kwargs))
    process.start()
    there.close()
    tree, parent = 0, 0
    try:
        while not here.poll(SAMPLE_SECONDS) and process.is_alive():
            now = _memory(process.pid)
            tree, parent = max(tree, sum(now)), max(parent, *now[:1], 0)
        error, result, seconds, own_peak = here.recv()
    except EOFError:
        process.join()
        raise RuntimeError(
            f"the process that ran {function.__name__} died (exit code {process.exitcode}); it may "
            f"have run out of memory: measure a smaller input"
        ) from None
    except BaseException:
        process.terminate()  # an interrupted cell leaves nothing running
        raise
    finally:
        process.join()
        here.close()
    if error is not None:
        raise error
    parent = max(parent, own_peak)
    return Measured(
        result=result, seconds=seconds, peak_bytes=max(tree, parent), parent_peak_bytes=parent
    )


def _run(connection: Connection, function: Callable, args: tuple, kwargs: dict) -> None:
    """Call the function in the child and send back what came of it."""
    start = time.perf_counter()
    error = result = None
    try:
        result = function(*args, **kwargs)
    except Exception as raised:
        error = raised
    seconds = time.perf_counter() - start
    try:
        connection.send((error, result, seconds, own_peak_bytes()))
    except Exception as raised:  # the result cannot be pickled
        connection.send((raised, None, seconds, own_peak_bytes()))


def own_peak_bytes() -> int:
    """The peak of this process alone since it began; 0 where the system keeps no such record."""
    try:
        # Not `getrusage`: a child starts there with the peak of the process that spawned it.
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except OSError:
        return 0


def _memory(pid: int) -> list[int]:
    """The bytes held now by a process, first, and by each of its children."""
    found = []
    try:
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return found
    for process in processes:
        try:
            memory = process.memory_full_info()
        except psutil.Error:  # it ended meanwhile
            continue
        # Pages that processes share count once where the system tells.
        found.append(getattr(memory, "pss", memory.uss))
    return found


def profile(function: Callable, *args, **kwargs) -> "pd.DataFrame":
    """The functions that the call spent its time in, the slowest first.

    Columns: function, calls, seconds (its own, callees left out), share (of all own seconds). Only
    this process is seen: with an executor, the profile shows a parent that waits.
    """
    import pandas as pd

    profiler = cProfile.Profile()
    profiler.runcall(function, *args, **kwargs)
    rows = [
        (_name(*place), calls, own)
        for place, (_, calls, own, _, _) in pstats.Stats(profiler).stats.items()
    ]
    table = pd.DataFrame(rows, columns=["function", "calls", "seconds"])
    table = table.groupby("function", as_index=False).sum()
    table["share"] = table["seconds"] / table["seconds"].sum()
    return table.sort_values("seconds", ascending=False, ignore_index=True)


def _name(file: str, line: int, function: str) -> str:
    """How a function is called in a table: module.function, or type.method of one written in C.

    >>> _name("~", 0, "<method 'acquire' of '_thread.lock' objects>")
    'lock.acquire'
    """
    if file != "~":
        return f"{Path(file).stem}.{function}"
    if method := re.fullmatch(r"<method '(\w+)' of '(?:\w+\.)*(\w+)' objects>", function):
        return f"{method[2]}.{method[1]}"
    return function.strip("<>").removeprefix("built-in method ")
