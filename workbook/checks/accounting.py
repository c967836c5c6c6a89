"""The checks of the two accounting problems: numbers in any form, and what is said about them."""

import re
from dataclasses import replace
from typing import Any

from workbook import config
from workbook.accounting import asked_model, parameters
from workbook.accounting.answers import MEMORY
from workbook.accounting.explain import shared_cause
from workbook.accounting.training import GB
from workbook.checks.accounting_figures import (
    ADAMW,
    KINDS,
    MODEL,
    Verdict,
    as_text,
    figures,
    is_row,
    judged,
    praise,
    refuse,
)
from workbook.checks.accounting_words import (
    FACTS,
    dominant_part,
    parts_named,
    refuse_linear,
    refuse_one_moment,
    refuse_trend,
)
from workbook.checks.figures import is_explained
from workbook.checks.quoted import Quoted
from workbook.checks.verdicts import Facts, NotAttempted, Words, Wrong
from workbook.config import Edition

# Numbers that the problems state: nobody has to explain them.
GIVEN = {2, 4, 16, 25, 32, 48, 80, 0.5, 50, 1_024, 1_600, 4_288, 6_400, 16_384, 50_257}
GIVEN |= {400_000, 80e9}


def transformer_accounting(attempt: Any, part: str | None) -> str | Facts:
    """What holds of an attempt at a part of transformer_accounting."""
    edition = config.edition()
    if part == "c" and isinstance(attempt, str | tuple | list):
        said = dominant_part(attempt, edition)
        if said and not _candidates(attempt, MODEL, part):
            return said
    if part == "d":
        refuse_trend(attempt)
    if part == "e":
        refuse_linear(attempt)
    return _numbers(attempt, MODEL, part, edition)


def adamwAccounting(attempt: Any, part: str | None) -> str | Facts:  # noqa: N802 - the problem's id
    """What holds of an attempt at a part of adamwAccounting."""
    if part == "a":
        refuse_one_moment(attempt)
    return _numbers(attempt, ADAMW, part, config.edition())


def _numbers(attempt: Any, problem: str, part: str, edition: Edition) -> str | Facts:
    """The judgement of all numbers that can answer a part; of prose only what is surely wrong."""
    found = _candidates(attempt, problem, part)
    if (problem, part) == (ADAMW, "b"):
        _refuse_part_of_a_sequence(found)
    prose = _is_prose(attempt)
    if not found:
        if isinstance(attempt, str) and not prose and part not in "cd":
            if (problem, part) == (ADAMW, "a"):
                return Facts(FACTS[problem, part])
            raise NotAttempted("There is no number in it that could be checked.")
        return Facts(FACTS[problem, part])
    if problem == MODEL and part == "b" and not isinstance(attempt, str):
        found = _sum_of_products(found, edition)
    if (problem, part) == (ADAMW, "c"):
        found = _operations_in_all(found)
    verdicts = [judged(each, problem, part, edition) for each in found]
    if (problem, part) == (MODEL, "d"):
        _refuse_mixed_sizes(verdicts, as_text(attempt))
    text = attempt if isinstance(attempt, str) else ""
    bad = [each for each in verdicts if not each.good]
    if text:
        kinds = _kinds_that_are_right(verdicts, edition)
        steps = [each for each in bad if _is_step(each, kinds, text, prose, edition)]
        roles = (problem, part) == (ADAMW, "b")
        bad = [each for each in bad if each not in steps or (roles and _is_role(each.quoted, text))]
        # Praise is for a text of which everything was recognised: each number, and what it is of.
        prose = prose or any(not _is_known(each, edition) for each in steps)
    elif any(each.good for each in verdicts):
        bad = [each for each in bad if not is_row(each.quoted.value, edition)]
    if bad:
        cause = shared_cause([each.ways for each in bad if each.ways])
        first = min(bad, key=lambda verdict: verdict.status != "explained")
        shared = tuple(way for way in first.ways if cause and way.flipped == cause)
        refuse(replace(first, ways=shared or first.ways), problem, part, edition)
    words = as_text(attempt)
    good = [each for each in verdicts if each.good]
    doubtful = not good or ((problem, part) == (ADAMW, "b") and _mixes_units(good))
    if prose or doubtful or any(_is_unclear(each, words, part) for each in good):
        return Facts(FACTS[problem, part])
    return praise(good, edition)


def _candidates(attempt: Any, problem: str, part: str) -> list[Quoted]:
    """The numbers of an attempt that can be meant as an answer to a part."""
    kinds = KINDS[problem, part]
    found = figures(attempt, "a number, several, or a text that names them with their units")
    if (problem, part) == (ADAMW, "b"):  # which gives the memory of the device
        found = [each for each in found if each.value not in MEMORY.values()]
    text = isinstance(attempt, str | dict)
    formula = (problem, part) == (ADAMW, "a") and isinstance(attempt, str)  # its factors are none
    if len(found) == 1 and not formula and not (text and _is_prose(attempt)):
        return found
    return [
        each
        for each in found
        if (each.kind in kinds and each.value >= kinds[each.kind] and not _is_longer(each, found))
        or (not each.kind and _may_be_meant(each, attempt, text, (problem, part)))
    ]


def _is_longer(quoted: Quoted, found: list[Quoted]) -> bool:
    """True for the 16 by which the context grows, and the 256 by which the scores do."""
    return quoted.kind == "factor" and quoted.value in (16, 256) and len(found) > 1


def _is_prose(attempt: Any) -> bool:
    return isinstance(attempt, str) and is_explained(attempt)


def _may_be_meant(quoted: Quoted, attempt: Any, text: bool, where: tuple[str, str]) -> bool:
    """True for a number without a unit that is none of those which the problem states."""
    if not text or (where == (ADAMW, "b") and _is_batch(quoted, as_text(attempt))):
        return True
    if quoted.value in GIVEN:
        return False
    prose = _is_prose(attempt)
    small = not prose and where in ((ADAMW, "b"), (ADAMW, "c"))
    decimals = not float(quoted.value).is_integer() and not prose and quoted.digits > 2
    return quoted.value >= 1e8 or small or decimals


def _sum_of_products(found: list[Quoted], edition: Edition) -> list[Quoted]:
    """The total alone: the largest number, or the sum of all where that is right."""
    if len(found) < 3:
        return found
    added = replace(
        found[0],
        value=sum(each.value for each in found),
        half=sum(each.half for each in found),
        text="the sum of your numbers",
        kind="flops",
    )
    if judged(added, MODEL, "b", edition).good:
        return [added]
    return [max(found, key=lambda each: each.value)]


def _operations_in_all(found: list[Quoted]) -> list[Quoted]:
    """Of 3 P + 4 P + 5 P + 2 P = 14 P only the last: the others are its terms."""
    small = [each for each in found if each.value < 1_000]
    most = max(small, key=lambda each: each.value, default=None)
    kept = [each for each in found if each not in small or each is most]
    # A small whole number is one of operations, and never one of GFLOPs.
    return [
        replace(each, kind="per parameter")
        if each is most and not each.kind and float(each.value).is_integer()
        else each
        for each in kept
    ]


def _refuse_part_of_a_sequence(found: list[Quoted]) -> None:
    """Raise `Wrong` for a batch that was not rounded."""
    if len(found) == 1 and _is_unrounded_batch(found[0]):
        raise Wrong(
            "A batch is a whole number of sequences.",
            got=Words(found[0].text),
            mistake="The room left was divided, and not rounded down: no part of a sequence can be"
            " trained on.",
        )


def _is_unrounded_batch(quoted: Quoted) -> bool:
    return not quoted.kind and 1 < quoted.value < 10 and not float(quoted.value).is_integer()


def _is_known(verdict: Verdict, edition: Edition) -> bool:
    """True for a step on the way that is known by itself, or that an assumption gives."""
    quoted = verdict.quoted
    if _is_sure(verdict) or _is_unrounded_batch(quoted):
        return True
    count = parameters(asked_model(edition)).total
    scales = (1,) if quoted.kind else (1, 1e9, 1e12)
    return any(
        abs(quoted.value - count / scale) <= quoted.half
        or is_row(quoted.value * scale, edition, quoted.half * scale)
        for scale in scales
    )


def _mixes_units(verdicts: list[Verdict]) -> bool:
    """True where of numbers without a unit some are right as GB, and others as GiB."""
    bare = [each for each in verdicts if not each.quoted.kind]
    ratios = [each.ways[0].value / each.quoted.value for each in bare if each.quoted.value < 1e6]
    return len({ratio > 1.05 * GB for ratio in ratios if ratio > GB / 2}) > 1


def _is_unclear(verdict: Verdict, text: str, part: str) -> bool:
    """True for a share of which a text may say that it is of another part of the model."""
    ways = [way for way in verdict.ways if way.unit == "share"]
    if not ways or not text:
        return False
    if part == "d":  # of three sizes, so that nearly every share is somebody's
        return True
    named = parts_named(text[: verdict.quoted.start])[-1:]
    return bool(named) and not any(named[0] in way.quantity for way in ways)


def _refuse_mixed_sizes(verdicts: list[Verdict], text: str) -> None:
    """Raise `Wrong` where a total stands behind the name of another size than its own."""
    named = {
        each: match[1].lower()
        for each in verdicts
        if (match := re.search(r"\b(small|medium|large)\W{0,4}$", text[: each.quoted.start], re.I))
    }
    for each, size in named.items() if len(named) > 1 else ():
        own = {way.quantity.rpartition(" ")[2] for way in each.ways if way.unit == "flops"}
        if each.good and own and size not in own:
            raise Wrong(
                f"Those are the FLOPs of GPT-2 {' or '.join(sorted(own))}.",
                got=Words(f"{size}: {each.quoted.text}"),
                mistake="The sizes are mixed up.",
            )


def _kinds_that_are_right(verdicts: list[Verdict], edition: Edition) -> set[str]:
    """The kinds of numbers of which as many are right as surely wrong: one may be by accident."""
    right: dict[str, int] = {}
    for each in verdicts:
        wrong = _is_sure(each) and not is_row(each.quoted.value, edition)
        change = 1 if each.good else -1 if wrong else 0
        right[each.quoted.kind] = right.get(each.quoted.kind, 0) + change
    good = {each.quoted.kind for each in verdicts if each.good}
    return {kind for kind in good if right[kind] >= 0}


def _is_sure(verdict: Verdict) -> bool:
    """True for a number that assumptions explain and that has digits enough to tell."""
    quoted = verdict.quoted
    return verdict.status == "explained" and quoted.digits > (quoted.kind in ("", "share")) + 1


def _is_step(verdict: Verdict, right: set[str], text: str, prose: bool, edition: Edition) -> bool:
    """True for a number of a text that may be a step on the way, so that it is not refused.

    `right` are the kinds of those numbers of the text that are right. In prose nothing is refused
    unless assumptions are known that give it.
    """
    quoted, sure = verdict.quoted, _is_sure(verdict)
    beside = quoted.kind in right or bool(right and not quoted.kind)
    flipped = [[switch.field for switch in way.flipped] for way in verdict.ways]
    if (prose or beside) and ["context_length"] in flipped:
        return True  # what it was before the context grew
    if beside and (prose or not sure or is_row(quoted.value, edition)):
        return True
    if beside and ["number_bytes"] in flipped:
        return True  # what it would be in another precision
    if quoted.kind == "share" and not sure:
        return True  # rounded more coarsely than a share can be judged
    called = r"\b(?:total|sum|altogether|overall|in all)\b[^.;]*$"
    total = re.search(called, text[: quoted.start], re.I)
    return prose and (not sure or (is_row(quoted.value, edition) and not total))


def _is_role(quoted: Quoted, text: str) -> bool:
    """True for the a of "a·batch + b", and for the batch."""
    slope = r"\s*[·*×]?\s*(?:B|b|bs|batch\w*)\b\s*\+"
    return bool(re.match(slope, text[quoted.end :])) or _is_batch(quoted, text)


def _is_batch(quoted: Quoted, text: str) -> bool:
    """True for a whole number that a text calls the batch."""
    if quoted.kind or not float(quoted.value).is_integer() or quoted.value > 512:
        return False
    named = r"(?:batch[\w ]*|max\w*|\bB|\bso|->|=>|→)\s*(?:is|of|[:=≤~]|<=)?\s*$"
    return bool(re.search(named, text[: quoted.start], re.I))
