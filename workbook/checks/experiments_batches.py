"""The check of batch_size_experiment: which sizes, and whether their losses can be compared."""

import re
from numbers import Real
from typing import Any

from workbook import accounting, config
from workbook.checks.experiments_limits import refuse_runs, refuse_text, refuse_untrained
from workbook.checks.experiments_read import expect_readable, runs
from workbook.checks.experiments_run import ReportedRun, best
from workbook.checks.figures import claims, text_of
from workbook.checks.verdicts import Facts, NotAttempted, Words, Wrong

SIZES = (1, 64, 128)  # batches that the sweep has to hold
SAME = 0.05  # relative: runs that saw so nearly the same number of tokens can be compared
ACCEPTED = (
    "a dict such as {batch size: validation loss}, a table with batch, tokens and loss, the list of"
    " sizes, or a text"
)
BATCHES = Facts(
    (
        "batches of 1, of 64, of 128, and up to what the memory holds",
        "all of them compared at the same number of tokens, not of steps",
        "the learning rate was tuned again for each, or it is said where not",
        "what a larger batch gains in time, and what it costs in loss",
    )
)


def batch_size_experiment(attempt: Any, part: str | None = None) -> str | Facts:
    """What holds of a sweep over batch sizes: losses by batch, a table, the sizes, or words."""
    several = isinstance(attempt, list | tuple) and len(attempt) > 0
    if several and all(type(size) in (int, float) for size in attempt):
        return _sizes({float(size) for size in attempt})
    expect_readable(attempt, ACCEPTED)
    if isinstance(attempt, str):
        return _said_of_batches(text_of(attempt, ACCEPTED))
    if isinstance(attempt, Real):
        raise NotAttempted(f"One number is no sweep. Hand in {ACCEPTED}.")
    found = [run for run in runs(attempt, "batch") if run.get("batch") and run.ended]
    if not found:
        raise NotAttempted(f"No losses by batch size were found. Hand in {ACCEPTED}.")
    refuse_runs(found, "simple")
    said = _sizes({run.get("batch") for run in found})
    _refuse_unequal(found)
    lowest = best(found)
    refuse_untrained(lowest.loss, "simple")
    return f"{said} The lowest loss, {lowest.loss:.4g}, is that of {lowest.get('batch'):g}."


def _sizes(sizes: set[float]) -> str:
    missing = [size for size in SIZES if size not in sizes]
    if missing:
        raise Wrong(
            "A batch size that is asked for is missing.",
            expected=Words(f"{', '.join(map(str, SIZES))}, and up to what the memory holds"),
            got=Words(", ".join(f"{size:g}" for size in sorted(sizes)) or "none"),
            mistake=f"Run {', '.join(map(str, missing))} as well. {_memory_words()}",
        )
    return f"{len(sizes)} sizes from {min(sizes):g} to {max(sizes):g}, with 64 and 128 among them."


def _memory_words() -> str:
    gigabytes = accounting.peak_bytes(config.tinystories(), 64).total / accounting.GB
    return (
        f"By the accounting a step with 64 needs about {gigabytes:.1f} GB in float32. Where that"
        " does not fit, compute the batch in parts and add up their gradients. Batch 1 may stop"
        " after fewer tokens, if you say so."
    )


def _refuse_unequal(found: list[ReportedRun]) -> None:
    """Raise where runs are compared that saw different numbers of tokens.

    Small batches may have read the beginning alone: they are slow.
    """
    ended = [run for run in found if not run.diverged]
    contexts = {run.get("context") for run in ended}
    seen: dict[float, float] = {}  # the most tokens, by batch size
    for run in ended:
        tokens, steps = run.get("tokens"), run.get("steps taken") or run.get("steps")
        if tokens is None and steps and len(contexts) == 1:
            tokens = steps * run.get("batch")
        if not tokens:
            return  # unknown
        seen[run.get("batch")] = max(tokens, seen.get(run.get("batch"), 0))
    times = [run.get("seconds") for run in ended]
    if len(seen) < 2:
        return
    if None not in times and max(times) <= (1 + SAME) * min(times):
        return  # compared at equal time
    full = {batch for batch, tokens in seen.items() if tokens >= (1 - SAME) * max(seen.values())}
    rest = set(seen) - full
    if not rest or (len(full) > 1 and max(rest) < min(full)):
        return
    steps = {run.get("steps") for run in ended}
    raise Wrong(
        "These runs saw different numbers of tokens.",
        expected=Words("as many tokens for each batch size: half the steps at twice the batch"),
        got=Words(", ".join(f"batch {b:g}: {n:,.0f}" for b, n in sorted(seen.items()))),
        mistake="All took the same number of steps: the larger batch has read more text."
        if len(steps) == 1 and None not in steps
        else "A run that has read more text is better for that reason alone.",
    )


def _said_of_batches(text: str) -> Facts:
    refuse_text(text, "simple")
    no_room = r"\b(?:64|128)\b[^.;]*(?:out of memory|\boom\b|not fit|memory error)"
    small = re.search(r"\b[1-9](?:\.\d+)?\s?Gi?B\b", text)  # it may really be too small
    if claims(text, no_room) and not small:
        raise Wrong(
            "Batches of 64 and 128 are asked for.",
            expected=Words("a run with each"),
            got=Words("out of memory"),
            mistake=_memory_words(),
        )
    return BATCHES
