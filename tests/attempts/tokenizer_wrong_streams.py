"""Wrong tokenizers, continued: decoding, streams, and the rest."""

import functools
from itertools import chain

import regex as re

from attempts import catalogue
from attempts.tokenizer_right import GPT2, Ranked
from attempts.tokenizer_wrong import Quick

WRONG, mistake = catalogue()
ALMOST, corner = catalogue()


# Decoding.
@mistake("Each token was decoded by itself")
class DecodesTokens(Quick):
    def decode(self, ids):
        return "".join(self.vocab[i].decode("utf-8", errors="replace") for i in ids)


@mistake("that are not UTF-8")
class Ignores(Quick):
    def decode(self, ids):
        return b"".join(self.vocab[i] for i in ids).decode("utf-8", errors="ignore")


@mistake('with `errors="replace"`')
class Strict(Quick):
    def decode(self, ids):
        return b"".join(self.vocab[i] for i in ids).decode("utf-8")


@mistake("joined with spaces")
class Spaces(Quick):
    def decode(self, ids):
        return b" ".join(self.vocab[i] for i in ids).decode("utf-8", errors="replace")


@mistake("was stripped")
class Strips(Quick):
    def decode(self, ids):
        return super().decode(ids).strip()


@mistake("missing from the text")
class DropsSpecials(Quick):
    def decode(self, ids):
        special = {token.encode() for token in self.special_tokens}
        return super().decode(i for i in ids if self.vocab[i] not in special)


@mistake("decode the bytes")
class GivesBytes(Quick):
    def decode(self, ids):
        return b"".join(self.vocab[i] for i in ids)


# Streams.
@corner("Each piece was encoded by itself")
class EachPiece(Quick):
    def encode_iterable(self, iterable):
        for piece in iterable:
            yield from self.encode(piece)


@mistake("pieces were stripped")
class EachStripped(Quick):
    def encode_iterable(self, iterable):
        for piece in iterable:
            yield from self.encode(piece.strip())


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


@corner("that the vocabulary lacks")
class EachPieceAndNotAppended(Quick):
    """As most learners have it: two corners are open."""

    def __init__(self, vocab, merges, special_tokens=None):
        super().__init__(vocab, merges, special_tokens)
        self.ids = {token: i for i, token in vocab.items()}
        self.special_tokens = [t for t in self.special_tokens if t.encode() in self.ids]

    def encode_iterable(self, iterable):
        for piece in iterable:
            yield from self.encode(piece)


@mistake("was cut in two")
class Blocks(Quick):
    """Cuts what it reads at every 8 kB, wherever that is."""

    def encode_iterable(self, iterable):
        kept = ""
        for piece in iterable:
            kept += piece
            while len(kept) >= 8192:
                yield from self.encode(kept[:8192])
                kept = kept[8192:]
        yield from self.encode(kept)


@corner("last white space")
class LastSpace(Quick):
    def encode_iterable(self, iterable):
        kept = ""
        for piece in iterable:
            kept += piece
            at = max((i for i, c in enumerate(kept) if c.isspace()), default=0)
            yield from self.encode(kept[:at])
            kept = kept[at:]
        yield from self.encode(kept)


@corner("after the last newline")
class LastLine(Quick):
    def encode_iterable(self, iterable):
        kept = ""
        for piece in iterable:
            kept += piece
            at = kept.rfind("\n") + 1
            yield from self.encode(kept[:at])
            kept = kept[at:]
        yield from self.encode(kept)


@mistake("Only the last pre-token was held back")
class LastPretoken(Quick):
    def encode_iterable(self, iterable):
        kept = ""
        for piece in iterable:
            *done, kept = re.findall(GPT2, kept + piece) or [""]
            for token in done:
                yield from self.encode(token)
        yield from self.encode(kept)


@mistake("never encoded")
class TailLost(Quick):
    def encode_iterable(self, iterable):
        kept = ""
        for piece in iterable:
            kept += piece
            at = max(kept.rfind(" "), kept.rfind("\n"), 0)
            yield from self.encode(kept[:at])
            kept = kept[at:]


@mistake("encode again all that it has read")
class Again(Quick):
    def encode_iterable(self, iterable):
        text, done = "", 0
        for piece in iterable:
            text += piece
            ids = self.encode(text)
            while done < len(ids) - 8:
                yield ids[done]
                done += 1
        yield from self.encode(text)[done:]


# The rest.
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


@mistake("Look up the id")
class Tokens(Quick):
    def encode(self, text):
        return [self.vocab[i] for i in super().encode(text)]


@mistake("empty text")
class NotEmpty(Quick):
    def encode(self, text):
        return list(functools.reduce(chain, ([i] for i in super().encode(text))))


@corner("`@classmethod` is missing")
class NoClassMethod(Quick):
    def from_files(self, vocab_filepath, merges_filepath, special_tokens=None):
        return Ranked.from_files(vocab_filepath, merges_filepath, special_tokens)


@corner("no argument for `merges_filepath`")
class OneFile(Quick):
    @classmethod
    def from_files(cls, path, special_tokens=None):
        raise AssertionError


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


@mistake("far too slow")
class Slow(Quick):
    def encode(self, text):
        ids = []
        for part in self.parts(text):
            if part in self.special_tokens:
                ids.append(self.ids[part.encode()])
            else:
                tokens = re.findall(GPT2, part)
                while tokens:
                    tokens = re.findall(GPT2, "".join(tokens))
                    ids = [*ids, *self.word(tokens.pop(0).encode())]
        return ids
