"""The checks of the two accounting problems: is a number right, or what assumption gives it?

A number is right if the problem gives it, to the digits written. Where the course leaves a choice
(how AdamW's operations are counted, which activations are kept, d_ff of the smaller models), every
choice is right. A number that other assumptions give is wrong, and they are named.
"""

from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from typing import Any, NamedTuple

from workbook import config
from workbook.accounting import explain
from workbook.accounting.answers import answers, significant
from workbook.accounting.assumptions import asked
from workbook.accounting.explain import Amount, Explanation, listed
from workbook.accounting.training import GB
from workbook.checks.verdicts import NotAttempted, Unreadable, Words, Wrong, expect, shown
from workbook.checks.written import UNITS, Number, judged, number
from workbook.config import EDITIONS, Edition

MODEL, ADAMW = "transformer_accounting", "adamwAccounting"
# What an entry of an answer is, by its key: its name in `accounting.explain`, and the unit of a
# number that has none of its own.
QUANTITIES = {
    "parameters": ("parameters", "parameters"),
    "gb": ("bytes of the parameters", "GB"),
    "flops": ("FLOPs", "FLOPs"),
    "growth": ("growth", "times"),
    "ffn": ("share of the feed-forward layers", "%"),
    "projections": ("share of the projections", "%"),
    "scores": ("share of the scores and weighted sums", "%"),
    "attention": ("share of the attention", "%"),
    "head": ("share of the head", "%"),
    "bytes": ("bytes of all but the activations", "bytes"),
    "parameters_gb": ("bytes of the parameters", "GB"),
    "gradients_gb": ("bytes of the parameters", "GB"),  # of which there are as many
    "optimizer_gb": ("bytes of the optimizer state", "GB"),
    "batch": ("largest batch", "sequences"),
    "a": ("bytes per sequence", "GB"),
    "b": ("bytes whatever the batch", "GB"),
    "per_parameter": ("FLOPs per parameter", "FLOPs per parameter"),
    "step": ("FLOPs of a step", "FLOPs"),
    "days": ("time", "days"),
    "hours": ("time", "hours"),
}
SHARES = ("ffn", "projections", "scores", "attention", "head")
# The keys of each part; a number alone is the first of them that its unit fits.
KEYS: dict[tuple[str, str], tuple[str, ...]] = {
    (MODEL, "a"): ("parameters", "gb"),
    (MODEL, "b"): ("flops",),
    (MODEL, "c"): SHARES,
    (MODEL, "d"): ("flops", *SHARES),
    (MODEL, "e"): ("flops", "growth", *SHARES),
    (ADAMW, "a"): ("bytes", "parameters_gb", "gradients_gb", "optimizer_gb", "parameters"),
    (ADAMW, "b"): ("batch", "a", "b"),
    (ADAMW, "c"): ("per_parameter", "step"),
    (ADAMW, "d"): ("days", "hours"),
}
# The units that `explain` knows, by what they measure: "h" and "hours" are the same.
UNIT_NAMES = {measured: unit for unit, measured in explain.UNITS.items()}
# What the course leaves open: the assumptions that may be made, and their values.
OPEN: dict[str, dict[str, tuple]] = {
    MODEL: {"d_ff": ("4", "64", "8/3"), "head": (False,), "every_block": (False,)},
    ADAMW: {"d_ff": ("8/3",), "matrices": (3,), "residual_copies": (1,), "decay": (3,)}
    | {"moments": ("2 + 3",), "bias_corrections": (1, 2), "epsilon": (False,)}
    | {"embedding_output": (True,), "by_parameters": (True,)},
}
# How far off a number may be that was computed from rounded ones.
SLACK = {"seconds": 5e-3, "bytes per sequence": 1e-2, "factor": 1e-2}
UNIT_MISSING = 'Is {} in billions, or in which unit? Write all of it, as 1.2e8, or as "0.5 GB".'
THE_OTHER = "right in edition {0}. The workbook is set to {1}: is WORKBOOK_EDITION={0} yours?"
ROUND_DOWN = "Round down: there is no room for part of a sequence."
HINTS = {  # where no assumption gives a number
    (MODEL, "e"): "With 16 times the tokens, the T × T matmuls need 256 times as many FLOPs, all"
    " others 16 times as many.",
    (ADAMW, "c"): "Count, for one parameter, all operations on m and v, in the step and in the"
    " decay, divisions and roots included; the forward and backward passes do not count.",
}
WHY = {  # every other part needs less than the feed-forward layers
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
    """A number that was handed in."""

    amount: Amount
    key: str  # of `QUANTITIES`
    quantity: str  # its name in `accounting.explain`, with the size of the model in part (d)

    def agrees(self, way: Explanation) -> bool:
        """True for the value itself, rounded or cut off to the digits that were written."""
        amount, off = self.amount, way.value - self.amount.value
        half = max(amount.half, 1e-9 * way.value)
        if way.unit in ("batch", "per parameter"):  # which are whole numbers, and never rounded
            half = 0
        cut_off = amount.digits > 2 and 0 <= off < 2 * half
        return cut_off or abs(off) <= half + SLACK.get(way.unit, 0) * way.value


# --- What each part takes


def _costs(problem: str, part: str, attempt: Any) -> str:
    """Judge a number, or a dict of them."""
    asked_for = Part(problem, part, config.edition())
    return _judged(_entries(attempt, asked_for), asked_for)


def _largest_part(attempt: Any) -> str:
    """Judge the name of the part that needs most FLOPs, or a dict of shares in percent."""
    name = attempt if isinstance(attempt, str) else ""
    expect(name not in WHY, "Another part needs more.", WHY.get(name), got=name)
    if name == "ffn":
        return "The feed-forward layers: three matmuls with the widest matrices in each block."
    return _costs(MODEL, "c", attempt)


def _by_size(attempt: Any) -> str:
    """Judge a dict of FLOPs and shares for each size of the model."""
    asked_for, handed = Part(MODEL, "d", config.edition()), []
    if not attempt.keys() <= {*explain.SIZES, "xl"}:
        raise Unreadable(attempt)
    for size, entries in attempt.items():
        which = "" if size == "xl" else f", GPT-2 {size}"
        for one in _entries(entries, asked_for):
            handed.append(one._replace(quantity=one.quantity + which))
    return _judged(handed, asked_for)


def _memory(attempt: Any) -> str:
    """Judge the largest batch, or a dict with it and with a and b of the memory a·batch + b."""
    asked_for = Part(ADAMW, "b", config.edition())
    handed = _entries(attempt, asked_for)
    praise = _judged(handed, asked_for)
    values = {one.key: one.amount.value for one in handed}
    if values.keys() >= {"a", "b", "batch"}:
        batch, right = int(values["batch"]), int((80 * GB - values["b"]) // values["a"])
        claim, given = "Your own a and b give a different batch size.", "(80 GB - b) / a"
        expect(batch == right, claim, given=given, expected=right, got=batch)
    return praise


# --- From an entry to an amount


def _entries(attempt: Any, part: Part) -> list[Handed]:
    """The numbers of a dict with the keys of a part, or a number alone."""
    keys = KEYS[part[:2]]
    if isinstance(attempt, dict):
        if unknown := [key for key in attempt if key not in keys]:
            raise Unreadable(attempt, f"{unknown[0]!r} is not a key of this answer.")
        return [_handed(key, value) for key, value in attempt.items()]
    # A number alone is the first key that its unit fits: of (a), "8.51 GB" is the `gb`.
    found = number(attempt)
    if found and not found.unit and keys[0] == "days" and part.edition == "2026":
        keys = ("hours",)
    key = next((key for key in keys if found and _unit(found, key)), keys[0])
    return [_handed(key, attempt)]


def _unit(found: Number, key: str) -> str:
    """The unit of a number with this key, as `explain` calls it; "" where the two do not fit."""
    usual = QUANTITIES[key][1]
    unit = UNIT_NAMES.get(UNITS[found.unit], "") if found.unit else usual
    return unit if unit and UNITS[unit][0] == UNITS[usual][0] else ""


def _handed(key: str, value: Any) -> Handed:
    """One number with its unit. Raises: `Unreadable` for what is none, or has another unit."""
    found = number(value)
    unit = _unit(found, key) if found else ""
    if not unit:
        raise Unreadable(value, f"{shown(value)} cannot be the `{key}`.")
    expect(float(found.digits) > 0, "An amount must be positive.", got=value)
    text = f"{found.digits} {found.unit or unit}"
    amount = Amount.of(_shown(found.digits), unit, text)
    # No model here is so small: a number such as 2.13 was meant in billions.
    if amount.kind in ("count", "bytes", "flops") and amount.value < 1e6:
        raise NotAttempted(UNIT_MISSING.format(found.digits))
    if amount.kind in ("count", "bytes", "flops", "seconds") and amount.digits < 2:
        raise NotAttempted("That is too coarse to be checked. Give at least two digits.")
    is_whole = amount.kind != "batch" or amount.value.is_integer()
    expect(is_whole, "A batch size is a whole number.", ROUND_DOWN, got=Words(text))
    return Handed(amount, key, QUANTITIES[key][0])


def _shown(digits: str) -> str:
    """The digits that count: the zeros of 350,000,000,000 may only be placeholders."""
    plain, short = Decimal(digits), Decimal(digits).normalize()
    few = len(short.as_tuple().digits) < 7
    return str(short) if few and "." not in digits and plain >= 1_000 else digits


# --- What is said of the numbers


def _judged(handed: list[Handed], part: Part) -> str:
    """Praise for numbers that are all right. Raises: `Wrong` with the cause of one that is not."""
    praise = [_praise(one, part) for one in handed]
    if bad := [one for one, said in zip(handed, praise, strict=True) if not said]:
        raise _wrong(bad, part)
    return " ".join(dict.fromkeys(praise))


@cache
def _good(part: Part) -> tuple[Explanation, ...]:
    """All right numbers of a part, those with the fewest choices first."""
    sizes = explain.SIZES if part[:2] == (MODEL, "d") else ("xl",)
    reached = [explain.outcomes(*part, size) for size in sizes]
    every = [way for by_unit in reached for some in by_unit.values() for way in some]
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


def _right(handed: Handed, part: Part) -> list[Explanation]:
    """The right values of its quantity that a number agrees with."""
    return [w for w in _good(part) if w.quantity == handed.quantity and handed.agrees(w)]


def _praise(handed: Handed, part: Part) -> str:
    """What is said of a right number, also where it is that of the other edition; "" if wrong."""
    text, name = handed.amount.text, handed.quantity
    if handed.key == "gradients_gb":
        name = "bytes of the gradients"
    if right := _right(handed, part):
        changes = right[0].changes
        choice = f", right if {listed(changes)}. Say so in the answer" if changes else ""
        return f"{text}: {name}{choice}."
    (other,) = {*EDITIONS} - {part.edition}
    there = any(not way.changes for way in _right(handed, part._replace(edition=other)))
    if not there or handed.amount.digits < 3:
        return ""
    return f"{text}: {name}, {THE_OTHER.format(other, part.edition)}"


def _causes(handed: Handed, part: Part) -> list[Explanation]:
    """What gives a wrong number, fewest changes first; of rounded ones the nearest simple cause."""

    def found(amount: Amount) -> list[Explanation]:
        ways = explain.ways(part.problem, amount, part.part, part.edition)
        return [way for way in ways if way.quantity == handed.quantity]

    amount, room, free = handed.amount, SLACK.get(handed.amount.kind, 0), OPEN[part.problem]
    if (exact := found(amount)) or not room:
        return exact
    # Many assumptions come near a number, so only one strange one, or a slip in the unit, counts.
    for way in found(replace(amount, half=amount.half + room * amount.value)):
        strange = [each for each in way.flipped if each.value not in free.get(each.field, ())]
        if len(strange) + bool(way.slip) < 2:
            return [way]
    return []


def _wrong(bad: list[Handed], part: Part) -> Wrong:
    """What is wrong: the key, the assumptions that give the number, or how far off it is."""
    # Several numbers that are wrong for one reason are told that reason.
    causes = [_causes(one, part) for one in bad]
    shared = explain.shared_cause([ways for ways in causes if ways])
    known = [(one, ways) for one, ways in zip(bad, causes, strict=True) if ways]
    handed, ways = known[0] if known else (bad[0], [])
    ways = [way for way in ways if shared and way.flipped == shared] or ways
    got = Words(handed.amount.text)
    # A right number at the wrong place needs no other explanation.
    alike = (way for way in _good(part) if way.unit.startswith(handed.amount.kind))
    if way := next(filter(handed.agrees, alike), None):
        said = f"It is: {way.quantity}. Are keys or sizes mixed up?"
        return Wrong("That is the right number for something else.", got=got, mistake=said)
    if ways:
        few = [listed(way.changes) for way in ways if len(way.changes) == len(ways[0].changes)]
        said = f"Your number is what comes out when {'; or when '.join([*dict.fromkeys(few)][:3])}."
        return Wrong(f"That is not the right number ({ways[0].quantity}).", got=got, mistake=said)
    claim = "That is not the right number, and no assumption known here gives it."
    expected = Words(_how_far(handed, part))
    return Wrong(claim, expected=expected, got=got, mistake=HINTS.get(part[:2]))


def _how_far(handed: Handed, part: Part) -> str:
    """How far a number is from the nearest right one of its quantity."""
    right = [way.value for way in _good(part) if way.quantity == handed.quantity]
    ratios = [value / handed.amount.value for value in right]
    ratio = min(ratios, key=lambda ratio: max(ratio, 1 / ratio), default=0)
    if not 0.1 < ratio < 10:
        return "a number of a different size, or in a different unit"
    off = ": is it a slip in a sum?" if abs(ratio - 1) < 0.03 else ""
    return f"{significant(abs(ratio - 1) * 100, 2)} % {'more' if ratio > 1 else 'less'}{off}"


ANY = int | float | str | dict
transformer_accounting = partial(
    judged,
    **{part: (ANY, partial(_costs, MODEL, part)) for part in "abe"},
    c=(ANY, _largest_part),
    d=(dict, _by_size),
)
adamwAccounting = partial(  # noqa: N816 - the problem's id
    judged, **{part: (ANY, partial(_costs, ADAMW, part)) for part in "acd"}, b=(ANY, _memory)
)
