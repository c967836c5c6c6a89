"""Text to ids: scan, look each pre-token up, and merge only those never met before.

    " the"  -> slot -> 1 id   262                 the slot's number holds the id itself
    " xylem" -> slot -> 3 ids  at place 71        or where in `pieces` the ids lie

A language uses few words again and again, so all but one in a hundred pre-tokens are found, and
encoding costs what scanning and looking up cost. The memory of both is bounded: a full table is
emptied and fills again with what the text uses by then.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from workbook.fastbpe.machine import byte, compiled, padded, store, word
from workbook.fastbpe.scan import character_kinds, token_end
from workbook.fastbpe.table import Table, entry
from workbook.fastbpe.text import Documents, documents_of, read_documents, special_bytes

LONGEST = 4096  # bytes of a pre-token that is merged here, in quadratic time
MOST_SLOTS = 1 << 20  # half a million pre-tokens remembered in 32 MB
MOST_BYTES = 1 << 26  # and 64 MB of long ones and of ids
NO_MERGE = np.int64(1 << 62)
DONE, GROW, TOO_LONG = range(3)
ID_BITS = np.uint64(32)
NUMBER_MASK = np.uint64(0xFFFF_FFFF)


class Encoder:
    """Merges and ids as arrays, and the table of what was encoded before.

    Symbols: 0 to 255 are bytes, 256 + k is what merge k makes. `merges` are pairs of symbols
    (n, 2), `ids` (256 + n) the id of each symbol, `special_ids` those of special tokens, and
    `encode_long` gives the ids of a pre-token that is too long to be merged here. One thread at a
    time.
    """

    def __init__(
        self,
        merges: np.ndarray,
        ids: np.ndarray,
        special_ids: Mapping[str, int],
        encode_long: Callable[[str], Sequence[int]],
    ):
        self.ids = ids.astype(np.int64)
        self.special_ids = {token.encode(): token_id for token, token_id in special_ids.items()}
        self.special_tokens = list(special_ids)
        self.special = special_bytes(self.special_tokens)
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
        while True:
            status, length = encode_on(
                documents.starts, documents.ends, special_ids, kinds, self.table.address,
                self.pieces, self.pairs.ctypes.data, len(self.pairs), self.ids, self.scratch,
                out, progress,
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
        many = self.table.is_full() and len(self.table.slots) >= MOST_SLOTS
        if many or self.table.pool_used + 8 * self.used_pieces > MOST_BYTES:
            self.forget()
        self.table.grow(length)
        if self.used_pieces + length > len(self.pieces):
            self.pieces = np.concatenate([self.pieces, np.empty_like(self.pieces)])


def make_encoder(
    ids: Mapping[bytes, int],
    merges: Sequence[tuple[bytes, bytes]],
    special_ids: Mapping[str, int],
    encode_long: Callable[[str], Sequence[int]],
) -> Encoder | None:
    """The encoder of a vocabulary and merges; None where only the readable tokenizer can do it.

    That is: some byte has no id, two merges make the same token, or one joins what none made.
    """
    tokens = [bytes([value]) for value in range(256)] + [left + right for left, right in merges]
    symbols = {token: symbol for symbol, token in enumerate(tokens)}
    parts = {part for merge in merges for part in merge}
    if (
        len(symbols) < len(tokens)
        or not parts <= symbols.keys()
        or not symbols.keys() <= ids.keys()
    ):
        return None
    pairs = [(symbols[left], symbols[right]) for left, right in merges]
    return Encoder(
        np.array(pairs, np.int64).reshape(-1, 2),
        np.array([ids[token] for token in tokens]),
        special_ids,
        encode_long,
    )


@compiled
def encode_on(
    starts, ends, special_ids, kinds, table, pieces, pairs, pairs_capacity, ids, scratch, out,
    progress,
):  # fmt: skip
    """Encode on from `progress` (document, address, ids written, pieces used).

    Returns a status and, unless all is done, the length of the pre-token it stopped at.
    """
    document, at, written, used_pieces = progress[0], progress[1], progress[2], progress[3]
    status = length = 0
    while document < len(starts):
        end = ends[document]
        while at < end:
            stop = token_end(at, end, kinds)
            length = stop - at
            if length > LONGEST:
                status = TOO_LONG
                break
            slot = entry(table, at, length)
            if slot == 0 or used_pieces + length > len(pieces):
                status = GROW
                break
            if word(slot + 24) == 0:
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
        if status != DONE:
            break
        if special_ids[document] >= 0:
            out[written] = special_ids[document]
            written += 1
        document += 1
        if document < len(starts):
            at = starts[document]
    progress[0], progress[1], progress[2], progress[3] = document, at, written, used_pieces
    return status, length


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
