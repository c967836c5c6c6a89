"""One more id at a time: the cached model with fewer and larger matrix products.

    q = Wq x    k = Wk x    v = Wv x    becomes    (q, k, v) = W x,  W = Wq above Wk above Wv

For a single position a small product costs little more than the call that starts it. So matrices
that see the same input are put together, which takes a copy of them.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from workbook.model import KeyValueCache, TransformerBlock, TransformerLM


class OneStep:
    """The logits of `model(token_ids, caches=caches)` for one id in each row, without gradients.

    The weights are those that the model has when this is made.
    """

    def __init__(self, model: TransformerLM):
        self.model = model
        self.blocks = [(block, *together(block)) for block in model.layers]

    def __call__(self, token_ids: Tensor, caches: list[KeyValueCache]) -> Tensor:
        """Logits (rows, 1, vocab) of ids (rows, 1) that follow what is in the caches."""
        x = self.model.token_embeddings(token_ids)
        for (block, qkv, up), cache in zip(self.blocks, caches, strict=True):
            x = one_block(
                block,
                x,
                lambda x, block=block, qkv=qkv, cache=cache: attention(block.attn, qkv, x, cache),
                block.ffn if up is None else lambda x, block=block, up=up: gated(block.ffn, up, x),
            )
        return self.model.lm_head(self.model.ln_final(x))


def together(block: TransformerBlock) -> tuple[Tensor, Tensor | None]:
    """The matrices for queries, keys and values as one, and those for W1 and W3, where it is."""
    attn, ffn = block.attn, block.ffn
    qkv = torch.cat([proj.weight for proj in (attn.q_proj, attn.k_proj, attn.v_proj)])
    return qkv, torch.cat((ffn.w1.weight, ffn.w3.weight)) if hasattr(ffn, "w3") else None


def one_block(block: TransformerBlock, x: Tensor, attend: Callable, feed: Callable) -> Tensor:
    """What `TransformerBlock.forward` does, with these two for its layers."""
    if block.norm == "post":
        x = block.ln1(x + attend(x))
        return block.ln2(x + feed(x))
    x = x + attend(block.ln1(x))
    return x + feed(block.ln2(x))


def attention(attn, qkv: Tensor, x: Tensor, cache: KeyValueCache) -> Tensor:
    """`MultiHeadSelfAttention.forward` for one position."""
    heads = functional.linear(x, qkv).view(len(x), 3 * attn.num_heads, 1, -1)
    turning, V = heads.split((2 * attn.num_heads, attn.num_heads), 1)
    if attn.rope is not None:
        turning = attn.rope(turning, first=len(cache))
    Q, K = turning.chunk(2, 1)
    return attn.output_proj(attn.attend(Q, *cache.extend(K, V)).reshape(x.shape))


def gated(ffn, up: Tensor, x: Tensor) -> Tensor:
    """`SwiGLU.forward`."""
    gate, value = functional.linear(x, up).chunk(2, -1)
    return ffn.w2(functional.silu(gate) * value)
