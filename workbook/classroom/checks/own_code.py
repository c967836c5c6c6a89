"""Questions about a learner's own code, with answers that are observed while it runs.

Many whose program passes cannot answer a simple question about it, and these struggle later
(Lehtinen, Seppälä and Korhonen, "Automated Questions About Learners' Own Code Help to Detect
Fragile Knowledge", ITiCSE 2023). So the code that a check kept runs in a worker on a small case of
that check, and what its variables hold after each line is noted. A question is asked only if every
run of the function gives the same answer to it, and if the line itself does not give it away.
"""

import ast
import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from workbook.classroom.checks import checkpointing, data_loading, training_together
from workbook.classroom.checks.by_problem import CHECKS
from workbook.classroom.checks.machinery import engine, mutants
from workbook.classroom.checks.machinery.engine import BORDER, Exercise, Mistake
from workbook.classroom.checks.machinery.loading import load_file
from workbook.classroom.checks.machinery.timeout import time_is_up
from workbook.classroom.checks.machinery.verdicts import Wrong
from workbook.classroom.checks.programs import SUBJECTS, without_cases

MOST_EVENTS = 20_000  # lines that are noted of one function
LONGEST_VALUE = 60  # characters of an array that is written out there
LONGEST_INPUT = 300  # characters of what the code is run on, in a question
TOO_MUCH = 1_000  # a size or value that nobody can be asked: how many bytes a file takes, say
MOST_LINES = 45  # of a function that is shown
CASES_SECONDS = 2.0  # of processor time, in which the case that shows most is looked for
LEFT_OUT_SECONDS = 2.0  # of processor time, in which statements are left out, one by one
NOT_AT_ONCE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
UNKNOWN_LINE = 0  # in the order of lines: one that several statements share
TIMES = 3  # that each case is run: what differs is not asked about
ORDINALS = ("", "2nd", "3rd")
ASSIGNS = (ast.Assign, ast.AugAssign, ast.AnnAssign)
TRIANGLE = re.compile("tri[lu]")  # what makes masks, perhaps in place
# By problem: what stands for a check without an exercise.
SMALL_CASES = {
    "data_loading": data_loading.small_case,
    "training_together": training_together.small_case,
}
NO_STEP = "a step is missing there"  # what `mutants` says of a statement that is left out
NAMELESS = (NameError, AttributeError)  # that they follow can be seen without understanding
WITHOUT = 'What comes of it if line {} is left out? "a": an error; "b": {}; "c": {}'
SYMPTOMS = (
    "a result of another shape, length or type",
    "other values of the same shape, length and type",
)
OF_CHECKPOINTS = (
    "the weights are not restored",
    "the weights are restored, but something else is not",
)
YOURS = (
    "A check told you this: {} The program below, which is not yours, has that mistake. In which"
    " line? Write its number."
)
FORMS_OF_QUESTION = {
    "shape": "Which shape has `{name}` once line {line} has run{time}? Write it like (2, 3).",
    "value": "Which value has `{name}` once line {line} has run{time}?",
    "items": "How many items has `{name}` once line {line} has run{time}?",
}


@dataclass(frozen=True)
class OwnQuestion:
    """A question about a line of a learner's code, with its one right answer."""

    kind: str
    line: int
    text: str
    answer: str  # as Python writes it
    why: str  # a sentence
    code: str  # the function that it is about, with the numbers of its lines


def questions_on_code(problem: str, source: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the fields of all questions; in a worker."""
    questions = []
    with suppress(Exception):  # code that fails here is asked about by nobody
        module = _Module(problem, source)
        questions = module.run_by_check(partial(_all, module))
    yield [asdict(question) for question in questions]


class _Module:
    """A kept module."""

    def __init__(self, problem: str, source: str, name: str = "observed"):
        self.problem = problem
        self.source = source
        self.tree = ast.parse(source)
        self.statements = _statements_by_line(self.tree)
        self.path = Path(f"{name}.py").resolve()
        self.path.write_text(source, encoding="utf-8")

    def run_by_check(self, use: Callable[[Exercise, Any], list]) -> list:
        """What `use` gives for the first exercise of the check, and the attempt as that runs it."""
        module = load_file(self.path, self.path.stem)
        handed_out = tuple(getattr(module, name) for name in module.__all__)
        attempt = handed_out if len(handed_out) > 1 else handed_out[0]
        if self.problem in SMALL_CASES:
            return use(*_undecided(*SMALL_CASES[self.problem](attempt)))
        found = []

        def begin(exercise: Exercise, runner: Any, case: Any) -> None:
            # Inside of the check: it may have made a folder, for instance.
            found.extend(use(exercise, runner))
            raise _Used

        with patch.object(engine, "tried", begin), suppress(_Used):
            CHECKS[self.problem](attempt)
        return found

    def function_at(self, line: int) -> ast.FunctionDef | None:
        """The innermost function that holds a line."""
        functions = [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)]
        around = [node for node in functions if node.lineno <= line <= (node.end_lineno or 0)]
        return max(around, key=lambda node: node.lineno, default=None)

    def constants_at(self, line: int) -> set[Any]:
        """The constants, and their negatives, that stand in the statement at a line."""
        statement = self.statements.get(line)
        own = {number for number, each in self.statements.items() if each is statement}
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, ast.Constant)]
        found = {node.value for node in nodes if node.lineno in own}
        return found | {-value for value in found if isinstance(value, int | float)}

    def shown(self, line: int) -> str:
        """The file, or the function that holds a line, with numbers of lines; "" if it is long."""
        lines = self.source.splitlines()
        function = self.function_at(line)
        if function is None or (function.end_lineno or 0) - function.lineno >= MOST_LINES:
            return ""
        if len(lines) <= MOST_LINES:
            return _numbered(lines)
        return _numbered(lines[function.lineno - 1 : function.end_lineno], function.lineno)


def _nothing(case: str) -> None:
    """What is known of the result where a check has no exercise."""


def _undecided(case: str, run: Callable[[], Any]) -> tuple[Exercise, Any]:
    """An exercise of one case whose result is asked by nobody, and what runs it."""
    return replace(without_cases(_nothing), cases=(case,), run=lambda run, case: run()), run


class _Used(BaseException):
    """Ends a check that has done what it was called for."""


def _input(exercise: Exercise, case: Any) -> str:
    """What a case is, with the shapes of large inputs in place of their values."""
    right = exercise.expected(case)
    text = " ".join(dict(exercise.report(case, right, right).rows).get("input", "").split())
    return re.sub(r"= (\[\[.*?\]\]+)", _shape_of, text)


def _shape_of(found: re.Match) -> str:
    with suppress(ValueError, SyntaxError):
        shape = np.shape(ast.literal_eval(found[1]))
        if len(found[1]) > LONGEST_VALUE:
            return f"of shape {shape}"
    return found[0]


def questions_on_mistake(problem: str, kind: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the question in which line of our own program a mistake is; in a worker.

    There is none for a mistake that is not in a single line of it.
    """
    questions: list[OwnQuestion] = []
    for exercise in exercises_of(problem):
        for mistake in exercise.mistakes:
            if kind.startswith(mistake.words):
                questions += _in_one_line(exercise.program.source, mistake)
    yield [asdict(question) for question in questions[:1]]


def exercises_of(problem: str) -> list[Exercise]:
    subject = SUBJECTS.get(problem)
    check: Any = CHECKS[problem]
    versions = subject.versions if subject else ()
    return [check] if isinstance(check, Exercise) else [each.exercise for each in versions]


def _in_one_line(source: str, mistake: Mistake) -> Iterator[OwnQuestion]:
    (old, new), *others = mistake.edits
    if others or not new.strip() or "\n" in old + new:
        return
    part = next(part for part in source.split(BORDER) if old in part)
    line = part[: part.index(old)].count("\n") + 1
    edited = part.replace(old, new).splitlines()
    why = f"It was `{part.splitlines()[line - 1].strip()}`."
    text = YOURS.format(mistake.words)
    yield OwnQuestion("mistake", line, text, f"{line}", why, _numbered(edited))


def _numbered(lines: list[str], first: int = 1) -> str:
    return "\n".join(f"{number:>3}  {line}" for number, line in enumerate(lines, first))


# What is noted while the code runs.


@dataclass
class _Run:
    """One run of a function: its statements in their order, by line, and what they assigned."""

    function: ast.FunctionDef
    order: list[int] = field(default_factory=list)
    values: dict[tuple[int, str], list[Any]] = field(default_factory=lambda: defaultdict(list))
    masks: set[int] = field(default_factory=set)  # lines whose value is a causal mask
    is_whole: bool = True  # and not ended by an error


class _Observer:
    """Notes each run of the functions of a module."""

    def __init__(self, module: _Module):
        self.module = module
        self.file = str(module.path)
        self.statements = module.statements
        self.runs: list[_Run] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code.co_filename != self.file:
            return None
        function = self.module.function_at(code.co_firstlineno)
        if function is None or code.co_name != function.name:  # a comprehension or a lambda
            return None
        if code.co_flags & NOT_AT_ONCE:  # each part of such a run would look like a run
            return None
        run = _Run(function)
        self.runs.append(run)

        def note(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "exception" or len(run.order) > MOST_EVENTS:
                run.is_whole = False
            elif run.is_whole:
                statement = self.statements.get(frame.f_lineno)
                line = statement.lineno if statement else UNKNOWN_LINE
                if event == "return":
                    self._finish(run, frame)
                elif run.order[-1:] != [line]:
                    self._finish(run, frame)
                    run.order.append(line)
            return note

        return note

    def _finish(self, run: _Run, frame: FrameType) -> None:
        """Note what the last statement has assigned."""
        statement = self.statements.get(run.order[-1]) if run.order else None
        if not isinstance(statement, ASSIGNS) or _is_spelled(statement.value):
            return
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for name in (node.id for target in targets for node in _names_in(target)):
            value = frame.f_locals.get(name)
            run.values[statement.lineno, name].append(_described(value))
            if _is_causal(value):
                run.masks.add(statement.lineno)


def _statements_by_line(tree: ast.Module) -> dict[int, ast.stmt]:
    """The statement that each line belongs to; none where several share one."""
    found: dict[int, ast.stmt] = {}
    shared = set()
    for node in ast.walk(tree):  # what is inside of another comes later
        if isinstance(node, ast.stmt):
            inside = getattr(node, "body", None)
            end = inside[0].lineno - 1 if inside else node.end_lineno or 0
            if inside and end < node.lineno:
                shared.add(node.lineno)
            for line in range(node.lineno, max(end, node.lineno) + 1):
                before = found.get(line)
                if before is not None and before.lineno == node.lineno:
                    shared.add(line)
                found[line] = node
    return {line: node for line, node in found.items() if line not in shared}


def _names_in(target: ast.expr) -> list[ast.Name]:
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return [part for part in parts if isinstance(part, ast.Name)]


def _is_spelled(value: ast.expr | None) -> bool:
    """Whether a line spells out the items of a list, a dict or a set: `x = []` gives it away."""
    match value:
        case ast.List() | ast.Dict() | ast.Set() | ast.Call(func=ast.Name(id="dict")):
            return True
    return False


def _described(value: Any) -> tuple[str, Any]:
    """What can be asked about a value, and the answer."""
    if isinstance(value, torch.Tensor | np.ndarray) and 0 < max(value.shape, default=0) < TOO_MUCH:
        return "shape", tuple(value.shape)
    if type(value) in (int, float) and abs(value) < TOO_MUCH:
        return "value", value
    # How many settings torch gives an optimizer's group is not to be known.
    is_group = isinstance(value, dict) and "params" in value
    if isinstance(value, list | dict | set) and value and not is_group:
        return "items", len(value)
    return "", None


def _is_causal(value: Any) -> bool:
    """Whether a value is a square mask that hides what comes later, in any of its usual forms."""
    if not isinstance(value, torch.Tensor) or value.ndim < 2 or value.shape[-1] < 2:
        return False
    last = value.detach().reshape(-1, *value.shape[-2:])[0]
    if last.shape[0] != last.shape[1]:
        return False
    seen = torch.ones(last.shape, dtype=torch.bool).tril()
    forms = [seen, ~seen] if last.dtype == torch.bool else [seen.to(last.dtype)]
    if last.is_floating_point():
        forms.append(torch.zeros(last.shape).masked_fill(~seen, -torch.inf).to(last.dtype))
    return any(torch.equal(last, form) for form in forms)


# Questions.


def _all(module: _Module, exercise: Exercise, runner: Any) -> list[OwnQuestion]:
    """The questions about the case that shows most of the code, and about lines left out."""
    short = [case for case in exercise.cases if 0 < len(_input(exercise, case)) <= LONGEST_INPUT]
    shown: dict[Any, list[OwnQuestion]] = {}
    is_up = time_is_up(CASES_SECONDS)
    for case in short:
        if is_up():
            break
        shown[case] = _about(module, case, exercise, runner)
    if not shown:
        return []
    most = max(shown, key=lambda case: len({each.line for each in shown[case]}))
    # What the cases before it left behind, in a cache for instance, is not to be known.
    fresh = _Module(module.problem, module.source, "alone")
    alone = fresh.run_by_check(partial(_about, fresh, most))
    asked = [each for each in shown[most] if each in alone]
    if module.problem in SMALL_CASES:  # no difference would be seen
        return asked
    return [*asked, *_without_lines(module, exercise, runner, short)]


def _about(module: _Module, case: Any, exercise: Exercise, runner: Any) -> list[OwnQuestion]:
    """The questions about a case; none if its result is wrong."""
    asked = _Asked(module, _input(exercise, case))
    with suppress(Wrong):
        several = [_runs(module, exercise, runner, case) for _ in range(TIMES)]
        asked.about([run for runs in several for run in runs])
    return asked.questions


def _runs(module: _Module, exercise: Exercise, runner: Any, case: Any) -> list[_Run]:
    """The runs of the functions for a case; none if its result is wrong."""
    observer = _Observer(module)
    with observer.watching():
        result = exercise.run(runner, case)
    return observer.runs if exercise.same(exercise.expected(case), result) else []


class _Asked:
    """The questions about a module that ran on a case."""

    def __init__(self, module: _Module, given: str):
        self.module = module
        self.place = f"Your `mine/{module.problem}.py` runs on `{given}`."
        self.questions: list[OwnQuestion] = []

    def about(self, runs: list[_Run]) -> None:
        """Ask about values, loops and a mask that were seen."""
        by_function: dict[int, list[_Run]] = defaultdict(list)
        for run in runs:
            by_function[run.function.lineno].append(run)
        for several in by_function.values():
            if all(run.is_whole for run in several) and len(several) >= TIMES:
                self._about_values(several)
                self._about_loops(several)
        seen = {line for run in runs for line in run.masks}
        lines = enumerate(self.module.source.splitlines(), 1)
        makers = [number for number, text in lines if TRIANGLE.search(text)]
        if len(makers) == 1 and seen == set(makers):
            (line,) = makers
            self.ask("mask", line, "Which line makes the causal mask? Write its number.", line)

    def ask(self, kind: str, line: int, text: str, answer: Any) -> None:
        """Ask if the function can be shown, and if the line does not give the answer away."""
        code = self.module.shown(line)
        own = self.module.source.splitlines()[line - 1].strip()
        parts = set(answer) if isinstance(answer, tuple) else {answer}
        if code and not parts <= self.module.constants_at(line):
            why = f"Line {line} is `{own}`."
            text = f"{self.place} {text}"
            self.questions.append(OwnQuestion(kind, line, text, repr(answer), why, code))

    def _about_values(self, runs: list[_Run]) -> None:
        first, *others = runs
        for (line, name), described in first.values.items():
            if any(run.values.get((line, name)) != described for run in others):
                continue
            place = min(len(described), len(ORDINALS)) - 1
            kind, answer = described[place]
            if kind and (len(described) == 1 or len(runs) == TIMES):
                time = f" for the {ORDINALS[place]} time" if place else ""
                text = FORMS_OF_QUESTION[kind].format(name=name, line=line, time=time)
                self.ask(kind, line, text, answer)

    def _about_loops(self, runs: list[_Run]) -> None:
        if len(runs) > TIMES:  # in all of its calls, or in one of them?
            return
        for loop in ast.walk(runs[0].function):
            if isinstance(loop, ast.For | ast.While) and self._is_counted(loop.body[0]):
                counts = {_rounds(loop, run.order) for run in runs}
                if len(counts) == 1 and (rounds := counts.pop()) is not None:
                    text = f"How often does the body of the loop in line {loop.lineno} run?"
                    self.ask("loop", loop.lineno, text, rounds)

    def _is_counted(self, first: ast.stmt) -> bool:
        """Whether the first statement of a loop is run, and reported, once in each round."""
        is_call = isinstance(first, ast.Expr) and isinstance(first.value, ast.Call)
        is_plain = is_call or isinstance(first, ast.Assign | ast.AugAssign | ast.If | ast.Return)
        return is_plain and first.lineno in self.module.statements


def _rounds(loop: ast.For | ast.While, order: list[int]) -> int | None:
    """How often the body of a loop has run; None if it was not begun once."""
    inside = range(loop.body[0].lineno, (loop.end_lineno or 0) + 1)
    begun = [
        place
        for place, line in enumerate(order)
        if line == loop.lineno and (place == 0 or order[place - 1] not in inside)
    ]
    return order.count(loop.body[0].lineno) if len(begun) == 1 else None


def _without_lines(
    module: _Module, exercise: Exercise, runner: Any, cases: list[Any]
) -> Iterator[OwnQuestion]:
    """Questions about what comes of it if a line is left out, for some of those that matter."""
    source = module.source
    symptoms = OF_CHECKPOINTS if exercise is checkpointing.CHECKPOINTS else SYMPTOMS
    missing = (each for each in mutants.planted(source, Random(source)) if each.what == NO_STEP)
    is_up = time_is_up(LEFT_OUT_SECONDS)
    for number, mutant in enumerate(missing):
        if is_up():
            return
        line = mutant.first + 1
        is_one = len(source.splitlines()) - len(mutant.source.splitlines()) == 1
        if is_one and module.function_at(line):
            broken = _Module(module.problem, mutant.source, f"without_{number}")
            for case, symptom in _symptoms(broken, runner, cases):
                asked = _Asked(module, _input(exercise, case))
                asked.ask("without", line, WITHOUT.format(line, *symptoms), symptom)
                yield from asked.questions


def _symptoms(broken: _Module, right: Any, cases: list[Any]) -> list[tuple[Any, str]]:
    """The first case that code without a statement gets wrong, and how, by its letter."""

    def use(exercise: Exercise, runner: Any) -> list[tuple[Any, str]]:
        for case in cases:
            symptom = _symptom(exercise, right, runner, case)
            if symptom:
                return [(case, symptom)] if symptom.isalpha() else []
        return []

    with suppress(Exception):
        return broken.run_by_check(use)
    return []


def _symptom(exercise: Exercise, right: Any, runner: Any, case: Any) -> str:
    """How what a runner gives for a case differs from what the right one gives, by its letter.

    "" where it does not, and "?" where nobody should be asked.
    """
    try:
        got = exercise.run(runner, case)
    except Wrong as wrong:
        is_telling = wrong.error is not None and not isinstance(wrong.error, NAMELESS)
        return "a" if is_telling else "?"
    if exercise.same(exercise.expected(case), got):
        return ""
    return "c" if _form(exercise.run(right, case)) == _form(got) else "b"


def _form(value: Any) -> Any:
    """The shape, the length and the type of a result, without its values.

    Of what is restored from a checkpoint, it is the weights.
    """
    if isinstance(value, dict) and checkpointing.WEIGHTS in value:
        return value[checkpointing.WEIGHTS]
    if isinstance(value, torch.Tensor | np.ndarray):
        return "array", tuple(value.shape)
    if isinstance(value, list | tuple):
        return type(value).__name__, [_form(part) for part in value]
    if isinstance(value, dict | str | bytes | set):
        return type(value).__name__, len(value)
    return type(value).__name__
