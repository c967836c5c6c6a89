"""The check of learning_rate_tuning: the losses of the toy, or what is said about them.

The loss is the mean of the squares of 100 weights, drawn from N(0, 5²). Its gradient is 0.02 times
the weights, so step t multiplies them all by 1 - 0.02 α / √(t + 1), and the loss by its square.
"""

import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from workbook.checks.figures import claims, text_of
from workbook.checks.verdicts import Facts, NotAttempted, Words, Wrong

RATES = (10, 100, 1000)
# The mean of 100 squares of N(0, 5²) is 25 ± 3.5; this is six times that to both sides.
LOWEST, HIGHEST = 4.0, 46.0
EXACT = 0.01  # relative, of a quotient of two losses
ROUNDED = 0.006  # absolute: people write two decimals, and zero is not quite zero
HOW = "the losses of a run as a list, a dict such as {10: [...], 100: [...]}, or a sentence"
FACTS = Facts(
    (
        "10: the loss falls with every step, faster than with 1",
        "100: the first step keeps the loss, then it falls, and the fourth brings it to zero, up "
        "to rounding",
        "1,000: the loss grows from the first step on: it diverges",
    )
)
SLIPS: dict[str, Callable[[float, int], float]] = {
    "The loss is a mean: yours seems to be the gradient of a sum, 100 times as large.": (
        lambda rate, t: 1 - 2 * rate / math.sqrt(t + 1)
    ),
    "The rate of a step is α / √(t + 1): yours does not shrink.": lambda rate, t: 1 - 0.02 * rate,
    "The rate of a step is α / √(t + 1): the root is missing.": (
        lambda rate, t: 1 - 0.02 * rate / (t + 1)
    ),
    "The step goes up the hill: subtract the gradient.": (
        lambda rate, t: 1 + 0.02 * rate / math.sqrt(t + 1)
    ),
}
FALLS = (
    r"\b(?:fall|decay|decreas|drop|converg|shrink|reduc|vanish|smooth|lower|declin|zero|0\b|small"
    r"|tiny|fast|slow|(?:go|went|goes) down)|\de-\d"
)
GROWS = (
    r"\b(?:diverg|explo|blow|grow|ris(?:es|ing)|rose|increas|overflow|inf|nan\b|unstable"
    r"|(?:go|went|goes) up)"
)
WAVERS = r"\b(?:bounc|fluctuat|jump|oscillat|unstable|instab|slower)"
# For each rate: what would be right, what would be wrong, and what to say then.
SAID = {
    10: (FALLS, GROWS, "With 10 all factors are between 0 and 1: the loss only falls."),
    100: (
        FALLS,
        rf"{GROWS}|{WAVERS}",
        "With 100 the loss never rises: the first step turns the sign of all weights and keeps the "
        "loss, then it falls, and the fourth step multiplies by 0.",
    ),
    1000: (
        GROWS,
        FALLS,
        "With 1,000 the first step multiplies the weights by -19: the loss grows, and goes on "
        "growing.",
    ),
}
_RATE = re.compile(
    r"(?<![\w.,×*^-])(1e\+?0?[123]|10{1,2}|1,?000|10\^[123])(?![\w.^]|,\d)"
    r"(?!\s*(?:steps?|iterations?|times|epochs?|entries|weights|%|[x×]))"
)
_CLAUSE = re.compile(r"(?<=[.;!?])\s|\n|[,;:]\s| and | but | while | whereas |\(")
_OTHER = re.compile(r"\b(?:larger|higher|bigger|greater|beyond|above|smaller|other|1\.0)\b", re.I)


def learning_rate_tuning(attempt: Any, part: str | None = None) -> str | Facts:
    """What holds of an attempt at learning_rate_tuning."""
    if type(attempt) in (int, float):
        raise NotAttempted(f"Which run is that number from? Hand in {HOW}.")
    if type(attempt) is dict:
        return _runs(attempt)
    if isinstance(attempt, str):
        return _text(attempt)
    numbers = _numbers(attempt)
    if isinstance(numbers, list) and numbers and all(type(x) is float for x in numbers):
        return _run(numbers, None)
    if isinstance(numbers, list) and len(numbers) == len(RATES):
        return _runs(dict(zip(RATES, numbers, strict=True)))
    text_of(attempt, HOW)
    raise NotAttempted


def _numbers(value: Any) -> Any:
    """Sequences as lists, numbers in them as floats; what is neither stays as it is."""
    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):  # a tensor or an array, without importing either
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_numbers(item) for item in value]
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _runs(runs: dict) -> str | Facts:
    """What holds of several runs, by learning rate: losses, a last loss, or words."""
    said, words = [], []
    for key, value in runs.items():
        found = _RATE.search(str(key).replace("10.0", "10").replace("00.0", "00"))
        rate, value = _rate(found[1]) if found else None, _numbers(value)
        if isinstance(value, str):
            words.append(f"{key}: {value}")
        elif rate is None:
            continue
        elif type(value) is float:
            said.append(_last(value, rate))
        elif isinstance(value, list) and all(type(loss) is float for loss in value):
            said.append(_run(value, rate))
    if words:
        _text(". ".join(words))
    if not said and not words:
        raise NotAttempted(f"Name the learning rates. Hand in {HOW}.")
    return " ".join(said) or FACTS


def _rate(name: str) -> int:
    """The number of a learning rate as people write it: 1e2, 100, 10^2."""
    power = re.fullmatch(r"10\^(\d)", name)
    return 10 ** int(power[1]) if power else int(float(name.replace(",", "")))


def _factor(rate: float, t: int) -> float:
    return 1 - 0.02 * rate / math.sqrt(t + 1)


def _follows(losses: Sequence[float], factor: Callable[[int], float]) -> int | None:
    """The first step whose loss does not follow from the one before; None where all do."""
    for t, (before, after) in enumerate(pairwise(losses)):
        if not math.isfinite(before):
            return None
        expected = before * factor(t) ** 2
        if math.isfinite(after) and abs(after - expected) > max(ROUNDED, EXACT * expected):
            return t + 1
    return None


def _run(losses: list[float], rate: int | None) -> str:
    """Praise for the losses of a run; `rate` is its learning rate, if it was said.

    They may be those before each step or those after it.
    """
    if len(losses) < 3:
        raise NotAttempted(f"More losses are needed to tell. Hand in {HOW}.")
    fitting = {
        (r, after): math.prod(_factor(r, t) ** 2 for t in range(after))  # the first loss, in shares
        for after in (0, 1)
        for r in (1, *RATES)
        if _follows(losses, lambda t, r=r, after=after: _factor(r, t + after)) is None
    }
    if rate is None and fitting:
        rate = next(r for r, _ in fitting)
    shares = [share for (r, _), share in fitting.items() if r == rate]
    if not shares:
        _refuse(losses, rate, [r for r, _ in fitting])
    if not any(LOWEST * share < losses[0] < HIGHEST * share for share in shares):
        late = (rate, 0) not in fitting and LOWEST < losses[0] < HIGHEST
        raise Wrong(
            "The first loss is not that of fresh weights.",
            expected=Words(f"about {25 * shares[0]:g}: the squares of N(0, 5²) have the mean 25"),
            got=losses[0],
            mistake="t begins at 0: yours begins at 1."
            if late
            else "The weights were not drawn anew: the run goes on where the one before ended, or "
            "they lack the factor 5.",
        )
    return f"The losses with {rate:,} follow (1 - 0.02 α / √(t + 1))² from step to step."


def _refuse(losses: list[float], rate: int | None, fitting: list[int]) -> None:
    """Raise what is wrong with losses that do not follow the formula."""
    slips = (
        slip
        for slip, factor in SLIPS.items()
        for r in ([rate] if rate else RATES)
        if _follows(losses, lambda t, r=r, factor=factor: factor(r, t)) is None
    )
    if rate is None:
        raise Wrong(
            "These are the losses of none of the three runs.",
            expected=Words("losses that a step with α multiplies by (1 - 0.02 α / √(t + 1))²"),
            got=losses,
            mistake=next(slips, None),
        )
    at = _follows(losses, lambda t: _factor(rate, t))
    other = f"These are the losses with {fitting[0]:,}." if fitting else None
    raise Wrong(
        f"With {rate:,} the loss after step {at} is another one.",
        given=Words(f"{losses[at - 1]:.4g} * (1 - 0.02 * {rate} / sqrt({at})) ** 2"),
        expected=Words(f"{losses[at - 1] * _factor(rate, at - 1) ** 2:.4g}"),
        got=Words(f"{losses[at]:.4g}"),
        mistake=other or next(slips, None),
    )


def _last(loss: float, rate: int) -> str:
    """Praise for the last loss of a run of ten steps."""
    shares = [math.prod(_factor(rate, t) ** 2 for t in range(steps)) for steps in (9, 10)]
    low, high = LOWEST * min(shares), max(HIGHEST * max(shares), ROUNDED)
    if not low <= loss <= high and not (rate == 1000 and loss == math.inf):
        raise Wrong(
            f"That is not the loss after ten steps with {rate:,}.",
            expected=Words(f"{25 * shares[1]:.2g}, give or take the luck of the draw"),
            got=loss,
            mistake=SAID[rate][2],
        )
    return f"{loss:.2g} is what ten steps with {rate:,} leave."


def _text(text: str) -> Facts:
    """The facts to tick for a text in which no rate is said to do what it does not."""
    text_of(text, HOW)
    for rate, clauses in _clauses(text).items():
        right, wrong, why = SAID[rate]
        said = "; ".join(clauses)
        if claims(said, wrong) and not claims(said, right):
            raise Wrong(
                f"That is not what happens with {rate:,}.",
                expected=Words(FACTS[RATES.index(rate)]),
                got=Words(said if len(said) < 100 else said[:100] + "..."),
                mistake=why,
            )
    return FACTS


def _clauses(text: str) -> dict[int, list[str]]:
    """What a text says of each rate: a clause without one goes on about the one before."""
    found: dict[int, list[str]] = {}
    rate = None
    for clause in filter(None, _CLAUSE.split(text)):
        named = [_rate(match[1]) for match in _RATE.finditer(clause)]
        if named or _OTHER.search(clause):
            rate = named[0] if len(named) == 1 else None
        if rate:
            found.setdefault(rate, []).append(clause.strip())
    return found
