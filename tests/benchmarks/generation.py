"""Generating 256 tokens in three ways, on one thread, in turns: `python -m benchmarks generate`.

    workbook        the keys and values of earlier tokens are cached
    recomputation   the same model on the whole sequence again, for each token
    transformers    Hugging Face's `generate`, with its own cache, on the same weights; if installed

All decode greedily. Before anything is timed, their tokens are compared with ours: a way that
writes others is named with the first difference and gets no ratio.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks import measure
from workbook import bench, config
from workbook.config import ModelConfig
from workbook.generation import formats
from workbook.generation.sampling import decode, generate
from workbook.transformer.model import TransformerLM

PROMPT = [5, 7, 11, 13]
NEW_TOKENS = 256
SHAPES = {"laptop": config.laptop, "tinystories": config.tinystories}


def run(rounds: int, folder: Path, new_tokens: int = NEW_TOKENS) -> str:
    """Time both shapes; keep the record in `folder` and return its table."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = {name: compare(shape(), rounds, new_tokens) for name, shape in SHAPES.items()}
    finally:
        torch.set_num_threads(threads)
    machine = measure.machine(("torch", "transformers"))
    record = {
        "new_tokens": new_tokens,
        "shapes": {name: seconds for name, (seconds, _) in found.items()},
        "differences": {name: differences for name, (_, differences) in found.items()},
        "machine": machine,
    }
    return measure.keep(folder / "generate.json", record, table(record))


def compare(
    shape: ModelConfig, rounds: int, new_tokens: int
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """The seconds of every run in each way, and where a way's tokens differ from ours first.

    The model has this shape, and its window holds all.
    """
    torch.manual_seed(336)
    model = TransformerLM.from_config(
        replace(shape, context_length=max(shape.context_length, len(PROMPT) + new_tokens))
    ).eval()
    ways = {
        "workbook": lambda: generate(model, [PROMPT], new_tokens, temperature=0)[0],
        "recomputation": lambda: decode(model, PROMPT, new_tokens, temperature=0),
    }
    if measure.installed("transformers"):
        ways["transformers"] = by_transformers(model, new_tokens)
    else:
        print("transformers is left out, since it is not installed")
    written = {name: way() for name, way in ways.items()}  # this warms them up, too
    differences = {
        name: measure.first_difference(tokens, written["workbook"])
        for name, tokens in written.items()
        if tokens != written["workbook"]
    }
    works = {name: partial(bench.seconds, way) for name, way in ways.items()}
    return measure.in_turns(works, rounds, f"bench generate, d_model={shape.d_model}"), differences


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
        f"{shape}: {name}": [record["new_tokens"] / seconds for seconds in runs]
        for shape, by_name in record["shapes"].items()
        for name, runs in by_name.items()
    }

    def baseline(row: str) -> str:
        """Ours in the same shape, for those that write the same tokens."""
        shape, name = row.split(": ")
        return "none" if name in record["differences"][shape] else f"{shape}: workbook"

    shown = measure.table(speeds, "tokens/s", baseline)
    differences = "".join(
        f"\n{shape}: {name} differs from ours, so it gets no ratio: {difference}"
        for shape, by_name in record["differences"].items()
        for name, difference in by_name.items()
    )
    where = measure.place(record, "one thread")
    return f"{record['new_tokens']} new tokens, one prompt, {where}\n\n{shown}{differences}"
