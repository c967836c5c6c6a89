"""Right tokenizers, written the way different people write them.

The first one, from which the others derive, is that of a made-up repository.
"""

import pickle

import numpy as np
import regex as re
from made_repositories import module

from attempts.lists import right

Ranked = module("flat", "cs336_basics/tokenizer.py").Tokenizer


class Arrays(Ranked):
    """Gives numpy integers, an iterator object in place of a generator; reads pickled files."""

    @classmethod
    def from_files(cls, vocab_filepath, merges_filepath, special_tokens=None):
        with open(vocab_filepath, "rb") as vocab, open(merges_filepath, "rb") as merges:
            return cls(pickle.load(vocab), pickle.load(merges), special_tokens)

    def encode(self, text):
        return np.array(super().encode(text), dtype=np.uint16)

    def encode_iterable(self, iterable):
        return map(np.uint16, super().encode_iterable(iterable))

    def decode(self, ids):
        return bytearray().join(self.vocab[int(i)] for i in ids).decode(errors="replace")


class WholeWords(Ranked):
    """Looks a word up before it merges, changes the vocabulary it is given, and reads in blocks."""

    block = 65536
    gap = r"(?<=\S)\s"

    def __init__(self, vocab, merges, special_tokens=None):
        for token in special_tokens or []:
            if token.encode() not in vocab.values():
                vocab[len(vocab)] = token.encode()
        super().__init__(vocab, merges, special_tokens)

    def word(self, data):
        return [self.ids[data]] if data in self.ids else super().word(data)

    def encode(self, text):
        return tuple(super().encode(text))

    def encode_iterable(self, iterable):
        kept = ""
        for piece in iterable:
            kept += piece
            if len(kept) > self.block:
                cut = max(m.start() for m in re.finditer(self.gap, kept))
                yield from self.encode(kept[:cut])
                kept = kept[cut:]
        yield from self.encode(kept)


class SmallBlocks(WholeWords):
    block = 8192


class OtherNames(Ranked):
    """Calls its arguments by other names, in another order, and wants them all."""

    def __init__(self, bpe_merges, vocabulary, specials):
        super().__init__(vocabulary, bpe_merges, specials)

    @classmethod
    def from_files(cls, path_of_vocab, path_of_merges, specials=None):
        made = Ranked.from_files(path_of_vocab, path_of_merges, specials)
        return cls(list(made.ranks), made.vocab, specials)


for solution in (Ranked, Arrays, WholeWords, SmallBlocks, OtherNames):
    right("tokenizer")(solution)
