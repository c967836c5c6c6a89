"""Wrong solutions of `train_bpe`, continued: the end of training, and the form of the result."""

from attempts import catalogue
from attempts.bpe_wrong import Plain, corner

WRONG, mistake = catalogue()


# The end of training.
@corner("occurred only once")
class StopsAtOne(Plain):
    def finished(self, counts):
        return not counts or max(counts.values()) < 2


@corner("may run out of pairs")
class NeverFinished(Plain):
    def finished(self, counts):
        return False


@mistake("far too slow")
class WholeText(Plain):
    def words(self, text):
        return [(self.ids(token), 1) for part in self.split(text) for token in self.pretokens(part)]


# The form of the result.
@mistake("the vocabulary first")
class Swapped(Plain):
    def result(self, merges):
        return merges, self.vocab


@mistake("a dict from ids to bytes")
class Inverted(Plain):
    def result(self, merges):
        return {token: i for i, token in self.vocab.items()}, merges


@mistake("not their ids")
class MergesAreIds(Plain):
    def result(self, merges):
        ids = {token: i for i, token in self.vocab.items()}
        return self.vocab, [(ids[a], ids[b]) for a, b in merges]


@mistake("not joined")
class MergesJoined(Plain):
    def result(self, merges):
        return self.vocab, [a + b for a, b in merges]


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
