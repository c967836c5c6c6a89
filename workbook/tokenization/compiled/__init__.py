"""The fast engine behind `train_bpe` and `Tokenizer`, in machine code: a file to merges and ids.

    file --count--> " the" 41, " fox" 3, ... --merge--> (32, 116), (104, 101), ... --> b" t", ...

On bytes and arrays, it does what `pretokens`, `bpe` and `tokenizer` do in plain Python, with the
same results. Read its files in this order:

    kernels   machine code, made once by numba
    machine   memory by address
    scan      where pre-tokens end
    table     pre-token -> number
    text      files as padded, checked spans
    count     how often each pre-token occurs
    merge     merges from counts
    encode    text to ids

Importing compiles nothing: the first call on a machine does, and says so.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path

from workbook.tokenization.compiled import count, merge
from workbook.tokenization.compiled.encode import make_encoder
from workbook.tokenization.compiled.kernels import load_kernels

__all__ = ["load_kernels", "make_encoder", "train_on_file"]


def train_on_file(
    path: Path, special_tokens: Sequence[str], num_merges: int, executor: Executor | None = None
) -> list[tuple[bytes, bytes]]:
    """The merges of a UTF-8 file, as `bpe.train_naive` learns them from its counts.

    Raises: ValueError if the file is not UTF-8.
    """
    load_kernels()  # compiled once, here, and not in every worker
    # The text is only read here: what merges see is its different pre-tokens, a small part of it.
    counts = count.count_file(path, special_tokens, executor)
    return merge.spelled_out(merge.learn_merges(counts, num_merges))
