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
    (ONE, "a"): ("U+0000", [
        NUL, 0, numpy.int64(0), "NUL", "null", "U+0000", "U+0", "0x00", r"\x00", r"'\x00'", "␀",
        "the null character", "a NUL byte", "the zero character", "code point 0",
        "the character with code point 0"]),
    (ONE, "b"): ("character", [
        repr(NUL), r"\x00", NUL, 6, 1, (repr(NUL), NUL), (6, 1), {"repr": 6, "print": NUL}]),
    (ONE, "c"): ("counts like any other", [
        "before\x00after", "this is a test\x00string", 12, 21, "21", "a\0b", repr("a\0b")]),
    (TWO, "a"): ("right", [
        5, 10, 12, 20, 24, 256, "20 bytes", [5, 12, 24], (5, 10, 20), {"UTF-32": 20},
        {"utf-8": 5, "utf-16": 12, "utf-32": 24}, {"UTF-8": 5, "UTF-16": "10 bytes", "utf32": 20},
        {"utf-16": 12, "utf-32-le": 20}, {"hello": (5, 12, 24), "日本": {"UTF-8": 6}},
        {"né": {"UTF-8": 3, "UTF-16": 6}, "日": {"utf8": 3}}, {"hello": 5}]),
    (TWO, "b"): ("takes", [
        "é".encode(), bytearray("日".encode()), "ü", "hello 🙂", "naïve", "café", "c3 a9", "c3a9",
        r"b'\xc3\xa9'", '"naïve".encode()', "`'é'.encode('utf-8')`", [0xC3, 0xA9],
        ("é".encode(), "because it is two bytes")]),
    (TWO, "c"): ("", [
        b"\xbf\xcf", b"\xc3\x28", [0xAA, 0xAA], (0xFF, 0x20), "e2 82", "0xC3 0x28", "fffe",
        r"b'\xc3('", r"\xff\xfe", bytearray(b"\xed\xa0"), [b"\x80", b"\x80"], (b"\xff\xfe", "no")]),
    (TIME, "a"): ("", [
        b" accomplishment", " accomplishment", "Ġresponsibility", "b' Everything'", 15, "15 bytes",
        (" disappointment", 15), b" unfortunately", "62 s", {"seconds": 61.72, "mb": 158.3},
        {"seconds": 62.0, "gigabytes": 1.9, "longest": b" accomplishment", "makes_sense": "yes"},
        {"time": "2 minutes", "memory": "3.1 GiB"}, {"time_s": 95.2, "memory_gb": 2}]),
    (WEB, "a"): ("64", [
        TWICE, b"-" * 64, 64, "-" * 32, {"longest": b"-" * 64}, (b"-" * 64, 64)]),
    (USE, "a"): ("plausible", [4.0, (3.9, 3.4), {"stories": 4.1, "owt": 3.3}, "4.1 bytes/token",
                               {"stories": 3.4, "docstrings": 2.75}]),
    (USE, "b"): ("plausible", [4.0, {"before": 4.5, "after": 3.2}, numpy.float64(3.3)]),
    (USE, "c"): ("The division is right", [
        (1e6, 229.2), (713258.83, 321.3), ("0.67 MB/s", "342 h"), ("713258.83 B/s", "14 d"),
        ("1 MB/s", "10 d"), ("1 MB/s", 229), {"bytes_per_second": 1e6, "hours": 229.17},
        {"mb_per_s": 2.5, "pile_days": 3.82}, {"rate": 1e6, "hours": 229}, {"MB/s": 1, "days": 9.5},
        ("3000 B/s", "76388 h"), {"throughput_mb_s": 1.2, "hours": 190.97, "days": 7.96}]),
    (USE, "d"): ("", [65_535, 65_536, "65,535", 2]),
    (TOY, None): ("", [
        run(10), run(100), run(1000, 30), losses(100)[1:], [round(loss, 2) for loss in run(100)],
        torch.tensor(run(100)), numpy.array(run(10)), [run(10), run(100), run(1000)],
        {10: run(10), 100: run(100), 1000: run(1000)}, {1.0: run(1), 10.0: run(10)},
        {"lr=1e1": run(10), "lr=1e3": torch.tensor(run(1000))},
        {10: run(10)[-1], 100: run(100)[-1], 1000: run(1000)[-1]}]),
    (TEXT, None): ("long enough", [256, "300 tokens", [5] * 256, (7,) * 400]),
}  # fmt: skip

# The attempts, and a piece of what is said of each.
WRONG = {
    (ONE, "a"): [
        (r"b'\x00'", "repr of bytes, not of a str"), (b"\x00", "`chr` returns a str"),
        ("0", "chr(48)"), (48, "chr(48)"), (r"\x30", "chr(48)"), ("digit zero", "chr(48)"),
        ("", "of length 1"), (NUL * 2, "one character"), (" ", "chr(32)"), ("a space", "chr(32)"),
        (1, r"'\x01'"), ("a", "'a'"), ("U+0041", "'A'")],
    (ONE, "b"): [
        ((5, 1), "6 characters"),
        ("", "of length 1"), (0, "of length 1"), (r"b'\x00'", "repr of bytes"), (4, "two quotes"),
        ((repr(NUL), ""), "of length 1"), ((NUL, repr(NUL)), "the other way round")],
    (ONE, "c"): [
        ("beforeafter", "stays in the text"), (11, "NUL was not counted"), (20, "was not counted"),
        (6, "a string ends at NUL"), (14, "a string ends at NUL")],
    (TWO, "a"): [
        ({"UTF-16": 12, "UTF-32": 20}, "Byte order mark"), ((5, 12, 20), "(BOMs) were counted"),
        ({"UTF-16": 11}, "not the sizes"), ((5, 10, 25), "'utf-32': 20"),
        ({"utf-16-le": 12}, "'utf-16-le': 10"), ({"né": {"UTF-8": 2}}, "Characters were counted"),
        (4.3e9, "end at 0x10FFFF")],
    (TWO, "b"): [
        (b"hello", "It is all ASCII"), ("hello", "It is all ASCII"), ("cafe", "It is all ASCII"),
        ("b'abc'", "It is all ASCII"), (b"\xff", "FF never occurs in UTF-8"),
        (b"\xc3", "only 1 is there"), (b"", "ASCII"), (3.5, "bytes on which")],
    (TWO, "c"): [
        (b"\xc3\xa9", "U+00E9"), (b"hi", "below 80 is ASCII"), ("c3 a9", "80 to BF"),
        (b"\xff", "Exactly two bytes"), (b"\xff\xff\xff", "Exactly two bytes"),
        ([0, 256], "from 0 to 255"), ("Ã(", "A str is decoded already"), (7, "two bytes, such as")],
    (TIME, "a"): [
        (b"accomplishment", "leading space was dropped"), ("accomplishment", "was dropped"),
        (14, "leading space was dropped"), (("responsibility", 15), "leading space was dropped"),
        ({"longest": b"disappointment"}, "leading space was dropped"),
        (b"xyzzy plugh", "Merges crossed pre-token boundaries"), (b" the", "short for the longest"),
        ({"seconds": 1029.17, "gb": 0.08}, "leaves out the workers"),
        ({"minutes": 17, "peak_memory_mb": 80}, "leaves out the workers"),
        ({"hours": 3, "gb": 4}, "update only the counts")],
    (TIME, "b"): [(3, "slowest step")],
    (WEB, "a"): [
        (32, "32 characters take 2 bytes each"), (7, "hand in the token itself"),
        ((b"\xc3\x83\xc3\x82" * 8, 64), "not its length")],
    (USE, "a"): [
        (0.24, "or 4.17 upside down"), ({"stories": 0.25, "docstrings": 0.3}, "upside down"),
        (2.86, "is every merge applied"), ({"TinyStories": 2.86}, "is every merge applied"),
        ((4.1, 1.0), "is every merge applied"), (32.0, "did you count words")],
    (USE, "b"): [("0.31 tokens per byte", "upside down"), ("3.2 tokens per byte", "upside down"),
                 (4.54, "which text is it")],
    (USE, "c"): [
        ((1e6, 246.07), "GB and GiB"), ((1e6, 218.55), "MB and MiB"),
        ((1e6, 229.17 * 8), "8 times too much: are bits and"),
        ((1e6, 229.17 / 8), "8 times too little"), ((1e6, 0.22917), "1,000 times too little"),
        ((1e6, 9.55), "hours and days"), (("1 MB/s", "229.2 days"), "24 times too much"),
        ((1e6, 825000.0), "hours and seconds"), ((1e6, 13750.0), "60 times too much"),
        ((1.0, 229.17), "MB and bytes"), ((1e6, 100.0), "do not match"),
        ({"MB/s": 1, "hours": 229.2, "days": 7.96}, "do not match"),
        ((-1, 100.0), "must be positive")],
    (USE, "d"): [
        (32_767, "int16, with a sign"), (255, "That is uint8"), (2**32 - 1, "That is uint32"),
        (32_000, "the size of one vocabulary"), (12, "beginning at 0")],
    (TOY, None): [
        ({10: run(100)}, "These are the losses for a learning rate of 100"),
        ({100: losses(100, 10, 2400.0, lambda t: 1 - 200 / math.sqrt(t + 1))}, "is yours a sum"),
        (losses(10, factor=lambda t: 0.8), "does not shrink"),
        ({10: losses(10, factor=lambda t: 1 - 0.2 / (t + 1))}, "root is missing"),
        (losses(1000, factor=lambda t: 1 - 20 / math.sqrt(t + 2)), "yours begins at 1"),
        ({10: losses(10, factor=lambda t: 1 + 0.2 / math.sqrt(t + 1))}, "goes uphill"),
        ({100: losses(100, first=1000.0)}, "not drawn afresh"),
        (losses(10, first=1.0), "lack the factor 5"), ({1000: 0.0}, "each step multiplies"),
        ({100: 25.0}, "not the loss after ten steps"), ([5.0, 7.0, 2.0, 9.0], "of the three runs")],
    (TEXT, None): [(60, "too short"), ([5] * 60, "too short"), ("60 tokens", "too short")],
}  # fmt: skip

# A sentence is never called wrong, whatever it says, and no number is fished out of it.
READ = {
    (ONE, "a"): [r"\u0000 (NUL)", "It is the null character; it prints as if it were empty.",
                 "It is the digit 0."],
    (ONE, "b"): [r"The repr shows '\x00'; print shows what looks like a space in my terminal.",
                 (repr(NUL), "nothing visible")],
    (ONE, "c"): ["The character is dropped from the printed output but len() still counts it."],
    (TWO, "a"): ["'hello' is 5 bytes in UTF-8, 10 in UTF-16 and 20 in UTF-32",
                 "UTF-8 is always shorter than UTF-16.", "a. " * 10_000],
    (TWO, "b"): ["é fails, since each of its two bytes is decoded alone",
                 "Decoding b'abc' byte by byte fails."],
    (TWO, "c"): ["0xC3 0x28 cannot be decoded, because 28 continues nothing", "11000011 00101000"],
    (TIME, "a"): ["62.44 s, 0.1084 GB (184 MB)", {"time": "1 min 40 s"}, (95, " accomplishment", 2),
                  "It took two minutes; the longest token is a long word, which makes sense."],
    (TIME, "b"): ["acquire() of locks dominates since main waits, so the cost is in findall."],
    (WEB, "a"): ["The longest token is a run of hyphens, as web pages use them for rulers."],
    (WEB, "b"): ["Both know common words; the web tokenizer also has names and markup."],
    (USE, "a"): ["TinyStories 2.86"],
    (USE, "b"): ["It falls: rare words are cut into many short tokens, and names into letters."],
    (USE, "c"): ["2.5 MB/s; the Pile would take 3.8 days, and on 64 cores about an hour."],
    (USE, "d"): ["uint16 reaches 65,535, and both vocabularies are smaller."],
    (TOY, None): ["With lr = 100 the loss bounces back at the end",
                  {10: "falls", 100: "zero after 4 steps", 1000: "grows"}],
    (TEXT, None): ["A sample of 60 tokens: fluent at first.", {"tokens": 300, "text": "Once"}],
}  # fmt: skip

# What does not say what it is of is asked for anew, with these words.
UNCLEAR = {
    (ONE, "c"): [(3, "Which text")],
    (TWO, "a"): [(7, "what was measured"), ({"日本": 7}, "what was measured")],
    (TIME, "a"): [(3.5, "the token itself"), (62, "the token itself"),
                  ({"time": 95.2, "memory": 2.1, "longest": " hello"}, "Name the unit")],
    (USE, "a"): [(-4.0, "not a ratio"), (5e6, "not a ratio")],
    (USE, "c"): [(1e6, "a pair")],
    (TOY, None): [(3.2, "Which run"), ([25.0], "all ten steps"), ({"a": 3}, "learning rates")],
}  # fmt: skip
