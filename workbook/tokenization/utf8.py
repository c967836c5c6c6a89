"""UTF-8 explained: which bytes are not UTF-8, where, and by which rule.

| bytes | first byte | code points         |
|-------|------------|---------------------|
| 1     | 00 to 7F   | U+0000 to U+007F    |
| 2     | C2 to DF   | U+0080 to U+07FF    |
| 3     | E0 to EF   | U+0800 to U+FFFF    |
| 4     | F0 to F4   | U+10000 to U+10FFFF |

Every further byte is a continuation byte, 80 to BF. Source: RFC 3629; Unicode 15, table 3-7.
"""

from dataclasses import dataclass

CONTINUATION = range(0x80, 0xC0)

# Each kind of flaw, explained in a few words, as for a legend.
FLAWS = {
    "stray continuation": "a continuation byte (80 to BF) where a character should begin",
    "overlong lead": "C0 and C1 could only begin a needlessly long form of an ASCII character",
    "never used": "F5 to FF would begin characters beyond U+10FFFF, or mean nothing at all",
    "missing continuation": "a first byte that is not followed by a continuation byte",
    "cut short": "the bytes end before the character does",
    "overlong": "E0 80 to 9F and F0 80 to 8F: a longer form than the character needs",
    "surrogate": "ED A0 to BF: the code points U+D800 to U+DFFF belong to UTF-16",
    "beyond Unicode": "F4 90 to BF: above U+10FFFF, the last code point",
}

# First bytes that restrict the second byte further: its range, and the flaw outside that range.
SECOND_BYTE = {
    0xE0: (range(0xA0, 0xC0), "overlong"),
    0xED: (range(0x80, 0xA0), "surrogate"),
    0xF0: (range(0x90, 0xC0), "overlong"),
    0xF4: (range(0x80, 0x90), "beyond Unicode"),
}


@dataclass(frozen=True)
class Flaw:
    """Why some bytes are not UTF-8: the first bad character starts at `position`."""

    position: int
    kind: str  # a key of FLAWS
    sentence: str  # the rule, with these bytes in it


def character_length(first: int) -> int:
    """The number of bytes in a character that begins with the byte `first`; 0 if none does."""
    # ASCII: seven bits, one byte, as before there was Unicode.
    if first < 0x80:
        return 1
    # C0 and C1 could only begin a code point below 80, which has one byte of its own.
    if 0xC2 <= first <= 0xDF:
        return 2
    if 0xE0 <= first <= 0xEF:
        return 3
    return 4 if 0xF0 <= first <= 0xF4 else 0


def template_bits(byte: int) -> int:
    """The number of leading bits of a byte that are fixed by UTF-8; the rest hold the code point.

    A run of ones and the zero that ends it: 0, 110, 1110, 11110 in first bytes, 10 in all others.

    >>> [template_bits(byte) for byte in "a🌍".encode()]
    [1, 5, 2, 2, 2]
    """
    # Only a continuation byte begins with 10: so from any byte, the beginning of its character is
    # at most three bytes back.
    return f"{byte:08b}".index("0") + 1


def flaw(data: bytes) -> Flaw | None:
    """The first flaw of `data`, or None if `data.decode()` succeeds.

    >>> flaw("é".encode()) is None
    True
    >>> flaw(b"\\xc3(").kind
    'missing continuation'
    """
    position = 0
    while position < len(data):
        # One character after the other, as a decoder does.
        kind_and_sentence = _flaw_at(data, position)
        if kind_and_sentence:
            return Flaw(position, *kind_and_sentence)
        position += character_length(data[position])  # there is no flaw, so it is not 0
    return None


def _flaw_at(data: bytes, position: int) -> tuple[str, str] | None:
    """The flaw of the character that starts at `position`: its kind and a sentence."""
    first = data[position]
    length = character_length(first)
    if first in CONTINUATION:
        kind = "stray continuation"
        return kind, f"{first:02X} is a continuation byte: it cannot begin a character."
    if first in (0xC0, 0xC1):
        kind = "overlong lead"
        return kind, f"{first:02X} never occurs in UTF-8: what it would begin fits into one byte."
    if length == 0:
        return "never used", f"{first:02X} never occurs in UTF-8: Unicode ends at U+10FFFF."
    # Only the second byte is ever restricted further: it decides whether the form is too long, a
    # surrogate, or above U+10FFFF.
    need = f"{first:02X} begins a character of {length} bytes"
    following = data[position + 1 : position + length]
    allowed, kind = SECOND_BYTE.get(first, (CONTINUATION, ""))
    # In the order of the bytes: the first that does not fit is the flaw, whatever comes after it.
    for i, byte in enumerate(following):
        if byte not in CONTINUATION:
            return "missing continuation", f"{need}, but {byte:02X} is not a continuation byte."
        if i == 0 and byte not in allowed:
            return kind, f"{first:02X} {byte:02X} is refused: {FLAWS[kind].split(': ')[1]}."
    # Last, because a character that is cut short may be wrong before its end.
    if len(following) < length - 1:
        return "cut short", f"{need}, but the bytes end after {len(following) + 1}."
    return None
