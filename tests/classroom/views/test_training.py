"""The views of notebook 06 show the losses of a run, while it trains and when it has ended."""

import pytest
import tiny_runs
from view_inputs import LOG, drawn

from workbook.classroom.study.notebooks import WIDGET_VIEW
from workbook.classroom.views import training
from workbook.classroom.views.training import LiveCurve, curve_html

AXES = [("step", [1, 2]), ("tokens", [8, 16]), ("seconds", [0.5, 1.0])]


@pytest.mark.parametrize(("x", "places"), AXES)
def test_a_curve_stands_over_the_axis_asked_for(x, places):
    ax = training.loss_curve(LOG, x, choices=0.7)
    train, validation, level = ax.lines
    assert (train.get_xdata().tolist(), train.get_ydata().tolist()) == (places, [3.5, 3.0])
    assert validation.get_ydata().tolist() == [4.0, 2.0]
    assert set(level.get_ydata()) == {0.7} and level.get_linestyle() == "--"
    assert ax.get_ylabel() == "loss (nats/token)"


def test_runs_of_one_text_compare_in_nats_per_token_and_of_other_tokens_in_bits_per_byte():
    ax = drawn(training.compared)
    assert [line.get_label() for line in ax.lines][1::2] == ["ours", "yours"]
    assert ax.get_ylabel() == "loss (nats/token)"
    assert ax.lines[1].get_ydata().tolist() == [4.0, 2.0]
    longer_tokens = LOG.assign(validation_bits_per_byte=0.75 * LOG["validation_bits_per_byte"])
    ax = training.compared({"ours": LOG, "yours": longer_tokens})
    assert ax.get_ylabel() == "loss (bits/byte)"
    assert ax.lines[1].get_ydata().tolist() == [2.0, 1.0]
    assert ax.lines[3].get_ydata().tolist() == [1.5, 0.75]


def test_a_curve_is_told_in_words():
    words = "from 4.00 to 2.00 nats per token (perplexity 55 to 7.4) in 2 steps"
    assert words in training.words(LOG)


def test_the_live_curve_follows_the_records():
    curve = LiveCurve(tiny_runs.tiny(steps=20))
    for record in LOG.reset_index().to_dict("records"):
        curve({name: value for name, value in record.items() if value == value})
    assert (curve.bar.value, curve.bar.max) == (2, 20)
    assert curve.curve.value.count("<polyline") == 2
    assert "step 2 of 20  loss 3.000  validation 2.000" in curve.curve.value
    data = curve._repr_mimebundle_()
    assert WIDGET_VIEW in data and "20 steps" in data["text/plain"]


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


@pytest.mark.slow
def test_a_picture_takes_the_place_of_the_live_curve(shown, tmp_path):
    arguments = tiny_runs.tiny(), tiny_runs.data(), tmp_path / "run"
    run = training.train_live(*arguments)
    training.train_live(*arguments, beside=run)  # nothing is left to train
    for view, picture in (shown[:2], shown[-2:]):
        assert WIDGET_VIEW in view and set(picture) == {"image/png", "text/plain"}
        assert "up to step 24 of 24  loss" in picture["text/plain"]
    said = "Your run beside ours. The losses of the run by step, up to step 24"
    assert said in picture["text/plain"]
    assert f"Ours ended at {run.loss:.3f}." in picture["text/plain"]


def test_an_interrupted_run_leaves_a_picture_too(shown, tmp_path):
    def interrupt(record):
        if record["step"] == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train_live(tiny_runs.tiny(), tiny_runs.data(), tmp_path, [interrupt])
    assert "up to step 6 of 24  loss" in shown[-1]["text/plain"]


def test_a_run_that_cannot_begin_says_so_itself(shown, tmp_path):
    bad = tiny_runs.data(train=tiny_runs.ids(3))
    with pytest.raises(ValueError, match="ids"):
        training.train_live(tiny_runs.tiny(), bad, tmp_path)
    assert shown[-1] == {"text/plain": "The run ended before anything was measured."}


def test_a_loss_that_is_no_number_breaks_no_curve():
    shown = curve_html(tiny_runs.tiny(), [{"step": 1, "seconds": 1.0, "train_loss": None}])
    assert "<svg" in shown
