"""Text to ids: scan, look up each pre-token, and merge only the new ones.

    " the"      -> [ key | key | 262              1 ]      a slot ends with the ids and their number
    " xylitol"  -> [ key | key | 2124 2645 45  ...3 ]
    "=" * 20    -> [ key | key | place |    place 0 ]      or with 0, if they are elsewhere

A language uses few words again and again, so 99 in 100 pre-tokens are found, and encoding takes
little longer than scanning and looking up. Half a slot is copied whatever it holds, since to ask
how many ids there are would take longer; the next pre-token's ids overwrite the excess. Memory is
bounded: a full table is emptied, and fills again with the words that the text uses from then on.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from workbook.tokenization.compiled.kernels import INT, ROWS, compiled, kernel
from workbook.tokenization.compiled.machine import byte, numbers, padded, store, word
from workbook.tokenization.compiled.scan import ITEM_BYTES, character_kinds, new_batch
from workbook.tokenization.compiled.table import (
    LENGTH_BITS,
    MIX_A,
    ONE,
    PLACE,
    POOL_USED,
    SECOND_KEY,
    SHORT,
    VALUE,
    PretokenTable,
    entry,
    next_batch,
    pooled,
    slot_at_home,
)
from workbook.tokenization.compiled.text import (
    SpecialTokens,
    documents_of,
    read_spans,
    spans_of,
    utf8_of,
)

MOST_SLOTS = 1 << 20  # half a million pre-tokens remembered in 32 MB
MOST_BYTES = 1 << 26  # and 64 MB of long ones and of ids
NUMBER_BITS, LOW_BITS = (
    np.uint64(56),
    np.uint64(2**56 - 1),
)  # of a slot's last number: below the number of ids
FEW_BYTES = 1 << 14  # of a short text
# The numbers that the kernel is given, at these offsets: what changes from call to call, the rest.
DOCUMENT, AT, TO, STARTS, ENDS, SPECIAL_IDS, DOCUMENTS = range(0, 56, 8)
SCRATCH, KINDS, BATCH, TABLE, PAIRS, ALL_IDS, SCRATCH_SIZE, WIDTH = range(56, 120, 8)
CHANGING, FACTS = 7, 15
IDS = PLACE  # in a slot, and up to its end: a short pre-token's bytes need no place
# A pair in its table: two symbols, and the one that they make, of 21 bits each.
SYMBOL_BITS, SYMBOL_MASK = np.uint64(21), np.uint64((1 << 21) - 1)
GONE, NEVER = -1, 1 << 62  # later than every merge
POSITION_BITS, POSITION_MASK = 32, (1 << 32) - 1  # of a merge that waits in the heap
# Numbers of scratch space that merging takes per byte of a pre-token: four lists, and a heap. Of n
# bytes, n - 1 pairs are pushed at first, and then two for each of at most n - 1 merges.
PER_BYTE = 4 + 3
FEW = 32


class CompiledEncoder:
    """Merges and ids as arrays, and the table of what was encoded before.

    Symbols: 0 to 255 are bytes, 256 + k is what merge k makes. `merges` are pairs of symbols
    (n, 2), `ids` (256 + n) the id of each symbol, `special_ids` those of special tokens. Only
    one thread may use it at a time.
    """

    def __init__(self, merges: np.ndarray, ids: np.ndarray, special_ids: Mapping[str, int]) -> None:
        self.ids = ids.astype(np.int64)
        most = max(ids.max(), *special_ids.values(), 0)
        self.dtype = np.dtype(np.uint16 if most < 1 << 16 else np.uint32)
        self.special = SpecialTokens([*special_ids])
        # By number; and that of none is -1, as in `Documents`.
        self.special_ids = np.array([*map(special_ids.get, self.special.tokens), -1])
        # A second table, which grows no more: its size, and places for twice as many pairs or more.
        size = 1 << (4 * len(merges)).bit_length()
        self.pairs = np.zeros(1 + size, np.uint64)
        self.pairs[0] = size
        add_pairs(self.pairs.ctypes.data, merges)
        self.kinds, self.batch = character_kinds(), new_batch()
        # What the kernel is told, and where it is: see `encode_on`. Short texts have a place.
        self.facts, self.few = np.zeros(FACTS, np.int64), padded(bytes(FEW_BYTES))
        self.ids_of_few = np.empty(FEW_BYTES + 16, self.dtype)
        start = self.few.ctypes.data
        self.edges = np.array([start, start, -1])
        edges = range(self.edges.ctypes.data, self.edges.ctypes.data + 24, 8)
        self.begin = memoryview(np.array([0, start, self.ids_of_few.ctypes.data, *edges, 1]))
        self.views = tuple(map(memoryview, (self.few, self.edges, self.facts)))
        self.encode_on = encode_on.with_arguments(self.facts.ctypes.data)
        self.forget()

    def forget(self) -> None:
        """Empty the table."""
        self.table = PretokenTable()
        self.scratch = np.empty(PER_BYTE << 10, np.int64)
        self.point()

    def encode_file(self, path: Path, cuts: Sequence[int]) -> np.ndarray:
        """The ids of a file between the first of the cuts and the last."""
        return self.encode_spans(read_spans(path, cuts), cuts[-1] - cuts[0])

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text. Raises: UnicodeEncodeError if it holds a lone surrogate."""
        data = utf8_of(text)
        return self.encode_spans(spans_of(data, self.special.tokens), len(data))

    def encode_spans(self, spans: Iterable[np.ndarray], most: int) -> np.ndarray:
        """The ids of spans that have at most so many bytes."""
        # A token has at least one byte; and 16 bytes are written at a time. What is never written
        # to takes no memory.
        ids = np.empty(most + 16, self.dtype)
        to = ids.ctypes.data
        for span in spans:
            to = self.encode_span(span, to)
        ids.resize((to - ids.ctypes.data) // ids.itemsize, refcheck=False)
        return ids

    def encode_span(self, text: np.ndarray, to: int) -> int:
        """Write the ids of a span to an address; return the address behind them."""
        documents = documents_of(text, self.special)
        edges = documents.starts, documents.ends, self.special_ids[documents.specials]
        addresses = [array.ctypes.data for array in edges]
        self.facts[:CHANGING] = 0, documents.starts[0], to, *addresses, len(edges[0])
        self.run()
        return int(self.facts[TO // 8])

    def encode_few(self, data: bytes) -> list[int]:
        """The ids of at most `FEW_BYTES` bytes without special tokens, at the least price a call."""
        few, edges, facts = self.views
        few[: len(data)] = data
        edges[1] = edges[0] + len(data)
        facts[:CHANGING] = self.begin
        self.run()
        stop = facts[TO // 8] - self.begin[TO // 8]
        return self.ids_of_few[: stop // self.dtype.itemsize].tolist()

    def run(self) -> None:
        """Call the kernel until it has enough memory."""
        while longest := self.encode_on():
            self.make_room(longest)

    def make_room(self, length: int) -> None:
        """Enlarge the memory for a pre-token of this length; at the limit, empty the table."""
        many = self.table.is_full() and len(self.table.slots) >= MOST_SLOTS
        if many or self.table.pool_used > MOST_BYTES:
            self.forget()
        self.table.grow(length)
        if PER_BYTE * length > len(self.scratch):
            self.scratch = np.empty(2 * PER_BYTE * length, np.int64)
        self.point()

    def point(self) -> None:
        """Tell the kernel where everything is."""
        held = self.scratch, self.kinds, self.batch, self.table.facts, self.pairs, self.ids
        addresses = [array.ctypes.data for array in held]
        self.facts[CHANGING:] = *addresses, len(self.scratch), self.dtype.itemsize


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


@kernel(INT)
def encode_on(facts):
    """Encode documents, from where `facts` says, and write there how far it has come.

    These are 64-bit numbers: a document, an address in it, and where its next id goes; where the
    documents start and end, their special ids, how many there are; and the memory to use. `WIDTH`
    is that of an id in bytes, 2 or 4. Returns 0 at the end, else the length of a pre-token that
    found too little memory.
    """
    document, at, to = fact(facts, DOCUMENT), fact(facts, AT), fact(facts, TO)
    number, width = fact(facts, DOCUMENTS), fact(facts, WIDTH)
    kinds, batch, table = fact(facts, KINDS), fact(facts, BATCH), fact(facts, TABLE)
    pairs, ids = fact(facts, PAIRS), fact(facts, ALL_IDS)
    scratch = numbers(fact(facts, SCRATCH), fact(facts, SCRATCH_SIZE))
    starts = numbers(fact(facts, STARTS), number)
    ends = numbers(fact(facts, ENDS), number)
    special_ids = numbers(fact(facts, SPECIAL_IDS), number)
    while True:
        end = ends[document]
        while at < end:
            count = next_batch(at, end, kinds, table, batch)
            for item in range(batch, batch + ITEM_BYTES * count, ITEM_BYTES):
                slot = slot_at_home(item)
                if slot == 0 or word(slot + VALUE) >> NUMBER_BITS == 0:  # seldom
                    at = np.int64(word(item))
                    length = np.int64(word(item + ITEM_BYTES)) - at
                    slot = 0
                    if PER_BYTE * length <= len(scratch):
                        slot = entry(table, at, length)
                    if slot == 0:  # Python enlarges the memory, and calls again from here
                        store(facts + DOCUMENT, np.uint64(document))
                        store(facts + AT, np.uint64(at))
                        store(facts + TO, np.uint64(to))
                        return length
                    if word(slot + VALUE) == 0:
                        if length <= FEW:
                            left = merge_few(at, length, pairs, scratch)
                        else:
                            left = merge(at, length, pairs, scratch)
                        remember(table, slot, left, ids, scratch, width)
                if word(slot + VALUE) >> NUMBER_BITS == 0:
                    to = copy_elsewhere(table, slot, width, to)
                else:
                    store(to, word(slot + IDS))
                    store(to + 8, word(slot + VALUE))
                    to += width * np.int64(word(slot + VALUE) >> NUMBER_BITS)
            at = np.int64(word(batch + ITEM_BYTES * count))
        if special_ids[document] >= 0:
            store(to, np.uint64(special_ids[document]))
            to += width
        document += 1
        if document == number:
            store(facts + TO, np.uint64(to))
            return 0
        at = starts[document]


@compiled
def fact(facts, which):
    """One of the numbers."""
    return np.int64(word(facts + which))


@compiled
def remember(table, slot, number, ids, symbols, width):
    """Write the ids of a new pre-token's symbols to its slot, or to the pool: number, ids."""
    place = word(table + POOL_USED)
    to = pooled(table, place)
    store(to, np.uint64(number))
    for index in range(number):
        # Eight bytes, of which the next id overwrites what is too much.
        store(to + 8 + width * index, word(ids + 8 * symbols[index]))
    if number < 16 // width and word(slot + SECOND_KEY) >> LENGTH_BITS <= SHORT:
        store(slot + IDS, word(to + 8))
        store(slot + VALUE, word(to + 16) & LOW_BITS | np.uint64(number) << NUMBER_BITS)
    else:
        store(slot + VALUE, place)
        store(table + POOL_USED, place + np.uint64(8 + width * number))


@compiled
def copy_elsewhere(table, slot, width, to):
    """Write the ids that a slot names in the pool; return where the next id is written."""
    source = pooled(table, word(slot + VALUE))
    size = width * np.int64(word(source))
    for step in range(0, size, 8):
        store(to + step, word(source + 8 + step))
    return to + size


@compiled
def merge_few(at, length, pairs, scratch):
    """Merge the bytes at an address; return how many symbols are left, the first in `scratch`.

    made[p] is the symbol that the one at p makes with the next. The earliest learnt is made first,
    and of equal ones the leftmost.
    """
    symbols, made, number = scratch[:length], scratch[length : 2 * length], length
    for place in range(length):
        symbols[place] = byte(at + place)
    for place in range(length - 1):
        made[place] = symbol_of_pair(pairs, symbols[place], symbols[place + 1])
    while number > 1:
        first = 0
        for place in range(1, number - 1):
            if made[place] < made[first]:
                first = place
        if made[first] == NEVER:
            break
        symbols[first] = made[first]
        number -= 1
        for place in range(first + 1, number):
            symbols[place], made[place - 1] = symbols[place + 1], made[place]
        if first > 0:
            made[first - 1] = symbol_of_pair(pairs, symbols[first - 1], symbols[first])
        if first + 1 < number:
            made[first] = symbol_of_pair(pairs, symbols[first], symbols[first + 1])
    return number


@compiled
def merge(at, length, pairs, scratch):
    """Merge the bytes at an address; return how many symbols are left, the first in `scratch`.

    The symbols are a list linked both ways. made[p] is the symbol that the one at p makes with the
    next; it waits in a heap as one number, (made[p], p), so the earliest learnt is made first, and
    of equal ones the leftmost. For n bytes that takes n log n steps.
    """
    symbols, made = scratch[:length], scratch[length : 2 * length]
    behind, ahead = scratch[2 * length : 3 * length], scratch[3 * length : 4 * length]
    heap, size = scratch[4 * length :], 0
    for place in range(length):
        symbols[place], behind[place], ahead[place] = byte(at + place), place - 1, place + 1
    for place in range(length):
        size = consider(place, symbols, ahead, made, heap, size, pairs)
    while size > 0:
        key = heap[0]
        size = pop_merge(heap, size)
        new, place = key >> POSITION_BITS, key & POSITION_MASK
        if made[place] != new:
            continue  # one of the two was merged with its other neighbour meanwhile
        # The new symbol stands at the place of the left one; the right one leaves the list.
        gone = ahead[place]
        symbols[place], symbols[gone], made[gone] = new, GONE, NEVER
        ahead[place] = ahead[gone]
        if ahead[place] < length:
            behind[ahead[place]] = place
        if place > 0:
            size = consider(behind[place], symbols, ahead, made, heap, size, pairs)
        size = consider(place, symbols, ahead, made, heap, size, pairs)
    number = 0  # close the gaps, so that the symbols that are left stand in a row
    for place in range(length):
        if symbols[place] != GONE:
            symbols[number] = symbols[place]
            number += 1
    return number


@compiled
def consider(place, symbols, ahead, made, heap, size, pairs):
    """Push what the symbol at a place makes with the next one, if anything; return the size."""
    made[place] = NEVER
    if ahead[place] < len(symbols):
        made[place] = symbol_of_pair(pairs, symbols[place], symbols[ahead[place]])
        if made[place] != NEVER:
            size = push_merge(heap, size, made[place] << POSITION_BITS | place)
    return size


@compiled
def symbol_of_pair(pairs, left, right):
    """The symbol that two symbols make; `NEVER` if they make none."""
    value = word(place_of_pair(pairs, left, right))
    return np.int64(value & SYMBOL_MASK) if value != 0 else NEVER


@compiled
def place_of_pair(pairs, left, right):
    """The address of a pair in their table: its own, or the free one where it belongs."""
    key = np.uint64(left) << SYMBOL_BITS | np.uint64(right)
    capacity = word(pairs)
    index = (key * MIX_A >> np.uint64(32)) & (capacity - ONE)
    while True:
        place = pairs + 8 + 8 * np.int64(index)
        value = word(place)
        if value == 0 or value >> SYMBOL_BITS == key:
            return place
        index = (index + ONE) & (capacity - ONE)


@kernel(INT, ROWS)
def add_pairs(pairs, merges):
    """Enter the pair of each merge with the symbol that it makes."""
    for index in range(len(merges)):
        left, right = merges[index, 0], merges[index, 1]
        value = np.uint64(left) << SYMBOL_BITS | np.uint64(right)
        place = place_of_pair(pairs, left, right)
        store(place, value << SYMBOL_BITS | np.uint64(256 + index))


@compiled
def push_merge(heap, size, key):
    """Add a key to the heap; return the new size."""
    at = size
    while at > 0 and key < heap[(at - 1) >> 1]:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = key
    return size + 1


@compiled
def pop_merge(heap, size):
    """Remove the smallest key, which is the first; return the new size."""
    size -= 1
    key, at = heap[size], 0
    while True:
        # The children of a heap's entry n are 2n + 1 and 2n + 2; the smaller one moves up.
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if child >= size or key <= heap[child]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = key
    return size
