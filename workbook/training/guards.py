"""Before a curve is believed: what would make a loss look better than the model is.

A flag is a sentence that says what is wrong and why it matters. Nothing here stops a run; whoever
reads its log sees the flags beside the curve.
"""

import numpy as np
import torch
from torch import Tensor, nn

from workbook.config import TrainConfig
from workbook.training import train_data
from workbook.training.evaluate import Evaluation
from workbook.training.train_data import TrainData

TOLERANCE = 1e-4  # of the largest logit: another id elsewhere may change how sums are rounded


@torch.no_grad()
def looks_ahead(model: nn.Module, inputs: Tensor) -> str | None:
    """A flag where a later token changes an earlier logit: the model reads the answers.

    Each of a few places in one sequence is changed, and all logits before it compared.
    """
    sequence = inputs[:1]
    was_training = model.training
    model.eval()
    logits = model(sequence).float()
    scale = logits.abs().max()
    length, flag = sequence.shape[-1], None
    for place in {1, length // 2, length - 1} & set(range(1, length)):
        changed = sequence.clone()
        changed[:, place:] = (changed[:, place:] + 1) % logits.shape[-1]
        before = (model(changed).float() - logits)[:, :place].abs().max()
        if not before <= TOLERANCE * scale:
            flag = (
                f"a token at position {place} changes logits before it by {before:.2g}: the model"
                " sees what it is to predict; is the causal mask missing?"
            )
            break
    model.train(was_training)
    return flag


def targets_shifted(inputs: Tensor, targets: Tensor) -> str | None:
    """A flag where the targets of a batch are not its inputs one position later."""
    if inputs.shape == targets.shape and torch.equal(inputs[:, 1:], targets[:, :-1]):
        return None
    return (
        "targets are not the inputs one position later: the model learns to copy, or to predict"
        " something else"
    )


def splits_apart(data: TrainData) -> str | None:
    """A flag where train and validation split share documents."""
    if data.end_id is None:
        if np.shares_memory(data.train, data.validation):
            return "train and validation are the same ids: the loss shows memory, not skill"
        return None
    shared = train_data.shared_documents(data)
    if shared:
        return (
            f"documents of the validation split that are in the train split too: {shared:,}; the"
            " validation loss shows memory as well as skill"
        )
    return None


def tokens_add_up(config: TrainConfig, steps: int, counted: int) -> str | None:
    """A flag where the tokens that went through the model are not batch · steps · context."""
    expected = config.batch_size * steps * config.model.context_length
    if counted == expected:
        return None
    return (
        f"{counted:,} tokens were seen, and batch · steps · context is {expected:,}: the axis of"
        " tokens is wrong"
    )


def too_good(found: Evaluation, data: TrainData) -> str | None:
    """A flag where the loss is lower than any honest model's could be."""
    if found.bits_per_byte >= data.floor:
        return None
    return (
        f"too good to be true: {found.bits_per_byte:.3f} bits a byte on the validation split, and"
        f" the floor is {data.floor:.3f} ({data.floor_reason}); look for the answers in the input,"
        " shared documents, or a wrong count of bytes"
    )


def before_training(
    model: nn.Module, data: TrainData, inputs: Tensor, targets: Tensor
) -> list[str]:
    """The flags that can be raised before the first step."""
    flags = (targets_shifted(inputs, targets), splits_apart(data), looks_ahead(model, inputs))
    return [flag for flag in flags if flag]


def while_training(
    config: TrainConfig, data: TrainData, steps: int, counted: int, found: Evaluation
) -> list[str]:
    """The flags that a measured loss can raise."""
    flags = (tokens_add_up(config, steps, counted), too_good(found, data))
    return [flag for flag in flags if flag]
