"""A dry run: which runs are missing, how long they take, and whether disk and memory are enough.

Nothing is downloaded, trained or written, and it takes seconds. The time of a run follows from its
FLOPs and the peak of this machine, which a few matmuls measure, at the share of the peak that
recorded runs reached.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import torch

from workbook import accounting
from workbook import config as settings
from workbook.config import TrainConfig
from workbook.corpora import corpora
from workbook.experiments import records
from workbook.experiments.plans import Plan, Stage
from workbook.files import free_space
from workbook.tokenization import token_files
from workbook.training import devices
from workbook.training.data import expect_rows_for
from workbook.training.devices import matmul_peak
from workbook.training.trainer import Run, is_done, lack_of_memory, run_folder

ASSUMED_MFU = 0.3  # the share of the peak if no run on such a device has been recorded
LAUNCHES = 0.01  # the share of the peak below which a run mostly waits for kernels to be launched
CHECKPOINT = 3 * 4  # bytes per parameter: itself and AdamW's two moments, in float32


def report_plans(plans: Mapping[str, Plan], workers: int | None = None) -> int:
    """Print the dry run of experiments; return the exit status, 0 if this machine is ready.

    With `workers` the runs would be made side by side, each by a process of one thread.
    """
    missing: dict[str, TrainConfig] = {}  # by key: plans share runs
    for name, plan in plans.items():
        stage = Stage(plan)
        stage.advance()
        configs = stage.missing()
        missing |= {config.key: config for config in configs}
        more = ", and perhaps more after them" if configs else ""
        print(f"{name:16} runs to make next: {len(configs)}{more}")
    if not missing:
        print("\nAll runs have their records. There is nothing to do.")
        return 0
    return report_runs([*missing.values()], workers)


def report_runs(
    configs: Sequence[TrainConfig], workers: int | None = None, folder: Path | None = None
) -> int:
    """Print how long these runs take, and what to do before them; return 0 if nothing, else 1.

    `folder` is where data would be kept; None: where they are kept now.
    """
    for config in configs:
        if config.corpus in token_files.DEFAULTS:
            expect_rows_for(config, token_files.DEFAULTS[config.corpus][1])
    print("\nA dry run: nothing is downloaded, trained or kept.\n")
    gpus = len(devices.gpus()) if devices.pick_device(configs[0].device).type == "cuda" else 0
    side_by_side = min(workers or 1, gpus or math.inf)  # more workers than GPUs share them
    hours = sum(seconds_of(configs, workers)) / side_by_side / 3_600
    by_whom = f" with {workers} workers" if workers else ""
    print(f"{len(configs)} runs: about {hours:,.2f} hours{by_whom}.")
    # An experiment's checkpoints are deleted once its run has a record. Each worker needs room for
    # one more: a checkpoint is written whole before an old one is removed.
    needed = (workers or 1) * max(checkpoint_bytes(config) for config in configs)
    folder = (folder or settings.data_folder()).absolute()
    _, free = free_space(folder)
    print(f"Checkpoints need {needed / 1e9:,.1f} GB; {free / 1e9:,.1f} GB are free in {folder}.")
    todos = [
        f"`workbook data get {name}` downloads {corpora.CORPORA[name].volume}"
        for name in dict.fromkeys(config.corpus for config in configs)
        if not corpora.is_here(name) and not corpora.CORPORA[name].offline
    ]
    todos += filter(None, dict.fromkeys(map(lack_of_memory, configs)))
    if needed > free:
        todos.append("make room, or set WORKBOOK_DATA to a folder on a larger disk")
    print("\nNot ready. What to do:" if todos else "\nReady.")
    for number, todo in enumerate(todos, 1):
        print(f"{number}. {todo}")
    return 1 if todos else 0


def at_hand(asked: TrainConfig, small: TrainConfig) -> TrainConfig:
    """A run for a notebook to go on with: the one `asked` for if it has finished here, or `small`.

    If it has not, print the command that makes it and how long that takes: a notebook does not
    start hours of work by itself.
    """
    if asked == small or is_done(Run(asked, run_folder(asked))):
        return asked
    hours = seconds_of([asked])[0] / 3_600
    print(
        f"There is no run of {asked.tokens:,} tokens of {asked.corpus} on this disk yet: `workbook"
        f" train {asked.name}` makes it, in about {hours:,.1f} hours on this machine."
        f" Until then, the run of {small.tokens:,} tokens of {small.corpus} is used."
    )
    return small


def seconds_of(configs: Sequence[TrainConfig], workers: int | None = None) -> list[float]:
    """The expected seconds of each run by itself; with `workers`, on one thread of the CPU.

    All are taken to run on the device and in the precision of the first.
    """
    device = devices.pick_device(configs[0].device)
    precision = devices.pick_precision(device, configs[0].precision)
    # The peak is measured with all threads, and divided as if each added the same.
    threads = torch.get_num_threads() if workers and device.type == "cpu" else 1
    peak = matmul_peak(precision, str(device)) / threads
    described = devices.describe(device, precision)
    # FLOP/s that such runs really reach, evaluating and saving included.
    speed = peak * recorded_mfu(described["device"], described["precision"])
    return [min(flops(c, c.steps) / speed, c.max_seconds or math.inf) for c in configs]


def recorded_mfu(device: str, precision: str) -> float:
    """The median share of its peak that such a device reached in recorded runs.

    The log's seconds include evaluating and saving. Both names are as `devices.describe` has them.
    """
    shares = [
        flops(run.config, run.steps) / run.seconds / run.environment["peak_flops_per_second"]
        for run in records.all_records()
        if (run.environment["device"], run.precision) == (device, precision)
        and not run.diverged  # perhaps before its first step
    ]
    # A small model on a GPU tells how fast kernels are launched, and not how fast they compute.
    shares = [share for share in shares if share > LAUNCHES or device == "cpu"]
    return median(shares) if shares else ASSUMED_MFU


def flops(config: TrainConfig, steps: int) -> float:
    """The FLOPs of `steps` steps, evaluations included: a forward pass is a third of a step."""
    tokens = steps * config.batch_size * config.model.context_length
    evaluated = (1 + steps // config.eval_every) * config.eval_tokens
    return accounting.flops_per_token(config.model) * (tokens + evaluated / 3)


def checkpoint_bytes(config: TrainConfig) -> int:
    """The bytes that the checkpoints of a run take at most: those kept, and one being written."""
    kept = min(config.keep_checkpoints, math.ceil(config.steps / config.checkpoint_every))
    return (kept + 1) * CHECKPOINT * accounting.parameters(config.model).total
