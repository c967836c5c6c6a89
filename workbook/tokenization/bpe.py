"""Training byte-pair encoding: first as in the paper, then without counting anything twice.

    counts      "low" 5, "lower" 2, "newest" 6, "widest" 3
    pairs       (e, s) 9, (s, t) 9, (w, e) 8, (l, o) 7, ...
    merge       the most frequent pair becomes one token; of equals the greater pair of byte strings
    repeat      until the vocabulary is full, or no pair is left

`train_naive` counts all pairs again for each merge. `train_incremental` keeps the counts and
updates them for the words that a merge changed. `train_bpe`, below them, takes a file: it uses the
latter if the file is small, and else the engine in `compiled`. All give the same merges; the
notebook 02_bpe times them.

Source: Sennrich, Haddow & Birch 2016, algorithm 1, on bytes as in Radford et al. 2019, section 2.2.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext
from itertools import pairwise
from numbers import Integral

from workbook.tokenization import engine
from workbook.tokenization.pretokens import check_special_tokens
from workbook.tokenization.spans import AnyPath, count_pretokens, text_file

Pair = tuple[bytes, bytes]


def train_naive(counts: Mapping[str, int], num_merges: int) -> list[Pair]:
    """The first `num_merges` merges of counted pre-tokens; all pairs are counted again for each.

    >>> train_naive({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 3)
    [(b's', b't'), (b'e', b'st'), (b'o', b'w')]
    """
    # Each different pre-token once, with its count: a text of a billion words has a few million
    # different ones, and merges never reach across them.
    words = [(split_bytes(pretoken), count) for pretoken, count in counts.items()]
    merges: list[Pair] = []
    while len(merges) < num_merges:
        pairs = count_pairs(words)
        if not pairs:
            break  # every word is a single token
        # The count decides, and among equals the pair itself, compared byte by byte.
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        words = [(merge_pair(symbols, best), count) for symbols, count in words]
        merges.append(best)
    return merges


def split_bytes(pretoken: str) -> list[bytes]:
    """A pre-token as single bytes, the symbols that training starts from."""
    # `bytes([byte])`, since a single element of bytes is a number, and numbers cannot be joined.
    return [bytes([byte]) for byte in pretoken.encode()]


def count_pairs(words: Sequence[tuple[list[bytes], int]]) -> Counter[Pair]:
    """How often each pair of neighbours occurs in words, each given with its own count."""
    pairs: Counter[Pair] = Counter()
    for symbols, count in words:
        # Each different word is looked at once, however often it occurs in the text.
        for pair in pairwise(symbols):
            pairs[pair] += count
    return pairs


def merge_pair(symbols: list[bytes], pair: Pair) -> list[bytes]:
    """The word with each occurrence of `pair` joined, from left to right.

    >>> merge_pair([b"a", b"a", b"a"], (b"a", b"a"))
    [b'aa', b'a']
    """
    left, right = pair
    merged = []
    at = 0
    while at < len(symbols):
        # A slice, because the last symbol has no next one to ask for.
        if symbols[at] == left and symbols[at + 1 : at + 2] == [right]:
            merged.append(left + right)
            at += 2  # so the next pair cannot begin inside this one: "aaa" becomes "aa", "a"
        else:
            merged.append(symbols[at])
            at += 1
    return merged


def train_incremental(counts: Mapping[str, int], num_merges: int) -> list[Pair]:
    """The same merges as `train_naive`, from pair counts that are corrected after each merge.

    A merge changes only the words that hold its pair, which `holders` finds. The most frequent pair
    comes from a heap whose entries may be out of date: an entry is valid only while it agrees with
    `pairs`, and each change of a count pushes a new one.
    """
    words = [(split_bytes(pretoken), count) for pretoken, count in counts.items()]
    pairs = count_pairs(words)
    # Of each pair, the numbers of the words that hold it.
    holders: dict[Pair, set[int]] = defaultdict(set)
    for index, (symbols, _) in enumerate(words):
        for pair in pairwise(symbols):
            holders[pair].add(index)
    # Python's heap has its smallest entry first, so `_entry` turns the order round.
    heap = [_entry(pair, count) for pair, count in pairs.items()]
    # A heap instead of `max`: to look through all pairs for each merge would take most of the time.
    heapq.heapify(heap)

    merges: list[Pair] = []
    while heap and len(merges) < num_merges:
        # Nothing can be taken out of the middle of a heap. So when a count changes, the old entry
        # stays behind, and is told by its wrong count when it comes to the top.
        negative_count, _, best = heapq.heappop(heap)
        if -negative_count != pairs[best]:
            continue  # out of date: an entry with the right count is in the heap as well
        merges.append(best)
        # Changes of this merge, summed up first: many words change the same pair, and each pair
        # whose count changes costs a push.
        changes: Counter[Pair] = Counter()
        for index in holders.pop(best):
            symbols, count = words[index]
            merged = merge_pair(symbols, best)
            # n e w e s t -> n e w es t takes away (w, e), (e, s), (s, t) and adds (w, es), (es, t).
            # Pairs that stay are subtracted and added again, which leaves their count as it was.
            for pair in pairwise(symbols):
                changes[pair] -= count
            for pair in pairwise(merged):
                changes[pair] += count
                holders[pair].add(index)
            # A pair that the word has lost still has it among its holders. That does no harm: when
            # its turn comes, it changes nothing there. To take it out would mean asking whether the
            # pair still occurs elsewhere in the word.
            words[index] = merged, count
        for pair, change in changes.items():
            if change:
                pairs[pair] += change
                # A pair whose count fell to 0 stays out of the heap, or it would be merged.
                if pairs[pair]:
                    heapq.heappush(heap, _entry(pair, pairs[pair]))
    return merges


_COMPLEMENT = bytes(range(255, -1, -1))


def _entry(pair: Pair, count: int) -> tuple[int, tuple[str, str], Pair]:
    """A heap entry: the smallest is the most frequent pair, and among equals the greatest pair.

    A heap pops the smallest, so both orders are reversed: each byte b becomes the character
    255 - b, and an end mark above them all puts a string after the longer ones that it begins.
    """
    left, right = (symbol.translate(_COMPLEMENT).decode("latin-1") + "\u0100" for symbol in pair)
    # Ties go by bytes and not by first occurrence, so that the merges depend on the counts alone,
    # and not on the order in which a file, or its workers, were read.
    return -count, (left, right), pair


def train_bpe(
    input_path: AnyPath,
    vocab_size: int,
    special_tokens: Sequence[str] | None,
    *,
    executor: Executor | None = None,
) -> tuple[dict[int, bytes], list[Pair]]:
    """The vocabulary (id -> bytes) and the merges (in order) of a UTF-8 text file.

    Ids are given to the special tokens in the order given, then to the 256 bytes, then to one token
    per merge. `vocab_size` counts them all. Special tokens are hard boundaries and never counted;
    None means that there are none. A text that runs out of pairs gives a smaller vocabulary.
    Parts of a large file are counted in parallel: by the `executor` (any of `concurrent.futures`),
    or else by one thread for each core. `ThreadPoolExecutor(1)` keeps to one.
    Raises: ValueError if `vocab_size` has no room for bytes and special tokens, or the file is not
    UTF-8; TypeError; FileNotFoundError.
    """
    special_tokens = check_special_tokens(special_tokens)
    # Special tokens come first, so their ids stay the same whatever the size of the vocabulary.
    # Bytes and not strings: a token may be part of a character.
    vocab = dict(enumerate(token.encode() for token in special_tokens))
    smallest = 256 + len(vocab)
    if not isinstance(vocab_size, Integral):
        raise TypeError(f"vocab_size is a whole number of tokens, got {vocab_size!r}")
    if vocab_size < smallest:
        needed = f"256 bytes and {len(vocab)} special tokens need at least {smallest}"
        raise ValueError(f"vocab_size={vocab_size} is too small: {needed}")
    path = text_file(input_path)
    num_merges = vocab_size - smallest
    if engine.loaded or engine.pays_off(path.stat().st_size):
        from workbook.tokenization import compiled  # loads LLVM

        merges = compiled.train_on_file(path, special_tokens, num_merges, executor)
    else:
        merges = train_incremental(count_pretokens(path, special_tokens, executor), num_merges)
    # All 256 bytes are tokens, so every text can be encoded, even one of letters never seen.
    tokens = [bytes([byte]) for byte in range(256)] + [left + right for left, right in merges]
    vocab.update(enumerate(tokens, start=len(vocab)))
    return vocab, merges


def train_in_python(
    input_path: AnyPath, vocab_size: int, special_tokens: Sequence[str], workers: int = 0
) -> list[Pair]:
    """The merges of `train_bpe`, without the compiled engine, whatever the size of the file.

    `workers` processes share the counting; 0: this one counts alone.
    """
    num_merges = vocab_size - 256 - len(special_tokens)
    with ProcessPoolExecutor(workers) if workers else nullcontext() as executor:
        # The counting can be shared, since counts of parts add up; a merge depends on the one
        # before.
        counts = count_pretokens(input_path, special_tokens, executor)
        return train_incremental(counts, num_merges)
