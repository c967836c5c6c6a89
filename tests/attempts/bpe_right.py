"""Right solutions of `train_bpe`, written the way different people write them."""

import multiprocessing
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from made_repositories import module

from attempts.lists import judged, right

flat = module("flat", "cs336_basics/tokenizer.py")
GPT2 = flat.PAT
merged = flat.merge_word
recount = flat.train_bpe  # counts all pairs anew for each merge


def word_counts(text, special_tokens):
    """A function of this file, so that processes find it."""
    return flat.count_words(text, special_tokens)


@judged("train_bpe", "correct", "Opened in text mode, a file's `\\r\\n` becomes `\\n`")
def indexed(input_path, vocab_size, special_tokens):
    with open(input_path, encoding="utf-8") as file:
        counts = word_counts(file.read(), special_tokens)
    return merge_counted(counts, vocab_size, special_tokens)


def merge_counted(counts, vocab_size, special_tokens):
    """Keeps counts and an index from pair to words."""
    words = []
    freqs = []
    for word, count in counts.items():
        words.append(tuple(bytes([b]) for b in word.encode()))
        freqs.append(count)
    pairs = Counter()
    where = defaultdict(set)
    for i, word in enumerate(words):
        for pair in pairwise(word):
            pairs[pair] += freqs[i]
            where[pair].add(i)
    merges = []
    goal = vocab_size - 256 - len(special_tokens)
    while len(merges) < goal and max(pairs.values(), default=0) > 0:
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        for i in list(where[best]):
            for pair in pairwise(words[i]):
                pairs[pair] -= freqs[i]
            words[i] = merged(words[i], best)
            for pair in pairwise(words[i]):
                pairs[pair] += freqs[i]
                where[pair].add(i)
    tokens = [bytes([b]) for b in range(256)] + [a + b for a, b in merges]
    vocab = dict(enumerate(tokens))
    for token in special_tokens:  # special tokens last
        vocab[len(vocab)] = token.encode()
    return vocab, merges


def parts_of(input_path, wanted):
    """The parts of a file, each cut moved on to the next special token, as the course hands out."""
    data = Path(input_path).read_bytes()
    borders = [0, len(data)]
    for i in range(1, wanted):
        found = data.find(b"<|endoftext|>", i * len(data) // wanted)
        borders.append(len(data) if found < 0 else found)
    return [data[start:end].decode("utf-8") for start, end in pairwise(sorted(set(borders)))]


def pool(input_path, vocab_size, special_tokens):
    """Counts the parts of the file side by side, those of a large one in processes."""
    parts = parts_of(input_path, 3)
    workers = ThreadPoolExecutor(3)
    if sum(map(len, parts)) > 100_000:
        workers = ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))
    with workers:
        counted = workers.map(partial(word_counts, special_tokens=special_tokens), parts)
        return merge_counted(sum(counted, Counter()), vocab_size, special_tokens)


def with_numpy(input_path, vocab_size, special_tokens):
    """The keys of the vocabulary are numpy integers, merges are lists."""
    vocab, merges = indexed(input_path, vocab_size, special_tokens)
    return {np.int64(i): token for i, token in vocab.items()}, [list(pair) for pair in merges]


def own_names(file_path, special_toks=None, *, vocab_sz, num_processes):
    """Other names in another order, and one more that has no default."""
    assert num_processes == 1
    return indexed(file_path, vocab_sz, special_toks or [])


def opens_a_path(input_path, vocab_size, special_tokens):
    """Takes a Path only."""
    with input_path.open(encoding="utf-8") as file:
        file.read()
    return indexed(input_path, vocab_size, special_tokens)


for solution in (recount, with_numpy, own_names):
    right("train_bpe")(solution)
