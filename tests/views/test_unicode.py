"""The views of notebook 01 show code points, bytes and bits as they are."""

import numpy as np
from view_inputs import KINDS, drawn, seen, texts

from workbook import views
from workbook.views import unicode


def test_steps_name_their_lines_and_marks():
    assert texts(drawn(unicode.size_steps)) == ["UTF-8", "UTF-32", "a"]


def test_bits_are_those_of_the_bytes():
    ax = drawn(unicode.bit_layout)
    assert "".join(text for text in texts(ax) if text in "01") == "1100001110111100"
    dark = [text.get_text() for text in ax.texts if text.get_color() == "white"]
    assert "".join(dark) == "11010"


def test_byte_pairs_number_each_large_region_and_each_kind():
    ax = drawn(unicode.byte_pairs)
    key = dict(text.split("  ") for text in texts(ax) if "  " in text)
    numbers = [note for note in ax.texts if note.get_text() in key]
    assert {note.get_text() for note in numbers} == set(key) and len(key) == len(np.unique(KINDS))
    for note in numbers:
        column, row = note.xy
        assert key[note.get_text()].startswith(KINDS[row][column] + ": ")


def test_byte_pairs_key_begins_with_the_valid_ones_and_counts_them():
    key = [text for text in texts(drawn(unicode.byte_pairs)) if "  " in text]
    assert key[:3] == ["1  valid, 2: 16,384", "2  valid, 1: 1,920", "3  stray continuation: 24,576"]


def test_longest_run_finds_its_middle():
    assert unicode._longest_run(np.array([1, 0, 1, 1, 1, 0, 1], dtype=bool)) == 3


def test_the_explorer_shows_code_point_bytes_and_bits():
    view = views.utf8_explorer("é")
    assert "1 code point . Bytes: 2 in UTF-8, 2 in UTF-16, 4 in UTF-32." in seen(view.html)
    row = seen(view.html.partition("<tbody>")[2])
    assert row == (
        "é U+00E9 LATIN SMALL LETTER E WITH ACUTE C3 110 00011 first of 2 A9 10 101001 continues"
    )
    view.controls["text"].value = "a"
    row = seen(view.html.partition("<tbody>")[2])
    assert row == "a U+0061 LATIN SMALL LETTER A 61 0 1100001 single"
    view.controls["text"].value = "a" * 70
    assert "and 6 more characters, not shown" in seen(view.html)
