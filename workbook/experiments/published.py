"""What five public write-ups of the assignment claim, as a table.

`data/reported/claims.csv` has a row for each claim, in our own words, with a verdict that was
recorded by hand and the reason. `value` and `unit` repeat its numbers, several separated by
semicolons.
"""

from functools import cache

import pandas as pd

from workbook import config


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
