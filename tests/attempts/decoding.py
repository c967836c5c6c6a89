"""`decode` as learners write it, right and wrong."""

import inspect

import numpy as np
import torch
from made_repositories import module

from attempts.lists import almost, mistake, right
from workbook.generation import sampling

decode = right("decoding")(module("flat", "cs336_basics/training.py").decode)


@right("decoding")
def with_numpy(model, prompt, n, temperature=1.0, top_p=1.0, end=None):
    """No `no_grad`, the model left in `eval()`, its own generator, no temperature 0."""
    model.eval()
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    random = np.random.default_rng()
    ids = [int(i) for i in prompt]
    while len(ids) < len(prompt) + n:
        seen = torch.tensor(ids[-model.context_length :])
        logits = model(seen)[-1].detach().double().numpy() / temperature
        probs = np.exp(logits - logits.max())
        probs /= probs.sum()
        order = np.argsort(-probs)
        keep = order[: np.searchsorted(np.cumsum(probs[order]), top_p) + 1]
        token = random.choice(keep, p=probs[keep] / probs[keep].sum())
        if end is not None and token == end:
            break
        ids.append(token)
    return np.array(ids[len(prompt) :])


@right("decoding")
def stops_where_the_context_is_full(model, ids, n, temperature=1.0, top_p=1.0, end_id=None):
    length = model.config.context_length
    room = max(0, length - len(ids))
    return decode(model, ids[-length:], min(n, room), temperature, top_p, end_id)


def top_p_probs(probs, top_p):
    """Nucleus of a batch, by a mask in the order of the ids."""
    ordered, order = torch.sort(probs, descending=True, dim=-1)
    gone = ordered.cumsum(-1) - ordered >= top_p
    gone = torch.zeros_like(gone).scatter(-1, order, gone & (top_p < 1))
    probs = probs.masked_fill(gone, 0.0)
    return probs / probs.sum(-1, keepdim=True)


@right("decoding")
def method(self, x, eot_token_id, max_length, temp, top_p=None):
    """A method of the model, of a tensor (1, T); top_p=None keeps all."""
    with torch.no_grad():
        for _ in range(max_length):
            probs = torch.softmax(self(x[:, -self.context_length :])[:, -1] / temp, -1)
            new = torch.multinomial(probs if top_p is None else top_p_probs(probs, top_p), 1)
            x = torch.cat((x, new), dim=1)
            if new == eot_token_id:
                break
    return x


@right("decoding")
def until_a_special_token(model, prompt, special_token_ids: set[int], temperature, p, max_tokens):
    """Every setting has a name that says it, and none a default."""
    end_id = next(iter(special_token_ids))
    return decode(model, prompt, max_tokens, temperature, p, end_id)


@right("decoding")
class Decoder:
    """Some settings when it is made, others with the prompt; a list of ids that end it."""

    def __init__(self, lm, temperature, nucleus_mass, stop_token_ids: list[int] | None = None):
        self.lm = lm
        self.temperature = temperature
        self.mass = nucleus_mass
        self.stop = stop_token_ids or []

    def sample(self, logits):
        probs = top_p_probs(torch.softmax(logits / self.temperature, -1), self.mass)
        return torch.multinomial(probs, 1)

    @torch.no_grad()
    def generate(self, prompt_ids: torch.Tensor, max_new_tokens: int = 100):
        """The model sees (T,), without a batch; what is longer than the context is refused."""
        ids = prompt_ids.to(self.lm.device)
        for _ in range(max_new_tokens):
            if len(ids) > self.lm.max_seq_len:
                break
            ids = torch.cat((ids, self.sample(self.lm(token_ids=ids)[-1])))
            if ids[-1].item() in self.stop:
                break
        return ids


@right("decoding")
def from_text(model, tokenizer, prompt, max_tokens, temperature, top_p, end_token="<|endoftext|>"):
    end = tokenizer.encode(end_token)[0]
    ids = decode(model, tokenizer.encode(prompt), max_tokens, temperature, top_p, end)
    return tokenizer.decode(ids)


@right("decoding")
def with_a_vocabulary(prompt: torch.Tensor, model, max_tokens, temperature, top_p, vocab: dict):
    """It takes a batch of one prompt, and returns what the tokens spell."""
    assert prompt.ndim == 2
    ids = prompt[0].tolist()
    new = decode(model, ids, max_tokens, temperature, top_p, None)
    spelt = [vocab[token_id] for token_id in new]
    end = spelt.index(b"<|endoftext|>") if b"<|endoftext|>" in spelt else len(spelt)
    return b"".join(spelt[:end]).decode()


@right("decoding")
def by_its_end_id(model, tokenizer, prompt, max_tokens=50, temperature=1.0, top_p=0.9):
    end = tokenizer.eot_token_id
    ids = decode(model, tokenizer.encode(prompt), max_tokens, temperature, top_p, end)
    return tokenizer.decode(ids)


class Sampler(torch.nn.Module):
    """Its `generate` uses another method of its class, and a property."""

    def __init__(self, weight):
        raise AssertionError("the check has no weight for it")

    device = property(lambda self: self.weight.device)

    def pick(self, logits, temperature, top_p):
        return torch.multinomial(top_p_probs(torch.softmax(logits / temperature, -1), top_p), 1)

    @torch.no_grad()
    def generate(self, ids: torch.Tensor, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
        ids, start = ids.to(self.device).reshape(1, -1), ids.shape[-1]
        for _ in range(max_new_tokens):
            logits = self(ids[:, -self.context_length :])[:, -1]
            ids = torch.cat((ids, self.pick(logits, temperature, top_p)), dim=1)
            if ids[0, -1] == end_id:
                break
        return ids[0, start:]


right("decoding")(Sampler.generate)


@right("decoding")
def with_its_reason(model, prompt, max_tokens, temperature, top_p, end_id=None):
    ids = decode(model, prompt, max_tokens, temperature, top_p, end_id)
    return ids, len(ids), "end" if len(ids) < max_tokens else "length"


@right("decoding")
def of_special_tokens(tokenizer, special_tokens, model, input_tokens, max_tokens, temp, top_p):
    """Stops at any of the special tokens, which it cannot do without."""
    ends = [tokenizer.encode(token)[0] for token in special_tokens]
    return decode(model, input_tokens, max_tokens, temp, top_p, *ends)


@mistake("decoding", "With top_p below 1 it always takes the likeliest token")
def greedy_nucleus(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
    temperature = temperature if top_p >= 1 else 1e-3
    return decode(model, prompt_ids, max_new_tokens, temperature, 1.0, end_id)


@mistake("decoding", "An end token in the prompt ends it")
def ends_before_it_begins(model, prompt, n, temperature=1.0, top_p=1.0, end_id=None):
    return [] if prompt[-1] == end_id else decode(model, prompt, n, temperature, top_p, end_id)


@mistake("decoding", "loses its oldest token")
def one_too_short(model, prompt, n, temperature=1.0, top_p=1.0, end_id=None):
    def of_fewer(ids):
        return model(ids[:, 1 - model.context_length :])

    of_fewer.config = model
    return decode(of_fewer, prompt, n, temperature, top_p, end_id)


@mistake("decoding", "Your own `assert` or `raise` stops here")
def refuses(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
    seen = torch.tensor([prompt_ids])
    assert seen.shape[-1] + max_new_tokens < model.context_length, f"too long: {seen.shape=}"
    return decode(model, prompt_ids, max_new_tokens, temperature, top_p, end_id)


@mistake("decoding", "Too little is left to draw from")
def nothing_left(model, ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
    """It fails with a tensor after the model was called, and with a list before."""
    probs = torch.softmax(model(ids.reshape(1, -1))[0, -1] / temperature, -1)
    return torch.multinomial(0 * probs, max_new_tokens)


def by_other_names(model, tokenizer, prompt, max_new_tokens, temperature=1.0, top_p=1.0):
    return tokenizer.decode(decode(model, tokenizer.to_numbers(prompt), max_new_tokens))


@almost("decoding", "seeded inside")
def seeded(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
    torch.manual_seed(len(prompt_ids))
    return decode(model, prompt_ids, max_new_tokens, temperature, top_p, end_id)


@almost("decoding", "copy it")
def appends(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
    n = len(prompt_ids)
    prompt_ids += decode(model, prompt_ids, max_new_tokens, temperature, top_p, end_id)
    return prompt_ids[n:]


def changed(old, new, *more):
    """`decode` with pieces of its source replaced."""
    source = inspect.getsource(decode)
    for before, after in ((old, new), *more):
        assert source.count(before) == 1, before
        source = source.replace(before, after)
    names = dict(globals())
    exec(source, names)
    return names["decode"]


END = "if next_id == end_id:\n            break\n        ids.append(next_id)"
TO_THE_END = "ids.append(next_id)\n        if next_id == end_id:\n            break"
right("decoding")(changed(END, TO_THE_END))
almost("decoding", "not from scratch yet")(sampling.decode)
NEW = "return ids[len(prompt_ids) :]"
for words, wrong in (
    ("Only the prompt comes back", changed(NEW, "return prompt_ids")),
    ("goes on after the end token", changed(END, "ids.append(next_id)")),
    ("an argument has to tell", changed(", end_id=None", "", ("if next_id == end_id:", "if 0:"))),
    ("stop there", changed("break\n        ids", "continue\n        ids")),
    ("It goes on after `max_new_tokens`", changed("range(max_new_tokens)", "iter(int, 1)")),
    (
        "the index in the sorted list",
        changed("probs[order[before >= top_p]] = 0.0", "probs = sorted_probs * (before < top_p)"),
    ),
    (
        "Give the model a batch of one",
        changed("tensor([ids[-context_length:]])", "tensor(ids[-context_length:])"),
    ),
    (
        "not from their sums",
        changed(
            "dim=-1)\n        if top_p",
            "dim=-1).cumsum(-1)\n        if top_p",
            (", end_id=None", ", *, end_id"),
        ),
    ),
    ("Make the ids an int64 tensor", changed("torch.tensor([ids", "torch.Tensor([ids")),
    ("Ids are integers", changed(NEW, NEW.replace("ids[", "torch.tensor(ids)[") + " / 1")),
):
    mistake("decoding", words)(wrong)


@almost("decoding", "the softmax subtracts the largest logit first")
def overflows(model, ids, n, temperature=1.0, top_p=1.0, end_id=None):
    """A softmax of its own, as it is written in the handout's formula."""
    ids = list(ids)
    start = len(ids)
    with torch.no_grad():
        for _ in range(n):
            logits = model(torch.tensor([ids[-model.context_length :]]))[0, -1]
            powers = torch.exp(logits / temperature)
            probs = top_p_probs((powers / powers.sum())[None], top_p)
            new = torch.multinomial(probs, 1).item()
            if new == end_id:
                break
            ids.append(new)
    return ids[start:]
