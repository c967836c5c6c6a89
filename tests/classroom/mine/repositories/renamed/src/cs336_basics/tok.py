import os
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise

import regex as re

RULE = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
GAP = re.compile(r"(?<=\S)(?=\s)")


def cut(text, specials):
    """The text around special tokens, and these, in turns: text, special, text ..."""
    rule = "|".join(re.escape(s) for s in sorted(specials, key=len, reverse=True))
    return re.split(f"({rule})", text) if specials else [text]


def join(symbols, a, b):
    done = []
    i = 0
    while i < len(symbols):
        step = 2 if symbols[i : i + 2] == (a, b) else 1
        done.append(b"".join(symbols[i : i + step]))
        i += step
    return tuple(done)


class Trainer:
    def __init__(self, vocab_size: int, special_tokens: list[str]):
        self.vocab_size = vocab_size
        self.special_tokens = special_tokens

    def train(self, input_path: str | os.PathLike):
        with open(input_path, "rb") as handle:
            text = str(handle.read(), "utf-8", "replace")
        corpus = Counter()
        for part in cut(text, self.special_tokens)[::2]:
            corpus.update(m.group() for m in RULE.finditer(part))
        corpus = {tuple(bytes([b]) for b in word.encode()): n for word, n in corpus.items()}
        tokens = [s.encode() for s in self.special_tokens] + [bytes([b]) for b in range(256)]
        merges = []
        while len(tokens) < self.vocab_size:
            seen = defaultdict(int)
            for word, n in corpus.items():
                for i in range(len(word) - 1):
                    seen[word[i], word[i + 1]] += n
            if not seen:
                break
            top = max(seen.values())
            a, b = max(pair for pair in seen if seen[pair] == top)
            corpus = {join(word, a, b) if a in word else word: n for word, n in corpus.items()}
            tokens.append(a + b)
            merges.append((a, b))
        return dict(enumerate(tokens)), merges


class BPE:
    def __init__(self, vocab, merges, special_tokens=None):
        self.specials = tuple(special_tokens or ())
        self.bytes_of = dict(vocab)
        lacking = [s.encode() for s in self.specials if s.encode() not in vocab.values()]
        self.bytes_of |= enumerate(lacking, max(vocab) + 1)
        self.id_of = {piece: i for i, piece in self.bytes_of.items()}
        self.order = {pair: place for place, pair in enumerate(merges)}

    @classmethod
    def from_files(cls, vocab_filepath, merges_filepath, special_tokens=None):
        with open(vocab_filepath) as lines:
            vocab = {i: bytes.fromhex(line) for i, line in enumerate(lines)}
        with open(merges_filepath) as lines:
            merges = [tuple(map(bytes.fromhex, line.split())) for line in lines]
        return cls(vocab, merges, special_tokens)

    def encode(self, text):
        ids = []
        for place, part in enumerate(cut(text, self.specials)):
            if place % 2:
                ids.append(self.id_of[part.encode()])
            else:
                for match in RULE.finditer(part):
                    ids += self.word(match.group())
        return ids

    @cache  # noqa: B019 it lives as long as the tokenizer does
    def word(self, word):
        symbols = tuple(bytes([b]) for b in word.encode())
        while len(symbols) > 1:
            pairs = set(pairwise(symbols))
            pair = min(pairs, key=lambda pair: self.order.get(pair, len(self.order)))
            if pair not in self.order:
                break
            symbols = join(symbols, *pair)
        return [self.id_of[symbol] for symbol in symbols]

    def encode_iterable(self, iterable):
        rest = ""
        for piece in iterable:
            # White space after anything else begins a pre-token, and no special token holds any.
            *settled, rest = GAP.split(rest + piece)
            for text in settled:
                yield from self.encode(text)
        yield from self.encode(rest)

    def decode(self, ids):
        return b"".join(self.bytes_of[i] for i in ids).decode("utf-8", "replace")
