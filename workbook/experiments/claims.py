"""What five public write-ups of the assignment claim, from `data/reported/claims.csv`."""

import pandas as pd

from workbook import config


def claims(problem: str, part: str | None = None) -> pd.DataFrame:
    """The claims about a problem, or one part of it, by write-up: claimed, verdict, right, why.

    Raises ValueError where no write-up says anything about it.
    """
    path = config.repository() / "data" / "reported" / "claims.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    wanted = table["problem"] == problem
    if part is not None:
        wanted &= table["part"] == part
    if not wanted.any():
        known = ", ".join(dict.fromkeys(table["problem"]))
        raise ValueError(
            f"no claims about {problem!r}, part {part!r}; there are some about {known}"
        )
    return table[wanted].drop(columns="problem").set_index("writeup")
