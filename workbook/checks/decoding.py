"""The check of `decode`: new tokens when there is no choice, and how often each when there is.

Two untrained models are used, whose results can be worked out on plain numbers: the new tokens of
one that leaves no choice, and the probabilities of the next token of one that always gives the
same. The course fixes no signature, so a learner's function is called as its argument names say,
with ids or with a text and a tokenizer; it may return ids or text, with the prompt or without.
"""

import inspect
import random
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product, starmap
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from workbook.checks.calling import (
    bind,
    call_part,
    first_of,
    is_config,
    meaning,
    parameters_of,
    plain,
)
from workbook.checks.engine import Exercise, Program, instead_of, judge, mistake
from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.verdicts import (
    NotAttempted,
    Words,
    Wrong,
    call,
    expect_function,
    kind_of,
    work_of,
)
from workbook.corpora.corpora import END_OF_TEXT

SIGNATURE = "decode(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None)"
ASKED = ("model", "prompt", "max_new_tokens", "temperature", "top_p", "end_token")
NAMES = (*ASKED, "tokenizer", "context_length", "device")
SIZES = ("context_length", "vocab_size")
ENDLESS = 4096  # a context that is never full
DRAWS = 250  # tokens drawn at each setting
RAISED = 3.0  # which changes no probability: logits need not be log-probabilities
SURE = 40.0  # a logit so far above the others that the rest is never drawn
IDS = 13  # that the model without a choice gives
# Not in order, so that a position in the sorted list is not the id; no sum is near a `top_p`.
# The last is never drawn: each model has such an id, for an end token that never comes.
SHARES = (0.27, 0.03, 0.07, 0.2, 0.16, 0.1, 0.13, 0.04, 1e-26)


class Case(NamedTuple):
    """What is asked of one of the models."""

    prompt: tuple[int, ...] = (0,)
    max_new_tokens: int = DRAWS
    end_id: int | None = None
    context_length: int = ENDLESS
    temperature: float = 1.0
    top_p: float = 1.0


# When the model leaves no choice.


def follower(ids: Sequence[int]) -> int:
    """The token that comes next: each of the last three counts, and so does its position."""
    return sum((place + 2) * (token + 1) for place, token in enumerate(ids[-3:])) % IDS


def written(case: Case) -> list[int]:
    """The new tokens."""
    ids = list(case.prompt)
    for _ in range(case.max_new_tokens):
        new_id = follower(ids[-case.context_length :])
        if new_id == case.end_id:
            break
        ids.append(new_id)
    return ids[len(case.prompt) :]


COUNT, SEEN = "range(case.max_new_tokens)", "ids[-case.context_length :]"
END, RETURN = "if new_id == case.end_id:", "return ids[len(case.prompt) :]"
GOES_ON = "It goes on after the end token: stop when its id comes. A str never equals an id."
NO_END = "It goes on after the end token: there is no argument that says which token that is."
TELL_THE_END = {"end_token", "tokenizer", None}  # None: an argument whose name says nothing
CHAIN_MISTAKES = (
    *instead_of(RETURN, {
        f"{RETURN}[-1:]": "Only the last new token is returned: collect them all.",
        "return ids[2 * len(case.prompt) :]": "One token is cut off in front for each character "
        "of the prompt: count its tokens.",
    }),
    *instead_of(END, {
        "if False:": GOES_ON,
        "if new_id == 0:": "It stops at id 0, whichever id the end token has: ask the tokenizer.",
        "if case.end_id and new_id == case.end_id:": "It does not stop when `end_id` is 0, which "
        "is false in an `if`: test `is not None`.",
    }),
    *instead_of(COUNT, {
        f"{COUNT} if case.end_id not in case.prompt else ()": "An end token in the prompt stops "
        "it: look at the new token only.",
        "range(case.max_new_tokens + 1)": "It writes one token too many.",
        "range(case.max_new_tokens - 1)": "It writes one token too few.",
        "range(case.max_new_tokens - len(case.prompt))": "The prompt is counted, but "
        "`max_new_tokens` counts only new tokens.",
    }),
    *instead_of(SEEN, {
        "case.prompt[-case.context_length :]": "The model sees only the prompt each time: append "
        "each new token to it.",
        "ids[-1:]": "The model sees only the last token: it needs all those before it, too.",
        "ids[-1:] if len(ids) > len(case.prompt) else ids": "The model sees only the last new "
        "token: it needs all those before it, too.",
        "[*ids[len(case.prompt) :][::-1], *case.prompt]": "A new token is put in front of the "
        "others: it belongs after them.",
        "ids[:1]": "The logits of the first position were taken: those of the last say what comes "
        "next.",
        "ids[: max(1, len(ids) - 1)]": "The logits of the last position but one were taken.",
        "ids[: case.context_length]": "When there are more tokens than the context holds, the "
        "first are kept: keep the last.",
    }),
)  # fmt: skip
CHAINS = (
    Case((3,), 1),
    Case((5, 1, 2), 6),
    Case((2, 7), 8, end_id=3),
    Case((2, 7), 8, end_id=4),
    Case((6,), 6, end_id=0),
    Case((5, 1, 2), 2, end_id=5),
    Case((3, 1, 4, 2), 6, context_length=5),
)
TRIALS = CHAINS[1], CHAINS[2]  # by which the form of an attempt is found


def agree(right: list[int], new: list[int]) -> bool:
    """Whether the new tokens are right; they may end where the context is full."""
    return right[: max(len(new), getattr(new, "enough", ENDLESS))] == new


# When the same probabilities hold for every token.


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities in proportion to e to the power of each logit."""
    return np.exp(logits) / np.exp(logits).sum()


def probabilities(case: Case) -> np.ndarray:
    """The probability of each token to be drawn."""
    logits = np.log(SHARES)
    shares = softmax(logits / case.temperature)
    order = np.argsort(-shares)
    before = np.cumsum(shares[order]) - shares[order]
    kept = order[before < case.top_p]
    weights = shares[kept] / shares[kept].sum()
    drawn = np.zeros(len(shares))
    drawn[kept] = weights
    return drawn


LOGITS, TEMPERED = "np.log(SHARES)", "softmax(logits / case.temperature)"
ORDER, SUMS = "np.argsort(-shares)", "np.cumsum(shares[order]) - shares[order]"
BELOW, KEPT, CUT = "before < case.top_p", "order[before < case.top_p]", "if case.top_p < 1 else"
WEIGHTS, DRAWN, RETURNED = "shares[kept] / shares[kept].sum()", "drawn[kept]", "return drawn"
TEMPERATURE = "The logits are divided by the temperature before the softmax: "
TOP_P = "Top-p keeps the smallest set of the likeliest tokens whose probabilities reach p: "
NO_SUM = (
    "What top-p keeps adds up to less than 1, and the rest goes to the last token: divide by the "
    "sum."
)
TWICE = "The kept probabilities go through a second softmax: divide them by their sum."
EQUALLY = "All kept tokens are drawn equally often: draw according to their probabilities."
PLACE = "That is the index in the sorted list, not the id at that index: look it up."
CHOICE_MISTAKES = (
    *instead_of(TEMPERED, {
        "softmax(logits)": "yours changes nothing.",
        "softmax(logits * case.temperature)": "you multiplied.",
        "softmax(softmax(logits) / case.temperature)": "yours takes the softmax twice.",
    }, TEMPERATURE),
    mistake(TEMPERATURE + "you divided the probabilities, which changes nothing.",
            TEMPERED, "softmax(logits) / case.temperature",
            BELOW, "(before < case.top_p) | (case.top_p == 1)"),
    mistake("All tokens are drawn equally often: the logits are not used.",
            TEMPERED, "softmax(0 * logits)"),
    mistake("Token 0 can never be drawn, though no token is forbidden: is its logit set to minus "
            "infinity?", LOGITS, "np.log(SHARES) - SURE * np.eye(len(SHARES))[0]"),
    *instead_of(BELOW, {
        "before < 2": "yours keeps all.",
        "(before + shares[order] < case.top_p + 1e-9) | (before == 0)": "yours leaves out the "
        "token that reaches p.",
        "np.append(0, before[:-1]) < case.top_p": "yours keeps one too many.",
        "(shares[order] >= case.top_p) | (before == 0) | (case.top_p == 1)": "yours compares each "
        "single probability with p.",
        "(shares[order] >= case.top_p * max(shares)) | (case.top_p == 1)": "yours keeps what has "
        "at least p times the largest probability, which is min-p.",
        "(before <= 1 - case.top_p) | (case.top_p == 1)": "in ascending order, tokens are dropped "
        "as long as their sum is below 1 - p; yours drops them as long as it is below p.",
    }, TOP_P),
    *instead_of(ORDER, {
        "np.argsort(shares)": "yours begins with the least likely: sort in descending order.",
        "np.arange(len(shares))": "yours adds up in the order of the ids: sort first.",
    }, TOP_P),
    mistake("The mask of what top-p keeps is in sorted order, but yours is applied in the order of "
            "the ids: map it back with the indices of `sort`, or mask the sorted values.",
            KEPT, "np.flatnonzero(before < case.top_p)"),
    *(mistake("What top-p leaves out has the logit 0, and e to the power 0 is 1, not a small "
              "share: its logit must be minus infinity.",
              RETURNED, f"raised = (np.log(SHARES) + RAISED) / case.temperature\nreturn {code}")
      for code in ("softmax(np.where(drawn > 0, raised, 0)) if case.top_p < 1 else drawn",
                   "softmax(np.where(drawn > 1e-20, raised, 0))")),
    mistake("Top-p looks at the probabilities after the temperature, but yours at those before.",
            SUMS, "np.cumsum(softmax(logits)[order]) - softmax(logits)[order]"),
    mistake(TOP_P + "yours keeps a fixed number of tokens, which is top-k.",
            KEPT, "order[: max(1, int(case.top_p * len(order)))]"),
    *(mistake(NO_SUM, WEIGHTS, "shares[kept]",
              RETURNED, f"drawn[{last}] += 1 - drawn.sum()\nreturn drawn")
      for last in ("kept[-1]", "-1")),
    *instead_of(WEIGHTS, {
        "softmax(0 * kept)": EQUALLY,
        "softmax(shares[kept])": TWICE,
        f"softmax(shares[kept]) {CUT} {WEIGHTS}": TWICE,
        f"softmax(0 * kept) {CUT} {WEIGHTS}": EQUALLY,
        "softmax(logits[kept])": TEMPERATURE + "yours draws from the undivided ones.",
        "np.eye(len(kept))[0]": "It always takes the likeliest token: draw one "
        "with `torch.multinomial`.",
    }),
    *instead_of(DRAWN, {
        "drawn[: len(kept)]": PLACE,
        f"drawn[np.arange(len(kept)) {CUT} kept]": PLACE,
    }),
)  # fmt: skip
CHOICES = (
    Case(),
    Case(temperature=0.1),
    Case(temperature=3.0),
    Case(top_p=0.5),
    Case(top_p=0.1),
    Case(temperature=0.3, top_p=0.88),
    Case(temperature=3.0, top_p=0.7),
)
ERRORS = {
    "sum to 1|sum of prob|<= 0|contains either|non-empty|nan": "Too little is left to draw "
    "from: top-p always keeps the likeliest token, and what it keeps is divided by its "
    "sum.",
    "takes a tensor": "Make the ids an int64 tensor of shape (1, T) for the model.",
    "is out of bounds": "A sum in float32 may end below 1, and then no token reaches a `top_p` of "
    "1: go no further than the last.",
    "values to unpack": "The model returns only the logits, (1, T, vocab_size).",
    "CUDA|NVIDIA": "There is no GPU here: put the ids on the model's device, "
    "`next(model.parameters()).device`.",
    "prob_dist must be 1 or 2 dim": "Only one number is left, not probabilities. Give the "
    "model a batch of one, (1, T); the logits of the next token are then `logits[0, -1]`.",
    "more often than": "It goes on after `max_new_tokens` tokens: stop there, whatever comes.",
    "iterat|unsqueeze|'list'|list' object": "The prompt is a list of ids: make a tensor of it.",
}
NOTES = {
    "prompt": "The prompt is returned in front of the new tokens, which the course leaves open.",
    "counted": "Your limit counts the prompt, too; the course speaks of generated tokens.",
    "end": "The end token is returned with the rest, which the course leaves open.",
    "gradients": "Every call of the model keeps what a backward pass would need: decode under "
    "`torch.no_grad()`.",
    "context": "A model cannot look at more tokens than its `context_length`, but yours is given "
    "all: give it only the last ones.",
    "eval": "The model is left in `eval()`, though it was in `train()` before.",
    "greedy": "Temperature 0, if it is allowed at all, means the likeliest token each time; "
    "yours gives something else.",
}


class Model(nn.Module):
    """Logits for ids; its sizes have any usual name, and it notes how it is called."""

    def __init__(self, vocab_size: int, context_length: int, logits: Callable[[Tensor], Tensor]):
        super().__init__()
        self.context_length, self.vocab_size = context_length, vocab_size
        self.device = torch.device("cpu")
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float32, device="cpu"))
        self.logits, self.longest, self.calls, self.most_calls = logits, 0, 0, 100
        self.with_gradients = False

    def forward(self, *args: Any, **named: Any) -> Tensor:
        ids = next(iter([*args, *named.values()]))
        if not isinstance(ids, Tensor) or ids.is_floating_point():
            kind = ids.dtype if isinstance(ids, Tensor) else type(ids).__name__
            raise TypeError(f"the model takes a tensor of integers, (1, T), but got {kind}")
        self.calls += 1
        if self.calls > self.most_calls:
            raise RuntimeError(f"the model was called more often than {self.most_calls} times")
        self.longest = max(self.longest, ids.shape[-1])
        self.with_gradients |= torch.is_grad_enabled()
        return self.logits(ids) * self.scale

    def __getattr__(self, name: str) -> Any:
        """Its sizes by any usual name, itself as its `config` and `model`, and no blocks."""
        if name.strip("_") in ("config", "cfg", "args", "model", "lm"):  # of a method's `self`
            return self
        if name in ("blocks", "layers", "transformer_blocks"):
            return ()
        if name not in self._parameters and (size := meaning(name, SIZES)):
            return vars(self)[size]
        return super().__getattr__(name)


def sure(context_length: int) -> Model:
    """A model that leaves no choice: `follower` of what is seen comes next."""

    def logits(ids: Tensor) -> Tensor:
        rows = ids.reshape(-1, ids.shape[-1]).tolist()
        following = [[follower(row[: place + 1]) for place in range(len(row))] for row in rows]
        return SURE * torch.eye(IDS + 1)[torch.tensor(following).reshape(ids.shape)]

    return Model(IDS + 1, context_length, logits)


def undecided() -> Model:
    """A model that gives the same logits for each next token, whatever came before."""
    row = torch.tensor(SHARES).log() + RAISED
    return Model(len(SHARES), ENDLESS, lambda ids: row.expand(*ids.shape, len(SHARES)))


class Table(dict):
    """Ids by their texts and bytes, bytes by their ids; it may be called, too."""

    __call__ = dict.__getitem__


class Letters:
    """A tokenizer with two letters for each id, and one id for `<|endoftext|>`."""

    def __init__(self, vocab_size: int, end_id: int):
        self.texts = {i: chr(ord("a") + i) + chr(ord("A") + i) for i in range(vocab_size)}
        self.texts[end_id] = END_OF_TEXT
        self.vocab = {i: text.encode() for i, text in self.texts.items()}
        self.special_tokens, self.merges, self.vocab_size = [END_OF_TEXT], [], vocab_size
        self.ids = Table({text: i for i, text in self.texts.items()})
        self.ids |= {token: i for i, token in self.vocab.items()} | self.vocab

    def __len__(self) -> int:
        return self.vocab_size

    def encode(self, text: str, *others: Any, **named: Any) -> list[int]:
        pieces = re.findall(re.escape(END_OF_TEXT) + "|..?", text, re.DOTALL)
        return [self.ids[piece] for piece in pieces]

    def decode(self, ids: Any, *others: Any, **named: Any) -> str:
        return "".join(self.texts[int(i)] for i in np.asarray(ids).reshape(-1))

    def __getattr__(self, name: str) -> Any:
        """What else learners' tokenizers have: the end token, an inverted vocabulary."""
        asked = plain(name)
        if re.search("eo[st]|end", asked):
            return self.ids[END_OF_TEXT] if "id" in asked else END_OF_TEXT
        if re.search("special|id|inv|rev|2i", asked):
            return self.ids
        raise AttributeError(f"the check's tokenizer has no {name}")


PROMPTS: dict[str, Callable[[list[int], Letters], Any]] = {
    "text": lambda ids, tokenizer: tokenizer.decode(ids),
    "list": lambda ids, tokenizer: ids,
    "tensor": lambda ids, tokenizer: torch.tensor(ids),
    "batch": lambda ids, tokenizer: torch.tensor([ids]),
}
ENDS = {"int": lambda end_id: end_id, "str": lambda _: END_OF_TEXT, "list": lambda end_id: [end_id]}


class Form(NamedTuple):
    """How the prompt and the end token are given, and whether the limit counts the prompt."""

    prompt: str = "list"
    end: str = "int"
    counted: bool = False


class Tokens(list):
    """New ids, or how often each was drawn, with the call that they come from.

    `enough` is how many there must be.
    """

    def __init__(self, values: Sequence[int], given: Words, enough: int = ENDLESS):
        super().__init__(values)
        self.given, self.enough = given, enough


class Learner:
    """The learner's function or class: how it wants its arguments, and what to remark on."""

    def __init__(self, attempt: Callable):
        self.attempt, self.form, self.notes, self.with_prompt = attempt, Form(), set(), False
        work = getattr(attempt, work_of(attempt)) if inspect.isclass(attempt) else None
        each = self.signature = [p for part in (attempt, work) for p in parameters_of(part)]
        self.seeds = any(re.search("seed|generator|rng", parameter.name) for parameter in each)
        self.parameters = {meaning(parameter.name, NAMES): parameter for parameter in each}
        self.defaults = {name: parameter.default for name, parameter in self.parameters.items()}
        self.about = [name for name in ("context_length", "device") if name in self.parameters]
        self.optional = [*self.about, "end_token"]
        with suppress(Wrong):  # a last argument may be the end token, whatever its name
            if "tokenizer" not in self.parameters:
                bind(attempt, dict.fromkeys([*ASKED, *self.about]), optional=self.about)
                self.optional = self.about
        # A `context_length` asked for instead of a number of tokens is the length of the result.
        instead = not self.parameters.keys() & {"max_new_tokens", None} and self.about[:1]
        self.limit = "context_length" if instead == ["context_length"] else "max_new_tokens"

    def find_form(self) -> None:
        """Find how the arguments are to be given: the form with the most right results."""
        end, limit = self.parameters.get("end_token"), self.parameters.get(self.limit)
        kind = f"{end.annotation} {type(end.default).__name__}" if end else "int"
        said = re.search(r"\b(list|str|int)\b", kind)
        total = limit and re.search("(?!.*(new|gen|out)).*(len|limit|total)", limit.name)
        text_last = "tokenizer" not in self.parameters
        scores = {}
        for self.form in starmap(
            Form,
            product(
                sorted(PROMPTS, key=lambda form: form == "text" and text_last),
                [said[0]] if said else ENDS,
                [False, True] if total else [False],
            ),
        ):
            scores[self.form] = 0
            for case in TRIALS:
                try:
                    scores[self.form] += 1 + agree(written(case), self.written(case))
                except Wrong as failure:
                    if failure.timed_out:
                        return
            if scores[self.form] == 2 * len(TRIALS):
                break
        self.form = max(scores, key=scores.__getitem__)
        self.notes.clear()

    def written(self, case: Case) -> Tokens:
        """The new tokens of a chain. Raises: Wrong."""
        new = self.run(sure(case.context_length), case)
        new.enough = case.context_length - len(case.prompt)
        return new

    def drawn(self, case: Case) -> Tokens:
        """How often each token was drawn. Raises: Wrong."""
        new = self.run(undecided(), case)
        return Tokens([new.count(token) for token in range(len(SHARES))], new.given)

    def run(self, model: Model, case: Case) -> Tokens:
        """The new ids, without the prompt and without an end token at the end. Raises: Wrong."""
        end_id = case.end_id
        end_token = model.vocab_size - 1 if end_id is None else end_id
        tokenizer = Letters(model.vocab_size, end_token)
        model.tokenizer, model.most_calls = tokenizer, case.max_new_tokens + len(case.prompt) + 8
        new, handed_in, given = self.asked(model, tokenizer, case, end_token)
        ends = end_id is not None and new[-1:] == [end_id]
        habits = {
            "prompt": self.with_prompt,
            "counted": self.form.counted,
            "end": ends,
            "gradients": model.with_gradients,
            "context": model.longest > model.context_length,
            "eval": not model.training,
            "changed": self.form.prompt != "text"
            and np.ravel(handed_in).tolist() != list(case.prompt),
        }
        self.notes |= {name for name, holds in habits.items() if holds}
        return Tokens(new[:-1] if ends else new, given)

    def asked(
        self, model: Any, tokenizer: Any, case: Case, end_token: int, seconds: float = 5.0
    ) -> tuple[list[int], Any, Words]:
        """The new ids behind the prompt, what was handed in as the prompt, and the call in words.

        `model` has the sizes that are asked for as attributes. Raises: Wrong.
        """
        prompt, end_id = list(case.prompt), case.end_id
        end = ENDS[self.form.end](end_token)
        if end_id is None and self.defaults.get("end_token") is None:
            end = None
        handed_in = PROMPTS[self.form.prompt]([*prompt], tokenizer)
        limit = case.max_new_tokens + len(prompt) * self.form.counted
        keeps_all = case.top_p == 1 and self.defaults.get("top_p", 1) is None
        top_p = None if keeps_all else case.top_p
        own = "tokenizer, " * ("tokenizer" in self.parameters)
        given = Words(
            f"decode(model, {own}{handed_in!r}, {limit}, temperature={case.temperature}, "
            f"top_p={top_p}, end={end!r})"
        )
        values = [model, handed_in, limit, case.temperature, top_p, end]
        arguments = dict(zip(ASKED, values, strict=True))
        arguments |= {name: getattr(model, name) for name in self.about}
        arguments[self.limit] = limit
        if self.limit not in ASKED:
            del arguments["max_new_tokens"]
        extras = {"tokenizer": tokenizer}
        if any(map(is_config, self.signature)):  # which may be asked for sizes
            extras |= {name: getattr(model, name) for name in (*SIZES, "device")}
        options = {"optional": self.optional, "extras": extras}
        result = call_part(self.attempt, arguments, given=given, seconds=seconds, **options)
        if inspect.isgenerator(result):
            result = call(lambda: list(result), given=given, seconds=seconds)
        ids = ids_of(result, given, tokenizer)
        if ids[: len(prompt)] == prompt and (len(prompt) > 1 or self.with_prompt):
            self.with_prompt, ids = True, ids[len(prompt) :]
        return ids, handed_in, given


def ids_of(result: Any, given: Words, tokenizer: Any) -> list[int]:
    """The ids in what was returned: a list, a tensor, a list of tensors, or a text."""
    if result is None:
        raise NotAttempted
    why = "Without a tokenizer there is no text: return the ids."
    result = first_of(result, lambda item: isinstance(item, str | list | Tensor | np.ndarray))
    try:
        if isinstance(result, list) and all(isinstance(x, str) for x in result):
            result = "".join(result)
        if isinstance(result, str):
            return tokenizer.encode(result)
        ids = np.ravel([x.tolist() if isinstance(x, Tensor) else x for x in result])
        if not ids.size or ids.dtype.kind in "iu":
            return ids.tolist()
        why = "Ids are integers: make a list, or a tensor of int64."
    except (KeyError, TypeError, ValueError, RuntimeError):
        pass
    raise Wrong(
        "It returns neither ids nor their text.",
        given=given,
        expected=Words("a list of the new ids"),
        got=Words(kind_of(result)),
        mistake=why,
    )


def plausible(shares: Sequence[float], counts: Sequence[float]) -> bool:
    """True if fair draws with these probabilities may well give these counts.

    For two references, both are probabilities, which must agree.
    """
    if isinstance(shares, Tokens):  # both are drawn
        return True
    if not isinstance(counts, Tokens):
        return np.allclose(shares, counts)
    expected, counts = DRAWS * np.array(shares), np.array(counts)
    if not np.isfinite(expected).all() or counts[expected < 1e-6].any():
        return False
    rare = expected < 5  # together: few draws are no normal distribution
    expected = np.append(expected[~rare], expected[rare].sum() or 1)
    counts = np.append(counts[~rare], counts[rare].sum())
    # A fair draw passes this limit less than once in 10⁸ times, whatever the degrees of freedom.
    return ((counts - expected) ** 2 / expected).sum() < 40 + 2 * len(expected)


OTHER_TOKENS = "The new tokens are not right."


def _chain_beside(case: Case, asked: list[int], got: Tokens) -> Wrong:
    small = f" of context_length {case.context_length}" if case.context_length < ENDLESS else ""
    given = Words(f"{got.given}, with a model{small} that leaves no choice")
    return Wrong(OTHER_TOKENS, given=given, expected=asked, got=list(got))


def _counts_beside(case: Case, asked: list[float], got: Tokens) -> Wrong:
    return Wrong(
        "The tokens are not drawn as often as they should be.",
        given=Words(
            f"{got.given}, with a model that gives the ids 0 to {len(SHARES) - 2} the "
            f"probabilities {list(SHARES[:-1])}"
        ),
        expected=Words(f"each about this often: {[round(DRAWS * share) for share in asked]}"),
        got=Words(str(list(got))),
    )


CHAIN = Exercise(
    program=Program(
        written,
        places={
            "range(": "how many tokens are written",
            "follower(": "what the model is shown",
            "if new_id": "where it stops",
        },
    ),
    mistakes=CHAIN_MISTAKES,
    cases=CHAINS,
    run=Learner.written,
    same=agree,
    report=_chain_beside,
    errors=ERRORS,
)
CHOICE = Exercise(
    program=Program(
        probabilities,
        places={
            "shares = softmax": "the temperature",
            "order =": "how the tokens are sorted for top-p",
            "before =": "what top-p adds up",
            "kept =": "which tokens top-p keeps",
            "weights =": "what is drawn from",
        },
    ),
    mistakes=CHOICE_MISTAKES,
    cases=CHOICES,
    run=Learner.drawn,
    same=plausible,
    report=_counts_beside,
    errors=ERRORS,
)
CHAIN_WORDS = {each.words for each in CHAIN_MISTAKES}


def decoding(attempt: Any, part: str | None = None) -> str:
    """Praise for a right function; raises `Wrong` with the first case that fails."""
    expect_function(attempt, SIGNATURE)
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(6)  # so that the same function is judged the same way each time
    learner = Learner(attempt)
    learner.find_form()
    found = judge(CHAIN, learner)
    chain = found.found[0] if found else None
    if not chain or chain.claim == OTHER_TOKENS:
        draws = judge(CHOICE, learner).found
        named = chain and set((chain.mistake or "").split(" And: ")) & CHAIN_WORDS
        if draws:  # what spoils the draws may spoil the tokens of a chain too
            found.found = [chain, *draws] if named else draws
        if chain and not draws:
            found.passes.append("Each token is drawn as often as it should be.")
        elif draws and not chain:
            found.passes.append("When there is no choice, the new tokens are right.")
    if chain and chain.mistake == GOES_ON and not learner.parameters.keys() & TELL_THE_END:
        chain.mistake = NO_END
    if not found:  # a model without a choice would repeat the end token
        with found("use"):
            new = learner.run(undecided(), Case(end_id=0))
            if len(new) > DRAWS // 2:
                skips = "It leaves the end token out, and goes on: stop there."
                raise Wrong("It does not stop at the end token.", given=new.given, mistake=skips)
    if not found:
        with found("style"):
            expect_from_scratch(
                lambda: learner.run(undecided(), Case(max_new_tokens=2, top_p=0.5)),
                [attempt],
                allowed=("softmax", "log_softmax"),
            )
        with found("corner"):
            one, other = (learner.run(undecided(), Case(max_new_tokens=40)) for _ in range(2))
            if one == other and not learner.seeds:
                seeded = "The generator is seeded inside: let the caller set the seed."
                raise Wrong("Every call draws the same tokens.", mistake=seeded)
        with suppress(Wrong, NotAttempted):  # refusing temperature 0 is just as good
            greedy = learner.run(undecided(), Case(max_new_tokens=5, temperature=0.0))
            if greedy != [SHARES.index(max(SHARES))] * 5:
                learner.notes.add("greedy")
        with found("corner"):
            if "changed" in learner.notes:
                again = "A second call would start from a different prompt: copy it first."
                raise Wrong("The prompt that was passed in is changed.", mistake=again)
    praise = "The new tokens are right, and each is drawn as often as it should be."
    return found.verdict(praise, [note for name, note in NOTES.items() if name in learner.notes])
