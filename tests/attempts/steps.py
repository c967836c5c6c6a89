"""The optional steps as learners write them: right, and wrong by an edit."""

import inspect
from collections import Counter
from itertools import pairwise

import regex
import torch

from workbook.tokenization import pretokens


def encode_utf8(point):
    if point < 0x80:
        return bytes([point])
    rest = [0x80 | point >> by & 0x3F for by in (12, 6, 0)]
    if point < 0x800:
        return bytes([0xC0 | point >> 6, *rest[2:]])
    if point < 0x10000:
        return bytes([0xE0 | point >> 12, *rest[1:]])
    return bytes([0xF0 | point >> 18, *rest])


def split_special(text, special_tokens):
    longest_first = sorted(special_tokens, key=len, reverse=True)
    pattern = "|".join(map(regex.escape, longest_first))
    return regex.split(f"({pattern})", text) if special_tokens else [text]


def count_pretokens(text, special_tokens):
    counts = Counter()
    for part in split_special(text, special_tokens):
        if part not in special_tokens:
            counts.update(regex.findall(pretokens.PATTERN, part))
    return counts


def count_pairs(words):
    counts = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            counts[pair] += count
    return counts


def merge_pair(symbols, pair):
    merged = []
    at = 0
    while at < len(symbols):
        fits = tuple(symbols[at : at + 2]) == pair
        merged.append(b"".join(pair) if fits else symbols[at])
        at += 2 if fits else 1
    return tuple(merged)


def train_naive(counts, num_merges):
    words = {tuple(bytes([b]) for b in word.encode()): count for word, count in counts.items()}
    merges = []
    while len(merges) < num_merges and (pairs := count_pairs(words)):
        merges.append(max(pairs, key=lambda pair: (pairs[pair], pair)))
        words = {merge_pair(word, merges[-1]): count for word, count in words.items()}
    return merges


def decode_ids(ids, vocab):
    return b"".join(vocab[i] for i in ids).decode(errors="replace")


def encode_word(word, merges):
    symbols = tuple(bytes([byte]) for byte in word)
    for pair in merges:
        symbols = merge_pair(symbols, pair)
    return symbols


def stream_pretokens(pieces, special_tokens):
    yield from pretokens.pretokenize(pieces, special_tokens)


class Momentum(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, momentum=0.9):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["b"] = group["momentum"] * state.get("b", 0) + p.grad
                p -= group["lr"] * state["b"]


def training_loop(model, optimizer, loss_of, batches):
    losses = []
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def accumulate(model, loss_of, inputs, targets, parts):
    total = 0
    for x, y in zip(inputs.chunk(parts), targets.chunk(parts), strict=True):
        loss = loss_of(model(x), y) / parts
        loss.backward()
        total += loss.item()
    return total


STEPS = (
    *(split_special, count_pretokens, count_pairs, merge_pair, train_naive, decode_ids),
    *(encode_utf8, encode_word, stream_pretokens, Momentum, training_loop, accumulate),
)
RIGHT = {step.__name__.lower(): step for step in STEPS}
# The problem, what is changed to what, and words of the verdict.
WRONG = (
    ("encode_utf8", "0x80 | point >>", "point >>", "begins with the bits 10"),
    ("split_special", 'f"({pattern})"', "pattern", "a group, `(...)`"),
    ("split_special", ", reverse=True", "", "the longest wins"),
    ("split_special", "else [text]", "else text", "of type `str`; `list` is asked for"),
    ("split_special", "else [text]", "else []", "the whole text is one part"),
    ("split_special", 'f"({pattern})"', 'f"({pattern})|()"', "of type `NoneType`"),
    (
        "count_pretokens",
        "split_special(text, special_tokens)",
        'regex.split("|".join(map(regex.escape, special_tokens)) or "$", text)',
        "the longest wins",
    ),
    ("count_pretokens", "PATTERN, part", "PATTERN, part.lower()", "keep every byte as it is"),
    ("count_pretokens", "if part not in special_tokens", "if True", "like ordinary text"),
    ("count_pretokens", "split_special(text, special_tokens)", "[text]", "like ordinary text"),
    (
        "count_pretokens",
        "regex.findall(pretokens.PATTERN, part)",
        "map(str.encode, regex.findall(pretokens.PATTERN, part))",
        "A key is of type `bytes`; `str` is asked for",
    ),
    ("count_pretokens", "pretokens.PATTERN", 'r"\\S+"', "The white space between words is lost"),
    ("count_pairs", "+= count", "+= 1", "add the word's count"),
    ("count_pairs", "pairwise(word)", "{*pairwise(word)}", "was counted once"),
    ("count_pairs", "+= count", "= count", "do not assign"),
    ("count_pairs", "pairwise(word)", "zip(word[::2], word[1::2])", "Every other pair"),
    ("count_pairs", "    return counts", "        return counts", "does a `break` or a `return`"),
    ("merge_pair", "2 if fits else 1", "1", "step over both parts"),
    ("merge_pair", "at < len(symbols)", "at < len(symbols) - 1", "is lost when it is not merged"),
    (
        "merge_pair",
        "merged = []",
        'return b" ".join(symbols).replace(b" ".join(pair), b"".join(pair)).split(b" ")',
        "compare whole tokens",
    ),
    (
        "merge_pair",
        "tuple(symbols[at : at + 2]) == pair",
        'b"".join(symbols[at : at + 2]) == b"".join(pair)',
        "(ab, c) is another pair than (a, bc)",
    ),
    ("merge_pair", "tuple(merged)", 'b"".join(merged)', "of type `bytes`; `list` is asked for"),
    ("train_naive", "(pairs[pair], pair)", "pairs[pair]", "you took the first seen"),
    ("decode_ids", 'errors="replace"', 'errors="ignore"', "become U+FFFD"),
    ("decode_ids", "decode(", 'decode("ascii", ', "decoded as ASCII"),
    ("decode_ids", '.decode(errors="replace")', "", "`data.decode()` makes a str of bytes"),
    ("encode_word", "return symbols", "return list(word)", "The byte b is `bytes([b])`"),
    (
        "encode_word",
        "for pair in merges:\n        symbols = merge_pair(symbols, pair)",
        "min(pairwise(symbols), key={pair: 1 for pair in merges}.__getitem__)",
        "No merge joins this pair",
    ),
    ("encode_word", "for pair in merges", "for pair in merges[::-1]", "result is wrong"),
    ("stream_pretokens", "pretokenize(pieces", "pretokenize([*pieces]", "`yield` the rest"),
    ("momentum", 'group["momentum"] * state.get("b", 0) +', "", "b is forgotten"),
    ("stream_pretokens", "pieces, special_tokens)\n", "pieces, [])\n", "like ordinary text"),
    (
        "momentum",
        'super().__init__(params, {"lr": lr, "momentum": momentum})',
        "self.lr = lr",
        "Begin `__init__` with `super().__init__(params, defaults)`",
    ),
    ("momentum", "+ p.grad", '+ (1 - group["momentum"]) * p.grad', "g counts in full"),
    ("momentum", "+ p.grad", '+ group["lr"] * p.grad', "α is inside b"),
    ("momentum", 'group["lr"] *', 'self.defaults["lr"] *', "α is not that of the group"),
    ("momentum", '* state["b"]', '* (state["b"] - p.grad) / 0.8', "by the b of the step before"),
    ("momentum", "@torch.no_grad()", "", "Change it without autograd"),
    ("training_loop", "        optimizer.zero_grad()\n", "", "gradients are cleared: a step is"),
    ("training_loop", "        loss.backward()\n", "", "is `backward` or `step` missing"),
    ("training_loop", "loss.item()", "loss", "A loss is a tensor"),
    ("training_loop", "    return losses", "        return losses", "Only the first batch"),
    ("accumulate", "model(x), y) / parts", "model(x), y)", "divide it by the number of parts"),
    (
        "accumulate",
        "y) / parts\n        loss.backward()\n        total += loss.item()",
        "y)\n        loss.backward()\n        total += loss.item() / parts",
        "divided too late",
    ),
    (
        "accumulate",
        "inputs.chunk(parts), targets.chunk(parts)",
        "inputs.split(parts), targets.split(parts)",
        "`chunk(n)` makes n pieces",
    ),
    ("accumulate", "loss.back", "model.zero_grad()\n        loss.back", "clear nothing between"),
    ("accumulate", "return total", "pass", "returned None"),
)


def changed(name, old, new):
    """The right step with this change."""
    source = inspect.getsource(RIGHT[name])
    assert source.count(old) == 1, (name, old)
    names = {**globals()}
    exec(source.replace(old, new), names)
    return names[RIGHT[name].__name__]
