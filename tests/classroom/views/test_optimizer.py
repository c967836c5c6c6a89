"""The views of notebook 05 show the numbers that they are given, and the toy's closed form."""

import re

import numpy as np
import pytest
from view_inputs import FALLING, GRADIENTS, drawn, legend, seen

from workbook.classroom import views
from workbook.classroom.views import optimizer
from workbook.optimizer import toys
from workbook.optimizer.floats import FORMATS


def test_tables_side_by_side_share_their_scale_and_one_legend():
    figure = drawn(optimizer.side_by_side)
    left, right = figure.axes
    assert left.get_ylim() == right.get_ylim()
    assert (left.get_title(), right.get_title()) == ("one", "two")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "wanted"]
    np.testing.assert_array_equal(right.lines[1].get_ydata(), FALLING["b"] / 2)


def test_the_histogram_marks_where_float16_loses():
    ax = drawn(optimizer.size_histogram)
    half = FORMATS["float16"]
    marks = sorted(line.get_xdata()[0] for line in ax.lines)
    wanted = np.log10([half.smallest_subnormal / 2, half.smallest_normal])
    np.testing.assert_allclose(marks, wanted)
    assert legend(ax) == list(GRADIENTS)


def row(view, step):
    """The cells of one step, as numbers."""
    body = view.html.partition("<tbody>")[2]
    cells = re.findall(r'<td class="number">([^<]*)</td>', body)[4 * step : 4 * step + 4]
    return [float(cell) for cell in cells]


@pytest.mark.parametrize("lr", [1, 10, 50, 99, 100, 101, 1_000])
def test_the_slider_shows_ten_steps_of_the_closed_form(lr):
    view = views.learning_rate_slider(lr)
    losses = toys.relative_losses(lr, 10)
    assert toys.course_of_loss(lr) in seen(view.html) and f"Learning rate {lr:,}" in repr(view)
    for t in range(10):
        factor = toys.step_factor(lr, t)
        step, times, squared, loss = row(view, t)
        assert step == t
        assert times == pytest.approx(factor, abs=6e-4)
        assert squared == pytest.approx(factor**2, abs=6e-4)
        assert loss == pytest.approx(losses[t + 1], rel=6e-3)
