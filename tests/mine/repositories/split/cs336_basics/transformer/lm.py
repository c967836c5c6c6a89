from torch import nn

from ..layers import Embedding, Linear, RMSNorm
from .block import Block


class LanguageModel(nn.Module):
    def __init__(
        self,
        d_model,
        num_heads,
        d_ff,
        vocab_size,
        context_length,
        num_layers,
        theta=10_000.0,
        device=None,
    ):
        super().__init__()
        self.context_length = context_length
        self.embed = Embedding(vocab_size, d_model, device=device)
        sizes = {"max_seq_len": context_length, "theta": theta, "device": device}
        blocks = [Block(d_model, num_heads, d_ff, **sizes) for _ in range(num_layers)]
        self.blocks = nn.Sequential(*blocks)
        self.norm = RMSNorm(d_model, device=device)
        self.head = Linear(d_model, vocab_size, device=device)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.embed(ids))))
