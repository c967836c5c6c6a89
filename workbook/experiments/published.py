"""What five public write-ups of the assignment claim, and what public runs report.

`data/reported/claims.csv` has a row for each claim, in our own words, with a verdict that was
recorded by hand and the reason. `value` and `unit` repeat its numbers, several separated by
semicolons. `data/reported/ablations.csv` has losses of public runs, unverified.
"""

from functools import cache
from typing import Any

import pandas as pd

from workbook import config
from workbook.training.loss_bounds import bits_per_byte, bounds, nats_per_token

CORPORA = {"TinyStories": "tinystories", "OWT": "owt"}


@cache
def all_claims() -> pd.DataFrame:
    """Every claim of the table."""
    path = config.shipped() / "data" / "reported" / "claims.csv"
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def claims(problem: str, part: str | None = None) -> pd.DataFrame:
    """The claims about a problem, or one part of it: claimed, verdict, right and why, by write-up.

    Raises: ValueError if no write-up says anything about it.
    """
    table = all_claims()
    about = (table["problem"] == problem) & ((table["part"] == part) | (part is None))
    if not about.any():
        raise ValueError(f"no claims about {problem!r}, part {part!r}; see `all_claims()`")
    return table[about].set_index("writeup")[["part", "claimed", "verdict", "right", "why"]]


def claimed_numbers(problem: str) -> list[tuple[str, str, str]]:
    """The part, the digits and the unit of every number that is claimed about a problem."""
    table = all_claims()
    rows = table[(table["problem"] == problem) & (table["value"] != "")]
    return [(row.part, *number) for row in rows.itertuples() for number in _numbers_of(row)]


def _numbers_of(claim: Any) -> list[tuple[str, str]]:
    """The digits and the unit of each number of a claim."""
    return list(zip(claim.value.split("; "), claim.unit.split("; "), strict=True))


def claimed_losses() -> pd.DataFrame:
    """Every claimed loss in bits per byte, beside the stated floor of its text.

    Nats per token are converted with the bytes per token that the same write-up measured. The last
    column is the number in nats per token if bits per byte were meant.
    """
    rows = []
    for claim in all_claims().itertuples():
        measured, _, text = claim.unit.partition(" of ")  # "nats per token of OWT"
        if measured == "nats per token":
            nats = float(claim.value)
            length = token_length(claim.writeup, text)
            rows.append(
                {
                    "problem": claim.problem,
                    "claimed": claim.claimed,
                    "in bits/byte": bits_per_byte(nats, length),
                    "stated floor": bounds(CORPORA[text]).floor,
                    "nats/token, if it were bits/byte": nats_per_token(nats, length),
                }
            )
    return pd.DataFrame(rows)


def token_length(writeup: str, text: str) -> float:
    """The bytes per token that a write-up measured on a text, or else what is usual there."""
    table = all_claims()
    for row in table[table["writeup"] == writeup].itertuples():
        for value, unit in _numbers_of(row):
            if unit == f"bytes per token of {text}":
                return float(value)
    return bounds(CORPORA[text]).bytes_per_token


def reported_ablations() -> pd.DataFrame:
    """What public runs with the course's own model report that a change costs, in nats per token.

    It is the increase over the unchanged model's loss on TinyStories in single runs, unverified.
    The columns say where it was reported, after how many tokens, at which learning rate of the
    changed model, and whether that was the best of several for either side.
    """
    return pd.read_csv(config.shipped() / "data" / "reported" / "ablations.csv", na_filter=False)
