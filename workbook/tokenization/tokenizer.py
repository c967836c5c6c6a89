"""Byte-level BPE: text to token ids and back.

    "the cat"  ->  "the" " cat"        pre-tokens
               ->  t h e | _ c a t     bytes
               ->  the | _c at         merges, the earliest learnt first
               ->  [257, 300, 279]     ids

`Tokenizer` is plain Python; long texts and files go through the engine in `compiled`, which gives
the same ids. `Encoder` is the interface that it shares with the tokenizers in `simple`.
"""

import heapq
import operator
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import chain, pairwise
from numbers import Integral
from pathlib import Path
from typing import Self

import numpy as np

from workbook.files import unchanged
from workbook.tokenization import engine, gpt2_files
from workbook.tokenization.pretokens import (
    check_special_tokens,
    lone_surrogate,
    pretokenize,
    special_pattern,
    whole_pretokens,
)
from workbook.tokenization.spans import cut_points, read_span, task_cuts, text_file

SHORT = 4096  # characters of a text that may be cut at its spaces
REMEMBERED = 1 << 16  # pre-tokens whose ids a tokenizer keeps from call to call: about 20 MB
REMEMBERED_IN_A_STREAM = 1 << 10  # the same within a stream, which should need less than 1 MB
LONGEST_REMEMBERED = 64  # characters of a pre-token that is worth keeping

_blank_run = re.compile(r"\s ")


class Encoder:
    """The interface of all tokenizers: text to ids, from a string or from a stream, and back.

    Subclasses implement `_ids`, for text that comes in pieces, and `decode`.
    """

    vocab_size: int

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises: TypeError if it is not a string; ValueError if the tokenizer
        needs its UTF-8 and it holds a lone surrogate, which UTF-8 cannot encode."""
        return list(self._ids([require_text(text)]))

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        """The ids of the joined strings, one by one, in constant memory.

        They equal those of `encode` on the whole text, wherever the strings are cut, and each is
        yielded as soon as no later text can change it.
        """
        return self._ids(iterable)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids; bytes that are not UTF-8 become U+FFFD."""
        raise NotImplementedError

    def tokens(self, text: str) -> list[tuple[int, bytes]]:
        """Each token of a text: its id and its bytes, which may be only part of a character."""
        return [(token_id, self._token(token_id)) for token_id in self.encode(text)]

    def _token(self, token_id: int) -> bytes:
        return self.decode([token_id]).encode()


class Tokenizer(Encoder):
    """Byte-level BPE from a vocabulary and merges, such as `train_bpe` returns.

    Special tokens that the vocabulary lacks get the next free ids; of overlapping ones the longest
    wins. Text that holds a special token always yields its id.
    Raises: ValueError if a merge is not a pair or needs a token that the vocabulary lacks, or an id
    is negative; TypeError if the vocabulary does not map ids to bytes.
    """

    def __init__(
        self,
        vocab: dict[int, bytes],
        merges: Iterable[tuple[bytes, bytes]],
        special_tokens: Sequence[str] | None = None,
    ):
        self.vocab = {}
        for token_id, token in dict(vocab).items():
            if not (isinstance(token_id, Integral) and isinstance(token, bytes)):
                raise TypeError(f"vocab maps ids to bytes, got {token_id!r}: {token!r}")
            if token_id < 0:
                raise ValueError(f"an id is 0 or more, got {token_id} for {token!r}")
            self.vocab[int(token_id)] = token  # numpy's integers would overflow
        self.merges = list(merges)
        self.special_tokens = check_special_tokens(special_tokens)
        known = set(self.vocab.values())
        for token in self.special_tokens:
            if token.encode() not in known:
                self.vocab[max(self.vocab, default=-1) + 1] = token.encode()
        # If two ids stand for the same bytes, encoding uses the lower one.
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
        self._pretokens = _Memory(self._merge, REMEMBERED)
        self._first_chunks = _Memory(partial(self._chunk, ""), REMEMBERED)
        self._later_chunks = _Memory(partial(self._chunk, " "), REMEMBERED)
        self._idle_encoders = []
        self._dtype = token_dtype(self.vocab_size)

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
        """The text of the ids; bytes that are not UTF-8 become U+FFFD.

        Raises: ValueError if an id is not in the vocabulary, TypeError if it is not an int.
        """
        return b"".join(look_up_tokens(self.vocab, ids)).decode("utf-8", errors="replace")

    def _token(self, token_id: int) -> bytes:
        return self.vocab[token_id]

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises: TypeError if it is not a string; ValueError if it holds a lone
        surrogate, which UTF-8 cannot encode.

        Long text goes through the compiled engine.
        """
        if engine.pays_off(len(require_text(text))):
            parts = self._encode_long(text)
            if parts is not None:
                return integers(parts, self.vocab_size)
        # A space with no other white space before it begins a pre-token, so the text can be split
        # there and the ids of each chunk remembered, which is quicker than the pattern.
        if len(text) <= SHORT and self._may_be_chunked and not _blank_run.search(text):
            first, *later = text.split(" ")
            return [*self._first_chunks[first], *_ids(self._later_chunks, later)]
        return list(_ids(self._pretokens, whole_pretokens(text, self._special)))

    def encode_array(self, text: str) -> np.ndarray:
        """The ids of a text, in the smallest unsigned dtype that holds every id.

        Long text takes about half the time of `encode`, and the array a quarter of the memory of
        the list. It raises the same errors.
        """
        if engine.pays_off(len(require_text(text))):
            parts = self._encode_long(text)
            if parts is not None:
                return np.concatenate(parts)
        return np.array(self.encode(text), self._dtype)

    def _encode_long(self, text: str) -> list[np.ndarray] | None:
        """The ids by the compiled engine, in parts; None if it does not fit this vocabulary."""
        with self.compiled_encoder() as encoder:
            if encoder is None:
                return None
            try:
                return [ids.astype(self._dtype) for ids in encoder.encode(text)]
            except UnicodeEncodeError as error:
                raise lone_surrogate(repr(error.object[error.start])) from error

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        memory = _Memory(self._merge, REMEMBERED_IN_A_STREAM)
        return _ids(memory, pretokenize(iterable, self.special_tokens))

    def encode_file(self, path: str | os.PathLike, executor: Executor | None = None) -> np.ndarray:
        """The ids of a UTF-8 file, in the smallest unsigned dtype that holds every id.

        With an executor (processes, threads, or a cluster whose workers see the file), parts of
        the file are encoded in parallel.
        Raises: FileNotFoundError; ValueError if the file is not UTF-8, or changes meanwhile.
        """
        path = text_file(path)
        with unchanged(path):
            cuts = cut_points(path, self.special_tokens)
            if executor is None:
                parts = self.encode_spans(path, cuts)
            else:
                task = partial(encode_task, pickle.dumps(self), path)
                parts = executor.map(task, task_cuts(cuts))
            return np.concatenate([np.empty(0, self._dtype), *parts])

    def encode_spans(self, path: str | os.PathLike, cuts: Sequence[int]) -> Iterator[np.ndarray]:
        """The ids of the spans of a file between these cuts, which come from `cut_points`."""
        if engine.pays_off(Path(path).stat().st_size):
            with self.compiled_encoder() as encoder:
                if encoder is not None:
                    for ids in encoder.encode_file(path, cuts):
                        yield ids.astype(self._dtype)
                    return
        for start, end in pairwise(cuts):
            yield np.fromiter(self._ids(read_span(path, start, end)), self._dtype)

    @contextmanager
    def compiled_encoder(self):
        """A `CompiledEncoder` for the one thread that runs the block.

        None if the compiled engine does not fit this vocabulary. It is made on the first call and
        reused by later ones, unless the block fails: the encoder may have stopped halfway.
        """
        try:
            encoder = self._idle_encoders.pop()
        except IndexError:
            from workbook.tokenization import compiled  # loads LLVM

            compiled.load()
            special_ids = {token: ids[0] for token, ids in self._special_ids.items()}
            encoder = compiled.make_encoder(self._id_of, self.merges, special_ids)
        yield encoder
        self._idle_encoders.append(encoder)  # None too: so it is not tried again for each text

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        return _ids(self._pretokens, pretokenize(pieces, self.special_tokens))

    def _chunk(self, space: str, chunk: str) -> tuple[int, ...]:
        """The ids of the text between two spaces, with the space before it."""
        tokens = whole_pretokens(space + chunk, self._special)
        return tuple(_ids(self._pretokens, tokens))

    def _merge(self, pretoken: str) -> tuple[int, ...]:
        """The ids of one pre-token: the earliest learnt merge first, the leftmost of equal ones.

        The symbols are a linked list, and the possible merges wait in a heap. A merge whose symbols
        have changed meanwhile is skipped. So a word of n bytes takes n log n steps.
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
                continue  # one of the two was merged with its other neighbour meanwhile
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
        """Pickle what the tokenizer is built from, but nothing that it remembers."""
        return type(self), (self.vocab, self.merges, self.special_tokens)


class _Memory(dict):
    """string -> function(string), for at most `most` strings; a full memory is emptied.

    Strings longer than `LONGEST_REMEMBERED` are not kept: they hardly ever recur, and a few
    thousand of them could fill the computer's memory.

    >>> memory = _Memory(str.upper, 2)
    >>> [memory[name] for name in ("a", "b", "a", "c")], list(memory)
    (['A', 'B', 'A', 'C'], ['c'])
    """

    def __init__(self, function: Callable[[str], object], most: int):
        super().__init__()
        self.function, self.most = function, most

    def __missing__(self, string: str):
        result = self.function(string)
        if len(string) <= LONGEST_REMEMBERED:
            if len(self) >= self.most:
                self.clear()
            self[string] = result
        return result


def _ids(memory: _Memory, tokens: Iterable[str]) -> Iterator[int]:
    """The ids of all tokens, in one sequence."""
    return chain.from_iterable(map(memory.__getitem__, tokens))


def integers(parts: Sequence[np.ndarray], stop: int) -> list[int]:
    """The numbers of some arrays, all below `stop`, as one list of Python's integers."""
    if stop > sum(map(len, parts)):
        return np.concatenate(parts).tolist()
    # To look an integer up takes half the time of making one.
    made, numbers = np.array(range(stop), object), []
    for part in parts:
        numbers += made.take(part).tolist()
    return numbers


def require_text(text: str) -> str:
    """Return the text. Raises: TypeError if it is not a string."""
    if not isinstance(text, str):
        raise TypeError(f"encode takes a string, got {type(text).__name__}; decode bytes first")
    return text


def look_up_tokens(vocab: Mapping, ids: Iterable[int]) -> Iterator:
    """The tokens of the ids, with errors that name the id."""
    if not isinstance(ids, Iterable):
        raise TypeError(f"decode takes a list of ids, got {ids!r}; write [{ids!r}]")
    for token_id in ids:
        try:
            yield vocab[operator.index(token_id)]
        except KeyError:
            raise ValueError(
                f"id {token_id} is not in the vocabulary, which has {len(vocab):,} ids from "
                f"{min(vocab, default=0)} to {max(vocab, default=0)}"
            ) from None
        except TypeError:
            raise TypeError(f"an id is an integer, got {token_id!r}; pass a list of ids") from None


def encode_task(tokenizer: bytes, path: str | os.PathLike, cuts: Sequence[int]) -> np.ndarray:
    """Encode a part of a file with a pickled tokenizer: the task of one worker."""
    return np.concatenate(list(unpickled(tokenizer).encode_spans(path, cuts)))


@lru_cache(1)
def unpickled(tokenizer: bytes) -> Tokenizer:
    """The pickled tokenizer; one for all tasks of a process, so that its memory is kept."""
    return pickle.loads(tokenizer)


def token_dtype(vocab_size: int) -> np.dtype:
    """The smallest unsigned dtype that holds every id below `vocab_size`: 2 bytes up to 65,536."""
    return np.min_scalar_type(max(vocab_size - 1, 256))


def compression_ratio(text: str, ids: Sequence[int]) -> float:
    """Bytes of UTF-8 text per token. Raises: ValueError if there are no tokens."""
    if not len(ids):
        raise ValueError("there are no tokens to divide by; measure on a text that is not empty")
    return len(text.encode()) / len(ids)
