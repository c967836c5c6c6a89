"""The table of `workbook bench generate`: a text of 256 ids by three ways, on one thread, in turns.

    workbook        the keys and values of what was seen are kept
    recomputation   the whole sequence again for each id, by the same model
    transformers    Hugging Face's `generate`, with its own cache, on the same weights

All three write greedily, and must write the same ids: a ratio of different work means nothing.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from tqdm import tqdm

from workbook import config
from workbook.bench import tokenizers
from workbook.config import ModelConfig
from workbook.files import write_json
from workbook.generation import formats
from workbook.generation.generate import decode, generate
from workbook.transformer.model import TransformerLM

RECORD = Path("data") / "bench" / "generate.json"
PROMPT = [5, 7, 11, 13]
NEW_TOKENS = 256
SHAPES = {"laptop": config.laptop, "tinystories": config.tinystories}


def run(rounds: int, new_tokens: int = NEW_TOKENS) -> str:
    """The table for both shapes; recorded."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        shapes = {name: compare(shape(), rounds, new_tokens) for name, shape in SHAPES.items()}
    finally:
        torch.set_num_threads(threads)
    machine = tokenizers.machine()
    machine["versions"] |= {library: version(library) for library in ("torch", "transformers")}
    record = {"new_tokens": new_tokens, "shapes": shapes, "machine": machine}
    target = config.repository() / RECORD
    write_json(target, record)
    return f"{table(record)}\nrecorded in {target}"


def recorded() -> dict:
    """The record as it lies in `data/bench/`."""
    return json.loads((config.repository() / RECORD).read_text(encoding="utf-8"))


def compare(shape: ModelConfig, rounds: int, new_tokens: int) -> dict[str, list[float]]:
    """The seconds of every run of each way, for a model of this shape whose window holds all."""
    torch.manual_seed(336)
    model = TransformerLM.from_config(
        replace(shape, context_length=max(shape.context_length, len(PROMPT) + new_tokens))
    ).eval()
    ways = {
        "workbook": lambda: generate(model, [PROMPT], new_tokens, temperature=0)[0],
        "recomputation": lambda: decode(model, PROMPT, new_tokens, temperature=0),
        "transformers": by_transformers(model, new_tokens),
    }
    written = [way() for way in ways.values()]  # and warm
    if any(ids != written[0] for ids in written):
        raise ValueError("the three ways wrote different ids, so their times cannot be compared")
    seconds = {name: [] for name in ways}
    for _ in tqdm(range(rounds), desc=f"bench generate, d_model={shape.d_model}"):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def by_transformers(model: TransformerLM, new_tokens: int) -> Callable[[], list[int]]:
    """A call that writes with Hugging Face's Llama, which has the model's weights."""
    from transformers import LlamaForCausalLM

    with TemporaryDirectory() as folder:
        llama = LlamaForCausalLM.from_pretrained(formats.save_model(model, folder)).eval()
    prompt = torch.tensor([PROMPT])
    settings = {"max_new_tokens": new_tokens, "do_sample": False, "use_cache": True}
    settings["attention_mask"] = torch.ones_like(prompt)
    return lambda: llama.generate(prompt, **settings)[0, len(PROMPT) :].tolist()


def table(record: dict) -> str:
    """The figures of a record as text."""
    where, new_tokens = record["machine"], record["new_tokens"]
    lines = [
        f"{new_tokens} new ids, one prompt, one thread of {where['processor']}"
        f" ({where['system']}, load {where['load']})",
        ", ".join(f"{name} {number}" for name, number in where["versions"].items()),
    ]
    for shape, seconds in record["shapes"].items():
        lines += ["", f"{shape:20}{'best ids/s':>11}{'lowest':>9}   workbook is"]
        for name, taken in seconds.items():
            ratio = "" if name == "workbook" else tokenizers.spread(ratios(record, shape, name))
            best, lowest = new_tokens / min(taken), new_tokens / max(taken)
            lines.append(f"{name:20}{best:11,.0f}{lowest:9,.0f}   {ratio}")
    return "\n".join(line.rstrip() for line in lines)


def ratios(record: dict, shape: str, name: str) -> list[float]:
    """How many times as fast as that way we are, round by round."""
    seconds = record["shapes"][shape]
    return tokenizers.ratios(seconds[name], seconds["workbook"])
