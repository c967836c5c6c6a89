"""Learning merges without a dictionary of pairs.

    cells      | n e w e s t |  w i d e s t |       every word once, with its count
    merge e s  | n e w E E t |  w i d E E t |       first and last cell of a token hold its symbol
    pair E t   occurs at cells 4 and 11             written down once, when E is made

All occurrences of a pair arise when the newer of its two symbols is made; after that they can only
vanish. So the list of a pair's places is written once, and its first count stays an upper bound. A
heap orders the pairs by that bound. The highest is counted again at the places in its list: if the
bound is still right, it is the next merge; if not, it goes back with the corrected bound.

Symbols are numbers here and byte strings in `bpe`, with the same merges, because no two merges make
the same bytes. Suppose two did. Wherever either stands in the text, no earlier merge reached across
its edges, so the same merges happened inside, in the same order, and the last one was the same.
"""

import numpy as np

from workbook.tokenization.compiled.count import Counts
from workbook.tokenization.compiled.kernels import BYTES, INTS, INTS_32, ROWS, compiled, kernel

MOST_CELLS = 2**31 - 2  # the last index, of one more, is the largest 32-bit number
EDGE, INSIDE = -1, -2  # a cell between words, a cell inside a token
SYMBOL, COUNT = 0, 1  # columns of `cells`
LEFT, RIGHT, START, STOP, BOUND = range(5)  # columns of `pairs`: symbols, part of `places`, bound


def learn_merges(words: Counts, num_merges: int) -> np.ndarray:
    """The merges as pairs of symbols (n, 2): 0 to 255 are bytes, 256 + k is what merge k made."""
    cells = lay_out(words)
    places, pairs, used, free = first_pairs(cells)
    # Sorted, so already a heap. From here on, the compiled code maintains its size and order.
    heap = np.zeros(len(pairs), np.int64)
    heap[:used] = np.lexsort(-pairs[:used, [RIGHT, LEFT, BOUND]].T)
    merges = np.empty((min(num_merges, len(cells)), 2), np.int64)
    # The bytes of symbol s are spelling[spelled[s] : spelled[s + 1]].
    spelling = np.arange(1 << 16).astype(np.uint8)
    spelled = np.arange(257 + len(merges))
    scratch = np.zeros((2, 256 + len(merges)), np.int64)
    progress = np.array([0, used, free, used])
    while learn(cells, places, pairs, heap, merges, spelling, spelled, *scratch, progress):
        pairs, heap, spelling = doubled(pairs), doubled(heap), doubled(spelling)
    return merges[: progress[0]]


def spelled_out(merges: np.ndarray) -> list[tuple[bytes, bytes]]:
    """The merges as pairs of byte strings."""
    tokens = [bytes([value]) for value in range(256)]
    pairs = []
    for left, right in merges.tolist():
        pairs.append((tokens[left], tokens[right]))
        tokens.append(tokens[left] + tokens[right])
    return pairs


def lay_out(words: Counts) -> np.ndarray:
    """The cells (n, 2): each a byte and the count of its word, with an edge around every word.

    Raises: ValueError for more cells than `places` has numbers for.
    """
    edges = np.append(0, np.cumsum(words.lengths + 1))
    if edges[-1] > MOST_CELLS:
        raise ValueError(f"{edges[-1]:,} bytes of different pre-tokens are too many; use less text")
    within = np.ones(edges[-1] + 1, bool)
    within[edges] = False
    cells = np.full((len(within), 2), EDGE, np.int64)
    cells[within, SYMBOL] = words.text[: words.lengths.sum()]
    cells[within, COUNT] = np.repeat(words.counts, words.lengths)
    return cells


def first_pairs(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Places and pairs of bytes, both with room for more, and how many there are of each."""
    symbols = cells[:, SYMBOL]
    at = np.flatnonzero((symbols[:-1] >= 0) & (symbols[1:] >= 0)).astype(np.int32)
    codes = (symbols[at] << 8 | symbols[at + 1]).astype(np.uint16)
    at = at[np.argsort(codes, kind="stable")]
    number = np.bincount(codes)
    distinct = np.flatnonzero(number)
    # A merge removes a cell and makes at most two pairs, so three places per cell suffice.
    places = np.empty(3 * len(cells), np.int32)
    places[: len(at)] = at
    pairs = np.zeros((1 << 17, 5), np.int64)
    if len(at):
        of_bytes = pairs[: len(distinct)]
        of_bytes[:, LEFT], of_bytes[:, RIGHT] = distinct >> 8, distinct & 0xFF
        of_bytes[:, STOP] = np.cumsum(number[distinct])
        of_bytes[:, START] = of_bytes[:, STOP] - number[distinct]
        of_bytes[:, BOUND] = np.add.reduceat(cells[at, COUNT], of_bytes[:, START])
    return places, pairs, len(distinct), len(at)


def doubled(array: np.ndarray) -> np.ndarray:
    """The array at twice its length, zeros at the end."""
    return np.concatenate([array, np.zeros_like(array)])


@kernel(ROWS, INTS_32, ROWS, INTS, ROWS, BYTES, INTS, INTS, INTS, INTS)
def learn(cells, places, pairs, heap, merges, spelling, spelled, number, weight, progress):
    """Continue from `progress` (merges, pairs, places, pairs in the heap).

    Returns whether it stopped for lack of room. `number` and `weight` are scratch space.
    """
    done, used, free, size = progress[0], progress[1], progress[2], progress[3]
    short = False
    while done < len(merges) and size > 0:
        best, new = heap[0], 256 + done
        left, right = pairs[best, LEFT], pairs[best, RIGHT]
        length = symbol_length(left, spelled) + symbol_length(right, spelled)
        most = 2 * (new + 1)  # pairs of the new symbol: one with each symbol, itself too, per side
        if used + most > len(pairs) or spelled[new] + length > len(spelling):
            short = True
            break
        # Merges since the bound was set may have used up some of the pair's places.
        bound = pairs[best, BOUND]
        recount(cells, places, pairs, best, spelled)
        if 0 < pairs[best, BOUND] < bound:
            sift_down(heap, size, pairs, spelling, spelled)
            continue  # another pair may be more frequent now
        size -= 1
        heap[0] = heap[size]
        sift_down(heap, size, pairs, spelling, spelled)
        if pairs[best, BOUND] == 0:
            continue  # all its places are used up, and a pair never comes back
        merges[done, 0], merges[done, 1] = left, right
        done += 1
        spell(new, left, right, spelling, spelled)
        apply(cells, places, pairs, best, spelled, new)
        for side in (-1, 1):
            before = used
            used, free = add_neighbours(
                cells, places, free, pairs, used, best, spelled, new, side, number, weight
            )
            for pair in range(before, used):
                size = push_pair(heap, size, pair, pairs, spelling, spelled)
    progress[0], progress[1], progress[2], progress[3] = done, used, free, size
    return short


@compiled
def recount(cells, places, pairs, pair, spelled):
    """Count a pair at its places, drop those where it is gone, and correct its bound."""
    left, right = pairs[pair, LEFT], pairs[pair, RIGHT]
    length = symbol_length(left, spelled)
    total, stop = 0, pairs[pair, START]
    for index in range(pairs[pair, START], pairs[pair, STOP]):
        cell = places[index]
        if cells[cell, SYMBOL] == left and cells[cell + length, SYMBOL] == right:
            total += cells[cell, COUNT]
            places[stop] = cell
            stop += 1
    pairs[pair, STOP], pairs[pair, BOUND] = stop, total


@compiled
def spell(new, left, right, spelling, spelled):
    """Write down the bytes of a new symbol."""
    at = spelled[new]
    for symbol in (left, right):
        for index in range(spelled[symbol], spelled[symbol + 1]):
            spelling[at] = spelling[index]
            at += 1
    spelled[new + 1] = at


@compiled
def apply(cells, places, pairs, pair, spelled, new):
    """Replace the pair with the new symbol at its places, and keep the places where that was done.

    In "aaa" both the first two and the last two are a pair: the second pair is gone by the time its
    turn comes.
    """
    left, right = pairs[pair, LEFT], pairs[pair, RIGHT]
    length = symbol_length(left, spelled)
    whole = symbol_length(new, spelled)
    stop = pairs[pair, START]
    for index in range(pairs[pair, START], pairs[pair, STOP]):
        cell = places[index]
        if cells[cell, SYMBOL] == left and cells[cell + length, SYMBOL] == right:
            # The two cells where both symbols met are inside now, unless they are also its ends:
            # so the ends are written last.
            cells[cell + length - 1, SYMBOL] = INSIDE
            cells[cell + length, SYMBOL] = INSIDE
            cells[cell, SYMBOL] = new
            cells[cell + whole - 1, SYMBOL] = new
            places[stop] = cell
            stop += 1
    pairs[pair, STOP] = stop


@compiled
def add_neighbours(cells, places, free, pairs, used, merged, spelled, new, side, number, weight):
    """Write down the pairs of the new symbol with its neighbours on one side (-1 left, 1 right).

    Returns the new number of pairs, and the first free place. If two new symbols are neighbours,
    their pair is found from both, and only the left one records it.
    """
    first = used
    reach = symbol_length(new, spelled) if side > 0 else -1
    own, others = (LEFT, RIGHT) if side > 0 else (RIGHT, LEFT)
    for place in range(pairs[merged, START], pairs[merged, STOP]):
        cell = places[place]
        other = cells[cell + reach, SYMBOL]
        if other >= 0 and (side > 0 or other != new):
            if number[other] == 0:
                pairs[used, own], pairs[used, others] = new, other
                used += 1
            number[other] += 1
            weight[other] += cells[cell, COUNT]
    # Now that each number is known, every pair gets its own stretch of `places`.
    for pair in range(first, used):
        other = pairs[pair, others]
        pairs[pair, BOUND] = weight[other]
        pairs[pair, START], pairs[pair, STOP] = free, free + number[other]
        free += number[other]
        number[other] = pairs[pair, START]  # from here on: the index of the next place
    for place in range(pairs[merged, START], pairs[merged, STOP]):
        cell = places[place]
        other = cells[cell + reach, SYMBOL]
        if other >= 0 and (side > 0 or other != new):
            places[number[other]] = cell if side > 0 else cell - symbol_length(other, spelled)
            number[other] += 1
    # Scratch space is left as it was found: zeros, and only where it was used.
    for pair in range(first, used):
        number[pairs[pair, others]] = weight[pairs[pair, others]] = 0
    return used, free


@compiled
def symbol_length(symbol, spelled):
    """The number of bytes in a symbol."""
    return spelled[symbol + 1] - spelled[symbol]


# --- The heap: pairs by bound; among equals, the greater pair of byte strings first -------------


@compiled
def push_pair(heap, size, pair, pairs, spelling, spelled):
    """Add a pair; return the new size."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if not precedes(pair, heap[parent], pairs, spelling, spelled):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = pair
    return size + 1


@compiled
def sift_down(heap, size, pairs, spelling, spelled):
    """Move the first pair, whose bound may have fallen, to where it belongs."""
    pair, at = heap[0], 0
    while True:
        child = 2 * at + 1
        if child + 1 < size and precedes(heap[child + 1], heap[child], pairs, spelling, spelled):
            child += 1
        if child >= size or not precedes(heap[child], pair, pairs, spelling, spelled):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = pair


@compiled
def precedes(one, other, pairs, spelling, spelled):
    """Whether one pair is merged before another: more frequent, or equally frequent and greater."""
    if pairs[one, BOUND] != pairs[other, BOUND]:
        return pairs[one, BOUND] > pairs[other, BOUND]
    for side in (LEFT, RIGHT):
        order = compare_bytes(pairs[one, side], pairs[other, side], spelling, spelled)
        if order != 0:
            return order > 0
    return False


@compiled
def compare_bytes(one, other, spelling, spelled):
    """Above 0 if the first symbol's bytes are greater, below 0 if they are smaller."""
    if one == other:
        return 0
    at, before = spelled[one], spelled[other]
    for step in range(min(symbol_length(one, spelled), symbol_length(other, spelled))):
        difference = np.int64(spelling[at + step]) - np.int64(spelling[before + step])
        if difference != 0:
            return difference
    return symbol_length(one, spelled) - symbol_length(other, spelled)
