"""Where two lists of merges part, and why.

    yours   (t, h) (e, r) (i, n) ...        step 3 is the first difference: there (a, n) occurs
    ours    (t, h) (e, r) (a, n) ...        812 times and (i, n) 790 times

Everything behind the first difference follows from it, so only that step is worth a look.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbook.tokenization.bpe import Pair, count_pairs, merge_pair, split_bytes


@dataclass(frozen=True)
class Difference:
    """The first step at which two lists of merges differ, counted from 1."""

    step: int
    mine: Pair | None  # None where the list has ended
    other: Pair | None
    mine_count: int  # how often the pair occurs in the text just before this step
    other_count: int

    def __str__(self) -> str:
        return f"step {self.step}: {self.reason()}"

    def reason(self) -> str:
        """Why the two lists part here, in a sentence."""
        mine, other = (self.described(pair) for pair in (self.mine, self.other))
        if self.mine is None or self.other is None:
            return f"one list ends, the other goes on: {mine} against {other}"
        if self.mine_count == self.other_count:
            greater = "the first" if self.mine > self.other else "the second"
            return f"{mine} against {other}: a tie, and the greater pair is {greater}"
        return f"{mine} against {other}: the more frequent pair goes first"

    def described(self, pair: Pair | None) -> str:
        """A pair with its count, as it stands in the sentence."""
        if pair is None:
            return "nothing"
        count = self.mine_count if pair == self.mine else self.other_count
        return f"{pair[0]!r} + {pair[1]!r} ({count:,} times)"


def first_difference(
    mine: Sequence[Pair], other: Sequence[Pair], counts: Mapping[str, int]
) -> Difference | None:
    """The first difference of two lists of merges of the same pre-tokens; None where all agree.

    `counts` are the pre-tokens, as `count_pretokens` returns them. The merges that both lists
    share are replayed on them, and then both candidates are counted.

    >>> first_divergence([(b"a", b"b")], [(b"b", b"c")], {"abc": 2}).step
    1
    """
    shared = 0
    while shared < min(len(mine), len(other)) and mine[shared] == other[shared]:
        shared += 1
    if shared == len(mine) == len(other):
        return None
    words = [(split_bytes(pretoken), count) for pretoken, count in counts.items()]
    for pair in mine[:shared]:
        words = [
            (merge_pair(symbols, pair) if pair[0] in symbols else symbols, count)
            for symbols, count in words
        ]
    pairs = count_pairs(words)
    first, second = (merges[shared] if shared < len(merges) else None for merges in (mine, other))
    return Difference(shared + 1, first, second, pairs[first], pairs[second])
