"""A GPT-2 in the manner of Karpathy's nanoGPT, to time our training beside it.

It differs from our model in what GPT-2 has: learned positions instead of RoPE, LayerNorm instead of
RMSNorm, a feed-forward layer of two matrices with a GELU between them instead of three with a gate,
and one matrix for embedding and head. As in nanoGPT, nothing has a bias, and queries, keys and
values come from one product.
"""

from dataclasses import replace

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional

from workbook.config import ModelConfig


def nearest_shape(config: ModelConfig) -> ModelConfig:
    """Our config that has this GPT's matrices: for accounting, which counts no more than those.

    Two matrices with d_ff = 4 d have about as many weights as SwiGLU's three with 8/3 d.
    """
    return replace(
        config, ffn="silu", d_ff=4 * config.d_model, position="none", tie_embeddings=True
    )


class GPT(nn.Module):
    """Logits (batch, seq, vocab) of ids (batch, seq); the sizes are those of `config`."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.token_embeddings = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embeddings = nn.Embedding(config.context_length, config.d_model)
        self.layers = nn.ModuleList(
            Block(config.d_model, config.num_heads) for _ in range(config.num_layers)
        )
        self.ln_final = nn.LayerNorm(config.d_model, bias=False)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:  # the gains of norms begin as ones
                deep = name.endswith("output.weight")  # what is added to the residual stream
                nn.init.normal_(weight, std=0.02 / (2 * config.num_layers) ** (0.5 * deep))
        self.token_embeddings.weight = self.lm_head.weight

    def forward(self, token_ids: Tensor) -> Tensor:
        positions = torch.arange(token_ids.shape[-1], device=token_ids.device)
        x = self.token_embeddings(token_ids) + self.position_embeddings(positions)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.ln_final(x))


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a norm and added to what came in."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.ln1, self.ln2 = (nn.LayerNorm(d_model, bias=False) for _ in range(2))
        self.attn = Attention(d_model, num_heads)
        self.ffn = FeedForward(d_model)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))


class Attention(nn.Module):
    """Causal attention by torch's one kernel."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        split = "batch seq (three heads d_head) -> three batch heads seq d_head"
        Q, K, V = rearrange(self.qkv(x), split, three=3, heads=self.num_heads)
        heads = functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
        return self.output(rearrange(heads, "batch heads seq d_head -> batch seq (heads d_head)"))


class FeedForward(nn.Module):
    """W2 GELU(W1 x), four times as wide inside."""

    def __init__(self, d_model: int):
        super().__init__()
        self.up = nn.Linear(d_model, 4 * d_model, bias=False)
        self.output = nn.Linear(4 * d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(functional.gelu(self.up(x)))
