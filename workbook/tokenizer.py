"""Tokenizers: text to ids and back.

    "the cat"  ->  "the" " cat"        pre-tokens
               ->  t h e | _ c a t     bytes
               ->  the | _c at         merges, the earliest learnt first
               ->  [257, 300, 279]     ids

`Tokenizer` is byte-level BPE. The character, byte and word tokenizers beside it are what it is
compared with, and share its interface.
"""

import heapq
import operator
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Self

from workbook import gpt2_files
from workbook.pretokens import check_special_tokens, pretokenize

CACHED_PRETOKENS = 1 << 16  # whose ids a tokenizer remembers from call to call: about 20 MB
STREAM_PRETOKENS = 1 << 10  # and within a stream, which is to run in less than 1 MB


class Encoder:
    """What all tokenizers share: ids from a string or from a stream, and the errors."""

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises: TypeError where it is no string, ValueError where it holds
        a lone surrogate, which has no UTF-8."""
        if not isinstance(text, str):
            raise TypeError(f"encode takes a string, got {type(text).__name__}; decode bytes first")
        return list(self._ids([text]))

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        """The ids of the joined strings, one by one, in constant memory.

        They are those of `encode` on the whole text, wherever the strings are cut, and come as
        soon as no later text can change them.
        """
        return self._ids(iterable)


class Tokenizer(Encoder):
    """Byte-level BPE from a vocabulary and merges, such as `train_bpe` returns.

    Special tokens that the vocabulary lacks get the next free ids; of overlapping ones the longest
    wins. Text that holds a special token always yields its id.
    Raises: ValueError where a merge needs a token that is not in the vocabulary.
    """

    def __init__(
        self,
        vocab: dict[int, bytes],
        merges: Iterable[tuple[bytes, bytes]],
        special_tokens: Sequence[str] | None = None,
    ):
        self.vocab = dict(vocab)
        self.merges = list(merges)
        self.special_tokens = list(dict.fromkeys(special_tokens or ()))
        check_special_tokens(special_tokens or ())
        known = set(self.vocab.values())
        for token in self.special_tokens:
            if token.encode() not in known:
                self.vocab[max(self.vocab, default=-1) + 1] = token.encode()
        # Where two ids stand for the same bytes, the lower is the one that text gets.
        self._id_of = {self.vocab[token_id]: token_id for token_id in sorted(self.vocab)[::-1]}
        self._special_ids = {token: (self._id_of[token.encode()],) for token in self.special_tokens}
        self._ranks = {}
        for rank, (left, right) in enumerate(self.merges):
            for token in (left, right, left + right):
                if token not in self._id_of:
                    raise ValueError(
                        f"merge {rank}, {left!r} + {right!r}, needs the token {token!r}, which "
                        f"is not in the vocabulary; pass the vocabulary that belongs to the merges"
                    )
            pair = self._id_of[left], self._id_of[right]
            self._ranks.setdefault(pair, (rank, self._id_of[left + right]))
        self._remembered = lru_cache(CACHED_PRETOKENS)(self._merge)

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
        return b"".join(_look_up(self.vocab, ids)).decode("utf-8", errors="replace")

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        remembered = lru_cache(STREAM_PRETOKENS)(self._merge)
        return chain.from_iterable(map(remembered, pretokenize(iterable, self.special_tokens)))

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        return chain.from_iterable(map(self._remembered, pretokenize(pieces, self.special_tokens)))

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
            raise ValueError(
                f"{pretoken!r} holds a lone surrogate, which has no UTF-8; decode the text with "
                f'errors="replace" where it comes from'
            ) from error
        except KeyError as error:
            raise ValueError(
                f"the vocabulary lacks the byte {error.args[0]!r} of {pretoken!r}; a byte-level "
                f"vocabulary holds all 256"
            ) from None

    def __reduce__(self):
        """Another process builds the tokenizer anew; its cache stays behind."""
        return type(self), (self.vocab, self.merges, self.special_tokens)


class CharacterTokenizer(Encoder):
    """One id a character: its code point."""

    vocab_size = 0x110000

    def decode(self, ids: Iterable[int]) -> str:
        """The characters with these code points."""
        return "".join(map(chr, ids))

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        return map(ord, chain.from_iterable(pieces))


class ByteTokenizer(Encoder):
    """One id a byte of the UTF-8 text."""

    vocab_size = 256

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these bytes; what is no UTF-8 becomes U+FFFD."""
        return bytes(ids).decode("utf-8", errors="replace")

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        return chain.from_iterable(piece.encode() for piece in pieces)


class WordTokenizer(Encoder):
    """One id a pre-token of GPT-2's pattern; what the vocabulary lacks is `<unk>`, id 0."""

    UNKNOWN = "<unk>"

    def __init__(self, words: Iterable[str]):
        self.words = list(dict.fromkeys([self.UNKNOWN, *words]))
        self._id_of = {word: word_id for word_id, word in enumerate(self.words)}

    @classmethod
    def from_counts(cls, counts: Counter[str], vocab_size: int) -> Self:
        """The tokenizer of the most frequent words; of equals the one seen first."""
        return cls(word for word, _ in counts.most_common(vocab_size - 1))

    @property
    def vocab_size(self) -> int:
        """The number of words, `<unk>` included."""
        return len(self.words)

    def decode(self, ids: Iterable[int]) -> str:
        """The words joined; what was unknown reads `<unk>`."""
        return "".join(_look_up(dict(enumerate(self.words)), ids))

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        return (self._id_of.get(word, 0) for word in pretokenize(pieces))


def compression_ratio(text: str, ids: Sequence[int]) -> float:
    """Bytes of UTF-8 text per token. Raises: ValueError where there is no token."""
    if not len(ids):
        raise ValueError("there is no token to divide by; measure on a text that is not empty")
    return len(text.encode()) / len(ids)


def _look_up(vocab: dict, ids: Iterable[int]) -> Iterator:
    """The tokens of the ids, with errors that name the id."""
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
