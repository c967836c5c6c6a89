"""The ways in which a pre-token is merged into tokens wrongly, each with its name."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

from workbook.checks.bpe_reference import Pair, Word, merge
from workbook.checks.text_variants import Variant

Ranks = dict[Pair, int]


def _longest_match(word: Word, ranks: Ranks, ids: dict[bytes, int]) -> Word:
    data, tokens = b"".join(word), []
    while data:
        size = next(n for n in range(len(data), 0, -1) if data[:n] in ids)
        tokens.append(data[:size])
        data = data[size:]
    return tokens


def _repeated(choose: Callable, word: Word, ranks: Ranks, ids: dict[bytes, int]) -> Word:
    """The word after merges of the pairs that `choose` picks, until none applies."""
    while pairs := [pair for pair in pairwise(word) if pair in ranks]:
        word = merge(word, choose(pairs, ranks, ids))
    return word


def _merge_one(word: Word, pair: Pair) -> Word:
    """The word with the pair joined at its first place only."""
    for at, found in enumerate(pairwise(word)):
        if found == pair:
            return [*word[:at], pair[0] + pair[1], *word[at + 2 :]]
    return word


def _leftmost(word: Word, ranks: Ranks, ids: dict[bytes, int]) -> Word:
    while pairs := [pair for pair in pairwise(word) if pair in ranks]:
        word = _merge_one(word, pairs[0])
    return word


def _one_sweep(word: Word, ranks: Ranks, ids: dict[bytes, int]) -> Word:
    merged: Word = []
    for symbol in word:
        if merged and (merged[-1], symbol) in ranks:
            merged[-1] += symbol
        else:
            merged.append(symbol)
    return merged


def _sweep_of_pairs(word: Word, ranks: Ranks, ids: dict[bytes, int]) -> Word:
    merged, at = [], 0
    while at < len(word):
        size = 2 if tuple(word[at : at + 2]) in ranks else 1
        merged.append(b"".join(word[at : at + size]))
        at += size
    return merged


def _sweeps_of_pairs(word: Word, ranks: Ranks, ids: dict[bytes, int]) -> Word:
    while (merged := _sweep_of_pairs(word, ranks, ids)) != word:
        word = merged
    return word


def _one_merge(word: Word, ranks: Ranks, ids: dict[bytes, int]) -> Word:
    pairs = [pair for pair in pairwise(word) if pair in ranks]
    return merge(word, min(pairs, key=ranks.__getitem__)) if pairs else word


def _each_once(word: Word, ranks: Ranks, ids: dict[bytes, int]) -> Word:
    for pair in ranks:
        word = _merge_one(word, pair)
    return word


def _whole_or_bytes(word: Word, ranks: Ranks, ids: dict[bytes, int]) -> Word:
    return [b"".join(word)] if b"".join(word) in ids else word


def _from_right(word: Word, ranks: Ranks, ids: dict[bytes, int]) -> Word:
    while pairs := [pair for pair in pairwise(word) if pair in ranks]:
        best = min(pairs, key=ranks.__getitem__)
        at = max(at for at, pair in enumerate(pairwise(word)) if pair == best)
        word = [*word[:at], best[0] + best[1], *word[at + 2 :]]
    return word


def _by(key: Callable) -> Callable:
    return partial(_repeated, lambda pairs, ranks, ids: min(pairs, key=key(ranks, ids)))


WORDS = (
    Variant(
        "word",
        _longest_match,
        "Each token is the longest one in the vocabulary that matches. BPE applies the merges in "
        "the order in which they were learnt, which may give shorter tokens.",
    ),
    Variant(
        "word",
        _leftmost,
        "The leftmost pair that can be merged was merged first: it is the earliest merge of the "
        "list that goes first, wherever in the word it applies.",
    ),
    Variant(
        "word",
        _one_sweep,
        "Merges were applied in one sweep from left to right: apply the earliest merge of the list "
        "that fits, then look again, until none fits.",
    ),
    Variant(
        "word",
        _sweep_of_pairs,
        "There was only one pass over the word: look again after merging, until no merge fits.",
    ),
    Variant(
        "word",
        _sweeps_of_pairs,
        "Merges were applied in the order of their place in the word: the earliest merge of the "
        "list goes first.",
    ),
    Variant(
        "word",
        _one_merge,
        "Only one merge was applied to each word: go on until no merge fits.",
    ),
    Variant(
        "word",
        _each_once,
        "Each merge was applied at one place of the word only: it applies wherever its pair is.",
    ),
    Variant(
        "word",
        lambda word, ranks, ids: word,
        "No merge was applied: the ids are those of single bytes.",
    ),
    Variant(
        "word",
        _whole_or_bytes,
        "A word that is no token as a whole fell apart into bytes: apply the merges to it.",
    ),
    Variant(
        "word",
        _by(lambda ranks, ids: lambda pair: -ranks[pair]),
        "The latest merge was applied first: it is the earliest of the list that goes first.",
    ),
    Variant(
        "word",
        _by(lambda ranks, ids: lambda pair: ids[pair[0] + pair[1]]),
        "The id of the merged token was taken for the rank of the merge: the order of `merges` "
        "counts, and ids may be in any order.",
    ),
    Variant(
        "word",
        _by(lambda ranks, ids: lambda pair: (-len(pair[0] + pair[1]), ranks[pair])),
        "The merge that makes the longest token was applied first: it is the earliest of the list "
        "that goes first.",
    ),
    Variant(
        "word",
        _from_right,
        "Equal pairs were merged from right to left: aaa becomes aa a.",
    ),
    Variant(
        "symbols",
        lambda token: [character.encode() for character in token],
        "Words were split into characters: BPE starts from bytes, and é or 猫 is several of them.",
    ),
)
