import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5, *, device=None, dtype=None):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))
        self.eps = eps

    def forward(self, x):
        as_float = x.float()
        inverse = torch.rsqrt((as_float * as_float).mean(-1, keepdim=True) + self.eps)
        return (as_float * inverse * self.gain).to(x.dtype)
