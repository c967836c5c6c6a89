"""The judgement of a number in an answer about costs: right, right in another reading, or why not.

Right is what the problem states, to the digits that are quoted. Where the course leaves a choice
(how AdamW's operations are counted, which activations are kept, d_ff of the smaller models), every
choice is right. A number that other assumptions give is wrong, and they are named.
"""

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from workbook.accounting import asked_model, forward_flops, parameters
from workbook.accounting.answers import Figure, answers, significant
from workbook.accounting.assumptions import asked
from workbook.accounting.explain import SIZES, Explanation, listed, ways
from workbook.checks.figures import LONGEST
from workbook.checks.quoted import Quoted, quoted_in
from workbook.checks.verdicts import NotAttempted, Words, Wrong, kind_of
from workbook.config import EDITIONS, Edition, gpt2

MODEL, ADAMW = "transformer_accounting", "adamwAccounting"
# What the course leaves open: by part the assumptions that may be made, and their values.
OPEN: dict[tuple[str, str], dict[str, tuple]] = {
    (MODEL, "c"): {"head": (False,), "every_block": (False,)},  # shares of the blocks
    (MODEL, "d"): {"d_ff": ("4", "64", "8/3"), "head": (False,), "every_block": (False,)},
    (MODEL, "e"): {"head": (False,), "every_block": (False,)},
    (ADAMW, "a"): {"d_ff": ("8/3",), "matrices": (3,)},
    (ADAMW, "b"): {
        "d_ff": ("8/3",),
        "matrices": (3,),
        "residual_copies": (1,),
        "embedding_output": (True,),
    },
    (ADAMW, "c"): {
        "d_ff": ("8/3",),
        "matrices": (3,),
        "moments": ("2 + 3",),
        "bias_corrections": (1, 2),
        "epsilon": (False,),
        "decay": (3,),
    },
    (ADAMW, "d"): {"d_ff": ("8/3",), "matrices": (3,), "by_parameters": (True,)},
}
MOST_NUMBERS = 150  # of an answer
# How far a number may be off whose parts were rounded on the way, or differ by tiny tensors.
SLACK = {"seconds": 1e-2, "bytes per sequence": 1e-3}
KINDS = {  # of quoted numbers that can answer a part, with the least that is worth judging
    (MODEL, "a"): {"count": 1e6, "bytes": 1e8},
    (MODEL, "b"): {"flops": 1e9, "count": 1e9},
    (MODEL, "c"): {"share": 0},
    (MODEL, "d"): {"flops": 1e9, "count": 1e9, "share": 0},
    (MODEL, "e"): {"flops": 1e9, "count": 1e9, "share": 0, "factor": 0},
    (ADAMW, "a"): {"count": 1e6, "bytes": 1e8},
    (ADAMW, "b"): {"bytes": 1e8},
    (ADAMW, "c"): {"flops": 1, "per parameter": 0},
    (ADAMW, "d"): {"seconds": 86_400},
}


@dataclass(frozen=True)
class Verdict:
    """What can be said about one number."""

    status: Literal["right", "open", "elsewhere", "explained", "none"]
    quoted: Quoted
    ways: tuple[Explanation, ...] = ()

    @property
    def good(self) -> bool:
        """True for a number that need not be refused."""
        return self.status in ("right", "open", "elsewhere")


def judged(quoted: Quoted, problem: str, part: str, edition: Edition) -> Verdict:
    """The verdict on one number; other editions' values are right there, and said to be."""
    found = ways(problem, quoted, part, edition)
    loose = None
    if not found and part == "d" and problem == ADAMW:  # the last of a chain of rounded numbers
        loose = replace(quoted, half=quoted.half + SLACK["seconds"] * quoted.value)
        found = tuple(w for w in ways(problem, loose, part, edition) if len(w.changes) < 2)
    right = [way for way in found if not way.changes]
    right = right or _nearly(quoted, problem, part, edition)
    if right:
        return Verdict("right", quoted, tuple(right))
    free = tuple(way for way in found if _is_open(way, problem, part, edition))
    if free:
        return Verdict("open", quoted, free)
    other: Edition = "2026" if edition == "2025" else "2025"
    if quoted.digits > 2:
        there = [way for way in ways(problem, quoted, part, other) if not way.changes]
        there = there or _nearly(quoted, problem, part, other)
        if there:
            return Verdict("elsewhere", quoted, tuple(there))
    # Among all that is near a number, the cause that is named should be the nearest.
    return Verdict("explained" if found else "none", quoted, found[:1] if loose else found)


def _is_open(way: Explanation, problem: str, part: str, edition: Edition) -> bool:
    """True for a number that the course's own choices give, without a slip in its unit."""
    allowed = dict(OPEN.get((problem, part), {}))
    if problem == ADAMW and edition == "2025":  # which says 4·d_model
        allowed.pop("d_ff", None)
    only_shares = {"head", "every_block"} & {switch.field for switch in way.flipped}
    return (
        len(way.changes) == len(way.flipped)
        and all(switch.value in allowed.get(switch.field, ()) for switch in way.flipped)
        and (way.unit == "share" or not only_shares)
    )


def stated(problem: str, part: str, edition: Edition) -> dict[str, Figure]:
    """The right numbers of a part by name, those of all three sizes for (d)."""
    if (problem, part) != (MODEL, "d"):
        return answers(problem, part, asked(problem, part, edition))
    return {
        f"{name}, GPT-2 {size}": answer
        for size in SIZES
        for name, answer in answers(problem, part, asked(problem, part, edition, size)).items()
    }


def _nearly(quoted: Quoted, problem: str, part: str, edition: Edition) -> list[Explanation]:
    """The right numbers that agree with one whose last digit was cut off, or rounded on the way."""
    found = []
    for name, answer in stated(problem, part, edition).items():
        for unit, scale, slip in quoted.readings():
            value, half = quoted.value * scale, quoted.half * scale
            cut_off = quoted.digits > 2 and 0 <= answer.value - value < 2 * half
            close = abs(answer.value - value) <= SLACK.get(unit, 0) * answer.value
            if not slip and unit == answer.unit and (cut_off or close) and unit != "batch":
                found.append(Explanation(name, answer.value, unit))
    return found


def as_text(attempt: Any) -> str:
    """A text, or a dict as one; of anything else nothing."""
    if isinstance(attempt, dict):
        return "; ".join(_lines(attempt))
    return attempt if isinstance(attempt, str) else ""


def figures(attempt: Any, expected: str) -> list[Quoted]:
    """The numbers of an attempt of any kind; `expected` says in words what may be handed in."""
    if isinstance(attempt, dict):
        attempt = as_text(attempt)
    if isinstance(attempt, str):
        if not attempt.strip():
            raise NotAttempted
        if len(attempt) > LONGEST:
            raise Wrong("That is longer than an answer can be.", expected=Words(expected))
    if isinstance(attempt, tuple | list) and not attempt:
        raise NotAttempted
    try:
        found = quoted_in(attempt)
    except TypeError:
        got = Words(kind_of(attempt))
        raise Wrong("That cannot be read.", expected=Words(expected), got=got) from None
    except ValueError as error:
        raise Wrong("That is no amount.", expected=Words(expected), got=Words(str(error))) from None
    if isinstance(attempt, str) and re.fullmatch(r"\s*-\d[\d.,]*\s*\w{0,5}\s*", attempt):
        raise Wrong("That is no amount.", expected=Words(expected), got=Words(attempt[:60]))
    if len(found) > MOST_NUMBERS:
        said = Words(f"{len(found):,} numbers")
        raise Wrong("Those are too many numbers to look at.", expected=Words(expected), got=said)
    return found


_UNIT_OF_KEY = {
    r"gib": "GiB",
    r"mib": "MiB",
    r"(?:\b|_)gb\b|gigabyte": "GB",
    r"(?:\b|_)mb\b|megabyte": "MB",
    r"tflop|tera": "TFLOPs",
    r"gflop|giga": "GFLOPs",
    r"percent|pct|%": "%",
    r"billion": "billion",
    r"million": "million",
    r"hour": "hours",
    r"day": "days",
    r"year": "years",
    r"second": "seconds",
}


def _lines(entries: dict) -> list[str]:
    """The entries of a dict as text, each number with the unit that its key names."""
    lines = []
    for key, value in entries.items():
        if isinstance(value, dict):
            lines += _lines(value)
            continue
        several = value if isinstance(value, tuple | list) else [value]
        units = (u for k, u in _UNIT_OF_KEY.items() if re.search(k, str(key), re.I))
        unit = next(units, "")
        for each in several:
            lines.append(f"{key}: {each} {'' if isinstance(each, str) else unit}".strip())
    return lines


def refuse(verdict: Verdict, problem: str, part: str, edition: Edition) -> None:
    """Raise `Wrong`, with the assumptions that give the number or with how far off it is."""
    quoted = verdict.quoted
    large = quoted.kind in ("count", "bytes", "flops", "seconds") or quoted.value >= 1_000
    if quoted.digits < 2 and verdict.status == "none" and large:
        raise NotAttempted("That is too coarse to be checked. Give two digits at least.")
    if verdict.status == "explained":
        few = [way for way in verdict.ways if len(way.changes) == len(verdict.ways[0].changes)]
        causes = list(dict.fromkeys(listed(way.changes) for way in few))
        mistake = "Your number is what comes out when " + "; or when ".join(causes[:3]) + "."
        raise Wrong(_wrong_claim(verdict.ways[0].unit), got=Words(quoted.text), mistake=mistake)
    claim = "That is not the number, and no stated assumption gives it."
    raise Wrong(claim, expected=_how_far(quoted, problem, part, edition), got=Words(quoted.text))


def _wrong_claim(unit: str) -> str:
    named = {
        "count": "That is not the number of parameters.",
        "bytes": "That is not the memory.",
        "bytes per sequence": "That is not the memory of one sequence.",
        "flops": "Those are not the FLOPs.",
        "share": "That is not the share.",
        "seconds": "That is not the time.",
        "batch": "That is not the largest batch.",
    }
    return named.get(unit, "That is not the number.")


def _how_far(quoted: Quoted, problem: str, part: str, edition: Edition) -> Words:
    """By how much the right number differs, the nearest if there are several."""
    ratios = []
    for answer in stated(problem, part, edition).values():
        for unit, scale, slip in quoted.readings():
            if unit == answer.unit and not slip and quoted.value > 0 and answer.value > 0:
                ratios.append(answer.value / (quoted.value * scale))
    nearest = min(ratios, key=lambda ratio: max(ratio, 1 / ratio), default=None)
    if nearest is None or not 0.1 < nearest < 10:
        return Words("a number of another size, or in another unit")
    if not 0.5 < nearest < 2:
        return Words(f"about {nearest:.2g} times as much")
    off = abs(nearest - 1)
    slip = ": is it a slip in a sum?" if off < 0.03 else ""
    return Words(f"{significant(off * 100, 2)} % {'more' if nearest > 1 else 'less'}{slip}")


def praise(verdicts: list[Verdict], edition: Edition) -> str:
    """What is said of numbers that are right, with the assumptions of those in another reading."""
    said: dict[str, list[str]] = {}
    other = "2026" if edition == "2025" else "2025"
    for verdict in verdicts:
        way = verdict.ways[0]
        if verdict.status == "open":
            words = f"right where {listed(way.changes)}. Say so in the answer."
        elif verdict.status == "elsewhere":
            words = (
                f"right in edition {other} of the handout ({way.quantity}). Here edition {edition}"
                f" is chosen: set WORKBOOK_EDITION={other} if yours is that one."
            )
        else:
            words = f"{way.quantity}."
        said.setdefault(words, []).append(verdict.quoted.text)
    return " ".join(f"{', '.join(dict.fromkeys(texts))}: {words}" for words, texts in said.items())


def is_row(value: float, edition: Edition, half: float = 0.0) -> bool:
    """True for a number that is a row of a table, or what a part of the model adds up to."""
    tables = [
        table(model(name))
        for name in EDITIONS
        for model in (partial(gpt2, "xl"), asked_model)
        for table in (parameters, forward_flops)
    ]
    rows = [row for table in tables for row in table]
    # Q, K and V are one step to many, and so are the three matrices of SwiGLU.
    steps = {each for row in rows for each in (row.each, 3 * row.each, row.total)}
    for table in tables:
        steps |= {*table.by_part().values()}
        steps.add(sum(row.each for row in table if row.times > 1))  # one block
        steps.add(sum(row.total for row in table if row.times > 1))  # all blocks
    return any(abs(value - step) <= max(5e-3 * step, half) for step in steps)
