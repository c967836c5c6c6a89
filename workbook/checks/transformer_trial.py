"""A learner's part of the model, tried on small tensors beside a reference that can go wrong.

The reference of a topic is cut into stages. A usual mistake is a `Variant`: one stage done in
another way. The variant that gives what the learner's code gives names the mistake.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from workbook.checks.likeliest import likeliest
from workbook.checks.tensors import (
    ROUNDED,
    TOLERANCE,
    alike,
    beside,
    described,
    kind,
    symptom,
    tensor_of,
)
from workbook.checks.text_variants import Variant, stages
from workbook.checks.verdicts import NotAttempted, Words, Wrong

PATIENCE = 2.0  # seconds spent on more cases once one has failed
NO_FIT = re.compile(  # errors of sizes that do not fit each other
    r"(Runtime|Value|Index|Einops)Error\b.*(shape|size|dimension|broadcast|reshape|expand)", re.I
)
NO_INIT = "Begin `__init__` with `super().__init__()`: torch's Module must be set up first."


@dataclass(frozen=True, eq=False)
class Case:
    """One call: what the module is made of, the inputs, and the weights that it is given."""

    made: str  # the call as it is typed, such as "Linear(3, 2)(x)"
    inputs: Mapping[str, Any]  # by the names that `made` uses, in the order of the call
    arguments: tuple = ()  # of the constructor
    weights: Mapping[str, Tensor] = field(default_factory=dict)  # by the course's names
    dtype: torch.dtype = torch.float32
    what: str = ""  # why this case is there, in a few words
    heads: int = 1
    counted: bool = False  # positions from 0 are handed in, if `forward` takes positions

    def __str__(self) -> str:
        values = {**self.inputs, **(self.weights if len(self.weights) == 1 else {})}
        parts = [
            f"{name} = {described(value) if isinstance(value, Tensor) else value}"
            for name, value in values.items()
        ]
        return ", ".join([self.made, *parts]) + (f" ({self.what})" if self.what else "")


@dataclass(frozen=True, eq=False)
class Topic:
    """What a check knows of its problem."""

    cases: tuple[Case, ...]
    reference: Callable[[Case, dict[str, Callable]], Tensor]  # with the functions of all stages
    right: dict[str, Callable]  # by stage
    variants: tuple[Variant, ...]
    typed: bool = False  # whether the result must have the type of the input

    @lru_cache(maxsize=10_000)  # noqa: B019 - topics are few and stay
    def expected(self, case: Case, variants: tuple[Variant, ...] = ()) -> Tensor | None:
        """The result with these mistakes; None where they raise an error."""
        try:
            with torch.no_grad():
                return self.reference(case, stages(self.right, variants))
        except Exception:
            if not variants:
                raise
            return None

    def graph(self, case: Case) -> Tensor:
        """The right result, through which gradients flow."""
        return self.reference(case, self.right)


class Outcome(NamedTuple):
    """What became of one case: a tensor, or a failure in words."""

    topic: Topic
    given: Case
    result: Tensor | None
    failure: Wrong | None = None

    @property
    def right(self) -> bool:
        return self.failure is None and self.equals(self.topic.expected(self.given))

    def equals(self, expected: Tensor) -> bool:
        """Whether the result is the expected one, as exactly as its type allows."""
        return alike(self.result, expected, ROUNDED.get(self.given.dtype, TOLERANCE))


def outcome(run: Callable[[Case], Any], topic: Topic, case: Case) -> Outcome:
    """What `run` makes of a case; what is no tensor at all is raised at once."""
    try:
        result = run(case)
    except Wrong as failure:
        if failure.mistake is None and "before Module.__init__" in failure_words(failure):
            failure.mistake = NO_INIT
        return Outcome(topic, case, None, failure)
    result = tensor_of(result, Words(str(case))).detach()
    done = Outcome(topic, case, result)
    if topic.typed and done.right and result.dtype != case.dtype:
        expected, got = (Words(f"a tensor of {kind(t)}") for t in (case.dtype, result.dtype))
        failure = Wrong(
            "The result has not the type of the input.",
            given=str(case),
            expected=expected,
            got=got,
            mistake="After the work in float32 the result must go back to the type that came in: "
            "`.to(x.dtype)`.",
        )
        return Outcome(topic, case, result, failure)
    return done


def failure_words(failure: Wrong) -> str:
    """The error of a call that failed, such as `RuntimeError: ...`."""
    return dict(failure.rows).get("got", "")


def check_cases(run: Callable[[Case], Any], topic: Topic) -> None:
    """Raise `Wrong` for the first case that fails, with the likely mistake."""
    outcomes: list[Outcome] = []
    for case in topic.cases:
        outcomes.append(outcome(run, topic, case))
        if not outcomes[-1].right:
            _report(run, topic, outcomes)


def _report(run: Callable[[Case], Any], topic: Topic, outcomes: list[Outcome]) -> None:
    failed = outcomes[-1]
    if failed.failure and (failed.failure.mistake or failed.failure.timed_out):
        raise failed.failure
    until = time.monotonic() + PATIENCE
    for case in topic.cases[len(outcomes) :]:
        if time.monotonic() < until:
            try:
                outcomes.append(outcome(run, topic, case))
            except (Wrong, NotAttempted):
                continue
    best = likeliest(topic.variants, failed, outcomes, _fits, pairs=failed.failure is None)
    words = " And: ".join(dict.fromkeys(variant.mistake for variant in best)) or None
    if failed.failure:
        failed.failure.mistake = words or _shared(outcomes)
        raise failed.failure
    asked, got = topic.expected(failed.given), failed.result
    expected, shown = beside(asked, got)
    claim = "The result is not the expected one."
    if asked.shape != got.shape:
        claim = "The result has not the expected shape."
    mistake = words or _varies(run, failed) or symptom(asked, got) or _shared(outcomes)
    raise Wrong(claim, given=str(failed.given), expected=expected, got=shown, mistake=mistake)


def _fits(variants: tuple[Variant, ...], outcome: Outcome) -> bool:
    """Whether these mistakes give this outcome; sizes that do not fit, where it is an error."""
    predicted = outcome.topic.expected(outcome.given, variants)
    if outcome.failure:
        return predicted is None and bool(NO_FIT.match(failure_words(outcome.failure)))
    return predicted is not None and outcome.equals(predicted)


def _varies(run: Callable[[Case], Any], failed: Outcome) -> str | None:
    """What is said of a result that is another one when the same call is made again."""
    try:
        again = outcome(run, failed.topic, failed.given).result
    except (Wrong, NotAttempted):
        again = None
    if again is not None and alike(again, failed.result):
        return None
    return (
        "The same call gave another result the second time: something is random, or kept from "
        "call to call."
    )


def _shared(outcomes: list[Outcome]) -> str | None:
    """What the cases that fail have in common, where that is something that has a name."""
    named = [outcome for outcome in outcomes if outcome.given.what]
    failed = [outcome for outcome in outcomes if not outcome.right]
    if len(failed) < len(outcomes) and all(outcome in named for outcome in failed):
        return f"What fails has this in common: {failed[0].given.what}."
    return None
