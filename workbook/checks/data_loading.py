"""The check of `get_batch`: windows, targets, types, and where the windows may begin.

Most data sets hold each position as the id there, so that a batch tells where it was cut out.
"""

import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workbook.checks.calling import bind
from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.verdicts import (
    Findings,
    NotAttempted,
    Words,
    Wrong,
    call,
    expect_function,
    kind_of,
    shown,
)

MANY = 1000  # tokens, in which two windows hardly ever begin at the same place
FEW, SHORT = 12, 3  # tokens and context of a data set whose starts can all be counted
DRAWS = 500  # batches of the few tokens
ROWS = 5
SIGMAS = 7  # a fair draw strays that far once in 10¹² times
LARGE = 8_000_000  # tokens in a file
SLOW = 0.003  # seconds for a batch of the file
SLOWER = 8.0  # times those for a batch of few tokens
ENDS = (
    "A window reaches past the end. With n tokens and a context of m the last start is n - m - 1: "
    "its last target is the last token."
)
UNEVEN = re.compile("equal size|out of bounds|out of range|inhomogeneous|broadcast|expand|index")
INT64 = (
    "An embedding and the cross-entropy take int64: convert the windows, as with "
    "`.astype(np.int64)`."
)


def data_loading(attempt: Any, part: str | None = None) -> str:
    """Praise for a right function; raises `Wrong` with the first batch that fails."""
    expect_function(
        attempt, "get_batch(dataset, batch_size, context_length, device) -> (inputs, targets)"
    )
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(6)  # so that the same function is judged the same way each time
    found, loader = Findings(), Loader(attempt)
    with found("use"):
        _check_windows(loader)
    if not found:
        for check in (_check_starts, _check_types, _check_device):
            with found("use"):
                check(loader)
        if found:
            found.passes.append("Targets are the inputs one token later.")
    if loader.other_type and not found:
        with found("corner"):
            raise loader.other_type
    if not found:
        with found("style"):
            expect_from_scratch(lambda: loader.batch(np.arange(MANY), 2, 4, ""), [attempt])
    praise = "Inputs and targets fit, and every start is drawn equally often."
    return found.verdict(praise, [] if found else [*loader.notes.values(), *_slow(loader)])


class Loader:
    """A learner's function, called by the names of its arguments."""

    def __init__(self, attempt: Callable):
        self.attempt, self.notes = attempt, {}
        self.other_type: Wrong | None = None

    def bound(self, data: np.ndarray, rows: int, context: int, device: str) -> tuple[tuple, dict]:
        """The arguments as the signature has them. Raises: Wrong."""
        names = ("dataset", "batch_size", "context_length", "device")
        values = dict(zip(names, (data, rows, context, device), strict=True))
        given = Words(f"get_batch({', '.join(names)})")
        return bind(self.attempt, values, optional=["device"], given=given)[:2]

    def batch(
        self, data: np.ndarray, rows: int, context: int, said: str, device: str = "cpu"
    ) -> tuple[Tensor, Tensor, Words]:
        """Inputs, targets and the call; `said` is the data set as code. Raises: Wrong."""
        given = Words(f"get_batch({said}, {rows}, {context}, {device!r})")
        try:
            args, kwargs = self.bound(data, rows, context, device)
            result = call(self.attempt, *args, given=given, **kwargs)
        except Wrong as failure:
            if UNEVEN.search(str(failure.error)):
                failure.mistake = ENDS
            raise
        return *self.pair(result, data, rows, context, given), given

    def pair(
        self, result: Any, data: np.ndarray, rows: int, context: int, given: Words
    ) -> tuple[Tensor, Tensor]:
        """The two tensors of a result, as int64. Raises: Wrong where the form is another."""
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
                    else "A batch has batch_size rows, each of them context_length tokens long.",
                )
            if tensor.dtype != torch.int64:
                self._note_type(name, tensor, data, given)
        return result[0].to(torch.int64), result[1].to(torch.int64)

    def _note_type(self, name: str, tensor: Tensor, data: np.ndarray, given: Words) -> None:
        """Keep in mind that it is another type than int64. Raises: Wrong where it is no integer."""
        wrong = Wrong(
            f"The {name} have another type.",
            given=given,
            expected=Words("torch.int64"),
            got=Words(str(tensor.dtype)),
            mistake=INT64,
        )
        if tensor.is_floating_point():
            raise wrong
        if str(tensor.dtype) == f"torch.{data.dtype}":
            self.notes["type"] = (
                f"The batches are {data.dtype}, as the file is, which the course leaves open. "
                f"{INT64}"
            )
        else:
            self.other_type = wrong


def _check_windows(loader: Loader) -> None:
    """Raise `Wrong` unless rows are stretches of the data, targets one on, starts random."""
    data, said = np.arange(MANY), f"np.arange({MANY})"
    inputs, targets, given = loader.batch(data, 8, 16, said)
    for x, y in zip(inputs.tolist(), targets.tolist(), strict=True):
        if x != list(range(x[0], x[0] + 16)):
            raise Wrong(
                "A row is no stretch of the data.",
                given=given,
                expected=Words("a row of neighbours, such as 7, 8, 9, ..."),
                got=x,
                mistake="Draw one start for each row, and take the context_length tokens there.",
            )
        right = list(range(x[0] + 1, x[0] + 17))
        if y != right:
            raise Wrong(
                "The targets are not the tokens that come next.",
                given=Words(f"{given}, in the row of inputs {shown(x)}"),
                expected=right,
                got=y,
                mistake=_shift(x, y),
            )
    starts = inputs[:, 0].tolist()
    steps = {b - a for a, b in pairwise(starts)}
    if len(steps) == 1:
        raise Wrong(
            "The rows do not begin at random places.",
            given=given,
            expected=Words("a start of its own for each row"),
            got=Words(f"starts {starts}"),
            mistake="One start was drawn for the whole batch: draw one for each row."
            if steps == {0}
            else "The rows follow one another: draw a start for each.",
        )
    again = loader.batch(data, 8, 16, said)[0][:, 0].tolist()
    if again == starts:
        raise Wrong(
            "Two calls give the same batch.",
            given=given,
            expected=Words("other starts at each call"),
            got=Words(f"starts {starts}, twice"),
            mistake="The generator is seeded inside of the function, or nothing is drawn at all.",
        )


def _shift(x: list[int], y: list[int]) -> str | None:
    """What targets of a row were made wrongly, where that can be seen."""
    if y == x:
        return "The targets are the inputs: they must be the same window, one token later."
    if y == x[1:] + x[:1]:
        return "The row was rolled round: the last target must be the token behind the window."
    if y[:-1] == x[1:]:
        return "The last target is made up: read the token behind the window."
    by = {b - a for a, b in zip(x, y, strict=True)}
    if len(by) == 1:
        by = by.pop()
        if by in (2, -1):
            return f"The targets are shifted by {by}: they must be shifted by 1."
        if by == len(x):
            return "The targets are the window that follows: they must be shifted by 1."
    return "The targets are cut out for themselves: use the starts of the inputs, plus 1."


def _check_types(loader: Loader) -> None:
    """Raise `Wrong` where large ids of a memory-mapped uint16 file do not arrive."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "ids.bin"
        np.arange(65_500, 65_536).astype(np.uint16).tofile(path)
        data = np.memmap(path, dtype=np.uint16, mode="r")
        said = "np.memmap(path, dtype=np.uint16, mode='r') with the tokens 65500 to 65535"
        try:
            inputs, targets, given = loader.batch(data, 4, 30, said)
        except Wrong as failure:
            if failure.error:
                failure.mistake = (
                    "Token files hold uint16, which few operations of torch know: convert each "
                    "window to int64 first."
                )
            raise
        for row in torch.cat([inputs, targets]).tolist():
            if row != list(range(row[0], row[0] + 30)) or row[0] < 65_500:
                raise Wrong(
                    "Large token ids change on the way.",
                    given=given,
                    expected=Words("tokens from 65500 to 65535"),
                    got=row,
                    mistake="A type in between is too small: int16 ends at 32,767, uint8 at 255.",
                )


def _check_starts(loader: Loader) -> None:
    """Raise `Wrong` unless each place that leaves room for a target is drawn equally often."""
    data, last = np.arange(FEW), FEW - SHORT - 1
    given = Words(f"get_batch(np.arange({FEW}), {ROWS}, {SHORT}, 'cpu'), {DRAWS} times")
    args, kwargs = loader.bound(data, ROWS, SHORT, "cpu")
    try:
        batches = call(
            lambda: [loader.attempt(*args, **kwargs) for _ in range(DRAWS)],
            seconds=20,
            given=given,
        )
    except Wrong as failure:
        if UNEVEN.search(str(failure.error)):
            failure.mistake = ENDS
        raise
    counts: Counter[int] = Counter()
    for result in batches:
        inputs, targets = loader.pair(result, data, ROWS, SHORT, given)
        counts.update(inputs[:, 0].tolist())
        late = (inputs[:, 0] > last) | (targets != inputs + 1).any(1)
        if late.any():
            row = int(late.nonzero()[0])
            raise Wrong(
                "A window reaches past the end.",
                given=given,
                expected=Words(f"starts from 0 to {last}"),
                got=Words(f"inputs {inputs[row].tolist()}, targets {targets[row].tolist()}"),
                mistake=ENDS,
            )
    missing = [start for start in range(last + 1) if not counts[start]]
    expected, drawn = DRAWS * ROWS / (last + 1), [counts[start] for start in range(last + 1)]
    spread = (expected * (1 - 1 / (last + 1))) ** 0.5
    if missing:
        words = {
            (last,): "The last start is never drawn: with n tokens and a context of m it is "
            "n - m - 1. `randint` of numpy and torch leaves its upper end out: give it n - m.",
            (0,): "The first start is never drawn: positions count from 0.",
            (0, last): "The first and the last start are never drawn: they are 0 and n - m - 1.",
        }
        raise Wrong(
            "Some windows are never drawn.",
            given=given,
            expected=Words(f"every start from 0 to {last}"),
            got=Words(f"none at {', '.join(map(str, missing))}"),
            mistake=words.get(
                tuple(missing), "Windows may overlap: each position from 0 to n - m - 1 is a start."
            ),
        )
    if max(abs(count - expected) for count in drawn) > SIGMAS * spread:
        raise Wrong(
            "Some windows are drawn far more often than others.",
            given=given,
            expected=Words(f"each start about {expected:.0f} times, give or take {spread:.0f}"),
            got=Words(f"{drawn} times"),
            mistake="Every start from 0 to n - m - 1 must be equally likely: one draw of a whole "
            "number, without clamping what falls outside.",
        )


def _check_device(loader: Loader) -> None:
    """Raise `Wrong` where the device is ignored: "meta" is there on every machine."""
    try:
        *pair, given = loader.batch(np.arange(MANY), 2, 4, f"np.arange({MANY})", "meta")
    except (Wrong, NotAttempted):  # it may well refuse a device that holds no numbers
        return
    for name, tensor in zip(("inputs", "targets"), pair, strict=True):
        if tensor.device.type != "meta":
            raise Wrong(
                f"The {name} are on another device.",
                given=given,
                expected=Words("meta"),
                got=Words(str(tensor.device)),
                mistake="`device` is not used: end with `.to(device)`, for both tensors.",
            )


def _slow(loader: Loader) -> list[str]:
    """What to tell of a function that is right, and reads a whole file for each batch."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # A new file of zeros takes no room on the disk until something is written to it.
        data = np.memmap(Path(folder) / "ids.bin", dtype=np.uint16, mode="w+", shape=LARGE)
        few, large = (_seconds(loader, ids) for ids in (np.arange(MANY), data))
        del data
    if large < SLOW or large < SLOWER * few:
        return []
    return [
        f"A batch of a file of {LARGE:,} tokens took {large * 1000:.0f} ms, and one of {MANY:,} "
        f"tokens {few * 1000:.2f} ms. Probably the whole memory map is copied or converted each "
        "time, or a number is drawn for each of its places: draw the starts, cut the windows out, "
        "and convert only these."
    ]


def _seconds(loader: Loader, data: np.ndarray) -> float:
    """The shortest of three times that the processor works for a batch."""
    (args, kwargs), times = loader.bound(data, 4, 16, "cpu"), []
    for _ in range(3):
        began = time.process_time()
        call(loader.attempt, *args, given=Words("get_batch(dataset, 4, 16, 'cpu')"), **kwargs)
        times.append(time.process_time() - began)
    return min(times)
