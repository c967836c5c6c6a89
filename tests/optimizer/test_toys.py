"""The toys of notebook 05: their closed form is what SGD does, and they measure what they say."""

from functools import partial

import numpy as np
import pytest
import torch

from workbook.optimizer import optimizers, toys
from workbook.optimizer.toys import run_toy


@pytest.mark.parametrize("lr", [1, 10, 50, 99, 100, 101, 1_000])
def test_the_closed_form_is_the_run(lr):
    losses = np.array(run_toy(lr, 20, torch.float64))
    exact = np.array(toys.relative_losses(lr, 20))
    np.testing.assert_allclose(losses / losses[0], exact, rtol=1e-11, atol=1e-28)


@pytest.mark.parametrize("lr", [1, 49, 50, 51, 100, 101, 150, 200, 999, 1_000])
def test_growing_steps_and_steps_to_zero_are_those_of_the_factors(lr):
    steps = int((lr / 50) ** 2) + 3
    grows = [abs(toys.step_factor(lr, t)) > 1 + 1e-12 for t in range(steps)]
    assert grows == [t < toys.growing_steps(lr) for t in range(steps)]
    zeros = [t + 1 for t in range(steps) if abs(toys.step_factor(lr, t)) < 1e-12]
    assert zeros == [zero for zero in [toys.steps_to_zero(lr)] if zero]


STORIES = [
    (10, "no weight changes its sign"),
    (70, "the weights jump across 0"),
    (100, "leaves the loss as it is; then it falls. After 4 steps it is exactly 0"),
    (1_000, "grows for 99 steps, to 2.6e+65 times the start"),
]


@pytest.mark.parametrize(("lr", "words"), STORIES)
def test_the_story_tells_it(lr, words):
    assert words in toys.course_of_loss(lr)


PLAIN = partial(optimizers.Momentum, lr=0.07, momentum=0)


def test_a_walk_takes_the_optimizers_steps():
    places = toys.walk(PLAIN, toys.ravine, (-4.0, 1.5), 12)
    factors = 1 - 0.07 * np.array([1.0, 25.0])
    wanted = np.array([-4.0, 1.5]) * factors ** np.arange(13)[:, None]
    np.testing.assert_allclose(places, wanted, rtol=1e-12)


def test_rules_that_take_the_gradient_as_a_whole_do_not_mind_a_turn():
    rules = {"plain": PLAIN, "momentum": partial(optimizers.Momentum, lr=0.02)}
    straight = toys.ravine_walks(rules)
    for name, path in toys.ravine_walks(rules, 0.3).items():
        wanted = [toys.rotated(place, 0.3) for place in straight[name]]
        np.testing.assert_allclose(path, wanted, rtol=1e-9, atol=1e-12)


def test_settings_change_before_each_step_and_gradients_are_clipped():
    sizes = toys.step_sizes(PLAIN, [1.0, 1.0, 2.0], settings=lambda t: {"lr": 10.0**-t})
    np.testing.assert_allclose(sizes, [1.0, 0.1, 0.02], rtol=1e-12)
    sizes = toys.step_sizes(partial(PLAIN, lr=1.0), [0.5, 30.0], max_l2_norm=2.0)
    np.testing.assert_allclose(sizes, [0.5, 2.0], rtol=1e-6)


def test_noise_is_added_to_the_gradient_with_its_scale_and_the_same_each_time():
    def gradients(loss):
        weights = torch.zeros(20_000, 2, dtype=torch.float64, requires_grad=True)
        loss(weights).backward()
        return weights.grad

    one, same = (toys.noisy(lambda w: 3 * w.sum(), (0.1, 10.0)) for _ in range(2))
    first = gradients(one)
    assert first.mean(0).tolist() == pytest.approx([3.0, 3.0], abs=0.3)
    assert first.std(0).tolist() == pytest.approx([0.1, 10.0], rel=0.03)
    assert torch.equal(first, gradients(same))
    assert not torch.equal(first, gradients(one)), "each call draws anew"
