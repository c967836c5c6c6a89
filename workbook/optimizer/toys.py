"""Small experiments with optimizers, on losses that can be drawn or solved on paper.

The handout's toy in closed form: the loss of n weights θ is the mean of their squares, so its
gradient is 2θ / n. A step of `optimizers.SGD` then multiplies every weight by the same number,
whatever the weights are, and the loss by its square. Here n is 100.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from workbook.optimizer.optimizers import SGD, Number, clip_gradients

WEIGHTS = 100
Settings = Callable[[int], dict[str, Any]]  # the settings to change before a step


def step_factor(lr: float, t: int) -> float:
    """The factor for every weight in step t = 0, 1, 2, …: 1 - 2 lr / (n √(t + 1)).

    >>> step_factor(10, 0), step_factor(100, 0), step_factor(100, 3)
    (0.8, -1.0, 0.0)
    """
    # θ - lr / √(t + 1) · 2θ / n, with θ taken out.
    return 1 - 2 * lr / WEIGHTS / math.sqrt(t + 1)


def relative_losses(lr: float, steps: int) -> list[float]:
    """The loss before the first step and after each, as a multiple of the first.

    >>> [round(loss, 3) for loss in relative_losses(100, 4)]
    [1.0, 1.0, 0.172, 0.004, 0.0]
    """
    losses = [1.0]
    for t in range(steps):
        # A mean of squares: if every weight is multiplied by f, the loss is by f².
        losses.append(losses[-1] * step_factor(lr, t) ** 2)
    return losses


def growing_steps(lr: float) -> int:
    """The number of steps that make the loss grow: the first ones, while the factor is below -1.

    >>> growing_steps(100), growing_steps(1_000)
    (0, 99)
    """
    # The factor is below -1 while lr / n > √(t + 1), that is, while t + 1 < (lr / n)².
    return max(math.ceil((lr / WEIGHTS) ** 2) - 1, 0)


def steps_to_zero(lr: float) -> int | None:
    """The number of steps after which the loss is exactly 0; None if it only gets close.

    >>> steps_to_zero(10), steps_to_zero(100), steps_to_zero(1_000)
    (None, 4, 400)
    """
    # The factor is 0 where t + 1 = (2 lr / n)². Only a whole number is ever reached.
    steps = (2 * lr / WEIGHTS) ** 2
    # Not `==`: lr may be a decimal, whose square is off in its last digit.
    whole = round(steps)
    return whole if whole and math.isclose(steps, whole, rel_tol=1e-9) else None


def course_of_loss(lr: float) -> str:
    """The course of the loss, in a sentence or two."""
    # The steps only grow shorter, so the first one has the largest jump.
    first = step_factor(lr, 0)
    growing = growing_steps(lr)
    zero = steps_to_zero(lr)
    if growing:
        peak = relative_losses(lr, growing)[-1]
        words = f"It grows for {_steps(growing)}, to {peak:.3g} times the start, then it falls."
    elif first >= 0:
        words = "It falls from the first step on, and no weight changes its sign."
    elif first > -1:
        words = "It falls from the first step on, although the weights jump across 0 at first."
    else:
        words = "The first step flips every sign and leaves the loss as it is; then it falls."
    return words + (f" After {_steps(zero)} it is exactly 0." if zero else "")


def _steps(count: int) -> str:
    return f"{count:,} {'step' if count == 1 else 'steps'}"


def ravine(point: Any, angle: Number = 0.0) -> Any:
    """(x² + 25 y²) / 2 at (..., x, y): a long valley, its axes turned by `angle`.

    It takes arrays and tensors alike. Turning does not change the curvatures, 1 and 25.
    """
    # The coordinates of the point on the valley's own axes: it is turned back by the angle.
    along = math.cos(angle) * point[..., 0] + math.sin(angle) * point[..., 1]
    across = math.cos(angle) * point[..., 1] - math.sin(angle) * point[..., 0]
    return (along**2 + 25 * across**2) / 2


def rotated(point: Sequence[float] | np.ndarray, angle: Number) -> tuple[float, float]:
    """The point (x, y) turned by `angle` around 0, like the ravine."""
    x, y = point
    return (
        math.cos(angle) * x - math.sin(angle) * y,
        math.sin(angle) * x + math.cos(angle) * y,
    )


Loss = Callable[[Tensor], Tensor]
Maker = Callable[[list[Parameter]], Optimizer]  # such as a class, or a `partial` of one


def run_toy(lr: Number, steps: int, dtype: torch.dtype = torch.float32) -> list[float]:
    """The handout's toy: the mean of 10 x 10 squares before the first step of SGD, and after each.

    The weights are the same for every type: drawn in float32 from N(0, 5²).
    """
    # A generator of its own leaves the random numbers of the caller alone.
    drawn = 5 * torch.randn(10, 10, generator=torch.Generator().manual_seed(0))
    weights = Parameter(drawn.to(dtype))
    optimizer = SGD([weights], lr=lr)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        # The loss before the step; the last one is appended after the loop.
        loss = weights.square().mean()
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return [*losses, weights.square().mean().item()]


def walk(
    make: Maker,
    loss: Loss,
    start: Sequence[Any],
    steps: int,
    *,
    settings: Settings | None = None,
    max_l2_norm: Number | None = None,
) -> Float[np.ndarray, "places ..."]:
    """The weights before the first step of an optimizer down `loss`, and after each step.

    `make` gets the weights and returns the optimizer; `settings(t)` are the settings to change
    before step t, such as the learning rate. Gradients are clipped to `max_l2_norm`, if given.
    Everything is float64, close to exact arithmetic.
    """
    weights = Parameter(torch.tensor(start, dtype=torch.float64))
    optimizer = make([weights])
    # `clone`, because the optimizer changes the weights in place: without it, all places would be
    # one tensor, the last.
    places = [weights.detach().clone()]
    for t in range(steps):
        optimizer.zero_grad()
        # `zero_grad` above, since `backward` adds to the gradients that are there.
        loss(weights).backward()
        # Between `backward` and `step`: the optimizer sees clipped gradients only.
        if max_l2_norm is not None:
            clip_gradients([weights], max_l2_norm)
        # torch reads a group's settings at each step, so a change here counts from this step on.
        if settings is not None:
            optimizer.param_groups[0].update(settings(t))
        optimizer.step()
        places.append(weights.detach().clone())
    return torch.stack(places).numpy()


def step_sizes(
    make: Maker, gradients: Sequence[float], **options: Any
) -> Float[np.ndarray, " steps"]:
    """The distance that an optimizer moves down in each step, for given gradients.

    `options` are those of `walk`: `settings` and `max_l2_norm`.
    """
    upcoming = iter(gradients)

    def loss(weight: Tensor) -> Tensor:
        # A loss that is linear in the weight: whatever the weight is, its gradient is what we
        # choose.
        return next(upcoming) * weight.sum()  # whose gradient is the next of them

    places = walk(make, loss, [0.0], len(gradients), **options)
    # Down counts as positive: an optimizer steps against the gradient.
    return -np.diff(places[:, 0])


def ravine_walks(
    rules: Mapping[str, Maker], angle: Number = 0.0
) -> dict[str, Float[np.ndarray, "places 2"]]:
    """Forty steps of each rule in a ravine turned by `angle`, from the same place in it."""
    # Turned with the valley: for a rule that treats all directions alike, nothing has changed.
    start = rotated((-4.0, 1.5), angle)
    return {
        name: walk(make, lambda place: ravine(place, angle), start, 40)
        for name, make in rules.items()
    }


def noisy(loss: Loss, scale: Number | Sequence[Number]) -> Loss:
    """`loss` as a batch of data estimates it: each call adds N(0, scale²) noise to its gradient.

    `scale` is one number, or one for each weight along the last axis.
    """
    # Always the same noise: two rules that are compared meet the same batches.
    generator = torch.Generator().manual_seed(0)
    size = torch.as_tensor(scale, dtype=torch.float64)

    def estimate(weights: Tensor) -> Tensor:
        noise = torch.randn(weights.shape, dtype=torch.float64, generator=generator)
        # The gradient of Σ noise · w is the noise itself, so exactly that is added.
        return loss(weights) + (size * noise * weights).sum()

    return estimate
