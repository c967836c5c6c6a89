"""A learner's own test of a problem, tried on right programs and on faulty ones.

A test is a function that takes a program and asserts. It must accept the right programs of the
problem, and should refuse many of the faulty ones (`programs`). What it prints, and what its
assertions say, is shown to nobody: a right value could be read there.
"""

import ast
import builtins
import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import torch

from workbook.classroom.checks.machinery.engine import Exercise
from workbook.classroom.checks.machinery.timeout import TimedOut, limited, time_is_up
from workbook.classroom.checks.machinery.verdicts import failure, is_refusal, shown, where
from workbook.classroom.checks.programs import SUBJECTS, Versions

EACH_SECONDS = 5.0  # of processor time, for one run of a test
TOTAL_SECONDS = 40.0  # for all of them; those that are left are not counted
MUTANTS = 4  # of each exercise
WATCHED = (torch, torch.Tensor, torch.nn.functional, math, np, builtins)  # a test changes none
COMPARING = {"allclose", "equal", "isclose", "array_equal"}  # functions, in an assertion
FIXED = "Each program gives it what it asks for: is there an `assert` that runs?"


class Tried(NamedTuple):
    """What became of a test."""

    trouble: str = ""  # why it counts for nothing
    is_refused: bool = False  # a right program was
    caught: int = 0
    tried: int = 0
    away: tuple[tuple[str, str], ...] = ()  # what got away: its mistake, and where it goes wrong


def outcome_of(problem: str, test: Callable) -> Tried:
    """Try a test on the right programs, then on the faulty ones."""
    subject = SUBJECTS[problem]
    if trouble := _never_fails(test):
        return Tried(trouble)
    for forms in (*subject.right, subject.right[0]):  # again: what it keeps, or draws, may differ
        if (told := _tried_on_one_of(test, forms)) is not None:
            return told
    return _caught(test, subject.versions)


def _tried_on_one_of(test: Callable, forms: tuple[Any, ...]) -> Tried | None:
    """What is wrong with a test, by the forms of a right program; None if it accepts one."""
    refused = []
    for form in forms:
        told = _tried_on(test, form)
        if told is None or not told.is_refused:
            return told
        refused.append(told)
    return refused[0]


def _tried_on(test: Callable, program: Any) -> Tried | None:
    """What is wrong with a test, by a right program; None if it accepts that."""
    before = _state(program)
    error = _raised(test, program)
    if isinstance(error, TimedOut):
        stopped = f"It was stopped after {EACH_SECONDS:g} s{where(error.__cause__)}."
        return Tried(f"{stopped} Let it ask less, or end its loop.")
    if changed := _changed(before, _state(program)):
        return Tried(f"It changes `{changed}`: a test looks, and changes nothing.")
    if type(error).__name__ == "Skipped":  # pytest's
        return Tried("It skips itself.")
    return None if error is None else Tried(_refusal(test, error), is_refused=True)


def _caught(test: Callable, several: tuple[Versions, ...]) -> Tried:
    is_up = time_is_up(TOTAL_SECONDS)
    away = []
    caught = count = 0
    for versions in several:
        for words, version in _faulty(versions):
            if is_up():
                break
            if _raised(test, versions.shaped(version)) is not None:
                caught += 1
                count += 1
            elif (told := _where_it_shows(versions, words, version)) is not None:
                away.append((words, told))
                count += 1
    return Tried(FIXED if not caught else "", False, caught, count, tuple(away))


def _faulty(versions: Versions) -> Iterator[tuple[str, Callable]]:
    """The versions with a mistake of the catalogue, then some with a small change."""
    program = versions.exercise.program
    for mistake in versions.mistakes:
        yield mistake.words, program.edited(mistake)
    yield from Random(0).sample(program.mutants, min(MUTANTS, len(program.mutants)))


def _raised(test: Callable, program: Any) -> BaseException | None:
    """What a test raises of a program."""
    try:
        limited(EACH_SECONDS, lambda: test(program))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # pytest's own failures are no `Exception`
        return error
    return None


def _where_it_shows(versions: Versions, words: str, version: Callable) -> str | None:
    """What a faulty version gets wrong, without the mistake; None if nothing that is known."""
    exercise = versions.exercise
    if not exercise.cases:
        return versions.kinds.get(words, "")
    for case in (*exercise.cases, *exercise.corners):
        right = exercise.expected(case)
        with suppress(Exception):
            if _agree(exercise, right, exercise.expected(case, version)):
                continue
        given = dict(exercise.report(case, right, right).rows).get("input", "")
        what = getattr(case, "what", "")
        return f"{what}: {given}" if what and what not in given else given
    return None


def _agree(exercise: Exercise, right: Any, got: Any) -> bool:
    if isinstance(right, np.ndarray):  # probabilities, which an attempt is drawn from
        return bool(np.allclose(right, got))
    return exercise.same(right, got)


# What a test is, before and after.


def _never_fails(test: Callable) -> str:
    """Say so where the text of a test shows that it cannot fail, or looks at no program."""
    tree = _tree(test)
    if tree is None:
        return ""
    name = next(iter(inspect.signature(test).parameters))
    if not any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree)):
        return f"It never uses `{name}`: that is the program to test."
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    if not asserts and any(isinstance(n, ast.Return) and n.value for n in ast.walk(tree)):
        return "It has no `assert`: what a test returns is looked at by nobody."
    for node in asserts:
        is_pair = isinstance(node.test, ast.Tuple) and node.test.elts
        is_true = isinstance(node.test, ast.Constant) and node.test.value and len(asserts) == 1
        if is_pair or is_true:
            return f"`{ast.unparse(node)}` cannot fail: a value that is not empty counts as true."
    return ""


def _state(program: Any) -> dict[tuple[str, str], Any]:
    """The values of the names that a test has no business to change."""
    # First the default type, before the names that it brings along, such as `torch.Storage`.
    names = {("torch's ", "default dtype"): torch.get_default_dtype()}
    names |= {
        (f"{getattr(holder, '__name__', 'it')}.", name): value
        for holder in (*WATCHED, program)
        for name, value in getattr(holder, "__dict__", {}).items()
    }
    for (place, name), value in [*names.items()]:
        if place == f"{getattr(program, '__name__', '')}." and hasattr(value, "__code__"):
            names[f"{place}{name}.", "__code__"] = value.__code__
    own = getattr(program, "__code__", None)
    return names | {("the program's ", "code"): own}


def _changed(before: dict, after: dict) -> str:
    """The first name that stands for something else than before; "" if none does."""
    places = (place for place in before if after.get(place) is not before[place])
    return next(("".join(place) for place in places if place[1] not in ("__doc__", "_")), "")


def _tree(test: Callable) -> ast.FunctionDef | None:
    """The syntax of a test, with the line numbers of its file or cell."""
    with suppress(OSError, SyntaxError, TypeError):
        lines, first = inspect.getsourcelines(test)
        # One that is indented is parsed below an `if`, so that its columns stay as they are.
        head = "if True:\n" if lines[0][:1].isspace() else ""
        tree = ast.parse(head + "".join(lines))
        ast.increment_lineno(tree, first - 1 - bool(head))
        return next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), None)
    return None


# Why a right program was refused.


def _refusal(test: Callable, error: BaseException) -> str:
    """Which line refuses a right program, and what it expects in place of what that gives."""
    of_pytest = type(error).__module__.startswith("_pytest")
    if not (isinstance(error, AssertionError) or of_pytest or is_refusal(error)):
        # A message of another kind may quote what the program gave.
        quotes = not isinstance(error, NameError | AttributeError | TypeError)
        told = f"{type(error).__name__}{where(error)}" if quotes else failure(error)
        return f"It ends with an error where the program is right: {told}."
    expected = _expected(test, error)
    wants = f" Yours expects {expected}; right programs give something else." if expected else ""
    return f"It refuses a right program{where(error)}.{wants}"


def _expected(test: Callable, error: BaseException) -> str:
    """What the assertion that failed compares with, if it does nothing but compare with literals.

    "" elsewhere: which part of it failed is not known then, and a value that is not written down in
    the test may be the program's own.
    """
    *_, last = _traceback(error)
    tree = _tree(test)
    if tree is None or last.tb_frame.f_code is not test.__code__:
        return ""
    failed = _statement_at(tree, last)
    if not isinstance(failed, ast.Assert):
        return ""
    written = _written_values(tree, last.tb_frame.f_locals)
    found = [each for side in _sides(failed.test) if (each := _literal(side, written))]
    return found[0] if len(found) == 1 else ""


def _literal(node: ast.expr, written: dict[str, str]) -> str:
    """A value as it is written down in a test, perhaps as a tensor; "" if it is not."""
    match node:
        case ast.Name(id=name):
            return written.get(name, "")
        case ast.Call(func=ast.Attribute(attr="tensor" | "array" | "approx"), args=[value, *_]):
            return _literal(value, written)
    with suppress(ValueError, TypeError):
        return shown(ast.literal_eval(node))
    return ""


def _written_values(tree: ast.FunctionDef, names: dict[str, Any]) -> dict[str, str]:
    """The values of names that a test gives literals alone, and that nothing can change."""
    given: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.For(target=ast.Name(id=name), iter=value)
            ):
                given[name] += bool(_literal(value, {}))
            case ast.Name(id=name, ctx=ast.Store()):
                stored[name] += 1
    fixed = (int, float, str, bytes, bool, tuple)
    return {
        name: shown(names[name])
        for name, times in stored.items()
        if times == given[name] and isinstance(names.get(name), fixed)
    }


def _traceback(error: BaseException) -> Iterator[TracebackType]:
    at = error.__traceback__
    while at is not None:
        yield at
        at = at.tb_next


def _statement_at(tree: ast.FunctionDef, at: TracebackType) -> ast.stmt:
    """The innermost statement of a test that a traceback is at."""
    line, _, column, _ = [*at.tb_frame.f_code.co_positions()][at.tb_lasti // 2]
    found: ast.stmt = tree
    for node in ast.walk(tree):  # what is inside of another comes later
        if isinstance(node, ast.stmt):
            start = node.lineno, node.col_offset
            end = node.end_lineno or 0, node.end_col_offset or 0
            if start <= (line or 0, column or 0) < end:
                found = node
    return found


def _sides(node: ast.AST) -> list[ast.expr]:
    """The two sides of a comparison, by `==` or by a function that compares; else none."""
    match node:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return [left, right]
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[left, right, *_]):
            return [left, right] if name in COMPARING else []
    return []
