"""Written answers as learners hand them in: (problem, part, attempt), and what is said."""

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
    generator = torch.Generator().manual_seed(0)
    weights = torch.nn.Parameter(5 * torch.randn((10, 10), generator=generator))
    found = []
    for t in range(steps):
        weights.grad = None
        loss = (weights**2).mean()
        found.append(loss.item())
        loss.backward()
        weights.data -= rate / math.sqrt(t + 1) * weights.grad
    return found


RIGHT = [
    *(
        (ONE, "a", attempt, "U+0000")
        for attempt in (NUL, 0, numpy.int64(0), "NUL", "null", "U+0000", "U+0", "0x00", "0x0",
                        r"\x00", r"'\x00'", "␀", "the null character", "a NUL byte",
                        "the zero character", "code point 0", "the character with code point 0")
    ),
    *((ONE, "b", attempt, "") for attempt in (repr(NUL), r"\x00", NUL, 6, 1, (repr(NUL), NUL))),
    *(
        (ONE, "c", attempt, "")
        for attempt in ("before\x00after", "this is a test\x00string", 12, 21, "21", "a\0b")
    ),
    *((TWO, "a", size, "bytes in UTF") for size in (5, 10, 12, 20, 24, "20 bytes")),
    (TWO, "a", 256, "values of a byte"),
    (TWO, "a", [5, 12, 24], ""),
    (TWO, "a", (5, 10, 20), ""),
    (TWO, "a", {"utf-8": 5, "utf-16": 12, "utf-32": 24}, ""),
    (TWO, "a", {"UTF-8": 5, "UTF-16": 10, "UTF-32": 20}, ""),
    (TWO, "a", {"UTF-32": 20}, ""),
    (TWO, "a", {"utf-16": 12, "utf-32-le": 20}, ""),
    (TWO, "a", {"né": {"UTF-8": 3, "UTF-16": 6}, "日": {"utf8": 3}}, ""),
    *(
        (TWO, "b", attempt, "takes")
        for attempt in ("é".encode(), bytearray("日".encode()), "ü", "hello 🙂", "naïve", "c3 a9",
                        r"b'\xc3\xa9'", '"naïve".encode()', "`'é'.encode('utf-8')`", [0xC3, 0xA9],
                        ("é".encode(), "because it is two bytes"))
    ),
    (TWO, "c", b"\xbf\xcf", "BF is a continuation byte"),
    (TWO, "c", b"\xc3\x28", "28 is no continuation byte"),
    (TWO, "c", b"\xc0\x20", "C0 never occurs"),
    (TWO, "c", [0xAA, 0xAA], "AA is a continuation byte"),
    (TWO, "c", (0xFF, 0x20), "FF never occurs"),
    (TWO, "c", "e2 82", "only 2 are there"),
    (TWO, "c", "0xC3 0x28", "28 is no continuation byte"),
    (TWO, "c", r"b'\xc3('", "28 is no continuation byte"),
    (TWO, "c", bytearray(b"\xed\xa0"), "belong to UTF-16"),
    (TWO, "c", [b"\x80", b"\x80"], "80 is a continuation byte"),
    (TIME, "a", b" accomplishment", "15 bytes"),
    (TIME, "a", " accomplishment", ""),
    (TIME, "a", "Ġresponsibility", ""),
    (TIME, "a", "b' Everything'", "cannot be checked here"),
    (TIME, "a", (" disappointment", 15), ""),
    (TIME, "a", 15, ""),
    (TIME, "a", "15 bytes", ""),
    (TIME, "a", "62 s", "Plausible"),
    (TIME, "a", {"seconds": 62.0, "gigabytes": 1.9, "longest": b" accomplishment"}, "Plausible"),
    (TIME, "a", {"time": "2 minutes", "memory": "3.1 GiB"}, ""),
    (TIME, "a", {"seconds": 61.72, "mb": 158.3}, ""),
    (TIME, "a", b" unfortunately", "cannot be checked here"),
    (WEB, "a", TWICE, "read as Latin-1 and encoded again"),
    (WEB, "a", b"-" * 64, "a ruler"),
    (WEB, "a", 64, ""),
    *(
        (USE, part, attempt, "plausible")
        for part in "ab"
        for attempt in (4.0, (3.9, 3.4), {"stories": 4.1, "pydocs": 3.3}, "4.1 bytes/token",
                        numpy.float64(4.05))
    ),
    *(
        (USE, "c", attempt, "The division is right")
        for attempt in ((1e6, 229.2), (713258.83, 321.3), ("0.67 MB/s", "342 h"),
                        ("713258.83 B/s", "14 d"), ("1 MB/s", "10 d"), ("1 MB/s", 229),
                        {"bytes_per_second": 1e6, "hours": 229.17},
                        {"mb_per_s": 2.5, "pile_days": 3.82})
    ),
    (USE, "c", ("3000 B/s", "76388 h"), "very slow"),
    *((USE, "d", attempt, "") for attempt in (65_535, 65_536, 2**16, "65,535", 2)),
    *(
        (TOY, None, attempt, "follow")
        for attempt in (run(10), run(100), run(1000), run(1000, 30), losses(100)[1:],
                        [round(loss, 2) for loss in run(100)], tuple(run(10)),
                        torch.tensor(run(100)), numpy.array(run(10)),
                        [run(10), run(100), run(1000)],
                        {10: run(10), 100: run(100), 1000: run(1000)},
                        {"lr=1e1": run(10), "lr=1e3": torch.tensor(run(1000))},
                        {1.0: run(1), 10.0: run(10), 100.0: run(100)})
    ),
    (TOY, None, {10: run(10)[-1], 100: run(100)[-1], 1000: run(1000)[-1]}, "ten steps"),
    *((TEXT, None, attempt, "") for attempt in (256, "300 tokens", [5] * 256, (7,) * 400)),
]  # fmt: skip

WRONG = [
    (ONE, "a", "b'\\x00'", "repr of bytes for the repr of a str"),
    (ONE, "a", b"\x00", "`chr` gives a str"),
    (ONE, "a", "0", "chr(48) is the digit"),
    (ONE, "a", 48, "chr(48) is the digit"),
    (ONE, "a", r"\x30", "chr(48) is the digit"),
    (ONE, "a", "0x30", "chr(48) is the digit"),
    (ONE, "a", "digit zero", "chr(48) is the digit"),
    (ONE, "a", "", "of length 1"),
    (ONE, "a", NUL * 2, "one character"),
    (ONE, "a", " ", "ord(chr(0))"),
    (ONE, "a", "a space", "ord(chr(0))"),
    (ONE, "a", 1, "ord(chr(0))"),
    (ONE, "a", "a", "ord(chr(0))"),
    (ONE, "a", "U+0041", "'A'"),
    (ONE, "b", "", "of length 1"),
    (ONE, "b", 0, "of length 1"),
    (ONE, "b", "b'\\x00'", "repr of bytes"),
    (ONE, "b", (repr(NUL), ""), "of length 1"),
    (ONE, "c", "beforeafter", "stays in the text"),
    (ONE, "c", 11, "NUL was not counted"),
    (ONE, "c", 20, "NUL was not counted"),
    (ONE, "c", 6, ""),
    (TWO, "a", {"UTF-16": 12, "UTF-32": 20}, "writes 4 bytes in front"),
    (TWO, "a", {"UTF-16": 10, "UTF-32": 24}, "byte order mark (BOM) was forgotten"),
    (TWO, "a", (5, 12, 20), "byte order mark (BOM) was forgotten"),
    (TWO, "a", {"UTF-16": 11}, "not the size in UTF-16"),
    (TWO, "a", (5, 10, 25), "not the size in UTF-32"),
    (TWO, "a", {"utf-16-le": 12}, "not the size in UTF-16-LE"),
    (TWO, "a", {"né": {"UTF-8": 2}}, "Characters were counted"),
    (TWO, "a", 2**32, "the range of a 32-bit integer"),
    (TWO, "a", 4.3e9, "the range of a 32-bit integer"),
    (TWO, "b", b"hello", "All of it is ASCII"),
    (TWO, "b", "hello", "All of it is ASCII"),
    (TWO, "b", "b'abc'", "All of it is ASCII"),
    (TWO, "b", b"\xff", "FF never occurs in UTF-8"),
    (TWO, "b", b"\xc3", "only 1 is there"),
    (TWO, "b", b"", "ASCII"),
    (TWO, "b", 3.5, "bytes on which"),
    (TWO, "c", b"\xc3\xa9", "C3 begins a character of two bytes, and A9 continues it"),
    (TWO, "c", b"hi", "each a character of its own"),
    (TWO, "c", "c3 a9", "U+00E9"),
    (TWO, "c", b"\xff", "Exactly two bytes"),
    (TWO, "c", b"\xff\xff\xff", "Exactly two bytes"),
    (TWO, "c", [0, 256], "from 0 to 255"),
    (TWO, "c", "Ã(", "A str is decoded already"),
    (TWO, "c", 7, "two bytes, such as"),
    (TIME, "a", b"accomplishment", "The leading space was dropped"),
    (TIME, "a", "accomplishment", "The leading space was dropped"),
    (TIME, "a", "b'accomplishment'", "The leading space was dropped"),
    (TIME, "a", 14, "The leading space was dropped"),
    (TIME, "a", ("responsibility", 15), "leading space was dropped"),
    (TIME, "a", {"longest": b"disappointment"}, "leading space was dropped"),
    (TIME, "a", b"xyzzy plugh", "Merges reached across pre-tokens"),
    (TIME, "a", b" the", "short for the longest"),
    (TIME, "a", {"seconds": 1029.17, "gb": 0.08}, "RUSAGE_SELF does not see the children"),
    (TIME, "a", {"minutes": 17, "peak_memory_mb": 80}, "RUSAGE_SELF does not see the children"),
    (TIME, "a", {"hours": 3, "gb": 4}, "all pairs are probably counted anew"),
    (TIME, "b", 3, "slowest step"),
    (WEB, "a", 32, "32 characters take 2 bytes each"),
    (WEB, "a", (b"\xc3\x83\xc3\x82" * 8, 64), "do not fit together"),
    (WEB, "a", 7, "hand in the token itself"),
    (USE, "a", 0.24, "here 4.17"),
    (USE, "a", {"stories": 0.25, "pydocs": 0.3}, "upside down"),
    (USE, "b", "0.31 tokens per byte", "upside down"),
    (USE, "a", 2.86, "The merges are not fully applied"),
    (USE, "a", {"TinyStories": 2.86}, "The merges are not fully applied"),
    (USE, "a", (4.1, 1.0), "The merges are not fully applied"),
    (USE, "a", 32.0, "words counted in place of tokens"),
    (USE, "b", 4.54, "its own tokenizer"),
    (USE, "c", (1e6, 246.07), "825 GiB were divided"),
    (USE, "c", (1e6, 218.55), "taken in MiB"),
    (USE, "c", (1e6, 229.17 * 8), "8 times too much"),
    (USE, "c", (1e6, 229.17 / 8), "8 times too little"),
    (USE, "c", (1e6, 0.22917), "A factor of 1,000 was lost"),
    (USE, "c", (1e6, 229170), "A factor of 1,000 too much"),
    (USE, "c", (1e6, 9.55), "Days were taken for hours"),
    (USE, "c", ("1 MB/s", "229.2 days"), "Hours were taken for days"),
    (USE, "c", (1e6, 825000.0), "Seconds were taken for hours"),
    (USE, "c", (1e6, 13750.0), "A factor of 60 too much"),
    (USE, "c", (1.0, 229.17), "A factor of 1,000,000 was lost"),
    (USE, "c", (1e6, 100.0), "do not fit together"),
    (USE, "c", (-1, 100.0), "more than nothing"),
    (USE, "d", 32_767, "the reach of int16"),
    (USE, "d", 255, "That is uint8"),
    (USE, "d", 2**32 - 1, "That is uint32"),
    (USE, "d", 32_000, "the size of one vocabulary"),
    (USE, "d", 12, "beginning at 0"),
    (TOY, None, {10: run(100)}, "These are the losses with 100"),
    (TOY, None, {100: losses(100, first=2400.0, factor=lambda t: 1 - 200 / math.sqrt(t + 1))},
     "a sum"),
    (TOY, None, losses(10, factor=lambda t: 0.8), "does not shrink"),
    (TOY, None, {10: losses(10, factor=lambda t: 1 - 0.2 / (t + 1))}, "root is missing"),
    (TOY, None, losses(1000, factor=lambda t: 1 - 20 / math.sqrt(t + 2)), "yours begins at 1"),
    (TOY, None, {10: losses(10, factor=lambda t: 1 + 0.2 / math.sqrt(t + 1))}, "up the hill"),
    (TOY, None, {100: losses(100, first=0.01 * 1e5)}, "not drawn anew"),
    (TOY, None, losses(10, first=1.0), "lack the factor 5"),
    (TOY, None, {1000: 0.0}, "Each step multiplies"),
    (TOY, None, {100: 25.0}, "not the loss after ten steps"),
    (TOY, None, [5.0, 7.0, 2.0, 9.0], "any of the three runs"),
    *((TEXT, None, attempt, "too short") for attempt in (60, [5] * 60, "60 tokens")),
]  # fmt: skip

# A sentence is never called wrong, whatever it says, and no number is fished out of it.
READ = [
    (ONE, "a", "It is the null character. It prints as if it were an empty string."),
    (ONE, "a", "It is the digit zero."),
    (ONE, "b", r"The repr shows '\x00'; print shows what looks like a space in my terminal."),
    (ONE, "c", "The character is dropped from the printed output but len() still counts it."),
    (TWO, "a", "'hello' is 5 bytes in UTF-8, 10 in UTF-16 and 20 in UTF-32"),
    (TWO, "a", "UTF-8 is always shorter than UTF-16."),
    (TWO, "b", "é fails, since each of its two bytes is decoded alone"),
    (TWO, "b", "Decoding b'abc' byte by byte fails."),
    (TWO, "c", "0xC3 0x28 cannot be decoded, because 28 continues nothing"),
    (TIME, "a", "62.44 s, 0.1084 GB (184 MB)"),
    (TIME, "a", "It took two minutes; the longest token is a long word, which makes sense."),
    (TIME, "b", "acquire() of locks dominates since main waits, so the real cost is in findall."),
    (WEB, "a", "The longest token is a run of hyphens, as web pages use them for rulers."),
    (WEB, "b", "Both know common words; the web tokenizer also has names and markup."),
    (USE, "a", "TinyStories 2.86"),
    (USE, "b", "It falls: rare words are cut into many short tokens, and names into letters."),
    (USE, "c", "2.5 MB/s; the Pile would take 3.8 days, and on 64 cores about an hour and a half."),
    (USE, "d", "uint16 reaches 65,535, and both vocabularies are smaller."),
    (TOY, None, "lr = 10 decays slowly, 100 falls to about zero, 1000 diverges."),
    (TOY, None, "With lr = 100 the loss bounces back at the end"),
    (TOY, None, {10: "falls", 100: "zero after 4 steps", 1000: "grows"}),
    (TEXT, None, "A sample of 60 tokens: fluent at first."),
]

UNCLEAR = [
    (TWO, "a", 7),
    (TIME, "a", 3.5),
    (USE, "a", -4.0),
    (USE, "a", 5e6),
    (USE, "c", 1e6),
    *((TOY, None, attempt) for attempt in (3.2, [25.0], {"a": 3})),
]
