"""Right modules of the model, as learners write them."""

import math

import torch
from einops import einsum
from torch import nn

from attempts.transformer_lists import mistake, right


def drawn(d_out, d_in, **kinds):
    std = math.sqrt(2 / (d_in + d_out))
    return nn.Parameter(
        nn.init.trunc_normal_(torch.empty(d_out, d_in, **kinds), 0.0, std, -3 * std, 3 * std)
    )


@right("linear")
class Linear(nn.Module):
    def __init__(self, in_features, out_features, device=None, dtype=None):
        super().__init__()
        self.weight = drawn(out_features, in_features, device=device, dtype=dtype)

    def forward(self, x):
        return einsum(x, self.weight, "... d_in, d_out d_in -> ... d_out")


@right("linear")
class LinearOutFirst(Linear):
    def __init__(self, dim_out: int, dim_in: int, *, use_bias: bool = False, device="cpu"):
        super().__init__(dim_in, dim_out, device)


@right("embedding")
class Embedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, device=None, dtype=None):
        super().__init__()
        weight = torch.empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
        self.weight = nn.Parameter(nn.init.trunc_normal_(weight, std=1, a=-3, b=3))

    def forward(self, token_ids):
        return self.weight[token_ids]


@right("rmsnorm")
class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5, device=None, dtype=None):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))

    def forward(self, x):
        in_dtype = x.dtype
        x = x.to(torch.float32)
        rms = torch.sqrt(x.pow(2).sum(-1, keepdim=True) / x.shape[-1] + self.eps)
        return (x / rms * self.weight).to(in_dtype)


@right("rmsnorm")
class RMSNormAsInLlama(RMSNorm):
    def __init__(self, d_model, eps=1e-5):
        super().__init__(d_model, eps)
        self.d_model = d_model

    def forward(self, x):
        high = x.float()
        return self.weight * (high * torch.rsqrt((high**2).mean(-1, keepdim=True) + self.eps)).to(
            x.dtype
        )


def silu(x):
    return x * torch.sigmoid(x)


@right("positionwise_feedforward")
class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff, device=None, dtype=None):
        super().__init__()
        self.w1 = Linear(d_model, d_ff, device, dtype)
        self.w2 = Linear(d_ff, d_model, device, dtype)
        self.w3 = Linear(d_model, d_ff, device, dtype)

    def forward(self, x):
        return self.w2(silu(self.w1(x)) * self.w3(x))


@right("positionwise_feedforward")
class SwiGLUFused(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w13, self.w2 = Linear(d_model, 2 * d_ff), Linear(d_ff, d_model)

    def forward(self, x):
        gate, up = self.w13(x).chunk(2, -1)
        return self.w2(silu(gate) * up)


@mistake("positionwise_feedforward", "not understood: `there.weight`, `beside.weight`")
class SwiGLUOfStrangeNames(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.there, self.beside = Linear(d_model, d_ff), Linear(d_model, d_ff)
        self.back = Linear(d_ff, d_model)

    def forward(self, x):
        return self.back(silu(self.beside(x)) * self.there(x))


@right("rope")
class RotaryPositionalEmbedding(nn.Module):
    def __init__(self, theta, d_k, max_seq_len, device=None):
        super().__init__()
        frequencies = 1.0 / theta ** (torch.arange(0, d_k, 2, device=device).float() / d_k)
        angles = torch.outer(torch.arange(max_seq_len, device=device).float(), frequencies)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x, token_positions):
        cos, sin = self.cos[token_positions], self.sin[token_positions]
        out = torch.empty_like(x)
        out[..., ::2] = x[..., ::2] * cos - x[..., 1::2] * sin
        out[..., 1::2] = x[..., ::2] * sin + x[..., 1::2] * cos
        return out


@right("rope")
class RopeOfOtherOrder(RotaryPositionalEmbedding):
    def __init__(self, d_model: int, base: float, context_length: int, device=None):
        super().__init__(base, d_model, context_length, device)

    def forward(self, token_positions, x):
        return super().forward(x, token_positions)


@right("rope")
class RopeOfComplexNumbers(nn.Module):
    def __init__(self, theta, d_k, max_seq_len, device=None, dtype=None):
        super().__init__()
        frequencies = theta ** (-torch.arange(0, d_k, 2) / d_k)
        angles = torch.arange(max_seq_len)[:, None] * frequencies
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x, token_positions=None):
        if token_positions is None:
            token_positions = torch.arange(x.shape[-2])
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * self.turns[token_positions]).flatten(-2).type_as(x)
