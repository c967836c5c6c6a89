"""Wrong solutions of `train_bpe`, continued: pre-tokens, counts, merges."""

import re as stdlib_re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import regex as re

from attempts import catalogue
from attempts.bpe_wrong import GPT2, Plain, corner

WRONG, mistake = catalogue()


# Pre-tokens.
def pattern(expression, words, compile=re.compile):
    """A trainer with another pattern."""
    search = compile(expression)
    other = type("Pattern", (Plain,), {"pretokens": lambda self, part: search.findall(part)})
    mistake(words)(other)


pattern(r"(?s).+", "no pre-tokenisation")
pattern(r"\S+", "white space between words is lost")
pattern(r"\S+|\s+", "pre-token of its own")
pattern(r" ?\S+|\s+(?!\S)|\s+", "words with the white space before them")
pattern(r"\w+|[^\w\s]+", "white space between words is lost")
pattern(r"'(?:[sdmt]|ll|ve|re)| ?\w+| ?[^\s\w]+|\s+(?!\S)|\s+", r"instead of `\p{L}`")
pattern(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+",
    "GPT-4's pre-tokenisation",
)
pattern(GPT2.replace(r"|\s+(?!\S)", ""), "is missing: of several spaces")
pattern(GPT2.replace("'(?:[sdmt]|ll|ve|re)|", ""), "contractions")
pattern(GPT2.replace(" ?", ""), "optional space")
pattern(GPT2.replace(" ?[^", "[^"), "from one of its parts")
pattern(GPT2.replace(r"|\s+(?!\S)|\s+", ""), "match white space")
pattern(GPT2.replace(r"(?!\S)|\s+", r"(?!\S)"), "match white space")
pattern(GPT2[len("'(?:[sdmt]|ll|ve|re)|") :] + "|'(?:[sdmt]|ll|ve|re)", "too late in it")
pattern(GPT2.replace("|ll|ve|re", ""), "contractions")
pattern(GPT2.replace(" ?", " *"), "only one space joins")
pattern(GPT2.replace(r"\p{L}+", r"\p{L}"), "A `+` is missing")
pattern(GPT2.replace("}]+", "}]"), "A `+` is missing")
pattern(GPT2.replace(r"\p{L}+| ?\p{N}+", r"[\p{L}\p{N}]+"), "Numbers are separate")
pattern(GPT2.replace("'(?:", "'(?i:"), "in capitals")
pattern(GPT2.replace(r"\p{L}", "A-Za-z").replace(" ?A-Za-z+", " ?[A-Za-z]+"), "beyond ASCII")
pattern(
    r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?[^\s\w]+| ?_+|\s+(?!\S)|\s+",
    "beyond ASCII",
    stdlib_re.compile,
)


@mistake("spans lines")
class LineByLine(Plain):
    def words(self, text):
        lines = text.split("\n")
        lines = [line + "\n" for line in lines[:-1]] + lines[-1:]
        counts = Counter(
            token for line in lines for part in self.split(line) for token in self.pretokens(part)
        )
        return [(self.ids(token), count) for token, count in counts.items()]


@mistake("white space between words is lost")
class Stripped(Plain):
    def pretokens(self, part):
        return [token.strip() for token in super().pretokens(part) if token.strip()]


@mistake("boundaries fall inside words")
class BlockByBlock(Plain):
    def words(self, text):
        counts = Counter()
        for start in range(0, len(text), 65536):
            for part in self.split(text[start : start + 65536]):
                counts.update(self.pretokens(part))
        return [(self.ids(token), count) for token, count in counts.items()]


@mistake("not from bytes")
class Characters(Plain):
    def ids(self, token):
        known = {text: i for i, text in self.vocab.items()}
        for character in token:
            if character.encode() not in known:
                known[character.encode()] = len(self.vocab)
                self.vocab[len(self.vocab)] = character.encode()
        return [known[character.encode()] for character in token]


@mistake("decoded as Latin-1")
class Latin(Plain):
    def read(self, input_path):
        return Path(input_path).read_text(encoding="latin-1")


@mistake("outside ASCII were dropped")
class Ascii(Plain):
    def read(self, input_path):
        return Path(input_path).read_text(encoding="ascii", errors="ignore")


@mistake("ends of the text or of its lines was stripped")
class FileStripped(Plain):
    def read(self, input_path):
        return super().read(input_path).strip()


# Counting and merging.
@mistake("Each distinct pre-token was counted once")
class UniqueWords(Plain):
    def words(self, text):
        return [(ids, 1) for ids, _ in super().words(text)]


@mistake("A pair that occurs twice in a word was counted once")
class OncePerWord(Plain):
    def pair_counts(self, words):
        counts = Counter()
        for word, count in words:
            for pair in set(pairwise(word)):
                counts[pair] += count
        return counts


@mistake("Overlapping pairs were not counted")
class Apart(Plain):
    def pair_counts(self, words):
        counts = Counter()
        for word, count in words:
            i = 0
            while i < len(word) - 1:
                counts[word[i], word[i + 1]] += count
                i += 2 if word[i : i + 2] == word[i + 1 : i + 3] else 1
        return counts


@mistake("Only the first occurrence")
class FirstPlace(Plain):
    def merge(self, word, pair, new):
        for i in range(len(word) - 1):
            if (word[i], word[i + 1]) == pair:
                return [*word[:i], new, *word[i + 2 :]]
        return word


@mistake("from right to left")
class FromRight(Plain):
    def merge(self, word, pair, new):
        return super().merge(word[::-1], pair[::-1], new)[::-1]


@mistake("step over both parts")
class NoStep(Plain):
    def merge(self, word, pair, new):
        return [new if (a, b) == pair else a for a, b in zip(word, [*word[1:], None], strict=True)]


@mistake("compare whole tokens")
class TextReplace(Plain):
    def merge(self, word, pair, new):
        text = "".join(f"{i:03}," for i in word)
        parts = [self.vocab[i] for i in word]
        joined = b"\xff\xff".join(parts)
        spelt = joined.replace(
            self.vocab[pair[0]] + b"\xff\xff" + self.vocab[pair[1]], self.vocab[new]
        )
        known = {token: i for i, token in self.vocab.items()}
        for part in spelt.split(b"\xff\xff"):
            if part not in known:
                known[part] = len(self.vocab)
                self.vocab[len(self.vocab)] = part
        return [known[part] for part in spelt.split(b"\xff\xff")] if text else word


@mistake("one symbol was skipped")
class Skips(Plain):
    def merge(self, word, pair, new):
        word, i = [*word], 0
        while i < len(word) - 1:
            if (word[i], word[i + 1]) == pair:
                word[i : i + 2] = [new]
                i += 1
            i += 1
        return word


class Incremental(Plain):
    """Counts once and mends; `mend` is what the wrong ones do badly."""

    def pair_counts(self, words):
        if not hasattr(self, "counts"):
            self.counts = super().pair_counts(words)
        return Counter({pair: count for pair, count in self.counts.items() if count > 0})

    def __call__(self, *args):
        vars(self).clear()
        return super().__call__(*args)

    def best(self, counts):
        pair = super().best(counts)
        self.counts[pair] = 0
        return pair


@mistake("yours were counted once")
class NeverMended(Incremental):
    pass


@mistake("counts are stale")
class OldPairsStay(Incremental):
    def pair_counts(self, words):
        fresh = Plain.pair_counts(self, words)
        if hasattr(self, "counts"):
            for pair, count in fresh.items():
                if len(self.vocab) - 1 in pair:
                    self.counts[pair] = count
        else:
            self.counts = fresh
        return Counter({pair: count for pair, count in self.counts.items() if count > 0})


@mistake("Something is kept from call to call")
class KeepsCounts(Plain):
    def words(self, text, kept=Counter()):  # noqa: B006 - this is the mistake
        kept.update(token for part in self.split(text) for token in self.pretokens(part))
        return [(self.ids(token), count) for token, count in kept.items()]


# White space beside special tokens.
@mistake("or a newline, next to a special token")
class NewlinesStripped(Plain):
    def split(self, text):
        return [part.strip("\n") for part in super().split(text)]


@mistake("or a newline, next to a special token")
class NewlineTakenAlong(Plain):
    def split(self, text):
        first, *others = super().split(text)
        return [first, *(part.removeprefix("\n") for part in others)]


@corner("white space between special tokens")
class BlankLeftOut(Plain):
    def split(self, text):
        return [part for part in super().split(text) if part.strip()]


@mistake("last byte of the file")
class LastByteLost(Plain):
    def read(self, input_path):
        return Path(input_path).read_bytes()[:-1].decode("utf-8", errors="ignore")


@mistake("when pairs overlap (aaa)")
class OverlapsMendedTwice(Incremental):
    """Walks over the word as it was before the merge, and does not step over what it merged."""

    def words(self, text):
        self.weights = super().words(text)
        return self.weights

    def merge(self, word, pair, new):
        weight = next(count for ids, count in self.current if ids is word)
        for i in range(len(word) - 1):
            if (word[i], word[i + 1]) != pair:
                continue
            if i:
                self.counts[word[i - 1], pair[0]] -= weight
                self.counts[word[i - 1], new] += weight
            if i + 2 < len(word):
                self.counts[pair[1], word[i + 2]] -= weight
                self.counts[new, word[i + 2]] += weight
        return super().merge(word, pair, new)

    def pair_counts(self, words):
        self.current = words
        return super().pair_counts(words)


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


@mistake("the new pair with the neighbour on the left")
class NothingNewOnTheLeft(Indexed):
    def count(self, at, sign, best):
        word, n = self.words[at]
        for pair in pairwise(word):
            if not (best and sign > 0 and pair[1] == b"".join(best)):
                self.pairs[pair] += sign * n
            self.hold(pair, at, best)
