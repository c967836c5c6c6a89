"""The check of `decode`: new tokens when there is no choice, and how often each when there is.

Two untrained models are used, whose results can be worked out on plain numbers: the new tokens of
one that leaves no choice, and the probabilities of the next token of one that always gives the
same. The course fixes no signature: a learner's function takes ids, or a text and a tokenizer,
under any usual names, and may return them with the prompt or without.
"""

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import eq, itemgetter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from workbook.classroom.checks.machinery.calling import (
    Runner,
    Unfit,
    call_part,
    meaning,
    parameters_of,
)
from workbook.classroom.checks.machinery.engine import Exercise, Program, instead_of, judge, mistake
from workbook.classroom.checks.machinery.from_scratch import check_style
from workbook.classroom.checks.machinery.verdicts import (
    Findings,
    NotAttempted,
    NotJudged,
    Prose,
    Wrong,
    expect,
    kind_of,
    work_of,
)
from workbook.corpora.corpora import END_OF_TEXT

SIGNATURE = "decode(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None)"
BY_IDS = f"Hand in a function of ids, {SIGNATURE}: let yours encode, call that, and decode."
ASKED = ("model", "prompt", "max_new_tokens", "temperature", "top_p", "end_token")
NAMES = (*ASKED, "tokenizer", "context_length", "device")
SIZE_NAMES = ("context_length", "vocab_size")
ENDLESS = 4096  # a context that is never full
TEXT_OR_IDS = (str, list, Tensor, np.ndarray)
DRAWS = 250  # tokens drawn at each setting
RAISED = 3.0  # which changes no probability: logits need not be log-probabilities
SURE = 40.0  # a logit so far above the others that the rest is never drawn
IDS = 13  # that the model without a choice gives
# Not in order, so that a position in the sorted list is not the id; no sum is near a `top_p`.
# The last is never drawn: each model has such an id, for an end token that never comes.
SHARES = (0.27, 0.03, 0.07, 0.2, 0.16, 0.1, 0.13, 0.04, 1e-26)


class Request(NamedTuple):
    """What is asked of one of the models."""

    prompt: tuple[int, ...] = (0,)
    max_new_tokens: int = DRAWS
    end_id: int | None = None
    context_length: int = ENDLESS
    temperature: float = 1.0
    top_p: float = 1.0

    def __str__(self) -> str:
        return (
            f"decode(model, {list(self.prompt)}, {self.max_new_tokens}, "
            f"temperature={self.temperature}, top_p={self.top_p}, end_id={self.end_id})"
        )


# When the model leaves no choice.


def follower(ids: Sequence[int]) -> int:
    """The token that comes next: each of the last three counts, and so does its position."""
    return sum((place + 2) * (token + 1) for place, token in enumerate(ids[-3:])) % IDS


def written(case: Request) -> list[int]:
    """The new tokens."""
    ids = list(case.prompt)
    for _ in range(case.max_new_tokens):  # how many tokens are written
        new_id = follower(ids[-case.context_length :])  # what the model is shown
        if new_id == case.end_id:  # where it stops
            break
        ids.append(new_id)
    return ids[len(case.prompt) :]


COUNT, SEEN = "range(case.max_new_tokens)", "ids[-case.context_length :]"
IF_END, RETURN = "if new_id == case.end_id:", "return ids[len(case.prompt) :]"
GOES_ON = "It goes on after the end token: stop at its id, which an argument has to tell."
LAST_ONE = "The model sees only the last token: it needs all those before it, too."
CHAIN_MISTAKES = (
    mistake("Only the last new token is returned: collect them all.", RETURN, f"{RETURN}[-1:]"),
    *instead_of(
        IF_END,
        {
            GOES_ON: "if False:",
            "It stops at id 0, whichever id the end token has.": "if new_id == 0:",
            "It does not stop when `end_id` is 0, which is false in an `if`: test `is not None`.": (
                "if case.end_id and new_id == case.end_id:"
            ),
        },
    ),
    *instead_of(
        COUNT,
        {
            "Only the prompt comes back: append each new token to it, and return them all.": "()",
            # Where the context is full, one may stop.
            "Only one new token is written: is a loop missing, or a `return` inside it?": (
                f"range(1) if case.context_length == ENDLESS else {COUNT}"
            ),
            "An end token in the prompt ends it.": (
                f"{COUNT} if case.end_id not in case.prompt else ()"
            ),
            "It writes one token too many.": "range(case.max_new_tokens + 1)",
            "It writes one token too few.": "range(case.max_new_tokens - 1)",
            "The prompt is counted, but `max_new_tokens` counts only new tokens.": (
                "range(case.max_new_tokens - len(case.prompt))"
            ),
        },
    ),
    *instead_of(
        SEEN,
        {
            "The model sees only the prompt: append new"
            " tokens.": "case.prompt[-case.context_length :]",
            LAST_ONE: ("ids[-1:]", "ids[-1:] if len(ids) > len(case.prompt) else ids"),
            "The logits of the first position were taken: take those of the last.": "ids[:1]",
            "A full context keeps the first tokens: keep the last.": "ids[: case.context_length]",
            "A full context loses its oldest token, too: keep `context_length` of them.": (
                "ids[-case.context_length + 1 :]"
            ),
        },
    ),
)
CHAINS = (
    Request((3,), 1),
    Request((5, 1, 2), 6),
    Request((2, 7), 8, end_id=3),
    Request((2, 7), 8, end_id=4),
    Request((6,), 6, end_id=0),
    Request((5, 2, 1), 2, end_id=1),
    Request((3, 1), 8, context_length=3),
)

# When the same probabilities hold for every token.


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities in proportion to e to the power of each logit."""
    return np.exp(logits) / np.exp(logits).sum()


def probabilities(case: Request) -> np.ndarray:
    """The probability of each token to be drawn."""
    logits = np.log(SHARES)
    shares = softmax(logits / case.temperature)  # the temperature
    order = np.argsort(-shares)  # how the tokens are sorted for top-p
    before = np.cumsum(shares[order]) - shares[order]  # what top-p adds up
    kept = order[before < case.top_p]  # which tokens top-p keeps
    weights = shares[kept] / shares[kept].sum()  # what is drawn from
    drawn = np.zeros(len(shares))
    drawn[kept] = weights
    return drawn


# Pieces of the source above, which the mistakes edit. With IF_CUT, a mistake shows only where top-p
# leaves something out: many write `if top_p < 1`, others do without.
TEMPERED = "softmax(logits / case.temperature)"
ORDER, SUMS = "np.argsort(-shares)", "np.cumsum(shares[order]) - shares[order]"
BELOW, KEPT, IF_CUT = "before < case.top_p", "order[before < case.top_p]", "if case.top_p < 1 else"
WEIGHTS, DRAWN, RETURNED = "shares[kept] / shares[kept].sum()", "drawn[kept]", "return drawn"
TEMPERATURE = "The logits are divided by the temperature before the softmax: "
TOP_P = "Top-p keeps the smallest set of the likeliest tokens whose probabilities reach p: "
NO_SUM = "What top-p keeps adds up to less than 1: divide by the sum."
TWICE = "The kept probabilities go through a second softmax: divide them by their sum."
EQUALLY = "All kept tokens are drawn equally often: draw according to their probabilities."
PLACE = "That is the index in the sorted list, not the id at that index: look it up."
CHOICE_MISTAKES = (
    *instead_of(
        TEMPERED,
        {
            "yours changes nothing.": "softmax(logits)",
            "you multiplied.": "softmax(logits * case.temperature)",
            "yours takes the softmax twice.": "softmax(softmax(logits) / case.temperature)",
        },
        TEMPERATURE,
    ),
    *(
        mistake(
            TEMPERATURE + "you divided the probabilities, which changes nothing.",
            TEMPERED,
            "softmax(logits) / case.temperature",
            BELOW,
            code,
        )
        for code in (BELOW, "(before < case.top_p) | (case.top_p == 1)")
    ),
    *instead_of(
        RETURNED,
        {
            "The least likely token is always taken: `argmin`, or the wrong end of a list?": (
                "return np.eye(len(shares))[shares.argmin()]"
            ),
            "Id 0 is never drawn: it is a token like any other.": (
                "drawn[0] = 1e-26\nreturn drawn / drawn.sum()"
            ),
        },
    ),
    *instead_of(
        BELOW,
        {
            "yours keeps all.": "before < 2",
            "yours leaves out the "
            "token that reaches p.": "(before + shares[order] < case.top_p + 1e-9) | (before == 0)",
            "yours keeps one too many.": "np.append(0, before[:-1]) < case.top_p",
            "yours compares each single probability with p.": (
                "(shares[order] >= case.top_p) | (before == 0) | (case.top_p == 1)"
            ),
            "in ascending order, tokens are dropped as long as their sum is below 1 - p; yours "
            "drops them as long as it is below p.": (
                "(before <= 1 - case.top_p) | (case.top_p == 1)"
            ),
        },
        TOP_P,
    ),
    *instead_of(
        ORDER,
        {
            "yours begins with the least likely: sort in descending order.": "np.argsort(shares)",
            "yours adds up in the order of the ids: sort first.": "np.arange(len(shares))",
        },
        TOP_P,
    ),
    mistake(
        "The mask of what top-p keeps is in sorted order, but yours is applied in the order of "
        "the ids: map it back with the indices of `sort`, or mask the sorted values.",
        KEPT,
        "np.flatnonzero(before < case.top_p)",
    ),
    *(
        mistake(
            "What top-p leaves out has the logit 0, and e to the power 0 is 1, not a small "
            "share: its logit must be minus infinity.",
            RETURNED,
            f"raised = (np.log(SHARES) + RAISED) / case.temperature\nreturn {code}",
        )
        for code in (
            "softmax(np.where(drawn > 0, raised, 0)) if case.top_p < 1 else drawn",
            "softmax(np.where(drawn > 1e-20, raised, 0))",
        )
    ),
    mistake(
        "Top-p looks at the probabilities after the temperature, but yours at those before.",
        SUMS,
        "np.cumsum(softmax(logits)[order]) - softmax(logits)[order]",
    ),
    mistake(
        TOP_P + "yours keeps a fixed number of tokens, which is top-k.",
        KEPT,
        "order[: max(1, int(case.top_p * len(order)))]",
    ),
    *(
        mistake(
            NO_SUM,
            WEIGHTS,
            "shares[kept]",
            RETURNED,
            f"drawn[{last}] += 1 - drawn.sum()\nreturn drawn",
        )
        for last in ("kept[-1]", "-1")
    ),
    *instead_of(
        WEIGHTS,
        {
            EQUALLY: "softmax(0 * kept)",
            TWICE: ("softmax(shares[kept])", f"softmax(shares[kept]) {IF_CUT} {WEIGHTS}"),
        },
    ),
    *instead_of(  # in this order: few draws do not tell these two from one another
        WEIGHTS,
        {
            EQUALLY: f"softmax(0 * kept) {IF_CUT} {WEIGHTS}",
            TEMPERATURE + "yours draws from the undivided ones.": "softmax(logits[kept])",
            "It always takes the likeliest token, here id 0: use `torch.multinomial`, on a softmax "
            "over the last axis.": "np.eye(len(kept))[0]",
            "With top_p below 1 it always takes the likeliest token: draw from all that top-p "
            "keeps.": f"np.eye(len(kept))[0] {IF_CUT} {WEIGHTS}",
        },
    ),
    *instead_of(
        DRAWN, {PLACE: ("drawn[: len(kept)]", f"drawn[np.arange(len(kept)) {IF_CUT} kept]")}
    ),
)
CHOICES = (
    Request(),
    Request(temperature=0.1),
    Request(temperature=3.0),
    Request(top_p=0.5),
    Request(top_p=0.1),
    Request(temperature=0.3, top_p=0.88),
    Request(temperature=3.0, top_p=0.7),
)
ERRORS = {
    "sum to 1|sum of prob|<= 0|contains either|non-empty|nan": "Too little is left to draw from: "
    "top-p keeps the likeliest token in any case, and what it keeps is divided by its sum.",
    "used as indices": "Make the ids an int64 tensor of shape (1, T) for the model.",
    "is out of bounds": "No sum may exceed p: in float32 even the last may be "
    "below 1. Go no further than the last token.",
    "values to unpack": "The model returns only the logits, (1, T, vocab_size).",
    "CUDA|NVIDIA": "There is no GPU here: put the ids on `next(model.parameters()).device`.",
    "prob_dist must be 1 or 2 dim|too many indices": "Give the model a batch of one, (1, T): the "
    "logits of the next token are then `logits[0, -1]`.",
    "more often than": "It goes on after `max_new_tokens` tokens: stop there, whatever comes.",
    "iterat(?!ion over a 0-d)|unsqueeze|'list'|list' object": "The prompt is a list of ids: make a "
    "tensor of it.",
}
NOTES = {
    "gradients": "Each call keeps what a backward pass needs: decode under `torch.no_grad()`.",
    "context": "No model sees more than `context_length` tokens: give it only the last ones.",
    "end": "The end token comes back with the new tokens: whoever shows the text takes it off.",
    "prompt": "The prompt comes back before the new tokens: whoever calls it has to take it off.",
}


LOW_TEMPERATURE = 0.01
LARGE = f"decode(model, [5, 1, 2], 3, temperature={LOW_TEMPERATURE}), with logits of {SURE:g} and 0"
OVERFLOW = (
    "e to the power of a large number is infinite in float32: the softmax subtracts the largest"
    " logit first."
)


class ScriptedModel(nn.Module):
    """Logits for ids; its sizes have any usual name, and it notes how it is called."""

    # Here, too, because a subclass with a learner's methods may have a property of such a name.
    context_length = 0
    vocab_size = 0
    device = torch.device("cpu")

    def __init__(self, vocab_size: int, context_length: int, logits: Callable[[Tensor], Tensor]):
        nn.Module.__init__(self)  # never a learner's
        self.context_length = context_length
        self.vocab_size = vocab_size
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float32, device="cpu"))
        self.logits = logits
        self.longest = 0
        self.calls = 0
        self.most_calls = 100
        self.with_gradients = False

    def forward(self, *args: Any, **named: Any) -> Tensor:
        ids = next(iter([*args, *named.values()]))
        self.longest = max(self.longest, ids.shape[-1])
        self.calls += 1  # with a tensor, at least
        if self.calls > self.most_calls:
            raise RuntimeError(f"the model was called more often than {self.most_calls} times")
        self.with_gradients |= torch.is_grad_enabled()
        return self.logits(ids) * self.scale

    def __getattr__(self, name: str) -> Any:
        """Its sizes by any usual name, and itself as its `config` and `model`."""
        if name in ("config", "cfg", "args", "model"):
            return self
        if name not in self._parameters and (size := meaning(name, SIZE_NAMES)):
            return vars(self)[size]
        if name.startswith("__") or name in self._parameters:
            return super().__getattr__(name)
        raise NoSuchError(f"The check's model has no `{name}`: make that a function of its own.")


class NoSuchError(NotJudged, AttributeError):
    """The learner's function asks the check's model or tokenizer for what it does not have."""


def sure(context_length: int) -> tuple:
    """How to make a model that leaves no choice: `follower` of what is seen comes next."""

    def logits(ids: Tensor) -> Tensor:
        rows = ids.reshape(-1, ids.shape[-1]).tolist()
        following = [[follower(row[: place + 1]) for place in range(len(row))] for row in rows]
        return SURE * torch.eye(IDS + 1)[torch.tensor(following).reshape(ids.shape)]

    return IDS + 1, context_length, logits


def undecided() -> tuple:
    """How to make a model that gives the same logits for each next token, whatever came before."""
    row = torch.tensor(SHARES).log() + RAISED
    return len(SHARES), ENDLESS, lambda ids: row.expand(*ids.shape, len(SHARES))


class Letters:
    """A tokenizer, for a function that takes one: a token is a letter, or else the end's."""

    def __init__(self, end_id: int):
        self.end_id = end_id

    def __getattr__(self, name: str) -> Any:
        """The end token, by the names that learners' tokenizers have for it."""
        if name.startswith("__") or not re.search("eo[st]|end", name):
            raise NoSuchError(f"The check's tokenizer has no `{name}`. {BY_IDS}")
        return self.end_id if "id" in name else END_OF_TEXT

    def __getitem__(self, token_id: int) -> bytes:
        """The token of an id, for a function that takes a vocabulary."""
        return END_OF_TEXT.encode() if token_id == self.end_id else self.decode(token_id).encode()

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        letters = text.replace(END_OF_TEXT, chr(FIRST + self.end_id))
        return [ord(letter) - FIRST for letter in letters]

    def decode(self, ids: Any) -> str:
        """The text of ids, of which the end's is a letter, too."""
        return "".join(chr(FIRST + int(token)) for token in np.ravel(ids))


FIRST = ord("A")  # the letter of id 0
as_text = Letters(0).decode
# The forms of the prompt, in the order in which they are tried: the course names none.
FORMS: tuple[Callable, ...] = (list, torch.tensor, lambda ids: torch.tensor([ids]), as_text)


class DecodingRunner(Runner):
    """Runs a function or class: how it wants its arguments, and what to remark on."""

    def __init__(self, attempt: Callable):
        super().__init__(attempt)
        self.with_prompt = False
        self.notes = set[str]()
        self.as_prompt: Callable[[list[int]], Any] = list
        work = getattr(attempt, work_of(attempt)) if inspect.isclass(attempt) else None
        parameters = [p for part in (attempt, work) for p in parameters_of(part)]
        self.takes_seed = any(re.search("seed|generator|rng", p.name) for p in parameters)
        self.parameters = {meaning(p.name, NAMES): p for p in parameters}
        self.about = [name for name in ("context_length", "device") if name in self.parameters]
        # A method of a model gets one that has its class's other methods, too.
        self.model_kind: Any = ScriptedModel
        home = sys.modules.get(getattr(attempt, "__module__", ""))
        owner = getattr(home, getattr(attempt, "__qualname__", "").rpartition(".")[0], None)
        if inspect.isclass(owner) and issubclass(owner, nn.Module):
            self.model_kind = type(owner.__name__, (ScriptedModel, owner), {})

    def find_form(self) -> None:
        """Find the form of the prompt: the first that raises no error, or else the best.

        That is the one with which the model was called most often before the error.
        """
        prompt = self.parameters.get("prompt")
        tried = list[tuple[int, Callable]]()
        wants_text = prompt and prompt.annotation in (str, "str")
        for self.as_prompt in (as_text,) if wants_text else FORMS:
            try:
                chain_of(self, CHAINS[1])
                break
            except (Wrong, NotJudged):
                tried.append((self.model.calls, self.as_prompt))
        else:
            self.as_prompt = max(tried, key=itemgetter(0))[1]
        self.notes.clear()

    def run(self, case: Request, model_of: tuple) -> list[int]:
        """The new ids of a model, without prompt and end token. Raises: Wrong."""
        self.model = model = self.model_kind(*model_of)
        model.most_calls = case.max_new_tokens + len(case.prompt) + 8
        prompt = self.as_prompt(list(case.prompt))
        new = self.new_ids(model, prompt, case, never=model.vocab_size - 1)
        habits = {
            "gradients": model.with_gradients,
            "context": model.longest > model.context_length,
            "end": bool(new) and new[-1] == case.end_id,
            "prompt": self.with_prompt,
            "changed": prompt != as_text(case.prompt) and [*np.ravel(prompt)] != [*case.prompt],
        }
        self.notes |= {name for name, holds in habits.items() if holds}
        return new[:-1] if new and new[-1] == case.end_id else new

    def new_ids(
        self, model: Any, prompt: Any, case: Request, never: int, tokenizer: Any = None, seconds=5.0
    ) -> list[int]:
        """The ids that the function returns, without the prompt.

        `model` has the sizes that are asked for as attributes; `never` is the id of an end token
        for a function that must have one where none is to come; `tokenizer` is for one that takes
        a text (None: `Letters`). Raises: Wrong.
        """
        end = self.parameters.get("end_token")
        end_id = case.end_id
        if end_id is None and end and end.default is not None:
            end_id = never
        takes_list = end and re.search(r"\b(list|set)\b", str(end.annotation))
        model.tokenizer = tokenizer = tokenizer or Letters(never if end_id is None else end_id)
        end_token: Any = [end_id] if takes_list else end_id
        if end and (end.annotation in (str, "str") or type(end.default) is str):
            end_token = END_OF_TEXT
        values = (model, prompt, case.max_new_tokens, case.temperature, case.top_p, end_token)
        arguments = dict(zip(ASKED, values, strict=True)) | {"tokenizer": tokenizer}
        arguments |= {name: getattr(model, name) for name in self.about}
        options: dict[str, Any] = {"optional": [*self.about, "end_token", "tokenizer"]}
        # For a function that asks for all special tokens: those that end a text.
        options["extras"] = {"special_tokens": [] if case.end_id is None else [END_OF_TEXT]}
        try:
            result = call_part(self.attempt, arguments, given=case, seconds=seconds, **options)
        except Unfit as unfit:  # the course fixes no signature
            signature = f"The check finds {dict(unfit.rows)['got']}.".replace("?.", "?")
            raise NotJudged(f"{signature} {BY_IDS}") from unfit
        if isinstance(result, tuple) and isinstance(next(iter(result), None), TEXT_OR_IDS):
            result = result[0]  # before what else there is to say, such as why it stopped
        is_text = self.as_prompt is as_text or "tokenizer" in self.parameters
        if is_text and isinstance(result, str):
            result = tokenizer.encode(result)
        ids = _ids_of(result, case)
        # A prompt of one token may be what is written first, too.
        length = len(case.prompt)
        if ids[:length] == list(case.prompt) and (length > 1 or self.with_prompt):
            self.with_prompt = True
            ids = ids[length:]
        return ids


def chain_of(runner: DecodingRunner, case: Request) -> list[int]:
    """The new tokens of a chain. Raises: Wrong."""
    new = runner.run(case, sure(case.context_length))
    right = written(case)
    # It may as well stop where the context is full, before or after the token that fills it.
    is_full = len(new) + len(case.prompt) - case.context_length in (0, 1)
    return right if is_full and right[: len(new)] == new else new


def draws_of(runner: DecodingRunner, case: Request) -> list[int]:
    """How often each token was drawn. Raises: Wrong."""
    new = runner.run(case, undecided())
    return [new.count(token) for token in range(len(SHARES))]


def _ids_of(result: Any, case: Request) -> list[int]:
    """The ids in what was returned, a list or a tensor. Raises: Wrong if it holds none."""
    if result is None:
        raise NotAttempted
    with suppress(TypeError, ValueError, RuntimeError):
        ids = torch.as_tensor(result)
        if not ids.numel() or not ids.is_floating_point():
            return ids.flatten().tolist()
    raise Wrong(
        "It does not return ids.",
        given=case,
        got=Prose(kind_of(result)),
        mistake="Ids are integers: return a list of them, a tensor of int64, or their text.",
    )


def plausible(shares: Sequence[float], counts: Sequence[float]) -> bool:
    """True if fair draws with these probabilities may well give these counts.

    For two references, both are probabilities, which must agree.
    """
    if isinstance(shares, list):  # both are drawn
        return True
    if isinstance(counts, np.ndarray):
        return np.allclose(shares, counts)
    # Pearson's chi-squared: squared distances, each in units of what is expected.
    expected = DRAWS * np.array(shares)
    drawn = np.array(counts)
    if not np.isfinite(expected).all() or drawn[expected < 1e-6].any():
        return False
    rare = expected < 5  # together: few draws are no normal distribution
    expected = np.append(expected[~rare], expected[rare].sum() or 1)
    drawn = np.append(drawn[~rare], drawn[rare].sum())
    # A fair draw passes this limit less than once in 10⁸ times, whatever the degrees of freedom.
    return ((drawn - expected) ** 2 / expected).sum() < 40 + 2 * len(expected)


END_DRAWN = (
    "It ended after {} of {} tokens: did it draw the end token, whose probability is nearly 0? "
    "Draw from the probabilities themselves, not from their sums."
)
OTHER_TOKENS = "The new tokens are not right."


def _chain_beside(case: Request, right: list[int], new: list[int]) -> Wrong:
    small = f" of context_length {case.context_length}" if case.context_length < ENDLESS else ""
    return Wrong(
        OTHER_TOKENS,
        given=f"{case}, with a model{small} that leaves no choice",
        expected=right,
        got=new,
    )


def _counts_beside(case: Request, shares: np.ndarray, counts: list[int]) -> Wrong:
    return Wrong(
        "The tokens are not drawn as often as they should be.",
        given=f"{case}, with a model that gives the ids the probabilities {SHARES[:-1]}",
        expected=Prose(f"about {[round(DRAWS * share) for share in shares]} times"),
        got=Prose(f"{counts} times"),
        mistake=None if sum(counts) >= DRAWS else END_DRAWN.format(sum(counts), DRAWS),
    )


CHAIN = Exercise(Program(written), CHAIN_MISTAKES, CHAINS, chain_of, eq, _chain_beside, ERRORS)
drawing = Program(probabilities)
CHOICE = Exercise(drawing, CHOICE_MISTAKES, CHOICES, draws_of, plausible, _counts_beside, ERRORS)
CHAIN_WORDS = {mistake.words for mistake in CHAIN_MISTAKES}


def decoding(attempt: Any) -> str:
    """Praise for a right function; raises `Wrong` with the first case that fails."""
    runner = DecodingRunner(attempt)
    runner.find_form()
    findings = _tokens_or_draws(runner)
    if not findings:
        case = Request(end_id=0)  # a model without a choice would repeat the end token
        with findings("use"):
            expect(
                len(runner.run(case, undecided())) <= DRAWS // 2,
                "It does not stop at the end token.",
                "It leaves the end token out, and goes on: stop there.",
                given=case,
            )
    if not findings:
        with findings("corner"):
            _expect_no_overflow(runner)
        run = partial(runner.run, Request(max_new_tokens=2, top_p=0.5), undecided())
        check_style(findings, run, [attempt], allowed=("softmax", "log_softmax"))
        with findings("corner"):
            _expect_usable_again(runner)
    praise = "The new tokens are right, and each is drawn as often as it should be."
    return findings.verdict(praise, [note for name, note in NOTES.items() if name in runner.notes])


def _tokens_or_draws(runner: DecodingRunner) -> Findings:
    """What is wrong with the tokens of a chain, or else with the draws."""
    chain = judge(CHAIN, runner)
    for wrong in chain.wrongs:
        if wrong.claim != OTHER_TOKENS or wrong.mistake in CHAIN_WORDS:
            return chain
    # Wrong tokens without a name: what spoils the draws may spoil those of a chain, too.
    return judge(CHOICE, runner) or chain


def _expect_no_overflow(runner: DecodingRunner) -> None:
    """Raise `Wrong` where large logits, or a low temperature, are too much for the softmax."""
    case = Request((5, 1, 2), 3, temperature=LOW_TEMPERATURE)
    try:
        new = runner.run(case, sure(case.context_length))
    except Wrong as error:
        got = dict(error.rows).get("got", "")
        if not re.search(r"\b(nan|inf)\b|prob", got):
            raise
        raise Wrong(error.claim, given=LARGE, got=Prose(got), mistake=OVERFLOW) from error
    right = written(case)
    expect(new == right, OTHER_TOKENS, OVERFLOW, given=LARGE, expected=right, got=new)


def _expect_usable_again(runner: DecodingRunner) -> None:
    """Raise `Wrong` where a second call would suffer from the first."""
    one, other = (runner.run(Request(max_new_tokens=40), undecided()) for _ in range(2))
    expect(
        one != other or runner.takes_seed,
        "Every call draws the same tokens.",
        "The generator is seeded inside: let the caller set the seed.",
    )
    expect(
        "changed" not in runner.notes,
        "The prompt that was passed in is changed.",
        "A second call would start from a different prompt: copy it first.",
    )
