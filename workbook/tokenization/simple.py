"""Tokenizers by characters, bytes and words, to compare with byte-pair encoding.

    "the cat"  ->  [116, 104, 101, 32, ...]     characters: the code point of each
               ->  [116, 104, 101, 32, ...]     bytes: the same numbers as long as the text is ASCII
               ->  [1, 7]                       words: 0 stands for one that was never seen

All tokenizers share the interface of `Encoder`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Self

from workbook.tokenization.pretokens import pretokenize
from workbook.tokenization.tokenizer import Encoder, look_up_tokens


class CharacterTokenizer(Encoder):
    """One token per character; its id is the code point."""

    vocab_size = 0x110000

    def decode(self, ids: Iterable[int]) -> str:
        """The characters with these code points."""
        return "".join(map(chr, ids))

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        return map(ord, chain.from_iterable(pieces))


class ByteTokenizer(Encoder):
    """One token per byte of the UTF-8 text."""

    vocab_size = 256

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these bytes; bytes that are not UTF-8 become U+FFFD."""
        return bytes(ids).decode("utf-8", errors="replace")

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        return chain.from_iterable(piece.encode() for piece in pieces)

    def _token(self, token_id: int) -> bytes:
        return bytes([token_id])


class WordTokenizer(Encoder):
    """One token per pre-token of GPT-2's pattern; what the vocabulary lacks is `<unk>`, id 0."""

    UNKNOWN = "<unk>"

    def __init__(self, words: Iterable[str]) -> None:
        self.words = list(dict.fromkeys([self.UNKNOWN, *words]))
        self.vocab_size = len(self.words)
        self._id_of = {word: word_id for word_id, word in enumerate(self.words)}

    @classmethod
    def from_counts(cls, counts: Counter[str], vocab_size: int) -> Self:
        """The tokenizer of the most frequent words; among equals, those seen first."""
        return cls(word for word, _ in counts.most_common(vocab_size - 1))

    def decode(self, ids: Iterable[int]) -> str:
        """The words joined; an unknown word is `<unk>`."""
        return "".join(look_up_tokens(dict(enumerate(self.words)), ids))

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        return (self._id_of.get(word, 0) for word in pretokenize(pieces))

    def _token(self, token_id: int) -> bytes:
        return self.words[token_id].encode()
