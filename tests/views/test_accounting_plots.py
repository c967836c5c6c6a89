"""The pictures of notebook 04 show what they were given, and no label lies on another."""

from itertools import combinations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from workbook.optimizer.floats import FORMATS
from workbook.views import accounting, plots

SHARES = pd.DataFrame(
    {"head": [8, 1], "scores": [1, 1], "feed-forward": [1, 48]}, index=["small", "large"]
)
ALONG = pd.DataFrame(
    {"feed-forward": [70, 60, 10], "scores": [1, 10, 80], "head": [3, 3, 1]},
    index=pd.Index([512, 2048, 2**20], name="context length (ids)"),
)
MEMORY = pd.DataFrame(
    {"parameters": [6.5, 6.5, 6.5], "activations": [0.0, 72.0, 100.0]},
    index=pd.Index([0, 1, 2], name="batch size"),
)
DAYS = pd.DataFrame(
    {"slow": [5_000, 50.0], "fast": [100, 1.0]}, index=pd.Index([1, 1024], name="devices")
)
RATES = pd.DataFrame({"float32": [1, 90], "bfloat16": [1, 30]}, index=pd.Index([64, 1024]))
STORED = {name: each.store(0.1) for name, each in FORMATS.items()}
SAID = [("W1: 3", "this is it"), ("W2: 5", "")]
EVERY = list(FORMATS.values())
PICTURES = {
    "shares": lambda ax=None: accounting.shares(SHARES, "share", ax),
    "shares_along": lambda ax=None: accounting.shares_along(ALONG, ax),
    "stacked": lambda ax=None: accounting.stacked(MEMORY, "memory (GB)", 80, "80 GB", ax),
    "days": lambda ax=None: accounting.days(DAYS, ax),
    "rates": lambda ax=None: accounting.rates(RATES, "GFLOP/s", ax),
    "outcomes": lambda ax=None: accounting.outcomes(
        {"as asked": (3.0, "3"), "with switches": (2.0, "2")}, SAID, "batch", ax
    ),
    "float_bits": lambda ax=None: accounting.float_bits(STORED, ax),
    "float_ranges": lambda ax=None: accounting.float_ranges(EVERY, {"70,000": 7e4}, ax),
}


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


@pytest.mark.parametrize("name", PICTURES)
def test_every_plot_is_a_picture_that_fonts_can_draw(name):
    # A glyph that the font lacks is a warning, and warnings are errors here.
    assert len(plots.png(PICTURES[name]().figure)) < 60_000


@pytest.mark.parametrize("name", PICTURES)
def test_no_label_lies_on_another(name):
    ax = PICTURES[name]()
    ax.figure.canvas.draw()
    ticks = [*ax.get_xticklabels(), *ax.get_yticklabels()]
    named = [text for text in (*ax.texts, *ticks) if text.get_text().strip()]
    for one, other in combinations(named, 2):
        boxes = one.get_window_extent(), other.get_window_extent()
        assert not boxes[0].overlaps(boxes[1]), (one.get_text(), other.get_text())


def test_shares_are_of_the_row_and_small_ones_have_no_number():
    assert texts(accounting.shares(SHARES, "share")) == ["80%", "", "10%", "", "10%", "96%"]


def test_a_band_too_thin_for_its_name_has_it_above():
    ax = accounting.shares_along(ALONG)
    assert texts(ax) == [" feed-forward ", " scores ", "head, at most 4%"]


def test_a_bar_above_the_limit_says_so():
    assert texts(PICTURES["stacked"]()) == ["6.5", "78.5", "106.5\ntoo much", "80 GB"]


def test_times_are_marked_where_lines_run():
    ax = PICTURES["days"]()
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert shown == ["1 day", "1 week", "1 month", "1 year", "10 years"]
    assert texts(ax) == ["slow", "fast"]


def test_the_published_number_that_comes_out_is_bold():
    drawn = {text.get_text().strip(): text.get_weight() for text in PICTURES["outcomes"]().texts}
    assert drawn == {"3": "normal", "2": "normal", "W1: 3   this is it": "bold", "W2: 5": "normal"}


def test_a_number_is_drawn_bit_by_bit():
    drawn = texts(PICTURES["float_bits"]())
    bits = "".join(text for text in drawn if text in "01")
    assert bits == "".join(each.sign + each.exponent + each.mantissa for each in STORED.values())
    assert "= 0.0999755859, normal" in drawn


def test_ranges_reach_from_the_smallest_to_the_largest_number():
    ax = PICTURES["float_ranges"]()
    left = min(bar.get_x() for bar in ax.patches)
    right = max(bar.get_x() + bar.get_width() for bar in ax.patches)
    assert (left, right) == pytest.approx((-44.85, 38.53), abs=0.01)
