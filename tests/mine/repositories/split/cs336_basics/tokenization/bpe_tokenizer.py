import pickle
from itertools import pairwise

from .pretokenize import byte_list, merged, pretokens, special_pattern, split_special


class BPETokenizer:
    def __init__(self, vocab, merges, special_tokens=None):
        self.id_to_token = dict(vocab)
        self.token_to_id = {token: i for i, token in vocab.items()}
        self.rank = {pair: i for i, pair in enumerate(merges)}
        self.special = list(special_tokens or [])
        for token in self.special:
            if token.encode() not in self.token_to_id:
                new_id = max(self.id_to_token) + 1
                self.id_to_token[new_id] = token.encode()
                self.token_to_id[token.encode()] = new_id
        self.pattern = special_pattern(self.special)

    @classmethod
    def from_files(cls, vocab_filepath, merges_filepath, special_tokens=None):
        with open(vocab_filepath, "rb") as vocab, open(merges_filepath, "rb") as merges:
            return cls(pickle.load(vocab), pickle.load(merges), special_tokens)

    def encode(self, text):
        return [i for part in self._parts(text) for i in self._part_ids(part)]

    def _parts(self, text):
        """Special tokens and pre-tokens, in order."""
        for piece in split_special(text, self.pattern):
            if piece in self.special:
                yield piece
            else:
                yield from pretokens(piece)

    def _part_ids(self, part):
        if part in self.special:
            return [self.token_to_id[part.encode()]]
        tokens = byte_list(part)
        while True:
            pairs = set(pairwise(tokens)) & self.rank.keys()
            if not pairs:
                return [self.token_to_id[token] for token in tokens]
            tokens = merged(tokens, min(pairs, key=self.rank.get))

    def encode_iterable(self, iterable):
        # The last two parts may go on in what comes next ("we'l" and "l"), and so may what could
        # be the beginning of a special token, and the white space before it.
        reach = max(map(len, self.special), default=0)
        waiting = ""
        for chunk in iterable:
            waiting += chunk
            parts = list(self._parts(waiting))
            kept = 2
            while kept < len(parts) and (
                sum(map(len, parts[-kept:])) < reach or parts[-kept - 1].isspace()
            ):
                kept += 1
            ready = parts[:-kept]
            for part in ready:
                yield from self._part_ids(part)
            waiting = waiting[sum(map(len, ready)) :]
        yield from self.encode(waiting)

    def decode(self, ids):
        return b"".join(map(self.id_to_token.__getitem__, ids)).decode(errors="replace")
