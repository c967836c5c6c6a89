"""Text made visible: signs for what leaves no ink, escapes for what is no text or has no glyph."""

import unicodedata
from functools import cache

from matplotlib.font_manager import FontProperties, findfont, get_font

SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍"}
ACCENTS = {"Mn", "Mc", "Me"}  # categories of signs that climb onto the one before them
NO_INK = {"Cc", "Cf", "Zs", "Zl", "Zp", "Cs", "Co", "Cn"}  # controls, blanks, and nobody's


def visible(text: str | bytes) -> str:
    """The text with a sign for each space and line end; what else leaves no ink is escaped.

    Bytes that are no UTF-8 are escaped too, and an accent at the beginning gets a place to sit.

    >>> visible(" a\\n"), visible(b"caf\\xc3"), visible("\\u200d")
    ('␣a↵', 'caf\\\\xc3', '\\\\u200d')
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="backslashreplace")
    shown = "".join(_sign(character) for character in text)
    return "◌" + shown if unicodedata.category(shown[:1] or "a") in ACCENTS else shown


def _sign(character: str) -> str:
    """One character as something that can be seen."""
    if character in SIGNS:
        return SIGNS[character]
    return escape(character) if unicodedata.category(character) in NO_INK else character


def escape(text: str) -> str:
    """The text with all but ASCII as Python writes it: \\xe9, \\u4eba, \\U0001f30d."""
    return text.encode("unicode_escape").decode("ascii")


def drawable(text: str, family: str = "DejaVu Sans Mono") -> str:
    """The text with each character escaped that matplotlib's font would draw as an empty box.

    >>> drawable("né人")
    'né\\\\u4eba'
    """
    known = _glyphs(family)
    return "".join(c if ord(c) in known else escape(c) for c in text)


@cache
def _glyphs(family: str) -> frozenset[int]:
    """The code points that a font has a glyph for."""
    return frozenset(get_font(findfont(FontProperties(family=family))).get_charmap())


def name(character: str) -> str:
    """The Unicode name of a character, or what it is where it has none."""
    kinds = {"Cc": "control character", "Co": "private use", "Cs": "surrogate"}
    kind = kinds.get(unicodedata.category(character), "not assigned")
    return unicodedata.name(character, kind)
