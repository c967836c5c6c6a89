"""The small experiments of notebook 05 measure what they say."""

from functools import partial

import numpy as np
import pytest
import torch

from workbook.optimizer import optimizers, toys
from workbook.optimizer import toys as studies

PLAIN = partial(optimizers.Momentum, lr=0.07, momentum=0)
ADAM = partial(optimizers.AdamW, lr=1.0, weight_decay=0)


def test_a_walk_takes_the_optimizers_steps():
    places = studies.walk(PLAIN, toys.ravine, (-4.0, 1.5), 12)
    factors = 1 - 0.07 * np.array([1.0, 25.0])
    wanted = np.array([-4.0, 1.5]) * factors ** np.arange(13)[:, None]
    np.testing.assert_allclose(places, wanted, rtol=1e-12)


def test_rules_that_take_the_gradient_as_a_whole_do_not_mind_a_turn():
    rules = {"plain": PLAIN, "momentum": partial(optimizers.Momentum, lr=0.02)}
    straight = studies.ravine_walks(rules)
    for angle in (0.3, np.pi / 4):
        for name, path in studies.ravine_walks(rules, angle).items():
            wanted = [toys.turned(place, angle) for place in straight[name]]
            np.testing.assert_allclose(path, wanted, rtol=1e-9, atol=1e-12)


def test_rules_that_scale_each_coordinate_do():
    straight, turned = (
        toys.ravine(studies.ravine_walks({"one": ADAM}, angle)["one"], angle)
        for angle in (0.0, np.pi / 4)
    )
    assert not np.allclose(straight, turned, rtol=0.01)


def test_on_a_steady_slope_adamw_goes_one_learning_rate_a_step():
    for slope in (1e3, 1.0, -1.0):
        sizes = studies.step_sizes(ADAM, [slope] * 50)
        np.testing.assert_allclose(sizes, np.sign(slope), rtol=1e-6)


def test_settings_change_before_each_step():
    sizes = studies.step_sizes(PLAIN, [1.0, 1.0, 2.0], settings=lambda t: {"lr": 10.0**-t})
    np.testing.assert_allclose(sizes, [1.0, 0.1, 0.02], rtol=1e-12)


def test_clipping_limits_the_gradient_of_each_step():
    sizes = studies.step_sizes(partial(PLAIN, lr=1.0), [0.5, 30.0], max_l2_norm=2.0)
    np.testing.assert_allclose(sizes, [0.5, 2.0], rtol=1e-6)


def test_noise_is_added_to_the_gradient_with_its_scale_and_the_same_each_time():
    def gradients(seed):
        loss = studies.noisy(lambda w: 3 * w.sum(), (0.1, 10.0), seed)
        found = []
        for _ in range(2):
            weights = torch.zeros(20_000, 2, dtype=torch.float64, requires_grad=True)
            loss(weights).backward()
            found.append(weights.grad)
        return found

    first, second = gradients(0)
    assert first.mean(0).tolist() == pytest.approx([3.0, 3.0], abs=0.3)
    assert first.std(0).tolist() == pytest.approx([0.1, 10.0], rel=0.03)
    assert not torch.equal(first, second)
    assert torch.equal(first, gradients(0)[0]) and not torch.equal(first, gradients(1)[0])
