"""Your own training runs: listed with their settings and what came out, and as rows of a table.

`my_runs()` lists what `workbook train` made on this machine, of the workbook's parts or of your
own. Each row names the folder of its run, which `records.load_run` opens.
"""

import os
from collections.abc import Iterable, Mapping
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd

from workbook.config import data_folder
from workbook.experiments import records
from workbook.experiments.results import settings_of, yours
from workbook.training import log
from workbook.training.loss_bounds import nats_per_token
from workbook.training.trainer import Run

# The settings that problems ask about are in every table; of the others, those that differ.
MAIN = ["learning_rate", "batch_size", "norm", "position", "ffn", "d_ff", "corpus", "seed"]
# Bytes per token belong to the others: they say how a loss and bits per byte fit together.
OUTCOMES = [
    "loss",
    "status",
    "bits_per_byte",
    "bytes_per_token",
    "steps",
    "tokens",
    "seconds",
    "yours",
    "folder",
]

Row = dict[str, Any]


def my_runs(*folders: str | os.PathLike[str]) -> pd.DataFrame:
    """A table of your training runs, a row each, the oldest first: settings, and what came out.

    Every check of runs takes it, or some of its rows:

        runs = my_runs()
        check("learning_rate", runs[runs.tokens < 1_000_000], "a")

    `learning_rate` is the highest of a run, `loss` the last validation loss in nats per token:
    infinite if the run diverged, nan as long as it goes on. `yours` names the parts that are your
    own, and `folder` is where the run lies. Settings that are the same in all runs are left out,
    but for the usual ones.

    Arguments:
        folders: of runs, or with runs in them, by their paths or by the names in this table; by
            default where `workbook train` puts them.

    Raises: ValueError if a folder holds no run.
    """
    found = [row for folder in folders for row in rows_in(_place(folder))]
    if not folders:
        found = [_opened(folder) for folder in folders_of_runs(data_folder() / "trained")]
    first, *rest = OUTCOMES  # the loss, which a wide table would hide at its end
    if not found:
        return pd.DataFrame(columns=[first, *MAIN, *rest], index=pd.Index([], name="name"))
    table = pd.DataFrame(found).set_index("name")
    settings = [name for name in table if name not in OUTCOMES]
    differing = [name for name in settings if table[name].nunique(dropna=False) > 1]
    others = [name for name in differing if name not in MAIN]
    return table[[first, *MAIN, *others, *rest]]


def rows_in(folder: Path) -> list[Row]:
    """The row of the run in a folder, or those of all runs in its folders.

    Raises: ValueError if there is none.
    """
    places = [folder] if _is_run(folder) else folders_of_runs(folder)
    if not places:
        raise ValueError(
            f"{folder} holds no run: expected the folder that `workbook train` names at its end, or"
            " one with such folders in it"
        )
    return [_opened(place) for place in places]


def folders_of_runs(place: Path, pattern: str = "*") -> list[Path]:
    """The folders of this pattern in a place that hold a run, the oldest first."""
    runs = [folder for folder in place.glob(pattern) if _is_run(folder)]
    return sorted(runs, key=lambda folder: (folder / log.LINES).stat().st_mtime)


def _place(named: str | os.PathLike[str]) -> Path:
    """A folder by its path, or by its name where `workbook train` puts runs."""
    path = Path(named)
    by_name = data_folder() / "trained" / path
    return by_name if os.path.isdir(by_name) and not os.path.exists(path) else path


def _opened(folder: Path) -> Row:
    return row_of(records.load_run(folder)) | {
        "name": folder.name,
        "folder": str(folder.absolute()),
    }


def _is_run(folder: Path) -> bool:
    """Whether something was logged there."""
    lines = folder / log.LINES
    return (folder / log.CONFIG).is_file() and lines.is_file() and lines.stat().st_size > 0


def row_of(run: Run) -> Row:
    """A run as a row: all its settings by name, and what came out."""
    row = settings_of(run.config)
    row["learning_rate"] = row.pop("max_learning_rate")
    has_loss = run.status == "finished"
    has_ended = has_loss or run.diverged
    length = run.loss / nats_per_token(run.bits_per_byte, 1) if has_loss else nan
    return row | {
        "name": run.config.name,
        "status": run.status,
        "steps": run.steps,
        "tokens": run.tokens,
        "seconds": run.seconds,
        "loss": run.loss if has_ended else nan,
        "bits_per_byte": run.bits_per_byte if has_ended else nan,
        "bytes_per_token": length,
        "yours": yours(run),
    }


def as_rows(handed_in: Any) -> Any:
    """Turn folders of runs and runs themselves into rows, also those in a list or by their names.

    Whatever holds none of them is returned as it is.

    Raises: ValueError for a folder that holds no run.
    """
    if isinstance(handed_in, Run):
        return [row_of(handed_in)]
    if isinstance(handed_in, os.PathLike) or _names_a_folder(handed_in):
        return rows_in(_place(handed_in))
    if isinstance(handed_in, Mapping) and any(isinstance(run, Run) for run in handed_in.values()):
        named = handed_in.items()
        return [row | {"name": str(name)} for name, run in named for row in as_rows(run)]
    if isinstance(handed_in, list | tuple | set):
        return [row for each in handed_in for row in _listed(as_rows(each))]
    return handed_in


def _names_a_folder(text: Any) -> bool:
    """Whether a text is a path, and not an answer: a word that leads somewhere, or would."""
    is_word = isinstance(text, str) and len(text.split()) == 1
    return is_word and (os.path.isdir(_place(text)) or os.sep in text)


def _listed(rows: Any) -> Iterable[Any]:
    return rows if isinstance(rows, list) else [rows]
