"""Token files: the token ids of a text as an array on disk, written in shards, read by memory map.

    train.txt                   |---- shard 0 ----|---- shard 1 ----|-- shard 2 --|
    .train.npy.<job>.parts/     0.npy  done       1.npy  running    2.npy  running
    train.npy                   all shards joined, once the last one is done
    train.json                  what it was made from

A job's name is a hash of the text's path and state, the tokenizer, and the cuts. So the next call
for the same job resumes a run that crashed, and no finished shard is made twice.
"""

import json
import pickle
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np

from workbook import config, files
from workbook.corpora import corpora
from workbook.files import atomic_write, file_sha256, file_state, locked, unchanged, write_json
from workbook.tokenization import bpe
from workbook.tokenization.spans import AnyPath, cut_points, read_span, task_cuts, text_file
from workbook.tokenization.tokenizer import Tokenizer, unpickled

VOCAB, MERGES, RECORD = "vocab.json", "merges.txt", "record.json"  # in a tokenizer's folder

# What the default tokenizer of each corpus is trained on: bytes (None: all), and its vocab_size.
DEFAULTS: dict[str, tuple[int | None, int]] = {}
for _profile in config.PROFILES.values():
    DEFAULTS[_profile.simple_corpus] = _profile.simple_bytes, _profile.simple_vocab_size
    DEFAULTS[_profile.web_corpus] = None, _profile.web_vocab_size


def read_text(path: AnyPath) -> Iterator[str]:
    """The text of a UTF-8 file in blocks, its line ends unchanged.

    Raises: ValueError if the file is not UTF-8, or changes meanwhile.
    """
    path = Path(path)
    with unchanged(path):
        yield from read_span(path, 0, path.stat().st_size)


def join_tokens(path: AnyPath, parts: Sequence[Path]) -> int:
    """Join token files of one dtype into one, in this order; return its number of tokens."""
    # The header comes first in a file and says how many there are: so they are counted first.
    number = sum(len(read_tokens(part)) for part in parts)
    dtype = read_tokens(parts[0]).dtype
    with atomic_write(path, "wb") as file:
        _write_header(file, dtype, number)
        for part in parts:  # one mapped at a time: what is mapped and read counts as memory
            read_tokens(part).tofile(file)
    return number


def _write_header(file: IO[bytes], dtype: np.dtype, length: int) -> None:
    """Write the header of a `.npy` file of `length` tokens, little-endian on every machine."""
    # NumPy's own format, which other programs read as well, and a memory map without parsing.
    header = {"descr": dtype.newbyteorder("<").str, "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(file, header)


def read_tokens(path: AnyPath) -> np.ndarray:
    """The token ids of a file as a memory map: only the part that is used is read from disk.

    Raises: FileNotFoundError; ValueError if the file is damaged.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is not a file; encode the corpus first, as 02_bpe does")
    try:
        # The system reads pages as they are touched, and drops them when memory gets short.
        return np.load(path, mmap_mode="r")
    except (OSError, MemoryError):
        raise
    except Exception as error:  # of NumPy, which has Python's parser read the header
        raise ValueError(
            f"{path} is not a complete token file ({error}); remove it, and encode the corpus again"
        ) from error


# --- A text file to a token file, in shards ------------------------------------------------------


def tokenize_file(
    tokenizer: Tokenizer, source: AnyPath, target: AnyPath, executor: Executor | None = None
) -> int:
    """Encode the text file `source` into the token file `target`; return its number of tokens.

    Does nothing if `target` was made from the same text by the same tokenizer.
    With an executor (processes, or a cluster whose workers see both folders), shards are encoded in
    parallel. Memory use does not depend on the size of the file.
    Raises: FileNotFoundError; ValueError if the file is not UTF-8, or changes meanwhile.
    """
    source = text_file(source).resolve()
    target = Path(target).resolve()
    record = target.with_suffix(".json")
    # Two processes would otherwise write the same shards; who waits finds the work done.
    with locked(target.parent):
        state = file_state(source)
        cuts = cut_points(source, tokenizer.special_tokens)
        # Everything that decides the ids, and how they are divided into shards.
        facts = source, *(state or ()), cuts, fingerprint(tokenizer)
        job = _short_hash("\n".join(map(str, facts)))
        made = _read(record)
        # A file that is cut short, by a full disk or a copy, has another size.
        whole = target.is_file() and target.stat().st_size == made.get("file_bytes")
        if whole and made.get("job") == job:
            return int(made["tokens"])
        # Named after the job: shards of another text can never be taken for these.
        folder = target.with_name(f".{target.name}.{job}.parts")
        # Shards of other jobs are useless now: their text or tokenizer has changed.
        for old in target.parent.glob(f".{target.name}.*.parts"):
            if old != folder:
                shutil.rmtree(old)
        shards = task_cuts(cuts)
        parts = [folder / f"{number}.npy" for number in range(len(shards))]
        missing = [number for number, part in enumerate(parts) if not part.exists()]
        # A run that was killed goes on here: what it finished is not encoded again.
        todo = [shards[number] for number in missing], [parts[number] for number in missing]
        # Pickled once here, and not once for each shard.
        work = partial(encode_shard, pickle.dumps(tokenizer), source, state)
        before = cuts[-1] - sum(shard[-1] - shard[0] for shard in todo[0])
        with files.progress_bar(
            desc=f"encode {target.stem}", initial=before, total=cuts[-1], unit="B", unit_scale=True
        ) as bar:
            for done in executor.map(work, *todo) if executor else map(work, *todo):
                bar.update(done)
        # Only now is the target written, and in one step: what is there is whole.
        tokens = join_tokens(target, parts)
        made = {"source": str(source), "bytes": cuts[-1], "job": job, "tokens": tokens}
        # After the target: a record must never describe a file that is not there.
        write_json(record, made | {"file_bytes": target.stat().st_size})
        shutil.rmtree(folder)
        return tokens


def encode_shard(
    tokenizer: bytes, source: Path, state: tuple[int, int] | None, cuts: Sequence[int], part: Path
) -> int:
    """Encode the text between the cuts into the file `part`; return that text's length in bytes.

    `tokenizer` is pickled. Raises: ValueError if the text is no longer in this `files.file_state`,
    so that a shard never mixes two texts.
    """
    # An editor may have saved the text since the cuts were made.
    with unchanged(source, state):
        ids = unpickled(tokenizer).encode_spans(source, cuts)
    with atomic_write(part, "wb") as file:
        _write_header(file, ids.dtype, len(ids))
        ids.tofile(file)
    return cuts[-1] - cuts[0]


def fingerprint(tokenizer: Tokenizer) -> str:
    """A short hash of the vocabulary, the merges and the special tokens.

    Tokenizers with the same fingerprint give the same ids, on any machine.
    """
    # Sorted, since two dicts with the same items may have them in another order.
    vocab = sorted(tokenizer.vocab.items())
    return _short_hash(repr((vocab, tokenizer.merges, sorted(tokenizer.special_tokens))))


def _short_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _read(record: Path) -> dict[str, Any]:
    """The facts in a record; none if it is missing or broken."""
    try:
        return dict(json.loads(record.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


# --- The tokenizer of a corpus -------------------------------------------------------------------


def tokenizer_for(
    name: str, vocab: AnyPath | None = None, merges: AnyPath | None = None, vocab_size: int = 2_048
) -> tuple[str, Tokenizer]:
    """A name for a corpus' tokenizer, such as "stories-2048", and the tokenizer itself.

    From the files `vocab` and `merges` if they are given, else from the data folder; a tokenizer
    that is not there yet is trained first. `vocab_size` is for a text of the user's own: our
    corpora have one tokenizer each.
    Raises: ValueError if no corpus has that name, or the files in the data folder are damaged.
    """
    if (vocab is None) != (merges is None):
        raise ValueError("--vocab and --merges belong together: give both files or neither")
    if vocab is not None and merges is not None:
        tokenizer = Tokenizer.from_files(vocab, merges, [corpora.END_OF_TEXT])
        return f"{name}-{tokenizer.vocab_size}", tokenizer
    corpora.described(name)  # or a ValueError, which lists them
    size, vocab_size = DEFAULTS.get(name, (None, vocab_size))
    folder = config.data_folder() / "tokenizers" / f"{name}-{vocab_size}"
    # The record is written last: if it is there, so is all the rest.
    if not (folder / RECORD).is_file():
        with locked(folder):
            if not (folder / RECORD).is_file():  # another process may have trained it meanwhile
                _train_tokenizer(name, folder, size, vocab_size)
    return folder.name, load_tokenizer(folder)


def _train_tokenizer(name: str, folder: Path, size: int | None, vocab_size: int) -> None:
    """Train the tokenizer of a corpus, on `size` bytes of it, and write its files."""
    print(f"training a tokenizer with {vocab_size:,} tokens: {folder}", flush=True)
    text = corpora.path(name, "train", size)
    specials = [corpora.END_OF_TEXT]
    # The separator of documents is a special token, so no merge reaches from one text into the
    # next.
    tokenizer = Tokenizer(*bpe.train_bpe(text, vocab_size, specials), specials)
    save_tokenizer(tokenizer, folder, corpus=name, bytes=text.stat().st_size, vocab_size=vocab_size)


def save_tokenizer(tokenizer: Tokenizer, folder: Path, **facts: Any) -> None:
    """Write a tokenizer to a folder: its two files, and last a record with their hashes."""
    tokenizer.save(folder / VOCAB, folder / MERGES)
    hashes = {file: _file_hash(folder / file) for file in (VOCAB, MERGES)}
    write_json(folder / RECORD, {**facts, "special_tokens": tokenizer.special_tokens, **hashes})


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read what `save_tokenizer` wrote. Raises: ValueError if a file is not that of the record."""
    record = _read(folder / RECORD)
    special_tokens = record.get("special_tokens", [corpora.END_OF_TEXT])
    # A vocabulary that was edited would give other ids, and every token file would be wrong.
    changed = [file for file in (VOCAB, MERGES) if record.get(file) != _file_hash(folder / file)]
    is_list = isinstance(special_tokens, list)
    if not is_list or not all(isinstance(text, str) for text in special_tokens):
        changed.append(RECORD)
    if changed:
        advice = f"remove {folder}, and the tokenizer will be trained again"
        raise ValueError(f"{folder / changed[0]} has changed since it was trained; {advice}")
    return Tokenizer.from_files(folder / VOCAB, folder / MERGES, special_tokens)


def _file_hash(path: Path) -> str | None:
    """The sha256 of a file; None if it is missing."""
    return file_sha256(path) if path.is_file() else None


def tokenize_corpus(
    name: str,
    size: int | None = None,
    vocab: AnyPath | None = None,
    merges: AnyPath | None = None,
    executor: Executor | None = None,
) -> dict[Path, int]:
    """The token files of both splits of a corpus, and the number of tokens in each.

    `size`, in bytes, is that of the train split, for a corpus that can be made in any size; `vocab`
    and `merges` are the files of a tokenizer (None: the corpus' own); `executor` is for
    `tokenize_file`.
    """
    folder, tokenizer = tokenizer_for(name, vocab, merges)
    numbers = {}
    for split in corpora.SPLITS:
        source = corpora.path(name, split, size if split == "train" else None)
        # By tokenizer: the same text has other tokens with another one.
        target = config.data_folder() / "tokens" / folder / f"{split}.npy"
        numbers[target] = tokenize_file(tokenizer, source, target, executor)
    return numbers
