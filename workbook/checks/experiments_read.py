"""Runs as learners write them down, in one form: from a table, a dict, a list, or curves.

Whatever names the columns have: "lr", "learning_rate" and "optimizer.max_learning_rate" are one.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from workbook.checks.base import NotAttempted, Words, Wrong, kind_of

# The quantities that a column may hold, by what its name looks like; the first that fits counts.
_FIELDS = {
    "": r"\b(?:differ\w*|delta|gap|spread|std|sd|stderr|change|min lr|min learning|warm\w*|cosine"
    r"|decay|every|norm of|gradient|eval tokens|per s\w*|a second|tokens s|mfu|vocab\w*|unigram)\b",
    "bits a byte": r"\bbits?\b.*\bbyte|\bbpb\b",
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
    "seconds": r"\bsec(?:ond)?s?\b|\bwall|^time\b",
    "d_ff": r"^d ff$|\binner\b",
    "parameters": r"\bparam",
    "seed": r"^seeds?$",
}
_SECONDS = {"hours": 3600, "minutes": 60, "seconds": 1}
_BROKE_DOWN = re.compile(r"\b(?:nan|[-+]?inf(?:inity|inite)?|diverg\w*|explod\w*|blew up)\b", re.I)
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:[,_]\d{3})+|\d+)?(?:\.\d*)?(?:e[-+]?\d+)?", re.I)
MOST_RUNS = 10_000  # rows of a table that are looked at
FEW = 8  # losses of several seeds, where a list is not the curve of one run


@dataclass(frozen=True)
class Run:
    """One run: its numbers by quantity, its losses (nan: it diverged), and all that is in words."""

    words: str = ""
    numbers: dict[str, float] = field(default_factory=dict)
    losses: tuple[float, ...] = ()  # on text it was not trained on; one for each seed
    broke_down: bool = False

    def get(self, quantity: str) -> float | None:
        """A number of the run, if it is known."""
        return self.numbers.get(quantity)

    @property
    def finite(self) -> list[float]:
        """The losses that are numbers."""
        return [loss for loss in self.losses if math.isfinite(loss)]

    @property
    def loss(self) -> float:
        """The mean of its losses; nan where it diverged."""
        return math.fsum(self.finite) / len(self.finite) if self.finite else math.nan

    @property
    def diverged(self) -> bool:
        """True where it is said to have diverged, or no loss is a number."""
        return self.broke_down or (bool(self.losses) and not self.finite)

    @property
    def ended(self) -> bool:
        """True where something is known of how it came out."""
        return bool(self.losses) or self.broke_down

    @property
    def name(self) -> str:
        """What the run is called in a report."""
        known = [
            f"{quantity} {self.numbers[quantity]:g}"
            for quantity in ("rate", "batch")
            if quantity in self.numbers
        ]
        return ", ".join(filter(None, [self.words.strip(), *known])) or "this run"


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


def runs(attempt: Any, key: str) -> list[Run]:
    """The runs of a table; `key` is what a lone number stands for that names a run."""
    rows = list(_rows(attempt, key))
    if not rows:
        raise NotAttempted
    if len(rows) > MOST_RUNS:
        raise Wrong("Those are too many rows to look at.", got=Words(f"{len(rows):,} rows"))
    return [_run(row) for row in rows]


def best(found: list[Run]) -> Run:
    """The run with the lowest loss; raises where none has one."""
    converged = [run for run in found if run.finite and not run.diverged]
    if not converged:
        raise Wrong(
            "No run came to an end.",
            expected=Words("a loss of one run at least"),
            got=Words(f"{len(found)} runs that diverged"),
            mistake="Go on with smaller rates, or a longer warm-up.",
        )
    return min(converged, key=lambda run: run.loss)


def expect_readable(attempt: Any, accepted: str) -> None:
    """Raise unless the attempt is a text, a number or a table; `accepted` says what is wanted."""
    if isinstance(attempt, list | tuple | set | Mapping) and not attempt:
        raise NotAttempted
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
    names = [name for name in frame.index.names if name is not None]
    if names and not set(names) & set(frame.columns):
        frame = frame.reset_index()
    elif frame.index.dtype == object:  # names of runs, without a heading
        frame = frame.rename_axis("name").reset_index()
    for row in frame.to_dict("records"):
        yield [(_quantity(str(name)) or str(name), value) for name, value in row.items()]


def _mapping(entries: Mapping, key: str) -> Iterable[list[tuple[str, Any]]]:
    known = [name for name in entries if isinstance(name, str) and _is_column(name)]
    if entries and len(known) == len(entries) and _equally_long(entries.values()):
        for values in zip(*entries.values(), strict=True):
            yield [(_quantity(n) or n, v) for n, v in zip(entries, values, strict=True)]
    elif len(known) >= 2 and not any(_holds_runs(value) for value in entries.values()):
        yield [(_quantity(str(name)) or str(name), value) for name, value in entries.items()]
    else:
        for name, value in entries.items():
            yield _named(name, value, key)


def _is_column(name: str) -> bool:
    """True for the name of a quantity, where no number stands in it: "lr", but not "lr=1e-3"."""
    return bool(_quantity(name)) and not re.search(r"\d", name)


def _equally_long(values: Iterable[Any]) -> bool:
    return len({len(v) if isinstance(v, list | tuple) else -1 for v in values} - {0}) == 1 and all(
        isinstance(v, list | tuple) for v in values
    )


def _holds_runs(value: Any) -> bool:
    return isinstance(value, Mapping) or hasattr(value, "columns")


def _named(name: Any, value: Any, key: str) -> list[tuple[str, Any]]:
    """A run under a name, which may be a number, a text with numbers, or a tuple of both."""
    row = [pair for part in (name if type(name) is tuple else (name,)) for pair in _key(part, key)]
    if hasattr(value, "columns"):  # the log of the run
        return [*row, *_last_line(value)]
    if hasattr(value, "to_dict"):  # a series: the curve
        value = list(value.to_dict().values())
    if isinstance(value, Mapping):
        return row + [(_quantity(str(n)) or str(n), v) for n, v in value.items()]
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


def _run(row: list[tuple[str, Any]]) -> Run:
    words, numbers, losses, broke_down = [], {}, {}, False
    for quantity, value in row:
        if quantity in ("loss", "held-out loss"):
            losses.setdefault(quantity, _losses(value))
        elif quantity in _SECONDS and number(value) is not None:
            numbers["seconds"] = numbers.get("seconds", 0) + _SECONDS[quantity] * number(value)
        elif quantity in _FIELDS and number(value) is not None:
            numbers.setdefault(quantity, number(value))
        elif isinstance(value, str):
            # "norm none" and "position none" are not the same.
            words.append(value if quantity in ("name", *_FIELDS) else f"{quantity} {value}")
            broke_down |= bool(re.match(r"\s*diverged\b", value, re.I))
        elif quantity == "diverged":
            broke_down |= value is True or str(value) == "True"
    found = losses.get("held-out loss") or losses.get("loss") or ()
    return Run(", ".join(words), numbers, found, broke_down)


def _losses(value: Any) -> tuple[float, ...]:
    """The loss of a run, those of its seeds, or of a longer list, its curve, the last."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        found = [loss for each in value if (loss := number(each, lost=math.nan)) is not None]
        return tuple(found) if len(found) <= FEW else tuple(found[-1:])
    found = number(value, lost=math.nan)
    return () if found is None else (found,)


def number(value: Any, lost: float | None = None) -> float | None:
    """A number, also where it is written out; `lost` for a word that means that there is none.

    >>> number("5,000"), number("1e-3"), number("out of memory"), number("diverged", lost=0.0)
    (5000.0, 0.001, None, 0.0)
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, Real):
        found = float(value)
        return found if math.isfinite(found) else lost
    if isinstance(value, str):
        text = value.strip()
        if re.search(r"\d", text) and _NUMBER.fullmatch(text):
            return float(re.sub(r"[,_]", "", text))
        return lost if _BROKE_DOWN.search(text) else None
    try:
        return number(value.item(), lost)
    except (AttributeError, TypeError, ValueError):
        return None
