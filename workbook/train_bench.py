"""The table of `workbook bench train`: our trainer beside a naive loop and Hugging Face's Llama.

    round 1    naive   llama   llama, our settings   workbook       a few steps each, in turns
    round 2    naive   llama   ...
    ratio      of each round; a busy neighbour slows all of one round

Memory is tuned as our trainer does it for all of them: what is compared is the code. The record,
`data/bench/train.json`, names machine, versions, shapes, and every measured speed.
"""

import importlib.util
import json
import time
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
from tqdm import tqdm

from workbook import accounting, bench, config, presets
from workbook.config import TrainConfig
from workbook.files import atomic_write
from workbook.train_data import TrainData

SHAPES = {"laptop": 32, "tinystories": 8}  # sequences in a batch, by preset


def run(rounds: int, steps: int, shapes: list[str] | None = None) -> str:
    """The table of all shapes; it is recorded."""
    record = {
        "machine": bench.machine(("torch", "transformers", "numpy")),
        "shapes": {shape: compare(shape, rounds, steps) for shape in shapes or SHAPES},
    }
    target = config.repository() / "data" / "bench" / "train.json"
    with atomic_write(target) as out:
        json.dump(record, out, indent=1)
        out.write("\n")
    return f"{table(record)}\nrecorded in {target}"


def compare(shape: str, rounds: int, steps: int) -> dict:
    """Tokens a second of every loop in every round on one shape, and the parts of our step."""
    import torch

    from workbook import devices, step_times
    from workbook.measured_model import matmul_peak
    from workbook.train_rivals import RIVALS

    settings = replace(presets.get(shape), batch_size=SHAPES[shape], device="cpu")
    data = random_data(settings)
    devices.tune(torch.device("cpu"))
    precision = devices.pick_precision(torch.device("cpu"), settings.precision)
    there = importlib.util.find_spec("transformers") is not None
    tokens, speeds, peak = settings.batch_size * settings.model.context_length, {}, 0.0
    with ExitStack() as stack:
        loops = {
            name: make(settings, data, stack)
            for name, make in RIVALS.items()
            if there or not name.startswith("llama")
        }
        for step in loops.values():
            step()  # the first one fetches memory and chooses kernels
        for _ in tqdm(range(rounds), desc=f"bench train {shape}"):
            for name, step in loops.items():
                speeds.setdefault(name, []).append(tokens / best_seconds(step, steps))
            peak = max(peak, matmul_peak(precision))
    return {
        "tokens_a_second": speeds,
        "batch_size": settings.batch_size,
        "precision": str(precision).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "flops_a_token": accounting.flops_per_token(settings.model),
        "peak_flops_a_second": peak,
        "step_seconds": step_times.step_times(settings, data, steps),
    }


def random_data(settings: TrainConfig) -> TrainData:
    """Random ids: what a step costs does not depend on what they say."""
    size = settings.model.vocab_size
    ids = np.random.default_rng(0).integers(size, size=100_000, dtype=np.uint16)
    lengths = np.ones(size, np.int64)
    return TrainData(train=ids, validation=ids[:5_000].copy(), token_bytes=lengths)


def best_seconds(step, steps: int) -> float:
    """The shortest of some steps."""
    taken = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return min(taken)


def recorded() -> dict:
    """The record in `data/bench/`."""
    return json.loads((config.repository() / "data/bench/train.json").read_text())


def mfu(found: dict, name: str = "workbook") -> float:
    """The share of the machine's peak that the best round of a loop reached."""
    return (
        max(found["tokens_a_second"][name]) * found["flops_a_token"] / found["peak_flops_a_second"]
    )


def overhead(found: dict) -> float:
    """The share of our step that loading data and writing the log take."""
    seconds = found["step_seconds"]
    return (seconds["data"] + seconds["log"]) / sum(seconds.values())


def table(record: dict) -> str:
    """The figures of a record as text."""
    where = record["machine"]
    lines = [
        f"{where['cores']} cores of {where['processor']} ({where['system']}, load {where['load']})",
        ", ".join(f"{name} {number}" for name, number in where["versions"].items()),
    ]
    for shape, found in record["shapes"].items():
        lines += [
            "",
            f"{shape}: batches of {found['batch_size']}, {found['precision']}, threads:"
            f" {found['threads']}",
            f"{'':22}{'best tokens/s':>14}{'lowest':>9}{'MFU':>6}   workbook is",
        ]
        ours = found["tokens_a_second"]["workbook"]
        for name, speeds in found["tokens_a_second"].items():
            ratio = ""
            if name != "workbook":
                ratios = bench.ratios(ours, speeds)
                best = max(ours) / max(speeds)
                ratio = f"{bench.spread(ratios)}; best against best {best:.2f}x"
            lines.append(
                f"{name:22}{max(speeds):14,.0f}{min(speeds):9,.0f}{mfu(found, name):6.0%}   {ratio}"
            )
        parts = ", ".join(f"{part} {1e3 * s:,.1f} ms" for part, s in found["step_seconds"].items())
        lines.append(f"our step: {parts}; data and log are {overhead(found):.2%} of it")
    return "\n".join(line.rstrip() for line in lines)
