"""Check all of a learner's code at once: from their repository, or kept from their notebooks.

It runs in a process of its own, which a part may end, hang or fill up: that is reported as what is
wrong with this part, and another process goes on with the next.
"""

import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from workbook.classroom import panels
from workbook.classroom.checks.machinery import worker
from workbook.classroom.checks.machinery.judging import Report
from workbook.classroom.checks.machinery.verdicts import RESULT_IS_RIGHT
from workbook.classroom.mine import adopt
from workbook.classroom.mine.adopt import ADAPTERS, CODE
from workbook.classroom.mine.course_parts import OTHER_IN_2024, PARTS, SAID_OF_2024
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study import progress

PART_SECONDS = 90.0  # for one part without a word; a check stops itself sooner
SCRIPT_SECONDS = 300.0  # a training script is run twice
NOT_JUDGED = "not judged"
BETTER = ("not attempted", "wrong", "almost", "read", "correct")  # from worse to better
# Claims that say less than the rest of a report.
SAYS_NOT_WHAT = (" raised an error.", "not from scratch yet.", "that the problem names.")
# Claims about the call alone, behind which a part may be right: their adapter knows how to call it.
OF_THE_FORM = ("It cannot be called", "This is not a ", "The parameters have names")
OF_THE_CALL = (*OF_THE_FORM, "It raised an error", "The parameter `")
NOT_WRONG = ("almost", "correct", "not attempted")  # of which the same may be said of several parts
REMARKS = "Worth knowing:"
# The input of a case without RoPE, whose attention is made with two sizes.
WITHOUT_ROPE = re.compile(r"MultiHeadSelfAttention\([^,()]*,[^,()]*\)")


@dataclass(frozen=True)
class CheckOutcome:
    """What was found for one problem, and what its check says."""

    problem: str
    where: str  # "module:object", two of a pair with a comma between them
    status: str
    message: str
    cause: str = ""  # of what is wrong, or what is worth knowing of what is right, in one line

    def as_json(self) -> dict[str, str | None]:
        """Problem, found (where, or None), status and message."""
        fields = {"problem": self.problem, "found": self.where or None}
        return fields | {"status": self.status, "message": self.message}

    def row(self) -> str:
        """A line of the table, and one below it on what is right, but worth knowing."""
        gap = "\n    " if self.status == "correct" and self.cause else "  "
        line = f"{panels.sign(self.status)} {self.problem:<28}  {self.status:<7}"
        return f"{line}{gap}{self.cause}".rstrip()


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
    # Wrong, or resting on what is wrong; and whether it is only wrong beside its result.
    faulty: dict[str, bool] = {}
    told: dict[str, str] = {}  # the first part that is not wrong, by what is said of it
    for group, seconds in ((others, PART_SECONDS), (scripts, SCRIPT_SECONDS)):
        for name, report, rests_on in _apart(study, group, seconds):
            status: str = report.status
            message = report.message
            cause = _cause(report)
            is_beside = report.claim.startswith(RESULT_IS_RIGHT)
            below = [part for part in rests_on if faulty.get(part) in (False, is_beside)]
            if status == "wrong":
                # First weights do not matter where others are filled in.
                if not _is_of_first_weights(report):
                    faulty[name] = is_beside
                if below:
                    status = NOT_JUDGED
                    cause = f"because {below[0]} is not right"
                    message = f"Not judged {cause}. It may be this: {message}"
                    if report.likely and "expected" in dict(report.rows):  # it gives what they got
                        cause += f"; it may be this: {report.likely}"
            if status in NOT_WRONG and cause and (first := told.setdefault(cause, name)) != name:
                cause = f"{REMARKS} as in {first}." if status == "correct" else f"As in {first}."
            if status in progress.RISING:
                record = progress.Progress(study)
                with progress.stopping_no_cell(), record.changing(name, None) as entry:
                    entry.reach(status)
            yield CheckOutcome(name, places[name], status, message, cause)


def _apart(
    study: Path, names: list[str], seconds: float
) -> Iterator[tuple[str, Report, list[str]]]:
    """Yield each problem, the report on it, and the parts whose faults may be behind that.

    Each report is from a process of its own: what one part changes or leaves behind is no other's
    fault.
    """
    for name in names:
        rests_on: list[str] = []
        try:
            fields, rests_on = worker.result(_report, str(study), name, seconds=seconds)
            report = Report.from_json(fields)
        except worker.EndedError as error:
            status: panels.Status = "not attempted" if error.is_killed else "wrong"
            report = Report(status, name, None, f"Its check was cut short: {error}.")
        except ValueError as error:  # the workbook itself failed
            report = Report("not attempted", name, None, f"{error}.")
        yield name, report, rests_on


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


def _report(study: str, name: str) -> Iterator[list]:
    """Check the part for this problem; yield the report, and the parts that may be behind it."""
    folder = Path(study)
    with warnings.catch_warnings():
        # A docstring of the course's own adapters has one.
        warnings.filterwarnings("ignore", ".*invalid escape sequence")
        yield list(_judged(folder, name))


def _judged(folder: Path, name: str) -> tuple[dict[str, Any], list[str]]:
    """The report on a part as JSON, and the parts on whose faults it may rest."""
    from workbook.classroom.mine import own_parts  # with torch
    from workbook.classroom.mine.adapters import LAYERS, report_on

    report = report_on(name, lambda: own_parts.load_part(name, folder).thing)
    adopted = adopt.read_adopted(folder)
    where = adopted.where(name) if adopted is not None else ""
    is_of_2024 = bool(where) and adopt.is_of_2024(adopted.folder)
    part = own_parts.find_part(name, folder)
    functions = adopt.adapters(adopted, name, part.thing) if where else {}
    # Its adapters of layers take other arguments.
    if functions and not (is_of_2024 and functions.keys() & LAYERS):
        report = _beside_adapters(report, functions, part.thing, where)
    if is_of_2024 and report.status == "wrong":
        report = _unless_of_2024(report)
    rests_on = list(PARTS[name].rests_on) if report.status == "wrong" else []
    if where and rests_on:
        holds = adopt.enter(adopted).holds
        others = {other: own_parts.find_part(other, folder) for other in rests_on}
        rests_on = [
            other
            for other, below in others.items()
            if below is not None and adopt.leads_to(part.thing, below.thing, holds)
        ]
    if "rope" in rests_on and WITHOUT_ROPE.match(dict(report.rows).get("input", "")):
        rests_on.remove("rope")
    if report.status == "wrong" and report.claim.startswith("It cannot be called"):
        report = replace(report, status="not attempted")  # nothing ran, so nothing is known
    return report.to_json(), rests_on


def _is_of_first_weights(report: Report) -> bool:
    """Whether a report is on the weights with which a layer begins."""
    return dict(report.rows).get("input", "").startswith("a new ")


def _unless_of_2024(report: Report) -> Report:
    """The report on a wrong part; if the course's 2024 edition asks for what it does, that."""
    name = report.problem
    if name not in OTHER_IN_2024 or SAID_OF_2024.get(name, "") not in report.message:
        return report
    claim = f"This is of the course's 2024 edition, where {OTHER_IN_2024[name]}."
    return Report("not attempted", name, None, claim)


def _beside_adapters(
    report: Report, functions: Mapping[str, Callable], part: Any, where: str
) -> Report:
    """The report on a part, or on what its adapters make of it if that says more."""
    from workbook.classroom.checks.machinery.modules import ADAPTER
    from workbook.classroom.mine.adapters import UNKNOWN, attempt, differs, report_on

    if report.likely:  # that has happened
        report = replace(report, likely=report.likely.replace(ADAPTER, ""))
    words = {adapter: differs(function, adapter) for adapter, function in functions.items()}
    wrong = [f"your {adapter} {words[adapter]}" for adapter in words if words[adapter]]
    if report.status == "correct":
        if not wrong:
            return report
        asks = "" if " raises " in wrong[0] else "; does it load the weights as it should?"
        return replace(report, claim=f"{report.claim} {REMARKS} {wrong[0]}{asks}")
    # Initial weights are no matter of the call, and the adapter hands in ours.
    is_wrong = report.status == "wrong" and not _is_of_first_weights(report)
    if not is_wrong and "a signature of" not in dict(report.rows).get("got", ""):
        return report
    second = report_on(report.problem, partial(attempt, functions, report.problem, part))
    is_of_call = any(claim in report.claim for claim in OF_THE_CALL)
    if is_of_call and second.status == "not attempted":  # such as for a device
        return second
    if second.claim.startswith(UNKNOWN) and "is no nn.Module" not in second.claim:
        is_form = report.claim.startswith(OF_THE_FORM)
        if set(words.values()) == {""}:
            claim = f"Your adapter gives the right numbers. {report.claim}"
            if not is_form:
                return replace(report, claim=claim)
            # What keeps the check from going by the adapter can be mended, too.
            why = second.claim.removeprefix(f"{UNKNOWN}: ")
            likely = f"{report.likely or ''} The check cannot go by your adapter: {why}".strip()
            return replace(report, claim=claim, likely=likely, status="not attempted")
        if is_form and where.startswith(ADAPTERS):
            if wrong:
                return replace(second, claim=f"Y{wrong[0][1:]}.", status="wrong")
            return replace(second, status="not attempted")
        return report
    is_better = BETTER.index(second.status) > BETTER.index(report.status)
    if is_better or where.startswith(ADAPTERS) or is_of_call:
        claim = second.claim.removeprefix(f"{UNKNOWN}: ")
        return replace(second, claim=f"As your adapter calls it: {claim}")
    return report


def _cause(report: Report) -> str:
    """What is wrong, and why, in one line; of what is right, what is worth knowing."""
    claim = report.claim
    if report.status == "correct":
        _, mark, remark = claim.partition(REMARKS)
        claim = mark + remark
    elif claim.endswith(SAYS_NOT_WHAT):
        claim += f" {dict(report.rows).get('got', '')}.".replace("?.", "?")
    return " ".join(f"{claim} {report.likely or ''}".split())
