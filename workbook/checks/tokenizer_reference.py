"""A small tokenizer made of stages, so that a check can put a usual mistake in place of each.

It is written for short texts, and shares only the pattern with `workbook.tokenization.tokenizer`.
"""

import random
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import regex

from workbook.checks.bpe_reference import Pair, Word, merge, split_bytes
from workbook.checks.text_variants import Variant, decode, pretokens, stages
from workbook.tokenization.gpt2_files import byte_alphabet


class Setup(NamedTuple):
    """What a tokenizer is made of."""

    layout: str  # how the ids are given out: a key of `LAYOUTS`
    merges: tuple[Pair, ...]
    known: tuple[str, ...]  # the special tokens that the vocabulary holds
    special_tokens: tuple[str, ...] | None

    def vocab(self) -> dict[int, bytes]:
        """The vocabulary that is handed to the learner's class."""
        return dict(_vocab(self))

    def ids(self) -> dict[bytes, int]:
        """The id of each token; special tokens that the vocabulary lacks get the next free ids."""
        return dict(_ids(self))

    def specials(self) -> tuple[str, ...]:
        """The special tokens, none where the argument is None."""
        return self.special_tokens or ()


class Text(NamedTuple):
    """An input of `encode`."""

    setup: Setup
    text: str


class Pieces(NamedTuple):
    """An input of `encode_iterable`."""

    setup: Setup
    pieces: tuple[str, ...]


class Ids(NamedTuple):
    """An input of `decode`."""

    setup: Setup
    ids: tuple[int, ...]


def _bytes_first(tokens: list[bytes], specials: list[bytes]) -> list[bytes]:
    return [*tokens, *specials]


def _specials_first(tokens: list[bytes], specials: list[bytes]) -> list[bytes]:
    return [*specials, *tokens]


def _gpt2(tokens: list[bytes], specials: list[bytes]) -> list[bytes]:
    alphabet = byte_alphabet()
    in_order = sorted(tokens[:256], key=lambda token: alphabet[token[0]])
    return [*in_order, *tokens[256:], *specials]


def _shuffled(tokens: list[bytes], specials: list[bytes]) -> list[bytes]:
    mixed = [*tokens, *specials]
    random.Random(336).shuffle(mixed)
    return mixed


LAYOUTS: dict[str, Callable[[list[bytes], list[bytes]], list[bytes]]] = {
    "the 256 bytes, merges, special tokens": _bytes_first,
    "special tokens, the 256 bytes, merges": _specials_first,
    "GPT-2's: visible bytes first, the others, merges, special tokens": _gpt2,
    "in no order": _shuffled,
}
BYTES_FIRST, SPECIALS_FIRST, GPT2, SHUFFLED = LAYOUTS


@lru_cache
def _vocab(setup: Setup) -> dict[int, bytes]:
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [left + right for left, right in setup.merges]
    specials = [token.encode() for token in setup.known]
    return dict(enumerate(LAYOUTS[setup.layout](tokens, specials)))


@lru_cache
def _ids(setup: Setup) -> dict[bytes, int]:
    ids = {token: token_id for token_id, token in _vocab(setup).items()}
    for token in setup.specials():
        ids.setdefault(token.encode(), len(ids))
    return ids


def cut_specials(text: str, special_tokens: tuple[str, ...]) -> list[tuple[str, bool]]:
    """The text cut at its special tokens, each part with whether it is one; the longest wins."""
    return cut_in_order(text, sorted(special_tokens, key=len, reverse=True))


def cut_in_order(text: str, tokens: list[str]) -> list[tuple[str, bool]]:
    """The same; of two that start at one place, the earlier in the list wins."""
    if not tokens:
        return [(text, False)]
    parts = regex.split(f"({'|'.join(map(regex.escape, tokens))})", text)
    return [(part, at % 2 == 1) for at, part in enumerate(parts) if part]


def merge_word(word: Word, ranks: dict[Pair, int], ids: dict[bytes, int]) -> Word:
    """The tokens of a pre-token: the earliest merge that applies, again and again."""
    while pairs := [pair for pair in pairwise(word) if pair in ranks]:
        word = merge(word, min(pairs, key=ranks.__getitem__))
    return word


def join(tokens: list[bytes], special: list[bytes]) -> str:
    """The text of the tokens; malformed bytes become U+FFFD."""
    return b"".join(tokens).decode("utf-8", errors="replace")


def stream(given: Pieces, encode_text: Callable[[str], list[int]]) -> Iterator[int]:
    """The ids of the joined pieces."""
    yield from encode_text("".join(given.pieces))


RIGHT: dict[str, Callable] = {
    "read": decode,
    "special": Setup.specials,
    "cut": cut_specials,
    "pretokens": pretokens,
    "symbols": split_bytes,
    "word": merge_word,
    "ids": Setup.ids,
    "finish": lambda ids, given: ids,
    "join": join,
    "stream": stream,
}


def encode(given: Text, variants: tuple[Variant, ...] = ()) -> list[int]:
    """The ids of a text."""
    do = stages(RIGHT, variants)
    setup, ids = given.setup, do["ids"](given.setup)
    ranks = {pair: rank for rank, pair in enumerate(setup.merges)}
    result = []
    for part, special in do["cut"](do["read"](given.text.encode()), do["special"](setup)):
        if special:
            result.append(ids[part.encode()])
            continue
        for token in do["pretokens"](part):
            word = do["word"](do["symbols"](token), ranks, setup.ids())
            result += [ids[symbol] for symbol in word]
    return do["finish"](result, given)


def encode_pieces(given: Pieces, variants: tuple[Variant, ...] = ()) -> list[int]:
    """The ids of the joined pieces, as `encode_iterable` yields them."""
    do = stages(RIGHT, variants)
    return list(do["stream"](given, lambda text: encode(Text(given.setup, text), variants)))


def decode_ids(given: Ids, variants: tuple[Variant, ...] = ()) -> str:
    """The text of ids."""
    tokens = {token_id: token for token, token_id in given.setup.ids().items()}
    special = [token.encode() for token in given.setup.specials()]
    join_tokens = stages(RIGHT, variants)["join"]
    return join_tokens([tokens[token_id] for token_id in given.ids], special)


RUN: dict[type, Callable] = {Text: encode, Pieces: encode_pieces, Ids: decode_ids}


@lru_cache(maxsize=4096, typed=True)  # equal tuples, but not of equal kind
def predicted(given: Text | Pieces | Ids, variants: tuple[Variant, ...] = ()) -> list[int] | str:
    """What the reference gives, or with the mistakes of the variants; "error" for an exception."""
    if not variants:
        return RUN[type(given)](given)
    try:
        return RUN[type(given)](given, variants)
    except Exception:  # a variant may fail in any way that a learner's code may
        return "error"
