"""The plots show what they were given, and no picture goes without words."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from workbook.tokenization import utf8
from workbook.views import plots, unicode

SIZES = pd.DataFrame(
    {"UTF-8": {"English": 63, "Turkish": 71}, "UTF-16": {"English": 126, "Turkish": 128.5}}
)
STEPS = pd.DataFrame({"UTF-8": {0x20: 1, 0x80: 2}, "UTF-32": {0x20: 4, 0x80: 4}})


def kind(pair):
    """A name for each kind of byte pair, as in notebook 1."""
    broken = utf8.flaw(pair)
    return broken.kind if broken else f"valid, {len(pair.decode())}"


KINDS = [[kind(bytes([first, second])) for second in range(256)] for first in range(256)]
PICTURES = {
    "grouped_bars": lambda ax=None: plots.grouped_bars(SIZES, "size (bytes)", ax),
    "size_steps": lambda ax=None: unicode.size_steps(STEPS, "size (bytes)", {"a": 97}, ax),
    "bit_layout": lambda ax=None: unicode.bit_layout({"U+00FC": "ü".encode()}, ax),
    "byte_pairs": lambda ax=None: unicode.byte_pairs(KINDS, {"valid, 1", "valid, 2"}, ax),
}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def displayed(monkeypatch):
    """What `show` hands to Jupyter: a list of (bundle, metadata)."""
    seen = []
    monkeypatch.setattr(plots, "display", lambda data, metadata, raw: seen.append((data, metadata)))
    return seen


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("name", PICTURES)
def test_every_plot_draws_on_the_axes_it_is_given(name):
    ax = plt.figure().add_subplot()
    assert PICTURES[name](ax) is ax
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("name", PICTURES)
def test_every_plot_is_a_small_picture_that_fonts_can_draw(name):
    # A glyph that the font lacks is a warning, and warnings are errors here.
    assert len(plots.png(PICTURES[name]().figure)) < 60_000


@pytest.mark.parametrize("name", PICTURES)
def test_every_plot_stays_inside_its_figure(name):
    ax = PICTURES[name]()
    ax.figure.draw_without_rendering()
    inside, drawn = ax.figure.bbox, ax.get_tightbbox()
    assert drawn.x0 >= 0 and drawn.y0 >= 0
    assert drawn.x1 <= inside.x1 + 1 and drawn.y1 <= inside.y1 + 1


def test_bars_carry_their_values():
    assert texts(plots.grouped_bars(SIZES, "size (bytes)")) == ["63", "71", "126", "128.50"]


def test_steps_name_their_lines_and_marks():
    assert texts(unicode.size_steps(STEPS, "size (bytes)", {"a": 97})) == ["UTF-8", "UTF-32", "a"]


def test_bits_are_those_of_the_bytes():
    ax = unicode.bit_layout({"U+00FC": "ü".encode()})
    assert "".join(text for text in texts(ax) if text in "01") == "1100001110111100"
    dark = [text.get_text() for text in ax.texts if text.get_color() == "white"]
    assert "".join(dark) == "11010"


def test_byte_pairs_number_each_kind_inside_its_own_region():
    ax = PICTURES["byte_pairs"]()
    key = dict(text.split("  ") for text in texts(ax) if "  " in text)
    numbers = [note for note in ax.texts if note.get_text() in key]
    assert len(numbers) == len(key) == len(np.unique(KINDS))
    for note in numbers:
        column, row = note.xy
        assert key[note.get_text()].startswith(KINDS[row][column] + ": ")


def test_byte_pairs_key_begins_with_the_valid_ones_and_counts_them():
    key = [text for text in texts(PICTURES["byte_pairs"]()) if "  " in text]
    assert key[:3] == ["1  valid, 2: 16,384", "2  valid, 1: 1,920", "3  stray continuation: 24,576"]


def test_longest_run_finds_its_middle():
    assert unicode._longest_run(np.array([1, 0, 1, 1, 1, 0, 1], dtype=bool)) == 3


def test_show_gives_picture_and_words(displayed):
    plots.show(PICTURES["grouped_bars"](), "Two texts in two encodings.")
    ((data, metadata),) = displayed
    assert data["image/png"].startswith(b"\x89PNG")
    assert data["text/plain"] == metadata["image/png"]["alt"] == "Two texts in two encodings."
    assert plt.get_fignums() == []


@pytest.mark.parametrize("alt", ["", "  ", None])
def test_show_refuses_a_picture_without_words(displayed, alt):
    with pytest.raises(ValueError, match="alt text"):
        plots.show(PICTURES["bit_layout"](), alt)
    assert displayed == []


def test_the_same_figure_gives_the_same_bytes():
    draw = PICTURES["size_steps"]
    assert plots.png(draw().figure) == plots.png(draw().figure)
