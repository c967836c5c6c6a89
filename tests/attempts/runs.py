"""Tables of runs as people hand them in for chapter 7, right and wrong."""

import math

import numpy
import pandas as pd

from workbook.experiments import results

NAN = math.nan
LR, BATCH, BOARD = "learning_rate", "batch_size_experiment", "leaderboard"
NORMS, POST, NOPE = "layer_norm_ablation", "pre_norm_ablation", "no_pos_emb"
SILU, WEB, LOG = "swiglu_ablation", "main_experiment", "experiment_log"


def log(*losses):
    """The log of a run, as `training.log.read` gives it."""
    lines = {"tokens": 10, "seconds": 1.5, "train_loss": 2.0, "learning_rate": 1e-3}
    table = [
        {"step": i, **{name: i * value for name, value in lines.items()}, "validation_loss": loss}
        for i, loss in enumerate(losses)
    ]
    return pd.DataFrame(table).set_index("step")


def indexed(labels, **columns):
    """A table of runs, as `results.table` gives it."""
    return pd.DataFrame(columns, index=pd.Index(labels, name="run"))


def recorded(study):
    """The records of an experiment that came with the workbook, as a learner would compare them.

    They have one budget, the smallest for a sweep; the entries of the leaderboard have one time.
    """
    found = results.Recorded("laptop", "2025")
    runs, scale = found[study], found.scale
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


SWEEP = {1e-3: 1.5, 3e-3: 1.41, 1e-2: 1.6}
SIZES, LOSSES = [1, 64, 128], [1.9, 1.5, 1.6]
NO_NORM = {"max_learning_rate": [1e-2, 1e-2, 1e-3], "validation_loss": [1.41, math.inf, 1.6]}
BATCHES = {"batch_size": [1, 32, 32, 64, 128], "validation_loss": [2.3, 2.2, 1.5, 1.6, 1.7]}
LOGGED = {"steps": 800, "batch_size": 8, "context_length": 128, "seconds": 80}
ROW = {"steps": 800, "batch_size": 8, "context_length": 128, "seconds": 80, "loss": 1.96}
BOTH = {"norm": ["pre", "post"], "validation_loss": [1.41, 1.44]}

# Right in every profile and edition.
RIGHT = {
    (LR, "a"): [
        1.44, 1.95, numpy.float64(1.3), SWEEP, pd.Series(SWEEP),
        {"1e-3": 1.5, "3e-3": "1.41", "1e-2": "diverged", "comment": "on a log scale"},
        {1e-3: [3.0, 2.0, 1.5], 3e-3: [3.0, 2.0, 1.41], 1e-2: [3.0, 2.5, 1.6]},
        {1e-3: (1.5, 1.51), 3e-3: numpy.array([1.41, 1.42]), 1e-2: 9.5},
        [{"lr": rate, "loss": loss} for rate, loss in SWEEP.items()], [*SWEEP.items()],
        {"lr": [*SWEEP], "best_val_loss": [*SWEEP.values()], "final_train_loss": [0.1, 0.1, 0.1]},
        {1e-3: {"loss": 1.5, "perplexity": 4.48}, 3e-3: {"loss": 1.41}, 1e-2: {"loss": 1.6}},
        {"rate 0.001": 1.5, "lr=0.003": 1.41, "rate 0.01": math.inf},
        pd.DataFrame({"lr": [1e-3, 3e-3, 1e-2], "train_loss": 0.1, "val_loss": [1.5, 1.41, 1.6]}),
        pd.DataFrame({"Val Loss": [1.5, 1.41, 1.6]}, index=pd.Index([1e-3, 3e-3, 1e-2], name="lr")),
    ],
    (LR, "b"): [
        (3e-3, 1e-2), [3e-3, 1e-2], (numpy.float32(1e-2), 1.0),
        SWEEP | {3e-2: NAN, 1e-1: NAN}, {1e-3: 1.5, 3e-3: 1.41, 1e-2: 6.9},
        {"1e-3": 1.5, "1e-2": 1.45, "3e-2": 1.6, "0.1": "nan"},
        {1e-3: 1.5, 1e-2: 1.41, 3e-2: 1.43, 1e-1: NAN, 2e-1: 7.0, 5e-1: NAN},
        SWEEP | {3e-2: {"loss": 2.9, "status": "diverged"}},
        indexed(["rate 0.003", "rate 0.01", "rate 0.1"], max_learning_rate=[3e-3, 1e-2, 0.1],
                min_learning_rate=[3e-4, 1e-3, 1e-2], validation_loss=[1.5, 1.41, math.inf],
                status=["finished", "finished", "diverged"]),
    ],
    (BATCH, None): [
        dict(zip(SIZES, LOSSES, strict=True)), (1, 8, 64, 128), [1.0, 64.0, 128.0],
        {"batch 1": 1.9, "batch 64": 1.5, "batch 128": 1.6, "batch 512": "OOM"},
        {64: [1.5, 1.49], 128: [1.6, 1.61], 1: [1.9, 1.91]},
        pd.DataFrame({"batch": [*SIZES, 768], "val_loss": [*LOSSES, "-"], "state": "ok or OOM"}),
        pd.DataFrame({"batch": SIZES, "steps": [12_800, 200, 100], "loss": LOSSES}),
        pd.DataFrame({"batch": SIZES, "minutes": 10, "tokens": [1e5, 6e6, 1e7], "loss": LOSSES}),
        indexed(["batch 1 on 1/16", "batch 32 on 1/16", "batch 32", "batch 64", "batch 128"],
                tokens=[51_200, 51_200, 819_200, 819_200, 819_200], **BATCHES),
    ],
    (NORMS, None): [
        {("pre", 1e-2): 1.41, ("none", 1e-2): NAN, ("none", 1e-3): 1.6},
        {("pre", 1e-2): 1.41, ("none", 1e-2): NAN, ("none", 1e-3): NAN},
        {"pre": 1.41, "no norm (same lr)": "diverged", "no norm (lower lr)": 1.6},
        indexed(["unchanged, seed 336", "no norm, rate 0.01", "no norm, rate 0.001"],
                norm=["pre", "none", "none"], **NO_NORM),
        {"baseline": 1.4, "no norm 1e-2": NAN, "without norm 1e-3": 1.6},
        {"with norm": 1.4, "without norm, lr=1e-2": NAN, "without norm, lr=1e-3": 1.6},
        [{"norm": "pre", "lr": 1e-2, "loss": 1.41}, {"norm": None, "lr": 1e-3, "loss": 1.6},
         {"norm": "none", "lr": 1e-2, "loss": None, "status": "diverged"}],
    ],
    (POST, None): [
        {"pre": 1.41, "post": NAN}, {"pre-norm": 1.41, "post_norm": "diverged"},
        {"pre": [1.41, 1.42, 1.4], "post": [1.44, 1.43, 1.45]},
        {("pre", 1): 1.41, ("pre", 2): 1.42, ("post", 1): 1.44, ("post", 2): 1.45},
        indexed(["unchanged", "post-norm"], **BOTH),
        {"pre": {"loss": 1.41, "lr": 1e-2}, "post": {"loss": 1.44, "lr": 3e-3}},
        {("pre", 1e-2): 1.41, ("post", 1e-2): 3.1, ("post", 3e-3): 1.44},
    ],
    (NOPE, None): [
        {"RoPE": 1.41, "NoPE": 1.46}, {"rope": 1.41, "no rope": 1.46},
        {"rope": 1.41, "no_pos_emb": 1.46}, {"with RoPE": 1.41, "without RoPE": 1.46},
        indexed(["unchanged, seed 1", "no RoPE, seed 1"], position=["rope", "none"],
                validation_loss=[1.41, 1.46]),
    ],
    (SILU, None): [
        2_048, 2_016, 512, 576, (2_064_384, 2_097_152), (22_696_448, 22_827_520), (1_344, 2_048),
        (1_408, 2_048), (2.16e6, 2.10e6), (2_048, 3_072),
        {"SwiGLU": 1.41, "SiLU": 1.43}, {"swiglu": [1.41, 1.42], "silu": [1.43, 1.42]},
        {"swiglu": {"params": 22.7e6, "loss": 1.41}, "silu": {"params": 22.8e6, "loss": 1.42}},
        {"swiglu": {"d_ff": 1_344, "loss": 1.41}, "silu": {"d_ff": 2_048, "loss": 1.42}},
        indexed(["unchanged", "SiLU, seed 1", "SiLU, 4 d_model"], ffn=["swiglu", "silu", "silu"],
                d_ff=[384, 576, 512], validation_loss=[1.9, 1.91, 1.92]),
    ],
    (WEB, None): [
        3.95, {"TinyStories": 1.41, "OpenWebText": 3.95}, {"stories": 1.9, "docstrings": 4.9},
        {"simple": 1.3, "web": 4.9}, {"owt": 3.95},
        {"docstrings": {"loss": 4.9, "bits per byte": 1.96}, "stories": {"loss": 1.9}},
        indexed(["simple, seed 1", "web, rate 0.01", "web, longer"], bits_per_byte=[0.8, 2, 1.9],
                corpus=["stories", "docstrings", "docstrings"], validation_loss=[1.9, 4.9, 4.8]),
    ],
    (BOARD, None): [
        3.3, (3.3, 44), {"loss": 3.3, "minutes": 44}, {"validation_loss": 3.3, "hours": 0.7},
        {"base": 4.1, "tied": 4.05, "together": 3.9}, log(9.0, 5.0, 4.4),
        indexed(["start", "tied embeddings"], seconds=[100.0, 101.0], validation_loss=[4.2, 4.1]),
    ],
    (LOG, None): [
        pd.DataFrame({"name": ["a", "b"], "val_loss": [1.5, NAN], "minutes": [10, 2]}),
        *([{"run": "a", "loss": 1.5, time: 10}, {"run": "b", "loss": 1.4, time: 10}]
          for time in ("time_s", "time", "wall_time", "wall_clock_s", "train_time", "time_min")),
        {"a": {"loss": 1.5, "seconds": 10}, "b": {"loss": 1.4, "seconds": 12}},
        indexed(["ended", "its time was over"], tokens=[819_200, 400_000],
                validation_loss=[1.9, 2.2], **LOGGED),
        pd.DataFrame({"iter": [100, 200, 300], "elapsed": [1, 2, 3], "val/loss": [5.0, 4.0, 3.1],
                      "step_time": [0.01, 0.02, 0.01]}),
        [ROW | {"seconds": "5.8 min", "steps": "5,000"}, ROW],
        log(9.0, 5.0, 4.4), log(9.0, NAN, 4.4), [ROW, ROW | {"bits_per_byte": 0.69}],
    ],
}  # fmt: skip

# Wrong in the laptop's profile and edition 2025, and a piece of what is said.
WRONG = {
    (LR, "a"): [
        (0.2, "validated on text that it was trained on"), (-1.4, "never negative"),
        (12.0, "summed and not averaged"),
        ({1e-4: 1.9, 1e-3: 1.6, 3e-3: 1.5}, "is the largest one that was tried"),
        ({1e-2: 1.5, 3e-2: 1.6, 1e-1: 2.5}, "is the smallest one that was tried"),
        ({1e-2: NAN, 3e-2: NAN, 1e-1: NAN}, "No run finished"),
        ({-1e-3: 1.5, 3e-3: 1.4, 1e-2: 1.6}, "A learning rate is positive"),
        ({"lr=1e-3": 1.5, "lr=3e-3": 0.1, "lr=1e-2": 1.6}, "lower than any model"),
        ({1e-4: 1.9, 1e-3: 0.1, 3e-3: 0.05}, "is the largest one that was tried"),  # as well
        ([{"lr": rate, "loss": loss + 1, "corpus": "TinyStories"} for rate, loss in SWEEP.items()],
         "2.00 with 40,960,000 tokens"),
        ([{"lr": rate, "loss": 0.5034, "corpus": "TinyStories"} for rate in SWEEP],
         "0.5034 bits per byte are 1.43 nats per token")],
    (LR, "b"): [
        ((3e-3, 1e3), "5.5 orders of magnitude"), ((1e-2, 3e-3), "may be swapped"),
        ((0.0, 3e-3), "positive and finite"), (SWEEP, "No run diverges: all converge, up to 0.01"),
        (SWEEP | {1e-4: NAN}, "may be swapped"), (SWEEP | {10.0: NAN}, "3.0 orders of magnitude"),
        (SWEEP | {3e-2: {"loss": 1.3, "status": "diverged"}}, "its loss is the lowest")],
    (BATCH, None): [
        ({32: 1.5, 64: 1.5}, "Run 1, 128 as well"), ([1, 2, 4], "needs about"),
        (pd.DataFrame({"batch": SIZES, "steps": 1000, "loss": LOSSES}),
         "All took the same number of steps"),
        (pd.DataFrame({"batch": SIZES, "tokens": [9e5, 5e5, 8e5], "loss": 1.5}),
         "These runs saw different numbers of tokens"),
        ({1: 1.9, 64: 0.2, 128: 1.6}, "lower than any model")],
    (NORMS, None): [
        ({("pre", 1e-2): 1.4, ("none", 1e-2): NAN}, "The lower one is missing"),
        ({("pre", 1e-2): 1.4, ("none", 1e-3): 1.6}, "The old one, 0.01, is missing"),
        ({"pre": 1.4, "no norm": 1.6}, "two learning rates are asked for")],
    (POST, None): [
        (indexed(["a", "b"], tokens=[8e5, 4e5], **BOTH), "different numbers of tokens"),
        (indexed(["a", "b"], num_layers=[4, 6], **BOTH), "in `num_layers` as well"),
        ({"pre": 1.41, "post": 0.1}, "lower than any model")],
    (NOPE, None): [
        ({"rope": {"loss": 1.4, "perplexity": 5.5}, "none": 1.5}, "exp(1.4) = 4.06")],
    (SILU, None): [
        (1_344, "a third fewer parameters"), ((1_344, 4_096), "not matched"),
        ((2_064_384, 1_376_256), "a third fewer"), ((1_344, 1_344), "not matched"),
        ({"swiglu": {"d_ff": 384, "loss": 1.9}, "silu": {"d_ff": 384, "loss": 2}}, "1.50")],
    (WEB, None): [
        ({"tinystories": 3.9, "owt": 2.4}, "not easier than stories"),
        ({"tinystories": 0.5, "owt": 3.9}, "lower than any model can get on tinystories"),
        ({"tinystories": 1.4, "owt": 0.521}, "0.17 bits per byte"),
        ({"stories": {"loss": 1.9, "bits per byte": 2.1}, "docstrings": {"loss": 4.9,
          "bits per byte": 1.9}}, "`bits_per_byte` of 1.9 against 2.1"),
        (49.0, "ln 32,000"), (1.1, "lower than any model can get on docstrings"),
        (indexed(["a", "b"], corpus=["stories", "docstrings"], validation_loss=[1.9, 1.2]),
         "docstrings")],
    (BOARD, None): [
        ({"base": NAN, "tied": NAN}, "No run finished"),
        ((3.3, 91), "the 90 that edition 2025 allows"),
        (log(9.0, 1.2), "lower than any model can get on docstrings"),
        (log(9.0, 4.0).assign(seconds=[0.0, 6_000.0]), "100 minutes"),
        ({"loss": 5.2, "corpus": "OWT"}, "less than 5")],
    (LOG, None): [
        ([ROW, ROW | {"tokens": 6_400}], "The context length is missing"),
        ([ROW, ROW | {"tokens": 102_400}], "The batch size is missing"),
        ([ROW, ROW | {"tokens": 1_000_000}], "819,200"),
        ([ROW, ROW | {"perplexity": 3.9}], "2 ** loss is for bits"),
        ([ROW, ROW | {"perplexity": 9.1}], "exp(1.96) = 7.10"),
        ([ROW, ROW | {"bits_per_byte": 2.83}], "divide by the bytes per token"),
        ([ROW, ROW | {"bits_per_byte": 0.48, "bytes_per_token": 4.1}], "divide by ln 2"),
        ([ROW, ROW | {"bits_per_byte": 2, "bytes_per_token": 4.1}], "bits per byte and the other"),
        ([{"lr": 1e-3, "loss": 1.5}, {"lr": 1e-2, "loss": 1.4}], "how long it took"),
        (log(9.0, 5.0, 4.0).drop(columns="seconds"), "no column `seconds`"),
        (log(9.0, 5.0, 4.0).assign(seconds=[1.0, 0.5, 0.7]), "Time runs backwards")],
}  # fmt: skip

# In dicts of other forms.
RIGHT.setdefault((LR, "b"), []).append({"best": 3e-3, "diverges": 1e-2})
RIGHT.setdefault((NORMS, None), []).append({"pre": {3e-3: 1.41}, "none": {3e-3: NAN, 3e-4: 1.6}})
WRONG.setdefault((LR, "b"), []).append(({"best": 3e-2, "diverges": 3e-3}, "swapped"))
WRONG.setdefault((SILU, None), []).append(({"swiglu": 1344, "silu": 896}, "third fewer"))
