"""`predict`: a guess before a measurement, kept beside it; `calibration`: how good they were.

A guess stands in a cell above the one that measures. In the worked notebooks nobody guesses, and
nothing is shown or stored. The guesses are in `.workbook/guesses.json`.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from statistics import median
from typing import Any, ClassVar

from workbook.classroom.checks.machinery import verdicts
from workbook.classroom.panels import Panel
from workbook.classroom.study import answers, progress
from workbook.classroom.study.numbers import number_of
from workbook.classroom.study.records import RecordEntry

GUESSES_DRAWN = 12  # the last ones, in the picture
# Of a guess: so the ratio of any two is a finite number above 0.
SMALLEST_GUESS = 1e-100
LARGEST_GUESS = 1e100
EXPECTED_GUESS = "a number above 0, from 1e-100 to 1e100"


@dataclass
class Guess(RecordEntry):
    """What somebody expected, and what it turned out to be."""

    file: ClassVar[str] = "guesses.json"

    guess: float
    measured: float | None = None  # 0 too, which no guess can be compared with

    def __post_init__(self) -> None:
        self.guess = float(self.guess)
        if not SMALLEST_GUESS <= self.guess <= LARGEST_GUESS:
            raise ValueError(f"expected {EXPECTED_GUESS}")
        if self.measured is not None:
            self.measured = float(self.measured)
            if not self.can_be_measured(self.measured):
                raise ValueError(f"expected {EXPECTED_GUESS}, or 0")

    @staticmethod
    def can_be_measured(number: float) -> bool:
        """Whether a measurement can stand beside a guess."""
        return number == 0 or SMALLEST_GUESS <= number <= LARGEST_GUESS

    @property
    def ratio(self) -> float | None:
        """The guess as a multiple of what was measured, if it was, and is not 0."""
        return self.guess / self.measured if self.measured else None


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
    if study is None:
        return None
    if not isinstance(what, str):
        raise ValueError(f"expected what is measured, in a few words, got {verdicts.kind_of(what)}")
    if measured is not None:
        _compare(study, what, measured)
        return None
    if guess is None or guess is ...:
        return None
    return _keep(study, what, guess)


def _keep(study: progress.Progress, what: str, guess: Any) -> Panel:
    """Store a guess, unless what it is about was seen already."""
    number = number_of(guess)
    if number is None or not SMALLEST_GUESS <= number <= LARGEST_GUESS:
        remedy = "; write the number alone, without quotes" if isinstance(guess, str) else ""
        raise ValueError(f"expected {EXPECTED_GUESS}, got {verdicts.kind_of(guess)}{remedy}")
    before = study.notes(Guess).get(what)
    if before and before.measured is not None:
        return Panel("read", f"You have seen it: your guess of {before.guess:,.15g} stands.")
    try:
        study.keep_notes(Guess, {what: Guess(number)})
    except Exception as error:  # a full disk stops no cell
        return Panel(
            "not attempted", f"Not noted: {number:,.15g}. {progress.UNSAVED.format(error)}"
        )
    return Panel("read", f"Noted for {what}: {number:,.15g}. Now run the cell below.")


def _compare(study: progress.Progress, what: str, measured: Any) -> None:
    """Show a guess, if there is one, beside what was measured, and store that."""
    notes = study.notes(Guess)
    note = notes.get(what)
    if note is None:
        open_ones = [name for name, other in notes.items() if other.measured is None]
        for misspelt in get_close_matches(what, open_ones, n=1, cutoff=0.8):
            told = f'Your guess is noted for "{misspelt}", and this is "{what}": '
            answers.display_or_print(Panel("read", told + "write the name as it stands here."))
        return
    number = number_of(measured)
    told = f"{what}: you guessed {note.guess:,.4g}"
    if number is None or not Guess.can_be_measured(number):
        told += f"; {verdicts.kind_of(measured)} came out, with which no guess can be compared."
        told += " Your guess is kept."
    else:
        note = Guess(note.guess, number)
        ratio = f"ratio {note.ratio:.3g}" if note.ratio else "there is no ratio to 0"
        told += f", it is {number:,.4g}; {ratio}."
        with progress.stopping_no_cell():
            study.keep_notes(Guess, {what: note})
    answers.display_or_print(Panel("read", told))  # in the middle of a cell


def calibration() -> None:
    """Show how near your guesses were: a sentence, and a picture of the last ones."""
    study = progress.current()
    kept = study.notes(Guess) if study else {}
    ratios = {what: guess.ratio for what, guess in kept.items() if guess.ratio is not None}
    if not ratios:
        print("No guess has been measured yet: yours go into the predict cells of your study copy.")
        return
    from workbook.classroom.views import plots

    factor = median(max(ratio, 1 / ratio) for ratio in ratios.values())
    print(f"Guesses so far: {len(ratios)}. The median one is off by a factor of {factor:,.3g}.")
    ax = plots.points(dict([*ratios.items()][-GUESSES_DRAWN:]), "guess / measured")
    ax.axvline(1, color=plots.INK, linestyle="--", linewidth=1)
    span = f"from {min(ratios.values()):,.3g} to {max(ratios.values()):,.3g}"
    plots.show(ax, f"Guesses as multiples of what was measured, {span}; 1, dashed, is a hit.")
