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
    NotJudged,
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
CLOSE = 0.01  # relative: a ratio so near to 1 is written with more digits
THE_OTHER = "right in edition {0}. The workbook is set to {1}: is WORKBOOK_EDITION={0} yours?"
# A comma parts thousands: 4,51 may be meant as 4.51.
LEADING = re.compile(r"[+-]?((\d{1,3}(,\d{3})+|\d[\d_]*)(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
SPEED = re.compile(r"[kmgtp]?flops?\s*(/|per)\s*s(ec(ond)?)?", re.IGNORECASE)
OF_SPEED = (
    "FLOPs are an amount of work, FLOP/s a speed: how many of them a machine does per second."
)
NO_HALF = "The batch is rounded down: there is no half a sequence."
NOT_SUBTRACTED = "b is not subtracted: what is left of 80 GB is for the batch."
MIXED = "Each is right for another feed-forward layer: count all of them with the same d_ff."
SCORES_ALONE = "are these the scores and weighted sums alone? Then it is right: say so."
HINTS = {  # by key, where no assumption gives a number
    "growth": "With 16 times the tokens, the T × T matmuls need 256 times as many FLOPs, all"
    " others 16 times as many.",
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
    written: str  # its digits, where no unit was named; ""
    key: str  # of `QUANTITIES`
    quantity: str  # its name in `accounting.explain`, with the size of the model in part (d)
    is_alone: bool  # and not in a dict

    @property
    def named(self) -> str:
        """The number with its unit, and its key."""
        return f"{self.amount.text} (`{self.key}`)"

    @property
    def figure(self) -> str:
        """The number without its unit, as it was written."""
        return self.amount.text.partition(" ")[0]

    @property
    def size(self) -> str:
        """The size of the model that it is about; "" but in part (d)."""
        return self.quantity.partition(", ")[2]

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
    given = {size: entries for size, entries in attempt.items() if entries not in ({}, ..., {...})}
    for size, entries in given.items():
        for one in _entries(entries, asked_for):
            handed.append(one._replace(quantity=f"{one.quantity}, GPT-2 {size}"))
    return _complete(_judged(handed, asked_for), explain.ASKED_SIZES, given)


def _memory(attempt: Any) -> str:
    """Judge the largest batch, or a dict with it and with a and b of the memory a·batch + b."""
    asked_for = Question(ADAMW, "b", config.edition())
    handed = {one.key: one for one in _entries(attempt, asked_for)}
    values = {key: one.amount.value for key, one in handed.items()}
    batch = values.get("batch", 0)
    claim = "A batch is a whole number of sequences."
    expect(batch == int(batch), claim, NO_HALF, got=batch)
    if values.keys() < {"a", "b", "batch"}:
        praise = _judged([*handed.values()], asked_for)
        return praise if batch else _complete(praise, ("a", "b", "batch"), handed)
    # It follows from a and b, whether these are right or not.
    praise = _judged([handed["a"], handed["b"]], asked_for)
    right = int((80e9 - values["b"]) // values["a"])
    mistake = NOT_SUBTRACTED if batch == 80e9 // values["a"] else None
    claim = "Your own a and b give another batch."
    expect(batch == right, claim, mistake, expected=right, got=int(batch))
    return f"{praise} {handed['batch'].named} follows from them."


def _complete(praise: str, asked: tuple[str, ...], given: dict) -> str:
    """The praise of numbers. Raises: `NotJudged` with it where some that are asked for lack."""
    if missing := [name for name in asked if name not in given]:
        raise NotJudged(f"{praise} Still missing: {', '.join(missing)}.".strip())
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
        if key in ("days", "hours") and not is_alone:  # a key that is a unit
            written = ""
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
    texts = {float: "{:,.15g}", int: "{:,}"}
    text = texts.get(type(value), "{}").format(value).strip()
    number = LEADING.match(text)
    if number is None:
        raise Unreadable(value, f"{shown(value)} cannot be the `{key}`.")
    digits = number[0].replace(",", "").replace("_", "")
    written = text[number.end() :].strip(" .")
    if SPEED.fullmatch(written):
        raise Wrong(f"{text} is a speed.", got=Prose(text), mistake=OF_SPEED)
    usual = QUANTITIES[key][1]
    unit = unit_named(written) if written else usual
    try:
        amount = Amount.of(_shown(digits), unit or "", f"{number[0]} {unit}")
    except (ArithmeticError, ValueError):  # no number, no unit, or out of range
        amount = None
    # What is measured under this key, such as bytes, is the first in `UNITS`.
    fits = amount and 0 < amount.value < 1e300 and amount.kind == UNITS[usual][0]
    if not fits:
        raise Unreadable(value, f"{shown(value)} cannot be the `{key}`.")
    if amount.kind == "share" and not written and amount.value < 0.01:  # 0.669: no share is as low
        percent = Decimal(digits).scaleb(2)
        amount = Amount.of(_shown(str(percent)), unit, f"{percent:f} %")
    if amount.kind in ("count", "bytes", "flops", "seconds") and amount.digits < 2:
        few = f"Give at least two significant digits: {number[0]} has one"
        raise NotJudged(f'{few}. 1.2e8, "0.52 GB" and "15 days" have two.')
    if amount.kind == "share":
        expect(amount.value <= 1, "A share is 100 % at most.", got=Prose(amount.text))
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
        for one in handed:
            if praise[one] and not _praise(one, other):
                claim = "These numbers are of two editions: count all of them for the same model."
                two = ", ".join(each.named for each in handed)
                mistake = (
                    f"{one.named} is right in edition {part.edition}, others in {other.edition}."
                )
                raise Wrong(claim, got=Prose(two), mistake=mistake)
        said = THE_OTHER.format(other.edition, part.edition)
        for one in handed:
            praise[one] = praise[one] or (_praise(one, other) and f"{one.named}: {said}")
    bad = [one for one in handed if not praise[one]]
    if not bad:
        # The list of activations in (b) is the same for all models.
        expect(other or part.part == "b" or _is_of_one_model(handed, part), MIXED)
        return " ".join(praise.values())
    for one in bad:
        _expect_a_unit(one, other or part)
    raise _wrong(bad, handed, other or part)


def _is_of_one_model(handed: list[Handed], part: Question) -> bool:
    """Whether the numbers that are right are so for the same feed-forward layer."""
    numbers = [one for one in handed if _right(one, part)]
    models = {_model(way) for way in _good(part)}
    return any(all(_holds(one, model, part) for one in numbers) for model in models)


def _model(way: Explanation) -> frozenset:
    """What the course leaves open about the model, as far as it was changed."""
    return frozenset(each for each in way.flipped if each.field in ("d_ff", "matrices"))


def _holds(handed: Handed, model: frozenset, part: Question) -> bool:
    """Whether a number is right for a model; those that do not depend on it have no way of it."""
    ways = [way for way in _good(part) if way.quantity == handed.quantity]
    of_it = [way for way in ways if _model(way) == model]
    return any(map(handed.agrees, of_it or [way for way in ways if not _model(way)]))


def _of_the_other_edition(handed: list[Handed], part: Question) -> Question | None:
    """The same part in the other edition, if a number is right there, and not here."""
    (name,) = {*EDITIONS} - {part.edition}
    other = part._replace(edition=name)
    for one in handed:
        if not _praise(one, part) and _is_stated(one, other):
            return other
    return None


def _is_stated(handed: Handed, part: Question) -> bool:
    """Whether a number is right as a part states it: two digits alone may agree by chance."""
    ways = _right(handed, part) if handed.amount.digits > 2 else []
    return any(not way.changes for way in ways)


def _expect_a_unit(handed: Handed, part: Question) -> None:
    """Raise `NotAttempted` for a number without a unit that is right in another, or too small."""
    amount = handed.amount
    if handed.written:
        # GiB where GB are asked for is a mistake with a name.
        mistaken = MISTAKEN.get(amount.unit)
        alike = [unit for unit, (kind, _) in UNITS.items() if kind == amount.kind]
        units = [unit for unit in alike if unit != mistaken]
        for edition in dict.fromkeys((part.edition, *EDITIONS)):
            there = part._replace(edition=edition)
            for unit in units:
                meant = handed._replace(amount=Amount.of(_shown(handed.written), unit))
                if _right(meant, part) or (there != part and _is_stated(meant, there)):
                    where = "" if there == part else f" in edition {edition}"
                    right = f'In {unit} it is right{where}: hand in "{handed.figure} {unit}".'
                    raise NotAttempted(f"{handed.figure} what? {right}")
        for key in KEYS[part[:2]] if handed.is_alone else ():
            name, unit = QUANTITIES[key]
            other = Handed(Amount.of(_shown(handed.written), unit), "", key, name, False)
            if unit != amount.unit and _right(other, part):
                right = f'As the {name} it is right: hand in {{"{key}": {handed.written}}}.'
                raise NotAttempted(f"{handed.figure} what? {right}")
    # No model here is so small: a number such as 2.13 was meant in billions.
    is_small = amount.kind in ("count", "bytes", "flops") and amount.value < 1e6
    if is_small and handed.written:
        example = {"bytes": "GB", "flops": "TFLOPs", "count": "billion parameters"}[amount.kind]
        raise NotAttempted(f'{handed.figure} what? Write the unit, as in "0.52 {example}".')


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
    leaves_width = part.edition == "2026" if part.problem == ADAMW else part.part == "d"
    if not leaves_width:
        del allowed["d_ff"]
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


def _causes(handed: Handed, beside: list[Handed], part: Question) -> list[Explanation]:
    """What gives a wrong number, fewest changes first, and of shares all that are beside it."""
    ways = explain.ways(part.problem, handed.amount, part.part, part.edition)
    own = [way for way in ways if way.quantity == handed.quantity]
    if handed.amount.kind != "share":
        return own
    shares = [one for one in beside if one.amount.kind == "share" and one.size == handed.size]
    return [way for way in own if all(_is_given(one, way, part) for one in shares)]


def _is_given(handed: Handed, by: Explanation, part: Question) -> bool:
    """Whether the assumptions that explain one number give another, too."""
    # A number that some of them leave alone is listed without these.
    ways = (way for way in explain.outcomes(*part) if {*way.flipped} <= {*by.flipped})
    return any(way.quantity == handed.quantity and handed.agrees(way) for way in ways)


def _is_like(way: Explanation, handed: Handed) -> bool:
    """Whether a right number may be what was handed in: two digits alone may agree by chance."""
    name, _, size = way.quantity.partition(", ")
    near = size == handed.size or handed.quantity.startswith(name)
    return way.kind == handed.amount.kind and (near or handed.amount.digits > 2)


def _unit_meant(handed: Handed, part: Question) -> str:
    """The unit in which a number is right, if it was written in another; ""."""
    digits = handed.figure.replace(",", "").replace("_", "")
    for unit, (kind, _) in UNITS.items():
        meant = handed._replace(amount=Amount.of(_shown(digits), unit))
        if kind == handed.amount.kind and _right(meant, part):
            return f"In {unit} it would be right: is the unit a slip?"
    return ""


def _asked_elsewhere(handed: Handed, part: Question) -> str:
    """What a number is that another part, or another key, asks for; "" if it is nothing known."""
    for problem, letter in KEYS if handed.amount.digits > 2 else ():
        ways = _good(part._replace(part=letter)) if problem == part.problem else ()
        for way in ways:
            if not way.changes and way.quantity != handed.quantity and handed.agrees(way):
                return f"It is: {way.quantity}, of ({letter})."
    return ""


def _wrong(bad: list[Handed], all_handed: list[Handed], part: Question) -> Wrong:
    """What is wrong: the key, the assumptions that give the number, or how far off it is."""
    handed = next((one for one in bad if _causes(one, all_handed, part)), bad[0])
    ways = _causes(handed, all_handed, part)
    got = Prose(handed.named)
    # A right number at the wrong place needs no other explanation.
    alike = (way for way in _good(part) if _is_like(way, handed))
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
    if known := _unit_meant(handed, part) or _asked_elsewhere(handed, part):
        return Wrong(f"That is not the right number ({handed.quantity}).", got=got, mistake=known)
    right = next(way.value for way in _good(part) if way.quantity == handed.quantity)
    ratio = right / handed.amount.value
    digits = 3 if abs(ratio - 1) > CLOSE else 8
    return Wrong(
        "No assumption known here gives this number: is it a slip in a sum?",
        expected=Prose(f"about {ratio:.{digits}g} times that, as the problem states it"),
        got=got,
        mistake=HINTS.get("growth" if part.part == "e" else handed.key),
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
