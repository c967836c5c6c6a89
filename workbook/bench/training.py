"""The table of `workbook bench train`: our trainer beside a naive loop and two known ones.

    round 1    naive   llama   llama, our settings   nanogpt, our settings   workbook
    round 2    naive   llama   ...                                     a few steps each, in turns
    ratio      of each round; a busy neighbour slows all of one round

Each loop has a process of its own. The naive one and Hugging Face's Llama at its defaults run as
they would anywhere; with our settings what is left to compare is the code. The record,
`data/bench/train.json`, names machine, versions, shapes, and every measured speed.
"""

import importlib.util
import json
from contextlib import ExitStack
from dataclasses import replace

from tqdm import tqdm

from workbook import accounting, config
from workbook.bench import tokenizers
from workbook.files import write_json
from workbook.training import presets

SHAPES = {"laptop": 32, "tinystories": 8}  # sequences in a batch, by preset


def run(rounds: int, steps: int, shapes: list[str] | None = None) -> str:
    """The table of all shapes; it is recorded."""
    record = {
        "machine": tokenizers.machine(("torch", "transformers", "numpy")),
        "shapes": {shape: compare(shape, rounds, steps) for shape in shapes or SHAPES},
    }
    target = config.repository() / "data" / "bench" / "train.json"
    write_json(target, record)
    return f"{table(record)}\nrecorded in {target}"


def compare(shape: str, rounds: int, steps: int) -> dict:
    """Tokens a second of every loop in every round on one shape, and the parts of our step."""
    import torch

    from workbook.accounting.measured import matmul_peak
    from workbook.bench import nanogpt, step_times
    from workbook.bench.rival_process import RivalProcess
    from workbook.bench.train_rivals import RIVALS, random_data
    from workbook.training import devices

    settings = replace(presets.get(shape), batch_size=SHAPES[shape], device="cpu")
    precision = devices.pick_precision(torch.device("cpu"), settings.precision)
    there = importlib.util.find_spec("transformers") is not None
    names = [name for name in RIVALS if there or not name.startswith("llama")]
    tokens, peak = settings.batch_size * settings.model.context_length, 0.0
    speeds = {name: [] for name in names}
    with ExitStack() as stack:
        loops = [stack.enter_context(RivalProcess(name, settings)) for name in names]
        for loop in loops:
            loop.seconds(1)  # the first step fetches memory and chooses kernels
        for _ in tqdm(range(rounds), desc=f"bench train {shape}"):
            for loop in loops:
                speeds[loop.name].append(tokens / loop.seconds(steps))
            peak = max(peak, matmul_peak(precision))
    models = dict.fromkeys(names, settings.model) | {
        "nanogpt, our settings": nanogpt.nearest_shape(settings.model)
    }
    return {
        "tokens_a_second": speeds,
        "batch_size": settings.batch_size,
        "precision": devices.name_of(precision),
        "threads": torch.get_num_threads(),
        "flops_a_token": {name: accounting.flops_per_token(models[name]) for name in names},
        "peak_flops_a_second": peak,
        "step_seconds": step_times.step_times(settings, random_data(settings), steps),
    }


def recorded() -> dict:
    """The record in `data/bench/`."""
    return json.loads((config.repository() / "data/bench/train.json").read_text())


def mfu(found: dict, name: str = "workbook") -> float:
    """The share of the machine's peak that the best round of a loop reached."""
    flops = max(found["tokens_a_second"][name]) * found["flops_a_token"][name]
    return flops / found["peak_flops_a_second"]


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
            f"{'':22}{'MFLOP a token':>14}{'best tokens/s':>15}{'lowest':>9}{'MFU':>6}"
            "   workbook is",
        ]
        ours = found["tokens_a_second"]["workbook"]
        for name, speeds in found["tokens_a_second"].items():
            ratio = ""
            if name != "workbook":
                ratios = tokenizers.ratios(ours, speeds)
                best = max(ours) / max(speeds)
                ratio = f"{tokenizers.spread(ratios)}; best against best {best:.2f}x"
            lines.append(
                f"{name:22}{found['flops_a_token'][name] / 1e6:14.1f}{max(speeds):15,.0f}"
                f"{min(speeds):9,.0f}{mfu(found, name):6.0%}   {ratio}"
            )
        parts = ", ".join(f"{part} {1e3 * s:,.1f} ms" for part, s in found["step_seconds"].items())
        lines.append(f"our step: {parts}; data and log are {overhead(found):.2%} of it")
    return "\n".join(line.rstrip() for line in lines)
