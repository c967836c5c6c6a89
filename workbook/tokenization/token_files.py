"""Token files: the token ids of a text as an array on disk, written in shards, read by memory map.

    train.txt                   |---- shard 0 ----|---- shard 1 ----|-- shard 2 --|
    .train.npy.<job>.parts/     0.npy  done       1.npy  running    2.npy  running
    train.npy                   all shards joined, once the last one is done
    train.json                  what it was made from

A job's name is a hash of the text's path and state, the tokenizer, and the cuts. So the next call
for the same job resumes a run that crashed, and no finished shard is made twice.
"""

import json
import os
import pickle
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path

import numpy as np
from tqdm import tqdm

from workbook import config
from workbook.corpora import corpora
from workbook.files import atomic_write, file_state, locked, unchanged, write_json
from workbook.tokenization import bpe
from workbook.tokenization.spans import cut_points, task_cuts, text_file
from workbook.tokenization.tokenizer import Tokenizer, token_dtype, unpickled

BLOCK = 1 << 18  # token ids or characters in memory at a time
VOCAB, MERGES, RECORD = "vocab.json", "merges.txt", "record.json"  # in a tokenizer's folder

# What the default tokenizer of each corpus is trained on: bytes (None: all), and its vocab_size.
DEFAULTS = {
    name: (size, vocab_size)
    for profile in config.PROFILES.values()
    for name, size, vocab_size in (
        (profile.simple_corpus, profile.simple_bytes, profile.simple_vocab_size),
        (profile.web_corpus, None, profile.web_vocab_size),
    )
}


def read_text(path: str | os.PathLike) -> Iterator[str]:
    """The text of a UTF-8 file in blocks, its line ends unchanged.

    Raises: ValueError if the file changes meanwhile.
    """
    path = Path(path)
    with unchanged(path), path.open(encoding="utf-8", newline="") as file:
        while block := file.read(BLOCK):
            yield block


def write_tokens(path: str | os.PathLike, ids: Iterable[int], vocab_size: int) -> int:
    """Write token ids to a `.npy` file, in constant memory; return the number of tokens written.

    Raises: ValueError if an id is not below `vocab_size` (a plain cast would store another id).
    """
    ids, dtype, written = iter(ids), token_dtype(vocab_size), 0
    with atomic_write(path, "wb") as file:
        _write_header(file, dtype, written)
        while block := list(islice(ids, BLOCK)):
            if min(block) < 0 or max(block) >= vocab_size:
                raise ValueError(
                    f"ids from {min(block)} to {max(block)} do not fit a vocabulary of "
                    f"{vocab_size:,}; pass the vocab_size of the tokenizer that made them"
                )
            file.write(np.array(block, dtype).tobytes())
            written += len(block)
        file.seek(0)
        _write_header(file, dtype, written)  # just as long: it leaves room for larger counts
    return written


def join_tokens(path: str | os.PathLike, parts: Sequence[Path]) -> int:
    """Join token files of one dtype into one, in this order; return its number of tokens."""
    number, dtype = sum(len(read_tokens(part)) for part in parts), read_tokens(parts[0]).dtype
    with atomic_write(path, "wb") as file:
        _write_header(file, dtype, number)
        for part in parts:  # one mapped at a time: what is mapped and read counts as memory
            read_tokens(part).tofile(file)
    return number


def _write_header(file, dtype: np.dtype, length: int) -> None:
    """Write the header of a `.npy` file of `length` tokens, little-endian on every machine."""
    header = {"descr": dtype.newbyteorder("<").str, "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(file, header)


def read_tokens(path: str | os.PathLike) -> np.ndarray:
    """The token ids of a file as a memory map: only the part that is used is read from disk.

    Raises: FileNotFoundError; ValueError if the file is damaged.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is not a file; encode the corpus first, as 02_bpe does")
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} is not a complete token file ({error}); remove it, and encode the corpus again"
        ) from error


# --- A text file to a token file, in shards ------------------------------------------------------


def tokenize_file(
    tokenizer: Tokenizer,
    source: str | os.PathLike,
    target: str | os.PathLike,
    executor: Executor | None = None,
) -> int:
    """Encode the text file `source` into the token file `target`; return its number of tokens.

    Does nothing if `target` was made from the same text by the same tokenizer.
    With an executor (processes, or a cluster whose workers see both folders), shards are encoded in
    parallel. Memory use does not depend on the size of the file.
    Raises: FileNotFoundError; ValueError if the file is not UTF-8, or changes meanwhile.
    """
    source, target = text_file(source).resolve(), Path(target).resolve()
    with locked(target.parent):
        return _tokenize_file(tokenizer, source, target, executor)


def _tokenize_file(
    tokenizer: Tokenizer, source: Path, target: Path, executor: Executor | None
) -> int:
    """`tokenize_file` while the lock of the target's folder is held."""
    state = file_state(source)
    cuts = cut_points(source, tokenizer.special_tokens)
    facts = {
        "source": str(source),
        "bytes": cuts[-1],
        "vocab_size": tokenizer.vocab_size,
        "dtype": token_dtype(tokenizer.vocab_size).name,
        "job": _job(tokenizer, source, state, cuts),
    }
    record = target.with_suffix(".json")
    made = _read(record)
    whole = target.is_file() and target.stat().st_size == made.get("file_bytes")
    if whole and facts.items() <= made.items():
        return made["tokens"]
    folder = target.with_name(f".{target.name}.{facts['job']}.parts")
    # Shards of other jobs are useless now: their text or tokenizer has changed.
    for old in target.parent.glob(f".{target.name}.*.parts"):
        if old != folder:
            shutil.rmtree(old)
    shards = task_cuts(cuts)
    parts = [folder / f"{number}.npy" for number in range(len(shards))]
    missing = [number for number, part in enumerate(parts) if not part.exists()]
    with tqdm(desc=target.stem, total=cuts[-1], unit="B", unit_scale=True) as bar:
        bar.update(cuts[-1] - sum(shards[number][-1] - shards[number][0] for number in missing))
        todo = [shards[number] for number in missing], [parts[number] for number in missing]
        work = partial(encode_shard, pickle.dumps(tokenizer), source, state)
        for done in executor.map(work, *todo) if executor else map(work, *todo):
            bar.update(done)
    facts |= {"tokens": join_tokens(target, parts), "file_bytes": target.stat().st_size}
    write_json(record, facts)
    shutil.rmtree(folder)
    return facts["tokens"]


def encode_shard(
    tokenizer: bytes, source: Path, state: tuple[int, int], cuts: Sequence[int], part: Path
) -> int:
    """Encode the text between the cuts into the file `part`; return that text's length in bytes.

    `tokenizer` is pickled. Raises: ValueError if the text is no longer in this `files.file_state`,
    so that a shard never mixes two texts.
    """
    with unchanged(source, state):
        spans = list(unpickled(tokenizer).encode_spans(source, cuts))
    with atomic_write(part, "wb") as file:
        _write_header(file, spans[0].dtype, sum(map(len, spans)))
        for ids in spans:
            ids.tofile(file)
    return cuts[-1] - cuts[0]


def _job(tokenizer: Tokenizer, source: Path, state: tuple[int, int], cuts: Sequence[int]) -> str:
    """A name for everything that decides the ids, and how they are divided into shards."""
    facts = source, *state, cuts, fingerprint(tokenizer)
    return _short_hash("\n".join(map(str, facts)))


def fingerprint(tokenizer: Tokenizer) -> str:
    """A short hash of the vocabulary, the merges and the special tokens.

    Tokenizers with the same fingerprint give the same ids, on any machine.
    """
    vocab = sorted(tokenizer.vocab.items())
    merges = [tuple(merge) for merge in tokenizer.merges]
    return _short_hash(repr((vocab, merges, sorted(tokenizer.special_tokens))))


def _short_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _read(record: Path) -> dict:
    """The facts in a record; none if it is missing or broken."""
    try:
        facts = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


# --- The tokenizer of a corpus -------------------------------------------------------------------


def tokenizer_for(
    name: str, vocab: str | os.PathLike | None = None, merges: str | os.PathLike | None = None
) -> tuple[str, Tokenizer]:
    """A name for a corpus' tokenizer, such as "stories-2048", and the tokenizer itself.

    From the files `vocab` and `merges` if they are given, else from the data folder; a tokenizer
    that is not there yet is trained first.
    Raises: ValueError if no corpus has that name, or the files in the data folder are damaged.
    """
    if (vocab is None) != (merges is None):
        raise ValueError("--vocab and --merges belong together: give both files or neither")
    if vocab is not None:
        tokenizer = Tokenizer.from_files(vocab, merges, [corpora.END_OF_TEXT])
        return f"{name}-{tokenizer.vocab_size}", tokenizer
    if name not in DEFAULTS:
        raise ValueError(f"{name!r} is not a corpus; there are {', '.join(DEFAULTS)}")
    folder = config.data_folder() / "tokenizers" / f"{name}-{DEFAULTS[name][1]}"
    if not _has_files(folder):
        with locked(folder):
            if not _has_files(folder):  # another process may have trained it meanwhile
                _train_tokenizer(name, folder)
    return folder.name, _load_tokenizer(name, folder)


def _has_files(folder: Path) -> bool:
    return (folder / VOCAB).is_file() and (folder / MERGES).is_file()


def _train_tokenizer(name: str, folder: Path) -> None:
    """Train the default tokenizer of a corpus; its record is written last, after both files."""
    size, vocab_size = DEFAULTS[name]
    print(f"training a tokenizer with {vocab_size:,} tokens: {folder}", flush=True)
    text, specials = corpora.path(name, "train", size), [corpora.END_OF_TEXT]
    tokenizer = Tokenizer(*bpe.train_bpe(text, vocab_size, specials), specials)
    for old in (RECORD, VOCAB, MERGES):  # left by an interrupted training, one would not fit
        (folder / old).unlink(missing_ok=True)
    tokenizer.save(folder / VOCAB, folder / MERGES)
    _write_record(folder, corpus=name, bytes=text.stat().st_size, vocab_size=vocab_size)


def _load_tokenizer(name: str, folder: Path) -> Tokenizer:
    """The tokenizer of a corpus, if its files are those of its record.

    Files without a record get one if the merges fit the vocabulary.
    """
    made = _read(folder / RECORD)
    advice = f"remove {folder}, and the tokenizer will be trained again"
    for file, digest in _hashes(folder).items():
        if made and made.get(file) != digest:
            raise ValueError(
                f"{folder / file} has changed since the tokenizer was trained; {advice}"
            )
    tokenizer = Tokenizer.from_files(folder / VOCAB, folder / MERGES, [corpora.END_OF_TEXT])
    expected = tokenizer.vocab_size - 256 - len(tokenizer.special_tokens)
    if len(tokenizer.merges) != expected:
        raise ValueError(
            f"{folder / MERGES} has {len(tokenizer.merges):,} merges, but a vocabulary of"
            f" {tokenizer.vocab_size:,} tokens needs {expected:,}; {advice}"
        )
    if not made:
        with suppress(OSError):  # in a read-only folder, this is tried again next time
            _write_record(folder, corpus=name, vocab_size=tokenizer.vocab_size)
    return tokenizer


def _write_record(folder: Path, **origin) -> None:
    """Write the record of a tokenizer: what it was made from, if known, and its files' hashes."""
    write_json(folder / RECORD, origin | _hashes(folder))


def _hashes(folder: Path) -> dict[str, str]:
    """The sha256 of both files of a tokenizer, by their names."""
    return {name: sha256((folder / name).read_bytes()).hexdigest() for name in (VOCAB, MERGES)}


def tokenize_corpus(
    name: str,
    size: int | None = None,
    vocab: str | os.PathLike | None = None,
    merges: str | os.PathLike | None = None,
    executor: Executor | None = None,
) -> dict[Path, int]:
    """The token files of both splits of a corpus, and the number of tokens in each.

    `size`, in bytes, is that of the train split, for a corpus that can be made in any size; `vocab`
    and `merges` are the files of a tokenizer (None: the corpus' own); `executor` is for
    `tokenize_file`.
    """
    sources = {
        split: corpora.path(name, split, size if split == "train" else None)
        for split in corpora.SPLITS
    }
    folder, tokenizer = tokenizer_for(name, vocab, merges)
    targets = {
        source: config.data_folder() / "tokens" / folder / f"{split}.npy"
        for split, source in sources.items()
    }
    return {
        target: tokenize_file(tokenizer, source, target, executor)
        for source, target in targets.items()
    }
