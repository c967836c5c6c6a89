"""A learner's part as their adapter calls it, where a check cannot call the part itself.

The functions in the course's `tests/adapters.py` take the same arguments everywhere; only they know
how the part itself is made and called. Here they become what a check takes.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from workbook.checks.calling import SIZES
from workbook.config import ModelConfig
from workbook.mine import repository
from workbook.mine.tracing import TracedModel, course_weights, made_anew


def attempt(adopted: repository.Adopted, name: str) -> Any:
    """An attempt that is made and called as the function in `tests/adapters.py` does it.

    None if there is no such function. A layer is made anew, with the initial weights that the
    learner's code draws: the adapter returns no weights that could be trained.
    """
    adapter = repository.adapter(adopted, name)
    if adapter is None:
        return None
    if name == "adamw":
        return adapter()  # which returns the class
    if name == "transformer_lm":
        return _transformer_lm(adapter)
    if name not in CLASSES:
        return adapter
    make, *sizes = CLASSES[name]
    new = staticmethod(partial(make, adapter))
    # `__new__` returns no instance of this subclass, so `__init__` does not run again.
    kind = type(make(adapter, None, *sizes))
    return type(kind)(kind.__name__, (kind,), {"__new__": new, "__module__": kind.__module__})


# What replaces `__new__`. Any weights and inputs will do, as none of them is kept.


def _tokenizer(adapter: Callable, cls, vocab, merges, special_tokens=None) -> Any:
    return adapter(vocab, merges, special_tokens)


def _linear(adapter: Callable, cls, in_features, out_features) -> nn.Module:
    weights = torch.randn(out_features, in_features)
    return made_anew(adapter, in_features, out_features, weights, torch.randn(in_features))


def _embedding(adapter: Callable, cls, num_embeddings, embedding_dim) -> nn.Module:
    weights = torch.randn(num_embeddings, embedding_dim)
    return made_anew(adapter, num_embeddings, embedding_dim, weights, _zero())


def _rmsnorm(adapter: Callable, cls, d_model, eps=1e-5) -> nn.Module:
    return made_anew(adapter, d_model, eps, torch.randn(d_model), torch.randn(2, d_model))


def _positionwise_feedforward(adapter: Callable, cls, d_model, d_ff) -> nn.Module:
    up, down, gate = (torch.randn(d_ff, d_model) for _ in range(3))
    return made_anew(adapter, d_model, d_ff, up, down.T, gate, torch.randn(2, d_model))


def _multihead_self_attention(
    adapter: Callable, cls, d_model, num_heads, max_seq_len=None, theta=None
) -> nn.Module:
    weights = torch.randn(4, d_model, d_model).unbind()
    x, sizes = torch.randn(1, 1, d_model), (d_model, num_heads)
    if theta is not None:
        return made_anew(adapter, *sizes, max_seq_len, theta, *weights, x, _zero().unsqueeze(0))
    name = adapter.__name__.removesuffix("_with_rope")
    plain = getattr(sys.modules[adapter.__module__], name, adapter)
    return made_anew(plain, *sizes, *weights, x)


def _transformer_block(
    adapter: Callable, cls, d_model, num_heads, d_ff, max_seq_len, theta
) -> nn.Module:
    sizes = (1, max_seq_len, d_model, 1, num_heads, d_ff, theta)
    weights = course_weights(dict(zip(SIZES, sizes, strict=True)), seed=0)
    weights = {n.removeprefix("layers.0."): w for n, w in weights.items() if n[:6] == "layers"}
    x = torch.randn(1, 1, d_model)
    return made_anew(adapter, d_model, num_heads, d_ff, max_seq_len, theta, weights, x)


def _zero() -> Tensor:
    """One id, or one position."""
    return torch.zeros(1, dtype=torch.long)


CLASSES = {  # with small sizes
    "tokenizer": (_tokenizer, {n: bytes([n]) for n in range(256)}, []),
    "linear": (_linear, 3, 2),
    "embedding": (_embedding, 3, 2),
    "rmsnorm": (_rmsnorm, 3),
    "positionwise_feedforward": (_positionwise_feedforward, 2, 3),
    "multihead_self_attention": (_multihead_self_attention, 4, 2, 3, 100.0),
    "transformer_block": (_transformer_block, 4, 2, 6, 3, 100.0),
}


def _transformer_lm(adapter: Callable) -> type:
    traced: dict[tuple, TracedModel] = {}

    class TransformerLM(nn.Module):
        def __init__(
            self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta
        ):
            super().__init__()
            sizes = (vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta)
            if sizes not in traced:
                config = ModelConfig(**dict(zip(SIZES, sizes, strict=True)))
                traced[sizes] = TracedModel(adapter, config)
            self.traced, self.model = traced[sizes], traced[sizes].make()

        def forward(self, token_ids):
            return self.traced.call(self.model, token_ids)

    return TransformerLM
