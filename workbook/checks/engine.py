"""The engine of every check of code: a right program, and mistakes as edits of its source.

A check has a reference (`Program`), which is plain code that can be read, and a catalogue of usual
mistakes: each is a sentence for the learner and an edit of the reference's source. The attempt runs
on all cases beside the reference (`judge`). Where it fails, the mistake whose edited reference
gives what the attempt gave is the likely one. Where none does, first-order mutants of the reference
are tried, and the learner is told where their code differs, not how.
"""

import ast
import inspect
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import combinations, groupby
from types import CodeType
from typing import Any, NamedTuple

from workbook.checks.mutants import mutated
from workbook.checks.timeout import time_is_up
from workbook.checks.verdicts import Findings, NotAttempted, Wrong

PATIENCE = 2.0  # seconds of processor time for more cases once one has failed, and for mutants
FOR_PAIRS = 1.0  # and for pairs of mistakes
ENOUGH = 1 / 4  # of the wrong outcomes must come from a mistake that is named
BORDER = "\n\n#\n\n"  # between the functions of a program
FEW = 40  # parts: with no more than that, stretches are dropped at every position
# Errors about sizes that do not match, whatever their type: torch, numpy and einops differ.
SIZES = re.compile(r"shape|size|dimension|broadcast|reshape|expand|index out|out of range", re.I)
# By a pattern for the start of an error's "Type: text", what it usually comes from.
USUAL = {
    r"^(NameError|UnboundLocalError)": "This name has no value yet: is a line missing above, or "
    "is the name misspelt?",
    r"^AttributeError: '\w+' object has no attribute": "Nothing gave this attribute a value: is a "
    "line of `__init__` missing, or is the name misspelt?",
    r"^IndexError: .*index .*out of (range|bounds)": "An index is past the end: print it and the "
    "length.",
    r"^\w+: .*(shape|size|dimension|broadcast|expand)": "The shapes in this line do not fit: "
    "print them.",
    r"^KeyError": "This key is not in the dict: was it ever added?",
    r"^ZeroDivisionError": "The divisor is 0 here: in which case does that happen?",
    r"^RecursionError": "The function calls itself for ever: which call should end it?",
    r"^TypeError: '\w+' object is not (callable|iterable|subscriptable)": "This is not the kind "
    "of value that the line expects: print its type.",
    r"^TypeError: .*(bytes-like|string pattern|bytes pattern|expected string)": "This line "
    "mixes text and bytes, or two arguments are swapped: print the types.",
    r"^TypeError: .*(unsupported operand|not supported between)": "This line combines values "
    "of two types, or of a type that lacks this operator: print the types.",
    r"^UnicodeDecodeError": "These bytes begin or end in the middle of a character: cut the text "
    "elsewhere, and keep tokens as bytes.",
    r"^TypeError: .*argument": "This function takes different arguments: compare their "
    "names, number and order.",
    r"^RuntimeError: (a|Boolean value of) Tensor with": "`item()` and `if` take a tensor with "
    "a single element; `is not None` asks whether there is a tensor at all.",
}


class Mistake(NamedTuple):
    """A sentence for a learner whose code does what the reference does after these edits."""

    words: str
    edits: tuple[tuple[str, str], ...]  # (a piece of the reference's source, what replaces it)


def mistake(words: str, *edits: str) -> Mistake:
    """Make a mistake from its words and "old", "new", "old", "new", ..."""
    return Mistake(words, tuple(zip(edits[::2], edits[1::2], strict=True)))


def instead_of(piece: str, codes: Mapping[str, str], rule: str = "") -> tuple[Mistake, ...]:
    """Make the mistakes in one piece of the source: `codes` has the words by what replaces it."""
    return tuple(mistake(rule + words, piece, code) for code, words in codes.items())


class Raised(NamedTuple):
    """The result of a call that raised an error."""

    error: BaseException

    def like(self, other: "Raised") -> bool:
        """Tell whether two errors are of one kind: both about sizes, or else of the same type."""
        sizes = {bool(SIZES.search(str(each.error))) for each in (self, other)}
        return sizes == {True} or (sizes == {False} and type(self.error) is type(other.error))


class Program:
    """A right solution as source that can be edited: functions, of which the last is called.

    `places` says what a line is for, by a piece of it: where a mutant of that line does what the
    learner's code does, they are told to look there. By default, it is what the comments behind
    the lines say. `call` says how the last function is called with a case, if it does not take the
    case itself.
    """

    def __init__(
        self,
        *functions: Callable,
        places: Mapping[str, str] | None = None,
        call: Callable[[Callable, Any], Any] | None = None,
    ):
        self.entry, self.call = functions[-1].__name__, call
        self.globals = {
            k: v for each in functions for k, v in inspect.unwrap(each).__globals__.items()
        }
        self.source = BORDER.join(textwrap.dedent(inspect.getsource(each)) for each in functions)
        self.places = places or dict(re.findall(r"([^\s#].*)  # (.+)", self.source))

    @lru_cache(maxsize=10_000)  # noqa: B019 - programs are few and stay
    def edited(self, mistakes: tuple[Mistake, ...] = ()) -> Callable | None:
        """The function after the edits; None if a piece does not occur exactly once.

        Two mistakes may edit the same place, and then cannot be combined.
        """
        source = self.source
        for old, new in (edit for each in mistakes for edit in each.edits):
            if source.count(old) != 1:
                return None
            line = next(line for line in source.splitlines() if old.splitlines()[0] in line)
            indent = line[: len(line) - len(line.lstrip())]
            source = source.replace(old, new.replace("\n", f"\n{indent}"))
        return self._compiled(source.split(BORDER))

    @cached_property
    def mutants(self) -> tuple["Mutant", ...]:
        """All programs that differ from this one by one small change, in a line with a place."""
        parts = self.source.split(BORDER)
        return tuple(
            Mutant(f"Look at {place}: {what}.", self._compiled([*parts[:i], tree, *parts[i + 1 :]]))
            for i, part in enumerate(parts)
            for what, number, tree in mutated(ast.parse(part))
            for place in (self._place(part.splitlines()[number - 1]),)
            if place
        )

    def _place(self, line: str) -> str | None:
        return next((words for piece, words in self.places.items() if piece in line), None)

    def _compiled(self, parts: Sequence[str | ast.Module]) -> Callable:
        names = dict(self.globals)
        for part in parts:
            exec(_code(part), names)
        return names[self.entry] if self.call is None else partial(self.call, names[self.entry])


@lru_cache(maxsize=10_000)  # edits of one function leave the others as they are
def _code(source: str | ast.Module) -> CodeType:
    return compile(source, "<reference>", "exec")


class Mutant(NamedTuple):
    """The reference with one small change that a machine made."""

    words: str
    function: Callable


@dataclass(frozen=True, eq=False)
class Exercise:
    """All that the check of one problem knows."""

    program: Program  # called with a case
    mistakes: tuple[Mistake, ...]
    cases: tuple[Any, ...]  # of ordinary use, the smallest first
    run: Callable[[Any, Any], Any]  # (attempt, case) -> result; raises Wrong
    same: Callable[[Any, Any], bool]  # (expected, result)
    report: Callable[[Any, Any, Any], Wrong]  # (case, expected, result) -> the verdict
    errors: dict[str, str] = field(default_factory=dict)  # a pattern of "Type: text" -> mistake
    smaller: Callable[[Any, Callable[[Any], bool]], Any] | None = None  # (case, fails) -> a case
    corners: tuple[Any, ...] = ()  # edge cases that the handout's wording covers
    pairs: bool = True  # whether two mistakes at once are tried

    @lru_cache(maxsize=100_000)  # noqa: B019 - exercises are few and stay
    def expected(self, case: Any, mistakes: tuple[Mistake, ...] = ()) -> Any:
        """The reference's result with these mistakes; None if they cannot be combined."""
        function = self.program.edited(mistakes)
        return None if function is None else _result(function, case, raises=not mistakes)

    def explains(self, mistakes: tuple[Mistake, ...], outcome: "Outcome") -> bool:
        """Tell whether these mistakes give this outcome."""
        return self._agrees(self.expected(outcome.case, mistakes), outcome)

    def _agrees(self, predicted: Any, outcome: "Outcome") -> bool:
        if outcome.failure:
            error = outcome.failure.error
            return bool(error) and isinstance(predicted, Raised) and predicted.like(Raised(error))
        return (
            predicted is not None
            and not isinstance(predicted, Raised)
            and self.same(predicted, outcome.result)
        )


class Outcome(NamedTuple):
    """What became of one case: a result, or a failure in words."""

    case: Any
    result: Any
    right: bool
    failure: Wrong | None = None


def judge(exercise: Exercise, attempt: Any) -> Findings:
    """Run an attempt on all cases; collect what it gets wrong, with the likely mistake.

    The cases of ordinary use come first, and the first that fails is reported. In a case that is
    `seldom` met, such as attention without a mask, an error counts only as a corner. If nothing
    goes wrong in use, every corner that fails is reported; consecutive corners with the same
    `what` count as one. Raises: NotAttempted.
    """
    found, outcomes, refused = Findings(), [], []
    with found("use"):
        _go_through(exercise, attempt, exercise.cases, outcomes, refused)
    if found:
        return found
    for outcome in refused[:1]:
        with found("corner"):
            wrong = _refused(exercise, attempt, [*outcomes, outcome])
            wrong.claim = f"With {outcome.case.what} it raised an error."
            raise wrong
    for _, corner in groupby(exercise.corners, lambda case: getattr(case, "what", 0) or id(case)):
        cases = list(corner)
        others = [case for case in exercise.corners if not any(case is each for each in cases)]
        with found("corner"):
            _go_through(exercise, attempt, cases, list(outcomes), others=others)
    return found


def _go_through(
    exercise: Exercise,
    attempt: Any,
    cases: Sequence,
    outcomes: list[Outcome],
    refused: list[Outcome] | None = None,
    others: Sequence = (),
) -> None:
    """Raise `Wrong` for the first case that fails; add the outcome of each case that counts."""
    for place, case in enumerate(cases, start=1):
        outcome = tried(exercise, attempt, case)
        error = outcome.failure and outcome.failure.error
        if error and refused is not None and getattr(case, "seldom", False):
            refused.append(outcome)
            continue
        outcomes.append(outcome)
        if not outcome.right:
            raise _refused(exercise, attempt, outcomes, (*cases[place:], *others))


def _refused(
    exercise: Exercise, attempt: Any, outcomes: list[Outcome], more: Sequence = ()
) -> Wrong:
    case = outcomes[-1].case
    wrong = refusal(exercise, attempt, outcomes, more)
    wrong.case = case
    return wrong


def tried(exercise: Exercise, attempt: Any, case: Any) -> Outcome:
    """Run one case of an exercise."""
    try:
        result = exercise.run(attempt, case)
    except Wrong as failure:
        failure.mistake = failure.mistake or _known(failure.error, exercise.errors)
        return Outcome(case, None, False, failure)
    return Outcome(case, result, exercise.same(exercise.expected(case), result))


def refusal(
    exercise: Exercise, attempt: Any, outcomes: list[Outcome], more: Sequence = ()
) -> Wrong:
    """Say what is wrong with the last outcome: the smallest failing input, the likely mistake.

    The cases in `more` are run as well, to tell apart mistakes that agree on the earlier ones.
    """
    failed, is_up = outcomes[-1], time_is_up(PATIENCE)
    if failed.failure and (failed.failure.mistake or failed.failure.timed_out):
        return failed.failure
    for case in more:
        if not is_up():
            try:
                outcomes.append(tried(exercise, attempt, case))
            except NotAttempted:
                continue
    if exercise.smaller:
        failed = _shrunk(exercise, attempt, failed)
        outcomes.append(failed)
    with warnings.catch_warnings():  # from references with mistakes in them
        warnings.simplefilter("ignore")
        words = likeliest(exercise, failed, outcomes)
    if failed.failure:
        failed.failure.mistake = words or usual(failed.failure.error) or in_common(outcomes)
        return failed.failure
    wrong = exercise.report(failed.case, exercise.expected(failed.case), failed.result)
    wrong.mistake = (
        words or _varies(exercise, attempt, failed) or wrong.mistake or in_common(outcomes)
    )
    return wrong


def likeliest(exercise: Exercise, failed: Outcome, outcomes: Sequence[Outcome]) -> str | None:
    """Name the one or two mistakes that explain most, or else a mutant's place.

    They must give the failed outcome and `ENOUGH` of the wrong ones, and must not spoil a right
    one: a single small case fits many mistakes.
    """
    right = [outcome for outcome in outcomes if outcome.right]
    wrong = [outcome for outcome in outcomes if not outcome.right]

    def score(explains: Callable[[Outcome], bool], every: bool) -> int:
        """Count the wrong outcomes that are explained; 0 for what cannot be the mistake."""
        if not all(map(explains, (failed, *(wrong if every else ()), *right))):
            return 0
        explained = sum(map(explains, wrong))
        return explained if explained >= ENOUGH * len(wrong) else 0

    def best(candidates: Iterable[tuple[tuple, Callable]], every: bool = False) -> tuple:
        is_up, found = time_is_up(FOR_PAIRS if every else PATIENCE), (0, ())
        for mistakes, explains in candidates:
            points = score(explains, every)
            if points > found[0]:
                found = points, mistakes
            if points == len(wrong) or is_up():
                break
        return found

    def edits(count: int) -> Iterator[tuple[tuple, Callable]]:
        for mistakes in combinations(exercise.mistakes, count):
            yield mistakes, lambda outcome, these=mistakes: exercise.explains(these, outcome)

    points, found = best(edits(1))
    if exercise.pairs and points < len(wrong) and failed.failure is None:
        pairs = edits(2)  # where one mistake explains some, it is one of the two
        more, two = best((each for each in pairs if not found or found[0] in each[0]), True)
        if more:
            found = two
    if not found and failed.failure is None:
        results = {}

        def of(mutant: Mutant) -> Callable[[Outcome], bool]:
            def explains(outcome: Outcome) -> bool:
                key = (mutant.function, id(outcome))
                if key not in results:
                    predicted = _result(mutant.function, outcome.case)
                    results[key] = exercise._agrees(predicted, outcome)
                return results[key]

            return explains

        _, found = best(((mutant,), of(mutant)) for mutant in exercise.program.mutants)
    return " And: ".join(dict.fromkeys(each.words for each in found)) or None


def usual(error: BaseException | None) -> str | None:
    """Say what an error usually comes from, if its type and text show it."""
    return _known(error, USUAL)


def _known(error: BaseException | None, patterns: Mapping[str, str]) -> str | None:
    """The words of the first pattern that is in "Type: text" of an error."""
    text = "" if error is None else f"{type(error).__name__}: {error}"
    return next((words for pattern, words in patterns.items() if re.search(pattern, text)), None)


def in_common(outcomes: Sequence[Outcome]) -> str | None:
    """Say what the cases that fail have in common, if their `what` shows it."""
    failed = [outcome for outcome in outcomes if not outcome.right]
    traits = [getattr(outcome.case, "what", "") for outcome in failed]
    if len(failed) < len(outcomes) and len({*traits}) == 1 and traits[0]:
        return f"The failing cases have this in common: {traits[0]}."
    return None


def _shrunk(exercise: Exercise, attempt: Any, failed: Outcome) -> Outcome:
    """The outcome of the smallest case that still fails, and in the same way."""

    def way(outcome: Outcome) -> Any:
        return outcome.failure and type(outcome.failure.error)

    def fails(case: Any) -> bool:
        try:
            outcome = tried(exercise, attempt, case)
        except NotAttempted:
            return False
        return not outcome.right and way(outcome) == way(failed)

    return tried(exercise, attempt, exercise.smaller(failed.case, fails))


def _varies(exercise: Exercise, attempt: Any, failed: Outcome) -> str | None:
    """Say so where the same call gives another result when it is made again."""
    try:
        again = exercise.run(attempt, failed.case)
        if exercise.same(failed.result, again):
            return None
    except (Wrong, NotAttempted):
        pass
    return (
        "The same call gave a different "
        "result the second time: something is random, kept from call "
        "to call, or never filled (`torch.empty`)."
    )


def _result(function: Callable, case: Any, raises: bool = False) -> Any:
    """The result of a reference for a case; an error is a result too, unless it `raises`."""
    try:
        return function(case)
    except Exception as error:
        if raises:
            raise
        return Raised(error)


def shrink(text: str, still_fails: Callable[[str], bool], seconds: float = 2.0) -> str:
    """A text, made of parts of `text`, that fails too and from which no character can be dropped.

    It is greedy: words go first, then ever smaller stretches. When time runs out, the shortest
    text so far is returned.
    """
    is_up = time_is_up(seconds)

    def joined_fails(parts: list[str]) -> bool:
        return still_fails("".join(parts))

    words = _reduced(re.findall(r"\s*\S+|\s+", text), joined_fails, is_up)
    return "".join(_reduced(list("".join(words)), joined_fails, is_up))


def shrink_list(items: list, still_fails: Callable[[list], bool], seconds: float = 1.0) -> list:
    """A list, made of some of the items, that fails too and from which none can be dropped."""
    return _reduced(items, still_fails, time_is_up(seconds))


def _reduced(parts: list, still_fails: Callable[[list], bool], is_up: Callable[[], bool]) -> list:
    """The parts that are left when stretches of them are dropped, long ones first."""
    size = len(parts)
    while size and not is_up():
        dropped, at = False, 0
        step = 1 if len(parts) <= FEW else size
        while at < len(parts) and not is_up():
            rest = parts[:at] + parts[at + size :]
            if still_fails(rest):
                parts, dropped = rest, True
            else:
                at += step
        size = min(len(parts), size if dropped and size < FEW else size // 2)
    return parts
