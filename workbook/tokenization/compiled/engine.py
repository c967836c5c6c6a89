"""The engine as a whole: a file to merges, and everything compiled beforehand.

file --count--> " the" 41, " fox" 3, ... --merge--> (32, 116), (104, 101), ... --> b" t", ...
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from functools import cache
from pathlib import Path

from workbook.tokenization.compiled.count import (
    Table,
    add_counts,
    count_file,
    count_text,
    counts_of,
)
from workbook.tokenization.compiled.encode import make_encoder
from workbook.tokenization.compiled.machine import padded
from workbook.tokenization.compiled.merge import learn_merges, spelled_out
from workbook.tokenization.compiled.text import documents_of, special_bytes


def train(
    path: Path, special_tokens: Sequence[str], num_merges: int, executor: Executor | None = None
) -> list[tuple[bytes, bytes]]:
    """The merges of a UTF-8 file, as `bpe.train_naive` learns them from its counts.

    Raises: ValueError where the file is not UTF-8.
    """
    compile_all()  # once, here, and not in every worker
    return spelled_out(learn_merges(count_file(path, special_tokens, executor), num_merges))


@cache
def compile_all() -> None:
    """Run everything on three words, so that nothing waits for a compiler later."""
    table = Table(capacity=2)
    count_text(table, documents_of(padded(b"one two one"), special_bytes([])))
    counts = counts_of(table)
    add_counts(table, counts)
    learn_merges(counts, 1)
    make_encoder({bytes([value]): value for value in range(256)}, [], {}).encode("one")
