"""Wrong solutions of `train_bpe`: each is a plain trainer with one of its steps done wrongly.

`WRONG` holds them with words that the check must say.
"""

import re as stdlib_re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import regex as re

GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
WRONG: list[tuple[type, str]] = []


def mistake(words):
    """Put a class on the list, with words that the check must say of it."""

    def add(wrong):
        WRONG.append((wrong, words))
        return wrong

    return add


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


@mistake("took the first seen")
class MostCommon(Plain):
    def best(self, counts):
        return counts.most_common(1)[0][0]


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


@mistake("joined to one string")
class Joined(Plain):
    def key(self, pair):
        return self.vocab[pair[0]] + self.vocab[pair[1]]


@mistake("decoded text")
class DecodedText(Plain):
    def key(self, pair):
        return tuple(self.vocab[i].decode("utf-8", errors="replace") for i in pair)


@mistake("before the longer one")
class HeapNegatedBytes(Plain):
    def key(self, pair):  # what a min-heap of (-count, negated bytes) pops first
        return [[*(b - 256 for b in self.vocab[i]), 0] for i in pair]


@mistake("only the first part")
class FirstPart(Plain):
    def key(self, pair):
        return self.vocab[pair[0]]


@mistake("took the longer one")
class Longer(Plain):
    def key(self, pair):
        return len(self.vocab[pair[0]] + self.vocab[pair[1]])


@mistake("second part before the first")
class SecondFirst(Plain):
    def key(self, pair):
        return self.vocab[pair[1]], self.vocab[pair[0]]


# Special tokens.
@mistake("counted and merged like text")
class SpecialsCounted(Plain):
    def split(self, text):
        return [text]


@mistake("counted and merged like text")
class SpecialsKept(Plain):
    def split(self, text):
        if not self.special_tokens:
            return [text]
        return re.split("(" + "|".join(map(re.escape, self.special_tokens)) + ")", text)


@mistake("glued together")
class SpecialsGlued(Plain):
    def split(self, text):
        for token in self.special_tokens:
            text = text.replace(token, "")
        return [text]


@mistake("use `re.escape`")
class SpecialsUnescaped(Plain):
    def split(self, text):
        return re.split("|".join(self.special_tokens), text) if self.special_tokens else [text]


@mistake("Only the first special token")
class OneSpecial(Plain):
    def split(self, text):
        return text.split(self.special_tokens[0]) if self.special_tokens else [text]


@mistake("list of special tokens is empty")
class NeedsASpecial(Plain):
    def split(self, text):
        return text.split(self.special_tokens[0])


@mistake("empty pattern")
class EmptyPattern(Plain):
    def split(self, text):
        return re.split("|".join(map(re.escape, self.special_tokens)), text)


@mistake("replaced by a space")
class SpecialsToSpaces(Plain):
    def split(self, text):
        for token in self.special_tokens:
            text = text.replace(token, " ")
        return [text]


@mistake("was stripped")
class PartsStripped(Plain):
    def split(self, text):
        return [part.strip() for part in super().split(text)]


@mistake("Only <|endoftext|>")
class OnlyEndOfText(Plain):
    def split(self, text):
        return text.split("<|endoftext|>") if self.special_tokens else [text]


@mistake("belong to the vocabulary")
class SpecialsNotInVocab(Plain):
    def result(self, merges):
        specials = [token.encode() for token in self.special_tokens]
        tokens = [token for token in self.vocab.values() if token not in specials]
        return dict(enumerate(tokens)), merges


@mistake("belong to `vocab_size`")
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


@mistake("taken for the number of merges")
class SizeIsMerges(Plain):
    def num_merges(self, vocab_size):
        return vocab_size


# Pre-tokens.
def pattern(expression, words, compile=re.compile):
    """A trainer with another pattern."""
    search = compile(expression)
    other = type("Pattern", (Plain,), {"pretokens": lambda self, part: search.findall(part)})
    mistake(words)(other)


pattern(r"(?s).+", "no pre-tokenisation")
pattern(r"\S+", "split at white space")
pattern(r"\S+|\s+", "pre-token of its own")
pattern(r" ?\S+|\s+(?!\S)|\s+", "words with the space before them")
pattern(r"\w+|[^\w\s]+", r"`\w+`, which loses the white space")
pattern(r"'(?:[sdmt]|ll|ve|re)| ?\w+| ?[^\s\w]+|\s+(?!\S)|\s+", r"replaced by `\w`")
pattern(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+",
    "GPT-4's pre-tokenisation",
)
pattern(GPT2.replace(r"|\s+(?!\S)", ""), "is missing: of several spaces")
pattern(GPT2.replace("'(?:[sdmt]|ll|ve|re)|", ""), "contractions")
pattern(GPT2.replace(" ?", ""), "optional space")
pattern(GPT2.replace("'(?:", "'(?i:"), "in capitals")
pattern(GPT2.replace(r"\p{L}", "A-Za-z").replace(" ?A-Za-z+", " ?[A-Za-z]+"), "letters")
pattern(
    r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?[^\s\w]+| ?_+|\s+(?!\S)|\s+",
    "Python's `re`",
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


@mistake("spaces are lost")
class Stripped(Plain):
    def pretokens(self, part):
        return [token.strip() for token in super().pretokens(part) if token.strip()]


@mistake("borders fall inside words")
class BlockByBlock(Plain):
    def words(self, text):
        counts = Counter()
        for start in range(0, len(text), 65536):
            for part in self.split(text[start : start + 65536]):
                counts.update(self.pretokens(part))
        return [(self.ids(token), count) for token, count in counts.items()]


@mistake("starts from bytes")
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


@mistake("ends of the text was stripped")
class FileStripped(Plain):
    def read(self, input_path):
        return super().read(input_path).strip()


# Counting and merging.
@mistake("Each different pre-token was counted once")
class UniqueWords(Plain):
    def words(self, text):
        return [(ids, 1) for ids, _ in super().words(text)]


@mistake("A pair that a word holds twice was counted once")
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


@mistake("Only the first place")
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


@mistake("once and never again")
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


@mistake("counts are stale")
class NewPairsForgotten(Incremental):
    def pair_counts(self, words):
        fresh = Plain.pair_counts(self, words)
        self.counts = getattr(self, "counts", fresh)
        self.counts = Counter({pair: fresh[pair] for pair in self.counts if fresh[pair]})
        return self.counts.copy()


@mistake("Something is kept from call to call")
class KeepsCounts(Plain):
    def words(self, text, kept=Counter()):  # noqa: B006 - this is the mistake
        kept.update(token for part in self.split(text) for token in self.pretokens(part))
        return [(self.ids(token), count) for token, count in kept.items()]


# The end of training.
@mistake("occurs only once")
class StopsAtOne(Plain):
    def finished(self, counts):
        return not counts or max(counts.values()) < 2


@mistake("may run out of pairs")
class NeverFinished(Plain):
    def finished(self, counts):
        return False


@mistake("may run out of pairs")
class WaitsForSize(Plain):
    def __call__(self, input_path, vocab_size, special_tokens):
        vocab, merges = super().__call__(input_path, vocab_size, special_tokens)
        while len(vocab) < vocab_size:
            pass
        return vocab, merges


@mistake("hopelessly slow")
class WholeText(Plain):
    def words(self, text):
        return [(self.ids(token), 1) for part in self.split(text) for token in self.pretokens(part)]


# The form of the result.
@mistake("swapped")
class Swapped(Plain):
    def result(self, merges):
        return merges, self.vocab


@mistake("wrong way round")
class Inverted(Plain):
    def result(self, merges):
        return {token: i for i, token in self.vocab.items()}, merges


@mistake("not their ids")
class MergesAreIds(Plain):
    def result(self, merges):
        ids = {token: i for i, token in self.vocab.items()}
        return self.vocab, [(ids[a], ids[b]) for a, b in merges]


@mistake("not text")
class MergesAreText(Plain):
    def result(self, merges):
        return self.vocab, [(a.decode("latin-1"), b.decode("latin-1")) for a, b in merges]


@mistake("two parts, not joined")
class MergesJoined(Plain):
    def result(self, merges):
        return self.vocab, [a + b for a, b in merges]


@mistake("not a dict")
class MergesRanked(Plain):
    def result(self, merges):
        return self.vocab, {pair: rank for rank, pair in enumerate(merges)}


@mistake("special token too is kept as bytes")
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


@mistake("the byte b is `bytes([b])`")
class CharactersForBytes(Plain):
    def result(self, merges):
        return {i: chr(t[0]).encode() if len(t) == 1 else t for i, t in self.vocab.items()}, merges


@mistake("two parts joined")
class WrongTokenStored(Plain):
    def result(self, merges):
        last = merges[-1]
        self.vocab[len(self.vocab) - 1] = last[1] + last[0]
        return self.vocab, merges


@mistake("have gaps")
class Gaps(Plain):
    def result(self, merges):
        return {2 * i: token for i, token in self.vocab.items()}, merges
