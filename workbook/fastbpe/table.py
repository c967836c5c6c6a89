"""A hash table from pre-tokens to one number each, over memory that its owner holds.

    slot    [ key | key | length and place | value ]      four numbers of 64 bits, 0 where free
    pool    the bytes of the pre-tokens that are longer than two keys

A pre-token of up to 16 bytes, that is nearly every one, *is* its two keys: two comparisons tell
whether it is there. A longer one has a hash for keys and its bytes in the pool, which are compared
too, because equal hashes are no proof. The table copies what it stores, so the text may go.
"""

import numpy as np

from workbook.fastbpe.machine import PADDING, byte, compiled, store, word

SLOT_BYTES = 32
KEYS_BYTES = 16
PLACE_BITS = np.uint64(40)
PLACE_MASK = np.uint64((1 << 40) - 1)
ALL_BITS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
# Odd numbers whose bits look random: 2**64 over the golden ratio, and a prime of xxHash.
MIX_A = np.uint64(0x9E37_79B9_7F4A_7C15)
MIX_B = np.uint64(0xC2B2_AE3D_27D4_EB4F)
HALF = np.uint64(32)


class Table:
    """The memory of a table, at most half full, and its growth."""

    def __init__(self, capacity: int = 1 << 14):
        self.slots = np.zeros((capacity, 4), np.uint64)
        self.pool = np.zeros(1 << 16, np.uint8)
        self.used = np.zeros(2, np.int64)  # slots, bytes of the pool

    def grow(self, longest: int) -> None:
        """Make room: four times the slots where half are used, and for `longest` more bytes."""
        if self.is_full():
            slots = np.zeros((4 * len(self.slots), 4), np.uint64)
            rehash(self.slots.ctypes.data, len(self.slots), slots.ctypes.data, len(slots))
            self.slots = slots
        if self.used[1] + longest + PADDING > len(self.pool):
            pool = np.zeros(2 * len(self.pool) + longest + PADDING, np.uint8)
            pool[: self.used[1]] = self.pool[: self.used[1]]
            self.pool = pool

    def is_full(self) -> bool:
        """Whether the next entry needs a larger table."""
        return bool(2 * self.used[0] >= len(self.slots))


@compiled
def keys_of(at, length):
    """The two keys of the pre-token at this address."""
    if length <= 8:
        return word(at) & (ALL_BITS >> np.uint64(64 - 8 * length)), np.uint64(0)
    if length <= KEYS_BYTES:
        return word(at), word(at + 8) & (ALL_BITS >> np.uint64(128 - 8 * length))
    first, second = np.uint64(length), word(at + length - 8)
    for step in range(0, length - 8, 8):
        first = (first ^ word(at + step)) * MIX_A
        first ^= first >> HALF
    return first, second


@compiled
def home_of(first, second):
    """The number whose lowest bits are the slot where the search for these keys begins."""
    mixed = (first ^ (second * MIX_B) ^ (second >> HALF)) * MIX_A
    return mixed ^ (mixed >> HALF)


@compiled
def find(slots, capacity, pool, at, length):
    """The address of the slot of a pre-token: its own, or the free one where it belongs."""
    first, second = keys_of(at, length)
    index = np.int64(home_of(first, second) & np.uint64(capacity - 1))
    while True:
        slot = slots + SLOT_BYTES * index
        place = word(slot + 16)
        if place == 0:
            return slot
        if word(slot) == first and word(slot + 8) == second:
            if np.int64(place >> PLACE_BITS) == length and (
                length <= KEYS_BYTES or same_bytes(pool + np.int64(place & PLACE_MASK), at, length)
            ):
                return slot
        index = (index + 1) & (capacity - 1)


@compiled
def same_bytes(one, other, length):
    """Whether `length` bytes at two addresses are equal."""
    for step in range(length):
        if byte(one + step) != byte(other + step):
            return False
    return True


@compiled
def claim(slot, pool, used, at, length):
    """Make a free slot the pre-token's own; `used` (the address of both counters) grows."""
    first, second = keys_of(at, length)
    store(slot, first)
    store(slot + 8, second)
    place = word(used + 8)
    store(slot + 16, np.uint64(length) << PLACE_BITS | place)
    store(used, word(used) + np.uint64(1))
    if length > KEYS_BYTES:
        for step in range(0, length, 8):  # may write past the end, into the padding
            store(pool + np.int64(place) + step, word(at + step))
        store(used + 8, place + np.uint64(length))


@compiled
def rehash(old, old_capacity, new, new_capacity):
    """Copy all entries into a larger table of zeros."""
    for slot in range(old, old + SLOT_BYTES * old_capacity, SLOT_BYTES):
        if word(slot + 16) != 0:
            index = np.int64(home_of(word(slot), word(slot + 8)) & np.uint64(new_capacity - 1))
            while word(new + SLOT_BYTES * index + 16) != 0:
                index = (index + 1) & (new_capacity - 1)
            for part in range(0, SLOT_BYTES, 8):
                store(new + SLOT_BYTES * index + part, word(slot + part))
