"""Check all of a learner's code at once: from their repository, or kept from their notebooks.

It runs in a process of its own, which a part may end, hang or fill up: that is reported as what is
wrong with this part, and another process goes on with the next.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from workbook.checks import worker
from workbook.checks.timeout import TimedOut, limited
from workbook.files import write_json
from workbook.mine import repository
from workbook.mine.checkout import ADAPTERS
from workbook.mine.finding import CODE
from workbook.study import progress, solutions, verbs
from workbook.study.problems import PROBLEMS

SECONDS = 90.0  # for one part without a word; a check stops itself sooner
SCRIPT_SECONDS = 300.0  # a training script is run twice
IMPORT_SECONDS = 60.0
NOT_FOUND = "not found"
BETTER = ("not attempted", "wrong", "almost", "read", "correct")  # from worse to better
# Claims that say less than the rest of a report.
RESULT = "The result is not the expected one."
SAYS_NOT_WHAT = (" raised an error.", "not from scratch yet.")
NOTHING = (
    "there is no code of yours in {study}: `workbook adopt PATH` finds your parts in your checkout"
    " of the course's repository, and code that passes in your notebooks is kept in {kept}"
)


@dataclass(frozen=True)
class Outcome:
    """What was found for one problem, and what its check says."""

    problem: str
    found: str | None  # "module:object", two of a pair with a comma between them
    status: str = NOT_FOUND
    message: str = ""
    cause: str = ""  # of what is wrong, in one line

    @property
    def is_fine(self) -> bool:
        """Whether it is correct, or is of a kind that no check can judge."""
        return self.status in ("correct", "read", "ticked")

    def row(self, columns: int | None = None) -> str:
        """A line of the table, cut to this number of columns."""
        sign = verbs.LOOKS[self.status][0] if self.status in verbs.LOOKS else "·"
        line = f"{sign} {self.problem:<28}  {self.status:<7}  {self.cause}".rstrip()
        return line if columns is None or len(line) <= columns else f"{line[: columns - 1]}…"


def check_all(study: Path, only: Collection[str] = CODE) -> Iterator[Outcome]:
    """Check what was found, and record it in the study folder; yield each as soon as it is known.

    Arguments:
        only: the problems to check, of those that were found.

    Raises: ValueError if there is nothing to check, and as `repository.places`.
    """
    places = repository.places(study)
    if not places:
        raise ValueError(NOTHING.format(study=study, kept=study / solutions.FOLDER))
    places = {name: place for name, place in places.items() if name in only}
    scripts = [name for name in places if PROBLEMS[name].form == "script"]
    others = [name for name in places if name not in scripts]
    for group, seconds in ((others, SECONDS), (scripts, SCRIPT_SECONDS)):
        for name, status, message, cause in _apart(study, group, seconds):
            if status in progress.RISING:
                record = progress.Progress(study)
                with progress.stopping_no_cell(), record.changing(name, None) as entry:
                    entry.reach(status)
            yield Outcome(name, places[name], status, message, cause)


def _apart(study: Path, names: list[str], seconds: float) -> Iterator[list[str]]:
    """Yield the reports of these problems, each from a process of its own.

    So what one part changes or leaves behind is no other's fault.
    """
    for name in names:
        try:
            yield from worker.results(f"{__name__}:reports", str(study), [name], seconds=seconds)
        except worker.EndedError as error:
            claim = f"Its check was cut short: {error}."
            yield [name, "wrong", claim, claim]


def write(outcomes: Collection[Outcome], path: Path) -> None:
    """Write a JSON file with an entry for each code problem, found or not."""
    known = {each.problem: each for each in outcomes}
    listed = [asdict(known.get(name) or Outcome(name, None)) for name in CODE]
    write_json(path, [{k: v for k, v in each.items() if k != "cause"} for each in listed])


def summary(outcomes: Collection[Outcome]) -> str:
    """How much was found and is correct, and what was not found."""
    right = sum(each.status == "correct" for each in outcomes)
    missing = [name for name in CODE if name not in {each.problem for each in outcomes}]
    counted = f"{len(outcomes)} of {len(CODE)} code problems found, {right} of them correct."
    return f"{counted} Not found: {', '.join(missing)}." if missing else counted


# In the process of their own.


def reports(study: str, names: list[str]) -> Iterator[list[str] | None]:
    """Check the parts for these problems; yield problem, status, message and cause of each."""
    from workbook.mine import by_adapter  # with torch

    for name in names:
        PROBLEMS[name].checker()  # loaded before an attempt can get in its way
    adopted = repository.read(Path(study))
    if adopted is not None:
        repository.enter(adopted)
    for name in names:
        report = _report(name, lambda name=name: _load(Path(study), name))
        misfits = report.status == "wrong" or "a signature of" in dict(report.rows).get("got", "")
        if misfits and adopted is not None and adopted.parts.get(name):
            second = _report(name, lambda name=name: by_adapter.attempt(adopted, name))
            is_adapter = adopted.where(name).startswith(f"{ADAPTERS}:")
            if is_adapter or BETTER.index(second.status) > BETTER.index(report.status):
                claim = f"As your adapter calls it: {second.claim}"
                report = replace(second, claim=claim)
        yield [name, report.status, report.message, _cause(report)]


def _cause(report: verbs.Report) -> str:
    """What is wrong, and why, in one line; "" if nothing is."""
    if report.status == "correct":
        return ""
    claim = re.sub(r"^Right in ordinary use; .*? open: ", "", report.claim)
    if claim.endswith(RESULT) and report.likely:
        claim = claim.removesuffix(RESULT)
    elif claim.endswith(SAYS_NOT_WHAT):
        claim += f" {dict(report.rows).get('got', '')}."
    return " ".join(f"{claim} {report.likely or ''}".split())


def _report(name: str, load: Callable[[], Any]) -> verbs.Report:
    try:
        attempt = limited(IMPORT_SECONDS, load)
    except TimedOut as error:
        return verbs.Report("wrong", name, None, f"Its import was {error}.")
    except Exception as error:
        return verbs.Report("wrong", name, None, f"It cannot be checked: {error}.")
    return verbs.judge(name, attempt)


def _load(study: Path, name: str) -> Any:
    """Import a part. Raises: ValueError that says why not."""
    from workbook.mine import own_parts  # with torch

    found = own_parts.found(name, study)
    if found.trouble:
        raise ValueError(found.trouble)
    return found.thing
