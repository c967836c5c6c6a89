import torch
from torch import nn


class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model, *, device=None, dtype=None):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(vocab_size, d_model, device=device, dtype=dtype))
        nn.init.trunc_normal_(self.table, std=1.0, a=-3.0, b=3.0)

    def forward(self, ids):
        return self.table[ids]
