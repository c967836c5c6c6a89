"""Right parts that are made and called as learners' repositories do it, not as the handout does."""

from dataclasses import dataclass

import torch
from einops import rearrange
from torch import nn

from attempts import transformer_right_heads as heads
from attempts.transformer_lists import almost, mistake, right
from attempts.transformer_right import (
    Embedding,
    Linear,
    RMSNorm,
    RotaryPositionalEmbedding,
    SwiGLU,
    drawn,
)
from attempts.transformer_right_functions import attention
from attempts.transformer_wrong_heads import Steps

# Multi-head attention.


@right("multihead_self_attention")
class NoPositions(Steps):
    def forward(self, x):
        return super().forward(x)


@right("multihead_self_attention")
class ByKeyword(Steps):
    def __init__(self, *, num_heads, d_model, max_seq_length=None, rope_theta=None):
        super().__init__(d_model, num_heads, max_seq_length, rope_theta)


@right("multihead_self_attention")
class WithExtras(Steps):
    def __init__(self, d_model, num_heads, d_key, d_value, max_seq_len, theta=None, device=None):
        assert d_key == d_value == d_model // num_heads and max_seq_len
        super().__init__(d_model, num_heads, max_seq_len, theta)


@right("multihead_self_attention")
class HandedRope(Steps):
    """RoPE is made outside, once for all layers."""

    def __init__(self, d_model, num_heads, max_seq_len=None, rope=None, device=None, dtype=None):
        super().__init__(d_model, num_heads)
        self.rope = rope


@right("multihead_self_attention")
class AsksItsRope(HandedRope):
    """Takes from the RoPE that is handed in how long a sequence may be."""

    def __init__(self, d_model, num_heads, rope=None):
        super().__init__(d_model, num_heads, rope=rope)
        self.register_buffer("places", torch.arange(rope.max_seq_len if rope else 16))

    def forward(self, x):
        return super().forward(x, self.places[: x.shape[-2]])


@right("multihead_self_attention")
class RopeOfAllThree(Steps):
    def __init__(self, d_model, num_heads, theta=None, d_k=None, max_sequence_length=None):
        theta = None if d_k is None else theta
        super().__init__(d_model, num_heads, max_sequence_length, theta)


@right("multihead_self_attention")
class EvenHeads(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        assert d_model // num_heads % 2 == 0
        super().__init__(d_model, num_heads, max_seq_len, theta)


@right("multihead_self_attention")
class RotatesBothAtOnce(HandedRope):
    def heads_of(self, x, positions):
        q, k, v = (self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        return *((q, k) if self.rope is None else self.rope(q, k, positions)), v


@dataclass
class HeadsConfig:
    d_model: int
    n_heads: int
    context_length: int = 16
    theta: float = 10_000.0


@right("multihead_self_attention")
class HeadsOfAConfig(Steps):
    def __init__(self, config: HeadsConfig):
        super().__init__(config.d_model, config.n_heads, config.context_length, config.theta)


@right("multihead_self_attention")
class RopeInForward(Steps):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)

    def forward(self, x, rope=None, token_positions=None):
        self.rope = rope
        return super().forward(x, token_positions)


@right("multihead_self_attention")
class PositionsInRows(Steps):
    """Positions are of shape (1, seq) or (batch, seq), as in the course's tests."""

    def turn(self, x, positions):
        return super().turn(
            x, None if positions is None else positions[:, None].expand(*x.shape[:-1])
        )


@right("multihead_self_attention")
class WithACache(Steps):
    def forward(self, x, token_positions=None, kv_cache=None):
        return super().forward(x, token_positions), kv_cache


@right("multihead_self_attention")
class OnlyWithRope(nn.Module):
    """The second of two classes; the matrices of all three roles in one."""

    def __init__(self, d_model, num_heads, theta, max_seq_len):
        super().__init__()
        self.num_heads = num_heads
        self.fc_qkv, self.fc_out = Linear(d_model, 3 * d_model), Linear(d_model, d_model)
        self.rope = RotaryPositionalEmbedding(theta, d_model // num_heads, max_seq_len)

    def forward(self, x, token_positions):
        q, k, v = rearrange(self.fc_qkv(x), "b s (n h d) -> n b h s d", n=3, h=self.num_heads)
        seen = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
        gathered = attention(
            self.rope(q, token_positions), self.rope(k, token_positions), v, mask=seen
        )
        return self.fc_out(rearrange(gathered, "b h s d -> b s (h d)"))


@right("multihead_self_attention")
class Compiled(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        self.q_proj = torch.compile(self.q_proj)
        self.attend = torch.compile(self.attend)


@right("rmsnorm")
class GainInARow(nn.Module):
    """A gain of shape (1, d_model), as some write it to be broadcast."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps, self.g = eps, nn.Parameter(torch.ones(1, d_model))

    def forward(self, x):
        high = x.float()
        return (high * (high.square().mean(-1, keepdim=True) + self.eps).rsqrt() * self.g).to(x)


@mistake("rmsnorm", "`g` has the wrong shape")
class GainOfAnotherSize(RMSNorm):
    def __init__(self, d_model, eps=1e-5):
        super().__init__(d_model, eps)
        del self.weight
        self.g = nn.Parameter(torch.ones(2, d_model))


@almost("positionwise_feedforward", "stored transposed")
class ThreeAlike(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w1, self.w2, self.w3 = (drawn(d_ff, d_model) for _ in range(3))

    def forward(self, x):
        inner = x @ self.w1.T
        return (inner * torch.sigmoid(inner) * (x @ self.w3.T)) @ self.w2


@almost("multihead_self_attention", "stored transposed")
class InputsFirst(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        del self.q_proj, self.k_proj, self.v_proj, self.output_proj
        self.W_Q, self.W_K = drawn(d_model, d_model), drawn(d_model, d_model)
        self.W_V, self.W_O = drawn(d_model, d_model), drawn(d_model, d_model)

    def heads_of(self, x, positions):
        q, k, v = (self.split(x @ w) for w in (self.W_Q, self.W_K, self.W_V))
        return self.turn(q, positions), self.turn(k, positions), v

    def out(self, x):
        return x @ self.W_O


@almost("multihead_self_attention", "the root is missing")
class TooNarrow(heads.Fused):
    """The first weights of the fused matrix have the variance for their standard deviation."""

    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        self.qkv_proj.weight.data = torch.randn(3 * d_model, d_model) / d_model


# Blocks.


class Block(heads.TransformerBlock):
    """A right block of another attention layer."""

    def with_attention(self, layer):
        self.attn = layer
        return self


@right("transformer_block")
class HandedRopeBlock(Block):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, rope=None):
        super().__init__(d_model, num_heads, d_ff)
        self.with_attention(HandedRope(d_model, num_heads, max_seq_len, rope))


@right("transformer_block")
class BlockOfRows(heads.TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, d_ff, max_seq_len, theta)
        self.ln1, self.ln2 = GainInARow(d_model), GainInARow(d_model)


@right("transformer_block")
class RopeInForwardBlock(Block):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.with_attention(RopeInForward(d_model, num_heads))

    def forward(self, x, rope=None, token_positions=None):
        x = x + self.attn(self.ln1(x), rope, token_positions)
        return x + self.ffn(self.ln2(x))


@right("transformer_block")
class RopeAndPositionsBlock(RopeInForwardBlock):
    """No RoPE without positions."""

    def forward(self, x, rope=None, token_positions=None):
        return super().forward(x, None if token_positions is None else rope, token_positions)


@right("transformer_block")
class MisspeltBlock(nn.Module):
    """Names with a slip of the pen, and of its own."""

    def __init__(self, d_model, num_heads, d_ff, max_seq_len, theta):
        super().__init__()
        self.muti_head_att = heads.OwnMatrices(d_model, num_heads, max_seq_len, theta)
        self.swi_glu = SwiGLU(d_model, d_ff)
        self.pre_attn_norm, self.pre_ffn_norm = RMSNorm(d_model), RMSNorm(d_model)

    def forward(self, x):
        x = x + self.muti_head_att(self.pre_attn_norm(x))
        return x + self.swi_glu(self.pre_ffn_norm(x))


# Language models.


@right("transformer_lm")
class ModelOfOtherOrder(heads.TransformerLM):
    def __init__(
        self, d_model, num_heads, d_ff, context_length, vocab_size, num_layers, theta=10_000.0
    ):
        super().__init__(vocab_size, context_length, d_model, num_layers, num_heads, d_ff, theta)


@dataclass(kw_only=True)
class Config:
    vocab_size: int
    max_seq_len: int
    hidden_size: int = 512
    n_layers: int = 4
    n_heads: int = 16
    d_ff: int | None = None
    rope_theta: float = 10_000.0
    eps: float = 1e-5


@right("transformer_lm")
class ModelOfAConfig(heads.TransformerLM):
    def __init__(self, cfg: Config):
        sizes = (cfg.hidden_size, cfg.n_layers, cfg.n_heads, cfg.d_ff)
        super().__init__(cfg.vocab_size, cfg.max_seq_len, *sizes, cfg.rope_theta)


class Fields:
    """A class of settings like pydantic's, which takes them by name."""

    model_fields = dict.fromkeys(
        ["vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff", "rope_theta"]
    )

    def __init__(self, **fields):
        vars(self).update({name: fields[name] for name in self.model_fields})


@right("transformer_lm")
class ModelOfFields(heads.TransformerLM):
    def __init__(self, config: Fields):
        super().__init__(**vars(config))


@right("transformer_lm")
class RopeInForwardModel(nn.Module):
    def __init__(self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff):
        super().__init__()
        self.embed = Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            RopeInForwardBlock(d_model, num_heads, d_ff) for _ in range(num_layers)
        )
        self.final_norm, self.output_embed = RMSNorm(d_model), Linear(d_model, vocab_size)

    def forward(self, x, rope, token_positions=None):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x, rope, token_positions)
        return self.output_embed(self.final_norm(x))


@right("transformer_lm")
class DrawnByTheModel(heads.TransformerLM):
    """Layers that leave their weights empty; the model draws them all."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        for parameter in self.parameters():
            parameter.data = torch.empty_like(parameter)
        self.apply(self.draw)

    def draw(self, layer):
        if isinstance(layer, Linear):
            layer.weight.data = drawn(*layer.weight.shape).detach()
        elif isinstance(layer, Embedding):
            nn.init.trunc_normal_(layer.weight, std=1, a=-3, b=3)
        elif isinstance(layer, RMSNorm):
            nn.init.ones_(layer.weight)


@right("transformer_lm")
class ModelOfRows(heads.TransformerLM):
    def __init__(self, vocab, length, d_model, layers, num_heads, d_ff, theta):
        super().__init__(vocab, length, d_model, layers, num_heads, d_ff, theta)
        self.ln_final = GainInARow(d_model)
        self.layers = nn.ModuleList(
            BlockOfRows(d_model, num_heads, d_ff, length, theta) for _ in range(layers)
        )


@mistake("transformer_lm", "the gain `ln_final.g` does not start at 1")
class DrawnGainInARow(ModelOfRows):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        nn.init.normal_(self.ln_final.g)


@mistake("transformer_lm", "the gain `ln_final.weight` does not start at 1")
class DrawnGain(heads.TransformerLM):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        nn.init.normal_(self.ln_final.weight)
