"""The views of notebook 08 show the losses that they are given."""

import pytest
from view_inputs import drawn, run

from workbook.views import experiments as draw


def labels(ax):
    return ax.get_legend_handles_labels()[1]


@pytest.mark.parametrize(
    ("x", "places"), [("steps", [1, 2]), ("tokens", [128, 256]), ("seconds", [2.0, 4.0])]
)
def test_a_curve_begins_behind_the_loss_before_training(x, places):
    ax = draw.curves({"one": [run(9.0, 3.0, 2.0)]}, x)
    (line,) = ax.lines
    assert list(line.get_xdata()) == places
    assert line.get_ydata().tolist() == [3.0, 2.0]
    assert ax.get_ylim()[1] < 4


def test_several_seeds_are_their_mean_and_their_range():
    ax = draw.curves({"two": [run(9, 3.0, 2.0, seed=1), run(9, 5.0, 2.5, seed=2)]})
    assert ax.lines[0].get_ydata().tolist() == [4.0, 2.25]
    (band,) = ax.collections
    assert {3.0, 5.0, 2.0, 2.5} <= set(band.get_paths()[0].vertices[:, 1])


def test_over_seconds_each_run_has_its_own_line_and_one_label():
    ax = draw.curves({"two": [run(9, 3.0, seed=1), run(9, 5.0, seed=2)]}, "seconds")
    assert len(ax.lines) == 2
    assert labels(ax) == ["two"]


def test_a_diverged_run_ends_in_a_cross_inside_the_picture():
    ax = drawn(draw.curves, x="steps")
    (cross,) = ax.collections
    assert cross.get_offsets().tolist() == [[2, draw.CEILING]]
    assert ax.get_ylim()[1] > draw.CEILING
    assert labels(ax) == ["good", "lost (training loss)"]


def test_a_sweep_marks_what_diverged_the_levels_and_the_edge():
    runs = {0.1: run(9, 3.0, seed=1), 0.01: run(9, 2.0, seed=2)}
    runs[1.0] = run(9, 9.9, diverged=True, seed=3)
    ax = draw.sweep({"it": runs}, {"a level": 1.5}, (0.1, 1.0))
    line, level = ax.lines
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0.01, 0.1], [2.0, 3.0])
    assert set(level.get_ydata()) == {1.5}
    assert labels(ax) == ["it", "diverged: no final loss", "edge of stability"]
    assert ax.get_xscale() == "log"


def test_an_ablation_shows_the_unchanged_sweep_near_the_rates_of_the_other():
    usual = {rate: run(9, 2 + rate, seed=i) for i, rate in enumerate((1e-4, 1e-2, 1.0), 1)}
    other = {rate: run(9, 3 + rate, norm="none", seed=i) for i, rate in enumerate((3e-3, 1e-2), 1)}
    groups = {"unchanged": [usual[1e-2]], "no norm": [other[1e-2]]}
    figure = draw.ablation(groups, {"unchanged": usual, "no norm": other})
    left, right = figure.axes
    assert labels(left) == labels(right) == ["unchanged", "no norm"]
    assert [list(line.get_xdata()) for line in right.lines] == [[1e-2], [3e-3, 1e-2]]


def test_batches_have_their_losses_their_rates_and_the_root():
    left, right = drawn(draw.batches).axes
    assert left.lines[0].get_ydata().tolist() == [2.08, 2.32]
    root = right.lines[-1]
    assert root.get_linestyle() == "--"
    assert root.get_ydata().tolist() == pytest.approx([0.01, 0.02])
    assert len(right.collections[0].get_offsets()) == 3


def test_steps_have_their_fit_and_a_star_at_the_critical_batch():
    ax = drawn(draw.steps_by_batch)
    stars = [line for line in ax.lines if line.get_marker() == "*" and len(line.get_xdata())]
    assert [line.get_xdata().tolist() for line in stars if line.get_color() != draw.INK] == [[32]]


def test_two_units_have_both_and_the_level_in_bits():
    left, right = drawn(draw.two_units).axes
    assert left.lines[0].get_ydata().tolist() == [3, 2]
    assert right.lines[0].get_ydata().tolist() == [1.5, 1]
    assert set(right.lines[-1].get_ydata()) == {0.5}


def test_runs_of_any_tokenizers_are_drawn_in_bits():
    ax = drawn(draw.in_bits)
    assert [line.get_ydata().tolist() for line in ax.lines[:2]] == [[1.5, 1], [2, 1.5]]
    assert ax.get_ylabel() == "validation loss (bits/byte)"


def test_all_runs_are_there_against_steps_and_seconds():
    figure = drawn(draw.everything)
    cut = [[line for line in ax.lines if line.get_gid() == "ceiling"] for ax in figure.axes]
    assert [len(lines) for lines in cut] == [1, 1], "a loss of 100 is not drawn where it is"
    assert [len(ax.lines) for ax in figure.axes] == [3 + 1, 3 + 1]
    assert [ax.get_xlabel() for ax in figure.axes] == ["steps", "time (seconds)"]


def test_panels_share_their_losses():
    figure = drawn(draw.panels)
    assert [ax.get_xscale() for ax in figure.axes] == ["log", "linear", "log"]
    assert [ax.lines[0].get_ydata().tolist() for ax in figure.axes] == [[3, 2]] * 3


def test_standings_have_the_lowest_on_top_and_the_range_of_the_start():
    ax = drawn(draw.standings)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["together", "a", "start", "... + b"]
    assert ax.yaxis_inverted()
    span = ax.patches[0]
    assert (span.get_x(), span.get_x() + span.get_width()) == pytest.approx((3.0, 3.2))
    helped = next(line for line in ax.lines if line.get_marker() == "D")
    assert list(helped.get_xdata()) == [2.5, 2.7]


def test_the_limit_stands_where_time_is_up():
    held_out, training, limit, _ = drawn(draw.against_time).lines
    assert held_out.get_ydata().tolist() == [3, 2, 2, 2, 1, 1]
    assert training.get_ydata()[-1] == 1.6  # the mean of the last five
    assert set(limit.get_xdata()) == {15.0}
