"""Generating 256 tokens in three ways, on one thread, in turns: `python -m benchmarks generate`.

    workbook        the keys and values of earlier tokens are cached
    recomputation   the same model on the whole sequence again, for each token
    transformers    Hugging Face's `generate`, with its own cache, on the same weights; if installed

All decode greedily, and must write the same tokens: a ratio of different work means nothing.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks import measure, tokenizers
from workbook import bench, config
from workbook.config import ModelConfig
from workbook.generation import formats
from workbook.generation.generate import decode, generate
from workbook.transformer.model import TransformerLM

PROMPT = [5, 7, 11, 13]
NEW_TOKENS = 256
SHAPES = {"laptop": config.laptop, "tinystories": config.tinystories}


def run(rounds: int, folder: Path, new_tokens: int = NEW_TOKENS) -> str:
    """Time both shapes; keep the record in `folder` and return its table."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        shapes = {name: compare(shape(), rounds, new_tokens) for name, shape in SHAPES.items()}
    finally:
        torch.set_num_threads(threads)
    machine = measure.machine((*tokenizers.LIBRARIES, "torch", "transformers"))
    record = {"new_tokens": new_tokens, "shapes": shapes, "machine": machine}
    return measure.keep(folder / "generate.json", record, table(record))


def compare(shape: ModelConfig, rounds: int, new_tokens: int) -> dict[str, list[float]]:
    """The seconds of every run in each way; the model has this shape, and its window holds all."""
    torch.manual_seed(336)
    model = TransformerLM.from_config(
        replace(shape, context_length=max(shape.context_length, len(PROMPT) + new_tokens))
    ).eval()
    ways = {
        "workbook": lambda: generate(model, [PROMPT], new_tokens, temperature=0)[0],
        "recomputation": lambda: decode(model, PROMPT, new_tokens, temperature=0),
    }
    if importlib.util.find_spec("transformers"):
        ways["transformers"] = by_transformers(model, new_tokens)
    written = [way() for way in ways.values()]  # this warms them up, too
    if any(tokens != written[0] for tokens in written):
        raise ValueError("these ways wrote different tokens, so their times can't be compared")
    works = {name: partial(bench.seconds, way) for name, way in ways.items()}
    return measure.in_turns(works, rounds, f"bench generate, d_model={shape.d_model}")


def by_transformers(model: TransformerLM, new_tokens: int) -> Callable[[], list[int]]:
    """A call that generates with Hugging Face's Llama, which has the model's weights."""
    from transformers import LlamaForCausalLM

    with TemporaryDirectory() as folder:
        llama = LlamaForCausalLM.from_pretrained(formats.save_model(model, Path(folder))).eval()
    prompt = torch.tensor([PROMPT])
    settings = {"max_new_tokens": new_tokens, "do_sample": False, "use_cache": True}
    settings["attention_mask"] = torch.ones_like(prompt)
    return lambda: llama.generate(prompt, **settings)[0, len(PROMPT) :].tolist()


def table(record: dict) -> str:
    """The figures of a record as text."""
    speeds = {
        f"{shape}: {name}": [record["new_tokens"] / each for each in runs]
        for shape, by_name in record["shapes"].items()
        for name, runs in by_name.items()
    }
    shown = measure.table(speeds, "tokens/s", lambda name: f"{name.split(':')[0]}: workbook")
    where = measure.place(record, "one thread")
    return f"{record['new_tokens']} new tokens, one prompt, {where}\n\n{shown}"
