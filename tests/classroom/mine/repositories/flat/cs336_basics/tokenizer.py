import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import regex as re

PAT = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def count_words(text, special_tokens):
    longest_first = sorted(special_tokens, key=len, reverse=True)
    separators = "|".join(map(re.escape, longest_first)) or "(?!)"  # which never matches
    counts = Counter()
    for piece in re.split(separators, text):
        counts.update(re.findall(PAT, piece))
    return counts


def merge_word(word, pair):
    out = []
    i = 0
    while i < len(word):
        width = 2 if word[i : i + 2] == pair else 1
        out.append(b"".join(word[i : i + width]))
        i += width
    return tuple(out)


def train_bpe(input_path, vocab_size, special_tokens, **kwargs):
    text = Path(input_path).read_bytes().decode("utf-8")
    words = count_words(text, special_tokens).items()
    counts = {tuple(bytes([b]) for b in word.encode("utf-8")): n for word, n in words}
    vocab = {i: bytes([i]) for i in range(256)}
    vocab |= {256 + i: token.encode("utf-8") for i, token in enumerate(special_tokens)}
    merges = []
    while len(vocab) < vocab_size:
        pair_counts = Counter()
        for word, n in counts.items():
            for pair in pairwise(word):
                pair_counts[pair] += n
        if not pair_counts:
            break
        best = max(pair_counts, key=lambda pair: (pair_counts[pair], pair))
        merges.append(best)
        vocab[len(vocab)] = best[0] + best[1]
        for word in [word for word in counts if best in pairwise(word)]:
            counts[merge_word(word, best)] = counts.pop(word)
    return vocab, merges


def gpt2_bytes():
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names = {b: chr(b) for b in visible}
    for b in range(256):
        names.setdefault(b, chr(256 + len(names) - len(visible)))
    return {name: b for b, name in names.items()}


class Tokenizer:
    def __init__(self, vocab, merges, special_tokens=None):
        self.vocab = dict(vocab)
        self.special_tokens = sorted(special_tokens or [], key=len, reverse=True)
        for token in special_tokens or []:
            if token.encode("utf-8") not in self.vocab.values():
                self.vocab[max(self.vocab) + 1] = token.encode("utf-8")
        self.ids = {token: i for i, token in self.vocab.items()}
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}

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

    def parts(self, text: str) -> list[str]:
        if not self.special_tokens:
            return [text]
        return re.split("(" + "|".join(map(re.escape, self.special_tokens)) + ")", text)

    def encode(self, text: str) -> list[int]:
        ids = []
        for part in self.parts(text):
            if part in self.special_tokens:
                ids.append(self.ids[part.encode("utf-8")])
            else:
                for match in re.finditer(PAT, part):
                    ids.extend(self.word(match.group().encode("utf-8")))
        return ids

    def word(self, data: bytes) -> list[int]:
        word = tuple(bytes([b]) for b in data)
        while len(word) > 1:
            best = min(pairwise(word), key=lambda pair: self.ranks.get(pair, float("inf")))
            if best not in self.ranks:
                break
            word = merge_word(word, best)
        return [self.ids[token] for token in word]

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        kept = ""
        for piece in iterable:
            kept += piece
            # No pre-token goes on from a letter or sign to white space, so that is where it is cut.
            gaps = [match.start() for match in re.finditer(r"(?<=\S)\s", kept)]
            if gaps:
                yield from self.encode(kept[: gaps[-1]])
                kept = kept[gaps[-1] :]
        yield from self.encode(kept)

    def decode(self, ids: list[int]) -> str:
        return b"".join(self.vocab[i] for i in ids).decode("utf-8", errors="replace")
