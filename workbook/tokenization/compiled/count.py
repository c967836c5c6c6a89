"""How often each pre-token occurs: scan and count in one pass over the bytes.

file    |------ span ------|------ span ------|--- span ---|      no cut splits a pre-token
span    document <|endoftext|> document <|endoftext|> ...
table   " the" 41, " fox" 3, ...        one for all spans; nothing else grows with the file

With an executor, each worker counts several spans in a table of its own, and the counts are added
up here.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from workbook.files import unchanged
from workbook.tokenization.compiled.kernels import INT, INTS, kernel
from workbook.tokenization.compiled.machine import store, word
from workbook.tokenization.compiled.scan import ITEM_BYTES, character_kinds, new_batch
from workbook.tokenization.compiled.table import (
    VALUE,
    PretokenTable,
    entry,
    next_batch,
    slot_at_home,
)
from workbook.tokenization.compiled.text import Documents, SpecialTokens, documents_of, read_spans
from workbook.tokenization.spans import cut_points, share


@dataclass(frozen=True)
class Counts:
    """Different pre-tokens, one after the other, and how often each occurs."""

    text: np.ndarray  # uint8, padded
    lengths: np.ndarray  # int64
    counts: np.ndarray  # int64


def count_file(
    path: Path, special_tokens: Sequence[str] = (), executor: Executor | None = None
) -> Counts:
    """The counts of `spans.count_pretokens`, faster: by an executor, or threads of this process.

    Raises: ValueError if the file is not UTF-8, or changes meanwhile.
    """
    with unchanged(path):
        task = partial(count_spans, path, special_tokens)
        parts = share(task, cut_points(path, special_tokens), executor)
        counts = next(parts)
        # Large from the start: words in the order of another table would pile up in a small one.
        table = PretokenTable(2 << (2 * len(counts.lengths)).bit_length())
        for more in parts:
            if not len(table):
                add_counts(table, counts)
            add_counts(table, more)
    return Counts(*table.contents()) if len(table) else counts


def count_spans(path: Path, special_tokens: Sequence[str], cuts: Sequence[int]) -> Counts:
    """The counts of the spans of a file between these cuts."""
    table, special = PretokenTable(), SpecialTokens(special_tokens)
    for span in read_spans(path, cuts):
        count_text(table, documents_of(span, special))
    return Counts(*table.contents())


def count_text(table: PretokenTable, documents: Documents) -> None:
    """Add the pre-tokens of a text to the table."""
    kinds, batch = character_kinds(), new_batch()
    progress = np.array([0, documents.starts[0]])
    while longest := count_documents(
        documents.starts,
        documents.ends,
        kinds.ctypes.data,
        batch.ctypes.data,
        table.address,
        progress,
    ):
        table.grow(longest)


@kernel(INTS, INTS, INT, INT, INT, INTS)
def count_documents(starts, ends, kinds, batch, table, progress):
    """Continue from `progress` (document, address); return 0 at the end, else the length of a
    pre-token for which the table has no room."""
    document, at = progress[0], progress[1]
    while True:
        end = ends[document]
        while at < end:
            number = next_batch(at, end, kinds, table, batch)
            for item in range(batch, batch + ITEM_BYTES * number, ITEM_BYTES):
                slot, at = slot_at_home(item), np.int64(word(item + ITEM_BYTES))
                if slot == 0:
                    start = np.int64(word(item))
                    slot = entry(table, start, at - start)
                    if slot == 0:  # a kernel allocates nothing: Python makes room and calls again
                        progress[0], progress[1] = document, start
                        return at - start
                store(slot + VALUE, word(slot + VALUE) + np.uint64(1))
        document += 1
        if document == len(starts):
            return 0
        at = starts[document]


def add_counts(table: PretokenTable, counts: Counts) -> None:
    """Add counted pre-tokens to the table."""
    progress = np.array([0, counts.text.ctypes.data])
    while longest := add_words(counts.lengths, counts.counts, table.address, progress):
        table.grow(longest)


@kernel(INTS, INTS, INT, INTS)
def add_words(lengths, counts, table, progress):
    """Continue from `progress` (word, address); return what `count_documents` would."""
    at = progress[1]
    for index in range(progress[0], len(lengths)):
        slot = entry(table, at, lengths[index])
        if slot == 0:
            progress[0], progress[1] = index, at
            return lengths[index]
        store(slot + VALUE, word(slot + VALUE) + np.uint64(counts[index]))
        at += lengths[index]
    return 0
