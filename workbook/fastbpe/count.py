"""How often each pre-token occurs: scan and count in one pass over the bytes.

file    |------ span ------|------ span ------|--- span ---|      cut where nothing is cut in two
span    document <|endoftext|> document <|endoftext|> ...
table   " the" 41, " fox" 3, ...        one for all spans; nothing else grows with the file
"""

from dataclasses import dataclass

import numpy as np

from workbook.fastbpe.machine import PADDING, compiled, store, word
from workbook.fastbpe.scan import character_kinds, token_end
from workbook.fastbpe.table import (
    KEYS_BYTES,
    PLACE_BITS,
    PLACE_MASK,
    SLOT_BYTES,
    Table,
    claim,
    find,
)
from workbook.fastbpe.text import Documents


@dataclass(frozen=True)
class Counts:
    """Different pre-tokens, one behind the other, and how often each occurs."""

    text: np.ndarray  # uint8, padded
    lengths: np.ndarray  # int64
    counts: np.ndarray  # int64


def counts_of(table: Table) -> Counts:
    """The pre-tokens of a table in a row."""
    slots = table.slots[table.slots[:, 2] > 0]
    lengths = (slots[:, 2] >> PLACE_BITS).astype(np.int64)
    text = np.zeros(lengths.sum() + KEYS_BYTES + PADDING, np.uint8)
    gather(slots.ctypes.data, len(slots), table.pool.ctypes.data, text.ctypes.data)
    return Counts(text, lengths, slots[:, 3].astype(np.int64))


@compiled
def gather(slots, number, pool, to):
    """Write the bytes of the pre-tokens of `number` used slots one behind the other."""
    for slot in range(slots, slots + SLOT_BYTES * number, SLOT_BYTES):
        place = word(slot + 16)
        length = np.int64(place >> PLACE_BITS)
        if length <= KEYS_BYTES:
            store(to, word(slot))  # what is too much, the next one overwrites
            store(to + 8, word(slot + 8))
        else:
            source = pool + np.int64(place & PLACE_MASK)
            for step in range(0, length, 8):
                store(to + step, word(source + step))
        to += length


def count_text(table: Table, documents: Documents) -> None:
    """Add the pre-tokens of a text to the table."""
    kinds = character_kinds().ctypes.data
    progress = np.array([0, documents.starts[0]], np.int64)
    while longest := count_documents(
        documents.starts, documents.ends, kinds, table.slots.ctypes.data, len(table.slots),
        table.pool.ctypes.data, len(table.pool), table.used.ctypes.data, progress,
    ):  # fmt: skip
        table.grow(longest)


@compiled
def count_documents(starts, ends, kinds, slots, capacity, pool, pool_size, used, progress):
    """Count on from `progress` (document, address); 0 at the end, else the bytes a grown table
    must have room for."""
    document, at = progress
    while True:
        end = ends[document]
        while at < end:
            stop = token_end(at, end, kinds)
            slot = find(slots, capacity, pool, at, stop - at)
            if word(slot + 16) == 0:
                if (
                    2 * np.int64(word(used)) >= capacity
                    or np.int64(word(used + 8)) + stop - at + PADDING > pool_size
                ):
                    progress[0], progress[1] = document, at
                    return stop - at
                claim(slot, pool, used, at, stop - at)
            store(slot + 24, word(slot + 24) + np.uint64(1))
            at = stop
        document += 1
        if document == len(starts):
            return 0
        at = starts[document]
