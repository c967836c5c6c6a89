"""What all benches share: turns, a table, and a record.

    round 1    workbook 170 MB/s   rustbpe 16 MB/s   tokenizers 5 MB/s
    round 2    workbook 168 MB/s   rustbpe 17 MB/s   tokenizers 5 MB/s
    ratio                          9.9 to 10.6       33 to 34

Competitors take turns, and a ratio compares two speeds of the same round: a busy neighbour slows
down all of one round. Every speed is kept, with the machine and the versions: in `data/timings/`,
or, where `--record` asks for it, in `data/bench/`, which is in git.
"""

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from tqdm import tqdm

from workbook import config
from workbook.files import write_json


def in_turns(works: Mapping[str, Callable], rounds: int, title: str) -> dict[str, list]:
    """The results of every call by its name, round by round, with a progress bar."""
    results = {name: [] for name in works}
    for _ in tqdm(range(rounds), desc=title):
        for name, work in works.items():
            results[name].append(work())
    return results


def table(
    speeds: Mapping[str, Sequence[float]],
    unit: str,
    baseline: Callable[[str], str],
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    winner: str = "workbook is",
) -> str:
    """The speeds of competitors in every round as text, one row each.

    `baseline` gives, for the name of a competitor, the one that it is compared with, round by
    round; if no competitor has that name, with none. `columns` are more cells by row and heading;
    `winner` is the heading of the ratios.
    """
    rows = {}
    for name, runs in speeds.items():
        cells = {f"best {unit}": max(runs), "lowest": min(runs), "runs": len(runs)}
        cells |= {winner: "", "best to best": ""}
        other = baseline(name)
        if other in speeds and other != name:
            ratios = [one / two for one, two in zip(speeds[other], runs, strict=True)]
            low = min(ratios)
            high = max(ratios)
            cells[winner] = f"{median(ratios):.1f}x as fast ({low:.1f} to {high:.1f})"
            cells["best to best"] = f"{max(speeds[other]) / max(runs):.2f}x"
        rows[name] = {**(columns or {}).get(name, {}), **cells}
    return as_text(rows)


def as_text(cells: Mapping[str, Mapping[str, Any]]) -> str:
    """Cells by row and column as a text table of pandas, without blanks at the ends of lines."""
    text = pd.DataFrame.from_dict(cells, orient="index").to_string(
        float_format=lambda value: f"{value:,.0f}" if value >= 1_000 else f"{value:,.1f}"
    )
    return "\n".join(line.rstrip() for line in text.splitlines())


def first_difference(theirs: Sequence, ours: Sequence) -> str:
    """Where two results differ first, in words; empty if they are equal.

    >>> first_difference([1, 2, 3], [1, 5, 3])
    'at 1: 2, ours 5'
    """
    for place, (one, other) in enumerate(zip(theirs, ours, strict=False)):
        if one != other:
            return f"at {place:,}: {one}, ours {other}"
    if len(theirs) != len(ours):
        return f"{len(theirs):,} of them, ours {len(ours):,}"
    return ""


def installed(library: str) -> bool:
    """Whether a library can be imported."""
    return importlib.util.find_spec(library) is not None


def machine(libraries: Sequence[str]) -> dict:
    """The machine and the versions that the figures of a record belong to."""
    return {
        **config.machine(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "versions": config.versions(libraries),
    }


def place(record: dict, used: str) -> str:
    """Where a record was made: `used`, such as "one core", the processor, and the versions."""
    where = record["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in where["versions"].items())
    return f"{used} of {where['processor']} ({where['system']}, load {where['load']})\n{versions}"


def records_folder(in_git: bool) -> Path:
    """The folder for the records of a bench: the one in git, or one of the user's data."""
    if in_git:
        return Path(__file__).parents[2] / "data" / "bench"
    return config.data_folder() / "timings"


def keep(file: Path, record: dict, shown: str) -> str:
    """Write a record to `file`, with its table `shown`; return the table and where the record is.

    The table is kept so that whoever quotes the record needs none of this code.
    """
    write_json(file, record | {"table": shown})
    return f"{shown}\nkept in {file}"
