"""Random windows of one long array of ids: what a language model is trained on.

ids        17  4  92  8  30  5  61 ...
inputs         4  92  8  30              a window of context_length ids, anywhere
targets           92  8  30  5           the same window one id later
"""

import numpy as np
import torch
from jaxtyping import Int, Integer
from torch import Tensor


def get_batch(
    dataset: Integer[np.ndarray, " ids"],
    batch_size: int,
    context_length: int,
    device: str | torch.device = "cpu",
    generator: torch.Generator | None = None,
) -> tuple[Int[Tensor, "batch seq"], Int[Tensor, "batch seq"]]:
    """Inputs and targets, cut out at random: every start that leaves room is equally likely.

    `dataset` may be a memory map of any size and integer type: only the windows are read. With a
    `generator` (of the CPU) the order of the data is its own, and its state resumes it.
    """
    starts = random_starts(len(dataset), batch_size, context_length, generator)
    return windows(dataset, starts, context_length, device)


def random_starts(
    length: int, batch_size: int, context_length: int, generator: torch.Generator | None = None
) -> Int[Tensor, " batch"]:
    """Where the windows of a batch begin: from 0 to length - context_length - 1.

    The last start leaves room for one id behind the window, the last target.
    """
    if batch_size < 1 or context_length < 1:
        raise ValueError(
            f"batch_size={batch_size} and context_length={context_length} must be 1 at least"
        )
    if length <= context_length:
        raise ValueError(
            f"{length:,} ids hold no window of {context_length:,} and its targets; give"
            f" {context_length + 1:,} ids at least, or a smaller context_length"
        )
    return torch.randint(length - context_length, (batch_size,), generator=generator)


def windows(
    dataset: Integer[np.ndarray, " ids"],
    starts: Int[Tensor, " batch"],
    context_length: int,
    device: str | torch.device = "cpu",
) -> tuple[Int[Tensor, "batch seq"], Int[Tensor, "batch seq"]]:
    """The windows that begin at `starts`, and the same one id later, as int64 on the device."""
    places = starts.numpy()[:, None] + np.arange(context_length + 1)
    ids = torch.from_numpy(np.asarray(dataset)[places].astype(np.int64))
    if torch.device(device).type == "cuda":
        # From pinned memory the copy runs beside the GPU's work instead of holding it up.
        ids = ids.pin_memory().to(device, non_blocking=True)
    else:
        ids = ids.to(device)
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
