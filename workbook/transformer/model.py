"""The Transformer language model, put together from the parts of `workbook.transformer.nn`.

    tokens -> embedding -> block ... block -> norm -> logits of the next token, at every position

    block   x ---+--> norm -> attention ---(+)---+--> norm -> feed-forward ---(+)--->
                 |__________________________|    |_____________________________|

An ablation is a field of `ModelConfig`, and so is the choice between textbook and fused parts.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from types import ModuleType
from typing import Any, TypeVar

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import Identity, Module, ModuleList
from torch.types import Device

from workbook.config import ModelConfig, check_heads
from workbook.transformer import fused
from workbook.transformer import nn as textbook
from workbook.transformer.nn import Dtype

PARTS = {"textbook": textbook, "fused": fused}


class KeyValueCache:
    """The keys and values of one attention layer for the positions seen so far.

    Memory for `capacity` positions is allocated at first use: nothing is copied as the cache fills.
    Writing in place overwrites what a backward pass would need, so use a cache without gradients.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self.keys = self.values = torch.empty(0)

    def __len__(self) -> int:
        return self.length

    def extend(self, K: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new positions; return all of them, the new ones last."""
        start = self.length
        self.length = self.length + K.shape[-2]
        if self.length > self.capacity:
            raise ValueError(
                f"{self.length:,} positions do not fit in a cache of {self.capacity:,}; give it a"
                f" larger capacity"
            )
        # Only now is the shape known: (..., heads, capacity, d_head).
        if start == 0:
            self.keys, self.values = (
                new.new_empty(*new.shape[:-2], self.capacity, new.shape[-1]) for new in (K, V)
            )
        # Written into the memory that is there: `torch.cat` would copy the whole past for each
        # token.
        self.keys[..., start : self.length, :] = K
        self.values[..., start : self.length, :] = V
        return self.keys[..., : self.length, :], self.values[..., : self.length, :]


class MultiHeadSelfAttention(Module):
    """Causal attention with `num_heads` heads, each on its own d_model / num_heads features.

    With `theta`, RoPE rotates queries and keys by their positions, up to `max_seq_len`. `parts` is
    the module whose Linear, RoPE and attention are used: `nn` or `fused`.
    Source: Vaswani et al. 2017, sec. 3.2.2.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        max_seq_len: int | None = None,
        theta: float | None = None,
        device: Device = None,
        dtype: Dtype = None,
        parts: ModuleType = textbook,
    ) -> None:
        super().__init__()
        check_attention(d_model, num_heads, max_seq_len, theta)
        self.num_heads = num_heads
        # One matrix makes the queries of all heads: head 0 owns its first d_head rows, and so on.
        self.q_proj = parts.Linear(d_model, d_model, device, dtype)
        self.k_proj = parts.Linear(d_model, d_model, device, dtype)
        self.v_proj = parts.Linear(d_model, d_model, device, dtype)
        # Until here no head has seen what another found: this matrix mixes their results.
        self.output_proj = parts.Linear(d_model, d_model, device, dtype)
        # An attribute, which `inspect` replaces to look at the weights.
        self.attend: Callable[[Tensor, Tensor, Tensor], Tensor] = parts.causal_attention
        self.rope = None
        if theta is not None:
            # RoPE turns pairs within a head, so its table is for d_head values.
            d_head = d_model // num_heads
            self.rope = parts.RotaryPositionalEmbedding(theta, d_head, max_seq_len, device, dtype)

    def forward(
        self,
        x: Float[Tensor, "... seq d_model"],
        token_positions: Int[Tensor, "... seq"] | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "... seq d_model"]:
        """The heads' joint output; with a cache, x follows the positions that are already in it."""
        # (..., seq, d_model) -> (..., heads, seq, d_head): a head is one more batch dimension.
        split = "... seq (heads d_head) -> ... heads seq d_head"
        Q, K, V = (
            rearrange(project(x), split, heads=self.num_heads)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        # Rotated in every layer anew: the residual stream itself carries no positions.
        if self.rope is not None:  # the values carry no position: only the scores depend on it
            if token_positions is not None:
                token_positions = token_positions.unsqueeze(-2)  # (..., 1, seq): for all heads
            first = 0 if cache is None else len(cache)
            Q = self.rope(Q, token_positions, first)
            K = self.rope(K, token_positions, first)
        # The keys in the cache were rotated when they came in, and never are again.
        if cache is not None:
            K, V = cache.extend(K, V)
        # Each query sees its own position and those before, as in generation, where there are no
        # later ones yet.
        heads = self.attend(Q, K, V)
        # (..., heads, seq, d_head) -> (..., seq, d_model): the heads side by side again.
        return self.output_proj(rearrange(heads, "... heads seq d_head -> ... seq (heads d_head)"))


class TransformerBlock(Module):
    """Attention, then a feed-forward layer, each added to what came in.

    `norm` says where normalisation happens: "pre" (before each of the two), "post" (after each
    addition, as in Vaswani et al. 2017) or nowhere in the block ("none", "final"). `ffn` is
    "swiglu" or "silu".
    Source of the default: Xiong et al. 2020, table 1 (pre-norm).
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        max_seq_len: int | None = None,
        theta: float | None = None,
        norm: str = "pre",
        ffn: str = "swiglu",
        device: Device = None,
        dtype: Dtype = None,
        parts: ModuleType = textbook,
    ) -> None:
        super().__init__()
        # Attention moves information between positions; the feed-forward layer works on each alone.
        feed_forward = {"swiglu": parts.SwiGLU, "silu": parts.SiLUFeedForward}[ffn]
        self.norm = norm
        normalises = norm in ("pre", "post")
        self.ln1 = normalisation(normalises, d_model, device, dtype, parts)
        self.attn = MultiHeadSelfAttention(
            d_model, num_heads, max_seq_len, theta, device, dtype, parts
        )
        self.ln2 = normalisation(normalises, d_model, device, dtype, parts)
        self.ffn = feed_forward(d_model, d_ff, device, dtype)

    def forward(
        self,
        x: Float[Tensor, "... seq d_model"],
        token_positions: Int[Tensor, "... seq"] | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "... seq d_model"]:
        # Each norm rescales the whole stream, and on the way back its gradient: post-norm needs a
        # longer warm-up (Xiong et al. 2020).
        if self.norm == "post":  # the norm is on the residual stream itself
            x = self.ln1(x + self.attn(x, token_positions, cache))
            return self.ln2(x + self.ffn(x))
        # Pre-norm: x is only ever added to, so its gradient reaches every block undisturbed.
        x = x + self.attn(self.ln1(x), token_positions, cache)
        return x + self.ffn(self.ln2(x))


Model = TypeVar("Model", bound="ConfiguredModel")


class ConfiguredModel(Module):
    """What a model can do besides its forward pass: be made from a config, check its input."""

    config: ModelConfig
    layers: ModuleList

    @classmethod
    def from_config(
        cls: type[Model], config: ModelConfig, device: Device = None, dtype: Dtype = None
    ) -> Model:
        """The model of a config, with new weights."""
        # The fields have the names of the constructor's parameters, or are among its `choices`.
        return cls(**asdict(config), device=device, dtype=dtype)

    def new_caches(self) -> list[KeyValueCache]:
        """An empty cache for each layer."""
        return [KeyValueCache(self.config.context_length) for _ in self.layers]

    def check_length(self, token_ids: Tensor, caches: list[KeyValueCache] | None) -> None:
        """Raise ValueError if the ids, and what is in the caches, exceed the context length."""
        # All caches are equally long: each layer sees the same positions.
        length = token_ids.shape[-1] + (len(caches[0]) if caches else 0)
        if length > self.config.context_length:
            raise ValueError(
                f"{length:,} ids are more than context_length={self.config.context_length:,};"
                f" keep the last {self.config.context_length:,}"
            )


class TransformerLM(ConfiguredModel):
    """The whole model: tokens in, logits of the next token out, at every position.

    `choices` are the other fields of `ModelConfig`: norm, position, ffn, tie_embeddings, kernels.
    Raises: ValueError for sizes that do not fit together, and for sequences longer than
    `context_length`.
    """

    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        d_model: int,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        rope_theta: float = 10_000.0,
        device: Device = None,
        dtype: Dtype = None,
        **choices: Any,
    ) -> None:
        super().__init__()
        # Sizes that do not fit together are refused here, before memory is allocated.
        self.config = config = ModelConfig(
            vocab_size=vocab_size,
            context_length=context_length,
            d_model=d_model,
            num_layers=num_layers,
            num_heads=num_heads,
            d_ff=d_ff,
            rope_theta=rope_theta,
            **choices,
        )
        parts = PARTS[config.kernels]
        # Without RoPE only the causal mask tells the model about order (NoPE).
        theta = rope_theta if config.position == "rope" else None
        self.token_embeddings = parts.Embedding(vocab_size, d_model, device, dtype)
        # A plain list would hide its blocks from `parameters()`, and so from the optimizer.
        self.layers = ModuleList(
            TransformerBlock(
                d_model,
                num_heads,
                d_ff,
                context_length,
                theta,
                config.norm,
                config.ffn,
                device,
                dtype,
                parts,
            )
            for _ in range(num_layers)
        )
        # Pre-norm never normalises the stream itself, to which every block adds: so once more
        # before the head.
        self.ln_final = normalisation("ln_final" in config.norms, d_model, device, dtype, parts)
        # A row for each token, like the embedding, but a matrix of its own unless they are tied.
        self.lm_head = parts.Linear(d_model, vocab_size, device, dtype)
        if config.tie_embeddings:
            # Both use the head's small initial weights: N(0, 1) would make the first logits huge.
            self.token_embeddings.weight = self.lm_head.weight
            # The stream has to begin at the size that it has without tying, or the first blocks
            # drown it: Vaswani et al. 2017 scale the rows as well, theirs by √d_model.
            self.row_scale = math.sqrt((d_model + vocab_size) / 2)  # 1 / their standard deviation

    def forward(
        self,
        token_ids: Int[Tensor, "... seq"],
        token_positions: Int[Tensor, "... seq"] | None = None,
        caches: list[KeyValueCache] | None = None,
    ) -> Float[Tensor, "... seq vocab"]:
        """The logits; with caches, one for each layer, `token_ids` follow what they have seen."""
        self.check_length(token_ids, caches)
        x = self.embed(token_ids)  # (..., seq, d_model): the residual stream begins
        for number, layer in enumerate(self.layers):
            # Every block reads the stream and adds to it: (..., seq, d_model) in and out.
            x = layer(x, token_positions, caches[number] if caches else None)
        # Logits, not probabilities: the loss needs their logarithm, which would lose digits through
        # a softmax, and sampling divides them by a temperature first.
        return self.lm_head(self.ln_final(x))  # (..., seq, vocab)

    def embed(self, token_ids: Int[Tensor, "... seq"]) -> Float[Tensor, "... seq d_model"]:
        """The rows of the embedding, scaled if they are the head's too."""
        rows = self.token_embeddings(token_ids)
        return rows * self.row_scale if self.config.tie_embeddings else rows


def normalisation(
    wanted: bool, d_model: int, device: Device, dtype: Dtype, parts: ModuleType
) -> Module:
    """An RMSNorm, or nothing at all."""
    return parts.RMSNorm(d_model, device=device, dtype=dtype) if wanted else Identity()


def check_attention(
    d_model: int, num_heads: int, max_seq_len: int | None, theta: float | None
) -> None:
    """Raise ValueError unless the heads share d_model evenly, and RoPE has what it needs."""
    check_heads(d_model, num_heads, rope=theta is not None)
    if theta is not None and max_seq_len is None:
        raise ValueError("theta needs max_seq_len: the number of positions to make angles for")
