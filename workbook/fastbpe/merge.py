"""Learning merges without a dictionary of pairs.

    cells      | n e w e s t |  w i d e s t |       every word once, with its count
    merge e s  | n e w E E t |  w i d E E t |       first and last cell of a token hold its symbol
    pair E t   occurs at cells 4 and 11             written down once, when E is made

Every occurrence of a pair comes into being when the newer of its two symbols is made, and from
then on occurrences only vanish. So the list of a pair's places is written once, and its first count
is an upper bound for ever. A heap holds the pairs by that bound; the highest is counted again at
the places of its list: right still, it is the next merge, and if not it goes back, corrected.
"""

import numpy as np

from workbook.fastbpe.count import Counts
from workbook.fastbpe.machine import compiled

EDGE, INSIDE = -1, -2  # a cell between words, a cell inside a token
SYMBOL, COUNT = 0, 1  # columns of `cells`
LEFT, RIGHT, START, STOP, BOUND = range(5)  # columns of `pairs`: symbols, part of `places`, bound


def learn_merges(words: Counts, num_merges: int) -> np.ndarray:
    """The merges as pairs of symbols (n, 2): 0 to 255 are bytes, 256 + k is what merge k made."""
    return learn(words.text, words.lengths, words.counts, num_merges)


@compiled
def learn(text, lengths, counts, num_merges):
    """`learn_merges` on plain arrays."""
    cells = lay_out(text, lengths, counts)
    spelling = np.empty(1 << 16, np.uint8)
    spelled = np.zeros(257 + num_merges, np.int64)
    for symbol in range(256):  # the bytes of symbol s are spelling[spelled[s] : spelled[s + 1]]
        spelling[symbol] = symbol
        spelled[symbol + 1] = symbol + 1
    # A merge takes a cell away and makes two pairs at most, so three places a cell suffice.
    places = np.empty(3 * len(cells), np.int32)
    pairs, used = first_pairs(cells, places)
    heap = np.empty(len(pairs), np.int32)
    size = 0
    for pair in range(used):
        size = push(heap, size, pair, pairs, spelling, spelled)

    merges = np.empty((num_merges, 2), np.int32)
    done, free = 0, pairs[used - 1, STOP] if used else 0
    # Scratch of `add_neighbours`, a number for each symbol, all zeros between its calls.
    number, weight = np.zeros((2, 256 + num_merges), np.int64)
    while done < num_merges and size > 0:
        best = heap[0]
        bound = pairs[best, BOUND]
        recount(cells, places, pairs[best], spelled)
        if 0 < pairs[best, BOUND] < bound:
            sift_down(heap, size, pairs, spelling, spelled)
            continue
        size = pop(heap, size, pairs, spelling, spelled)
        if pairs[best, BOUND] == 0:
            continue
        new = 256 + done
        merges[done] = pairs[best, LEFT], pairs[best, RIGHT]
        done += 1
        spelling = spell(new, pairs[best], spelling, spelled)
        apply(cells, places, pairs[best], spelled, new)
        if used + 2 * new > len(pairs):
            pairs = np.concatenate((pairs, np.empty((len(pairs) + 2 * new, 5), np.int64)))
            heap = np.concatenate((heap, np.empty(len(pairs) - len(heap), np.int32)))
        for side in (-1, 1):
            before = used
            used, free = add_neighbours(
                cells, places, free, pairs, used, best, spelled, new, side, number, weight
            )
            for pair in range(before, used):
                size = push(heap, size, pair, pairs, spelling, spelled)
    return merges[:done]


@compiled
def lay_out(text, lengths, counts):
    """The cells (n, 2): a byte and the count of its word each, with an edge round every word."""
    cells = np.full((lengths.sum() + len(lengths) + 1, 2), EDGE, np.int64)
    cell, at = 1, 0
    for index in range(len(lengths)):
        for _ in range(lengths[index]):
            cells[cell, SYMBOL], cells[cell, COUNT] = text[at], counts[index]
            cell += 1
            at += 1
        cell += 1
    return cells


@compiled
def first_pairs(cells, places):
    """The pairs of bytes, with their places, and how many pairs there are."""
    number = np.zeros(1 << 16, np.int64)
    weight = np.zeros(1 << 16, np.int64)
    for cell in range(len(cells) - 1):
        left, right = cells[cell, SYMBOL], cells[cell + 1, SYMBOL]
        if left >= 0 and right >= 0:
            number[left << 8 | right] += 1
            weight[left << 8 | right] += cells[cell, COUNT]
    pairs = np.empty((1 << 17, 5), np.int64)
    used, stop = 0, 0
    for code in range(1 << 16):
        if number[code]:
            start, stop = stop, stop + number[code]
            pairs[used] = (code >> 8, code & 0xFF, start, stop, weight[code])
            number[code] = start  # from here on: where the next place goes
            used += 1
    for cell in range(len(cells) - 1):
        left, right = cells[cell, SYMBOL], cells[cell + 1, SYMBOL]
        if left >= 0 and right >= 0:
            places[number[left << 8 | right]] = cell
            number[left << 8 | right] += 1
    return pairs, used


@compiled
def recount(cells, places, pair, spelled):
    """Count a pair at its places, forget those where it is no more, correct its bound."""
    left, right = pair[LEFT], pair[RIGHT]
    length = length_of(left, spelled)
    total, stop = 0, pair[START]
    for index in range(pair[START], pair[STOP]):
        cell = places[index]
        if cells[cell, SYMBOL] == left and cells[cell + length, SYMBOL] == right:
            total += cells[cell, COUNT]
            places[stop] = cell
            stop += 1
    pair[STOP], pair[BOUND] = stop, total


@compiled
def spell(new, pair, spelling, spelled):
    """Write down the bytes of a new symbol; the memory of all spellings, larger if need be."""
    at = spelled[new]
    for symbol in (pair[LEFT], pair[RIGHT]):
        length = length_of(symbol, spelled)
        if at + length > len(spelling):
            spelling = np.concatenate((spelling, np.empty(len(spelling) + length, np.uint8)))
        spelling[at : at + length] = spelling[spelled[symbol] : spelled[symbol] + length]
        at += length
    spelled[new + 1] = at
    return spelling


@compiled
def apply(cells, places, pair, spelled, new):
    """Replace the pair by the new symbol at its places, and keep the places where that was done.

    In "aaa" the first two are a pair and the last two are a pair: the second one is gone by the
    time its turn comes.
    """
    left, right = pair[LEFT], pair[RIGHT]
    length = length_of(left, spelled)
    whole = length_of(new, spelled)
    stop = pair[START]
    for index in range(pair[START], pair[STOP]):
        cell = places[index]
        if cells[cell, SYMBOL] == left and cells[cell + length, SYMBOL] == right:
            cells[cell + length - 1, SYMBOL] = INSIDE
            cells[cell + length, SYMBOL] = INSIDE
            cells[cell, SYMBOL] = new
            cells[cell + whole - 1, SYMBOL] = new
            places[stop] = cell
            stop += 1
    pair[STOP] = stop


@compiled
def add_neighbours(cells, places, free, pairs, used, merged, spelled, new, side, number, weight):
    """Write down the pairs of the new symbol with its neighbours on one side (-1 left, 1 right).

    Returns how many pairs there are then, and the first free place. Where two new symbols are
    neighbours, their pair is found from both: only the left one of them takes it.
    """
    first = used
    reach = length_of(new, spelled) if side > 0 else -1
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
    for pair in range(first, used):
        other = pairs[pair, others]
        pairs[pair, BOUND] = weight[other]
        pairs[pair, START], pairs[pair, STOP] = free, free + number[other]
        free += number[other]
        number[other] = pairs[pair, START]  # from here on: where the next place goes
    for place in range(pairs[merged, START], pairs[merged, STOP]):
        cell = places[place]
        other = cells[cell + reach, SYMBOL]
        if other >= 0 and (side > 0 or other != new):
            places[number[other]] = cell if side > 0 else cell - length_of(other, spelled)
            number[other] += 1
    for pair in range(first, used):
        number[pairs[pair, others]] = weight[pairs[pair, others]] = 0
    return used, free


@compiled
def length_of(symbol, spelled):
    """The bytes of a symbol."""
    return spelled[symbol + 1] - spelled[symbol]


# --- The heap: pairs by bound, and of equals the greater pair of byte strings first -------------


@compiled
def push(heap, size, pair, pairs, spelling, spelled):
    """Add a pair; the new size."""
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
def pop(heap, size, pairs, spelling, spelled):
    """Take the first pair away; the new size."""
    heap[0] = heap[size - 1]
    sift_down(heap, size - 1, pairs, spelling, spelled)
    return size - 1


@compiled
def sift_down(heap, size, pairs, spelling, spelled):
    """Bring the first pair, whose bound may have fallen, to where it belongs."""
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
    """Whether one pair is merged before another: more frequent, or as frequent and greater."""
    if pairs[one, BOUND] != pairs[other, BOUND]:
        return pairs[one, BOUND] > pairs[other, BOUND]
    for side in (LEFT, RIGHT):
        order = compare(pairs[one, side], pairs[other, side], spelling, spelled)
        if order != 0:
            return order > 0
    return False


@compiled
def compare(one, other, spelling, spelled):
    """Above 0 where the first symbol's bytes are greater, below where they are smaller."""
    if one == other:
        return 0
    at, before = spelled[one], spelled[other]
    for step in range(min(length_of(one, spelled), length_of(other, spelled))):
        difference = np.int64(spelling[at + step]) - np.int64(spelling[before + step])
        if difference != 0:
            return difference
    return length_of(one, spelled) - length_of(other, spelled)
