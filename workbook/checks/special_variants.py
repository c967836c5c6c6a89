"""The ways in which a tokenizer treats special tokens and ids wrongly, each with its name."""

import regex

from workbook.checks.text_variants import Variant
from workbook.checks.tokenizer_reference import Setup, cut_in_order, cut_specials


def _ignored(text: str, tokens: tuple[str, ...]) -> list[tuple[str, bool]]:
    return [(text, False)]


def _unescaped(text: str, tokens: tuple[str, ...]) -> list[tuple[str, bool]]:
    if not tokens:
        return [(text, False)]
    pattern = "|".join(sorted(tokens, key=len, reverse=True))
    parts = [part for part in regex.split(f"({pattern})", text) if part]
    return [(part, part in tokens) for part in parts]


def _dropped(text: str, tokens: tuple[str, ...]) -> list[tuple[str, bool]]:
    return [part for part in cut_specials(text, tokens) if not part[1]]


def _stripped(text: str, tokens: tuple[str, ...]) -> list[tuple[str, bool]]:
    return [
        (part if special else part.strip(), special) for part, special in cut_specials(text, tokens)
    ]


def _stripped_beside(text: str, tokens: tuple[str, ...]) -> list[tuple[str, bool]]:
    if not tokens:
        return [(text, False)]
    longest_first = sorted(tokens, key=len, reverse=True)
    parts = regex.split(rf"\s*({'|'.join(map(regex.escape, longest_first))})\s*", text)
    return [(part, at % 2 == 1) for at, part in enumerate(parts) if part]


def _first_place(text: str, tokens: tuple[str, ...]) -> list[tuple[str, bool]]:
    parts = cut_specials(text, tokens)
    at = next((at for at, (_, special) in enumerate(parts) if special), len(parts))
    return [*parts[: at + 1], ("".join(part for part, _ in parts[at + 1 :]), False)]


def _whole_words(text: str, tokens: tuple[str, ...]) -> list[tuple[str, bool]]:
    if not tokens:
        return [(text, False)]
    parts = regex.split(rf"(?<!\S)({'|'.join(map(regex.escape, tokens))})(?!\S)", text)
    return [(part, at % 2 == 1) for at, part in enumerate(parts) if part]


def _one_after_another(text: str, tokens: tuple[str, ...]) -> list[tuple[str, bool]]:
    parts = [(text, False)]
    for token in tokens:
        parts = [
            piece
            for part, special in parts
            for piece in ([(part, special)] if special else cut_in_order(part, [token]))
        ]
    return parts


def _empty_pattern(text: str, tokens: tuple[str, ...]) -> list[tuple[str, bool]]:
    return cut_specials(text, tokens) if tokens else [(character, False) for character in text]


END = "<|endoftext|>"
LONGEST = "Of special tokens that overlap, the longest wins: "
SPECIALS = (
    Variant(
        "cut",
        _ignored,
        "Special tokens were encoded like ordinary text: cut the text at them first, and give each "
        "its own id.",
    ),
    Variant(
        "cut",
        _unescaped,
        "The special tokens went into the regular expression unescaped, where `|`, `.` or `*` are "
        "operators: use `re.escape`.",
    ),
    Variant(
        "cut",
        lambda text, tokens: cut_in_order(text, list(tokens)),
        LONGEST + "sort them by length, longest first, before you join them to a pattern.",
    ),
    Variant(
        "cut",
        _one_after_another,
        LONGEST + "the text was cut at one after the other; cut at all of them in one pass.",
    ),
    Variant(
        "special",
        lambda setup: setup.specials()[:1],
        "Only the first of the special tokens was treated as special.",
    ),
    Variant(
        "special",
        lambda setup: setup.specials()[-1:],
        "Only the last of the special tokens was treated as special.",
    ),
    Variant(
        "special",
        lambda setup: tuple(token for token in setup.specials() if token == END),
        "Only <|endoftext|> was treated as special: use the list `special_tokens`.",
    ),
    Variant(
        "special",
        lambda setup: (*setup.specials(), *(token for token in setup.known if token == END)),
        "<|endoftext|> was treated as special though it is not in `special_tokens`: then it is "
        "ordinary text, even if the vocabulary holds it.",
    ),
    Variant(
        "cut",
        _dropped,
        "The special tokens are missing from the ids: split with a group, `(...)`, keeps them.",
    ),
    Variant(
        "cut",
        _stripped,
        "White space beside a special token was stripped: it belongs to the text.",
    ),
    Variant(
        "cut",
        _stripped_beside,
        "White space beside a special token was stripped: it belongs to the text.",
    ),
    Variant(
        "cut",
        _first_place,
        "Only the first special token of the text was found: it may hold many.",
    ),
    Variant(
        "cut",
        _whole_words,
        "Special tokens were found only where white space stands around them: they count anywhere, "
        "also inside a word.",
    ),
    Variant(
        "cut",
        _empty_pattern,
        "An empty list of special tokens became an empty pattern, which splits the text at every "
        "character: split only where there are special tokens.",
    ),
)


def _standard_ids(setup: Setup) -> dict[bytes, int]:
    ids = {bytes([byte]): byte for byte in range(256)}
    ids |= {left + right: 256 + rank for rank, (left, right) in enumerate(setup.merges)}
    return setup.ids() | ids


def _after_specials(setup: Setup) -> dict[bytes, int]:
    lead = len(setup.specials())
    ids = {bytes([byte]): lead + byte for byte in range(256)}
    ids |= {left + right: lead + 256 + rank for rank, (left, right) in enumerate(setup.merges)}
    return setup.ids() | ids


def _only_known(setup: Setup) -> dict[bytes, int]:
    return {token: token_id for token_id, token in setup.vocab().items()}


VOCAB = "Ids come from the vocabulary, whose order is free: "
IDS = (
    Variant(
        "ids",
        _standard_ids,
        VOCAB + "here the byte b was given the id b, and merge i the id 256 + i.",
    ),
    Variant(
        "ids",
        lambda setup: setup.ids() | {bytes([byte]): byte for byte in range(256)},
        VOCAB + "here the byte b was given the id b.",
    ),
    Variant(
        "ids",
        _after_specials,
        VOCAB + "here the special tokens were thought to come first, then the bytes and merges.",
    ),
    Variant(
        "ids",
        _only_known,
        "Special tokens that the vocabulary lacks must be appended to it.",
    ),
)
