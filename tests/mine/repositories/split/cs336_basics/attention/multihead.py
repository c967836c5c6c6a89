import torch
from torch import nn

from ..layers import Linear, RoPE
from .functional import attention


class CausalMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, *, max_seq_len=None, theta=None, device=None):
        super().__init__()
        self.num_heads = num_heads
        self.q = Linear(d_model, d_model, device=device)
        self.k = Linear(d_model, d_model, device=device)
        self.v = Linear(d_model, d_model, device=device)
        self.o = Linear(d_model, d_model, device=device)
        self.rope = None
        if theta is not None:
            self.rope = RoPE(d_model // num_heads, theta, max_seq_len, device=device)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)

    def forward(self, x, token_positions=None):
        n = x.size(-2)
        q, k, v = (self.split(projection(x)) for projection in (self.q, self.k, self.v))
        if self.rope is not None:
            if token_positions is None:
                token_positions = torch.arange(n, device=x.device)
            positions = token_positions[..., None, :]
            q, k = self.rope(q, positions), self.rope(k, positions)
        place = torch.arange(n, device=x.device)
        heads = attention(q, k, v, mask=place[:, None] >= place[None, :])
        return self.o(heads.transpose(-3, -2).flatten(-2))
