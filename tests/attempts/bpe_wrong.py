"""Wrong solutions of `train_bpe`: each is a plain trainer with one of its steps done wrongly.

They are what no edit of the reference can express: wrong forms, lost parts of a file, state between
calls, old counts. The others are in `tests/classroom/checks/test_catalogue.py`. `RESULTS` holds
some with words that the check must say; those without words are for tests of their own.
"""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import regex as re

from attempts import lists
from attempts.bpe_right import GPT2, merged


def mistake(words):
    """A decorator: the check must call what an object of this class does by these words."""
    return lambda one: lists.mistake("train_bpe", words)(one())


class Plain:
    """Counts all pairs anew for each merge."""

    def __call__(self, input_path, vocab_size, special_tokens):
        self.special_tokens = special_tokens
        words = self.words(Path(input_path).read_bytes().decode("utf-8"))
        vocab = [token.encode() for token in special_tokens] + [bytes([b]) for b in range(256)]
        merges = []
        while len(vocab) < vocab_size:
            counts = Counter()
            for word, count in words:
                for pair in pairwise(word):
                    counts[pair] += count
            if not counts:
                break
            best = self.best(counts)
            merges.append(best)
            vocab.append(best[0] + best[1])
            words = [(self.merge(word, best), count) for word, count in words]
        return dict(enumerate(vocab)), merges

    def split(self, text):
        if not self.special_tokens:
            return [text]
        longest_first = sorted(self.special_tokens, key=len, reverse=True)
        return re.split("|".join(re.escape(token) for token in longest_first), text)

    def pretokens(self, text):
        return [token for part in self.split(text) for token in re.findall(GPT2, part)]

    def words(self, text):
        return in_bytes(Counter(self.pretokens(text)).items())

    def best(self, counts):
        return max(counts, key=lambda pair: (counts[pair], pair))

    def merge(self, word, pair):
        return merged(word, pair)


def in_bytes(counts):
    return [(tuple(bytes([b]) for b in token.encode()), count) for token, count in counts]


class FirstSeen(Plain):
    """Takes the first of the pairs that tie."""

    def best(self, counts):
        return max(counts, key=counts.get)


@mistake("boundaries fall inside words")
class BlockByBlock(Plain):
    def words(self, text):
        blocks = [text[start : start + 65536] for start in range(0, len(text), 65536)]
        return in_bytes(Counter(t for block in blocks for t in self.pretokens(block)).items())


class OnlyEndOfText(Plain):
    def split(self, text):
        return text.split("<|endoftext|>") if self.special_tokens else [text]


@mistake("Something is kept from call to call")
class KeepsCounts(Plain):
    def words(self, text, kept=Counter()):  # noqa: B006 - this is the mistake
        kept.update(self.pretokens(text))
        return in_bytes(kept.items())


class WholeText(Plain):
    """Keeps a word for each of its occurrences."""

    def words(self, text):
        return in_bytes((token, 1) for token in self.pretokens(text))


@mistake("updated with new pairs")
class OldIndex(Plain):
    """Finds no word that holds a token which was merged, so that their counts stay."""

    def merge(self, word, pair):
        return word if len(b"".join(pair)) > 2 else super().merge(word, pair)


@mistake("There is one merge too many")
class OneTooMany(Plain):
    def __call__(self, input_path, vocab_size, special_tokens):
        return super().__call__(input_path, vocab_size + 1, special_tokens)


@mistake("the end of the file is a boundary, too")
class NoLastPart(Plain):
    """Cuts the file into four parts at special tokens, as the course's helper does."""

    def pretokens(self, text):
        starts = [text.find("<|endoftext|>", len(text) // 4 * part) for part in range(1, 4)]
        bounds = sorted({0, *(len(text) if start < 0 else start for start in starts)})
        parts = map(slice, bounds, bounds[1:])
        return [token for part in parts for token in Plain.pretokens(self, text[part])]


@mistake("count from the heap with the current")
class StaleHeap(Plain):
    """Takes the largest count that a pair ever had."""

    def words(self, text):
        self.largest = Counter()
        return super().words(text)

    def best(self, counts):
        self.largest |= counts
        best = super().best({pair: self.largest[pair] for pair in counts})
        self.largest[best] = 0
        return best


@mistake("have the same count, 1")
class Odd(Plain):
    """Nobody foresaw that."""

    def best(self, counts):
        return super().best({pair: counts[pair] - 3 * (b"a" in pair) for pair in counts})


# The form of the result: words that the check must say, and what is made of a right result.
RESULTS = {
    "the vocabulary first": lambda vocab, merges: (merges, vocab),
    "not their ids": lambda vocab, merges: (vocab, [(104, 117)] * len(merges)),
    "not a dict": lambda vocab, merges: (vocab, {pair: i for i, pair in enumerate(merges)}),
    "special tokens too": lambda vocab, merges: (vocab | {0: "<|endoftext|>"}, merges),
    "returns two things": lambda vocab, merges: vocab,
    "holds all 256 bytes": lambda vocab, merges: (
        {i: token for i, token in vocab.items() if token != b"\xff"},
        merges,
    ),
    "two parts joined": lambda vocab, merges: (vocab | {max(vocab): b"odd"}, merges),
    "belong to the vocabulary": lambda vocab, merges: (
        {i: token for i, token in vocab.items() if not token.startswith(b"<|")},
        merges,
    ),
    "have gaps": lambda vocab, merges: ({2 * i: token for i, token in vocab.items()}, merges),
}


def returned(words):
    """A plain trainer that returns something else."""

    def train_bpe(input_path, vocab_size, special_tokens):
        return RESULTS[words](*Plain()(input_path, vocab_size, special_tokens))

    return train_bpe
