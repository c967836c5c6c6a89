"""A dry run: whether this machine is ready for runs and how long they take, before any begins.

Hours are told in two ways: from the FLOPs of the accounting at an assumed share of the machine's
peak, and from steps that are taken on random ids and forgotten.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import psutil
import torch
from tqdm import tqdm

from workbook import accounting
from workbook.accounting.measured import matmul_peak
from workbook.config import TrainConfig
from workbook.experiments.foresight import unfolded
from workbook.experiments.needs import (
    Finding,
    free_memory,
    in_gb,
    look_at_disk,
    look_at_memory,
    look_at_text,
    memory_bytes,
    step_name,
    texts,
)
from workbook.experiments.plans import Plan
from workbook.tokenization.tokenizer import token_dtype
from workbook.training import checkpoints, devices
from workbook.training.data import TrainData
from workbook.training.processes import Team
from workbook.training.train import Trainer

ASSUMED_MFU = 0.3  # of the accounting: what small models reach, about
STEPS, PATIENCE = 20, 60.0  # steps that are measured, or as many as fit into so many seconds
RANDOM_IDS = 1 << 20
BUSY = 0.25  # of the processor: more than that falsifies a measurement
HOUR = 3_600  # seconds


def tell(plans: Mapping[str, Plan], workers: int | None = None) -> int:
    """The exit status of a dry run of experiments, 0 where all is ready; prints what was found.

    With `workers` the runs would be made side by side, each by a process of one thread.
    """
    known: dict[str, TrainConfig] = {}
    later: dict[str, TrainConfig] = {}
    print("A dry run: nothing is downloaded, trained or kept.\n")
    for name, plan in plans.items():
        now, then = unfolded(plan)
        known |= {config.key: config for config in now}
        later |= {config.key: config for config in then}
        print(f"{name:16} runs to make next: {len(now)}")
    if not known:
        print("\nAll runs have their records. There is nothing to do.")
        return 0
    then = [config for key, config in later.items() if key not in known]
    print(
        f"\nRuns known so far, each counted once: at least {len(known)}; later rounds depend on"
        f" their results.\nIf the middle rates are the best, about {len(then)} more follow."
    )
    return told(list(known.values()), then, workers)


def tell_run(config: TrainConfig) -> int:
    """The exit status of a dry run of one training run; prints what was found."""
    print("A dry run: nothing is downloaded, trained or kept.")
    return told([config], [], None)


def told(known: Sequence[TrainConfig], later: Sequence[TrainConfig], workers: int | None) -> int:
    """0 where this machine is ready for these runs, else 1; prints what was found, and what to do.

    Memory is looked at before the measurement takes some.
    """
    everything = [*known, *later]
    found = [look_at_text(text) for text in texts(everything)]
    found += [look_at_disk(everything, workers or 1), *look_at_memory(everything, workers or 1)]
    others = psutil.cpu_percent(1.0) / 100
    with threads(1 if workers else torch.get_num_threads()):
        costs = [cost(group) for group in tqdm(groups(known), desc="measure")]
    print("", *table([HEAD, *(each.row() for each in costs)]), sep="\n")
    found.append(look_at_hours(costs, later, workers))
    if any(each.step and each.step[1] < STEPS for each in costs):
        print(f"Fewer than {STEPS} steps were measured: those would take more than a minute.")
    if others > BUSY:
        print(f"Other programs keep {others:.0%} of the processor busy: alone it would be quicker.")
    print()
    for each in found:
        print(f"{each.about:8} {'ready' if each.ready else 'TO DO':6} {each.text}")
    todo = list(dict.fromkeys(each.todo for each in found if not each.ready))
    print(f"\n{'Not ready. What to do:' if todo else 'Ready.'}")
    for number, words in enumerate(todo, 1):
        print(f"{number}. {words}")
    return 1 if todo else 0


@dataclass(frozen=True)
class Cost:
    """Runs whose steps cost the same, and what one of them takes."""

    runs: int
    config: TrainConfig
    peak: float  # FLOP/s of this machine
    step: tuple[float, int] | None  # seconds of a step, and how many were measured

    def expected(self) -> float:
        """The seconds of a run by the accounting, at `ASSUMED_MFU`."""
        return capped(self.config, flops(self.config) / (self.peak * ASSUMED_MFU))

    def measured(self) -> float | None:
        """The seconds of a run by the steps that were measured."""
        if self.step is None:
            return None
        step_flops = accounting.step_flops(self.config.model, self.config.batch_size)
        return capped(self.config, self.step[0] * flops(self.config) / step_flops)

    def row(self) -> tuple[str, ...]:
        """A row of the table."""
        measured = "not measured: no room"
        if self.step is not None:
            seconds, steps = self.step
            measured = f"{hours(self.measured())} ({steps} of {STEPS} steps, {seconds:.3g} s each)"
        return (
            f"{self.runs}",
            self.config.name,
            step_name(self.config),
            f"{self.config.tokens:,}",
            in_gb(memory_bytes(self.config)),
            f"{hours(self.expected())} ({ASSUMED_MFU:.0%} of {self.peak / 1e9:,.0f} GFLOP/s)",
            measured,
        )


HEAD = (
    "runs",
    "such as",
    "a step",
    "tokens",
    "memory",
    "hours by the accounting",
    "hours as measured",
)


def groups(configs: Iterable[TrainConfig]) -> list[list[TrainConfig]]:
    """The runs in groups whose runs cost the same."""
    found: dict[tuple, list[TrainConfig]] = {}
    for config in configs:
        update = config.optimizer.update
        same = (config.model, config.batch_size, config.accumulation, config.device, update)
        more = (config.precision, config.compile, config.steps, config.max_seconds)
        found.setdefault(same + more, []).append(config)
    return list(found.values())


@contextmanager
def threads(count: int) -> Iterator[None]:
    """A context in which torch computes with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def cost(group: Sequence[TrainConfig]) -> Cost:
    """What a run of the group costs, measured if a step finds room in memory."""
    config = group[0]
    device = devices.pick_device(config.device)
    devices.tune(device)
    peak = matmul_peak(devices.pick_precision(device, config.precision), str(device))
    step = None
    if memory_bytes(config) <= free_memory(device):
        with suppress(torch.OutOfMemoryError):
            step = step_seconds(config)
    return Cost(len(group), config, peak, step)


def step_seconds(config: TrainConfig) -> tuple[float, int]:
    """The seconds of a step on random ids, the mean of `STEPS`, or of how many it then says.

    Two steps come first and do not count: memory is fetched, kernels are chosen or compiled. Where
    all would take more than a minute fewer are measured, and where the first does it alone is.
    Nothing is written.
    """
    vocab_size = config.model.vocab_size
    random = np.random.default_rng(config.seed)
    ids = random.integers(0, vocab_size, RANDOM_IDS, token_dtype(vocab_size))
    data = TrainData(train=ids, validation=ids, token_bytes=np.ones(vocab_size, np.int64))
    before = checkpoints.random_state()
    try:
        trainer = Trainer(replace(config, max_seconds=None), Path(), data, Team())

        def take(count: int) -> float:
            devices.synchronize(trainer.device)
            start = time.perf_counter()
            for _ in range(count):
                trainer.update()
            devices.synchronize(trainer.device)
            return (time.perf_counter() - start) / count

        first = take(1)
        if first > PATIENCE:
            return first, 1
        count = max(1, min(STEPS, int(PATIENCE / take(1))))
        return take(count), count
    finally:
        checkpoints.restore_random_state(before)


def flops(config: TrainConfig) -> float:
    """The FLOPs of a run, its evaluations among them: a forward pass is a third of a step."""
    evaluations = 1 + config.steps // config.eval_every
    tokens = config.tokens + evaluations * config.eval_tokens / 3
    return accounting.flops_per_token(config.model) * tokens


def capped(config: TrainConfig, seconds: float) -> float:
    """The seconds of a run that would take so many, if its time allows."""
    return min(seconds, config.max_seconds or math.inf)


def look_at_hours(
    costs: Sequence[Cost], later: Sequence[TrainConfig], workers: int | None = None
) -> Finding:
    """How long all runs take, one after the other or shared by the workers: both ways to tell.

    Imagined runs are not measured: they are taken to differ from the accounting as the others do.
    """
    peak, sharing = costs[0].peak, workers or 1
    now = sum(each.runs * each.expected() for each in costs) / sharing
    then = sum(capped(config, flops(config) / (peak * ASSUMED_MFU)) for config in later) / sharing
    if any(each.step is None for each in costs):
        text = f"{hours(now + then)} by the accounting; not measured, for want of memory"
        return Finding("hours", text, "make room in memory, so that a step can be measured")
    ratio = sum(each.runs * each.measured() for each in costs) / sharing / now
    text = f"{hours(now)} by the accounting, {hours(now * ratio)} as measured"
    if later:
        both = hours(now + then), hours((now + then) * ratio)
        text += f"; with the runs imagined {both[0]} and {both[1]}"
    if workers:
        text += f"; workers of one thread each: {workers}"
    return Finding("hours", text)


def hours(seconds: float) -> str:
    """Seconds in hours, as exact as a prediction can be: "0.15 h"."""
    return f"{seconds / HOUR:.2g} h" if seconds < 100 * HOUR else f"{seconds / HOUR:,.0f} h"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines, their cells below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
