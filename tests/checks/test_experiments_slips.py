"""What cannot be in an answer to the problems of chapter 7, and how the report names it."""

import math

import pandas as pd
import pytest

from checks.test_experiments_right import (
    BATCH,
    BOARD,
    LOG,
    LR,
    NAN,
    NOPE,
    NORMS,
    POST,
    SILU,
    WEB,
    indexed,
    log,
)
from workbook.experiments.published import claims
from workbook.study.problems import PROBLEMS
from workbook.study.verbs import check

SWEEP = {1e-3: 1.5, 3e-3: 1.41, 1e-2: 1.6}
BOTH = {"norm": ["pre", "post"], "validation_loss": [1.41, 1.44]}


def expect_wrong(problem, part, attempt, words):
    report = check(problem, attempt, part)
    assert report.status == "wrong" and words in report.message, report


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        ("TinyStories best validation loss 0.5034", "lower than any model can get on tinystories"),
        ("TinyStories best validation loss 0.5034", "0.5034 bits per byte are 1.43 nats per token"),
        ("On TinyStories: a validation loss of 0.42 nats/token", "0.15 bits per byte"),
        ("TinyStories: 0.20 bits per byte", "lower than any model"),
        ("The loss on stories is 0.21", "the random choices behind the text cost more"),
        (0.2, "validated on text that it was trained on"),
        (-1.4, "never negative"),
        (12.0, "summed and not averaged"),
        ("loss 1.40 (perplexity 2.64)", "2 to the power is for bits"),
        ("loss 1.40, perplexity 5.1", "exp(1.4) = 4.06"),
        ("loss of 1.40, 2.02 bits per byte", "divide by the bytes of a token"),
        ("loss of 1.40 at 4.1 bytes per token, so 0.34 bits/byte", "divide by ln 2"),
        ("loss of 1.40 at 4.1 bytes per token, so 8.28 bits/byte", "It was multiplied by"),
        ("32 × 5,000 × 256 = 4,096,000 tokens", "40,960,000"),
        ("TinyStories, best validation loss 2.31", "2.00 with 40,960,000 tokens"),
        ({1e-4: 1.9, 1e-3: 1.6, 3e-3: 1.5}, "the largest one that was tried"),
        ({1e-2: 1.5, 3e-2: 1.6, 1e-1: 2.5}, "the smallest one that was tried"),
        ({1e-2: NAN, 3e-2: NAN, 1e-1: NAN}, "No run came to an end"),
        ({-1e-3: 1.5, 3e-3: 1.4, 1e-2: 1.6}, "A learning rate is positive"),
        ({"lr=1e-3": 1.5, "lr=3e-3": 0.1, "lr=1e-2": 1.6}, "lower than any model"),
    ],
)
def test_sweeps(attempt, words):
    expect_wrong(LR, "a", attempt, words)


def test_what_the_handout_asks_is_asked_of_tinystories_alone(monkeypatch):
    assert "for TinyStories" in check(LR, 2.3, "a").message
    monkeypatch.setenv("WORKBOOK_PROFILE", "full")
    expect_wrong(LR, "a", 2.3, "not low enough")
    assert "1.45 or less" in check(LR, SWEEP, "a").message
    assert "2.00 or less, which is what is asked with 40,960,000" in check(LR, 1.9, "a").message


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        ((3e-3, 1e3), "5.5 orders of magnitude"),
        ((1e-2, 3e-3), "may be swapped"),
        ((0.0, 3e-3), "positive and finite"),
        ("6e-3 against 1e3 shows the edge of stability", "5.2 orders of magnitude"),
        ("Best is 3e-3; with 1e3 it diverges at once.", "Bisect"),
        (SWEEP, "No run in it diverges"),
        (SWEEP, "upwards from 0.01"),
        (SWEEP | {1e-4: NAN}, "may be swapped"),
        (SWEEP | {10.0: NAN}, "a factor of 1,000"),
    ],
)
def test_edges(attempt, words):
    expect_wrong(LR, "b", attempt, words)


def test_a_loss_that_stays_high_counts_as_diverged_where_no_run_did():
    high = SWEEP | {3e-2: 4.9, 1e-1: 5.5}
    assert "10 times below" in check(LR, high, "b").message
    assert "100 times below" in check(LR, high | {3e-1: NAN}, "b").message


def test_a_coarse_edge_is_accepted_with_the_advice_to_bisect():
    assert "Bisect further" in check(LR, SWEEP | {1e-1: NAN}, "b").message
    assert "Bisect" not in check(LR, SWEEP | {2e-2: NAN}, "b").message


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        ({32: 1.5, 64: 1.5}, "Run 1, 128 as well"),
        ([1, 2, 4], "64, 128"),
        ("Batch 64 fails with out of memory.", "needs about"),
        (
            pd.DataFrame({"batch": [1, 64, 128], "steps": 1000, "loss": [1.9, 1.6, 1.5]}),
            "All took the same number of steps",
        ),
        (
            pd.DataFrame({"batch": [1, 64, 128], "tokens": [9e5, 5e5, 8e5], "loss": 1.5}),
            "These runs saw different numbers of tokens",
        ),
        ({1: 1.9, 64: 0.2, 128: 1.6}, "lower than any model"),
    ],
)
def test_batches(attempt, words):
    expect_wrong(BATCH, None, attempt, words)


@pytest.mark.parametrize(
    ("problem", "attempt", "words"),
    [
        (NORMS, {("pre", 1e-2): 1.4, ("none", 1e-2): NAN}, "The lower one is missing"),
        (NORMS, {("pre", 1e-2): 1.4, ("none", 1e-3): 1.6}, "The old one, 0.01, is missing"),
        (NORMS, {"norm": 1.4, "no norm": 1.6}, "two rates are asked for"),
        (POST, indexed(["a", "b"], tokens=[8e5, 4e5], **BOTH), "different numbers of tokens"),
        (POST, {"pre": 1.41, "post": 0.1}, "lower than any model"),
        (POST, "Pre-norm is significantly better.", "One run of each cannot show that"),
        (NOPE, "RoPE is significantly better: 1.41 against 1.42", "One run of each"),
        (NOPE, {"rope": {"loss": 1.4, "perplexity": 5.5}, "none": 1.5}, "exp(1.4) = 4.06"),
        (SILU, 1_344, "a third fewer parameters"),
        (SILU, 384, "a third fewer parameters"),
        (SILU, (1_344, 4_096), "not matched"),
        (SILU, (2_064_384, 1_376_256), "two matrices in place of three"),
        (SILU, (22_696_448, 19_943_936), "kept the inner width"),
        (SILU, (1_344, 1_344), "not matched"),
        (SILU, {"swiglu": {"d_ff": 384, "loss": 1.9}, "silu": {"d_ff": 384, "loss": 2}}, "1.50"),
        (SILU, "SwiGLU significantly outperforms SiLU", "differ in their seed alone"),
    ],
)
def test_ablations(problem, attempt, words):
    expect_wrong(problem, None, attempt, words)


def test_a_width_of_another_model_is_asked_about():
    assert check(SILU, 3_072).status == "not attempted"
    assert check(SILU, (2_048, 3_072)).status == "correct"


def test_seeds_say_whether_a_difference_is_one():
    assert "one run of a kind" in check(POST, {"pre": 1.41, "post": 1.42}).message
    few = check(POST, {"pre": [1.41, 1.45], "post": [1.42, 1.46]}).message
    assert "no difference that these runs can show" in few
    many = check(POST, {"pre": [1.41, 1.42, 1.43, 1.40], "post": [1.5, 1.51, 1.52, 1.53]}).message
    assert many.endswith("a difference.") and "0.1 nats per token below post" in many


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        ("OWT validation loss 0.521", "0.17 bits per byte"),
        ({"tinystories": 3.9, "owt": 2.4}, "not easier than stories"),
        ({"tinystories": 0.5, "owt": 3.9}, "lower than any model can get on tinystories"),
        ({"stories": {"loss": 1.9, "bits per byte": 2.1}, "pydocs": {"loss": 4.9,
          "bits per byte": 1.9}}, "in bits per byte"),
        (49.0, "ln 32,000"),
        (1.1, "lower than any model can get on pydocs"),
        (indexed(["a", "b"], corpus=["stories", "pydocs"], validation_loss=[1.9, 1.2]), "pydocs"),
    ],
)  # fmt: skip
def test_web_text(attempt, words):
    expect_wrong(WEB, None, attempt, words)


def test_the_leaderboard_has_the_time_of_the_edition_and_a_loss_to_beat(monkeypatch):
    expect_wrong(BOARD, None, (3.3, 91), "at most 90 minutes in edition 2025")
    expect_wrong(BOARD, None, "On OWT a validation loss of 3.3 after 2 hours.", "120 minutes")
    expect_wrong(BOARD, None, "On OWT, a validation loss of 5.2.", "less than 5")
    expect_wrong(BOARD, None, log(9.0, 1.2), "lower than any model can get on pydocs")
    long = log(9.0, 4.0).assign(seconds=[0.0, 6_000.0])
    expect_wrong(BOARD, None, long, "100 minutes")
    assert "60 of 90 minutes" in check(BOARD, (3.3, 60)).message
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    monkeypatch.setenv("WORKBOOK_PROFILE", "full")
    expect_wrong(BOARD, None, (3.3, 91), "at most 45 minutes in edition 2026")
    expect_wrong(BOARD, None, (5.0, 40), "less than 5 nats per token on OpenWebText")
    assert "45 from 26.0.3 on" in check(BOARD, (3.3, 60)).message
    assert "no validation text was trained on" in " ".join(check(BOARD, 2.5).message.split())


ROW = {"steps": 800, "batch_size": 8, "context_length": 128, "seconds": 80, "loss": 1.96}


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        ([ROW, ROW | {"tokens": 6_400}], "The context is missing"),
        ([ROW, ROW | {"tokens": 102_400}], "The batch is missing"),
        ([ROW, ROW | {"tokens": 1_000_000}], "819,200"),
        ([ROW, ROW | {"perplexity": 3.9}], "2 to the power"),
        ([ROW, ROW | {"bits_per_byte": 2.83}], "divide by the bytes of a token"),
        ([ROW, ROW | {"loss": 0.01}], "lower than any model"),
        ([{"lr": 1e-3, "loss": 1.5}, {"lr": 1e-2, "loss": 1.4}], "how long the runs took"),
        (log(9.0, 5.0, 4.0).drop(columns="seconds"), "no time"),
        (log(9.0, 5.0, 4.0).assign(seconds=[1.0, 0.5, 0.7]), "Time runs backwards"),
        ("The log: loss 1.40, perplexity 9.1", "does not belong to that loss"),
    ],
)
def test_logs(attempt, words):
    expect_wrong(LOG, None, attempt, words)


def test_a_log_without_a_failure_is_asked_about():
    assert "nothing tried that did not work" in check(LOG, [ROW, ROW]).message
    assert "nothing tried" not in check(LOG, [ROW, ROW | {"loss": math.inf}]).message


STUBS = [None, ..., "", " ", {}, [], (), {1e-3: ..., 1e-2: ...}, {"pre": ..., "post": ...}]
CHAPTER = [(problem.id, part) for problem in PROBLEMS.values() for part in problem.parts or (None,)
           if problem.notebook == "08_experiments"]  # fmt: skip


@pytest.mark.parametrize(("problem", "part"), CHAPTER)
def test_a_stub_is_no_attempt_and_no_object_breaks_a_check(problem, part):
    for stub in STUBS:
        assert check(problem, stub, part).status == "not attempted", stub
    for odd in (len, object(), [object()], {object(): object()}, b"1.4", {1, 2}, [[1], [2, 3]]):
        assert check(problem, odd, part).status in ("wrong", "not attempted"), odd
    report = check(problem, "1.4 " * 9_000, part)
    assert report.status == "wrong" and "longer than an answer can be" in report.message


@pytest.mark.parametrize(("problem", "part"), CHAPTER)
def test_what_write_ups_claimed_is_judged_as_recorded(problem, part):
    try:
        rows = claims(problem, part)
    except ValueError:  # nobody claims anything about it
        return
    for _, row in rows.iterrows():
        if row["verdict"] == "incomplete" or problem == NOPE:
            continue  # what is missing is not to be seen in the claim itself
        report = check(problem, row["claimed"], part)
        assert (report.status == "wrong") == (row["verdict"] in ("implausible", "doubtful")), row
