"""A training run as a learner reports it: numbers by quantity, losses, words."""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from workbook.checks.figures import quantities
from workbook.checks.verdicts import Words, Wrong

_SECONDS = {"hours": 3600, "minutes": 60, "seconds": 1}
_BROKE_DOWN = re.compile(r"\b(?:nan|[-+]?inf(?:inity|inite)?|diverg\w*|explod\w*|blew up)\b", re.I)
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:[,_]\d{3})+|\d+)?(?:\.\d*)?(?:e[-+]?\d+)?", re.I)
FEW = 8  # losses of several seeds; a longer list is the curve of one run
FALLS = 1.3  # the first loss over the last one in a curve: seeds do not differ as much


@dataclass(frozen=True)
class ReportedRun:
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


def best(found: list[ReportedRun]) -> ReportedRun:
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


def run_of(row: list[tuple[str, Any]], quantities: Collection[str]) -> ReportedRun:
    """The run of a row, which is pairs of a quantity (or another column's name) and a value."""
    words, numbers, losses, broke_down = [], {}, {}, False
    for quantity, value in row:
        if quantity in ("loss", "held-out loss"):
            losses.setdefault(quantity, _losses(value))
        elif quantity in _SECONDS and (seconds := _seconds(quantity, value)) is not None:
            numbers["seconds"] = max(seconds, numbers.get("seconds", 0))
        elif quantity in quantities and number(value) is not None:
            numbers.setdefault(quantity, number(value))
        elif isinstance(value, str):
            # "norm none" and "position none" are not the same.
            words.append(value if quantity in ("name", *quantities) else f"{quantity} {value}")
            broke_down |= bool(re.match(r"\s*diverged\b", value, re.I))
        elif quantity == "diverged":
            broke_down |= value is True or str(value) == "True"
    found = losses.get("held-out loss") or losses.get("loss") or ()
    return ReportedRun(", ".join(words), numbers, found, broke_down)


def _seconds(unit: str, value: Any) -> float | None:
    """A time in seconds; where it is written with a unit of its own, as in "5.8 min", that counts.

    >>> _seconds("minutes", 2), _seconds("seconds", "0.5 h")
    (120.0, 1800.0)
    """
    if number(value) is not None:
        return _SECONDS[unit] * number(value)
    written = quantities(value) if isinstance(value, str) else []
    times = [each.scaled for each in written if each.kind == "seconds"]
    return sum(times) if times else None


def _losses(value: Any) -> tuple[float, ...]:
    """The loss of a run, those of its seeds, or of a longer list, its curve, the last."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        found = [loss for each in value if (loss := number(each, lost=math.nan)) is not None]
        falls = len(found) > 2 and found[0] > FALLS * found[-1]
        return tuple(found[-1:]) if falls or len(found) > FEW else tuple(found)
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
