"""The checks of chapter 3 and of the loss: one plain Transformer, and what goes wrong in it.

The functions of the first part are the reference of every problem: a problem takes those that it
needs (`Program`), and the usual mistakes of a small part are looked for in the parts it is used in.
"""

import math
from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from workbook.checks.tensors import Case

# The reference: a Transformer in float64. `weights` go by the names of the course.

Weights = Mapping[str, Tensor]


def project(x: Tensor, weight: Tensor) -> Tensor:
    """A linear layer: the weight has one row for each output."""
    return x @ weight.T


def look_up(token_ids: Tensor, weight: Tensor) -> Tensor:
    """An embedding: the rows that the ids name."""
    return weight[token_ids]


def rms_norm(x: Tensor, gain: Tensor, eps: float = 1e-5) -> Tensor:
    """Each vector by its root mean square, times the gain."""
    x = x.double()
    mean_square = x.square().mean(-1, keepdim=True)
    return x / (mean_square + eps).sqrt() * gain


def silu(x: Tensor) -> Tensor:
    """x · sigmoid(x)."""
    return x * torch.sigmoid(x)


def swiglu(x: Tensor, weights: Weights) -> Tensor:
    """The feed-forward layer: W2 (SiLU(W1 x) ⊙ W3 x)."""
    w1, w2, w3 = (weights[f"w{number}.weight"] for number in (1, 2, 3))
    gate, up = silu(project(x, w1)), project(x, w3)
    return project(gate * up, w2)


def rotate(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """RoPE: pair k = 0, 1, ... of neighbours turned by position · theta^(-2k / d_k)."""
    d_k = x.shape[-1]
    k = torch.arange(d_k // 2, dtype=torch.float64)
    frequency = theta ** (-2 * k / d_k)
    angles = positions.unsqueeze(-1) * frequency
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    first = even * cos - odd * sin
    second = even * sin + odd * cos
    return torch.stack((first, second), -1).flatten(-2)


def soft_max(x: Tensor, dim: int) -> Tensor:
    """Positive numbers that add up to 1 along `dim`; the shift keeps exp from overflowing."""
    powers = (x - x.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True)


def attention(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None) -> Tensor:
    """Scaled dot-product attention; a query sees the keys where its row of the mask is True."""
    scores = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    shares = soft_max(scores, -1)
    return shares @ V


def causal(length: int) -> Tensor:
    """The mask in which a position sees itself and what comes before."""
    return torch.ones(length, length, dtype=torch.bool).tril()


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(..., seq, d_model) as (..., heads, seq, d_head)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)


def merge_heads(x: Tensor) -> Tensor:
    """(..., heads, seq, d_head) as (..., seq, d_model)."""
    return x.transpose(-2, -3).flatten(-2)


def multihead(
    x: Tensor,
    weights: Weights,
    num_heads: int,
    theta: float | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Causal self-attention; with RoPE where there is a theta. Positions may have a batch axis."""
    q, k, v, output = (weights[f"{role}_proj.weight"] for role in ("q", "k", "v", "output"))
    Q, K, V = (split_heads(project(x, weight), num_heads) for weight in (q, k, v))
    if theta is not None:
        places = torch.arange(x.shape[-2]) if positions is None else positions.unsqueeze(-2)
        Q, K = rotate(Q, places, theta), rotate(K, places, theta)
    gathered = attention(Q, K, V, causal(Q.shape[-2]))
    return project(merge_heads(gathered), output)


def inside(weights: Weights, part: str) -> Weights:
    """The weights of a part, by their names inside it."""
    return {
        name.removeprefix(part): weight for name, weight in weights.items() if name.startswith(part)
    }


def block(x: Tensor, weights: Weights, num_heads: int, theta: float | None = None) -> Tensor:
    """A pre-norm block: attention and feed-forward layer, each added to what came in."""
    ln1, ln2 = (partial(rms_norm, gain=weights[f"ln{number}.weight"]) for number in (1, 2))
    attn = partial(multihead, weights=inside(weights, "attn."), num_heads=num_heads, theta=theta)
    ffn = partial(swiglu, weights=inside(weights, "ffn."))
    x = x + attn(ln1(x))
    return x + ffn(ln2(x))


def language_model(
    token_ids: Tensor, weights: Weights, num_layers: int, num_heads: int, theta: float
) -> Tensor:
    """The logits at each position."""
    x = look_up(token_ids, weights["token_embeddings.weight"])
    numbers = range(num_layers)
    for number in numbers:
        x = block(x, inside(weights, f"layers.{number}."), num_heads, theta)
    x = rms_norm(x, weights["ln_final.weight"])
    return project(x, weights["lm_head.weight"])


def mean_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean of -log softmax(logits)[target] over all targets, in nats."""
    logs = logits - logits.logsumexp(-1, keepdim=True)
    chosen = logs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return -chosen.mean()


# What each problem makes of a case by these functions: the last one of its program.


def linear_of(case: Case) -> Tensor:
    return project(case.high["x"], case.high["weight"])


def embedding_of(case: Case) -> Tensor:
    return look_up(case.high["token_ids"], case.high["weight"])


def norm_of(case: Case) -> Tensor:
    gain, eps = case.weights["weight"].to(case.dtype), case.arguments.get("eps", 1e-5)
    return rms_norm(case.inputs["x"], gain, eps)


def feed_forward_of(case: Case) -> Tensor:
    return swiglu(case.high["x"], case.high)


def rope_of(case: Case) -> Tensor:
    return rotate(case.high["x"], case.high["token_positions"], case.arguments["theta"])


def softmax_of(case: Case) -> Tensor:
    return soft_max(case.high["x"], case.high["dim"])


def attention_of(case: Case) -> Tensor:
    return attention(*(case.high[name] for name in ("Q", "K", "V", "mask")))


def loss_of(case: Case) -> Tensor:
    return mean_loss(case.high["logits"], case.high["targets"])


def multihead_of(case: Case) -> Tensor:
    heads, theta = case.arguments["num_heads"], case.arguments.get("theta")
    return multihead(case.high["x"], case.high, heads, theta, case.high.get("token_positions"))


def block_of(case: Case) -> Tensor:
    return block(
        case.high["x"], case.high, case.arguments["num_heads"], case.arguments.get("theta")
    )


def model_of(case: Case) -> Tensor:
    layers, heads, theta = (case.arguments[n] for n in ("num_layers", "num_heads", "rope_theta"))
    return language_model(case.high["token_ids"], case.high, layers, heads, theta)
