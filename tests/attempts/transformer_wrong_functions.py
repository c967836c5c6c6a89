"""Wrong functions of tensors: each has one mistake, which the check must name."""

import math

import torch
from torch import nn

from attempts import transformer_right_functions
from attempts.transformer_lists import almost, mistake
from attempts.transformer_right_functions import attention, softmax


def shares(powers, dim):
    return powers / powers.sum(dim, keepdim=True)


def shifted(x, dim):
    return x - x.amax(dim, keepdim=True)


for words, wrong in (
    ("overflows", lambda x, dim: shares(x.exp(), dim)),
    ("maximum is that of the whole tensor", lambda x, dim: shares((x - x.max()).exp(), dim)),
    ("`dim` is ignored", lambda x, dim: softmax(x, -1)),
    ("`dim` is ignored", lambda x, dim: softmax(x, 0)),
    ("keepdim=True", lambda x, dim: shifted(x, dim).exp() / shifted(x, dim).exp().sum(dim)),
    (
        "sum is that of the whole",
        lambda x, dim: shifted(x, dim).exp() / shifted(x, dim).exp().sum(),
    ),
    ("base e", lambda x, dim: shares(2 ** shifted(x, dim), dim)),
    ("logarithm of softmax", lambda x, dim: softmax(x, dim).log()),
    ("exp comes first", lambda x, dim: x / x.sum(dim, keepdim=True)),
    ("values and their indices", lambda x, dim: shares((x - torch.max(x, dim)).exp(), dim)),
    ("cuts off the gradient", lambda x, dim: torch.from_numpy(softmax(x.detach(), dim).numpy())),
    ("numpy does not track", lambda x, dim: softmax(x.detach(), dim).numpy()),
    ("ready `softmax`", lambda x, dim: nn.functional.softmax(x, dim=dim)),
):
    mistake("softmax", words)(wrong)


@mistake("softmax", "in place")
def in_place(x, dim):
    powers = torch.exp(shifted(x, dim))
    found = shares(powers, dim)
    powers.zero_()
    return found


@mistake("softmax", "the input tensor is changed")
def overwritten(x, dim):
    x -= x.max(dim, keepdim=True).values
    return shares(torch.exp(x), dim)


almost("softmax", "ready `softmax`")(torch.softmax)


def attention_with(words, **changes):
    """Attention with a change: `scale(Q, K, V)`, `masked(scores, mask)` or `weigh(scores)`."""

    def wrong(Q, K, V, mask=None):
        scores = Q @ K.mT / changes.get("scale", lambda Q, K, V: Q.shape[-1] ** 0.5)(Q, K, V)
        if mask is not None:
            hide = changes.get("masked", lambda s, m: s.masked_fill(~m, -math.inf))
            scores = hide(scores, mask)
        return changes.get("weigh", lambda s: softmax(s, -1))(scores) @ V

    mistake("scaled_dot_product_attention", words)(wrong)


attention_with("not scaled", scale=lambda Q, K, V: 1)
attention_with("not by its square root", scale=lambda Q, K, V: Q.shape[-1])
attention_with("Scaled by another number", scale=lambda Q, K, V: V.shape[-1] ** 0.5)
attention_with("Scaled by another number", scale=lambda Q, K, V: K.shape[-2] ** 0.5)
attention_with("multiplied by √d_k", scale=lambda Q, K, V: Q.shape[-1] ** -0.5)
attention_with("mask is inverted", masked=lambda s, m: s.masked_fill(m, -math.inf))
attention_with("mask is inverted", masked=lambda s, m: s.masked_fill(m, -1e9))
attention_with("exp(0) is 1", masked=lambda s, m: s * m)
attention_with("exp(0) is 1", masked=lambda s, m: s.masked_fill(~m, 1e-9))
attention_with("as 0 and 1", masked=lambda s, m: s + m)
attention_with("mask is not used", masked=lambda s, m: s)
attention_with("wrong softmax axis", weigh=lambda s: softmax(s, -2))
attention_with("wrong softmax axis", weigh=lambda s: softmax(s, 0))
attention_with("softmax is missing", weigh=lambda s: s)
attention_with("Scaled by another number", scale=lambda Q, K, V: Q.shape[-1] * 0.5)
attention_with("0 times -inf is NaN", masked=lambda s, m: s + (~m).float() * -math.inf)
attention_with("mask is transposed", masked=lambda s, m: s.masked_fill(~m.mT, -math.inf))
attention_with("`~mask` inverts a mask", masked=lambda s, m: s + (1 - m) * -1e9)
attention_with("take a tensor with a single element", masked=lambda s, m: s if m else s - 1e9)
attention_with("the number used for -inf", masked=lambda s, m: s.masked_fill(~m, -9.0))
attention_with("The last axis is -1", weigh=lambda s: softmax(s, 3))
attention_with("overflows", weigh=lambda s: s.exp() / s.exp().sum(-1, keepdim=True))


@mistake("scaled_dot_product_attention", "after the softmax")
def masked_late(Q, K, V, mask=None):
    weights = softmax(Q @ K.mT / Q.shape[-1] ** 0.5, -1)
    return (weights if mask is None else weights * mask) @ V


@mistake("scaled_dot_product_attention", "two leading dimensions")
def three_axes_only(Q, K, V, mask=None):
    scores = Q @ K.mT if Q.ndim == 2 else torch.bmm(Q, K.mT)
    scores = scores / Q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return softmax(scores, -1) @ V


@mistake("scaled_dot_product_attention", "though no mask is given")
def causal_without_a_mask(Q, K, V, mask=None):
    if mask is None:
        mask = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool).tril()
    return attention(Q, K, V, mask)


@almost("scaled_dot_product_attention", "`mask=None` must work")
def mask_wanted(Q, K, V, mask):
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    return softmax(torch.where(mask, scores, -math.inf), -1) @ V


@mistake("scaled_dot_product_attention", "serves the whole batch")
def mask_as_an_index(Q, K, V, mask=None):
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    if mask is not None:
        scores[~mask] = -math.inf
    return softmax(scores, -1) @ V


def attend(scores, V, mask):
    hidden = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    return softmax(hidden, -1) @ V


for words, wrong in (
    ("Queries and keys are swapped", lambda Q, K, V, mask=None: attention(K, Q, V, mask)),
    ("K is not transposed", lambda Q, K, V, mask=None: softmax(Q @ K, -1) @ V),
    ("with `.T`, which reverses all axes", lambda Q, K, V, mask=None: softmax(Q @ K.T, -1) @ V),
    (
        "counted from the front",
        lambda Q, K, V, mask=None: attend(Q / 2 @ K.transpose(1, 2), V, mask),  # d_k is mostly 4
    ),
    (
        "one number of axes only",
        lambda Q, K, V, mask=None: attend(torch.einsum("bhqd,bhkd->bhqk", Q, K), V, mask),
    ),
    ("before they are multiplied by V", lambda Q, K, V, mask=None: softmax(Q @ K.mT, -1).mT @ V),
    (
        "softmax comes before the scale",
        lambda Q, K, V, mask=None: attend(Q @ K.mT, V / Q.shape[-1] ** 0.5, mask),
    ),
    (
        "ready `scaled_dot_product_attention`",
        lambda Q, K, V, mask=None: nn.functional.scaled_dot_product_attention(Q, K, V, mask),
    ),
):
    mistake("scaled_dot_product_attention", words)(wrong)


def logs(logits):
    return logits - logits.logsumexp(-1, keepdim=True)


def chosen(values, targets):
    return values.gather(-1, targets[..., None])[..., 0]


def with_one_maximum(logits, targets):
    logits = logits - logits.max()
    return (logits.exp().sum(-1).log() - chosen(logits, targets)).mean()


for words, wrong in (
    ("summed, not averaged", lambda x, y: -chosen(logs(x), y).sum()),
    ("log of a softmax", lambda x, y: -chosen(softmax(x, -1), y).log().mean()),
    ("A small number", lambda x, y: -(chosen(softmax(x, -1), y) + 1e-9).log().mean()),
    ("exp of large", lambda x, y: (x.exp().sum(-1).log() - chosen(x, y)).mean()),
    ("softmax before the loss", lambda x, y: -chosen(logs(softmax(x, -1)), y).mean()),
    ("one of several dimensions", lambda x, y: -chosen(logs(x), y).sum() / len(y)),
    ("one of several dimensions", lambda x, y: -chosen(logs(x), y).mean(0)),
    ("one loss per target", lambda x, y: -chosen(logs(x), y)),
    ("a sign differs", lambda x, y: chosen(logs(x), y).mean()),
    ("base 2", lambda x, y: -chosen(logs(x), y).mean() / math.log(2)),
    ("wrong axis", lambda x, y: -chosen(x - x.logsumexp(0, keepdim=True), y).mean()),
    ("This is the perplexity", lambda x, y: (-chosen(logs(x), y).mean()).exp()),
    ("every target of each row", lambda x, y: -logs(x)[:, y].mean()),
    ("from only one of the two", lambda x, y: -(chosen(logs(x), y) + x.amax(-1)).mean()),
    ("maximum is that of all", with_one_maximum),
    ("as padding", lambda x, y: -chosen(logs(x), y)[y != 0].mean()),
    ("vocabulary too", lambda x, y: -(logs(x) * nn.functional.one_hot(y, x.shape[-1])).mean()),
    ("log Σ exp of all logits is missing", lambda x, y: -chosen(x, y).mean()),
    ("`.item()`", lambda x, y: transformer_right_functions.cross_entropy(x, y).item()),
    ("ready `cross", lambda x, y: nn.functional.cross_entropy(x.flatten(0, -2), y.flatten())),
):
    mistake("cross_entropy", words)(wrong)
for one_axis in (
    lambda x, y: -logs(x)[torch.arange(len(y)), y].mean(),
    lambda x, y: -logs(x).gather(1, y.unsqueeze(1)).mean(),
):
    almost("cross_entropy", "one batch dimension only")(one_axis)
