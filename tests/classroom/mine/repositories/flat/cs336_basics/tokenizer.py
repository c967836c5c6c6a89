import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

import regex as re

PAT = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def merge_word(word, pair):
    out, i = [], 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return tuple(out)


def train_bpe(input_path, vocab_size, special_tokens, **kwargs):
    with open(input_path, "rb") as f:
        text = f.read().decode("utf-8", errors="replace")
    pieces = [text]
    if special_tokens:
        longest_first = sorted(special_tokens, key=len, reverse=True)
        pieces = re.split("|".join(re.escape(t) for t in longest_first), text)

    counts = Counter()
    for piece in pieces:
        for match in re.finditer(PAT, piece):
            counts[tuple(bytes([b]) for b in match.group().encode("utf-8"))] += 1

    pair_counts = Counter()
    words_with = defaultdict(set)
    for word, n in counts.items():
        for pair in pairwise(word):
            pair_counts[pair] += n
            words_with[pair].add(word)

    vocab = {i: bytes([i]) for i in range(256)}
    for token in special_tokens:
        vocab[len(vocab)] = token.encode("utf-8")
    merges = []
    while len(vocab) < vocab_size and pair_counts:
        best = max(pair_counts, key=lambda pair: (pair_counts[pair], pair))
        merges.append(best)
        vocab[len(vocab)] = best[0] + best[1]
        for word in list(words_with[best]):
            n = counts.pop(word)
            for pair in pairwise(word):
                pair_counts[pair] -= n
                words_with[pair].discard(word)
                if pair_counts[pair] == 0:
                    del pair_counts[pair]
            new = merge_word(word, best)
            counts[new] = n
            for pair in pairwise(new):
                pair_counts[pair] += n
                words_with[pair].add(new)
    return vocab, merges


class Tokenizer:
    def __init__(self, vocab, merges, special_tokens=None):
        self.vocab = dict(vocab)
        self.special_tokens = sorted(special_tokens or [], key=len, reverse=True)
        known = set(self.vocab.values())
        for token in special_tokens or []:
            if token.encode("utf-8") not in known:
                self.vocab[max(self.vocab) + 1] = token.encode("utf-8")
                known.add(token.encode("utf-8"))
        self.ids = {token: i for i, token in self.vocab.items()}
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.pattern = None
        if self.special_tokens:
            self.pattern = re.compile("|".join(re.escape(t) for t in self.special_tokens))

    @classmethod
    def from_files(cls, vocab_filepath, merges_filepath, special_tokens=None):
        with open(vocab_filepath) as f:
            vocab = {int(i): bytes(token) for i, token in json.load(f).items()}
        with open(merges_filepath) as f:
            merges = [(bytes(left), bytes(right)) for left, right in json.load(f)]
        return cls(vocab, merges, special_tokens)

    def encode(self, text: str) -> list[int]:
        ids, start = [], 0
        for match in self.pattern.finditer(text) if self.pattern else ():
            ids += self._encode_ordinary(text[start : match.start()])
            ids.append(self.ids[match.group().encode("utf-8")])
            start = match.end()
        return ids + self._encode_ordinary(text[start:])

    def _encode_ordinary(self, text: str) -> list[int]:
        ids = []
        for match in re.finditer(PAT, text):
            word = tuple(bytes([b]) for b in match.group().encode("utf-8"))
            while len(word) > 1:
                pairs = list(pairwise(word))
                best = min(pairs, key=lambda pair: self.ranks.get(pair, float("inf")))
                if best not in self.ranks:
                    break
                word = merge_word(word, best)
            ids += [self.ids[token] for token in word]
        return ids

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        buffer = ""
        for chunk in iterable:
            buffer += chunk
            cut = self._safe_cut(buffer)
            yield from self.encode(buffer[:cut])
            buffer = buffer[cut:]
        yield from self.encode(buffer)

    def _safe_cut(self, text: str) -> int:
        # No pre-token goes on from a letter or sign to white space, so that is where it is cut.
        # What may be the start of a special token stays in the buffer.
        end = len(text) - max((len(t) for t in self.special_tokens), default=0)
        inside = set()
        for match in self.pattern.finditer(text) if self.pattern else ():
            inside.update(range(match.start() + 1, match.end()))
        for i in range(end, 0, -1):
            if i == len(text) or i in inside:
                continue
            if text[i].isspace() and not text[i - 1].isspace():
                return i
        return 0

    def decode(self, ids: list[int]) -> str:
        return b"".join(self.vocab[i] for i in ids).decode("utf-8", errors="replace")
