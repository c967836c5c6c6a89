"""Wrong linear layers and embeddings: each has one mistake, which the check must name."""

import math

import torch
from torch import nn

from attempts import transformer_right
from attempts.transformer_lists import almost, mistake
from attempts.transformer_right import drawn


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
    (lambda o, i, std: torch.randn(o, i) * std, "not truncated at 3"),
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


@mistake("linear", "`x @ W.T`")
class NoTranspose(transformer_right.Linear):
    def forward(self, x):
        return x @ self.weight


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


@mistake("linear", "a ReLU follows")
class WithRelu(transformer_right.Linear):
    def forward(self, x):
        return super().forward(x).relu()


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


@almost("embedding", "vocabulary, d_model")
class TransposedTable(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.weight = nn.Parameter(cut(d, n, 1))

    def forward(self, ids):
        return self.weight.T[ids]


@mistake("embedding", "columns are taken")
class Columns(TransposedTable):
    def forward(self, token_ids):
        return self.weight[token_ids]


@mistake("embedding", "off by one")
class NextRow(transformer_right.Embedding):
    def forward(self, ids):
        return self.weight[(ids + 1) % len(self.weight)]


@mistake("embedding", "√d_model")
class Scaled(transformer_right.Embedding):
    def forward(self, ids):
        return self.weight[ids] * self.weight.shape[1] ** 0.5


@mistake("embedding", "padding")
class Padding(transformer_right.Embedding):
    def forward(self, ids):
        return self.weight[ids] * (ids != 0)[..., None]


@mistake("embedding", "padding")
class PaddingLearnsNothing(transformer_right.Embedding):
    def forward(self, ids):
        rows = self.weight[ids]
        return torch.where((ids == 0)[..., None], rows.detach(), rows)


@mistake("embedding", "should be 1, but is √(2 / (d_in + d_out))")
class SmallTable(transformer_right.Embedding):
    def __init__(self, n, d):
        super().__init__(n, d)
        self.weight = drawn(n, d)


@almost("embedding", "not truncated at 3")
class Uncut(transformer_right.Embedding):
    def __init__(self, n, d):
        super().__init__(n, d)
        self.weight = nn.Parameter(torch.randn(n, d))


@almost("embedding", "not from scratch")
class TorchTable(nn.Embedding):
    pass
