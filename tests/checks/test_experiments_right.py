"""Honest answers to the problems of chapter 7, as people write them: none may be refused."""

import math
import re

import numpy
import pandas as pd
import pytest
from attempts.pairs import EXPERIMENTS

from workbook.study.problems import PROBLEMS
from workbook.study.verbs import check

NAN = math.nan
LR, BATCH, BOARD = "learning_rate", "batch_size_experiment", "leaderboard"
NORMS, POST, NOPE, SILU = (
    "layer_norm_ablation",
    "pre_norm_ablation",
    "no_pos_emb",
    "swiglu_ablation",
)
WEB, LOG = "main_experiment", "experiment_log"


def log(*losses):
    """The log of a run, as `runlog.read` gives it."""
    lines = {"tokens": 10, "seconds": 1.5, "train_loss": 2.0, "learning_rate": 1e-3}
    table = [
        {"step": i, **{name: i * value for name, value in lines.items()}, "validation_loss": loss}
        for i, loss in enumerate(losses)
    ]
    return pd.DataFrame(table).set_index("step")


def indexed(labels, **columns):
    """A table of runs, as `runs.table` gives it."""
    return pd.DataFrame(columns, index=pd.Index(labels, name="run"))


@pytest.fixture(params=[("laptop", "2025"), ("full", "2026")])
def anywhere(request, monkeypatch):
    """Both profiles and both editions."""
    for name, value in zip(("WORKBOOK_PROFILE", "WORKBOOK_EDITION"), request.param, strict=True):
        monkeypatch.setenv(name, value)


def expect_read(problem, part, attempts):
    for attempt in attempts:
        report = check(problem, attempt, part)
        assert report.status in ("correct", "read"), (attempt, report)
        assert report.status == "correct" or 2 <= len(report.facts) <= 4


def test_the_attempts_of_the_notebook_are_judged_alike_everywhere(anywhere):
    for (problem, part), (right, wrong) in EXPERIMENTS.items():
        assert check(problem, right, part).status == "correct", problem
        assert check(problem, wrong, part).status == "wrong", problem


def test_sweeps_and_their_best_loss(anywhere):
    expect_read(LR, "a", [
        "I swept 1e-4, 3e-4, 1e-3, 3e-3 and 1e-2 on a log scale; the best, 3e-3, reaches a loss of"
        " 1.43 nats/token on TinyStories with 32 × 5,000 × 256 = 40,960,000 tokens.",
        "On `stories` the best validation loss is 0.92 nats per token; the entropy is 0.40.",
        "Best: 1.40 nats/token (perplexity 4.06, 0.49 bits/byte at 4.1 bytes per token).",
        "The loss falls from 9.21 to 1.45. The training loss ends at 0.31, validation at 1.45.",
        "The gap between train and validation loss is 0.03 nats.",
        "Two seeds differ by 0.01 nats per token, so the best loss of 1.44 is solid.",
        "First 10^-4, 10^-3, 10^-2, then finer: 2×10⁻³ gives 1.38.",
        "A single batch is learnt by heart: loss 0.002. The real run ends with a loss of 1.39.",
        "With lr=3e-3: val loss 1.3991, ppl 4.05. With lr=1e-3: val loss 1.52, ppl 4.57.",
        "The loss improved by 0.12 to 1.44; it is 0.05 nats lower than with 1e-3.",
        "128 x 10,000 x 256 = 327.68 million tokens, final val loss 1.33 on TinyStories",
        "Final validation loss 1.33 nats = 0.47 bits per byte, after 0.8 hours",
        "A validation loss of 1.95 on TinyStories with the CPU budget.",
        "La mejor pérdida de validación es 1,41.",
        1.44, 1.95, numpy.float64(1.3),
        "| LR | Val Loss | PPL |\n|---|---|---|\n| 3e-4 | 1.53 | 4.6 |\n| 2e-3 | 1.35 | 3.9 |",
        {"1e-3": 1.5, "3e-3": "1.41", "1e-2": "diverged", "comment": "on a log scale"},
        {1e-3: [3.0, 2.0, 1.5], 3e-3: [3.0, 2.0, 1.41], 1e-2: [3.0, 2.5, 1.6]},
        {1e-3: (1.5, 1.51), 3e-3: numpy.array([1.41, 1.42]), 1e-2: 9.5},
        [(1e-3, 1.5), (3e-3, 1.41), (1e-2, 1.6)],
        [{"lr": rate, "loss": loss} for rate, loss in ((1e-3, 1.5), (3e-3, 1.41), (1e-2, 1.6))],
        {"lr": [1e-3, 3e-3, 1e-2], "val_loss": [1.5, 1.41, 1.6]},
        {1e-3: {"loss": 1.5, "perplexity": 4.48}, 3e-3: {"loss": 1.41}, 1e-2: {"loss": 1.6}},
        {"rate 0.001": 1.5, "rate 0.003": 1.41, "rate 0.01": math.inf},
        pd.Series({1e-3: 1.5, 3e-3: 1.41, 1e-2: 1.6}),
        pd.DataFrame({"lr": [1e-3, 3e-3, 1e-2], "train_loss": 0.1, "val_loss": [1.5, 1.41, 1.6]}),
        pd.DataFrame({"val_loss": [1.5, 1.41, 1.6]}, index=["lr=1e-3", "lr=3e-3", "lr=1e-2"]),
        {1e-3: log(4.0, 1.5), 3e-3: log(4.0, 1.41), 1e-2: log(4.0, 1.6)},
    ])  # fmt: skip


def test_differences_shares_and_settings_are_no_losses(anywhere):
    expect_read(LR, "a", [
        "The loss is 0.04 nats per token away from the entropy.",
        "train/val loss 0.31/1.44",
        "Validation loss at 0.25, 0.5 and 0.75 of training: 2.1, 1.7 and 1.5",
        "warm-up 0.1 of the steps, betas 0.9 and 0.95, loss 1.44; gradient norm 0.5, loss 1.44",
        "1.44 nats/token = 2.08 bits/token = 0.51 bits/byte; loss 1.44, time 0.5 h",
        "Loss 4.0, perplexity 55 after 100 steps; in the end 1.4 and 4.1.",
    ])  # fmt: skip
    expect_read(NOPE, None, [
        "Without RoPE the loss is 3.33: it costs 0.53 nats per token.", "+0.53 nats/token",
        "SiLU 3.06 ± 0.03, SwiGLU 2.84 ± 0.05 (5 seeds)",
    ])  # fmt: skip
    expect_read(WEB, None, [
        "pydocs costs 5.49 nats per token, 2.32 bits per byte, where stories cost 2.79.",
        "At 4.5 bytes a token, 3.95 nats are 1.27 bits per byte; TinyStories: 1.41, 0.50",
    ])  # fmt: skip
    expect_read(BOARD, None, [
        "Weight tying gains 0.05 nats per token, bfloat16 another 0.1.",
        "With 2 hours it would reach 3.2; in the 45 minutes allowed it gets 3.4.",
        "The final loss of 3.4 took 44 min 50 s of training and the evaluation 20 s.",
    ])  # fmt: skip


def test_a_long_answer_is_read_in_time():
    for line in ("loss ", "1e-3 diverges ", "0.5 loss\n", "1 x 1 x ", "reaches a b 1.4 "):
        for part in "ab":
            report = check(LR, line * (19_000 // len(line)), part)
            assert "stopped" not in report.message


def test_edges_of_stability(anywhere):
    expect_read(LR, "b", [
        "Runs begin to diverge between 2e-2 and 3e-2; the best, 6e-3, is four times below.",
        "At 1e-1 the loss goes to NaN in 40 steps. 3e-2 is stable but worse; best is 1e-2.",
        "With 0.03 it diverged, with 0.02 not. 0.025 diverges, 0.0225 does not. The best is 0.006.",
        "Nothing diverges up to 1.0 thanks to clipping; at 3.2 the loss climbs. Best rate 1e-2.",
        "lr 1 diverges; lr 1e-3 is best (1.43)",
        "6e-3 is best; the edge lies between 1.2e-2 (stable) and 1.4e-2 (diverges).",
        (3e-3, 1e-2), [3e-3, 1e-2], (numpy.float32(1e-2), 1.0),
        {1e-3: 1.5, 3e-3: 1.41, 1e-2: 1.6, 3e-2: NAN, 1e-1: NAN},
        {1e-3: 1.5, 3e-3: 1.41, 1e-2: 6.9},
        {"1e-3": 1.5, "1e-2": 1.45, "3e-2": 1.6, "0.1": "nan"},
        {1e-3: 1.5, 1e-2: 1.41, 3e-2: 1.43, 1e-1: NAN, 2e-1: 7.0, 5e-1: NAN},
        indexed(["rate 0.003", "rate 0.01", "rate 0.1"], max_learning_rate=[3e-3, 1e-2, 0.1],
                min_learning_rate=[3e-4, 1e-3, 1e-2], validation_loss=[1.5, 1.41, math.inf],
                status=["finished", "finished", "diverged"]),
    ])  # fmt: skip


def test_sweeps_over_batch_sizes(anywhere):
    sizes, losses = [1, 64, 128], [1.9, 1.5, 1.6]
    usual = {"batch_size": [1, 32, 32, 64, 128], "validation_loss": [2.3, 2.2, 1.5, 1.6, 1.7]}
    expect_read(BATCH, None, [
        "I tried 1, 8, 16, 32, 64, 128, 256 and 512. 32 is best (1.42); 1,024: out of memory.",
        "Batch 64 and 128 do not fit on my 4 GB card, so I accumulated gradients.",
        "With 128 the loss is 1.47, with 64 1.44 and with 1 2.1, on a prefix.",
        dict(zip(sizes, losses, strict=True)),
        {"batch 1": 1.9, "batch 64": 1.5, "batch 128": 1.6, "batch 512": "OOM"},
        {64: [1.5, 1.49], 128: [1.6, 1.61], 1: [1.9, 1.91]},
        (1, 8, 64, 128), [1.0, 64.0, 128.0],
        pd.DataFrame({"BS": [*sizes, 768], "Val Loss": [*losses, "-"], "State": "ok or OOM"}),
        pd.DataFrame({"batch per GPU": sizes, "global batch": [4, 256, 512], "loss": losses,
                      "steps": [64_000, 1_000, 500]}),
        pd.DataFrame({"batch": sizes, "steps": [12_800, 200, 100], "loss": losses}),
        pd.DataFrame({"batch": sizes, "minutes": 10, "tokens": [1e5, 6e6, 1e7], "loss": losses}),
        indexed(["batch 1 on 1/16", "batch 32 on 1/16", "batch 32", "batch 64", "batch 128"],
                tokens=[51_200, 51_200, 819_200, 819_200, 819_200], **usual),
    ])  # fmt: skip


def test_ablations_of_norms(anywhere):
    rates = {"max_learning_rate": [1e-2, 1e-2, 1e-3], "validation_loss": [1.41, math.inf, 1.6]}
    expect_read(NORMS, None, [
        "Tested at three learning rates (2e-3, 5e-4, 1e-4): the loss is NaN at all three.",
        "Without norms 1e-2 gives NaN within 100 steps; at 1e-3 it trains, to 1.62 against 1.41.",
        "Removing RMSNorm is significantly worse: 1.41 against 1.72.",
        {("pre", 1e-2): 1.41, ("none", 1e-2): NAN, ("none", 1e-3): 1.6},
        {("pre", 1e-2): 1.41, ("none", 1e-2): NAN, ("none", 1e-3): NAN},
        {"baseline": 1.41, "no norm (same lr)": "diverged", "no norm (lower lr)": 1.6},
        {"RMSNorm": 1.41, "without RMSNorm, lr=1e-2": NAN, "without RMSNorm, lr=1e-3": 1.6},
        indexed(["unchanged, seed 336", "no norm, rate 0.01", "no norm, rate 0.001"],
                norm=["pre", "none", "none"], **rates),
        pd.DataFrame({"model": ["norm", "no_norm", "no_norm"], **rates}),
        [{"norm": "pre", "lr": 1e-2, "loss": 1.41}, {"norm": "none", "lr": 1e-3, "loss": 1.6},
         {"norm": "none", "lr": 1e-2, "loss": None, "status": "diverged"}],
    ])  # fmt: skip
    expect_read(POST, None, [
        "Post-norm ends at 1.46, pre-norm at 1.41: five times the spread of 0.01 between seeds.",
        "Post-norm diverges at the best pre-norm rate, so it is significantly less stable.",
        "No significant difference.",
        {"pre": 1.41, "post": NAN}, {"pre-norm": 1.41, "post_norm": "diverged"},
        {"baseline": 1.41, "Post-LN": 1.44}, {"pre": [1.41, 1.42, 1.4], "post": [1.44, 1.43, 1.45]},
        {("pre", 1): 1.41, ("pre", 2): 1.42, ("post", 1): 1.44, ("post", 2): 1.45},
        {"pre": log(4.0, 1.41), "post": log(4.0, 1.45)},
        pd.DataFrame({"pre": [4.0, 2.0, 1.41], "post": [4.0, 2.5, 1.45]}),
        indexed(["unchanged", "post-norm"], norm=["pre", "post"], validation_loss=[1.41, 1.44]),
    ])  # fmt: skip


def test_ablations_of_positions_and_gates(anywhere):
    expect_read(NOPE, None, [
        "NoPE reaches 1.46, RoPE 1.41.",
        {"RoPE": 1.41, "NoPE": 1.46}, {"rope": 1.41, "no rope": 1.46},
        {"with RoPE": 1.41, "without": 1.46}, {"baseline": 1.41, "no_pos_emb": 1.46},
        indexed(["unchanged, seed 1", "no RoPE, seed 1"], position=["rope", "none"],
                validation_loss=[1.41, 1.46]),
    ])  # fmt: skip
    expect_read(SILU, None, [
        "SwiGLU is significantly better (two seeds each); 4 · 512 = 2,048 is the SiLU width.",
        2_048, 2_016, 512, 576, (2_064_384, 2_097_152), (22_696_448, 22_827_520), (1_344, 2_048),
        (1_408, 2_048), (2.16e6, 2.10e6), "`3×512×1344=2,064,384`, `2×512×2048=2,097,152`",
        {"SwiGLU": 1.41, "SiLU": 1.43}, {"swiglu": [1.41, 1.42], "silu": [1.43, 1.42]},
        {"swiglu": {"params (M)": 22.7, "loss": 1.41}, "silu": {"params (M)": 22.8, "loss": 1.42}},
        {"swiglu": {"d_ff": 1_344, "loss": 1.41}, "silu": {"d_ff": 2_048, "loss": 1.42}},
        indexed(["unchanged", "SiLU, seed 1", "SiLU, 4 d_model"], ffn=["swiglu", "silu", "silu"],
                d_ff=[384, 576, 512], validation_loss=[1.9, 1.91, 1.92]),
    ])  # fmt: skip


def test_losses_on_web_text(anywhere):
    expect_read(WEB, None, [
        "On OWT it reaches 3.95 nats/token, on TinyStories 1.41: 1.27 bits/byte against 0.50.",
        "The OWT loss of 3.95 is higher: text more varied, vocabulary larger (ln 32,000 = 10.37).",
        "On pydocs: 4.37 nats/token (1.75 bits/byte); on stories: 0.95 nats/token (0.38 bits/byte)",
        3.95, {"TinyStories": 1.41, "OpenWebText": 3.95}, {"stories": 1.9, "pydocs": 4.9},
        {"simple": 1.3, "web": 4.9}, {"owt": 3.95}, {"tinystories_loss": 1.41, "owt_loss": 3.95},
        {"pydocs": {"loss": 4.9, "bits per byte": 1.96}, "stories": {"loss": 1.9}},
        indexed(["simple, seed 1", "web, rate 0.01", "web, longer"], bits_per_byte=[0.8, 2, 1.9],
                corpus=["stories", "pydocs", "pydocs"], validation_loss=[1.9, 4.9, 4.8]),
    ])  # fmt: skip


def test_entries_of_the_leaderboard(anywhere):
    expect_read(BOARD, None, [
        "3.41 nats/token on OWT after 44 minutes on one H100 (limit 45).",
        "Validation loss 3.25 in 0.7 hours, tied embeddings, lr 3e-3.",
        "OWT: loss 3.30 at 44 min. All experiments together took 30 hours.",
        "Tuning took 12 hours; the final run, 44 minutes, gives a validation loss of 3.31.",
        "On pydocs in 2 minutes: 5.2 nats per token.",
        3.3, (3.3, 44), {"loss": 3.3, "minutes": 44}, {"validation_loss": 3.3, "hours": 0.7},
        {"base": 4.1, "tied": 4.05, "together": 3.9}, log(9.0, 5.0, 4.4),
        "**Best: val loss 3.738** in 0.65 hours; 328K to 491K tok/s; 16.4M parameters saved.",
        indexed(["start", "tied embeddings"], seconds=[100.0, 101.0], validation_loss=[4.2, 4.1]),
    ])  # fmt: skip


def test_logs(anywhere):
    settings = {"steps": 800, "batch_size": 8, "context_length": 128, "seconds": 80}
    expect_read(LOG, None, [
        "We log to JSON lines; the table holds all 14 runs, the failed ones included.",
        pd.DataFrame({"name": ["a", "b"], "val_loss": [1.5, NAN], "minutes": [10, 2]}),
        [{"run": "a", "loss": 1.5, "time_s": 10}, {"run": "b", "loss": 1.4, "time_s": 10}],
        {"a": {"loss": 1.5, "seconds": 10}, "b": {"loss": 1.4, "seconds": 12}},
        indexed(["ended", "its time was over"], tokens=[819_200, 400_000],
                validation_loss=[1.9, 2.2], **settings),
        pd.DataFrame({"Run": ["a", "b"], "Val Loss": [1.5, 1.4], "Runtime": ["5.8 min", "0.1 h"]}),
        pd.DataFrame({"iter": [100, 200, 300], "elapsed": [1, 2, 3], "val/loss": [5.0, 4.0, 3.1],
                      "step_time": [0.01, 0.02, 0.01]}),
        log(9.0, 5.0, 4.4),
    ])  # fmt: skip


@pytest.mark.parametrize("nothing", [None, ..., {}, []])
@pytest.mark.parametrize("problem", [id for id in PROBLEMS if PROBLEMS[id].check.startswith("exp")])
def test_who_has_nothing_yet_is_told_what_to_hand_in(problem, nothing):
    for part in PROBLEMS[problem].parts or [None]:
        report = check(problem, nothing, part)
        assert report.status == "not attempted"
        assert re.search("Hand in .*(dict such as|data frame|tuple)", report.message)


def test_so_is_everybody_with_a_written_problem():
    for problem in PROBLEMS.values():
        if problem.kind == "written" and not problem.check.startswith("experiments_"):
            assert set(problem.takes) == set(problem.parts or [""]), problem.id
        for part, words in problem.takes.items():
            assert check(problem.id, ..., part).message == (
                f"Nothing to check yet. Hand in {words}, and run this cell again."
            )
