"""The verbs of the notebooks: check, tick, hint, reveal, answer, look_up; and what they show.

What is shown is plain text, and HTML that reads well on light and dark pages.
"""

import inspect
import multiprocessing
import random
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from functools import cache, wraps
from html import escape
from numbers import Integral, Real
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from workbook.classroom.checks import timeout, verdicts, worker
from workbook.classroom.checks.timeout import TimedOut, limited
from workbook.classroom.checks.transfer import PackError
from workbook.classroom.checks.verdicts import Facts, NotAttempted, NotJudged, Prose, Wrong
from workbook.classroom.study import answers, problems, progress, solutions
from workbook.classroom.study.answers import Answered, folded, look_up
from workbook.classroom.study.problems import Problem

__all__ = ["Report", "answer", "check", "hint", "look_up", "reveal", "tick"]

TOTAL_SECONDS = 40.0  # for all the cases of one check; each call has its own, shorter limit
SPARE_SECONDS = 20.0  # for an attempt that throws its stop away, until its process is ended
PRINTED = (10, 600)  # lines and characters of the learner's print-out that a report quotes

_hints_given: Counter[str] = Counter()
_handed_in: dict[tuple[str, str | None], str] = {}  # texts that `check` could only read

Status = Literal["not attempted", "correct", "almost", "possible", "wrong", "read", "ticked"]

# The sign and the word show a status; the colour of the panel's edge only repeats it.
COLOURS = {"✓": "#009E73", "≈": "#E69F00", "✗": "#D55E00", "○": "#999999", "✎": "#56B4E9"}


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
    then: tuple[str, ...] = ()  # in a study folder: what was kept, or what to do next
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
        return f"{_sign(self.status)} {problems.label(self.problem, self.part)}: {self.status}"

    @property
    def _remarks(self) -> list[str]:
        """What stands below the values, a paragraph each."""
        # No box is drawn: outside of our JupyterLab nothing would happen to one that is clicked.
        facts = (f"✓ {fact}" if fact in self.ticked else fact for fact in self.facts)
        return [
            *([f"Likely: {self.likely}"] if self.likely else []),
            *(f"Also: {finding}" for finding in self.also),
            *(f"{i}. {fact}" for i, fact in enumerate(facts, 1)),
            *self.then,
        ]

    @property
    def message(self) -> str:
        """Everything but the heading, as plain text."""
        width = max((len(label) for label, _ in self.rows), default=0)
        gap = "\n" + " " * (width + 4)
        rows = [f"  {label:<{width}}  {text.replace(chr(10), gap)}" for label, text in self.rows]
        return "\n".join(filter(None, [self.claim, *rows, *self._remarks]))

    def __str__(self) -> str:
        return f"{self.heading}\n{self.message}".rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left;vertical-align:top">{escape(label)}</th>'
            f'<td style="text-align:left">{_value(text)}</td></tr>'
            for label, text in self.rows
        )
        return _panel(
            self.status,
            f"<strong>{escape(self.heading)}</strong>",
            f"<div>{_prose(self.claim)}</div>",
            f"<table>{rows}</table>" if rows else "",
            *(f"<div{self._box(line)}>{_prose(line)}</div>" for line in self._remarks),
        )

    def _box(self, line: str) -> str:
        """The class by which our extension of JupyterLab knows a fact, and draws a box there."""
        fact = self.record and re.match(r"\d+\. (✓?)", line)
        return f' class="workbook-fact{" workbook-ticked" * len(fact[1])}"' if fact else ""

    def _repr_mimebundle_(self, **_) -> dict:
        return {answers.CHECK_MIME: self.record} if self.record else {}


@dataclass(frozen=True)
class Panel:
    """A text with the sign and the colour of a status."""

    status: Status
    text: str

    def __repr__(self) -> str:
        return f"{_sign(self.status)} {self.text}"

    def _repr_html_(self) -> str:
        return _panel(self.status, _prose(str(self)))


def check(problem: str, attempt: Any, part: str | None = None) -> Report:
    """Check an attempt at a problem: a function, a class, a number, bytes or a text.

    It never raises, whatever is handed in; only your own Ctrl-C gets through. If a problem has
    parts, say which one the attempt is for.
    Example: check("train_bpe", train_bpe)
    """
    report = judge_attempt(problem, attempt, part)
    not_run = ""
    with suppress(Exception, SystemExit):  # an object may raise wherever it is looked at
        not_run = solutions.not_run(attempt)
    claim = f"{not_run} {report.claim}".strip()
    if report.status == "read" and isinstance(attempt, str):
        _handed_in[report.problem, report.part] = attempt
    return note_outcome(replace(report, claim=claim), attempt)


def note_outcome(report: Report, attempt: Any = None) -> Report:
    """Count the outcome in the study folder, if this is one, and keep code that passed."""
    is_counted = report.status != "not attempted" and report.problem in problems.PROBLEMS
    if is_counted and (study := progress.current()) is not None:
        try:
            return _noted(report, study, problems.with_id(report.problem), attempt)
        except Exception as error:  # a full disk is not a wrong attempt
            return replace(report, then=(progress.UNSAVED.format(error),))
    return report


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
    if worker.is_inside:
        return judge_here(details.id, attempt, part)
    try:
        if details.form == "script" and isinstance(attempt, str | Path):
            attempt = _in_full(str(attempt))
        return from_worker(f"{__name__}:run_judge", details, part, attempt, part)
    except PackError as error:
        claim = f"Nothing was checked: {error}, and a check runs in a process of its own."
        remedy = "Make such an object inside the function, or hand in a file: `workbook check`."
        return Report("not attempted", details.id, part, claim, likely=remedy)
    except (Exception, SystemExit) as error:  # an object may raise wherever it is looked at
        reason = str(error) if type(error) in (ValueError, OSError) else verdicts.failure(error)
        return Report("not attempted", details.id, part, f"Nothing was checked: {reason}.")


def from_worker(task: str, problem: Problem, part: str | None, *arguments: Any) -> Report:
    """What a task reports from a process of its own, or that it did not come to an end."""
    seconds = seconds_for(problem)
    try:
        return Report.from_json(worker.result(task, problem.id, *arguments, seconds=seconds))
    except worker.EndedError as error:
        return ended_early(problem.id, part, error)


def judge_source(problem: Problem, source: str) -> Status:
    """What `check` says of the module that was gathered for a problem."""
    return from_worker(f"{__name__}:run_judge_source", problem, None, source).status


def seconds_for(problem: Problem) -> float:
    """The time after which the process of a check is ended, if the check does not end by itself."""
    return (problem.seconds or TOTAL_SECONDS) + SPARE_SECONDS


def ended_early(problem: str, part: str | None, error: worker.EndedError) -> Report:
    """Report on an attempt whose process ended before the check was over."""
    if error.status is None:
        claim = f"It did not come to an end: {error}."
        likely = verdicts.ENDLESS
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


def run_judge_source(problem: str, source: str) -> Iterator[dict]:
    """Yield the report on what a module of this source hands out."""
    path = Path("..", f"{problem}.py").resolve()  # beside the empty folder that it is judged in
    path.write_text(source, encoding="utf-8")
    _, attempt = solutions.imported(path, problems.with_id(problem))
    yield judge_here(problem, attempt, None).to_json()


def judge_here(problem: str, attempt: Any, part: str | None) -> Report:
    """Report on an attempt from within its process."""
    details = problems.with_id(problem)

    def end_all(error: TimedOut) -> None:
        """Report on an attempt that throws every stop away, and end its process."""
        wrong = Wrong(f"It was stopped after {error.seconds:g} s.", mistake=verdicts.ENDLESS)
        worker.finish(_with_output(_refusal(details, part, wrong)).to_json())

    timeout.on_swallowed(end_all)
    try:
        report = _judged(details, details.checker(), attempt, part)
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
    likely = verdicts.IN_A_FILE if "on <module '__main__'" in output else report.likely
    return replace(report, rows=(*report.rows, ("printed", printed)), likely=likely)


def _in_full(command: str) -> str:
    """A command with the full paths of its files: a check runs in a folder of its own."""
    if "\n" in command:
        return command
    with suppress(ValueError):  # a quotation mark that is never closed
        words = [command] if Path(command).is_file() else shlex.split(command)
        return shlex.join(str(Path(w).resolve()) if Path(w).is_file() else w for w in words)
    return command


def _noted(report: Report, study: progress.Progress, problem: Problem, attempt: Any) -> Report:
    """Note the outcome in a study folder, and keep the code of an attempt that passed."""
    kept = None
    then = tuple[str, ...]()
    before = study.of(problem.id, report.part)
    kept_for = {"correct"} if before.best == "correct" else {"correct", "almost"}
    has_file = isinstance(attempt, str | Path | ModuleType)  # or a text, in the notebook itself
    if report.status in kept_for and problem.form and not has_file:
        try:
            kept, words = solutions.keep_code(
                study.folder, problem, attempt, report.status, before, judge_source
            )
        except Exception as error:  # counted all the same
            words = f"Its code could not be kept: {verdicts.failure(error)}."
        then = (words,)
    with study.changing(problem.id, report.part) as entry:
        entry.reach(report.status)
        if kept is not None:
            entry.source, entry.trouble = kept
    if entry.best == "possible" and report.status != "wrong":
        then = (entry.no_points_yet,)
    elif report.status == "read" and not entry.is_solved:
        part = f', "{report.part}"' if report.part else ""
        by_number = f'`tick("{problem.id}"{part or ", None"}, 1)` for the first one alone'
        then = (f'If it does, run `tick("{problem.id}"{part})` in a new cell, or {by_number}.',)
    elif entry.is_solved and not then and report.status not in ("correct", "possible"):
        then = ("This part is solved already, and stays so.",)
    record = {"problem": problem.id, "part": report.part, "status": report.status}
    if kept is not None:
        record |= {"source": entry.source, "trouble": entry.trouble}
    return replace(report, ticked=tuple(entry.ticked), then=then, record=record)


def tick(problem: str, part: str | None = None, *facts: int) -> Report:
    """Tick off the facts that your text states; when all of them are ticked, the part is solved.

    What rests on training runs also needs its answer, with the figure that the problem asks for.
    Example: tick("unicode1", "c")

    Arguments:
        problem: its id.
        part: such as "b"; None if the problem has no parts.
        facts: their numbers, from 1 on, in the order in which `check` shows them; none: all.

    Raises: ValueError if the problem has no such part or fact, if no text for it was handed in, or
        if this is not a study folder.
    """
    details, part = problems.place(problem, part)
    known = details.facts.get(part or "", ())
    if not known:
        raise ValueError(f"{details.id} has nothing to tick off: `check` judges it")
    if unknown := [fact for fact in facts if fact not in range(1, len(known) + 1)]:
        numbers = f"the facts are numbered 1 to {len(known)}"
        raise ValueError(f"there is no fact {unknown[0]!r}; {numbers}")
    study = progress.current()
    if study is None:
        raise ValueError("not in a study folder, so nothing is counted; `workbook lab` creates one")
    if not study.of(details.id, part).has_text:
        raise ValueError(
            f"no text for {problems.label(details.id, part)} was handed in yet, so there is nothing"
            f" to tick off; write it in {details.notebook}.ipynb, and run `check` or `answer`"
        )
    with study.changing(details.id, part) as entry:
        solved = "possible" if details.needs_runs else "ticked"
        entry.tick([known[fact - 1] for fact in facts] or list(known), known, solved)
    status: Status = "ticked" if len(entry.ticked) == len(known) else "read"
    claim = f"{len(entry.ticked)} of {len(known)} ticked off."
    ticked = tuple(entry.ticked)
    then = (entry.no_points_yet,) if entry.best == "possible" else ()
    record = {"problem": details.id, "part": part, "status": status}
    return Report(
        status, details.id, part, claim, facts=known, ticked=ticked, then=then, record=record
    )


def answer(
    problem: str,
    part: str | None,
    text: str,
    figure: Any = None,
    *,
    corpora: Iterable[str | Path] | None = None,
    alt: str | None = None,
    measured_on: str | None = None,
    loss: float | None = None,
) -> None:
    """Show an answer, written in Markdown, and store it in the cell's output.

    In a study folder its text is checked as well, and the verdict is shown below it.
    Example: answer("unicode1", "a", "It is the character ...")

    Arguments:
        problem: its id, in the spelling of either edition.
        part: such as "a"; None if the problem has no parts.
        text: the answer; an empty one counts as none, unless `check` was given a text for this part
            since the kernel started: then that is the answer.
        figure: a matplotlib figure to show with it.
        corpora: names or files of the corpora that it rests on; by default those of the profile,
            if the problem asks for TinyStories or OpenWebText.
        alt: what the figure shows, in words.
        measured_on: the machine, if it is not this one.
        loss: the validation loss of your run in nats per token, if the problem sets a limit for it.
    """
    details, part = problems.place(problem, part)
    if isinstance(text, str) and not text.strip():
        text = _handed_in.get((details.id, part), text)
    record = answers.record_of(details, part, text, corpora, measured_on)
    record["figure"] = figure is not None
    if loss is not None:
        record["loss"] = answers.as_loss(loss)
    shown = record["text"], record["figure"], record.get("loss")
    lacks = answers.complaints(details.id, part or "", *shown, record["stand_in"])
    report = None
    if record["text"] and details.kind == "written" and progress.current() is not None:
        report = judge_attempt(details.id, record["text"], record["part"])
        record["verdict"] = report.status
    answers.show_answer(record, figure, alt)
    progress.record_answer(details.id, record["part"], record["text"], lacks)
    if report is not None:
        answers.display_or_print(note_outcome(report, record["text"]))


def _judged(problem: Problem, checker: Callable, attempt: Any, part: str | None) -> Report:
    """Report what the checker says, run under a time limit that the attempt cannot outlast."""
    from workbook.classroom.checks.modules import uncompiled  # it loads torch

    def judge() -> str | Facts | None:
        _expect_its_kind(problem, attempt)
        _make_repeatable()
        with uncompiled():
            return checker(_plain(attempt), part)

    try:
        praise = limited(problem.seconds or TOTAL_SECONDS, judge)
        if isinstance(praise, Facts):
            facts = tuple(praise) or problem.facts[part or ""]
            return Report("read", problem.id, part, praise.claim, facts=facts)
        status: Status = "possible" if problem.needs_runs else "correct"
        return Report(status, problem.id, part, praise or "It passes every case.")
    except verdicts.Unreadable as other:
        if isinstance(attempt, str) and attempt.strip():  # a sentence is read, never judged
            return Report("read", problem.id, part, Facts.claim, facts=problem.facts[part or ""])
        claim = f"{other} Hand in {_taken(problem, part)}."
        return Report("not attempted", problem.id, part, claim)
    except NotAttempted as nothing:
        is_stub = problem.kind == "code" and verdicts.is_untouched(attempt)
        if problem.kind == "written" or isinstance(nothing, NotJudged) or is_stub:
            claim = "" if is_stub else str(nothing)
            claim = claim or _how_to_begin(problem, part)
            return Report("not attempted", problem.id, part, claim)
        wrong = verdicts.unfinished(nothing)
    except Wrong as error:
        wrong = error
    except TimedOut as error:
        claim = f"It was stopped: the cases took longer than {error.seconds:g} s in total."
        wrong = Wrong(claim, mistake=verdicts.why_stopped(error.__cause__))
    except BaseException as error:
        return _broken_off(problem, part, error)
    return _refusal(problem, part, wrong)


def _broken_off(problem: Problem, part: str | None, error: BaseException) -> Report:
    """Report an error that no check expects: ours judges nothing, others are the attempt's."""
    if fault := verdicts.fault_of_ours(error):
        return Report("not attempted", problem.id, part, fault)
    raised = isinstance(error, KeyboardInterrupt)  # by the attempt: the user's own passes
    claim = "It raised an error." if raised else "What it returned could not be examined."
    return _refusal(problem, part, Wrong(claim, got=Prose(verdicts.failure(error))))


def _refusal(problem: Problem, part: str | None, wrong: Wrong) -> Report:
    """Report what is wrong: "almost" if only a corner case or the manner is."""
    claim = wrong.claim
    if wrong.weight == "corner":
        corners = 1 + sum(other.weight == "corner" for other in wrong.also)
        failing = "one corner case fails" if corners == 1 else f"{corners} corner cases fail"
        claim = f"Right in ordinary use; {failing}. {claim}"
    status: Status = "wrong" if wrong.weight == "use" else "almost"
    also = tuple(map(_in_short, wrong.also))
    return Report(status, problem.id, part, claim, tuple(wrong.rows), wrong.mistake, also)


def _in_short(wrong: Wrong) -> str:
    """One finding of several, without the values."""
    tried_with = dict(wrong.rows).get("input")
    return " ".join(filter(None, [wrong.claim, tried_with and f"(`{tried_with}`)", wrong.mistake]))


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
    if hasattr(attempt, "__array__") and not hasattr(attempt, "to_dict"):
        return attempt.tolist()
    if isinstance(attempt, Integral):
        return int(attempt)
    return float(attempt) if isinstance(attempt, Real | Decimal) else attempt


def _expect_its_kind(problem: Problem, attempt: Any) -> None:
    """Raise unless the attempt is of the kind that the problem asks for at all."""
    if attempt is None and problem.kind == "written":
        raise verdicts.Unreadable(attempt, "This is None, which is what `print(...)` returns.")
    if attempt is None or attempt is ...:
        raise NotAttempted
    if problem.kind == "written" and (callable(attempt) or inspect.ismodule(attempt)):
        raise verdicts.Unreadable(attempt)
    if problem.form == "function":
        verdicts.expect_function(attempt, problem.signature)


def _how_to_begin(problem: Problem, part: str | None) -> str:
    """Tell what to hand in to a learner who has nothing yet."""
    what = f"Write {problem.hand_in}" if problem.form else f"Hand in {_taken(problem, part)}"
    return f"Nothing to check yet. {what}. Then run this cell again."


def _taken(problem: Problem, part: str | None) -> str:
    """Name what a part of a written problem takes."""
    return problem.takes.get(part or "", problem.hand_in)


def hint(problem: str, part: str | None = None) -> Panel:
    """Give a nudge on a problem, or on one of its parts; called again, the nudge and the idea.

    Example: hint("train_bpe")
    """
    details, part = problems.place(problem, part)
    steps = details.hints[part or ""]
    name = f"{details.id}, part {part}" if part else details.id
    _hints_given[name] += 1
    hints = [f"{i}. {step}" for i, step in enumerate(steps[: _hints_given[name]], 1)]
    more = "Run hint again for the next step." if len(hints) < len(steps) else "That was the last."
    return Panel("read", "\n".join([f"Hint for {name}", *hints, more]))


def reveal(reference: Any) -> Answered:
    """Show the source of a function, class or method, folded away in a notebook.

    Example: reveal(bpe.train_bpe)
    """
    try:
        source = inspect.cleandoc("\n" + inspect.getsource(reference))
        name = f"{reference.__module__}.{reference.__qualname__}"
    except (OSError, TypeError, AttributeError):  # the last one: of a module
        kind = verdicts.kind_of(reference)
        raise ValueError(f"got {kind}, whose source cannot be found") from None
    whose = "The reference" if name.startswith("workbook.") else "Your own code"
    title = f"{whose}: <code>{escape(name)}</code>"
    return Answered(f"# {name}\n{source}", folded(title, f"~~~~python\n{source}\n~~~~"))


@cache
def kindly(verb: Callable) -> Callable:
    """A verb as notebooks get it: a wrong call is answered in words, without a traceback.

    So is what the computer refuses.
    """

    @wraps(verb)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return verb(*args, **kwargs)
        except (TypeError, ValueError) as error:
            if isinstance(error, TypeError) and error.__traceback__.tb_next:
                raise  # it came from inside the verb: a fault of ours
            example = verb.__doc__.partition("Example: ")[2].partition("\n")[0]
            words = f"Nothing was done: {error}\nWrite it like this: `{example}`"
            answers.display_or_print(Panel("not attempted", words))
        except OSError as error:  # a full disk, a record of a later version of the workbook
            answers.display_or_print(Panel("not attempted", f"It could not be finished: {error}"))

    return called


def _sign(status: Status) -> str:
    return progress.SIGNS.get(status, "○")  # what was not attempted counts as open


def _panel(status: Status, *pieces: str) -> str:
    """Draw a box that takes its text and background colour from the page."""
    style = f"border-left:.3em solid {COLOURS[_sign(status)]};padding:.2em .8em"
    return f'<div style="{style}">{"".join(pieces)}</div>'


def _code(text: str) -> str:
    return f'<code style="white-space:pre-wrap;overflow-wrap:anywhere">{escape(text)}</code>'


def _value(text: str) -> str:
    """Show a value as code, or words that name some: no literal begins with a backtick."""
    return _prose(text) if text.startswith("`") else _code(text)


def _prose(text: str) -> str:
    """Turn text into HTML; what is between two backticks becomes code."""
    pieces = re.split("`([^`]*)`", text)  # prose and code in turn
    return "".join(
        _code(piece) if i % 2 else escape(piece).replace("\n", "<br>")
        for i, piece in enumerate(pieces)
    )
