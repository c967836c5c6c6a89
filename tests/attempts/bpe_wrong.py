"""Wrong solutions of `train_bpe`: each is a plain trainer with one of its steps done wrongly.

`WRONG` holds them with words that the check must say, `ALMOST` those that are right in use.
"""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import regex as re

from attempts import catalogue

GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
WRONG, mistake = catalogue()
ALMOST, corner = catalogue()


class Plain:
    """Counts all pairs anew for each merge; keeps words as lists of ids."""

    def __call__(self, input_path, vocab_size, special_tokens):
        self.special_tokens = special_tokens
        self.vocab = dict(enumerate(self.first_tokens()))
        words = self.words(self.read(input_path))
        merges = []
        for _ in range(self.num_merges(vocab_size)):
            counts = self.pair_counts(words)
            if self.finished(counts):
                break
            pair = self.best(counts)
            merges.append((self.vocab[pair[0]], self.vocab[pair[1]]))
            new = len(self.vocab)
            self.vocab[new] = self.vocab[pair[0]] + self.vocab[pair[1]]
            words = [(self.merge(word, pair, new), count) for word, count in words]
        return self.result(merges)

    def read(self, input_path):
        return Path(input_path).read_bytes().decode("utf-8")

    def first_tokens(self):
        return [token.encode() for token in self.special_tokens] + [bytes([b]) for b in range(256)]

    def split(self, text):
        if not self.special_tokens:
            return [text]
        longest_first = sorted(self.special_tokens, key=len, reverse=True)
        return re.split("|".join(re.escape(token) for token in longest_first), text)

    def pretokens(self, part):
        return re.findall(GPT2, part)

    def words(self, text):
        counts = Counter(token for part in self.split(text) for token in self.pretokens(part))
        return [(self.ids(token), count) for token, count in counts.items()]

    def ids(self, token):
        return [len(self.special_tokens) + byte for byte in token.encode()]

    def num_merges(self, vocab_size):
        return vocab_size - 256 - len(self.special_tokens)

    def pair_counts(self, words):
        counts = Counter()
        for word, count in words:
            for pair in pairwise(word):
                counts[pair] += count
        return counts

    def finished(self, counts):
        return not counts

    def key(self, pair):
        return self.vocab[pair[0]], self.vocab[pair[1]]

    def best(self, counts):
        return max(counts, key=lambda pair: (counts[pair], self.key(pair)))

    def merge(self, word, pair, new):
        out, i = [], 0
        while i < len(word):
            if tuple(word[i : i + 2]) == pair:
                out.append(new)
                i += 2
            else:
                out.append(word[i])
                i += 1
        return out

    def result(self, merges):
        return self.vocab, merges


# Ties.
@mistake("took the first seen")
class FirstSeen(Plain):
    def best(self, counts):
        return max(counts, key=counts.get)


@mistake("took the smaller pair")
class Smaller(Plain):
    def best(self, counts):
        return min(counts, key=lambda pair: (-counts[pair], self.key(pair)))


@mistake("last seen")
class LastSeen(Plain):
    def best(self, counts):
        best = None
        for pair in counts:
            if best is None or counts[pair] >= counts[best]:
                best = pair
        return best


@mistake("compared their ids")
class Ids(Plain):
    def key(self, pair):
        return pair


@mistake("joined into one string")
class Joined(Plain):
    def key(self, pair):
        return self.vocab[pair[0]] + self.vocab[pair[1]]


@mistake("decoded text")
class DecodedText(Plain):
    def key(self, pair):
        return tuple(self.vocab[i].decode("utf-8", errors="replace") for i in pair)


@mistake("above a longer one")
class HeapNegatedBytes(Plain):
    def key(self, pair):  # what a min-heap of (-count, negated bytes) pops first
        return [[*(b - 256 for b in self.vocab[i]), 0] for i in pair]


@mistake("took the longer one")
class Longer(Plain):
    def key(self, pair):
        return len(self.vocab[pair[0]] + self.vocab[pair[1]])


@mistake("the second part first")
class SecondFirst(Plain):
    def key(self, pair):
        return self.vocab[pair[1]], self.vocab[pair[0]]


# Special tokens.
@mistake("treated like ordinary text")
class SpecialsCounted(Plain):
    def split(self, text):
        return [text]


@mistake("treated like ordinary text")
class SpecialsKept(Plain):
    def split(self, text):
        if not self.special_tokens:
            return [text]
        return re.split("(" + "|".join(map(re.escape, self.special_tokens)) + ")", text)


@mistake("on both sides joined")
class SpecialsGlued(Plain):
    def split(self, text):
        for token in self.special_tokens:
            text = text.replace(token, "")
        return [text]


@mistake("use `re.escape`")
class SpecialsUnescaped(Plain):
    def split(self, text):
        return re.split("|".join(self.special_tokens), text) if self.special_tokens else [text]


@corner("Only the first of the special tokens")
class OneSpecial(Plain):
    def split(self, text):
        return text.split(self.special_tokens[0]) if self.special_tokens else [text]


@corner("empty pattern")
class EmptyPattern(Plain):
    def split(self, text):
        return re.split("|".join(map(re.escape, self.special_tokens)), text)


@mistake("replaced by a space")
class SpecialsToSpaces(Plain):
    def split(self, text):
        for token in self.special_tokens:
            text = text.replace(token, " ")
        return [text]


@mistake("next to a special token was dropped")
class PartsStripped(Plain):
    def split(self, text):
        return [part.strip() for part in super().split(text)]


@corner("Only <|endoftext|>")
class OnlyEndOfText(Plain):
    def split(self, text):
        return text.split("<|endoftext|>") if self.special_tokens else [text]


@corner("any number of them or none")
class NeedsEndOfText(Plain):
    def split(self, text):
        return text.split(self.special_tokens[self.special_tokens.index("<|endoftext|>")])


@mistake("belong to the vocabulary")
class SpecialsNotInVocab(Plain):
    def result(self, merges):
        specials = [token.encode() for token in self.special_tokens]
        tokens = [token for token in self.vocab.values() if token not in specials]
        return dict(enumerate(tokens)), merges


@mistake("`vocab_size` includes")
class SpecialsOnTop(Plain):
    def num_merges(self, vocab_size):
        return vocab_size - 256


@mistake("off by one")
class OneTooFew(Plain):
    def num_merges(self, vocab_size):
        return super().num_merges(vocab_size) - 1


@mistake("off by one")
class OneTooMany(Plain):
    def num_merges(self, vocab_size):
        return super().num_merges(vocab_size) + 1


@mistake("`vocab_size` includes")
class SizeIsMerges(Plain):
    def num_merges(self, vocab_size):
        return vocab_size
