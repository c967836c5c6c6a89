"""Right solutions of `train_bpe`, written the way different people write them."""

import heapq
import multiprocessing
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import regex as re

GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def word_counts(text, special_tokens):
    counts = Counter()
    longest_first = sorted(special_tokens, key=len, reverse=True)
    parts = re.split("|".join(map(re.escape, longest_first)), text) if special_tokens else [text]
    for part in parts:
        for match in re.finditer(GPT2, part):
            counts[match.group()] += 1
    return counts


def recount(input_path, vocab_size, special_tokens):
    """Counts all pairs anew for each merge."""
    text = Path(input_path).read_bytes().decode("utf-8")
    words = {
        tuple(bytes([b]) for b in word.encode()): count
        for word, count in word_counts(text, special_tokens).items()
    }
    vocab = {i: token.encode() for i, token in enumerate(special_tokens)}
    vocab.update({len(special_tokens) + i: bytes([i]) for i in range(256)})
    merges = []
    while len(vocab) < vocab_size:
        pairs = defaultdict(int)
        for word, count in words.items():
            for i in range(len(word) - 1):
                pairs[word[i], word[i + 1]] += count
        if not pairs:
            break
        best = max(pairs.items(), key=lambda item: (item[1], item[0]))[0]
        merges.append(best)
        vocab[len(vocab)] = best[0] + best[1]
        words = {merged(word, best): count for word, count in words.items()}
    return vocab, merges


def merged(word, pair):
    out, i = [], 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
            out.append(pair[0] + pair[1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return tuple(out)


class Greatest:
    """A pair in a heap: more frequent first, then greater."""

    def __init__(self, count, pair):
        self.count, self.pair = count, pair

    def __lt__(self, other):
        return (self.count, self.pair) > (other.count, other.pair)


def heap(input_path, vocab_size, special_tokens):
    with open(input_path, encoding="utf-8") as file:
        counts = word_counts(file.read(), special_tokens)
    return merge_counted(counts, vocab_size, special_tokens)


def merge_counted(counts, vocab_size, special_tokens):
    """Keeps counts and an index from pair to words; the best pair comes from a heap."""
    words, freqs = [], []
    for word, count in counts.items():
        words.append([bytes([b]) for b in word.encode()])
        freqs.append(count)
    pairs, where = Counter(), defaultdict(set)
    for i, word in enumerate(words):
        for pair in pairwise(word):
            pairs[pair] += freqs[i]
            where[pair].add(i)
    queue = [Greatest(count, pair) for pair, count in pairs.items()]
    heapq.heapify(queue)
    merges = []
    goal = vocab_size - 256 - len(special_tokens)
    while queue and len(merges) < goal:
        top = heapq.heappop(queue)
        if top.count != pairs[top.pair] or top.count <= 0:
            continue
        merges.append(top.pair)
        touched = set()
        for i in list(where[top.pair]):
            for pair in pairwise(words[i]):
                pairs[pair] -= freqs[i]
                touched.add(pair)
            words[i] = list(merged(words[i], top.pair))
            for pair in pairwise(words[i]):
                pairs[pair] += freqs[i]
                where[pair].add(i)
                touched.add(pair)
        for pair in touched:
            if pairs[pair] > 0:
                heapq.heappush(queue, Greatest(pairs[pair], pair))
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
    """Counts the parts of a large file in processes."""
    parts, count = parts_of(input_path, 3), partial(word_counts, special_tokens=special_tokens)
    if sum(map(len, parts)) > 100_000:
        with multiprocessing.get_context("spawn").Pool(2) as workers:
            counted = workers.map(count, parts)
    else:
        counted = map(count, parts)
    return merge_counted(sum(counted, Counter()), vocab_size, special_tokens)


def threads(input_path, vocab_size, special_tokens, workers=3):
    """Counts the parts of the file side by side, whatever its size."""
    with ThreadPoolExecutor(workers) as pool:
        count = partial(word_counts, special_tokens=special_tokens)
        counted = pool.map(count, parts_of(input_path, workers))
    return merge_counted(sum(counted, Counter()), vocab_size, special_tokens)


def with_numpy(input_path, vocab_size, special_tokens):
    """The keys of the vocabulary are numpy integers, merges are lists."""
    vocab, merges = heap(input_path, vocab_size, special_tokens)
    return {np.int64(i): token for i, token in vocab.items()}, [list(pair) for pair in merges]


def own_names(file_path, special_toks=None, *, vocab_sz, num_processes):
    """Other names in another order, and one more that has no default."""
    assert num_processes == 1
    return heap(file_path, vocab_sz, special_toks or [])


def opens_a_path(input_path, vocab_size, special_tokens):
    """Takes a Path only."""
    with input_path.open(encoding="utf-8") as file:
        file.read()
    return heap(input_path, vocab_size, special_tokens)


RIGHT = (recount, heap, with_numpy, threads, own_names)
ALMOST = ((opens_a_path, "`Path(input_path)`"),)
