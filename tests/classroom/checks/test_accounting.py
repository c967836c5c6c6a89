"""Costs: what each edition asks, an open choice, and published claims; more in `test_written`."""

import csv

import pytest
from attempts.accounting import ADAMW, MODEL, RIGHT_2026

from workbook import config
from workbook.classroom.study.verbs import check


@pytest.mark.parametrize(("place", "attempts"), RIGHT_2026.items())
def test_right_answers_of_2026_pass_in_its_edition(place, attempts, monkeypatch, judged_here):
    problem, part = place
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    for attempt in attempts:
        report = check(problem, attempt, part)
        assert report.status == "correct", (attempt, report)


def test_the_other_editions_value_is_recognised_as_such(monkeypatch):
    report = check(MODEL, 1640452800, "a")
    assert report.status == "correct"
    assert "right in edition 2026" in report.claim and "WORKBOOK_EDITION=2026" in report.claim
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    assert "right in edition 2025" in check(MODEL, "4.5133e12", "b").claim


def test_an_open_choice_is_named():
    assert "three matrices (SwiGLU). Say so" in check(ADAMW, "34 GB", "a").claim


def test_a_right_number_is_called_by_its_key(judged_here):
    assert check(ADAMW, {"gradients_gb": 6.54}, "a").claim == "6.54 GB (`gradients_gb`): right."


# The keys of a claim that is not the first number of its part alone, by its units.
KEYS = {
    "parameters": ("parameters",),
    "GB": ("gb",),
    "TFLOPs; times": ("flops", "growth"),
    "FLOPs; times": ("flops", "growth"),
    "GB; GB; sequences": ("a", "b", "batch"),
}


def handed(row):
    """A claim in the form that its part takes."""
    values = [
        f"{v} {u}" for v, u in zip(row["value"].split("; "), row["unit"].split("; "), strict=True)
    ]
    if (row["problem"], row["part"]) == (MODEL, "c"):
        return {"scores": "scores", "feed-forward": "ffn"}[row["value"]]
    if (row["problem"], row["part"]) == (MODEL, "d"):
        sizes = ("small", "medium", "large") if len(values) == 3 else ("small", "large")
        key = "attention" if "%" in row["unit"] else "flops"
        return {size: {key: value} for size, value in zip(sizes, values, strict=True)}
    keys = KEYS.get(row["unit"])
    return dict(zip(keys, values, strict=True)) if keys else values[0]


CAUSES = {  # of wrong claims: a piece of what is said
    "2127056000": "the final norm is left out",
    "1.56e9": "two matrices (no W3)",
    "5.80 GB": "GiB are called GB",
}


def test_verdicts_on_published_claims_agree(judged_here):
    path = config.shipped() / "data" / "reported" / "claims.csv"
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["problem"] in (MODEL, ADAMW)]
    for row in rows:
        report = check(row["problem"], handed(row), row["part"])
        fine = row["verdict"] in ("right", "assumption")
        assert report.status == ("correct" if fine else "wrong"), (row, report)
        assert CAUSES.get(row["claimed"], "") in report.message, (row, report)
