"""A corpus as ids on disk, made in shards, so that a crash costs one of them and not the night.

    train.txt                   |---- shard 0 ----|---- shard 1 ----|-- shard 2 --|
    .train.npy.<job>.parts/     0.npy  done       1.npy  at work    2.npy  at work
    train.npy                   all of them in a row, as soon as the last one is there
    train.json                  what it was made from

The job is a hash of the text's place and state, the tokenizer, and the cuts: who asks for the same
again goes on where the last run ended, and finished shards are never made twice.
"""

import json
import os
import pickle
import shutil
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
from tqdm import tqdm

from workbook import bpe, config, corpora
from workbook.data import join_tokens
from workbook.files import alone, atomic_write, file_state, unchanged
from workbook.pretokens import cut_points, task_cuts, text_file
from workbook.tokenizer import Tokenizer, token_dtype, unpickled

# What a tokenizer for each corpus is trained on, by default: bytes (None: all) and ids.
DEFAULTS = {
    name: (size, vocab_size)
    for profile in config.PROFILES.values()
    for name, size, vocab_size in (
        (profile.simple_corpus, profile.simple_bytes, profile.simple_vocab_size),
        (profile.web_corpus, None, profile.web_vocab_size),
    )
}


def tokenize_file(
    tokenizer: Tokenizer,
    source: str | os.PathLike,
    target: str | os.PathLike,
    executor: Executor | None = None,
) -> int:
    """How many ids `target` holds, a `.npy` file that is made from the text file `source`.

    With an executor (processes, or a cluster whose workers see both folders) shards are encoded
    side by side. Memory does not depend on the size of the file.
    Raises: FileNotFoundError; ValueError where the file is not UTF-8, or changes meanwhile.
    """
    source, target = text_file(source).resolve(), Path(target).resolve()
    with alone(target.parent):
        return _tokenize_file(tokenizer, source, target, executor)


def _tokenize_file(
    tokenizer: Tokenizer, source: Path, target: Path, executor: Executor | None
) -> int:
    """The same, while nobody else makes token files there."""
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
    if (made := _read(record)) and target.is_file() and facts.items() <= made.items():
        return made["tokens"]
    folder = target.with_name(f".{target.name}.{facts['job']}.parts")
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
    facts["tokens"] = join_tokens(target, parts)
    with atomic_write(record) as file:
        json.dump(facts, file, indent=2)
        file.write("\n")
    shutil.rmtree(folder)
    return facts["tokens"]


def encode_shard(
    tokenizer: bytes, source: Path, state: tuple[int, int], cuts: Sequence[int], part: Path
) -> int:
    """Encode what lies between the cuts into the file `part`; how many bytes of text that was.

    Raises: ValueError where the text is no longer in this `files.file_state`: a shard that is there
    belongs to its job, whatever became of the text since.
    """
    with unchanged(source, state):
        ids = np.concatenate(list(unpickled(tokenizer).encode_spans(source, cuts)))
    with atomic_write(part, "wb") as file:
        np.save(file, ids)
    return cuts[-1] - cuts[0]


def _job(tokenizer: Tokenizer, source: Path, state: tuple[int, int], cuts: Sequence[int]) -> str:
    """A name for all that decides which ids come out, and in which shards."""
    digest = sha256()
    for fact in (source, *state, cuts):
        digest.update(f"{fact}\n".encode())
    for fact in (sorted(tokenizer.vocab.items()), tokenizer.merges, tokenizer.special_tokens):
        digest.update(repr(fact).encode())
    return digest.hexdigest()[:16]


def _read(record: Path) -> dict:
    """The facts in a record; none where it is missing or broken."""
    try:
        facts = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def tokenizer_for(
    name: str, vocab: str | os.PathLike | None = None, merges: str | os.PathLike | None = None
) -> tuple[str, Tokenizer]:
    """A name for a corpus' tokenizer, such as "stories-2048", and the tokenizer itself.

    From the files given, else the one in the data folder, which is trained first if need be.
    """
    if (vocab is None) != (merges is None):
        raise ValueError("--vocab and --merges belong together: give both files or neither")
    specials = [corpora.END_OF_TEXT]
    if vocab is not None:
        tokenizer = Tokenizer.from_files(vocab, merges, specials)
        return f"{name}-{tokenizer.vocab_size}", tokenizer
    size, vocab_size = DEFAULTS[name]
    folder = config.data_folder() / "tokenizers" / f"{name}-{vocab_size}"
    files = folder / "vocab.json", folder / "merges.txt"
    if not all(file.is_file() for file in files):
        print(f"training a tokenizer of {vocab_size:,} ids: {folder}", flush=True)
        Tokenizer(
            *bpe.train_bpe(corpora.path(name, "train", size), vocab_size, specials), specials
        ).save(*files)
    return folder.name, Tokenizer.from_files(*files, specials)


def tokenize_corpus(
    name: str,
    size: int | None = None,
    vocab: str | os.PathLike | None = None,
    merges: str | os.PathLike | None = None,
    executor: Executor | None = None,
) -> dict[Path, int]:
    """The token files of both splits of a corpus, and how many ids are in each.

    `size` is that of the train split in bytes, for corpora made to any size.
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
