"""A hash table from each pre-token to one number, in memory that its owner holds.

    slot    [ key | key | place | value ]      four 64-bit numbers, 0 if free
    pool    the bytes of the pre-tokens that are longer than two keys
    item    [ start | key | key | home ]       a pre-token of a text, in a batch

A pre-token of up to 15 bytes, as nearly all are, *is* its two keys, with its length in the last
byte: two comparisons show whether it is there. A longer one has a hash for keys and its bytes in
the pool, which are compared too, because equal hashes prove nothing. The table copies what it
stores, so the text may be freed.

Memory is slow to answer, but answers many questions at once. So the pre-tokens of a text come in
batches: first, the home of each, the slot where the search for it begins, is asked for; then each
is looked up, and most are at home.
"""

import numpy as np

from workbook.tokenization.compiled.kernels import INT, compiled, kernel
from workbook.tokenization.compiled.machine import PADDING, prefetch, same_bytes, store, word
from workbook.tokenization.compiled.scan import ITEM_BYTES, ONE, find_pretokens

SLOT_BYTES = 32
POOLED = 8  # bytes that the pool has room for, by those of a new pre-token: it, and what it has
SHORT = 15  # bytes of a pre-token that fits into its keys
SECOND_KEY, PLACE, VALUE = 8, 16, 24  # where these begin in a slot, in bytes
FIRST, SECOND, HOME = 8, 16, 24  # where these begin in an item
LENGTH_BITS = np.uint64(56)  # in the second key
LONG_KEY = np.uint64(0xFF << 56)
# Odd numbers whose bits look random: 2**64 over the golden ratio, and a prime of xxHash.
MIX_A = np.uint64(0x9E37_79B9_7F4A_7C15)
MIX_B = np.uint64(0xC2B2_AE3D_27D4_EB4F)
HALF_A_WORD = np.uint64(32)
# The facts of a table for compiled code: 64-bit numbers at these offsets from one address.
SLOTS, CAPACITY, SHIFT, LIMIT, USED, POOL, POOL_BYTES, POOL_USED, MASKS = range(0, 72, 8)
# For each length: which bytes belong to a first key, which to a second one, and its last byte.
# The last ones are for all longer pre-tokens: no slot has such a key.
KEY_MASKS = np.array(
    [
        *((256 ** min(n, 8) - 1, 256 ** max(n - 8, 0) - 1, n << 56) for n in range(SHORT + 1)),
        (0, 0, 2**64 - 1),
    ],
    np.uint64,
).T.copy()
ROW = KEY_MASKS[0].nbytes


class PretokenTable:
    """The memory of a table, at most half full, and its growth. Compiled code takes `address`.

    Raises: ValueError unless `capacity`, the number of slots, is a power of two from 2 on.
    """

    def __init__(self, capacity: int = 1 << 14) -> None:
        # A hash is shifted until only the bits that number a slot are left. For one slot these are
        # none: a shift by all 64 bits, whose result is undefined.
        if capacity < 2 or capacity & (capacity - 1):
            raise ValueError(f"a table has 2 slots, 4, 8 or another power of two, got {capacity}")
        # 32 bytes, half of what the processor loads at a time: one access brings the whole slot.
        self.slots = np.zeros((capacity, 4), np.uint64)
        self.pool = np.zeros(1 << 16, np.uint8)
        # Compiled code gets one address, and finds all the others there.
        self.facts = np.zeros(MASKS // 8 + 1, np.int64)
        self.facts[POOL_USED // 8] = 8  # so 0 is no place
        self.facts[MASKS // 8] = KEY_MASKS.ctypes.data
        self.address = self.facts.ctypes.data
        self._point()

    def __len__(self) -> int:
        return int(self.facts[USED // 8])

    @property
    def pool_used(self) -> int:
        """The bytes of the pool that are used."""
        return int(self.facts[POOL_USED // 8])

    def is_full(self) -> bool:
        """Whether the next entry needs more slots."""
        return len(self) >= int(self.facts[LIMIT // 8])

    def grow(self, longest: int) -> None:
        """Make room: twice the slots if half are used, and `longest` more bytes in the pool."""
        if self.is_full():
            # With twice as many slots, a home is told by one more bit of the hash: all are entered
            # anew.
            old = self.slots
            self.slots = np.zeros((2 * len(self.slots), 4), np.uint64)
            self._point()
            rehash(self.address, old.ctypes.data, len(old))
        if self.pool_used + POOLED * longest + PADDING > len(self.pool):
            pool = np.zeros(2 * len(self.pool) + POOLED * longest + PADDING, np.uint8)
            pool[: self.pool_used] = self.pool[: self.pool_used]
            self.pool = pool
        self._point()

    def contents(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All pre-tokens, one after the other and padded, their lengths, and their values."""
        # The second key holds the length, so it is 0 in a free slot only.
        slots = self.slots[self.slots[:, 1] > 0]
        lengths = (slots[:, 1] >> LENGTH_BITS).astype(np.int64)
        lengths = np.where(lengths <= SHORT, lengths, (slots[:, 1] & ~LONG_KEY).astype(np.int64))
        text = np.zeros(lengths.sum() + PADDING, np.uint8)
        write_pretokens(slots.ctypes.data, len(slots), self.address, text.ctypes.data)
        return text, lengths, slots[:, 3].astype(np.int64)

    def _point(self) -> None:
        capacity = len(self.slots)
        self.facts[SLOTS // 8] = self.slots.ctypes.data
        self.facts[CAPACITY // 8] = capacity
        # For 2ⁿ slots, 64 - n: the upper n bits of a hash are left.
        self.facts[SHIFT // 8] = 65 - capacity.bit_length()
        self.facts[LIMIT // 8] = capacity // 2  # half full, so that a search soon meets a free slot
        self.facts[POOL // 8] = self.pool.ctypes.data
        self.facts[POOL_BYTES // 8] = len(self.pool)


@compiled
def keys_of(masks, at, length):
    """The two keys of the pre-token at this address."""
    if length <= SHORT:
        return short_keys(masks, at, length)
    # Longer than 15 bytes: a hash of all of them, eight at a time.
    first = np.uint64(length)
    for step in range(0, length - 8, 8):
        first = (first ^ word(at + step)) * MIX_A
        first ^= first >> HALF_A_WORD
    # The last eight bytes may overlap those before, so that no rest needs a case of its own.
    return first ^ word(at + length - 8), np.uint64(length) | LONG_KEY


@compiled
def length_of(second):
    """The length of a pre-token that has this second key."""
    # A short one's length, up to 15, is in the highest byte; 255 there marks a long one.
    return np.int64(second & ~LONG_KEY if second >= LONG_KEY else second >> LENGTH_BITS)


@compiled
def short_keys(masks, at, length):
    """`keys_of` for 1 to 15 bytes, and keys that are nowhere for more. Masks at an address hide
    what follows in the text: to guess which branch a word's length takes would fail too often."""
    mask = masks + 8 * min(length, SHORT + 1)
    second = word(at + 8) & word(mask + ROW)
    return word(at) & word(mask), second | word(mask + 2 * ROW)


@compiled
def home_of(slots, shift, first, second):
    """The address of the slot where the search for the keys begins."""
    # The upper bits of a product depend on all bits below them, the lower ones do not.
    mixed = (first * MIX_A ^ second * MIX_B) >> shift
    return slots + SLOT_BYTES * np.int64(mixed)


@compiled
def next_batch(at, end, kinds, table, batch):
    """Find the next pre-tokens of a document, and ask for their homes; return how many."""
    # In two rounds over the batch: this one asks for the slots, and the caller's reads them.
    number = find_pretokens(at, end, kinds, batch)
    # Read once: for all that LLVM knows, what is stored below could change them.
    slots = np.int64(word(table + SLOTS))
    shift = word(table + SHIFT)
    masks = np.int64(word(table + MASKS))
    for item in range(batch, batch + ITEM_BYTES * number, ITEM_BYTES):
        next_at = np.int64(word(item + ITEM_BYTES))
        first, second = short_keys(masks, at, next_at - at)
        at = next_at
        home = home_of(slots, shift, first, second)
        store(item + FIRST, first)
        store(item + SECOND, second)
        store(item + HOME, np.uint64(home))
        prefetch(home)
    return number


@compiled
def slot_at_home(item):
    """The slot of a pre-token that is at home; 0 if it is not, or is long."""
    slot = np.int64(word(item + HOME))
    # Both keys in one question: it is answered alike nearly always, and so guessed rightly.
    one = word(slot) ^ word(item + FIRST)
    other = word(slot + SECOND_KEY) ^ word(item + SECOND)
    return slot if one | other == 0 else 0


@compiled
def slot_of_keys(table, first, second, at, length):
    """The address of the slot of a pre-token: its own, or the free one where it belongs.

    `at` is not read if the keys are the whole pre-token.
    """
    # Linear probing: from home on, slot by slot, until the pre-token or a free slot is met.
    slots = np.int64(word(table + SLOTS))
    stop = slots + SLOT_BYTES * np.int64(word(table + CAPACITY))
    slot = home_of(slots, word(table + SHIFT), first, second)
    while True:
        if word(slot + SECOND_KEY) == 0:
            return slot
        same = word(slot) == first and word(slot + SECOND_KEY) == second
        if same and length > SHORT:
            same = same_bytes(pooled(table, word(slot + PLACE)), at, length)
        if same:
            return slot
        slot += SLOT_BYTES  # another pre-token's: the next slot, as it was when entered
        if slot == stop:
            slot = slots


@compiled
def pooled(table, place):
    """The address of a place in the pool."""
    return np.int64(word(table + POOL)) + np.int64(place)


@compiled
def entry(table, at, length):
    """The address of the slot of a pre-token, entered with the value 0 if it is new; 0 if there is
    no room."""
    first, second = keys_of(np.int64(word(table + MASKS)), at, length)
    slot = slot_of_keys(table, first, second, at, length)
    if word(slot + SECOND_KEY) == 0:
        # It is new. Without room, 0 is returned before anything is written.
        used = word(table + USED)
        place = word(table + POOL_USED)
        room = np.int64(word(table + POOL_BYTES) - place) - PADDING
        if used >= word(table + LIMIT) or POOLED * length > room:
            return 0
        # One thread alone owns the table, so the order of these writes does not matter.
        store(slot, first)
        store(slot + SECOND_KEY, second)
        store(table + USED, used + ONE)
        if length > SHORT:
            for step in range(0, length, 8):  # may write past the end, into the padding
                store(pooled(table, place) + step, word(at + step))
            store(slot + PLACE, place)
            store(table + POOL_USED, place + np.uint64(length))
    return slot


@kernel(INT, INT, INT)
def rehash(table, old, capacity):
    """Copy all entries of the old slots into those of the table, which are zeros."""
    for slot in range(old, old + SLOT_BYTES * capacity, SLOT_BYTES):
        first = word(slot)
        second = word(slot + SECOND_KEY)
        if second != 0:
            at = pooled(table, word(slot + PLACE))  # which is not read if the pre-token is short
            new = slot_of_keys(table, first, second, at, length_of(second))
            # The value as well: a pre-token keeps its count, or its ids.
            for part in range(0, SLOT_BYTES, 8):
                store(new + part, word(slot + part))


@kernel(INT, INT, INT, INT)
def write_pretokens(slots, number, table, to):
    """Write the bytes of the pre-tokens of `number` used slots, one after the other."""
    for slot in range(slots, slots + SLOT_BYTES * number, SLOT_BYTES):
        # A short pre-token is spelled by its keys, a long one lies in the pool.
        length = length_of(word(slot + SECOND_KEY))
        if length <= SHORT:
            store(to, word(slot))  # the next pre-token overwrites the excess
            store(to + 8, word(slot + SECOND_KEY))
        else:
            source = pooled(table, word(slot + PLACE))
            for step in range(0, length, 8):
                store(to + step, word(source + step))
        to += length
