import math

import torch


def softmax(x, dim=-1):
    shifted = (x - x.amax(dim=dim, keepdim=True)).exp()
    return shifted / shifted.sum(dim=dim, keepdim=True)


def attention(query, key, value, mask=None):
    scale = 1 / math.sqrt(query.size(-1))
    scores = query @ key.transpose(-2, -1) * scale
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    return softmax(scores) @ value
