"""The check of `decode`: new tokens where there is no choice, and how often each where there is.

Two models without any learning are asked, whose answers can be worked out on plain numbers: the
new tokens of one that leaves no choice, and the probabilities of the next token of one that always
says the same. The course fixes no signature. So a learner's function is called as its own names
say, with ids or with a text and a tokenizer, and may return ids or text, with the prompt or not.
"""

import inspect
import math
import random
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from workbook.checks.calling import bind, first_of, meaning
from workbook.checks.engine import Exercise, Program, judge, mistake
from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.verdicts import NotAttempted, Words, Wrong, call, expect_function, kind_of
from workbook.corpora.corpora import END_OF_TEXT

SIGNATURE = "decode(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None)"
ASKED = ("model", "prompt", "max_new_tokens", "temperature", "top_p", "end_token")
NAMES = (*ASKED, "tokenizer", "context_length", "device")
ENDLESS = 4096  # a context that is never full
DRAWS = 250  # tokens drawn at each setting
SURE = 40.0  # a logit so far above the others that the rest is never drawn
VOCAB, UNUSED = 13, 99  # ids of a model; one that it never gives
# Not in order, so that a place in the sorted list is not the id; no sum of them is near a `top_p`.
SHARES = (0.27, 0.03, 0.07, 0.2, 0.16, 0.1, 0.13, 0.04)


# Where the model leaves no choice.


class Chain(NamedTuple):
    """What is asked of the model whose next token follows from all that it sees."""

    prompt: tuple[int, ...]
    max_new_tokens: int
    end_id: int | None = None
    context_length: int = ENDLESS


def follower(ids: Sequence[int]) -> int:
    """The token that comes next: each token seen counts, and where it stands."""
    return sum((place + 2) * (token + 1) for place, token in enumerate(ids)) % VOCAB


def written(case: Chain) -> list[int]:
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
GOES_ON = "It goes on behind the end token: stop where its id comes. A text never equals an id."
NO_END = "It goes on behind the end token: there is no argument that tells which token that is."
TELL_THE_END = {"end_token", "tokenizer", None}  # None: an argument whose name says nothing
CHAIN_MISTAKES = (
    mistake("Only the last new token is returned: collect them.", RETURN, f"{RETURN}[-1:]"),
    mistake(GOES_ON, END, "if False:"),
    mistake("It does not stop where `end_id` is 0, which is false in an `if`: ask `is not None`.",
            END, "if case.end_id and new_id == case.end_id:"),
    mistake("An end token in the prompt ends it: look at the new token alone.",
            COUNT, f"{COUNT} if case.end_id not in case.prompt else ()"),
    mistake("It writes one token too many.", COUNT, "range(case.max_new_tokens + 1)"),
    mistake("It writes one token too few.", COUNT, "range(case.max_new_tokens - 1)"),
    mistake("The prompt is counted, and `max_new_tokens` counts new tokens alone.",
            COUNT, "range(case.max_new_tokens - len(case.prompt))"),
    mistake("The model sees the prompt alone each time: put each new token behind it.",
            SEEN, "case.prompt[-case.context_length :]"),
    mistake("The model sees the last token alone: it needs all that come before it, too.",
            SEEN, "ids[-1:]"),
    mistake("The model sees the new tokens alone: it needs the prompt before them, too.",
            SEEN, "(ids[len(case.prompt) :] or ids)"),
    mistake("The logits of the first position were taken: those of the last say what comes next.",
            SEEN, "ids[:1]"),
    mistake("The logits of the last position but one were taken.",
            SEEN, "ids[: max(1, len(ids) - 1)]"),
    mistake(
        "Where there are more tokens than the context holds, the first are kept: keep the last.",
        SEEN, "ids[: case.context_length]"
    ),
)  # fmt: skip
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
TRIALS = CHAINS[1], CHAINS[2]  # by which the form of an attempt is found


def accepted(case: Chain) -> list[list[int]]:
    """What may be returned, since the course says nothing of the context.

    Where it is full the text may end, or a window slide that is one token shorter than it could
    be; and a model may be shown more than it can see.
    """
    right = written(case)
    if case.context_length > len(case.prompt) + case.max_new_tokens:
        return [right]
    room = max(0, case.context_length - len(case.prompt))
    other = [written(case._replace(context_length=c)) for c in (case.context_length - 1, ENDLESS)]
    return [right, right[:room], right[: room + 1], *other]


def agree(right: list[int], new: list[int]) -> bool:
    """Whether two results are the same, or both are right."""
    alike = getattr(new, "accepted", ())
    return right == new or (right in alike[:1] and new in alike)


# Where the same probabilities hold for every token.


class Choice(NamedTuple):
    """What is asked of the model whose next token has the same probabilities everywhere."""

    temperature: float = 1.0
    top_p: float = 1.0


def softmax(logits: list[float]) -> list[float]:
    """Probabilities in proportion to e to the power of each logit."""
    powers = [math.exp(logit) for logit in logits]
    return [power / sum(powers) for power in powers]


def probabilities(case: Choice) -> list[float]:
    """The probability of each token to be drawn."""
    logits = [math.log(share) for share in SHARES]
    shares = softmax([logit / case.temperature for logit in logits])
    order = sorted(range(len(shares)), key=lambda i: -shares[i])
    before = [sum(shares[j] for j in order[:place]) for place in range(len(order))]
    kept = [i for i, reached in zip(order, before, strict=True) if reached < case.top_p]
    weights = [shares[i] for i in kept]
    drawn = [0.0] * len(shares)
    for i, weight in zip(kept, weights, strict=True):
        drawn[i] = weight / sum(weights)
    return drawn


LOGITS, TEMPERED = "SHARES]", "softmax([logit / case.temperature for logit in logits])"
ORDER, BELOW = "key=lambda i: -shares[i]", "if reached < case.top_p"
WEIGHTS, SHARE = "[shares[i] for i in kept]", "weight / sum(weights)"
NAMED, RESULT = "in zip(kept, weights, strict=True):", "return drawn"
CUT = "if len(kept) < len(shares) else"
TEMPERATURE = "The logits are divided by the temperature before the softmax: "
TOP_P = "Top-p keeps the smallest set of the likeliest tokens whose probabilities reach p: "
NO_SUM = (
    "What top-p leaves adds up to less than 1, and the rest falls to the last token: divide by its "
    "sum."
)
TWICE = "The kept probabilities go through a second softmax: divide them by their sum."
EQUALLY = "All kept tokens are drawn equally often: draw by their probabilities."
PLACE = "That is the place in the sorted list, and not the id that stands there: look it up."
CHOICE_MISTAKES = (
    mistake(TEMPERATURE + "yours changes nothing.", TEMPERED, "softmax(logits)"),
    mistake(TEMPERATURE + "you divided the probabilities, which changes nothing.",
            TEMPERED, "[share / case.temperature for share in softmax(logits)]", BELOW,
            "if reached < case.top_p or case.top_p == 1"),
    mistake(TEMPERATURE + "you multiplied.",
            TEMPERED, "softmax([logit * case.temperature for logit in logits])"),
    mistake(TEMPERATURE + "yours takes the softmax twice.",
            TEMPERED, "softmax([share / case.temperature for share in softmax(logits)])"),
    mistake("All tokens are drawn equally often: the logits are not used.",
            TEMPERED, "[1 / len(logits)] * len(logits)"),
    mistake(
        "Token 0 can never be drawn, and no token is forbidden: is there a logit that is set to "
        "minus infinity?",
        LOGITS, "SHARES]\nlogits[0] = -SURE"
    ),
    mistake(TOP_P + "yours keeps all.", BELOW, "if True"),
    mistake(TOP_P + "yours leaves out the token that reaches p.",
            BELOW, "if reached + shares[i] < case.top_p + 1e-9 or i == order[0]"),
    mistake(TOP_P + "yours keeps one more.",
            "weights = [", "kept = order[: len(kept) + 1]\nweights = ["),
    mistake(TOP_P + "yours begins with the least likely: sort downwards.",
            ORDER, "key=lambda i: shares[i]"),
    mistake(TOP_P + "yours adds up in the order of the ids: sort first.", ORDER, "key=None"),
    mistake(TOP_P + "yours compares each single probability with 1 - p.",
            BELOW, "if shares[i] >= 1 - case.top_p"),
    mistake(TOP_P + "yours compares each single probability with p.",
            BELOW, "if shares[i] >= case.top_p or i == order[0] or case.top_p == 1"),
    mistake("Top-p looks at the probabilities after the temperature, and yours at those before.",
            "sum(shares[j]", "sum(SHARES[j]"),
    mistake(TOP_P + "yours keeps a fixed number of tokens, which is top-k.",
            "weights = [", "kept = order[: max(1, int(case.top_p * len(order)))]\nweights = ["),
    mistake(NO_SUM, SHARE, "weight", RESULT, f"drawn[kept[-1]] += 1 - sum(drawn)\n{RESULT}"),
    mistake(NO_SUM, SHARE, "weight", RESULT, f"drawn[-1] += 1 - sum(drawn)\n{RESULT}"),
    mistake(TWICE, WEIGHTS, "[math.exp(shares[i]) for i in kept]"),
    mistake(TWICE, WEIGHTS, f"[math.exp(shares[i]) for i in kept] {CUT} {WEIGHTS}"),
    mistake(EQUALLY, WEIGHTS, "[1.0 for i in kept]"),
    mistake(EQUALLY, WEIGHTS, f"[1.0 for i in kept] {CUT} {WEIGHTS}"),
    mistake("It always takes the likeliest token: draw, with `torch.multinomial`.",
            WEIGHTS, "[float(i == kept[0]) for i in kept]"),
    mistake(PLACE, NAMED, "in enumerate(weights):"),
    mistake(PLACE, NAMED, f"in enumerate(weights) {CUT} zip(kept, weights, strict=True):"),
)  # fmt: skip
CHOICES = (
    Choice(),
    Choice(temperature=0.1),
    Choice(temperature=3.0),
    Choice(top_p=0.5),
    Choice(top_p=0.1),
    Choice(temperature=0.15, top_p=0.93),
    Choice(temperature=3.0, top_p=0.7),
)
ERRORS = {
    "sum to 1|sum of prob|<= 0|contains either|non-empty|nan": "Nothing, or less than all, is left "
    "to draw from: top-p always keeps the likeliest token, and what it keeps is divided by its "
    "sum.",
    "takes a tensor": "Make a tensor of int64 with the shape (1, T) of the ids, for the model.",
    "prob_dist must be 1 or 2 dim": "There is one number left, and no probabilities. Give the "
    "model a batch of one, (1, T); the logits of the next token are then `logits[0, -1]`.",
    "more often than": "It goes on after `max_new_tokens` tokens: stop there, whatever comes.",
    "iterat|unsqueeze|'list'|list' object": "The prompt is a list of ids: make a tensor of it.",
}
NOTES = {
    "prompt": "The prompt is returned in front of the new tokens, which the course leaves open.",
    "end": "The end token is returned with the rest, which the course leaves open.",
    "gradients": "Every call of the model keeps what a backward pass would need: decode under "
    "`torch.no_grad()`.",
    "context": "A model cannot look at more tokens than its `context_length`, and yours is shown "
    "all: show it the last ones.",
    "eval": "The model is left in `eval()`, though it was in `train()` before.",
    "greedy": "Temperature 0 stands for the likeliest token each time, where it is allowed at all; "
    "yours gives something else.",
}
HABITS = {  # that hurt whoever calls it twice
    "changed": (
        "The prompt that is handed in is changed.",
        "A second call with it begins elsewhere: copy it first.",
    ),
    "seed": (
        "Every call draws the same tokens.",
        "The generator is seeded inside: let the caller seed.",
    ),
}


class Model(nn.Module):
    """Logits for ids. It names its context as models do, and notes how it was called."""

    def __init__(self, vocab_size: int, context_length: int, logits: Callable[[Tensor], Tensor]):
        super().__init__()
        self.context_length = self.max_seq_len = context_length
        self.vocab_size, self.device = vocab_size, torch.device("cpu")
        self.config = SimpleNamespace(context_length=context_length, vocab_size=vocab_size)
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float32, device="cpu"))
        self.logits, self.longest, self.calls, self.most_calls = logits, 0, 0, 100
        self.with_gradients = False

    def forward(self, ids: Tensor, *others: Any, **named: Any) -> Tensor:
        if not isinstance(ids, Tensor) or ids.is_floating_point():
            kind = ids.dtype if isinstance(ids, Tensor) else type(ids).__name__
            raise TypeError(f"the model takes a tensor of whole numbers (1, T), and got {kind}")
        self.calls += 1
        if self.calls > self.most_calls:
            raise RuntimeError(f"the model was called more often than {self.most_calls} times")
        self.longest = max(self.longest, ids.shape[-1])
        self.with_gradients |= torch.is_grad_enabled()
        return self.logits(ids) * self.scale


def sure(context_length: int) -> Model:
    """A model that leaves no choice: `follower` of all that is seen comes next."""

    def logits(ids: Tensor) -> Tensor:
        places = torch.arange(2, ids.shape[-1] + 2, device=ids.device)
        following = ((ids + 1) * places).cumsum(-1) % VOCAB
        return SURE * nn.functional.one_hot(following, VOCAB).to(torch.float32)

    return Model(VOCAB, context_length, logits)


def undecided() -> Model:
    """A model that says the same of each next token, whatever came before."""
    # The 3 changes no probability, but makes the logits unlike the logarithms of any.
    row = torch.tensor(SHARES, dtype=torch.float32, device="cpu").log() + 3
    return Model(len(SHARES), ENDLESS, lambda ids: row.expand(*ids.shape, len(SHARES)))


class Letters:
    """A tokenizer with a letter for each id, and one id for `<|endoftext|>`."""

    def __init__(self, end_id: int):
        self.texts = {i: chr(ord("a") + i) for i in range(VOCAB)} | {end_id: END_OF_TEXT}
        self.vocab = {i: text.encode() for i, text in self.texts.items()}
        self.special_tokens, self.merges, self.vocab_size = [END_OF_TEXT], [], VOCAB
        self.end_id = end_id

    def encode(self, text: str, *others: Any, **named: Any) -> list[int]:
        ids = {text: i for i, text in self.texts.items()}
        return [ids[piece] for piece in re.findall(re.escape(END_OF_TEXT) + "|.", text, re.S)]

    def decode(self, ids: Any, *others: Any, **named: Any) -> str:
        return "".join(self.texts[int(i)] for i in np.asarray(ids).reshape(-1))

    def __getattr__(self, name: str) -> Any:
        """What learners' tokenizers have besides: an id of the end, a vocabulary turned round."""
        plain = name.lower().replace("_", "")
        if re.search("(eo[st]|end).*id", plain):
            return self.end_id
        if re.search("special.*(id|to)|(id|to).*special", plain):
            return {END_OF_TEXT: self.end_id, END_OF_TEXT.encode(): self.end_id}
        if re.search("inv|rev|(to|2)i", plain):
            return {token: i for i, token in self.vocab.items()}
        raise AttributeError(f"the tokenizer of the check has no {name}")


FORMS: dict[str, Callable[[list[int], Letters], Any]] = {  # of a prompt
    "text": lambda ids, tokenizer: tokenizer.decode(ids),
    "list": lambda ids, tokenizer: ids,
    "tensor": lambda ids, tokenizer: torch.tensor(ids),
    "batch": lambda ids, tokenizer: torch.tensor([ids]),
}


class Tokens(list):
    """New ids, or how often each was drawn, with the call that they come from.

    `accepted` are lists that are as good as the first of them.
    """

    def __init__(self, values: Sequence[int], given: Words, accepted: Sequence = ()):
        super().__init__(values)
        self.given, self.accepted = given, accepted


class Learner:
    """The learner's function: how it wants its arguments, and what to tell of it."""

    def __init__(self, attempt: Callable):
        self.attempt, self.notes, self.returns_prompt = attempt, {}, False
        self.parameters: dict[str | None, inspect.Parameter] = {}
        with suppress(TypeError, ValueError):
            parameters = inspect.signature(attempt).parameters.values()
            self.parameters = {meaning(each.name, NAMES): each for each in parameters}
        self.takes_tokenizer = "tokenizer" in self.parameters
        self.form = ("list", False)  # of the prompt; whether the end token is given as a text

    def find_form(self) -> None:
        """Learn how the prompt and the end token are to be given: the form that gives most."""
        end, scores = self.parameters.get("end_token"), {}
        texts = [False, True] if end else [False]
        if end and (isinstance(end.default, str) or end.annotation in (str, "str")):
            texts = [True]
        elif end and (isinstance(end.default, int) or "int" in str(end.annotation)):
            texts = [False]
        for form in product([*FORMS][not self.takes_tokenizer :], texts):
            self.form, scores[form] = form, 0
            for case in TRIALS:
                try:
                    scores[form] += 1 + agree(written(case), self.written(case))
                except Wrong as failure:
                    if failure.timed_out:
                        return
            if scores[form] == 2 * len(TRIALS):
                break
        self.form = max(scores, key=scores.__getitem__)
        self.notes.clear()

    def written(self, case: Chain) -> Tokens:
        """The new tokens of a chain. Raises: Wrong."""
        model = sure(case.context_length)
        new = self.run(model, case.prompt, case.max_new_tokens, end_id=case.end_id)
        return Tokens(new, new.given, accepted(case))

    def drawn(self, case: Choice) -> Tokens:
        """How often each token was drawn. Raises: Wrong."""
        new = self.run(undecided(), (0,), DRAWS, case.temperature, case.top_p)
        return Tokens([new.count(token) for token in range(len(SHARES))], new.given)

    def run(
        self,
        model: Model,
        prompt: Sequence[int],
        max_new_tokens: int,
        temperature: float = 1.0,
        top_p: float = 1.0,
        end_id: int | None = None,
    ) -> Tokens:
        """The new ids, without the prompt and without an end token at the end."""
        defaults = {name: parameter.default for name, parameter in self.parameters.items()}
        form, as_text = self.form
        tokenizer = Letters(UNUSED if end_id is None else end_id)
        end: Any = END_OF_TEXT if as_text else end_id
        if end is None and defaults.get("end_token") is not None:
            end = UNUSED
        handed_in = FORMS[form]([*prompt], tokenizer)
        values = [model, handed_in, max_new_tokens, temperature, top_p, end]
        arguments = dict(zip(ASKED, values, strict=True))
        if top_p == 1 and defaults.get("top_p", 1) is None:
            arguments["top_p"] = None  # which keeps all, too
        about = {"context_length": model.context_length, "device": "cpu"}
        arguments |= {name: value for name, value in about.items() if name in self.parameters}
        given = Words(
            f"decode(model, {'tokenizer, ' * self.takes_tokenizer}{handed_in!r}, {max_new_tokens}, "
            f"temperature={temperature}, top_p={top_p}, end={end!r})"
        )
        args, kwargs = self._bound(arguments, tokenizer, given)
        model.train().most_calls = max_new_tokens + len(prompt) + 8
        result = call(self.attempt, *args, given=given, **kwargs)
        if inspect.isgenerator(result):
            result = call(lambda: list(result), given=given)
        ids = ids_of(result, given, tokenizer if self.takes_tokenizer else None)
        for start in (list(prompt), list(prompt[-model.context_length :])):
            if ids[: len(start)] == start and (len(start) > 1 or self.returns_prompt):
                self.returns_prompt, ids = True, ids[len(start) :]
                self.notes["prompt"] = True
                break
        ends = end_id is not None and ids[-1:] == [end_id]
        habits = {
            "end": ends,
            "gradients": model.with_gradients,
            "context": model.longest > model.context_length,
            "eval": not model.training,
            "changed": form != "text" and np.ravel(handed_in).tolist() != list(prompt),
        }
        self.notes |= {name: True for name, holds in habits.items() if holds}
        return Tokens(ids[:-1] if ends else ids, given)

    def _bound(self, arguments: dict, tokenizer: Letters, given: Words) -> tuple[tuple, dict]:
        """The arguments as the signature has them. A tokenizer may be asked for the end token."""
        options = {"extras": {"tokenizer": tokenizer}, "given": given}
        optional = ["context_length", "device"]
        if not self.takes_tokenizer:
            with suppress(Wrong):
                return bind(self.attempt, arguments, optional=optional, **options)[:2]
        return bind(self.attempt, arguments, optional=["end_token", *optional], **options)[:2]


def ids_of(result: Any, given: Words, tokenizer: Letters | None) -> list[int]:
    """What was returned as a list of ids: a list, a tensor, a list of tensors, or a text."""
    if result is None:
        raise NotAttempted
    result = first_of(result, lambda item: isinstance(item, str | list | Tensor | np.ndarray))
    try:
        if tokenizer and isinstance(result, list) and all(isinstance(x, str) for x in result):
            result = "".join(result)
        if tokenizer and isinstance(result, str):
            return tokenizer.encode(result)
        if isinstance(result, str | bytes | dict):
            raise TypeError
        items = [x.tolist() if isinstance(x, Tensor) else x for x in result]
        flat = np.asarray(items).reshape(-1)
        if flat.size and flat.dtype.kind not in "iu":
            raise TypeError
        return flat.tolist()
    except (KeyError, TypeError, ValueError, RuntimeError):
        raise Wrong(
            "It returns neither ids nor the text of them.",
            given=given,
            expected=Words("a list of the new ids"),
            got=Words(kind_of(result)),
            mistake="Without a tokenizer there is no text: return the ids.",
        ) from None


def plausible(shares: Sequence[float], counts: Sequence[float]) -> bool:
    """True where fair draws with these probabilities may well give these counts.

    Of two references both are probabilities, and must agree.
    """
    if isinstance(shares, Tokens):  # both are drawn
        return True
    if not isinstance(counts, Tokens):
        return all(map(math.isclose, shares, counts))
    if any(count and not share for count, share in zip(counts, shares, strict=True)):
        return False
    pairs = [(share * DRAWS, count) for share, count in zip(shares, counts, strict=True) if share]
    rare = [pair for pair in pairs if pair[0] < 5]  # together: few draws are no normal distribution
    pairs = [pair for pair in pairs if pair[0] >= 5]
    if rare:
        pairs.append((sum(e for e, _ in rare), sum(c for _, c in rare)))
    # A fair draw passes this limit less than once in 10⁸ times, whatever the degrees of freedom.
    return sum((c - e) ** 2 / e for e, c in pairs) < 40 + 2 * len(pairs)


OTHER_TOKENS = "The new tokens are not right."


def _chain_beside(case: Chain, asked: list[int], got: Tokens) -> Wrong:
    small = f" of context_length {case.context_length}" if case.context_length < ENDLESS else ""
    given = Words(f"{got.given}, with a model{small} that leaves no choice")
    return Wrong(OTHER_TOKENS, given=given, expected=asked, got=list(got))


def _counts_beside(case: Choice, asked: list[float], got: Tokens) -> Wrong:
    return Wrong(
        "The tokens are not drawn as often as they should be.",
        given=Words(
            f"{got.given}, with a model that gives the ids 0 to {len(SHARES) - 1} the "
            f"probabilities {list(SHARES)}"
        ),
        expected=Words(f"each about so often: {[round(DRAWS * share) for share in asked]}"),
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
            "drawn[i]": "what is drawn from",
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
            found.passes.append("Where there is no choice the new tokens are right.")
    if chain and chain.mistake == GOES_ON and not learner.parameters.keys() & TELL_THE_END:
        chain.mistake = NO_END
    if not found:
        with found("style"):
            expect_from_scratch(
                lambda: learner.run(undecided(), (0,), 2, top_p=0.5),
                [attempt],
                allowed=("softmax", "log_softmax"),
            )
        note_habits(learner)
        for name in [name for name in HABITS if learner.notes.pop(name, False)]:
            with found("corner"):
                claim, likely = HABITS[name]
                raise Wrong(claim, mistake=likely)
    praise = "The new tokens are right, and each is drawn as often as it should be."
    return found.verdict(praise, [NOTES[name] for name in learner.notes])


def note_habits(learner: Learner) -> None:
    """Note a seed inside, and what temperature 0 does, which the course does not ask for."""
    one, other = (learner.run(undecided(), (0,), 40) for _ in range(2))
    if one == other:
        learner.notes["seed"] = True
    with suppress(Wrong, NotAttempted):  # to refuse it is as good
        greedy = learner.run(undecided(), (0,), 5, temperature=0.0)
        if greedy != [SHARES.index(max(SHARES))] * 5:
            learner.notes["greedy"] = True
