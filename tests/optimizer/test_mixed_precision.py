"""What half precision loses is counted right, and master weights save what they should."""

import pytest
import torch

from workbook.config import ModelConfig
from workbook.optimizer import mixed_precision as mixed
from workbook.optimizer.floats import FORMATS
from workbook.transformer.model import TransformerLM

SHAPE = ModelConfig(vocab_size=50, context_length=8, d_model=16, num_layers=2, num_heads=2, d_ff=32)


def model() -> TransformerLM:
    torch.manual_seed(0)
    return TransformerLM.from_config(SHAPE)


def batches(steps):
    chance = torch.Generator().manual_seed(0)
    for _ in range(steps):
        ids = torch.randint(10, (4, 9), generator=chance)
        yield ids[:, :-1], ids[:, 1:]


@pytest.mark.parametrize("name", FORMATS)
def test_rounding_is_that_of_the_format(name):
    numbers = torch.tensor([1.0, 1.0003, 0.1, 3e-8, 6e-8, 1e-41, 65_520.0, 3.4e38, -2e-5])
    wanted = [FORMATS[name].store(number).value for number in numbers.tolist()]
    assert mixed.rounded(numbers, name).tolist() == wanted


def test_damage_counts_zeros_and_infinities():
    numbers = torch.tensor([1e-8, 2e-8, 1e-3, 1.0])
    assert mixed.damage(numbers, "float16") == {"to zero": 0.5, "to infinity": 0.0}
    assert mixed.damage(numbers, "float16", 2.0**16) == {"to zero": 0.0, "to infinity": 0.25}
    assert mixed.damage(numbers, "bfloat16") == {"to zero": 0.0, "to infinity": 0.0}


def test_gradients_are_those_of_all_weights_and_of_what_all_linear_layers_put_out():
    one = model()
    [batch] = list(batches(1))
    sizes = mixed.gradient_sizes(one, batch)
    assert all(theta.grad is None for theta in one.parameters())  # it is left as it was
    assert not any(part._backward_hooks for part in one.modules())
    assert all((found > 0).all() for found in sizes.values())
    inputs, targets = batch
    torch.nn.functional.cross_entropy(one(inputs).flatten(0, 1), targets.flatten()).backward()
    own = torch.cat([theta.grad.flatten() for theta in one.parameters()]).abs()
    torch.testing.assert_close(sizes["weights"], own[own > 0], rtol=1e-4, atol=1e-9)
    # q, k, v, output, w1, w2 and w3 in each block, then the head
    widths = SHAPE.num_layers * (5 * SHAPE.d_model + 2 * SHAPE.d_ff) + SHAPE.vocab_size
    # A few are 0: what a first token asks for does not matter, it has only itself to look at.
    assert len(sizes["activations"]) == pytest.approx(inputs.numel() * widths, rel=0.02)


def test_the_model_computes_with_what_is_stored():
    for weights in ("bfloat16", "master"):
        one = model()
        mixed.short_run(one, batches(3), lr=1e-3, weights=weights)
        for theta in one.parameters():
            assert torch.equal(theta, mixed.rounded(theta, "bfloat16"))


@pytest.mark.slow
def test_master_weights_keep_the_updates_that_bfloat16_loses():
    one = list(batches(1)) * 60  # one batch: its loss falls in every step
    runs = {}
    fallen = {}
    for weights in ("float32", "master", "bfloat16"):
        runs[weights] = mixed.short_run(model(), one, lr=1e-4, weights=weights)
        fallen[weights] = runs[weights]["loss"].iloc[0] - runs[weights]["loss"].iloc[-1]
    assert fallen["master"] == pytest.approx(fallen["float32"], rel=0.1)
    assert 0 < fallen["bfloat16"] < 0.5 * fallen["float32"]
    assert (runs["float32"]["lost"] == 0).all() and (runs["master"]["lost"] == 0).all()
    assert runs["bfloat16"]["lost"].iloc[-1] > 0.5
