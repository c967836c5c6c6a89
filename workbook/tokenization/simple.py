"""Tokenizers by characters, bytes and words, to compare with byte-pair encoding.

    "the cat"  ->  [116, 104, 101, 32, ...]     characters: the code point of each
               ->  [116, 104, 101, 32, ...]     bytes: the same numbers as long as the text is ASCII
               ->  [1, 7]                       words: 0 stands for one that was never seen

All tokenizers share the interface of `Encoder`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Self

from workbook.tokenization.pretokens import pretokenize
from workbook.tokenization.tokenizer import Encoder


class CharacterTokenizer(Encoder):
    """One token per character; its id is the code point."""

    # From U+0000 to U+10FFFF, whether or not a character is assigned to a number.
    vocab_size = 0x110000

    def decode(self, ids: Iterable[int]) -> str:
        """The characters with these code points."""
        return "".join(map(chr, ids))

    def tokens(self, text: str) -> list[tuple[int, bytes]]:
        """Each character: its code point and its bytes."""
        return [(ord(character), character.encode()) for character in text]

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        # A string is cut between characters, so pieces need no care.
        return map(ord, chain.from_iterable(pieces))


class ByteTokenizer(Encoder):
    """One token per byte of the UTF-8 text."""

    vocab_size = 256
    vocab: Mapping[int, bytes] = {byte: bytes([byte]) for byte in range(vocab_size)}

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        # Bytes are numbers from 0 to 255 already.
        return chain.from_iterable(piece.encode() for piece in pieces)


class WordTokenizer(Encoder):
    """One token per pre-token of GPT-2's pattern; what the vocabulary lacks is `<unk>`, id 0."""

    UNKNOWN = "<unk>"

    def __init__(self, words: Iterable[str]) -> None:
        # First, so that its id is 0 in every vocabulary.
        self.words = list(dict.fromkeys([self.UNKNOWN, *words]))
        self.vocab_size = len(self.words)
        self.vocab = {word_id: word.encode() for word_id, word in enumerate(self.words)}
        self._id_of = {word: word_id for word_id, word in enumerate(self.words)}

    @classmethod
    def from_counts(cls, counts: Counter[str], vocab_size: int) -> Self:
        """The tokenizer of the most frequent words; among equals, those seen first."""
        # One id is taken by `<unk>`.
        return cls(word for word, _ in counts.most_common(vocab_size - 1))

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        # What is not in the vocabulary is lost for good: no id says which word it was.
        return (self._id_of.get(word, 0) for word in pretokenize(pieces))
