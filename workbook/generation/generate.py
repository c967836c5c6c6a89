"""Text from a language model: a prompt goes in, one new id comes out, and is put behind the prompt.

    logits -> / temperature -> softmax -> the k likeliest -> the likeliest with p together -> draw

`decode` computes the whole sequence again for every id. `generate` keeps the keys and values of
what it has seen, for several prompts side by side, and gives the same ids sooner. A model sees the
last `context_length` ids. As long as no more are needed the kept ones serve; beyond that the
window slides, every position changes, and each id costs a whole window, cache or no cache.
"""

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from workbook.corpora.corpora import END_OF_TEXT
from workbook.generation.fast_step import OneStep
from workbook.tokenization.tokenizer import Tokenizer
from workbook.transformer.model import TransformerLM
from workbook.transformer.nn import float_type

FIRST_LOOK = 64  # ids that top-p sorts at first: most often they are enough
Number = int | float  # a whole number too, which a checker of types does not take for a float


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
    """The new ids, up to `max_new_tokens` of them or to the first `end_id`, which is left out.

    `model` is anything that makes logits (1, seq, vocab) of ids (1, seq).
    """
    check_prompts([prompt_ids], max_new_tokens)
    device, window = device_of(model), window_of(model)
    ids = list(prompt_ids)
    for _ in range(max_new_tokens):
        seen = torch.tensor([ids[-window:] if window else ids], device=device)
        logits = model(seen)[:, -1]
        new_id = draw(logits, temperature, top_p, top_k, generator).item()
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
    """The new ids for each of several prompts, which may differ in length."""
    written = [[] for _ in prompts]
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
    """(number of the prompt, new id), one by one, as they are drawn.

    All rows begin at position 0, and the shortest prompt is the first to be continued. A longer
    one goes on with its own ids until they end:

        position   0  1  2  3  4  5
        row 0      p  p  p  p  new new       p: of the prompt, all known
        row 1      p  p  new new new new
                         ^ the first step draws here; row 0 keeps its p
    """
    check_prompts(prompts, max_new_tokens)
    lengths = [len(prompt) for prompt in prompts]
    device, window = device_of(model), model.config.context_length
    ids = torch.zeros(len(prompts), max(lengths) + max_new_tokens, dtype=torch.long, device=device)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)] = torch.tensor(prompt, device=device)
    step, caches, kept = OneStep(model), model.new_caches(), 0
    going = set(range(len(prompts))) if max_new_tokens else set()
    at = min(lengths)  # the position that is filled next
    while going:
        if at <= window:
            forward = step if at - kept == 1 else model
            logits = forward(ids[:, kept:at], caches=caches)[:, -1]
            kept = at
        else:
            logits = model(ids[:, at - window : at])[:, -1]
        drawn = draw(logits, temperature, top_p, top_k, generator)
        for row, new_id in enumerate(drawn.tolist()):
            if row not in going or at < lengths[row]:
                continue
            if new_id == end_id:
                going.discard(row)
                continue
            ids[row, at] = new_id
            yield row, new_id
            if at + 1 == lengths[row] + max_new_tokens:
                going.discard(row)
        at += 1


def write(
    model: TransformerLM,
    tokenizer: Tokenizer,
    prompt: str,
    max_new_tokens: int,
    temperature: Number = 1.0,
    top_p: Number = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> Iterator[str]:
    """The continuation of a text, piece by piece, up to `<|endoftext|>`.

    An empty prompt begins a new document.
    """
    end_id = end_of_text(tokenizer)
    prompt_ids = tokenizer.encode(prompt) or ([] if end_id is None else [end_id])
    drawn = stream(
        model, [prompt_ids], max_new_tokens, temperature, top_p, end_id, top_k, generator
    )
    return pieces(tokenizer, (new_id for _, new_id in drawn))


def pieces(tokenizer: Tokenizer, ids: Iterable[int]) -> Iterator[str]:
    """The text of ids as they come, no character before its last byte: joined, it is `decode`'s.

    A token may end in the middle of a character. Its first bytes wait for the next token.
    """
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
    """The id of `<|endoftext|>`, where the tokenizer has it as a special token."""
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
    """An id for each row, drawn from `candidates`; at temperature 0 the likeliest."""
    if temperature == 0:
        return logits.argmax(-1)
    shares, ids = candidates(logits, temperature, top_p, top_k)
    # The shares lie end to end on a line, and an even draw hits a point of it. It takes one number
    # a row, and never hits a share of 0, at the line's end either: `rand` is always below 1.
    ends = shares.cumsum(-1)
    points = torch.rand(len(shares), 1, generator=generator, device=shares.device) * ends[:, -1:]
    hit = torch.searchsorted(ends, points.to(ends.dtype), right=True)
    return ids.gather(-1, hit).squeeze(-1)


def candidates(
    logits: Float[Tensor, "*rows vocab"],
    temperature: Number = 1.0,
    top_p: Number = 1.0,
    top_k: int | None = None,
) -> tuple[Float[Tensor, "*rows few"], Int[Tensor, "*rows few"]]:
    """The probabilities of the ids that may be drawn, and these ids.

    `temperature` divides the logits: below 1 the likely become likelier. `top_k` keeps the k
    likeliest ids. `top_p` keeps the likeliest until they have p together: the fewest that have.
    Rows that need fewer ids than others are filled up with ids of probability 0.
    Source of top-p: Holtzman et al. 2020, sec. 3.1 (nucleus sampling).
    """
    check_settings(temperature, top_p, top_k)
    high = logits.to(float_type(logits))
    # The largest is taken away first, so that no division by a small temperature overflows.
    shares = torch.softmax((high - high.amax(-1, keepdim=True)) / temperature, -1)
    vocab = logits.shape[-1]
    ids = torch.arange(vocab, device=logits.device).expand_as(shares)
    if top_k is not None and top_k < vocab:
        shares, ids = shares.topk(top_k)
        shares = shares / shares.sum(-1, keepdim=True)
    if top_p < 1:
        shares, kept = nucleus(shares, top_p)
        ids = ids.gather(-1, kept)
    return shares, ids


def nucleus(
    shares: Float[Tensor, "*rows vocab"], top_p: Number
) -> tuple[Float[Tensor, "*rows few"], Int[Tensor, "*rows few"]]:
    """The fewest probabilities that have `top_p` together, made to add up to 1, and their places.

    To sort a whole vocabulary takes longer than the model does. So the likeliest 64 are looked at
    first, and more of them only where these are not enough.
    """
    size = FIRST_LOOK
    while True:
        likeliest, places = shares.topk(min(size, shares.shape[-1]))
        together = likeliest.cumsum(-1)
        if size >= shares.shape[-1] or bool((together[..., -1] >= top_p).all()):
            break
        size *= 8
    # An id stays if those before it do not have p yet: the one that reaches p is the last to stay.
    kept = torch.where(together - likeliest < top_p, likeliest, 0)
    return kept / kept.sum(-1, keepdim=True), places


def check_settings(temperature: Number, top_p: Number, top_k: int | None) -> None:
    """Raise ValueError for settings that leave nothing to draw from, or mean nothing."""
    if not temperature > 0:
        raise ValueError(
            f"temperature={temperature!r} is not above 0; take 0 itself for the likeliest id"
        )
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p!r} is no share above 0 and up to 1; 1 keeps every id")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k={top_k!r} keeps no id; take 1 or more, or None for all")


def check_prompts(prompts: Sequence[Sequence[int]], max_new_tokens: int) -> None:
    """Raise ValueError where there is nothing to continue, or by how much is no number."""
    if not prompts or not all(len(prompt) for prompt in prompts):
        raise ValueError(
            f"a prompt needs one id at least; to begin a text, give the id of {END_OF_TEXT}"
        )
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens={max_new_tokens!r} is below 0")


def device_of(model: Callable) -> torch.device:
    """Where the model's weights are; the CPU for a plain function."""
    weights = model.parameters() if isinstance(model, torch.nn.Module) else iter(())
    return next((weight.device for weight in weights), torch.device("cpu"))


def window_of(model: Callable) -> int | None:
    """How many ids the model can see; None where it does not say."""
    return getattr(getattr(model, "config", None), "context_length", None)
