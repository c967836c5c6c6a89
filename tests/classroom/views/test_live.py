"""What live views are built from: text made visible, colours to read, buttons and tables."""

import unicodedata

import matplotlib.pyplot as plt
from contrast import contrast
from hypothesis import given
from hypothesis import strategies as st
from view_inputs import seen

from workbook.classroom.views import live, transformer
from workbook.classroom.views.live import NO_INK, character_name, drawable, visible


@given(st.text() | st.binary())
def test_everything_that_is_shown_can_be_seen(text):
    shown = visible(text)
    assert bool(shown) == bool(text)
    assert not {unicodedata.category(character) for character in shown} & NO_INK


def test_what_leaves_no_ink_gets_a_sign():
    assert visible("a b\tc\r\n\u200d\u00a0\x00人🌍") == r"a␣b⇥c␍↵\u200d\xa0\x00人🌍"
    assert visible("\u0301a") == "◌\u0301a"
    assert visible(b"\xe4\xba caf\xc3\xa9") == r"\xe4\xba␣café"


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


def rgb(colour):
    """The parts of "#rrggbb"."""
    return bytes.fromhex(colour.removeprefix("#"))


def test_text_is_easy_to_read_and_frames_to_see():
    for ink, paper in [*live.TONES.values(), *((live.INK, one) for one in transformer.SHADES)]:
        assert contrast(rgb(ink), rgb(paper)) >= 4.5
    for page in ("#ffffff", "#111111"):  # JupyterLab's light and dark
        assert contrast(rgb(live.EDGE), rgb(page)) >= 3


def test_a_table_has_headings_and_says_how_many_rows_it_leaves_out():
    table = live.table("Pairs", ["<pair>", "count"], [("<b>s</b>", "9")], numbers={"count"})
    assert seen(table) == "<pair> count s 9"
    assert 'aria-label="Pairs"' in table and '<td class="number">9</td>' in table
    assert seen(live.rest(1, "pair")) == "and 1 pair"
    assert live.rest(0, "pair") == ""
