"""Wrong tokenizers: each is a right one with one of its steps done wrongly.

`WRONG` and `ALMOST` hold them with words that the check must say.
"""

from itertools import pairwise

import regex as re

from attempts import catalogue
from attempts.tokenizer_right import GPT2, Ranked
from workbook.tokenization.bpe import merge_pair

WRONG, mistake = catalogue()
ALMOST, corner = catalogue()


class Quick(Ranked):
    """Right, and quick enough for a test: it remembers words."""

    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.known = {}

    def word(self, data):
        if data not in self.known:
            self.known[data] = super().word(data)
        return self.known[data]


# Merging.
@mistake("longest one in the vocabulary")
class Greedy(Quick):
    def word(self, data):
        ids = []
        while data:
            for size in range(len(data), 0, -1):
                if data[:size] in self.ids:
                    ids.append(self.ids[data[:size]])
                    data = data[size:]
                    break
        return ids


@mistake("leftmost pair")
class Leftmost(Quick):
    def word(self, data):
        symbols = [bytes([b]) for b in data]
        i = 0
        while i < len(symbols) - 1:
            if (symbols[i], symbols[i + 1]) in self.ranks:
                symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
                i = 0
            else:
                i += 1
        return [self.ids[symbol] for symbol in symbols]


@mistake("Only one merge was applied")
class OneMerge(Quick):
    def word(self, data):
        symbols = [bytes([b]) for b in data]
        pairs = [pair for pair in pairwise(symbols) if pair in self.ranks]
        if pairs:
            best = min(pairs, key=self.ranks.get)
            i = 0
            while i < len(symbols) - 1:
                if (symbols[i], symbols[i + 1]) == best:
                    symbols[i : i + 2] = [best[0] + best[1]]
                i += 1
        return [self.ids[symbol] for symbol in symbols]


@mistake("No merge was applied")
class OnlyBytes(Quick):
    def word(self, data):
        return [self.ids[bytes([b])] for b in data]


@mistake("at only one place in the word")
class OnePlace(Quick):
    def word(self, data):
        symbols = [bytes([b]) for b in data]
        for pair in self.ranks:
            for i in range(len(symbols) - 1):
                if (symbols[i], symbols[i + 1]) == pair:
                    symbols[i : i + 2] = [pair[0] + pair[1]]
                    break
        return [self.ids[symbol] for symbol in symbols]


@mistake("latest merge was applied first")
class Latest(Quick):
    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.ranks = {pair: -i for i, pair in enumerate(merges)}


@mistake("latest merge was applied first")
class Backwards(Quick):
    def word(self, data):
        symbols = [bytes([b]) for b in data]
        for pair in reversed(self.ranks):
            symbols = merge_pair(symbols, pair)
        return [self.ids[symbol] for symbol in symbols]


@corner("with the smallest id")
class IdsAsRanks(Quick):
    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.ranks = {pair: self.ids[pair[0] + pair[1]] for pair in merges}


@mistake("A word of one byte")
class WantsPairs(Quick):
    def word(self, data):
        symbols = [bytes([b]) for b in data]
        while min(pairs := list(pairwise(symbols)), key=lambda p: self.ranks.get(p, 1e9)):
            best = min(pairs, key=lambda pair: self.ranks.get(pair, 1e9))
            if best not in self.ranks:
                break
            symbols = merge_pair(symbols, best)
        return [self.ids[symbol] for symbol in symbols]


@mistake("an id for unknown words")
class Unknown(Quick):
    def word(self, data):
        return [self.ids.get(data, 0)]


@mistake("one symbol was skipped")
class Skips(Quick):
    def word(self, data):
        symbols = [bytes([b]) for b in data]
        for left, right in self.ranks:
            i = 0
            while i < len(symbols) - 1:
                if (symbols[i], symbols[i + 1]) == (left, right):
                    symbols[i : i + 2] = [left + right]
                    i += 1
                i += 1
        return [self.ids[symbol] for symbol in symbols]


@mistake("last symbol of the word was lost")
class LastLost(Quick):
    def word(self, data):
        symbols = [bytes([b]) for b in data]
        while best := min(
            (pair for pair in pairwise(symbols) if pair in self.ranks),
            key=self.ranks.get,
            default=None,
        ):
            merged, i = [], 0
            while i < len(symbols) - 1:
                found = (symbols[i], symbols[i + 1]) == best
                merged.append(b"".join(best) if found else symbols[i])
                i += 1 + found
            symbols = merged
        return [self.ids[symbol] for symbol in symbols]


@mistake("Something is kept from call to call")
class SharedWords(Quick):
    """A class attribute holds how words fall apart, whatever the merges are."""

    words = {}  # noqa: RUF012 - this is the mistake

    def word(self, data):
        names = {i: token for token, i in self.ids.items()}
        if data not in self.words:
            self.words[data] = [names[i] for i in super().word(data)]
        return [self.ids[symbol] for symbol in self.words[data]]


@mistake("put in front of the text")
class SpaceInFront(Quick):
    def encode(self, text):
        return super().encode(" " + text)


@mistake("was split into bytes")
class WholeOrBytes(Quick):
    def word(self, data):
        return [self.ids[data]] if data in self.ids else [self.ids[bytes([b])] for b in data]


# Pre-tokens.
def pattern(expression, words):
    class Other(Quick):
        def encode(self, text):
            ids = []
            for part in self.parts(text):
                if part in self.special_tokens:
                    ids.append(self.ids[part.encode()])
                else:
                    for token in re.findall(expression, part):
                        ids.extend(self.word(token.encode()))
            return ids

    mistake(words)(Other)


pattern(r"(?s).+", "no pre-tokenisation")
pattern(r"\S+", "white space between words is lost")
pattern(r" ?\S+|\s+(?!\S)|\s+", "words with the white space before them")
pattern(GPT2.replace(r"|\s+(?!\S)", ""), "is missing: of several spaces")
pattern(GPT2.replace("'(?:[sdmt]|ll|ve|re)|", ""), "contractions")
pattern(r"'(?:[sdmt]|ll|ve|re)| ?\w+| ?[^\s\w]+|\s+(?!\S)|\s+", r"`\w`")


# Special tokens.
@mistake("treated like ordinary text")
class NoSpecials(Quick):
    def parts(self, text):
        return [text]


@mistake("use `re.escape`")
class Unescaped(Quick):
    def parts(self, text):
        if not self.special_tokens:
            return [text]
        return [part for part in re.split(f"({'|'.join(self.special_tokens)})", text) if part]


@mistake("which escapes the | as well")
class EscapedTogether(Quick):
    def parts(self, text):
        if not self.special_tokens:
            return [text]
        return re.split("(" + re.escape("|".join(self.special_tokens)) + ")", text)


@mistake("longest wins")
class Unsorted(Quick):
    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.special_tokens = list(special_tokens or [])


@mistake("longest wins")
class OneAfterAnother(Unsorted):
    def parts(self, text):
        parts = [text]
        for token in self.special_tokens:
            parts = [
                piece
                for part in parts
                for piece in (
                    [part]
                    if part in self.special_tokens
                    else re.split(f"({re.escape(token)})", part)
                )
            ]
        return parts


@mistake("longest wins")
class ShortestFirst(OneAfterAnother):
    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, sorted(special_tokens or [], key=len))


@corner("`from_files` does not make a tokenizer")
class ReturnsNothing(Quick):
    @classmethod
    def from_files(cls, *arguments):
        cls.made = super().from_files(*arguments)


@mistake("Only the first of the special tokens")
class OneSpecial(Quick):
    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.special_tokens = (special_tokens or [])[:1]


@mistake("missing from the ids")
class SpecialsDropped(Quick):
    def parts(self, text):
        if not self.special_tokens:
            return [text]
        return re.split("|".join(map(re.escape, self.special_tokens)), text)


@mistake("white space around them")
class SpecialsAsWords(Quick):
    def parts(self, text):
        if not self.special_tokens:
            return [text]
        tokens = "|".join(map(re.escape, self.special_tokens))
        return re.split(rf"(?<!\S)({tokens})(?!\S)", text)


@corner("appended")
class NotAppended(Quick):
    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.ids = {token: i for i, token in vocab.items()}


@mistake("special_tokens is None")
class NeedsSpecials(Quick):
    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.special_tokens = sorted(special_tokens, key=len, reverse=True)


@mistake("empty pattern")
class EmptyPattern(Quick):
    def parts(self, text):
        return re.split("(" + "|".join(map(re.escape, self.special_tokens)) + ")", text)


@corner("`from_files` is still missing")
class NoFiles(Quick):
    from_files = None


@corner("empty pattern")
class EmptyListAsPattern(Quick):
    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.given = special_tokens

    def parts(self, text):
        if self.given is None:
            return [text]
        return re.split("(" + "|".join(map(re.escape, self.special_tokens)) + ")", text)


@corner("though it is not in `special_tokens`")
class AlwaysEndOfText(Quick):
    def __init__(self, vocab, merges, special_tokens=None):
        more = ["<|endoftext|>"] if b"<|endoftext|>" in vocab.values() else []
        super().__init__(vocab, merges, [*(special_tokens or []), *more])


# Ids.
@mistake("yours were counted up")
class BytesAreIds(Quick):
    def word(self, data):
        names = {i: token for token, i in self.ids.items()}
        return [names[i][0] if len(names[i]) == 1 else i for i in super().word(data)]


@mistake("yours were counted up")
class MergeIndex(Quick):
    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.ids |= {bytes([b]): b for b in range(256)}
        self.ids |= {a + b: 256 + i for i, (a, b) in enumerate(merges)}
