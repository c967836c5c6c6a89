"""A right and a wrong attempt for each check of notebook 03."""

import math

import torch

from workbook.transformer import model, nn


class Untransposed(nn.Linear):
    """Multiplies by the weight as it is stored."""

    def forward(self, x):
        return x @ self.weight


class NextRow(nn.Embedding):
    """Counts the ids from 1."""

    def forward(self, token_ids):
        return super().forward((token_ids + 1) % len(self.weight))


class EpsOutside(torch.nn.Module):
    """Puts eps outside the root."""

    def __init__(self, d_model, eps=1e-5, device=None, dtype=None):
        super().__init__()
        self.eps, self.weight = eps, torch.nn.Parameter(torch.ones(d_model, device=device))

    def forward(self, x):
        return x / (x.square().mean(-1, keepdim=True).sqrt() + self.eps) * self.weight


class OneOff(nn.RotaryPositionalEmbedding):
    """Turns as if positions began at 1."""

    def __init__(self, theta, d_k, max_seq_len, device=None):
        super().__init__(float(theta), d_k, max_seq_len + 1, device)

    def forward(self, x, token_positions):
        return super().forward(x, token_positions + 1)


class Positionless(model.MultiHeadSelfAttention):
    """Forgets RoPE."""

    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads)


class PostNorm(model.TransformerBlock):
    """Normalises after the addition."""

    def __init__(self, *sizes, **choices):
        super().__init__(*sizes, **choices, norm="post")


class Probabilities(model.TransformerLM):
    """Gives probabilities where logits are asked for."""

    def forward(self, token_ids):
        return super().forward(token_ids).softmax(-1)


def unscaled(Q, K, V, mask=None):
    """Forgets to divide by the root of d_k."""
    return nn.scaled_dot_product_attention(Q * math.sqrt(Q.shape[-1]), K, V, mask)


ATTEMPTS = {
    "linear": (nn.Linear, Untransposed),
    "embedding": (nn.Embedding, NextRow),
    "rmsnorm": (nn.RMSNorm, EpsOutside),
    "positionwise_feedforward": (nn.SwiGLU, nn.SiLUFeedForward),
    "rope": (nn.RotaryPositionalEmbedding, OneOff),
    "softmax": (nn.softmax, lambda x, dim: nn.softmax(x, 0)),
    "scaled_dot_product_attention": (nn.scaled_dot_product_attention, unscaled),
    "multihead_self_attention": (model.MultiHeadSelfAttention, Positionless),
    "transformer_block": (model.TransformerBlock, PostNorm),
    "transformer_lm": (model.TransformerLM, Probabilities),
    "cross_entropy": (
        nn.cross_entropy,
        lambda logits, targets: nn.cross_entropy(nn.softmax(logits, -1), targets),
    ),
}
