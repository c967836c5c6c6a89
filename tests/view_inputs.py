"""What the views are tried with: data for every plot, and a maker for every live view."""

import re
from functools import cache, partial
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import numpy as np
import pandas as pd
import torch
from made_records import config as run_config
from made_records import record

from workbook import config
from workbook.classroom import views
from workbook.classroom.views import accounting, bpe, experiments, generation, optimizer, plots
from workbook.classroom.views import training as training_plots
from workbook.classroom.views import transformer as transformer_plots
from workbook.classroom.views import unicode as unicode_plots
from workbook.experiments.results import Comparison, Setting
from workbook.optimizer import toys
from workbook.optimizer.floats import FORMATS
from workbook.tokenization import bpe as training
from workbook.tokenization import utf8
from workbook.tokenization.simple import ByteTokenizer, WordTokenizer
from workbook.tokenization.tokenizer import Tokenizer
from workbook.transformer import nn

HOSTILE = "<img src=x onerror=alert(1)> & \"'</div><script>\ud800"


def seen(html: str) -> str:
    """The text of some HTML, its elements apart."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def walk(widget):
    """A widget and all that are in it."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


def texts(ax) -> list[str]:
    """What is written in the axes."""
    return [text.get_text() for text in ax.texts]


def legend(ax) -> list[str]:
    """What the legend of the axes names."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


# Data


def kind(pair: bytes) -> str:
    """A name for each kind of byte pair, as in notebook 01."""
    broken = utf8.flaw(pair)
    return broken.kind if broken else f"valid, {len(pair.decode())}"


FOLDER = TemporaryDirectory()  # of the records, while tests run


@cache
def run(*losses, diverged=False, **changes):
    """A record of a run with these losses and settings."""
    folder = Path(mkdtemp(dir=FOLDER.name))
    return record(folder, run_config(**changes), losses, diverged=diverged)


SIZES = pd.DataFrame({"UTF-8": [63, 71], "UTF-16": [126, 128.5]}, index=["English", "Turkish"])
EDGES = pd.DataFrame({"UTF-8": {0x20: 1, 0x80: 2}, "UTF-32": {0x20: 4, 0x80: 4}})
KINDS = [[kind(bytes([first, second])) for second in range(256)] for first in range(256)]

TOY = {"low": 5, "lower": 2, "widest": 3, "newest": 6}
MERGES = training.train_naive(TOY, 6)
TRAINED_TOKENS = [*(bytes([byte]) for byte in range(256)), *(a + b for a, b in MERGES)]
TRAINED = Tokenizer(dict(enumerate(TRAINED_TOKENS)), MERGES)
FOUR = {"vocabulary": [256, 2048, 2048], "bytes/token": [1, 4.2, 3.9], "unknown": [0, 0.1, 0]}
FOUR = pd.DataFrame(FOUR, index=["byte", "word", "BPE"])
TOKENS = pd.Index([256, 512, 1024], name="tokens")
GROWING = pd.DataFrame({"a": [1, 2, 3], "b": [1, 1.5, None]}, index=TOKENS)

WORDS = ["the", "cat", "sat", "down"]
CAUSAL = np.tri(4, dtype=bool)
ANGLES = np.outer(np.arange(6), [1, 0.01])
ARROWS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], -1).reshape(6, 4)
OWNERS = {number: number % 4 // 2 for number in range(12)}
ROPE = nn.RotaryPositionalEmbedding(100.0, 8, 16)
QUERIES, KEYS = (ROPE(torch.tensor(one).expand(16, 8)) for one in ([1.0, 0.2] * 4, [0.5, 0.0] * 4))
PREVIOUS = torch.eye(8).roll(-1, 1).tril()  # a map on which each query looks at the one before it
PREVIOUS[0, 0] = 1
MAPS = {"previous": PREVIOUS, "evenly": torch.ones(8, 8).tril() / torch.arange(1, 9)[:, None]}

SHARES = {"head": [8, 1], "scores": [1, 1], "feed-forward": [1, 48]}
SHARES = pd.DataFrame(SHARES, index=["small", "large"])
ALONG = {"feed-forward": [70, 60, 10], "scores": [1, 10, 80], "head": [3, 3, 1]}
ALONG = pd.DataFrame(ALONG, index=pd.Index([512, 2048, 2**20], name="context length (tokens)"))
MEMORY = pd.DataFrame({"parameters": [6.5] * 3, "activations": [0.0, 72.0, 100.0]})
MEMORY = MEMORY.rename_axis("batch size")

FALLING = pd.DataFrame({"a": [1.0, 0.1, 0.0], "b": [1.0, 10.0, 100.0]}).rename_axis("step")
GRADIENTS = {"inner": np.logspace(-9, -3, 100), "outer": np.logspace(-5, -1, 100)}
WANTED = pd.Series([1.0, 0.4], name="wanted")
WALKS = {f"rule {n}": np.array([[-4.0, 1.0], [n / 10, 0.5]]) for n in range(5)}

LOG = pd.DataFrame({"tokens": [0, 8, 16], "seconds": [0.0, 0.5, 1.0]}).rename_axis("step")
LOG["train_loss"] = [None, 3.5, 3.0]
LOG["validation_loss"] = [4.0, None, 2.0]
LOG["validation_bits_per_byte"] = LOG["validation_loss"] / 2

CHANCES = {b" fox": 0.6, b" <b>": 0.25, b"\n": 0.1, b"\xc3": 0.045, b"$x$": 0.005}


def next_tokens(text, temperature, top_p):
    """As a model would: top-p keeps the first few, temperature 0 the first."""
    if temperature == 0:
        return {b" fox": 1.0}
    kept = {}
    together = 0.0
    for token, share in CHANCES.items():
        if together < top_p:
            kept[token] = share
            together += share
    return {token: share / together for token, share in kept.items()}


LOST = run(4, 5, 100, diverged=True, seed=1)
USUAL = run(9, 2)
OTHER = run(9, 3, norm="none")

TWICE = {1: run(9, 2.1, seed=1), 2: run(9, 2.2, seed=2)}
SETTING = Setting({1e-2: USUAL, 1.0: LOST}, TWICE)
COMPARED = {
    400: Comparison("no norm", SETTING, SETTING),
    4_000: Comparison("no norm", SETTING, Setting({1e-2: OTHER}, {1: OTHER, 2: OTHER})),
}

# Every plot with data for it.
PLOTS = [
    partial(plots.grouped_bars, SIZES, "size (bytes)"),
    partial(plots.shares, SHARES, "share"),
    partial(plots.points, {"naive": 3_182.9, "compiled": 0.02}, "seconds"),
    partial(plots.curves, GROWING, "bytes/token", log=True, marks={"W": 2.5}),
    partial(unicode_plots.size_steps, EDGES, "size (bytes)", {"a": 97}),
    partial(unicode_plots.bit_layout, {"U+00FC": "ü".encode()}),
    partial(unicode_plots.byte_pairs, KINDS, {"valid, 1", "valid, 2"}),
    partial(bpe.tokenizers, FOUR),
    partial(bpe.shared_file, [20, 45, 50, 70, 100], 2),
    partial(transformer_plots.architecture, config.tinystories()),
    partial(transformer_plots.heat_maps, {"a": CAUSAL / 2, "b": CAUSAL * 1}, WORDS),
    partial(transformer_plots.turned, ARROWS, [0, 1]),
    partial(transformer_plots.number_grids, {"x": np.arange(12).reshape(3, 4)}, OWNERS),
    partial(accounting.shares_along, ALONG),
    partial(accounting.stacked, MEMORY, "memory (GB)", 80),
    partial(accounting.float_ranges, list(FORMATS.values()), {"70,000": 7e4}),
    partial(optimizer.valley, WALKS, toys.ravine),
    partial(optimizer.side_by_side, {"one": FALLING, "two": FALLING / 2}, "weight", WANTED),
    partial(optimizer.size_histogram, GRADIENTS),
    partial(training_plots.loss_curve, LOG, "step", 0.7),
    partial(training_plots.start_counts, [0, 2, 2], 4),
    partial(training_plots.overlaid, {"one": LOG, "other": LOG}),
    partial(training_plots.compared, {"ours": LOG, "yours": LOG * 0.9}),
    partial(generation.reach, {"sure": [0.05, 0.95], "even": [0.1] * 10}, 0.85),
    partial(
        generation.judged_text, [b"Once", b" upon", b"\n", b"\xf0\x9f"], [0.9, 0.2, 0.03, 0.001]
    ),
    partial(experiments.curves, {"good": [run(9, 3, 2)], "lost": [LOST]}),
    partial(experiments.every_run, {"one": [run(9, 3, 2), LOST], "two": [run(9, 4, 3, seed=2)]}),
    partial(experiments.sweep, {"it": {0.1: USUAL, 1.0: LOST}}, {"a level": 1.5}),
    partial(experiments.training_curves, {"0.1": [USUAL], "1": [LOST]}, (0.1, 1.0)),
    partial(experiments.ablation, COMPARED),
    partial(
        experiments.effects,
        {"no norm": COMPARED, "SiLU": {}},
        {"no norm": [0.1, 0.8]},
        {"SiLU": {9_000: 0.02}},
    ),
    partial(
        experiments.batches,
        {8: {0.01: run(9, 2.08), 0.02: OTHER}, 32: {0.01: run(9, 2.32, batch_size=32)}},
    ),
    partial(experiments.in_bits, {"ours": [run(9, 3, 2)], "yours": [run(9, 4, 3)]}),
    partial(experiments.against_time, {"start": [run(9, 3, 2, 2, 2, 1, 1)]}, cap=15.0),
]
PLOTS = {plot.func: plot for plot in PLOTS}


def drawn(plot):
    """The axes, or the figure, that a plot makes of its data."""
    return PLOTS[plot]()


# Every live view, a control of it, and a value to move that to.
VIEWS = {
    "utf8_explorer": (lambda text="né": views.utf8_explorer(text), "text", "other"),
    "merge_stepper": (lambda text="lowest": views.merge_stepper(TOY, 6, text), "merges", 3),
    "tokenizer_playground": (
        lambda text="lowest": views.tokenizer_playground(
            {"toy": TRAINED, "byte": ByteTokenizer(), "word": WordTokenizer(["low"])}, text
        ),
        "name",
        "byte",
    ),
    "rope_arrows": (lambda: views.rope_arrows(QUERIES, KEYS), "key_at", 9),
    "attention_viewer": (lambda: views.attention_viewer(list("abcdabcd"), MAPS), "query", 2),
    "float_explorer": (lambda text="0.1": views.float_explorer(text), "text", "3e-6"),
    "switchboard": (lambda: views.switchboard("time"), "edition", "2026"),
    "learning_rate_slider": (lambda: views.learning_rate_slider(), "lr", 50),
    "next_token_chances": (
        lambda text="Once": views.next_token_chances(next_tokens, text),
        "top_p",
        0.8,
    ),
}
TYPED = [name for name, (make, *_) in VIEWS.items() if make.__defaults__]  # into which one types
