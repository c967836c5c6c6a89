"""How often each pre-token occurs: scan and count in one pass over the bytes.

file    |------ span ------|------ span ------|--- span ---|      no cut splits a pre-token
span    document <|endoftext|> document <|endoftext|> ...
table   " the" 41, " fox" 3, ...        one for all spans; nothing else grows with the file

With an executor, each worker counts several spans in a table of its own, and the counts are added
up here.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from workbook.files import progress_bar, unchanged
from workbook.tokenization.compiled import scan, table, text
from workbook.tokenization.compiled.kernels import INT, INTS, kernel
from workbook.tokenization.compiled.machine import store, text_address, word
from workbook.tokenization.spans import cut_points, share


@dataclass(frozen=True)
class Counts:
    """Different pre-tokens, one after the other, and how often each occurs.

    Raises: ValueError unless each has a length and a count, and the text is as long, and padded.
    """

    text: np.ndarray  # uint8, padded
    lengths: np.ndarray  # int64
    counts: np.ndarray  # int64

    def __post_init__(self) -> None:
        if len(self.lengths) != len(self.counts) or self.lengths.min(initial=1) < 1:
            raise ValueError("each pre-token has a length of at least one byte, and a count")
        # Compiled code reads up to 64 bytes at a time, so also behind the last pre-token.
        text_address(self.text[: self.lengths.sum()])


def count_file(
    path: Path, special_tokens: Sequence[str] = (), executor: Executor | None = None
) -> Counts:
    """The counts of `spans.count_pretokens`, faster: by an executor, or threads of this process.

    Raises: ValueError if the file is not UTF-8, or changes meanwhile.
    """
    size = path.stat().st_size
    bar = progress_bar(desc="count", total=size, unit="B", unit_scale=True, delay=1)
    with unchanged(path), bar:
        # Only threads of ours can move a bar: the workers of an executor may be elsewhere.
        task = partial(count_spans, path, special_tokens, seen=int if executor else bar.update)
        # The first part's own table serves for all if there is no second.
        parts = share(task, cut_points(path, special_tokens), executor)
        counts = next(parts)
        total = None
        for more in parts:
            if total is None:
                # Large at once: words in the order of another table would pile up in a small one.
                total = table.PretokenTable(2 << (2 * len(counts.lengths)).bit_length())
                add_counts(total, counts)
            add_counts(total, more)
    return counts if total is None else Counts(*total.contents())


def count_spans(
    path: Path,
    special_tokens: Sequence[str],
    cuts: Sequence[int],
    seen: Callable[[int], object] = int,
) -> Counts:
    """The counts of the spans of a file between these cuts.

    After each span, `seen` is called with its length in bytes.
    """
    # Small for a small file: memory that is touched for the first time is slow. The last part of a
    # file may be a single byte, however large the file.
    size = cuts[-1] - cuts[0]
    total = table.PretokenTable(2 << min(13, (size // 16).bit_length()))
    # Their ids are not asked for: they only separate documents.
    special = text.SpecialTokens(dict.fromkeys(special_tokens, 0))
    # Each span in the same memory, so a file of any size takes no more than one span.
    for span in text.read_spans(path, cuts):
        count_text(total, span, special)
        seen(len(span))
    return Counts(*total.contents())


def count_text(total: table.PretokenTable, span: np.ndarray, special: text.SpecialTokens) -> None:
    """Add the pre-tokens of a span to the table."""
    kinds = scan.character_kinds()
    batch = scan.new_batch()
    # Where to go on: the kernel writes it before it returns.
    start = text_address(span)
    progress = np.array([start])
    # Plain addresses: whoever passes them keeps the arrays alive during the call.
    addresses = kinds.ctypes.data, batch.ctypes.data, total.address, special.address
    while longest := count_on(progress, start + len(span), *addresses):
        total.grow(longest)


@kernel(INTS, INT, INT, INT, INT, INT)
def count_on(progress, end, kinds, batch, facts, special):
    """Continue from the address in `progress`; return 0 at the end, else the length of a
    pre-token for which the table, whose `facts` are at this address, has no room."""
    at = progress[0]
    while at < end:
        document_end, next_document, _ = text.next_special(at, end, special)
        while at < document_end:
            # First find many pre-tokens, then look them up: the processor loads their slots
            # meanwhile.
            number = table.next_batch(at, document_end, kinds, facts, batch)
            for item in range(batch, batch + scan.ITEM_BYTES * number, scan.ITEM_BYTES):
                # Nearly always the pre-token is in the first slot that is looked at; the long way
                # is rare.
                slot = table.slot_at_home(item)
                # A pre-token ends where the next one begins, whose address is the next item's first
                # number.
                at = np.int64(word(item + scan.ITEM_BYTES))
                if slot == 0:
                    start = np.int64(word(item))
                    slot = table.entry(facts, start, at - start)
                    if slot == 0:  # a kernel allocates nothing: Python makes room and calls again
                        progress[0] = start
                        return at - start
                # The value of a slot is the count here, and the ids in `encode`.
                store(slot + table.VALUE, word(slot + table.VALUE) + table.ONE)
        at = next_document
    return 0


def add_counts(total: table.PretokenTable, counts: Counts) -> None:
    """Add counted pre-tokens to the table."""
    progress = np.array([0, counts.text.ctypes.data])
    while longest := add_words(counts.lengths, counts.counts, total.address, progress):
        total.grow(longest)


@kernel(INTS, INTS, INT, INTS)
def add_words(lengths, counts, facts, progress):
    """Continue from `progress` (word, address); return what `count_on` would."""
    at = progress[1]
    for index in range(progress[0], len(lengths)):
        # As in `count_on`, but the pre-tokens lie one after the other, and each has a count.
        slot = table.entry(facts, at, lengths[index])
        if slot == 0:
            progress[0] = index
            progress[1] = at
            return lengths[index]
        store(slot + table.VALUE, word(slot + table.VALUE) + np.uint64(counts[index]))
        at += lengths[index]
    return 0
