"""The check of `decode`: new ids where there is no choice, and how often each where there is."""

import inspect
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from workbook.checks.decoding_models import Model, Sure, Undecided
from workbook.checks.decoding_slips import (
    CHAIN_SLIPS,
    CHOICE_SLIPS,
    SHARES,
    Chain,
    Choice,
    probabilities,
    written,
)
from workbook.checks.likeliest import likeliest
from workbook.checks.text_variants import Variant
from workbook.checks.verdicts import NotAttempted, Words, Wrong, call, expect_function, kind_of

SIGNATURE = "decode(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None)"
DRAWS = 250  # ids drawn at each setting
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
        """Nothing; learns whether the prompt must be a tensor, which the course leaves open."""
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
    """Nothing; notes what temperature 0 does, which the course does not ask for."""
    try:
        got = learner.run(Undecided(), (0,), 5, temperature=0.0)
    except (Wrong, NotAttempted):  # to refuse it is as good
        return
    if got != [SHARES.index(max(SHARES))] * 5:
        learner.notes["greedy"] = (
            "temperature 0 stands for the likeliest id each time, where it is allowed at all; "
            "yours gives something else"
        )
