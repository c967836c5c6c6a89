import torch
from torch import nn


class Linear(nn.Module):
    """Linear transformation without a bias."""

    def __init__(self, in_features, out_features, *, device=None, dtype=None):
        super().__init__()
        self.W = nn.Parameter(torch.zeros(out_features, in_features, device=device, dtype=dtype))
        std = (2 / (in_features + out_features)) ** 0.5
        nn.init.trunc_normal_(self.W, std=std, a=-3 * std, b=3 * std)

    def forward(self, x):
        return x @ self.W.T
