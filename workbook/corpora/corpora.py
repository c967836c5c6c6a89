"""The four corpora: two made on this machine, two downloaded; the same call gives any of them.

`stories` and `pydocs` need no network and play the parts of `tinystories` and `owt`. In every file
a document ends with `<|endoftext|>`, and beside every file lies a record in JSON of what is in it
and where it came from. A file without a record that fits it is never used.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

from tqdm import tqdm

from workbook import config
from workbook.corpora import corpus_files, download, pydocs, stories
from workbook.corpora.corpus_files import END_OF_TEXT, documents, record, sample_documents
from workbook.corpora.download import HubFile

__all__ = [
    "CORPORA",
    "END_OF_TEXT",
    "SPLITS",
    "Corpus",
    "documents",
    "get",
    "is_here",
    "overview",
    "parse_size",
    "path",
    "record",
    "sample_documents",
]

SPLITS = ("train", "validation")
SEED = 336  # of the stories
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What a corpus is, before any of it is on this disk."""

    name: str
    title: str
    description: str
    licence: str
    stands_in_for: str | None = None  # the downloaded corpus whose part it plays
    sizes: Mapping[str, int] = field(default_factory=dict)  # bytes by split, where any size will do
    files: Mapping[str, HubFile] = field(default_factory=dict)  # by split, where it is downloaded
    volume: str = ""  # of the download

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
            sizes={"train": 20_000_000, "validation": 2_000_000},
        ),
        Corpus(
            name="pydocs",
            title="Python's prose",
            description="help topics and docstrings of the running Python's standard library",
            licence="PSF-2.0",
            stands_in_for="owt",
        ),
        Corpus(
            name="tinystories",
            title="TinyStories",
            description="short stories that GPT-4 wrote with the words of a small child",
            licence="CDLA-Sharing-1.0",
            files={
                "train": HubFile(
                    repository="roneneldan/TinyStories", name="TinyStoriesV2-GPT4-train.txt"
                ),
                "validation": HubFile(
                    repository="roneneldan/TinyStories", name="TinyStoriesV2-GPT4-valid.txt"
                ),
            },
            volume="2.3 GB",
        ),
        Corpus(
            name="owt",
            title="OpenWebText sample",
            description="web pages that people linked to on Reddit; the course's sample of them",
            licence="each page its author's",
            files={
                "train": HubFile(repository="stanford-cs336/owt-sample", name="owt_train.txt.gz"),
                "validation": HubFile(
                    repository="stanford-cs336/owt-sample", name="owt_valid.txt.gz"
                ),
            },
            volume="4.7 GB",
        ),
    )
}


def path(name: str, split: str = "train", size: int | None = None) -> Path:
    """The file of a corpus, made first where it can be made here.

    `size` is in bytes, and for `stories` alone. Raises FileNotFoundError for a corpus that has to
    be downloaded, or downloaded again because its file was damaged.
    """
    corpus = _corpus(name)
    if split not in SPLITS:
        raise ValueError(f"{split!r} is no split; there are {' and '.join(SPLITS)}")
    target, origin = _place(corpus, split, size)
    if corpus_files.is_good(target, origin):
        return target
    if corpus.name == "stories":
        _make_stories(target, origin)
    elif corpus.name == "pydocs":
        _make_pydocs(corpus)
    else:
        trouble = "is damaged or unfinished" if target.exists() else "is not on this disk"
        raise FileNotFoundError(
            f"the {split} split of {name} {trouble} ({target}); `workbook data get {name}`"
            f" downloads {corpus.volume}, and {_stand_in(corpus)} stands in for it offline"
        )
    return target


def is_here(name: str, split: str = "train", size: int | None = None) -> bool:
    """Whether `path` would find the file of a corpus as it is."""
    return corpus_files.is_good(*_place(_corpus(name), split, size))


def get(name: str, endpoint: str | None = None) -> list[Path]:
    """The files of a downloaded corpus; fetches what is not here, and goes on where it was cut off.

    `endpoint` is the Hub's address; by default `HF_ENDPOINT` or the public one. Raises ValueError
    for a corpus that is made here, and download.DownloadError.
    """
    corpus = _corpus(name)
    if corpus.offline:
        others = ", ".join(other.name for other in CORPORA.values() if not other.offline)
        raise ValueError(
            f"{name} is made here and not downloaded: `workbook data make {name}`; to download"
            f" there are {others}"
        )
    targets = []
    for split, file in corpus.files.items():
        target, origin = _place(corpus, split)
        if not corpus_files.is_good(target, origin):
            tally = corpus_files.Tally()
            found = download.fetch(file, target, tally.update, endpoint)
            corpus_files.write_record(target, origin | found | tally.facts())
        targets.append(target)
    return targets


def overview() -> str:
    """A table of the corpora: what they are, and what of them lies on this disk."""
    table = [("corpus", "made", "stands in for", "licence", "on this disk")]
    for corpus in CORPORA.values():
        made = "offline" if corpus.offline else f"download {corpus.volume}"
        here = [
            f"{file.stem} {file.stat().st_size / 1e6:,.1f} MB"
            + ("" if corpus_files.is_good(file, {"corpus": corpus.name}) else " (unusable)")
            for file in sorted((config.data_folder() / "corpora" / corpus.name).glob("*.txt"))
        ]
        row = (corpus.name, made, corpus.stands_in_for or "-", corpus.licence)
        table.append((*row, ", ".join(here) or "nothing yet"))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for row, about in zip(table, ["", *CORPORA.values()], strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
        if about:
            lines.append(f"    {about.title}: {about.description}")
    return "\n".join(lines)


def parse_size(text: str) -> int:
    """The bytes that a size names; a kB has 1,000.

    >>> parse_size("100MB"), parse_size("1.5 GB"), parse_size("4096")
    (100000000, 1500000000, 4096)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    size = round(float(match[1]) * UNITS.get(match[2], 0)) if match else 0
    if size == 0:
        raise ValueError(f"{text!r} is no size; give one such as 500kB, 100MB or 1.5GB")
    return size


def _corpus(name: str) -> Corpus:
    if name not in CORPORA:
        raise ValueError(f"{name!r} is no corpus; there are {', '.join(CORPORA)}")
    return CORPORA[name]


def _stand_in(corpus: Corpus) -> str:
    return next(other.name for other in CORPORA.values() if other.stands_in_for == corpus.name)


def _place(corpus: Corpus, split: str, size: int | None = None) -> tuple[Path, dict]:
    """Where a file of this corpus lies, and the origin that its record must name."""
    origin = {"corpus": corpus.name, "split": split}
    file_name = f"{split}.txt"
    if corpus.sizes:
        size = corpus.sizes[split] if size is None else size
        if not isinstance(size, int):
            raise TypeError(
                f"size={size!r} is no whole number of bytes; parse_size('100MB') is one"
            )
        if size < 1:
            raise ValueError(f"size={size} is no size; give one byte at least")
        origin |= {"size": size, "seed": SEED, "generator": _generator()}
        file_name = f"{split}-{_short(size)}.txt"
    elif size is not None:
        able = ", ".join(other.name for other in CORPORA.values() if other.sizes)
        raise ValueError(f"{corpus.name} comes in one size; leave size out, or take {able}")
    elif corpus.offline:
        origin |= {"python": pydocs.python_version(), "generator": _digest(Path(pydocs.__file__))}
    else:
        file = corpus.files[split]
        origin |= {"repository": file.repository, "file": file.name}
    return config.data_folder() / "corpora" / corpus.name / file_name, origin


def _make_stories(target: Path, origin: dict) -> None:
    """Writes stories until they fill the size, and adds up what their random choices cost."""
    _check_disk(target, origin["size"])
    bits = 0.0

    def texts() -> Iterator[str]:
        nonlocal bits
        for text, cost in stories.write(SEED, origin["split"], origin["size"]):
            bits += cost
            yield text

    bar = tqdm(desc=f"make {target.stem}", total=origin["size"], unit="B", unit_scale=True)
    with bar:
        facts = corpus_files.write(target, texts(), bar.update)
    facts |= {"code_length_bits": round(bits, 1), "bits_per_byte": bits / facts["bytes"]}
    corpus_files.write_record(target, origin | facts)


def _check_disk(target: Path, size: int) -> None:
    """Raises OSError where the disk has no room for so many bytes."""
    folder = next(folder for folder in target.absolute().parents if folder.is_dir())
    free = shutil.disk_usage(folder).free
    if free < size:
        raise OSError(
            f"{target.name} needs {size / 1e9:,.2f} GB, and {folder} has {free / 1e9:,.2f} GB free;"
            " ask for less, make room, or set WORKBOOK_DATA to a folder elsewhere"
        )


def _make_pydocs(corpus: Corpus) -> None:
    """Writes both splits, because the library is read once for both."""
    found = pydocs.harvest(progress=lambda modules: tqdm(modules, desc="read the library"))
    for split in SPLITS:
        target, origin = _place(corpus, split)
        texts = [text.strip() for name, text in found.items() if pydocs.split_of(name) == split]
        corpus_files.write_record(target, origin | corpus_files.write(target, texts))


@cache
def _generator() -> str:
    """A hash of all that decides how a story reads, so that no old story is taken for new."""
    folder = Path(stories.__file__).parent
    return _digest(*(file for file in folder.rglob("*") if file.suffix in (".py", ".txt")))


def _digest(*files: Path) -> str:
    digest = sha256()
    for file in sorted(files):
        digest.update(f"{file.name}\n".encode())
        digest.update(file.read_bytes().replace(b"\r\n", b"\n"))  # as git may check it out
    return digest.hexdigest()[:16]


def _short(size: int) -> str:
    """A size for a file's name: 20MB, 1500kB, 4097B."""
    for unit, value in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size % value == 0:
            return f"{size // value}{unit}"
    return f"{size}B"
