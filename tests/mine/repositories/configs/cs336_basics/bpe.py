from __future__ import annotations

import json
from collections import Counter
from itertools import chain, pairwise
from pathlib import Path

import regex

PATTERN = regex.compile(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


class Trainer:
    def __init__(self, vocab_size: int, special_tokens: list[str]):
        self.vocab_size = vocab_size
        self.special_tokens = list(special_tokens)
        self.vocab = {i: bytes([i]) for i in range(256)}
        for i, token in enumerate(self.special_tokens):
            self.vocab[256 + i] = token.encode()
        self.merges: list[tuple[bytes, bytes]] = []

    def train(self, path):
        text = Path(path).read_bytes().decode("utf-8", "ignore")
        words = self._words(text)
        splits = {word: [bytes([b]) for b in word.encode()] for word in words}
        where: dict[tuple, set] = {}
        total: Counter = Counter()
        for word, split in splits.items():
            for pair in pairwise(split):
                total[pair] += words[word]
                where.setdefault(pair, set()).add(word)
        while len(self.vocab) < self.vocab_size:
            total = +total
            if not total:
                break
            best = max(total.items(), key=lambda item: (item[1], item[0]))[0]
            self.vocab[len(self.vocab)] = b"".join(best)
            self.merges.append(best)
            for word in where.pop(best):
                total.subtract(
                    {p: n * words[word] for p, n in Counter(pairwise(splits[word])).items()}
                )
                splits[word] = apply_merge(splits[word], best)
                for pair in pairwise(splits[word]):
                    total[pair] += words[word]
                    where.setdefault(pair, set()).add(word)
        return self.vocab, self.merges

    def _words(self, text: str) -> Counter:
        words: Counter = Counter()
        for document in split_keeping(text, self.special_tokens)[::2]:
            words.update(m[0] for m in PATTERN.finditer(document))
        return words


def split_keeping(text: str, special_tokens: list[str]) -> list[str]:
    """Documents at the even places, the special tokens between them at the odd ones."""
    if not special_tokens:
        return [text]
    ordered = sorted(special_tokens, key=len, reverse=True)
    return regex.split(f"({'|'.join(regex.escape(t) for t in ordered)})", text)


def apply_merge(tokens: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    tokens = list(tokens)
    i = 0
    while i < len(tokens) - 1:
        if (tokens[i], tokens[i + 1]) == pair:
            tokens[i : i + 2] = [pair[0] + pair[1]]
        i += 1
    return tokens


class Tokenizer:
    def __init__(self, vocab, merges, special_tokens=None):
        self.special_tokens = special_tokens or []
        missing = [t.encode() for t in self.special_tokens if t.encode() not in vocab.values()]
        self.vocab = {**vocab, **dict(enumerate(missing, start=max(vocab) + 1))}
        self.inverse = dict(map(reversed, self.vocab.items()))
        self.merges = {pair: i for i, pair in enumerate(merges)}

    @classmethod
    def from_files(cls, vocab_path, merges_path, special_tokens=None):
        vocab = {
            int(i): bytes.fromhex(t) for i, t in json.loads(Path(vocab_path).read_text()).items()
        }
        lines = Path(merges_path).read_text().splitlines()
        merges = [tuple(bytes.fromhex(t) for t in line.split()) for line in lines]
        return cls(vocab, merges, special_tokens)

    def encode(self, text):
        ids = []
        for i, piece in enumerate(split_keeping(text, self.special_tokens)):
            if i % 2:
                ids.append(self.inverse[piece.encode()])
            else:
                for match in PATTERN.finditer(piece):
                    ids.extend(self._encode_word(match[0]))
        return ids

    def _encode_word(self, word):
        tokens = [bytes([b]) for b in word.encode()]
        while True:
            ranked = [(self.merges[p], p) for p in pairwise(tokens) if p in self.merges]
            if not ranked:
                return [self.inverse[t] for t in tokens]
            tokens = apply_merge(tokens, min(ranked)[1])

    def encode_iterable(self, iterable):
        # Character by character: a word is over where white space begins, unless a special token
        # is open there.
        text = ""
        for char in chain.from_iterable(iterable):
            if char.isspace() and text and not text[-1].isspace() and not self._is_open(text):
                yield from self.encode(text)
                text = ""
            text += char
        yield from self.encode(text)

    def _is_open(self, text):
        return any(
            text.endswith(token[:n]) for token in self.special_tokens for n in range(1, len(token))
        )

    def decode(self, ids):
        return b"".join([self.vocab[i] for i in ids]).decode("utf-8", errors="replace")
