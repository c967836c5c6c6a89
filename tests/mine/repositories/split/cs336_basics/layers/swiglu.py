import torch
from torch import nn

from .linear import Linear


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff, *, device=None, dtype=None):
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.w1 = Linear(d_model, d_ff, **factory)
        self.w2 = Linear(d_ff, d_model, **factory)
        self.w3 = Linear(d_model, d_ff, **factory)

    def forward(self, x):
        gate = self.w1(x)
        gate = gate * gate.sigmoid()
        return self.w2(gate * self.w3(x))


def silu(x):
    return x * torch.sigmoid(x)
