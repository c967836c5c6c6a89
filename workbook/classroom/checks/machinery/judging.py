"""A verdict on an attempt: asked for in one process, and reached in another.

`judge_attempt` asks; what it asks for, `run_judge`, runs in a worker and calls the check of the
problem under a time limit. Whatever comes of that, a finding, an error or no end, becomes a
`Report`.
"""

import inspect
import multiprocessing
import random
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from html import escape
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

from workbook.classroom import problems
from workbook.classroom.checks.machinery import timeout, worker
from workbook.classroom.checks.machinery.engine import usual
from workbook.classroom.checks.machinery.timeout import TimedOut, limited
from workbook.classroom.checks.machinery.transfer import PackError
from workbook.classroom.checks.machinery.verdicts import (
    ENDLESS,
    IN_A_FILE,
    KILLED,
    Facts,
    NotAttempted,
    NotJudged,
    NumberInWords,
    Prose,
    Unreadable,
    Wrong,
    expect_function,
    failure,
    fault_of_ours,
    is_untouched,
    unfinished,
    why_stopped,
)
from workbook.classroom.panels import Status, as_html, panel, sign, value_as_html
from workbook.classroom.problems import Problem

MIME = "application/vnd.workbook.check+json"  # of what `check` says in a study folder
TOTAL_SECONDS = 40.0  # for all the cases of one check; each call has its own, shorter limit
SPARE_SECONDS = 20.0  # for an attempt that throws its stop away, until its process is ended
PRINTED = (10, 600)  # lines and characters of the learner's print-out that a report quotes


@dataclass(frozen=True)
class Report:
    """The outcome of one check. In a notebook it is shown as a small panel."""

    status: Status
    problem: str
    part: str | None
    claim: str
    rows: tuple[tuple[str, str], ...] = ()  # (label, text): input, expected, got, printed
    likely: str | None = None  # the likely mistake, in one or two sentences
    also: tuple[str, ...] = ()  # what else was found, a sentence or two each
    facts: tuple[str, ...] = ()  # for the learner to tick
    ticked: tuple[str, ...] = ()  # those of them that are
    then: tuple[str, ...] = ()  # what was kept in a study folder, or is missing there
    next_step: Literal["", "tick", "again"] = ""  # each front end has its own words for it
    state: str = ""  # what the heading says in place of the status
    loss: float | None = None  # the best of a table of runs, which an answer should name too
    record: dict | None = None  # what the export finds in the stored output

    def to_json(self) -> dict:
        """Its fields, in values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict) -> "Report":
        """The report of these fields: JSON knows lists, where a report has tuples."""
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
        return cls(**values | {"rows": tuple(map(tuple, fields["rows"]))})

    @property
    def heading(self) -> str:
        """Sign, problem, part and status, such as "✗ train_bpe: wrong"."""
        name = problems.label(self.problem, self.part)
        return f"{sign(self.status)} {name}: {self.state or self.status}"

    def _remarks(self, step_in_words: Callable[["Report"], str]) -> list[str]:
        """What stands below the values, a paragraph each."""
        # No box is drawn: outside of our JupyterLab nothing would happen to one that is clicked.
        facts = (f"✓ {fact}" if fact in self.ticked else fact for fact in self.facts)
        return [
            *([f"Likely: {self.likely}"] if self.likely else []),
            *(f"Also: {finding}" for finding in self.also),
            *(f"{i}. {fact}" for i, fact in enumerate(facts, 1)),
            *self.then,
            *([step_in_words(self)] if self.next_step else []),
        ]

    @property
    def message(self) -> str:
        """Everything but the heading, as plain text, in the words of a notebook."""
        return self.message_with(step_in_a_notebook)

    def message_with(self, step_in_words: Callable[["Report"], str]) -> str:
        """The message of a front end that has its own words for the next step."""
        width = max((len(label) for label, _ in self.rows), default=0)
        gap = "\n" + " " * (width + 4)
        rows = [f"  {label:<{width}}  {text.replace(chr(10), gap)}" for label, text in self.rows]
        return "\n".join(filter(None, [self.claim, *rows, *self._remarks(step_in_words)]))

    def __str__(self) -> str:
        return f"{self.heading}\n{self.message}".rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left;vertical-align:top">{escape(label)}</th>'
            f'<td style="text-align:left">{value_as_html(text)}</td></tr>'
            for label, text in self.rows
        )
        remarks = self._remarks(step_in_a_notebook)
        return panel(
            self.status,
            f"<strong>{escape(self.heading)}</strong>",
            f"<div>{as_html(self.claim)}</div>",
            f"<table>{rows}</table>" if rows else "",
            *map(self._line, remarks),
        )

    def _line(self, text: str) -> str:
        """A remark; a fact has a class, by which our extension of JupyterLab draws a box there.

        The sign of a ticked one is in an element of its own: the box stands for it there.
        """
        html = as_html(text)
        fact = self.record and re.match(r"\d+\. (✓?)", text)
        if not fact:
            return f"<div>{html}</div>"
        if not fact[1]:
            return f'<div class="workbook-fact">{html}</div>'
        html = html.replace("✓ ", '<span class="workbook-sign">✓ </span>', 1)
        return f'<div class="workbook-fact workbook-ticked">{html}</div>'

    def _repr_mimebundle_(self, **_) -> dict:
        return {MIME: self.record} if self.record else {}


def step_in_a_notebook(report: Report) -> str:
    """What to do next, for somebody who works in a notebook."""
    if report.next_step == "again":
        return "Then run this cell again."
    all_of_them = problems.in_python("tick", report.problem, report.part)
    first = problems.in_python("tick", report.problem, report.part, 1)
    return f"If it does, run `{all_of_them}` in a new cell, or `{first}` for the first one alone."


def judge_attempt(problem: str, attempt: Any, part: str | None = None) -> Report:
    """Report on an attempt as `check` does, but note and keep nothing.

    It is judged in a process of its own, which it may end, hang or change as it likes.
    """
    try:
        details, part = problems.place(problem, part)
    except ValueError as error:
        named = problem if type(problem) is str else type(problem).__name__
        return Report("not attempted", named, None, f"Nothing was checked: {error}")
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        # A worker that an attempt started imports the script that called us: no check in a check.
        return Report("not attempted", details.id, part, "This process is a worker of a pool.")
    try:
        if details.needs_runs:
            attempt = _as_rows(attempt)
        if worker.is_inside:
            return judge_here(details.id, attempt, part)
        if details.form == "script" and isinstance(attempt, str | Path):
            attempt = _in_full(str(attempt))
        return from_worker(run_judge, details, part, attempt, part)
    except PackError as error:
        claim = f"Nothing was checked: {error}, and a check runs in a process of its own."
        remedy = "Make such an object inside the function, or hand in a file: `workbook check`."
        return Report("not attempted", details.id, part, claim, likely=remedy)
    except (Exception, SystemExit) as error:  # an object may raise wherever it is looked at
        reason = str(error) if type(error) in (ValueError, OSError) else failure(error)
        return Report("not attempted", details.id, part, f"Nothing was checked: {reason}.")


def from_worker(task: Callable, problem: Problem, part: str | None, *arguments: Any) -> Report:
    """What a task reports from a process of its own, or that it did not come to an end."""
    seconds = seconds_for(problem)
    try:
        return Report.from_json(worker.result(task, problem.id, *arguments, seconds=seconds))
    except worker.EndedError as error:
        return ended_early(problem.id, part, error)


def seconds_for(problem: Problem) -> float:
    """The time after which the process of a check is ended, if the check does not end by itself."""
    return (problem.seconds or TOTAL_SECONDS) + SPARE_SECONDS


def ended_early(problem: str, part: str | None, error: worker.EndedError) -> Report:
    """Report on an attempt whose process ended before the check was over."""
    if error.is_killed:
        return Report("not attempted", problem, part, f"Not judged: {error}.", likely=KILLED)
    if error.status is None:
        claim = f"It did not come to an end: {error}."
        likely = ENDLESS
    else:
        claim = "It ended the Python process before the check was over."
        likely = "It took more memory than there is, or a recursion went too deep."
        if error.status >= 0:
            likely = "`exit` and `os._exit` end Python itself: a function ends with `return`."
    rows = () if error.status is None else (("got", f"{error}"),)
    return Report("wrong", problem, part, claim, rows, likely=likely)


# In the process that judges.


def run_judge(problem: str, attempt: Any, part: str | None) -> Iterator[dict]:
    """Yield the report on an attempt, for the process that asked."""
    yield judge_here(problem, attempt, part).to_json()


def judge_here(problem: str, attempt: Any, part: str | None) -> Report:
    """Report on an attempt from within its process."""
    details = problems.with_id(problem)

    def end_all(error: TimedOut) -> None:
        """Report on an attempt that throws every stop away, and end its process."""
        wrong = Wrong(f"It was stopped after {error.seconds:g} s.", mistake=ENDLESS)
        worker.finish(_with_output(_refusal(details, part, wrong)).to_json())

    timeout.on_swallowed(end_all)
    try:
        report = _judged(details, attempt, part)
    except Exception as error:
        report = _broken_off(details, part, error)
    return _with_output(report)


def _with_output(report: Report) -> Report:
    """The report, with the beginning of what the attempt printed if something is wrong with it."""
    output = re.sub(r"[^\n]*\r(?!\n)", "", worker.output())  # a progress bar, as on a terminal
    if report.status not in ("wrong", "almost") or not output:
        return report
    lines, characters = PRINTED
    printed = "\n".join(output.splitlines()[:lines])[:characters]
    if len(printed) < len(output.rstrip("\n")):
        printed += " ..."
    # As pickle says where a worker process looks for a function of a notebook's cell.
    likely = IN_A_FILE if "on <module '__main__'" in output else report.likely
    return replace(report, rows=(*report.rows, ("printed", printed)), likely=likely)


def _as_rows(attempt: Any) -> Any:
    """Turn folders of runs, and runs, into a table: a check runs in a folder of its own."""
    if attempt is None or isinstance(attempt, int | float) or hasattr(attempt, "to_dict"):
        return attempt
    from workbook.experiments import own_runs  # it loads torch

    return own_runs.as_rows(attempt)


def _in_full(command: str) -> str:
    """A command with the full paths of its files: a check runs in a folder of its own."""
    if "\n" in command:
        return command
    with suppress(ValueError):  # a quotation mark that is never closed
        words = [command] if Path(command).is_file() else shlex.split(command)
        return shlex.join(str(Path(w).resolve()) if Path(w).is_file() else w for w in words)
    return command


def _judged(problem: Problem, attempt: Any, part: str | None) -> Report:
    """Report what the check says, run under a time limit that the attempt cannot outlast."""
    # They load torch, which whoever asks may not have loaded.
    from workbook.classroom.checks.by_problem import CHECKS
    from workbook.classroom.checks.machinery.modules import uncompiled

    def judge() -> str | Facts | None:
        _expect_its_kind(problem, attempt)
        _make_repeatable()
        with uncompiled():
            check = CHECKS[problem.id]
            if problem.kind == "written":
                return check(_plain(attempt), part)
            return check(_plain(attempt))

    try:
        praise = limited(problem.seconds or TOTAL_SECONDS, judge)
        if isinstance(praise, Facts):
            facts = tuple(praise) or problem.facts[part or ""]
            return Report("read", problem.id, part, praise.claim, facts=facts)
        status: Status = "possible" if problem.needs_runs else "correct"
        claim = praise or "It passes every case."
        loss = getattr(praise, "loss", None)
        return Report(status, problem.id, part, claim, loss=loss)
    except Unreadable as other:
        is_sentence = isinstance(attempt, str) and not isinstance(other, NumberInWords)
        if is_sentence and attempt.strip():  # it is read, never judged
            return Report("read", problem.id, part, Facts.claim, facts=problem.facts[part or ""])
        claim = f"{other} Hand in {_taken(problem, part)}."
        return Report("not attempted", problem.id, part, claim)
    except NotAttempted as nothing:
        is_stub = problem.kind == "code" and is_untouched(attempt)
        if problem.kind == "written" or isinstance(nothing, NotJudged) or is_stub:
            if str(nothing) and not is_stub:
                state = "not judged" if isinstance(nothing, NotJudged) else ""
                return Report("not attempted", problem.id, part, str(nothing), state=state)
            claim = f"Nothing to check yet. {_how_to_begin(problem, part)}."
            return Report("not attempted", problem.id, part, claim, next_step="again")
        wrong = unfinished(nothing)
    except Wrong as error:
        wrong = error
    except TimedOut as error:
        claim = f"It was stopped: the cases took longer than {error.seconds:g} s in total."
        wrong = Wrong(claim, mistake=why_stopped(error.__cause__))
    except BaseException as error:
        return _broken_off(problem, part, error)
    return _refusal(problem, part, wrong)


def _broken_off(problem: Problem, part: str | None, error: BaseException) -> Report:
    """Report an error that no check expects: ours judges nothing, others are the attempt's."""
    if fault := fault_of_ours(error):
        return Report("not attempted", problem.id, part, fault)
    raised = isinstance(error, KeyboardInterrupt)  # by the attempt: the user's own passes
    claim = "It raised an error." if raised else "What it returned could not be examined."
    return _refusal(problem, part, Wrong(claim, got=Prose(failure(error))))


def _refusal(problem: Problem, part: str | None, wrong: Wrong) -> Report:
    """Report what is wrong: "almost" if only a corner case or the manner is."""
    claim = wrong.claim
    if wrong.weight == "corner":
        corners = 1 + sum(other.weight == "corner" for other in wrong.also)
        failing = "one corner case fails" if corners == 1 else f"{corners} corner cases fail"
        claim = f"Right in ordinary use; {failing}. {claim}"
    status: Status = "wrong" if wrong.weight == "use" else "almost"
    also = tuple(map(_in_short, wrong.also))
    likely = wrong.mistake or usual(wrong.error)
    return Report(status, problem.id, part, claim, tuple(wrong.rows), likely, also)


def _in_short(wrong: Wrong) -> str:
    """One finding of several, without the values."""
    tried_with = dict(wrong.rows).get("input")
    if tried_with and "`" not in tried_with:  # which is code, and no sentence with code in it
        tried_with = f"`{tried_with}`"
    return " ".join(filter(None, [wrong.claim, tried_with and f"({tried_with})", wrong.mistake]))


def _make_repeatable() -> None:
    """Let a check say the same each time: all random numbers start from one seed.

    Torch gets one thread: with tiny tensors, more would only wait.
    """
    import numpy as np  # in the process that judges: whoever asks may not have loaded them
    import torch

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)


def _plain(attempt: Any) -> Any:
    """Turn numbers, arrays, tensors and dicts of others into Python's own, nested ones too.

    Tables and series of pandas stay: they have names.
    """
    if type(attempt) in (tuple, list):
        return type(attempt)(map(_plain, attempt))
    if isinstance(attempt, dict):
        return {key: _plain(value) for key, value in attempt.items()}
    if isinstance(attempt, bool):  # which is an Integral, too
        return attempt
    if isinstance(attempt, Integral):
        return int(attempt)
    if isinstance(attempt, Real | Decimal):
        # NumPy's 6.54 in 32 bits is not 6.54 in 64, but is printed alike.
        return float(str(attempt) if hasattr(attempt, "dtype") else attempt)
    if hasattr(attempt, "__array__") and not hasattr(attempt, "to_dict"):
        return attempt.tolist()
    return attempt


def _expect_its_kind(problem: Problem, attempt: Any) -> None:
    """Raise unless the attempt is of the kind that the problem asks for at all."""
    if attempt is None and problem.kind == "written":
        raise Unreadable(attempt, "This is None, which is what `print(...)` returns.")
    if attempt is None or attempt is ...:
        raise NotAttempted
    if problem.kind == "written" and (callable(attempt) or inspect.ismodule(attempt)):
        raise Unreadable(attempt)
    if problem.form == "function":
        expect_function(attempt, problem.signature)


def _how_to_begin(problem: Problem, part: str | None) -> str:
    """Tell what to hand in to a learner who has nothing yet."""
    return f"Write {problem.hand_in}" if problem.form else f"Hand in {_taken(problem, part)}"


def _taken(problem: Problem, part: str | None) -> str:
    """Name what a part of a written problem takes."""
    return problem.takes.get(part or "", problem.hand_in)
