"""A difference is claimed where dealing the runs out anew would rarely show as much."""

import math
from itertools import permutations
from random import Random

import pytest

from workbook.experiments.significance import difference, spread

INF = math.inf


def by_all_orders(losses, others):
    """The chance by the book: every order of the runs, its first ones taken for the setting."""
    everything, size = [*losses, *others], len(losses)

    def apart(order):
        first, rest = order[:size], order[size:]
        return abs(sum(first) / len(first) - sum(rest) / len(rest))

    seen = apart(everything)
    found = [apart(order) >= seen - 1e-9 for order in permutations(everything)]
    return sum(found) / len(found)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("sizes", [(1, 1), (1, 5), (3, 3), (3, 4), (2, 5)])
def test_the_chance_is_that_of_all_orders(seed, sizes):
    random = Random(seed)
    losses, others = ([round(random.gauss(2, 0.3), 2) for _ in range(size)] for size in sizes)
    found = difference(losses, others)
    assert found.chance == pytest.approx(by_all_orders(losses, others), abs=1e-12)
    assert found.nats == pytest.approx(
        sum(losses) / len(losses) - sum(others) / len(others), abs=1e-12
    )


@pytest.mark.parametrize("seed", range(8))
def test_an_infinite_loss_counts_like_one_far_above_all_others(seed):
    random = Random(seed)
    losses, others = (
        [INF if random.random() < 0.4 else round(random.gauss(2, 0.3), 2) for _ in range(size)]
        for size in (3, 4)
    )
    far = [[1e5 if math.isinf(loss) else loss for loss in each] for each in (losses, others)]
    found = difference(losses, others)
    assert found.chance == pytest.approx(by_all_orders(*far), abs=1e-12)
    assert not math.isnan(found.nats)
    if math.isinf(found.nats):
        assert found.nats == math.copysign(INF, difference(*far).nats)


@pytest.mark.parametrize(
    ("losses", "others"),
    [([2.0, 2.1, 2.3], [1.9, 1.8, 2.05, 1.7]), ([INF, 2.0], [1.9, 1.8]), ([INF], [INF, INF])],
)
def test_both_sides_see_the_same_difference(losses, others):
    there, back = difference(losses, others), difference(others, losses)
    assert there.chance == back.chance
    assert there.nats == pytest.approx(-back.nats, abs=1e-12)


def test_equal_settings_show_nothing():
    found = difference([2.0, 2.1], [2.0, 2.1])
    assert found.nats == 0 and found.chance == 1 and not found.claimed


def test_two_settings_that_always_diverge_are_not_told_apart():
    found = difference([INF, INF], [INF, INF, INF])
    assert found.nats == 0 and found.chance == 1


def test_as_many_diverged_on_both_sides_leave_it_to_the_others():
    found = difference([INF, 3.0], [INF, 2.0])
    assert found.nats == pytest.approx(1.0, abs=1e-12) and not found.claimed


def test_three_that_diverge_beside_five_that_do_not_are_a_difference():
    found = difference([INF] * 3, [2.0, 2.1, 2.2, 2.3, 2.4])
    assert found.nats == INF and found.chance == pytest.approx(1 / 56, abs=1e-12)
    fewer = difference([2.0], [INF])
    assert fewer.nats == -INF and fewer.chance == 1


def test_too_few_runs_can_claim_nothing():
    assert not difference([9.0], [2.0]).claimed
    assert not difference([9.0, 9.1, 9.2], [2.0]).claimed


def test_a_spread_is_mean_and_sample_deviation():
    found = spread([1.0, 2.0, 3.0])
    assert (found.mean, found.deviation) == (2.0, 1.0)
    assert str(found) == "2.000 ± 1.000 (3 seeds)"


def test_a_spread_with_a_diverged_run_says_so():
    found = spread([2.0, INF, 3.0])
    assert (found.mean, found.deviation, found.diverged) == (INF, INF, 1)
    assert str(found) == "1 of 3 seeds diverged"


def test_what_is_no_loss_is_refused():
    with pytest.raises(ValueError, match="at least 2 seeds, got 1"):
        spread([2.0])
    with pytest.raises(ValueError, match=r"both settings, got 0 and 2; run what"):
        difference([], [2.0, 2.1])
    with pytest.raises(ValueError, match="no number; a run that diverged has inf"):
        difference([math.nan], [2.0])
