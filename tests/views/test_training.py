"""The pictures of training show the numbers that they are given."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import tiny_runs

from workbook.study.notebooks import WIDGET_VIEW
from workbook.views import training
from workbook.views.training import LiveCurve, curve_html


@pytest.fixture
def log():
    rows = [
        {"step": 0, "tokens": 0, "seconds": 0.0, "validation_loss": 4.0},
        {"step": 1, "tokens": 8, "seconds": 0.5, "train_loss": 3.5},
        {"step": 2, "tokens": 16, "seconds": 1.0, "train_loss": 3.0, "validation_loss": 2.0},
    ]
    table = pd.DataFrame(rows).set_index("step")
    table["validation_bits_per_byte"] = table["validation_loss"] / 2
    return table


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    ("x", "places"), [("step", [1, 2]), ("tokens", [8, 16]), ("seconds", [0.5, 1.0])]
)
def test_a_curve_stands_over_the_axis_asked_for(log, x, places):
    ax = training.loss_curve(log, x, entropy=0.7)
    train, validation, level = ax.lines
    assert train.get_xdata().tolist() == places
    assert train.get_ydata().tolist() == [3.5, 3.0]
    assert validation.get_ydata().tolist() == [4.0, 2.0]
    assert set(level.get_ydata()) == {0.7}
    assert level.get_linestyle() == "--"
    assert ax.get_ylabel() == "loss (nats/token)"


def test_three_curves_share_their_losses(log):
    figure = training.three_curves(log, 0.7)
    assert [ax.get_xlabel() for ax in figure.axes] == ["steps", "tokens", "time (seconds)"]


def test_bits_a_byte_become_nats_a_token_by_this_run_s_own_ratio(log):
    assert training.nats_a_token(log, 0.25) == 0.5


def test_starts_are_counted(log):
    ax = training.start_counts([0, 2, 2], 4)
    assert [bar.get_height() for bar in ax.patches] == [1, 0, 2, 0]
    assert set(ax.lines[0].get_ydata()) == {3 / 4}


def test_parts_of_a_step_are_named_with_their_share():
    ax = training.step_parts({"data": 0.001, "forward": 0.099})
    assert [text.get_text() for text in ax.texts] == ["1 ms, 1.0%", "99 ms, 99.0%"]


def test_runs_lie_on_each_other(log):
    ax = training.overlaid({"one": log, "other": log})
    assert [line.get_label() for line in ax.lines] == ["one", "other"]
    assert ax.lines[0].get_linewidth() > ax.lines[1].get_linewidth()


def test_a_curve_is_told_in_words(log):
    assert "from 4.00 to 2.00 nats a token (perplexity 55 to 7.4) in 2 steps" in (
        training.words(log)
    )


def test_the_live_curve_follows_the_records(log):
    curve = LiveCurve(tiny_runs.tiny(steps=20))
    for record in log.reset_index().to_dict("records"):
        curve({name: value for name, value in record.items() if value == value})
    assert curve.bar.value == 2
    assert curve.bar.max == 20
    assert curve.curve.value.count("<polyline") == 2
    assert "step 2 of 20  loss 3.000  validation 2.000" in curve.curve.value
    data = curve._repr_mimebundle_()
    assert WIDGET_VIEW in data
    assert "20 steps" in data["text/plain"]


@pytest.fixture
def shown(monkeypatch):
    """What a notebook would be told to show in one place, one after the other."""
    seen = []

    class Place:
        def display(self, view):
            seen.append(view._repr_mimebundle_())

        def update(self, output, metadata, raw):
            seen.append(output)

    monkeypatch.setattr(training, "DisplayHandle", Place)
    return seen


def test_a_picture_takes_the_place_of_the_live_curve(shown, tmp_path):
    for _ in range(2):  # the second time there is nothing left to train
        training.train_live(tiny_runs.tiny(), tmp_path / "run", tiny_runs.data())
        view, picture = shown[-2:]
        assert WIDGET_VIEW in view and set(picture) == {"image/png", "text/plain"}
        assert "up to step 24 of 24  loss" in picture["text/plain"]


def test_an_interrupted_run_leaves_a_picture_too(shown, tmp_path):
    def interrupt(record):
        if record["step"] == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train_live(tiny_runs.tiny(), tmp_path, tiny_runs.data(), [interrupt])
    assert "up to step 6 of 24  loss" in shown[-1]["text/plain"]


def test_a_run_that_cannot_begin_says_so_itself(shown, tmp_path):
    bad = tiny_runs.data(train=tiny_runs.ids(3))
    with pytest.raises(ValueError, match="ids"):
        training.train_live(tiny_runs.tiny(), tmp_path, bad)
    assert shown[-1] == {"text/plain": "The run ended before anything was measured."}


def test_a_loss_that_is_no_number_breaks_no_curve():
    shown = curve_html(tiny_runs.tiny(), [{"step": 1, "train_loss": None}])
    assert "<svg" in shown
