"""The mistake that explains what a learner's `train_bpe` did on several inputs."""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from itertools import combinations
from typing import NamedTuple

from workbook.checks.base import Wrong
from workbook.checks.bpe_reference import Input, Pair, expected, train
from workbook.checks.bpe_symptoms import first_difference, symptom
from workbook.checks.bpe_variants import VARIANTS, Endless
from workbook.checks.text_variants import Variant

SHORT = 400  # bytes; on a text of this size all pairs of mistakes are tried


class Outcome(NamedTuple):
    """What became of one input: merges, or the way in which there are none."""

    given: Input
    merges: list[Pair] | str  # "error" or "endless" where there are none
    failure: Wrong | None = None  # an error, or what is wrong beside the merges

    @property
    def right(self) -> bool:
        """True where nothing is wrong."""
        return self.failure is None and self.merges == expected(self.given)


class Explanation(NamedTuple):
    """The likely mistake in words, and whether another outcome comes from it too."""

    words: str
    fits: Callable[[Outcome], bool]


def explain(failed: Outcome, outcomes: list[Outcome]) -> Explanation:
    """The simplest known mistake that gives the failed outcome and agrees with the others.

    Where there is none: what can be seen from the merges, or from the inputs that raise errors.
    """
    single = list(_agreeing(((variant,) for variant in VARIANTS), failed, outcomes))
    best = max(single, key=lambda variants: _score(variants, outcomes), default=None)
    if len(failed.given.data) < SHORT and (best is None or _score(best, outcomes) < len(outcomes)):
        two = (pair for pair in combinations(VARIANTS, 2) if pair[0].stage != pair[1].stage)
        pairs = list(_agreeing(two, failed, outcomes))
        pair = max(pairs, key=lambda variants: _score(variants, outcomes), default=None)
        if pair and (best is None or _score(pair, outcomes) == len(outcomes)):
            best = pair
    if best:
        words = " And: ".join(variant.mistake for variant in best)
        return Explanation(words, lambda outcome: _fits(best, outcome))
    if isinstance(failed.merges, str):
        return Explanation(_errors(outcomes), lambda outcome: _error(outcome) == _error(failed))
    for begins_like in (partial(_begins_like, variant) for variant in VARIANTS):
        if all(map(begins_like, outcomes)):
            return Explanation(begins_like.args[0].mistake, begins_like)
    seen = symptom(failed.given, failed.merges)
    return Explanation(seen.words, lambda outcome: _kind(outcome) == seen.kind)


@lru_cache(maxsize=4096)
def predicted(given: Input, variants: tuple[Variant, ...]) -> list[Pair] | str:
    """The outcome of the reference with these mistakes."""
    try:
        return train(given, variants)
    except Endless:
        return "endless"
    except Exception:  # a variant may fail in any way that a learner's code may
        return "error"


def _fits(variants: tuple[Variant, ...], outcome: Outcome) -> bool:
    return predicted(outcome.given, variants) == outcome.merges


def _score(variants: tuple[Variant, ...], outcomes: list[Outcome]) -> int:
    return sum(_fits(variants, outcome) for outcome in outcomes)


def _agreeing(
    candidates: Iterable[tuple[Variant, ...]], failed: Outcome, outcomes: list[Outcome]
) -> Iterable[tuple[Variant, ...]]:
    """The mistakes that give the failed outcome and spoil nothing that the learner has right."""
    for variants in candidates:
        if _fits(variants, failed) and all(
            _fits(variants, outcome) for outcome in outcomes if outcome.right
        ):
            yield variants


def _begins_like(variant: Variant, outcome: Outcome) -> bool:
    """True where variant and learner go wrong at the same merge, with the same pair."""
    guess, right = predicted(outcome.given, (variant,)), expected(outcome.given)
    if isinstance(guess, str) or isinstance(outcome.merges, str) or outcome.merges == right:
        return guess == outcome.merges
    at = first_difference(right, outcome.merges)
    return at < len(outcome.merges) and guess[: at + 1] == outcome.merges[: at + 1]


def _kind(outcome: Outcome) -> str | None:
    if isinstance(outcome.merges, str) or outcome.merges == expected(outcome.given):
        return None
    return symptom(outcome.given, outcome.merges).kind


def _error(outcome: Outcome) -> str | None:
    """The type of the error that an outcome is, such as "KeyError"."""
    if outcome.failure is None or isinstance(outcome.merges, list):
        return None
    return str(outcome.failure.got).partition(":")[0]


ERRORS = (
    (lambda given: not given.data, "It fails on an empty file."),
    (
        lambda given: not given.special_tokens,
        "It fails where the list of special tokens is empty: there is nothing to split at then.",
    ),
    (
        lambda given: bool(given.special_tokens),
        "It fails where there are special tokens.",
    ),
    (
        lambda given: not given.data.isascii(),
        "It fails on characters outside ASCII, whose UTF-8 has several bytes.",
    ),
    (
        lambda given: len(expected(given)) < given.num_merges,
        "It fails where the text runs out of pairs before the vocabulary is full: then training "
        "stops, with fewer merges.",
    ),
)


def _errors(outcomes: list[Outcome]) -> str:
    """What the inputs that raise errors have in common, and no other has."""
    for condition, words in ERRORS:
        if all(condition(outcome.given) == (outcome.merges == "error") for outcome in outcomes):
            return words
    return ""
