"""The data of a run: random windows of one long array of tokens, and the splits behind them.

tokens     17  4  92  8  30  5  61 ...
inputs         4  92  8  30              a window of context_length tokens, anywhere
targets           92  8  30  5           the same window one token later
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, Integer
from torch import Tensor

from workbook import config as settings
from workbook.config import TrainConfig
from workbook.corpora import corpora
from workbook.tokenization import token_files
from workbook.tokenization.token_files import read_tokens
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import loss_bounds


def get_batch(
    dataset: Integer[np.ndarray, " ids"],
    batch_size: int,
    context_length: int,
    device: str | torch.device = "cpu",
    generator: torch.Generator | None = None,
) -> tuple[Int[Tensor, "batch seq"], Int[Tensor, "batch seq"]]:
    """Inputs and targets, cut out at random: every start that leaves room is equally likely.

    `dataset` holds token ids of any integer type; of a memory map only the windows are read. With a
    `generator` (on the CPU) the order of the data depends on nothing else, and can be resumed from
    its state.
    """
    if dataset.ndim != 1 or dataset.dtype.kind not in "iu":
        raise ValueError(
            f"expected token ids in one row, of an integer type; got {dataset.dtype} in the shape"
            f" {dataset.shape}"
        )
    # Windows overlap from batch to batch, and nothing counts epochs: a run sees a part of a large
    # text, and a small one several times.
    starts = random_starts(len(dataset), batch_size, context_length, generator)
    return windows(dataset, starts, context_length, device)


def random_starts(
    length: int, batch_size: int, context_length: int, generator: torch.Generator | None = None
) -> Int[Tensor, " batch"]:
    """Where the windows of a batch begin: from 0 to length - context_length - 1.

    The last start leaves room for one token after the window, the last target.
    """
    if length <= context_length:
        raise ValueError(
            f"{length:,} ids are too few for a window of {context_length:,} and its targets; give"
            f" at least {context_length + 1:,} ids, or a smaller context_length"
        )
    # `randint` leaves out its upper end: the last start is length - context_length - 1.
    return torch.randint(length - context_length, (batch_size,), generator=generator)


def windows(
    dataset: Integer[np.ndarray, " ids"],
    starts: Int[Tensor, " batch"],
    context_length: int,
    device: str | torch.device = "cpu",
) -> tuple[Int[Tensor, "batch seq"], Int[Tensor, "batch seq"]]:
    """The windows that begin at `starts`, and the same one token later, as int64 on the device."""
    # (batch, 1) + (seq + 1,) -> (batch, seq + 1): one token more than inputs, the last target.
    places = starts.numpy()[:, None] + np.arange(context_length + 1)
    # Converted only now: the file holds two bytes per token, and torch wants eight for an index.
    ids = torch.from_numpy(np.asarray(dataset)[places].astype(np.int64))
    if torch.device(device).type == "cuda":
        # Copying from pinned memory, the program need not wait for the copy to end.
        ids = ids.pin_memory().to(device, non_blocking=True)
    else:
        ids = ids.to(device)
    # Two views of the same numbers, one token apart; copied, as kernels prefer rows in one piece.
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


BLOCK = 1 << 22  # tokens read at a time
UNKNOWN = "nothing is known about this text"  # why a floor is 0


@dataclass(frozen=True, kw_only=True)
class TrainData:
    """The tokens of both splits, their lengths in bytes, and how well any model could do."""

    train: np.ndarray
    validation: np.ndarray
    token_bytes: np.ndarray  # by token id
    end_id: int | None = None  # the token that separates documents; None: there are none
    entropy: float | None = None  # bits per byte that the text's random choices cost, if known
    floor: float = 0.0  # bits per byte that no honest model gets below
    floor_reason: str = UNKNOWN
    tokenizer: Tokenizer | None = None

    @cached_property
    def made_from(self) -> dict[str, str]:
        """A hash of each thing that a run learns from; a run that is resumed must find the same."""
        tokens_of = {"tokens to train on": self.train, "validation tokens": self.validation}
        # A resumed run draws its batches by position, so another text would silently be other data.
        hashes = {
            name: sha256(np.ascontiguousarray(ids).data).hexdigest()[:16]
            for name, ids in tokens_of.items()
        }
        if self.tokenizer is not None:
            hashes["tokenizer"] = token_files.fingerprint(self.tokenizer)
        return hashes

    @cached_property
    def shared_documents(self) -> int:
        """How many documents of the validation split are in the train split too, each once."""
        if self.end_id is None:
            return 0
        # Hashes instead of documents: millions of them fit into memory.
        held_out = set(document_hashes(self.validation, self.end_id))
        return len(held_out.intersection(document_hashes(self.train, self.end_id)))


def prepare(config: TrainConfig, make: Callable[..., Tokenizer] | None = None) -> TrainData:
    """The data that a config asks for: its text, tokenizer and tokens, made unless they are there.

    Every run begins with it: `data = prepare(config)`, then `train(config, data)`.

    `make` builds a learner's tokenizer from our vocabulary and merges: it gives the same ids as
    ours, so the tokens of the corpus are used. A sample shows whether it does.
    Raises: FileNotFoundError for a corpus that has to be downloaded; ValueError if the model's
    vocabulary is not as large as that of the corpus' tokenizer, if a learner's gives other ids, or
    if a text of the user's own is too short for the model.
    """
    is_own = config.corpus not in corpora.CORPORA  # its tokenizer is as large as the model asks
    # The embedding has a row for each token: vocabulary and model must agree exactly.
    folder, ours = token_files.tokenizer_for(config.corpus, vocab_size=config.model.vocab_size)
    if not is_own:
        expect_rows_for(config, ours.vocab_size)
    # The validation split always has its usual size: losses of all runs are of the same text.
    texts = [
        corpora.path(config.corpus, "train", config.corpus_bytes),
        corpora.path(config.corpus, "validation"),
    ]
    tokenizer = ours
    if make is not None:
        tokenizer = make(ours.vocab, ours.merges, ours.special_tokens)
        # The first difference would make every window of the corpus a different one.
        sample = next(token_files.read_text(texts[1]))[:20_000]  # their tokenizer may be slow
        if tokenizer.encode(sample) != ours.encode(sample):
            raise ValueError(
                "your tokenizer gives other ids than ours: `workbook check --all` says where. To"
                ' train with ours, put tokenizer = "" under [by_hand] in adopted.toml'
            )
    train, validation = (corpus_tokens(ours, folder, text) for text in texts)
    if is_own:
        expect_enough(config, ours.vocab_size, min(len(train), len(validation)) - 1)
    # Bits per byte need the bytes of the tokens that are predicted, so those of each token.
    lengths = [len(ours.vocab.get(token_id, b"")) for token_id in range(ours.vocab_size)]
    # Known for the stories alone, whose choices were counted when they were drawn.
    entropy = corpora.record(texts[1]).get("bits_per_byte")
    bounds = None if is_own else loss_bounds.bounds(config.corpus, entropy=entropy)
    return TrainData(
        train=train,
        validation=validation,
        token_bytes=np.array(lengths),
        end_id=ours.encode(corpora.END_OF_TEXT)[0],
        entropy=entropy,
        floor=bounds.floor if bounds else 0.0,
        floor_reason=bounds.reason if bounds else UNKNOWN,
        tokenizer=tokenizer,
    )


def expect_rows_for(config: TrainConfig, size: int) -> None:
    """Raise ValueError unless the model has a row for each of `size` tokens of its corpus."""
    asked = config.model.vocab_size
    if asked != size:
        raise ValueError(
            f"the tokenizer of {config.corpus} has {size:,} tokens and the model"
            f" vocab_size={asked:,}; give the model vocab_size={size}"
        )


def expect_enough(config: TrainConfig, vocab_size: int, context_length: int) -> None:
    """Raise ValueError, with sizes that work, if a text is too short for the model of a config.

    Its tokenizer found `vocab_size` tokens, and `context_length` is the longest window that fits
    into both splits.
    """
    model = config.model
    if vocab_size < model.vocab_size or context_length < model.context_length:
        raise ValueError(
            f"the text is too short for vocab_size={model.vocab_size} and"
            f" context_length={model.context_length}; give more text, or --vocab-size {vocab_size}"
            f" --context-length {min(context_length, model.context_length)}, which it is enough for"
        )


def corpus_tokens(tokenizer: Tokenizer, folder: str, text: Path) -> np.ndarray:
    """The tokens of a corpus file as a memory map; the file is encoded first if need be.

    `folder` is named after the tokenizer, and the token file after the text and its size: runs on
    different sizes do not overwrite each other's.
    """
    # Two tokenizers, or two sizes of a corpus, have files of their own.
    target = settings.data_folder() / "tokens" / folder / f"{text.stem}.npy"
    token_files.tokenize_file(tokenizer, text, target)
    return read_tokens(target)


def document_hashes(ids: np.ndarray, end_id: int) -> Iterator[int]:
    """A hash of each document among the tokens, which are read in blocks."""
    open_part = np.empty(0, ids.dtype)  # of a document that the last block did not end
    for start in range(0, len(ids), BLOCK):
        # A block rarely ends with a document, so the beginning of the last one is carried over.
        block = np.concatenate([open_part, ids[start : start + BLOCK]])
        *whole, open_part = np.split(block, np.flatnonzero(block == end_id) + 1)
        yield from (hash(document.tobytes()) for document in whole if len(document) > 1)
    if len(open_part) > 1:  # a single token is the line end of a file
        yield hash(np.append(open_part, ids.dtype.type(end_id)).tobytes())
