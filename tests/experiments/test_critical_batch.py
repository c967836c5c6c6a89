"""The critical batch is found where it was put, and never where nothing points to it."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbook.experiments.results import (
    BatchCurve,
    fit_batch_curve,
    fit_batch_curves,
    steps_to,
)

SIZES = (1, 8, 16, 32, 64, 128, 384)
sizes = st.floats(0.5, 5_000)


@given(fewest=sizes, critical=sizes)
def test_it_is_found_where_it_was_put(fewest, critical):
    truth = BatchCurve(fewest, critical)
    found = fit_batch_curve({size: truth.steps(size) for size in SIZES})
    assert found.fewest == pytest.approx(fewest, rel=1e-6)
    assert found.critical == pytest.approx(critical, rel=1e-6)


def test_noise_of_a_few_per_cent_moves_it_little():
    truth, noise = BatchCurve(20, 48), np.random.default_rng(0)
    found = fit_batch_curve({size: truth.steps(size) * noise.normal(1, 0.03) for size in SIZES})
    assert found.critical == pytest.approx(48, rel=0.15)


def test_at_the_critical_batch_a_run_takes_twice_the_fewest_steps():
    assert BatchCurve(20, 48).steps(48) == 40


def test_where_steps_only_halve_no_batch_is_large_yet():
    assert fit_batch_curve({8: 410, 16: 200, 32: 96}).critical == math.inf


def test_where_steps_stay_every_batch_is_large():
    assert fit_batch_curve({8: 100, 16: 100, 32: 101}).critical == 0


def test_two_sizes_are_too_few():
    with pytest.raises(ValueError, match="at least 3 batch sizes, got 2"):
        fit_batch_curve({8: 2.0, 16: 1.0})


@pytest.fixture
def log():
    losses = [4.0, math.nan, 3.0, 2.0, 2.5]
    return pd.DataFrame({"validation_loss": losses}, index=[0, 5, 10, 20, 30])


@pytest.mark.parametrize(
    ("loss", "step"), [(4.5, 0), (3.5, 5), (3.0, 10), (2.25, 17.5), (2.0, 20), (1.9, math.inf)]
)
def test_steps_to_a_loss_lie_on_a_line_between_evaluations(log, loss, step):
    assert steps_to(log, loss) == step


def test_curves_are_fitted_to_the_losses_that_four_sizes_came_to():
    truth = BatchCurve(4, 32)

    def log(size, end):  # the loss falls by one in each of `steps` steps
        places = [truth.steps(size) * part for part in range(end + 1)]
        return pd.DataFrame({"validation_loss": [8.0 - part for part in range(end + 1)]}, places)

    ends = {8: 5, 16: 4, 32: 4, 64: 3, 128: 2}
    found = fit_batch_curves({size: log(size, end) for size, end in ends.items()})
    assert list(found) == [5.0, 6.0]
    assert [list(steps) for steps, _ in found.values()] == [[8, 16, 32, 64], list(ends)]
    assert all(curve.critical == pytest.approx(32) for _, curve in found.values())
