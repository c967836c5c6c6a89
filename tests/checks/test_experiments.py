import csv

import numpy
import pytest

from workbook import config
from workbook.checks.tokenizer_experiments import ratios_in
from workbook.study.verbs import check

TIME = "train_bpe_tinystories"
WEB = "train_bpe_expts_owt"
USE = "tokenizer_experiments"
TWICE = b"\xc3\x83\xc3\x82" * 16


@pytest.mark.parametrize(
    ("problem", "attempt"),
    [
        (TIME, b" accomplishment"),
        (TIME, " accomplishment"),
        (TIME, "Ġresponsibility"),
        (TIME, (" disappointment", 15)),
        (TIME, 15),
        (TIME, "The longest token is ' accomplishment' with 15 bytes."),
        (TIME, "62 s, 1.9 GB"),
        (TIME, {"seconds": 62.0, "gigabytes": 1.9, "longest": b" accomplishment"}),
        (TIME, "2 minutes and 3.1 GiB at the peak"),
        (WEB, TWICE),
        (WEB, b"-" * 64),
        (WEB, 64),
        (WEB, "C3 83 C3 82 repeated 16 times, 64 bytes"),
    ],
)
def test_right_figures_of_a_training_are_recognised(problem, attempt):
    report = check(problem, attempt, "a")
    assert report.status == "correct", report


@pytest.mark.parametrize(
    ("problem", "attempt", "mistake"),
    [
        (TIME, b"accomplishment", "The leading space was dropped"),
        (TIME, b"xyzzy plugh", "Merges reached across pre-tokens"),
        (TIME, "accomplishment", "The leading space was dropped"),
        (TIME, 14, "The leading space was dropped"),
        (TIME, "longest token 'accomplishment', 15 bytes", "leading space was dropped"),
        (TIME, "b'accomplishment' has 15 bytes", "leading space was dropped"),
        (TIME, ("responsibility", 15), "leading space was dropped"),
        (TIME, {"longest": b"disappointment"}, "leading space was dropped"),
        (TIME, b" the", "short for the longest"),
        (TIME, "1029.17 s, 0.08 GB", "RUSAGE_SELF does not see the children"),
        (TIME, {"minutes": 17, "peak_memory_mb": 80}, "RUSAGE_SELF does not see the children"),
        (TIME, "On TinyStories it took 40 s and 70 MB", "RUSAGE_SELF does not see the children"),
        (TIME, "62.44 s, 0.1084 GB (184 MB)", "The two memory figures disagree"),
        (TIME, "It took 3 hours and 4 GB", "all pairs are probably counted anew"),
        (WEB, 32, "these 32 characters take 2 bytes each"),
        (WEB, "C3 83 C3 82 repeated 16 times, 32 bytes", "do not fit together"),
        (WEB, 7, "hand in the token itself"),
    ],
)
def test_slips_about_a_training_are_named(problem, attempt, mistake):
    report = check(problem, attempt, "a")
    assert report.status == "wrong" and mistake in report.message, report


def test_what_the_longest_token_is_made_of_is_told():
    assert "read as Latin-1 and encoded again" in check(WEB, TWICE, "a").message
    assert "a ruler" in check(WEB, b"-" * 64, "a").message
    assert "cannot be checked here" in check(TIME, b" unfortunately", "a").message


@pytest.mark.parametrize(
    "attempt",
    [
        "29 % regex matching, 8 % merges",
        "pre-tokenisation 40 s, merging 20 s",
        "Merging takes longest; the parent's profile is misleading: it waits for a lock.",
    ],
)
def test_a_profile_of_the_work_is_read(attempt):
    assert check(TIME, attempt, "b").status == "read"


@pytest.mark.parametrize(
    "attempt",
    [
        "slowest: waiting for workers",
        "waiting for workers",
        "Most of the time is spent in '_thread.lock'.acquire.",
        "select.poll dominates the profile",
    ],
)
def test_a_profile_of_the_parent_is_named(attempt):
    report = check(TIME, attempt, "b")
    assert report.status == "wrong" and "The parent was profiled" in report.message


@pytest.mark.parametrize("part", "ab")
@pytest.mark.parametrize(
    "attempt",
    [4.0, (3.9, 3.4), {"stories": 4.1, "pydocs": 3.3}, "4.1 bytes/token", numpy.float64(4.05)],
)
def test_plausible_ratios_are_accepted_as_no_more_than_that(attempt, part):
    report = check(USE, attempt, part)
    assert report.status == "correct" and "plausible" in report.message, report


@pytest.mark.parametrize(
    ("part", "attempt", "mistake"),
    [
        ("a", 0.24, "upside down"),
        ("a", {"stories": 0.25, "pydocs": 0.3}, "upside down"),
        ("b", "0.31 tokens per byte", "upside down"),
        ("a", 2.86, "The merges are not fully applied"),
        ("a", "TinyStories 2.86", "The merges are not fully applied"),
        ("a", 1.0, "The merges are not fully applied"),
        ("a", 32.0, "words counted in place of tokens"),
        ("a", -4.0, "more than nothing"),
        ("b", 4.54, "its own tokenizer"),
    ],
)
def test_implausible_ratios_are_named(part, attempt, mistake):
    report = check(USE, attempt, part)
    assert report.status == "wrong" and mistake in report.message, report


def test_the_inverted_ratio_is_turned_round():
    assert "here 4.00" in check(USE, 0.25, "a").message


@pytest.mark.parametrize(
    "attempt",
    [
        (1e6, 229.2),
        (713258.83, 321.3),
        "0.67 MB/s, Pile in 342 h",
        "713258.83 B/s, Pile in 14 d",
        "1 MB/s, Pile in 10 d",
        "2,000,000 bytes per second: 4.77 days",
        {"bytes_per_second": 1e6, "hours": 229.17},
        {"mb_per_s": 2.5, "pile_days": 3.82},
        ("1 MB/s", "229 hours"),
    ],
)
def test_a_right_division_is_recognised(attempt):
    report = check(USE, attempt, "c")
    assert report.status == "correct" and "The division is right" in report.message, report


@pytest.mark.parametrize(
    ("attempt", "mistake"),
    [
        ((1e6, 246.07), "825 GiB were divided"),
        ((1e6, 218.55), "taken in MiB"),
        ((1e6, 229.17 * 8), "8 times too much"),
        ((1e6, 229.17 / 8), "8 times too little"),
        ((1e6, 0.22917), "A factor of 1,000 was lost"),
        ((1e6, 229170), "A factor of 1,000 too much"),
        ((1e6, 9.55), "Days were taken for hours"),
        ("1 MB/s, Pile in 229.2 days", "Hours were taken for days"),
        ((1e6, 825000.0), "Seconds were taken for hours"),
        ((1e6, 13750.0), "A factor of 60 too much"),
        ((1.0, 229.17), "A factor of a million was lost"),
        ((1e6, 100.0), "do not fit together"),
    ],
)
def test_slips_of_the_division_are_named(attempt, mistake):
    report = check(USE, attempt, "c")
    assert report.status == "wrong" and mistake in report.message, report


def test_a_rate_that_is_far_too_slow_is_noticed():
    report = check(USE, "3000 B/s, Pile in 76388 h", "c")
    assert report.status == "correct" and "very slow" in report.message


def test_a_write_up_with_several_figures_is_read_and_its_division_ticked():
    text = (
        "Encoding 5 MB took 2.0 s on one core, which is 2.5 MB/s; the Pile would take 3.8 days,"
        " and on 64 cores about an hour and a half."
    )
    report = check(USE, text, "c")
    assert report.status == "read" and "The division is right" in report.message


@pytest.mark.parametrize("attempt", [65_535, 65_536, 2**16, "65,535", "uint16 reaches 65,535"])
def test_the_limit_of_uint16_is_recognised(attempt):
    assert check(USE, attempt, "d").status == "correct"


@pytest.mark.parametrize(
    ("attempt", "mistake"),
    [
        (32_767, "the reach of int16"),
        ("uint16 goes up to 32,767", "the reach of int16"),
        (255, "That is uint8"),
        (2**32 - 1, "That is uint32"),
        (32_000, "the size of one vocabulary"),
        ("The largest id is 65,536", "how many values there are"),
        (12, "beginning at 0"),
    ],
)
def test_other_limits_are_named(attempt, mistake):
    report = check(USE, attempt, "d")
    assert report.status == "wrong" and mistake in report.message, report


@pytest.mark.parametrize(
    ("problem", "part", "attempt"),
    [
        (TIME, "a", "It took two minutes; the longest token is a long word, which makes sense."),
        (WEB, "a", "The longest token is a run of hyphens, as web pages use them for rulers."),
        (TIME, "a", "On 5.0 MB of `stories`, 2,048 ids took 3.8 s and at its peak 47 MB in all"
         " processes together. The longest token is `b' Everything'`, 11 bytes with its space."),
        (WEB, "a", "The longest token of `pydocs` is `b'+-----------'`, 12 bytes. As a word it"
         " makes no sense, but as a frame it does."),
        (WEB, "b", "Both know common words; the web tokenizer also has names and markup."),
        (USE, "a", "About 4.1 bytes per token on 10 documents of 1.2 MB in all, 1.3 times as good"
         " as the other one on that text."),
        (USE, "b", "It falls: rare words are cut into many short tokens, and names into letters."),
        (USE, "d", "Ids stay below 65,536 values, so that two bytes hold them, half of int32."),
    ],
)  # fmt: skip
def test_prose_is_read_and_two_to_four_facts_are_offered(problem, part, attempt):
    report = check(problem, attempt, part)
    assert report.status == "read" and 2 <= len(report.facts) <= 4, report


@pytest.mark.parametrize(
    ("problem", "part"),
    [(TIME, "a"), (TIME, "b"), (WEB, "a"), (WEB, "b"), *[(USE, p) for p in "abcd"]],
)
def test_an_empty_or_strange_attempt_is_no_answer(problem, part):
    assert check(problem, "", part).status == "not attempted"
    assert check(problem, None, part).status == "not attempted"
    assert check(problem, len, part).status == "wrong"
    assert check(problem, object(), part).status == "wrong"


def test_what_write_ups_claimed_is_judged_as_recorded():
    path = config.repository() / "data" / "reported" / "claims.csv"
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["problem"] in (TIME, WEB, USE)]
    for row in rows:
        report = check(row["problem"], row["claimed"], row["part"])
        assert (report.status == "wrong") == (row["verdict"] in ("wrong", "doubtful")), row


@pytest.mark.parametrize(
    ("attempt", "read"),
    [
        ("10 docs: 4.12 (TinyStories 10K), 4.37 (OWT 32K)", [4.12, 4.37]),
        ("1 token = 4.1 bytes", [4.1]),
        ("0.24 tokens per byte, that is 4.1 bytes per token", [4.1]),
        ("45231 bytes / 10980 tokens = 4.12", [4.12]),
        ("TinyStories (10K): 4.12 bytes/token; OpenWebText (32K): 4.37 bytes/token.", [4.12, 4.37]),
        ("0.31 tokens per byte", [0.31]),
    ],
)
def test_numbers_that_count_something_else_are_no_ratios(attempt, read):
    assert ratios_in(attempt)[: len(read)] == read
    assert set(ratios_in(attempt)) == set(read)
