"""Tokenizers: text to ids and back.

    "the cat"  ->  "the" " cat"        pre-tokens
               ->  t h e | _ c a t     bytes
               ->  the | _c at         merges, the earliest learnt first
               ->  [257, 300, 279]     ids

`Tokenizer` is byte-level BPE, read here in plain Python. Long text and files take the compiled
engine of `fastbpe`, which gives the same ids. The character, byte and word tokenizers that it is
compared with share its interface.
"""

import heapq
import os
import pickle
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import lru_cache, partial
from itertools import chain, pairwise
from numbers import Integral
from pathlib import Path
from typing import Self

import numpy as np

from workbook.files import unchanged
from workbook.tokenization import gpt2_files
from workbook.tokenization.pretokens import (
    COMPILED_FROM,
    check_special_tokens,
    cut_points,
    lone_surrogate,
    pretokenize,
    read_span,
    special_pattern,
    task_cuts,
    text_file,
    whole_pretokens,
)
from workbook.tokenization.remember import Memory
from workbook.tokenization.simple import (
    ByteTokenizer,
    CharacterTokenizer,
    Encoder,
    WordTokenizer,
    look_up,
    require_text,
)

__all__ = [
    "ByteTokenizer",
    "CharacterTokenizer",
    "Tokenizer",
    "WordTokenizer",
    "compression_ratio",
    "token_dtype",
]

SHORT = 4096  # characters of a text that may be cut at its spaces
REMEMBERED = 1 << 16  # pre-tokens whose ids a tokenizer knows from call to call: about 20 MB
REMEMBERED_IN_A_STREAM = 1 << 10  # and within a stream, which is to run in less than 1 MB

_blank_run = re.compile(r"\s ")


class Tokenizer(Encoder):
    """Byte-level BPE from a vocabulary and merges, such as `train_bpe` returns.

    Special tokens that the vocabulary lacks get the next free ids; of overlapping ones the longest
    wins. Text that holds a special token always yields its id.
    Raises: ValueError where a merge is no pair or needs a token that is not in the vocabulary, or
    an id is negative; TypeError where the vocabulary does not map ids to bytes.
    """

    def __init__(
        self,
        vocab: dict[int, bytes],
        merges: Iterable[tuple[bytes, bytes]],
        special_tokens: Sequence[str] | None = None,
    ):
        self.vocab = dict(vocab)
        for token_id, token in self.vocab.items():
            if not (isinstance(token_id, Integral) and isinstance(token, bytes)):
                raise TypeError(f"vocab maps ids to bytes, got {token_id!r}: {token!r}")
            if token_id < 0:
                raise ValueError(f"an id is 0 or more, got {token_id} for {token!r}")
        self.merges = list(merges)
        self.special_tokens = check_special_tokens(special_tokens)
        known = set(self.vocab.values())
        for token in self.special_tokens:
            if token.encode() not in known:
                self.vocab[max(self.vocab, default=-1) + 1] = token.encode()
        # Where two ids stand for the same bytes, the lower is the one that text gets.
        self._id_of = {self.vocab[token_id]: token_id for token_id in sorted(self.vocab)[::-1]}
        self._special_ids = {token: (self._id_of[token.encode()],) for token in self.special_tokens}
        self._ranks = {}
        for rank, merge in enumerate(self.merges):
            if len(merge) != 2:
                raise ValueError(f"merge {rank} is two tokens, got {len(merge)}: {merge!r}")
            left, right = merge
            for token in (left, right, left + right):
                if token not in self._id_of:
                    raise ValueError(
                        f"merge {rank}, {left!r} + {right!r}, needs the token {token!r}, which "
                        f"is not in the vocabulary; pass the vocabulary that belongs to the merges"
                    )
            pair = self._id_of[left], self._id_of[right]
            self._ranks.setdefault(pair, (rank, self._id_of[left + right]))
        self._special = special_pattern(self.special_tokens)
        self._may_be_chunked = not any(" " in token for token in self.special_tokens)
        self._pretokens = Memory(self._merge, REMEMBERED)
        self._first_chunks = Memory(partial(self._chunk, ""), REMEMBERED)
        self._later_chunks = Memory(partial(self._chunk, " "), REMEMBERED)
        self._idle_encoders = []

    @classmethod
    def from_files(
        cls,
        vocab_filepath: str | os.PathLike,
        merges_filepath: str | os.PathLike,
        special_tokens: Sequence[str] | None = None,
    ) -> Self:
        """A tokenizer from GPT-2's two files: `vocab.json` (token -> id) and `merges.txt`."""
        vocab = gpt2_files.read_vocab(vocab_filepath, special_tokens or ())
        return cls(vocab, gpt2_files.read_merges(merges_filepath), special_tokens)

    def save(self, vocab_filepath: str | os.PathLike, merges_filepath: str | os.PathLike) -> None:
        """Write the vocabulary and the merges as GPT-2's `vocab.json` and `merges.txt`."""
        gpt2_files.write_vocab(vocab_filepath, self._id_of)
        gpt2_files.write_merges(merges_filepath, self.merges)

    @property
    def vocab_size(self) -> int:
        """One more than the largest id: the rows that an embedding of these ids needs."""
        return max(self.vocab, default=-1) + 1

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids; bytes that are no UTF-8 become U+FFFD.

        Raises: ValueError where an id is not in the vocabulary, TypeError where it is no integer.
        """
        return b"".join(look_up(self.vocab, ids)).decode("utf-8", errors="replace")

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises: TypeError where it is no string, ValueError where it holds
        a lone surrogate, which has no UTF-8.

        Long text goes through the compiled engine.
        """
        if len(require_text(text)) >= COMPILED_FROM and (encoder := self._take_encoder()):
            try:
                ids = encoder.encode(text).tolist()
            except UnicodeEncodeError as error:
                raise lone_surrogate(repr(text[error.start])) from error
            self._idle_encoders.append(encoder)  # unless it was interrupted in the middle
            return ids
        if len(text) <= SHORT and self._may_be_chunked and not _blank_run.search(text):
            first, *later = text.split(" ")
            return [*self._first_chunks[first], *_ids(self._later_chunks, later)]
        return list(_ids(self._pretokens, whole_pretokens(text, self._special)))

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        memory = Memory(self._merge, REMEMBERED_IN_A_STREAM)
        return _ids(memory, pretokenize(iterable, self.special_tokens))

    def encode_file(self, path: str | os.PathLike, executor: Executor | None = None) -> np.ndarray:
        """The ids of a UTF-8 file, in the smallest unsigned type that holds every id.

        With an executor (processes, threads, or a cluster whose workers see the file), parts of
        the file are encoded side by side.
        Raises: FileNotFoundError; ValueError where the file is not UTF-8, or changes meanwhile.
        """
        path = text_file(path)
        with unchanged(path):
            cuts = cut_points(path, self.special_tokens)
            if executor is None:
                parts = self.encode_spans(path, cuts)
            else:
                task = partial(encode_task, pickle.dumps(self), path)
                parts = executor.map(task, task_cuts(cuts))
            return np.concatenate([np.empty(0, token_dtype(self.vocab_size)), *parts])

    def encode_spans(self, path: str | os.PathLike, cuts: Sequence[int]) -> Iterator[np.ndarray]:
        """The ids of the spans of a file between these cuts, which `cut_points` found."""
        dtype = token_dtype(self.vocab_size)
        small = Path(path).stat().st_size < COMPILED_FROM
        encoder = None if small else self._take_encoder()
        if encoder is None:
            for start, end in pairwise(cuts):
                yield np.fromiter(self._ids(read_span(path, start, end)), dtype)
        else:
            for ids in encoder.encode_file(path, cuts):
                yield ids.astype(dtype)
            self._idle_encoders.append(encoder)

    def _take_encoder(self):
        """A compiled encoder for one thread, to be given back; None where it cannot do the job."""
        try:
            return self._idle_encoders.pop()
        except IndexError:
            from workbook.tokenization.compiled import (  # numba takes a second to import
                encode,
                engine,
            )

            engine.compile_all()
            special_ids = {token: ids[0] for token, ids in self._special_ids.items()}
            return encode.make_encoder(self._id_of, self.merges, special_ids)

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        return _ids(self._pretokens, pretokenize(pieces, self.special_tokens))

    def _chunk(self, space: str, chunk: str) -> tuple[int, ...]:
        """The ids of what stands between two spaces, with the space before it.

        A pre-token always begins at a space that no other white space precedes. To split a text
        there, and remember the ids of each chunk, is quicker than a pattern is.
        """
        tokens = whole_pretokens(space + chunk, self._special)
        return tuple(_ids(self._pretokens, tokens))

    def _merge(self, pretoken: str) -> tuple[int, ...]:
        """The ids of one pre-token: the earliest learnt merge first, of equals the leftmost.

        The symbols are a linked list, the merges that could be made wait in a heap, and one whose
        symbols have changed meanwhile is passed over: a word of n bytes costs n log n steps.
        """
        if pretoken in self._special_ids:
            return self._special_ids[pretoken]
        ids = self._byte_ids(pretoken)
        end = len(ids)
        before, behind = list(range(-1, end - 1)), list(range(1, end + 1))
        waiting = []

        def consider(at: int) -> None:
            if at >= 0 and behind[at] < end:
                pair = ids[at], ids[behind[at]]
                if pair in self._ranks:
                    heapq.heappush(waiting, (self._ranks[pair][0], at, pair))

        for at in range(end - 1):
            consider(at)
        while waiting:
            _, at, pair = heapq.heappop(waiting)
            gone = behind[at]
            if gone >= end or (ids[at], ids[gone]) != pair:
                continue
            ids[at], ids[gone] = self._ranks[pair][1], None
            behind[at] = behind[gone]
            if behind[at] < end:
                before[behind[at]] = at
            consider(before[at])
            consider(at)
        return tuple(token_id for token_id in ids if token_id is not None)

    def _byte_ids(self, pretoken: str) -> list[int]:
        """The ids of the single bytes of a pre-token."""
        try:
            return [self._id_of[bytes([byte])] for byte in pretoken.encode()]
        except UnicodeEncodeError as error:
            raise lone_surrogate(repr(pretoken)) from error
        except KeyError as error:
            raise ValueError(
                f"the vocabulary lacks the byte {error.args[0]!r} of {pretoken!r}; a byte-level "
                f"vocabulary holds all 256"
            ) from None

    def __reduce__(self):
        """Another process builds the tokenizer anew; its cache stays behind."""
        return type(self), (self.vocab, self.merges, self.special_tokens)


def _ids(memory: Memory, tokens: Iterable[str]) -> Iterator[int]:
    """The ids of tokens one behind the other."""
    return chain.from_iterable(map(memory.__getitem__, tokens))


def encode_task(tokenizer: bytes, path: str | os.PathLike, cuts: Sequence[int]) -> np.ndarray:
    """The ids of a part of a file, by a pickled tokenizer: what a worker does."""
    return np.concatenate(list(unpickled(tokenizer).encode_spans(path, cuts)))


@lru_cache(1)
def unpickled(tokenizer: bytes) -> Tokenizer:
    """The tokenizer, one for all tasks of a process, so that it remembers what it encoded."""
    return pickle.loads(tokenizer)


def token_dtype(vocab_size: int) -> np.dtype:
    """The smallest unsigned type that holds every id below `vocab_size`: 2 bytes up to 65,536."""
    return np.min_scalar_type(max(vocab_size - 1, 256))


def compression_ratio(text: str, ids: Sequence[int]) -> float:
    """Bytes of UTF-8 text per token. Raises: ValueError where there is no token."""
    if not len(ids):
        raise ValueError("there is no token to divide by; measure on a text that is not empty")
    return len(text.encode()) / len(ids)
