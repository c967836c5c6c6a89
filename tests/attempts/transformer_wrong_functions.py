"""Wrong functions of tensors: each has one mistake, which the check must name."""

import math

import torch
from torch import nn

from attempts import transformer_right_functions
from attempts.transformer_lists import almost, mistake
from attempts.transformer_right_functions import attention, softmax


@mistake("softmax", "overflows")
def no_shift(x, dim):
    return x.exp() / x.exp().sum(dim, keepdim=True)


@mistake("softmax", "maximum is that of the whole tensor")
def global_maximum(x, dim):
    powers = (x - x.max()).exp()
    return powers / powers.sum(dim, keepdim=True)


@mistake("softmax", "`dim` is ignored")
def always_last(x, dim):
    return softmax(x, -1)


@mistake("softmax", "`dim` is ignored")
def always_first(x, dim):
    return softmax(x, 0)


@mistake("softmax", "keepdim=True")
def axis_lost(x, dim):
    powers = (x - x.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim)


@mistake("softmax", "sum is that of the whole tensor")
def one_sum(x, dim):
    powers = (x - x.amax(dim, keepdim=True)).exp()
    return powers / powers.sum()


@mistake("softmax", "power of e")
def base_two(x, dim):
    powers = 2 ** (x - x.amax(dim, keepdim=True))
    return powers / powers.sum(dim, keepdim=True)


@mistake("softmax", "logarithm of softmax")
def log_softmax(x, dim):
    return softmax(x, dim).log()


@mistake("softmax", "in place")
def in_place(x, dim):
    powers = torch.exp(x - x.amax(dim, keepdim=True))
    shares = powers / powers.sum(dim, keepdim=True)
    powers.zero_()
    return shares


@mistake("softmax", "the tensor that came in is changed")
def overwritten(x, dim):
    x -= x.max(dim, keepdim=True).values
    return torch.exp(x) / torch.exp(x).sum(dim, keepdim=True)


@mistake("softmax", "cuts the way back")
def through_numpy(x, dim):
    return torch.from_numpy(softmax(x.detach(), dim).numpy())


@mistake("softmax", "numpy keeps no track")
def numpy_softmax(x, dim):
    return softmax(x.detach(), dim).numpy()


@mistake("softmax", "ready `softmax`")
def torchs(x, dim):
    return nn.functional.softmax(x, dim=dim)


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
attention_with("Scaled by another size", scale=lambda Q, K, V: V.shape[-1] ** 0.5)
attention_with("Scaled by another size", scale=lambda Q, K, V: K.shape[-2] ** 0.5)
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
attention_with("overflows", weigh=lambda s: s.exp() / s.exp().sum(-1, keepdim=True))


@mistake("scaled_dot_product_attention", "after the softmax")
def masked_late(Q, K, V, mask=None):
    weights = softmax(Q @ K.mT / Q.shape[-1] ** 0.5, -1)
    return (weights if mask is None else weights * mask) @ V


@mistake("scaled_dot_product_attention", "Queries and keys are swapped")
def swapped_roles(Q, K, V, mask=None):
    return attention(K, Q, V, mask)


@mistake("scaled_dot_product_attention", "K is not transposed")
def no_transpose(Q, K, V, mask=None):
    return softmax(Q @ K, -1) @ V


@mistake("scaled_dot_product_attention", "ready `scaled_dot_product_attention`")
def torchs_attention(Q, K, V, mask=None):
    return nn.functional.scaled_dot_product_attention(Q, K, V, mask)


@mistake("scaled_dot_product_attention", "two leading dimensions")
def three_axes_only(Q, K, V, mask=None):
    scores = Q @ K.mT if Q.ndim == 2 else torch.bmm(Q, K.mT)
    scores = scores / Q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return softmax(scores, -1) @ V


def loss(words):
    return mistake("cross_entropy", words)


def logs(logits):
    return logits - logits.logsumexp(-1, keepdim=True)


def chosen(values, targets):
    return values.gather(-1, targets[..., None])[..., 0]


@loss("summed, not averaged")
def loss_summed(logits, targets):
    return -chosen(logs(logits), targets).sum()


@loss("log of a softmax")
def log_of_softmax(logits, targets):
    return -chosen(softmax(logits, -1), targets).log().mean()


@loss("Something small")
def small_added(logits, targets):
    return -(chosen(softmax(logits, -1), targets) + 1e-9).log().mean()


@loss("exp of large logits overflows")
def unshifted(logits, targets):
    return (logits.exp().sum(-1).log() - chosen(logits, targets)).mean()


@loss("softmax before the loss")
def twice(logits, targets):
    return -chosen(logs(softmax(logits, -1)), targets).mean()


@loss("one of several dimensions")
def first_dimension(logits, targets):
    return -chosen(logs(logits), targets).sum() / len(targets)


@loss("one of several dimensions")
def mean_of_first(logits, targets):
    return -chosen(logs(logits), targets).mean(0)


@loss("One loss for each target")
def no_mean(logits, targets):
    return -chosen(logs(logits), targets)


@loss("a sign differs")
def no_minus(logits, targets):
    return chosen(logs(logits), targets).mean()


@loss("base 2")
def bits(logits, targets):
    return -chosen(logs(logits), targets).mean() / math.log(2)


@loss("wrong axis")
def wrong_axis(logits, targets):
    return -chosen(logits - logits.logsumexp(0, keepdim=True), targets).mean()


@loss("perplexity")
def perplexity(logits, targets):
    return (-chosen(logs(logits), targets).mean()).exp()


@loss("every target of each row")
def all_targets(logits, targets):
    return -logs(logits)[:, targets].mean()


@loss("vocabulary too")
def mean_over_vocabulary(logits, targets):
    hot = nn.functional.one_hot(targets, logits.shape[-1])
    return -(logs(logits) * hot).mean()


@loss("log Σ exp of all logits is missing")
def no_total(logits, targets):
    return -chosen(logits, targets).mean()


@loss("several batch dimensions")
def one_dimension(logits, targets):
    return -logs(logits)[torch.arange(len(targets)), targets].mean()


@loss("`.item()`")
def plain_number(logits, targets):
    return transformer_right_functions.cross_entropy(logits, targets).item()


@loss("ready `cross_entropy`")
def torchs_loss(logits, targets):
    return nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())


@mistake("scaled_dot_product_attention", "half of d_k")
def half_for_root(Q, K, V, mask=None):
    scores = Q @ K.transpose(-1, -2) / (Q.shape[-1] * 0.5)
    return softmax(scores if mask is None else scores.masked_fill(~mask, -math.inf), -1) @ V


@mistake("scaled_dot_product_attention", "0 times -inf is NaN")
def zero_times_infinity(Q, K, V, mask=None):
    scores = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
    return softmax(scores if mask is None else scores + (~mask).float() * -math.inf, -1) @ V


almost("softmax", "ready `softmax`")(torch.softmax)


@mistake("softmax", "the values and their places")
def maximum_as_a_pair(x, dim):
    powers = (x - torch.max(x, dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True)


@mistake("softmax", "exp comes first")
def plain_shares(x, dim):
    return x / x.sum(dim, keepdim=True)


@mistake("scaled_dot_product_attention", "though no mask is given")
def causal_without_a_mask(Q, K, V, mask=None):
    if mask is None:
        mask = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool).tril()
    return attention(Q, K, V, mask)


@mistake("scaled_dot_product_attention", "`mask=None` must work")
def mask_wanted(Q, K, V, mask):
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    return softmax(torch.where(mask, scores, -math.inf), -1) @ V


@mistake("scaled_dot_product_attention", "serves the whole batch")
def mask_as_an_index(Q, K, V, mask=None):
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    if mask is not None:
        scores[~mask] = -math.inf
    return softmax(scores, -1) @ V


@mistake("scaled_dot_product_attention", "the last axis is -1")
def axis_from_the_front(Q, K, V, mask=None):
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return softmax(scores, 3) @ V


@loss("not axis 1")
def gathered_along_axis_1(logits, targets):
    return -logs(logits).gather(1, targets.unsqueeze(1)).mean()
