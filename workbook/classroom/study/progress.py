"""What the learner has tried, solved, ticked off and answered: `study/.workbook/progress.json`.

It is written only by notebooks and commands that run inside a study folder, one that holds the
folder `.workbook`, or for the folder that `WORKBOOK_STUDY` names. The worked notebooks lie
elsewhere and leave no trace. Each part keeps the best that it has reached: more work never lowers
the number of points. `records` says how this file and the others beside it are stored.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from workbook import config
from workbook.classroom.panels import SIGNS
from workbook.classroom.problems import (
    PER_POINT,
    PROBLEMS,
    THREE_DOTS,
    TWO_DOTS,
    Problem,
    in_python,
    label,
)
from workbook.classroom.study import records
from workbook.classroom.study.records import (
    VERSION,
    Kind,
    RecordEntry,
    as_dict,
    is_text,
    read_entries,
)
from workbook.files import say

MARK = ".workbook"
# What a part has reached, from less to more, with its sign. For a text that no check can judge,
# the facts to look for are shown ("read"), and its writer ticks them off. What comes from training
# runs is only "possible", until an answer with all that the problem requires makes it "complete".
RISING = list(SIGNS)
SOLVED = ("ticked", "complete", "correct")
UNSAVED = "Your progress could not be saved ({0.__class__.__name__}: {0})."


@dataclass
class Part(RecordEntry):
    """How far one part of a problem has come; a problem without parts has the one part ""."""

    file: ClassVar[str] = "progress.json"
    head: ClassVar[dict[str, Any]] = {"version": VERSION}
    gone: ClassVar[tuple[str, ...]] = ("last",)  # what the last check had said, until version 2
    best: str = "open"  # the most that it has reached
    answered: bool = False  # by `answer`, for the write-up
    lacks: list[str] = field(default_factory=list)  # what its problem requires of that answer
    ticked: list[str] = field(default_factory=list)  # of the facts that a text should state
    source: str = ""  # of code that passed, or almost: a module, as `mine` gathered it
    trouble: str | None = None  # why that does not import by itself; "": it does; None: not tried
    day: str = ""  # on which it was solved, such as "2026-09-30"
    loss: float | None = None  # the lowest of the runs that a check found possible last

    def __post_init__(self) -> None:
        if self.best not in RISING:
            raise ValueError(f"no part has reached {self.best!r}")
        if self.day and date.fromisoformat(self.day) == date.max:
            raise ValueError("expected a day after which there are others")

    @classmethod
    def content(cls, stored: dict[str, Any]) -> dict[str, Any]:
        """The parts that can be understood, by problem, beside the name on the write-up."""
        stored = as_dict(stored)
        name = stored.get("name", "")
        problems = {}
        for problem, stored_parts in as_dict(stored.get("problems")).items():
            parts = read_entries(cls, stored_parts)
            if parts and is_text(problem):
                problems[problem] = parts
        return {"name": name if is_text(name) else "", "problems": problems}

    @property
    def is_solved(self) -> bool:
        return self.best in SOLVED

    @property
    def has_text(self) -> bool:
        """Whether a text was handed in, to `check` or `answer`, or numbers that passed."""
        return self.answered or self.best not in ("open", "wrong")

    @property
    def no_points_yet(self) -> str:
        """What a part that is only possible still needs for its points, in a sentence."""
        lacks = self.lacks if self.answered else ["your text is missing; write it with `answer`"]
        return f"No points yet: {'; '.join(lacks)}."

    def reach(self, state: str) -> None:
        """Note the outcome of a check, that all facts are ticked, or a change of the answer."""
        self.best = max(self.best, state, key=RISING.index)
        if self.best == "possible" and self.answered and not self.lacks:
            self.best = "complete"
        if self.is_solved and not self.day:
            self.day = date.today().isoformat()

    def tick(self, some: list[str], facts: tuple[str, ...], then: str = "ticked") -> None:
        """Tick off some of the facts; when all of them are, `then` is reached."""
        self.ticked = [fact for fact in facts if fact in some or fact in self.ticked]
        self.reach(then if len(self.ticked) == len(facts) else "read")

    @property
    def in_words(self) -> str:
        """Sign and state, such as "✎ read, 1 ticked, answered"."""
        words = [f"{SIGNS[self.best]} {self.best}"]
        if self.best == "read" and self.ticked:
            words.append(f"{len(self.ticked)} ticked")
        if self.best == "possible":
            words.append("no points yet")
        if self.answered:
            words.append("answered")
        return ", ".join(words)


class Progress:
    """The record of one study folder."""

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        self.path = self.folder / MARK / "progress.json"

    def read(self) -> dict[str, dict[str, Part]]:
        """Read the record of each problem by part; what cannot be read is kept aside."""
        return records.read(self.path.parent, Part)["problems"]

    def of(self, problem: str, part: str | None) -> Part:
        """Read the record of one part."""
        return self.read().get(problem, {}).get(part or "", Part())

    def parts(self) -> list[tuple[Problem, str, Part]]:
        """Read the record of every part of all problems, in the handout's order."""
        done = self.read()
        return [
            (problem, part, done.get(problem.id, {}).get(part, Part()))
            for problem in PROBLEMS.values()
            for part in problem.part_keys
        ]

    def entries(self, problem: str) -> list[Part]:
        """Read the record of every part of a problem."""
        return [entry for each, _, entry in self.parts() if each.id == problem]

    def has_solved(self, problem: str) -> bool:
        """Whether every part of a problem is solved."""
        return all(entry.is_solved for entry in self.entries(problem))

    @property
    def name(self) -> str:
        """Whose write-up it is, as `workbook export --name` was told last."""
        return records.read(self.path.parent, Part)["name"]

    @name.setter
    def name(self, name: str) -> None:
        with records.changing(self.path.parent, Part) as stored:
            stored["name"] = name.encode(errors="replace").decode()

    @contextmanager
    def changing(self, problem: str, part: str | None) -> Iterator[Part]:
        """Give the record of one part, to be changed in place; store it when the block ends."""
        with records.changing(self.path.parent, Part) as stored:
            yield stored["problems"].setdefault(problem, {}).setdefault(part or "", Part())

    def forget(self, problem: str) -> None:
        """Start counting anew for one problem."""
        with records.changing(self.path.parent, Part) as stored:
            stored["problems"].pop(problem, None)

    def notes(self, kind: type[Kind]) -> dict[str, Kind]:
        """Read another record of this folder: entries of a kind by name."""
        return records.read(self.path.parent, kind)

    def keep_notes(self, kind: type[Kind], new: dict[str, Kind]) -> None:
        """Store some entries of a kind, beside what is there under other names."""
        with records.changing(self.path.parent, kind) as stored:
            stored.update(new)


def current() -> Progress | None:
    """Find the study folder at or above the working directory.

    The folder that `WORKBOOK_STUDY` names comes first, but the worked notebooks are in none.
    """
    here = Path.cwd().resolve()
    if os.environ.get("WORKBOOK_STUDY"):
        is_worked = here.is_relative_to((config.shipped() / "notebooks").resolve())
        return None if is_worked else Progress(config.study_folder())
    return next((Progress(up) for up in (here, *here.parents) if (up / MARK).is_dir()), None)


def around(beside: Path | None = None) -> Path | None:
    """Find the study folder that we are in, or else `study/` in one of the folders above us.

    The folders above the file `beside` come last. In a checkout it is the checkout's own, which may
    not be made yet.
    """
    if (inside := current()) is not None:
        return inside.folder
    for start in filter(None, (Path.cwd(), beside)):
        for up in (start.resolve(), *start.resolve().parents):
            if up == config.checkout():
                return config.study_folder()
            for folder in (up, up / "study"):
                if (folder / MARK).is_dir():
                    return folder
    return None


def nearest(beside: Path | None = None) -> Path:
    """Find the study folder to make, open or count in: the one around us, or else the usual one."""
    return around(beside) or config.study_folder()


@contextmanager
def stopping_no_cell() -> Iterator[None]:
    """Keep what goes wrong here out of the learner's cell: a full disk is not a wrong attempt."""
    try:
        yield
    except Exception as error:
        say(UNSAVED.format(error))


def record_answer(problem: str, part: str | None, text: str, lacks: list[str]) -> None:
    """Note in the current study folder, if any, whether a part is answered; never raise.

    An empty text counts as no answer. `lacks` says what the problem requires and is not there.
    """
    with stopping_no_cell():
        study = current()
        if study and (text.strip() or study.of(problem, part).answered):
            with study.changing(problem, part) as entry:
                entry.answered = bool(text.strip())
                entry.lacks = lacks
                entry.reach(entry.best)


def solved_now(study: Progress, problem: Problem, part: str | None) -> str:
    """Say what was just solved, and what it is worth, in a sentence."""
    entries = study.entries(problem.id)
    name = problem.ids[config.edition()]
    points = problem.points[config.edition()]
    done = sum(entry.is_solved for entry in entries)
    if done < len(entries):
        return f"That solves {label(name, part)}: {done} of {len(entries)} parts."
    if not points:
        return f"That solves {name}."
    return f"That solves {name}: {points} {'point' if points == 1 else 'points'}."


def progress_table(study: Progress) -> str:
    """Make the table of a study folder: each problem's points and parts, and what comes next."""
    parts = study.parts()
    edition = config.edition()
    is_made = "" if study.folder.is_dir() else " (not made yet: `workbook study --make`)"
    lines = [f"{study.folder}{is_made}, edition {edition}"]
    for chapter, group in groupby(parts, key=lambda place: place[0].chapter):
        members = list(group)
        names = ", ".join(sorted({problem.notebook for problem, *_ in members}))
        lines += ["", f"Chapter {chapter}: {points_in(members)}  ({names})"]
        for problem, own in groupby(members, key=lambda place: place[0]):
            worth = "-" if problem.points[edition] is None else problem.points[edition]
            effort = f"{problem.minutes:>4} min {problem.difficulty:<3}"
            lines.append(f"  {problem.ids[edition]:<29}{worth:>3} {effort}  {_states(own)}")
    return "\n".join([*lines, "", progress_summary(study), plan(parts)])


def plan(parts: list[tuple[Problem, str, Part]]) -> str:
    """Say how long the rest takes, by a rule of thumb, at an hour or two a day."""
    rest = [problem for problem, _, entry in parts if not entry.is_solved]
    left = sum(problem.minutes / len(problem.part_keys) for problem in rest) / 60
    return (
        f"Left: about {left:.0f} hours, that is {left:.0f} days at an hour a day and {left / 2:.0f}"
        f" at two.\n(Without reading and training runs: {PER_POINT['code']} min per point of code,"
        f" {PER_POINT['written']} of writing;\n●● from {TWO_DOTS} min on, ●●● from {THREE_DOTS}.)"
    )


def progress_summary(study: Progress) -> str:
    """Say in two lines how much is solved and answered, and what comes next."""
    parts = study.parts()
    answered = [entry.answered for problem, _, entry in parts if problem.kind == "written"]
    return (
        f"Solved: {points_in(parts)}. "
        f"Answered for the write-up: {sum(answered)} of {len(answered)} written parts.\n"
        f"{next_step(parts)}"
    )


def points_in(parts: list[tuple[Problem, str, Part]]) -> str:
    """The points of the parts that are solved, such as "2.7 of 4 points"."""
    edition = config.edition()
    earned = 0.0
    most = 0.0
    for problem, _, entry in parts:
        worth = (problem.points[edition] or 0) / len(problem.part_keys)  # all parts weigh alike
        most += worth
        if entry.is_solved:
            earned += worth
    return f"{round(earned, 1):g} of {most:.0f} points"


def _states(parts: Iterable[tuple[Problem, str, Part]]) -> str:
    """Write the state of each part, those that are alike together: "a, b ✓ correct · c ○ open"."""
    shown = []
    for state, group in groupby(parts, key=lambda place: place[2].in_words):
        names = ", ".join(part for _, part, _ in group if part)
        shown.append(f"{names} {state}".strip())
    return " · ".join(shown)


def next_step(parts: list[tuple[Problem, str, Part]]) -> str:
    """Name the first part, in the handout's order, that is not solved or not answered."""
    for problem, part, entry in parts:
        place = label(problem.ids[config.edition()], part)
        where = f"in {problem.notebook}.ipynb"
        if entry.best == "read":
            ticking = in_python("tick", problem.id, part)
            return f"Next: {place}, {where}: compare your text with its list, then {ticking}."
        if entry.best == "possible":
            return f"Next: {place}, {where}, possible. {entry.no_points_yet}"
        if not entry.is_solved:
            return f"Next: {place}, {entry.best}, {where}."
        if problem.kind == "written" and not entry.answered:
            return f"Next: {place}, {where}: solved, but not yet answered for the write-up."
    return "Everything is solved and answered."
