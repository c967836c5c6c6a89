"""Small experiments with optimizers, on losses that one can draw."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from workbook.optimizer.optimizers import SGD, Number, clip_gradients
from workbook.optimizer.toy_sgd import ravine, turned

Loss = Callable[[Tensor], Tensor]
Maker = Callable[[list[Parameter]], Optimizer]  # such as a class, or a `partial` of one


def run_toy(lr: Number, steps: int, dtype: torch.dtype = torch.float32) -> list[float]:
    """The handout's toy: the mean of 10 x 10 squares before the first step of SGD, and after each.

    The weights are the same for every type: drawn in float32 from N(0, 5²).
    """
    drawn = 5 * torch.randn(10, 10, generator=torch.Generator().manual_seed(0))
    weights = Parameter(drawn.to(dtype))
    optimizer = SGD([weights], lr=lr)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = weights.square().mean()
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return [*losses, weights.square().mean().item()]


def walk(
    make: Maker,
    loss: Loss,
    start: Sequence,
    steps: int,
    *,
    settings: Callable[[int], dict] | None = None,
    max_l2_norm: Number | None = None,
) -> Float[np.ndarray, "places ..."]:
    """Where the weights stand before the first step of an optimizer down `loss`, and after each.

    `make` gets the weights and returns the optimizer; `settings` says what to change in it before
    each step, such as the learning rate. Gradients are clipped where `max_l2_norm` says so. All is
    float64, as on paper.
    """
    weights = Parameter(torch.tensor(start, dtype=torch.float64))
    optimizer = make([weights])
    places = [weights.detach().clone()]
    for t in range(steps):
        optimizer.zero_grad()
        loss(weights).backward()
        if max_l2_norm is not None:
            clip_gradients([weights], max_l2_norm)
        if settings is not None:
            optimizer.param_groups[0].update(settings(t))
        optimizer.step()
        places.append(weights.detach().clone())
    return torch.stack(places).numpy()


def step_sizes(
    make: Maker,
    gradients: Sequence[float],
    *,
    settings: Callable[[int], dict] | None = None,
    max_l2_norm: Number | None = None,
) -> Float[np.ndarray, " steps"]:
    """How far down an optimizer goes in each step, where the gradient of the step is given."""
    coming = iter(gradients)
    places = walk(
        make,
        lambda weight: next(coming) * weight.sum(),
        [0.0],
        len(gradients),
        settings=settings,
        max_l2_norm=max_l2_norm,
    )
    return -np.diff(places[:, 0])


def ravine_walks(
    rules: Mapping[str, Maker], angle: Number = 0.0, steps: int = 40
) -> dict[str, Float[np.ndarray, "places 2"]]:
    """Where each rule goes in a ravine turned by `angle`, from the same place in it."""
    start = turned((-4.0, 1.5), angle)
    return {
        name: walk(make, lambda place: ravine(place, angle), start, steps)
        for name, make in rules.items()
    }


def noisy(loss: Loss, scale: Number | Sequence[Number], seed: int = 0) -> Loss:
    """`loss` as a batch of data tells it: each time N(0, scale²) is added to its gradient.

    `scale` may be a number for each of the last axis' weights.
    """
    generator = torch.Generator().manual_seed(seed)
    size = torch.as_tensor(scale, dtype=torch.float64)

    def told(weights: Tensor) -> Tensor:
        noise = torch.randn(weights.shape, dtype=torch.float64, generator=generator)
        return loss(weights) + (size * noise * weights).sum()

    return told
