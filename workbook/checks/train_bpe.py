"""The check of `train_bpe`: texts to train on, and the mistake that explains what went wrong."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbook.checks import bpe_cases, bpe_variants
from workbook.checks.bpe_answers import answer, check_vocab, described
from workbook.checks.bpe_explain import Explanation, Outcome, explain, predicted
from workbook.checks.bpe_reference import Input, Pair, expected
from workbook.checks.bpe_symptoms import first_difference
from workbook.checks.engine import shrink
from workbook.checks.verdicts import NotAttempted, Words, Wrong, call, expect_function

SIGNATURE = "train_bpe(input_path, vocab_size, special_tokens) -> (vocab, merges)"
PATIENCE = 3.0  # seconds spent on more inputs once one has failed
QUICK = 5.0  # seconds that a short text may take
LONG = 20.0  # seconds that a long text may take


class Learner:
    """The learner's function, with the text in a new file at each call."""

    def __init__(self, attempt: Callable, folder: str):
        self.attempt = attempt
        self.folder = Path(folder)
        self.calls = 0

    def __call__(self, given: Input, seconds: float, shown: Words | None = None) -> Any:
        """What it returns. Raises `Wrong` or `NotAttempted` like `base.call`."""
        self.calls += 1
        path = self.folder / f"text{self.calls}.txt"
        path.write_bytes(given.data)
        arguments = str(path), given.vocab_size, list(given.special_tokens)
        return call(self.attempt, *arguments, seconds=seconds, given=shown or described(given))

    def outcome(self, given: Input, seconds: float | None = None) -> Outcome:
        """What becomes of an input; a result in a wrong form is raised at once."""
        try:
            result = self(given, seconds or QUICK)
        except Wrong as failure:
            return Outcome(given, "endless" if failure.timed_out else "error", failure)
        vocab, merges = answer(result, given)
        if merges == expected(given):
            try:
                check_vocab(vocab, merges, given)
            except Wrong as failure:
                return Outcome(given, merges, failure)
        return Outcome(given, merges)


def train_bpe(attempt: Any, part: str | None = None) -> str:
    """Praise for a right `train_bpe`; raises `Wrong` with the smallest input that fails."""
    expect_function(attempt, SIGNATURE)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        learner = Learner(attempt, folder)
        outcomes: list[Outcome] = []
        for given in (*bpe_cases.SMALL, *bpe_cases.larger()):
            outcomes.append(learner.outcome(given))
            if not outcomes[-1].right:
                _report(learner, outcomes)
        _check_long_texts(learner)
        notes = _notes(learner)
    return " ".join(["Merges and vocabulary agree with the reference on every text.", *notes])


def _report(learner: Learner, outcomes: list[Outcome]) -> None:
    """Raise what is wrong with the last outcome, in its smallest form, with the likely mistake."""
    failed = outcomes[-1]
    _check_state(learner, outcomes[0], failed)
    if failed.failure and isinstance(failed.merges, list):
        raise failed.failure
    if failed.merges != "endless":
        outcomes = [*outcomes, *_more(learner, outcomes)]
    explanation = explain(failed, outcomes)
    if failed.merges != "endless":
        failed = _smallest(learner, failed, explanation)
    if failed.failure:
        failed.failure.mistake = explanation.words(failed) or failed.failure.mistake
        raise failed.failure
    raise Wrong(
        _claim(failed),
        given=described(failed.given),
        expected=expected(failed.given),
        got=failed.merges,
        mistake=explanation.words(failed),
    )


def _kind(outcome: Outcome) -> str:
    """In which of a few ways an outcome is wrong, so that a smaller one is wrong in the same."""
    if isinstance(outcome.merges, str):
        return outcome.merges
    if outcome.merges == expected(outcome.given):
        return "right"
    claim = _claim(outcome)
    return "pair" if claim.startswith("Merge") else claim


def _claim(failed: Outcome) -> str:
    """Where the merges begin to be wrong."""
    right = expected(failed.given)
    at = first_difference(right, failed.merges)
    if at == len(right):
        return "There are too many merges."
    if at == len(failed.merges):
        return "There are too few merges."
    return f"Merge {at + 1} is not the expected one."


def _check_state(learner: Learner, first: Outcome, failed: Outcome) -> None:
    """Raise `Wrong` where a call is not what it was before, or knows an earlier text."""
    if "endless" in (first.merges, failed.merges):
        return
    again, other = learner.outcome(first.given), learner.outcome(bpe_cases.OTHER)
    if again.merges != first.merges or again.right != first.right:
        claim, shown = "The same call gave another result the second time.", again
    elif _remembers(other, first):
        claim, shown = "There are merges of bytes that only an earlier text holds.", other
    elif learner.outcome(failed.given).merges != failed.merges:
        claim, shown = "The same call gave another result the second time.", failed
    else:
        return
    raise Wrong(
        claim,
        given=described(shown.given),
        expected=expected(shown.given),
        got=shown.got,
        mistake="Something is kept from call to call: a global, a default argument such as "
        "`merges=[]`, or a cache; or chance decides between ties. Start every call with fresh "
        "lists and dicts.",
    )


def _remembers(outcome: Outcome, earlier: Outcome) -> bool:
    """True where a merge comes from the earlier text and not from its own."""
    if isinstance(outcome.merges, str):
        return False
    tokens = [left + right for left, right in outcome.merges]
    return any(t in earlier.given.data and t not in outcome.given.data for t in tokens)


def _more(learner: Learner, outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes of the small inputs to come, to tell mistakes apart that agree on one."""
    until, more = time.monotonic() + PATIENCE, []
    for given in bpe_cases.SMALL[len(outcomes) :]:
        if time.monotonic() < until:
            more.append(learner.outcome(given, seconds=1.0))
    return more


def _smallest(learner: Learner, failed: Outcome, explanation: Explanation) -> Outcome:
    """The smallest input, found within some seconds, that fails in the same way."""
    best, kind = failed, _kind(failed)

    def still_fails(given: Input) -> bool:
        nonlocal best
        try:
            outcome = learner.outcome(given, seconds=1.0)
        except Wrong:
            return False
        if _kind(outcome) != kind or not explanation.fits(outcome):
            return False
        best = outcome
        return True

    def fewer_merges() -> None:
        given = best.given
        any(still_fails(given.with_merges(number)) for number in range(1, given.num_merges))

    fewer_merges()
    shrink(
        failed.given.data.decode(),
        lambda text: bool(text) and still_fails(best.given._replace(data=text.encode())),
    )
    fewer_merges()
    for token in best.given.special_tokens:
        left = tuple(other for other in best.given.special_tokens if other != token)
        still_fails(best.given._replace(special_tokens=left).with_merges(best.given.num_merges))
    return best


def _check_long_texts(learner: Learner) -> None:
    """Raise `Wrong` where a long file is read in parts that cut words, or takes far too long."""
    given = bpe_cases.one_word()
    times = len(given.data) // len(bpe_cases.WORD.encode())
    _check_long(
        learner,
        given,
        expected(given),
        f"the word {bpe_cases.WORD!r} {times:,} times",
        "Probably the file is read in parts whose borders fall inside words, or inside the bytes "
        "of a character. Move each border to a special token, or hold back the end of a part until "
        "the next one is there.",
    )
    given = bpe_cases.megabyte()
    _check_long(
        learner,
        given,
        bpe_cases.megabyte_merges(given),
        f"{len(given.data):,} bytes of made-up words",
        "All short texts were right, so this shows at size only: counts that drift from merge to "
        "merge, parts of the file counted twice or left out, or workers whose counts are not added "
        "up.",
    )


def _check_long(learner: Learner, given: Input, right: list[Pair], held: str, mistake: str) -> None:
    """Raise `Wrong` unless the merges of a long text, told as `held`, come right and in time."""
    call = f"train_bpe(path, {given.vocab_size}, {list(given.special_tokens)})"
    shown = Words(f"{call}; the file holds {held}")
    try:
        _, merges = answer(learner(given, LONG, shown), given)
    except Wrong as failure:
        if failure.timed_out:
            failure.claim = f"It is hopelessly slow: stopped after {LONG:g} s."
            failure.mistake = (
                "Probably each merge goes through the whole text again. Count each different "
                "pre-token once, with its number, and mend only the counts that a merge changes."
            )
        raise
    if merges != right:
        at = first_difference(right, merges)
        raise Wrong(
            f"Merge {at + 1} of a long text is not the expected one, though short texts are right.",
            given=shown,
            expected=right[: at + 1],
            got=merges[: at + 1],
            mistake=mistake,
        )


def _notes(learner: Learner) -> list[str]:
    """What to tell about inputs that the course leaves open; none of it makes a solution wrong."""
    notes = []
    for given, what in bpe_cases.OPEN:
        try:
            outcome = learner.outcome(given)
        except (Wrong, NotAttempted):
            outcome = Outcome(given, "error")
        if outcome.right:
            continue
        known = [v for v in bpe_variants.OPEN_VARIANTS if predicted(given, (v,)) == outcome.merges]
        note = known[0].mistake if known else what
        if note not in notes:
            notes.append(note)
    if notes:
        notes.insert(0, "Left open by the course, but worth knowing:")
    return notes
