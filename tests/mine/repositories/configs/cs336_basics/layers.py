from math import sqrt

import torch
from torch import Tensor, nn


class Linear(nn.Module):
    def __init__(self, d_in: int, d_out: int, device, dtype=torch.float32):
        super().__init__()
        std = sqrt(2.0 / (d_in + d_out))
        w = torch.empty((d_out, d_in), device=device, dtype=dtype)
        self.weight = nn.Parameter(nn.init.trunc_normal_(w, 0.0, std, -3 * std, 3 * std))

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("...i,oi->...o", x, self.weight)


class Embedding(nn.Module):
    def __init__(self, n_vocab: int, dim: int, device, dtype=torch.float32):
        super().__init__()
        w = torch.empty((n_vocab, dim), device=device, dtype=dtype)
        self.weight = nn.Parameter(nn.init.trunc_normal_(w, 0.0, 1.0, -3.0, 3.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight[x.long()]


class RMSNorm(nn.Module):
    def __init__(self, dim: int, device, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim, device=device))

    def forward(self, x: Tensor) -> Tensor:
        result = x.to(torch.float32)
        variance = torch.mean(result**2, dim=-1, keepdim=True)
        result = result / (variance + self.eps).sqrt()
        return (self.weight * result).to(x.dtype)


class FeedForward(nn.Module):
    def __init__(self, hidden: int, dim: int, device):
        super().__init__()
        self.w1 = Linear(dim, hidden, device)
        self.w3 = Linear(dim, hidden, device)
        self.w2 = Linear(hidden, dim, device)

    @staticmethod
    def silu(x: Tensor) -> Tensor:
        return x / (1 + torch.exp(-x))

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(self.silu(self.w1(x)) * self.w3(x))


class Rotary(nn.Module):
    def __init__(self, dim: int, max_len: int, base: float, device):
        super().__init__()
        inv_freq = base ** (-2 * torch.arange(dim // 2, device=device) / dim)
        angle = torch.arange(max_len, device=device)[:, None] * inv_freq[None, :]
        # Each angle twice, as it turns both values of a pair.
        self.register_buffer("cos", angle.cos().repeat_interleave(2, -1), persistent=False)
        self.register_buffer("sin", angle.sin().repeat_interleave(2, -1), persistent=False)

    def forward(self, x: Tensor, pos: Tensor) -> Tensor:
        swapped = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).reshape(x.shape)
        return (x * self.cos[pos] + swapped * self.sin[pos]).to(x.dtype)


def softmax(v: Tensor, i: int) -> Tensor:
    v = torch.exp(v - v.max(i, keepdim=True)[0])
    return v / v.sum(i, keepdim=True)


def sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    s = torch.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        s = s.masked_fill(mask.logical_not(), -float("inf"))
    return torch.einsum("...qk,...kd->...qd", softmax(s, -1), v)
