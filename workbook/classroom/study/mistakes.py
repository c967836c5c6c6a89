"""A learner's own mistakes: what checks have named, kept to be met again.

Which problem, which mistake and on which days: nothing else is in `.workbook/mistakes.json`, and
whoever deletes that file loses no points. `recall` begins with these, `harden` plants their kind
first, and `workbook study` shows the commonest.
"""

import textwrap
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import ClassVar

from workbook.classroom import problems
from workbook.classroom.checks.machinery.judging import Report
from workbook.classroom.study import progress, records
from workbook.classroom.study.records import RecordEntry

LONGEST_SHOWN = 300  # characters of one
SHOWN_MISTAKES = 3  # by `workbook study`


@dataclass
class OwnMistake(RecordEntry):
    """The days on which a check named a mistake; its name is the problem and the check's words."""

    file: ClassVar[str] = "mistakes.json"

    days: list[str] = field(default_factory=list)  # such as "2026-09-30", each once

    def __post_init__(self) -> None:
        if not self.days or any(date.fromisoformat(day) == date.max for day in self.days):
            raise ValueError("expected days after which there are others")


def problem_of(name: str) -> str:
    """The problem of a mistake, by the name that it is kept under."""
    return name.partition(": ")[0]


def kind_of_mistake(name: str) -> str:
    """The words of the check, by the name that a mistake is kept under."""
    return name.partition(": ")[2]


def note_mistake(study: progress.Progress, report: Report) -> None:
    """Keep the mistake that a check has named, if any."""
    if report.likely and report.status in ("wrong", "almost"):
        name = f"{report.problem}: {report.likely}"
        before = study.notes(OwnMistake).get(name)
        days = before.days if before else []
        today = date.today().isoformat()
        if today not in days:
            study.keep_notes(OwnMistake, {name: OwnMistake([*days, today])})


def forget_mistakes(study: progress.Progress, problem: str) -> None:
    """Begin anew for one problem."""
    with records.changing(study.path.parent, OwnMistake) as stored:
        for name in [name for name in stored if problem_of(name) == problem]:
            del stored[name]


def own_mistakes(study: progress.Progress) -> dict[str, OwnMistake]:
    """Those that were made on most days first."""
    kept = study.notes(OwnMistake).items()
    known = [
        item
        for item in kept
        if problem_of(item[0]) in problems.PROBLEMS and kind_of_mistake(item[0])
    ]
    return dict(sorted(known, key=lambda item: -len(item[1].days)))


def kinds_of(study: progress.Progress, problem: str) -> set[str]:
    """The mistakes that were named in a problem, in the words of its check."""
    return {kind_of_mistake(name) for name in own_mistakes(study) if problem_of(name) == problem}


def notices(study: Path) -> Iterator[str]:
    """Lines on the mistakes that were made most often, with the place that explains each."""
    with suppress(OSError):  # a record that a later version wrote: the rest is shown all the same
        made = own_mistakes(progress.Progress(study))
        for name, mistake in list(made.items())[:SHOWN_MISTAKES]:
            problem = problems.with_id(problem_of(name))
            days = f"{len(mistake.days)} days" if len(mistake.days) > 1 else mistake.days[0]
            told = textwrap.shorten(name, LONGEST_SHOWN, placeholder=" …")
            yield f"Yours, {days}: {told} (See {problem.notebook}.ipynb, {problem.id}.)"
