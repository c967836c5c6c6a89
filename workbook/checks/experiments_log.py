"""The check of experiment_log: a table of runs, the log of one, or words about them."""

from itertools import pairwise
from numbers import Real
from typing import Any

from workbook.checks.experiments_limits import refuse_runs, refuse_text
from workbook.checks.experiments_read import expect_readable, runs
from workbook.checks.experiments_run import ReportedRun
from workbook.checks.figures import text_of
from workbook.checks.verdicts import Facts, NotAttempted, Words, Wrong

ACCEPTED = "a table with a row for each run (a data frame, a list of dicts), or a text"
LOG = Facts(
    (
        "for each run: what was changed, why, and what came out",
        "runs that failed or made nothing better are in it too",
        "the loss of every run can be drawn against steps and against time",
        "seed, device and versions are written down, so that a run can be repeated",
    )
)


def experiment_log(attempt: Any, part: str | None = None) -> str | Facts:
    """What holds of a log: a table with a row for each run, the log of one run, or words."""
    expect_readable(attempt, ACCEPTED)
    if isinstance(attempt, Real):
        raise NotAttempted(f"Hand in {ACCEPTED}.")
    if isinstance(attempt, str):
        refuse_text(attempt, "simple")
        text_of(attempt, ACCEPTED)
        return LOG
    found = runs(attempt, "rate")
    if _is_curve(found):
        return _curve(found)
    if not any(run.losses or run.get("bits per byte") for run in found):
        raise NotAttempted("No column is called loss. A log says what came out.")
    refuse_runs(found, "simple")
    if len(found) < 2:
        raise NotAttempted("That is one run. A log holds all that were tried.")
    if not any(run.get("seconds") for run in found):
        raise Wrong(
            "The log does not say how long the runs took.",
            expected=Words("a column such as seconds or minutes beside steps and loss"),
            got=Words(f"{len(found)} runs without a time"),
            mistake="Loss is to be shown against steps and against time.",
        )
    failed = sum(run.diverged for run in found)
    said = f"{len(found)} runs, and nothing in them contradicts itself."
    if not failed:
        said += " None of them failed: was nothing tried that did not work? It belongs in here too."
    return said


def _is_curve(found: list[ReportedRun]) -> bool:
    """True for the lines of one run: the steps rise, and no setting of a run is there."""
    steps = [run.get("steps") or run.get("tokens") for run in found]
    settings = any(run.words or run.get("batch") for run in found)
    return (
        len(found) > 2
        and not settings
        and None not in steps
        and all(early < late for early, late in pairwise(steps))
    )


def _curve(found: list[ReportedRun]) -> str:
    """Praise for the log of one run, whose losses can be drawn against steps and time."""
    seconds = [run.get("seconds") for run in found]
    if all(each is None for each in seconds):
        raise Wrong(
            "The log knows steps, and no time.",
            expected=Words("the seconds since the start in each line"),
            got=Words(f"{len(found)} lines without a time"),
            mistake="Write `time.perf_counter() - start` down with each loss.",
        )
    known = [each for each in seconds if each is not None]
    if any(late < early for early, late in pairwise(known)):
        raise Wrong(
            "Time runs backwards in it.",
            expected=Words("seconds since the start, which only grow"),
            got=Words(", ".join(f"{each:g}" for each in known[:8])),
            mistake="Are these seconds a step? Or did the clock begin anew when the run went on?",
        )
    if not any(run.losses or run.get("train loss") is not None for run in found):
        raise NotAttempted("No column is called loss. A log says what came out.")
    return f"{len(found)} lines whose loss can be drawn against steps and against time."
