import torch
from torch import nn


class RoPE(nn.Module):
    """Rotary positions, with each pair of values as one complex number."""

    def __init__(self, d_k, theta, max_seq_len, *, device=None):
        super().__init__()
        exponents = torch.arange(0, d_k, 2, device=device).float() / d_k
        angles = torch.outer(torch.arange(max_seq_len, device=device), 1.0 / theta**exponents)
        turns = torch.polar(torch.ones_like(angles), angles)
        self.register_buffer("turns", turns, persistent=False)

    def forward(self, x, token_positions):
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
        rotated = torch.view_as_real(pairs * self.turns[token_positions])
        return rotated.flatten(-2).to(x.dtype)
