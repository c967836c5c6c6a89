"""The parts of a Transformer, each as the papers write it.

Nothing here comes from `torch.nn.functional`, and only `Module`, `Parameter` and the truncated
normal distribution from `torch.nn`. `fused` has the same parts with torch's own kernels.

Half precision: what adds up many numbers (a norm, a softmax, the loss) works in float32. A norm and
a softmax return the input's type, the loss float32. float64 stays float64.

What is not the idea of a part, such as refusing ids outside the vocabulary, is at the end.
"""

import math
from collections.abc import Callable

import torch
from einops import einsum
from jaxtyping import Bool, Float, Int, Integer
from torch import Tensor, nn
from torch.types import Device

Dtype = torch.dtype | None  # None: torch's default, float32


class Linear(nn.Module):
    """y = W x, without bias. The weight is stored as (out, in): one row for each output.

    Drawn from N(0, 2 / (in + out)), truncated at 3 standard deviations.
    Source: Glorot & Bengio 2010, eq. 12 for the variance (they draw uniformly, eq. 16).
    """

    def __init__(
        self, in_features: int, out_features: int, device: Device = None, dtype: Dtype = None
    ) -> None:
        super().__init__()
        # The sum of `in` products grows with the root of `in`, and a gradient on its way back with
        # that of `out`. 1 / in and 1 / out would each keep one of the two steady: this lies between
        # them.
        std = math.sqrt(2 / (in_features + out_features))
        self.weight = drawn(out_features, in_features, std=std, device=device, dtype=dtype)

    def forward(self, x: Float[Tensor, "... d_in"]) -> Float[Tensor, "... d_out"]:
        # Vectors are rows here, as torch stores them: (..., d_in) @ (d_in, d_out).
        return x @ self.weight.T


class Embedding(nn.Module):
    """One vector of length `embedding_dim` for each token, drawn from N(0, 1), truncated at 3."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, device: Device = None, dtype: Dtype = None
    ) -> None:
        super().__init__()
        self.weight = drawn(num_embeddings, embedding_dim, std=1.0, device=device, dtype=dtype)

    def forward(self, token_ids: Integer[Tensor, "..."]) -> Float[Tensor, "... d_model"]:
        # The same as a matmul with one-hot rows, without the multiplications by 0.
        check_in_range(token_ids, len(self.weight), "id", "the vocabulary")
        # `weight[token_ids]` gives the same rows, but with several threads on a CPU its gradient is
        # added up in an order that differs from run to run.
        rows = torch.index_select(self.weight, 0, token_ids.flatten().long())
        return rows.unflatten(0, token_ids.shape) if token_ids.ndim else rows[0]


def drawn(rows: int, columns: int, *, std: float, device: Device, dtype: Dtype) -> nn.Parameter:
    """A matrix drawn from N(0, std²), truncated at 3 standard deviations."""
    # Of a million normal numbers, 2,700 lie more than 3 standard deviations from 0; one such weight
    # can outweigh many others.
    weight = torch.empty(rows, columns, device=device, dtype=dtype)
    return nn.Parameter(nn.init.trunc_normal_(weight, std=std, a=-3 * std, b=3 * std))


class RMSNorm(nn.Module):
    """Each vector divided by its root mean square, then multiplied by a learned gain.

    `eps` is inside the root. Half precision is too coarse for squares: the work is in float32.
    Source: Zhang & Sennrich 2019, eq. 4 (their g is `weight`).
    """

    def __init__(
        self, d_model: int, eps: float = 1e-5, device: Device = None, dtype: Dtype = None
    ) -> None:
        super().__init__()
        self.eps = eps
        # A gain of 1 changes nothing: at first, the layer only normalises.
        self.weight = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        # bfloat16 has 8 significant bits: a sum of squares in it would stop growing as soon as it
        # was 256 times as large as the next square.
        high = x.to(float_type(x))
        # One number per vector, (..., 1): the kept axis lets it divide all of the vector.
        mean_square = high.square().mean(-1, keepdim=True)
        # ε keeps a vector of zeros from 0 / 0. Only the result is rounded to the input's type: the
        # gain is still multiplied in float32.
        return (high * torch.rsqrt(mean_square + self.eps) * self.weight).to(x.dtype)


def silu(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """x · sigmoid(x): like a ReLU with a soft corner. Source: Hendrycks & Gimpel 2016."""
    # Unlike a ReLU, it has a slope below 0 too: a unit that is off can still learn.
    return x * torch.sigmoid(x)


class SwiGLU(nn.Module):
    """W2 (SiLU(W1 x) ⊙ W3 x): the gate SiLU(W1 x) says how much of each value of W3 x passes.

    Source: Shazeer 2020, eq. 6, with W, V and W2 named W1, W3 and W2.
    """

    def __init__(self, d_model: int, d_ff: int, device: Device = None, dtype: Dtype = None) -> None:
        super().__init__()
        self.w1 = Linear(d_model, d_ff, device, dtype)  # the gate
        self.w2 = Linear(d_ff, d_model, device, dtype)  # back to the width of the stream
        self.w3 = Linear(d_model, d_ff, device, dtype)  # the values

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        # (..., d_model) -> twice (..., d_ff), multiplied entry by entry -> (..., d_model).
        return self.w2(silu(self.w1(x)) * self.w3(x))


class SiLUFeedForward(nn.Module):
    """W2 SiLU(W1 x): the feed-forward layer without a gate, for the ablation."""

    def __init__(self, d_model: int, d_ff: int, device: Device = None, dtype: Dtype = None) -> None:
        super().__init__()
        self.w1 = Linear(d_model, d_ff, device, dtype)
        self.w2 = Linear(d_ff, d_model, device, dtype)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        return self.w2(silu(self.w1(x)))


class RotaryPositionalEmbedding(nn.Module):
    """Rotate each pair of neighbours (x_2k, x_2k+1) by the angle position · theta^(-2k / d_k).

    The score of a query and a key then depends on how far apart they are, not on where they are.
    Nothing is learned, and the tables of cosines and sines are not part of the state dict.
    Source: Su et al. 2021, eq. 15 and 34 (their k counts from 1).
    """

    def __init__(
        self, theta: float, d_k: int, max_seq_len: int, device: Device = None, dtype: Dtype = None
    ) -> None:
        super().__init__()
        self.d_k = check_even(d_k)
        # Pair 0 turns by 1 radian per position and tells neighbours apart. The last pair turns by
        # about 1 / theta, so it has not gone round once where the first has a thousand times.
        k = torch.arange(d_k // 2, device="cpu", dtype=torch.float64)
        speeds = theta ** (-2 * k / d_k)  # radians per position: 1 for pair 0, then slower
        positions = torch.arange(max_seq_len, device="cpu", dtype=torch.float64)
        angles = einsum(positions, speeds, "seq, pair -> seq pair")
        self.table = RotationTable(angles, device, dtype)  # their cosines and sines

    def forward(
        self,
        x: Float[Tensor, "... seq d_k"],
        token_positions: Int[Tensor, "... seq"] | None = None,
        first: int = 0,
    ) -> Float[Tensor, "... seq d_k"]:
        """Rotate x; without `token_positions`, the positions count up from `first`."""
        cos, sin = self.table(x.shape[-2], token_positions, first).unbind(-1)  # (..., seq, pair)
        # A query at m and a key at n, both turned, have the score (R_m q) · (R_n k), and that is
        # q · R_(n-m) k: only the distance n - m is left.
        high = x.to(float_type(x))
        even = high[..., 0::2]  # the two numbers of each pair
        odd = high[..., 1::2]
        # The rotation matrix (cos -sin; sin cos) times (even, odd), for all pairs at once.
        turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
        return turned.flatten(-2).to(x.dtype)  # pairs side by side again


def softmax(x: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
    """Positive numbers that add up to 1 along `dim`, in proportion to exp(x).

    The largest value is subtracted first: the result is the same, but no exp overflows.
    """
    high = x.to(float_type(x))
    # exp(89) is too large for float32. One maximum for each row: with that of the whole tensor, all
    # powers of a row far below it would be 0, and their sum too.
    # exp(x - m) / Σ exp(x - m) = exp(x) / Σ exp(x): the factor exp(-m) cancels out.
    powers = torch.exp(high - high.amax(dim, keepdim=True))
    return (powers / powers.sum(dim, keepdim=True)).to(x.dtype)


def scaled_dot_product_attention(
    Q: Float[Tensor, "... queries d_k"],
    K: Float[Tensor, "... keys d_k"],
    V: Float[Tensor, "... keys d_v"],
    mask: Bool[Tensor, "... queries keys"] | None = None,
) -> Float[Tensor, "... queries d_v"]:
    """For each query, a mean of the values, weighted by how well their keys match it.

    A query sees the keys at which its row of `mask` is True, and must see at least one.
    Source: Vaswani et al. 2017, eq. 1.
    """
    # Row i of the scores, (..., queries, keys), says how well each key matches query i.
    scores = einsum(Q, K, "... queries d_k, ... keys d_k -> ... queries keys")
    # The sum of d_k products of standard normal numbers has the standard deviation √d_k.
    # Larger scores would give one key nearly all of the weight, where a softmax has hardly any
    # gradient.
    scores = scores / math.sqrt(Q.shape[-1])
    # Masked before the softmax, so that what is left still adds up to 1. A row with nothing left
    # would be 0 / 0: that is why a query must see at least one key.
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)  # exp(-inf) = 0: a weight of exactly 0
    return einsum(softmax(scores, -1), V, "... queries keys, ... keys d_v -> ... queries d_v")


def causal_mask(queries: int, keys: int, device: Device = None) -> Bool[Tensor, "queries keys"]:
    """True where a query may look: at its own position and before. The last query sees all keys."""
    # Made for each call: that is cheap beside the scores, and a table for the longest context would
    # have to move from device to device with the model.
    # With a cache there are more keys than queries: the diagonal begins that much further right.
    return torch.ones(queries, keys, device=device, dtype=torch.bool).tril(keys - queries)


def causal_attention(
    Q: Float[Tensor, "... queries d_k"],
    K: Float[Tensor, "... keys d_k"],
    V: Float[Tensor, "... keys d_v"],
) -> Float[Tensor, "... queries d_v"]:
    """Attention in which no query sees a later key; the queries are the last positions."""
    # (queries, keys): one mask for all sequences and heads, broadcast over the axes before it.
    mask = causal_mask(Q.shape[-2], K.shape[-2], Q.device)
    return scaled_dot_product_attention(Q, K, V, mask)


def cross_entropy(
    logits: Float[Tensor, "... vocab"], targets: Int[Tensor, "..."]
) -> Float[Tensor, ""]:
    """The mean of -log softmax(logits)[target] in nats, over all batch dimensions.

    log softmax is x - max - log Σ exp(x - max): neither exp nor log can overflow.
    """
    check_in_range(targets, logits.shape[-1], "target", "the vocabulary")
    high = logits.to(float_type(logits))
    # log(softmax(x)) in two steps would take the log of 0 where exp underflows.
    high = high - high.amax(-1, keepdim=True)
    # One logit per target: `gather` wants an index for each row, (..., 1).
    chosen = high.gather(-1, targets.long().unsqueeze(-1)).squeeze(-1)
    # -log softmax(x)[target] = log Σ exp(x) - x[target], here with x shifted by its maximum.
    return (high.exp().sum(-1).log() - chosen).mean()


def perplexity(losses: Float[Tensor, "..."]) -> Float[Tensor, ""]:
    """exp of the mean loss: how many equally likely tokens the model hesitates between."""
    # The mean first: a mean of perplexities would be ruled by the worst of them.
    return losses.mean().exp()


# --- What the parts need besides their idea -----------------------------------------------------


class RotationTable(nn.Module):
    """The cosine and the sine of RoPE's angles, (seq, pair, 2), in float32 at least.

    `angles`, (seq, pair), are in float64: in float32, position 1,000 would be off by a few 1e-5.
    """

    turns: Tensor

    def __init__(self, angles: Float[Tensor, "seq pair"], device: Device, dtype: Dtype) -> None:
        super().__init__()
        self.angles = angles  # not a buffer, so that it is neither moved nor rounded
        empty = torch.empty(0, device=device, dtype=dtype)
        # A buffer, so that `.to(device)` takes it along; not persistent, so that the state dict has
        # the weights of the course's model and nothing else.
        self.register_buffer("turns", empty, persistent=False)
        self.fill()

    def fill(self) -> None:
        """Make the table, on its present device and in its type, but at least in float32."""
        turns = torch.stack((self.angles.cos(), self.angles.sin()), dim=-1)
        self.turns = turns.to(self.turns.device, float_type(self.turns))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "RotationTable":
        """Fill the table again after `.to(...)` and the like: bfloat16 would spoil it."""
        # In the slower pairs, cosines of neighbouring positions differ by less than it can tell.
        super()._apply(fn, recurse)
        self.fill()
        return self

    def forward(
        self, length: int, token_positions: Int[Tensor, "... seq"] | None, first: int
    ) -> Float[Tensor, "... seq pair 2"]:
        """The rows of these positions, or of `length` positions from `first` on."""
        available = len(self.turns)
        if token_positions is not None:
            check_in_range(token_positions, available, "position", "max_seq_len")
            return self.turns[token_positions]
        if first + length > available:
            raise ValueError(
                f"a sequence of {first + length:,} is longer than max_seq_len={available:,};"
                " shorten it, or raise max_seq_len"
            )
        return self.turns[first : first + length]


def check_even(d_k: int) -> int:
    """Return d_k, or raise ValueError if it is odd."""
    if d_k % 2:
        raise ValueError(f"d_k={d_k} is odd, but RoPE rotates values in pairs; try {d_k + 1}")
    return d_k


def check_in_range(numbers: Tensor, size: int, what: str, holder: str) -> None:
    """Raise ValueError unless all are from 0 to size - 1.

    It checks only on the CPU: on a GPU, looking at the numbers would wait for all work in its
    queue, and torch itself fails there with a device-side assertion.
    """
    if numbers.device.type != "cpu" or torch.compiler.is_compiling() or not numbers.numel():
        return
    # `long`, because torch finds no largest uint16.
    low, high = (number.item() for number in numbers.long().aminmax())
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        raise ValueError(
            f"{what} {wrong} is outside {holder}, which allows {what}s from 0 to {size - 1:,}"
        )


def float_type(x: Tensor) -> torch.dtype:
    """float32 for half precision, else the type of x. Raises: ValueError unless it is floats."""
    if not x.is_floating_point():
        raise ValueError(f"expected a tensor of floats, got {x.dtype}: convert it by `.float()`")
    # Not `.float()`: that would round float64.
    return torch.promote_types(x.dtype, torch.float32)
