from dataclasses import dataclass

import torch
from torch import Tensor, nn


class Proj(nn.Module):
    def __init__(self, n_in: int, n_out: int, device=None, dtype=None):
        super().__init__()
        std = (2 / (n_in + n_out)) ** 0.5
        self.kernel = nn.Parameter(torch.empty(n_out, n_in, device=device, dtype=dtype))
        torch.nn.init.trunc_normal_(self.kernel, mean=0.0, std=std, a=-3 * std, b=3 * std)

    def forward(self, x: Tensor) -> Tensor:
        return torch.matmul(x, self.kernel.mT)


class TokenTable(nn.Module):
    def __init__(self, num_embeddings: int, embedding_dim: int, device=None, dtype=None):
        super().__init__()
        rows = torch.empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
        torch.nn.init.trunc_normal_(rows, std=1.0, a=-3.0, b=3.0)
        self.embeddings = nn.Parameter(rows)

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.embeddings[token_ids, :]


class Norm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5, device=None, dtype=None):
        super().__init__()
        self.eps = eps
        self.g = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        dtype = x.dtype
        x = x.to(torch.float32)
        rms = x.square().mean(dim=-1, keepdim=True).add(self.eps).sqrt()
        return x.div(rms).mul(self.g).to(dtype)


class GatedMLP(nn.Module):
    def __init__(self, d_model: int, d_ff: int, device=None, dtype=None):
        super().__init__()
        self.gate = Proj(d_model, d_ff, device, dtype)
        self.up = Proj(d_model, d_ff, device, dtype)
        self.down = Proj(d_ff, d_model, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(swish(self.gate(x)) * self.up(x))


def swish(x: Tensor) -> Tensor:
    return torch.sigmoid(x) * x


class RotaryEncoding(nn.Module):
    """One for all layers, which are handed it."""

    def __init__(self, theta: float, d_k: int, max_seq_len: int, device=None):
        super().__init__()
        k = torch.arange(d_k // 2, dtype=torch.float32, device=device)
        i = torch.arange(max_seq_len, dtype=torch.float32, device=device)
        angle = i.unsqueeze(1) * theta ** (-2 * k / d_k)
        rotation = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=-1)
        self.register_buffer("rotation", rotation.unflatten(-1, (2, 2)), persistent=False)

    def forward(self, x: Tensor, token_positions: Tensor) -> Tensor:
        pairs = x.unflatten(-1, (-1, 2)).unsqueeze(-1)
        return (self.rotation[token_positions] @ pairs).flatten(-3)


def stable_softmax(x: Tensor, dim: int) -> Tensor:
    e = torch.exp(x - torch.amax(x, dim, keepdim=True))
    return e / torch.sum(e, dim, keepdim=True)


def attend(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = Q.matmul(K.mT).div(Q.shape[-1] ** 0.5)
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    return stable_softmax(scores, -1).matmul(V)


class Attention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, rope: nn.Module | None = None, device=None):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = Proj(d_model, 3 * d_model, device)
        bound = (1 / d_model) ** 0.5  # as three matrices of their own, not as one large
        torch.nn.init.trunc_normal_(self.qkv.kernel, std=bound, a=-3 * bound, b=3 * bound)
        self.out = Proj(d_model, d_model, device)
        self.rope = rope

    def forward(self, x: Tensor, token_positions: Tensor | None = None) -> Tensor:
        *batch, seq, d_model = x.shape
        split = self.qkv(x).view(*batch, seq, 3, self.num_heads, d_model // self.num_heads)
        q, k, v = split.transpose(-4, -2).unbind(-3)
        if self.rope is not None:
            if token_positions is None:
                token_positions = torch.arange(seq, device=x.device)
            q = self.rope(q, token_positions.unsqueeze(-2))
            k = self.rope(k, token_positions.unsqueeze(-2))
        mask = torch.ones(seq, seq, dtype=torch.bool, device=x.device).tril()
        heads = attend(q, k, v, mask)
        return self.out(heads.transpose(-3, -2).reshape(*batch, seq, d_model))


class Layer(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, rope=None, device=None):
        super().__init__()
        self.pre_attention = Norm(d_model, device=device)
        self.attention = Attention(d_model, num_heads, rope, device)
        self.pre_mlp = Norm(d_model, device=device)
        self.mlp = GatedMLP(d_model, d_ff, device)

    def forward(self, x: Tensor, token_positions: Tensor | None = None) -> Tensor:
        x = x + self.attention(self.pre_attention(x), token_positions)
        x = x + self.mlp(self.pre_mlp(x))
        return x


@dataclass
class Settings:
    n_vocab: int
    n_ctx: int
    n_layers: int
    d_model: int
    n_heads: int
    d_ff: int
    theta: float = 10000.0


class MyLM(nn.Module):
    def __init__(self, config: Settings):
        super().__init__()
        self.n_ctx = config.n_ctx
        d_model = config.d_model
        self.tok_emb = TokenTable(config.n_vocab, d_model)
        rope = RotaryEncoding(config.theta, d_model // config.n_heads, config.n_ctx)
        self.blocks = nn.ModuleList(
            [Layer(d_model, config.n_heads, config.d_ff, rope) for _ in range(config.n_layers)]
        )
        self.final_norm = Norm(d_model)
        self.unembed = Proj(d_model, config.n_vocab)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.tok_emb(idx)
        for block in self.blocks:
            x = block(x)
        return self.unembed(self.final_norm(x))


@torch.no_grad()
def decode(lm, prompt_tokens, max_new=100, temp=1.0, nucleus=0.9, eos=None):
    """Returns the prompt and what follows it, in one list."""
    idx = torch.tensor([prompt_tokens])
    n_ctx = getattr(lm, "n_ctx", None)
    for _ in range(max_new):
        last = lm(idx[:, -n_ctx:] if n_ctx else idx)[:, -1]
        probs = stable_softmax(last / max(temp, 1e-6), -1)
        ranked, order = probs.sort(dim=-1, descending=True)
        ranked[ranked.cumsum(-1) - ranked >= nucleus] = 0
        chosen = order.gather(-1, torch.multinomial(ranked, 1))  # multinomial rescales
        if chosen.item() == eos:
            break
        idx = torch.cat((idx, chosen), dim=-1)
    return idx[0].tolist()
