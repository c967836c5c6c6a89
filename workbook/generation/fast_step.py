"""One more token: the forward pass of a model with caches, in fewer and larger operations.

    q = Wq x    k = Wk x    v = Wv x    becomes    (q, k, v) = x W,  W = (Wqᵀ Wkᵀ Wvᵀ)

For a single position a small matmul costs little more than the call that starts it. So matrices
with the same input are concatenated, which makes a copy of them, and RMSNorm and RoPE are computed
in as few calls as possible.
"""

import math
from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from workbook.transformer.model import KeyValueCache, TransformerBlock, TransformerLM
from workbook.transformer.nn import Linear, RMSNorm, SwiGLU, float_type


class OneStep:
    """The logits of `model(token_ids, caches=caches)` for one token per row, without gradients.

    It uses the weights that the model has when it is made. The result is the model's, but rounded
    differently.
    """

    def __init__(self, model: TransformerLM):
        self.embed = model.embed
        blocks = [cast(TransformerBlock, block) for block in model.layers]
        self.rotation = rotation_of(model, blocks[0])
        self.blocks = [OneBlock(block) for block in blocks]
        self.ln_final = norm(model.ln_final)
        self.head = concatenated(model.lm_head)

    def __call__(self, token_ids: Tensor, caches: list[KeyValueCache]) -> Tensor:
        """Logits (rows, 1, vocab) of token ids (rows, 1) that follow what is in the caches."""
        x = self.embed(token_ids[:, 0])
        rotation = self.rotation(len(caches[0]))
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, rotation, cache)
        return (self.ln_final(x) @ self.head).unsqueeze(1)


class OneBlock:
    """A `TransformerBlock` for vectors (rows, d_model), all at the next position."""

    def __init__(self, block: TransformerBlock):
        attn = block.attn
        self.post = block.norm == "post"
        self.ln1 = norm(block.ln1)
        self.ln2 = norm(block.ln2)
        self.ffn = feed_forward(block.ffn)
        self.attend = attn.attend
        self.num_heads = attn.num_heads
        self.qkv = concatenated(attn.q_proj, attn.k_proj, attn.v_proj)
        self.output = attn.output_proj.weight

    def __call__(self, x: Tensor, rotation: Tensor | None, cache: KeyValueCache) -> Tensor:
        if self.post:
            x = self.ln1(x + self.attention(x, rotation, cache))
            return self.ln2(x + self.ffn(x))
        x = x + self.attention(self.ln1(x), rotation, cache)
        return x + self.ffn(self.ln2(x))

    def attention(self, x: Tensor, rotation: Tensor | None, cache: KeyValueCache) -> Tensor:
        """`MultiHeadSelfAttention.forward`."""
        split = (len(x), 3, self.num_heads, 1, -1)
        heads = (x @ self.qkv).view(-1, x.shape[-1] // self.num_heads)
        Q, K, V = heads.view(split).unbind(1)
        if rotation is not None:  # rotates V as well, which is cheaper than leaving it out
            Q, K, _ = (heads.to(rotation.dtype) @ rotation).to(x.dtype).view(split).unbind(1)
        gathered = self.attend(Q, *cache.extend(K, V)).reshape(x.shape)
        return functional.linear(gathered, self.output)


def concatenated(*layers: Linear) -> Tensor:
    """The transposed weights of linear layers, concatenated: x times it gives all their outputs.

    Each row is then as long as all outputs together, and long rows make matmuls faster on a CPU.
    """
    return torch.cat([layer.weight for layer in layers]).T.contiguous()


def rotation_of(model: TransformerLM, block: TransformerBlock) -> Callable[[int], Tensor | None]:
    """A function from a position to RoPE's rotation matrix there, or to None without RoPE.

    A rotation is linear: the rows of its matrix are the unit vectors, rotated. All layers share it.
    """
    rope = block.attn.rope
    if rope is None:
        return lambda position: None
    weight = model.lm_head.weight
    units = torch.eye(rope.d_k, dtype=float_type(weight), device=weight.device).unsqueeze(1)
    return lambda position: rope(units, first=position).squeeze(1)


def norm(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """`RMSNorm.forward`, computed as x / |(x, √(d ε))| · √d g for d numbers in x."""
    if not isinstance(layer, RMSNorm):  # a model without norms has `Identity` in their place
        return layer
    gain = layer.weight.to(float_type(layer.weight))
    d = len(gain)
    last = gain.new_tensor(math.sqrt(d * layer.eps))
    gain = gain * math.sqrt(d)

    def normed(x: Tensor) -> Tensor:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=gain.dtype)
        return (x / torch.hypot(length, last) * gain).to(x.dtype)

    return normed


def feed_forward(ffn: nn.Module) -> Callable[[Tensor], Tensor]:
    """`SwiGLU.forward` with W1 and W3 as one matrix; a layer without a gate stays as it is."""
    if not isinstance(ffn, SwiGLU):
        return ffn
    up = concatenated(ffn.w1, ffn.w3)
    down = ffn.w2.weight

    def forward(x: Tensor) -> Tensor:
        gate, value = (x @ up).chunk(2, -1)
        return functional.linear(functional.silu(gate) * value, down)

    return forward
