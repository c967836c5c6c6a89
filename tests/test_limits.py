"""A loss that climbs is told from one that only spikes, and time from steps."""

import math

import pytest

from workbook.limits import WINDOW, ClimbWatch, TimeLimit


def test_ten_losses_are_needed_to_say_anything():
    watch = ClimbWatch(first=2.0)
    assert [watch.climbed(100.0) for _ in range(WINDOW - 1)] == [0.0] * (WINDOW - 1)
    assert watch.climbed(100.0) == pytest.approx(98.0)


def test_a_spike_that_heals_is_small_in_the_mean():
    watch = ClimbWatch()
    climbs = [watch.climbed(loss) for loss in [3.0] * 10 + [9.0] + [3.0] * 10]
    assert max(climbs) == pytest.approx(0.6)
    assert climbs[-1] == pytest.approx(0.0)


def test_a_falling_loss_never_climbs():
    watch = ClimbWatch(first=8.0)
    assert {watch.climbed(8 - 0.1 * step) for step in range(50)} == {0.0}


def test_a_watch_goes_on_from_its_state():
    one, other = ClimbWatch(first=5.0), ClimbWatch()
    for loss in range(12):
        one.climbed(loss)
    other.restore(one.state())
    assert [one.climbed(20.0), one.climbed(3.0)] == [other.climbed(20.0), other.climbed(3.0)]


def test_a_step_that_would_end_too_late_is_not_begun():
    limit = TimeLimit(10.0)
    assert [limit.is_up(elapsed) for elapsed in (3.0, 6.0, 8.0)] == [False, False, True]


def test_without_a_limit_time_is_never_up():
    limit = TimeLimit(None)
    assert not limit.is_up(1e12)
    assert limit.share(1e12) == 0.0


def test_the_share_of_the_time_ends_at_one():
    assert [TimeLimit(4.0).share(seconds) for seconds in (0.0, 1.0, 4.0, math.inf)] == [
        0,
        0.25,
        1,
        1,
    ]
