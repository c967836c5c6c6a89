"""A dry run: which runs are missing, how long they take, and what they need of this machine.

Nothing is downloaded, trained or written, and it takes seconds. The time of a run follows from its
FLOPs and the peak of this machine, which a few matmuls measure, at the share of the peak that
recorded runs reached.
"""

import math
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pandas as pd
import psutil
import torch

from workbook import accounting
from workbook import config as settings
from workbook.config import TrainConfig
from workbook.corpora import corpora
from workbook.corpora.download import UNPACKED
from workbook.experiments import records
from workbook.experiments.plans import Plan, Results, Stage
from workbook.tokenization import token_files
from workbook.training import devices
from workbook.training.devices import matmul_peak
from workbook.training.train import Run

ASSUMED_MFU = 0.3  # the share of the peak where no run on such a device has been recorded
CHECKPOINT = 3 * 4  # bytes per parameter: itself and AdamW's two moments, in float32
PROCESS = 500_000_000  # bytes that Python and torch take for themselves, about
# Bytes of each score that attention keeps in half precision where no kernel spares them: a weight
# in float32, and a copy in half precision for the matmul with the values.
SCORE = 6


class Finding(NamedTuple):
    """One thing that was looked at, and what to do about it."""

    about: str  # corpora, disk or memory
    text: str
    todo: str = ""  # empty where all is ready


def report_plans(plans: Mapping[str, Plan], workers: int | None = None) -> int:
    """Print the dry run of experiments; the exit status, 0 where this machine is ready for them.

    With `workers` the runs would be made side by side, each by a process of one thread.
    """
    known: dict[str, TrainConfig] = {}
    later: dict[str, TrainConfig] = {}
    print("A dry run: nothing is downloaded, trained or kept.\n")
    for name, plan in plans.items():
        now, then = unfold(plan)
        known |= {config.key: config for config in now}
        later |= {config.key: config for config in then}
        print(f"{name:16} runs to make next: {len(now)}")
    if not known:
        print("\nAll runs have their records. There is nothing to do.")
        return 0
    return report([*known.values()], [later[key] for key in later if key not in known], workers)


def report_run(config: TrainConfig) -> int:
    """Print the dry run of one training run; the exit status, 0 where this machine is ready."""
    print("A dry run: nothing is downloaded, trained or kept.")
    return report([config], [], None)


def report(known: Sequence[TrainConfig], later: Sequence[TrainConfig], workers: int | None) -> int:
    """Print what runs take and what is missing for them; 0 where nothing is missing, else 1.

    `known` are the runs to make next, `later` those that may follow.
    """
    configs, sharing = [*known, *later], workers or 1
    wanted = {(each.corpus, each.corpus_bytes, each.model.vocab_size): each for each in configs}
    texts = [text_finding(config) for config in wanted.values()]
    hours = [each / sharing / 3_600 for each in seconds_of(configs, 1 if workers else None)]
    columns = {
        "runs": [step_name(config) for config in configs],
        "next": [index < len(known) for index in range(len(configs))],
        "later": [index >= len(known) for index in range(len(configs))],
        "GB of memory": [memory_bytes(config) / 1e9 for config in configs],
        "hours in all": hours,
    }
    sums = dict.fromkeys(columns, "sum") | {"GB of memory": "max"}
    del sums["runs"]
    table = pd.DataFrame(columns).groupby("runs", sort=False).agg(sums)
    print(f"\n{table.to_string(float_format='{:,.2f}'.format)}\n")
    side_by_side = f", by {workers} workers of one thread each" if workers else ""
    print(f"About {sum(hours):,.{0 if sum(hours) > 10 else 2}f} hours in all{side_by_side}.")
    if later:
        print("Later rounds depend on results: so many follow if the middle rates are the best.")
    found = [finding for finding, _ in texts]
    found.append(disk_finding(configs, sum(size for _, size in texts), sharing))
    found.append(memory_finding(configs, sharing))
    for each in found:
        print(f"{each.about:8} {'TO DO' if each.todo else 'ready':6} {each.text}")
    todo = list(dict.fromkeys(each.todo for each in found if each.todo))
    print(f"\n{'Not ready. What to do:' if todo else 'Ready.'}")
    for number, words in enumerate(todo, 1):
        print(f"{number}. {words}")
    return 1 if todo else 0


def step_name(config: TrainConfig) -> str:
    """What decides how much a step costs, in words: "tinystories, batch 128"."""
    words = f"{config.corpus}, batch {config.batch_size}"
    return words if config.accumulation == 1 else f"{words} in {config.accumulation} parts"


@dataclass(frozen=True)
class Imagined(Run):
    """A run without a record, as it may come out: with this final validation loss."""

    loss: float = math.inf  # nats per token

    @property
    def diverged(self) -> bool:
        """Whether it is imagined to have been given up."""
        return math.isinf(self.loss)


def imagined(asked: Mapping[str, TrainConfig]) -> Results:
    """The records of these runs, and for those without one results as they may come out.

    The middle one of the learning rates is taken to be the best, and ten times as much to diverge.
    """
    rates = sorted(config.optimizer.max_learning_rate for config in asked.values())
    middle = rates[len(rates) // 2]

    def result(config: TrainConfig) -> Run:
        decades = math.log10(config.optimizer.max_learning_rate / middle)
        return Imagined(config, Path(), math.inf if decades >= 1 else 3 + decades**2)

    return {label: records.find(config) or result(config) for label, config in asked.items()}


def unfold(plan: Plan) -> tuple[list[TrainConfig], list[TrainConfig]]:
    """The runs that a plan waits for now, and those of its later rounds as they are imagined.

    What a plan asks for depends on what came out, so only the next round is known for sure.
    """
    stage = Stage(plan)
    stage.advance()
    known, later, asked = stage.missing(), [], stage.asked
    with suppress(StopIteration):
        while asked:
            asked = plan.send(imagined(asked))
            later += [config for config in asked.values() if records.find(config) is None]
    return known, later


def seconds_of(configs: Sequence[TrainConfig], threads: int | None = None) -> list[float]:
    """The expected seconds of each run, by itself, in a process with so many threads.

    All are taken to run on the device and in the precision of the first.
    """
    device = devices.pick_device(configs[0].device)
    precision = devices.pick_precision(device, configs[0].precision)
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        peak = matmul_peak(precision, str(device))
    finally:
        torch.set_num_threads(before)
    speed = peak * mfu(**devices.describe(device, precision))
    return [min(flops(each, each.steps) / speed, each.max_seconds or math.inf) for each in configs]


def mfu(device: str, precision: str, **_) -> float:
    """The share of its peak that such a device reached in recorded runs, in the median.

    The log's seconds are those of evaluating and saving as well. Takes what `devices.describe`
    says.
    """
    found = []
    for run in records.load_all():
        where = run.environment
        peak = where.get("peak_flops_per_second")
        if (where["device"], where["precision"]) == (device, precision) and peak and run.steps:
            found.append(flops(run.config, run.steps) / run.seconds / peak)
    return median(found) if found else ASSUMED_MFU


def flops(config: TrainConfig, steps: int) -> float:
    """The FLOPs of so many steps, evaluations included: a forward pass is a third of a step."""
    evaluations = 1 + steps // config.eval_every
    tokens = steps * config.batch_size * config.model.context_length
    return accounting.flops_per_token(config.model) * (
        tokens + evaluations * config.eval_tokens / 3
    )


def text_finding(config: TrainConfig) -> tuple[Finding, int]:
    """Whether the corpus of a run is here or can be made, and the bytes to be written for it.

    Tokens take two bytes for about four of text, and for a moment twice that: in shards, and in one
    file. Raises: ValueError for a name that no corpus has.
    """
    name, size, vocab_size = config.corpus, config.corpus_bytes, config.model.vocab_size
    splits = [(name, "train", size), (name, "validation", None)]
    missing = [split for split in splits if not corpora.is_here(*split)]
    corpus, usual = corpora.CORPORA[name], token_files.DEFAULTS[name][1]
    if not missing:
        paths = [corpora.path(*split) for split in splits]
        folder = settings.data_folder() / "tokens" / f"{name}-{vocab_size}"
        encoded = all((folder / f"{path.stem}.npy").is_file() for path in paths)
        written = 0 if encoded else sum(path.stat().st_size for path in paths)
    elif corpus.offline:
        written = 2 * ((size or corpus.sizes.get("train", 0)) + corpus.sizes.get("validation", 0))
    else:
        written = volume = corpora.parse_size(corpus.volume)
        packed = any(file.endswith(".gz") for file in corpus.files.values())
        written += round(2 * UNPACKED * volume) if packed else volume
    text = f"{name}: {'its text is made first' if missing else 'on this disk'}"
    todo = ""
    if vocab_size != usual:
        text = f"{name} has a tokenizer with vocab_size={usual:,}, the model {vocab_size:,}"
        todo = f"give the model vocab_size={usual}"
    elif missing and not corpus.offline:
        text = f"{name}: no {' and no '.join(split for _, split, _ in missing)} text on this disk"
        todo = f"`workbook data get {name}` downloads {corpus.volume}"
    elif written:
        option = f" --size {size}" if size else ""
        text += f"; `workbook data tokenize {name}{option}` writes its tokens now, on all cores"
    return Finding("corpora", text, todo), written


def disk_finding(configs: Sequence[TrainConfig], texts: int, workers: int = 1) -> Finding:
    """Whether the data folder has room for the checkpoints of these runs and so many bytes of text.

    A checkpoint is written whole before an old one is removed: so each worker needs one more.
    """
    kept = sum(checkpoints(config) * checkpoint_bytes(config) for config in configs)
    kept += workers * max(map(checkpoint_bytes, configs))
    folder = settings.data_folder().absolute()
    there = next(place for place in (folder, *folder.parents) if place.is_dir())
    free = shutil.disk_usage(there).free
    text = f"checkpoints need {in_gb(kept)}, texts and tokens {in_gb(texts)}"
    text += f"; {in_gb(free)} are free in {folder}"
    make_room = "make room, or set WORKBOOK_DATA to a folder on a larger disk"
    return Finding("disk", text, make_room if kept + texts > free else "")


def checkpoint_bytes(config: TrainConfig) -> int:
    """The bytes of one checkpoint."""
    return CHECKPOINT * accounting.parameters(config.model).total


def checkpoints(config: TrainConfig) -> int:
    """How many checkpoints a run leaves behind."""
    return min(config.keep_checkpoints, math.ceil(config.steps / config.checkpoint_every))


def memory_finding(configs: Sequence[TrainConfig], workers: int = 1) -> Finding:
    """Whether the largest step of these runs fits into memory, beside those of other workers."""
    largest = max(configs, key=memory_bytes)
    device, needed = devices.pick_device(largest.device), memory_bytes(largest)
    room = free_memory(device)
    text = f"{step_name(largest)} needs {in_gb(needed)}; {in_gb(room)} free on {device}"
    text += f", for {workers} workers" if workers > 1 else ""
    fits = workers * needed <= room
    return Finding("memory", text, "" if fits else what_would_fit(largest, room, workers))


def memory_bytes(config: TrainConfig, accumulation: int | None = None) -> int:
    """The bytes of a process that takes steps of this config: an upper bound in half precision.

    The accounting is that of float32 and of the kernel that keeps no scores. A CPU in half
    precision computes attention without it (`fused.causal_attention`), and so does an Apple GPU.
    """
    sequences = math.ceil(config.batch_size / (accumulation or config.accumulation))
    model = config.model
    needed = accounting.peak_bytes(model, sequences).total + PROCESS
    device = devices.pick_device(config.device)
    half = devices.pick_precision(device, config.precision) != torch.float32
    if model.kernels == "fused" and (device.type == "mps" or (device.type == "cpu" and half)):
        scores = sequences * model.num_heads * model.context_length**2
        needed += SCORE * scores * model.num_layers
    return needed


def free_memory(device: torch.device) -> int:
    """The bytes that are free on a GPU of NVIDIA's or AMD's; elsewhere, those of the machine."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available


def what_would_fit(config: TrainConfig, room: int, workers: int) -> str:
    """What to change so that a step fits into `room` bytes."""
    if memory_bytes(config) <= room:
        return f"take --workers {room // memory_bytes(config)}"
    for accumulation in range(config.accumulation, config.batch_size + 1):
        fits = workers * memory_bytes(config, accumulation) <= room
        if fits and config.batch_size % accumulation == 0:
            return (
                f"compute a batch of {config.batch_size} with accumulation={accumulation}:"
                f" `--accumulation {accumulation}` of `workbook train`; or do without it, in"
                " `batch_sizes` of workbook/experiments/studies.py"
            )
    return "take a machine with more memory: not even one sequence fits"


def in_gb(size: float) -> str:
    """Bytes as GB, to a tenth: "2.3 GB"."""
    return f"{size / 1e9:,.1f} GB"
