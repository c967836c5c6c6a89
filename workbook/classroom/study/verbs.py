"""The verbs of the notebooks: check, tick, hint, reveal, answer and look_up."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache, wraps
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

from workbook import config
from workbook.classroom import problems
from workbook.classroom.checks.machinery import verdicts
from workbook.classroom.checks.machinery.judging import Report, judge_attempt
from workbook.classroom.panels import Panel, Status, folded
from workbook.classroom.problems import Problem
from workbook.classroom.study import answers, mistakes, progress, solutions
from workbook.config import Edition

__all__ = ["Report", "answer", "check", "hint", "look_up", "reveal", "tick"]


class NotNow(ValueError):  # noqa: N818 - read as a fact
    """A verb that was called rightly has nothing to work on; the message says what to do."""


_hints_given: Counter[str] = Counter()
_asked_for: set[str] = set()  # answers of ours to parts that were still open
handed_in: dict[tuple[str, str | None], str] = {}  # texts that `check` could only read


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
        handed_in[report.problem, report.part] = attempt
    return note_outcome(replace(report, claim=claim), attempt)


def note_outcome(
    report: Report, attempt: Any = None, before: progress.Part | None = None
) -> Report:
    """Count the outcome in the study folder, if this is one, and keep code that passed.

    Arguments:
        before: the record of this part, if it has been changed since the attempt was handed in.
    """
    is_counted = report.status != "not attempted" and report.problem in problems.PROBLEMS
    if is_counted and (study := progress.current()) is not None:
        try:
            return _noted(report, study, problems.with_id(report.problem), attempt, before)
        except Exception as error:  # a full disk is not a wrong attempt
            return replace(report, then=(progress.UNSAVED.format(error),))
    return report


def _noted(
    report: Report,
    study: progress.Progress,
    problem: Problem,
    attempt: Any,
    before: progress.Part | None,
) -> Report:
    """Note the outcome in a study folder, and keep the code of an attempt that passed."""
    mistakes.note_mistake(study, report)
    kept = None
    then = tuple[str, ...]()
    before = before or study.of(problem.id, report.part)
    kept_for = {"correct"} if before.best == "correct" else {"correct", "almost"}
    has_file = isinstance(attempt, str | Path | ModuleType)  # or a text, in the notebook itself
    if report.status in kept_for and problem.form and not has_file:
        try:
            kept, words = solutions.keep_code(study.folder, problem, attempt, report.status, before)
        except Exception as error:  # counted all the same
            words = f"Its code could not be kept: {verdicts.failure(error)}."
        then = (words,)
    with study.changing(problem.id, report.part) as entry:
        entry.reach(report.status)
        entry.loss = entry.loss if report.loss is None else report.loss
        if kept is not None:
            entry.source, entry.trouble = kept
    if entry.is_solved and not before.is_solved:
        then += (progress.solved_now(study, problem, report.part),)
    elif entry.best == "possible" and report.status != "wrong":
        then = (entry.no_points_yet,)
    elif report.status == "read" and not entry.is_solved:
        report = replace(report, next_step="tick")
    elif entry.is_solved and not then and report.status not in ("correct", "possible"):
        lacks = [f"Of the last answer: {'; '.join(entry.lacks)}."] if entry.lacks else []
        then = ("This part is solved already, and stays so.", *lacks)
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
        raise NotNow("not in a study folder, so nothing is counted; `workbook lab` creates one")
    before = study.of(details.id, part)
    if not before.has_text:
        raise NotNow(
            f"no text for {problems.label(details.id, part)} was handed in yet, so there is nothing"
            f" to tick off; write it in {details.notebook}.ipynb, and run `check` or `answer`"
        )
    with study.changing(details.id, part) as entry:
        solved = "possible" if details.needs_runs else "ticked"
        entry.tick([known[fact - 1] for fact in facts] or list(known), known, solved)
    status: Status = "ticked" if len(entry.ticked) == len(known) else "read"
    claim = f"{len(entry.ticked)} of {len(known)} ticked off."
    ticked = tuple(entry.ticked)
    then = tuple[str, ...]()
    if entry.best == "possible":
        then = (entry.no_points_yet,)
    elif entry.is_solved and not before.is_solved:
        then = (progress.solved_now(study, details, part),)
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
    edition: Edition | None = None,
) -> None:
    """Show an answer, written in Markdown, and store it in the cell's output.

    In a study folder its text is checked as well, and the verdict is shown below it.
    Example: answer("learning_rate", "a", "The best rate is ...", figure=fig, loss=1.44)

    Arguments:
        problem: its id, in the spelling of either edition.
        part: such as "a"; None if the problem has no parts.
        text: the answer; an empty one counts as none, unless `check` was given a text for this part
            since the kernel started: then that is the answer.
        figure: a matplotlib figure to show with it, its axes, the path of a picture, or a list.
        corpora: names or files of the corpora that it rests on; by default those of the profile,
            if the problem asks for TinyStories or OpenWebText.
        alt: what the figure shows, in words.
        measured_on: the machine, if it is not this one.
        loss: the validation loss of your run in nats per token, if the problem sets a limit for it.
        edition: of the handout, if the answer is to another one than is set: then it is shown
            folded, and only stored, for the write-up of that edition.
    """
    details, part = problems.place(problem, part)
    if isinstance(text, str) and not text.strip():
        text = handed_in.get((details.id, part), text)
    record = answers.record_of(details, part, text, corpora, measured_on, edition)
    figures = answers.as_figures(figure)
    record["figure"] = bool(figures)
    if loss is not None:
        record["loss"] = answers.as_loss(loss)
    if record["edition"] != config.edition():
        answers.show_answer(record, [])
        return
    study = progress.current()
    before = progress.Part()
    with suppress(Exception):  # what is wrong with the record is said below, beside the answer
        before = study.of(details.id, part) if study else before
    used = [corpus["name"] for corpus in record["corpora"]]
    shown = record["text"], record["figure"], record.get("loss"), used, before.loss
    lacks = answers.complaints(details.id, part or "", *shown)
    report = None
    if record["text"] and details.kind == "written" and study is not None:
        report = judge_attempt(details.id, record["text"], record["part"])
        record["verdict"] = report.status
    answers.show_answer(record, figures if record["text"] else [], alt)
    progress.record_answer(details.id, record["part"], record["text"], lacks)
    if report is not None:
        answers.display_or_print(note_outcome(report, record["text"], before))


def hint(problem: str, part: str | None = None) -> Panel:
    """Give a nudge on a problem, or on one of its parts; called again, the nudge and the idea.

    Example: hint("train_bpe")
    """
    details, part = problems.place(problem, part)
    steps = details.hints[part or ""]
    name = problems.label(details.id, part)
    _hints_given[name] += 1
    hints = [f"{i}. {step}" for i, step in enumerate(steps[: _hints_given[name]], 1)]
    more = "Run hint again for the next step." if len(hints) < len(steps) else "That was the last."
    return Panel("read", "\n".join([f"Hint for {name}", *hints, more]))


def look_up(problem: str, part: str | None = None) -> Panel:
    """Look up our own answer in the worked notebook; in a notebook it is folded away.

    To a part that is still open it comes at the second call: "Run All" gives nothing away.
    Example: look_up("unicode1", "a")
    """
    details, part = problems.place(problem, part)
    name = problems.label(details.id, part)
    study = progress.current()
    is_open = study is not None and not study.of(details.id, part).has_text
    if is_open and name not in _asked_for:
        _asked_for.add(name)
        return Panel("read", f"{name} is still open: run this cell again to read our answer.")
    return answers.look_up(details.id, part)


def reveal(reference: Any) -> Panel:
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
    return Panel("read", f"# {name}\n{source}", folded(title, f"~~~~python\n{source}\n~~~~"))


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
            words = f"Nothing was done: {error}"
            if not isinstance(error, NotNow):
                example = verb.__doc__.partition("Example: ")[2].partition("\n")[0]
                words += f"\nWrite it like this: `{example}`"
            answers.display_or_print(Panel("not attempted", words))
        except OSError as error:  # a full disk, a record of a later version of the workbook
            answers.display_or_print(Panel("not attempted", f"It could not be finished: {error}"))

    return called
