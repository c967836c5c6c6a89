"""Right parts that are made and called as learners' repositories do it, not as the handout does."""

import torch
from einops import rearrange
from torch import nn

from attempts import transformer_right_heads as heads
from attempts.transformer_lists import almost, right
from attempts.transformer_right import Linear, RotaryPositionalEmbedding, drawn
from attempts.transformer_right_functions import attention
from attempts.transformer_wrong_heads import Steps

# Multi-head attention.


@right("multihead_self_attention")
class NoPositions(Steps):
    def forward(self, x):
        return super().forward(x)


@right("multihead_self_attention")
class OtherOrder(Steps):
    def __init__(self, d_model, num_heads, theta=None, max_seq_len=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)


@right("multihead_self_attention")
class ByKeyword(Steps):
    def __init__(self, *, num_heads, d_model, max_seq_length=None, rope_theta=None):
        super().__init__(d_model, num_heads, max_seq_length, rope_theta)


@right("multihead_self_attention")
class WithASwitch(Steps):
    def __init__(self, d_model, num_heads, use_rope=True, max_seq_len=16, theta=10_000.0):
        super().__init__(d_model, num_heads, max_seq_len, theta if use_rope else None)


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
class HandedEncoder(Steps):
    def __init__(self, d_model, num_heads, pos_encoder=None):
        super().__init__(d_model, num_heads)
        self.pos_encoder = pos_encoder

    def turn(self, x, positions):
        return x if self.pos_encoder is None else self.pos_encoder(x, positions)

    def forward(self, x):
        return super().forward(x, torch.arange(x.shape[-2]))


@right("multihead_self_attention")
class RopeInForward(Steps):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)

    def forward(self, x, rope=None, token_positions=None):
        self.rope = rope
        return super().forward(x, token_positions)


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


@almost("multihead_self_attention", "√ is missing")
class TooNarrow(heads.Fused):
    """The first weights of the fused matrix have the variance for their standard deviation."""

    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        self.qkv_proj.weight.data = torch.randn(3 * d_model, d_model) / d_model
