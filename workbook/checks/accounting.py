"""The checks of the two accounting problems: is a number right, or which assumption gives it?

Right is what the problem states, to the digits that are written. Where the course leaves a choice
(how AdamW's operations are counted, which activations are kept, d_ff of the smaller models), every
choice is right. A number that other assumptions give is wrong, and they are named.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from typing import Any, NamedTuple

from workbook import config
from workbook.accounting.answers import significant
from workbook.accounting.explain import SIZES, Amount, Explanation, listed, outcomes, shared_cause
from workbook.accounting.explain import ways as explanations
from workbook.accounting.training import DAY, GB, HOUR
from workbook.checks.verdicts import NotAttempted, Words, Wrong
from workbook.checks.written import Number, entry, judged, number
from workbook.config import Edition

MODEL, ADAMW = "transformer_accounting", "adamwAccounting"
# What the course leaves open: the assumptions that may be made, and their values.
OPEN: dict[str, dict[str, tuple]] = {
    MODEL: {"d_ff": ("4", "64", "8/3"), "head": (False,), "every_block": (False,)},
    ADAMW: {
        "d_ff": ("8/3",),
        "matrices": (3,),
        "residual_copies": (1,),
        "embedding_output": (True,),
        "moments": ("2 + 3",),
        "bias_corrections": (1, 2),
        "epsilon": (False,),
        "decay": (3,),
        "by_parameters": (True,),
    },
}
# How far a number may be off that is computed from rounded ones.
SLACK = {"seconds": 1e-2, "bytes per sequence": 1e-2, "factor": 1e-2}
SIZE = {size: f"GPT-2 {size}" for size in SIZES}
PARTS = {  # of the model
    "feed-forward": r"ffns?|feed.?forward|mlps?|swi?glu|w[123]",
    "scores": r"(?:attention )?scores?|quer(?:y|ies).keys?|qk|dot products?|weighted sums?|softmax",
    "attention": r"(?:self.|multi.head )*attention|attn|mha",
    "projections": r"(?:attention )?(?:projections?|proj)|qkvo?",
    "head": r"(?:lm|language|output|final).(?:head|projection)|head|logits?|unembedding|vocab\w*",
}
# What an entry of a dict is, by a piece of its key: a piece of the quantity's name.
LABELS = {rf"\b(?:{names})\b": part for part, names in PARTS.items()} | {
    r"\bblocks?\b": "blocks",
    r"\b(?:small|medium|large)\b": "GPT-2",
    r"growth|factor|ratio": "growth",
    r"optim|adam|moment|state": "optimizer",
    r"\bper.param|param|weights|grad": "parameter",
    r"\bstep": "of a step",
    r"^a\b|activation|sequence": "per sequence",
    r"^b\b|fixed|static": "whatever",
    r"batch": "largest batch",
    r"share": "share",
    r"total|\bsum\b|flop|memory|byte|[kmgt]i?b\b|time|hour|day|year|second": "",
}
PLACES = {  # what the numbers of a tuple are
    (MODEL, "a"): ("parameters", "bytes"),
    (MODEL, "d"): SIZES,
    (ADAMW, "a"): ("parameters", "gradients", "optimizer", "total"),
    (ADAMW, "b"): ("a", "b", "batch"),
}
WHY = {  # each other part needs less
    "scores": "Scores and weighted sums grow with the square of the context; at 1,024 tokens that"
    " is less than the width of the matrices adds. Put each matmul's FLOPs in a table.",
    "attention": "Attention has four matmuls of d × d and two of T × T; the feed-forward layer has"
    " three of d × d_ff, and d_ff is far larger than d. Put each matmul's FLOPs in a table.",
    "projections": "The projections are d × d; a feed-forward matrix is d × d_ff.",
    "head": "The head is one large matmul, but there is only one of it; the blocks come 48 times.",
}


class Handed(NamedTuple):
    """A number that was handed in, and pieces of the name of what it must be."""

    amount: Amount
    of: tuple[str, ...]

    def fits(self, way: Explanation) -> bool:
        """True for a number of what is meant."""
        return all(piece in way.quantity for piece in self.of)

    def agrees(self, way: Explanation) -> bool:
        """True for the value itself, rounded or cut off to the digits that were written."""
        for unit, scale, slip in self.amount.readings():
            if slip or unit != way.unit or not self.fits(way):
                continue
            off = way.value - self.amount.value * scale
            half = max(self.amount.half * scale, 1e-9 * way.value)
            if unit in ("batch", "per parameter"):  # which are whole numbers, and never rounded
                half = 0
            cut_off = self.amount.digits > 2 and 0 <= off < 2 * half
            if cut_off or abs(off) <= half + SLACK.get(unit, 0) * way.value:
                return True
        return False


STATUSES = ("right", "open", "elsewhere", "explained", "none")


class Verdict(NamedTuple):
    """What can be said about one number."""

    status: str  # of STATUSES, the best first
    handed: Handed
    ways: tuple[Explanation, ...] = ()


def _judged(problem: str, part: str, attempt: Any) -> str | None:
    """Praise for numbers that all fit; None where one of them is no number."""
    edition = config.edition()
    if (problem, part) == (MODEL, "c"):
        named = _part_of_model(attempt[0] if isinstance(attempt, tuple | list) else attempt)
        if named in WHY:
            raise Wrong("Another part needs more.", got=Words(named), mistake=WHY[named])
        if named and (isinstance(attempt, str) or len(attempt) == 1):
            return "The feed-forward layers: three matmuls with the widest matrices in each block."
        attempt = {"feed-forward": attempt[1:]} if named else attempt
    if (problem, part) == (MODEL, "b") and (total := _sum(attempt)):
        attempt = total
    found = list(_handed(attempt, problem, part))
    if not found or None in found:
        return None
    verdicts = [
        min((_verdict(each, problem, part, edition) for each in meant), key=_rank)
        for meant in found
    ]
    if bad := [each for each in verdicts if each.status in ("explained", "none")]:
        cause = shared_cause([each.ways for each in bad if each.ways])
        first = min(bad, key=lambda verdict: verdict.status != "explained")
        shared = tuple(way for way in first.ways if cause and way.flipped == cause)
        _refuse(first._replace(ways=shared or first.ways), problem, part, edition)
    if (problem, part) == (ADAMW, "b"):
        _expect_batch_to_follow([verdict.handed for verdict in verdicts])
    return _praise(verdicts, edition)


def _expect_batch_to_follow(found: list[Handed]) -> None:
    """Raise where a, b and the batch are each right, but not together."""
    values = {each.of[-1]: each.amount.value for each in found}
    a, b, batch = (values.get(name) for name in ("per sequence", "whatever", "largest batch"))
    if a and b and batch and batch != (80 * GB - b) // a:
        raise Wrong(
            "Your own a and b give another batch.",
            given=Words(f"(80 - {b / GB:.4g}) / {a / GB:.4g}, rounded down"),
            expected=Words(f"{(80 * GB - b) // a:g}"),
            got=Words(f"{batch:g}"),
        )


def _part_of_model(name: Any) -> str | None:
    """The part of the model that a text is a name of, and nothing else."""
    plain = re.sub(r"\W+$|\b(?:the|layers?|networks?|parts?|matmuls?|products?|need most)\b", "",
                   name, flags=re.I) if isinstance(name, str) else ""  # fmt: skip
    plain = " ".join(plain.split())
    return next((part for part, names in PARTS.items() if re.fullmatch(names, plain, re.I)), None)


def _handed(value: Any, problem: str, part: str, labels: tuple[str, ...] = ()) -> Iterator:
    """What each number of an attempt may be meant as; None for what is no number."""
    if isinstance(value, dict):
        for key, each in value.items():
            nested = isinstance(each, dict | list | tuple)
            yield from _handed(each if nested else entry(key, each), problem, part, (*labels, key))
    elif isinstance(value, list | tuple) and not isinstance(value, Number):
        largest = max((n.value for each in value if (n := number(each))), default=0)
        for i, each in enumerate(value):
            place = PLACES.get((problem, part), ())[i : i + 1] if len(value) > 1 else ()
            if (problem, part) == (MODEL, "b") and (n := number(each)) and n.value < largest:
                place = ("share",)
            yield from _handed(each, problem, part, (*labels, *place))
    else:
        found = value if isinstance(value, Number) else number(value)
        yield found and _meant(found, problem, part, " ".join(map(str, labels)))


def _rank(verdict: Verdict) -> int:
    return STATUSES.index(verdict.status)


def _meant(found: Number, problem: str, part: str, label: str) -> list[Handed]:
    """A number with the kinds that it may be of: its unit says it, or its label, or the problem."""
    if float(found.digits) <= 0:
        raise Wrong("That is no amount.", got=Words(str(found)))
    text, label = str(found), label.lower().replace("_", " ")
    names = [piece for form, piece in LABELS.items() if re.search(form, label)]
    if label and not names:
        raise NotAttempted(f"It is not known here what {label!r} is.")
    if (problem, part) == (MODEL, "c"):
        names = names or ["feed-forward"]
    size = next((SIZE[size] for size in SIZES if size in label), "")
    of = (size, *(name for name in names[:1] if name != "GPT-2"))
    of_part = problem == MODEL and bool({*of} & {*PARTS, "blocks", "share"})
    good = _good(problem, part, config.edition())  # what is asked comes first
    if found.kind == "per parameter" and part == "a":  # 16 P
        count = next(way.value for way in good if way.unit == "count")
        found = Number(f"{float(found.digits) * count:.0f}", "bytes")
    if found.kind == "share" and not of_part:
        raise NotAttempted('Of which part is that the share? Hand in a dict, such as {"head": 12}.')
    units = [found] if found.kind else _units(found, problem, part, label, of_part)
    amounts = [_amount(each, text) for each in units]
    amount = amounts[0]
    if of_part and amount.kind == "flops":  # is taken as a share of the total
        total = next(way.value for way in good if way.unit == "flops" and size in way.quantity)
        kept = {"value": amount.value / total, "half": amount.half / total, "kind": "share"}
        return [Handed(replace(amount, **kept), of)]
    if amount.kind == "batch" and not amount.value.is_integer():
        raise Wrong(
            "A batch is a whole number of sequences.",
            got=Words(text),
            mistake="Round down: the room left was divided, and no part of a sequence can be"
            " trained on.",
        )
    if amount.digits < 2 and amount.kind in ("count", "bytes", "flops", "seconds"):
        raise NotAttempted("That is too coarse to be checked. Give two digits at least.")
    alone = (problem, part) == (ADAMW, "a") and not label  # which asks for their sum
    in_sum = ("all but",) if alone else of
    return [Handed(each, in_sum if each.kind == "bytes" else of) for each in amounts]


def _units(found: Number, problem: str, part: str, label: str, of_part: bool) -> list[Number]:
    """A number without a unit in the ones that it may be in; `study.problems` tells which."""
    value = found.value

    def in_unit(kind: str, scale: float = 1, unit: str = "") -> list[Number]:
        return [found._replace(kind=kind, scale=scale, unit=unit)]

    if (of_part or (problem, part) == (MODEL, "c")) and value <= 100:
        return in_unit("share", 1 if value <= 1 else 0.01)
    if (problem, part) == (MODEL, "e") and value < 1_000:
        return in_unit("factor")
    if (problem, part) == (ADAMW, "b"):
        if not label or "batch" in label:
            return in_unit("batch")
        return in_unit("bytes", *((1, "bytes") if value >= 1e6 else (GB, "GB")))
    if (problem, part) == (ADAMW, "c") and value < 1_000:
        return in_unit("per parameter")
    if (problem, part) == (ADAMW, "d"):
        in_days = config.edition() == "2025"
        return in_unit("seconds", *((DAY, "days") if in_days else (HOUR, "hours")))
    if value < 1e6:
        raise NotAttempted(
            f"Is {found.digits} in billions, or in which unit? Without one a number is taken as it"
            ' stands: write 2.1e9, or a text such as "8.5 GB" or "3.5 TFLOPs".'
        )
    if part != "a":
        return in_unit("flops")
    count, memory = in_unit("count"), in_unit("bytes", 1, "bytes")
    if re.search("byte|memory", label):
        return memory
    return count + memory if problem == MODEL else memory + count


def _amount(found: Number, text: str) -> Amount:
    """A number with what its digits say: the zeros of 350,000,000,000 may only hold the place."""
    written = re.sub(r"(?<=\d{6})\.0$", "", found.digits)  # as Python shows a float
    plain, short = Decimal(written), Decimal(written).normalize()
    zeros = "." not in written and plain >= 1_000 and short.as_tuple().exponent > 1
    shown = short if zeros and len(short.as_tuple().digits) < 6 else plain
    half = 0.5 * 10.0 ** shown.as_tuple().exponent * found.scale
    return Amount(found.value, half, found.kind, found.unit, len(shown.as_tuple().digits), text)


def _sum(attempt: Any) -> float | None:
    """The sum of the FLOPs of all matmuls, if it is right: then their labels do not matter."""
    if not isinstance(attempt, dict | list | tuple):
        return None
    items = attempt.items() if isinstance(attempt, dict) else enumerate(attempt)
    found = [entry(*item) for item in items]
    if not all(found):
        return None
    total, half = sum(each.value for each in found), sum(_amount(each, "").half for each in found)
    good = _good(MODEL, "b", config.edition())
    right = (way.value for way in good if way.unit == "flops")
    return total if any(abs(total - value) <= half for value in right) else None


@cache
def _good(problem: str, part: str, edition: Edition) -> tuple[Explanation, ...]:
    """All numbers of a part that are right, those that make fewest choices first."""
    sizes = SIZES if (problem, part) == (MODEL, "d") else ("xl",)
    every = (
        way
        for size in sizes
        for some in outcomes(problem, part, edition, size).values()
        for way in some
    )
    return tuple(
        sorted(
            (way for way in every if _is_open(way, problem, part, edition)),
            key=lambda way: len(way.changes),
        )
    )


def _is_open(way: Explanation, problem: str, part: str, edition: Edition) -> bool:
    """True for a number that the course's own choices give."""
    allowed = dict(OPEN[problem])
    if (problem == ADAMW and edition == "2025") or (problem == MODEL and part != "d"):
        del allowed["d_ff"]  # which is given
    if problem == MODEL and (way.unit != "share" or part == "b"):  # shares may be of the blocks
        del allowed["head"], allowed["every_block"]
    return all(switch.value in allowed.get(switch.field, ()) for switch in way.flipped)


def _verdict(handed: Handed, problem: str, part: str, edition: Edition) -> Verdict:
    """The verdict on one number; other editions' values are right there, and said to be."""
    fitting = tuple(way for way in _good(problem, part, edition) if handed.agrees(way))
    if fitting:
        return Verdict("open" if fitting[0].changes else "right", handed, fitting)
    other: Edition = "2026" if edition == "2025" else "2025"
    there = (way for way in _good(problem, part, other) if not way.changes and handed.agrees(way))
    if handed.amount.digits > 2 and (way := next(there, None)):
        return Verdict("elsewhere", handed, (way,))
    amount = handed.amount
    found = [w for w in explanations(problem, amount, part, edition) if handed.fits(w)]
    if not found and (room := SLACK.get(amount.kind)):  # the nearest cause alone
        loose = replace(amount, half=amount.half + room * amount.value)
        near = explanations(problem, loose, part, edition)
        free = OPEN[problem]
        found = [
            way
            for way in near
            if handed.fits(way)
            and bool(way.slip) + sum(s.value not in free.get(s.field, ()) for s in way.flipped) < 2
        ][:1]
    return Verdict("explained" if found else "none", handed, tuple(found))


def _refuse(verdict: Verdict, problem: str, part: str, edition: Edition) -> None:
    """Raise `Wrong`, with the assumptions that give the number or with how far off it is."""
    amount = verdict.handed.amount
    unbound = Handed(amount, ())
    if way := next((way for way in _good(problem, part, edition) if unbound.agrees(way)), None):
        raise Wrong(
            "That is a right number, but of something else.",
            got=Words(amount.text),
            mistake=f"It is: {way.quantity}. Are labels or places mixed up?",
        )
    if verdict.status == "explained":
        fewest = len(verdict.ways[0].changes)
        few = [way for way in verdict.ways if len(way.changes) == fewest]
        causes = list(dict.fromkeys(listed(way.changes) for way in few))
        raise Wrong(
            f"That is not right for: {verdict.ways[0].quantity}.",
            got=Words(amount.text),
            mistake="Your number is what comes out when " + "; or when ".join(causes[:3]) + ".",
        )
    raise Wrong(
        "That is not the number, and no stated assumption gives it.",
        expected=_how_far(verdict.handed, problem, part, edition),
        got=Words(amount.text),
    )


def _how_far(handed: Handed, problem: str, part: str, edition: Edition) -> Words:
    """By how much the nearest right number differs."""
    ratios = [
        (way.value / (handed.amount.value * scale), way.changes)
        for way in _good(problem, part, edition)
        for unit, scale, slip in handed.amount.readings()
        if unit == way.unit and not slip and handed.fits(way)
    ]
    ratio, changes = min(ratios, key=lambda pair: max(pair[0], 1 / pair[0]), default=(0, ()))
    if not 0.1 < ratio < 10:
        return Words("a number of another size, or in another unit")
    off = f"{significant(abs(ratio - 1) * 100, 2)} % {'more' if ratio > 1 else 'less'}"
    where = f", where {listed(changes)}" if changes else ""
    slip = ": is it a slip in a sum?" if abs(ratio - 1) < 0.03 else ""
    return Words((off if 0.5 < ratio < 2 else f"about {ratio:.2g} times as much") + where + slip)


def _praise(verdicts: list[Verdict], edition: Edition) -> str:
    """What is said of numbers that are right, with the assumptions of those in another reading."""
    said: dict[str, list[str]] = {}
    other = "2026" if edition == "2025" else "2025"
    for verdict in verdicts:
        way = verdict.ways[0]
        words = f"{way.quantity}."
        if verdict.status == "open":
            words = f"{way.quantity}, right where {listed(way.changes)}. Say so in the answer."
        elif verdict.status == "elsewhere":
            words = (
                f"right in edition {other} of the handout ({way.quantity}). Here edition {edition}"
                f" is chosen: set WORKBOOK_EDITION={other} if yours is that one."
            )
        said.setdefault(words, []).append(verdict.handed.amount.text)
    return " ".join(f"{', '.join(dict.fromkeys(texts))}: {words}" for words, texts in said.items())


transformer_accounting = partial(judged, {part: partial(_judged, MODEL, part) for part in "abcde"})
adamwAccounting = partial(  # noqa: N816 - the problem's id
    judged, {part: partial(_judged, ADAMW, part) for part in "abcd"}
)
