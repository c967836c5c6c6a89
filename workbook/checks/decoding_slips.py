"""Decoding in stages, on plain numbers, and the mistakes that are made in each.

Two things are worked out: the new ids of a model that leaves no choice, and the probabilities of
the next id of a model that always says the same.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from workbook.checks.text_variants import Variant, stages


class Chain(NamedTuple):
    """What is asked of the model whose next id follows from all ids that it sees."""

    prompt: tuple[int, ...]
    max_new_tokens: int
    end_id: int | None = None
    context_length: int = 4096


class Choice(NamedTuple):
    """What is asked of the model whose next id has the same probabilities everywhere."""

    temperature: float = 1.0
    top_p: float = 1.0


VOCAB = 13
# Not in order, so that a place in the sorted list is not the id; no sum of them is near a `top_p`.
SHARES = (0.05, 0.21, 0.09, 0.18, 0.15, 0.11, 0.13, 0.08)


def follower(ids: list[int]) -> int:
    """The id that comes next: each id seen counts, and where it stands."""
    return sum((place + 2) * (token + 1) for place, token in enumerate(ids)) % VOCAB


RIGHT_CHAIN: dict[str, Callable] = {
    "count": lambda case: case.max_new_tokens,
    "begin": lambda case: True,
    "see": lambda ids, case: ids[-case.context_length :],
    "end": lambda case: case.end_id,
    "add_end": lambda: False,
    "return": lambda prompt, new: new,
}


def written(case: Chain, variants: tuple[Variant, ...] = ()) -> list[int]:
    """What `decode` returns, with the right way of each stage or the variants in their place."""
    do = stages(RIGHT_CHAIN, variants)
    new: list[int] = []
    for _ in range(do["count"](case) if do["begin"](case) else 0):
        token = follower(do["see"]([*case.prompt, *new], case))
        if token == do["end"](case):
            new += [token] * do["add_end"]()
            break
        new.append(token)
    return do["return"](list(case.prompt), new)


CHAIN_SLIPS = (
    Variant(
        "return",
        lambda prompt, new: prompt + new,
        "The prompt is returned as well: return the new ids alone.",
    ),
    Variant(
        "return", lambda prompt, new: new[-1:], "Only the last new id is returned: collect them."
    ),
    Variant(
        "add_end",
        lambda: True,
        "The end token is returned with the rest: look at a new id before you add it.",
    ),
    Variant(
        "end", lambda case: None, "It goes on behind the end token: stop where `end_id` comes."
    ),
    Variant(
        "end",
        lambda case: case.end_id or None,
        "It does not stop where `end_id` is 0, which is false in an `if`: ask `is not None`.",
    ),
    Variant(
        "begin",
        lambda case: case.end_id not in case.prompt,
        "An end token in the prompt ends it: look at the new id alone.",
    ),
    Variant("count", lambda case: case.max_new_tokens + 1, "It writes one id too many."),
    Variant("count", lambda case: case.max_new_tokens - 1, "It writes one id too few."),
    Variant(
        "count",
        lambda case: case.max_new_tokens - len(case.prompt),
        "The prompt is counted, and `max_new_tokens` counts new ids alone.",
    ),
    Variant(
        "see",
        lambda ids, case: list(case.prompt[-case.context_length :]),
        "The model sees the prompt alone each time: put each new id behind it.",
    ),
    Variant(
        "see",
        lambda ids, case: ids[-1:],
        "The model sees the last id alone: it needs all that come before it, too.",
    ),
    Variant(
        "see",
        lambda ids, case: ids[:1],
        "The logits of the first position were taken: those of the last say what comes next.",
    ),
    Variant(
        "see",
        lambda ids, case: ids[: max(1, len(ids) - 1)],
        "The logits of the last position but one were taken.",
    ),
    Variant(
        "see",
        lambda ids, case: ids[: case.context_length],
        "Where there are more ids than the context holds, the first are kept: keep the last.",
    ),
)


def softmax(logits: list[float]) -> list[float]:
    """Probabilities in proportion to e to the power of each logit."""
    powers = [math.exp(logit) for logit in logits]
    return [power / sum(powers) for power in powers]


def nucleus(shares: list[float], top_p: float) -> list[int]:
    """The ids of the smallest set whose probabilities reach `top_p`, the likeliest first."""
    order = sorted(range(len(shares)), key=lambda i: -shares[i])
    reached = [sum(shares[j] for j in order[:n]) for n in range(len(order))]
    return [i for i, before in zip(order, reached, strict=True) if before < top_p or top_p >= 1]


def _one_too_few(shares: list[float], top_p: float) -> list[int]:
    kept = nucleus(shares, top_p)
    return kept if top_p >= 1 else kept[:-1] or kept


def _one_too_many(shares: list[float], top_p: float) -> list[int]:
    order = sorted(range(len(shares)), key=lambda i: -shares[i])
    return order[: len(nucleus(shares, top_p)) + 1]


def _least_likely(shares: list[float], top_p: float) -> list[int]:
    order = sorted(range(len(shares)), key=lambda i: shares[i])
    return [i for n, i in enumerate(order) if sum(shares[j] for j in order[:n]) < top_p]


def _first_ids(shares: list[float], top_p: float) -> list[int]:
    return [i for i in range(len(shares)) if sum(shares[:i]) < top_p]


def share_out(drawn: list[float], kept: list[int]) -> list[float]:
    """The weights divided by their sum."""
    return [weight / sum(drawn) for weight in drawn] if kept else drawn


RIGHT_CHOICE: dict[str, Callable] = {
    "temper": lambda logits, temperature: softmax([logit / temperature for logit in logits]),
    "measure": lambda shares, plain: shares,
    "keep": nucleus,
    "weigh": lambda shares, kept: [shares[i] for i in kept],
    "name": lambda shares, kept: kept,
    "normalise": share_out,
}


def probabilities(case: Choice, variants: tuple[Variant, ...] = ()) -> list[float]:
    """The probability of each id to be drawn, all 0 where nothing is left to draw from."""
    do = stages(RIGHT_CHOICE, variants)
    logits = [math.log(share) for share in SHARES]
    shares = do["temper"](logits, case.temperature)
    kept = do["keep"](do["measure"](shares, list(SHARES)), case.top_p)
    weights = do["weigh"](shares, kept)
    drawn = [0.0] * len(SHARES)
    for token, weight in zip(do["name"](shares, kept), weights, strict=True):
        drawn[token] += weight
    return do["normalise"](drawn, kept)


def _rest_to(last: Callable[[list[int]], int]) -> Callable:
    """What is missing to a sum of 1 falls to one id."""

    def normalise(drawn: list[float], kept: list[int]) -> list[float]:
        rest = max(0.0, 1 - sum(drawn))
        return [weight + rest * (i == last(kept)) for i, weight in enumerate(drawn)]

    return normalise


def _also_where_all_are_kept(stage: str, function: Callable, mistake: str) -> tuple[Variant, ...]:
    """The mistake made always, and made only where top-p takes something away."""

    def where_cut(shares: list[float], kept: list[int]) -> list:
        cut = len(kept) < len(shares)
        return (function if cut else RIGHT_CHOICE[stage])(shares, kept)

    return Variant(stage, function, mistake), Variant(stage, where_cut, mistake)


TEMPERATURE = "The logits are divided by the temperature before the softmax: "
TOP_P = "Top-p keeps the smallest set of the likeliest ids whose probabilities reach p: "
NO_SUM = (
    "What top-p leaves adds up to less than 1, and the rest falls to the last id: divide by "
    "its sum."
)
CHOICE_SLIPS = (
    Variant(
        "temper",
        lambda logits, temperature: softmax(logits),
        TEMPERATURE + "yours changes nothing.",
    ),
    Variant(
        "temper",
        lambda logits, temperature: [share / temperature for share in softmax(logits)],
        TEMPERATURE + "you divided the probabilities, which changes nothing.",
    ),
    Variant(
        "temper",
        lambda logits, temperature: softmax([logit * temperature for logit in logits]),
        TEMPERATURE + "you multiplied.",
    ),
    Variant(
        "temper",
        lambda logits, temperature: softmax([share / temperature for share in softmax(logits)]),
        TEMPERATURE + "yours takes the softmax twice.",
    ),
    Variant(
        "temper",
        lambda logits, temperature: [1 / len(logits)] * len(logits),
        "All ids are drawn equally often: the logits are not used.",
    ),
    Variant("keep", lambda shares, top_p: nucleus(shares, 1.0), TOP_P + "yours keeps all."),
    Variant("keep", _one_too_few, TOP_P + "yours leaves out the id that reaches p."),
    Variant("keep", _one_too_many, TOP_P + "yours keeps one more."),
    Variant("keep", _least_likely, TOP_P + "yours begins with the least likely: sort downwards."),
    Variant("keep", _first_ids, TOP_P + "yours adds up in the order of the ids: sort first."),
    Variant(
        "keep",
        lambda shares, top_p: [i for i in nucleus(shares, 1.0) if shares[i] >= 1 - top_p],
        TOP_P + "yours compares each single probability with 1 - p.",
    ),
    Variant(
        "keep",
        lambda shares, top_p: (
            [i for i in nucleus(shares, 1.0) if top_p < 1 and shares[i] >= top_p]
            or nucleus(shares, 0.01 if top_p < 1 else 1.0)
        ),
        TOP_P + "yours compares each single probability with p.",
    ),
    Variant(
        "measure",
        lambda shares, plain: plain,
        "Top-p looks at the probabilities after the temperature, and yours at those before.",
    ),
    Variant("normalise", _rest_to(lambda kept: kept[-1] if kept else 0), NO_SUM),
    Variant("normalise", _rest_to(lambda kept: len(SHARES) - 1), NO_SUM),
    *_also_where_all_are_kept(
        "weigh",
        lambda shares, kept: [math.exp(shares[i]) for i in kept],
        "The kept probabilities go through a second softmax: divide them by their sum.",
    ),
    *_also_where_all_are_kept(
        "weigh",
        lambda shares, kept: [1.0] * len(kept),
        "All kept ids are drawn equally often: draw by their probabilities.",
    ),
    Variant(
        "weigh",
        lambda shares, kept: [float(i == kept[0]) for i in kept],
        "It always takes the likeliest id: draw, with `torch.multinomial`.",
    ),
    *_also_where_all_are_kept(
        "name",
        lambda shares, kept: list(range(len(kept))),
        "That is the place in the sorted list, and not the id that stands there: look it up.",
    ),
)
