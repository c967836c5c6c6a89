"""The pictures of notebook 03 show what they were given, and stay inside their figures."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from workbook import config
from workbook.views import plots, transformer

WORDS = ["the", "cat", "sat", "down"]
CAUSAL = np.tri(4, dtype=bool)
DEPTH = pd.DataFrame({"none": [1, 1e9, np.inf], "pre": [1, 1.1, 1.2], "post": [1, 1, 1]})
COUNTS = pd.DataFrame({"embedding": [10, 1], "attention": [30, 99]}, index=["small", "large"])
ANGLES = np.outer(np.arange(6), [1, 0.01])
ARROWS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], -1).reshape(6, 4)
OWNERS = {number: number % 4 // 2 for number in range(12)}
PICTURES = {
    "architecture": lambda ax=None: transformer.architecture(config.tinystories(), ax),
    "by_depth": lambda ax=None: transformer.by_depth(DEPTH.rename_axis("blocks"), "rms", ax),
    "mask": lambda ax=None: transformer.mask(CAUSAL, WORDS, ax),
    "by_position": lambda ax=None: transformer.by_position([0, 0, 2, 1], WORDS, "change", 2, ax),
    "parameter_shares": lambda ax=None: transformer.parameter_shares(COUNTS, ax),
}
FIGURES = {
    "heat_maps": lambda: transformer.heat_maps({"a": CAUSAL / 2, "b": CAUSAL * 1}, WORDS),
    "turned": lambda: transformer.turned(ARROWS, [0, 1]),
    "number_grids": lambda: transformer.number_grids({"x": np.arange(12).reshape(3, 4)}, OWNERS),
}
BOTH = {**FIGURES, **{name: lambda make=make: make().figure for name, make in PICTURES.items()}}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("name", PICTURES)
def test_every_plot_draws_on_the_axes_it_is_given(name):
    ax = plt.figure().add_subplot()
    assert PICTURES[name](ax) is ax
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("name", BOTH)
def test_every_plot_is_a_small_picture_that_fonts_can_draw(name):
    # A glyph that the font lacks is a warning, and warnings are errors here.
    assert len(plots.png(BOTH[name]())) < 60_000


@pytest.mark.parametrize("name", BOTH)
def test_every_plot_stays_inside_its_figure(name):
    figure = BOTH[name]()
    figure.draw_without_rendering()
    for ax in figure.axes:
        inside, drawn = figure.bbox, ax.get_tightbbox()
        assert drawn.x0 >= -1 and drawn.y0 >= -1
        assert drawn.x1 <= inside.x1 + 1 and drawn.y1 <= inside.y1 + 1


@pytest.mark.parametrize("name", BOTH)
def test_no_word_stands_on_another(name):
    figure = BOTH[name]()
    figure.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent()) for ax in figure.axes for text in ax.texts]
    boxes = [(words, box) for words, box in boxes if words.strip()]
    clashes = [
        (one, other)
        for place, (one, box) in enumerate(boxes)
        for other, second in boxes[:place]
        if box.overlaps(second)
    ]
    assert clashes == []


def test_the_architecture_says_how_many_blocks_and_which_shapes():
    said = texts(PICTURES["architecture"]())
    assert "a block, 4 times" in said
    assert {"(batch, seq)", "(batch, seq, 512)", "(batch, seq, 10,000)"} <= set(said)


def test_a_line_that_overflows_says_so_where_it_ends():
    ax = PICTURES["by_depth"]()
    assert set(texts(ax)) == {"none: overflow", "pre", "post"}
    (cross,) = [line for line in ax.lines if line.get_marker() == "X"]
    assert (cross.get_xdata()[0], cross.get_ydata()[0]) == (1, 1e9)


def test_a_mask_is_marked_where_the_query_may_look():
    marked = [text == "✓" for text in texts(PICTURES["mask"]())]
    assert np.array_equal(np.reshape(marked, (4, 4)), CAUSAL)


def test_maps_share_one_scale_and_are_named():
    figure = FIGURES["heat_maps"]()
    first, second, _ = figure.axes
    assert first.images[0].get_clim() == second.images[0].get_clim() == (0, 1)
    assert [ax.get_title() for ax in (first, second)] == ["a", "b"]
    assert [label.get_text() for label in first.get_yticklabels()] == WORDS


def test_arrows_are_numbered_by_position_where_there_is_room():
    fast, slow = FIGURES["turned"]().axes
    assert [text for text in texts(fast) if text] == ["0", "1", "2", "3", "4", "5"]
    assert [text for text in texts(slow) if text] == ["0"]
    arrow = fast.texts[2]  # an arrow, its number, an arrow ...
    assert isinstance(fast, Axes) and np.allclose(arrow.xy, [np.cos(1), np.sin(1)])


def test_a_number_has_the_colour_of_its_head():
    (ax,) = FIGURES["number_grids"]().axes
    colours = [plt.matplotlib.colors.to_hex(cell.get_facecolor()) for cell in ax.patches]
    expected = [transformer.TINTS[OWNERS[int(number)]] for number in texts(ax)]
    assert colours == expected


def test_the_changed_position_stands_out():
    ax = PICTURES["by_position"]()
    colours = [plt.matplotlib.colors.to_hex(bar.get_facecolor()).upper() for bar in ax.patches]
    assert colours == [plots.BLUE, plots.BLUE, plots.RED, plots.BLUE]
    assert texts(ax) == ["0", "0", "2", "1"]


def test_shares_are_of_each_row_and_small_ones_are_not_labelled():
    ax = PICTURES["parameter_shares"]()
    assert texts(ax) == ["25%", "", "75%", "99%"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["small\n40", "large\n100"]
