"""The checks of the four ablations: two kinds of model, and whether they can be compared."""

import math
import re
from dataclasses import dataclass
from numbers import Real
from typing import Any

from workbook.checks.experiments_limits import refuse_runs, refuse_text, refuse_untrained
from workbook.checks.experiments_read import expect_readable, pair, runs
from workbook.checks.experiments_run import FEW, ReportedRun, best
from workbook.checks.experiments_widths import matching, refuse_pair, refuse_sizes
from workbook.checks.figures import claims, text_of
from workbook.checks.verdicts import Facts, NotAttempted, Words, Wrong
from workbook.experiments.significance import difference

SAME = 0.05  # relative: tokens that are nearly the same
LARGE = 0.1  # nats per token: more than seeds move the loss of such models
BY_SEEDS = r"\bseeds?\b|\bspread|±|\+/-|\bstd\b|deviation|\bruns\b|repeat|\bnoise\b|diverg|\bnan\b"


@dataclass(frozen=True)
class Pair:
    """The two kinds of model of an ablation: how they are called, and what to say of them."""

    usual: str  # what our model has
    other: str  # what stands in its place
    usual_looks: str
    other_looks: str
    facts: Facts
    besides: str = ""  # what else may be handed in

    @property
    def accepted(self) -> str:
        """What may be handed in, in words."""
        return (
            f'{self.besides}a dict such as {{"{self.usual}": loss, "{self.other}": loss}}, each the'
            " final validation loss or a list of those of several seeds, or a text"
        )


POST = Pair(
    "pre",
    "post",
    r"\bpre\b|pre-?norm|baseline|\bbase\b|unchanged|usual",
    r"\bpost\b|post-?norm",
    Facts(
        (
            "both curves, with the same tokens and seed",
            "what happens at the beginning, where post-norm is the more delicate of the two",
            "the difference in the end, beside the spread between seeds",
        )
    ),
)
NOPE = Pair(
    "rope",
    "none",
    r"\brope\b|rotary|baseline|\bbase\b|unchanged|usual",
    r"\bnope\b|\bnone\b|\bno\b|\bwithout\b",
    Facts(
        (
            "both curves, with the same tokens and seed",
            "the difference in the end, beside the spread between seeds",
            "why it works at all: what a model without positions still knows",
        )
    ),
)
SILU = Pair(
    "swiglu",
    "silu",
    r"swi-?glu|gated|baseline|\bbase\b|unchanged|usual",
    r"\bsilu\b|no gate|plain",
    Facts(
        (
            "both curves, with the same tokens and seed",
            "how many parameters each has: two matrices need an inner width half as large again",
            "the difference in the end, beside the spread between seeds",
        )
    ),
    "the inner width of the plain layer, ",
)
NORMS = Facts(
    (
        "what happens without norms at the rate that was best with them",
        "the best rate without norms, and the loss there",
        "what the norms are good for, judged by both",
    )
)
NORMS_ACCEPTED = (
    'a dict such as {("pre", 1e-2): loss, ("none", 1e-2): loss or nan, ("none", 3e-3): loss}, a'
    " table with norm, learning rate and loss, or a text"
)


def pre_norm_ablation(attempt: Any, part: str | None = None) -> str | Facts:
    """What holds of losses with norms before and behind each part."""
    return _compared(attempt, POST)


def no_pos_emb(attempt: Any, part: str | None = None) -> str | Facts:
    """What holds of losses with RoPE and with no position information."""
    return _compared(attempt, NOPE)


def swiglu_ablation(attempt: Any, part: str | None = None) -> str | Facts:
    """What holds of losses with and without gate, of an inner width, or of two sizes."""
    if type(attempt) in (int, float):
        return matching(float(attempt))
    values = list(attempt.values()) if isinstance(attempt, dict) else attempt
    if (sizes := pair(values)) and min(sizes) > 100:  # no losses
        refuse_pair(*sizes)
        return "Both have about as many parameters."
    return _compared(attempt, SILU)


def _compared(attempt: Any, kinds: Pair) -> str | Facts:
    expect_readable(attempt, kinds.accepted)
    if isinstance(attempt, str):
        return _said(text_of(attempt, kinds.accepted), kinds)
    if isinstance(attempt, Real):
        raise NotAttempted(f"One number compares nothing. Hand in {kinds.accepted}.")
    found = [run for run in runs(attempt, "rate") if run.ended]
    refuse_runs(found, "simple")
    usual, other = _sides(found, kinds.usual_looks, kinds.other_looks)
    if not usual or not other:
        raise NotAttempted(
            f"Two kinds of runs are needed, {kinds.usual} and {kinds.other}. Hand in"
            f" {kinds.accepted}."
        )
    refuse_untrained(best(found).loss, "simple")
    _refuse_unequal(usual + other)
    if kinds is SILU:
        refuse_sizes(usual[0], other[0])
    return _difference(kinds, _losses(usual), _losses(other))


def _sides(
    found: list[ReportedRun], usual: str, other: str
) -> tuple[list[ReportedRun], list[ReportedRun]]:
    """The runs of both kinds; what looks like both, such as "no RoPE", is the other one."""
    words = [re.sub(r"[_\W]+", " ", run.words.lower()) for run in found]
    others = [bool(re.search(other, each)) for each in words]
    usuals = [bool(re.search(usual, each)) for each in words]
    return (
        [run for run, here, there in zip(found, usuals, others, strict=True) if here and not there],
        [run for run, there in zip(found, others, strict=True) if there],
    )


def _losses(found: list[ReportedRun]) -> list[float]:
    """The losses of all seeds at the best rate of this kind; [] where every run diverged."""
    if not any(run.finite for run in found):
        return []
    rate = best(found).get("rate")
    return [loss for run in found if run.get("rate") == rate for loss in run.finite]


def _refuse_unequal(found: list[ReportedRun]) -> None:
    seen = {run.name: run.get("tokens") for run in found if run.get("tokens") and not run.diverged}
    if len(seen) > 1 and max(seen.values()) > (1 + SAME) * min(seen.values()):
        raise Wrong(
            "These runs saw different numbers of tokens.",
            expected=Words("as many tokens for both"),
            got=Words(", ".join(f"{name}: {tokens:,.0f}" for name, tokens in seen.items())),
            mistake="A run that has read more text is better for that reason alone.",
        )


def _difference(kinds: Pair, usual: list[float], other: list[float]) -> str:
    """What two lists of losses say, with their spread where there are several of each."""
    if not usual or not other:
        lost = [name for name, losses in ((kinds.usual, usual), (kinds.other, other)) if not losses]
        return f"Diverged: {' and '.join(lost)}. That is a result: say at which rate, and when."
    means = [math.fsum(losses) / len(losses) for losses in (usual, other)]
    better, worse = (
        (kinds.usual, kinds.other) if means[0] <= means[1] else (kinds.other, kinds.usual)
    )
    said = f"{better} is {abs(means[0] - means[1]):.3g} nats per token below {worse}"
    if min(len(usual), len(other)) < 2:
        return f"{said}: one run of a kind. How much would another seed move it? Say so."
    return f"{said}. By seeds: {difference(other[:FEW], usual[:FEW])}."


def _said(text: str, kinds: Pair) -> Facts:
    refuse_text(text, "simple")
    numbers = [float(found) for found in re.findall(r"(?<![\w.])\d\.\d+", text)]
    large = len(numbers) > 1 and max(numbers) - min(numbers) > LARGE
    if claims(text, r"\bsignificant(?:ly)?\b") and not (re.search(BY_SEEDS, text, re.I) or large):
        raise Wrong(
            "One run of each cannot show that.",
            expected=Words("both losses, and how far runs differ that differ in their seed alone"),
            got=Words("significant"),
            mistake="Run each with two or three seeds. A difference is one where it is larger than"
            " that spread.",
        )
    return kinds.facts


def layer_norm_ablation(attempt: Any, part: str | None = None) -> str | Facts:
    """What holds of runs without norms: at the old best rate, and at a lower one."""
    expect_readable(attempt, NORMS_ACCEPTED)
    if isinstance(attempt, str):
        _said(text_of(attempt, NORMS_ACCEPTED), POST)
        return NORMS
    if isinstance(attempt, Real):
        raise NotAttempted(f"One number compares nothing. Hand in {NORMS_ACCEPTED}.")
    found = [run for run in runs(attempt, "rate") if run.ended]
    refuse_runs(found, "simple")
    without = r"\bnone\b|\bno\b|\bwithout\b|\bw o\b|\bremoved\b|\boff\b"
    usual, other = _sides(found, r"\bpre\b|\bnorm|rms|\bwith\b|\bbase|unchanged|usual", without)
    if not usual or not other:
        raise NotAttempted(f"Runs with and without norms are needed. Hand in {NORMS_ACCEPTED}.")
    refuse_untrained(best(found).loss, "simple")
    _refuse_unequal(usual + other)
    old, rates = best(usual).get("rate"), [run.get("rate") for run in other]
    known = old is not None and None not in rates
    at_old = known and any(math.isclose(rate, old, rel_tol=0.01) for rate in rates)
    lower = known and any(rate < 0.99 * old for rate in rates)
    if (known and not (at_old and lower)) or len(other) < 2:
        raise Wrong(
            "Without norms two rates are asked for.",
            expected=Words("the rate that was best with norms, and a lower one"),
            got=Words(", ".join(run.name for run in other)),
            mistake=None
            if not known
            else "The lower one is missing: what can a model without norms do at its best?"
            if not lower
            else f"The old one, {old:g}, is missing: there one sees what norms protect from.",
        )
    losses = _losses(other)
    if not losses:
        return "Without norms every run diverged: go down until one does not."
    cost = min(losses) - best(usual).loss
    at = best(other).get("rate")
    where = f", at {at:g}" if at is not None else ""
    return f"At its best rate{where}, the model without norms is {cost:+.3g} nats per token away."
