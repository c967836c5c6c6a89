"""One more id at a time: the cached model with fewer and larger steps.

    q = Wq x    k = Wk x    v = Wv x    becomes    (q, k, v) = x W,  W = Wqᵀ beside Wkᵀ beside Wvᵀ

For a single position a small product costs little more than the call that starts it. So matrices
that see the same input are put together, which takes a copy of them, and a norm or a turn of RoPE
is said in as few calls as it can be.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import Identity, functional

from workbook.transformer.model import KeyValueCache, TransformerBlock, TransformerLM
from workbook.transformer.nn import RMSNorm, float_type


class OneStep:
    """The logits of `model(token_ids, caches=caches)` for one id in each row, without gradients.

    The weights are those that the model has when this is made. What it computes is the model's,
    differently rounded.
    """

    def __init__(self, model: TransformerLM):
        self.embeddings = model.token_embeddings
        self.turn = turning(model)
        self.blocks = [OneBlock(block) for block in model.layers]
        self.ln_final = norm(model.ln_final)
        self.head = beside(model.lm_head)

    def __call__(self, token_ids: Tensor, caches: list[KeyValueCache]) -> Tensor:
        """Logits (rows, 1, vocab) of ids (rows, 1) that follow what is in the caches."""
        x = self.embeddings(token_ids[:, 0])
        turn = self.turn(len(caches[0]))
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, turn, cache)
        return (self.ln_final(x) @ self.head).unsqueeze(1)


class OneBlock:
    """What a `TransformerBlock` makes of vectors (rows, d_model), all at the next position."""

    def __init__(self, block: TransformerBlock):
        attn = block.attn
        self.post = block.norm == "post"
        self.ln1, self.ln2, self.ffn = norm(block.ln1), norm(block.ln2), feed_forward(block.ffn)
        self.attend, self.num_heads = attn.attend, attn.num_heads
        self.qkv = beside(attn.q_proj, attn.k_proj, attn.v_proj)
        self.output = attn.output_proj.weight

    def __call__(self, x: Tensor, turn: Tensor | None, cache: KeyValueCache) -> Tensor:
        if self.post:
            x = self.ln1(x + self.attention(x, turn, cache))
            return self.ln2(x + self.ffn(x))
        x = x + self.attention(self.ln1(x), turn, cache)
        return x + self.ffn(self.ln2(x))

    def attention(self, x: Tensor, turn: Tensor | None, cache: KeyValueCache) -> Tensor:
        """`MultiHeadSelfAttention.forward`."""
        apart = (len(x), 3, self.num_heads, 1, -1)
        heads = (x @ self.qkv).view(-1, x.shape[-1] // self.num_heads)
        Q, K, V = heads.view(apart).unbind(1)
        if turn is not None:  # V as well, which is cheaper than to take it out
            Q, K, _ = (heads.to(turn.dtype) @ turn).to(x.dtype).view(apart).unbind(1)
        gathered = self.attend(Q, *cache.extend(K, V)).reshape(x.shape)
        return functional.linear(gathered, self.output)


def beside(*layers) -> Tensor:
    """Their weights side by side, turned so that x @ this is all that they make of x.

    The rows of this are as long as the output, and the products of a CPU are faster with long rows.
    """
    return torch.cat([layer.weight for layer in layers]).T.contiguous()


def turning(model: TransformerLM) -> Callable[[int], Tensor | None]:
    """The matrix that turns a query or a key as RoPE does at a position; None without RoPE.

    A turn is linear: its matrix consists of the unit vectors, turned. It serves all layers.
    """
    rope = model.layers[0].attn.rope
    if rope is None:
        return lambda position: None
    weight = model.lm_head.weight
    units = torch.eye(rope.d_k, dtype=float_type(weight), device=weight.device).unsqueeze(1)
    return lambda position: rope(units, first=position).squeeze(1)


def norm(layer: RMSNorm | Identity) -> Callable[[Tensor], Tensor]:
    """`RMSNorm.forward`: with d numbers in x, x / |(x, √(d ε))| · √d g says the same."""
    if isinstance(layer, Identity):
        return layer
    gain = layer.weight.to(float_type(layer.weight))
    d = len(gain)
    last, gain = gain.new_tensor(math.sqrt(d * layer.eps)), gain * math.sqrt(d)

    def normed(x: Tensor) -> Tensor:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=gain.dtype)
        return (x / torch.hypot(length, last) * gain).to(x.dtype)

    return normed


def feed_forward(ffn) -> Callable[[Tensor], Tensor]:
    """`SwiGLU.forward`, or that of the layer without a gate."""
    if not hasattr(ffn, "w3"):
        return ffn
    up, down = beside(ffn.w1, ffn.w3), ffn.w2.weight

    def forward(x: Tensor) -> Tensor:
        gate, value = (x @ up).chunk(2, -1)
        return functional.linear(functional.silu(gate) * value, down)

    return forward
