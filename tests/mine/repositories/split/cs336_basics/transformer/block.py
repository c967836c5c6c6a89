from torch import nn

from ..attention import CausalMultiHeadAttention
from ..layers import RMSNorm, SwiGLU


class Block(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, *, max_seq_len, theta, device=None):
        super().__init__()
        self.norm1 = RMSNorm(d_model, device=device)
        self.attn = CausalMultiHeadAttention(
            d_model, num_heads, max_seq_len=max_seq_len, theta=theta, device=device
        )
        self.norm2 = RMSNorm(d_model, device=device)
        self.ffn = SwiGLU(d_model, d_ff, device=device)

    def forward(self, x, token_positions=None):
        attended = x + self.attn(self.norm1(x), token_positions)
        return attended + self.ffn(self.norm2(attended))
