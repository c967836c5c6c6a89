"""The views of notebook 08 show the losses that they are given."""

import pytest
from view_inputs import drawn, run

from workbook.classroom.views import experiments as draw


def labels(ax):
    return ax.get_legend_handles_labels()[1]


@pytest.mark.parametrize(("x", "places"), [("tokens", [128, 256]), ("seconds", [2.0, 4.0])])
def test_a_curve_begins_behind_the_loss_before_training(x, places):
    ax = draw.curves({"one": [run(9.0, 3.0, 2.0)]}, x)
    (line,) = ax.lines
    assert (list(line.get_xdata()), list(line.get_ydata())) == (places, [3.0, 2.0])
    assert ax.get_ylim()[1] < 4


def test_several_seeds_are_their_mean_and_their_range():
    ax = draw.curves({"two": [run(9, 3.0, 2.0, seed=1), run(9, 5.0, 2.5, seed=2)]})
    assert ax.lines[0].get_ydata().tolist() == [4.0, 2.25]
    (band,) = ax.collections
    assert {3.0, 5.0, 2.0, 2.5} <= set(band.get_paths()[0].vertices[:, 1])


def test_a_diverged_run_ends_in_a_cross_inside_the_picture():
    ax = drawn(draw.curves)
    (cross,) = ax.collections
    assert cross.get_offsets().tolist() == [[256, draw.CEILING]]
    assert ax.get_ylim()[1] > draw.CEILING
    assert labels(ax) == ["good", "lost (training loss)"]


def test_a_sweep_marks_what_diverged_and_the_levels():
    runs = {0.1: run(9, 3.0, seed=1), 0.01: run(9, 2.0, seed=2)}
    runs[1.0] = run(9, 9.9, diverged=True, seed=3)
    ax = draw.sweep({"it": runs}, {"a level": 1.5})
    line, level = ax.lines
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0.01, 0.1], [2.0, 3.0])
    assert set(level.get_ydata()) == {1.5}
    assert labels(ax) == ["it", "diverged: no final loss"]
    assert ax.get_xscale() == "log"


def test_an_ablation_shows_the_last_budget_s_seeds_and_every_budget_s_tuning():
    left, right = drawn(draw.ablation).axes
    assert labels(left) == ["unchanged at 0.01", "no norm at 0.01"]
    assert set(labels(right)) == {"0.0 M tokens", "no norm", "diverged"}
    tuned = [(line.get_linestyle(), [*line.get_ydata()]) for line in right.lines]
    assert tuned == [("-", [2]), ("--", [2]), ("-", [2]), ("--", [3]), ("--", [])]


def test_effects_are_means_with_errors_beside_what_is_reported():
    left, right = drawn(draw.effects).axes
    assert [*left.lines[0].get_xdata()] == [400, 4_000]
    assert [*left.lines[0].get_ydata()] == pytest.approx([0.0, 0.85])
    assert [*right.lines[0].get_ydata()] == [0.1, 0.8]
    assert [label.get_text() for label in right.get_xticklabels()] == ["no norm"]
    assert [line.get_ydata().tolist() for line in left.lines if len(line.get_xdata()) == 1]


def test_batches_have_their_losses_their_rates_and_the_root():
    left, right = drawn(draw.batches).axes
    assert left.lines[0].get_ydata().tolist() == [2.08, 2.32]
    assert right.lines[-1].get_ydata().tolist() == pytest.approx([0.005, 0.01])
    assert len(right.collections[0].get_offsets()) == 3


def test_runs_of_any_tokenizers_are_drawn_in_bits():
    ax = drawn(draw.in_bits)
    assert [line.get_ydata().tolist() for line in ax.lines[:2]] == [[1.5, 1], [2, 1.5]]
    assert ax.get_ylabel() == "validation loss (bits/byte)"
