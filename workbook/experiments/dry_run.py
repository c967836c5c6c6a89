"""A dry run: which runs are missing, how long they take, and what they need from this machine.

Nothing is downloaded, trained or written, and it takes seconds. The time of a run follows from its
FLOPs and the peak of this machine, which a few matmuls measure, at the share of the peak that
recorded runs reached.
"""

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

import pandas as pd
import psutil
import torch

from workbook import accounting
from workbook import config as settings
from workbook.config import TrainConfig
from workbook.corpora import corpora
from workbook.corpora.download import UNPACKED
from workbook.experiments import records
from workbook.experiments.plans import Plan, Stage, as_computed
from workbook.tokenization import token_files
from workbook.training import devices
from workbook.training.devices import matmul_peak
from workbook.training.train import Run, is_done, run_folder

ASSUMED_MFU = 0.3  # the share of the peak if no run on such a device has been recorded
CHECKPOINT = 3 * 4  # bytes per parameter: itself and AdamW's two moments, in float32
PROCESS = 500_000_000  # bytes that Python and torch take for themselves, about
# Bytes of each score that attention keeps in half precision where no kernel spares them: a weight
# in float32, and a copy in half precision for the matmul with the values.
SCORE = 6

# What was checked, in words, and what to do about it: empty if nothing.
Finding = tuple[str, str]


def report_plans(
    plans: Mapping[str, Plan], workers: int | None = None, accumulation: int = 1
) -> int:
    """Print the dry run of experiments; return the exit status, 0 if this machine is ready.

    With `workers` the runs would be made side by side, each by a process of one thread; batches
    would be computed in `accumulation` parts, as in `plans.run`.
    """
    missing: dict[str, TrainConfig] = {}  # by key: plans share runs
    for name, plan in plans.items():
        stage = Stage(plan)
        stage.advance()
        found = stage.missing()
        missing |= {config.key: as_computed(config, accumulation) for config in found}
        more = ", and perhaps more after them" if found else ""
        print(f"{name:16} runs to make next: {len(found)}{more}")
    if not missing:
        print("\nAll runs have their records. There is nothing to do.")
        return 0
    return report([*missing.values()], workers)


def report(configs: Sequence[TrainConfig], workers: int | None = None) -> int:
    """Print how long these runs take and what they lack; return 0 if nothing, else 1."""
    print("\nA dry run: nothing is downloaded, trained or kept.\n")
    gpus = len(devices.gpus()) if devices.pick_device(configs[0].device).type == "cuda" else 0
    side_by_side = min(workers or 1, gpus or math.inf)  # more workers than GPUs share them
    seconds = seconds_of(configs, workers)
    table = pd.DataFrame(
        {
            "corpus": [config.corpus for config in configs],
            "batch": [config.batch_size for config in configs],
            "runs": 1,
            "GB of memory": [memory_bytes(config) / 1e9 for config in configs],
            "hours": [each / side_by_side / 3_600 for each in seconds],
        }
    )
    summary = {"runs": "sum", "GB of memory": "max", "hours": "sum"}
    by_step = table.groupby(["corpus", "batch"], as_index=False).agg(summary)
    print(by_step.to_string(index=False, float_format="{:,.2f}".format))
    share = "a GPU for each" if gpus else "one thread each"
    by_whom = f", by {workers} workers with {share}" if workers else ""
    print(f"\nAbout {table['hours'].sum():,.2f} hours in all{by_whom}.")
    wanted = {(each.corpus, each.corpus_bytes, each.model.vocab_size): each for each in configs}
    found = [text_finding(config) for config in wanted.values()]
    findings = [finding for finding, _ in found]
    findings.append(disk_finding(configs, sum(size for _, size in found), workers or 1))
    sharing = math.ceil((workers or 1) / (gpus or 1))  # the memory of one device
    findings.append(memory_finding(max(configs, key=memory_bytes), sharing))
    for words, todo in findings:
        print(f"{'TO DO' if todo else 'ready':6} {words}")
    todos = dict.fromkeys(todo for _, todo in findings if todo)
    print(f"\n{'Not ready. What to do:' if todos else 'Ready.'}")
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
    where = devices.pick_device(asked.device).type
    print(
        f"There is no run of {asked.tokens:,} tokens of {asked.corpus} on this disk yet: `workbook"
        f" train {asked.name}` makes it, in about {hours:,.1f} hours on this machine ({where})."
        f" Until then, the run of {small.tokens:,} tokens of {small.corpus} is used."
    )
    return small


def seconds_of(configs: Sequence[TrainConfig], workers: int | None = None) -> list[float]:
    """The expected seconds of each run by itself; with `workers`, on one thread of the CPU.

    All are taken to run on the device and in the precision of the first.
    """
    device = devices.pick_device(configs[0].device)
    precision = devices.pick_precision(device, configs[0].precision)
    threads = torch.get_num_threads() if workers and device.type == "cpu" else 1
    peak = matmul_peak(precision, str(device)) / threads
    speed = peak * mfu(**devices.describe(device, precision))
    return [min(flops(each, each.steps) / speed, each.max_seconds or math.inf) for each in configs]


def mfu(device: str, precision: str, **_) -> float:
    """The median share of its peak that such a device reached in recorded runs.

    The log's seconds include evaluating and saving. The arguments are what `devices.describe`
    returns.
    """
    found = [
        flops(run.config, run.steps) / run.seconds / run.environment["peak_flops_per_second"]
        for run in records.all_records()
        if (run.environment["device"], run.environment["precision"]) == (device, precision)
        and not run.diverged  # perhaps before its first step
    ]
    return median(found) if found else ASSUMED_MFU


def flops(config: TrainConfig, steps: int) -> float:
    """The FLOPs of `steps` steps, evaluations included: a forward pass is a third of a step."""
    tokens = steps * config.batch_size * config.model.context_length
    evaluated = (1 + steps // config.eval_every) * config.eval_tokens
    return accounting.flops_per_token(config.model) * (tokens + evaluated / 3)


def text_finding(config: TrainConfig) -> tuple[Finding, int]:
    """Whether the corpus of a run is here or can be made, and the bytes to be written for it.

    Tokens take two bytes for about four of text, and for a moment twice that: in shards, and in one
    file. Raises: ValueError for a name that no corpus has.
    """
    name, vocab_size = config.corpus, config.model.vocab_size
    sizes = {"train": config.corpus_bytes, "validation": None}
    missing = [split for split, size in sizes.items() if not corpora.is_here(name, split, size)]
    corpus, (_, usual) = corpora.CORPORA[name], token_files.DEFAULTS[name]
    words, todo = f"{name}: {'its text is made first' if missing else 'on this disk'}", ""
    if not missing:
        paths = [corpora.path(name, split, size) for split, size in sizes.items()]
        folder = settings.data_folder() / "tokens" / f"{name}-{vocab_size}"
        encoded = all((folder / f"{path.stem}.npy").is_file() for path in paths)
        written = 0 if encoded else sum(path.stat().st_size for path in paths)
    elif corpus.offline:
        written = 2 * sum(size or corpus.sizes.get(split, 0) for split, size in sizes.items())
    else:
        words = f"{name}: no {' and no '.join(missing)} text on this disk"
        todo = f"`workbook data get {name}` downloads {corpus.volume}"
        volume = corpora.parse_size(corpus.volume)
        packed = any(file.endswith(".gz") for file in corpus.files.values())
        written = volume + round(2 * UNPACKED * volume) if packed else 2 * volume
    if vocab_size != usual:
        words = f"{name} has a tokenizer with vocab_size={usual:,}, the model {vocab_size:,}"
        todo = f"give the model vocab_size={usual}"
    return (words, todo), written


def disk_finding(configs: Sequence[TrainConfig], texts: int, workers: int = 1) -> Finding:
    """Whether the data folder has room for the checkpoints of these runs and `texts` bytes of text.

    An experiment's checkpoints are deleted once its run has a record. A checkpoint is written whole
    before an old one is removed: so each worker needs room for one more.
    """
    kept = workers * max((checkpoints(each) + 1) * checkpoint_bytes(each) for each in configs)
    folder = settings.data_folder().absolute()
    there = next(place for place in (folder, *folder.parents) if place.is_dir())
    free = shutil.disk_usage(there).free
    words = (
        f"checkpoints need {in_gb(kept)}, texts and tokens {in_gb(texts)}; {in_gb(free)} are free"
        f" in {folder}"
    )
    make_room = "make room, or set WORKBOOK_DATA to a folder on a larger disk"
    return words, make_room if kept + texts > free else ""


def checkpoint_bytes(config: TrainConfig) -> int:
    """The bytes of one checkpoint."""
    return CHECKPOINT * accounting.parameters(config.model).total


def checkpoints(config: TrainConfig) -> int:
    """How many checkpoints a run has in the end."""
    return min(config.keep_checkpoints, math.ceil(config.steps / config.checkpoint_every))


def memory_finding(config: TrainConfig, workers: int = 1) -> Finding:
    """Whether a step of this run fits into memory beside other workers, or what to do about it."""
    device, needed = devices.pick_device(config.device), memory_bytes(config)
    room = free_memory(device)
    words = (
        f"{config.corpus}, batch {config.batch_size} needs {in_gb(needed)}; {in_gb(room)} free on"
        f" {device}{f', for {workers} workers' if workers > 1 else ''}"
    )
    if workers * needed <= room:
        return words, ""
    if needed <= room:
        return words, f"use --workers {room // needed}"
    for parts in range(config.accumulation, config.batch_size + 1):
        divides = config.batch_size % parts == 0
        if divides and workers * memory_bytes(replace(config, accumulation=parts)) <= room:
            return words, (
                f"compute a batch of {config.batch_size} in {parts} parts: `--accumulation {parts}`"
            )
    return words, "use a machine with more memory: not even one sequence fits"


def memory_bytes(config: TrainConfig) -> int:
    """The bytes of a process that takes steps of this config: an upper bound in half precision.

    The accounting is that of float32 and of the kernel that keeps no scores. A CPU in half
    precision computes attention without it (`fused.causal_attention`), and so does an Apple GPU.
    """
    model, sequences = config.model, config.batch_size // config.accumulation
    needed = accounting.peak_bytes(model, sequences).total + PROCESS
    device = devices.pick_device(config.device)
    half = devices.pick_precision(device, config.precision) != torch.float32
    if model.kernels == "fused" and (device.type == "mps" or (device.type == "cpu" and half)):
        scores = sequences * model.num_heads * model.context_length**2
        needed += SCORE * scores * model.num_layers
    return needed


def free_memory(device: torch.device) -> int:
    """The bytes that are free on an NVIDIA or AMD GPU; elsewhere, those of the machine."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available


def in_gb(size: float) -> str:
    """Bytes as GB, to a tenth: "2.3 GB"."""
    return f"{size / 1e9:,.1f} GB"
