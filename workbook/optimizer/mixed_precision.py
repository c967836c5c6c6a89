"""Training with fewer bits: which gradients survive, and why the weights stay in float32.

Numbers are rounded to a format and converted back. What is lost is the same on any machine, and
no machine needs to compute in half precision.
Source: Micikevicius et al. 2018, sections 3.1 (master weights) and 3.2 (loss scaling).
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import Module

from workbook.optimizer.floats import FORMATS
from workbook.optimizer.optimizers import AdamW, Number, clip_gradients
from workbook.transformer import fused
from workbook.transformer.model import TransformerLM
from workbook.transformer.nn import Linear

Batch = tuple[Int[Tensor, "batch seq"], Int[Tensor, "batch seq"]]
Weights = Literal["float32", "bfloat16", "master"]


def rounded(numbers: Float[Tensor, "..."], name: str) -> Float[Tensor, "..."]:
    """The numbers as a format holds them, converted back to their type."""
    # There and back again: what the format cannot hold is gone, and the rest of the computation
    # does not notice that there was one.
    return numbers.to(FORMATS[name].dtype).to(numbers.dtype)


def gradient_sizes(model: TransformerLM, batch: Batch) -> dict[str, Float[Tensor, " numbers"]]:
    """The sizes of all nonzero gradients of one batch, of weights and of activations.

    "weights" are what the optimizer gets. "activations" are the gradients of the linear layers'
    outputs, on the way back through the model: half precision has to hold them too.
    """
    inputs, targets = batch
    inside: list[Tensor] = []

    def note(part: Module, of_inputs: Any, of_outputs: Any) -> None:
        # What comes back to this layer from those above it, (batch, seq, features).
        inside.append(of_outputs[0])

    # Gradients of activations pass through every layer; those of linear layers stand for all.
    linears = (part for part in model.modules() if isinstance(part, Linear))
    hooks = [linear.register_full_backward_hook(note) for linear in linears]
    try:
        model.zero_grad()
        fused.cross_entropy(model(inputs), targets).backward()
    # A hook that stays would fill the memory in every later backward pass.
    finally:
        for hook in hooks:
            hook.remove()
    gradients = {
        "activations": inside,
        "weights": [theta.grad for theta in model.parameters() if theta.grad is not None],
    }
    model.zero_grad()
    sizes = {
        name: torch.cat([one.flatten() for one in ones]).abs() for name, ones in gradients.items()
    }
    return {name: numbers[numbers > 0] for name, numbers in sizes.items()}


def damage(numbers: Float[Tensor, " numbers"], name: str, scale: Number = 1.0) -> dict[str, float]:
    """The shares of nonzero numbers that a format turns into 0 and into infinity.

    The numbers are multiplied by `scale` first, as the gradients of a scaled loss would be.
    """
    # The gradient of s · loss is s · gradient: scaling the loss once scales them all.
    stored = rounded(numbers * float(scale), name)
    return {
        "to zero": (stored == 0).double().mean().item(),
        "to infinity": stored.isinf().double().mean().item(),
    }


def short_run(
    model: TransformerLM, batches: Iterable[Batch], lr: Number, weights: Weights = "float32"
) -> pd.DataFrame:
    """One row per step of training with AdamW: loss, norm of the gradients, share of lost updates.

    `weights` says how the model's weights are stored; with "master", AdamW updates a float32 copy
    of them, which is then rounded to bfloat16 for the model. An update is lost if rounding undoes
    it: the stored number is the same as before. AdamW's own state is always float32.
    """
    # Two sets of tensors: the model computes with `used`, and AdamW updates `kept`.
    used = list(model.parameters())
    kept = [theta.detach().clone() for theta in used]
    _round_and_copy(kept, used, weights)
    optimizer = AdamW(kept, lr=lr)
    rows = []
    for inputs, targets in batches:
        model.zero_grad()
        loss = fused.cross_entropy(model(inputs), targets)
        loss.backward()
        for theta, computed_with in zip(kept, used, strict=True):
            # The gradient belongs to the rounded weights, and updates the unrounded ones.
            theta.grad = computed_with.grad
        # In float32, as everything that is summed up over many numbers.
        norm = clip_gradients(kept, 1.0)
        # What AdamW changed is compared before and after rounding: an update is lost that was one
        # before, and is none after.
        before = [theta.clone() for theta in kept]
        optimizer.step()
        updated = [new != old for new, old in zip(kept, before, strict=True)]
        _round_and_copy(kept, used, weights)
        undone = [u & (new == old) for u, new, old in zip(updated, kept, before, strict=True)]
        # The share of the updated numbers that rounding put back where they were.
        lost = torch.stack([u.sum() for u in undone]).sum() / sum(u.sum() for u in updated)
        rows.append({"loss": loss.item(), "norm": norm.item(), "lost": lost.item()})
    return pd.DataFrame(rows).rename_axis("step")


@torch.no_grad()
def _round_and_copy(kept: Sequence[Tensor], used: Sequence[Tensor], weights: Weights) -> None:
    """Round the kept weights as `weights` says, and copy them into those that the model uses."""
    for theta, computed_with in zip(kept, used, strict=True):
        # An update below 2⁻⁹ of its weight is less than half the distance to the next number: it is
        # rounded away, in each step anew, however many there are.
        if weights == "bfloat16":
            theta.copy_(rounded(theta, "bfloat16"))
        computed_with.copy_(theta if weights == "float32" else rounded(theta, "bfloat16"))
