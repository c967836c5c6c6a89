"""What byte-pair encoding is compared with: tokenizers of characters, of bytes and of words.

    "the cat"  ->  [116, 104, 101, 32, ...]     a code point each
               ->  [116, 104, 101, 32, ...]     a byte each: the same, as long as text is English
               ->  [1, 7]                       a word each, and 0 for those never seen

All tokenizers share the interface of `Encoder`.
"""

import operator
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Self

from workbook.tokenization.pretokens import pretokenize


class Encoder:
    """What all tokenizers share: ids from a string or from a stream, and the errors."""

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises: TypeError where it is no string, ValueError where it holds
        a lone surrogate, which has no UTF-8."""
        return list(self._ids([require_text(text)]))

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        """The ids of the joined strings, one by one, in constant memory.

        They are those of `encode` on the whole text, wherever the strings are cut, and come as
        soon as no later text can change them.
        """
        return self._ids(iterable)


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
        return "".join(look_up(dict(enumerate(self.words)), ids))

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        return (self._id_of.get(word, 0) for word in pretokenize(pieces))


def require_text(text: str) -> str:
    """The text. Raises: TypeError where it is no string."""
    if not isinstance(text, str):
        raise TypeError(f"encode takes a string, got {type(text).__name__}; decode bytes first")
    return text


def look_up(vocab: dict, ids: Iterable[int]) -> Iterator:
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
