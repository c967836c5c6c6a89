"""BPE training, observed: each step, the first difference of two results, the history of a token.

`training_steps` is `bpe.train_naive` with a record of the words and pairs before each merge.

`first_difference` compares two lists of merges. All later differences follow from the first one, so
only that step is worth looking at:

    yours   (t, h) (e, r) (i, n) ...        step 3 is the first difference: there (a, n) occurs
    ours    (t, h) (e, r) (a, n) ...        812 times and (i, n) 790 times

`merges_behind` traces one token back to single bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbook.tokenization.bpe import Pair, count_pairs, merge_pair, split_bytes
from workbook.tokenization.pretokens import pretokenize


@dataclass(frozen=True)
class TrainingStep:
    """The state of training after some merges."""

    merges: tuple[Pair, ...]  # made so far
    words: list[tuple[list[bytes], int]]  # each word's symbols, and how often it occurs
    ranking: list[tuple[Pair, int]]  # all pairs; the first is merged next

    @property
    def tied(self) -> list[Pair]:
        """The pairs that share first place, the winner first."""
        return [pair for pair, count in self.ranking if count == self.ranking[0][1]]


def training_steps(counts: Mapping[str, int], num_merges: int) -> list[TrainingStep]:
    """The state of training on counted pre-tokens before the first merge, and after each.

    There are fewer than `num_merges` + 1 states if the words run out of pairs.

    >>> [step.merges[-1] for step in training_steps({"low": 5, "newest": 6}, 2)[1:]]
    [(b'w', b'e'), (b'we', b's')]
    """
    words = [(split_bytes(pretoken), count) for pretoken, count in counts.items()]
    merges: tuple[Pair, ...] = ()
    steps = []
    # A state before the first merge, one after each: one more than there are merges.
    while True:
        pairs = count_pairs(words)
        # By count, then by bytes; training needs only the first of them, whoever watches sees the
        # rest.
        ranking = sorted(pairs.items(), key=lambda item: (item[1], item[0]), reverse=True)
        steps.append(TrainingStep(merges, words, ranking))
        if not ranking or len(merges) == num_merges:
            return steps
        best = ranking[0][0]  # the same as `max` in `train_naive`: a higher count, a greater pair
        words = [(merge_pair(symbols, best), count) for symbols, count in words]
        # A new tuple, as the states before keep theirs.
        merges += (best,)


def apply_merges(text: str, merges: Sequence[Pair]) -> list[bytes]:
    """The tokens of a text, found the plain way: each merge in turn, wherever it fits.

    >>> apply_merges("lowest", [(b"s", b"t"), (b"e", b"st")])
    [b'l', b'o', b'w', b'est']
    """
    tokens = []
    # Merges never reach across pre-tokens, in encoding as in training.
    for pretoken in pretokenize([text]):
        symbols = split_bytes(pretoken)
        # In the order in which they were learnt: a later merge needs tokens that earlier ones make.
        for pair in merges:
            symbols = merge_pair(symbols, pair)
        tokens += symbols
    return tokens


@dataclass(frozen=True)
class MergeDifference:
    """The first step at which two lists of merges differ, counted from 1."""

    step: int
    first: Pair | None  # None if the list has ended
    second: Pair | None
    first_count: int  # how often the pair occurs in the text just before this step
    second_count: int

    def __str__(self) -> str:
        first = _with_count(self.first, self.first_count)
        second = _with_count(self.second, self.second_count)
        both = f"step {self.step}: {first} against {second}"
        if self.first is None or self.second is None:
            return f"{both}: one list ends while the other goes on"
        if self.first_count == self.second_count:
            greater = "the first" if self.first > self.second else "the second"
            return f"{both}: a tie, and the greater pair is {greater}"
        return f"{both}: the more frequent pair goes first"


def _with_count(pair: Pair | None, count: int) -> str:
    return f"{pair[0]!r} + {pair[1]!r} ({count:,} times)" if pair else "nothing"


def first_difference(
    first: Sequence[Pair], second: Sequence[Pair], counts: Mapping[str, int]
) -> MergeDifference | None:
    """The first difference of two lists of merges of the same pre-tokens; None if all agree.

    `counts` are the pre-tokens, as `count_pretokens` returns them. The shared merges are
    applied to them again, and then both candidates are counted.

    >>> first_difference([(b"a", b"b")], [(b"b", b"c")], {"abc": 2}).step
    1
    """
    # What follows a different merge differs because of it, so only the first is worth a word.
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    # One list may be the beginning of the other: that is a difference too, where it ends.
    if shared == len(first) == len(second):
        return None
    words = [(split_bytes(pretoken), count) for pretoken, count in counts.items()]
    for pair in first[:shared]:
        words = [  # the test saves most of the work: few words hold the pair
            (merge_pair(symbols, pair) if pair[0] in symbols else symbols, count)
            for symbols, count in words
        ]
    # The counts at the step in question, after all merges that both have made.
    pairs = count_pairs(words)
    one, another = (merges[shared] if shared < len(merges) else None for merges in (first, second))
    first_count, second_count = (pairs[pair] if pair else 0 for pair in (one, another))
    return MergeDifference(shared + 1, one, another, first_count, second_count)


@dataclass(frozen=True)
class Ancestor:
    """A token and the two tokens that a merge joined to it; a single byte has no parts."""

    token: bytes
    merge: int = 0  # the number of the merge, counted from 1; 0 for a byte
    parts: tuple["Ancestor", ...] = ()


def merges_behind(token: bytes, merges: Sequence[Pair]) -> Ancestor:
    """The tree of merges that made a token; if two make the same bytes, the first counts.

    Raises: ValueError if no merge makes the token.
    """
    # Backwards, so that the first of two merges overwrites the later one.
    origin = {left + right: number for number, (left, right) in reversed([*enumerate(merges, 1)])}
    if len(token) != 1 and token not in origin:
        raise ValueError(f"no merge makes {token!r}; pick a token that is not a special one")

    def tree(token: bytes) -> Ancestor:
        if len(token) == 1:
            return Ancestor(token)
        # Each half is a byte, or was made by an earlier merge: so this ends.
        number = origin[token]
        return Ancestor(token, number, tuple(map(tree, merges[number - 1])))

    return tree(token)


def outline(tree: Ancestor, indent: str = "") -> str:
    """The tree as text: one line per token, parts indented, bytes left out, equal halves once.

    >>> print(outline(merges_behind(b"test", [(b"s", b"t"), (b"t", b"e"), (b"te", b"st")])))
    b'test'  merge 3
      b'te'  merge 2
      b'st'  merge 1
    >>> print(outline(merges_behind(b"----", [(b"-", b"-"), (b"--", b"--")])))
    b'----'  merge 2, of two equal halves
      b'--'  merge 1
    """
    line = f"{indent}{tree.token!r}  merge {tree.merge:,}"
    # A row of 64 dashes is twice 32, twice 16, ...: both halves in full would be 63 lines.
    # Frozen dataclasses compare by value: two halves are equal if their whole trees are.
    twins = len(set(tree.parts)) == 1
    if twins and tree.parts[0].merge:
        line += ", of two equal halves"
    parts = tree.parts[:1] if twins else tree.parts
    return "\n".join([line, *(outline(part, indent + "  ") for part in parts if part.merge)])
