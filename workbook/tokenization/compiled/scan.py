"""Where pre-tokens end: GPT-2's pattern as a hand-written scanner over UTF-8 bytes.

    I t ' s   1 2   o ' c l o c k
    ^-> ^-> ^---> ^-> ^---------->      token_end(start) gives the next start

A pre-token is a contraction, or a run of characters of one kind with at most one space before it,
or white space. So a scanner needs one fact about a character, its kind, and two rules: a "'" may
begin a contraction, and white space leaves its last character to what follows.
"""

from functools import cache

import numpy as np
import regex

from workbook.tokenization.compiled.kernels import compiled
from workbook.tokenization.compiled.machine import byte, leading_letters, word

OTHER, LETTER, NUMBER, WHITE = map(np.int64, range(4))
LOWEST_BYTE, SPACE, SPACE_TO_LETTER = map(np.uint64, (0xFF, ord(" "), ord("a") - ord(" ")))


@cache
def character_kinds() -> np.ndarray:
    """The kind of every code point, as the `regex` module has it.

    Not from `unicodedata`: its Unicode version is the interpreter's, which differs in thousands of
    characters.
    """
    codes = np.delete(np.arange(0x110000, dtype="<u4"), np.s_[0xD800:0xE000])  # no surrogates
    everything = codes.tobytes().decode("utf-32-le")
    kinds = np.full(0x110000, OTHER, np.uint8)
    for kind, pattern in ((LETTER, r"\p{L}+"), (NUMBER, r"\p{N}+"), (WHITE, r"\s+")):
        for run in regex.finditer(pattern, everything):
            kinds[codes[run.start()] : codes[run.end() - 1] + 1] = kind
    return kinds


@compiled
def token_end(at, end, kinds):
    """The address where the pre-token that begins at `at` ends, in a document that ends at `end`.

    `kinds` is the address of `character_kinds()`. The byte after the document is 0, so a run of
    letters ends there at the latest. This is the fast path for ASCII words; everything else goes to
    `any_token_end`.
    """
    eight = word(at)
    space = np.int64(eight & LOWEST_BYTE == SPACE)
    run = leading_letters(eight + np.uint64(space) * SPACE_TO_LETTER)  # a space counts as "a"
    if run > space:
        # Letters for sure. If one that is not ASCII follows them, the rules below find the end.
        stop = at + run
        while run == 8:
            run = leading_letters(word(stop))
            stop += run
        if byte(stop) < 0x80:
            return stop
    return any_token_end(at, end, kinds)


@compiled
def any_token_end(at, end, kinds):
    """`token_end` for every text: the pattern's alternatives, in its order."""
    if byte(at) == 0x27:  # '
        length = contraction_length(at)
        if length > 0:
            return at + length
    start = at + (byte(at) == 0x20)  # " ?": the space belongs to what follows, if that is visible
    if start < end:
        kind = byte(kinds + decode_character(start)[0])
        if kind != WHITE:
            return run_end(start, end, kinds, kind)
    white_end = run_end(at, end, kinds, WHITE)
    if white_end == end:  # \s+(?!\S): nothing follows
        return end
    last = white_end - 1
    while byte(last) & 0xC0 == 0x80:  # back to the first byte of the last white character
        last -= 1
    return last if last > at else white_end


@compiled
def contraction_length(at):
    """The length in bytes of 's 'd 'm 't 'll 've 're at this address; 0 if there is none."""
    first, second = byte(at + 1), byte(at + 2)
    if first == 0x73 or first == 0x64 or first == 0x6D or first == 0x74:  # s d m t
        return 2
    if first == 0x6C and second == 0x6C:  # ll
        return 3
    if (first == 0x76 or first == 0x72) and second == 0x65:  # ve re
        return 3
    return 0


@compiled
def run_end(at, end, kinds, kind):
    """The address where the run of characters of this kind ends."""
    while at < end:
        code, length = decode_character(at)
        if byte(kinds + code) != kind:
            break
        at += length
    return at


@compiled
def decode_character(at):
    """The code point of the UTF-8 character that begins at this address, and its length."""
    first = byte(at)
    if first < 0x80:
        return first, 1
    second = byte(at + 1) & 0x3F
    if first < 0xE0:
        return (first & 0x1F) << 6 | second, 2
    third = byte(at + 2) & 0x3F
    if first < 0xF0:
        return (first & 0x0F) << 12 | second << 6 | third, 3
    return (first & 0x07) << 18 | second << 12 | third << 6 | byte(at + 3) & 0x3F, 4
