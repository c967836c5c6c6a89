"""The ways in which ids are decoded, and a stream of text encoded, wrongly, each with its name."""

from collections.abc import Callable, Iterator
from functools import partial

import regex

from workbook.checks.text_variants import Variant, pretokens
from workbook.checks.tokenizer_reference import Pieces, cut_specials


def _per_token(errors: str, tokens: list[bytes], special: list[bytes]) -> str:
    return "".join(token.decode("utf-8", errors) for token in tokens)


def _whole(errors: str, tokens: list[bytes], special: list[bytes]) -> str:
    return b"".join(tokens).decode("utf-8", errors)


DECODING = (
    Variant(
        "join",
        partial(_per_token, "replace"),
        "Each token was decoded by itself: a character may be spread over several tokens. Join all "
        "the bytes first, then decode once.",
    ),
    Variant(
        "join",
        partial(_per_token, "ignore"),
        "Each token was decoded by itself, and what is no whole character was dropped. Join all "
        'the bytes first, then decode once, with `errors="replace"`.',
    ),
    Variant(
        "join",
        partial(_per_token, "strict"),
        "Each token was decoded by itself: a character may be spread over several tokens. Join all "
        "the bytes first, then decode once.",
    ),
    Variant(
        "join",
        partial(_whole, "ignore"),
        'Malformed bytes were dropped (`errors="ignore"`): they become U+FFFD, `errors="replace"`.',
    ),
    Variant(
        "join",
        partial(_whole, "strict"),
        "Ids may stand for bytes that are no UTF-8, and decoding them raises an error: use "
        '`errors="replace"`, which gives U+FFFD.',
    ),
    Variant(
        "join",
        partial(_whole, "backslashreplace"),
        'Malformed bytes were written as \\x..: they become U+FFFD, `errors="replace"`.',
    ),
    Variant(
        "join",
        lambda tokens, special: b"".join(tokens).decode("latin-1"),
        "The bytes were decoded as Latin-1, or one by one with `chr`: they are UTF-8.",
    ),
    Variant(
        "join",
        lambda tokens, special: b" ".join(tokens).decode("utf-8", "replace"),
        "The tokens were joined with spaces: the spaces are part of the tokens.",
    ),
    Variant(
        "join",
        lambda tokens, special: b"".join(tokens).decode("utf-8", "replace").strip(),
        "White space at the ends was stripped: the text must come back as it was.",
    ),
    Variant(
        "join",
        lambda tokens, special: b"".join(t for t in tokens if t not in special).decode(
            "utf-8", "replace"
        ),
        "The special tokens are missing from the text: they are decoded like the others.",
    ),
)


def _each_piece(given: Pieces, encode_text: Callable[[str], list[int]]) -> Iterator[int]:
    for piece in given.pieces:
        yield from encode_text(piece)


def _each_stripped(given: Pieces, encode_text: Callable[[str], list[int]]) -> Iterator[int]:
    for piece in given.pieces:
        yield from encode_text(piece.strip())


def _each_line(given: Pieces, encode_text: Callable[[str], list[int]]) -> Iterator[int]:
    for piece in given.pieces:
        yield from encode_text(f"{piece}\n")


def _each_word(given: Pieces, encode_text: Callable[[str], list[int]]) -> Iterator[int]:
    for piece in given.pieces:
        for word in piece.split():
            yield from encode_text(word)


def _joined_with(gap: str, given: Pieces, encode_text: Callable[[str], list[int]]) -> Iterator[int]:
    yield from encode_text(gap.join(given.pieces))


def _held_back(pattern: str, given: Pieces, encode_text: Callable) -> Iterator[int]:
    """What stands before the last match of a pattern is encoded, the rest is kept for later."""
    kept = ""
    for piece in given.pieces:
        kept += piece
        matches = list(regex.finditer(pattern, kept))
        if matches:
            yield from encode_text(kept[: matches[-1].start()])
            kept = kept[matches[-1].start() :]
    yield from encode_text(kept)


def _last_pretoken(
    cut: Callable, given: Pieces, encode_text: Callable[[str], list[int]]
) -> Iterator[int]:
    """All but the last part of what came so far is encoded, as far as `cut` sees the parts."""
    kept = ""
    for piece in given.pieces:
        parts = cut(kept + piece, given.setup.specials())
        for part in parts[:-1]:
            yield from encode_text(part)
        kept = parts[-1] if parts else ""
    yield from encode_text(kept)


def _pretokens_and_specials(text: str, special_tokens: tuple[str, ...]) -> list[str]:
    parts = cut_specials(text, special_tokens)
    return [t for part, special in parts for t in ([part] if special else pretokens(part))]


def _left_over(given: Pieces, encode_text: Callable[[str], list[int]]) -> Iterator[int]:
    kept = ""
    for piece in given.pieces:
        kept += piece
        at = max(kept.rfind(" "), kept.rfind("\n"), 0)
        yield from encode_text(kept[:at])
        kept = kept[at:]


LAST_ONLY = (
    "Only the last pre-token was kept back: that is not enough for a contraction such as 'll, nor "
    "for a special token, that comes in two parts."
)
STREAM = (
    Variant(
        "stream",
        _each_piece,
        "Each piece was encoded by itself. A cut may go through a word, a run of white space, a "
        "contraction or a special token: keep back the end that the next piece may still change.",
    ),
    Variant("stream", _each_stripped, "The pieces were stripped: their white space is text."),
    Variant("stream", _each_line, "A line end was added to each piece: the pieces are the text."),
    Variant("stream", _each_word, "The pieces were split into words, and their spaces are lost."),
    Variant("stream", partial(_joined_with, " "), "The pieces were joined with spaces."),
    Variant("stream", partial(_joined_with, "\n"), "The pieces were joined with line ends."),
    Variant(
        "stream",
        partial(_held_back, r"\s"),
        "The text was cut at the last white space: in a run of spaces or line ends, all but the "
        "last one belong together, and a special token may hold a space.",
    ),
    Variant(
        "stream",
        partial(_held_back, r"(?<=\n)"),
        "The text was cut behind the last line end: several line ends in a row are one run.",
    ),
    Variant(
        "stream",
        partial(_last_pretoken, lambda text, _: pretokens(text)),
        LAST_ONLY,
    ),
    Variant("stream", partial(_last_pretoken, _pretokens_and_specials), LAST_ONLY),
    Variant(
        "stream",
        _left_over,
        "What was kept back at the end was never encoded: do so when the pieces are used up.",
    ),
)
