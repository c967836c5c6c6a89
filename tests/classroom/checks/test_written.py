"""Values are judged in the form that a part takes, sentences are read and never called wrong.

What holds of some parts alone is in `test_accounting` and `test_runs`.
"""

import ast
import csv
import re
from contextlib import suppress

import pytest
from attempts import accounting, runs, written

from workbook import config
from workbook.classroom import checks
from workbook.classroom.checks.by_problem import CHECKS
from workbook.classroom.checks.machinery.verdicts import Wrong
from workbook.classroom.checks.written import unicode2
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study.verbs import check

WRITTEN = [p for p in PROBLEMS.values() if not p.form]
PARTS = [(problem.id, part) for problem in WRITTEN for part in problem.parts or [None]]


def every(kind):
    """The attempts of a kind for all sorts of problems, by problem and part."""
    tables = [getattr(each, kind, {}) for each in (written, accounting, runs)]
    return [(*place, some) for table in tables for place, some in table.items()]


@pytest.mark.parametrize(("problem", "part", "attempts"), every("RIGHT"))
def test_right_values_pass(problem, part, attempts, judged_here):
    words, attempts = attempts if isinstance(attempts, tuple) else ("", attempts)
    for attempt in attempts:
        report = check(problem, attempt, part)
        passed = "possible" if PROBLEMS[problem].needs_runs else "correct"
        assert report.status == passed and words in report.message, (attempt, report)


@pytest.mark.parametrize(("problem", "part", "attempts"), every("WRONG"))
def test_wrong_values_are_told_why(problem, part, attempts, judged_here):
    for attempt, words in attempts:
        report = check(problem, attempt, part)
        assert report.status == "wrong" and words in report.message, (attempt, report)


@pytest.mark.parametrize(("problem", "part"), PARTS)
def test_a_sentence_is_read_and_never_called_wrong(problem, part, judged_here):
    own = written.READ.get((problem, part), "Nothing here is a value.")
    for attempt in (*written.SENTENCES, own):
        report = check(problem, attempt, part)
        assert report.status == "read" and report.facts, (attempt, report)
        assert f"\n{len(report.facts)}. {report.facts[-1]}" in report.message


@pytest.mark.parametrize(("problem", "part", "attempts"), every("REFUSED"))
def test_another_form_is_told_the_one_that_is_taken(problem, part, attempts, judged_here):
    form = PROBLEMS[problem].takes[part or ""]
    for attempt, words in attempts:
        report = check(problem, attempt, part)
        assert report.status == "not attempted", (attempt, report)
        assert (words or form) in report.message, (attempt, report)


@pytest.mark.parametrize(("problem", "part"), PARTS)
def test_nothing_is_not_attempted_and_what_is_of_no_use_is_told_so(problem, part, judged_here):
    form = f"Hand in {PROBLEMS[problem].takes[part or '']}."
    for nothing in (None, " \n", [], {}, ()):
        assert check(problem, nothing, part).status == "not attempted"
    report = check(problem, ..., part)
    assert report.message == f"Nothing to check yet. {form}\nThen run this cell again."
    for odd in (object(), len):
        report = check(problem, odd, part)
        assert report.status == "not attempted"
        assert report.message.startswith("The check cannot read") and report.message.endswith(form)


def examples(words):
    """The Python values at the beginning of a text and after "such as", without their dots."""
    for start in [0, *(found.end() for found in re.finditer("such as ", words))]:
        for end in range(len(words), start, -1):
            with suppress(SyntaxError, ValueError):
                yield filled(ast.literal_eval(words[start:end].rstrip(", ") or "?"))
                break


def filled(value):
    """A value without the dots that stand for more of the same."""
    if isinstance(value, dict):
        return {key: filled(each) for key, each in value.items() if each not in (..., {...})}
    if isinstance(value, list):
        return [filled(each) for each in value if each is not ...]
    return value


def test_each_record_shows_the_form_that_its_check_takes(judged_here):
    without = []
    for problem in PROBLEMS.values():
        for part, words in problem.takes.items():
            shown = list(examples(words))
            for example in shown:
                report = check(problem.id, example, part)
                assert not report.message.endswith(f"Hand in {words}."), report
            if not shown:
                without.append((problem.id, part))
    assert without == [
        *(("unicode2", part) for part in "bc"),  # one gives a literal, one a call
        ("train_bpe_tinystories", "b"),  # takes sentences alone
        ("train_bpe_expts_owt", "b"),
    ]


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


# Claims of published write-ups, handed in as values; a sentence among them is read. What they say
# of costs is explained in `test_published`.
HANDED = {
    "chr(0) returns b'\\x00'": "b'\\x00'",
    "'hello' in UTF-32 is 20 bytes": {"UTF-32": 20, "UTF-16": 12},  # its next claim
    "'hello' in UTF-16 is 12 bytes": {"UTF-16": 12},
    "UTF-32 would need a vocabulary of about 4 billion": {"UTF-32": 4e9},
    "1029.17 s, 0.08 GB": {"seconds": 1029.17, "gigabytes": 0.08},
    "61.72 s, 158.3 MB": {"seconds": 61.72, "gigabytes": 0.1583},
    "longest token 'accomplishment', 15 bytes": {"longest": b"accomplishment"},
    "TinyStories 2.86": {"tinystories": 2.86},
    "0.67 MB/s, Pile in 342 h": (0.67e6, 342),
    "uint16 reaches 65,535": 65_535,
    "a sample of 60 tokens": 60,
}
SENTENCES = ("printed,", "62.44 s, 0.1084 GB (184", "the slowest part", "with lr = 100")


def test_what_write_ups_claimed_is_judged_as_recorded(judged_here):
    path = config.shipped() / "data" / "reported" / "claims.csv"
    judged = {p.id for p in WRITTEN if CHECKS[p.id] is getattr(checks.written, p.id, None)}
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["problem"] in judged]
    assert HANDED.keys() <= {row["claimed"] for row in rows}
    for row in rows:
        attempt = HANDED.get(row["claimed"], row["claimed"])
        if (row["problem"], row["part"]) == ("unicode2", "c"):
            attempt = bytes.fromhex(row["claimed"][:5])
        status = check(row["problem"], attempt, row["part"]).status
        bad = row["verdict"] in ("wrong", "doubtful", "incomplete")
        if row["claimed"].startswith(SENTENCES):
            assert status == "read", row
        else:
            assert (status == "wrong") == bad, row
