"""Right tokenizers, written the way different people write them."""

import json
import pickle
from collections.abc import Iterator

import numpy as np
import regex as re

from attempts.bpe_right import GPT2, merged


def gpt2_bytes():
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names = {b: chr(b) for b in visible}
    for b in range(256):
        names.setdefault(b, chr(256 + len(names) - len(visible)))
    return {name: b for b, name in names.items()}


class Ranked:
    """Merges the pair of the lowest rank, over and over; keeps back the text after the last gap."""

    def __init__(self, vocab, merges, special_tokens=None):
        self.vocab = dict(vocab)
        self.special_tokens = sorted(special_tokens or [], key=len, reverse=True)
        for token in special_tokens or []:
            if token.encode() not in self.vocab.values():
                self.vocab[len(self.vocab)] = token.encode()
        self.ids = {token: i for i, token in self.vocab.items()}
        self.ranks = {pair: i for i, pair in enumerate(merges)}

    @classmethod
    def from_files(cls, vocab_filepath, merges_filepath, special_tokens=None):
        byte_of = gpt2_bytes()

        def spelt(name):
            return bytes(byte_of[c] for c in name)

        with open(vocab_filepath, encoding="utf-8") as f:
            vocab = {i: spelt(name) for name, i in json.load(f).items()}
        with open(merges_filepath, encoding="utf-8") as f:
            merges = [tuple(spelt(name) for name in line.rstrip("\n").split(" ")) for line in f]
        return cls(vocab, merges, special_tokens)

    def parts(self, text):
        if not self.special_tokens:
            return [text]
        return re.split("(" + "|".join(map(re.escape, self.special_tokens)) + ")", text)

    def encode(self, text):
        ids = []
        for part in self.parts(text):
            if part in self.special_tokens:
                ids.append(self.ids[part.encode()])
            else:
                for match in re.finditer(GPT2, part):
                    ids.extend(self.word(match.group().encode()))
        return ids

    def word(self, data):
        symbols = [bytes([b]) for b in data]
        while len(symbols) > 1:
            pairs = [(symbols[i], symbols[i + 1]) for i in range(len(symbols) - 1)]
            best = min(pairs, key=lambda pair: self.ranks.get(pair, float("inf")))
            if best not in self.ranks:
                break
            symbols = merged(symbols, best)
        return [self.ids[symbol] for symbol in symbols]

    def encode_iterable(self, iterable) -> Iterator[int]:
        kept = ""
        for piece in iterable:
            kept += piece
            gaps = [match.start() for match in re.finditer(r"(?<=\S)\s", kept)]
            if gaps:
                yield from self.encode(kept[: gaps[-1]])
                kept = kept[gaps[-1] :]
        yield from self.encode(kept)

    def decode(self, ids):
        return b"".join(self.vocab[i] for i in ids).decode("utf-8", errors="replace")


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
            if len(kept) > 65536:
                cut = max(m.start() for m in re.finditer(r"(?<=\S)\s", kept))
                yield from self.encode(kept[:cut])
                kept = kept[cut:]
        yield from self.encode(kept)


class OtherNames(Ranked):
    """Calls its arguments by other names, in another order, and wants them all."""

    def __init__(self, bpe_merges, vocabulary, specials):
        super().__init__(vocabulary, bpe_merges, specials)

    @classmethod
    def from_files(cls, path_of_vocab, path_of_merges, specials=None):
        made = Ranked.from_files(path_of_vocab, path_of_merges, specials)
        return cls(list(made.ranks), made.vocab, specials)


RIGHT = (Ranked, Arrays, WholeWords, OtherNames)
