"""The optimizers against their formulas in float64 and against torch's; schedule; clipping."""

import math

import numpy as np
import pytest
import torch
from torch.nn import Parameter
from torch.nn.utils import clip_grad_norm_

from workbook.config import OptimizerConfig
from workbook.optimizer import optimizers
from workbook.optimizer.optimizers import clip_gradients, cosine_schedule

TORCH = torch.optim
GRADIENTS = 30
KINDS = {
    "SGD": lambda params: optimizers.SGD(params, lr=0.1),
    "Momentum": lambda params: optimizers.Momentum(params, lr=0.1, momentum=0.8),
    "AdaGrad": lambda params: optimizers.AdaGrad(params, lr=0.1),
    "RMSProp": lambda params: optimizers.RMSProp(params, lr=0.1, beta=0.9),
    "AdamW": lambda params: optimizers.AdamW(params, lr=0.1, betas=(0.8, 0.95), weight_decay=0.1),
}


def start(dtype=torch.float64) -> Parameter:
    """The same parameter each time: 3 x 4 numbers."""
    return Parameter(torch.randn(3, 4, dtype=torch.float64, generator=seeded(0)).to(dtype))


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def gradients() -> torch.Tensor:
    """One gradient a step, the same each time, with sizes over four orders of magnitude."""
    sizes = torch.logspace(-4, 0, 12, dtype=torch.float64).reshape(3, 4)
    g = torch.randn(GRADIENTS, 3, 4, dtype=torch.float64, generator=seeded(1))
    return sizes * g


def run(optimizer: TORCH.Optimizer, gradients) -> torch.Tensor:
    """Where the only parameter stands after a step with each gradient."""
    [theta] = optimizer.param_groups[0]["params"]
    for g in gradients:
        theta.grad = g.to(theta.dtype, copy=True)
        optimizer.step()
    return theta.detach().clone()


def algorithm_1(theta, gradients, lr, beta1, beta2, eps, weight_decay, decay) -> torch.Tensor:
    """AdamW line by line, one number at a time; edition 2026 has its decay before the step."""
    result = []
    for i, x in enumerate(theta.flatten().tolist()):
        m = v = 0.0
        for t, g in enumerate(gradients.flatten(1)[:, i].tolist(), start=1):
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g**2
            lr_t = lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)
            if decay == "before":
                x = x - lr * weight_decay * x
            x = x - lr_t * m / (math.sqrt(v) + eps)
            if decay == "after":
                x = x - lr * weight_decay * x
        result.append(x)
    return torch.tensor(result, dtype=torch.float64).reshape(theta.shape)


@pytest.mark.parametrize("decay", ["after", "before"])
@pytest.mark.parametrize("eps", [1e-8, 1e-2])
def test_adamw_is_the_algorithm(decay, eps):
    adamw = optimizers.AdamW([start()], 0.1, (0.8, 0.95), eps, weight_decay=0.1, decay=decay)
    found = run(adamw, gradients())
    wanted = algorithm_1(start().data, gradients(), 0.1, 0.8, 0.95, eps, 0.1, decay)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("scale", [1.0, 1e3], ids=["usual", "large"])
def test_torchs_fused_adamw_stands_in_for_ours(scale):
    """With gradients far above ε the two agree as closely as float32 lets them."""
    sizes = scale * (gradients().sign() + gradients())
    ours = optimizers.AdamW([start(torch.float32)], 1e-3, (0.9, 0.95), decay="before")
    fused = TORCH.AdamW([start(torch.float32)], 1e-3, (0.9, 0.95), fused=True)
    torch.testing.assert_close(run(ours, sizes), run(fused, sizes), rtol=0, atol=1e-6)


PEERS = [
    ("Momentum", "SGD", {"momentum": 0.8}),
    ("Momentum", "SGD", {"momentum": 0}),
    ("AdaGrad", "Adagrad", {"eps": 1e-3}),
    ("RMSProp", "RMSprop", {"beta": 0.9, "eps": 1e-3}),
]


@pytest.mark.parametrize(("ours", "theirs", "settings"), PEERS)
def test_where_torch_has_the_same_algorithm_the_result_is_the_same(ours, theirs, settings):
    found = run(getattr(optimizers, ours)([start()], lr=0.1, **settings), gradients())
    named = {{"beta": "alpha"}.get(name, name): value for name, value in settings.items()}
    wanted = run(getattr(TORCH, theirs)([start()], lr=0.1, **named), gradients())
    torch.testing.assert_close(found, wanted, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_a_stored_optimizer_goes_on_as_if_nothing_had_happened(make, tmp_path):
    straight = run(make([start()]), gradients())
    first = make([start()])
    second = make([Parameter(run(first, gradients()[:11]))])
    torch.save(first.state_dict(), tmp_path / "optimizer.pt")
    second.load_state_dict(torch.load(tmp_path / "optimizer.pt", weights_only=True))
    assert torch.equal(run(second, gradients()[11:]), straight)


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_the_state_of_another_optimizer_is_refused(make):
    mine = make([start()])
    for other in [*(make([start()]) for make in KINDS.values()), TORCH.AdamW([start()])]:
        if type(other) is not type(mine):
            with pytest.raises(ValueError, match=f"another optimizer than {type(mine).__name__}"):
                mine.load_state_dict(other.state_dict())


SENSELESS = [
    *((kind, {"lr": lr}) for kind in KINDS for lr in (-0.1, math.nan, math.inf, "0.1", None)),
    *(("AdamW", {"betas": betas}) for betas in ((1.0, 0.9), (0.9, -0.1), (0.9,), 0.9)),
    *((kind, {"eps": -1e-8}) for kind in ("AdaGrad", "RMSProp", "AdamW")),
    ("AdamW", {"weight_decay": -0.1}),
    ("AdamW", {"decay": "later"}),
    ("Momentum", {"momentum": 1.0}),
    ("RMSProp", {"beta": 1.0}),
]


@pytest.mark.parametrize(("kind", "wrong"), SENSELESS)
def test_a_setting_that_makes_no_sense_is_refused(kind, wrong):
    [name] = wrong
    with pytest.raises(ValueError, match=name):
        getattr(optimizers, kind)([{"params": [start()], **wrong}])


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_what_has_no_gradient_stays_as_it_is(make):
    used = start()
    unused = start()
    optimizer = make([used, unused])
    used.grad = gradients()[0].clone()
    optimizer.step()
    assert torch.equal(unused, start())
    assert unused not in optimizer.state
    assert torch.equal(used.grad, gradients()[0])  # which is only read


def test_muon_takes_torchs_steps_for_hidden_matrices_and_adamws_for_the_rest():
    shapes = [(9, 4), (4, 4), (4,), (6, 4), (9, 4)]  # an embedding, a block, a gain, ..., a head
    drawn = [torch.randn(shape, generator=seeded(place)) for place, shape in enumerate(shapes)]
    choices = {"lr": 0.02, "weight_decay": 0.1}
    config = OptimizerConfig(max_learning_rate=0.02, betas=(0.9, 0.95), update="muon")
    ours, theirs = ([Parameter(theta.clone()) for theta in drawn] for _ in range(2))
    alike = {"momentum": 0.9, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}
    hidden = TORCH.Muon([theirs[1], theirs[3]], **choices, **alike)
    others = TORCH.AdamW([theirs[0], theirs[2], theirs[4]], **choices, betas=(0.9, 0.95))
    muon = optimizers.from_config(iter(ours), config)
    for step in range(5):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn(one.shape, generator=seeded(step))
            other.grad = one.grad.clone()
        for optimizer in (muon, hidden, others):
            optimizer.step()
    for one, other, before in zip(ours, theirs, drawn, strict=True):
        # torch multiplies in bfloat16: within a few per cent of the way
        assert (one - other).norm() < 0.03 * (other - before).norm()


def test_an_orthogonal_matrix_keeps_the_directions_and_loses_the_sizes():
    drawn = torch.randn(6, 4, generator=seeded(0))
    turned = optimizers.orthogonal(drawn @ torch.diag(torch.logspace(0, -1, 4)))
    sizes = torch.linalg.svdvals(turned)
    assert sizes.min() > 0.6 and sizes.max() < 1.3


def test_a_tall_matrix_is_turned_as_the_wide_one_is():
    tall = torch.randn(6, 4, generator=seeded(0))
    torch.testing.assert_close(optimizers.orthogonal(tall).mT, optimizers.orthogonal(tall.mT))
    # By the same polynomial of X Xᵀ, the larger of the two products.
    X = tall / tall.norm()
    for _ in range(5):
        A = X @ X.mT
        X = 3.4445 * X + (2.0315 * A @ A - 4.775 * A) @ X
    torch.testing.assert_close(optimizers.orthogonal(tall), X, atol=1e-5, rtol=1e-5)


def test_groups_have_settings_of_their_own():
    moved, kept = with_gradients(torch.ones(3), torch.ones(3))
    optimizers.SGD([{"params": [moved]}, {"params": [kept], "lr": 0.0}], lr=0.1).step()
    assert moved.all() and not kept.any()


def test_a_closure_computes_the_loss_and_its_gradients():
    theta = start()

    def closure():
        loss = theta.square().sum() / 2
        loss.backward()
        return loss

    loss = optimizers.SGD([theta], lr=0.5).step(closure)
    assert loss.item() == pytest.approx(start().square().sum().item() / 2)
    torch.testing.assert_close(theta.data, start().data / 2)


def with_gradients(*gradients) -> list[Parameter]:
    """A parameter for each gradient, which may be None."""
    parameters = [Parameter(torch.zeros(1 if g is None else g.shape)) for g in gradients]
    for theta, g in zip(parameters, gradients, strict=True):
        if g is not None:
            theta.data = theta.to(g.dtype)
            theta.grad = g.clone()
    return parameters


def test_the_schedule_rises_follows_torchs_cosine_and_stays():
    optimizer = TORCH.SGD(with_gradients(torch.zeros(1)), lr=1.0)
    theirs = TORCH.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50, eta_min=0.1)
    cosine = []
    for _ in range(50):
        cosine += theirs.get_last_lr()
        optimizer.step()
        theirs.step()
    ours = [cosine_schedule(it, 1.0, 0.1, 10, 60) for it in range(64)]
    assert ours == pytest.approx([*(it / 10 for it in range(10)), *cosine, *[0.1] * 4], rel=1e-12)


def test_no_warm_up_and_no_cosine_are_allowed():
    assert cosine_schedule(0, 1.0, 0.1, 0, 10) == 1.0
    assert [cosine_schedule(it, 1.0, 0.1, 2, 2) for it in range(4)] == [0.0, 0.5, 0.1, 0.1]


NEVER = [(-1, 1.0, 0.1, 2, 4), (0, 1.0, 0.1, 5, 4), (0, 1.0, 0.1, -1, 4), (0, 0.1, 1.0, 2, 4)]


@pytest.mark.parametrize("arguments", NEVER)
def test_a_schedule_that_makes_no_sense_is_refused(arguments):
    with pytest.raises(ValueError, match="expected"):
        cosine_schedule(*arguments)


@pytest.mark.parametrize("limit", [1e-3, 1.0, 5.0, 100.0, math.inf])
def test_clipping_is_torchs(limit):
    gradients = [torch.full((3,), 2.0), None, torch.arange(4.0).reshape(2, 2)]
    ours = with_gradients(*gradients)
    theirs = with_gradients(*gradients)
    norm = clip_gradients(ours, limit)
    wanted = clip_grad_norm_(theirs, limit)
    assert norm.item() == pytest.approx(math.sqrt(26), rel=1e-6)
    torch.testing.assert_close(norm, wanted, rtol=1e-6, atol=0)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-6, atol=0)


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


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan])
def test_a_limit_that_makes_no_sense_is_refused(limit):
    with pytest.raises(ValueError, match="max_l2_norm"):
        clip_gradients([], limit)
    assert clip_gradients(with_gradients(None), 1.0).item() == 0  # nothing to clip


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
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


def test_numbers_of_numpy_are_taken_and_kept_as_pythons():
    weight = Parameter(torch.ones(2))
    betas = (np.float32(0.5), np.float64(0.25))
    optimizer = optimizers.AdamW([{"params": [weight], "lr": np.float32(0.5)}], betas=betas)
    (group,) = optimizer.param_groups
    assert (type(group["lr"]), group["betas"]) == (float, (0.5, 0.25))
    assert type(cosine_schedule(np.int64(3), np.float32(1), np.float32(0), 2, 9)) is float
