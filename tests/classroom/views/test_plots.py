"""No picture goes without words, and tables are written as people read them."""

import math
from io import BytesIO

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from view_inputs import GROWING, SIZES, drawn, legend, texts

from workbook.classroom.views import plots


@pytest.fixture
def displayed(monkeypatch):
    """What `show` hands to Jupyter: a list of (bundle, metadata)."""
    seen = []
    monkeypatch.setattr(plots, "display", lambda data, metadata, raw: seen.append((data, metadata)))
    return seen


def test_every_form_of_a_picture_becomes_figures(tmp_path):
    figure, axes = plt.subplots(1, 2)
    other = plt.figure()
    path = tmp_path / "plot.png"
    figure.savefig(path)
    plt.close("all")
    for form in (figure, axes, axes[0], [axes[0], axes[1]], [figure]):
        assert plots.figures_in(form) == [figure]
    assert plots.figures_in([figure, other]) == [figure, other]
    (saved,) = plots.figures_in(str(path))
    assert Image.open(BytesIO(plots.png(saved))).size == (figure.bbox.width, figure.bbox.height)


def test_what_is_no_picture_is_told(tmp_path):
    text = tmp_path / "plot.png"
    for form, said in (
        (plt, "not the module matplotlib.pyplot; `plt.gcf\\(\\)` is the figure"),
        (pd.DataFrame(), "expected a matplotlib figure, its axes, .* not DataFrame"),
        (text, "there is no picture .*plot.png"),
        ([text], "there is no picture .*plot.png"),
    ):
        with pytest.raises(ValueError, match=said):
            plots.figures_in(form)
    text.write_text("no picture")
    with pytest.raises(ValueError, match="is not a picture that can be read, such as a PNG"):
        plots.figures_in(text)


def test_show_gives_picture_and_words(displayed):
    plots.show(drawn(plots.grouped_bars), "Two texts in two encodings.")
    ((data, metadata),) = displayed
    assert data["image/png"].startswith(b"\x89PNG")
    assert data["text/plain"] == metadata["image/png"]["alt"] == "Two texts in two encodings."
    assert plt.get_fignums() == []


def test_show_refuses_a_picture_without_words(displayed):
    for alt in ("  ", None):
        with pytest.raises(ValueError, match="alt text"):
            plots.show(drawn(plots.grouped_bars), alt)
    assert displayed == []


def test_the_same_figure_gives_the_same_bytes():
    assert len({plots.png(drawn(plots.curves).figure) for _ in range(2)}) == 1


def test_lines_of_like_colours_stay_apart_in_the_png():
    figure, (left, right) = plt.subplots(1, 2)
    x = np.linspace(0, 6, 200)
    for shift, colour in enumerate(plt.get_cmap("viridis")(np.linspace(0, 1, 16))):
        left.plot(x, np.sin(x + shift / 4), color=colour)
    for shift, colour in enumerate([plots.ORANGE, plots.RED]):
        right.plot(x, np.cos(x + shift), color=colour)
    stored = np.asarray(Image.open(BytesIO(plots.png(figure))).convert("RGB"), int)
    for colour in (plots.ORANGE, plots.RED):
        wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
        assert (abs(stored - wanted).max(axis=-1) <= 16).sum() > 500, colour


def test_values_stand_beside_what_shows_them():
    assert texts(plots.grouped_bars(SIZES, "size (bytes)")) == ["63", "71", "126", "128.50"]
    assert texts(drawn(plots.shares)) == ["80%", "", "10%", "", "10%", "96%"]  # of the row
    ax = drawn(plots.points)
    assert texts(ax) == ["3,180", "0.02"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["naive", "compiled"]


def test_on_a_log_axis_a_zero_falls_out_of_the_picture_and_an_infinity_ends_the_line():
    table = pd.DataFrame({"a": [1.0, 0.1, 0.0], "b": [1.0, 10.0, math.inf]}).rename_axis("step")
    ax = plots.curves(table, "loss", log_y=True, lowest=1e-6, exact=table[["a"]])
    assert ax.get_yscale() == "log" and ax.get_ylim()[0] == pytest.approx(1e-6)
    falling, rising, exact = ax.lines
    # At the edge of the picture: a line to 0 itself would fall straight down at the step before.
    assert exact.get_linestyle() == "--" and list(falling.get_ydata()) == [1, 0.1, 1e-6]
    assert list(exact.get_ydata()) == [1, 0.1, 1e-6]
    assert np.isfinite(rising.get_ydata()).tolist() == [True, True, False]
    assert texts(ax) == ["a", "b"]


def test_curves_have_names_at_their_ends_or_a_legend():
    assert texts(plots.curves(GROWING, "bytes/token")) == ["a", "b"]
    ax = plots.curves(GROWING.fillna(3), "bytes/token")
    assert texts(ax) == [] and legend(ax) == ["a", "b"]


def test_a_number_is_written_as_one_reads_it():
    values = [2_127_057_600, 15.517753344, 5115.19, 1.17e-38, np.bool_(True), math.nan]
    tables = [plots.readable(pd.DataFrame({"x": [value]}, dtype=object)) for value in values]
    written = [table.iloc[0, 0] for table in tables]
    assert written == ["2,127,057,600", "15.52", "5,115", "1.17e-38", "yes", ""]
