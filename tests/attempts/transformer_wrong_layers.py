"""Wrong norms and feed-forward layers: each has one mistake, which the check must name."""

import torch
from torch import nn

from attempts import transformer_right
from attempts.transformer_lists import mistake
from attempts.transformer_right import silu


class Norm(transformer_right.RMSNorm):
    """RMSNorm with a step to change."""

    def root(self, x):
        return (x.square().mean(-1, keepdim=True) + self.eps).sqrt()

    def forward(self, x):
        high = x.float()
        return (high / self.root(high) * self.weight).to(x.dtype)


def norm(words):
    """A decorator for a way to compute the root."""

    def add(root):
        mistake("rmsnorm", words)(type(root.__name__, (Norm,), {"root": root}))
        return root

    return add


@norm("ε is outside the root")
def epsilon_outside(self, x):
    return x.square().mean(-1, keepdim=True).sqrt() + self.eps


@norm("ε is missing")
def no_epsilon(self, x):
    return x.square().mean(-1, keepdim=True).sqrt()


@norm("`eps` that is handed in is not used")
def fixed_epsilon(self, x):
    return (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()


@norm("lower limit")
def clamped_epsilon(self, x):
    return x.square().mean(-1, keepdim=True).clamp(min=self.eps).sqrt()


@norm("square root is missing")
def no_root(self, x):
    return x.square().mean(-1, keepdim=True) + self.eps


@norm("summed, not averaged")
def summed(self, x):
    return (x.square().sum(-1, keepdim=True) + self.eps).sqrt()


@norm("wrong axis")
def first_axis(self, x):
    return (x.square().mean(0, keepdim=True) + self.eps).sqrt()


@norm("whole tensor")
def all_axes(self, x):
    return (x.square().mean() + self.eps).sqrt()


@norm("keepdim=True")
def lost_axis(self, x):
    return (x.square().mean(-1) + self.eps).sqrt()


@norm("standard deviation")
def deviation(self, x):
    return (x.var(-1, keepdim=True, unbiased=False) + self.eps).sqrt()


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


@mistake("rmsnorm", "upcast")
class NoUpcast(Norm):
    def forward(self, x):
        return x / self.root(x) * self.weight


@mistake("rmsnorm", "`.to(x.dtype)`")
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


def swiglu(words):
    """A decorator for another forward of SwiGLU."""

    def add(forward):
        cls = type(forward.__name__, (transformer_right.SwiGLU,), {"forward": forward})
        mistake("positionwise_feedforward", words)(cls)
        return forward

    return add


@swiglu("W1 and W3 are swapped")
def swapped(self, x):
    return self.w2(silu(self.w3(x)) * self.w1(x))


@swiglu("after W2 instead of before")
def gate_after(self, x):
    return self.w2(silu(self.w1(x))) * self.w3(x)


@swiglu("sigmoid(x) alone")
def sigmoid(self, x):
    return self.w2(torch.sigmoid(self.w1(x)) * self.w3(x))


@swiglu("a ReLU")
def relu(self, x):
    return self.w2(torch.relu(self.w1(x)) * self.w3(x))


@swiglu("a GELU")
def gelu(self, x):
    return self.w2(nn.functional.gelu(self.w1(x)) * self.w3(x))


@swiglu("no gate")
def no_gate(self, x):
    return self.w2(silu(self.w1(x))) + 0 * self.w3(x).sum()


@swiglu("gate is added")
def gate_added(self, x):
    return self.w2(silu(self.w1(x)) + self.w3(x))


@swiglu("after the product")
def after_product(self, x):
    return self.w2(silu(self.w1(x) * self.w3(x)))


@swiglu("W3 x too")
def both(self, x):
    return self.w2(silu(self.w1(x)) * silu(self.w3(x)))


@swiglu("no SiLU")
def no_activation(self, x):
    return self.w2(self.w1(x) * self.w3(x))


@swiglu("ready `silu`")
def functional_silu(self, x):
    return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


@swiglu("ready `silu`")
def module_silu(self, x):
    return self.w2(nn.SiLU()(self.w1(x)) * self.w3(x))


@mistake("positionwise_feedforward", "hidden from torch")
class PlainList(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        right = transformer_right.SwiGLU(d_model, d_ff)
        self.parts = [right.w1, right.w2, right.w3]

    def forward(self, x):
        w1, w2, w3 = self.parts
        return w2(silu(w1(x)) * w3(x))


@mistake("positionwise_feedforward", "another shape")
class OwnWidth(transformer_right.SwiGLU):
    def __init__(self, d_model, d_ff):
        super().__init__(d_model, 64)


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
