"""Text to ids: scan, look each pre-token up, and merge only the new ones.

    " the"  -> slot -> 1 id   262                 the slot's number holds the id itself
    " xylem" -> slot -> 3 ids  at place 71        or where in `pieces` the ids lie

A language uses few words again and again, so all but one in a hundred pre-tokens are found, and
encoding takes little longer than scanning and looking up. Memory is bounded: a full table is
emptied, and fills again with the words that the text uses by then.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from workbook.tokenization.compiled.machine import byte, compiled, padded, store, word
from workbook.tokenization.compiled.scan import character_kinds, token_end
from workbook.tokenization.compiled.table import Table, entry
from workbook.tokenization.compiled.text import (
    Documents,
    documents_of,
    read_documents,
    special_bytes,
)

MOST_SLOTS = 1 << 20  # half a million pre-tokens remembered in 32 MB
MOST_BYTES = 1 << 26  # and 64 MB of long ones and of ids
GONE, NO_MERGE = -1, 0
PLACE_BITS, PLACE_MASK = 32, (1 << 32) - 1
ID_BITS = np.uint64(32)
NUMBER_MASK = np.uint64(0xFFFF_FFFF)


class CompiledEncoder:
    """Merges and ids as arrays, and the table of what was encoded before.

    Symbols: 0 to 255 are bytes, 256 + k is what merge k makes. `merges` are pairs of symbols
    (n, 2), `ids` (256 + n) the id of each symbol, `special_ids` those of special tokens. One
    thread at a time.
    """

    def __init__(self, merges: np.ndarray, ids: np.ndarray, special_ids: Mapping[str, int]):
        self.ids = ids.astype(np.int64)
        self.special_ids = {token.encode(): token_id for token, token_id in special_ids.items()}
        self.special_tokens = list(special_ids)
        self.special = special_bytes(self.special_tokens)
        self.pairs = np.zeros((1 << max(2 * len(merges), 2).bit_length(), 2), np.uint64)
        enter_pairs(merges.astype(np.int64), self.pairs.ctypes.data, len(self.pairs))
        self.forget()

    def forget(self) -> None:
        """Empty the table."""
        self.table = Table()
        self.pieces = np.empty(1 << 16, np.int64)
        self.used_pieces = 0
        self.set_longest(1 << 10)

    def set_longest(self, length: int) -> None:
        """Scratch for pre-tokens of this length: see `merge`."""
        self.scratch = [np.empty(size * length, np.int64) for size in (1, 1, 1, 1, 2)]

    def encode_file(self, path: Path, cuts: Sequence[int]) -> Iterator[np.ndarray]:
        """The ids of a file, span by span between the cuts."""
        for documents in read_documents(path, self.special_tokens, cuts):
            yield self.encode_documents(documents)

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text. Raises: UnicodeEncodeError where it holds a lone surrogate."""
        return self.encode_documents(documents_of(padded(text.encode()), self.special))

    def encode_documents(self, documents: Documents) -> np.ndarray:
        """The ids of documents and of the special tokens between them."""
        special_ids = np.array([*map(self.special_ids.get, documents.specials), -1])
        kinds = character_kinds().ctypes.data
        out = np.empty(len(documents.text), np.uint32)
        progress = np.array([0, documents.starts[0], 0, self.used_pieces])
        while longest := encode_on(
            documents.starts, documents.ends, special_ids, kinds, self.table.address, self.pieces,
            self.pairs.ctypes.data, len(self.pairs), self.ids, *self.scratch, out, progress,
        ):  # fmt: skip
            self.used_pieces = progress[3]
            self.make_room(longest)
            progress[3] = self.used_pieces
        self.used_pieces = progress[3]
        return out[: progress[2]]

    def make_room(self, length: int) -> None:
        """Enlarge the memory for a pre-token of this length; at its bound, empty the table."""
        many = self.table.is_full() and len(self.table.slots) >= MOST_SLOTS
        if many or self.table.pool_used + 8 * self.used_pieces > MOST_BYTES:
            self.forget()
        self.table.grow(length)
        if self.used_pieces + length > len(self.pieces):
            self.pieces = np.concatenate([self.pieces, np.empty(len(self.pieces) + length, int)])
        if length > len(self.scratch[0]):
            self.set_longest(2 * length)


def make_encoder(
    ids: Mapping[bytes, int],
    merges: Sequence[tuple[bytes, bytes]],
    special_ids: Mapping[str, int],
) -> CompiledEncoder | None:
    """The encoder of a vocabulary and merges; None where only the readable tokenizer can do it.

    That is: some byte has no id, two merges make the same token, one joins what none made, or an
    id needs more than 32 bits.
    """
    tokens = [bytes([value]) for value in range(256)] + [left + right for left, right in merges]
    symbols = {token: symbol for symbol, token in enumerate(tokens)}
    parts = {part for merge in merges for part in merge}
    if len(symbols) < len(tokens) or not parts <= symbols.keys() <= ids.keys():
        return None
    if min(ids.values()) < 0 or max(ids.values()) >= 1 << 32:
        return None
    pairs = [(symbols[left], symbols[right]) for left, right in merges]
    symbol_ids = np.array([ids[token] for token in tokens])
    return CompiledEncoder(np.array(pairs, np.int64).reshape(-1, 2), symbol_ids, special_ids)


@compiled
def encode_on(
    starts, ends, special_ids, kinds, table, pieces, pairs, capacity, ids,
    symbols, ahead, behind, made, heap, out, progress,
):  # fmt: skip
    """Continue from `progress` (document, address, ids written, pieces used).

    Returns 0 at the end, else the length of a pre-token for which some memory was too small.
    """
    document, at, written, used_pieces = progress[0], progress[1], progress[2], progress[3]
    short = 0
    while short == 0:
        end = ends[document]
        while at < end:
            stop = token_end(at, end, kinds)
            length = stop - at
            slot = entry(table, at, length)
            if slot == 0:
                short = length
                break
            if word(slot + 24) == 0:
                if length > len(symbols) or used_pieces + length > len(pieces):
                    short = length
                    break
                number = merge(at, length, pairs, capacity, symbols, ahead, behind, made, heap)
                value = ids[symbols[0]]
                if number > 1:
                    value = used_pieces
                    for index in range(number):
                        pieces[used_pieces + index] = ids[symbols[index]]
                    used_pieces += number
                store(slot + 24, np.uint64(value) << ID_BITS | np.uint64(number))
            value = word(slot + 24)
            first, number = np.int64(value >> ID_BITS), np.int64(value & NUMBER_MASK)
            if number == 1:
                out[written] = first
            else:
                for index in range(number):
                    out[written + index] = pieces[first + index]
            written += number
            at = stop
        if short == 0:
            if special_ids[document] >= 0:
                out[written] = special_ids[document]
                written += 1
            document += 1
            if document == len(starts):
                break
            at = starts[document]
    progress[0], progress[1], progress[2], progress[3] = document, at, written, used_pieces
    return short


@compiled
def merge(at, length, pairs, capacity, symbols, ahead, behind, made, heap):
    """Merge the bytes at an address in the order learnt; how many symbols stay, in `symbols`.

    The symbols are a list linked both ways. made[p] is what the symbol at p makes with the next
    one, and waits in a heap as a number, (made[p], p): the smallest is the earliest learnt, and of
    equals the leftmost. One that is no longer made[p] is passed over. So a long word of n bytes
    costs n log n steps.
    """
    size = 0
    for place in range(length):
        symbols[place], behind[place], ahead[place] = byte(at + place), place - 1, place + 1
    for place in range(length):
        size = consider(place, length, pairs, capacity, symbols, ahead, made, heap, size)
    while size > 0:
        new, place = heap[0] >> PLACE_BITS, heap[0] & PLACE_MASK
        size = pop(heap, size)
        if made[place] != new:
            continue
        gone = ahead[place]
        symbols[place], symbols[gone], made[gone] = new, GONE, NO_MERGE
        ahead[place] = ahead[gone]
        if ahead[place] < length:
            behind[ahead[place]] = place
        if place > 0:
            before = behind[place]
            size = consider(before, length, pairs, capacity, symbols, ahead, made, heap, size)
        size = consider(place, length, pairs, capacity, symbols, ahead, made, heap, size)
    number = 0
    for place in range(length):
        if symbols[place] != GONE:
            symbols[number] = symbols[place]
            number += 1
    return number


@compiled
def consider(place, length, pairs, capacity, symbols, ahead, made, heap, size):
    """Push what the symbol at a place makes with the next one, if anything; the new heap size."""
    made[place] = NO_MERGE
    if ahead[place] == length:
        return size
    new = merged(symbols[place], symbols[ahead[place]], pairs, capacity)
    made[place] = new
    if new == NO_MERGE:
        return size
    key, at = new << PLACE_BITS | place, size
    while at > 0 and key < heap[(at - 1) >> 1]:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = key
    return size + 1


@compiled
def pop(heap, size):
    """Remove the smallest number from the heap; the new size."""
    size -= 1
    key, at, child = heap[size], 0, 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if key <= heap[child]:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = key
    return size


@compiled
def merged(left, right, pairs, capacity):
    """The symbol that two symbols make; NO_MERGE where they make none."""
    return np.int64(word(pair_slot(left, right, pairs, capacity) + 8))


@compiled
def pair_slot(left, right, pairs, capacity):
    """The address of a pair's slot, (key, symbol made): its own, or the free one for it."""
    key = np.uint64(left << 32 | right)
    mixed = key * np.uint64(0x9E37_79B9_7F4A_7C15)
    index = np.int64((mixed >> ID_BITS) & np.uint64(capacity - 1))
    while True:
        slot = pairs + 16 * index
        if word(slot + 8) == 0 or word(slot) == key:
            return slot
        index = (index + 1) & (capacity - 1)


@compiled
def enter_pairs(merges, pairs, capacity):
    """Write the merges into a table of zeros; of equal pairs the first one counts."""
    for rank in range(len(merges)):
        left, right = merges[rank, 0], merges[rank, 1]
        slot = pair_slot(left, right, pairs, capacity)
        if word(slot + 8) == 0:
            store(slot, np.uint64(left << 32 | right))
            store(slot + 8, np.uint64(256 + rank))
