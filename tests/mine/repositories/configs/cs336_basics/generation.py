import torch

from cs336_basics.layers import softmax


@torch.no_grad()
def generate(model, input_ids, max_new_tokens, temperature=1.0, top_p=None, eos_token_id=None):
    """Give back a (1, seq) tensor: the ids that came in, and the new ones."""
    out = torch.as_tensor(input_ids).view(1, -1)
    config = getattr(model, "config", None)
    for _ in range(max_new_tokens):
        seen = out[:, -config.context_length :] if config else out
        logits = model(seen)[0, -1]
        if temperature == 0:
            token = logits.argmax()
        else:
            probs = softmax(logits / temperature, -1)
            token = pick(probs if top_p is None else nucleus(probs, top_p))
        out = torch.cat([out, token.view(1, 1)], dim=1)
        if eos_token_id is not None and token == eos_token_id:
            break
    return out


def nucleus(probs, top_p):
    values, indices = probs.sort(descending=True)
    outside = values.cumsum(-1) - values >= top_p
    values = values.masked_fill(outside, 0.0)
    return torch.zeros_like(probs).scatter(-1, indices, values / values.sum())


def pick(probs):
    return torch.multinomial(probs, num_samples=1)
