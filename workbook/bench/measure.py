"""The cost of a function (`measured`, `profile`), and the table that all benches print.

    round 1    workbook 170 MB/s   rustbpe 16 MB/s   tokenizers 5 MB/s
    round 2    workbook 168 MB/s   rustbpe 17 MB/s   tokenizers 5 MB/s
    ratio                          9.9 to 10.6       33 to 34

Competitors take turns, and a ratio compares two speeds of the same round: a busy neighbour slows
down all of one round. Every speed is recorded in `data/bench/`, with the machine and the versions.
"""

import cProfile
import json
import multiprocessing
import os
import pstats
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import psutil

from workbook import config
from workbook.files import write_json

if TYPE_CHECKING:
    import pandas as pd  # imported where it is used: a process that is measured must not pay for it

SAMPLE_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run of a function in a process of its own."""

    result: Any
    seconds: float  # of the call alone: without the start of the process
    peak_bytes: int  # of the process and all its children together, the interpreter included
    parent_peak_bytes: int  # of the process without its children: what `RUSAGE_SELF` would say


def measured(function: Callable, *args, **kwargs) -> Measured:
    """Call `function(*args, **kwargs)` in a fresh process; measure its time and its peak memory.

    Nothing that was allocated before counts, and children do: the parent's memory alone would miss
    a pool's workers, where the work may be. Memory that processes share counts once where the
    system tells (Linux), and is sampled 20 times per second. The function, its arguments and its
    result must be picklable: no lambda, nothing that is defined in a notebook. An exception of the
    function is raised here.
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
    """Call the function in the child process and send its result or its exception back."""
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
    """The peak memory of this process, without children; 0 where the system keeps no record."""
    try:
        # Not `getrusage`: a child starts there with the peak of the process that spawned it.
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except OSError:
        return 0


def _memory(pid: int) -> list[int]:
    """The bytes that a process holds now, first, and those of each of its children."""
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


@dataclass(frozen=True, kw_only=True)
class Row:
    """One competitor in the table of a bench."""

    name: str
    speeds: Sequence[float]  # one per round; larger is better
    ours: Sequence[float] = ()  # what it is compared with, round by round; empty: nothing
    columns: Mapping[str, Any] = field(default_factory=dict)  # more cells, by their headings

    def cells(self, unit: str, winner: str) -> dict[str, Any]:
        """The cells of the row by their headings."""
        cells = {f"best {unit}": max(self.speeds), "lowest": min(self.speeds)}
        cells |= {"runs": len(self.speeds), winner: "", "best to best": ""}
        if self.ours and self.ours is not self.speeds:
            ratios = [one / other for one, other in zip(self.ours, self.speeds, strict=True)]
            cells[winner] = (
                f"{median(ratios):.1f}x as fast ({min(ratios):.1f} to {max(ratios):.1f})"
            )
            cells["best to best"] = f"{max(self.ours) / max(self.speeds):.2f}x"
        return self.columns | cells


def table(rows: Sequence[Row], unit: str, winner: str = "workbook is") -> str:
    """The rows as text; `winner` is the heading of the ratios, which are those of `Row.ours`."""
    return as_text({row.name: row.cells(unit, winner) for row in rows})


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
    """Where a record was made: `used`, such as "one core", of which processor; the versions."""
    where = record["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in where["versions"].items())
    return f"{used} of {where['processor']} ({where['system']}, load {where['load']})\n{versions}"


def keep(name: str, record: dict, shown: str, data: Path | None = None) -> str:
    """Write a record to `data`/bench; return its table `shown` and where the record is."""
    target = (data or config.repository() / "data") / "bench" / f"{name}.json"
    write_json(target, record)
    return f"{shown}\nrecorded in {target}"


def recorded(name: str) -> dict:
    """The record of that name in the repository, such as "train"."""
    file = config.repository() / "data" / "bench" / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8"))
