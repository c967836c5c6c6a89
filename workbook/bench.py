"""What a function costs, in time and memory; and what was recorded of our benches.

`measured` runs a function in a process of its own and reports its time and peak memory. The benches
that time us beside other libraries are in `tests/benchmarks/` of the repository; their records, in
`data/bench/`, come with the package, and the notebooks quote them.
"""

import cProfile
import json
import multiprocessing
import os
import pstats
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from workbook import config

if TYPE_CHECKING:  # a process that is measured must not pay for what it does not use
    import pandas as pd

SAMPLE_SECONDS = 0.05


# --- A process of its own -----------------------------------------------------------------------


@contextmanager
def own_process(initializer: Callable[..., object] | None = None, *args: Any) -> Iterator[Any]:
    """A context with a fresh process, as an executor, which has called `initializer(*args)`.

    An error in the context kills the process and its children: an interrupted cell leaves nothing
    running. What is called, its arguments and its result must be picklable: no lambda, nothing that
    is defined in a notebook. Raises: RuntimeError if the process dies.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork would hold what this process holds
    with ProcessPoolExecutor(1, spawn, initializer, args) as process:
        pid = process.submit(os.getpid).result()
        try:
            yield process
        except BrokenProcessPool as error:
            raise RuntimeError(
                "the process was killed; was there enough memory? Close other programs, or measure"
                " something smaller"
            ) from error
        except BaseException:
            for member in family(pid):
                with suppress(psutil.Error):
                    member.kill()
            raise


def family(pid: int) -> list[psutil.Process]:
    """A process, first, and all its children; none if it has ended."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run of a function in a process of its own."""

    result: Any
    seconds: float  # of the call alone: without the start of the process
    peak_bytes: int  # of the process and all its children together, the interpreter included
    parent_peak_bytes: int  # of the process without its children: what `RUSAGE_SELF` would say


def measured(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Measured:
    """Call `function(*args, **kwargs)` in `own_process`; measure its time and its peak memory.

    Nothing that was allocated before counts, but child processes do: the parent's memory alone
    would miss a pool's workers, where the work may be. Memory that processes share counts once if
    the system reports it (Linux). Memory is sampled 20 times per second. An exception in the
    function is raised here.
    """
    tree = parent = 0
    with own_process() as process:
        pid = process.submit(os.getpid).result()
        call = process.submit(_timed, function, args, kwargs)
        while not wait([call], SAMPLE_SECONDS).done:
            sizes = _memory(pid)
            tree, parent = max(tree, sum(sizes)), max(parent, *sizes[:1], 0)
        result, taken, own_peak = call.result()
    parent = max(parent, own_peak)  # the system's own record misses nothing between two samples
    return Measured(
        result=result, seconds=taken, peak_bytes=max(tree, parent), parent_peak_bytes=parent
    )


def _timed(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, float, int]:
    """In the process: the function's result, its seconds, and the peak memory by then."""
    start = time.perf_counter()
    result = function(*args, **kwargs)
    taken, peak = time.perf_counter() - start, 0
    with suppress(OSError):  # only Linux keeps this record
        # Not `getrusage`: a child starts there with the peak of the process that spawned it.
        status = Path("/proc/self/status").read_text()
        peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
    return result, taken, peak


def _memory(pid: int) -> list[int]:
    """The bytes that a process holds now, first, and those of each of its children."""
    sizes = []
    for process in family(pid):
        with suppress(psutil.Error):  # it ended meanwhile
            memory = process.memory_full_info()
            # Pages that processes share count once if the system reports it.
            sizes.append(getattr(memory, "pss", memory.uss))
    return sizes


# --- Where a function spends its time -----------------------------------------------------------


def profile(function: Callable[..., object], *args: Any, **kwargs: Any) -> "pd.DataFrame":
    """Call `function(*args, **kwargs)` and list the functions it spent its time in, slowest first.

    Columns: function, calls, seconds (its own, without callees), share (of all own seconds). Only
    this process is profiled: with an executor, the profile shows a parent that waits.
    """
    import pandas as pd

    profiler = cProfile.Profile()
    profiler.runcall(function, *args, **kwargs)
    statistics: dict[tuple[str, int, str], Any] = vars(pstats.Stats(profiler))["stats"]
    rows = [(_name(*place), calls, own) for place, (_, calls, own, _, _) in statistics.items()]
    table = pd.DataFrame(rows, columns=["function", "calls", "seconds"])
    table = table.groupby("function", as_index=False).sum()
    table["share"] = table["seconds"] / table["seconds"].sum()
    return table.sort_values("seconds", ascending=False, ignore_index=True)


def _name(file: str, line: int, function: str) -> str:
    """The name of a function in a table: module.function, or type.method if it is written in C.

    >>> _name("~", 0, "<method 'acquire' of '_thread.lock' objects>")
    'lock.acquire'
    """
    if file != "~":
        return f"{Path(file).stem}.{function}"
    if method := re.fullmatch(r"<method '(\w+)' of '(?:\w+\.)*(\w+)' objects>", function):
        return f"{method[2]}.{method[1]}"
    return function.strip("<>").removeprefix("built-in method ")


# --- Short works, and records -------------------------------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    """How long the call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def recorded(name: str) -> dict[str, Any]:
    """The record of that name that comes with the workbook, such as "train"."""
    file = config.shipped() / "data" / "bench" / f"{name}.json"
    return dict(json.loads(file.read_text(encoding="utf-8")))
