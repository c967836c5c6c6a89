"""Wrong functions, layers and models: each has one mistake, which the check must name."""

import math
from functools import partial

import torch
from torch import nn

from attempts.lists import almost, mistake
from attempts.transformer_right import (
    Embedding,
    Linear,
    RMSNorm,
    RotaryPositionalEmbedding,
    SwiGLU,
    drawn,
    silu,
)
from attempts.transformer_right_functions import attention, softmax
from attempts.transformer_right_heads import Steps, TransformerLM

# Linear and embedding: initial weights, and what a module is.


def weight(make):
    """A class of Linear whose weight is made by `make(d_out, d_in, std)`."""

    class OfOtherWeights(Linear):
        def __init__(self, d_in, d_out):
            super().__init__(d_in, d_out)
            self.weight = nn.Parameter(make(d_out, d_in, math.sqrt(2 / (d_in + d_out))))

    return OfOtherWeights


def cut(d_out, d_in, std, at=3):
    return nn.init.trunc_normal_(torch.empty(d_out, d_in), std=std, a=-at * std, b=at * std)


for words, make in (
    ("is 1 (plain `randn`)", lambda o, i, std: torch.randn(o, i)),
    ("the same", lambda o, i, std: torch.zeros(o, i)),
    ("mean is not 0", lambda o, i, std: torch.rand(o, i)),
    ("the root is missing", lambda o, i, std: cut(o, i, std**2)),
    ("Without `std=`", lambda o, i, std: cut(o, i, 1, at=3 * std)),
    ("2 / d_in", lambda o, i, std: cut(o, i, math.sqrt(2 / i))),
    ("but is 0.23", lambda o, i, std: cut(o, i, 3 * std)),
    ("truncated too early", lambda o, i, std: cut(o, i, std, at=1)),
):
    mistake("linear", words)(weight(make))
for words, make in (
    ("not truncated at 3", lambda o, i, std: std * torch.randn(o, i)),
    ("truncated too early", lambda o, i, std: cut(o, i, std, at=2)),
    ("uniform", lambda o, i, std: (torch.rand(o, i) * 2 - 1) * std * 3**0.5),
    ("nothing fills", lambda o, i, std: torch.empty(o, i)),
):
    almost("linear", words)(weight(make))


@mistake("embedding", "an embedding as (vocab, d_model)")
class EmbeddingOnItsSide(Embedding):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__(embedding_dim, num_embeddings)


@almost("rmsnorm", "a gain is all ones")
class NormOfEmpty(RMSNorm):
    def __init__(self, d_model, eps=1e-5):
        super().__init__(d_model, eps)
        self.weight = nn.Parameter(torch.empty(d_model))


@mistake("rmsnorm", "changes nothing in place: write `x = x.to(torch.float32)`")
class DropsItsUpcast(RMSNorm):
    def forward(self, x):
        x.to(torch.float32)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


@almost("linear", "stored transposed")
class Transposed(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = drawn(d_in, d_out)

    def forward(self, x):
        return x @ self.weight


@mistake("linear", "no bias")
class Bias(Linear):
    def __init__(self, d_in, d_out):
        super().__init__(d_in, d_out)
        self.bias = nn.Parameter(torch.zeros(d_out))


@almost("linear", "not from scratch")
class FromTorch(nn.Linear):
    """Torch draws its weights, so nothing is said of these."""

    def __init__(self, d_in, d_out):
        super().__init__(d_in, d_out, bias=False)


def forward(function):
    """A class of Linear with another `forward`."""
    return type("Learners", (Linear,), {"forward": function})


almost("linear", "ready `linear`")(forward(lambda self, x: nn.functional.linear(x, self.weight)))
for words, wrong in (
    ("`x` comes back as it was", lambda self, x: x),
    ("`weight` comes back as it was", lambda self, x: self.weight),
    ("cuts off the gradient", lambda self, x: x @ self.weight.detach().T),
    (
        "the gradient that reaches `weight` is not",
        lambda self, x: x @ (self.weight + self.weight.detach()).T / 2,
    ),
):
    mistake("linear", words)(forward(wrong))


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


@mistake("embedding", "should be 1, but is √(2 / (d_in + d_out))")
class SmallTable(Embedding):
    def __init__(self, n, d):
        super().__init__(n, d)
        self.weight = drawn(n, d)


# Feed-forward layers.


@almost("positionwise_feedforward", "ready `silu`")
class ReadySilu(SwiGLU):
    def forward(self, x):
        return self.w2(nn.SiLU()(self.w1(x)) * self.w3(x))


@almost("positionwise_feedforward", "It contains NaN")
class Overflowing(SwiGLU):
    def forward(self, x):
        gate = self.w1(x)
        return self.w2(gate * gate.exp() / (1 + gate.exp()) * self.w3(x))


@mistake("positionwise_feedforward", "self.w9(x)")
class Broken(SwiGLU):
    def forward(self, x):
        return self.w9(x)


@mistake("positionwise_feedforward", "The shapes in this line do not fit")
class OfItsGate(SwiGLU):
    """Its layers are right: no weight has to be transposed."""

    def forward(self, x):
        return self.w2(silu(self.w1(x)) * self.w3(self.w1(x)))


@mistake("positionwise_feedforward", "hidden from torch")
class PlainList(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.parts = [SwiGLU(d_model, d_ff)]

    def forward(self, x):
        return self.parts[0](x)


@mistake("positionwise_feedforward", "has another parameter's name")
class SwappedNames(SwiGLU):
    def __init__(self, d_model, d_ff):
        super().__init__(d_model, d_ff)
        self.w2, self.w3 = self.w3, self.w2

    def forward(self, x):
        return self.w3(silu(self.w1(x)) * self.w2(x))


def swiglu_of(make):
    """A class of SwiGLU whose weights are made by `make(d_out, d_in)`."""

    class OfOtherWeights(SwiGLU):
        def __init__(self, d_model, d_ff):
            super().__init__(d_model, d_ff)
            for layer in (self.w1, self.w2, self.w3):
                layer.weight = nn.Parameter(make(*layer.weight.shape))

    return OfOtherWeights


for words, make in (
    ("nothing fills `w1.weight`, `w2.weight`, `w3.weight`.", torch.empty),
    ("are (nearly) the same", torch.zeros),
    ("nor are these drawn as asked: `w2.weight`, `w3.weight`.", lambda o, i: 5 * torch.randn(o, i)),
):
    almost("positionwise_feedforward", words)(swiglu_of(make))


# Functions.


def shares(powers, dim):
    return powers / powers.sum(dim, keepdim=True)


for words, wrong in (
    ("`x` comes back as it was", lambda x, dim: x),
    ("takes different arguments", lambda x, dim: shares(x.exp())),
    ("torch and the modules have no such name", lambda x, dim: shares(x.powers, dim)),
    ("values and their indices", lambda x, dim: shares((x - torch.max(x, dim)).exp(), dim)),
    ("cuts off the gradient", lambda x, dim: torch.from_numpy(softmax(x.detach(), dim).numpy())),
):
    mistake("softmax", words)(wrong)
for words, ready in (  # by one door and another
    ("softmax", torch.softmax),
    ("softmax", partial(torch.softmax)),
    ("softmax", lambda x, dim: nn.functional.softmax(x, dim=dim)),
    ("softmax", lambda x, dim: next(map(torch.softmax, [x], [dim]))),
    ("softmin", lambda x, dim: nn.functional.softmin(-x, dim=dim)),
):
    almost("softmax", f"ready `{words}`")(ready)


@mistake("softmax", "Your own `assert` or `raise` stops here")
def refuses(x, dim):
    assert dim >= 0, f"the shape {x.shape} has no such dimension"
    return softmax(x, dim)


@mistake("softmax", "`ordered` is None here")
def sorted_in_place(x, dim):
    ordered = x.tolist().sort()
    return ordered[0] + x


@almost("cross_entropy", "Averaged over only one of several dimensions")
def one_for_each_row(logits, targets):
    """As hard to miss as an error: only a number has a backward pass."""
    logs = logits - logits.logsumexp(-1, keepdim=True)
    return -logs.gather(-1, targets.unsqueeze(-1)).squeeze(-1).mean(-1)


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
attention_with("a letter of their own", scores=lambda Q, K: torch.einsum("bqd,bqd->bqd", Q, K))
attention_with("the number used for -inf", masked=lambda s, m: s.masked_fill(~m, -9.0))
attention_with("serves the whole batch", masked=hidden_by_index)
attention_with("The last axis is -1", axis=3)
attention_with("two leading dimensions", scores=lambda Q, K: Q.bmm(K.mT) / Q.shape[-1] ** 0.5)
attention_with("one number of axes only", scores=lambda Q, K: torch.einsum("bhqd,bhkd->bhqk", Q, K))
ready_attention = nn.functional.scaled_dot_product_attention
almost("scaled_dot_product_attention", "ready `scaled_dot_product_attention`")(ready_attention)


@almost("cross_entropy", "ready `cross_entropy`")
def ready_loss(logits, targets):
    return nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())


for words, wrong in (
    ("`logits` comes back as it was", lambda logits, targets: logits),
    ("names a column of its row", lambda logits, targets: -logits.log_softmax(-1)[targets].mean()),
):
    mistake("cross_entropy", words)(wrong)


@almost("cross_entropy", "ready `log_prob`")
def by_categorical(logits, targets):
    return -torch.distributions.Categorical(logits=logits).log_prob(targets).mean()


@almost("cross_entropy", "one batch dimension only")
def by_row(logits, targets):
    logs = logits - logits.logsumexp(-1, keepdim=True)
    return -logs[torch.arange(len(logits)), targets].mean()


# RoPE.


@mistake("rope", "never filled")
class Unfilled(RotaryPositionalEmbedding):
    def forward(self, x, token_positions):
        return torch.rand_like(x)


@mistake("rope", "nothing to learn")
class LearnedAngles(RotaryPositionalEmbedding):
    def __init__(self, theta, d_k, max_seq_len):
        super().__init__(theta, d_k, max_seq_len)
        cos = self.cos
        del self.cos
        self.cos = nn.Parameter(cos)


@almost("rope", "with positions (..., seq) or (seq,)")
class ForTheAxesOfABatch(RotaryPositionalEmbedding):
    """Positions (seq,) fail with x (batch, heads, seq, d_k)."""

    def forward(self, x, token_positions):
        return super().forward(x, token_positions.unsqueeze(1) if x.ndim == 4 else token_positions)


@mistake("rope", "last position")
class OneTooShort(RotaryPositionalEmbedding):
    def __init__(self, theta, d_k, max_seq_len):
        super().__init__(theta, d_k, max_seq_len - 1)


# Attention layers.


@mistake("multihead_self_attention", "call `.contiguous()`")
class NotContiguous(Steps):
    def merge(self, x):
        return x.transpose(1, 2).view(*x[:, 0].shape[:2], -1)


@almost("multihead_self_attention", "`torch.nn.Linear`")
class OfTorch(Steps):
    def __init__(self, d_model, num_heads, max_seq_len=None, theta=None):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        self.output_proj = nn.Linear(d_model, d_model, bias=False)


@mistake("multihead_self_attention", "cases without RoPE are right. It cannot be called")
class WithoutRope(Steps):
    """The first of two classes, of which the other has RoPE."""

    def __init__(self, d_model, num_heads, device=None, dtype=None):
        super().__init__(d_model, num_heads)


@mistake("multihead_self_attention", "an input of shape (3, 4, 8) after (1, 3, 8), fails")
class KeptMask(Steps):
    """The mask of the first call serves every call."""

    def seen(self, length):
        self.mask = getattr(self, "mask", super().seen(length))
        return self.mask


for words, wrong in (  # nobody foresaw the second
    ("more than one value after `return`", lambda *inputs: (attention(*inputs), None)),
    ("Each number is 1.7 times", lambda Q, K, V, mask=None: 1.7 * attention(Q, K, V, mask)),
):
    mistake("scaled_dot_product_attention", words)(wrong)


@mistake("multihead_self_attention", "more than one value after `return`")
class WithShares(Steps):
    def forward(self, x, token_positions=None):
        return super().forward(x, token_positions), None


# Language models.


@mistake("transformer_lm", "an input of shape (1, 3) after (1, 1), fails")
class ModelOfKeptMask(TransformerLM):
    def __init__(self, vocab_size, length, d_model, num_layers, heads, d_ff, theta):
        super().__init__(vocab_size, length, d_model, num_layers, heads, d_ff, theta)
        for layer in self.layers:
            layer.attn = KeptMask(d_model, heads, length, theta)


@mistake("transformer_lm", "share one weight")
class Tied(TransformerLM):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.lm_head.weight = self.token_embeddings.weight


@mistake("transformer_lm", "leave out `pos_emb.weight`")
class LearnedPositions(TransformerLM):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.pos_emb = Embedding(*sizes[1:3])


@mistake("transformer_lm", "repeats one block")
class OneBlock(TransformerLM):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.layers = nn.ModuleList([self.layers[0]] * len(self.layers))


for width in (lambda d_model, d_ff: (d_ff + 63) // 64 * 64, lambda d_model, d_ff: 4 * d_model):

    @mistake("transformer_lm", "compute or round it only where you choose it")
    class OfOtherWidth(TransformerLM):
        width = staticmethod(width)

        def __init__(self, vocab_size, length, d_model, num_layers, num_heads, d_ff, theta):
            sizes = (vocab_size, length, d_model, num_layers, num_heads)
            super().__init__(*sizes, self.width(d_model, d_ff), theta)


@mistake("transformer_lm", "axes of length 1")
class Squeezed(TransformerLM):
    def forward(self, token_ids):
        return super().forward(token_ids).squeeze()
