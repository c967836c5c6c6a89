"""Wrong solutions of `train_bpe`: each is a plain trainer with one of its steps done wrongly.

They are those that learners write most often, and what no edit of the reference can express: wrong
forms, crashes, lost parts of a file, state between calls. The others are in
`tests/classroom/checks/test_catalogue.py`. `WRONG` holds them with words that the check must say,
`ALMOST` those that are right in use.
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


@mistake("boundaries fall inside words")
class BlockByBlock(Plain):
    def words(self, text):
        counts = Counter()
        for start in range(0, len(text), 65536):
            for part in self.split(text[start : start + 65536]):
                counts.update(self.pretokens(part))
        return [(self.ids(token), count) for token, count in counts.items()]


# Special tokens.
@corner("Only <|endoftext|>")
class OnlyEndOfText(Plain):
    def split(self, text):
        return text.split("<|endoftext|>") if self.special_tokens else [text]


@corner("any number of them or none")
class NeedsEndOfText(Plain):
    def split(self, text):
        return text.split(self.special_tokens[self.special_tokens.index("<|endoftext|>")])


# Counting and merging.
@mistake("Something is kept from call to call")
class KeepsCounts(Plain):
    def words(self, text, kept=Counter()):  # noqa: B006 - this is the mistake
        kept.update(token for part in self.split(text) for token in self.pretokens(part))
        return [(self.ids(token), count) for token, count in kept.items()]


@mistake("far too slow")
class WholeText(Plain):
    def words(self, text):
        return [(self.ids(token), 1) for part in self.split(text) for token in self.pretokens(part)]


class Indexed:
    """Knows which words hold a pair, and mends the counts in these alone; right as it stands."""

    def __call__(self, input_path, vocab_size, special_tokens):
        plain = Plain()
        plain.special_tokens = special_tokens
        self.plain, self.pairs, self.holding, merges = plain, Counter(), {}, []
        parts = plain.split(plain.read(input_path))
        counts = Counter(token.encode() for part in parts for token in plain.pretokens(part))
        self.words = [([bytes([b]) for b in token], n) for token, n in counts.items()]
        for at in range(len(self.words)):
            self.count(at, 1, None)
        self.start()
        while len(merges) < plain.num_merges(vocab_size) and (best := self.best()):
            merges.append(best)
            for at in [*self.holding[best]]:
                self.count(at, -1, best)
                word, n = self.words[at]
                self.words[at] = plain.merge(word, best, b"".join(best)), n
                self.count(at, 1, best)
        return dict(enumerate([*plain.first_tokens(), *map(b"".join, merges)])), merges

    def count(self, at, sign, best):
        word, n = self.words[at]
        for pair in pairwise(word):
            self.pairs[pair] += sign * n
            self.hold(pair, at, best)

    def hold(self, pair, at, best):
        self.holding.setdefault(pair, set()).add(at)

    def start(self):
        pass

    def best(self):
        left = +self.pairs
        return max(left, key=lambda pair: (left[pair], pair)) if left else None


@mistake("updated with new pairs")
class OldIndex(Indexed):
    def hold(self, pair, at, best):
        if best is None or b"".join(best) not in pair:
            super().hold(pair, at, best)
        self.holding.setdefault(pair, set())


@mistake("count from the heap with the current")
class StaleHeap(Indexed):
    """Takes the largest count that a pair ever had."""

    def start(self):
        self.seen = Counter(self.pairs)

    def best(self):
        for pair, count in self.pairs.items():
            self.seen[pair] = max(self.seen[pair], count)
        left = {pair: self.seen[pair] for pair, count in self.pairs.items() if count > 0}
        best = max(left, key=lambda pair: (left[pair], pair), default=None)
        self.seen[best] = 0
        return best


# The end of training.


# The form of the result.
@mistake("the vocabulary first")
class Swapped(Plain):
    def result(self, merges):
        return merges, self.vocab


@mistake("not their ids")
class MergesAreIds(Plain):
    def result(self, merges):
        ids = {token: i for i, token in self.vocab.items()}
        return self.vocab, [(ids[a], ids[b]) for a, b in merges]


@mistake("not a dict")
class MergesRanked(Plain):
    def result(self, merges):
        return self.vocab, {pair: rank for rank, pair in enumerate(merges)}


@mistake("special tokens too")
class SpecialsAreText(Plain):
    def result(self, merges):
        specials = {token.encode() for token in self.special_tokens}
        return {i: t.decode() if t in specials else t for i, t in self.vocab.items()}, merges


@mistake("returns two things")
class OnlyVocab(Plain):
    def result(self, merges):
        return self.vocab


@mistake("holds all 256 bytes")
class OnlySeenBytes(Plain):
    def result(self, merges):
        seen = {b for pair in merges for token in pair for b in token}
        kept = [t for t in self.vocab.values() if len(t) > 1 or t[0] in seen]
        return dict(enumerate(kept)), merges


@mistake("two parts joined")
class WrongTokenStored(Plain):
    def result(self, merges):
        self.vocab[len(self.vocab) - 1] = merges[-1][1] + merges[-1][0]
        return self.vocab, merges


@mistake("belong to the vocabulary")
class SpecialsNotInVocab(Plain):
    def result(self, merges):
        specials = [token.encode() for token in self.special_tokens]
        tokens = [token for token in self.vocab.values() if token not in specials]
        return dict(enumerate(tokens)), merges


@mistake("have gaps")
class Gaps(Plain):
    def result(self, merges):
        return {2 * i: token for i, token in self.vocab.items()}, merges
