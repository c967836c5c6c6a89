"""Odd texts, their pre-tokens by the obvious way, and compiled results in Python's own types."""

import os
import random
from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise

import numpy as np
import regex
from hypothesis import strategies as st

from workbook.tokenization.compiled import count, merge, table, text
from workbook.tokenization.pretokens import PATTERN

# Characters that the pattern tells apart, and some that look alike to a careless scanner.
ODD = "'sdmtlverSDMT \n\t\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2003\u2028\u202f\u3000\u200b"
ODD += "²½Ⅷaé中🙂\u0301_-<|0"
TEXTS = st.text(st.sampled_from(ODD)) | st.text()

# Texts with parts of the special tokens in them.
MARKED = (
    st.text(st.sampled_from("ab'sLlre19 \n\t\u00a0\u3000é好🙂\u0301!<|>\r\x1c\x85")) | st.text()
)
SPECIALS = st.lists(
    st.sampled_from(["<|", "<|>", "|>", "a b", "'s", " ", "\n\n", "好"]), max_size=4
)

# `make stress` tries this many times as many random strings.
STRESS = int(os.environ.get("STRESS", "1"))
PIECES = [*"abeths'1I,. \n好é🙂|<\u3000\xa0", "'ll", "'ve", "the", "  ", "\r\n", "o'clock"]


def random_strings() -> Iterator[str]:
    """Odd strings, half of them around the 64th byte, where a block of the engine ends.

    They are a million under `make stress`, and else a few thousand.
    """
    draw = random.Random(STRESS)
    for _ in range(34_000 * STRESS if STRESS > 1 else 5_000):
        before = draw.choice("a1! \n'é好🙂")
        length = draw.choice((0, draw.randint(55, 66)))
        pieces = draw.choices(PIECES, k=draw.randint(1, 12))
        yield before * (length // len(before.encode())) + "".join(pieces)


def counted(string: str, special_tokens=(), capacity: int = 4) -> count.Counts:
    """The pre-tokens of a text, counted in a table that has to grow."""
    entries = table.PretokenTable(capacity)
    special = text.SpecialTokens(dict.fromkeys(special_tokens, 0))
    for span in text.spans_of(text.utf8_of(string), special_tokens):
        count.count_text(entries, span, special)
    return count.Counts(*entries.contents())


def as_counter(counts: count.Counts) -> Counter[str]:
    """The counts as `spans.count_pretokens` returns them."""
    places = pairwise([0, *np.cumsum(counts.lengths).tolist()])
    words = [bytes(counts.text[start:stop]).decode() for start, stop in places]
    return Counter(dict(zip(words, counts.counts.tolist(), strict=True)))


def merges_of(counts: count.Counts, number: int) -> list[tuple[bytes, bytes]]:
    """The merges as `bpe.train_naive` returns them."""
    return merge.spelled_out(merge.learn_merges(counts, number))


def pretokens_of(text: str, special_tokens=()) -> list[str]:
    """The pre-tokens by the obvious way: split the whole text, then match each part."""
    longest_first = sorted(special_tokens, key=len, reverse=True)
    parts = [text]
    if longest_first:
        parts = regex.split("(" + "|".join(map(regex.escape, longest_first)) + ")", text)
    return list(
        chain.from_iterable(
            [part] if part in special_tokens else regex.findall(PATTERN, part) for part in parts
        )
    )
