import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import regex as re

PAT = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def merge_word(word, pair):
    out, i = [], 0
    while i < len(word):
        width = 2 if word[i : i + 2] == pair else 1
        out.append(b"".join(word[i : i + width]))
        i += width
    return tuple(out)


def train_bpe(input_path, vocab_size, special_tokens, **kwargs):
    text = Path(input_path).read_bytes().decode("utf-8", errors="replace")
    longest_first = sorted(special_tokens, key=len, reverse=True)
    separators = "|".join(map(re.escape, longest_first)) or "(?!)"  # which never matches
    counts = Counter()
    for piece in re.split(separators, text):
        for match in re.finditer(PAT, piece):
            counts[tuple(bytes([b]) for b in match.group().encode("utf-8"))] += 1
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


class Tokenizer:
    def __init__(self, vocab, merges, special_tokens=None):
        self.vocab = dict(vocab)
        for token in special_tokens or []:
            if token.encode("utf-8") not in self.vocab.values():
                self.vocab[max(self.vocab) + 1] = token.encode("utf-8")
        self.ids = {token: i for i, token in self.vocab.items()}
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        longest_first = sorted(special_tokens or [], key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    @classmethod
    def from_files(cls, vocab_filepath, merges_filepath, special_tokens=None):
        with open(vocab_filepath) as f:
            vocab = {int(i): bytes(token) for i, token in json.load(f).items()}
        with open(merges_filepath) as f:
            merges = [(bytes(left), bytes(right)) for left, right in json.load(f)]
        return cls(vocab, merges, special_tokens)

    def encode(self, text: str) -> list[int]:
        ids, start = [], 0
        for match in self.pattern.finditer(text):
            ids += self._encode_ordinary(text[start : match.start()])
            ids.append(self.ids[match.group().encode("utf-8")])
            start = match.end()
        return ids + self._encode_ordinary(text[start:])

    def _encode_ordinary(self, text: str) -> list[int]:
        ids = []
        for match in re.finditer(PAT, text):
            word = tuple(bytes([b]) for b in match.group().encode("utf-8"))
            while len(word) > 1:
                best = min(pairwise(word), key=lambda pair: self.ranks.get(pair, float("inf")))
                if best not in self.ranks:
                    break
                word = merge_word(word, best)
            ids += [self.ids[token] for token in word]
        return ids

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        buffer = ""
        for chunk in iterable:
            buffer += chunk
            # No pre-token goes on from a letter or sign to white space, so that is where it is cut.
            cut = max((m.start() for m in re.finditer(r"(?<=\S)\s", buffer)), default=0)
            yield from self.encode(buffer[:cut])
            buffer = buffer[cut:]
        yield from self.encode(buffer)

    def decode(self, ids: list[int]) -> str:
        return b"".join(self.vocab[i] for i in ids).decode("utf-8", errors="replace")
