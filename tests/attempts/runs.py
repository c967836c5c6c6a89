"""Tables of runs as people hand them in for chapter 7, right and wrong."""

import math
from functools import cache

import numpy
import pandas as pd

from workbook.experiments import results

NAN = math.nan
LR, BATCH, BOARD = "learning_rate", "batch_size_experiment", "leaderboard"
NORMS, POST, NOPE = "layer_norm_ablation", "pre_norm_ablation", "no_pos_emb"
SILU, WEB, LOG = "swiglu_ablation", "main_experiment", "experiment_log"


def table(*columns, **same):
    """A list of runs from names of columns, a row of values for each run, and what all share."""
    names, *rows = columns
    return [dict(zip(names.split(), row, strict=True)) | same for row in rows]


def sweep(losses, **same):
    """A table with a run for each learning rate."""
    return table("learning_rate loss", *losses.items(), **same)


def pair(column, usual, other, **same):
    """A table with a run of each kind."""
    return table(f"{column} loss", usual, other, **same)


@cache
def records():
    return results.Recorded("laptop", "2025")


def recorded(study):
    """The records of an experiment that came with the workbook, as a learner would compare them.

    They have one budget, the smallest for a sweep; the entries of the leaderboard have one time.
    """
    runs = records().so_far[study]
    scale = records().scale
    if study == "learning_rate":
        config = scale.budget(scale.parts[0])
        return {f"rate {rate:.3g}": run for rate, run in results.by_rate(runs, config).items()}
    kept = {"batch_size": "batch", "depth": "deep", "leaderboard": ""}.get(study)
    if kept is None:
        tokens = max(run.config.tokens for run in runs.values())
        return {label: run for label, run in runs.items() if run.config.tokens == tokens}
    clocked = study == "leaderboard"
    return {
        label: run
        for label, run in runs.items()
        if label.startswith(kept) and (run.config.max_seconds is not None) == clocked
    }


ROW = {"steps": 800, "batch_size": 8, "context_length": 128, "seconds": 80, "loss": 1.96}
LOSSES = {1e-3: 1.5, 3e-3: 1.41, 1e-2: 1.6}
SWEEP = sweep(LOSSES)
SIZES = "batch_size loss", (1, 1.9), (64, 1.5), (128, 1.6)
HANDED_IN = "batch_size loss tokens", (1, 2.3, 51_200), (32, 2.2, 51_200), (32, 1.5, 819_200)
PRE = ("pre", 1.41)
POST_NORM = ("post", 1.44)
PRE_AT = ("pre", 1e-2)
TEXTS = ("stories", "docstrings", "stories")
READ = (1e5, 1e6, 1e5)
STORIES = ("stories", 1.9, 0.8)
DOCSTRINGS = ("docstrings", 4.9, 2.0)

# Right in every profile and edition.
RIGHT = {
    (LR, "a"): [
        SWEEP,
        pd.DataFrame(SWEEP),
        tuple(SWEEP),
        sweep(LOSSES | {1e-1: NAN}, comment="as asked"),
        sweep({1e-3: numpy.float32(1.5), 3e-3: "1.41", 1e-2: 9.5}),
        table("lr val_loss", *LOSSES.items(), (1e-1, "diverged")),
        sweep(LOSSES, tokens=8e5) + sweep({1e-1: 5.0}, tokens=3e5, status="diverged"),
        sweep(LOSSES) + sweep({2e-3: NAN}, status="running"),
        pd.DataFrame(SWEEP).set_index("learning_rate"),
        table("Learning-Rate Val-Loss", *LOSSES.items()),
    ],
    (LR, "b"): [
        sweep(LOSSES | {3e-2: NAN, 1e-1: None}),
        sweep({1e-3: 1.5, 3e-3: 1.41, 1e-2: 6.9}),
        sweep(LOSSES | {3e-2: math.inf}),
        sweep(LOSSES | {3e-2: "n/a"}),
        [*sweep(LOSSES), {"learning_rate": 3e-2, "diverged": True}],
        sweep(LOSSES) + sweep({3e-2: 1.7}, diverged=True),
        sweep({1e-3: 1.5, 1e-2: 1.41, 3e-2: 1.43, 1e-1: NAN, 2e-1: 7.0, 5e-1: NAN}),
    ],
    (BATCH, None): [
        table(*SIZES),
        pd.DataFrame(table(*SIZES, (768, NAN))),
        table("batch_size loss steps", (1, 1.9, 12_800), (64, 1.5, 200), (128, 1.6, 100)),
        table("batch_size loss tokens", (1, 1.9, 1e5), (64, 1.5, 6e6), (128, 1.6, 1e7), seconds=6),
        table(*HANDED_IN, (64, 1.6, 819_200), (128, 1.7, 819_200)),
    ],
    (NORMS, None): [
        table("norm learning_rate loss", (*PRE_AT, 1.41), ("none", 1e-2, NAN), ("none", 1e-3, last))
        for last in (1.6, NAN)
    ],
    (POST, None): [
        pair("norm", PRE, POST_NORM),
        pair("norm", PRE, ("post", NAN)),
        table("norm learning_rate loss", (*PRE_AT, 1.41), ("post", 1e-2, 3), ("post", 3e-3, 1.4)),
    ],
    (NOPE, None): [
        pair("position", ("rope", 1.41), ("none", 1.46)),
        pair("position", ("rope", 1.41), (None, 1.46)),
    ],
    (SILU, None): [
        table("ffn d_ff", ("swiglu", 1_344), ("silu", 2_048)),
        table("ffn d_ff loss", ("SwiGLU", 1_344, 1.41), ("SiLU", 2_016, 1.42)),
        table("ffn d_ff loss", ("swiglu", 512, 1.4), ("silu", 768, 1.5), ("silu", 800, 1.45)),
    ],
    (WEB, None): [
        table("corpus loss", ("owt", 3.95)),
        table("corpus loss bits_per_byte", STORIES, DOCSTRINGS),
    ],
    (BOARD, None): [
        [{"loss": 3.3, "seconds": 60}],
        [{"loss": 3.3, "minutes": 44, "corpus": "owt"}],
        {"loss": 3.3, "seconds": 50},
        table("name loss seconds", ("start", 4.2, 60.0), ("tied", 4.1, 60.4), ("long", 4.0, 999)),
    ],
    (LOG, None): [
        pd.DataFrame({"name": ["a", "b"], "loss": [1.5, NAN], "seconds": [600, 120]}),
        [ROW | {"batch_size": 1, "tokens": 102_400}] * 2,
        [ROW, ROW | {"tokens": 819_200}],
        [ROW, ROW | {"tokens": 4 * 819_200}],
        [ROW, ROW | {"tokens": 400_000}],
        [ROW, ROW | {"bits_per_byte": 0.69}],
    ],
}

# Wrong in the laptop's profile and edition 2025, the first of each in every one; and a piece of
# what is said.
WRONG = {
    (LR, "a"): [
        (sweep(LOSSES | {3e-3: 0.2}), "Does it see its targets"),
        (sweep(LOSSES | {3e-3: -1.4}), "never negative"),
        (sweep(dict.fromkeys(LOSSES, 12.0)), "summed and not averaged"),
        (sweep({1e-4: 1.9, 1e-3: 1.6, 3e-3: 1.5}), "0.003, is at an end"),
        (sweep({1e-2: 1.5, 3e-2: 1.6, 1e-1: 2.5}), "0.01, is at an end"),
        (sweep(dict.fromkeys(LOSSES, NAN)), "No run finished"),
        (sweep({-1e-3: 1.5, 3e-3: 1.4, 1e-2: 1.6}), "`learning_rate` of a run is above 0"),
        (sweep({10: 1.5, 30: 1.41, 100: 1.6}), "trains no model at a learning rate of 30"),
        (
            table("learning_rate loss steps", *zip(LOSSES, LOSSES.values(), READ, strict=True)),
            "different numbers of steps",
        ),
        (sweep({1e-3: 2.5, 3e-3: 2.41, 1e-2: 2.6}, corpus="tinystories"), "2.00 with 40,960,000"),
        (sweep(dict.fromkeys(LOSSES, 0.5034), corpus="tinystories"), "in bits per byte"),
        (
            table("learning_rate loss corpus", *zip(LOSSES, (5.7, 4.5, 5.9), TEXTS, strict=True)),
            "in `corpus` as well",
        ),
        (
            table("learning_rate loss tokens", *zip(LOSSES, LOSSES.values(), READ, strict=True)),
            "`learning_rate` 0.001: 100,000, `learning_rate` 0.003: 1,000,000",
        ),
        (sweep(LOSSES) + sweep({3e-3: 1.4}, norm="none") + sweep({3e-3: 1.5}, norm="pre"), "norm"),
    ],
    (LR, "b"): [
        (sweep({6e-3: 1.41, 1e3: NAN}), "between 0.006, which converges, and 1000"),
        (sweep({1e-2: 1.41, 3e-3: NAN}), "are two of them swapped"),
        (SWEEP, "0.003: they go up to 0.01"),
        ([*SWEEP, {"learning_rate": 0.1}], "1 of 4 runs left out: they have no `loss`"),
    ],
    (BATCH, None): [
        (table("batch_size loss", (32, 1.5), (64, 1.5)), "batch size of 1, 128"),
        (table(*SIZES, steps=1000), "compare at equal tokens"),
        (
            table("batch_size loss tokens", (1, 1.5, 9e5), (64, 1.5, 5e5), (128, 1.5, 8e5)),
            "These runs saw different numbers of tokens",
        ),
        (table(*SIZES) + table(SIZES[0], (8, 4.9), corpus="docstrings"), "in `corpus` as well"),
    ],
    (NORMS, None): [
        (
            table("norm learning_rate loss", (*PRE_AT, 1.4), ("none", 1e-2, NAN)),
            "0.01, and a lower one",
        ),
    ],
    (POST, None): [
        (table("norm loss tokens", (*PRE, 8e5), (*POST_NORM, 4e5)), "different numbers of tokens"),
        (table("norm loss num_layers", (*PRE, 4), (*POST_NORM, 6)), "in `num_layers` as well"),
        (pair("norm", PRE, ("post", 0.1)), "lower than any model"),
    ],
    (NOPE, None): [
        (pair("position", ("rope", 1.4), ("none", 1.4), perplexity=5.5), "exp(loss) = 4.055")
    ],
    (SILU, None): [
        (table("ffn d_ff", ("swiglu", 1_344), ("silu", 1_344)), "a third smaller"),
        (table("ffn d_ff", ("swiglu", 1_344), ("silu", 4_096)), "not matched"),
        (table("ffn d_ff", ("swiglu", 576), ("silu", 384)), "Were the two widths swapped?"),
        (
            table("ffn d_ff loss", ("swiglu", 512, 1.4), ("silu", 768, 1.5), ("silu", 4_096, 1.3)),
            "3·d·512 and 2·d·4096",
        ),
    ],
    (WEB, None): [
        (table("corpus loss", ("tinystories", 3.9), ("owt", 2.4)), "not easier than stories"),
        (table("corpus loss", ("tinystories", 1.4), ("owt", 0.521)), "can get on owt"),
        (
            table("corpus loss bits_per_byte", ("stories", 1.9, 2.1), ("docstrings", 4.9, 1.9)),
            "1.9 against 2.1",
        ),
        (table("corpus loss", ("owt", 49.0)), "ln 32,000"),
        (
            table("corpus loss tokens", ("stories", 1.9, 1e6), ("docstrings", 4.9, 1e5)),
            "`corpus` docstrings: 100,000, `corpus` stories: 1,000,000",
        ),
        (
            table("corpus loss steps", ("owt", 3.9, 5e3), ("tinystories", 1.4, 1e4)),
            "different numbers of steps",
        ),
        (table("corpus loss", ("owt", 3.9), ("docstrings", 4.9)), "docstrings and owt"),
    ],
    (BOARD, None): [
        ([{"loss": 3.3, "seconds": 92 * 60, "corpus": "owt"}], "edition 2025 allows 90"),
        (
            [{"loss": 4.2, "minutes": 60}],
            "the profile laptop, on its stand-in docstrings, allows 60",
        ),
        ([{"loss": 3.4, "seconds": 2_640}], "If this was another text, name its `corpus`"),
        ([{"loss": 3.4, "seconds": -3, "corpus": "owt"}], "`seconds` of a run is above 0"),
        ([{"loss": 1.9, "seconds": 50, "corpus": "stories"}], "from the web: stories is none"),
        ([{"loss": 1.2, "seconds": 59}], "lower than any model can get on docstrings"),
        ([{"loss": 5.2, "corpus": "owt", "seconds": 2_640}], "5.2 is not below 5"),
    ],
    (LOG, None): [
        ([ROW, ROW | {"tokens": 6_400}], "context length left out"),
        ([ROW, ROW | {"tokens": 102_400}], "Is the batch size or"),
        ([ROW, ROW | {"tokens": 800}], "Is the batch size or"),
        ([ROW, ROW | {"tokens": 1_000_000}], "819,200"),
        ([ROW, ROW | {"perplexity": 3.9}], "2 ** loss is for bits"),
        ([ROW, ROW | {"bits_per_byte": 2.83}], "loss / ln 2 / bytes_per_token = 0.83"),
        ([ROW, ROW | {"bits_per_byte": 0.48, "bytes_per_token": 4.1}], "a division left out"),
        (SWEEP, "How long did they take"),
    ],
}

# Other forms and values that are none, and a piece of what is said; without one, the form.
REFUSED = {
    (LR, "a"): [
        (1.44, ""),
        (sweep(dict.fromkeys(LOSSES, "low")), 'is no number; write "diverged" for a run that did'),
        ({"lr": 3e-3, "Score": 1.4}, "No run has a `loss`: the columns are lr, score."),
        (sweep(dict.fromkeys(LOSSES, 1.5), learning_rate=NAN), "they lack `learning_rate`"),
        ("3e-3", "no number in a text is judged"),
        (sweep({1e-3: [1.5, 1.6]}), "is no number"),
        (table("learning_rate", (1e-3,)), "No run has a `loss`"),
        (sweep({1e-3: 1.5, 1e-2: 1.6}), "too few learning rates"),
        (sweep(LOSSES, corpus="wikitext"), "'docstrings'), not 'wikitext'"),
    ],
    (BATCH, None): [([1, 64, 128], ""), (SWEEP, "No run has a `batch_size`")],
    (POST, None): [({"pre": 1.41, "post": 1.44}, ""), (pair("norm", PRE, PRE), 'and with "post"')],
    (NORMS, None): [(pair("norm", ("pre", 1.4), ("none", 1.6)), "have no `learning_rate`")],
    (NOPE, None): [(pair("position", ("rope", 1.4), ("nope", 1.5)), 'and with "none"')],
    (SILU, None): [
        (2_048, ""),
        (table("ffn d_ff", ("silu", 8)), "swiglu"),
        (
            [{"ffn": "swiglu", "d_ff": 384, "loss": 1.9}, {"ffn": "silu", "d_ff": 576}],
            'yours have "swiglu". 1 of 2 runs left out: they have no `loss`.',
        ),
        (pair("ffn", ("swiglu", 1.41), ("silu", 1.43)), "No run has a `d_ff`"),
    ],
    (BOARD, None): [([{"loss": 3.2}], "No run has a `seconds`")],
    (WEB, None): [
        (3.95, ""),
        (table("corpus loss", ("stories", 1.9)), "No run has the `corpus`"),
        ([{"corpus": "owt"}, {"corpus": "stories", "loss": 1.9}], "left out: they have no `loss`"),
    ],
    (LOG, None): [
        ([ROW], "That is one run"),
        (b"1.4", ""),
        (table("step loss seconds", (0, 7.6, 0), (100, 4.0, 10)), "the steps of one run"),
    ],
}
