"""The checks of the two accounting problems: is a number right, or what assumption gives it?

A number is right if the problem gives it, to the digits written. Where the course leaves a choice
(how AdamW's operations are counted, which activations are kept, d_ff of the smaller models), every
choice is right. A number that other assumptions give is wrong, and they are named.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

from workbook import config
from workbook.accounting.answers import answers, significant
from workbook.accounting.assumptions import asked
from workbook.accounting.explain import SIZES, Amount, Explanation, listed, outcomes, shared_cause
from workbook.accounting.explain import ways as explanations
from workbook.accounting.training import DAY, GB, HOUR
from workbook.checks.verdicts import NotAttempted, Words, Wrong
from workbook.checks.written import Number, entries, entry, judged, number
from workbook.config import EDITIONS, Edition

MODEL, ADAMW = "transformer_accounting", "adamwAccounting"
# What the course leaves open: the assumptions that may be made, and their values.
OPEN: dict[str, dict[str, tuple]] = {
    MODEL: {"d_ff": ("4", "64", "8/3"), "head": (False,), "every_block": (False,)},
    ADAMW: {"d_ff": ("8/3",), "matrices": (3,), "residual_copies": (1,), "decay": (3,)}
    | {"moments": ("2 + 3",), "bias_corrections": (1, 2), "epsilon": (False,)}
    | {"embedding_output": (True,), "by_parameters": (True,)},
}
# How far off a number may be that was computed from rounded ones.
SLACK = {"seconds": 1e-2, "bytes per sequence": 1e-2, "factor": 1e-2}
PARTS = {  # of the model, by their names
    "feed-forward": r"(?:swi?glu.|position.?wise.)?(?:ffns?|feed.?forward|mlps?|swi?glu|w[123])",
    "scores": r"(?:attention )?scores?|quer(?:y|ies).keys?|qk|dot products?|weighted sums?|softmax",
    "attention": r"(?:self.|multi.head )*attention|attn|mha",
    "projections": r"(?:attention |qkvo? )?(?:projections?|proj)|qkvo?",
    "head": r"(?:lm|language|output|final|vocab\w*).(?:head|projection)|head|logits?|unembedding"
    r"|vocab\w*",
}
# What an entry of a dict is, by a piece of its key: a piece of the quantity's name.
LABELS = {r"\b(?:before|old|1,?024)\b": None}  # of another part
LABELS |= {rf"\b(?:{names})\b": part for part, names in PARTS.items()} | {
    r"\bblocks?\b": "blocks",
    r"growth|factor|ratio|increase|times|multipl": "growth",
    r"optim|adam|moments|state": "optimizer",
    r"\bper.param|param|count|weights|grad|moment|^[mvp]\b": "parameter",
    r"\bstep": "of a step",
    r"^a\b|activation|sequence": "per sequence",
    r"^b\b|fixed|static": "whatever",
    r"batch": "largest batch",
    r"share": "share",
    r"^$|total|\bsum\b|flop|memory|byte|[kmgt]i?b\b|time|hour|day|year|second|size": "",
}
PLACES = {  # what the numbers of a tuple are
    (MODEL, "a"): ("parameters", "bytes"),
    (MODEL, "d"): (*SIZES, "xl"),
    (MODEL, "e"): ("flops", "growth", "scores"),
    (ADAMW, "a"): ("parameters", "gradients", "optimizer", "total"),
    (ADAMW, "b"): ("a", "b", "batch"),
}
# What a small number without a unit measures; a large one measures what most parts ask for.
SMALL = {
    (MODEL, "c"): "share",
    (MODEL, "e"): "factor",
    (ADAMW, "b"): "batch",
    (ADAMW, "c"): "per parameter",
    (ADAMW, "d"): "seconds",
}
NOT_ASKED = {(ADAMW, "c"): {"count"}, (ADAMW, "d"): {"flops", "count"}}  # intermediate results
LARGE = {(MODEL, "a"): ("count", "bytes"), (ADAMW, "a"): ("bytes", "count")}
HINTS = {  # where no assumption gives a number
    (
        MODEL,
        "e",
    ): "With 16 times the tokens, the T × T matmuls need 256 times as many FLOPs, and all "
    "others 16 times as many: the total lies in between.",
    (
        ADAMW,
        "c",
    ): "Count, for one parameter, each multiplication, addition, division and square root in "
    "updating m and v, in the step and in the decay; the forward and backward passes do not count.",
}
WHY = {  # every other part needs less
    "scores": "They grow with the square of the context, but at 1,024 the weights need more.",
    "attention": "It has four matmuls of d × d and two of T × T, the FFN three of d × d_ff.",
    "projections": "They are d × d; a feed-forward matrix is d × d_ff.",
    "head": "It is one large matmul, but there is only one of it, and there are 48 blocks.",
}


class Part(NamedTuple):
    """A part of one of the two problems, in an edition."""

    problem: str
    part: str
    edition: Edition


class Handed(NamedTuple):
    """A number that was handed in, a piece of the name of what it must be, and the model's size."""

    amount: Amount
    of: str
    size: str = ""

    def fits(self, way: Explanation) -> bool:
        """True if the number may be of this quantity."""
        size = way.quantity.partition("GPT-2 ")[2] or "xl"
        return self.of in way.quantity and self.size in ("", size)

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


class Verdict(NamedTuple):
    """What can be said about one number."""

    rank: int  # 0: right, 1: by a choice, 2: in the other edition, 3: wrong, 4: no known cause
    handed: Handed
    ways: tuple[Explanation, ...] = ()


_RANK = itemgetter(0)


def _judged(problem: str, part: str, attempt: Any) -> str | None:
    """Praise for numbers that all fit; None if one of them is not a number."""
    asked_for = Part(problem, part, config.edition())
    if isinstance(attempt, list) and all(isinstance(e, tuple) and len(e) == 2 for e in attempt):
        attempt = dict(attempt)
    if (problem, part) == (MODEL, "c"):
        if isinstance(attempt, dict) and any(map(_part_of_model, attempt.values())):
            attempt = [*attempt.values()]
        named = _part_of_model(attempt[0] if isinstance(attempt, tuple | list) else attempt)
        if named in WHY:
            raise Wrong("Another part needs more.", got=Words(named), mistake=WHY[named])
        if named and (isinstance(attempt, str) or len(attempt) == 1):
            return "The feed-forward layers: three matmuls with the widest matrices in each block."
        attempt = {"feed-forward": attempt[1:]} if named else attempt
    if (
        (problem, part) == (MODEL, "b")
        and not _by_part(attempt)
        and _sums_up(_flat(attempt), asked_for)
    ):
        return "Together they are the FLOPs of a forward pass."
    if (problem, part) == (MODEL, "b") and (total := _total(attempt)):
        attempt = total
    if (problem, part) == (ADAMW, "c"):
        attempt = _operations(attempt)
    if (problem, part) == (MODEL, "e") and isinstance(attempt, list | tuple):
        short = next(way for way in _good(asked_for._replace(part="b")) if way.unit == "flops")
        if len(attempt) > 1 and (n := number(attempt[0])) and abs(n.value / short.value - 1) < 0.01:
            attempt = attempt[1:]  # which was given for comparison
    found = list(_handed(attempt, asked_for))
    if not found or None in found:
        return None
    verdicts = [min((_verdict(each, asked_for) for each in meant), key=_RANK) for meant in found]
    if bad := [each for each in verdicts if each.rank > 2]:
        cause = shared_cause([each.ways for each in bad if each.ways])
        first = min(bad, key=_RANK)
        shared = tuple(way for way in first.ways if cause and way.flipped == cause)
        raise _wrong(first.handed, shared or first.ways, asked_for)
    values = {each.handed.of: each.handed.amount.value for each in verdicts}
    a, b, batch = (values.get(name) for name in ("per sequence", "whatever", "largest batch"))
    if a and b and batch and batch != (80 * GB - b) // a:
        given = Words(f"(80 - {b / GB:.4g}) / {a / GB:.4g}, rounded down")
        right, got = Words(f"{(80 * GB - b) // a:g}"), Words(f"{batch:g}")
        claim = "Your own a and b give a different batch size."
        raise Wrong(claim, given=given, expected=right, got=got)
    return _praise(verdicts, asked_for.edition)


def _part_of_model(name: Any) -> str | None:
    """The part of the model that a text names, if it says nothing else."""
    fillers = r"\W+$|\b(?:the|layers?|blocks?|networks?|parts?|matmuls?|products?)\b"
    name = name.replace("_", " ") if isinstance(name, str) else ""
    plain = " ".join(re.sub(fillers, "", name, flags=re.I).split())
    return next((part for part, names in PARTS.items() if re.fullmatch(names, plain, re.I)), None)


def _sums_up(attempt: Any, part: Part) -> bool:
    """True for a list of matmuls whose FLOPs are right together, whatever they are called.

    Their sum may be among them.
    """
    found = entries(attempt) if isinstance(attempt, dict | list | tuple) else [None]
    if not all(found):
        return False
    amounts = sorted((_amount(each) for each in found), key=lambda each: each.value)
    *parts, largest = amounts
    for way in _good(part):
        for some in (amounts, parts if abs(largest.value - way.value) <= largest.half else []):
            off = abs(sum(each.value for each in some) - way.value)
            room = min(sum(each.half for each in some), 0.01 * way.value)
            if way.unit == "flops" and len(some) > 1 and off <= room:
                return True
    return False


def _by_part(attempt: Any) -> bool:
    """True for a dict in which each of the model's parts occurs once, attention in one piece."""
    plain = isinstance(attempt, dict) and dict not in map(type, attempt.values())
    named = [*map(_piece, attempt)] if plain else []
    allowed = {"attention", "feed-forward", "head", ""}
    return {"attention", "feed-forward"} <= {*named} <= allowed and len({*named}) == len(named)


def _flat(attempt: Any) -> Any:
    """A dict with the entries of the dicts inside it moved up."""
    if not isinstance(attempt, dict):
        return attempt
    inner = {k: v if isinstance(v, dict) else {"": v} for k, v in attempt.items()}
    return {f"{k} {name}".strip(): v for k, each in inner.items() for name, v in each.items()}


def _operations(attempt: Any) -> Any:
    """The sum of the operations for a parameter, where each step's are handed in."""
    found = entries(attempt) if isinstance(attempt, dict | list | tuple) else []
    few = len(found) > 1 and all(each and not each.kind and each.value < 100 for each in found)
    if not few or (isinstance(attempt, dict) and re.search("total|sum|per", f"{[*attempt]}", re.I)):
        total = [v for k, v in attempt.items() if "total" in str(k)] if few else []
        return total[0] if total else attempt
    *steps, last = (round(each.value) for each in found)
    return last if isinstance(attempt, list | tuple) and last == sum(steps) else sum(steps) + last


def _total(attempt: Any) -> int | None:
    """The sum of four matmuls or more, unless each of them is named."""
    found = entries(attempt) if isinstance(attempt, dict | list | tuple) else []
    known = isinstance(attempt, dict) and None not in map(_piece, attempt)
    if known or len(found) < 4 or not all(found):
        return None
    *parts, largest = sorted(each.value for each in found)
    return round(sum(parts) + largest * (largest < 0.9 * sum(parts)))  # else it is their sum


def _piece(label: Any) -> str | None:
    """The piece of a quantity's name that a key means; None for an unknown one."""
    name = str(label).lower().replace("_", " ")
    return next((piece for form, piece in LABELS.items() if re.search(form, name)), None)


def _handed(value: Any, part: Part, labels: tuple[str, ...] = ()) -> Iterator[list[Handed] | None]:
    """What each number of an attempt may be meant as; None for what is not a number."""
    if isinstance(value, dict):
        for key, each in value.items():
            each = each if isinstance(each, dict | list | tuple) else entry(key, each)
            found = list(_handed(each, part, (*labels, str(key))))
            if _part_of_model(key) == "attention" and "scores" in map(_part_of_model, value):
                without = _handed(each, part, (*labels, "projections"))  # scores stand apart
                found = [a and a + b for a, b in zip(found, without, strict=True)]
            yield from found
    elif isinstance(value, list | tuple) and not isinstance(value, Number):
        largest = max((n.value for each in value if (n := number(each))), default=0)
        for i, each in enumerate(value):
            place = PLACES.get(part[:2], ())[i : i + 1] if len(value) > 1 else ()
            if place == ("scores",):  # or of all of attention
                both = [list(_handed(each, part, (*labels, of))) for of in (*place, "attention")]
                yield from (a and a + b for a, b in zip(*both, strict=True))
                continue
            if part[:2] == (MODEL, "b") and (n := number(each)) and n.value < largest:
                place = ("share",)
            yield from _handed(each, part, (*labels, *place))
    else:
        found = value if isinstance(value, Number) else number(value)
        yield found and _meant(found, part, " ".join(labels).lower().replace("_", " "))


def _meant(found: Number, part: Part, label: str) -> list[Handed]:
    """A number with the kinds that it may be, from its unit, its label or the problem."""
    text = str(found)
    if float(found.digits) <= 0:
        raise Wrong("An amount must be positive.", got=Words(text))
    size = next((size for size in (*SIZES, "xl") if size in label), "")
    label = " ".join(re.sub(r"gpt.?2|small|medium|large\b|xl", " ", label).split("-")).strip()
    of = _piece(label)
    if of is None:
        raise NotAttempted(f"The check does not know what {label!r} is.")
    of = "all but" if (of, part[:2]) == ("whatever", (ADAMW, "a")) else of
    of = of or ("feed-forward" if part[:2] == (MODEL, "c") else "")
    of_part = part.problem == MODEL and of in {*PARTS, "blocks", "share"}
    kinds, scale, unit = (found.kind,), found.scale, found.unit
    if not found.kind:
        kinds = (SMALL.get(part[:2], ""),)
        if found.value >= 1e6 and kinds[0] not in ("batch", "seconds"):
            kinds = LARGE.get(part[:2], ("flops",))
        if of_part and found.value <= 100:
            kinds = ("share",)
        if of in ("per sequence", "whatever"):
            kinds, scale = ("bytes",), 1 if found.value >= 1e6 else GB
        if part[:2] == (ADAMW, "d"):
            scale, unit = (DAY, "days") if part.edition == "2025" else (HOUR, "hours")
        scale = 0.01 if kinds == ("share",) and found.value > 1 else scale
        unit = "GB" if scale == GB else unit
        kinds = ("bytes",) if "bytes" in kinds and re.search("byte|memory", label) else kinds
    elif (found.kind, part[:2]) == ("count", (ADAMW, "a")):  # "parameters" may be their bytes
        kinds = ("count", "bytes")
    elif found.kind == "per parameter" and part.part == "a":  # 16 P
        count = next(way.value for way in _good(part) if way.unit == "count")
        found = Number(f"{float(found.digits) * count:.0f}")
        kinds, scale, unit = ("bytes",), 1, ""
    coarse = {"count", "bytes", "flops"} & {*kinds} and float(found.digits) * scale < 1e6
    if coarse or "" in kinds:
        raise NotAttempted(
            f"Is {found.digits} in billions, or in which unit? A number without a unit is taken as"
            ' it is: write 1.2e8, or a text such as "0.5 GB" or "1.2 TFLOPs".'
        )
    kinds = ("flops",) if "flop" in label and kinds == ("seconds",) else kinds
    if {*kinds} <= NOT_ASKED.get(part[:2], {*()}):
        raise NotAttempted(f"{text} is not asked for here: leave it out, and hand in the rest.")
    if kinds == ("share",) and not of_part:
        raise NotAttempted('Which part has that share? Hand in a dict, such as {"head": 12}.')
    found = found._replace(kind=kinds[0], scale=scale, unit=unit)
    amount = replace(_amount(found), text=text)
    if amount.kind == "batch" and not amount.value.is_integer():
        mistake = "Round down: there is no room for part of a sequence."
        raise Wrong("A batch size is a whole number.", got=Words(amount.text), mistake=mistake)
    if of_part and amount.kind == "flops":  # is taken as a share of the total
        meant = Handed(amount, "FLOPs", size)
        total = next(way.value for way in _good(part) if way.unit == "flops" and meant.fits(way))
        share = {"value": amount.value / total, "half": amount.half / total, "kind": "share"}
        return [Handed(replace(amount, **share), of, size)]
    if amount.digits < 2 and amount.kind in ("count", "bytes", "flops", "seconds"):
        raise NotAttempted("That is too coarse to be checked. Give at least two digits.")
    alone = part[:2] == (ADAMW, "a") and not label  # which asks for their sum
    return [
        Handed(replace(amount, kind=kind), "all but" if alone and kind == "bytes" else of, size)
        for kind in kinds
    ]


def _amount(found: Number) -> Amount:
    """A number with its precision: the zeros of 350,000,000,000 may only be placeholders."""
    written = re.sub(r"(?<=\d{6})\.0$", "", found.digits)  # as Python shows a float
    plain, short = Decimal(written), Decimal(written).normalize()
    zeros = "." not in written and plain >= 1_000 and short.as_tuple().exponent > 1
    shown = short if zeros and len(short.as_tuple().digits) < 7 else plain
    half = 0.5 * 10.0 ** shown.as_tuple().exponent * found.scale
    digits = len(shown.as_tuple().digits)
    return Amount(found.value, half, found.kind, found.unit, digits, str(found))


@cache
def _good(part: Part) -> tuple[Explanation, ...]:
    """All right numbers of a part, those with the fewest choices first."""
    sizes = SIZES if part[:2] == (MODEL, "d") else ("xl",)
    every = [way for size in sizes for some in outcomes(*part, size).values() for way in some]
    if part[:2] == (MODEL, "d"):  # the largest belongs to the trend
        largest = answers(MODEL, "d", asked(*part)).items()
        every += [Explanation(name, figure.value, figure.unit) for name, figure in largest]
    right = [way for way in every if _is_open(way, part)]
    return tuple(sorted(right, key=lambda way: len(way.changes)))


def _is_open(way: Explanation, part: Part) -> bool:
    """True for a number that the course's own choices give."""
    allowed = dict(OPEN[part.problem])
    if (part.problem == ADAMW and part.edition == "2025") or part.part in ("a", "b", "c", "e"):
        allowed.pop("d_ff", None)
    if part.problem == MODEL and (way.unit != "share" or part.part == "b"):  # or of the blocks
        del allowed["head"], allowed["every_block"]
    return all(switch.value in allowed.get(switch.field, ()) for switch in way.flipped)


def _verdict(handed: Handed, part: Part) -> Verdict:
    """The verdict on one number; a value of the other edition is right there, and said to be."""
    if fitting := tuple(way for way in _good(part) if handed.agrees(way)):
        return Verdict(bool(fitting[0].changes), handed, fitting)
    (other,) = {*EDITIONS} - {part.edition}
    there = (way for way in _good(part._replace(edition=other)) if not way.changes)
    if handed.amount.digits > 2 and (way := next(filter(handed.agrees, there), None)):
        return Verdict(2, handed, (way,))
    amount, (problem, name, edition) = handed.amount, part
    found = [w for w in explanations(problem, amount, name, edition) if handed.fits(w)]
    if not found and (room := SLACK.get(amount.kind)):  # the nearest cause alone
        loose, free = replace(amount, half=amount.half + room * amount.value), OPEN[problem]
        found = [
            way
            for way in explanations(problem, loose, name, edition)
            if handed.fits(way)
            and bool(way.slip) + sum(s.value not in free.get(s.field, ()) for s in way.flipped) < 2
        ][:1]
    return Verdict(3 if found else 4, handed, tuple(found))


def _wrong(handed: Handed, ways: tuple[Explanation, ...], part: Part) -> Wrong:
    """What is wrong: the label, the assumptions that give the number, or how far off it is."""
    got, unbound = Words(handed.amount.text), Handed(handed.amount, "")
    if way := next(filter(unbound.agrees, _good(part)), None):
        said = f"It is: {way.quantity}. Are labels or positions mixed up?"
        return Wrong("That is the right number for something else.", got=got, mistake=said)
    if ways:
        few = [listed(way.changes) for way in ways if len(way.changes) == len(ways[0].changes)]
        said = f"Your number is what comes out when {'; or when '.join([*dict.fromkeys(few)][:3])}."
        return Wrong(f"That is not the right number ({ways[0].quantity}).", got=got, mistake=said)
    claim = "That is not the right number, and no assumption known here gives it."
    hint = HINTS.get(part[:2])
    ratios = [
        way.value / (handed.amount.value * scale)
        for way in _good(part)
        for unit, scale, slip in handed.amount.readings()
        if unit == way.unit and not slip and handed.fits(way)
    ]
    ratio = min(ratios, key=lambda ratio: max(ratio, 1 / ratio), default=0)
    off = f"{significant(abs(ratio - 1) * 100, 2)} % {'more' if ratio > 1 else 'less'}"
    off = off if 0.5 < ratio < 2 else f"about {ratio:.2g} times as much"
    off += ": is it a slip in a sum?" if abs(ratio - 1) < 0.03 else ""
    other = "a number of a different size, or in a different unit"
    return Wrong(claim, expected=Words(off if 0.1 < ratio < 10 else other), got=got, mistake=hint)


def _praise(verdicts: list[Verdict], edition: Edition) -> str:
    """What is said of numbers that are right, with the assumptions of those in another reading."""
    said: dict[str, list[str]] = {}
    (other,) = {*EDITIONS} - {edition}
    for rank, handed, (way, *_) in verdicts:
        words = f"{way.quantity}."
        if rank == 1:
            words = f"{way.quantity}, right if {listed(way.changes)}. Say so in the answer."
        elif rank == 2:
            words = f"right in edition {other} of the handout ({way.quantity}). The workbook is"
            words += f" set to {edition}: set WORKBOOK_EDITION={other} if yours is that one."
        said.setdefault(words, []).append(handed.amount.text)
    return " ".join(f"{', '.join(dict.fromkeys(texts))}: {words}" for words, texts in said.items())


transformer_accounting = partial(judged, {part: partial(_judged, MODEL, part) for part in "abcde"})
adamwAccounting = partial(  # noqa: N816 - the problem's id
    judged, {part: partial(_judged, ADAMW, part) for part in "abcd"}
)
