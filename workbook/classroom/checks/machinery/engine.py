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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from types import CodeType
from typing import Any, NamedTuple

from workbook.classroom.checks.machinery.mutants import mutated
from workbook.classroom.checks.machinery.timeout import time_is_up
from workbook.classroom.checks.machinery.verdicts import (
    REFUSED,
    Findings,
    NotAttempted,
    Wrong,
    is_refusal,
    none_in,
)

CAUSE_SECONDS = 2.0  # of processor time, for more cases once one failed, and for mutants
SHRINK_SECONDS = 1.0  # of processor time, for each way to make a failing case smaller
ENOUGH = 1 / 4  # of the wrong outcomes must come from a mistake that is named
BORDER = "\n\n#\n\n"  # between the functions of a program
# Errors about sizes that do not match: torch, numpy and einops differ in their types and words.
ABOUT_SIZES = re.compile(
    "shape|size(?!.* iteration)|dimension|broadcast|expand|range in self", re.I
)
SIZES = re.compile(r"\((\d.*?)\)")
OF_PYTHON = "(list|tuple|dict|Counter|set|str|bytes|int|float|generator)"
NO_GROUPS = (
    "Begin `__init__` with `super().__init__(params, defaults)`, where `defaults` is a dict of the "
    "settings: it makes `param_groups` and `state`."
)
OF_NOTHING = "This is None: a function without a `return` gives that."
# By a pattern for the start of an error's "Type: text", what it usually comes from.
USUAL = {
    r"^SystemExit": "`exit()` and `quit()` end Python itself: a function ends with `return`.",
    r"^OSError: \[Errno 27\]": "It writes more than a check allows: is there a `print` "
    "in an endless loop?",
    r"^(NameError|UnboundLocalError)": "This name has no value yet: is a line missing above, or "
    "is the name misspelt?",
    "(?<!=)NoneType": OF_NOTHING,
    "changed size during iteration": "A loop goes over a dict or set while its body adds or "
    "removes keys: loop over `list(...)` of it.",
    r"no attribute '(param_groups|defaults)'|'params' and 'defaults'": NO_GROUPS,
    "'tuple' object has no attribute 'encode'": "`findall` gives tuples if a pattern has several "
    "groups, `(...)`: write `(?:...)`.",
    "'str' object has no attribute 'decode'": "A str is text already: only bytes are decoded.",
    "'bytes' object has no attribute 'encode'": "These are bytes already: only a str is encoded.",
    r"(not|') ?(builtin_function_or_method|method|function)\b": "A function is not its result: "
    "call it, with parentheses.",
    "object is not callable": "What stands before the parentheses is no function: `[...]` takes an "
    "item, and a name may hide a function of the same name.",
    f"Error: '{OF_PYTHON}' object has|is not \\w+able$|supported (op|be)|has no len": "A value "
    "here is of another type than the line expects. If it is a list, loop over its items.",
    r"^AttributeError: (module|'Tensor')": "torch and the modules have no such name: look it up.",
    r"^AttributeError: '\w+' object has no attribute": "Nothing gave this attribute a value: is a "
    "line of `__init__` missing, or is the name misspelt?",
    r"out=NoneType|keyword argument 'axis'|numpy\(\) on Tensor": "NumPy's functions are no good "
    "for tensors: use torch's, such as `torch.exp(x)` and `x.amax(dim)`.",
    r"bad escape \\p": r"`re` does not know `\p`: import `regex`, and call `regex.finditer`.",
    r"__init__\(\) should return None": "`__init__` sets attributes, and has no `return`.",
    r"__init__\(\) takes 1 positional": "The class has no `__init__` for them: write one.",
    r"takes \d+ positional": "More arguments than parameters: is `self` the first of a method's?",
    "same dtype|Boolean-type|supports boolean": "Two types meet that do not fit: `.to(x.dtype)` "
    "converts numbers, and a mask is made with `dtype=torch.bool`.",
    r"leaf Variable|view of a leaf": "Autograd tracks the parameter. Change it without autograd: "
    "through `p.data`, or with the whole step under `torch.no_grad()`.",
    "'float' object cannot be interpreted|ind.* must be integers|must be tuple of ints": "Sizes, "
    "counts and indices are ints, not floats or lists: `//` gives one, and `/` a float.",
    r"must be Tensor, not (int|float)": "Torch's functions take tensors: `math` has some for "
    "numbers.",
    "used as indices must be|dtype int.* for index": "Indices are tensors of integers: are two "
    "arguments swapped, or is `.long()` missing?",
    r"values to unpack.*\bfor\b": "What is taken apart here has more parts, or fewer: print it. "
    "The items of a dict are its keys; `.items()` gives keys with values.",
    "values to unpack": "What is taken apart here has more parts, or fewer: print it.",
    "^ValueError: .* not in (list|tuple)": "`index` finds only what is there: ask `in` first.",
    "of 'super' object needs": "`super` is called, too: `super().__init__()`.",
    r"'str' object cannot be interpreted as an integer|without an encoding": "A str is made of "
    "characters: `text.encode()` gives its bytes.",
    r"^IndexError: .*index .*out of (range|bounds)": "An index is past the end: print it and the "
    "length.",
    r"^(Runtime|Value|Index|Axis|Einops)Error: .*(shape|size|dimension|broadcast|expand)": "The "
    "shapes in this line do not fit: print them.",
    r"^KeyError": "This key is not in the dict: was it ever added?",
    r"^TypeError: .*(bytes-like|(string|bytes) pattern|expected str|concat)": "This line mixes two "
    "types, such as text and bytes, or two arguments are swapped: print the types.",
    r"^UnicodeDecodeError": "These bytes begin or end in the middle of a character: cut the text "
    "elsewhere, and keep tokens as bytes.",
    r"^TypeError: argument of type": "`in` looks into a container, and this is none: print it.",
    r"^TypeError: .*argument '.*must be": "An argument of this call has the wrong type: print it.",
    r"^TypeError: .*argument": "This function takes different arguments: compare names and order.",
    r"(a|Boolean value of) Tensor with|only one element": "`item()`, `int()`, `if` and the "
    "functions of `math` take a tensor with a single element: print its shape. Torch's functions "
    "take all elements at once, and `is not None` asks whether there is a tensor.",
}


VARIES = (
    "The same call gave a different result the second time: something is random, kept from call to "
    "call, or never filled (`torch.empty`)."
)


class Mistake(NamedTuple):
    """A sentence for a learner whose code does what the reference does after these edits."""

    words: str
    edits: tuple[tuple[str, str], ...]  # (a piece of the reference's source, what replaces it)


def mistake(words: str, *edits: str) -> Mistake:
    """Make a mistake from its words and "old", "new", "old", "new", ..."""
    return Mistake(words, tuple(zip(edits[::2], edits[1::2], strict=True)))


def instead_of(
    piece: str, codes: Mapping[str, str | Iterable[str]], rule: str = ""
) -> tuple[Mistake, ...]:
    """Make the mistakes in one piece of the source: `codes` has what replaces it, by the words.

    Several pieces of code may have the same words. All words begin with the `rule`.
    """
    return tuple(
        mistake(rule + words, piece, code)
        for words, several in codes.items()
        for code in ([several] if isinstance(several, str) else several)
    )


def is_about_sizes(error: BaseException | None) -> bool:
    """Whether an error is about sizes that do not match."""
    is_of_tensors = isinstance(error, RuntimeError | ValueError | IndexError)
    return is_of_tensors and bool(ABOUT_SIZES.search(str(error)))


def of_one_kind(one: BaseException, other: BaseException) -> bool:
    """Tell whether two errors are of one kind: about sizes, the same slip, or of one type."""
    if is_about_sizes(one):
        # The sizes that they name, as in "(1x3 and 2x3)", tell one slip from another.
        sizes = [sorted(SIZES.findall(str(error))) for error in (one, other)]
        return is_about_sizes(other) and sizes[0] == sizes[1]
    if isinstance(one, KeyError | TypeError | AttributeError | NameError):  # as any slip may raise
        return type(one) is type(other) and one.args == other.args
    return type(one) is type(other)


class Program:
    """A right solution as source that can be edited: functions, of which the last is called.

    A class will do, too.

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
        self.entry = functions[-1].__name__
        self.call = call
        modules = [vars(inspect.getmodule(function)) for function in functions]
        self.globals = {name: value for names in modules for name, value in names.items()}
        self.source = BORDER.join(textwrap.dedent(inspect.getsource(f)) for f in functions)
        self.places = places or dict(re.findall(r"([^\s#].*)  # (.+)", self.source))

    @lru_cache(maxsize=10_000)  # noqa: B019 - programs are few and stay
    def edited(self, mistake: Mistake | None = None) -> Callable:
        """The function, with this mistake in it if one is given."""
        source = self.source
        edits = mistake.edits if mistake else ()
        for old, new in edits:
            assert source.count(old) == 1, f"not exactly once in the reference: {old}"
            line = next(line for line in source.splitlines() if old.splitlines()[0] in line)
            indent = line[: len(line) - len(line.lstrip())]
            source = source.replace(old, new.replace("\n", f"\n{indent}"))
        return self._compiled(source.split(BORDER))

    @cached_property
    def mutants(self) -> tuple[tuple[str, Callable], ...]:
        """All programs that differ from this one by one small change, in a line with a place.

        Before each function stand the words for a learner whose code does the same.
        """
        parts = self.source.split(BORDER)
        mutants = []
        for number, part in enumerate(parts):
            for what, line, tree in mutated(ast.parse(part)):
                code = part.splitlines()[line - 1]
                place = next((words for piece, words in self.places.items() if piece in code), None)
                if place:
                    function = self._compiled([*parts[:number], tree, *parts[number + 1 :]])
                    mutants.append((f"Look at {place}: {what}.", function))
        return tuple(mutants)

    def _compiled(self, parts: Sequence[str | ast.Module]) -> Callable:
        names = dict(self.globals)
        for part in parts:
            exec(_code(part), names)
        return names[self.entry] if self.call is None else partial(self.call, names[self.entry])


@lru_cache(maxsize=10_000)  # edits of one function leave the others as they are
def _code(source: str | ast.Module) -> CodeType:
    return compile(source, "<reference>", "exec")


def hurry() -> None:
    """Look for no likely mistake in this process, where nobody is told it."""
    global CAUSE_SECONDS
    CAUSE_SECONDS = 0.0


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

    @lru_cache(maxsize=100_000)  # noqa: B019 - exercises are few and stay
    def expected(self, case: Any, program: Callable | None = None) -> Any:
        """The reference's result for a case, or that of a version of it with a mistake."""
        return (program or self.program.edited())(case)

    def explains(self, program: Callable, outcome: "Outcome") -> bool:
        """Tell whether a version of the reference with a mistake gives this outcome."""
        error = outcome.failure and outcome.failure.error
        try:
            result = self.expected(outcome.case, program)
        except Exception as raised:
            return error is not None and of_one_kind(raised, error)
        return outcome.failure is None and result is not None and self.same(result, outcome.result)


class Outcome(NamedTuple):
    """What became of one case: a result, or a failure in words."""

    case: Any
    result: Any
    right: bool
    failure: Wrong | None = None


def judge(exercise: Exercise, attempt: Any) -> Findings:
    """Run an attempt on all cases; collect what it gets wrong, with the likely mistake.

    The cases of ordinary use come first, and the first that fails is reported. If none does, the
    corners follow, and of those with the same `what` the first that fails. A case of ordinary use
    that is `seldom` met, such as attention without a mask, becomes a corner if it gives an error,
    or a result of another shape, which soon leads to one.
    Raises: NotAttempted.
    """
    findings = Findings()
    outcomes = list[Outcome]()
    seldom = list[Outcome]()
    with findings("use"):
        for place, case in enumerate(exercise.cases, start=1):
            outcome = tried(exercise, attempt, case)
            if getattr(case, "seldom", False) and _is_loud(exercise, outcome):
                seldom = seldom or [case]  # one of them stands for all
            else:
                outcomes.append(outcome)
                more = exercise.cases[place:]
                _expect_right(exercise, attempt, outcomes, more, exercise.corners)
    if findings:
        return findings
    for case in (*seldom, *exercise.corners):
        what = getattr(case, "what", "")
        if not (what and any(wrong.case.what == what for wrong in findings.wrongs)):
            others = [other for other in exercise.corners if other is not case]
            with findings("corner"):
                with_corner = [*outcomes, tried(exercise, attempt, case)]
                _expect_right(exercise, attempt, with_corner, others)
    return findings


def _is_loud(exercise: Exercise, outcome: Outcome) -> bool:
    """Whether a case fails with an error, or with a result of another shape."""
    if outcome.failure:
        return outcome.failure.error is not None
    expected = exercise.expected(outcome.case)
    return getattr(expected, "shape", None) != getattr(outcome.result, "shape", None)


def _expect_right(
    exercise: Exercise,
    attempt: Any,
    outcomes: list[Outcome],
    more: Sequence[Any],
    corners: Iterable[Any] = (),
) -> None:
    """Raise `Wrong` if the last outcome is: the smallest failing input, the likely mistake.

    The cases in `more` are run as well, to tell apart mistakes that agree on the earlier ones. So
    are `corners`, of which a right one rules no mistake out.
    """
    failed = outcomes[-1]
    is_up = time_is_up(CAUSE_SECONDS)
    if failed.right:
        return
    wrong = failed.failure
    case = failed.case
    if not (wrong and (wrong.mistake or wrong.timed_out)):
        outcomes = list(outcomes)
        for other in (*more, *corners):
            if is_up():
                break
            with suppress(NotAttempted):
                outcome = tried(exercise, attempt, other)
                if other in more or not outcome.right:
                    outcomes.append(outcome)
        if exercise.smaller:
            failed = _shrunk(exercise, attempt, failed)
            outcomes.append(failed)
        with warnings.catch_warnings():  # from references with mistakes in them
            warnings.simplefilter("ignore")
            words = likeliest(exercise, failed, outcomes)
        if wrong := failed.failure:
            wrong.mistake = words or usual(wrong.error) or in_common(outcomes)
        else:
            wrong = exercise.report(failed.case, exercise.expected(failed.case), failed.result)
            varies = VARIES if _varies(exercise, attempt, failed) else None
            given_back = _given_back(exercise, outcomes)
            wrong.mistake = given_back or words or varies or wrong.mistake or in_common(outcomes)
    wrong.case = case
    raise wrong


def tried(exercise: Exercise, attempt: Any, case: Any) -> Outcome:
    """Run one case of an exercise."""
    try:
        result = exercise.run(attempt, case)
    except Wrong as failure:
        failure.mistake = failure.mistake or usual(failure.error, exercise.errors)
        return Outcome(case, None, False, failure)
    return Outcome(case, result, exercise.same(exercise.expected(case), result))


def likeliest(exercise: Exercise, failed: Outcome, outcomes: Sequence[Outcome]) -> str | None:
    """Name the mistake that explains most, or else the place of a mutant that does.

    It must give the failed outcome and `ENOUGH` of the wrong ones, and must not spoil a right
    one: a single small case fits many mistakes.
    """
    right = [outcome for outcome in outcomes if outcome.right]
    wrong = [outcome for outcome in outcomes if not outcome.right]
    catalogue = ((known.words, exercise.program.edited(known)) for known in exercise.mistakes)
    likely = _explaining(exercise, catalogue, [failed, *right], wrong)
    if likely or failed.failure:
        return likely
    return _explaining(exercise, exercise.program.mutants, [failed, *right], wrong)


def _explaining(
    exercise: Exercise, versions: Iterable, needed: list[Outcome], wrong: list[Outcome]
) -> str | None:
    """The words of the version that gives all that is needed, and the most of what is wrong."""
    is_up = time_is_up(CAUSE_SECONDS)
    likely = None
    most = 0
    for words, program in versions:
        explains = partial(exercise.explains, program)
        if all(map(explains, needed)):
            explained = sum(map(explains, wrong))
            if explained > most and explained >= ENOUGH * len(wrong):
                likely = words
                most = explained
        if most == len(wrong) or is_up():
            break
    return likely


def usual(error: BaseException | None, patterns: Mapping[str, str] = USUAL) -> str | None:
    """Say what an error usually comes from: by the first pattern that is in its "Type: text".

    Behind the text stands the name of what is None in the line, if the error is about None.
    """
    if is_refusal(error):  # the words of a learner's message prove nothing
        return REFUSED
    text = "" if error is None else f"{type(error).__name__}: {error}"
    nothing = none_in(error) if "NoneType" in text else ""
    text += f" (`{nothing}`)"
    found = next((words for pattern, words in patterns.items() if re.search(pattern, text)), None)
    if nothing and found == OF_NOTHING:
        return (
            f"`{nothing}` is None here: nothing was passed or assigned, or a `return` is missing."
        )
    return found


def in_common(outcomes: Sequence[Outcome]) -> str | None:
    """Say what the cases that fail have in common, if their `what` shows it."""
    traits = {getattr(outcome.case, "what", "") for outcome in outcomes if not outcome.right}
    if len(traits) == 1 and traits != {""} and any(outcome.right for outcome in outcomes):
        return f"The failing cases have this in common: {traits.pop()}."
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


def _given_back(exercise: Exercise, outcomes: Sequence[Outcome]) -> str | None:
    """Say so if each wrong result is an input or a weight of its case, unchanged."""
    wrong = [(getattr(o.case, "high", {}), o.result) for o in outcomes if not o.right]
    for name in wrong[0][0]:
        pairs = [(inputs.get(name), result) for inputs, result in wrong]
        tensors = all(hasattr(one, "shape") for pair in pairs for one in pair)
        if tensors and all(exercise.same(x, result) for x, result in pairs):
            return f"`{name}` comes back as it was: return what you compute from it."
    return None


def _varies(exercise: Exercise, attempt: Any, failed: Outcome) -> bool:
    """Whether the same call gives another result when it is made again."""
    try:
        again = exercise.run(attempt, failed.case)
    except (Wrong, NotAttempted):
        return True
    comparable = exercise.same(failed.result, failed.result)  # not if it is of another type
    return comparable and not exercise.same(failed.result, again)


def shrink(text: str, still_fails: Callable[[str], bool]) -> str:
    """A text, made of parts of `text`, that fails too: first words are dropped, then characters.

    When time runs out, the shortest text so far is returned.
    """
    parts = re.findall(r"\s*\S+|\s+", text)
    for _ in range(2):
        parts = shrink_list(parts, lambda some: still_fails("".join(some)))
        text = "".join(parts)
        parts = list(text)
    return text


def shrink_list(items: list, still_fails: Callable[[list], bool]) -> list:
    """A list, made of some of the items, that fails too and from which none can be dropped.

    It is greedy: long stretches are dropped first, then ever shorter ones.
    """
    size = len(items)
    is_up = time_is_up(SHRINK_SECONDS)
    while size and not is_up():
        before = len(items)
        at = 0
        while at < len(items) and not is_up():
            rest = items[:at] + items[at + size :]
            if still_fails(rest):
                items = rest
            else:
                at += size
        size = min(len(items), size) if len(items) < before else size // 2
    return items
