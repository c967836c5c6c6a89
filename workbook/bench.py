"""What a function, a training step or a killed run costs; and what was recorded of our benches.

`measured` runs a function in a process of its own and reports its time and peak memory. The benches
that time us beside other libraries are in `tests/benchmarks/` of the repository; their records, in
`data/bench/`, come with the package, and the notebooks quote them.
"""

import cProfile
import json
import math
import multiprocessing
import os
import pstats
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import psutil

from workbook import config

if TYPE_CHECKING:  # a process that is measured must not pay for what it does not use
    import pandas as pd

    from workbook.config import TrainConfig
    from workbook.training.data import TrainData
    from workbook.training.train import Trainer

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


# --- Records, and our own step and run taken apart ----------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    """How long the call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def recorded(name: str) -> dict:
    """The record of that name that comes with the workbook, such as "train"."""
    file = config.shipped() / "data" / "bench" / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8"))


@contextmanager
def open_trainer(config: "TrainConfig", data: "TrainData") -> "Iterator[Trainer]":
    """A trainer that is about to take its first step, with a log that nobody keeps."""
    from workbook.training.log import RunLog
    from workbook.training.train import Run, Trainer

    with TemporaryDirectory() as folder:
        config = replace(config, eval_tokens=2_048)
        with RunLog(folder) as log:
            trainer = Trainer(Run(config, Path(folder)), data, log)
            trainer.begin(None)
            yield trainer


def step_times(config: "TrainConfig", data: "TrainData", steps: int = 20) -> dict[str, float]:
    """The seconds of each part of a step, the shortest of `steps` steps that are all logged.

    The parts are data, forward, backward, clip, update and log.
    """
    from workbook.training import devices

    best: dict[str, float] = {}
    with open_trainer(config, data) as trainer:
        clock = time.perf_counter()

        def take_time(part: str) -> None:
            nonlocal clock
            devices.synchronize(trainer.device)
            now = time.perf_counter()
            best[part] = min(best.get(part, math.inf), now - clock)
            clock = now

        trainer.on_part = take_time
        for _ in range(steps):
            loss, norm = trainer.update()
            trainer.record(loss, norm, evaluates=False)
    return best


def killed_run(config: "TrainConfig", folder: Path, at_step: int) -> int:
    """Train in a process that is killed when `at_step` is logged; return the last logged step.

    SIGKILL cannot be caught: it is to a process what a power cut is to a machine.
    """
    from workbook.training import log

    with own_process() as process:
        try:
            process.submit(_train_until, config, folder, at_step).result()
        except BrokenProcessPool:
            return log.records(folder)[-1]["step"]
    raise RuntimeError(f"the run ended by itself, before step {at_step} was logged")


def _train_until(config: "TrainConfig", folder: Path, at_step: int) -> None:
    """Train until the step is logged, then kill this process: one that watches might be late."""
    from workbook.training.data import prepare
    from workbook.training.train import train

    def kill_at_step(record: dict) -> None:
        if record["step"] == at_step:
            os.kill(os.getpid(), signal.SIGKILL)

    train(config, prepare(config), folder, [kill_at_step])
