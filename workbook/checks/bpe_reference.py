"""A small BPE trainer made of stages, so that a check can put a usual mistake in place of each.

It is written for short texts and to be read, and shares only the pattern with
`workbook.tokenization.bpe`: what one of them gets wrong, the other does not.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from workbook.checks.text_variants import Variant, decode, documents, pretokens, stages

Pair = tuple[bytes, bytes]
Word = list[bytes]


class Input(NamedTuple):
    """What `train_bpe` is given, the file as its bytes."""

    data: bytes
    vocab_size: int
    special_tokens: tuple[str, ...]

    @property
    def num_merges(self) -> int:
        """How many merges the vocabulary has room for."""
        return self.vocab_size - 256 - len(self.special_tokens)

    def with_merges(self, num_merges: int) -> "Input":
        """The same with a vocabulary that has room for so many merges."""
        return self._replace(vocab_size=256 + len(self.special_tokens) + num_merges)


def weigh(documents: Iterable[list[str]]) -> dict[str, int]:
    """How often each pre-token occurs, in the order in which they come."""
    return Counter(token for document in documents for token in document)


def split_bytes(pretoken: str) -> Word:
    """The single bytes of a pre-token."""
    return [bytes([byte]) for byte in pretoken.encode()]


def choose(tied: list[Pair], words: list[Word], ids: dict[bytes, int]) -> Pair:
    """The pair to merge, of those that are equally frequent: the greater pair of byte strings."""
    return max(tied)


def merge(word: Word, pair: Pair) -> Word:
    """The word with the pair joined wherever it stands, from left to right."""
    merged, at = [], 0
    while at < len(word):
        if tuple(word[at : at + 2]) == pair:
            merged.append(pair[0] + pair[1])
            at += 2
        else:
            merged.append(word[at])
            at += 1
    return merged


def mend(counts: Counter, word: Word, merged: Word, pair: Pair, weight: int, pairs) -> None:
    """Change the counts of pairs where a merge changed a word: the old ones go, the new come."""
    for old in pairs(word):
        counts[old] -= weight
    for new in pairs(merged):
        counts[new] += weight


def stop(given: Input, merges: list[Pair]) -> bool:
    """What to do when no pair is left: True, stop with fewer merges."""
    return True


RIGHT: dict[str, Callable] = {
    "read": decode,
    "split": documents,
    "pretokens": pretokens,
    "weigh": weigh,
    "symbols": split_bytes,
    "pairs": pairwise,
    "size": lambda given: given.num_merges,
    "worth": lambda count: count > 0,
    "choose": choose,
    "merge": merge,
    "mend": mend,
    "stop": stop,
}


def count(do: dict[str, Callable], given: Input) -> tuple[list[Word], list[int]]:
    """The different words of a file as symbols, and how often each occurs."""
    texts = do["split"](do["read"](given.data), given.special_tokens)
    weights = do["weigh"]([do["pretokens"](text) for text in texts])
    return [do["symbols"](token) for token in weights], list(weights.values())


def train(given: Input, variants: tuple[Variant, ...] = ()) -> list[Pair]:
    """The merges, with the right way of each stage or the variants in their place."""
    do = stages(RIGHT, variants)
    words, weights = count(do, given)
    counts: Counter[Pair] = Counter()
    for word, weight in zip(words, weights, strict=True):
        for pair in do["pairs"](word):
            counts[pair] += weight
    tokens = [*map(str.encode, given.special_tokens), *(bytes([byte]) for byte in range(256))]
    ids = {token: token_id for token_id, token in enumerate(tokens)}
    merges: list[Pair] = []
    while len(merges) < do["size"](given):
        best = max(counts.values(), default=0)
        if not do["worth"](best):
            if best > 0 or do["stop"](given, merges):
                break
            continue
        tied = [pair for pair, times in counts.items() if times == best]
        pair = do["choose"](tied, words, ids)
        merges.append(pair)
        ids.setdefault(pair[0] + pair[1], len(ids))
        for at, word in enumerate(words):
            if pair[0] in word and (merged := do["merge"](word, pair)) != word:
                do["mend"](counts, word, merged, pair, weights[at], do["pairs"])
                words[at] = merged
        if do["mend"] is not mend:
            counts.pop(pair, None)
        for changed in [pair for pair, times in counts.items() if times <= 0]:
            del counts[changed]
    return merges


@lru_cache(maxsize=256)
def expected(given: Input) -> list[Pair]:
    """The right merges."""
    return train(given)


def expected_vocab(given: Input, merges: Iterable[Pair]) -> dict[int, bytes]:
    """The vocabulary that belongs to the merges: special tokens, the 256 bytes, merged tokens."""
    tokens = [*map(str.encode, given.special_tokens), *(bytes([byte]) for byte in range(256))]
    return dict(enumerate([*tokens, *(left + right for left, right in merges)]))
