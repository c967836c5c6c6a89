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

from workbook.files import no_collection
from workbook.tokenization.compiled.count import Counts
from workbook.tokenization.compiled.kernels import BYTES, INTS, INTS_32, ROWS, compiled, kernel
from workbook.tokenization.compiled.machine import prefetch

MOST_CELLS = 2**31 - 2  # the last index, of one more, is the largest 32-bit number
EDGE = -1  # a cell between words
INSIDE = -2  # a cell inside a token
SYMBOL, COUNT = 0, 1  # columns of `cells`
LEFT, RIGHT, START, STOP, BOUND = range(5)  # columns of `pairs`: symbols, part of `places`, bound
# Columns of `symbols`: bytes, the first of them as one number, a cell where they stand; and for the
# pairs of a new symbol with this one, on its left and on its right: their number, their count.
LENGTH, PREFIX, CELL, NUMBER, WEIGHT = 0, 1, 2, 3, 5
PREFIX_BYTES = 7
BYTE_PAIRS = 1 << 16
AHEAD, CELL_BYTES = 24, 16  # how far ahead cells are loaded; each is two numbers


def learn_merges(words: Counts, num_merges: int) -> np.ndarray:
    """The merges as pairs of symbols (n, 2): 0 to 255 are bytes, 256 + k is what merge k made.

    Raises: ValueError for more bytes than `places` has numbers for.
    """
    # A cell for each byte, and one between words, so that no pair reaches from one into the next.
    last = int(words.lengths.sum()) + len(words.lengths)
    if last > MOST_CELLS:
        raise ValueError(f"{last:,} bytes of different pre-tokens are too many; use less text")
    # A cell holds a symbol, and how often its word occurs, side by side: one load brings both.
    cells, around = np.empty((2, last + 1, 2), np.int64)
    letters = np.empty(len(cells), np.uint8)  # of each cell, whatever becomes of its symbol
    # A merge removes a cell and makes at most two pairs, so three places per cell suffice.
    places = np.empty(3 * len(cells), np.int32)
    # At first all pairs of bytes, at most one for each cell, and what the first merge may add.
    pairs = np.zeros((min(BYTE_PAIRS, len(cells) + 2 * 257), 5), np.int64)
    # By the two bytes as one number: 65,536 counters in place of a dictionary.
    number = np.zeros(BYTE_PAIRS, np.int32)
    used = lay_out(words.text, words.lengths, words.counts, cells, letters, places, pairs, number)
    # Each merge removes at least one cell, so there can be no more of them than cells.
    merges = np.empty((min(num_merges, last), 2), np.int64)
    symbols = np.zeros((256 + len(merges), 7), np.int64)
    symbols[:256, LENGTH] = 1
    # The first byte highest: then numbers compare as byte strings do, up to seven bytes.
    symbols[:256, PREFIX] = np.arange(256) << 8 * (PREFIX_BYTES - 1)
    heap = np.empty(len(pairs), np.int64)
    progress = np.array([0, used, pairs[used - 1, STOP], 0])
    # A kernel allocates nothing. It stops when the pairs are full, and goes on in larger arrays.
    while learn(cells, letters, places, pairs, heap, merges, symbols, around, progress):
        pairs = doubled(pairs)
        heap = doubled(heap)
    return merges[: progress[0]]


@no_collection()
def spelled_out(merges: np.ndarray) -> list[tuple[bytes, bytes]]:
    """The merges as pairs of byte strings."""
    # In order, so that both halves of a token are spelled out before it is.
    tokens = [bytes([value]) for value in range(256)]
    lefts, rights = merges.T.tolist()
    for left, right in zip(lefts, rights, strict=True):
        tokens.append(tokens[left] + tokens[right])
    return list(zip(map(tokens.__getitem__, lefts), map(tokens.__getitem__, rights), strict=True))


def doubled(array: np.ndarray) -> np.ndarray:
    """The array at twice its length, zeros at the end."""
    return np.concatenate([array, np.zeros_like(array)])


@kernel(BYTES, INTS, INTS, ROWS, BYTES, INTS_32, ROWS, INTS_32)
def lay_out(text, lengths, counts, cells, letters, places, pairs, number):
    """Fill the cells, and write down the pairs of bytes; return how many of these there are.

    `number` is zeros, one for each pair that two bytes can make.
    """
    at = cell = 0
    for word in range(len(lengths)):
        cells[cell, SYMBOL] = EDGE
        for step in range(lengths[word]):
            cell += 1
            cells[cell, SYMBOL] = text[at]
            cells[cell, COUNT] = counts[word]
            letters[cell] = text[at]
            if step > 0:
                # Counted first: then the places of each pair get a stretch of just the right
                # length.
                number[text[at - 1] << 8 | text[at]] += 1
            at += 1
        cell += 1
    cells[cell, SYMBOL] = EDGE
    # `places` is cut into stretches, one behind the other; `free` is where the next one begins.
    used = free = 0
    for code in range(BYTE_PAIRS):
        if number[code] > 0:
            pairs[used, LEFT] = code >> 8
            pairs[used, RIGHT] = code & 0xFF
            pairs[used, START] = pairs[used, STOP] = free
            free += number[code]
            number[code] = used  # from here on: which pair it is
            used += 1
    for cell in range(1, len(cells)):
        left = cells[cell - 1, SYMBOL]
        right = cells[cell, SYMBOL]
        if left >= 0 and right >= 0:
            # A place is the cell of the left symbol; the bound adds up the counts of the words.
            pair = number[left << 8 | right]
            places[pairs[pair, STOP]] = cell - 1
            pairs[pair, STOP] += 1
            pairs[pair, BOUND] += cells[cell, COUNT]
    return used


@kernel(ROWS, BYTES, INTS_32, ROWS, INTS, ROWS, ROWS, ROWS, INTS)
def learn(cells, letters, places, pairs, heap, merges, symbols, around, progress):
    """Continue from `progress` (merges, pairs, the first free place, pairs in the heap).

    Returns whether it stopped for lack of room. `around` is scratch space.
    """
    done = progress[0]
    used = progress[1]
    free = progress[2]
    size = progress[3]
    short = False
    # The first pair that is not in the heap: at the very beginning, the heap is empty.
    waiting = used if size > 0 else 0
    while True:
        # Only now are the pairs of the last merge complete, and their bounds known.
        for pair in range(waiting, used):
            size = push_pair(heap, size, pair, pairs, symbols, letters)
        waiting = used
        if done == len(merges) or size == 0:
            break
        # The pair with the highest bound, which is looked at again before it is believed.
        best = heap[0]
        # Symbols are numbers in the order in which they are made.
        new = 256 + done
        if used + 2 * (new + 1) > len(pairs):  # one with each symbol, itself too, on either side
            short = True
            break
        # Merges since the bound was set may have used up some of the pair's places.
        bound = pairs[best, BOUND]
        recount(cells, places, pairs, best, symbols)
        # It goes back with its true count; only the next time that it is on top, it is merged.
        if 0 < pairs[best, BOUND] < bound:
            sift_down(heap, size, pairs, symbols, letters)
            continue  # another pair may be more frequent now
        size -= 1
        heap[0] = heap[size]
        sift_down(heap, size, pairs, symbols, letters)
        if pairs[best, BOUND] == 0:
            continue  # all its places are used up, and a pair never comes back
        left = pairs[best, LEFT]
        right = pairs[best, RIGHT]
        merges[done, 0] = left
        merges[done, 1] = right
        done += 1
        length = symbols[left, LENGTH]
        symbols[new, LENGTH] = length + symbols[right, LENGTH]
        # The right half's bytes behind those of the left, as far as seven bytes reach.
        rest = symbols[right, PREFIX] >> 8 * min(length, PREFIX_BYTES)
        symbols[new, PREFIX] = symbols[left, PREFIX] | rest
        symbols[new, CELL] = places[pairs[best, START]]
        used = apply(cells, places, pairs, used, best, new, symbols, around)
        free = add_pairs(places, free, pairs, waiting, used, best, new, symbols, around)
    progress[0] = done
    progress[1] = used
    progress[2] = free
    progress[3] = size
    return short


@compiled
def recount(cells, places, pairs, pair, symbols):
    """Count a pair at its places, drop those where it is gone, and correct its bound.

    Most time is spent here, so nothing branches: each place is written where the next one to stay
    belongs, and counted once or not at all.
    """
    left = pairs[pair, LEFT]
    right = pairs[pair, RIGHT]
    length = symbols[left, LENGTH]
    total = 0
    stop = pairs[pair, START]
    for index in range(pairs[pair, START], pairs[pair, STOP]):
        cell = places[index]
        fetch_ahead(cells, places, index)
        # `&` and not `and`: both sides are computed, and nothing has to be guessed.
        there = (cells[cell, SYMBOL] == left) & (cells[cell + length, SYMBOL] == right)
        total += cells[cell, COUNT] * there
        places[stop] = cell
        stop += there
    pairs[pair, STOP] = stop
    pairs[pair, BOUND] = total


@compiled
def fetch_ahead(cells, places, index):
    """Begin to load the cell at a place some steps on, which lies far away in memory.

    It may be another pair's place, or none: then nothing comes of it.
    """
    # A cell far away takes long to come from memory. The places are known beforehand, so the
    # processor can fetch some while it counts others.
    ahead = places[min(index + AHEAD, len(places) - 1)]
    prefetch(cells.ctypes.data + CELL_BYTES * np.int64(ahead))


@compiled
def apply(cells, places, pairs, used, pair, new, symbols, around):
    """Replace the pair with the new symbol at its places, and note what stands around each.

    In "aaa" both the first two and the last two are a pair: the second pair is gone by the time its
    turn comes. Returns the new number of pairs, for which `add_pairs` will make room. The symbol on
    the right may still become part of a new one; then the bound is too high, as bounds may be.
    """
    left = pairs[pair, LEFT]
    right = pairs[pair, RIGHT]
    length = symbols[left, LENGTH]
    whole = symbols[new, LENGTH]
    # The list is written anew while it is read: at its front, the places that were merged.
    start = stop = pairs[pair, START]
    for index in range(start, pairs[pair, STOP]):
        cell = places[index]
        fetch_ahead(cells, places, index)
        if cells[cell, SYMBOL] == left and cells[cell + length, SYMBOL] == right:
            # The two cells where both symbols met are inside now, unless they are also its ends:
            # so the ends are written last.
            cells[cell + length - 1, SYMBOL] = INSIDE
            cells[cell + length, SYMBOL] = INSIDE
            cells[cell, SYMBOL] = new
            cells[cell + whole - 1, SYMBOL] = new
            for side in (LEFT, RIGHT):
                other = cells[cell - 1 if side == LEFT else cell + whole, SYMBOL]
                if other >= 0:
                    if symbols[other, NUMBER + side] == 0:
                        pairs[used, side] = other
                        pairs[used, 1 - side] = new
                        used += 1
                    symbols[other, NUMBER + side] += 1
                    symbols[other, WEIGHT + side] += cells[cell, COUNT]
                # Noted now, and written down as places when it is known how many each pair has.
                around[stop - start, side] = other
            places[stop] = cell
            stop += 1
    pairs[pair, STOP] = stop
    return used


@compiled
def add_pairs(places, free, pairs, first, used, merged, new, symbols, around):
    """Write down the places of the pairs from `first` on; return the first place that is free."""
    for pair in range(first, used):
        # Two new symbols side by side are found from the one on the right.
        # On which side of the new symbol the other one stands.
        side = LEFT if pairs[pair, RIGHT] == new else RIGHT
        other = pairs[pair, side]
        pairs[pair, START] = free
        pairs[pair, BOUND] = symbols[other, WEIGHT + side]
        free += symbols[other, NUMBER + side]
        pairs[pair, STOP] = free
        # From here on, the index of the next place; and in the end what it was, 0.
        symbols[other, NUMBER + side] = pairs[pair, START]
        symbols[other, WEIGHT + side] = 0
    start = pairs[merged, START]
    for index in range(start, pairs[merged, STOP]):
        for side in (LEFT, RIGHT):
            other = around[index - start, side]
            if other >= 0:
                # A pair's place is its first cell: with the new symbol on the right, that of the
                # other.
                back = symbols[other, LENGTH] if side == LEFT else 0
                places[symbols[other, NUMBER + side]] = places[index] - back
                symbols[other, NUMBER + side] += 1
    for pair in range(first, used):
        symbols[pairs[pair, LEFT], NUMBER + LEFT] = symbols[pairs[pair, RIGHT], NUMBER + RIGHT] = 0
    return free


# --- The heap: pairs by bound; among equals, the greater pair of byte strings first -------------


@compiled
def push_pair(heap, size, pair, pairs, symbols, letters):
    """Add a pair; return the new size."""
    # From the end upwards, until the parent comes first.
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if not precedes(pair, heap[parent], pairs, symbols, letters):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = pair
    return size + 1


@compiled
def sift_down(heap, size, pairs, symbols, letters):
    """Move the first pair, whose bound may have fallen, to where it belongs."""
    # The last in the heap took the first place, or the first got a lower bound.
    pair = heap[0]
    at = 0
    while True:
        child = 2 * at + 1
        if child + 1 < size and precedes(heap[child + 1], heap[child], pairs, symbols, letters):
            child += 1
        if child >= size or not precedes(heap[child], pair, pairs, symbols, letters):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = pair


@compiled
def precedes(one, other, pairs, symbols, letters):
    """Whether one pair is merged before another: more frequent, or equally frequent and greater."""
    if pairs[one, BOUND] != pairs[other, BOUND]:
        return pairs[one, BOUND] > pairs[other, BOUND]
    for side in (LEFT, RIGHT):
        # As tuples compare: the left symbols decide, and if they are equal, the right ones.
        order = compare_bytes(pairs[one, side], pairs[other, side], symbols, letters)
        if order != 0:
            return order > 0
    return False


@compiled
def compare_bytes(one, other, symbols, letters):
    """Above 0 if the first symbol's bytes are greater, below 0 if they are smaller."""
    if one == other or symbols[one, PREFIX] != symbols[other, PREFIX]:
        return symbols[one, PREFIX] - symbols[other, PREFIX]  # nearly always, they differ here
    # The bytes of a symbol still stand at the place where it first occurred: none is stored twice.
    at = symbols[one, CELL]
    before = symbols[other, CELL]
    for step in range(PREFIX_BYTES, min(symbols[one, LENGTH], symbols[other, LENGTH])):
        difference = np.int64(letters[at + step]) - np.int64(letters[before + step])
        if difference != 0:
            return difference
    return symbols[one, LENGTH] - symbols[other, LENGTH]
