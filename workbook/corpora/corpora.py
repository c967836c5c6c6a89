"""The four corpora: two made on this machine, two downloaded; the same call returns any of them.

`stories` and `docstrings` need no network and stand in for `tinystories` and `owt`.

    data/corpora/stories/train-20MB.txt     documents, each ended by <|endoftext|>
                         train-20MB.json    the record: what is in the file and where it came from

The record is written last. So a file without a matching record was never finished, was damaged, or
is another one, and is not used.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random

from tqdm import tqdm

from workbook import __version__, config
from workbook.corpora import docstrings, download, stories
from workbook.files import atomic_write, unchanged, write_json

SPLITS = ("train", "validation")
END_OF_TEXT = "<|endoftext|>"
SEPARATOR = END_OF_TEXT.encode()
SEED = 336  # of the stories
BLOCK = 2**20  # bytes read at a time
ABANDONED = 3600  # seconds after which nobody is still writing a temporary file
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The description of a corpus, whether or not any of it is on this disk.

    If the code starts to make other texts, a test demands a new `generator`, so that no old file is
    mistaken for a new one.
    """

    name: str
    title: str
    description: str
    licence: str
    stands_in_for: str | None = None  # the downloaded corpus that it replaces offline
    generator: str = ""  # if it is made here: a hash of what its code makes
    sizes: Mapping[str, int] = field(default_factory=dict)  # bytes by split, if any size will do
    repository: str = ""  # if it is downloaded: the dataset on the Hub,
    files: Mapping[str, str] = field(default_factory=dict)  # its file for each split,
    volume: str = ""  # and their size

    @property
    def offline(self) -> bool:
        """Whether it is made here, without a network."""
        return not self.files


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            name="stories",
            title="Stories",
            description="simple children's stories from a seeded grammar of our own, in any amount",
            licence="MIT",
            stands_in_for="tinystories",
            generator="92ff82f13d09cb5d",
            sizes={"train": 20_000_000, "validation": 2_000_000},
        ),
        Corpus(
            name="docstrings",
            title="Docstrings",
            description="what the docstrings of torch, sympy, pandas and other libraries explain",
            licence="each library's: Apache-2.0, BSD, MIT, and Matplotlib's",
            stands_in_for="owt",
            generator="f47bcff161436369",
        ),
        Corpus(
            name="tinystories",
            title="TinyStories",
            description="short stories that GPT-4 wrote with the words of a small child",
            licence="CDLA-Sharing-1.0",
            repository="roneneldan/TinyStories",
            files={
                "train": "TinyStoriesV2-GPT4-train.txt",
                "validation": "TinyStoriesV2-GPT4-valid.txt",
            },
            volume="2.3 GB",
        ),
        Corpus(
            name="owt",
            title="OpenWebText (sample)",
            description="web pages that people linked to on Reddit; the course's sample of them",
            licence="each page its author's",
            repository="stanford-cs336/owt-sample",
            files={"train": "owt_train.txt.gz", "validation": "owt_valid.txt.gz"},
            volume="4.7 GB",
        ),
    )
}


def path(name: str, split: str = "train", size: int | None = None) -> Path:
    """The file of a corpus, made first if it is missing and can be made here.

    `name` is a key of `CORPORA`, `split` one of `SPLITS`; `size`, in bytes, is for `stories` only.
    Raises FileNotFoundError for a corpus that has to be downloaded, or downloaded again because its
    file was damaged.
    """
    corpus = _corpus(name)
    if split not in SPLITS:
        raise ValueError(f"{split!r} is not a split; there are {' and '.join(SPLITS)}")
    target, origin = _place(corpus, split, size)
    if is_intact(target, origin):
        return target
    if corpus.name == "stories":
        _make_stories(target, origin)
    elif corpus.name == "docstrings":
        _make_docstrings(corpus)
    else:
        trouble = "is damaged or unfinished" if target.exists() else "is not on this disk"
        raise FileNotFoundError(
            f"the {split} split of {name} {trouble} ({target}); `workbook data get {name}`"
            f" downloads {corpus.volume}, and {_stand_in(corpus)} stands in for it offline"
        )
    return target


def is_here(name: str, split: str = "train", size: int | None = None) -> bool:
    """Whether the file of a corpus is on this disk already, and intact."""
    return is_intact(*_place(_corpus(name), split, size))


def fetch(name: str, endpoint: str | None = None) -> list[Path]:
    """Download what is missing of a corpus, resuming what was interrupted; return its files.

    `endpoint` is the Hub's address; by default `HF_ENDPOINT` or the public one. Raises ValueError
    for a corpus that is made here, and download.DownloadError.
    """
    corpus = _corpus(name)
    if corpus.offline:
        others = ", ".join(other.name for other in CORPORA.values() if not other.offline)
        raise ValueError(
            f"{name} is made here and not downloaded: use `workbook data make {name}`; the corpora"
            f" to download are {others}"
        )
    targets = []
    for split, file in corpus.files.items():
        target, origin = _place(corpus, split)
        if not is_intact(target, origin):
            found = download.fetch(corpus.repository, file, target, endpoint)
            write_record(target, origin | found | tally(target))
        targets.append(target)
    return targets


def overview() -> str:
    """The corpora: what each is, and which of its files are on this disk."""
    lines = []
    for corpus in CORPORA.values():
        made = "made offline" if corpus.offline else f"a download of {corpus.volume}"
        part = f", stands in for {corpus.stands_in_for}" if corpus.stands_in_for else ""
        here = [
            f"{file.stem} {file.stat().st_size / 1e6:,.1f} MB"
            + ("" if is_intact(file, {"corpus": corpus.name}) else " (unusable)")
            for file in sorted((config.data_folder() / "corpora" / corpus.name).glob("*.txt"))
        ]
        lines += [
            f"{corpus.name}: {corpus.description}",
            f"    {made}{part}; licence: {corpus.licence}",
            f"    on this disk: {', '.join(here) or 'nothing yet'}",
        ]
    return "\n".join(lines)


def parse_size(text: str) -> int:
    """The number of bytes that a text such as "100MB" names; a kB is 1,000.

    >>> parse_size("100MB"), parse_size("1.5 GB"), parse_size("4096")
    (100000000, 1500000000, 4096)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    size = round(float(match[1]) * UNITS.get(match[2], 0)) if match else 0
    if size == 0:
        raise ValueError(f"{text!r} is not a size; give one such as 500kB, 100MB or 1.5GB")
    return size


def _corpus(name: str) -> Corpus:
    if name not in CORPORA:
        raise ValueError(f"{name!r} is not a corpus; there are {', '.join(CORPORA)}")
    return CORPORA[name]


def _stand_in(corpus: Corpus) -> str:
    return next(other.name for other in CORPORA.values() if other.stands_in_for == corpus.name)


def _place(corpus: Corpus, split: str, size: int | None = None) -> tuple[Path, dict]:
    """The path of a corpus's file, and the origin that its record must name."""
    origin = {"corpus": corpus.name, "split": split}
    file_name = f"{split}.txt"
    if corpus.sizes:
        size = corpus.sizes[split] if size is None else size
        if not isinstance(size, int):
            raise TypeError(
                f"size={size!r} is not a whole number of bytes; give one, or parse_size('100MB')"
            )
        if size < 1:
            raise ValueError(f"size={size} is not a size; give at least one byte")
        origin |= {"size": size, "seed": SEED, "generator": corpus.generator}
        file_name = f"{split}-{_short(size)}.txt"
    elif size is not None:
        able = ", ".join(other.name for other in CORPORA.values() if other.sizes)
        raise ValueError(f"{corpus.name} comes in one size; leave size out, or use {able}")
    elif corpus.offline:
        origin |= {"versions": docstrings.versions(), "generator": corpus.generator}
    else:
        origin |= {"repository": corpus.repository, "file": corpus.files[split]}
    return config.data_folder() / "corpora" / corpus.name / file_name, origin


def _make_stories(target: Path, origin: dict) -> None:
    """Write stories until they fill the size, and record the bits that their choices cost."""
    download.check_disk(target, origin["size"])
    bits = 0.0

    def texts() -> Iterator[str]:
        nonlocal bits
        for text, cost in stories.write(SEED, origin["split"], origin["size"]):
            bits += cost
            yield text

    facts = write_documents(target, texts(), origin["size"])
    facts |= {"code_length_bits": round(bits, 1), "bits_per_byte": bits / facts["bytes"]}
    write_record(target, origin | facts)


def _make_docstrings(corpus: Corpus) -> None:
    """Write both splits, because the libraries are read once for both."""
    if other := docstrings.LIBRARIES.items() - docstrings.versions().items():
        pinned = " ".join(sorted(f"{name}=={version}" for name, version in other))
        tqdm.write(
            "docstrings will differ from the text of the recorded runs, because some libraries are"
            f" missing or have other versions; to get the same text, first `pip install {pinned}`",
            file=sys.stderr,
        )
    found = docstrings.harvest(progress=lambda modules: tqdm(modules, desc="read the libraries"))
    for split in SPLITS:
        target, origin = _place(corpus, split)
        texts = [text.strip() for name, text in found.items() if docstrings.split_of(name) == split]
        write_record(target, origin | write_documents(target, texts))


def _short(size: int) -> str:
    """A size for a file's name: 20MB, 1500kB, 4097B."""
    unit = next(unit for unit in ("GB", "MB", "kB", "B") if size % UNITS[unit.lower()] == 0)
    return f"{size // UNITS[unit.lower()]}{unit}"


# --- Files and their records ----------------------------------------------------------------------


def write_documents(target: Path, texts: Iterable[str], size: int | None = None) -> dict:
    """Write a file of these documents, and return its counts for `write_record`.

    `size` is the approximate number of bytes, for a progress bar.
    """
    for left in target.parent.glob(".*.tmp"):
        with suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > ABANDONED:
                left.unlink()  # its writer was killed
    bar = {"desc": f"make {target.stem}", "total": size}
    with atomic_write(target, "wb") as file, tqdm.wrapattr(file, "write", **bar) as out:
        for text in texts:
            out.write(f"{text}\n{END_OF_TEXT}\n".encode())
    return tally(target)


def tally(path: Path) -> dict:
    """The counts of a file for its record: bytes, documents, sha256."""
    digest = sha256()
    documents = sum(1 for _ in _raw_documents(path, digest.update))
    return {
        "bytes": path.stat().st_size,
        "documents": documents,
        "sha256": digest.hexdigest(),
    }


def write_record(target: Path, facts: dict) -> None:
    """Write the record of `target`, which makes it a corpus file."""
    facts = {**facts, "workbook": __version__, "modified_ns": target.stat().st_mtime_ns}
    write_json(target.with_suffix(".json"), facts)


def record(path: str | os.PathLike) -> dict:
    """The record of a corpus file: bytes, documents, sha256, and where it came from.

    For `stories`, it also has `code_length_bits`, the length of a code for the random choices, and
    `bits_per_byte`, that length divided by the bytes: an upper bound on the entropy of the text.
    """
    found = Path(path).with_suffix(".json")
    if not found.is_file():
        raise FileNotFoundError(
            f"{path} has no record {found.name} beside it, so it is not a corpus file; use the"
            " path that corpora.path() returns"
        )
    return json.loads(found.read_text(encoding="utf-8"))


def is_intact(path: Path, origin: dict) -> bool:
    """Whether the file is what its record says, and the record names this origin.

    A file with the modification time in its record is not read. One with another time was edited
    or copied: its sha256 is computed, once.
    """
    try:
        facts, found = record(path), path.stat()
        if found.st_size != facts["bytes"] or not origin.items() <= facts.items():
            return False
        if found.st_mtime_ns == facts.get("modified_ns"):
            return True
        if tally(path)["sha256"] != facts["sha256"]:
            return False
        with suppress(OSError):  # in a read-only folder, this is done again next time
            write_record(path, facts)
        return True
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # no file, or not a record
        return False


def documents(path: str | os.PathLike) -> Iterator[str]:
    """The documents of a file one after another, without the blank space around them.

    Any UTF-8 text file will do, with or without a separator at its end. Never more than one
    document and one block of the file are in memory.
    """
    return (document.decode() for document in _raw_documents(path))


def sample_documents(path: str | os.PathLike, n: int, seed: int) -> list[str]:
    """n documents of a file, in the order of the file, each set of n as likely as any other.

    It reads the file once and keeps n documents. Source: Vitter 1985, algorithm R.
    """
    if n < 1:
        raise ValueError(f"n={n} documents were asked for; ask for at least one")
    random = Random(seed)
    kept: list[tuple[int, bytes]] = []
    for number, document in enumerate(_raw_documents(path)):
        if number < n:
            kept.append((number, document))
        elif (place := random.randrange(number + 1)) < n:
            kept[place] = number, document
    if len(kept) < n:
        raise ValueError(f"{path} has {len(kept)} documents, but {n} were asked for; ask for fewer")
    return [document.decode() for _, document in sorted(kept)]


def _raw_documents(
    path: str | os.PathLike, watch: Callable[[bytes], object] = lambda block: None
) -> Iterator[bytes]:
    """The documents of a file as bytes; a separator may extend over two blocks.

    `watch` is called with every block of the file.
    """
    with unchanged(Path(path)), open(path, "rb") as file:
        parts: list[bytes] = []  # of the document that has not ended yet
        tail = b""  # what follows them: perhaps the beginning of a separator
        while block := file.read(BLOCK):
            watch(block)
            *ended, rest = (tail + block).split(SEPARATOR)
            for text in ended:
                if document := b"".join([*parts, text]).strip():
                    yield document
                parts.clear()
            cut = max(0, len(rest) - len(SEPARATOR) + 1)
            parts.append(rest[:cut])
            tail = rest[cut:]
    if document := b"".join([*parts, tail]).strip():
        yield document
