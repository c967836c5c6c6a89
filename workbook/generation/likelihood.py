"""Probabilities of a text's tokens, given those before them, and of all possible next tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor

from workbook.corpora.corpora import END_OF_TEXT
from workbook.generation.sampling import candidates, device_of
from workbook.tokenization.tokenizer import Tokenizer
from workbook.transformer.model import TransformerLM

BATCH = 64  # windows that go through the model together


@torch.inference_mode()
def likelihoods(model: TransformerLM, ids: Sequence[int]) -> list[float]:
    """The probability of each token but the first, given at most `context_length` before it."""
    window = model.config.context_length
    device = device_of(model)
    row = torch.tensor(list(ids), device=device)
    parts = [model(row[:-1][:window])]  # one forward pass predicts after each token of a window
    if len(row) - 1 > window:
        # Each later token sees a window of its own, the `window` tokens before it.
        windows = row[:-1].unfold(0, window, 1)[1:]
        parts += [model(batch)[:, -1] for batch in windows.split(BATCH)]
    probabilities = torch.cat(parts).float().softmax(-1)
    return probabilities.gather(-1, row[1:, None])[:, 0].tolist()


@torch.inference_mode()
def next_logits(model: TransformerLM, ids: Sequence[int]) -> Tensor:
    """The logits (1, vocab) of the token that follows the ids."""
    seen = torch.tensor([list(ids)[-model.config.context_length :]], device=device_of(model))
    return model(seen)[:, -1]


def next_tokens(
    model: TransformerLM,
    tokenizer: Tokenizer,
    text: str,
    temperature: float = 1.0,
    top_p: float = 1.0,
) -> dict[bytes, float]:
    """The tokens that may follow a text, with their probabilities, the likeliest first.

    An empty text stands for the beginning of a document; the settings are those of `decode`.
    """
    ids = tokenizer.encode(text) or tokenizer.encode(END_OF_TEXT)
    logits = next_logits(model, ids)
    if temperature == 0:  # nothing is drawn: the likeliest token is certain
        return {tokenizer.vocab[int(logits.argmax())]: 1.0}
    probabilities, kept = candidates(logits, temperature, top_p)
    probabilities, order = probabilities[0].sort(descending=True)
    pairs = zip(kept[0][order].tolist(), probabilities.tolist(), strict=True)
    return {tokenizer.vocab[token_id]: p for token_id, p in pairs if p > 0}  # padding has p = 0
