"""Text to ids: scan, look up each pre-token, and merge only the new ones.

    " the"  -> slot -> 1 id   262                 the slot's number holds the id itself
    " xylem" -> slot -> 3 ids  at place 71        or the ids' place in `pieces`

A language uses few words again and again, so 99 in 100 pre-tokens are found, and encoding takes
little longer than scanning and looking up. Memory is bounded: a full table is emptied, and fills
again with the words that the text uses from then on.
"""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from pathlib import Path

import numpy as np

from workbook.tokenization.compiled.count import Counts, add_counts
from workbook.tokenization.compiled.machine import byte, compiled, padded, store, word
from workbook.tokenization.compiled.scan import character_kinds, token_end
from workbook.tokenization.compiled.table import Table, entry, find
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
    (n, 2), `ids` (256 + n) the id of each symbol, `special_ids` those of special tokens. Only
    one thread may use it at a time.
    """

    def __init__(self, merges: np.ndarray, ids: np.ndarray, special_ids: Mapping[str, int]):
        self.ids = ids.astype(np.int64)
        self.special_ids = {token.encode(): token_id for token, token_id in special_ids.items()}
        self.special_tokens = list(special_ids)
        self.special = special_bytes(self.special_tokens)
        # A second table: eight bytes are a pair, and their number is the symbol that it makes.
        self.pairs = Table()
        pairs, lengths = padded(merges.astype(np.uint32).tobytes()), np.full(len(merges), 8)
        add_counts(self.pairs, Counts(pairs, lengths, np.arange(256, 256 + len(merges))))
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
        """The ids of a text. Raises: UnicodeEncodeError if it holds a lone surrogate."""
        return self.encode_documents(documents_of(padded(text.encode()), self.special))

    def encode_documents(self, documents: Documents) -> np.ndarray:
        """The ids of documents and of the special tokens between them."""
        special_ids = np.array([*map(self.special_ids.get, documents.specials), -1])
        kinds = character_kinds().ctypes.data
        out = np.empty(len(documents.text), np.uint32)
        progress = np.array([0, documents.starts[0], 0, self.used_pieces])
        while longest := encode_on(
            documents.starts, documents.ends, special_ids, kinds, self.table.address, self.pieces,
            self.pairs.address, self.ids, out, progress,
        ):  # fmt: skip
            self.used_pieces = progress[3]
            self.make_room(longest)
            progress[3] = self.used_pieces
        self.used_pieces = progress[3]
        return out[: progress[2]]

    def make_room(self, length: int) -> None:
        """Enlarge the memory for a pre-token of this length; at the limit, empty the table."""
        many = self.table.is_full() and len(self.table.slots) >= MOST_SLOTS
        if many or self.table.pool_used + 8 * self.used_pieces > MOST_BYTES:
            self.forget()
        self.table.grow(length)
        if self.used_pieces + length > len(self.pieces):
            self.pieces = np.concatenate([self.pieces, np.empty(len(self.pieces) + length, int)])


def make_encoder(
    ids: Mapping[bytes, int],
    merges: Sequence[tuple[bytes, bytes]],
    special_ids: Mapping[str, int],
) -> CompiledEncoder | None:
    """The encoder of a vocabulary and merges; None if only the readable tokenizer can do it.

    That is so if some byte has no id, two merges make the same token, a merge joins a token that
    no merge makes, or an id is negative or needs more than 32 bits.
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
def encode_on(starts, ends, special_ids, kinds, table, pieces, pairs, ids, out, progress):
    """Continue from `progress` (document, address, ids written, pieces used).

    Returns 0 at the end, else the length of a pre-token that found too little memory.
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
                if used_pieces + length > len(pieces):
                    short = length
                    break
                used_pieces = remember(slot, at, length, pairs, ids, pieces, used_pieces)
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
def remember(slot, at, length, pairs, ids, pieces, used_pieces):
    """Write the ids of a new pre-token into its slot; return how many pieces are used now."""
    symbols = merge(at, length, pairs, slot + 24)
    number, value = len(symbols), ids[symbols[0]]
    if number > 1:
        value = used_pieces
        for index in range(number):
            pieces[used_pieces + index] = ids[symbols[index]]
        used_pieces += number
    store(slot + 24, np.uint64(value) << ID_BITS | np.uint64(number))
    return used_pieces


@compiled
def merge(at, length, pairs, scratch):
    """The symbols of the bytes at an address, merged in the order learnt.

    `scratch` is the address of eight bytes that may be overwritten. The symbols are a list linked
    both ways. made[p] is what the symbol at p makes with the next one, and waits in a heap as a
    number, (made[p], p): the smallest is the earliest learnt, the leftmost of equal ones. One that
    no longer equals made[p] is skipped. So a word of n bytes takes n log n steps.
    """
    symbols, made = np.empty(length, np.int64), np.empty(length, np.int64)
    behind, ahead = np.arange(-1, length - 1), np.arange(1, length + 1)
    heap = [np.int64(0) for _ in range(0)]  # empty, but of a type that numba can infer
    for place in range(length):
        symbols[place] = byte(at + place)
    for place in range(length):
        consider(place, symbols, ahead, made, heap, pairs, scratch)
    while len(heap) > 0:
        key = heappop(heap)
        new, place = key >> PLACE_BITS, key & PLACE_MASK
        if made[place] != new:
            continue
        gone = ahead[place]
        symbols[place], symbols[gone], made[gone] = new, GONE, NO_MERGE
        ahead[place] = ahead[gone]
        if ahead[place] < length:
            behind[ahead[place]] = place
        if place > 0:
            consider(behind[place], symbols, ahead, made, heap, pairs, scratch)
        consider(place, symbols, ahead, made, heap, pairs, scratch)
    return symbols[symbols != GONE]


@compiled
def consider(place, symbols, ahead, made, heap, pairs, scratch):
    """Push what the symbol at a place makes with the next one, if anything."""
    made[place] = NO_MERGE
    if ahead[place] < len(symbols):
        store(scratch, np.uint64(symbols[place] | symbols[ahead[place]] << 32))
        made[place] = np.int64(word(find(pairs, scratch, 8) + 24))  # 0 in a free slot
        if made[place] != NO_MERGE:
            heappush(heap, made[place] << PLACE_BITS | place)
