"""A learner's part as their adapter calls it, where a check cannot call the part itself.

The functions in the course's `tests/adapters.py` take the same arguments everywhere; how the part
itself is made and called, only they know. Here they become what a check takes.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbook.mine import repository
from workbook.mine.tracing import SIZES, TracedModel, course_weights, made_anew

if TYPE_CHECKING:  # whoever only reads the mapping waits for no torch
    from torch import Tensor


def attempt(adopted: repository.Adopted, name: str) -> Any:
    """An attempt that is made and called as the function in `tests/adapters.py` does it.

    None where there is no such function. A layer is made anew, with the first weights that the
    learner's code draws: the adapter hands back none that could be trained.
    """
    adapter = repository.adapter(adopted, name)
    return adapter and CLASSES.get(name, lambda itself: itself)(adapter)


def _made_by(make: Callable, *sizes: Any) -> type:
    """A class of the learner's kind, whose instances are what a function makes."""
    kind = type(make(None, *sizes))  # no subclass of itself, so its `__init__` does not run again
    return type(kind)(kind.__name__, (kind,), {"__new__": make, "__module__": kind.__module__})


def _drawn(*shape: int) -> "Tensor":
    """Any weights or inputs; what they are is left out of what is made."""
    import torch

    return torch.randn(*shape)


def _zero() -> "Tensor":
    """One id, or one position."""
    return _drawn(1).mul(0).long()


def _tokenizer(adapter: Callable) -> type:
    def make(cls, vocab, merges, special_tokens=None):
        return adapter(vocab, merges, special_tokens)

    return _made_by(make, {n: bytes([n]) for n in range(256)}, [])


def _linear(adapter: Callable) -> type:
    def make(cls, in_features, out_features):
        weights = _drawn(out_features, in_features)
        return made_anew(adapter, in_features, out_features, weights, _drawn(in_features))

    return _made_by(make, 3, 2)


def _embedding(adapter: Callable) -> type:
    def make(cls, num_embeddings, embedding_dim):
        weights = _drawn(num_embeddings, embedding_dim)
        return made_anew(adapter, num_embeddings, embedding_dim, weights, _zero())

    return _made_by(make, 3, 2)


def _rmsnorm(adapter: Callable) -> type:
    def make(cls, d_model, eps=1e-5):
        return made_anew(adapter, d_model, eps, _drawn(d_model), _drawn(2, d_model))

    return _made_by(make, 3)


def _positionwise_feedforward(adapter: Callable) -> type:
    def make(cls, d_model, d_ff):
        up, down, gate = _drawn(d_ff, d_model), _drawn(d_model, d_ff), _drawn(d_ff, d_model)
        return made_anew(adapter, d_model, d_ff, up, down, gate, _drawn(2, d_model))

    return _made_by(make, 2, 3)


def _multihead_self_attention(with_rope: Callable) -> type:
    name = with_rope.__name__.removesuffix("_with_rope")
    without = getattr(sys.modules[with_rope.__module__], name, with_rope)

    def make(cls, d_model, num_heads, max_seq_len=None, theta=None):
        weights = _drawn(4, d_model, d_model).unbind()
        x, sizes = _drawn(1, 1, d_model), (d_model, num_heads)
        if theta is None:
            return made_anew(without, *sizes, *weights, x)
        return made_anew(with_rope, *sizes, max_seq_len, theta, *weights, x, _zero().unsqueeze(0))

    return _made_by(make, 4, 2, 3, 100.0)


def _transformer_block(adapter: Callable) -> type:
    def make(cls, d_model, num_heads, d_ff, max_seq_len, theta):
        sizes = dict.fromkeys(("vocab_size", "num_layers"), 1) | {"d_model": d_model, "d_ff": d_ff}
        weights = {
            name.removeprefix("layers.0."): weight
            for name, weight in course_weights(sizes, seed=0).items()
            if name.startswith("layers")
        }
        x = _drawn(1, 1, d_model)
        return made_anew(adapter, d_model, num_heads, d_ff, max_seq_len, theta, weights, x)

    return _made_by(make, 4, 2, 6, 3, 100.0)


def _transformer_lm(adapter: Callable) -> type:
    from torch import nn

    traced: dict[tuple, TracedModel] = {}

    class TransformerLM(nn.Module):
        def __init__(
            self,
            vocab_size,
            context_length,
            d_model,
            num_layers,
            num_heads,
            d_ff,
            rope_theta,
        ):
            super().__init__()
            sizes = (vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta)
            if sizes not in traced:
                traced[sizes] = TracedModel(adapter, dict(zip(SIZES, sizes, strict=True)))
            self.traced, self.model = traced[sizes], traced[sizes].make()

        def forward(self, token_ids):
            return self.traced.call(self.model, token_ids)

    return TransformerLM


CLASSES = {
    "tokenizer": _tokenizer,
    "linear": _linear,
    "embedding": _embedding,
    "rmsnorm": _rmsnorm,
    "positionwise_feedforward": _positionwise_feedforward,
    "multihead_self_attention": _multihead_self_attention,
    "transformer_block": _transformer_block,
    "transformer_lm": _transformer_lm,
    "adamw": lambda adapter: adapter(),
}
