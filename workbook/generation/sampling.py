"""Text from a language model: the prompt goes in, one new token comes out and is appended to it.

    logits -> / temperature -> softmax -> top-k -> top-p -> draw

`decode` computes the whole sequence again for every token. `generate` caches the keys and values
of the tokens it has seen, for several prompts side by side, and gives the same tokens sooner. A
model sees the last `context_length` tokens. Once the text is longer, this window slides, every
position in it changes, and each token costs a full forward pass, with or without a cache.
"""

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from workbook.corpora.corpora import END_OF_TEXT
from workbook.generation.fast_step import OneStep
from workbook.tokenization.tokenizer import Tokenizer
from workbook.transformer.model import TransformerLM
from workbook.transformer.nn import float_type

FIRST_LOOK = 64  # tokens that top-p sorts at first: usually they are enough
Number = int | float | np.integer | np.floating  # a type checker does not take an int for a float


@torch.no_grad()
def decode(
    model: Callable[[Tensor], Tensor],
    prompt_ids: Sequence[int],
    max_new_tokens: int,
    temperature: Number = 1.0,
    top_p: Number = 1.0,
    end_id: int | None = None,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> list[int]:
    """Return the ids of up to `max_new_tokens` new tokens, stopping before the first `end_id`.

    `model` is any function from token ids (1, seq) to logits (1, seq, vocab). `candidates` explains
    `temperature`, `top_p` and `top_k`; at temperature 0 the likeliest token is taken.
    """
    check_prompts([prompt_ids], max_new_tokens)
    # A model sees a window of the text; a plain function may see all of it.
    device = device_of(model)
    window = window_of(model)
    ids = list(prompt_ids)
    for _ in range(max_new_tokens):
        seen = torch.tensor([ids[-window:] if window else ids], device=device)
        logits = model(seen)[:, -1]  # only the last position predicts a new token
        new_id = int(draw(logits, temperature, top_p, top_k, generator))
        if new_id == end_id:
            break
        ids.append(new_id)
    return ids[len(prompt_ids) :]


def generate(
    model: TransformerLM,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    temperature: Number = 1.0,
    top_p: Number = 1.0,
    end_id: int | None = None,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> list[list[int]]:
    """Generate for several prompts, which may differ in length; arguments as in `decode`.

    Returns the ids of the new tokens of each prompt.
    """
    written: list[list[int]] = [[] for _ in prompts]
    for row, new_id in stream(
        model, prompts, max_new_tokens, temperature, top_p, end_id, top_k, generator
    ):
        written[row].append(new_id)
    return written


@torch.inference_mode()
def stream(
    model: TransformerLM,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    temperature: Number = 1.0,
    top_p: Number = 1.0,
    end_id: int | None = None,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> Iterator[tuple[int, int]]:
    """Yield (number of the prompt, new token id) as they are drawn; arguments as in `decode`.

    All rows begin at position 0, and the shortest prompt is continued first. A longer prompt keeps
    its own tokens until they end:

        position   0  1  2  3  4  5
        row 0      p  p  p  p  new new       p: of the prompt, all known
        row 1      p  p  new new new new
                         ^ the first step draws here; row 0 keeps its p
    """
    check_prompts(prompts, max_new_tokens)
    lengths = [len(prompt) for prompt in prompts]
    device = device_of(model)
    window = model.config.context_length
    ids = torch.zeros(len(prompts), max(lengths) + max_new_tokens, dtype=torch.long, device=device)
    # One tensor for all rows, with zeros where nothing is written yet.
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)] = torch.tensor(prompt, device=device)
    step = OneStep(model)
    caches = model.new_caches()
    cached = 0
    unfinished = set(range(len(prompts))) if max_new_tokens else set()
    position = min(lengths)  # the next one to be filled
    while unfinished:
        if position <= window:
            # Only the prompts' first tokens come several at a time; `step` is faster for one.
            forward = step if position - cached == 1 else model
            logits = forward(ids[:, cached:position], caches=caches)[:, -1]
            cached = position
        else:  # the window slides: what is cached belongs to other positions now
            logits = model(ids[:, position - window : position])[:, -1]
        drawn = draw(logits, temperature, top_p, top_k, generator)
        for row, new_id in enumerate(drawn.tolist()):
            if row not in unfinished or position < lengths[row]:
                continue  # it has ended, or still reads its prompt: the draw is not used
            if new_id == end_id:
                unfinished.discard(row)
                continue
            ids[row, position] = new_id
            yield row, new_id
            if position + 1 == lengths[row] + max_new_tokens:
                unfinished.discard(row)
        position += 1


def write_text(
    model: Callable[[Tensor], Tensor],
    tokenizer: Tokenizer,
    prompt: str,
    max_new_tokens: int,
    temperature: Number = 1.0,
    top_p: Number = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
    decoding: Callable[..., list[int]] | None = None,
) -> Iterator[str]:
    """Yield the continuation of a text as it is generated, up to `<|endoftext|>`.

    An empty prompt begins a new document. `decoding` is a learner's function, used instead of ours
    and called with the first six arguments of `decode` and the tokenizer. The other arguments are
    those of `decode`.
    """
    # Documents are separated by this token, so it stands for the beginning of one as well.
    end_id = end_of_text(tokenizer)
    prompt_ids = tokenizer.encode(prompt) or ([] if end_id is None else [end_id])
    how = (max_new_tokens, temperature, top_p, end_id)
    if decoding is not None:
        return decode_stream(tokenizer, decoding(model, prompt_ids, *how, tokenizer))
    if not isinstance(model, TransformerLM):  # a learner's model, which has no caches
        return decode_stream(tokenizer, decode(model, prompt_ids, *how, top_k, generator))
    drawn = stream(model, [prompt_ids], *how, top_k, generator)
    return decode_stream(tokenizer, (new_id for _, new_id in drawn))


def decode_stream(tokenizer: Tokenizer, ids: Iterable[int]) -> Iterator[str]:
    """Yield the text of token ids as they come; joined, it is that of `tokenizer.decode(ids)`.

    A token may end in the middle of a character; its first bytes then wait for the next token.
    """
    # Python's own decoder waits in the same way; what is no UTF-8 becomes U+FFFD.
    utf8 = codecs.getincrementaldecoder("utf-8")("replace")
    for token_id in ids:
        if token_id not in tokenizer.vocab:
            raise ValueError(
                f"id {token_id} is not in the vocabulary of {len(tokenizer.vocab):,} tokens; do"
                f" model and tokenizer belong together?"
            )
        if text := utf8.decode(tokenizer.vocab[token_id]):
            yield text
    if text := utf8.decode(b"", final=True):
        yield text


def end_of_text(tokenizer: Tokenizer) -> int | None:
    """The id of `<|endoftext|>`; None if it is not a special token of the tokenizer."""
    if END_OF_TEXT not in tokenizer.special_tokens:
        return None
    return tokenizer.encode(END_OF_TEXT)[0]


def draw(
    logits: Float[Tensor, "rows vocab"],
    temperature: Number = 1.0,
    top_p: Number = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, " rows"]:
    """Draw a token id for each row from its `candidates`; at temperature 0, take the likeliest.

    Raises: ValueError for logits with a NaN or an infinity, among which there is no likeliest.
    """
    if not logits.amax(-1).isfinite().all():
        raise ValueError("the model's logits are NaN or infinite: it has diverged; train it again")
    if temperature == 0:
        return logits.argmax(-1)
    probabilities, ids = candidates(logits, temperature, top_p, top_k)
    # Inverse transform sampling: one uniform number per row falls into a step of the cumulative
    # sum. It never hits a probability of 0, not even at the end: `rand` is always below 1.
    ends = probabilities.cumsum(-1)
    uniform = torch.rand(len(ends), 1, generator=generator, device=ends.device) * ends[:, -1:]
    hit = torch.searchsorted(ends, uniform.to(ends.dtype), right=True)
    return ids.gather(-1, hit).squeeze(-1)


def candidates(
    logits: Float[Tensor, "*rows vocab"],
    temperature: Number = 1.0,
    top_p: Number = 1.0,
    top_k: int | None = None,
) -> tuple[Float[Tensor, "*rows few"], Int[Tensor, "*rows few"]]:
    """The probabilities of the tokens that may be drawn, and the ids of these tokens.

    `temperature` divides the logits: below 1, likely tokens become likelier. `top_k` keeps the k
    likeliest tokens. `top_p` keeps the fewest tokens, likeliest first, whose probabilities add up
    to at least p. Rows that keep fewer tokens are padded with tokens of probability 0.
    Source of top-p: Holtzman et al. 2020, sec. 3.1 (nucleus sampling).
    """
    if temperature == 0:
        raise ValueError("at temperature 0 nothing is drawn; take the largest logit instead")
    check_settings(temperature, top_p, top_k)
    high = logits.to(float_type(logits))
    # Subtract the largest first, so that no division by a small temperature overflows. Below the
    # smallest number of this type the temperature itself would be 0, and 0 / 0 is NaN.
    temperature = max(float(temperature), torch.finfo(high.dtype).tiny)
    probabilities = torch.softmax((high - high.amax(-1, keepdim=True)) / temperature, -1)
    vocab = logits.shape[-1]
    ids = torch.arange(vocab, device=logits.device).expand_as(probabilities)
    if top_k is not None and top_k < vocab:
        probabilities, ids = probabilities.topk(top_k)
        # The kept ones share the probability of those that were left out.
        probabilities = probabilities / probabilities.sum(-1, keepdim=True)
    if top_p < 1:
        probabilities, places = nucleus(probabilities, top_p)
        ids = ids.gather(-1, places)
    return probabilities, ids


def nucleus(
    probabilities: Float[Tensor, "*rows vocab"], top_p: Number
) -> tuple[Float[Tensor, "*rows few"], Int[Tensor, "*rows few"]]:
    """The fewest probabilities that reach `top_p` together, scaled to sum to 1, and their places.

    Sorting a whole vocabulary takes longer than the model does. So only the likeliest 64 are looked
    at first, and more only if these are not enough.
    """
    size = FIRST_LOOK  # and then 8 times as many, until they are enough
    # Or it would be 0 in this type.
    top_p = max(float(top_p), torch.finfo(probabilities.dtype).tiny)
    while True:
        likeliest, places = probabilities.topk(min(size, probabilities.shape[-1]))
        cumulative = likeliest.cumsum(-1)
        if size >= probabilities.shape[-1] or bool((cumulative[..., -1] >= top_p).all()):
            break
        size *= 8
    # A token stays if those before it add up to less than p: the one that reaches p is the last.
    kept = torch.where(cumulative - likeliest < top_p, likeliest, 0)
    return kept / kept.sum(-1, keepdim=True), places


def check_settings(temperature: Number, top_p: Number, top_k: int | None) -> None:
    """Raise ValueError for settings that leave nothing to draw from."""
    if not temperature > 0:
        raise ValueError(f"temperature={temperature!r} is not 0 or more; 0 takes the likeliest")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, got {top_p!r}; 1 keeps every token")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k={top_k!r} keeps no token; take 1 or more, or None for all")


def check_prompts(prompts: Sequence[Sequence[int]], max_new_tokens: int) -> None:
    """Raise ValueError if there is nothing to continue, or `max_new_tokens` is negative."""
    if not prompts or not all(len(prompt) for prompt in prompts):
        raise ValueError(f"a prompt needs at least one token: {END_OF_TEXT} begins a document")
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens={max_new_tokens!r} is below 0; give 0 or more")


def device_of(model: Callable[..., Tensor]) -> torch.device:
    """The device of the model's weights; the CPU for a plain function."""
    weights = model.parameters() if isinstance(model, torch.nn.Module) else iter(())
    return next((weight.device for weight in weights), torch.device("cpu"))


def window_of(model: Callable[..., Tensor]) -> int | None:
    """How many tokens the model can see; None if it does not say."""
    return getattr(getattr(model, "config", None), "context_length", None)
