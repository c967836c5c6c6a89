"""The fast engine behind `train_bpe` and `Tokenizer`, compiled by numba: a file to merges and ids.

    file --count--> " the" 41, " fox" 3, ... --merge--> (32, 116), (104, 101), ... --> b" t", ...

On bytes and arrays, it does what `pretokens`, `bpe` and `tokenizer` do in plain Python, with the
same results. Read its files in this order:

    machine   memory by address                     scan    where pre-tokens end
    table     pre-token -> number                   text    files as padded, checked spans
    count     how often each pre-token occurs       merge   merges from counts
    encode    text to ids

Importing compiles nothing: the first call does, once, and says so.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from functools import cache
from pathlib import Path

from workbook.tokenization.compiled import count, merge, table, text
from workbook.tokenization.compiled.encode import make_encoder
from workbook.tokenization.compiled.machine import padded

__all__ = ["compile_all", "make_encoder", "train"]


def train(
    path: Path, special_tokens: Sequence[str], num_merges: int, executor: Executor | None = None
) -> list[tuple[bytes, bytes]]:
    """The merges of a UTF-8 file, as `bpe.train_naive` learns them from its counts.

    Raises: ValueError if the file is not UTF-8.
    """
    compile_all()  # once, here, and not in every worker
    counts = count.count_file(path, special_tokens, executor)
    return merge.spelled_out(merge.learn_merges(counts, num_merges))


@cache
def compile_all() -> None:
    """Run everything on three words, so that no later call waits for the compiler."""
    words = table.Table(capacity=2)
    count.count_text(words, text.documents_of(padded(b"one two one"), text.special_bytes([])))
    counts = count.counts_of(words)
    count.add_counts(words, counts)
    merge.learn_merges(counts, 1)
    make_encoder({bytes([value]): value for value in range(256)}, [], {}).encode("one")
