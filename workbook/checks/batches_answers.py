"""What a learner's `get_batch` hands back: called, and its form examined."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workbook.checks.verdicts import NotAttempted, Words, Wrong, call, kind_of

# A piece of an error's text, and what it usually comes from.
ENDS = {
    "equal size|out of bounds|out of range|inhomogeneous|broadcast|expand|index": (
        "A window reaches past the end. With n ids and a context of m the last start is n - m - 1: "
        "its last target is the last id."
    ),
}


def batch(
    attempt: Callable, data: np.ndarray, rows: int, context: int, said: str, device: str = "cpu"
) -> tuple[Tensor, Tensor, Words]:
    """Inputs, targets and the call; `said` is the data set as code. Raises for a wrong form."""
    given = Words(f"get_batch({said}, {rows}, {context}, {device!r})")
    try:
        result = call(attempt, data, rows, context, device, given=given)
    except Wrong as failure:
        name_mistake(failure, ENDS)
        raise
    expect_pair(result, rows, context, given)
    return *result, given


def expect_pair(result: Any, rows: int, context: int, given: Words) -> None:
    """Raise unless a result is two tensors of int64 with the right shape."""
    if result is None:
        raise NotAttempted
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise Wrong(
            "It does not return two tensors.",
            given=given,
            expected=Words("a tuple (inputs, targets)"),
            got=Words(kind_of(result)),
        )
    for name, tensor in zip(("inputs", "targets"), result, strict=True):
        if not isinstance(tensor, Tensor):
            raise Wrong(
                f"The {name} are no tensor.",
                given=given,
                expected=Words("a torch.Tensor"),
                got=Words(type(tensor).__name__),
            )
        if tuple(tensor.shape) != (rows, context):
            turned = tuple(tensor.shape) == (context, rows)
            raise Wrong(
                f"The {name} have another shape.",
                given=given,
                expected=(rows, context),
                got=tuple(tensor.shape),
                mistake="Rows and columns are swapped: a window is a row."
                if turned
                else "A batch has batch_size rows, each of them context_length ids long.",
            )
        if tensor.dtype != torch.int64:
            raise Wrong(
                f"The {name} have another type.",
                given=given,
                expected=Words("torch.int64"),
                got=Words(str(tensor.dtype)),
                mistake="An embedding and the cross-entropy take int64: convert the windows, as "
                "with `.astype(np.int64)`.",
            )


def name_mistake(failure: Wrong, errors: dict[str, str]) -> None:
    """Nothing; tells what an error usually comes from."""
    said = dict(failure.rows).get("got", "")
    known = (words for piece, words in errors.items() if re.search(piece, said))
    failure.mistake = next(known, failure.mistake)
