"""The first flaw of bytes is where Python's decoder stops, and it is told in words."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from workbook.tokenization.utf8 import FLAWS, character_length, flaw


def decoding_stops_at(data: bytes) -> int | None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return None


def test_flaw_agrees_with_python_on_every_pair_of_bytes():
    kinds = Counter()
    for number in range(65_536):
        pair = number.to_bytes(2, "big")
        found = flaw(pair)
        assert (found and found.position) == decoding_stops_at(pair), pair
        kinds[found and found.kind] += 1
    assert set(kinds) == {None, *FLAWS}
    assert kinds[None] == 128 * 128 + 30 * 64  # two ASCII characters, or one of two bytes


@given(st.binary(max_size=12))
def test_flaw_agrees_with_python_on_any_bytes(data):
    found = flaw(data)
    assert (found and found.position) == decoding_stops_at(data)


@given(st.characters(exclude_categories=["Cs"]))
def test_length_of_the_first_byte_is_the_length_of_the_character(character):
    encoded = character.encode()
    assert character_length(encoded[0]) == len(encoded)


def test_a_flaw_is_told_about_the_very_bytes():
    assert "28 is not a continuation byte" in flaw(b"\xc3\x28").sentence
    assert "C0 never occurs" in flaw(b"\xc0\x20").sentence
    assert "ED A0" in flaw(b"\xed\xa0\x80").sentence
