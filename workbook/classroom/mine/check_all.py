"""Check all of a learner's code at once: from their repository, or kept from their notebooks.

It runs in a process of its own, which a part may end, hang or fill up: that is reported as what is
wrong with this part, and another process goes on with the next.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from workbook.classroom import panels
from workbook.classroom.checks.machinery import worker
from workbook.classroom.checks.machinery.judging import Report
from workbook.classroom.mine import adopt
from workbook.classroom.mine.adopt import ADAPTERS, CODE
from workbook.classroom.mine.course_parts import PARTS
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study import progress

PART_SECONDS = 90.0  # for one part without a word; a check stops itself sooner
SCRIPT_SECONDS = 300.0  # a training script is run twice
NOT_JUDGED = "not judged"
BETTER = ("not attempted", "wrong", "almost", "read", "correct")  # from worse to better
# Claims that say less than the rest of a report.
SAYS_NOT_WHAT = (" raised an error.", "not from scratch yet.", "that the problem names.")
# Claims about the call alone, behind which a part may be right: their adapter knows how to call it.
OF_THE_CALL = ("It cannot be called", "It raised an error", "This is not a ")


@dataclass(frozen=True)
class CheckOutcome:
    """What was found for one problem, and what its check says."""

    problem: str
    where: str  # "module:object", two of a pair with a comma between them
    status: str
    message: str
    cause: str = ""  # of what is wrong, in one line

    def as_json(self) -> dict[str, str | None]:
        """Problem, found (where, or None), status and message."""
        fields = {"problem": self.problem, "found": self.where or None}
        return fields | {"status": self.status, "message": self.message}

    def row(self) -> str:
        """A line of the table."""
        sign = panels.sign(self.status)
        return f"{sign} {self.problem:<28}  {self.status:<7}  {self.cause}".rstrip()


def check_all(study: Path, only: Collection[str] = CODE) -> Iterator[CheckOutcome]:
    """Check what was found, and record it in the study folder; yield each as soon as it is known.

    Arguments:
        only: the problems to check, of those that were found.

    Raises: ValueError if there is nothing to check, and as `adopt.places`.
    """
    places = adopt.places(study)
    if not places:
        raise ValueError(adopt.why_nothing(study))
    places = {name: place for name, place in places.items() if name in only}
    scripts = [name for name in places if PROBLEMS[name].form == "script"]
    others = [name for name in places if name not in scripts]
    faulty: set[str] = set()  # wrong, or resting on what is wrong
    told: dict[str, str] = {}  # the first part that is almost right, by what is said of it
    for group, seconds in ((others, PART_SECONDS), (scripts, SCRIPT_SECONDS)):
        for name, status, message, cause in _apart(study, group, seconds):
            below = [part for part in PARTS[name].rests_on if part in faulty]
            if status == "wrong":
                faulty.add(name)
                if below:
                    status = NOT_JUDGED
                    cause = f"because {below[0]} is not right"
                    message = f"Not judged {cause}. It may be this: {message}"
            if status == "almost" and (first := told.setdefault(cause, name)) != name:
                cause = f"as in {first}: {cause}"
                message = f"As in {first}: {message}"
            if status in progress.RISING:
                record = progress.Progress(study)
                with progress.stopping_no_cell(), record.changing(name, None) as entry:
                    entry.reach(status)
            yield CheckOutcome(name, places[name], status, message, cause)


def _apart(study: Path, names: list[str], seconds: float) -> Iterator[list[str]]:
    """Yield the reports of these problems, each from a process of its own.

    So what one part changes or leaves behind is no other's fault.
    """
    for name in names:
        try:
            fields = worker.result(_report, str(study), name, seconds=seconds)
            report = Report.from_json(fields)
        except worker.EndedError as error:
            report = Report("wrong", name, None, f"Its check was cut short: {error}.")
        except ValueError as error:  # the workbook itself failed
            report = Report("not attempted", name, None, f"{error}.")
        yield [name, report.status, report.message, _cause(report)]


def for_every_problem(outcomes: Collection[CheckOutcome]) -> list[CheckOutcome]:
    """The outcome of each code problem, also of those that were not found."""
    known = {outcome.problem: outcome for outcome in outcomes}
    return [known.get(name, CheckOutcome(name, "", "not found", "")) for name in CODE]


def summary_of(outcomes: Collection[CheckOutcome]) -> str:
    """How much was found and is correct, and what was not found."""
    right = sum(outcome.status == "correct" for outcome in outcomes)
    missing = [name for name in CODE if name not in {outcome.problem for outcome in outcomes}]
    counted = f"{len(outcomes)} of {len(CODE)} code problems found, {right} of them correct."
    return f"{counted} Not found: {', '.join(missing)}." if missing else counted


# In the process of their own.


def _report(study: str, name: str) -> Iterator[dict]:
    """Check the part for this problem; yield the report on it."""
    from workbook.classroom.mine import own_parts  # with torch
    from workbook.classroom.mine.adapters import report_on

    folder = Path(study)
    report = report_on(name, lambda: own_parts.load_part(name, folder).thing)
    adopted = adopt.read_adopted(folder)
    where = adopted.where(name) if adopted is not None else ""
    functions = adopt.adapters(adopted, name) if where else {}
    if functions:
        part = own_parts.find_part(name, folder)
        report = _beside_adapters(report, functions, part.thing, where)
    yield report.to_json()


def _beside_adapters(
    report: Report, functions: Mapping[str, Callable], part: Any, where: str
) -> Report:
    """The report on a part, or on what its adapters make of it if that says more."""
    from workbook.classroom.mine.adapters import UNKNOWN, attempt, differs, report_on

    words = {adapter: differs(function, adapter) for adapter, function in functions.items()}
    if report.status == "correct":
        wrong = [f"{adapter} {words[adapter]}" for adapter in words if words[adapter]]
        if not wrong:
            return report
        remark = f"Worth knowing: your {wrong[0]}; does it load the weights as it should?"
        return replace(report, claim=f"{report.claim} {remark}")
    rows = dict(report.rows)
    # Initial weights are no matter of the call, and the adapter hands in ours.
    is_wrong = report.status == "wrong" and not rows.get("input", "").startswith("a new ")
    if not is_wrong and "a signature of" not in rows.get("got", ""):
        return report
    second = report_on(report.problem, partial(attempt, functions, report.problem, part))
    if second.claim.startswith(UNKNOWN) and "is no nn.Module" not in second.claim:
        if set(words.values()) != {""}:
            return report
        return replace(report, claim=f"Your adapter gives the right numbers. {report.claim}")
    is_better = BETTER.index(second.status) > BETTER.index(report.status)
    if is_better or where.startswith(ADAPTERS) or report.claim.startswith(OF_THE_CALL):
        return replace(second, claim=f"As your adapter calls it: {second.claim}")
    return report


def _cause(report: Report) -> str:
    """What is wrong, and why, in one line; "" if nothing is."""
    if report.status == "correct":
        return ""
    claim = report.claim
    if claim.endswith(SAYS_NOT_WHAT):
        claim += f" {dict(report.rows).get('got', '')}.".replace("?.", "?")
    return " ".join(f"{claim} {report.likely or ''}".split())
