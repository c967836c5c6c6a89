"""BPE training watched: the words, the pairs and the merges so far, before each merge.

It is `bpe.train_naive`, stopped after each round to look around.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbook.tokenization.bpe import Pair, count_pairs, merge_pair, split_bytes
from workbook.tokenization.pretokens import pretokenize


@dataclass(frozen=True)
class Step:
    """What training sees after some merges."""

    merges: tuple[Pair, ...]  # made so far
    words: list[tuple[list[bytes], int]]  # each word's symbols, and how often it occurs
    ranking: list[tuple[Pair, int]]  # all pairs, the one that is merged next first

    @property
    def tied(self) -> list[Pair]:
        """The pairs that share first place, the winner first."""
        return [pair for pair, count in self.ranking if count == self.ranking[0][1]]


def training_steps(counts: Mapping[str, int], num_merges: int) -> list[Step]:
    """Training on counted pre-tokens: the state before the first merge, and after each.

    Shorter than `num_merges` + 1 where the words run out of pairs.

    >>> [step.merges[-1] for step in watch({"low": 5, "newest": 6}, 2)[1:]]
    [(b'w', b'e'), (b'we', b's')]
    """
    words = [(split_bytes(pretoken), count) for pretoken, count in counts.items()]
    merges: tuple[Pair, ...] = ()
    steps = []
    while True:
        pairs = count_pairs(words)
        ranking = sorted(pairs.items(), key=lambda item: (item[1], item[0]), reverse=True)
        steps.append(Step(merges, words, ranking))
        if not ranking or len(merges) == num_merges:
            return steps
        best = ranking[0][0]
        words = [(merge_pair(symbols, best), count) for symbols, count in words]
        merges += (best,)


def apply_merges(text: str, merges: Sequence[Pair]) -> list[bytes]:
    """The tokens of a text, found the plain way: each merge in turn, wherever it fits.

    >>> cut("lowest", [(b"s", b"t"), (b"e", b"st")])
    [b'l', b'o', b'w', b'est']
    """
    tokens = []
    for pretoken in pretokenize([text]):
        symbols = split_bytes(pretoken)
        for pair in merges:
            symbols = merge_pair(symbols, pair)
        tokens += symbols
    return tokens
