"""Runs as learners write them down, in one form: from a table, a dict, a list, or curves.

Whatever names the columns have: "lr", "learning_rate" and "optimizer.max_learning_rate" are one.
"""

import math
import re
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from workbook.checks.experiments_run import ReportedRun, number, run_of
from workbook.checks.verdicts import NotAttempted, Words, Wrong, kind_of

# The quantities that a column may hold, by what its name looks like; the first that fits counts.
_FIELDS = {
    "": r"\b(?:differ\w*|delta|gap|spread|std|sd|stderr|change|min lr|min learning|warm\w*|cosine"
    r"|decay|every|norm of|gradient|eval tokens|per s\w*|a second|tokens s|mfu|vocab\w*|unigram"
    r"|(?:max|step|eval|checkpoint|data|forward|backward) (?:time|sec\w*|min\w*))\b",
    "bits per byte": r"\bbits?\b.*\bbyte|\bbpb\b",
    "bytes a token": r"\bbytes?\b.*\btoken",
    "perplexity": r"\bperplexity\b|\bppl\b",
    "train loss": r"\btrain\w*\b.*\bloss",
    "held-out loss": r"\b(?:val|valid|validation|test|eval|dev|held out)\b.*\bloss"
    r"|^(?:val|valid|validation)$",
    "loss": r"\bloss(?:es)?\b|\bnats\b",
    "accumulation": r"\baccum",
    "batch": r"\bbatch(?: size)?\b|^bs$",
    "rate": r"\blearning rates?\b|\blrs?\b|^rates?$|^alpha$",
    "context": r"\bcontext\b|\bseq(?:uence)?\b|^block size$",
    "tokens": r"\btokens?\b",
    "steps taken": r"^steps? (?:taken|done)$",
    "steps": r"^(?:max |num |n |total |last )?(?:steps?|iterations?|iters?|updates)$",
    "hours": r"\bhours?\b",
    "minutes": r"\bmin(?:ute)?s?\b",
    "seconds": r"\bsec(?:ond)?s?\b|\bwall|\b(?:run)?time\b|\belapsed\b|\bduration\b",
    "d_ff": r"^d ff$|\binner\b",
    "parameters": r"\bparam",
    "seed": r"^seeds?$",
}
_NAMES = {"name", "run", "label", "experiment", "model"}
_OUTCOMES = {"held-out loss", "loss", "train loss", "bits per byte", "perplexity"}
MOST_RUNS = 10_000  # rows of a table that are looked at


def is_table(attempt: Any) -> bool:
    """True for what `runs` can read: a mapping, a data frame or a series, a list of mappings."""
    if isinstance(attempt, Mapping) or hasattr(attempt, "to_dict"):
        return True
    several = isinstance(attempt, list | tuple) and len(attempt) > 0
    return several and all(
        isinstance(row, Mapping) or (isinstance(row, list | tuple) and len(row) == 2)
        for row in attempt
    )


def pair(attempt: Any) -> tuple[float, float] | None:
    """Two numbers, if that is what was handed in."""
    if not isinstance(attempt, tuple | list) or len(attempt) != 2:
        return None
    found = [number(each) for each in attempt]
    return (found[0], found[1]) if None not in found else None


def runs(attempt: Any, key: str) -> list[ReportedRun]:
    """The runs of a table; `key` is what a lone number stands for that names a run."""
    rows = list(_rows(attempt, key))
    if not rows:
        raise NotAttempted
    if len(rows) > MOST_RUNS:
        raise Wrong("Those are too many rows to look at.", got=Words(f"{len(rows):,} rows"))
    return [run_of(row, _FIELDS) for row in rows]


def expect_readable(attempt: Any, accepted: str) -> None:
    """Raise unless the attempt is a text, a number or a table; `accepted` says what is wanted."""
    held = attempt.strip() if isinstance(attempt, str) else attempt
    empty = isinstance(held, str | list | tuple | set | Mapping) and not held
    if attempt is None or attempt is ... or empty:
        raise NotAttempted(f"Nothing to check yet. Hand in {accepted}.")
    if not (isinstance(attempt, str | Real) or is_table(attempt)):
        raise Wrong("That cannot be read.", expected=Words(accepted), got=Words(kind_of(attempt)))


def _rows(attempt: Any, key: str) -> Iterable[list[tuple[str, Any]]]:
    """Each run as pairs of a quantity (or "name") and a value."""
    if hasattr(attempt, "to_dict"):
        yield from _frame(attempt, key)
    elif isinstance(attempt, Mapping):
        yield from _mapping(attempt, key)
    else:
        for row in attempt:
            yield from _mapping(row, key) if isinstance(row, Mapping) else [_named(*row, key)]


def _frame(frame: Any, key: str) -> Iterable[list[tuple[str, Any]]]:
    """The rows of a data frame, or the entries of a series."""
    if not hasattr(frame, "columns"):
        yield from _mapping(frame.to_dict(), key)
        return
    if any(isinstance(label, str) for label in frame.index) and "name" not in frame.columns:
        frame = frame.assign(name=[str(label) for label in frame.index])
    elif not set(frame.index.names) & {None, *frame.columns}:
        frame = frame.reset_index()
    if not _OUTCOMES & {_quantity(str(name)) for name in frame.columns}:
        # Each column is the curve of a run.
        for name in frame.columns:
            yield _named(name, list(frame[name].dropna()), key)
        return
    for row in frame.to_dict("records"):
        yield _columns(row, key)


def _mapping(entries: Mapping, key: str) -> Iterable[list[tuple[str, Any]]]:
    known = {name: _quantity(name) for name in entries if _is_column(name)}
    if entries and len(known) == len(entries) and _equally_long(entries.values()):
        for values in zip(*entries.values(), strict=True):
            yield _columns(dict(zip(known, values, strict=True)), key)
    elif len(set(known.values())) >= 2 and _OUTCOMES & set(known.values()):
        yield _columns(entries, key)
    else:
        for name, value in entries.items():
            yield _named(name, value, key)


def _columns(row: Mapping, key: str) -> list[tuple[str, Any]]:
    """The entries of a row by quantity; what its name says comes last, where no column says it."""
    found = [(_quantity(str(column)) or str(column), value) for column, value in row.items()]
    names = [str(value) for column, value in found if column.lower() in _NAMES]
    found = [(column, value) for column, value in found if column.lower() not in _NAMES]
    return found + [pair for name in names for pair in _key(name, key)]


def _is_column(name: Any) -> bool:
    """True for the name of a quantity, where no number stands in it: "lr", but not "lr=1e-3"."""
    return isinstance(name, str) and bool(_quantity(name)) and not re.search(r"\d", name)


def _equally_long(values: Iterable[Any]) -> bool:
    return len({len(v) if isinstance(v, list | tuple) else -1 for v in values} - {0}) == 1 and all(
        isinstance(v, list | tuple) for v in values
    )


def _named(name: Any, value: Any, key: str) -> list[tuple[str, Any]]:
    """A run under a name, which may be a number, a text with numbers, or a tuple of both."""
    row = [pair for part in (name if type(name) is tuple else (name,)) for pair in _key(part, key)]
    if hasattr(value, "columns"):  # the log of the run
        return [*row, *_last_line(value)]
    if hasattr(value, "to_dict"):  # a series: the curve
        value = list(value.to_dict().values())
    if isinstance(value, Mapping):
        return row + _columns(value, key)
    return [*row, ("loss", value)]


def _key(part: Any, key: str) -> Iterable[tuple[str, Any]]:
    if isinstance(part, Real) and not isinstance(part, bool):
        yield key, part
        return
    text = str(part)
    yield "name", text
    bare = r"(\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)"
    marks = {"rate": r"(?:lr|rate|alpha)", "batch": r"(?:batch|bs|batch[ _]size)"}
    for quantity, mark in marks.items():
        found = re.search(rf"{mark}[\s_=:]*{bare}", text, re.I)
        if found is None and quantity == key:
            found = re.fullmatch(rf"\s*{bare}\s*", text, re.I)
        if found and number(found[1]) is not None:
            yield quantity, number(found[1])


def _last_line(log: Any) -> Iterable[tuple[str, Any]]:
    """What the log of a run says at its end: of each quantity the last that was measured."""
    if log.index.name is not None and log.index.name not in log.columns:
        log = log.reset_index()
    for column in log.columns:
        quantity = _quantity(str(column))
        if quantity and quantity != "rate":  # which the schedule changes from step to step
            values = log[column].dropna()
            yield quantity, values.iloc[-1] if len(values) else math.nan


def _quantity(name: str) -> str:
    """What a column holds, by its name; "" for what is of no concern here."""
    words = re.sub(r"[^a-z0-9]+", " ", name.rsplit(".", 1)[-1].lower()).strip()
    return next((quantity for quantity, look in _FIELDS.items() if re.search(look, words)), "")
