"""Right costs pass in whatever form they come, wrong ones are told what they lack."""

import csv

import numpy
import pytest

from workbook import config
from workbook.study.verbs import check

MODEL, ADAMW = "transformer_accounting", "adamwAccounting"


@pytest.mark.parametrize(
    ("problem", "part", "attempt"),
    [
        (MODEL, "a", 2127057600),
        (MODEL, "a", 2127057600.0),
        (MODEL, "a", numpy.int64(2127057600)),
        (MODEL, "a", 2.127e9),
        (MODEL, "a", 2.13),
        (MODEL, "a", "2,127,057,600"),
        (MODEL, "a", "2.13B"),
        (MODEL, "a", "2.13B parameters"),
        (MODEL, "a", "about 2.1 billion"),
        (MODEL, "a", "2127M params"),
        (MODEL, "a", "8.51 GB"),
        (MODEL, "a", "8.5GB"),
        (MODEL, "a", "7.92 GiB"),
        (MODEL, "a", "7.924 GiB"),
        (MODEL, "a", "8,508,230,400 bytes"),
        (MODEL, "a", "8508 MB"),
        (MODEL, "a", 8508230400),
        (MODEL, "a", 8.508),
        (MODEL, "a", 7.92),
        (MODEL, "a", (2127057600, 8508230400)),
        (MODEL, "a", (2127057600, "8.51 GB")),
        (MODEL, "a", (2127057600, 8.508)),
        (MODEL, "a", {"parameters": 2127057600, "gib": 7.92}),
        (MODEL, "a", {"params": 2127057600, "memory_gb": 8.5082304}),
        (MODEL, "a", "2,127,057,600 parameters, 8.51 GB (7.92 GiB)"),
        (MODEL, "a", "2.127e9 parameters x 4 bytes = 8.51e9 bytes"),
        (MODEL, "b", 4513336524800),
        (MODEL, "b", 4.51e12),
        (MODEL, "b", 4.5133365248e12),
        (MODEL, "b", "4.51e12"),
        (MODEL, "b", "4.5 TFLOPs"),
        (MODEL, "b", "4.51 TFLOP"),
        (MODEL, "b", "4,513 GFLOPs"),
        (MODEL, "b", "4.5 trillion FLOPs"),
        (MODEL, "b", "4.51 × 10^12 FLOPs"),
        (MODEL, "b", r"$4.51 \times 10^{12}$"),
        (MODEL, "b", 4.51),
        (MODEL, "b", {"ffn": 3019898880000, "projections": 1006632960000, "scores": 322122547200,
                      "head": 164682137600}),
        (MODEL, "b", [3019898880000, 1006632960000, 322122547200, 164682137600, 4513336524800]),
        (MODEL, "b", {"total": 4513336524800, "ffn": 3019898880000}),
        (MODEL, "b", (3019898880000, 4513336524800)),
        (MODEL, "c", "FFN"),
        (MODEL, "c", "feed-forward > attention > head"),
        (MODEL, "c", "the feed-forward layers"),
        (MODEL, "c", "MLP"),
        (MODEL, "c", "FFN, 66.9 %"),
        (MODEL, "c", "SwiGLU"),
        (MODEL, "c", 66.9),
        (MODEL, "c", 0.669),
        (MODEL, "c", "67 %"),
        (MODEL, "c", ("FFN", 66.9)),
        (MODEL, "c", "The FFN dominates, not attention."),
        (MODEL, "d", (349630365696, 1033109504000, 2257754521600)),
        (MODEL, "d", {"small": 3.5e11, "medium": 1.03e12, "large": 2.26e12}),
        (MODEL, "d", "small 3.50e11, medium 1.03e12, large 2.26e12"),
        (MODEL, "d", (291648307200, 830172299264, 1768530903040)),
        (MODEL, "d", (0.35, 1.03, 2.26)),
        (MODEL, "e", 149522795724800),
        (MODEL, "e", 1.495e14),
        (MODEL, "e", "1.50e14"),
        (MODEL, "e", "149.5 TFLOPs"),
        (MODEL, "e", "33.1x"),
        (MODEL, "e", 33.1),
        (MODEL, "e", "x33"),
        (MODEL, "e", "149.5 TFLOPs, 33.1 times as much; scores 55.2 %"),
        (MODEL, "a", "2.13B (fp32: 8.51 GB, bf16: 4.25 GB)"),
        (MODEL, "b", "90.6 GFLOPs per layer × 48 + 164.7 GFLOPs = 4.51 TFLOPs"),
        (MODEL, "b", "FFN 3.02 TFLOPs + projections 1.01 + scores 0.32 + head 0.16 = 4.51 TFLOPs"),
        (MODEL, "e", "4.51e12 -> 1.495e14"),
        (MODEL, "e", "Increasing the context 16x raises the total to 149.5 TFLOPs."),
        (MODEL, "e", "scores 256x, total 149.5 TFLOPs"),
        (ADAMW, "d", "1105 s per step, 5115 days in total"),
        (ADAMW, "a", 1635537600),
        (ADAMW, "a", "1.64e9"),
        (ADAMW, "a", "16P = 26.17 GB"),
        (ADAMW, "a", {"parameters_gb": 6.54, "optimizer_gb": 13.08}),
        (ADAMW, "a", 2127057600),
        (ADAMW, "a", "16P = 34 GB"),
        (ADAMW, "a", "31.7 GiB"),
        (ADAMW, "a", "params 8.5 GB, grads 8.5 GB, optimizer 17 GB"),
        (ADAMW, "b", 3),
        (ADAMW, "b", "3"),
        (ADAMW, "b", "batch 3"),
        (ADAMW, "b", (15.52, 26.17, 3)),
        (ADAMW, "b", "15.52 B + 26.17 GB, batch 3"),
        (ADAMW, "b", "15.52·batch_size + 26.17"),
        (ADAMW, "b", "15.52 GB * batch_size + 26.17 GB, so at most 3"),
        (ADAMW, "b", "14.45 GiB · B + 24.37 GiB"),
        (ADAMW, "b", "16.15 B + 26.17 GB, batch 3"),
        (ADAMW, "b", {"a": 15.518, "b": 26.169, "batch": 3}),
        (ADAMW, "b", (15517753344, 26168601600)),
        (ADAMW, "b", "(80 - 26.17) / 15.52 = 3.47, so 3"),
        (ADAMW, "b", "In 80 GB the largest batch is 3."),
        (ADAMW, "b", "max batch: 3 (80 GB)"),
        (ADAMW, "b", "26.17 + 15.52 x batch_size GB <= 80 GB -> batch_size = 3"),
        (ADAMW, "b", "15.52 GB * B + 34 GB"),
        (ADAMW, "c", 14),
        (ADAMW, "c", "14P"),
        (ADAMW, "c", "14 P"),
        (ADAMW, "c", "14 * P FLOPs"),
        (ADAMW, "c", "14 FLOPs per parameter"),
        (ADAMW, "c", 15),
        (ADAMW, "c", "12 P"),
        (ADAMW, "c", "3P + 4P + 5P + 2P = 14P"),
        (ADAMW, "c", 22897526400),
        (ADAMW, "c", "22.9 GFLOPs"),
        (ADAMW, "c", "14 · 1.64e9 = 2.29e10"),
        (ADAMW, "c", "14 FLOPs/parameter × 1.64B parameters = 22.9 GFLOPs"),
        (ADAMW, "d", "442M seconds"),
        (ADAMW, "d", 5115),
        (ADAMW, "d", 5115.19),
        (ADAMW, "d", "5,115 days"),
        (ADAMW, "d", "5116 days"),
        (ADAMW, "d", "5.1e3 days"),
        (ADAMW, "d", "14 years"),
        (ADAMW, "d", "5115 days (14.0 years)"),
        (ADAMW, "d", "6584 days"),
        (ADAMW, "d", 6564.1),
        (ADAMW, "d", "18 years, i.e. 6,570 days"),
        (ADAMW, "d", "about 6,570 days"),
        (ADAMW, "d", "6.5k days"),
        (ADAMW, "d", "157,000 hours"),
        (ADAMW, "d", 5105.4),
        (ADAMW, "d", "4.42e8 seconds"),
        (ADAMW, "d", "122,764 hours"),
        (ADAMW, "d", {"days": 5115.2}),
    ],
)  # fmt: skip
def test_right_answers_of_2025_pass_in_many_forms(problem, part, attempt):
    report = check(problem, attempt, part)
    assert report.status == "correct", report


@pytest.mark.parametrize(
    ("problem", "part", "attempt"),
    [
        (MODEL, "a", 1640452800),
        (MODEL, "a", "1.64B parameters, 6.56 GB"),
        (MODEL, "a", "6.11 GiB"),
        (MODEL, "b", 3516769894400),
        (MODEL, "b", "3.52 TFLOPs"),
        (MODEL, "c", "FFN, 57.5 %"),
        (MODEL, "d", (291648307200, 830172299264, 1768530903040)),
        (MODEL, "d", (349630365696, 1033109504000, 2257754521600)),
        (MODEL, "e", 133577729638400),
        (MODEL, "e", "133.6 TFLOPs, 38.0x"),
        ("adamw_accounting", "a", 1640452800),
        ("adamw_accounting", "b", "16.37 B + 26.25 GB, batch 3"),
        ("adamw_accounting", "b", (16.36, 26.17, 3)),  # d_ff of exactly 8/3 d_model
        (ADAMW, "b", 3),
        (ADAMW, "c", 14),
        (ADAMW, "d", "4850 hours"),
        (ADAMW, "d", 4850),
        (ADAMW, "d", "202 days"),
    ],
)
def test_right_answers_of_2026_pass_in_its_edition(problem, part, attempt, monkeypatch):
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    report = check(problem, attempt, part)
    assert report.status == "correct", report


def test_the_other_editions_value_is_recognised_as_such(monkeypatch):
    report = check(MODEL, 1640452800, "a")
    assert report.status == "correct"
    assert "right in edition 2026" in report.claim and "WORKBOOK_EDITION=2026" in report.claim
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    assert "right in edition 2025" in check(MODEL, "4.5133e12", "b").claim


@pytest.mark.parametrize(
    ("problem", "part", "attempt", "mistake"),
    [
        (MODEL, "a", 2127056000, "when the final norm is left out"),
        (MODEL, "a", "2,127,056,000 parameters, 8.51 GB", "when the final norm is left out"),
        (MODEL, "a", (2127056000, 8508224000), "when the final norm is left out"),
        (MODEL, "a", "1.56e9", "two matrices (no W3)"),
        (MODEL, "a", "5.80 GB", "GiB are called GB"),
        (MODEL, "a", "1.56 billion parameters, 5.80 GB", "a learned table of positions"),
        (MODEL, "a", "7.92 GB", "GiB are called GB"),
        (MODEL, "a", 1557611200, "biases are counted in"),
        (MODEL, "a", "34.03 GB", "gradients and optimizer state"),
        (MODEL, "a", 1635537600, "two matrices (no W3)"),
        (MODEL, "a", 2046646400, "share one matrix"),
        (MODEL, "b", "3.02e12", "scores and weighted sums (T × T) are left out and the head"),
        (MODEL, "b", 4348654387200, "the head is left out"),
        (MODEL, "b", 2256668262400, "counted as one FLOP"),
        (MODEL, "b", 4513313484800, "is it a slip in a sum?"),
        (MODEL, "b", 13540009574400, "the backward pass is counted in"),
        (MODEL, "c", "the query-key products need most", "grow with the square of the context"),
        (MODEL, "c", "attention", "Put each product's FLOPs in a table"),
        (MODEL, "c", "The head dominates.", "there is only one of it"),
        (MODEL, "c", "Most FLOPs are required for the dot product between keys and queries in the"
         " attention. In the SwiGLU case the feedforward network also spends a lot.", "square"),
        (MODEL, "d", "attention share 19.35, 24.24, 28.57 %", "d_ff is left at 6,400"),
        (MODEL, "d", (19.35, 24.24, 28.57), "d_ff is left at 6,400"),
        (MODEL, "d", "The head's share increases with the model.", "its share falls"),
        (MODEL, "d", {"small": 1.03e12, "medium": 3.5e11, "large": 2.26e12}, "mixed up"),
        (MODEL, "d", "small 1.03e12, medium 3.50e11, large 2.26e12", "mixed up"),
        (MODEL, "e", "133.42e12", "two matrices (no W3)"),
        (MODEL, "e", "149.8e12, x33.2", "is it a slip in a sum?"),
        (MODEL, "e", 16, "T × T"),
        (MODEL, "e", "The total grows 16 times, because everything is linear in T.", "256 times"),
        (ADAMW, "a", "parameters 4P, gradients 4P, optimizer state 4P", "two numbers"),
        (ADAMW, "b", "10.49 B + 26.17 GB, batch 5", "only one map of T × T"),
        (ADAMW, "b", 5, "only one map of T × T"),
        (ADAMW, "b", 4, "the batch is rounded up"),
        (ADAMW, "b", "In 80 GB the largest batch is 4.", "the batch is rounded up"),
        (ADAMW, "b", 3.47, "not rounded down"),
        (ADAMW, "c", 18, "expected"),
        (ADAMW, "c", 30, "expected"),
        (ADAMW, "b", "15.52 B + 24.37 GB, batch 3", "GiB are called GB"),
        (ADAMW, "b", "15.52 B + 26.17 GB, batch size 4", "the batch is rounded up"),
        (ADAMW, "b", {"a": 15.52, "b": 26.17, "batch": 4}, "the batch is rounded up"),
        (ADAMW, "d", "5115 hours", "days are called hours"),
        (MODEL, "e", 4513336524800, "the context is left at 1,024"),
        (MODEL, "c", "the attention scores", "grow with the square"),
        (MODEL, "d", {"small": 3.2e11, "medium": 1.03e12, "large": 2.26e12}, ""),
        (ADAMW, "b", "15.14 B + 26.17 GB, batch 3", "is it a slip in a sum?"),
        (ADAMW, "d", "4.6 days", "a factor of 1,000 is lost"),
        (ADAMW, "d", "2558 days", "reaches its whole peak"),
        (ADAMW, "d", 4645, "scores and weighted sums (T × T) are left out"),
        (ADAMW, "d", "5.1 days", "a factor of 1,000 is lost"),
    ],
)  # fmt: skip
def test_wrong_answers_are_told_why(problem, part, attempt, mistake):
    report = check(problem, attempt, part)
    assert report.status == "wrong" and mistake in report.message, report


@pytest.mark.parametrize(
    ("problem", "part", "attempt"),
    [
        (MODEL, "c", "FFN 22 %"),
        (MODEL, "c", "FFN 70 percent"),
        (MODEL, "d", "small: attention 50%, ffn 30%, head 20%"),
        (MODEL, "d", "head 3% small, 30% xl"),
        (MODEL, "d", "FFN 10 -> 20 -> 30 -> 60 %"),
        (MODEL, "d", {"small": {"ffn": 40}}),
        (MODEL, "d", "FFN 49.75 %, 59.87 %, 64.2 %"),
        (MODEL, "d", {"small": {"ffn": 49.75, "head": 22.61}, "large": {"ffn": 64.2}}),
        (MODEL, "e", "scores 33 %"),
        (ADAMW, "b", "14.4 * B + 34"),
        (ADAMW, "b", "14.4*B+26.2 -> 3.7, so 3"),
    ],
)
def test_of_what_a_text_may_say_something_else_nothing_is_praised(problem, part, attempt):
    report = check(problem, attempt, part)
    assert report.status == "read" and report.facts, report


def test_the_memory_of_the_device_is_no_answer():
    assert check(ADAMW, "80 GB", "b").status == "not attempted"


def test_verdicts_on_published_claims_agree():
    path = config.repository() / "data" / "reported" / "claims.csv"
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["problem"] in (MODEL, ADAMW)]
    for row in rows:
        report = check(row["problem"], row["claimed"], row["part"])
        fine = row["verdict"] in ("right", "assumption")
        assert (report.status == "correct") == fine, (row, report)


@pytest.mark.parametrize(
    ("part", "attempt"), [("a", ""), ("a", "two or so"), ("b", None), ("e", ...)]
)
def test_nothing_to_judge_is_said_so(part, attempt):
    assert check(MODEL, attempt, part).status == "not attempted"


@pytest.mark.parametrize("attempt", [-3, float("nan"), 10**400, b"12", {1, 2}, "4 " * 9_000])
def test_what_is_no_number_is_refused_in_words(attempt):
    report = check(MODEL, attempt, "a")
    assert report.status == "wrong" and "raised" not in report.message, report


@pytest.mark.parametrize(
    ("attempt", "part"),
    [(2127057600, "a"), (2127056000, "a"), (4513336524800, "b"), (149522795724800, "e")],
)
def test_the_part_is_guessed_from_the_number(attempt, part):
    assert check(MODEL, attempt).part == part
