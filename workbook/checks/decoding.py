"""The check of `decode`: new ids where there is no choice, and how often each where there is.

Two models without any learning are asked, whose answers can be worked out on plain numbers: the
new ids of one that leaves no choice, and the probabilities of the next id of one that always says
the same. The usual mistakes are variants of that working out.
"""

import inspect
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from workbook.checks.likeliest import likeliest
from workbook.checks.text_variants import Variant, stages
from workbook.checks.verdicts import NotAttempted, Words, Wrong, call, expect_function, kind_of

SIGNATURE = "decode(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None)"
DRAWS = 250  # ids drawn at each setting
SURE = 40.0  # a logit so far above the others that the rest is never drawn
VOCAB = 13
# Not in order, so that a place in the sorted list is not the id; no sum of them is near a `top_p`.
SHARES = (0.05, 0.21, 0.09, 0.18, 0.15, 0.11, 0.13, 0.08)


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


class Model(nn.Module):
    """Logits for ids. It names its context as models do, and notes how it was called."""

    def __init__(self, vocab_size: int, context_length: int):
        super().__init__()
        self.context_length = self.max_seq_len = context_length
        self.vocab_size, self.device = vocab_size, torch.device("cpu")
        self.config = SimpleNamespace(context_length=context_length, vocab_size=vocab_size)
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float32, device="cpu"))
        self.longest = 0
        self.with_gradients = False

    def forward(self, ids: Tensor, *others: Any, **named: Any) -> Tensor:
        if not isinstance(ids, Tensor):
            raise TypeError(
                f"the model takes a tensor of ids (1, T), and got a {type(ids).__name__}"
            )
        if ids.is_floating_point():
            raise TypeError(f"the model takes a tensor of whole numbers, and got {ids.dtype}")
        self.longest = max(self.longest, ids.shape[-1])
        self.with_gradients |= torch.is_grad_enabled()
        return self.logits(ids) * self.scale


class Sure(Model):
    """Leaves no choice: the next id follows from all that are seen, and from where they stand."""

    def __init__(self, context_length: int):
        super().__init__(VOCAB, context_length)

    def logits(self, ids: Tensor) -> Tensor:
        places = torch.arange(2, ids.shape[-1] + 2, device=ids.device)
        following = ((ids + 1) * places).cumsum(-1) % VOCAB
        return SURE * nn.functional.one_hot(following, VOCAB).to(torch.float32)


class Undecided(Model):
    """Says the same of each next id, whatever came before."""

    def __init__(self):
        super().__init__(len(SHARES), 4096)
        # The 3 changes no probability, but makes the logits unlike the logarithms of any.
        self.row = torch.tensor(SHARES, dtype=torch.float32, device="cpu").log() + 3

    def logits(self, ids: Tensor) -> Tensor:
        return self.row.expand(*ids.shape, len(SHARES))


CHAINS = (
    Chain((3,), 1),
    Chain((5, 1, 2), 6),
    Chain((2, 7), 8, end_id=9),
    Chain((2, 7), 8, end_id=4),
    Chain((3,), 6, end_id=0),
    Chain((5, 1, 2), 2, end_id=5),
    Chain((3, 1, 4, 2), 6, context_length=5),
    Chain((3, 1, 4, 2, 7, 5, 0), 2, context_length=5),
)
CHOICES = (
    Choice(),
    Choice(temperature=0.4),
    Choice(temperature=3.0),
    Choice(top_p=0.3),
    Choice(top_p=0.1),
    Choice(temperature=0.15, top_p=0.93),
)
ERRORS = {
    r"sum to 1|sum of prob|<= 0|contains either|non-empty|nan": "Nothing, or less than all, is "
    "left to draw from: top-p always keeps the likeliest id, and what it keeps is divided by its "
    "sum.",
    r"takes a tensor": "Make a tensor of int64 with the shape (1, T) of the ids, for the model.",
    r"iterat|unsqueeze|'list'|list' object": "`prompt_ids` is a list of ids: make a tensor of it.",
}


class Outcome(NamedTuple):
    """What came of one case: new ids, or how often each was drawn."""

    given: Any
    got: list
    right: bool


class Learner:
    """The learner's function, and how it wants its arguments."""

    def __init__(self, attempt: Callable):
        self.attempt = attempt
        self.prompt: Callable = list
        self.notes: dict[str, str] = {}

    def find_form(self) -> None:
        """Learn whether the prompt must be a tensor, which the course leaves open."""
        forms = (list, torch.tensor, lambda ids: torch.tensor([ids]))
        for form in forms:
            self.prompt = form
            try:
                self.run(Sure(4096), CHAINS[0].prompt, 1)
                return
            except Wrong as failure:
                if failure.timed_out:
                    raise
        self.prompt = list

    def run(
        self,
        model: Model,
        prompt: Sequence[int],
        max_new_tokens: int,
        temperature: float = 1.0,
        top_p: float = 1.0,
        end_id: int | None = None,
    ) -> list[int]:
        """The ids that it returns, as a plain list; errors are told with what they come from."""
        named = {"temperature": temperature, "top_p": top_p, "end_id": end_id}
        shown = ", ".join(f"{k}={v}" for k, v in named.items() if v is not None)
        given = Words(f"decode(model, {list(prompt)}, {max_new_tokens}, {shown})")
        arguments = model, self.prompt(list(prompt)), max_new_tokens
        model.train()
        try:
            inspect.signature(self.attempt).bind(*arguments, *named.values())
            arguments, named = (*arguments, *named.values()), {}
        except (TypeError, ValueError):
            pass  # keyword-only, perhaps
        try:
            result = call(self.attempt, *arguments, given=given, **named)
            if inspect.isgenerator(result):
                result = call(lambda: list(result), given=given)
        except Wrong as failure:
            said = dict(failure.rows).get("got", "")
            known = (words for piece, words in ERRORS.items() if re.search(piece, said))
            failure.mistake = next(known, failure.mistake)
            raise
        self._note(model)
        return _ids(result, given)

    def _note(self, model: Model) -> None:
        if model.with_gradients:
            self.notes["gradients"] = (
                "every call of the model keeps what a backward pass would need: decode under "
                "`torch.no_grad()`"
            )
        if model.longest > model.context_length:
            self.notes["context"] = (
                "a model cannot look at more ids than its `context_length`, and yours is shown "
                "all: show it the last ones"
            )
        if not model.training:
            self.notes["mode"] = "the model is left in `eval()`, though it was in `train()` before"


def _ids(result: Any, given: Words) -> list[int]:
    """What was returned as a list of ints, be it a list, a tensor or a list of tensors."""
    if result is None:
        raise NotAttempted
    try:
        if isinstance(result, str | bytes | dict):
            raise TypeError
        flat = np.asarray(
            result.tolist() if isinstance(result, Tensor) else [_plain(x) for x in result]
        ).reshape(-1)
        if flat.size and flat.dtype.kind not in "iu":
            raise TypeError
        return [int(x) for x in flat]
    except (TypeError, ValueError, RuntimeError):
        raise Wrong(
            "It does not return ids.",
            given=given,
            expected=Words("a list of the new ids"),
            got=Words(kind_of(result)),
            mistake="Turning ids into text is left to the tokenizer: return the ids.",
        ) from None


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, Tensor) else value


def decoding(attempt: Any, part: str | None = None) -> str:
    """Praise for a right function; raises `Wrong` with the first case that fails."""
    expect_function(attempt, SIGNATURE)
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(6)  # so that the same function is judged the same way each time
    learner = Learner(attempt)
    learner.find_form()
    _check_chains(learner)
    _check_choices(learner)
    _check_greedy(learner)
    praise = "The new ids are right, and each is drawn as often as it should be."
    return " ".join([praise, *(f"Worth knowing: {note}." for note in learner.notes.values())])


def _check_chains(learner: Learner) -> None:
    """Raise `Wrong` unless the ids are right where the model leaves no choice."""
    outcomes: list[Outcome] = []
    for case in CHAINS:
        outcomes.append(_chain(learner, case))
        if not outcomes[-1].right:
            slips = _likeliest(
                CHAIN_SLIPS,
                outcomes,
                [partial(_chain, learner, other) for other in CHAINS[len(outcomes) :]],
                lambda slips, outcome: written(outcome.given, slips) == outcome.got,
            )
            if not slips:  # what spoils the draws may spoil these ids, and has a name
                _check_choices(learner)
            raise Wrong(
                "The new ids are not right.",
                given=_shown_chain(case),
                expected=written(case),
                got=outcomes[-1].got,
                mistake=_words(slips),
            )


def _chain(learner: Learner, case: Chain) -> Outcome:
    model = Sure(case.context_length)
    got = learner.run(model, case.prompt, case.max_new_tokens, end_id=case.end_id)
    return Outcome(case, got, got in _right_chains(case))


def _likeliest(
    slips: Sequence[Variant], outcomes: list[Outcome], more: list[Callable], fits: Callable
) -> tuple[Variant, ...]:
    """The mistakes that explain the last outcome; `more` cases tell apart those that agree."""
    known = list(outcomes)
    for other in more:
        with suppress(Wrong, NotAttempted):
            known.append(other())
    return likeliest(slips, outcomes[-1], known, fits, pairs=True)


def _right_chains(case: Chain) -> list[list[int]]:
    """What may be returned, since the course says nothing of the context.

    Where it is full the text may end, or a window slide that is one id shorter than it could be;
    and a model may be shown more than it can see.
    """
    right = written(case)
    if case.context_length > len(case.prompt) + case.max_new_tokens:
        return [right]
    room = max(0, case.context_length - len(case.prompt))
    other = [written(case._replace(context_length=c)) for c in (case.context_length - 1, 4096)]
    return [right, right[:room], right[: room + 1], *other]


def _shown_chain(case: Chain) -> Words:
    end = "" if case.end_id is None else f", end_id={case.end_id}"
    small = f" of context_length {case.context_length}" if case.context_length < 4096 else ""
    return Words(
        f"decode(model, {list(case.prompt)}, {case.max_new_tokens}{end}), with a model{small} that "
        "leaves no choice"
    )


def _words(slips: Sequence[Variant]) -> str | None:
    return " And: ".join(slip.mistake for slip in slips) or None


def _check_choices(learner: Learner) -> None:
    """Raise `Wrong` unless each id is drawn as often as temperature and top-p say."""
    outcomes: list[Outcome] = []
    for case in CHOICES:
        outcomes.append(_choice(learner, case))
        if not outcomes[-1].right:
            slips = _likeliest(
                CHOICE_SLIPS,
                outcomes,
                [partial(_choice, learner, other) for other in CHOICES[len(outcomes) :]],
                lambda slips, outcome: _plausible(outcome.got, probabilities(outcome.given, slips)),
            )
            expected = [round(DRAWS * share) for share in probabilities(case)]
            raise Wrong(
                "The ids are not drawn as often as they should be.",
                given=f"decode(model, [0], {DRAWS}, temperature={case.temperature}, "
                f"top_p={case.top_p}), with a model that gives the ids 0 to {len(SHARES) - 1} the "
                f"probabilities {list(SHARES)}",
                expected=Words(f"each about so often: {expected}"),
                got=Words(str(outcomes[-1].got)),
                mistake=_words(slips),
            )
    one, other = (learner.run(Undecided(), (0,), 40) for _ in range(2))
    if one == other:
        learner.notes["seed"] = (
            "every call draws the same ids, so the generator is seeded inside: let the caller seed"
        )


def _choice(learner: Learner, case: Choice) -> Outcome:
    drawn = Counter(learner.run(Undecided(), (0,), DRAWS, case.temperature, case.top_p))
    counts = [drawn[token] for token in range(len(SHARES))]
    return Outcome(case, counts, _plausible(counts, probabilities(case)))


def _plausible(counts: Sequence[int], shares: Sequence[float]) -> bool:
    """True where fair draws with these probabilities may well give these counts."""
    if any(count and not share for count, share in zip(counts, shares, strict=True)):
        return False
    expected = [share * DRAWS for share in shares]
    chi2 = sum((c - e) ** 2 / e for c, e in zip(counts, expected, strict=True) if e)
    # A fair draw passes this limit less than once in 10⁸ times, whatever the degrees of freedom.
    return chi2 < 45 + 3 * sum(share > 0 for share in shares)


def _check_greedy(learner: Learner) -> None:
    """Note what temperature 0 does, which the course does not ask for."""
    try:
        got = learner.run(Undecided(), (0,), 5, temperature=0.0)
    except (Wrong, NotAttempted):  # to refuse it is as good
        return
    if got != [SHARES.index(max(SHARES))] * 5:
        learner.notes["greedy"] = (
            "temperature 0 stands for the likeliest id each time, where it is allowed at all; "
            "yours gives something else"
        )
