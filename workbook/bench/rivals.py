"""The tokenizer libraries that are timed against each other, one function each.

    python -m workbook.bench.rivals "train rustbpe" text.txt 10000 folder      prints its seconds

Each run is a process of its own on one core. Only the work is timed: libraries are imported and
compiled, and those that take strings have the text in memory, before the clock starts. We start
from the file on disk, and our time includes reading it.
"""

import json
import os
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import numpy as np

from workbook.corpora.corpora import END_OF_TEXT
from workbook.tokenization import bpe, pretokens
from workbook.tokenization.pretokens import PATTERN
from workbook.tokenization.tokenizer import Tokenizer


def seconds(work: Callable) -> float:
    """How long the call took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def documents(path: Path) -> list[str]:
    return path.read_bytes().decode().split(END_OF_TEXT)


def saved(folder: Path) -> Tokenizer:
    """The tokenizer that all of them encode with."""
    return Tokenizer.from_files(folder / "vocab.json", folder / "merges.txt", [END_OF_TEXT])


# --- Training -----------------------------------------------------------------------------------


def train_workbook(path: Path, vocab_size: int, folder: Path) -> float:
    from workbook.tokenization.compiled import engine

    engine.compile_all()
    return seconds(lambda: engine.train(path, [END_OF_TEXT], vocab_size - 257))


def train_python(path: Path, vocab_size: int, folder: Path) -> float:
    def work():
        counts = pretokens.count_pretokens(path, [END_OF_TEXT])
        bpe.train_incremental(counts, vocab_size - 257)

    return seconds(work)


def train_rustbpe(path: Path, vocab_size: int, folder: Path) -> float:
    import rustbpe

    texts, tokenizer = documents(path), rustbpe.Tokenizer()
    return seconds(
        lambda: tokenizer.train_from_iterator(iter(texts), vocab_size - 1, pattern=PATTERN)
    )


def train_tokenizers(path: Path, vocab_size: int, folder: Path) -> float:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    texts, tokenizer = documents(path), Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return seconds(lambda: tokenizer.train_from_iterator(texts, trainer))


# --- Encoding a file ----------------------------------------------------------------------------


def encode_workbook(path: Path, vocab_size: int, folder: Path) -> float:
    tokenizer = saved(folder)
    tokenizer._idle_encoders.append(tokenizer._take_encoder())  # compiled, and its table empty
    return seconds(lambda: tokenizer.encode_file(path))


def encode_python(path: Path, vocab_size: int, folder: Path) -> float:
    tokenizer = saved(folder)

    def work():
        with path.open(encoding="utf-8", newline="") as file:
            return sum(1 for _ in tokenizer.encode_iterable(file))

    return seconds(work)


def encode_tiktoken(path: Path, vocab_size: int, folder: Path) -> float:
    """The faster of its two best calls: the whole text at once, or its documents one by one."""
    tokenizer = tiktoken_of(saved(folder))
    text, texts = path.read_bytes().decode(), documents(path)
    return min(
        seconds(lambda: tokenizer.encode_to_numpy(text, allowed_special="all")),
        seconds(lambda: tokenizer.encode_ordinary_batch(texts, num_threads=1)),
    )


def tiktoken_of(tokenizer: Tokenizer):
    """tiktoken's encoding with the same tokens and ids."""
    import tiktoken

    ranks = {token: token_id for token_id, token in tokenizer.vocab.items()}
    special = {END_OF_TEXT: ranks.pop(END_OF_TEXT.encode())}
    return tiktoken.Encoding("same", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special)


def encode_tokenizers(path: Path, vocab_size: int, folder: Path) -> float:
    from tokenizers import Tokenizer

    from workbook.generation.formats import save_tokenizer_json

    save_tokenizer_json(saved(folder), folder / "tokenizer.json")
    tokenizer, texts = Tokenizer.from_file(str(folder / "tokenizer.json")), documents(path)
    return seconds(lambda: tokenizer.encode_batch_fast(texts))


# --- A short call -------------------------------------------------------------------------------

SHORT_TEXTS = ("Hi", "Once upon a time there was a fox.", "It's 12 o'clock, isn't it? " * 20)


def short_workbook(path: Path, vocab_size: int, folder: Path) -> dict[str, float]:
    return short_calls(saved(folder).encode)


def short_tiktoken(path: Path, vocab_size: int, folder: Path) -> dict[str, float]:
    encode = tiktoken_of(saved(folder)).encode
    return short_calls(lambda text: encode(text, allowed_special="all"))


def short_calls(encode: Callable) -> dict[str, float]:
    """The seconds of one call on each short text, the best of many, its words met before."""
    return {
        text: min(timeit.repeat(lambda text=text: encode(text), number=200, repeat=50)) / 200
        for text in SHORT_TEXTS
    }


# --- What no tokenizer can beat -----------------------------------------------------------------


def read_bytes(path: Path, vocab_size: int, folder: Path) -> float:
    """Reading the bytes, and looking at each of them once."""
    return seconds(lambda: np.fromfile(path, np.uint8).max())


def read_wc(path: Path, vocab_size: int, folder: Path) -> float:
    """Counting words with the system's `wc -w`."""
    command = ["wc", "-w", str(path)]
    return seconds(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))


RIVALS = {
    "train workbook": train_workbook,
    "train rustbpe": train_rustbpe,
    "train tokenizers": train_tokenizers,
    "train python": train_python,
    "encode workbook": encode_workbook,
    "encode tiktoken": encode_tiktoken,
    "encode tokenizers": encode_tokenizers,
    "encode python": encode_python,
    "read bytes": read_bytes,
    "read wc -w": read_wc,
    "short workbook": short_workbook,
    "short tiktoken": short_tiktoken,
}


def main(key: str, path: str, vocab_size: str, folder: str) -> None:
    """Print the result of one rival as JSON: null where it is not installed."""
    if hasattr(os, "sched_setaffinity"):  # elsewhere there is no such call
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    try:
        print(json.dumps(RIVALS[key](Path(path), int(vocab_size), Path(folder))))
    except (ModuleNotFoundError, FileNotFoundError):
        print("null")


if __name__ == "__main__":
    main(*sys.argv[1:])
