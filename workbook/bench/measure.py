"""The cost of a function (`measured`, `profile`), and what all benches share.

    round 1    workbook 170 MB/s   rustbpe 16 MB/s   tokenizers 5 MB/s
    round 2    workbook 168 MB/s   rustbpe 17 MB/s   tokenizers 5 MB/s
    ratio                          9.9 to 10.6       33 to 34

Competitors take turns, and a ratio compares two speeds of the same round: a busy neighbour slows
down all of one round. Every speed is kept, with the machine and the versions: with the user's data,
or, where `--record` asks for it, in `data/bench/`, which is in git.
"""

import cProfile
import json
import multiprocessing
import os
import pstats
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import psutil
from tqdm import tqdm

from workbook import config
from workbook.files import write_json

if TYPE_CHECKING:
    import pandas as pd  # imported where it is used: a process that is measured must not pay for it

SAMPLE_SECONDS = 0.05


# --- A process of its own -----------------------------------------------------------------------


@contextmanager
def own_process(initializer: Callable | None = None, *args) -> Iterator[ProcessPoolExecutor]:
    """A context in which a fresh process takes calls, after one of `initializer(*args)`.

    An error in the context kills the process and its children: an interrupted cell leaves nothing
    running. What is called, its arguments and its result must be picklable: no lambda, nothing that
    is defined in a notebook.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork would hold what this process holds
    with ProcessPoolExecutor(1, spawn, initializer, args) as process:
        pid = process.submit(os.getpid).result()
        try:
            yield process
        except BaseException:
            with suppress(psutil.Error):
                for each in family(pid):
                    each.kill()
            raise


def result_of(call: Future, name: str) -> Any:
    """The result of a call in `own_process`, or its exception; `name` says what was called.

    Raises: RuntimeError if the process has died.
    """
    try:
        return call.result()
    except BrokenProcessPool as error:
        raise RuntimeError(
            f"the process of {name!r} was killed; was there enough memory? Close other programs, or"
            " measure something smaller"
        ) from error


def family(pid: int) -> list[psutil.Process]:
    """A process, first, and all its children. Raises: psutil.Error."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run of a function in a process of its own."""

    result: Any
    seconds: float  # of the call alone: without the start of the process
    peak_bytes: int  # of the process and all its children together, the interpreter included
    parent_peak_bytes: int  # of the process without its children: what `RUSAGE_SELF` would say


def measured(function: Callable, *args, **kwargs) -> Measured:
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
            now = _memory(pid)
            tree, parent = max(tree, sum(now)), max(parent, *now[:1], 0)
        result, taken, own_peak = result_of(call, function.__name__)
    parent = max(parent, own_peak)
    return Measured(
        result=result, seconds=taken, peak_bytes=max(tree, parent), parent_peak_bytes=parent
    )


def _timed(function: Callable, args: tuple, kwargs: dict) -> tuple[Any, float, int]:
    """In the process: the function's result, its seconds, and the peak memory by then."""
    start = time.perf_counter()
    result = function(*args, **kwargs)
    return result, time.perf_counter() - start, own_peak_bytes()


def own_peak_bytes() -> int:
    """The peak memory of this process, without children; 0 if the system keeps no record."""
    try:
        # Not `getrusage`: a child starts there with the peak of the process that spawned it.
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except OSError:
        return 0


def _memory(pid: int) -> list[int]:
    """The bytes that a process holds now, first, and those of each of its children."""
    found = []
    with suppress(psutil.Error):
        for process in family(pid):
            with suppress(psutil.Error):  # it ended meanwhile
                memory = process.memory_full_info()
                # Pages that processes share count once if the system reports it.
                found.append(getattr(memory, "pss", memory.uss))
    return found


# --- Where a function spends its time -----------------------------------------------------------


def profile(function: Callable, *args, **kwargs) -> "pd.DataFrame":
    """Call `function(*args, **kwargs)` and list the functions it spent its time in, slowest first.

    Columns: function, calls, seconds (its own, without callees), share (of all own seconds). Only
    this process is profiled: with an executor, the profile shows a parent that waits.
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
    """The name of a function in a table: module.function, or type.method if it is written in C.

    >>> _name("~", 0, "<method 'acquire' of '_thread.lock' objects>")
    'lock.acquire'
    """
    if file != "~":
        return f"{Path(file).stem}.{function}"
    if method := re.fullmatch(r"<method '(\w+)' of '(?:\w+\.)*(\w+)' objects>", function):
        return f"{method[2]}.{method[1]}"
    return function.strip("<>").removeprefix("built-in method ")


# --- Competitors in turns, their table and its record --------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    """How long the call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turns(works: Mapping[str, Callable], rounds: int, title: str) -> dict[str, list]:
    """The results of every call by its name, round by round, with a progress bar."""
    found = {name: [] for name in works}
    for _ in tqdm(range(rounds), desc=title):
        for name, work in works.items():
            found[name].append(work())
    return found


def table(
    speeds: Mapping[str, Sequence[float]],
    unit: str,
    baseline: Callable[[str], str],
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    winner: str = "workbook is",
) -> str:
    """The speeds of competitors in every round as text, one row each.

    `baseline` gives, for the name of a competitor, the one that it is compared with, round by
    round; if no competitor has that name, with none. `columns` are more cells by row and heading;
    `winner` is the heading of the ratios.
    """
    rows = {}
    for name, each in speeds.items():
        cells = {f"best {unit}": max(each), "lowest": min(each), "runs": len(each)}
        cells |= {winner: "", "best to best": ""}
        other = baseline(name)
        if other in speeds and other != name:
            ratios = [one / two for one, two in zip(speeds[other], each, strict=True)]
            low, high = min(ratios), max(ratios)
            cells[winner] = f"{median(ratios):.1f}x as fast ({low:.1f} to {high:.1f})"
            cells["best to best"] = f"{max(speeds[other]) / max(each):.2f}x"
        rows[name] = {**(columns or {}).get(name, {}), **cells}
    return as_text(rows)


def as_text(cells: Mapping[str, Mapping[str, Any]]) -> str:
    """Cells by row and column as a text table of pandas, without blanks at the ends of lines."""
    import pandas as pd

    text = pd.DataFrame.from_dict(cells, orient="index").to_string(
        float_format=lambda value: f"{value:,.0f}" if value >= 1_000 else f"{value:,.1f}"
    )
    return "\n".join(line.rstrip() for line in text.splitlines())


def machine(libraries: Sequence[str]) -> dict:
    """The machine and the versions that the figures of a record belong to."""
    return {
        **config.machine(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "versions": config.versions(libraries),
    }


def place(record: dict, used: str) -> str:
    """Where a record was made: `used`, such as "one core", the processor, and the versions."""
    where = record["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in where["versions"].items())
    return f"{used} of {where['processor']} ({where['system']}, load {where['load']})\n{versions}"


def records_folder(in_git: bool) -> Path:
    """The folder for the records of a bench: the one in git, or one of the user's data.

    Raises: ValueError if there is no checkout that has the one in git.
    """
    if not in_git:
        return config.data_folder() / "timings"
    root = config.checkout()
    if root is None:
        raise ValueError(
            "--record writes to data/bench/ of a clone of the workbook, and this one was installed"
            " without; run `pip install -e .` in a clone, or leave out --record"
        )
    return root / "data" / "bench"


def keep(file: Path, record: dict, shown: str) -> str:
    """Write a record to `file`; return its table `shown` and where the record is."""
    write_json(file, record)
    return f"{shown}\nkept in {file}"


def recorded(name: str) -> dict:
    """The record of that name that comes with the workbook, such as "train"."""
    file = config.shipped() / "data" / "bench" / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8"))
