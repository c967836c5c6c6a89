"""Wrong norms and feed-forward layers: each has one mistake, which the check must name."""

import torch
from torch import nn

from attempts import transformer_right
from attempts.transformer_lists import almost, mistake
from attempts.transformer_right import silu


class Norm(transformer_right.RMSNorm):
    """RMSNorm with a step to change."""

    def root(self, x):
        return (x.square().mean(-1, keepdim=True) + self.eps).sqrt()

    def forward(self, x):
        high = x.float()
        return (high / self.root(high) * self.weight).to(x.dtype)


def squares(x, axis=-1, **kept):
    return x.square().mean(axis, **(kept or {"keepdim": True}))


for words, root in (
    ("ε is outside the root", lambda self, x: squares(x).sqrt() + self.eps),
    ("ε is missing", lambda self, x: squares(x).sqrt()),
    ("`eps` that is passed in is not used", lambda self, x: (squares(x) + 1e-5).sqrt()),
    ("lower limit", lambda self, x: squares(x).clamp(min=self.eps).sqrt()),
    ("square root is missing", lambda self, x: squares(x) + self.eps),
    ("summed, not", lambda self, x: (x.square().sum(-1, keepdim=True) + self.eps).sqrt()),
    ("wrong axis", lambda self, x: (squares(x, 0) + self.eps).sqrt()),
    ("whole tensor", lambda self, x: (x.square().mean() + self.eps).sqrt()),
    ("keepdim=True", lambda self, x: (squares(x, keepdim=False) + self.eps).sqrt()),
    (
        "standard deviation",
        lambda self, x: (x.var(-1, keepdim=True, unbiased=False) + self.eps).sqrt(),
    ),
):
    mistake("rmsnorm", words)(type("Changed", (Norm,), {"root": root}))


@mistake("rmsnorm", "LayerNorm")
class LayerNorm(Norm):
    def forward(self, x):
        return super().forward(x.float() - x.float().mean(-1, keepdim=True)).to(x.dtype)


@mistake("rmsnorm", "gain is forgotten")
class NoGain(Norm):
    def forward(self, x):
        return (x.float() / self.root(x.float())).to(x.dtype)


@mistake("rmsnorm", "1 + gain")
class OnePlusGain(Norm):
    def forward(self, x):
        return (x.float() / self.root(x.float()) * (1 + self.weight)).to(x.dtype)


@mistake("rmsnorm", "gain is added")
class AddedGain(Norm):
    def forward(self, x):
        return (x.float() / self.root(x.float()) + self.weight).to(x.dtype)


@mistake("rmsnorm", "upcast")
class NoUpcast(Norm):
    def forward(self, x):
        return x / self.root(x) * self.weight


@mistake("rmsnorm", "`.to(in_dtype)`")
class NotRestored(Norm):
    def forward(self, x):
        return super().forward(x.float())


@mistake("rmsnorm", "default of `eps` is 1e-5")
class OtherDefault(Norm):
    def __init__(self, d_model, eps=1e-6):
        super().__init__(d_model, eps)


@mistake("rmsnorm", "does not start at 1")
class DrawnGain(Norm):
    def __init__(self, d_model, eps=1e-5):
        super().__init__(d_model, eps)
        self.weight = nn.Parameter(torch.randn(d_model))


@mistake("rmsnorm", "does not start at 1")
class ZeroGain(Norm):
    def __init__(self, d_model, eps=1e-5):
        super().__init__(d_model, eps)
        self.weight = nn.Parameter(torch.zeros(d_model))


@mistake("rmsnorm", "ready `rms_norm`")
class FunctionalNorm(Norm):
    def forward(self, x):
        high, gain = x.float(), self.weight.float()
        return nn.functional.rms_norm(high, gain.shape, gain, self.eps).to(x.dtype)


for words, forward in (
    ("W1 and W3 are swapped", lambda self, x: self.w2(silu(self.w3(x)) * self.w1(x))),
    ("after W2 instead of before", lambda self, x: self.w2(silu(self.w1(x))) * self.w3(x)),
    ("sigmoid(x) alone", lambda self, x: self.w2(torch.sigmoid(self.w1(x)) * self.w3(x))),
    ("a ReLU", lambda self, x: self.w2(torch.relu(self.w1(x)) * self.w3(x))),
    ("a GELU", lambda self, x: self.w2(nn.functional.gelu(self.w1(x)) * self.w3(x))),
    ("One matrix is used twice", lambda self, x: self.w2(silu(self.w1(x)) * self.w1(x))),
    ("x is added inside", lambda self, x: x + self.w2(silu(self.w1(x)) * self.w3(x))),
    ("no gate", lambda self, x: self.w2(silu(self.w1(x))) + 0 * self.w3(x).sum()),
    ("gate is added", lambda self, x: self.w2(silu(self.w1(x)) + self.w3(x))),
    ("after the product", lambda self, x: self.w2(silu(self.w1(x) * self.w3(x)))),
    ("W3 x too", lambda self, x: self.w2(silu(self.w1(x)) * silu(self.w3(x)))),
    ("no SiLU", lambda self, x: self.w2(self.w1(x) * self.w3(x))),
    ("ready `silu`", lambda self, x: self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))),
    ("ready `silu`", lambda self, x: self.w2(nn.SiLU()(self.w1(x)) * self.w3(x))),
):
    changed = type("Changed", (transformer_right.SwiGLU,), {"forward": forward})
    mistake("positionwise_feedforward", words)(changed)


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


@mistake("positionwise_feedforward", "wrong shape")
class OwnWidth(transformer_right.SwiGLU):
    def __init__(self, d_model, d_ff):
        super().__init__(d_model, 64)


@mistake("positionwise_feedforward", "has another parameter's name")
class SwappedNames(transformer_right.SwiGLU):
    def __init__(self, d_model, d_ff):
        super().__init__(d_model, d_ff)
        self.w2, self.w3 = self.w3, self.w2

    def forward(self, x):
        return self.w3(silu(self.w1(x)) * self.w2(x))


@mistake("positionwise_feedforward", "Missing: `w3.weight`")
class TwoMatrices(transformer_right.SwiGLU):
    def __init__(self, d_model, d_ff):
        super().__init__(d_model, d_ff)
        del self.w3

    def forward(self, x):
        return self.w2(silu(self.w1(x)))


@mistake("positionwise_feedforward", "`d_ff`")
class NoWidth(transformer_right.SwiGLU):
    def __init__(self, d_model, device=None, dtype=None):
        super().__init__(d_model, d_model, device, dtype)
