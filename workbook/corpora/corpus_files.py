"""A file of documents, each ended by `<|endoftext|>`, and the JSON record beside it.

The record says what is in the file and where it came from. It is written last, so a file without
a record that fits it was never finished, was damaged, or is another one, and is not used.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import Random

from workbook import __version__
from workbook.files import atomic_write, unchanged, write_json

END_OF_TEXT = "<|endoftext|>"
SEPARATOR = END_OF_TEXT.encode()
BLOCK = 2**20  # bytes read at a time
ABANDONED = 3600  # seconds after which nobody is still writing a temporary file


class Tally:
    """Counts the bytes and documents of a stream and computes its sha256, block by block.

    >>> tally = Tally()
    >>> for block in (b"One.<|endof", b"text|>Two.<|endoftext|>", b"\\n"):
    ...     tally.update(block)
    >>> tally.facts()["bytes"], tally.facts()["documents"]
    (35, 2)
    """

    def __init__(self):
        self._digest = sha256()
        self._bytes = self._documents = 0
        self._begun = False  # whether the document that has not ended yet has any text
        self._tail = b""  # the last bytes: perhaps the beginning of a separator

    def update(self, block: bytes) -> None:
        """Counts one more block of the stream."""
        self._digest.update(block)
        self._bytes += len(block)
        *ended, rest = (self._tail + block).split(SEPARATOR)
        for text in ended:
            self._documents += self._begun or bool(text.strip())
            self._begun = False
        cut = max(0, len(rest) - len(SEPARATOR) + 1)
        self._begun = self._begun or bool(rest[:cut].strip())
        self._tail = rest[cut:]

    def facts(self) -> dict:
        """What has been counted so far; a last document needs no separator."""
        open_document = self._begun or bool(self._tail.strip())
        return {
            "bytes": self._bytes,
            "documents": self._documents + open_document,
            "sha256": self._digest.hexdigest(),
        }


def write(
    target: Path, texts: Iterable[str], progress: Callable[[int], object] = lambda size: None
) -> dict:
    """The facts about a new file with these documents; `progress` is told the bytes of each."""
    for left in target.parent.glob(".*.tmp"):
        with suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > ABANDONED:
                left.unlink()  # its writer was killed
    tally = Tally()
    with atomic_write(target, "wb") as file:
        for text in texts:
            block = f"{text}\n{END_OF_TEXT}\n".encode()
            file.write(block)
            tally.update(block)
            progress(len(block))
    return tally.facts()


def write_record(target: Path, facts: dict) -> None:
    """Writes the record of `target`, which makes it a corpus file."""
    facts = {**facts, "workbook": __version__, "modified_ns": target.stat().st_mtime_ns}
    write_json(target.with_suffix(".json"), facts)


def record(path: str | os.PathLike) -> dict:
    """What is known about a corpus file: bytes, documents, sha256, and where it came from.

    For `stories` also `code_length_bits`, what its random choices cost to write down, and that
    divided by the bytes, `bits_per_byte`: an upper bound of the entropy of its text.
    """
    beside = Path(path).with_suffix(".json")
    if not beside.is_file():
        raise FileNotFoundError(
            f"{path} has no record {beside.name} beside it, so it is no corpus file; take the path"
            " that corpora.path() returns"
        )
    return json.loads(beside.read_text(encoding="utf-8"))


def is_good(path: Path, origin: dict) -> bool:
    """Whether the file is what its record says, and the record names this origin.

    A file that has been as it is since its record was written is not read: only one with another
    time, edited or copied here, has its sha256 computed, once.
    """
    try:
        facts, found = record(path), path.stat()
        if found.st_size != facts["bytes"] or not origin.items() <= facts.items():
            return False
        if found.st_mtime_ns == facts.get("modified_ns"):
            return True
        tally = Tally()
        with unchanged(path), path.open("rb") as file:
            while block := file.read(BLOCK):
                tally.update(block)
        if tally.facts()["sha256"] != facts["sha256"]:
            return False
        with suppress(OSError):  # a folder that cannot be written to is asked again next time
            write_record(path, facts)
        return True
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # no file, no such record
        return False


def documents(path: str | os.PathLike) -> Iterator[str]:
    """The documents of a file one after another, without the blank space around them.

    Any UTF-8 text file will do, with or without a separator at its end. Never more than one
    document and one block of the file are in memory.
    """
    return (document.decode() for document in _raw_documents(path))


def sample_documents(path: str | os.PathLike, n: int, seed: int) -> list[str]:
    """n documents of a file, every choice of n as likely as any other, in the order of the file.

    Reads the file once and keeps n documents. Source: Vitter 1985, algorithm R.
    """
    if n < 1:
        raise ValueError(f"n={n} documents were asked for; ask for one at least")
    random = Random(seed)
    kept: list[tuple[int, bytes]] = []
    for number, document in enumerate(_raw_documents(path)):
        if number < n:
            kept.append((number, document))
        elif (place := random.randrange(number + 1)) < n:
            kept[place] = number, document
    if len(kept) < n:
        raise ValueError(f"{path} has {len(kept)} documents, {n} were asked for; ask for fewer")
    return [document.decode() for _, document in sorted(kept)]


def _raw_documents(path: str | os.PathLike) -> Iterator[bytes]:
    with unchanged(Path(path)), open(path, "rb") as file:
        parts: list[bytes] = []  # of the document that has not ended yet
        tail = b""  # what follows them: perhaps the beginning of a separator
        while block := file.read(BLOCK):
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
