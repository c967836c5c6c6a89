"""The check of learning_rate: (a) a sweep and the loss that it reaches, (b) where runs diverge."""

import math
import re
from numbers import Real
from typing import Any

from workbook.checks.experiments_limits import (
    corpus_for,
    refuse_impossible,
    refuse_runs,
    refuse_text,
    refuse_untrained,
)
from workbook.checks.experiments_read import expect_readable, pair, runs
from workbook.checks.experiments_run import ReportedRun, best
from workbook.checks.experiments_text import Said, clauses, corpora_in, rates
from workbook.checks.figures import claims, text_of
from workbook.checks.verdicts import Facts, NotAttempted, Words, Wrong
from workbook.experiments.studies import TARGET, TARGET_ON_CPU

CPU_TOKENS = 40_960_000
# The factor between two rates that says no more of the edge than that there is one: between
# neighbours of a sweep, and between the best rate and any that diverges.
COARSE, FAR = 30, 1_000
DIVERGES = r"\bdiverg|\bnan\b|explo[ds]|\bblow|\bunstable"
ACCEPTED = {
    "a": "a dict such as {learning rate: validation loss}, the best loss, or a text",
    "b": "a dict such as {learning rate: loss or nan}, a tuple of the best rate and one that"
    " diverges, or a text",
}
SWEEP = Facts(
    (
        "which rates were tried, on a logarithmic scale, and how the search went on from there",
        "the curves of all of them, the best one among them",
        "the best loss, with corpus, tokens and device",
    )
)
EDGE = Facts(
    (
        "a curve of a run that diverges",
        "between which two rates the edge lies, a factor of two or so apart",
        "how far below the edge the best rate is",
    )
)


def learning_rate(attempt: Any, part: str | None = None) -> str | Facts:
    """What holds of a sweep: (a) losses by rate, or the best loss; (b) where runs diverge."""
    accepted = ACCEPTED[part or "a"]
    if part == "b" and (two := pair(attempt)):
        return _edge(*two)
    expect_readable(attempt, accepted)
    if isinstance(attempt, str):
        text_of(attempt, accepted)
        said = refuse_text(attempt, "simple")
        return _said_of_the_edge(attempt) if part == "b" else _said_of_the_sweep(attempt, said)
    if isinstance(attempt, Real):
        if part == "b":
            raise NotAttempted(f"One number says too little. Hand in {accepted}.")
        return _reached(float(attempt), corpus_for((), "simple"))
    found = [run for run in runs(attempt, "rate") if run.get("rate") is not None and run.ended]
    for run in found:
        if run.get("rate") <= 0:
            raise Wrong("A learning rate is positive.", got=Words(run.name))
    refuse_runs(found, "simple")
    if len({run.get("rate") for run in found}) < 3:
        raise NotAttempted(f"Three rates at least make a sweep. Hand in {accepted}.")
    return _bracketed(found) if part == "b" else _swept(found)


def _swept(found: list[ReportedRun]) -> str:
    """Praise for a sweep whose best rate lies inside it."""
    lowest = best(found)
    rate, tried = lowest.get("rate"), sorted({run.get("rate") for run in found})
    if rate in (tried[0], tried[-1]):
        end, on = ("largest", "larger") if rate == tried[-1] else ("smallest", "smaller")
        raise Wrong(
            f"The best rate is the {end} one that was tried.",
            given=Words(", ".join(f"{each:g}" for each in tried)),
            expected=Words(f"a {on} rate as well, with a worse loss"),
            got=Words(f"{lowest.loss:.4g} at {rate:g}"),
            mistake=f"The sweep ends too early: nothing says that a {on} rate is not still better.",
        )
    said = f"{len(tried)} rates; the best, {rate:g}, lies inside the sweep. "
    named = {name for run in found for name in corpora_in(run.words)}
    return said + _reached(lowest.loss, corpus_for(named, "simple"))


def _reached(loss: float, corpus: str) -> str:
    """Praise for a best loss; raises where the handout asks for less, or no model can have it."""
    refuse_impossible(loss, corpus)
    refuse_untrained(loss, "simple")
    if corpus != "tinystories":
        return (
            f"{loss:.4g} nats per token is possible on {corpus}. The handout's {TARGET} and"
            f" {TARGET_ON_CPU:.2f} are for TinyStories, whose floor and tokens are others."
        )
    if loss > TARGET_ON_CPU or not math.isfinite(loss):
        raise Wrong(
            "That is not low enough.",
            expected=Words(
                f"{TARGET} nats per token or less; {TARGET_ON_CPU:.2f} with {CPU_TOKENS:,} tokens"
            ),
            got=loss,
            mistake="Let it see all the tokens, and tune the largest rate: both matter most.",
        )
    budget = "" if loss <= TARGET else f", which is what is asked with {CPU_TOKENS:,} tokens"
    return f"{loss:.4g} is {TARGET if loss <= TARGET else TARGET_ON_CPU:.2f} or less{budget}."


def _said_of_the_sweep(text: str, said: list[Said]) -> Facts:
    if said and corpora_in(text) == ("tinystories",):
        _reached(min(each.loss for each in said), "tinystories")
    return SWEEP


def _bracketed(found: list[ReportedRun]) -> str:
    """Praise for a sweep that has runs on both sides of the edge."""
    lowest = best(found)
    rate = lowest.get("rate")
    lost = [run.get("rate") for run in found if run.diverged]
    if not lost:  # a rate that is far too large often gives no nan: the loss stays high
        high = max(1.5 * lowest.loss, lowest.loss + 1)
        above = [run for run in found if run.get("rate") > rate]
        lost = [run.get("rate") for run in above if run.loss > high]
    if not lost:
        largest = max(run.get("rate") for run in found)
        raise Wrong(
            "No run in it diverges.",
            expected=Words("a run whose loss becomes nan or stays far above the others"),
            got=Words(f"up to {largest:g}, and every run converges"),
            mistake=f"Go on upwards from {largest:g}, by a factor of two each time.",
        )
    edge = min((each for each in lost if each > rate), default=max(lost))
    stable = max((run.get("rate") for run in found if run.get("rate") < edge), default=rate)
    if edge > COARSE * stable:
        raise _no_edge(stable, edge)
    said = _edge(rate, edge)
    return said if edge <= 4 * stable else f"{said} Bisect further: then you know the edge better."


def _edge(rate: float, diverges: float) -> str:
    """Praise for the best rate beside one that diverges."""
    if not 0 < min(rate, diverges) <= max(rate, diverges) < math.inf:
        raise Wrong("A learning rate is positive and finite.", got=(rate, diverges))
    if diverges <= rate:
        raise Wrong(
            "The rate that diverges is not larger than the best one.",
            expected=Words("the best rate below the edge: what diverges cannot be best"),
            got=Words(f"best {rate:g}, diverges at {diverges:g}"),
            mistake="The two may be swapped, or the two runs differ in something else as well.",
        )
    if diverges > FAR * rate:
        raise _no_edge(rate, diverges)
    return f"The best rate is {diverges / rate:.3g} times below one that diverges."


def _no_edge(stable: float, lost: float) -> Wrong:
    decades = math.log10(lost / stable)
    return Wrong(
        "That does not say where the edge is.",
        given=Words(f"{stable:g} converges, {lost:g} diverges"),
        expected=Words("two rates a factor of two or so apart"),
        got=Words(f"a factor of {lost / stable:,.0f}: {decades:.1f} orders of magnitude"),
        mistake="Bisect: try the rate in the middle, on a logarithmic scale, and go on in the half"
        " that holds the edge.",
    )


def _said_of_the_edge(text: str) -> Facts:
    """The facts to tick, unless the best rate is far from all that is said to diverge."""
    named = sorted(rate for rate, _ in rates(text))
    lost = []
    for clause in clauses(text):
        found, said = rates(clause), re.search(DIVERGES, clause, re.I)
        if found and said and claims(clause, DIVERGES):
            lost.append(min(found, key=lambda each: abs(each[1] - said.start()))[0])
    if lost and named[0] < min(lost):
        _edge(max(rate for rate in named if rate < min(lost)), min(lost))
    elif not lost and len(named) == 2 and re.search(r"\bedge\b", text):
        _edge(*named)
    return EDGE
