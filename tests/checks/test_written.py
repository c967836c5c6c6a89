"""Values are judged in every form that a part takes, sentences are read and never called wrong."""

import csv
import math

import pytest
from attempts import accounting, written, written_forms

from workbook import config
from workbook.checks.verdicts import Wrong
from workbook.checks.written import entry, number, unicode2
from workbook.study.problems import PROBLEMS
from workbook.study.verbs import check

OURS = [problem for problem in PROBLEMS.values() if problem.check == "written"]
PARTS = [(problem.id, part) for problem in OURS for part in problem.parts or [None]]


def every(kind):
    """The attempts of a kind for both sorts of problems, by problem and part."""
    return [
        (*place, some)
        for each in (written, accounting, written_forms)
        for place, some in getattr(each, kind).items()
    ]


@pytest.mark.parametrize(("problem", "part", "attempts"), every("RIGHT"))
def test_right_values_pass_in_many_forms(problem, part, attempts):
    words, attempts = attempts if isinstance(attempts, tuple) else ("", attempts)
    for attempt in attempts:
        report = check(problem, attempt, part)
        assert report.status == "correct" and words in report.message, (attempt, report)


@pytest.mark.parametrize(("problem", "part", "attempts"), every("WRONG"))
def test_wrong_values_are_told_why(problem, part, attempts):
    for attempt, words in attempts:
        report = check(problem, attempt, part)
        assert report.status == "wrong" and words in report.message, (attempt, report)


@pytest.mark.parametrize(("problem", "part", "attempts"), every("READ"))
def test_a_sentence_is_read_and_facts_are_shown(problem, part, attempts):
    for attempt in attempts:
        report = check(problem, attempt, part)
        assert report.status == "read" and report.facts, (attempt, report)
        assert report.message.count("[ ]") == len(report.facts)


@pytest.mark.parametrize(("problem", "part", "attempts"), every("UNCLEAR"))
def test_neither_unit_nor_label_is_guessed(problem, part, attempts):
    for attempt, words in attempts:
        report = check(problem, attempt, part)
        assert report.status == "not attempted" and words in report.message, (attempt, report)


@pytest.mark.parametrize(("problem", "part"), PARTS)
def test_nothing_is_not_attempted_and_what_is_of_no_use_is_told_what_is_taken(problem, part):
    for nothing in (None, ..., " \n", [], {}):
        assert check(problem, nothing, part).status == "not attempted"
    report = check(problem, object(), part)
    assert report.status == "wrong" and "That cannot be read." in report.message


def test_every_pair_is_judged_as_python_decodes_it():
    for code in range(0, 65_536, 7):
        pair = code.to_bytes(2, "big")
        try:
            pair.decode()
        except UnicodeDecodeError:
            assert unicode2(pair, "c"), pair
        else:
            with pytest.raises(Wrong, match="can be decoded"):
                unicode2(pair, "c")


def test_without_a_part_the_fitting_one_is_found():
    assert check("unicode2", b"\xc3\x28").part == "c"
    assert check("unicode2", "é".encode()).part == "b"
    assert check("unicode2", 20).part == "a"
    assert check("unicode1", "\x00").part == "a"


# Claims of published write-ups, handed in as values; a sentence among them is read.
HANDED = {
    "chr(0) returns b'\\x00'": "b'\\x00'",
    "'hello' in UTF-32 is 20 bytes": {"UTF-32": 20, "UTF-16": 12},  # its next claim
    "'hello' in UTF-16 is 12 bytes": {"UTF-16": 12},
    "UTF-32 would need a vocabulary of about 4 billion": 4e9,
    "1029.17 s, 0.08 GB": {"seconds": 1029.17, "gb": 0.08},
    "61.72 s, 158.3 MB": {"seconds": 61.72, "mb": 158.3},
    "longest token 'accomplishment', 15 bytes": ("accomplishment", 15),
    "TinyStories 2.86": {"TinyStories": 2.86},
    "0.67 MB/s, Pile in 342 h": ("0.67 MB/s", "342 h"),
    "713258.83 B/s, Pile in 14 d": (713258.83, "14 d"),
    "a sample of 60 tokens": "60 tokens",
}
SENTENCES = ("printed,", "62.44 s, 0.1084 GB (184", "the slowest part", "with lr = 100")


def test_what_write_ups_claimed_is_judged_as_recorded():
    path = config.shipped() / "data" / "reported" / "claims.csv"
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["problem"] in {p.id for p in OURS}]
    assert HANDED.keys() <= {row["claimed"] for row in rows}
    for row in rows:
        attempt = row["claimed"].replace(" decodes to nothing", "")
        status = check(row["problem"], HANDED.get(attempt, attempt), row["part"]).status
        bad = row["verdict"] in ("wrong", "doubtful", "incomplete")
        if attempt.startswith(SENTENCES):
            assert status == "read", row
        else:
            assert (status == "wrong") == bad, row


KEYS = {  # of a dict whose value is 3
    "peak memory (MB)": (3e6, "bytes"), "pile_days": (3 * 86_400, "seconds"),
    "time_s": (3, "seconds"), "mb_per_s": (3e6, "rate"), "MB/s": (3e6, "rate"),
    "gib": (3 * 1024**3, "bytes"), "a": (3, ""), "b": (3, ""),
}  # fmt: skip


def test_of_a_text_that_is_more_than_one_number_with_its_unit_none_is_read():
    for text in ("34 GB or so", "3 and 4", "19.5 TFLOP/s", "1e999", "three", "", math.nan, [3]):
        assert number(text) is None, text
    assert (number("20 ms").value, number("8.51 gigabytes").value) == (0.02, 8.51e9)
    assert (number("100 kB per second").kind, number("1.56 Billion").kind) == ("rate", "count")


def test_a_key_may_name_the_unit():
    for key, expected in KEYS.items():
        assert (entry(key, 3).value, entry(key, 3).kind) == expected, key
        assert entry(key, "2 days").kind == "seconds"
