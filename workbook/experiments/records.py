"""Finished runs as text, found by what they were asked for: in data/runs, or in the data folder.

    learning_rate.runs.jsonl    a line per run: settings, how it ended, a text that the model wrote
    learning_rate.logs.jsonl    a line per run: the columns of its log
    environments.jsonl          a line per machine and version, which many runs share

A run stands in the files of the experiment that asked for it first, and its line begins with the
hash of its config (`TrainConfig.key`): so it is found whichever experiment asks, and never made
twice. Records hold no weights, so they are small enough to be committed, and all tables and curves
come from them. A run in progress has a folder of its own elsewhere (`training.log`).
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workbook import config as settings
from workbook.config import TrainConfig, config_from
from workbook.files import atomic_write, file_state, files_like, locked
from workbook.training import log
from workbook.training.data import TrainData, prepare
from workbook.training.loss_bounds import nats_per_token, uniform_loss
from workbook.training.trainer import Run

BLOCK = 2**24  # tokens counted at a time
RUNS, LOGS, ENVIRONMENTS = ".runs.jsonl", ".logs.jsonl", "environments.jsonl"
PEAK = "peak_flops_per_second"  # measured anew by each run, and so not part of its environment

Line = dict[str, Any]
# Of the lines of each kind of file, by how its name ends, with their types.
LINE_FIELDS: dict[str, Any] = {
    RUNS: {
        **log.HOW_IT_ENDED,
        "config": dict,
        "environment": str,
        PEAK: float,
        "sample": dict | None,
    },
    LOGS: {"step": list},
    ".jsonl": {"device": str, "precision": str},
}


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Baselines for the losses of a run in nats per token, on the tokens it is evaluated on."""

    guessing: float  # every token equally likely: ln V
    counting: float  # every token as likely as it is frequent in the training text
    text: float  # the generator's choices, an upper bound on the entropy; or a stated lower bound
    known: bool  # whether `text` was computed, and not just stated
    bytes_per_token: float
    train_tokens: int  # of the training text


def levels(config: TrainConfig, data: TrainData) -> Levels:
    """The levels for runs of this config on this data."""
    held_out = data.validation[1 : config.eval_tokens + 1]  # the targets of `evaluate`
    bytes_per_token = float(data.token_bytes[held_out].mean())
    return Levels(
        guessing=uniform_loss(config.model.vocab_size),
        counting=unigram_loss(data.train, held_out, config.model.vocab_size),
        text=nats_per_token(data.entropy or data.floor, bytes_per_token),
        known=data.entropy is not None,
        bytes_per_token=bytes_per_token,
        train_tokens=len(data.train),
    )


def unigram_loss(train: np.ndarray, held_out: np.ndarray, vocab_size: int) -> float:
    """The loss in nats per token of a model that has only counted the tokens of the training text.

    Each token counts once more than it occurred, so that none is impossible.

    >>> round(unigram_loss(np.array([0, 0, 1]), np.array([0, 1]), 2), 3)  # 3/5 and 2/5
    0.714
    """
    counts = np.ones(vocab_size, np.int64)
    for start in range(0, len(train), BLOCK):  # bincount copies what it counts, in eight bytes each
        counts += np.bincount(train[start : start + BLOCK], minlength=vocab_size)
    # The loss is the mean of -ln p over the held-out tokens, and p a share of the counts.
    nats = -np.log(counts / counts.sum())
    return float(nats[held_out].mean())


@dataclass(frozen=True, repr=False)
class RecordedRun(Run):
    """A run that has ended, as the files of the experiment `study` in `folder` tell of it."""

    study: str
    line: Line = field(compare=False)  # its line in the file of runs

    @cached_property
    def log(self) -> pd.DataFrame:
        """The log, one row per logged step. The losses and gradient_norm are always there."""
        path = self.folder / f"{self.study}{LOGS}"
        return log.as_table(line_of(path, self.config.key), path)

    @property
    def environment(self) -> Line:
        """Where it began: device, precision, threads, versions, commit."""
        began = self.line["environment"]
        return line_of(self.folder / ENVIRONMENTS, began) | {PEAK: self.line[PEAK]}

    @property
    def outcome(self) -> Line:
        """How it ended: its "status", the last "step", the "reason" and the "flags"."""
        return self.line["outcome"]

    @property
    def status(self) -> str:
        """Diverged or finished."""
        return self.outcome["status"]

    @cached_property
    def levels(self) -> Levels:
        """What its losses are worth: computed when it was made, for the text may change since."""
        recorded = self.line.get("levels")  # records from before version 0.2 have none
        return Levels(**recorded) if recorded else levels(self.config, prepare(self.config))

    @property
    def sample(self) -> Line | None:
        """The "text" that the model wrote, and how; None if the run diverged."""
        return self.line.get("sample")

    @property
    def made_of(self) -> dict[str, str]:
        """Empty: experiments make all runs of our parts."""
        return {}


def find_record(config: TrainConfig) -> RecordedRun | None:
    """The record of the run with this config, whatever its name; None if there is none."""
    for path in files_of_runs():
        if line := read_lines(path).get(config.key):
            return RecordedRun(config, path.parent, path.name.removesuffix(RUNS), line)
    return None


def all_records() -> list[RecordedRun]:
    """All records there are, each config once."""
    records: dict[str, RecordedRun] = {}
    for path in files_of_runs():
        for key, line in read_lines(path).items():
            config = config_from(line["config"])
            study = path.name.removesuffix(RUNS)
            records.setdefault(key, RecordedRun(config, path.parent, study, line))
    return list(records.values())


def load_run(folder: Path) -> Run:
    """The run in a folder, in progress or over, with the config that is stored there.

    Raises: FileNotFoundError; ValueError if the config is damaged.
    """
    return Run(log.load_config(folder), folder)


def keep_record(study: str, run: Run, data: TrainData) -> None:
    """Add a run that lies in a folder of its own to the files of an experiment, if it has ended.

    `data` is what it learned from. Several processes may keep their runs at a time.
    Raises: ValueError for a run that goes on.
    """
    if run.status not in ("finished", "diverged"):
        raise ValueError(f"the run in {run.folder} is {run.status}; wait until it has ended")
    rows = log.records(run.folder)
    # Not every row has every field: a loss on the validation text is measured now and then.
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    environment = dict(run.environment)
    # Nearly all runs were made in one of a few environments: each of these is stored once.
    peak = environment.pop(PEAK)
    shared = sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()[:12]
    line = {
        "config": log.load_json(run.folder / log.CONFIG),
        "environment": shared,
        PEAK: peak,
        "outcome": run.outcome,
        "levels": asdict(levels(run.config, data)),
        "sample": run.sample,
    }
    place = folders()[0]  # shared by workers that make runs side by side
    with locked(place):
        add_line(place / ENVIRONMENTS, shared, environment)
        add_line(place / f"{study}{LOGS}", run.config.key, columns)
        # Last: a run whose line is missing has no record, and is kept again.
        add_line(place / f"{study}{RUNS}", run.config.key, line)


def add_line(path: Path, key: str, content: Line) -> None:
    """Add a line to a file whose lines have keys, in place of the one with this key if any."""
    lines = read_lines(path) | {key: content}
    with atomic_write(path) as file:
        for name, line in lines.items():
            file.write(json.dumps({"key": name} | line, ensure_ascii=False) + "\n")


def read_lines(path: Path) -> dict[str, Line]:
    """The lines of a file by their keys; none if there is no file."""
    return _lines(path, file_state(path))


def line_of(path: Path, key: str) -> Line:
    """The line of a file with this key. Raises: ValueError if there is none."""
    lines = read_lines(path)
    if key not in lines:
        raise ValueError(f"{path} has no line {key!r}: was it edited? Restore a copy of it")
    return lines[key]


@lru_cache(maxsize=64)
def _lines(path: Path, state: tuple[int, int] | None) -> dict[str, Line]:
    """`read_lines`, once for each state of the file: runs are looked for all the time."""
    if state is None:
        return {}
    fields = LINE_FIELDS["".join(path.suffixes[-2:])]  # as a study's name may hold dots, too
    found = {}
    with path.open(encoding="utf-8") as file:  # `splitlines` would also cut at U+2028
        try:
            for text in file:
                line = json.loads(text)
                if wrong := log.misfit(line | line.get("outcome", {}), fields):
                    raise ValueError(wrong)
                if "config" in fields:
                    config_from(line["config"])
                if line.get("levels"):
                    Levels(**line["levels"])
                found[line.pop("key")] = line
        except (ValueError, RecursionError, LookupError, AttributeError, TypeError) as error:
            raise ValueError(
                f"{path} holds a line that is no record ({error}); remove that line, or restore a"
                " copy of the file"
            ) from error
    return found


def files_of_runs() -> list[Path]:
    """The files that say which runs there are, those with new runs first."""
    return [path for place in folders() for path in files_like(place, f"*{RUNS}")]


_temporary: Path | None = None  # the folder of `temporary_folder`


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A context in which all records are in one empty folder, which is deleted afterwards.

    Use it to try something out: what is made inside does not mix with what was recorded.
    """
    global _temporary
    with tempfile.TemporaryDirectory() as folder:
        _temporary = Path(folder)
        try:
            yield _temporary
        finally:
            _temporary = None


def folders() -> tuple[Path, ...]:
    """Where records are: first the folder for new ones, then those that came with the workbook."""
    if _temporary is not None:
        return (_temporary,)
    own = settings.data_folder() / "runs"
    shipped = settings.shipped() / "data" / "runs"
    return (own,) if own == shipped else (own, shipped)
