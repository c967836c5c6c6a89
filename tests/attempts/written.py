"""Written answers as learners hand them in, by problem and part, and what is said of them."""

import math

import numpy
import torch

NUL = "\x00"
ONE, TWO = "unicode1", "unicode2"
TIME, WEB, USE = "train_bpe_tinystories", "train_bpe_expts_owt", "tokenizer_experiments"
TOY, TEXT = "learning_rate_tuning", "generate"
TWICE = b"\xc3\x83\xc3\x82" * 16


def losses(rate, steps=10, first=24.0, factor=None):
    """The losses of a run, by a factor of the weights or by the right one."""
    factor = factor or (lambda t: 1 - 0.02 * rate / math.sqrt(t + 1))
    found = [first]
    for t in range(steps - 1):
        found.append(found[-1] * factor(t) ** 2)
    return found


def run(rate, steps=10):
    """The losses of the real toy."""
    weights = 5 * torch.randn((10, 10), generator=torch.Generator().manual_seed(0))
    found = []
    for t in range(steps):
        found.append((weights**2).mean().item())
        weights -= rate / math.sqrt(t + 1) * weights / 50
    return found


# What all praises of a part say, and the attempts.
RIGHT = {
    (ONE, "a"): ("U+0000", ["U+0000", "u+0", NUL, 0]),
    (ONE, "b"): ("", [(repr(NUL), ""), [repr(NUL), NUL], (r"\x00", "")]),
    (ONE, "c"): ("counts like any other", [("a\0b", 3), ["before\0after", 12], (NUL, 1)]),
    (TWO, "a"): (
        "right",
        [
            {"UTF-8": 5, "UTF-16": 12, "UTF-32": 24},
            {"UTF-8": 5, "UTF-16": 10, "UTF-32": 20},
            {"utf-32": 20},
            {"UTF-16": numpy.int64(12)},
        ],
    ),
    (TWO, "b"): ("takes", ["é".encode(), "hello 🙂".encode()]),
    (TWO, "c"): ("", [b"\xbf\xcf", b"\xc3\x28", b"\xaa\xaa", b"\xc0\x20"]),
    (TIME, "a"): (
        "",
        [
            {"seconds": 62.0, "gigabytes": 1.9, "longest": b" accomplishment"},
            {"seconds": 61.72, "gigabytes": 0.1583},
            {"longest": b" unfortunately"},
            {"longest": b"-" * 20},
        ],
    ),
    (WEB, "a"): (
        "64",
        [
            {"longest": TWICE},
            {"longest": b"-" * 64, "hours": 6, "gigabytes": 40},
            {"longest": b"unfortunately"},
        ],
    ),
    (USE, "a"): (
        "plausible",
        [4.0, {"stories": 3.39, "docstrings": 2.75}, {"tinystories": 4.25, "owt": 4.54}],
    ),
    (USE, "b"): ("plausible", [1.85, numpy.float64(3.3)]),
    (USE, "c"): (
        "The division is right",
        [(1e6, 229.2), [713258.83, 321.3], (0.67e6, 342), (25e6, 10)],
    ),
    (USE, "d"): ("", [65_535, 65_535.0]),
    (TOY, None): (
        "",
        [
            {10: run(10), 100: run(100), 1000: run(1000)},
            {1.0: run(1), 10.0: torch.tensor(run(10))},
            {100: losses(100)[1:]},
            {100: [round(loss, 2) for loss in run(100)]},
        ],
    ),
    (TEXT, None): ("long enough", [256, 300]),
}

# The attempts, and a piece of what is said of each.
WRONG = {
    (ONE, "a"): [
        (r"b'\x00'", "repr of bytes, not of a str"),
        (b"\x00", "`chr` returns a str"),
        ("", "of length 1"),
        ("0", "chr(48)"),
        ("U+0041", "'A'"),
        (65, "'A'"),
    ],
    (ONE, "b"): [
        ((repr(NUL), None), "`print` returns None"),
        ((r"b'\x00'", ""), "repr of bytes"),
        (("", repr(NUL)), "the other way round"),
        ((repr(NUL), repr(NUL)), "writes the character"),
    ],
    (ONE, "c"): [
        (("before\0after", 11), "stays in the text"),
        (("before\0after", 6), "ends at NUL"),
        (("a\0b", 7), "not the length"),
        (("a-b", 3), "not in this text"),
    ],
    (TWO, "a"): [
        ({"UTF-16": 12, "UTF-32": 20}, "Byte order mark"),
        ({"UTF-16": 11}, "not its sizes"),
        ({"UTF-16": 5}, "Characters were counted"),
    ],
    (TWO, "b"): [
        (b"hello", "It is all ASCII"),
        (b"", "ASCII"),
        (b"\xff", "FF never occurs in UTF-8"),
        (b"\xc3", "end after 1"),
    ],
    (TWO, "c"): [
        (b"\xc3\xa9", "'é'"),
        (b"hi", "below 80 is ASCII"),
        (b"\xff", "Exactly two bytes"),
    ],
    (TIME, "a"): [
        ({"longest": b"accomplishment"}, "leading space was dropped"),
        ({"longest": b"xyzzy plugh"}, "Merges crossed pre-token boundaries"),
        ({"longest": b" the"}, "short for the longest"),
        ({"seconds": 1029.17, "gigabytes": 0.08}, "leaves out the workers"),
        ({"seconds": 62, "gigabytes": 45}, "Read the corpus in pieces"),
        ({"hours": 3, "gigabytes": 450}, "update only the counts"),
        ({"seconds": -3}, "positive"),
    ],
    (WEB, "a"): [({"hours": 14, "longest": b"-" * 64}, "allows 12 hours")],
    (USE, "a"): [
        (0.24, "upside down"),
        (-4.0, "at least one byte"),
        (5e6, "did you count words"),
        ({"tinystories": 2.86}, "is every merge applied"),
    ],
    (USE, "b"): [(4.54, "which text is it")],
    (USE, "c"): [
        ((1e6, 246.07), "GB and GiB"),
        ((1e6, 9.55), "hours and days"),
        ((1.0, 229.17), "MB and bytes"),
        ((1e6, 100.0), "take 229.17 hours"),
        ((-1, 100.0), "must be positive"),
    ],
    (USE, "d"): [
        (65_536, "how many values there are"),
        (2, "2 ** 16 values"),
        (32_767, "beginning at 0"),
        (32_000, "where does uint16 end"),
    ],
    (TOY, None): [
        ({10: run(100)}, "These are the losses for a learning rate of 100"),
        ({100: losses(100, 10, 2400.0, lambda t: 1 - 200 / math.sqrt(t + 1))}, "is yours a sum"),
        ({10: losses(10, factor=lambda t: 0.8)}, "does not shrink"),
        ({10: losses(10, factor=lambda t: 1 - 0.2 / (t + 1))}, "root is missing"),
        ({1000: losses(1000, factor=lambda t: 1 - 20 / math.sqrt(t + 2))}, "yours begins at 1"),
        ({10: losses(10, factor=lambda t: 1 + 0.2 / math.sqrt(t + 1))}, "goes uphill"),
        ({10: losses(10, first=1.0)}, "lack the factor 5"),
        ({10: [5.0, 7.0, 2.0, 9.0]}, "not the losses with 10"),
    ],
    (TEXT, None): [(60, "too short")],
}

# What is read whatever the part, and what only some parts do not take for a value.
SENTENCES = (
    "It took 62.44 s and 0.1084 GB (184 MB)",
    "The model has 2,127,057,600 parameters, 8.51 GB (7.92 GiB)",
    "The repr shows '\\x00'; print shows what looks like a space in my terminal.",
    "The head dominates.",
    "With lr = 100 the loss bounces back at the end",
    "a. " * 10_000,
    "The best loss is 0.02: post-norm is significantly better.",
    "3P + 4P + 5P + 2P = 14P",
)
READ = {
    (ONE, "a"): r"\u0000 (NUL)",
    (USE, "a"): "TinyStories 2.86",
    (TEXT, None): "300 tokens",
}

# Other forms, and a piece of what is said; without one, the form that is taken.
REFUSED = {
    (ONE, "b"): [((6, 1), "")],
    (TWO, "a"): [(20, ""), ({"utf-16-le": 10}, "")],
    (TWO, "c"): [((0xFF, 0x20), "bytes([0x68, 0x69])"), (7, "")],
    (TIME, "a"): [
        (b" accomplishment", ""),
        ({"memory": 2.1}, "'memory' is not a key"),
        ({"seconds": math.nan}, ""),
        ({"longest": " hello"}, "is to be bytes"),
    ],
    (TIME, "b"): [(3, "slowest step")],
    (USE, "a"): [({"ts": 4.0}, "'ts' is not one of the corpora"), ((4.0, 3.4), "")],
    (TOY, None): [(run(10), ""), ({10: 3.2}, ""), ({10: [25.0]}, "all ten steps")],
}
