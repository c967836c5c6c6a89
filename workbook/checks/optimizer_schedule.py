"""The check of the learning rate's schedule: warm-up, cosine, and what comes after."""

from collections.abc import Callable
from typing import Any

from workbook.checks.optimizer_schedule_slips import SLIPS, Settings, rate
from workbook.checks.optimizer_values import Outcome, mistake, quotient, same
from workbook.checks.text_variants import Variant
from workbook.checks.verdicts import NotAttempted, Words, Wrong, call, expect_function, kind_of

SIGNATURE = "schedule(it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters)"
CASES = (
    Settings(0.8, 0.2, 4, 12, tuple(range(20))),
    Settings(3e-4, 3e-5, 100, 1000, (0, 1, 50, 99, 100, 101, 550, 999, 1000, 1001, 1500, 5000)),
    Settings(1.0, 0.0, 0, 10, tuple(range(15))),
    # Where the cosine has no room, step 6 itself may have either rate: it is not asked for.
    Settings(1.0, 0.1, 6, 6, (0, 3, 5, 7, 10)),
)


def learning_rate_schedule(attempt: Any, part: str | None = None) -> str:
    """Praise for a right function; raises `Wrong` with the first step that fails."""
    expect_function(attempt, SIGNATURE)
    outcomes, praise = [], "Warm-up, cosine and what comes after agree with the formula."
    for given in CASES:
        outcome = _outcome(attempt, given)
        if _refuses(outcome):
            praise += f" Worth knowing: {_odd(given)} is refused, and may be asked for."
            continue
        outcomes.append(outcome)
        if not outcome.right:
            _report(attempt, outcomes)
    return praise


def _odd(given: Settings) -> str:
    """What is odd about settings, "" where nothing is."""
    if given.warmup == 0:
        return "warmup_iters = 0"
    return "cosine_cycle_iters = warmup_iters" if given.warmup == given.end else ""


def _refuses(outcome: Outcome) -> bool:
    """True where odd settings are refused; without warm-up a division by zero is a mistake."""
    said = dict(outcome.failure.rows).get("got", "") if outcome.failure else ""
    by_mistake = "ZeroDivisionError" in said and outcome.given.warmup == 0
    return bool(_odd(outcome.given)) and "Error" in said and not by_mistake


def _outcome(attempt: Callable, given: Settings) -> Outcome:
    """The learner's rates, as shares of the maximum, so that small ones count as much."""
    rates = []
    for it in given.steps:
        shown = _shown(it, given)
        try:
            rates.append(_number(call(attempt, it, *given[:4], given=shown), shown))
        except Wrong as failure:
            failure.mistake = _why(given, failure) or failure.mistake
            return Outcome(given, "error", False, failure)
    got = [rate / given.highest for rate in rates]
    return Outcome(given, got, any(same(got, right) for right in _predicted(given)))


def _shown(it: int, given: Settings) -> Words:
    return Words(f"schedule({it}, {given.highest}, {given.lowest}, {given.warmup}, {given.end})")


def _number(value: Any, shown: Words) -> float:
    """What a call returned, as a float; a tensor with one element is one too."""
    if value is None:
        raise Wrong(
            "It returns nothing.",
            given=shown,
            expected=Words("a number"),
            got=None,
            mistake="One of the three branches has no `return`, or no branch fits this step.",
        )
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise Wrong(
            "It returns no number.",
            given=shown,
            expected=Words("a float"),
            got=Words(kind_of(value)),
        ) from None


def _why(given: Settings, failure: Wrong) -> str | None:
    """What a division by zero usually comes from."""
    if given.warmup or "ZeroDivisionError" not in dict(failure.rows).get("got", ""):
        return None
    return "With warmup_iters = 0 there is no warm-up: ask `it < warmup_iters` before dividing."


def _predicted(given: Settings, variants: tuple[Variant, ...] = ()) -> list[list[float]]:
    return [[quotient(rate(it, given, variants), given.highest) for it in given.steps]]


def _report(attempt: Callable, outcomes: list[Outcome]) -> None:
    """Raise what is wrong with the last outcome, with the likely mistake."""
    failed = outcomes[-1]
    if failed.failure:
        raise failed.failure
    try:
        more = [_outcome(attempt, given) for given in CASES[len(outcomes) :]]
    except NotAttempted:
        more = []
    given, (right,) = failed.given, _predicted(failed.given)
    at = next(i for i in range(len(right)) if not same(right[i : i + 1], failed.got[i : i + 1]))
    it = given.steps[at]
    stage = "warm-up" if it < given.warmup else "cosine" if it <= given.end else "rest"
    raise Wrong(
        f"The rate of step {it} is not right. It belongs to the {stage}.",
        given=_shown(it, given),
        expected=Words(f"{right[at] * given.highest:.6g}"),
        got=Words(f"{failed.got[at] * given.highest:.6g}"),
        mistake=mistake(SLIPS, [*outcomes, *more], _predicted),
    )
