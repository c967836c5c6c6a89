"""Where pre-tokens begin: GPT-2's pattern as bit algebra, on 64 bytes of UTF-8 at a time.

    text              T h e _ o w l ' s _ _ 2 1 !       "_" is a space
    letters           1 1 1 . 1 1 1 . 1 . . . . .
    numbers           . . . . . . . . . . . 1 1 .
    white             . . . 1 . . . . . 1 1 . . .
    others            . . . . . . . 1 . . . . . 1

    kind as before    . 1 1 . . 1 1 . . . 1 . 1 .       letters & letters << 1, and so on
    a space before    . . . . 1 . . . . . . 1 . .       it belongs to what is visible after it
    neither           1 . . 1 . . . 1 1 1 . . . 1       where a pre-token begins, but for:
    last white        . . . . . . . . . . 1 . . .       a run's last blank goes with what follows
    contraction       . . . . . . . . 0 . . . . .       's does not begin again after its "'"
    pre-tokens        1 . . 1 . . . 1 . 1 1 . . 1       The| owl|'s| | 21|!

Each row is one 64-bit number, a "mask"; the text's first byte is its lowest bit, so "<< 1" tells
each byte about the one before it. One comparison of a vector finds a kind of ASCII characters in
all 64 bytes. Other characters are looked up one by one, and all their bytes get the kind. A block
ends with a whole character, and before a "'" whose contraction might reach into the next one.
"""

from functools import cache

import numpy as np
import regex

from workbook.tokenization.compiled.kernels import compiled
from workbook.tokenization.compiled.machine import (
    BLOCK,
    byte,
    bytes_within,
    ones,
    store,
    trailing_zeros,
)

OTHER, LETTER, NUMBER, WHITE = map(np.int64, range(4))
MOST = 128  # pre-tokens that are wanted at a time
ITEM_BYTES = 32  # each gets an item in a batch, which begins with its address
LETTERS_END = 0x40000  # no character from here on is a letter, a number or white space
ONE, NO_BITS, ALL_BITS = map(np.uint64, (1, 0, 2**64 - 1))

letters_at = bytes_within("AZ", "az")
numbers_at = bytes_within("09")
white_at = bytes_within("\t\r", "  ")
spaces_at = bytes_within("  ")
quotes_at = bytes_within("''")
not_ascii_at = bytes_within("\x80\xff")
first_bytes_at = bytes_within("\xc0\xff")  # of characters that are not ASCII


def new_batch() -> np.ndarray:
    """Memory for a batch: the last block that is read may go beyond what is wanted."""
    # A block of 64 bytes may hold 64 pre-tokens, and the end of the last is written behind it.
    return np.zeros((MOST + BLOCK + 1, ITEM_BYTES // 8), np.uint64)


@cache
def character_kinds() -> np.ndarray:
    """The kind of every code point, as the `regex` module has it.

    Not from `unicodedata`: its Unicode version is the interpreter's, which differs in thousands of
    characters.
    """
    # Without surrogates, and without the planes that have no letters: to ask for them takes time.
    codes = np.delete(np.arange(LETTERS_END, dtype="<u4"), np.s_[0xD800:0xE000])
    # All characters as one string, so that three searches find all kinds.
    everything = codes.tobytes().decode("utf-32-le")
    kinds = np.full(0x110000, OTHER, np.uint8)
    for kind, pattern in ((LETTER, r"\p{L}+"), (NUMBER, r"\p{N}+"), (WHITE, r"\s+")):
        for run in regex.finditer(pattern, everything):
            # A run may cross the surrogates, which are left out; they get its kind too, and never
            # occur.
            kinds[codes[run.start()] : codes[run.end() - 1] + 1] = kind
    return kinds


@compiled
def find_pretokens(at, end, kinds, batch):
    """Write down where pre-tokens begin in a document from `at`, where one does, to `end`.

    `kinds` is the address of `character_kinds()`. Returns how many items there are in the batch;
    the address where the last one ends follows them.
    """
    # Where the next item is written.
    to = batch
    enough = batch + ITEM_BYTES * MOST
    # Is the byte before one?
    letter = NO_BITS
    numeral = NO_BITS
    other = NO_BITS
    white = NO_BITS
    space = NO_BITS
    while at < end and to <= enough:
        # What lies behind the end is padding, or another document: its bits are masked out below.
        size = min(end - at, BLOCK)
        letters = letters_at(at)
        numbers = numbers_at(at)
        whites = white_at(at)
        # Bytes within a character, where nothing may begin.
        inside = NO_BITS
        if not_ascii_at(at) != NO_BITS:
            size, letters, numbers, whites = with_others(at, size, kinds, letters, numbers, whites)
            inside = not_ascii_at(at) & ~first_bytes_at(at)
        # What is none of the three; spaces are white, and also marked by themselves.
        others = ~(letters | numbers | whites)
        spaces = spaces_at(at)
        # The bit that is shifted out at the top comes in at the bottom of the next block.
        white_before = whites << ONE | white
        same = letters & (letters << ONE | letter) | numbers & (numbers << ONE | numeral)
        same |= others & (others << ONE | other) | whites & white_before
        # A pre-token begins where neither the kind goes on nor a space before belongs to it.
        begins = ~(same | (spaces << ONE | space) & ~whites)
        # White space before something visible, in the next block too, and there its last character.
        # A run of white space leaves its last character to what is visible behind it, which may be
        # in the next block: so one character there is looked at.
        after, _ = decode_character(at + size)
        follows = np.uint64(at + size < end and byte(kinds + after) != WHITE)
        visible = ~whites & low_bits(size)
        last = whites & (visible >> ONE | follows << np.uint64(size - 1))
        # White space of several bytes: from its last byte back to its first.
        while last & inside != NO_BITS:
            last = last & ~inside | (last & inside) >> ONE
        begins |= last & white_before
        # Few: only where a "'" begins a pre-token may it begin a contraction.
        quotes = begins & quotes_at(at) & low_bits(size)
        while quotes != NO_BITS:
            place = trailing_zeros(quotes)
            # Clears the lowest bit that is set.
            quotes &= quotes - ONE
            if place > 0 and size <= place + 3:
                size = place
                break
            length = contraction_length(at + place, end)
            if length > 0:
                # "'s" is one pre-token: the letter does not begin another, but what follows it
                # does.
                begins &= ~(ONE << np.uint64(place + 1))
                begins |= ONE << np.uint64(place + length)
        begins &= low_bits(size)
        # Eight at a time, as their number is hard to guess: what is too much is overwritten.
        number = ones(begins)
        for first in range(to, to + ITEM_BYTES * number, ITEM_BYTES * 8):
            for item in range(first, first + ITEM_BYTES * 8, ITEM_BYTES):
                store(item, np.uint64(at + trailing_zeros(begins)))
                begins &= begins - ONE
        to += ITEM_BYTES * number
        # What the next block has to know about the last byte of this one.
        top = np.uint64(size - 1)
        letter = letters >> top & ONE
        numeral = numbers >> top & ONE
        other = others >> top & ONE
        white = whites >> top & ONE
        space = spaces >> top & ONE
        at += size
    if at == end:
        store(to, np.uint64(end))
        to += ITEM_BYTES
    return (to - batch) // ITEM_BYTES - 1


@compiled
def with_others(at, size, kinds, letters, numbers, whites):
    """The masks with characters that are not ASCII, and the size without one that is cut off."""
    firsts = first_bytes_at(at)
    while firsts != NO_BITS:
        place = trailing_zeros(firsts)
        firsts &= firsts - ONE
        code, length = decode_character(at + place)
        # The character goes on behind the block, which ends before it.
        if place + length > size:
            size = min(size, place)
            break
        # One byte for each code point: a table of a megabyte, of which a text uses little.
        kind = byte(kinds + code)
        mask = low_bits(length) << np.uint64(place)
        letters |= mask if kind == LETTER else NO_BITS
        numbers |= mask if kind == NUMBER else NO_BITS
        whites |= mask if kind == WHITE else NO_BITS
    return size, letters, numbers, whites


@compiled
def low_bits(number):
    """A mask of the first 1 to 64 bytes."""
    return ALL_BITS >> np.uint64(64 - number)


@compiled
def contraction_length(at, end):
    """The length in bytes of 's 'd 'm 't 'll 've 're at this address; 0 if there is none."""
    first = byte(at + 1)
    second = byte(at + 2)
    length = 0
    if first in (0x73, 0x64, 0x6D, 0x74):  # s d m t
        length = 2
    elif (first == 0x6C and second == 0x6C) or (first in (0x76, 0x72) and second == 0x65):
        length = 3  # ll ve re
    return length if at + length <= end else 0


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
