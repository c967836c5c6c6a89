"""What is wrong with merges that no known mistake explains, from the state they went wrong in."""

from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from workbook.checks.bpe_reference import RIGHT, Input, Pair, Word, count, expected, merge
from workbook.checks.tie_variants import TIE


class Symptom(NamedTuple):
    """A kind of mistake, and the words that tell it."""

    kind: str
    words: str


def first_difference(one: list, other: list) -> int:
    """The first index at which two lists differ; the shorter length where one begins the other."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def symptom(given: Input, got: list[Pair]) -> Symptom:
    """What is wrong with the first merge that is not the expected one."""
    right = expected(given)
    at = first_difference(right, got)
    words, weights = count(RIGHT, given)
    counts = _pair_counts(words, weights)
    before: Counter[Pair] = Counter()
    for pair in right[:at]:
        before |= counts
        words = [merge(word, pair) for word in words]
        counts = _pair_counts(words, weights)
    if at == len(got):
        return Symptom(
            "few",
            f"Training stopped with {at} merges, though there is room for {given.num_merges} and "
            f"the pair {right[at]} still occurs {_times(counts[right[at]])}.",
        )
    if at == len(right):
        if at == given.num_merges:
            return Symptom("many", f"The vocabulary has room for {at} merges only.")
        return Symptom("many", "No pair is left to merge: training stops with fewer merges.")
    return _wrong_pair(given, counts, before, right[at], got, at)


def _pair_counts(words: list[Word], weights: list[int]) -> Counter[Pair]:
    counts: Counter[Pair] = Counter()
    for word, weight in zip(words, weights, strict=True):
        for pair in pairwise(word):
            counts[pair] += weight
    return counts


def _wrong_pair(given, counts, before, wanted: Pair, got: list[Pair], at: int) -> Symptom:
    """Why the pair `got[at]` is not the one to merge, but `wanted` is."""
    pair = got[at]
    if pair in got[:at] and not counts[pair]:
        return Symptom(
            "again",
            f"{pair} was merged before. Either that merge did not change the words, or the count "
            "of the pair did not go.",
        )
    if counts[pair] == counts[wanted]:
        words = f"{pair} and {wanted} both occur {_times(counts[pair])}. If your rule for ties is "
        if before[wanted] > counts[wanted]:
            words += (
                "right, then the count of the greater pair, which an earlier merge lowered, was "
            )
            words += "lost: a heap needs a new entry whenever a count changes."
        else:
            words += "right, then one of your counts is not: print both."
        return Symptom("tie", TIE + words)
    if counts[pair]:
        made = [token for token in wanted if len(token) > 1]
        if not at:
            where = "Look at the pre-tokens, at how often each is counted, and at the last pair."
        elif before[pair] > counts[pair]:
            where = "The count of a pair that an earlier merge broke up is stale: take it off."
        elif made:
            where = f"The pairs of the new token {made[0]!r} with its neighbours must be counted."
        else:
            where = "A count was not kept right through the merges before this one."
        return Symptom(
            "count",
            f"{pair} occurs {_times(counts[pair])}, {wanted} {_times(counts[wanted])}. {where}",
        )
    return _no_pair(given, before, pair)


def _no_pair(given: Input, before: Counter[Pair], pair: Pair) -> Symptom:
    """Where a pair may come from that does not occur."""
    joined = pair[0] + pair[1]
    documents = RIGHT["split"](given.data.decode(), given.special_tokens)
    pretokens = [token for document in documents for token in RIGHT["pretokens"](document)]
    if pair in before:
        words = "is gone since an earlier merge took its parts: its count is stale"
        kind = "stale"
    elif any(joined in token.encode() for token in pretokens):
        words = "never stood side by side at this point: the merges before it formed other tokens"
        kind = "order"
    elif any(joined in document.encode() for document in documents):
        words = "reaches across the border of two pre-tokens of GPT-2's pattern"
        kind = "pretoken"
    elif any(joined in token.encode() for token in given.special_tokens):
        words = "is part of a special token, which is cut out before anything is counted"
        kind = "special"
    elif joined in "".join(documents).encode():
        words = "reaches across a special token, which is a hard boundary"
        kind = "boundary"
    else:
        words, kind = "does not stand anywhere in the text", "nowhere"
    return Symptom(kind, f"The pair {pair} {words}.")


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
