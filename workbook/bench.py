"""What a function costs, in time and memory; and what was recorded of our benches.

`measured` runs a function in a process of its own and reports its time and peak memory; `timed`
calls it several times; `trace` records every operation of one call. The times in stored notebooks
come from the first two and from `devices.best_seconds`, and nothing is stored while `disturbance`
finds the machine busy. The benches that time us beside other libraries are in `tests/benchmarks/`
of the repository; their records, in `data/bench/`, come with the package, and the notebooks quote
them.
"""

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from workbook import config
from workbook.files import write_json

SAMPLE_SECONDS = 0.05
QUIET_SHARE = 0.85  # of their cores' time that threads get on a quiet machine
QUIET_SPEED = 0.8  # of the FLOP/s that the machine has reached before


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
            kill(family(pid))
            raise


def family(pid: int | None = None) -> list[psutil.Process]:
    """A process (None: this one), first, and all below it; none if it has ended."""
    found = []
    with suppress(psutil.Error, OSError):  # it has ended, or there is no /proc to look into
        process = psutil.Process(pid)
        found.append(process)
        # Linux tells the children of each thread, in a tenth of the time that psutil takes to look
        # at every process of the machine.
        lists = [*Path(f"/proc/{process.pid}/task").glob("*/children")]
        if not lists:
            found += process.children(recursive=True)
        for each in lists:
            with suppress(OSError):  # a thread that has ended meanwhile
                for child in each.read_text().split():
                    found += family(int(child))
    return found


def kill(processes: list[psutil.Process]) -> None:
    """End processes at once; one that has ended is passed over."""
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


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
            tree = max(tree, sum(sizes))
            parent = max(parent, *sizes[:1], 0)
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
    taken = time.perf_counter() - start
    peak = 0
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


# --- Times that are stored -----------------------------------------------------------------------


@dataclass(frozen=True)
class Timing:
    """A call that was timed several times over."""

    result: Any  # of the last call
    seconds: list[float]  # of each call

    @property
    def best(self) -> float:
        """The shortest time: whatever else runs on the machine can only add to it."""
        return min(self.seconds)

    def __str__(self) -> str:
        rounds = len(self.seconds)
        longest = max(self.seconds)
        return f"{self.best:.2f} s (best of {rounds}, the longest {longest:.2f} s)"


def timed(
    function: Callable[..., Any],
    *args: Any,
    rounds: int = 3,
    clock: Callable[[], float] = time.process_time,
) -> Timing:
    """Call `function(*args)` several times and time each call.

    Arguments:
        clock: processor time, of all threads of this process together, leaves out other programs
            and child processes; `time.perf_counter` is the clock on the wall.
    """
    taken = []
    for _ in range(rounds):
        start = clock()
        result = function(*args)
        taken.append(clock() - start)
    return Timing(result, taken)


def disturbance() -> str | None:
    """Say why a time measured now would be wrong; None if the machine is quiet.

    Matmuls keep all of torch's threads busy for a second or two. On a busy machine the threads have
    to share their cores; where a virtual machine hides that, the matmuls are slower than before.
    """
    share, speed, threads = busy_threads()
    # Kept apart by threads: with fewer of them the peak is lower on the quietest machine.
    file = config.data_folder() / "timings" / f"matmul_peak_{threads}.json"
    before = json.loads(file.read_text()) if file.is_file() else 0
    write_json(file, max(speed, before))
    if share < QUIET_SHARE:
        return f"our threads got only {share:.0%} of their cores' time: close other programs"
    if speed < QUIET_SPEED * before:
        now, then = (f"{number / 1e9:.0f} GFLOP/s" for number in (speed, before))
        return f"a matmul reaches {now}, and {then} before; delete {file} if that is no longer true"
    return None


def busy_threads() -> tuple[float, float, int]:
    """The share of their cores' time that torch's threads get, a matmul's FLOP/s, the threads."""
    # Not above: a process that is measured would load torch for it, and show its memory.
    import torch

    from workbook.training.devices import matmul_peak

    threads = torch.get_num_threads()
    wall = time.perf_counter()
    processor = time.process_time()
    speed = max(matmul_peak() for _ in range(4))
    used = time.process_time() - processor
    passed = time.perf_counter() - wall
    return used / passed / threads, speed, threads


# --- Short works, and records -------------------------------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    """How long the call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def trace(work: Callable[[], object], path: str | os.PathLike[str]) -> dict[str, float]:
    """Run `work` once under torch's profiler, and write each operation of it to `path`.

    https://ui.perfetto.dev draws such a file, without uploading it. Returns the milliseconds that
    each kind of operation took on the CPU, without what it called in turn; the longest come first.
    """
    from torch.profiler import profile

    # The library below torch writes lines of its own to the standard error, whatever its log level.
    errors = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        with profile() as profiler:
            work()
    finally:
        os.dup2(errors, 2)
        os.close(errors)
        os.close(nowhere)
    profiler.export_chrome_trace(os.fspath(path))
    taken = {event.key: event.self_cpu_time_total / 1_000 for event in profiler.key_averages()}
    return dict(sorted(taken.items(), key=lambda item: -item[1]))


def recorded(name: str) -> dict[str, Any]:
    """The record of that name that comes with the workbook, such as "train"."""
    file = config.shipped() / "data" / "bench" / f"{name}.json"
    return dict(json.loads(file.read_text(encoding="utf-8")))
