import torch

from ..attention import softmax


def generate(model, tokenizer, prompt, max_tokens=256, temperature=1.0, top_p=1.0):
    """Complete the prompt; the text ends at <|endoftext|> or after max_tokens."""
    (end,) = tokenizer.encode("<|endoftext|>")
    ids = tokenizer.encode(prompt)
    start = len(ids)
    window = getattr(model, "context_length", None)
    while len(ids) - start < max_tokens:
        seen = ids if window is None else ids[-window:]
        with torch.inference_mode():
            logits = model(torch.tensor(seen).unsqueeze(0))[0, -1]
        token = sample(logits, temperature, top_p)
        if token == end:
            break
        ids.append(token)
    return tokenizer.decode(ids[start:])


def sample(logits, temperature, top_p):
    if temperature == 0:
        return int(logits.argmax())
    probs, order = softmax(logits / temperature).sort(descending=True)
    kept = int((probs.cumsum(0) < top_p).sum()) + 1
    probs = probs[:kept] / probs[:kept].sum()
    return int(order[torch.multinomial(probs, 1)])
