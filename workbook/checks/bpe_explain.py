"""The mistake that explains what a learner's `train_bpe` did on several inputs."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

from workbook.checks.bpe_reference import Input, Pair, expected, train
from workbook.checks.bpe_symptoms import first_difference, symptom
from workbook.checks.bpe_variants import VARIANTS, Endless
from workbook.checks.likeliest import likeliest
from workbook.checks.text_variants import Variant
from workbook.checks.verdicts import Words, Wrong

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

    @property
    def got(self) -> list[Pair] | Words:
        """The merges, or what came in their place, in words."""
        return Words(dict(self.failure.rows)["got"]) if self.failure else self.merges


class Explanation(NamedTuple):
    """The likely mistake of an outcome in words, and whether another one comes from it too."""

    words: Callable[[Outcome], str]
    fits: Callable[[Outcome], bool]


def explain(failed: Outcome, outcomes: list[Outcome]) -> Explanation:
    """The simplest known mistake that gives the failed outcome and agrees with the others.

    Where there is none: what can be seen from the merges, or from the inputs that raise errors.
    """
    pairs = isinstance(failed.merges, list) and len(failed.given.data) < SHORT
    best = likeliest(VARIANTS, failed, outcomes, _fits, pairs)
    if best:
        words = " And: ".join(variant.mistake for variant in best)
        return Explanation(lambda _: words, lambda outcome: _fits(best, outcome))
    if isinstance(failed.merges, str):
        words = _errors(outcomes)
        return Explanation(lambda _: words, lambda outcome: _error(outcome) == _error(failed))
    alike = (v for v in VARIANTS if all(_begins_like(v, outcome) for outcome in outcomes))
    if variant := next(alike, None):
        return Explanation(lambda _: variant.mistake, partial(_begins_like, variant))
    return Explanation(
        lambda outcome: symptom(outcome.given, outcome.merges).words,
        lambda outcome: _kind(outcome) == _kind(failed),
    )


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
    return outcome.got.partition(":")[0]


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
    """What the inputs that raise errors have in common, and no other has; "" where none raises."""
    if all(outcome.merges != "error" for outcome in outcomes):
        return ""
    for condition, words in ERRORS:
        if all(condition(outcome.given) == (outcome.merges == "error") for outcome in outcomes):
            return words
    return ""
