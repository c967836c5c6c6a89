"""`predict`: a guess before a measurement, kept beside it; `calibration`: how good they were.

A guess stands in a cell above the one that measures. In the worked notebooks nobody guesses, and
nothing is shown or stored. The guesses are in `.workbook/guesses.json`.
"""

import math
from dataclasses import dataclass
from numbers import Real
from statistics import median
from typing import Any

from workbook.classroom.study import answers, progress
from workbook.classroom.study.verbs import Panel

RECORD = "guesses.json"
SHOWN = 12  # the last ones, in the picture


@dataclass
class Guess:
    """What somebody expected, and what it turned out to be."""

    guess: float
    measured: float | None = None

    def __post_init__(self) -> None:
        for number in (self.guess, self.measured or 1):
            if not (isinstance(number, Real) and 0 < number < math.inf):
                raise ValueError(f"expected a number above 0, not {number!r}")

    @property
    def ratio(self) -> float:
        """The guess as a multiple of what was measured."""
        return self.guess / (self.measured or math.nan)


def predict(what: str, guess: Any = None, *, measured: float | None = None) -> Panel | None:
    """Keep your guess at a number, above 0, before it is measured; `...` or nothing is no guess.

    The cell that measures it shows your guess, the measurement, and the ratio. Once you have seen
    it, your guess stands.
    Example: predict("loss at step 0", 7.6)

    Arguments:
        what: what is measured, in a few words.
        guess: what you expect.
        measured: what came out; the notebook passes it.
    """
    study = progress.current()
    if study is None or (guess in (None, ...) and measured is None):
        return None
    note = study.notes(RECORD, Guess).get(what)
    if measured is None:
        if note and note.measured:
            return Panel("read", f"You have seen it: your guess of {note.guess:g} stands.")
        note, told = Guess(guess), f"Noted for {what}: {guess:g}. Now run the cell below."
    elif note is None:
        return None
    else:
        note.measured = float(measured)
        ratio = f"ratio {note.ratio:.3g}"
        told = f"{what}: you guessed {note.guess:,.4g}, it is {measured:,.4g}; {ratio}."
    with progress.stopping_no_cell():
        study.keep_notes(RECORD, {what: note})
    if measured is None:
        return Panel("read", told)
    answers.display_or_print(Panel("read", told))  # in the middle of a cell
    return None


def calibration() -> None:
    """Show how near your guesses were: a sentence, and a picture of the last ones."""
    study = progress.current()
    kept = study.notes(RECORD, Guess) if study else {}
    ratios = {what: guess.ratio for what, guess in kept.items() if guess.measured}
    if not ratios:
        print("No guess has been measured yet: yours go into the predict cells of your study copy.")
        return
    from workbook.classroom.views import plots

    factor = median(max(ratio, 1 / ratio) for ratio in ratios.values())
    print(f"Guesses so far: {len(ratios)}. The median one is off by a factor of {factor:,.3g}.")
    ax = plots.points(dict([*ratios.items()][-SHOWN:]), "guess / measured")
    ax.axvline(1, color=plots.INK, linestyle="--", linewidth=1)
    span = f"from {min(ratios.values()):,.3g} to {max(ratios.values()):,.3g}"
    plots.show(ax, f"Guesses as multiples of what was measured, {span}; 1, dashed, is a hit.")
