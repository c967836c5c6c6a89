"""The views of notebook 01 show code points, bytes and bits as they are."""

from view_inputs import KINDS, drawn, legend, seen, texts

from workbook.classroom import views
from workbook.classroom.views import unicode


def test_bits_are_those_of_the_bytes():
    ax = drawn(unicode.bit_layout)
    assert "".join(text for text in texts(ax) if text in "01") == "1100001110111100"
    dark = [text.get_text() for text in ax.texts if text.get_color() == "white"]
    assert "".join(dark) == "11010"


def test_byte_pairs_are_coloured_by_kind_and_the_key_begins_with_the_valid_ones():
    ax = drawn(unicode.byte_pairs)
    key = legend(ax)
    assert key[:3] == ["valid, 2: 16,384", "valid, 1: 1,920", "stray continuation: 24,576"]
    shown = ax.images[0].get_array()
    for row, column in ((0x41, 0x42), (0xC3, 0xA9), (0x80, 0x41), (0xFF, 0xFF)):
        assert key[shown[row, column]].startswith(KINDS[row][column] + ": ")


def test_the_explorer_shows_code_point_bytes_and_bits():
    view = views.utf8_explorer("é")
    assert "1 code point . Bytes: 2 in UTF-8, 2 in UTF-16, 4 in UTF-32." in seen(view.html)
    name = "é U+00E9 LATIN SMALL LETTER E WITH ACUTE"
    row = seen(view.html.partition("<tbody>")[2])
    assert row == f"{name} C3 110 00011 first of 2 A9 10 101001 continues"
    view.controls["text"].value = "a"
    row = seen(view.html.partition("<tbody>")[2])
    assert row == "a U+0061 LATIN SMALL LETTER A 61 0 1100001 single"
    view.controls["text"].value = "a" * 70
    assert "and 6 more characters, not shown" in seen(view.html)
