"""The pictures of notebook 05 show the numbers that they are given."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from workbook.optimizer import toys
from workbook.optimizer.floats import FORMATS
from workbook.views import optimizer


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_log_curves_draw_every_column_and_let_a_zero_fall_out_of_the_picture():
    table = pd.DataFrame({"a": [1.0, 0.1, 0.0], "b": [1.0, 10.0, 100.0]}).rename_axis("step")
    ax = optimizer.log_curves(table, "loss", exact=table, marks={"start": 1.0}, lowest=1e-6)
    assert ax.get_yscale() == "log" and ax.get_ylim()[0] == pytest.approx(1e-6)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "loss")
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines if line.get_linewidth() == 2.5}
    np.testing.assert_array_equal(drawn["b"], table["b"])
    assert drawn["a"][:2].tolist() == [1.0, 0.1] and drawn["a"][2] < 1e-6
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == ["closed form", "a", "b"]


def test_a_line_alone_needs_no_legend():
    table = pd.DataFrame({"a": [1.0, 0.5]}).rename_axis("step")
    assert optimizer.log_curves(table, "loss").get_legend() is None


@pytest.mark.parametrize("count", [1, 3, 5])
def test_every_path_has_its_map(count):
    paths = {f"rule {n}": np.array([[-4.0, 1.0], [n / 10, 0.5]]) for n in range(count)}
    figure = optimizer.valley(paths, toys.ravine)
    shown = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title() for ax in shown] == list(paths)
    for ax, path in zip(shown, paths.values(), strict=True):
        np.testing.assert_array_equal(ax.lines[0].get_xydata(), path)


def test_tables_side_by_side_share_their_scale_and_one_legend():
    table = pd.DataFrame({"a": [1.0, 0.5], "b": [2.0, 0.1]}).rename_axis("step")
    exact = pd.Series([1.0, 0.4], name="wanted")
    figure = optimizer.side_by_side({"one": table, "two": table / 2}, "weight", exact)
    left, right = figure.axes
    assert left.get_ylim() == right.get_ylim()
    assert (left.get_title(), right.get_title()) == ("one", "two")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "wanted"]
    np.testing.assert_array_equal(right.lines[1].get_ydata(), [1.0, 0.05])


def test_the_histogram_marks_where_float16_loses():
    sizes = {"inner": np.logspace(-9, -3, 100), "outer": np.logspace(-5, -1, 100)}
    ax = optimizer.size_histogram(sizes)
    half = FORMATS["float16"]
    drawn = sorted(line.get_xdata()[0] for line in ax.lines)
    wanted = np.log10([half.smallest_subnormal / 2, half.smallest_normal])
    np.testing.assert_allclose(drawn, wanted)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(sizes)
