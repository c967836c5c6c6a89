"""The schedule of learning rates and the clipping of gradients."""

import math
from itertools import pairwise

import pytest
import torch
from torch.nn import Parameter
from torch.nn.utils import clip_grad_norm_

from workbook.optimizer.optimizers import clip_gradients, cosine_schedule


def with_gradients(*gradients) -> list[Parameter]:
    """A parameter for each gradient, which may be None."""
    parameters = [Parameter(torch.zeros(1 if g is None else g.shape)) for g in gradients]
    for theta, g in zip(parameters, gradients, strict=True):
        if g is not None:
            theta.data = theta.to(g.dtype)
            theta.grad = g.clone()
    return parameters


def test_the_schedule_rises_falls_and_stays():
    rates = [cosine_schedule(it, 1.0, 0.1, 7, 21) for it in range(25)]
    assert rates[:8] == pytest.approx([it / 7 for it in range(8)], rel=1e-15)
    assert rates[14] == pytest.approx(0.55, rel=1e-15)
    assert rates[21:] == [0.1] * 4
    assert all(one > other for one, other in pairwise(rates[7:22]))


def test_its_cosine_is_torchs():
    theta = Parameter(torch.zeros(1))
    theta.grad = torch.zeros(1)
    optimizer = torch.optim.SGD([theta], lr=1.0)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50, eta_min=0.1)
    for it in range(50):
        assert cosine_schedule(10 + it, 1.0, 0.1, 10, 60) == pytest.approx(
            theirs.get_last_lr()[0], rel=1e-12
        )
        optimizer.step()
        theirs.step()


def test_no_warm_up_and_no_cosine_are_allowed():
    assert cosine_schedule(0, 1.0, 0.1, 0, 10) == 1.0
    assert [cosine_schedule(it, 1.0, 0.1, 2, 2) for it in range(4)] == [0.0, 0.5, 0.1, 0.1]


@pytest.mark.parametrize(
    "arguments",
    [(-1, 1.0, 0.1, 2, 4), (0, 1.0, 0.1, 5, 4), (0, 1.0, 0.1, -1, 4), (0, 0.1, 1.0, 2, 4)],
)
def test_a_schedule_that_makes_no_sense_is_refused(arguments):
    with pytest.raises(ValueError, match="expected"):
        cosine_schedule(*arguments)


@pytest.mark.parametrize("limit", [1e-3, 1.0, 5.0, 100.0, math.inf])
def test_clipping_is_torchs(limit):
    gradients = [torch.full((3,), 2.0), None, torch.arange(4.0).reshape(2, 2)]
    ours, theirs = with_gradients(*gradients), with_gradients(*gradients)
    norm, wanted = clip_gradients(ours, limit), clip_grad_norm_(theirs, limit)
    assert norm.item() == pytest.approx(math.sqrt(26), rel=1e-6)
    torch.testing.assert_close(norm, wanted, rtol=1e-6, atol=0)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-6, atol=0)


def test_all_gradients_together_keep_their_direction():
    parameters = with_gradients(torch.tensor([3.0]), torch.tensor([4.0]))
    clip_gradients(iter(parameters), 1.0)
    torch.testing.assert_close(torch.cat([theta.grad for theta in parameters]),
                               torch.tensor([0.6, 0.8]), rtol=1e-6, atol=0)  # fmt: skip


def test_gradients_below_the_limit_keep_every_bit():
    gradient = torch.randn(100, generator=torch.Generator().manual_seed(0))
    [theta] = with_gradients(gradient)
    clip_gradients([theta], 1_000.0)
    assert torch.equal(theta.grad, gradient)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_a_norm_that_is_no_number_is_told_and_changes_nothing(bad):
    parameters = with_gradients(torch.tensor([1.0, bad]), torch.tensor([2.0]))
    assert not torch.isfinite(clip_gradients(parameters, 1.0))
    assert parameters[0].grad[0] == 1
    assert parameters[1].grad.item() == 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_squares_of_half_precision_do_not_overflow(dtype):
    [theta] = with_gradients(torch.full((400,), 1_000.0, dtype=dtype))
    assert clip_gradients([theta], 1.0).item() == pytest.approx(20_000, rel=1e-6)
    assert theta.grad.dtype == dtype
    assert theta.grad.float().norm().item() == pytest.approx(1, rel=4e-3)


def test_no_gradient_has_no_length():
    assert clip_gradients(with_gradients(None), 1.0).item() == 0


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan])
def test_a_limit_that_makes_no_sense_is_refused(limit):
    with pytest.raises(ValueError, match="max_l2_norm"):
        clip_gradients([], limit)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_clipping_never_waits_for_the_gpu():
    theta = Parameter(torch.zeros(100, device="cuda"))
    theta.grad = torch.ones(100, device="cuda")
    clip_gradients([theta], 1.0)
    torch.cuda.set_sync_debug_mode("error")
    try:
        clip_gradients([theta], 1.0)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert theta.grad.norm().item() == pytest.approx(1, rel=1e-5)
