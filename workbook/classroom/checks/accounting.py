"""The checks of the two accounting problems: is a number right, or what assumption gives it?

A number is right if the problem gives it, to the digits written. Where the course leaves a choice
(how AdamW's operations are counted, which activations are kept, d_ff of the smaller models), every
choice is right. A number that other assumptions give is wrong, and they are named.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from typing import Any, NamedTuple

from workbook import config
from workbook.accounting import explain
from workbook.accounting.explain import MISTAKEN, UNITS, Amount, Explanation, joined, unit_named
from workbook.classroom.checks.machinery.verdicts import (
    NotAttempted,
    Prose,
    Unreadable,
    Wrong,
    expect,
    shown,
)
from workbook.classroom.checks.written import judged_part
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
# The keys of each part; a number alone is the first of them.
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
# What the course leaves open: the assumptions that may be made, and their values.
OPEN: dict[str, dict[str, tuple]] = {
    MODEL: {"d_ff": ("4", "64", "8/3"), "head": (False,), "every_block": (False,)},
    ADAMW: {"d_ff": ("8/3",), "matrices": (3,), "residual_copies": (1,), "decay": (3,)}
    | {"moments": ((2, 3),), "bias_corrections": (1, 2), "epsilon": (False,)}
    | {"embedding_output": (True,), "by_parameters": (True,)},
}
# How far off a number may be that was computed from rounded ones.
SLACK = {"time": 5e-3, "bytes per sequence": 1e-2, "growth": 1e-2}
THE_OTHER = "right in edition {0}. The workbook is set to {1}: is WORKBOOK_EDITION={0} yours?"
LEADING = re.compile(r"[+-]?(\d[\d,_]*(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
SPEED = re.compile(r"[kmgtp]?flops?\s*(/|per)\s*s(ec(ond)?)?", re.IGNORECASE)
OF_SPEED = (
    "FLOPs are an amount of work, FLOP/s a speed: how many of them a machine does per second."
)
SCORES_ALONE = "are these the scores and weighted sums alone? Then it is right: say so."
HINTS = {  # by key, where no assumption gives a number
    "growth": "With 16 times the tokens, the T × T matmuls need 256 times as many FLOPs, all"
    " others 16 times as many.",
    "batch": "The batch is rounded down: there is no half a sequence.",
    "per_parameter": "Count, for one parameter, all operations on m and v, in the step and in the"
    " decay, divisions and roots included; the forward and backward passes do not count.",
}
WHY = {  # every other part needs less than the feed-forward layers
    "scores": "They grow with the square of the context, but at 1,024 the weights need more.",
    "attention": "It has four matmuls of d × d and two of T × T, the FFN three of d × d_ff.",
    "projections": "They are d × d; a feed-forward matrix is d × d_ff.",
    "head": "It is one large matmul, but there is only one of it, and there are 48 blocks.",
}


class Question(NamedTuple):
    """A part of one of the two problems, in an edition."""

    problem: str
    part: str
    edition: Edition


class Handed(NamedTuple):
    """A number that was handed in."""

    amount: Amount
    written: str  # its digits, where no unit was written; ""
    key: str  # of `QUANTITIES`
    quantity: str  # its name in `accounting.explain`, with the size of the model in part (d)
    is_alone: bool  # and not in a dict

    @property
    def named(self) -> str:
        """The number with its unit, and its key."""
        return f"{self.amount.text} (`{self.key}`)"

    def agrees(self, way: Explanation) -> bool:
        """True for the value itself, rounded or cut off to the digits that were written."""
        amount = self.amount
        off = way.value - self.amount.value
        half = max(amount.half, 1e-9 * way.value)
        cut_off = amount.digits > 2 and 0 <= off < 2 * half
        return cut_off or abs(off) <= half + SLACK.get(way.quantity, 0) * way.value


# --- What each part takes


def _costs(problem: str, part: str, attempt: Any) -> str:
    """Judge a number, or a dict of them."""
    asked_for = Question(problem, part, config.edition())
    return _judged(_entries(attempt, asked_for), asked_for)


def _largest_part(attempt: Any) -> str:
    """Judge the name of the part that needs most FLOPs, or a dict of shares in percent."""
    name = attempt.strip().lower() if isinstance(attempt, str) else ""
    expect(name not in WHY, "Another part needs more.", WHY.get(name), got=name)
    if name == "ffn":
        return "The feed-forward layers: three matmuls with the widest matrices in each block."
    return _costs(MODEL, "c", attempt)


def _by_size(attempt: Any) -> str:
    """Judge a dict of FLOPs and shares for each size of the model."""
    asked_for = Question(MODEL, "d", config.edition())
    handed = []
    if not isinstance(attempt, dict):
        for size in explain.ASKED_SIZES:
            (one,) = _entries(attempt, asked_for)
            if _right(one._replace(quantity=f"{one.quantity}, GPT-2 {size}"), asked_for):
                alone = f"{attempt} is right for GPT-2 {size} alone"
                raise NotAttempted(f'{alone}: hand in {{"{size}": {attempt}, ...}}.')
        raise Unreadable(attempt)
    if not attempt.keys() <= {*explain.ASKED_SIZES}:
        raise Unreadable(attempt)
    for size, entries in attempt.items():
        for one in _entries(entries, asked_for):
            handed.append(one._replace(quantity=f"{one.quantity}, GPT-2 {size}"))
    return _judged(handed, asked_for)


def _memory(attempt: Any) -> str:
    """Judge the largest batch, or a dict with it and with a and b of the memory a·batch + b."""
    asked_for = Question(ADAMW, "b", config.edition())
    handed = _entries(attempt, asked_for)
    praise = _judged(handed, asked_for)
    values = {one.key: one.amount.value for one in handed}
    if values.keys() >= {"a", "b", "batch"}:
        batch = int(values["batch"])
        right = int((80e9 - values["b"]) // values["a"])
        expect(batch == right, "Your own a and b give another batch.", expected=right, got=batch)
    return praise


# --- From an entry to an amount


def _entries(attempt: Any, part: Question) -> list[Handed]:
    """The numbers of a dict with the keys of a part, or a number alone."""
    keys = KEYS[part[:2]]
    if part == (ADAMW, "d", "2026"):  # which asks for hours
        keys = keys[::-1]
    is_alone = not isinstance(attempt, dict)
    entries = {_key_of(attempt, keys): attempt} if is_alone else attempt
    if unknown := [key for key in entries if key not in keys]:
        known = f"its keys are {', '.join(keys)}"
        raise Unreadable(attempt, f"{unknown[0]!r} is not a key of this answer; {known}.")
    handed = []
    for key, value in entries.items():
        amount, written = _amount(key, value)
        handed.append(Handed(amount, written, key, QUANTITIES[key][0], is_alone))
    return handed


def _key_of(attempt: Any, keys: tuple[str, ...]) -> str:
    """The first key that a number alone can belong to, by its unit."""
    for key in keys:
        with suppress(Unreadable):
            _amount(key, attempt)
            return key
    return keys[0]


def _amount(key: str, value: Any) -> tuple[Amount, str]:
    """A number with its unit, such as 1.2e9 or "5 GB", and its digits if it has no unit.

    Raises: `Unreadable` for anything else.
    """
    # Fifteen digits of a float: 39.8 / 100 would show the rounding of its last bit.
    text = f"{value:.15g}" if type(value) is float else str(value).strip()
    number = LEADING.match(text)
    if number is None:
        raise Unreadable(value, f"{shown(value)} cannot be the `{key}`.")
    digits = number[0].replace(",", "").replace("_", "")
    written = text[number.end() :].strip()
    if SPEED.fullmatch(written):
        raise Wrong(f"{text} is a speed.", got=Prose(text), mistake=OF_SPEED)
    usual = QUANTITIES[key][1]
    unit = unit_named(written) if written else usual
    try:
        amount = Amount.of(_shown(digits), unit or "", f"{digits} {unit}")
    except (ArithmeticError, ValueError):  # no number, no unit, or out of range
        amount = None
    # What is measured under this key, such as bytes, is the first in `UNITS`.
    fits = amount and 0 < amount.value < 1e300 and amount.kind == UNITS[usual][0]
    if not fits:
        raise Unreadable(value, f"{shown(value)} cannot be the `{key}`.")
    if amount.kind == "share" and not written and amount.value < 0.01:  # 0.669: no share is as low
        amount = Amount.of(_shown(str(Decimal(digits).scaleb(2))), unit)
    if amount.kind in ("count", "bytes", "flops", "seconds") and amount.digits < 2:
        raise NotAttempted('Write two digits at least, as in 1.2e8, "0.52 GB", "15 days".')
    return amount, "" if written else digits


def _shown(digits: str) -> str:
    """The digits that count: the zeros of 350,000,000,000 may only be placeholders."""
    short = Decimal(digits).normalize()
    padded = "." not in digits and short >= 1_000 and len(short.as_tuple().digits) < 7
    return str(short) if padded else digits


# --- What is said of the numbers


def _judged(handed: list[Handed], part: Question) -> str:
    """Praise for numbers that are all right. Raises: `Wrong` with the cause of one that is not."""
    praise = {one: _praise(one, part) for one in handed}
    if other := _of_the_other_edition(handed, part):
        # Once one number is that edition's, the others may be, and are explained by it.
        said = THE_OTHER.format(other.edition, part.edition)
        for one in handed:
            praise[one] = praise[one] or (_praise(one, other) and f"{one.named}: {said}")
    bad = [one for one in handed if not praise[one]]
    if not bad:
        return " ".join(praise.values())
    for one in bad:
        _expect_a_unit(one, other or part)
    raise _wrong(bad, other or part)


def _of_the_other_edition(handed: list[Handed], part: Question) -> Question | None:
    """The same part in the other edition, if a number is right there, and not here.

    Two digits alone may agree by chance.
    """
    (name,) = {*EDITIONS} - {part.edition}
    other = part._replace(edition=name)
    for one in handed:
        if _praise(one, part) or one.amount.digits < 3:
            continue
        if any(not way.changes for way in _right(one, other)):
            return other
    return None


def _expect_a_unit(handed: Handed, part: Question) -> None:
    """Raise `NotAttempted` for a number without a unit that is right in another, or too small."""
    amount = handed.amount
    if handed.written:
        # GiB where GB are asked for is a mistake with a name.
        mistaken = MISTAKEN.get(amount.unit)
        alike = [unit for unit, (kind, _) in UNITS.items() if kind == amount.kind]
        units = [unit for unit in alike if unit != mistaken]
        for unit in units:
            meant = Amount.of(_shown(handed.written), unit)
            if _right(handed._replace(amount=meant), part):
                right = f'In {unit} it is right: hand in "{handed.written} {unit}".'
                raise NotAttempted(f"{handed.written} what? {right}")
        for key in KEYS[part[:2]] if handed.is_alone else ():
            name, unit = QUANTITIES[key]
            other = Handed(Amount.of(_shown(handed.written), unit), "", key, name, False)
            if unit != amount.unit and _right(other, part):
                right = f'As the {name} it is right: hand in {{"{key}": {handed.written}}}.'
                raise NotAttempted(f"{handed.written} what? {right}")
    # No model here is so small: a number such as 2.13 was meant in billions.
    is_small = amount.kind in ("count", "bytes", "flops") and amount.value < 1e6
    if is_small and handed.written:
        example = {"bytes": "GB", "flops": "TFLOPs", "count": "billion parameters"}[amount.kind]
        raise NotAttempted(f'{handed.written} what? Write the unit, as in "0.52 {example}".')


@cache
def _good(part: Question) -> tuple[Explanation, ...]:
    """All right numbers of a part, those with the fewest choices first."""
    return tuple(way for way in explain.outcomes(*part) if _is_open(way, part))


def _flops_of_parts(part: Question) -> Iterator[Explanation]:
    """The FLOPs of the head, the projections and so on: their shares of all FLOPs of a model."""
    for whole in _good(part):
        _, _, size = whole.quantity.partition(",")
        for share in _good(part):
            of_it = share.kind == "share" and share.flipped == whole.flipped
            if whole.kind == "flops" and of_it and share.quantity.endswith(size):
                name = share.quantity.replace("share", "FLOPs")
                yield replace(share, quantity=name, value=share.value * whole.value, kind="flops")


def _is_open(way: Explanation, part: Question) -> bool:
    """True for a number that the course's own choices give."""
    allowed = dict(OPEN[part.problem])
    if (part.problem == ADAMW and part.edition == "2025") or part.part in ("a", "b", "c", "e"):
        allowed.pop("d_ff", None)
    if part.problem == MODEL and (way.kind != "share" or part.part == "b"):  # or of the blocks
        del allowed["head"], allowed["every_block"]
    return all(switch.value in allowed.get(switch.field, ()) for switch in way.flipped)


def _right(handed: Handed, part: Question) -> list[Explanation]:
    """The right values of its quantity that a number agrees with."""
    return [w for w in _good(part) if w.quantity == handed.quantity and handed.agrees(w)]


def _praise(handed: Handed, part: Question) -> str:
    """What is said of a right number; "" if it is wrong."""
    if right := _right(handed, part):
        changes = right[0].changes
        choice = f" if {joined(changes)}. Say so in the answer" if changes else ""
        return f"{handed.named}: right{choice}."
    # Many call only these two matmuls attention, and the others projections.
    alone = handed.quantity.replace(QUANTITIES["attention"][0], QUANTITIES["scores"][0])
    if _right(handed._replace(quantity=alone), part):
        return f"{handed.named}: {SCORES_ALONE}"
    return ""


def _causes(handed: Handed, part: Question) -> list[Explanation]:
    """What gives a wrong number, fewest changes first."""
    ways = explain.ways(part.problem, handed.amount, part.part, part.edition)
    return [way for way in ways if way.quantity == handed.quantity]


def _wrong(bad: list[Handed], part: Question) -> Wrong:
    """What is wrong: the key, the assumptions that give the number, or how far off it is."""
    handed = next((one for one in bad if _causes(one, part)), bad[0])
    ways = _causes(handed, part)
    got = Prose(handed.named)
    # A right number at the wrong place needs no other explanation.
    alike = (way for way in _good(part) if way.kind == handed.amount.kind)
    if way := next(filter(handed.agrees, alike), None):
        return Wrong(
            "That is the right number for something else.",
            got=got,
            mistake=f"It is: {way.quantity}. Are keys or sizes mixed up?",
        )
    few = [joined(way.changes) for way in ways if len(way.changes) == len(ways[0].changes)]
    if handed.amount.kind == "flops":
        alone = filter(handed.agrees, _flops_of_parts(part))
        few = [f"only the {way.quantity} are counted" for way in alone] + few
    if few:
        return Wrong(
            f"That is not the right number ({handed.quantity}).",
            got=got,
            mistake=f"Your number comes out when {'; or when '.join([*dict.fromkeys(few)][:3])}.",
        )
    right = [way.value for way in _good(part) if way.quantity == handed.quantity]
    value = handed.amount.value
    nearest = min(right, key=lambda one: max(one / value, value / one))
    return Wrong(
        "No assumption known here gives this number: is it a slip in a sum?",
        expected=Prose(f"{nearest / value:.6g} times that"),
        got=got,
        mistake=HINTS.get(handed.key),
    )


ANY = int | float | str | dict
transformer_accounting = partial(
    judged_part,
    **{part: (ANY, partial(_costs, MODEL, part)) for part in "abe"},
    c=(ANY, _largest_part),
    d=(ANY, _by_size),
)
adamwAccounting = partial(  # noqa: N816 - the problem's id
    judged_part, **{part: (ANY, partial(_costs, ADAMW, part)) for part in "acd"}, b=(ANY, _memory)
)
