"""Wrong tokenizers: each is a right one with one of its steps done wrongly.

They are those that learners write most often, and what no edit of the reference can express:
crashes, wrong types, state between calls, streams that are not lazy, missing pieces.
`tests/classroom/checks/test_catalogue.py` has the others. Those without words that the check must
say are for tests of their own.
"""

from functools import partial
from itertools import pairwise

from attempts import lists
from attempts.bpe_right import merged
from attempts.tokenizer_right import Ranked, SmallBlocks

mistake = partial(lists.mistake, "tokenizer")
corner = partial(lists.almost, "tokenizer")


class Quick(Ranked):
    """Right, and quick enough for a test: it remembers words."""

    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.known = {}

    def word(self, data):
        if data not in self.known:
            self.known[data] = super().word(data)
        return self.known[data]


@mistake("the longest wins")
class InASet(Quick):
    """Its order is that of the strings' hashes, which differ from run to run."""

    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.special_tokens = set(special_tokens or [])


class LatestFirst(Quick):
    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.ranks = {pair: -rank for pair, rank in self.ranks.items()}


class OnlyBytes(Quick):
    def word(self, data):
        return [self.ids[bytes([b])] for b in data]


@mistake("`self.ids` has no key 116, but b't': of another type")
class Numbers(Quick):
    def word(self, data):
        return [self.ids[byte] for byte in data]


@mistake("These bytes are no token")
class WholeWords(Quick):
    def word(self, data):
        return [self.ids[data]]


class EachPiece(Quick):
    """Gives no thought to where the pieces are cut."""

    def encode_iterable(self, iterable):
        for piece in iterable:
            yield from self.encode(piece)


class EachPieceAndNotAppended(EachPiece):
    """As most learners have it: two corners are open."""

    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.ids = {token: i for i, token in vocab.items()}
        self.special_tokens = [t for t in self.special_tokens if t.encode() in self.ids]


@mistake("A word of one byte")
class WantsPairs(Quick):
    def word(self, data):
        min(pairwise(data))
        return super().word(data)


@mistake("special_tokens is None")
class NeedsSpecials(Quick):
    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.special_tokens = sorted(special_tokens, key=len, reverse=True)


@mistake("decode the bytes")
class GivesBytes(Quick):
    def decode(self, ids):
        return b"".join(self.vocab[i] for i in ids)


@mistake("was cut in two")
class Blocks(SmallBlocks):
    """Cuts what it reads at every 8 kB, wherever that is."""

    gap = "(?s)(?<=^.{8192})"


@corner("indented lines")
class AfterLines(SmallBlocks):
    gap = r"(?<=\n)"


@corner("is kept")
class KeepsAll(Quick):
    def encode_iterable(self, iterable):
        self.read = []
        pieces = (self.read.append(piece + ".") or piece for piece in iterable)
        return super().encode_iterable(pieces)


@corner("not lazy")
class Joined(Quick):
    def encode_iterable(self, iterable):
        yield from self.encode("".join(iterable))


@mistake("add the items")
class Lists(Quick):
    def encode_iterable(self, iterable):
        for piece in iterable:
            yield self.encode(piece)


@corner("no pieces, or empty ones")
class WantsPieces(Quick):
    def encode_iterable(self, iterable):
        kept, *rest = iterable
        return super().encode_iterable([kept, *rest])


class Again(Quick):
    """Encodes all that it has read anew for each piece, once that is long."""

    def encode_iterable(self, iterable):
        text, done = "", 0
        for piece in iterable:
            text += piece
            ids = self.encode(text) if len(text) > 20_000 else []
            yield from ids[done:-8]
            done = max(done, len(ids) - 8)
        yield from self.encode(text)[done:]


# Types, what is kept, and speed.
@mistake("shared between tokenizers")
class SharedCache(Quick):
    cache = {}  # noqa: RUF012 - this is the mistake

    def word(self, data):
        if data not in self.cache:
            self.cache[data] = super().word(data)
        return self.cache[data]


@mistake("generator")
class EncodeYields(Quick):
    def encode(self, text):
        yield from super().encode(text)


@mistake("depends on earlier calls")
class KnowsTheStreamBefore(Quick):
    kept = ""

    def encode_iterable(self, iterable):
        yield from self.encode(self.kept + "".join(iterable))
        self.kept = "the"


@mistake("the earliest merge in the list that applies goes first")
class InTwoParts(Quick):
    """Nobody foresaw that."""

    def word(self, data):
        return super().word(data[:5]) + super().word(data[5:])


@mistake("no argument for `special_tokens`")
class TwoArguments(Quick):
    def __init__(self, vocab, merges):
        super().__init__(vocab, merges)


@mistake("`encode` returned None")
class NoReturn(Quick):
    """What calls its `encode` is not blamed."""

    def encode(self, text):
        super().encode(text)

    def encode_iterable(self, iterable):
        for piece in iterable:
            yield from self.encode(piece)


class Slow(Quick):
    """Goes through all merges for each word."""

    def word(self, data):
        symbols = tuple(bytes([b]) for b in data)
        for pair in self.ranks:
            symbols = merged(symbols, pair)
        return [self.ids[symbol] for symbol in symbols]


# Files.
@corner("`from_files` is still missing")
class NoFiles(Quick):
    from_files = None


@corner("`@classmethod` is missing")
class NoClassMethod(Quick):
    def from_files(self, vocab_filepath, merges_filepath, special_tokens=None):
        return Ranked.from_files(vocab_filepath, merges_filepath, special_tokens)


@corner("return cls")
class NothingMade(Quick):
    @classmethod
    def from_files(cls, vocab_filepath, merges_filepath, special_tokens=None):
        made = super().from_files(vocab_filepath, merges_filepath, special_tokens)
        return made.vocab, list(made.ranks)


@corner("NameError")
class NothingRead(Quick):
    @classmethod
    def from_files(cls, vocab_filepath, merges_filepath, special_tokens=None):
        with open(merges_filepath):
            return cls(vocab_read, [], special_tokens)  # noqa: F821 - this is the mistake
