"""A loss that climbs is told from one that only spikes, and time from steps."""

import math

import pytest

from workbook.training.guards import WINDOW, ClimbWatch, TimeLimit


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


def ends_at(limit, steps, before=0.0):
    """How many of the steps are taken, and when they end; `before` is the time before the first."""
    elapsed = before
    for number, step in enumerate(steps, 1):
        elapsed += step
        if limit.is_up(elapsed, step):
            return number, elapsed
    pytest.fail("the steps did not suffice")


def test_a_step_that_would_end_too_late_is_not_begun():
    assert ends_at(TimeLimit(10.0), [3.0] * 9) == (3, 9.0)
    assert ends_at(TimeLimit(9.0), [3.0] * 9) == (3, 9.0)


@pytest.mark.parametrize("slow", [0, 1, 2, 30])
def test_one_slow_step_does_not_end_a_run_early(slow):
    steps = [1.0] * 100
    steps[slow] = 25.0  # the first compiles, and any other may have met a busy machine
    assert ends_at(TimeLimit(60.0), steps) == (36, 60.0)


def test_a_first_step_that_takes_most_of_the_time_is_not_the_last():
    assert ends_at(TimeLimit(60.0), [40.0] + [1.0] * 99) == (21, 60.0)


def test_the_time_of_earlier_sessions_is_no_step():
    assert ends_at(TimeLimit(60.0), [1.0] * 99, before=45.0) == (15, 60.0)


def test_time_between_the_steps_counts_but_is_no_step():
    limit, elapsed, steps = TimeLimit(60.0), 0.0, 0
    while True:
        elapsed, steps = elapsed + 1.0, steps + 1
        if limit.is_up(elapsed, 1.0):
            break
        elapsed += 20.0 * (steps == 10)  # an evaluation
    assert (steps, elapsed) == (40, 60.0)


def test_steps_that_become_slower_are_expected_to_stay_so():
    count, end = ends_at(TimeLimit(60.0), [1.0] * 20 + [9.0] * 20)
    assert (count, end) == (24, 56.0)


def test_without_a_limit_time_is_never_up():
    limit = TimeLimit(None)
    assert not limit.is_up(1e12, 1e12)
    assert limit.share(1e12) == 0.0


def test_the_share_of_the_time_ends_at_one():
    assert [TimeLimit(4.0).share(seconds) for seconds in (0.0, 1.0, 4.0, math.inf)] == [
        0,
        0.25,
        1,
        1,
    ]
