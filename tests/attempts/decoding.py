"""`decode` as learners write it, right and wrong."""

import inspect

import numpy as np
import torch

from workbook.generation import generate


@torch.no_grad()
def decode(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
    ids = torch.tensor([prompt_ids])
    new = []
    for _ in range(max_new_tokens):
        logits = model(ids[:, -model.context_length :])[0, -1]
        probs = torch.softmax(logits / temperature, dim=-1)
        if top_p < 1.0:
            sorted_probs, order = probs.sort(descending=True)
            before = sorted_probs.cumsum(0) - sorted_probs
            sorted_probs[before >= top_p] = 0.0
            probs = torch.zeros_like(probs).scatter(0, order, sorted_probs / sorted_probs.sum())
        token = torch.multinomial(probs, 1).item()
        if token == end_id:
            break
        new.append(token)
        ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
    return new


def masked_logits(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
    """Top-p by logits of minus infinity, greedy at temperature 0, in `eval()` and back."""
    training = model.training
    model.eval()
    ids = torch.as_tensor(prompt_ids).reshape(1, -1)
    with torch.inference_mode():
        for _ in range(max_new_tokens):
            logits = model(ids[:, -model.config.context_length :])[:, -1, :]
            if temperature == 0:
                token = logits.argmax(-1, keepdim=True)
            else:
                logits, order = torch.sort(logits / temperature, descending=True)
                gone = torch.cumsum(logits.softmax(-1), -1) >= top_p
                gone[:, 1:] = gone[:, :-1].clone()
                gone[:, 0] = False
                if top_p < 1:
                    logits = logits.masked_fill(gone, float("-inf"))
                token = order.gather(1, torch.multinomial(logits.softmax(-1), 1))
            if end_id is not None and token.item() == end_id:
                break
            ids = torch.cat((ids, token), dim=1)
    model.train(training)
    return ids[0, len(prompt_ids) :]


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


def stops_where_the_context_is_full(model, ids, n, temperature=1.0, top_p=1.0, end_id=None):
    room = max(0, model.context_length - len(ids))
    return decode(model, ids[-model.context_length :], min(n, room), temperature, top_p, end_id)


def takes_a_tensor(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
    new = decode(
        model, prompt_ids.squeeze().reshape(-1).tolist(), max_new_tokens, temperature, top_p, end_id
    )
    return torch.tensor([new])


def keywords(model, prompt_ids, max_new_tokens, *, temperature=1.0, top_p=1.0, end_id=None):
    return decode(model, prompt_ids, max_new_tokens, temperature, top_p, end_id)


def yields(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
    yield from decode(model, prompt_ids, max_new_tokens, temperature, top_p, end_id)


def seeded(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
    torch.manual_seed(len(prompt_ids))
    return decode(model, prompt_ids, max_new_tokens, temperature, top_p, end_id)


def changed(old, new, *more):
    """`decode` with pieces of its source replaced."""
    source = inspect.getsource(decode)
    for before, after in ((old, new), *more):
        assert source.count(before) == 1, before
        source = source.replace(before, after)
    names = {"torch": torch}
    exec(source, names)
    return names["decode"]


RIGHT = [
    decode,
    masked_logits,
    with_numpy,
    stops_where_the_context_is_full,
    takes_a_tensor,
    keywords,
    yields,
    seeded,
    changed("torch.tensor([prompt_ids])", "prompt_ids"),
    changed("ids[:, -model.context_length :]", "ids"),
    generate.decode,
]

CUT = "sorted_probs[before >= top_p] = 0.0"
PUT = "torch.zeros_like(probs).scatter(0, order, sorted_probs / sorted_probs.sum())"
DRAW = "torch.multinomial(probs, 1).item()"
BY_HAND = "min(int((torch.rand(()) > probs.cumsum(0)).sum()), len(probs) - 1)"
END = "if token == end_id:\n            break\n        new.append(token)"

WRONG = [
    (changed("return new", "return prompt_ids + new"), "The prompt is returned as well"),
    (changed("return new", "return new[-1:]"), "Only the last new id"),
    (changed("return new", "return str(new)"), "left to the tokenizer"),
    (
        changed(END, "new.append(token)\n        if token == end_id:\n            break"),
        "end token is",
    ),
    (changed(END, "new.append(token)"), "goes on behind the end token"),
    (changed("if token == end_id", "if end_id and token == end_id"), "false in an `if`"),
    (
        changed(
            "for _ in range(max_new_tokens):",
            "while end_id not in [*prompt_ids, *new][:-1]:"
            "\n        if len(new) == max_new_tokens:\n            break",
        ),
        "look at the new id alone",
    ),
    (changed("range(max_new_tokens)", "range(max_new_tokens + 1)"), "one id too many"),
    (changed("range(max_new_tokens)", "range(max_new_tokens - 1)"), "one id too few"),
    (
        changed("range(max_new_tokens)", "range(max_new_tokens - len(prompt_ids))"),
        "`max_new_tokens` counts new ids alone",
    ),
    (changed("ids = torch.cat([ids,", "_ = torch.cat([ids,"), "sees the prompt alone"),
    (changed("ids[:, -model.context_length :]", "ids[:, -1:]"), "sees the last id alone"),
    (changed("[0, -1]", "[0, 0]"), "logits of the first position"),
    (changed("[0, -1]", "[0, -2:][0]"), "last position but one"),
    (changed("-model.context_length :", ": model.context_length"), "keep the last"),
    (changed("logits / temperature", "logits * temperature"), "you multiplied"),
    (changed("logits / temperature", "logits"), "changes nothing"),
    (
        changed(
            "torch.softmax(logits / temperature, dim=-1)",
            "torch.softmax(logits, dim=-1) / temperature",
        ),
        "you divided the probabilities",
    ),
    (
        changed("logits / temperature", "torch.softmax(logits, -1) / temperature"),
        "the softmax twice",
    ),
    (
        changed("torch.softmax(logits / temperature, dim=-1)", "torch.ones_like(logits) / 9"),
        "the logits are not used",
    ),
    (changed(CUT, "pass"), "yours keeps all"),
    (changed(CUT, "sorted_probs[1:][(before + sorted_probs)[1:] > top_p] = 0.0"), "reaches p"),
    (changed(CUT, "sorted_probs[before + sorted_probs > top_p] = 0.0"), "reaches p"),
    (changed(CUT, "sorted_probs[1:][before[:-1] >= top_p] = 0.0"), "yours keeps one more"),
    (changed("descending=True", "descending=False"), "begins with the least likely"),
    (
        changed("probs.sort(descending=True)", "probs.clone(), torch.arange(len(probs))"),
        "in the order of the ids",
    ),
    (changed(CUT, "sorted_probs[sorted_probs < 1 - top_p] = 0.0"), "keeps the likeliest"),
    (
        changed(CUT, "sorted_probs[sorted_probs < min(top_p, float(sorted_probs[0]))] = 0.0"),
        "each single probability with p",
    ),
    (
        changed(
            "before = sorted_probs.cumsum(0) - sorted_probs",
            "plain = torch.softmax(logits, -1)[order]\n"
            "            before = plain.cumsum(0) - plain",
        ),
        "after the temperature",
    ),
    (
        changed(PUT, "torch.zeros_like(probs).scatter(0, order, sorted_probs)", (DRAW, BY_HAND)),
        "divide by its sum",
    ),
    (
        changed(
            PUT,
            "torch.where(torch.zeros_like(probs).scatter(0, order, sorted_probs) > 0, "
            "probs.exp(), 0.0)",
        ),
        "a second softmax",
    ),
    (changed(PUT, "torch.zeros_like(probs).scatter(0, order, (sorted_probs > 0).float())"), "kept"),
    (changed(DRAW, "probs.argmax().item()"), "always takes the likeliest"),
    (changed(PUT, "sorted_probs"), "the place in the sorted list"),
    (lambda model, prompt: prompt, "cannot be called with the arguments"),
]
