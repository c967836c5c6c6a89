"""What a run trains on: the ids of both splits on disk, and what is known about their text."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from workbook import config as settings
from workbook.config import TrainConfig
from workbook.corpora import corpora
from workbook.tokenization import token_files
from workbook.tokenization.token_files import read_tokens
from workbook.tokenization.tokenizer import Tokenizer

# Bits a byte that a model as small as the course's does not come below on text it has not seen,
# with a margin: a loss of 1.3 nats a token of 4.1 bytes, good on TinyStories, is 0.46.
STATED_FLOORS = {"tinystories": 0.35, "owt": 0.6, "pydocs": 0.6}
# What random choices cost is a mean over all stories; the part that is looked at may be cheaper.
MARGIN = 0.9
BLOCK = 1 << 22  # ids looked at together


@dataclass(frozen=True, kw_only=True)
class TrainData:
    """The ids of both splits, how long each id is as text, and how well any model could do."""

    train: np.ndarray
    validation: np.ndarray
    token_bytes: np.ndarray  # by id
    end_id: int | None = None  # of what separates documents
    entropy: float | None = None  # bits a byte that the text's own random choices cost, if known
    floor: float = 0.0  # bits a byte that no honest model comes below
    floor_reason: str = "nothing is known about this text"
    tokenizer: Tokenizer | None = None

    def made_from(self) -> dict[str, str]:
        """A hash of each thing that a run learns from; a run that is resumed must find the same."""
        tokens_of = {"tokens to train on": self.train, "validation tokens": self.validation}
        found = {name: sha256(np.ascontiguousarray(ids)) for name, ids in tokens_of.items()}
        hashes = {name: digest.hexdigest()[:16] for name, digest in found.items()}
        if self.tokenizer is not None:
            hashes["tokenizer"] = token_files.fingerprint(self.tokenizer)
        return hashes


def train_data(config: TrainConfig) -> TrainData:
    """The data that a config asks for, made first where it is not on this disk.

    Raises: FileNotFoundError for a corpus that has to be downloaded; ValueError where the model
    has another vocabulary than the corpus' tokenizer.
    """
    folder, tokenizer = token_files.tokenizer_for(config.corpus)
    if tokenizer.vocab_size != config.model.vocab_size:
        raise ValueError(
            f"the tokenizer of {config.corpus} has {tokenizer.vocab_size:,} ids and the model"
            f" vocab_size={config.model.vocab_size:,}; give the model"
            f" vocab_size={tokenizer.vocab_size}"
        )
    train, validation = (
        encoded(tokenizer, folder, corpora.path(config.corpus, split, size))
        for split, size in (("train", config.corpus_bytes), ("validation", None))
    )
    facts = corpora.record(corpora.path(config.corpus, "validation"))
    entropy = facts.get("bits_per_byte")
    if entropy is not None:
        floor, reason = MARGIN * entropy, "the random choices behind the text cost more"
    else:
        floor, reason = (
            STATED_FLOORS[config.corpus],
            "stated: no model of this size is known to do better",
        )
    return TrainData(
        train=train,
        validation=validation,
        token_bytes=token_bytes(tokenizer),
        end_id=tokenizer.encode(corpora.END_OF_TEXT)[0],
        entropy=entropy,
        floor=floor,
        floor_reason=reason,
        tokenizer=tokenizer,
    )


def encoded(tokenizer: Tokenizer, folder: str, text: Path) -> np.ndarray:
    """The ids of a corpus file, left on disk; it is encoded first if need be.

    Named after the file, sizes too: runs on several sizes do not overwrite each other's ids.
    """
    target = settings.data_folder() / "tokens" / folder / f"{text.stem}.npy"
    token_files.tokenize_file(tokenizer, text, target)
    return read_tokens(target)


def token_bytes(tokenizer: Tokenizer) -> np.ndarray:
    """The length of each id in bytes of text."""
    lengths = np.zeros(tokenizer.vocab_size, np.int64)
    for number, token in tokenizer.vocab.items():
        lengths[number] = len(token)
    return lengths


def documents(ids: np.ndarray, end_id: int) -> Iterator[bytes]:
    """A hash of each document among the ids, which are read in blocks."""
    open_part = np.empty(0, ids.dtype)  # of a document that the last block did not end
    for start in range(0, len(ids), BLOCK):
        block = np.concatenate([open_part, ids[start : start + BLOCK]])
        *whole, open_part = np.split(block, np.flatnonzero(block == end_id) + 1)
        yield from (fingerprint(document) for document in whole if len(document) > 1)
    if len(open_part) > 1:  # one id is the line end of a file
        yield fingerprint(np.append(open_part, ids.dtype.type(end_id)))


def fingerprint(document: np.ndarray) -> bytes:
    """The same 16 bytes for the same ids."""
    return sha256(document.tobytes()).digest()[:16]


def shared_documents(data: TrainData) -> int:
    """How many documents of the validation split are in the train split too, each counted once."""
    held_out = set(documents(data.validation, data.end_id))
    return len(held_out.intersection(documents(data.train, data.end_id)))
