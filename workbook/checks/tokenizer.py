"""The check of the class `Tokenizer`: encode, decode, encode_iterable, from_files."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from workbook.checks import tokenizer_cases as cases
from workbook.checks.engine import shrink, shrink_list
from workbook.checks.likeliest import likeliest
from workbook.checks.pretoken_variants import PRETOKENS
from workbook.checks.special_variants import IDS, SPECIALS
from workbook.checks.stream_variants import DECODING, STREAM
from workbook.checks.text_variants import READ, Variant
from workbook.checks.tokenizer_answers import (
    METHOD,
    Learner,
    Malformed,
    Outcome,
    described,
    readable,
    run,
    same,
)
from workbook.checks.tokenizer_files import check_files
from workbook.checks.tokenizer_reference import BYTES_FIRST, SHUFFLED, Ids, Pieces, Text, predicted
from workbook.checks.tokenizer_streams import SLOW, check_lazy, check_speed
from workbook.checks.tokenizer_symptoms import symptom
from workbook.checks.verdicts import NotAttempted, Words, Wrong, expect_class, is_stub
from workbook.checks.word_variants import WORDS

SIGNATURE = "class Tokenizer with Tokenizer(vocab, merges, special_tokens=None)"
NO_LIST = "It fails where special_tokens is None, which stands for no special tokens."
A_LIST = "It fails where special_tokens, the third argument of the class, is given."
ITERABLE = (
    "The argument may be any iterable of strings, not only a file or a list: loop over it, and do "
    "not ask for its length, an item or `read`."
)
PATIENCE = 3.0  # seconds spent on more inputs once one has failed
LINE_ENDS = Variant("read", READ[0].function, r"The line ends \r\n became \n: they are text.")
VARIANTS: dict[type, tuple[Variant, ...]] = {
    Text: (*WORDS, *SPECIALS, *IDS, *PRETOKENS, LINE_ENDS, *READ[2:]),
    Ids: DECODING,
    Pieces: STREAM,
}


def tokenizer(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the smallest input that fails."""
    expect_class(attempt, SIGNATURE)
    if "__init__" in vars(attempt) and is_stub(attempt.__init__):
        raise NotAttempted("`__init__` is still to write.")
    learner = Learner(attempt)
    notes: list[str] = []
    passed, missing, unwritten = [], [], set()
    for name, check in (
        ("encode", _check_encode),
        ("decode", _check_decode),
        ("encode_iterable", _check_stream),
        ("from_files", lambda learner: notes.extend(check_files(learner))),
    ):
        try:
            if is_stub(getattr(attempt, name, ...)) or not callable(getattr(attempt, name, None)):
                raise NotAttempted
            check(learner)
            passed.append(f"`{name}`")
        except NotAttempted as stub:
            missing.append(str(stub) or f"`{name}` is still to write.")
            unwritten.add(name)
        except Wrong:
            if "encode" not in unwritten:  # which the others may call
                raise
    if missing:
        right = [f"{', '.join(passed)}: passed."] if passed else []
        raise NotAttempted(" ".join([*right, *dict.fromkeys(missing)]))
    for argument in sorted(learner.changed):
        notes.append(
            f"The constructor changed the {argument} that it was given: make a copy, so that a "
            "second tokenizer of the same vocabulary is not surprised."
        )
    praise = "Every text is encoded and decoded like the reference does it, in pieces too."
    return " ".join([praise, *(["Worth knowing:"] if notes else []), *notes])


def _check_encode(learner: Learner) -> None:
    _check_cases(learner, cases.texts())
    _check_instances(learner)
    check_speed(learner, "encode")


def _check_decode(learner: Learner) -> None:
    _check_cases(learner, cases.id_lists())


def _check_stream(learner: Learner) -> None:
    _check_cases(learner, cases.streams())
    check_speed(learner, "encode_iterable")
    _check_twice(learner)
    check_lazy(learner)


def _check_twice(learner: Learner) -> None:
    """Raise `Wrong` where a second stream knows the first one."""
    given = Pieces(cases.setup(), ("the c", "at"))
    tokenizer = learner.make(given.setup)
    run(tokenizer, given)
    got = run(tokenizer, given)
    if got != predicted(given):
        raise Wrong(
            "The second `encode_iterable` of a tokenizer differs from the first.",
            given=described(given),
            expected=readable(predicted(given), given.setup),
            got=readable(got, given.setup),
            mistake="What was kept back is still there: keep it in a local variable, not on self.",
        )


def _check_cases(learner: Learner, inputs: tuple[Text | Pieces | Ids, ...]) -> None:
    """Raise `Wrong` for the first input that fails, in its smallest form."""
    outcomes: list[Outcome] = []
    for given in inputs:
        outcomes.append(learner.outcome(given))
        if not outcomes[-1].right:
            _report(learner, outcomes, inputs)


def _report(
    learner: Learner, outcomes: list[Outcome], inputs: tuple[Text | Pieces | Ids, ...]
) -> None:
    failed = outcomes[-1]
    if not failed.failure:
        _check_instances(learner)
    if failed.result != "endless":
        outcomes = [*outcomes, *_more(learner, inputs[len(outcomes) :])]
    variants = VARIANTS[type(failed.given)]
    pairs = not failed.failure and len(str(failed.given[1])) < 200
    best = likeliest(variants, failed, outcomes, _fits, pairs)
    if failed.result != "endless":
        failed = _smallest(learner, failed, best)
    words = " And: ".join(variant.mistake for variant in best)
    if failed.failure:
        failed.failure.mistake = words or _about_error(failed, outcomes)
        raise failed.failure
    right, got = predicted(failed.given), failed.result
    if not isinstance(failed.given, Ids):
        right, got = (readable(ids, failed.given.setup) for ids in (right, got))
    raise Wrong(
        f"`{METHOD[type(failed.given)]}` does not give the expected result.",
        given=described(failed.given),
        expected=right,
        got=got,
        mistake=words or symptom(failed.given, failed.result),
    )


def _fits(variants: tuple[Variant, ...], outcome: Outcome) -> bool:
    return same(predicted(outcome.given, variants), outcome.result)


def _more(learner: Learner, inputs: Iterable[Text | Pieces | Ids]) -> list[Outcome]:
    """The outcomes of the inputs to come, to tell mistakes apart that agree on one."""
    until, more = time.monotonic() + PATIENCE, []
    for given in inputs:
        if time.monotonic() < until:
            more.append(learner.outcome(given, seconds=1.0))
    return more


def _about_error(failed: Outcome, outcomes: list[Outcome]) -> str | None:
    """What the inputs that raise errors have in common, and no other has."""
    if failed.result == "endless":
        streamed = isinstance(failed.given, Pieces) and len(failed.given.pieces) > 2
        return SLOW["encode_iterable"] if streamed else failed.failure.mistake
    if isinstance(failed.given, Pieces) and ("Attribute" in failed.got or "Type" in failed.got):
        return ITERABLE
    for condition, words in (
        (lambda given: given.setup.special_tokens is None, NO_LIST),
        (lambda given: not given.setup.special_tokens, "It fails without special tokens."),
        (lambda given: given.setup.special_tokens is not None, A_LIST),
        (lambda given: bool(given.setup.special_tokens), "It fails with special tokens."),
        (
            lambda given: set(given.setup.specials()) > set(given.setup.known),
            "It fails where the vocabulary lacks a special token: append it.",
        ),
        (
            lambda given: given.setup.layout != BYTES_FIRST,
            "It fails where the vocabulary is in another order: byte b need not have the id b.",
        ),
        (
            lambda given: not isinstance(given, Ids) and not "".join(given[1]).isascii(),
            "It fails on characters outside ASCII, whose UTF-8 has several bytes.",
        ),
    ):
        if all(condition(outcome.given) == bool(outcome.failure) for outcome in outcomes):
            return words
    if all(outcome.failure for outcome in outcomes):
        return None  # it fails whatever the input is
    empty = not "".join(map(str, failed.given[1]))
    return "It fails on an empty text, or on an empty part of one." if empty else None


def _smallest(learner: Learner, failed: Outcome, best: tuple[Variant, ...]) -> Outcome:
    """The smallest input, found within some seconds, that fails in the same way."""
    smallest = failed

    def still_fails(given: Text | Pieces | Ids) -> bool:
        nonlocal smallest
        try:
            outcome = learner.outcome(given, seconds=1.0)
        except (Malformed, NotAttempted):
            return False
        alike = bool(outcome.failure) == bool(failed.failure)
        if outcome.right or not alike or (best and not _fits(best, outcome)):
            return False
        smallest = outcome
        return True

    given = failed.given
    if isinstance(given, Ids):
        shrink_list(list(given.ids), lambda ids: still_fails(given._replace(ids=tuple(ids))))
        return smallest
    if isinstance(given, Text):
        shrink(given.text, lambda text: still_fails(given._replace(text=text)))
    else:
        _shrink_pieces(given, still_fails)
    _simplify(lambda: smallest.given, still_fails)
    return smallest


def _shrink_pieces(given: Pieces, still_fails: Callable[[Pieces], bool]) -> None:
    pieces = shrink_list(
        list(given.pieces), lambda pieces: still_fails(given._replace(pieces=tuple(pieces)))
    )
    for at in range(1, len(pieces)):
        two = ["".join(pieces[:at]), "".join(pieces[at:])]
        if len(pieces) > 2 and still_fails(given._replace(pieces=tuple(two))):
            pieces = two
            break
    for at in range(len(pieces)):
        left, right = pieces[:at], pieces[at + 1 :]
        pieces[at] = shrink(
            pieces[at],
            lambda text, left=left, right=right: still_fails(
                given._replace(pieces=(*left, text, *right))
            ),
            seconds=1.0,
        )


def _simplify(given: Callable[[], Text | Pieces], still_fails: Callable) -> None:
    """Take from the tokenizer what the failure does not need, such as most of its merges."""

    def try_with(**changes) -> bool:
        now = given()
        return still_fails(now._replace(setup=now.setup._replace(**changes)))

    data = "".join(given()[1]).encode()
    try_with(merges=tuple(pair for pair in given().setup.merges if b"".join(pair) in data))
    shrink_list(list(given().setup.merges), lambda merges: try_with(merges=tuple(merges)))
    try_with(layout=BYTES_FIRST)
    if not try_with(special_tokens=None, known=()):
        for token in given().setup.specials():
            left = tuple(other for other in given().setup.specials() if other != token)
            try_with(special_tokens=left, known=tuple(t for t in given().setup.known if t != token))


def _check_instances(learner: Learner) -> None:
    """Raise `Wrong` where a tokenizer is disturbed by another one, or by an earlier call."""
    here = cases.fresh(SHUFFLED)
    there = here._replace(setup=cases.setup(BYTES_FIRST))
    one = learner.make(here.setup)
    if run(one, here) != predicted(here):
        return  # it is wrong for another reason
    other = learner.make(there.setup)
    for tokenizer, given, wrong in ((other, there, here), (one, here, there)):
        got = run(tokenizer, given)
        if got == predicted(wrong) or (tokenizer is one and got != predicted(here)):
            raise Wrong(
                "Two tokenizers, made of different vocabularies, disturb each other.",
                given=Words(f"{described(given)}, used in turn with another one"),
                expected=readable(predicted(given), given.setup),
                got=readable(got, given.setup),
                mistake="Something is shared between instances or calls: a class attribute, a "
                "global, a default argument such as `cache={}`. Keep it on `self`.",
            )
