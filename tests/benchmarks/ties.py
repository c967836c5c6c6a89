"""Whether a trainer differs from ours only in its choice among equally frequent pairs.

Each library has a rule of its own for such ties, and after the first tie the merges go apart. So a
list of merges is not compared with ours but replayed: each must join one of the most frequent pairs
at its turn.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from workbook.tokenization.bpe import count_pairs, merge_pair, split_bytes


def first_not_most_frequent(learnt: Sequence[bytes], counts: Mapping[str, int]) -> str:
    """The first token learnt whose pair another one outnumbers, in words; empty if there is none.

    `learnt` has the token of each merge, in order; `counts` how often each pre-token occurs.

    >>> first_not_most_frequent([b"ab", b"abc"], {"abc": 3, "bc": 1})
    "at 0: b'ab' occurs 3 times, another pair 4 times"
    >>> first_not_most_frequent([b"bc", b"abc"], {"abc": 3, "bc": 1})
    ''
    """
    words = [split_bytes(pretoken) for pretoken in counts]
    numbers = list(counts.values())
    pairs = count_pairs(list(zip(words, numbers, strict=True)))
    holders = defaultdict(set)  # the words that have, or once had, a pair
    for word, symbols in enumerate(words):
        for pair in pairwise(symbols):
            holders[pair].add(word)
    for rank, token in enumerate(learnt):
        # A token does not tell of which two parts it was made: those that occur most often.
        cuts = [(token[:cut], token[cut:]) for cut in range(1, len(token))]
        pair = max(cuts, key=lambda cut: pairs[cut])
        most = max(pairs.values())
        if most == 0:  # every word is one token, and what a library adds now is never used
            break
        if pairs[pair] < most:
            return f"at {rank}: {token!r} occurs {pairs[pair]} times, another pair {most} times"
        for word in holders.pop(pair):
            for old in pairwise(words[word]):
                pairs[old] -= numbers[word]
            words[word] = merge_pair(words[word], pair)
            for new in pairwise(words[word]):
                pairs[new] += numbers[word]
                holders[new].add(word)
    return ""
