"""Text to ids: scan, look each pre-token up, and merge only those never met before.

    " the"  -> slot -> 1 id   262                 the slot's number holds the id itself
    " xylem" -> slot -> 3 ids  at place 71        or where in `pieces` the ids lie

A language uses few words again and again, so all but one in a hundred pre-tokens are found, and
encoding costs what scanning and looking up cost. The memory of both is bounded: a full table is
emptied and fills again with what the text uses by then.
"""

from collections.abc import Callable, Sequence

import numpy as np

from workbook.fastbpe.machine import PADDING, byte, compiled, store, word
from workbook.fastbpe.scan import character_kinds, token_end
from workbook.fastbpe.table import Table, claim, find
from workbook.fastbpe.text import Documents

LONGEST = 4096  # bytes of a pre-token that is merged here, in quadratic time
MOST_SLOTS = 1 << 21  # 64 MB of slots
MOST_BYTES = 1 << 26  # 64 MB of long pre-tokens, and of ids
NO_MERGE = np.int64(1 << 62)
DONE, GROW, TOO_LONG = range(3)
ID_BITS = np.uint64(32)
NUMBER_MASK = np.uint64(0xFFFF_FFFF)


class Encoder:
    """Merges and ids as arrays, and the table of what was encoded before.

    Symbols: 0 to 255 are bytes, 256 + k is what merge k makes. `merges` are pairs of symbols (n, 2),
    `ids` (256 + n) the id of each symbol. `encode_long` gives the ids of a pre-token too long for
    the table.
    """

    def __init__(
        self, merges: np.ndarray, ids: np.ndarray, encode_long: Callable[[str], Sequence[int]]
    ):
        self.ids = ids.astype(np.int64)
        self.encode_long = encode_long
        self.pairs = np.zeros((1 << max(2 * len(merges), 2).bit_length(), 2), np.uint64)
        enter_pairs(merges.astype(np.int64), self.pairs.ctypes.data, len(self.pairs))
        self.scratch = np.empty((LONGEST, 2), np.int64)
        self.forget()

    def forget(self) -> None:
        """Empty the table."""
        self.table = Table()
        self.pieces = np.empty(1 << 16, np.int64)
        self.used_pieces = 0

    def encode(self, documents: Documents, special_ids: np.ndarray) -> np.ndarray:
        """The ids of a text; behind document i stands special_ids[i], unless it is below 0."""
        kinds = character_kinds().ctypes.data
        out = np.empty(len(documents.text) + len(special_ids), np.uint32)
        progress = np.array([0, documents.starts[0], 0, self.used_pieces])
        while True:
            table = self.table
            status, length = encode_documents(
                documents.starts, documents.ends, special_ids, kinds,
                table.slots.ctypes.data, len(table.slots), table.pool.ctypes.data,
                len(table.pool), table.used.ctypes.data, self.pieces,
                self.pairs.ctypes.data, len(self.pairs), self.ids, self.scratch, out, progress,
            )  # fmt: skip
            self.used_pieces = progress[3]
            if status == DONE:
                return out[: progress[2]]
            if status == TOO_LONG:
                at = progress[1] - documents.text.ctypes.data
                ids = self.encode_long(bytes(documents.text[at : at + length]).decode())
                out[progress[2] : progress[2] + len(ids)] = ids
                progress[1:3] += length, len(ids)
            else:
                self.make_room(length)
                progress[3] = self.used_pieces

    def make_room(self, length: int) -> None:
        """A larger table and more room for ids, or an empty one where they are large enough."""
        bytes_held = self.table.used[1] + 8 * self.used_pieces
        if self.table.is_full() and len(self.table.slots) >= MOST_SLOTS or bytes_held > MOST_BYTES:
            self.forget()
        self.table.grow(length)
        if self.used_pieces + length > len(self.pieces):
            self.pieces = np.concatenate([self.pieces, np.empty_like(self.pieces)])


@compiled
def encode_documents(
    starts, ends, special_ids, kinds, slots, capacity, pool, pool_size, used, pieces,
    pairs, pairs_capacity, ids, scratch, out, progress,
):  # fmt: skip
    """Encode on from `progress` (document, address, ids written, pieces used).

    Returns a status and, unless all is done, the length of the pre-token it stopped at.
    """
    document, at, written, used_pieces = progress
    while True:
        end = ends[document]
        while at < end:
            stop = token_end(at, end, kinds)
            length = stop - at
            if length > LONGEST:
                progress[0], progress[1], progress[2], progress[3] = (
                    document, at, written, used_pieces,
                )  # fmt: skip
                return TOO_LONG, length
            slot = find(slots, capacity, pool, at, length)
            if word(slot + 16) == 0:
                if (
                    2 * np.int64(word(used)) >= capacity
                    or np.int64(word(used + 8)) + length + PADDING > pool_size
                    or used_pieces + length > len(pieces)
                ):
                    progress[0], progress[1], progress[2], progress[3] = (
                        document, at, written, used_pieces,
                    )  # fmt: skip
                    return GROW, length
                claim(slot, pool, used, at, length)
                number = merge(at, length, pairs, pairs_capacity, scratch)
                value = ids[scratch[0, 0]]
                if number > 1:
                    value = used_pieces
                    for index in range(number):
                        pieces[used_pieces + index] = ids[scratch[index, 0]]
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
        if special_ids[document] >= 0:
            out[written] = special_ids[document]
            written += 1
        document += 1
        if document == len(starts):
            progress[2], progress[3] = written, used_pieces
            return DONE, 0
        at = starts[document]


@compiled
def merge(at, length, pairs, capacity, scratch):
    """Merge the bytes at an address in the order learnt; how many symbols stay.

    scratch[i] is a symbol and what it makes with the next one: the smaller, the earlier learnt.
    """
    for index in range(length):
        scratch[index, 0] = byte(at + index)
    for index in range(length - 1):
        scratch[index, 1] = merged(byte(at + index), byte(at + index + 1), pairs, capacity)
    while length > 1:
        first = 0
        for index in range(1, length - 1):
            if scratch[index, 1] < scratch[first, 1]:
                first = index
        symbol = scratch[first, 1]
        if symbol == NO_MERGE:
            break
        length -= 1
        for index in range(first + 1, length):
            scratch[index, 0], scratch[index, 1] = scratch[index + 1, 0], scratch[index + 1, 1]
        scratch[first, 0] = symbol
        if first > 0:
            scratch[first - 1, 1] = merged(scratch[first - 1, 0], symbol, pairs, capacity)
        if first < length - 1:
            scratch[first, 1] = merged(symbol, scratch[first + 1, 0], pairs, capacity)
    return length


@compiled
def merged(left, right, pairs, capacity):
    """The symbol that two symbols make; NO_MERGE where they make none."""
    value = word(pair_slot(left, right, pairs, capacity) + 8)
    return np.int64(value) if value != 0 else NO_MERGE


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
