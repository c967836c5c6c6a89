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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from glob import escape
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from workbook import config, files
from workbook.corpora import docstrings, stories
from workbook.files import (
    atomic_write,
    file_sha256,
    locked,
    remove_leftovers,
    say,
    unchanged,
    write_json,
)
from workbook.lazy import __version__

SPLITS = ("train", "validation")
END_OF_TEXT = "<|endoftext|>"
SEPARATOR = END_OF_TEXT.encode()
SEED = 336  # of the stories
BLOCK = 2**20  # bytes read at a time
Facts = dict[str, Any]  # of a record
Source = str | os.PathLike[str]  # of a text
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
            description="simple children's stories from a seeded grammar, in any amount",
            licence="MIT",
            stands_in_for="tinystories",
            generator="92ff82f13d09cb5d",
            sizes={"train": 20_000_000, "validation": 2_000_000},
        ),
        Corpus(
            name="docstrings",
            title="Docstrings",
            description="the docstrings of torch, sympy, pandas and other libraries",
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
    corpus = described(name)
    target, origin = _place(corpus, split, size)
    if is_intact(target, origin):
        return target
    if corpus.generator:
        if corpus.sizes:
            files.expect_room(target, origin["size"])
        with locked(target.parent):  # whoever waited here finds the file
            if not is_intact(target, origin):
                remove_leftovers(target.parent, escape(target.name), age=0)
                if corpus.sizes:
                    _make_stories(target, origin)
                else:
                    _make_docstrings(corpus)
    elif corpus.offline:
        raise FileNotFoundError(f"{target} was changed or removed; add your text again to go on")
    else:
        stand_in = next(one.name for one in CORPORA.values() if one.stands_in_for == name)
        raise FileNotFoundError(
            f"the {split} split of {name} is missing or damaged ({target}); `workbook data get"
            f" {name}` downloads {corpus.volume}, and {stand_in} stands in for it offline"
        )
    return target


def is_here(name: str, size: int | None = None) -> bool:
    """Whether the train split of a corpus is on this disk already, and intact."""
    return is_intact(*_place(described(name), "train", size))


def fetch(name: str) -> list[Path]:
    """Download what is missing of a corpus, resuming what was interrupted; return its files.

    Raises ValueError for a corpus that is made here, and download.DownloadError.
    """
    # Only here: of all that the workbook does, nothing else needs the Hub's client.
    from workbook.corpora import download

    corpus = described(name)
    if corpus.offline:
        raise ValueError(f"{name} is not downloaded but made: use `workbook data make {name}`")
    targets = []
    for split, file in corpus.files.items():
        target, origin = _place(corpus, split)
        with locked(target.parent):  # whoever waited here finds the file
            if not is_intact(target, origin):
                source = download.download_file(corpus.repository, file, target)
                write_record(target, origin | source | tally(target))
        targets.append(target)
    return targets


def describe_corpora() -> str:
    """The corpora: what each is, and which of its files are on this disk."""
    lines = []
    for corpus in CORPORA.values():
        made = "made offline" if corpus.offline else f"a download of {corpus.volume}"
        part = f", stands in for {corpus.stands_in_for}" if corpus.stands_in_for else ""
        files = sorted((config.data_folder() / "corpora" / corpus.name).glob("*.txt"))
        intact = [file for file in files if is_intact(file, {"corpus": corpus.name})]
        here = [f"{file.stem} {file.stat().st_size / 1e6:,.1f} MB" for file in intact]
        lines += [
            f"{corpus.name}: {corpus.description}",
            f"    {made}{part}",
            f"    licence: {corpus.licence}",
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


def described(name: str) -> Corpus:
    """The description of a corpus, ours or one that `add_text` made. Raises: ValueError."""
    if name in CORPORA:
        return CORPORA[name]
    if (config.data_folder() / "corpora" / name / "train.json").is_file():
        return _own(name)
    raise ValueError(f"{name!r} is not a corpus; there are {', '.join(CORPORA)}, or --text FILE")


def _own(name: str) -> Corpus:
    return Corpus(name=name, title=name, description="a text of your own", licence="yours")


def _place(corpus: Corpus, split: str, size: int | None = None) -> tuple[Path, Facts]:
    """The path of a corpus's file, and the origin that its record must name."""
    if split not in SPLITS:
        raise ValueError(f"{split!r} is not a split; there are {' and '.join(SPLITS)}")
    origin: Facts = {"corpus": corpus.name, "split": split}
    file_name = f"{split}.txt"
    if corpus.sizes:
        size = corpus.sizes[split] if size is None else size
        if not isinstance(size, int) or size < 1:
            raise ValueError(
                f"size={size!r} is not a number of bytes; give at least 1, or parse_size('100MB')"
            )
        origin |= {"size": size, "seed": SEED, "generator": corpus.generator}
        unit = next(unit for unit in ("GB", "MB", "kB", "B") if size % UNITS[unit.lower()] == 0)
        file_name = f"{split}-{size // UNITS[unit.lower()]}{unit}.txt"  # such as 1500kB
    elif size is not None:
        raise ValueError(f"{corpus.name} comes in one size; leave size out, or use stories")
    elif corpus.generator:
        origin |= {"versions": docstrings.library_versions(), "generator": corpus.generator}
    elif corpus.files:
        origin |= {"repository": corpus.repository, "file": corpus.files[split]}
    return config.data_folder() / "corpora" / corpus.name / file_name, origin


def _make_stories(target: Path, origin: Facts) -> None:
    """Write stories until they fill the size, and record the bits that their choices cost."""
    bits = 0.0

    def texts() -> Iterator[str]:
        nonlocal bits
        for text, cost in stories.write_stories(SEED, origin["split"], origin["size"]):
            bits += cost
            yield text

    facts = write_documents(target, texts(), origin["size"])
    facts |= {"code_length_bits": round(bits, 1), "bits_per_byte": bits / facts["bytes"]}
    write_record(target, origin | facts)


def _make_docstrings(corpus: Corpus) -> None:
    """Write both splits, because the libraries are read once for both."""
    other = docstrings.LIBRARIES.items() - docstrings.library_versions().items()
    if other:
        pinned = " ".join(sorted(f"{name}=={version}" for name, version in other))
        say(f"for the same docstrings as in the recorded runs, first `pip install {pinned}`")
    texts = docstrings.harvest(docstrings.library_folders())
    for split in SPLITS:
        target, origin = _place(corpus, split)
        of_split = (texts[name].strip() for name in texts if docstrings.split_of(name) == split)
        write_record(target, origin | write_documents(target, of_split))


# --- A text of the user's own ---------------------------------------------------------------------


def add_text(sources: Source | Iterable[Source], separator: str = END_OF_TEXT) -> str:
    """Make a corpus of your own text; return its name, for the `corpus` of a `TrainConfig`.

    `sources` is a UTF-8 file, a folder (all `.txt` and `.md` files in it) or several of them. Each
    file is a document, or as many as `separator` divides it into. The name ends in a hash of the
    text: the same text is the same corpus, and another one never takes its place.
    Raises: FileNotFoundError; ValueError if the text is empty or not UTF-8.
    """
    # In the texts every line end is "\n", whatever the file has.
    separator = separator.replace("\r\n", "\n").replace("\r", "\n")
    if not separator:
        raise ValueError("the separator is empty; give the text that stands between two documents")
    paths = text_files([sources] if isinstance(sources, str | os.PathLike) else sources)
    pieces = [piece.strip() for path in paths for piece in _read_text(path).split(separator)]
    texts = [piece for piece in pieces if piece]
    if not texts:
        raise ValueError(f"{[*map(str, paths)]} holds no text; name files or folders of UTF-8 text")
    if len(pieces) == len(paths) and separator != END_OF_TEXT:
        say(f"the separator {separator!r} does not occur, so each file is one document")
    # The name is cut: it becomes part of the names of folders.
    label = re.sub(r"\W+", "-", paths[0].stem)[:40]
    corpus = _own(f"{label}-{_key(texts)}")
    targets = [_place(corpus, split) for split in SPLITS]
    with locked(targets[0][0].parent):
        if not all(is_intact(target, origin) for target, origin in targets):
            for (target, origin), part in zip(targets, split_text(texts), strict=True):
                write_record(target, origin | write_documents(target, part))
    return corpus.name


def _key(texts: list[str]) -> str:
    """A short hash of some texts: that of their JSON, which is made a piece at a time."""
    hashed = sha256(b"[")
    for number, text in enumerate(texts):
        hashed.update(b', "' if number else b'"')
        for start in range(0, len(text), BLOCK):
            hashed.update(json.dumps(text[start : start + BLOCK])[1:-1].encode())
        hashed.update(b'"')
    hashed.update(b"]")
    return hashed.hexdigest()[:8]


def text_files(sources: Iterable[Source]) -> list[Path]:
    """The files that `add_text` reads, those of a folder in the order of their names."""
    found = []
    for source in map(Path, sources):
        inside = [
            path
            for path in sorted(source.rglob("*"))
            if path.suffix.lower() in (".txt", ".md")
            # macOS puts a `._notes.txt` beside `notes.txt`, and JupyterLab's checkpoints are copies
            # of the text: they would stand in train and validation.
            and not any(part.startswith(".") for part in path.relative_to(source).parts)
            and path.is_file()
        ]
        if not inside and not source.is_file():
            raise FileNotFoundError(f"{source} is no file, nor a folder with .txt or .md files")
        found += inside or [source]
    return found


def split_text(texts: list[str]) -> tuple[list[str], list[str]]:
    """Documents to train on, and about a tenth of the text for validation.

    Every tenth document, where there are ten; of fewer, the end of each.

    >>> split_text(["To be, or not to be."])
    (['To be, or not to b'], ['e.'])
    """
    if len(texts) >= 10:
        return [text for i, text in enumerate(texts, 1) if i % 10], texts[9::10]
    first = [text[: len(text) * 9 // 10] for text in texts]
    return first, [text[len(text) * 9 // 10 :] for text in texts]


def _read_text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")  # without the mark that Windows puts before a text
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8 text ({error}); save it as UTF-8") from error


# --- Files and their records ----------------------------------------------------------------------


def write_documents(target: Path, texts: Iterable[str], size: int | None = None) -> Facts:
    """Write a file of these documents, and return its counts for `write_record`.

    `size` is the approximate number of bytes, for a progress bar.
    """
    bar = files.progress_bar(desc=f"make {target.stem}", total=size, unit="B", unit_scale=True)
    with atomic_write(target, "wb") as file, bar:
        for text in texts:
            bar.update(file.write(f"{text}\n{END_OF_TEXT}\n".encode()))
    return tally(target)


def tally(path: Path) -> Facts:
    """The counts of a file for its record: bytes, documents, sha256."""
    return {
        "bytes": path.stat().st_size,
        "documents": sum(1 for _ in documents(path)),
        "sha256": file_sha256(path),
    }


def write_record(target: Path, facts: Facts) -> None:
    """Write the record of `target`, which makes it a corpus file."""
    facts = {**facts, "workbook": __version__, "modified_ns": target.stat().st_mtime_ns}
    write_json(target.with_suffix(".json"), facts)


def record(path: str | os.PathLike[str]) -> Facts:
    """The record of a corpus file: bytes, documents, sha256, and where it came from.

    For `stories`, it also has `code_length_bits`, the length of a code for the random choices, and
    `bits_per_byte`, that length divided by the bytes: an upper bound on the entropy of the text.
    """
    facts: Facts = json.loads(Path(path).with_suffix(".json").read_text(encoding="utf-8"))
    return facts


def is_intact(path: Path, origin: Facts) -> bool:
    """Whether the file is what its record says, and the record names this origin.

    A file with the modification time in its record is not read. One with another time was edited
    or copied: its sha256 is computed, once. Without a file or a record that can be read, it is not.
    """
    try:
        facts = record(path)
        state = path.stat()
        if state.st_size != facts["bytes"] or not origin.items() <= facts.items():
            return False
        if state.st_mtime_ns != facts.get("modified_ns"):
            if file_sha256(path) != facts["sha256"]:
                return False
            with suppress(OSError):  # in a read-only folder, this is done again next time
                write_record(path, facts)
        return True
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False


def documents(path: str | os.PathLike[str]) -> Iterator[str]:
    """The documents of a file one after another, without the blank space around them.

    Any UTF-8 text file will do, with or without a separator at its end. Never more than one
    document and one block of the file are in memory.
    """
    with unchanged(Path(path)), open(path, "rb") as file:
        rest = b""  # the document that has not ended yet
        while block := file.read(BLOCK):
            # Joined before they are split, because a separator may lie across two blocks.
            *ended, rest = (rest + block).split(SEPARATOR)
            yield from (text.decode() for text in map(bytes.strip, ended) if text)
    if last := rest.strip():
        yield last.decode()


def sample_documents(path: str | os.PathLike[str], n: int, seed: int) -> list[str]:
    """n documents of a file, in the order of the file, each set of n as likely as any other.

    It reads the file once and keeps n documents. Source: Vitter 1985, algorithm R.
    """
    random = Random(seed)
    kept: list[tuple[int, str]] = []
    for number, document in enumerate(documents(path)):
        if number < n:
            kept.append((number, document))
        # The document takes a random one of number + 1 places; only the first n are kept.
        elif (place := random.randrange(number + 1)) < n:
            kept[place] = number, document
    if n < 1 or len(kept) < n:
        raise ValueError(f"n={n}: ask for at least 1 document, and no more than {path} has")
    return [document for _, document in sorted(kept)]
