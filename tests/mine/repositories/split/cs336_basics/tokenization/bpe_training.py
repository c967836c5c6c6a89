from collections import Counter
from itertools import pairwise

from .pretokenize import byte_list, merged, pretokens, special_pattern, split_special


def train(input_path, vocab_size, special_tokens, **kwargs):
    with open(input_path, encoding="utf-8", newline="") as file:
        text = file.read()
    vocab = dict(
        enumerate([t.encode() for t in special_tokens] + [bytes((b,)) for b in range(256)])
    )
    words = word_counts(text, special_tokens)
    pairs = Counter()
    for parts, count in words:
        for pair in pairwise(parts):
            pairs[pair] += count
    merges = []
    for token_id in range(len(vocab), vocab_size):
        if not pairs:
            break
        most = max(pairs.values())
        pair = max(candidate for candidate, count in pairs.items() if count == most)
        merges.append(pair)
        vocab[token_id] = pair[0] + pair[1]
        for word in words:
            if pair[0] in word[0]:
                update(word, pair, pairs)
    return vocab, merges


def word_counts(text, special_tokens):
    counts = Counter()
    for piece in split_special(text, special_pattern(special_tokens)):
        if piece not in special_tokens:
            counts.update(pretokens(piece))
    return [[byte_list(word), count] for word, count in counts.items()]


def update(word, pair, pairs):
    """Merge the pair in a word, and change the counts of pairs by what is different."""
    old, count = word
    new = merged(old, pair)
    if len(new) == len(old):
        return
    word[0] = new
    for before in pairwise(old):
        pairs[before] -= count
        if not pairs[before]:
            del pairs[before]
    for after in pairwise(new):
        pairs[after] += count
