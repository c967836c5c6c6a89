"""Wrong layers and functions: each has one mistake, which the check must name.

Most usual mistakes are in the catalogues, and each of those is tried (`test_catalogue`). Here are
some as learners write them, and what no edit of the reference shows.
"""

import math

import torch
from torch import nn

from attempts import transformer_right
from attempts.transformer_lists import almost, mistake
from attempts.transformer_right import drawn, silu
from attempts.transformer_right_functions import softmax


def weight(make):
    """A class of Linear whose weight is made by `make(d_out, d_in, std)`."""

    class Linear(transformer_right.Linear):
        def __init__(self, d_in, d_out):
            super().__init__(d_in, d_out)
            std = math.sqrt(2 / (d_in + d_out))
            self.weight = nn.Parameter(make(d_out, d_in, std))

    return Linear


def cut(d_out, d_in, std):
    return nn.init.trunc_normal_(torch.empty(d_out, d_in), std=std, a=-3 * std, b=3 * std)


for make, words in (
    (lambda o, i, std: torch.randn(o, i), "is 1 (plain `randn`)"),
    (lambda o, i, std: torch.zeros(o, i), "the same"),
    (lambda o, i, std: torch.rand(o, i), "mean is not 0"),
    (lambda o, i, std: (torch.rand(o, i) * 2 - 1) * std, "uniform"),
    (lambda o, i, std: cut(o, i, std / 2**0.5), "√(1 / (d_in + d_out))"),
    (lambda o, i, std: cut(o, i, std**2), "the root is missing"),
    (lambda o, i, std: cut(o, i, math.sqrt(2 / i)), "2 / d_in"),
    (lambda o, i, std: cut(o, i, math.sqrt(1 / i)), "1 / d_in"),
    (lambda o, i, std: cut(o, i, 0.02), "GPT-2"),
    (lambda o, i, std: cut(o, i, 3 * std), "but is 0.23"),
):
    mistake("linear", words)(weight(make))
for make, words in (
    (lambda o, i, std: nn.init.trunc_normal_(torch.empty(o, i), std=std), "not truncated at 3"),
    (
        lambda o, i, std: nn.init.trunc_normal_(torch.empty(o, i), std=std, a=-2 * std, b=2 * std),
        "truncated too early",
    ),
    (lambda o, i, std: (torch.rand(o, i) * 2 - 1) * std * 3**0.5, "uniform"),
    (lambda o, i, std: torch.empty(o, i), "nothing fills"),
):
    almost("linear", words)(weight(make))


@mistake("linear", "is 1 (plain `randn`)")
class Transposed(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out))

    def forward(self, x):
        return x @ self.weight


@almost("linear", "stored transposed")
class TransposedAndDrawn(Transposed):
    def __init__(self, d_in, d_out):
        super().__init__(d_in, d_out)
        self.weight = nn.Parameter(cut(d_in, d_out, math.sqrt(2 / (d_in + d_out))))


@mistake("linear", "one number of axes only")
class OfMatrices(transformer_right.Linear):
    def forward(self, x):
        return torch.mm(x, self.weight.t())


@mistake("linear", "no bias")
class Bias(transformer_right.Linear):
    def __init__(self, d_in, d_out):
        super().__init__(d_in, d_out)
        self.bias = nn.Parameter(torch.zeros(d_out))


@mistake("linear", "not from scratch")
class FromTorch(nn.Linear):
    def __init__(self, d_in, d_out):
        super().__init__(d_in, d_out, bias=False)
        self.weight = drawn(d_out, d_in)


@mistake("linear", "ready `linear`")
class Functional(transformer_right.Linear):
    def forward(self, x):
        return nn.functional.linear(x, self.weight)


@mistake("linear", "Wrap the tensor in an `nn.Parameter`")
class NoParameter(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = cut(d_out, d_in, 1)

    def forward(self, x):
        return x @ self.weight.T


@mistake("linear", "super().__init__()")
class NoInit(nn.Module):
    def __init__(self, d_in, d_out):
        self.weight = nn.Parameter(torch.randn(d_out, d_in))


@mistake("linear", "not a torch module")
class Plain:
    def __init__(self, d_in, d_out):
        self.weight = torch.randn(d_out, d_in)


@mistake("linear", "cuts off the gradient")
class Detached(transformer_right.Linear):
    def forward(self, x):
        return x @ self.weight.detach().T


@mistake("linear", "the gradient that reaches `weight` is not")
class HalfDetached(transformer_right.Linear):
    def forward(self, x):
        return x @ (self.weight + self.weight.detach()).T / 2


@mistake("linear", "a tuple")
class Tuple(transformer_right.Linear):
    def forward(self, x):
        return super().forward(x), self.weight


@mistake("embedding", "should be 1, but is √(2 / (d_in + d_out))")
class SmallTable(transformer_right.Embedding):
    def __init__(self, n, d):
        super().__init__(n, d)
        self.weight = drawn(n, d)


@almost("embedding", "not from scratch")
class TorchTable(nn.Embedding):
    pass


# Norms and feed-forward layers.


@mistake("rmsnorm", "ready `rms_norm`")
class FunctionalNorm(transformer_right.RMSNorm):
    def forward(self, x):
        high, gain = x.float(), self.weight.float()
        return nn.functional.rms_norm(high, gain.shape, gain, self.eps).to(x.dtype)


@mistake("positionwise_feedforward", "ready `silu`")
class ReadySilu(transformer_right.SwiGLU):
    def forward(self, x):
        return self.w2(nn.SiLU()(self.w1(x)) * self.w3(x))


@almost("positionwise_feedforward", "It contains NaN")
class Overflowing(transformer_right.SwiGLU):
    def forward(self, x):
        gate = self.w1(x)
        return self.w2(gate * gate.exp() / (1 + gate.exp()) * self.w3(x))


@mistake("positionwise_feedforward", "hidden from torch")
class PlainList(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        right = transformer_right.SwiGLU(d_model, d_ff)
        self.parts = [right.w1, right.w2, right.w3]

    def forward(self, x):
        w1, w2, w3 = self.parts
        return w2(silu(w1(x)) * w3(x))


@mistake("positionwise_feedforward", "has another parameter's name")
class SwappedNames(transformer_right.SwiGLU):
    def __init__(self, d_model, d_ff):
        super().__init__(d_model, d_ff)
        self.w2, self.w3 = self.w3, self.w2

    def forward(self, x):
        return self.w3(silu(self.w1(x)) * self.w2(x))


@mistake("positionwise_feedforward", "`d_ff`")
class NoWidth(transformer_right.SwiGLU):
    def __init__(self, d_model, device=None, dtype=None):
        super().__init__(d_model, d_model, device, dtype)


# Functions.


def shares(powers, dim):
    return powers / powers.sum(dim, keepdim=True)


for words, wrong in (
    ("values and their indices", lambda x, dim: shares((x - torch.max(x, dim)).exp(), dim)),
    ("cuts off the gradient", lambda x, dim: torch.from_numpy(softmax(x.detach(), dim).numpy())),
    ("numpy does not track", lambda x, dim: softmax(x.detach(), dim).numpy()),
    ("ready `softmax`", lambda x, dim: nn.functional.softmax(x, dim=dim)),
):
    mistake("softmax", words)(wrong)


@mistake("softmax", "in place")
def in_place(x, dim):
    powers = torch.exp(x - x.amax(dim, keepdim=True))
    found = shares(powers, dim)
    powers.zero_()
    return found


@mistake("softmax", "the input tensor is changed")
def overwritten(x, dim):
    x -= x.max(dim, keepdim=True).values
    return shares(torch.exp(x), dim)


almost("softmax", "ready `softmax`")(torch.softmax)


def attention_with(words, masked=lambda s, m: s.masked_fill(~m, -math.inf), scores=None, axis=-1):
    """Attention with another mask, other scores, or softmax along another axis."""

    def wrong(Q, K, V, mask=None):
        found = scores(Q, K) if scores else Q @ K.mT / Q.shape[-1] ** 0.5
        return softmax(found if mask is None else masked(found, mask), axis) @ V

    mistake("scaled_dot_product_attention", words)(wrong)


def hidden_by_index(scores, mask):
    scores[~mask] = -math.inf
    return scores


attention_with("`~mask` inverts a mask", masked=lambda s, m: s + (1 - m) * -1e9)
attention_with("take a tensor with a single element", masked=lambda s, m: s if m else s - 1e9)
attention_with("the number used for -inf", masked=lambda s, m: s.masked_fill(~m, -9.0))
attention_with("serves the whole batch", masked=hidden_by_index)
attention_with("The last axis is -1", axis=3)
attention_with(
    "two leading dimensions", scores=lambda Q, K: torch.bmm(Q, K.mT) / Q.shape[-1] ** 0.5
)
attention_with("one number of axes only", scores=lambda Q, K: torch.einsum("bhqd,bhkd->bhqk", Q, K))


@almost("scaled_dot_product_attention", "`mask=None` must work")
def mask_wanted(Q, K, V, mask):
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    return softmax(torch.where(mask, scores, -math.inf), -1) @ V


@mistake("scaled_dot_product_attention", "ready `scaled_dot_product_attention`")
def ready_attention(Q, K, V, mask=None):
    return nn.functional.scaled_dot_product_attention(Q, K, V, mask)


def logs(logits):
    return logits - logits.logsumexp(-1, keepdim=True)


def chosen(values, targets):
    return values.gather(-1, targets[..., None])[..., 0]


for words, wrong in (
    ("a sign differs", lambda x, y: chosen(logs(x), y).mean()),
    ("`.item()`", lambda x, y: -chosen(logs(x), y).mean().item()),
    ("ready `cross", lambda x, y: nn.functional.cross_entropy(x.flatten(0, -2), y.flatten())),
):
    mistake("cross_entropy", words)(wrong)


@mistake("scaled_dot_product_attention", "more than one value after `return`")
def attention_and_weights(q, k, v, mask=None):
    scores = q @ k.mT / k.shape[-1] ** 0.5
    weights = softmax(scores if mask is None else scores.masked_fill(~mask, -math.inf), -1)
    return weights @ v, weights
