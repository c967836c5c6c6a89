"""The check of `get_batch`: windows, targets, types, and where the windows may begin.

The ids of each data set follow one another, so that a batch shows where it was cut out.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from workbook.classroom.checks.machinery.calling import Runner, callable_part
from workbook.classroom.checks.machinery.from_scratch import check_style
from workbook.classroom.checks.machinery.tensors import dropped, is_tensor
from workbook.classroom.checks.machinery.verdicts import (
    Findings,
    NotAttempted,
    Prose,
    Wrong,
    kind_of,
)

# A data set so short that all starts can be counted, in batches of 8 windows of 3 tokens.
FEW = np.arange(12)
ROWS = 8
CONTEXT = 3
DRAWS = 300
LAST = len(FEW) - CONTEXT - 1  # where a window may begin
LARGE = FEW + 2**16 - len(FEW)  # the largest ids that uint16 holds
SIGMAS = 6  # a fair draw strays that far once in 10⁸ times
# What torch and numpy say of windows that reach past the end, and so are too short.
UNEVEN = re.compile("equal size|same|of length|out of (bounds|range)|inhomo|broadcast|expand|index")
INT64 = "An embedding and the cross-entropy take int64: convert windows, say by `astype(np.int64)`."


def faults(claim: str, expected: Any, **mistakes: str) -> dict[str, tuple]:
    """Ways to go wrong that share a claim and what is expected, each with the likely mistake."""
    return {fault: (claim, expected, words) for fault, words in mistakes.items()}


FAULTS = {
    **faults(
        "It does not return two tensors.",
        "a tuple (inputs, targets)",
        form="End with `return inputs, targets`, two tensors: each call gives one batch.",
    ),
    **faults(
        "The batch has the wrong shape.",
        (ROWS, CONTEXT),
        turned="Rows and columns, or batch_size and context_length, are swapped.",
        shape="A batch has batch_size rows, each of them context_length tokens long.",
    ),
    **faults("The batch has the wrong type.", torch.int64, type=INT64),
    **faults(
        "A row is not a contiguous piece of the data.",
        "consecutive tokens, such as 7, 8, 9",
        scattered="Draw one start for each row, and take context_length tokens from there.",
    ),
    **faults(
        "The targets are not the tokens that come next.",
        "the next token of each input",
        inputs="The targets are the inputs: they must be the same window, one token later.",
        swapped="Inputs and targets are swapped, or the targets are one token earlier.",
        shifted="The targets must be shifted by 1, but are shifted differently.",
        end="The last target is made up, or wrapped around: read the token after the window.",
        apart="The targets have starts of their own: take those of the inputs, plus 1.",
    ),
    **faults(
        "A window reaches past the end.",
        f"starts from 0 to {LAST}",
        late="With n tokens and a context of m the last start is n - m - 1, and the targets of the "
        "start i are the tokens from i + 1 to i + m.",
    ),
    **faults(
        "The rows do not begin at random places.",
        "a new random start for each row and call",
        one_start="One start was drawn for the whole batch: draw one for each row.",
        in_a_row="The rows follow one another: draw a start for each.",
        seeded="The generator is seeded inside the function, or nothing is random at all.",
    ),
    **faults(
        "Some windows are never drawn.",
        f"every start from 0 to {LAST}",
        no_last="The last start is never drawn: with n tokens and a context of m it is "
        "n - m - 1. `randint` in numpy and torch excludes its upper end: give it n - m.",
        no_first="The first start is never drawn: positions count from 0.",
        gaps="Windows may overlap, and begin at each position from 0 to n - m - 1.",
    ),
    **faults(
        "Some windows are drawn far more often than others.",
        "every start equally often",
        uneven="Every start from 0 to n - m - 1 must be equally likely: draw one integer, "
        "and do not clamp what falls outside.",
    ),
    **faults(
        "Large token ids change on the way.",
        f"tokens from {LARGE[0]} to {LARGE[-1]}",
        small_type="An intermediate type is too small: int16 ends at 32,767, uint8 at 255.",
    ),
    **faults(
        "The batch is on the wrong device.",
        "both tensors on meta",
        device="`device` is not used: end with `.to(device)`, for both tensors.",
    ),
}
UINT16 = "Token files hold uint16, which few operations take: convert each window to int64 first."


def data_loading(attempt: Any) -> str:
    """Praise for a right function; raises `Wrong` with all that is not right."""
    findings = Findings()
    runner = BatchRunner(attempt)
    with findings("use"):
        starts = runner.starts()
        with findings("corner"):
            if runner.in_int32:
                raise runner.wrong("type", torch.int32)
        for check in (lambda: runner.expect_fair(starts), runner.expect_ids, runner.expect_device):
            with findings("use"):
                check()
        if findings.in_use:
            findings.passes.append("The targets are the inputs, one token later.")
    check_style(findings, lambda: [*runner.run(Draw(FEW))], [attempt])
    return findings.verdict("Inputs and targets fit, and every start is drawn equally often.")


class Draw(NamedTuple):
    """Batches that are drawn."""

    data: np.ndarray
    described: str = "dataset"
    times: int = 1
    device: str = "cpu"

    def __str__(self) -> str:
        return (
            f"get_batch({self.described}, batch_size={ROWS}, "
            f"context_length={CONTEXT}, device={self.device!r})"
        )


class BatchRunner(Runner):
    """Runs a function that draws batches; `case` is what was drawn last."""

    case: Draw
    in_int32 = False  # whether some batch was: an nn.Embedding takes it, but no cross-entropy

    def wrong(self, fault: str, got: Any) -> Wrong:
        """The verdict on a fault."""
        claim, expected, mistake = FAULTS[fault]
        got = Prose(got)
        mistake += dropped(self.attempt) if fault in ("type", "device") else ""
        return Wrong(claim, given=self.case, expected=Prose(expected), got=got, mistake=mistake)

    def drawing(self, case: Draw) -> Callable[[], Any]:
        """The function that draws a batch, bound to what it is given. Raises: Wrong."""
        self.case = case
        values = {
            "dataset": case.data,
            "batch_size": ROWS,
            "context_length": CONTEXT,
            "device": case.device,
        }
        return callable_part(self.attempt, values, optional=["device"], given=case)

    def run(self, case: Draw) -> Iterator[list[Tensor]]:
        """Some batches, each as inputs and targets in int64. Raises: Wrong."""
        try:
            part = self.drawing(case)
            for _ in range(case.times):
                yield self.pair(part())
        except Wrong as failure:
            if UNEVEN.search(str(failure.error)):
                failure.mistake = FAULTS["late"][2]
            raise

    def pair(self, result: Any) -> list[Tensor]:
        """The two tensors of a result, as int64. Raises: Wrong if it has another form."""
        if result is None:
            raise NotAttempted
        tensors = isinstance(result, tuple | list) and [*map(is_tensor, result)]
        if tensors != [True, True]:
            raise self.wrong("form", kind_of(result))
        for tensor in result:
            shape = tuple(tensor.shape)
            dtype = tensor.dtype
            if shape != (ROWS, CONTEXT):
                raise self.wrong("turned" if shape == (CONTEXT, ROWS) else "shape", shape)
            if dtype not in (torch.int64, torch.int32):
                raise self.wrong("type", dtype)
            self.in_int32 |= dtype == torch.int32
        return [tensor.to(torch.int64) for tensor in result]

    def starts(self) -> list[int]:
        """Where windows begin. Raises `Wrong` unless they are windows, drawn at random."""
        starts = []
        list(self.run(Draw(np.arange(99), "np.arange(99)")))  # any shape of batch fits
        for inputs, targets in self.run(Draw(FEW, f"np.arange({len(FEW)})", DRAWS)):
            rows = zip(inputs.tolist(), targets.tolist(), strict=True)
            for x, y in sorted(rows, key=lambda row: row[0][0] > LAST):
                if x[0] > LAST:
                    raise self.wrong("late", f"inputs {x}, targets {y}")
                if x != [*range(x[0], x[0] + CONTEXT)]:
                    raise self.wrong("scattered", x)
                if y != [token + 1 for token in x]:
                    by = {*(targets - inputs).flatten().tolist()}
                    known = {(0,): "inputs", (-1,): "swapped"}
                    fault = known.get((*by,), "shifted" if len(by) == 1 else "apart")
                    fault = "end" if y[:-1] == x[1:] else fault
                    raise self.wrong(fault, f"{y}, for the inputs {x}")
            starts.append(inputs[:, 0].tolist())
            steps = {b - a for batch in starts[:2] for a, b in pairwise(batch)}
            if len(starts) == 2 and (len(steps) == 1 or starts[0] == starts[1]):
                fault = "in_a_row" if len(steps) == 1 else "seeded"
                fault = "one_start" if steps == {0} else fault
                raise self.wrong(fault, f"starts {starts[0]}, then {starts[1]}")
        return [start for batch in starts for start in batch]

    def expect_fair(self, starts: list[int]) -> None:
        """Raise `Wrong` unless each place that leaves room for a target is drawn equally often."""
        counts = [starts.count(start) for start in range(LAST + 1)]
        missing = [start for start, count in enumerate(counts) if not count]
        if missing:
            known = {LAST: "no_last", 0: "no_first"}
            fault = known.get(missing[0], "gaps") if len(missing) == 1 else "gaps"
            got = f"none at {', '.join(map(str, missing))} in {DRAWS} batches"
            raise self.wrong(fault, got)
        mean = len(starts) / len(counts)
        spread = (mean * (1 - 1 / len(counts))) ** 0.5
        if max(abs(count - mean) for count in counts) > SIGMAS * spread:
            fair = f"{mean:.0f} give or take {spread:.0f}"
            raise self.wrong("uneven", f"{counts} times; fair is {fair} each")

    def expect_ids(self) -> None:
        """Raise `Wrong` if large ids of a memory-mapped uint16 file are changed."""
        described = f"np.memmap(path, dtype=np.uint16, ...) of the tokens {LARGE[0]} to {LARGE[-1]}"
        # A folder that Windows cannot delete, because the file is still mapped, does no harm.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            file = np.memmap(Path(folder, "ids.bin"), np.uint16, "w+", shape=len(LARGE))
            file[:] = LARGE
            try:
                (batch,) = self.run(Draw(file, described))
            except Wrong as failure:
                failure.mistake = UINT16 if failure.error else failure.mistake
                raise
        for row in torch.cat(batch).tolist():
            if row != [*range(row[0], row[0] + CONTEXT)] or row[0] not in LARGE:
                raise self.wrong("small_type", row)

    def expect_device(self) -> None:
        """Raise `Wrong` where the device is ignored: every machine has "meta"."""
        try:
            ((inputs, targets),) = self.run(Draw(FEW, device="meta"))
        except (Wrong, NotAttempted):  # it may well refuse a device that holds no numbers
            return
        if not (inputs.is_meta and targets.is_meta):
            raise self.wrong("device", f"{inputs.device} and {targets.device}")


def small_case(attempt: Any) -> tuple[str, Callable[[], Any]]:
    """A batch of a few ids, for questions about a learner's code: in words, and what draws it."""
    case = Draw(np.arange(20), "np.arange(20)")
    # Made once, so that a generator of its own goes on from batch to batch.
    return str(case), BatchRunner(attempt).drawing(case)
