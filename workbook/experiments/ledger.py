"""What published solutions of the accounting problems claim, and a verdict that is computed.

Nobody's verdict is copied: each number of a claim is looked for among all that comes out of the
formulas, under the assumptions of the problem and under others.
"""

import re

import pandas as pd

from workbook.accounting.answers import answers
from workbook.accounting.assumptions import asked
from workbook.accounting.explain import SIZES, Found, explain
from workbook.config import Edition
from workbook.experiments.claims import claims

RIGHT, OTHERWISE, SLIP, UNEXPLAINED = "right", "other assumptions", "a slip", "not explained"
NEAR = 0.03  # a number that no assumption gives, but closer than this to the right one: a slip

# How people call the parts of a model, in (c).
PARTS = {
    "feed-forward": r"ffn|feed[- ]?forward|mlp|swiglu",
    "projections": r"projection",
    "scores": r"score|query[- ]key|\bQK",
    "head": r"head|logits",
}


def judge_accounting(problem: str, edition: Edition = "2025") -> pd.DataFrame:
    """Every claim about a problem with the recorded verdict, the computed one and its cause."""
    rows = []
    for writeup, claim in claims(problem).iterrows():
        verdict, cause = judge_claim(problem, claim["part"], claim["claimed"], edition)
        rows.append(
            {
                "part": claim["part"],
                "writeup": writeup,
                "claimed": claim["claimed"],
                "recorded": claim["verdict"],
                "computed": verdict,
                "cause": cause,
            }
        )
    return pd.DataFrame(rows).set_index(["part", "writeup"])


def judge_claim(
    problem: str, part: str, claimed: str, edition: Edition = "2025"
) -> tuple[str, str]:
    """The verdict on a claim, and in words what makes the difference.

    >>> judged("transformer_accounting", "a", "2127056000")
    ('other assumptions', 'the final norm is left out')
    >>> judged("adamwAccounting", "b", "batch 3")
    ('right', '')
    """
    found = explain(problem, claimed, part, edition).numbers
    if not found:
        return _largest_part(claimed, edition)
    by_cause: dict[str, list[str]] = {}
    verdicts = {RIGHT}
    for each in found:
        verdict, cause = _verdict(each, problem, part, edition)
        verdicts.add(verdict)
        if cause:
            by_cause.setdefault(cause, []).append(each.quoted.text)
    worst = max(verdicts, key=(RIGHT, OTHERWISE, SLIP, UNEXPLAINED).index)
    if len(found) == 1:  # no need to say which number is meant
        return worst, "".join(by_cause)
    return worst, "; ".join(f"{', '.join(texts)}: {cause}" for cause, texts in by_cause.items())


def _verdict(found: Found, problem: str, part: str, edition: Edition) -> tuple[str, str]:
    """The verdict on one number, and why it is what it is: "" where it is what was asked for."""
    if found.explanations:
        changes = found.explanations[0].changes
        return (OTHERWISE, " + ".join(changes)) if changes else (RIGHT, "")
    sizes = SIZES if (problem, part) == ("transformer_accounting", "d") else ("xl",)
    ours = [
        answer.value
        for size in sizes
        for answer in answers(problem, part, asked(problem, part, edition, size)).values()
    ]
    # A number without its unit may be in GB.
    scaled = [found.quoted.value * scale for scale in (1, 1e9)]
    off = min((one / right - 1 for one in scaled for right in ours if right), key=abs)
    if abs(off) > NEAR:
        return UNEXPLAINED, "no stated assumption gives this"
    return SLIP, f"{100 * abs(off):.2g} % too {'much' if off > 0 else 'little'}"


def _largest_part(claimed: str, edition: Edition) -> tuple[str, str]:
    """The verdict on a claim in words: does it name the part that needs most FLOPs?"""
    given = asked("transformer_accounting", "c", edition)
    shares = {
        "feed-forward": "feed-forward layers",
        "projections": "projections",
        "scores": "scores and weighted sums",
        "head": "head",
    }
    found = answers("transformer_accounting", "c", given)
    values = {part: found[f"share of the {name}"].value for part, name in shares.items()}
    named = [part for part, words in PARTS.items() if re.search(words, claimed, re.I)]
    largest = max(values, key=lambda part: values[part])
    if named == [largest]:
        return RIGHT, ""
    share = " and ".join(f"the {part} need {values[part]:.1%}" for part in named) or "none is named"
    return "wrong", f"{share}, the {largest} layers {values[largest]:.1%}"
