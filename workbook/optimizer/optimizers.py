"""Optimizers, each as its paper writes it; the learning-rate schedule; gradient clipping.

In the code `theta` is a parameter (θ in the formulas) and `theta.grad` its gradient (g). Only the
base class `Optimizer` comes from torch: it keeps, saves and loads the parameter groups and the
state of each parameter.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from workbook.config import OptimizerConfig, as_python
from workbook.transformer.nn import float_type

# In the tests, types are checked, and `float` alone would refuse 1.
Number = int | float | np.integer | np.floating
Whole = int | np.integer


# Each setting is a number of at least 0 and below this. A `beta` or `momentum` of 1 would never
# forget the first gradient.
LIMITS = {"lr": math.inf, "eps": math.inf, "weight_decay": math.inf, "momentum": 1, "beta": 1}


class Rule(Optimizer):
    """The base of all optimizers here: `step` calls the class's `update` for every parameter.

    `settings` are the defaults, which a group of parameters may override.
    """

    def __init__(self, params: ParamsT, **settings: Any) -> None:
        super().__init__(params, settings)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters; settings that it lacks are taken from the optimizer."""
        # torch's constructor comes through here as well, with one group or several.
        settings = {**self.defaults, **param_group}
        # A NumPy number would not survive in a checkpoint, which holds only Python's own.
        param_group |= {name: as_python(settings[name]) for name in self.defaults}
        self.check(param_group)
        super().add_param_group(param_group)

    def check(self, settings: dict[str, Any]) -> None:
        """Raise ValueError if a setting makes no sense."""
        for name, below in LIMITS.items():
            if name in settings:
                _check_number(name, settings[name], below)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state and the settings of an optimizer of the same kind."""
        for own, loaded in zip(self.param_groups, state_dict["param_groups"], strict=False):
            # torch's schedulers and named parameters add two settings of their own.
            differ = (set(own) ^ set(loaded)) - {"initial_lr", "param_names"}
            if differ:
                raise ValueError(
                    f"this state comes from another optimizer than {type(self).__name__}: only one"
                    f" of the two has the settings {', '.join(sorted(differ))}"
                )
        super().load_state_dict(state_dict)

    @torch.no_grad()  # the updates are no part of the loss
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return what `closure`, if given, returns."""
        with torch.enable_grad():  # a closure calls `backward`
            loss = closure() if closure is not None else None
        for group in self.param_groups:
            for theta in group["params"]:
                if theta.grad is not None:  # else it took no part in this loss
                    # `state` is a dict that begins empty and is saved with the optimizer.
                    self.update(theta, group, self.state[theta])
        return loss

    def update(self, theta: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Update theta in place by one step; `state` holds what the optimizer remembers of it."""
        raise NotImplementedError


def _check_number(name: str, value: object, below: Number) -> None:
    if not isinstance(value, Number) or not 0 <= value < below:
        limit = "finite" if below == math.inf else f"below {below:g}"
        raise ValueError(f"{name} must be a number, at least 0 and {limit}, got {value!r}")


class SGD(Rule):
    """θ ← θ - lr / √(t + 1) · g, with t = 0, 1, 2, …: the handout's toy, whose steps grow shorter.

    Source: Robbins & Monro 1951 for shrinking steps; 1/√t as in Zinkevich 2003, theorem 1.
    """

    def __init__(self, params: ParamsT, lr: Number = 1e-3) -> None:
        super().__init__(params, lr=lr)

    def update(self, theta: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        g = theta.grad
        t = state.get("t", 0)
        assert g is not None
        # "alpha" is torch's name for a factor of the second operand: θ - alpha · g.
        # In place: the model holds this very tensor, and would never see a new one.
        theta.sub_(g, alpha=group["lr"] / math.sqrt(t + 1))
        state["t"] = t + 1


class Momentum(Rule):
    """b ← μ b + g, then θ ← θ - lr b: a heavy ball, which keeps its course.

    Source: Polyak 1964; as in torch, lr is not part of b.
    """

    def __init__(self, params: ParamsT, lr: Number = 1e-3, momentum: Number = 0.9) -> None:
        super().__init__(params, lr=lr, momentum=momentum)

    def update(self, theta: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        g = theta.grad
        b = _remembered(state, "b", theta)
        assert g is not None
        # A steady g makes b grow to g / (1 - μ): ten times g for μ = 0.9.
        # Where g changes its sign from step to step, b stays small: no zigzag across a valley.
        b.mul_(group["momentum"]).add_(g)
        theta.sub_(b, alpha=group["lr"])


class AdaGrad(Rule):
    """s ← s + g², then θ ← θ - lr g / (√s + ε): smaller steps where gradients have been large.

    Some write ε inside the root, √(s + ε): a small ε then counts for more, as √ε.
    Source: Duchi, Hazan & Singer 2011, with the diagonal of their matrix G.
    """

    def __init__(self, params: ParamsT, lr: Number = 1e-2, eps: Number = 1e-10) -> None:
        super().__init__(params, lr=lr, eps=eps)

    def update(self, theta: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        g = theta.grad
        s = _remembered(state, "s", theta)
        assert g is not None
        # addcmul_ adds the product of the two, entry by entry; addcdiv_ their quotient times value.
        # s only ever grows, so a weight that once had large gradients moves slowly for good.
        s.addcmul_(g, g)
        theta.addcdiv_(g, s.sqrt() + group["eps"], value=-group["lr"])


class RMSProp(Rule):
    """v ← β v + (1 - β) g², then θ ← θ - lr g / (√v + ε): AdaGrad with a memory that fades.

    Source: Tieleman & Hinton 2012, lecture 6.5 (their β is 0.9).
    """

    def __init__(
        self, params: ParamsT, lr: Number = 1e-2, beta: Number = 0.99, eps: Number = 1e-8
    ) -> None:
        super().__init__(params, lr=lr, beta=beta, eps=eps)

    def update(self, theta: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        g = theta.grad
        v = _remembered(state, "v", theta)
        assert g is not None
        # An average over about the last 1 / (1 - β) gradients; it never stops adapting.
        v.mul_(group["beta"]).addcmul_(g, g, value=1 - group["beta"])
        theta.addcdiv_(g, v.sqrt() + group["eps"], value=-group["lr"])


class AdamW(Rule):
    """Momentum m over RMSProp's √v, both corrected for their start at 0; weight decay is separate.

        m ← β1 m + (1 - β1) g        v ← β2 v + (1 - β2) g²
        lr_t = lr √(1 - β2ᵗ) / (1 - β1ᵗ)
        θ ← θ - lr_t m / (√v + ε)     θ ← θ - lr λ θ    with λ = `weight_decay`

    The handout's 2025 edition decays after the step, as above; 2026's before it (`decay="before"`).
    torch adds ε to √v / √(1 - β2ᵗ): an ε there is √(1 - β2ᵗ) ε in the formula above.
    Source: Loshchilov & Hutter 2019, algorithm 2 (there λ is not multiplied by lr, and decays the
    old θ, as "before" does); lr_t as in Kingma & Ba 2015, end of section 2.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Number = 1e-3,
        betas: tuple[Number, Number] = (0.9, 0.999),
        eps: Number = 1e-8,
        weight_decay: Number = 0.01,
        decay: Literal["after", "before"] = "after",
    ) -> None:
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, decay=decay
        )

    def check(self, settings: dict[str, Any]) -> None:
        super().check(settings)
        if not isinstance(settings["betas"], tuple | list) or len(settings["betas"]) != 2:
            raise ValueError(f"betas must be two numbers, got {settings['betas']!r}")
        for beta in settings["betas"]:
            _check_number("each of betas", beta, below=1)
        if settings["decay"] not in ("after", "before"):
            raise ValueError(f"decay must be 'after' or 'before', got {settings['decay']!r}")

    def update(self, theta: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        lr = group["lr"]
        beta1, beta2 = group["betas"]
        g = theta.grad
        m = _remembered(state, "m", theta)
        v = _remembered(state, "v", theta)
        assert g is not None
        # From 1 on: with t = 0, both corrections would divide by 0.
        t = state["t"] = state.get("t", 0) + 1  # how t is counted

        # m ← β1 m + (1 - β1) g, and v ← β2 v + (1 - β2) g², both in place.
        m.mul_(beta1).add_(g, alpha=1 - beta1)  # the average m
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)  # the average v
        # Both begin at 0. After t steps of a steady g, m is (1 - β1ᵗ) g and √v is √(1 - β2ᵗ) |g|:
        # lr_t takes both factors out, so that the very first step has the size of lr.
        lr_t = lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)  # the corrections

        # Adam with an l2 penalty adds λ θ to g, and so divides it by √v like the rest of g.
        # The decay never passes through m and v: a weight with large gradients decays as fast.
        if group["decay"] == "before":
            theta.mul_(1 - lr * group["weight_decay"])  # the decay
        # θ ← θ - lr_t m / (√v + ε); ε keeps a weight that never had a gradient from 0 / 0.
        theta.addcdiv_(m, v.sqrt() + group["eps"], value=-lr_t)  # the step
        if group["decay"] == "after":
            theta.mul_(1 - lr * group["weight_decay"])  # the decay


class Muon(AdamW):
    """AdamW, but in groups with `orthogonal` a matrix takes a step of full rank.

        b ← β1 b + (1 - β1) g, with the singular values U S Vᵀ        θ ← θ - lr λ θ
        θ ← θ - 0.2 √(longer side) lr · U Vᵀ

    A gradient has a few large singular values. Without them, all directions in which it points are
    learned at the same rate. The factor makes steps as large as AdamW's, so that the same rate will
    do: those of AdamW have a root mean square of about 0.2.
    Source: Jordan et al. 2024, "Muon"; Liu et al. 2025, eq. 4 for the factor.
    """

    def update(self, theta: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        if not group["orthogonal"]:
            super().update(theta, group, state)
            return
        g = theta.grad
        b = _remembered(state, "b", theta)
        assert g is not None
        # The average of AdamW's m: lerp_(g, w) is b + w (g - b).
        b.lerp_(g, 1 - group["betas"][0])
        theta.mul_(1 - group["lr"] * group["weight_decay"])
        theta.sub_(orthogonal(b), alpha=0.2 * math.sqrt(max(theta.shape)) * group["lr"])


def orthogonal(matrix: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    """Roughly U Vᵀ for a matrix U S Vᵀ: most singular values end between 0.7 and 1.2.

    Each pass applies 3.4445 s - 4.775 s³ + 2.0315 s⁵ to them, by matmuls alone; five do not lift
    the very smallest so far, such as those of a square random matrix.
    """
    if matrix.shape[0] > matrix.shape[1]:  # X Xᵀ is the smaller of the two products if X is wide
        return orthogonal(matrix.mT).mT
    # An odd polynomial of X changes nothing but its singular values, since X (Xᵀ X)ᵏ is U S²ᵏ⁺¹ Vᵀ.
    # These coefficients lift small ones fast, and in exchange none settles at exactly 1.
    X = matrix / (matrix.norm() + 1e-7)  # so that none of them is above 1
    for _ in range(5):
        A = X @ X.mT
        X = 3.4445 * X + (2.0315 * A @ A - 4.775 * A) @ X
    return X


def _remembered(state: dict[str, Any], name: str, theta: Tensor) -> Tensor:
    """The tensor that the state keeps under a name; zeros like theta at first."""
    # Zeros of theta's type, and on its device; `load_state_dict` moves them along.
    if name not in state:
        state[name] = torch.zeros_like(theta)
    return state[name]


def cosine_schedule(
    it: Whole,
    max_learning_rate: Number,
    min_learning_rate: Number,
    warmup_iters: Whole,
    cosine_cycle_iters: Whole,
) -> float:
    """The learning rate of step `it`: up from 0 in a straight line, down half a cosine, then level.

    The maximum is reached at `warmup_iters`, the minimum at `cosine_cycle_iters`.
    Source: Loshchilov & Hutter 2017, eq. 5, without restarts; the warm-up is the handout's.
    """
    if not 0 <= warmup_iters <= cosine_cycle_iters or it < 0:
        raise ValueError(
            f"expected it >= 0 and 0 <= warmup_iters <= cosine_cycle_iters, got it={it},"
            f" warmup_iters={warmup_iters}, cosine_cycle_iters={cosine_cycle_iters}"
        )
    if not 0 <= min_learning_rate <= max_learning_rate:
        raise ValueError(
            f"expected 0 <= min_learning_rate <= max_learning_rate, got {min_learning_rate!r}"
            f" and {max_learning_rate!r}"
        )
    # At first AdamW knows its averages from a few gradients only, and its steps are as long as
    # ever: so the rate begins small.
    # While warmup_iters is 0, this is never so, and nothing is divided by 0.
    if it < warmup_iters:
        return float(it / warmup_iters * max_learning_rate)
    if it >= cosine_cycle_iters:
        return float(min_learning_rate)
    # From 0 where the cosine begins to 1 where it ends: the share falls from 1 to 0.
    done = (it - warmup_iters) / (cosine_cycle_iters - warmup_iters)
    share = (1 + math.cos(math.pi * done)) / 2
    return float(min_learning_rate + share * (max_learning_rate - min_learning_rate))


@torch.no_grad()
def clip_gradients(parameters: Iterable[Tensor], max_l2_norm: Number) -> Float[Tensor, ""]:
    """Scale all gradients in place to a joint l2 norm of at most the limit; return the norm before.

    The factor is limit / (norm + 1e-6) if that is below 1, and otherwise 1. If the norm is infinite
    or NaN, the gradients stay as they are: the caller should check the norm and skip the step.
    The CPU never waits for the GPU. Half precision is squared and added up in float32.
    Source: Pascanu, Mikolov & Bengio 2013, algorithm 1.
    """
    if not max_l2_norm > 0:
        raise ValueError(f"max_l2_norm={max_l2_norm!r} is not positive; 1.0 is usual")
    # A list, because it is gone through twice, and `parameters()` of a model can be only once.
    gradients = [theta.grad for theta in parameters if theta.grad is not None]
    if not gradients:
        return torch.zeros(())
    # The norm of all values together is the norm of the norms: √(Σ ‖g‖²).
    # The square of 300 is beyond float16, whose largest number is 65,504.
    norms = [torch.linalg.vector_norm(g, dtype=float_type(g)) for g in gradients]
    norm = torch.linalg.vector_norm(torch.stack(norms))
    scale = torch.clamp(max_l2_norm / (norm + 1e-6), max=1)
    # A tensor operation in place of an `if`, which would have to wait for the value.
    scale = torch.where(torch.isfinite(norm), scale, 1)
    # All by one factor: the step keeps its direction, and only becomes shorter.
    for g in gradients:
        g.mul_(scale)
    return norm


def from_config(weights: Iterable[Tensor], config: OptimizerConfig) -> Optimizer:
    """The optimizer that a config asks for: torch's AdamW, the one above, or Muon.

    `weights` are a model's, from its embedding to its head: these two and all gains are AdamW's.
    """
    weights = list(weights)
    choices: dict[str, Any] = {
        "lr": config.max_learning_rate,
        "betas": config.betas,
        "eps": config.eps,
        "weight_decay": config.weight_decay,
    }
    if config.update == "fused":
        return torch.optim.AdamW(weights, **choices, fused=True)
    # The embedding and the head are matrices too, but a row of theirs is a token's own vector. Like
    # the gains they are left to AdamW, as Jordan et al. advise.
    if config.update == "muon":
        hidden = [theta for theta in weights[1:-1] if theta.ndim == 2]
        others = [theta for theta in weights if all(theta is not one for one in hidden)]
        groups = [{"params": hidden, "orthogonal": True}, {"params": others, "orthogonal": False}]
        return Muon(groups, **choices, decay="before")
    return AdamW(weights, **choices, decay=config.decay)
