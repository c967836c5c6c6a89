"""`recall`: three questions about problems that you solved days ago, as fresh variants.

The questions are in `recall.toml`, by problem, each with an expression that computes what is right,
nearly always by the package's own functions. Every other one is about the learner's own code, where
a check has kept it (`own_code`). A problem comes back 1, 3, 7 and 21 days after it was solved or
recalled; a wrong answer starts over, a skipped one comes back the next day. A mistake that a check
has named comes back in the same way, before the others, once its problem is solved. When each is
due is in `.workbook/recall.json`.
"""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from itertools import groupby, product, zip_longest
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple

from workbook.classroom.checks.machinery import worker
from workbook.classroom.panels import Panel
from workbook.classroom.study import mistakes, progress, solutions
from workbook.classroom.study.numbers import number_of, typed_number
from workbook.classroom.study.records import RecordEntry

AT_ONCE = 3
SPACES = (1, 3, 7, 21)  # days
LONG_AGO = "2000-01-01"  # what an older version of the workbook noted as solved has no day
OBSERVED_SECONDS = 60.0  # of processor time, until the process is ended that runs own code
_asked: dict[str, "Asked"] = {}  # by the last `recall()` of this kernel
CHOSEN_LETTER = re.compile(r"\(?([a-cA-C])\b")  # of three answers, such as "(c)" or "b: a result"
NEAR_ENOUGH = 0.02  # how far off a number may be, unless it counts something
COMES_BACK = "(A right answer brings it back after 3, 7, then 21 days.)"


@dataclass
class Topic(RecordEntry):
    """When a problem is due again, and how often in a row its answer was right."""

    file: ClassVar[str] = "recall.json"

    due: str  # such as 2026-09-30
    stage: int = 0
    asked: int = 0  # variants so far

    def __post_init__(self) -> None:
        # Days are compared as texts, so no other way of writing one will do, such as "20260930".
        if date.fromisoformat(self.due).isoformat() != self.due:
            raise ValueError(f"expected a day such as 2026-09-30, not {self.due}")
        if self.stage not in range(len(SPACES)) or self.asked < 0:
            raise ValueError(f"no problem is at stage {self.stage}, asked {self.asked} times")


@dataclass(frozen=True)
class Variant:
    """A variant of the question on a problem."""

    text: str
    expression: str  # of Python, for what is right
    chosen: dict[str, Any]  # for the names in it
    why: str  # a sentence
    code: str = ""  # that it is about

    @property
    def value(self) -> Any:
        """What is right: an int exactly, a float nearly, a text or a shape as it is."""
        return eval(self.expression, names_in_values() | self.chosen)  # a text of our own

    def accepts(self, given: Any) -> bool | None:
        """Whether an answer is right: a value, or what somebody typed; None: it cannot be read."""
        text = given.decode(errors="replace") if isinstance(given, bytes) else str(given)
        text = text.strip(" `'\"")
        right = self.value
        if isinstance(right, str):
            chosen = CHOSEN_LETTER.match(text) if self.code else None
            return text == right or bool(chosen and chosen[1].lower() == right)
        if isinstance(right, tuple):
            sizes = re.findall(r"\d+", text)
            return sizes == [str(size) for size in right] if sizes else None
        number = number_of(given)
        if isinstance(given, str | bytes):
            number = typed_number(text, self.text)
        if number is None:
            return None
        near = 0 if isinstance(right, int) else NEAR_ENOUGH
        return math.isclose(number, right, rel_tol=near, abs_tol=1e-9)


class Asked(NamedTuple):
    """A topic that is due, and the question that is asked about it now."""

    topic: Topic
    question: Variant


def recall(*answers: Any) -> Panel:
    """Ask three questions about problems that you solved days ago; called with answers, judge them.

    The answers come in the order of the questions. `None` skips one, which costs nothing.
    Example: recall() and then recall(384, 0.05, None)
    """
    study = progress.current()
    if study is None:
        told = "In a study folder this asks three questions about what you solved days ago."
        return Panel("read", told)
    today = date.today()
    if not answers:
        _asked.clear()  # so that a cell with old answers, run again later, is judged by nothing new
        _asked.update(questions_on(study, due_now(study, today)))
        places = ", ".join(("first", "second", "third")[: len(_asked)])
        how = f"Change the cell to `recall({places})`, words in quotes, and run it; None skips one."
        return ask(study, _asked, how)
    asked = dict(_asked)
    if len(answers) > len(asked):
        raise ValueError(f"{len(answers)} answers, but {len(asked)} questions were asked just now")
    _asked.clear()
    return settle(study, asked, answers, today)


def variant(problem: str, number: int) -> Variant:
    """The variant of this number: always the same one, and another one for the next number."""
    record = questions()[problem]
    variants = list(product(*record["choose"].values()))
    Random(problem).shuffle(variants)
    chosen = dict(zip(record["choose"], variants[number % len(variants)], strict=True))
    return Variant(record["ask"].format(**chosen), record["value"], chosen, record["why"])


@cache
def questions() -> dict[str, dict[str, Any]]:
    """What recall.toml holds, by problem."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def questions_on(study: progress.Progress, due: Mapping[str, Topic]) -> dict[str, Asked]:
    """A question on each of these topics, about the learner's own code or of recall.toml."""
    kept = solutions.stored(study.folder)
    asked = {}
    for place, (name, topic) in enumerate(due.items()):
        problem = mistakes.problem_of(name)
        source, _ = kept.get(problem, ("", ""))
        own = None
        if name != problem:
            kind = mistakes.kind_of_mistake(name)
            own = _of_worker(problem, topic.asked, "questions_on_mistake", kind)
        elif source and topic.asked % 2 == 0:
            own = _of_worker(problem, topic.asked, "questions_on_code", source)
        asked[name] = Asked(topic, own or variant(problem, topic.asked + place))
    return asked


def _of_worker(problem: str, number: int, function: str, about: str) -> Variant | None:
    """One of the questions that a function of `own_code` finds; None if there is none."""
    asked: list[dict] = []
    with suppress(worker.EndedError, ValueError, OSError):
        asked = worker.result(found_questions, function, problem, about, seconds=OBSERVED_SECONDS)
    if not asked:
        return None
    chance = Random(f"{problem} {number}")
    kind = chance.choice(sorted({each["kind"] for each in asked}))
    chosen = chance.choice([each for each in asked if each["kind"] == kind])
    return Variant(chosen["text"], chosen["answer"], {}, chosen["why"], chosen["code"])


def found_questions(function: str, problem: str, about: str) -> Iterator[list[dict[str, Any]]]:
    """Yield what a function of `own_code` finds: the checks are loaded only in a worker."""
    from workbook.classroom.checks import own_code

    yield from getattr(own_code, function)(problem, about)


def topics_of(study: progress.Progress) -> dict[str, Topic]:
    """When each solved problem is due, and each mistake that was made there; the earliest first."""
    stored = study.notes(Topic)
    topics = {}
    for problem, parts in groupby(study.parts(), key=lambda place: place[0].id):
        entries = [entry for *_, entry in parts]
        if all(entry.is_solved for entry in entries):
            day = max(entry.day for entry in entries) or LONG_AGO
            due = date.fromisoformat(day) + timedelta(days=SPACES[0])
            topics[problem] = stored.get(problem, Topic(due.isoformat()))
    for name, mistake in mistakes.own_mistakes(study).items():
        if mistakes.problem_of(name) in topics:
            made = date.fromisoformat(max(mistake.days))
            anew = Topic((made + timedelta(days=SPACES[0])).isoformat())
            topic = stored.get(name, anew)
            asked = date.fromisoformat(topic.due) - timedelta(days=SPACES[topic.stage])
            topics[name] = topic if asked >= made else anew  # it was made again since
    return dict(sorted(topics.items(), key=lambda item: item[1].due))


def due_now(study: progress.Progress, today: date) -> dict[str, Topic]:
    """Those to ask about: mistakes come first, but leave room for another topic."""
    topics = topics_of(study).items()
    due = {name: topic for name, topic in topics if topic.due <= today.isoformat()}
    made = [name for name in due if mistakes.problem_of(name) != name]
    others = [name for name in due if name not in made]
    first = made[: AT_ONCE - 1] if others else made
    return {name: due[name] for name in [*first, *others][:AT_ONCE]}


def ask(study: progress.Progress, asked: Mapping[str, Asked], how: str) -> Panel:
    """Show the questions, and how to answer; or when there will be some."""
    if not asked:
        days = dict.fromkeys(map(_on, topics_of(study).items()))  # a problem and its mistake: once
        coming = ", ".join([*days][:AT_ONCE])
        when = f"Next: {coming}." if coming else "Solve a problem first."
        return Panel("read", f"Nothing to recall today. {when}")
    lines = [f"About problems that you solved. {how}"]
    for number, (name, (_, question)) in enumerate(asked.items(), 1):
        lines.append(f"{number}. {mistakes.problem_of(name)}: {question.text}")
        if question.code:
            lines.append(f"`{question.code.replace('`', chr(39))}`")  # a panel shows it as code
    return Panel("read", "\n".join(lines))


def settle(
    study: progress.Progress, asked: Mapping[str, Asked], answers: Sequence, today: date
) -> Panel:
    """Judge the answers to these questions, each with a sentence of why."""
    lines = []
    new = {}
    for (name, (topic, question)), given in zip_longest(asked.items(), answers):
        is_skipped = given is None or given is ...
        is_right = None if is_skipped else question.accepts(given)
        if is_right is None and not is_skipped:
            unread = f"○ {given} cannot be read as an answer: it is asked again."
            lines.append(f"{mistakes.problem_of(name)}: {unread}")
            continue
        sign = f"✗ not {given}, but"
        stage = 0
        days = SPACES[0]
        if is_skipped:
            sign = "○ skipped:"
            stage = topic.stage
        elif is_right:
            stage = min(topic.stage + 1, len(SPACES) - 1)
            sign = "✓"
            days = SPACES[stage]
        value = question.value
        right = f"{value:,.4g}" if isinstance(value, float) else value
        lines.append(f"{mistakes.problem_of(name)}: {sign} {right}. {question.why}")
        new[name] = Topic((today + timedelta(days=days)).isoformat(), stage, topic.asked + 1)
    try:
        study.keep_notes(Topic, new)
        if new:
            lines.append(f"Again: {', '.join(map(_on, new.items()))}. {COMES_BACK}")
    except Exception as error:  # a full disk: the verdicts are shown all the same
        lines.append(progress.UNSAVED.format(error))
    return Panel("read", "\n".join(lines))


def notices(study: Path) -> list[str]:
    """A line that says what is due, if anything is."""
    with suppress(OSError):  # a record that a later version wrote: no reason not to start
        due = due_now(progress.Progress(study), date.today())
        names = ", ".join(dict.fromkeys(map(mistakes.problem_of, due)))
        about = f"To recall, if you like: {names} (`workbook recall`, or `recall()` in a notebook)."
        return [about] if names else []
    return []


def _on(item: tuple[str, Topic]) -> str:
    return f"{mistakes.problem_of(item[0])} on {date.fromisoformat(item[1].due):%d %B}"


@cache
def names_in_values() -> dict[str, Any]:
    """What an expression of recall.toml may use: torch and modules of ours, and some functions."""
    import torch

    from workbook import accounting, config
    from workbook.generation import sampling
    from workbook.optimizer import optimizers, toys
    from workbook.tokenization import bpe, watch
    from workbook.training import loss_bounds
    from workbook.transformer import model, nn

    def size_of(module: Any) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    ours = (accounting, config, sampling, optimizers, toys, bpe, watch, loss_bounds, model, nn)
    helpers = {"math": math, "replace": replace, "size_of": size_of, "torch": torch}
    return {module.__name__.rpartition(".")[2]: module for module in ours} | helpers
