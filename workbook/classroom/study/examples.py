"""`examples`: what a right program gives, stated as a test before the program is written.

The test is tried at once on right programs and on faulty ones, so that a misunderstanding shows
before there is code that shares it (Wrenn and Krishnamurthi, "Executable Examples for Programming
Problem Comprehension", ICER 2019). One that is good is kept as `mine/test_PROBLEM.py`, for pytest.
"""

import inspect
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from workbook.classroom import problems
from workbook.classroom.checks.machinery import worker
from workbook.classroom.checks.machinery.transfer import PackError
from workbook.classroom.checks.machinery.verdicts import is_untouched, kind_of
from workbook.classroom.panels import Status
from workbook.classroom.study import progress, solutions
from workbook.classroom.study.verbs import NotNow, Report
from workbook.files import atomic_write

RESUMING = "resuming"  # of the script of training_together
TRIED_SECONDS = 90.0  # of processor time, until the process is ended that tries a test
KEPT_TEST = "# A test of {}, kept by `examples` ({})"  # with a digest of the rest of the file
FIXTURE = '''

import pytest


@pytest.fixture(name="{program}")
def program():
    """What the file {module}.py hands out."""
    module = pytest.importorskip("{module}")
    return getattr(module, getattr(module, "__all__", ["{program}"])[0])
'''


def examples(problem: str, test: Any) -> Report:
    """Try your own test of a problem on right programs and on faulty ones, for no points.

    It must accept what is right, and should catch most of what is not. Write it before the program
    itself: it shows whether you have understood what is asked. A good one is kept.
    Example: examples("softmax", test_softmax)

    Arguments:
        problem: a code problem, an optional step, or "resuming".
        test: a function that takes the program and asserts what that gives.
    """
    details = problems.with_id("training_together" if problem == RESUMING else problem)
    name = problem if problem == RESUMING else details.id
    if name != RESUMING and not details.has_examples:
        raise ValueError(f"there are no examples to state for {name}: its check says what is wrong")
    if not _is_test(test):
        told = "a function that takes the program alone, as `def test_softmax(softmax): ...`"
        raise ValueError(f"expected {told}, got {kind_of(test)}")
    if is_untouched(test):
        raise NotNow(f"`{test.__name__}` asserts nothing yet")
    try:
        fields = worker.result(examples_tried, name, test, seconds=TRIED_SECONDS)
    except (PackError, worker.EndedError) as error:
        why = str(error).partition("; its last output")[0]  # where a right value could be read
        return _told(name, "not attempted", "counts for nothing", f"It could not be tried: {why}")
    if fields["is_refused"]:
        return _told(name, "wrong", "refuses what is right", fields["trouble"])
    if fields["trouble"]:
        return _told(name, "not attempted", "counts for nothing", fields["trouble"])
    study = progress.current()
    is_solved = study is not None and study.has_solved(details.step_of or details.id)
    then = [_got_away(fields["away"], is_solved)]
    if study is not None:
        then.append(_kept(study.folder, name, test, solutions.own_cells(study.folder, details)))
    caught = f"{fields['caught']} of {fields['tried']} faulty programs"
    claim = f"It accepts two right programs, and catches {caught}."
    return _told(name, "correct", "accepts what is right", claim, *filter(None, then))


def _is_test(test: Any) -> bool:
    if not inspect.isfunction(test) or inspect.iscoroutinefunction(test):
        return False
    taken = [*inspect.signature(test).parameters.values()]
    is_one = len(taken) == 1 and taken[0].kind is taken[0].POSITIONAL_OR_KEYWORD
    return is_one and test.__name__.isidentifier()  # a lambda has no statements to look at


def examples_tried(problem: str, test: Any) -> Iterator[dict[str, Any]]:
    """Yield what becomes of a test: `checks.examples` is loaded only in a worker."""
    from workbook.classroom.checks import examples

    yield examples.outcome_of(problem, test)._asdict()


def _told(problem: str, status: Status, state: str, claim: str, *then: str) -> Report:
    return Report(status, f"test of {problem}", None, claim, then=then, state=state)


def _got_away(away: list[list[str]], is_solved: bool) -> str:
    """What was not caught: the mistakes once the problem is solved, before that one of the inputs.

    A mistake's own sentence would give the problem away.
    """
    if is_solved:
        mistakes = dict.fromkeys(words for words, _ in away)
        return "\n".join(["What got away:", *mistakes]) if mistakes else ""
    inputs = [wrong_for for _, wrong_for in away if wrong_for]
    if not inputs:
        return ""
    shortest = min(inputs, key=len)
    return f"One that got away goes wrong here: {shortest}"


def _kept(folder: Path, problem: str, test: Any, not_own: frozenset[str]) -> str:
    """Keep a test as a file for pytest; say where it is, or why not."""
    name = test.__name__ if test.__name__.startswith("test") else f"test_{problem}"
    source, trouble = solutions.collect(test, (name,), not_own)
    trouble = trouble or solutions.why_not_alone(source, f"test_{problem}")
    if trouble:
        return f"The test is not kept: {trouble}."
    (takes,) = inspect.signature(test).parameters
    text = source + FIXTURE.format(program=takes, module=problem)
    path = folder / solutions.FOLDER / f"test_{problem}.py"
    before = path.read_text("utf-8", errors="replace") if path.is_file() else ""
    try:
        solutions.make_way(path, {before} if _is_unedited(before, problem) else set())
        with atomic_write(path) as file:
            file.write(f"{_head(problem, text)}\n{text}")
    except OSError as error:
        return f"The test is not kept: {error}."
    tries = f"`pytest` tries it on {solutions.FOLDER}/{problem}.py"
    return f"Kept as `{solutions.FOLDER}/{path.name}`: {tries}, once that is there."


def _head(problem: str, text: str) -> str:
    return KEPT_TEST.format(problem, sha256(text.encode()).hexdigest()[:8])


def _is_unedited(content: str, problem: str) -> bool:
    """Whether a file is as it was kept."""
    head, _, text = content.partition("\n")
    return head == _head(problem, text)


def kept_tests(study: Path, package: str) -> dict[str, str]:
    """The kept tests of a study folder by problem, for code that lies in a package."""
    found = {}
    for path in sorted((study / solutions.FOLDER).glob("test_*.py")):
        problem = path.stem.removeprefix("test_")
        text = path.read_text("utf-8", errors="replace")
        if text.startswith(KEPT_TEST.partition("{}")[0] + problem):
            found[problem] = text.replace('importorskip("', f'importorskip("{package}.')
    return found
