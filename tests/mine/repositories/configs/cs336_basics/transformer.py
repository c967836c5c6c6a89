import torch
from einops import rearrange
from torch import Tensor, nn

from cs336_basics.config import BlockConfig, TransformerConfig
from cs336_basics.layers import Embedding, FeedForward, Linear, RMSNorm, Rotary, sdpa


class SelfAttention(nn.Module):
    def __init__(self, dim: int, n_heads: int, device, max_len: int = 0, base: float | None = None):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = Linear(dim, dim, device)
        self.k_proj = Linear(dim, dim, device)
        self.v_proj = Linear(dim, dim, device)
        self.output_proj = Linear(dim, dim, device)
        self.rotary = Rotary(dim // n_heads, max_len, base, device) if base else None

    def forward(self, x: Tensor, pos: Tensor | None = None) -> Tensor:
        *_, length, _ = x.shape
        q, k, v = (
            rearrange(p(x), "... t (h d) -> ... h t d", h=self.n_heads)
            for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        if self.rotary is not None:
            pos = torch.arange(length, device=x.device) if pos is None else pos.unsqueeze(-2)
            q = self.rotary(q, pos)
            k = self.rotary(k, pos)
        future = torch.triu(torch.ones(length, length, device=x.device), diagonal=1).bool()
        out = sdpa(q, k, v, ~future)
        return self.output_proj(rearrange(out, "... h t d -> ... t (h d)"))


class TransformerBlock(nn.Module):
    def __init__(self, config: BlockConfig):
        super().__init__()
        d, device = config.d_model, config.device
        self.ln1 = RMSNorm(d, device)
        self.attn = SelfAttention(d, config.n_heads, device, config.max_seq_len, config.rope_theta)
        self.ln2 = RMSNorm(d, device)
        self.ffn = FeedForward(config.d_ff, d, device)

    def forward(self, x: Tensor, pos: Tensor | None = None) -> Tensor:
        h = x + self.attn(self.ln1(x), pos)
        h = h + self.ffn(self.ln2(h))
        return h


class TransformerLM(nn.Module):
    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        self.token_embeddings = Embedding(config.vocab_size, config.d_model, config.device)
        self.layers = nn.ModuleList()
        for _ in range(config.num_layers):
            self.layers.append(TransformerBlock(config.block))
        self.ln_final = RMSNorm(config.d_model, config.device)
        self.lm_head = Linear(config.d_model, config.vocab_size, config.device)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.token_embeddings(tokens)
        for layer in self.layers:
            h = layer(h)
        h = self.ln_final(h)
        return self.lm_head(h)
