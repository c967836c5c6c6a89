"""The usual mistakes of a BPE trainer, each with its name: variants of the reference's stages."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise

from workbook.checks.bpe_reference import Input, Pair, Word, merge, weigh
from workbook.checks.pretoken_variants import PRETOKENS
from workbook.checks.text_variants import READ, SPLIT, SPLIT_OPEN, Variant
from workbook.checks.tie_variants import TIES


class Endless(Exception):  # noqa: N818 - a fact about a variant, not an error
    """Raised by a variant where code that does the same would loop for ever."""


def _apart(word: Word) -> Iterable[Pair]:
    """The pairs of a word, of overlapping equal ones only each second."""
    last = None
    for pair in pairwise(word):
        last = None if pair == last else pair
        if last:
            yield pair


def _merge_first(word: Word, pair: Pair) -> Word:
    for at, found in enumerate(pairwise(word)):
        if found == pair:
            return [*word[:at], pair[0] + pair[1], *word[at + 2 :]]
    return word


def _merge_from_right(word: Word, pair: Pair) -> Word:
    turned = merge(word[::-1], pair[::-1])
    return [pair[0] + pair[1] if token == pair[1] + pair[0] else token for token in turned[::-1]]


def _merge_and_step_once(word: Word, pair: Pair) -> Word:
    following = [*word[1:], b""]
    return [a + b if (a, b) == pair else a for a, b in zip(word, following, strict=True)]


def _merge_as_text(word: Word, pair: Pair) -> Word:
    gap = b"\xff\xff"  # stands in no UTF-8
    return gap.join(word).replace(gap.join(pair), pair[0] + pair[1]).split(gap)


def _mend_half(counts, word, merged, pair, weight, pairs, *, old, whole) -> None:
    """Take off the old pairs of a word or count the new ones, but not both.

    `whole`: those of the whole word, also the pairs that the merge left as they were.
    """
    gone, come = Counter(pairs(word)), Counter(pairs(merged))
    changed = gone if old else come
    if not whole:
        changed = changed - (come if old else gone)
    for pair, times in changed.items():
        counts[pair] += weight * (-times if old else times)


def _mend_near(counts, word, merged, pair, weight, pairs, *, left=True, right=True, fresh=True):
    """Mend the counts around each place of the pair, perhaps on one side only.

    Not `fresh`: the neighbour to the left is taken from the old word, even if it was merged too.
    """
    joined, done, at = pair[0] + pair[1], [], 0
    while at < len(word):
        if tuple(word[at : at + 2]) != pair:
            done.append(word[at])
            at += 1
            continue
        if done and left:
            neighbour = done[-1] if fresh else word[at - 1]
            counts[neighbour, pair[0]] -= weight
            counts[neighbour, joined] += weight
        if at + 2 < len(word) and right:
            counts[pair[1], word[at + 2]] -= weight
            counts[joined, word[at + 2]] += weight
        done.append(joined)
        at += 2


STALE = "The counts are stale: "
COUNTS = (
    Variant(
        "weigh",
        lambda documents: dict.fromkeys(weigh(documents), 1),
        "Each different pre-token was counted once: multiply its pairs by how often it occurs.",
    ),
    Variant(
        "weigh",
        lambda documents: weigh(list(dict.fromkeys(document)) for document in documents),
        "Each pre-token was counted once in each stretch between special tokens: count it as often "
        "as it occurs.",
    ),
    Variant(
        "weigh",
        lambda documents: {token: n for token, n in weigh(documents).items() if n > 1},
        "Pre-tokens that occur once were left out.",
    ),
    Variant(
        "symbols",
        lambda pretoken: [character.encode() for character in pretoken],
        "Training started from characters: it starts from bytes, and é or 猫 is several of them.",
    ),
    Variant(
        "pairs",
        lambda word: dict.fromkeys(pairwise(word)),
        "A pair that a word holds twice was counted once.",
    ),
    Variant(
        "pairs",
        _apart,
        "Overlapping pairs were not counted: in aaa the pair (a, a) counts twice.",
    ),
    Variant(
        "pairs",
        lambda word: pairwise(word[:-1]),
        "The last pair of each word was not counted: a `range` that ends one too early.",
    ),
    Variant("merge", _merge_first, "Only the first place of the pair in each word was merged."),
    Variant(
        "merge",
        _merge_from_right,
        "Pairs were merged from right to left: aaa becomes aa a, not a aa.",
    ),
    Variant(
        "merge",
        _merge_and_step_once,
        "After a merge the next symbol was looked at again: step over both parts, so that aaa "
        "becomes aa a.",
    ),
    Variant(
        "merge",
        _merge_as_text,
        "The pair was also merged where it is only the end and the beginning of longer tokens: "
        "compare whole tokens.",
    ),
    Variant(
        "mend",
        lambda *_: None,
        "The pairs were counted once and never again: each merge changes the counts of its "
        "neighbours.",
    ),
    *(
        Variant("mend", partial(_mend_half, old=old, whole=whole), STALE + mistake)
        for old, mistake in (
            (False, "after a merge, take off the pairs that it broke up."),
            (True, "after a merge, count the pairs of the new token with its neighbours."),
        )
        for whole in (False, True)
    ),
    Variant(
        "mend",
        partial(_mend_near, left=False),
        STALE + "the neighbour on the left of a merge was forgotten.",
    ),
    Variant(
        "mend",
        partial(_mend_near, right=False),
        STALE + "the neighbour on the right of a merge was forgotten.",
    ),
    Variant(
        "mend",
        partial(_mend_near, fresh=False),
        STALE + "where a pair comes twice in a row (abab), the neighbour of the second is the new "
        "token.",
    ),
)


def _size(num_merges: Callable[[Input], int], mistake: str) -> Variant:
    return Variant("size", num_merges, mistake)


SIZES = (
    _size(
        lambda given: given.vocab_size - 256,
        "The special tokens belong to `vocab_size`: there is room for "
        "vocab_size - 256 - len(special_tokens) merges.",
    ),
    _size(
        lambda given: given.vocab_size - 257,
        "One special token was assumed: there is room for vocab_size - 256 - len(special_tokens) "
        "merges.",
    ),
    _size(lambda given: given.num_merges - 1, "There is one merge too few: off by one."),
    _size(lambda given: given.num_merges + 1, "There is one merge too many: off by one."),
    _size(
        lambda given: given.vocab_size,
        "`vocab_size` was taken for the number of merges: the 256 bytes and the special tokens "
        "belong to it.",
    ),
)


def _crash(given: Input, merges: list[Pair]) -> bool:
    raise ValueError("max() of nothing")


def _loop(given: Input, merges: list[Pair]) -> bool:
    raise Endless


def _repeat(given: Input, merges: list[Pair]) -> bool:
    merges.extend(merges[-1:] or [(b"", b"")])
    return False


RAN_OUT = "Before the vocabulary is full the text may run out of pairs: then training stops, "
STOPS = (
    Variant(
        "worth",
        lambda times: times > 1,
        "Training stopped when the best pair occurs only once. That is a choice that some "
        "libraries make, but the course's algorithm goes on while any pair is left.",
    ),
    Variant("stop", _crash, RAN_OUT + "with fewer merges. `max` of no pairs raises an error."),
    Variant(
        "stop", _loop, RAN_OUT + "with fewer merges. Your loop waits for a size never reached."
    ),
    Variant("stop", _repeat, RAN_OUT + "and no pair is merged again."),
)

VARIANTS = (*TIES, *SPLIT, *COUNTS, *PRETOKENS, *SIZES, *STOPS, *READ[1:])
OPEN_VARIANTS = (READ[0], *SPLIT_OPEN)
