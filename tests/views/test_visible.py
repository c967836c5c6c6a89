"""Nothing in a shown text is invisible, and no letter in a picture is an empty box."""

import unicodedata

import matplotlib.pyplot as plt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbook.views.live import NO_INK, character_name, drawable, visible


@given(st.text() | st.binary())
def test_everything_that_is_shown_can_be_seen(text):
    shown = visible(text)
    assert bool(shown) == bool(text)
    assert not {unicodedata.category(character) for character in shown} & NO_INK


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b\tc\r\n", "a␣b⇥c␍↵"),
        ("\u200d\u00a0\x00", r"\u200d\xa0\x00"),
        ("\u0301a", "◌\u0301a"),
        ("人🌍", "人🌍"),
        (b"\xe4\xba", r"\xe4\xba"),
        (b" caf\xc3\xa9", "␣café"),
    ],
)
def test_what_leaves_no_ink_gets_a_sign(text, shown):
    assert visible(text) == shown


@given(st.text(max_size=5))
def test_what_is_drawn_has_a_glyph(text):
    figure = plt.figure(figsize=(1, 1))
    figure.text(0, 0, drawable(visible(text)), family="monospace", parse_math=False)
    figure.draw_without_rendering()  # a missing glyph is a warning, and warnings are errors
    plt.close(figure)


def test_every_character_has_a_name():
    assert character_name("é") == "LATIN SMALL LETTER E WITH ACUTE"
    assert character_name("\n") == "control character"
    assert character_name("\ue000") == "private use"
    assert character_name("\U0003ffff") == "not assigned"
