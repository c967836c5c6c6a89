"""The texts that `check("train_bpe", ...)` trains on, from tiny to larger.

Each keeps a few usual mistakes apart. The order matters: the first text that fails is shown.
"""

import random
from collections import Counter
from functools import lru_cache

from workbook.checks.bpe_reference import Input, Pair
from workbook.checks.text_variants import documents, pretokens
from workbook.tokenization.bpe import train_incremental

END = "<|endoftext|>"


def case(text: str, num_merges: int, *special_tokens: str) -> Input:
    """A training input with room for so many merges."""
    return Input(text.encode(), 0, special_tokens).with_merges(num_merges)


SMALL = (
    case("hug hug hug pug", 3),
    # Ties: the greater pair is neither the first seen, nor the last, nor ...
    case("ba zz ca zy dd dd", 1),
    case(f"low low low!{END}low lower newer{END}er er", 4, END),
    # Runs of one letter: how overlapping pairs are counted and merged.
    case(" aaaa aaa aaaaa aa" * 2, 3),
    # A pair twice in a row and twice in a word.
    case(" ababab abab abc abc babab cab" * 2, 7),
    # Counts around a merge.
    case("banana bandana ananas nanny cabana " * 2, 14),
    # Ties between tokens of several bytes.
    case("abc bca cab abb bab aab bba " * 2, 12),
    # What begins with what, and bytes that are no whole character.
    case("ö ø ö ø é è ü û ñ 猫 猴 狗 猫 é 🙂🙃 " * 2, 20),
    # Special tokens: at both ends, side by side, inside a word, with operators of patterns.
    case(f"{END}ab{END}{END}abc ab {END} cab\n\n{END}\n\nab" * 2, 5, END),
    case("x<|.*|>y z<|.*|>y z<|+|>zy (a|b) <|*|> xy zy\n<|+|>\nxz " * 2, 9, "<|.*|>", "<|+|>"),
    case(f"b<|pad|>abc{END}abc<|pad|>{END}ab" * 2, 2, "<|pad|>", END),
    # A document of nothing but white space, and line ends beside a special token.
    case(f"ab{END}   {END}   {END}ba" * 2, 2, END),
    case(f"ab{END}\n\n\nab ba{END}\nab\n\n", 4, END),
    # One that is not in the list is text.
    case(f"ab{END}ab{END}ba" * 2, 11, "<|pad|>"),
    # All that the pattern keeps apart.
    case("It's we'll I'd 'TIS 'quote' CAN'T DON'T" * 2, 18),
    case("a  b   cc\n\n\nd \n e\tf\u00a0g\u3000h \n\n  x  " * 2, 12),
    case("in 2026 and 12345 x2 7up 3.14 a_b b_c x² ½ Ⅳ ١٢٣ " * 2, 28),
    case("naïve Übung día हिन्दी 한국어 наука e\u0301te\u0301 " * 2, 40),
    case("stop! (really?) ... --- #1 a+b=c e-mail!!\nEnd.\n" * 2, 22),
    # The text runs out of pairs.
    case("ab cab", 9),
    case(f"ab{END}", 3, END),
)

OTHER = case("vw", 1)  # shares no letter with the first text

OPEN = (  # what the course does not settle, and what to say of another result
    (
        case("ab\r\ncd\r\nab\r\n\r\n" * 3, 6),
        r"the line ends \r\n give other merges than the reference finds.",
    ),
    (
        case("bd<|end|>bc<|end|>bc<|end|>bcbd", 1, "<|end|>", "<|end|>b"),
        "a special token that begins with another one gives other merges than the reference finds.",
    ),
    (
        case("ay<|x<|end|>y|>ay<|x<|end|>y|>", 1, "<|end|>", "<|x<|end|>y|>"),
        "a special token that contains another one gives other merges than the reference finds.",
    ),
    (case("", 4, END), "an empty file gives the 256 bytes, the special tokens and no merge."),
)

WORD = " Größenwahn"  # 13 bytes and 11 characters, so that borders at 4096, 65536 ... cut it


@lru_cache
def larger() -> tuple[Input, ...]:
    """Longer texts from a seed, for what short ones do not bring to light."""
    rng = random.Random(336)
    runs = "".join(rng.choices("ab ", (6, 3, 1), k=700))
    syllables = [rng.choice("bdklmnrst") + rng.choice("aeio") for _ in range(12)]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(60)]
    marks = [" ", " ", " ", " ", ", ", ". ", "\n", "\n\n", "  ", " 12 ", "'s ", END, "é "]
    prose = "".join(rng.choice(words) + rng.choice(marks) for _ in range(350))
    mixed = "".join(rng.choices("猫猴狗éèab 🙂", k=400))
    return (
        case(runs, 40),
        case(prose, 120, END),
        case(mixed, 30),
        case(runs + prose, 90, END, "<|a|>"),
    )


def one_word() -> Input:
    """Two megabytes of one word: a cut inside any of them changes the merges."""
    return case(WORD * 160_001, len(WORD.encode()) - 1)


@lru_cache
def megabyte() -> Input:
    """A megabyte of made-up words, some frequent and most of them rare, in documents."""
    rng = random.Random(336)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    often = [1 / rank for rank in range(1, len(letters) + 1)]
    words = ["".join(rng.choices(letters, often, k=rng.randint(2, 9))) for _ in range(1200)]
    drawn = rng.choices(words, [1 / rank for rank in range(1, len(words) + 1)], k=200_000)
    lines = [" ".join(drawn[at : at + 50]) + "." for at in range(0, len(drawn), 50)]
    return case(
        "\n".join(f"{line}{END}" if at % 5 == 0 else line for at, line in enumerate(lines)),
        343,
        END,
    )


@lru_cache
def megabyte_merges(given: Input) -> list[Pair]:
    """The merges of a long input, from the package's own trainer: the small reference is slow."""
    counts = Counter(
        token
        for text in documents(given.data.decode(), given.special_tokens)
        for token in pretokens(text)
    )
    return train_incremental(counts, given.num_merges)
