"""Your tokenizer and your training loop, timed in turns with ours and another library's."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

from workbook.bench import measure
from workbook.bench import tokenizers as tokenizer_bench
from workbook.bench import training as training_bench
from workbook.corpora import corpora
from workbook.mine.own_parts import expect_some, parts, rehearsed
from workbook.tokenization import token_files
from workbook.training import presets

BENCHED = 200_000  # characters on which tokenizers are timed


def bench(preset: str, rounds: int) -> str:
    """Time your tokenizer and your loop in turns with ours and another library's; return tables.

    Args:
        preset: the one whose model and corpus are taken, such as "laptop".
        rounds: how often each is timed.
    """
    theirs = expect_some(parts())
    config = replace(presets.get(preset), device="cpu", compile=False)
    shown = []
    if "tokenizer" in theirs.made_by:
        _, ours = token_files.tokenizer_for(config.corpus)
        text = next(token_files.read_text(corpora.path(config.corpus, "validation")))[:BENCHED]
        made = theirs.tokenizer(ours.vocab, ours.merges, ours.special_tokens)
        ways = {"yours": made.encode, "workbook": ours.encode}
        if find_spec("tiktoken"):
            known = tokenizer_bench.tiktoken_of(ours)
            ways["tiktoken"] = partial(known.encode, allowed_special="all")
        for way in ways.values():
            way(text[:1000])  # compiles ours
        works = {name: partial(measure.seconds, partial(way, text)) for name, way in ways.items()}
        took = measure.in_turns(works, rounds, "encoding")
        size = len(text.encode()) / 1e6
        shown.append(_table(took, size, "MB/s"))
    config = rehearsed(config, theirs)
    data = training_bench.random_data(config)
    tokens = config.batch_size * config.model.context_length
    with ExitStack() as stack:
        loops = {
            "yours": training_bench.ours(config, data, theirs),
            "workbook": training_bench.ours(config, data),
            "nanogpt": training_bench.nanogpt(config, data),
        }
        for loop in loops.values():
            stack.callback(loop.close)
            next(loop)  # allocates memory
        works = {
            name: partial(measure.seconds, partial(next, loop)) for name, loop in loops.items()
        }
        took = measure.in_turns(works, 5 * rounds, "training")
    shown.append(_table(took, tokens, "tokens/s"))
    return "\n\n".join(shown)


def _table(took: Mapping[str, list[float]], amount: float, unit: str) -> str:
    speeds = {name: [amount / each for each in runs] for name, runs in took.items()}
    return measure.table(speeds, unit, lambda name: "workbook")
