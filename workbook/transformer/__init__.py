"""The Transformer language model: its parts, the whole, and a look inside (chapter 3).

Open `nn` first: every part as the papers write it, from Linear to the loss. `model` puts them
together, with switches for the ablations and the cache for generation. `fused` has the same parts
with torch's own kernels, which training uses; `inspect` shows attention maps and the size of
activations.
"""

from workbook.lazy import lazy

# Where each public name lives, loaded when it is asked for: all of them need torch.
HOMES = {
    "Embedding": "nn",
    "KeyValueCache": "model",
    "Linear": "nn",
    "MultiHeadSelfAttention": "model",
    "RMSNorm": "nn",
    "RotaryPositionalEmbedding": "nn",
    "SiLUFeedForward": "nn",
    "SwiGLU": "nn",
    "TransformerBlock": "model",
    "TransformerLM": "model",
    "attention_maps": "inspect",
    "cross_entropy": "nn",
    "perplexity": "nn",
    "residual_rms": "inspect",
    "scaled_dot_product_attention": "nn",
    "silu": "nn",
    "softmax": "nn",
}
__all__ = list(HOMES)
__getattr__, __dir__ = lazy(__name__, HOMES)
