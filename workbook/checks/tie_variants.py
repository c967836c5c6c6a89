"""The ways in which a tie between equally frequent pairs is broken wrongly, each with its name."""

from collections.abc import Callable
from itertools import pairwise

from workbook.checks.bpe_reference import Pair, Word
from workbook.checks.text_variants import Variant
from workbook.tokenization.gpt2_files import to_readable

TIE = "Of equally frequent pairs the greater one is merged, as Python compares tuples of bytes: "


def _tie(choose: Callable, mistake: str) -> Variant:
    return Variant("choose", choose, TIE + mistake)


def _seen(words: list[Word], tied: list[Pair]) -> list[Pair]:
    """The tied pairs in the order in which the words hold them."""
    wanted = set(tied)
    order = dict.fromkeys(pair for word in words for pair in pairwise(word) if pair in wanted)
    return list(order) or tied


def _text(pair: Pair, errors: str) -> tuple[str, ...]:
    return tuple(token.decode("utf-8", errors) for token in pair)


TIES = (
    _tie(lambda tied, words, ids: _seen(words, tied)[0], "you took the first seen."),
    _tie(lambda tied, words, ids: tied[0], "you took the first seen (first in the dict)."),
    _tie(lambda tied, words, ids: min(tied), "you took the smaller pair."),
    _tie(
        lambda tied, words, ids: max(tied, key=lambda pair: (ids[pair[0]], ids[pair[1]])),
        "you compared their ids. The greater id is only the later token.",
    ),
    _tie(
        lambda tied, words, ids: min(tied, key=lambda pair: (ids[pair[0]], ids[pair[1]])),
        "you took the smaller pair of ids.",
    ),
    _tie(
        lambda tied, words, ids: max(_seen(words, tied), key=lambda pair: pair[0] + pair[1]),
        "you compared the two parts joined to one string, and (b'a', b'bc') is less than "
        "(b'ab', b'b') though abc is greater than abb.",
    ),
    _tie(
        lambda tied, words, ids: max(_seen(words, tied), key=lambda pair: _text(pair, "replace")),
        "you compared decoded text, where bytes that are no whole character all become U+FFFD.",
    ),
    _tie(
        lambda tied, words, ids: max(_seen(words, tied), key=lambda pair: _text(pair, "ignore")),
        "you compared decoded text, where bytes that are no whole character vanish.",
    ),
    _tie(
        lambda tied, words, ids: max(tied, key=lambda pair: tuple(map(to_readable, pair))),
        "you compared GPT-2's visible characters, where the space (Ġ) comes behind the letters.",
    ),
    _tie(
        lambda tied, words, ids: min(tied, key=lambda p: [tuple(-byte for byte in t) for t in p]),
        "your key turns the bytes round (as for a heap) but puts a short string before the longer "
        "one that begins with it, and b'ab' is greater than b'a'.",
    ),
    _tie(
        lambda tied, words, ids: max(_seen(words, tied), key=lambda pair: pair[0]),
        "you compared only the first part of the pair.",
    ),
    _tie(
        lambda tied, words, ids: max(_seen(words, tied), key=lambda pair: pair[1]),
        "you compared only the second part of the pair.",
    ),
    _tie(
        lambda tied, words, ids: max(tied, key=lambda pair: (pair[1], pair[0])),
        "you compared the second part before the first.",
    ),
    _tie(lambda tied, words, ids: _seen(words, tied)[-1], "you took the last seen."),
    _tie(lambda tied, words, ids: tied[-1], "you took the last seen (last in the dict)."),
    _tie(
        lambda tied, words, ids: max(_seen(words, tied), key=lambda pair: len(pair[0] + pair[1])),
        "you took the longer one.",
    ),
    _tie(
        lambda tied, words, ids: max(tied, key=lambda pair: (len(pair[0] + pair[1]), pair)),
        "you took the longer one.",
    ),
    _tie(
        lambda tied, words, ids: min(_seen(words, tied), key=lambda pair: len(pair[0] + pair[1])),
        "you took the shorter one.",
    ),
    _tie(
        lambda tied, words, ids: max(tied, key=str),
        "you compared what `str` or `repr` makes of them.",
    ),
)
