"""A difference is claimed where luck would rarely make one as large."""

import math
from statistics import fmean, stdev

import numpy as np
import pytest

from workbook.experiments import significance
from workbook.experiments.significance import PairedDifference, Spread, claimed, paired_difference

INF = math.inf


@pytest.mark.parametrize("freedom", range(1, 9))
def test_the_tails_are_the_integral_of_the_density_and_quantiles_their_inverse(freedom):
    scale = math.gamma((freedom + 1) / 2) / math.sqrt(freedom * math.pi) / math.gamma(freedom / 2)
    for t in (0.0, 0.3, 1.0, 2.5, 8.0):
        places = np.linspace(0, t, 20_001)
        density = scale * (1 + places**2 / freedom) ** (-(freedom + 1) / 2)
        inside = 2 * np.trapezoid(density, places)
        assert significance.t_tails(t, freedom) == pytest.approx(1 - inside, abs=1e-6)
        assert significance.t_tails(-t, freedom) == significance.t_tails(t, freedom)
    for chance in (0.1, 0.05, 0.001):
        quantile = significance.t_quantile(chance, freedom)
        assert significance.t_tails(quantile, freedom) == pytest.approx(chance, rel=1e-6)


def test_the_mean_its_error_and_the_seeds_that_both_have():
    found = paired_difference({1: 2.5, 2: 2.4, 7: 9.0}, {2: 2.0, 1: 2.2, 5: 1.0})
    gaps = [0.3, 0.4]
    assert found.gaps == pytest.approx(gaps)
    assert found.nats == pytest.approx(fmean(gaps))
    assert found.error == pytest.approx(stdev(gaps) / math.sqrt(2))
    # How often luck alone does as much: what a seed does to both sides cancels.
    assert found.chance == pytest.approx(significance.t_tails(found.nats / found.error, 1))


def test_equal_losses_are_no_difference_and_a_constant_gap_is_a_sure_one():
    assert paired_difference({1: 2.0, 2: 3.0}, {1: 2.0, 2: 3.0}).chance == 1
    assert PairedDifference((0.5, 0.5, 0.5)).chance == 0


def test_where_a_run_diverged_nothing_is_claimed():
    found = paired_difference({1: INF, 2: 2.0}, {1: 2.0, 2: 2.0})
    assert (found.nats, found.error, found.chance) == (INF, INF, 1.0)
    assert paired_difference({1: INF, 2: 2.1}, {1: INF, 2: 2.0}).gaps == pytest.approx((0.0, 0.1))


def test_the_smallest_claim_is_where_p_meets_its_level():
    found = PairedDifference((0.1, 0.2, 0.15, 0.12, 0.18))
    for comparisons in (1, 12):
        least = found.smallest_claim(comparisons)
        moved = PairedDifference(tuple(gap - found.nats + least for gap in found.gaps))
        assert moved.chance == pytest.approx(0.05 / comparisons, rel=1e-6)


def one_with(chance):
    """A difference of five pairs that has this p."""
    gaps = [0.1, 0.2, 0.15, 0.12, 0.18]
    spread_only = PairedDifference(tuple(gap - fmean(gaps) for gap in gaps))
    mean = significance.t_quantile(chance, 4) * spread_only.error
    return PairedDifference(tuple(gap + mean for gap in spread_only.gaps))


def test_holm_gives_each_rank_its_own_level_and_stops_at_the_first_that_fails():
    chances = {"a": 0.03, "b": 0.001, "c": 0.04, "d": 0.016}
    found = {name: one_with(chance) for name, chance in chances.items()}
    # In order: 0.001 < 0.05/4; 0.016 < 0.05/3; 0.03 > 0.05/2, so 0.04 < 0.05/1 is not claimed.
    assert claimed(found) == {"a": False, "b": True, "c": False, "d": True}
    assert claimed({}) == {}


def test_a_spread_is_mean_and_sample_deviation_unless_a_run_diverged():
    spread = Spread((1.0, 2.0, 3.0))
    assert (spread.mean, spread.deviation) == (2.0, 1.0)
    assert str(spread) == "2.000 ± 1.000 (3 seeds)"
    assert str(Spread((1.25,))) == "1.250 (1 seed)"
    spread = Spread((2.0, INF, 3.0))
    assert (spread.mean, spread.deviation, spread.diverged) == (INF, INF, 1)
    assert str(spread) == "1 of 3 seeds diverged"


def test_a_difference_needs_two_seeds_that_both_have():
    with pytest.raises(ValueError, match=r"at least 2 seeds that both settings have, got \[1\]"):
        paired_difference({1: 2.0}, {1: 2.0, 2: 2.1})
