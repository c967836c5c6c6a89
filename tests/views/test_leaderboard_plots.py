"""The pictures of the leaderboard show the losses that they are given."""

import matplotlib.pyplot as plt
import pytest
from made_records import config, record

from workbook.views import experiments as draw


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_standings_have_the_lowest_on_top_and_the_range_of_the_start():
    entries = {"start": [3.0, 3.2], "a": [2.5, 2.7], "a + b": [3.1, 3.3], "together": [2.0, 2.1]}
    ax = draw.standings(entries, ["a"])
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["together", "a", "start", "... + b"]
    assert ax.yaxis_inverted()
    span = ax.patches[0]
    assert (span.get_x(), span.get_x() + span.get_width()) == pytest.approx((3.0, 3.2))
    helped = next(line for line in ax.lines if line.get_marker() == "D")
    assert list(helped.get_xdata()) == [2.5, 2.7]


def test_the_limit_stands_where_time_is_up(tmp_path):
    run = record(tmp_path, config(), [9.0, 3.0, 2.0, 2.0, 2.0, 1.0, 1.0])
    held_out, training, limit, _ = draw.against_time({"start": [run]}, cap=15.0).lines
    assert held_out.get_ydata().tolist() == [3, 2, 2, 2, 1, 1]
    assert training.get_ydata()[-1] == 1.6  # the mean of the last five
    assert set(limit.get_xdata()) == {15.0}
