"""The schedule of learning rates in stages, and the mistakes that are made in each."""

import math
from collections.abc import Callable
from typing import NamedTuple

from workbook.checks.optimizer_values import quotient
from workbook.checks.text_variants import Variant, stages


class Settings(NamedTuple):
    """What stays the same from step to step, and the steps that are asked for."""

    highest: float
    lowest: float
    warmup: int
    end: int
    steps: tuple[int, ...]


RIGHT: dict[str, Callable] = {
    "read": lambda it, highest, lowest, warmup, end: (it, highest, lowest, warmup, end),
    "warm": lambda it, highest, lowest, warmup, end: it / warmup * highest,
    "done": lambda it, warmup, end: quotient(it - warmup, end - warmup),
    "angle": lambda done: math.pi * done,
    "share": lambda angle: (1 + cosine(angle)) / 2,
    "between": lambda share, highest, lowest: lowest + share * (highest - lowest),
    "over": lambda it, end: it > end,
    "rest": lambda highest, lowest: lowest,
}


def cosine(angle: float) -> float:
    """A cosine as a tensor has it: NaN where the angle is none."""
    return math.cos(angle) if math.isfinite(angle) else math.nan


def rate(it: int, given: Settings, variants: tuple[Variant, ...] = ()) -> float:
    """The learning rate of a step, with the right way of each stage or the variants."""
    do = stages(RIGHT, variants)
    it, highest, lowest, warmup, end = do["read"](it, *given[:4])
    if it < warmup:
        return do["warm"](it, highest, lowest, warmup, end)
    if do["over"](it, end):
        return do["rest"](highest, lowest)
    share = do["share"](do["angle"](do["done"](it, warmup, end)))
    return do["between"](share, highest, lowest)


WARM_UP = "The warm-up is it / warmup_iters * max: "
COSINE = (
    "The cosine goes from 0 to π as (it - warmup_iters) / (cosine_cycle_iters - warmup_iters) goes "
    "from 0 to 1: "
)
BETWEEN = "The rate is min + 1/2 (1 + cos(...)) (max - min): "
SLIPS = (
    Variant(
        "warm",
        lambda it, highest, lowest, warmup, end: (it + 1) / warmup * highest,
        WARM_UP + "yours is one step ahead; the first rate, at it = 0, is 0.",
    ),
    Variant(
        "warm",
        lambda it, highest, lowest, warmup, end: (it + 1) / (warmup + 1) * highest,
        WARM_UP + "yours counts both it and warmup_iters one too high.",
    ),
    Variant(
        "warm",
        lambda it, highest, lowest, warmup, end: it / (warmup + 1) * highest,
        WARM_UP + "yours divides by one too many.",
    ),
    Variant(
        "warm",
        lambda it, highest, lowest, warmup, end: it / max(1, warmup - 1) * highest,
        WARM_UP + "yours divides by one too few.",
    ),
    Variant(
        "warm",
        lambda it, highest, lowest, warmup, end: lowest + it / warmup * (highest - lowest),
        WARM_UP + "yours begins at the minimum; it begins at 0.",
    ),
    Variant(
        "warm",
        lambda it, highest, lowest, warmup, end: highest,
        WARM_UP + "yours is at the maximum at once.",
    ),
    Variant(
        "warm",
        lambda it, highest, lowest, warmup, end: lowest,
        WARM_UP + "yours stays at the minimum.",
    ),
    Variant(
        "warm",
        lambda it, highest, lowest, warmup, end: it // warmup * highest,
        WARM_UP + "yours divides whole numbers with //, which rounds down to 0.",
    ),
    Variant(
        "warm",
        lambda it, highest, lowest, warmup, end: it / warmup,
        WARM_UP + "yours lacks the maximum.",
    ),
    Variant(
        "warm",
        lambda it, highest, lowest, warmup, end: it / warmup * lowest,
        WARM_UP + "yours rises to the minimum.",
    ),
    Variant(
        "warm",
        lambda it, highest, lowest, warmup, end: it / end * highest,
        WARM_UP + "yours divides by cosine_cycle_iters.",
    ),
    Variant(
        "done",
        lambda it, warmup, end: quotient(it, end),
        COSINE + "yours takes it / cosine_cycle_iters, so that it does not begin at the maximum.",
    ),
    Variant(
        "done",
        lambda it, warmup, end: quotient(it - warmup, end),
        COSINE + "yours divides by cosine_cycle_iters alone, and does not get to the minimum.",
    ),
    Variant(
        "done",
        lambda it, warmup, end: quotient(it, end - warmup),
        COSINE + "yours does not subtract warmup_iters above the line.",
    ),
    Variant(
        "done",
        lambda it, warmup, end: quotient(it - warmup, end - warmup + 1),
        COSINE + "yours divides by one too many.",
    ),
    Variant(
        "done",
        lambda it, warmup, end: quotient(it - warmup, end - warmup - 1),
        COSINE + "yours divides by one too few.",
    ),
    Variant(
        "done",
        lambda it, warmup, end: quotient(it - warmup + 1, end - warmup),
        COSINE + "yours is one step ahead.",
    ),
    Variant(
        "done",
        lambda it, warmup, end: (it - warmup) // max(1, end - warmup),
        COSINE + "yours divides whole numbers with //, which rounds down to 0.",
    ),
    Variant("angle", lambda done: done, COSINE + "π is missing."),
    Variant("angle", lambda done: 180 * done, COSINE + "`cos` takes radians, not degrees."),
    Variant("angle", lambda done: 2 * math.pi * done, COSINE + "2π is a whole turn."),
    Variant("angle", lambda done: math.pi / 2 * done, COSINE + "π/2 is only half of the way."),
    Variant("share", lambda angle: 1 + cosine(angle), BETWEEN + "the 1/2 is missing."),
    Variant("share", lambda angle: cosine(angle) / 2, BETWEEN + "1 is not added to the cosine."),
    Variant("share", lambda angle: cosine(angle), BETWEEN + "you took the bare cosine."),
    Variant(
        "share",
        lambda angle: (1 - cosine(angle)) / 2,
        BETWEEN + "with 1 - cos it rises.",
    ),
    Variant(
        "share", lambda angle: (1 - cosine(angle + math.pi / 2)) / 2, BETWEEN + "that is a sine."
    ),
    Variant(
        "share",
        lambda angle: 1 - angle / math.pi,
        BETWEEN + "you took a straight line.",
    ),
    Variant(
        "between",
        lambda share, highest, lowest: share * (highest - lowest),
        BETWEEN + "min is not added.",
    ),
    Variant(
        "between",
        lambda share, highest, lowest: lowest + share * highest,
        BETWEEN + "yours goes up by max in place of max - min.",
    ),
    Variant(
        "between",
        lambda share, highest, lowest: share * highest,
        BETWEEN + "yours falls to 0, and not to min.",
    ),
    Variant(
        "over",
        lambda it, end: False,
        "After cosine_cycle_iters the rate stays at the minimum: yours follows the cosine, which "
        "rises again.",
    ),
    Variant(
        "rest",
        lambda highest, lowest: 0.0,
        "After cosine_cycle_iters the rate stays at the minimum, not at 0.",
    ),
    Variant(
        "rest",
        lambda highest, lowest: highest,
        "After cosine_cycle_iters the rate stays at the minimum, not at the maximum.",
    ),
    Variant(
        "read",
        lambda it, highest, lowest, warmup, end: (it, lowest, highest, warmup, end),
        "The maximum and the minimum are swapped: max comes first.",
    ),
    Variant(
        "read",
        lambda it, highest, lowest, warmup, end: (it, highest, lowest, warmup, warmup + end),
        "cosine_cycle_iters counts from step 0, warm-up included, not from the warm-up's end.",
    ),
    Variant(
        "read",
        lambda it, highest, lowest, warmup, end: (it + 1, highest, lowest, warmup, end),
        "The whole schedule is one step ahead: it = 0 is the first step, with rate 0.",
    ),
    Variant(
        "read",
        lambda it, highest, lowest, warmup, end: (max(0, it - 1), highest, lowest, warmup, end),
        "The whole schedule is one step late: steps are counted from it = 0.",
    ),
)
