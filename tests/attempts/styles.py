"""Right styles of each code problem, at least five, as files that a check has kept."""

import inspect
import re
from importlib import import_module

import torch
from made_repositories import PARTS, module
from torch import nn

from attempts import (  # noqa: F401 - some fill the list
    bpe_right,
    checkpointing,
    data_loading,
    decoding,
    lists,
    optimizer_adamw,
    optimizer_schedule_and_clipping,
    pairs,
    tokenizer_right,
    training_together,
    transformer_wrong,
)
from attempts.lists import right
from workbook.classroom.mine import hardening

FOLDERS = {"flat": "cs336_basics", "renamed": "src/cs336_basics"}
TRAINING = [
    (),
    (("np.load", "np.memmap"), ('mmap_mode="r"', "dtype=np.uint16")),
    ((training_together.BATCH + training_together.UPDATE, training_together.ACCUMULATED),),
    ((training_together.LAST, ""),),
    (
        ("range(start, steps)", "range(start, start + steps)"),
        ("optimizer, steps, checkpoint", "optimizer, start + steps, checkpoint"),
    ),
]


def kept(problem):
    """The sources of the styles of a problem."""
    if problem == "training_together":
        base = training_together.PARTS + training_together.TRAIN
        texts = [training_together.edited(base, *edits) for edits in TRAINING]
        return [f'{text}\n__all__ = ["train"]\n' for text in texts]
    asked = (problem, "correct")
    attempts = [one for name, one, status, _ in lists.ATTEMPTS if (name, status) == asked]
    attempts += [pairs.ATTEMPTS[problem, None][0]]
    if problem == "train_bpe":
        attempts.append(bpe_right.opens_a_path)
    theirs = PARTS["renamed"].get(problem, "")
    if isinstance(theirs, str) and theirs.startswith(("cs336_basics.lm:", "cs336_basics.tok:")):
        file, name = theirs.removeprefix("cs336_basics.").split(":")
        attempts.append(getattr(home(f"made_renamed_{file}"), name))
    sources = [source(each if isinstance(each, tuple | list) else (each,)) for each in attempts]
    if problem == "transformer_lm":
        sources.append(hardening.STRANGERS_CODE.read_text("utf-8"))
    return [*dict.fromkeys(filter(None, sources))]


def home(name):
    """A module of attempts, of a copy of ours, or of a made-up repository; for the sources too."""
    if name.startswith("made_"):
        _, folder, file = name.split("_")
        return module(folder, f"{FOLDERS[folder]}/{file}.py")
    return import_module(name)


def source(attempts):
    """What a file with these objects would hold; what they use beside them is imported.

    "" if they are made by a call, and have no source of their own.
    """
    place = attempts[-1].__module__
    own = [base for each in attempts for base in reversed(getattr(each, "__mro__", (each,)))]
    used = [name for thing in own for name in getattr(thing, "__code__", source.__code__).co_names]
    own = [getattr(home(place), name, None) for name in used] + own  # a function's helpers
    own = [*dict.fromkeys(thing for thing in own if is_an_attempt(thing, place))]
    names = {id(thing): name for name, thing in vars(home(place)).items()}
    if any(id(thing) not in names for thing in own):
        return ""
    lines = ["from attempts.styles import home"]
    for name in dict.fromkeys(thing.__module__ for thing in reversed(own)):
        lines.append(f"globals().update(vars(home({name!r})))")
    pieces = []
    for thing in own:
        pieces.append(re.sub(r"^@right\(.*\n", "", inspect.getsource(thing), flags=re.M))
        if names[id(thing)] != thing.__name__:
            pieces.append(f"{names[id(thing)]} = {thing.__name__}\n")
    last = f"__all__ = {[each.__name__ for each in attempts]}\n"
    return "\n\n".join(["\n".join(lines), *pieces, last])


def is_an_attempt(thing, place):
    """Whether something is of this module, or a base class from a made-up repository."""
    theirs = isinstance(thing, type) and thing.__module__.startswith("made_")
    return theirs or getattr(thing, "__module__", "") == place


# --- Styles that are nowhere else


def drawn(*shape, std):
    return nn.Parameter(nn.init.trunc_normal_(torch.empty(*shape), 0, std, -3 * std, 3 * std))


@right("linear")
class LinearOfEinsum(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.w = drawn(out_features, in_features, std=(2 / (in_features + out_features)) ** 0.5)

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x, self.w)


@right("linear")
class LinearOfSums(LinearOfEinsum):
    def forward(self, x):
        return (x.unsqueeze(-2) * self.w).sum(-1)


@right("embedding")
class Rows(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.weight = drawn(vocab_size, d_model, std=1.0)

    def forward(self, token_ids):
        rows = self.weight.index_select(0, token_ids.reshape(-1))
        return rows.reshape(*token_ids.shape, self.weight.shape[1])


@right("embedding")
class OneHot(Rows):
    def forward(self, token_ids):
        numbers = torch.arange(self.weight.shape[0])
        return (token_ids.unsqueeze(-1) == numbers).to(self.weight.dtype) @ self.weight


@right("rmsnorm")
class Root(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.d_model = d_model
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        wide = x.to(torch.float32)
        total = (wide * wide).sum(dim=-1, keepdim=True)
        return (wide * self.weight / (total / self.d_model + self.eps) ** 0.5).to(x.dtype)


@right("positionwise_feedforward")
class Gated(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        std = (2 / (d_model + d_ff)) ** 0.5
        self.w1 = drawn(d_ff, d_model, std=std)
        self.w3 = drawn(d_ff, d_model, std=std)
        self.w2 = drawn(d_model, d_ff, std=std)

    def forward(self, x):
        gate = x @ self.w1.T
        return (gate * torch.sigmoid(gate) * (x @ self.w3.T)) @ self.w2.T


@right("softmax")
def by_logs(x, dim):
    largest = x.amax(dim, keepdim=True)
    log_of_sum = (x - largest).exp().sum(dim, keepdim=True).log() + largest
    return (x - log_of_sum).exp()


@right("softmax")
def in_steps(x, dim):
    largest = x.max(dim=dim, keepdim=True).values
    weights = (x - largest).exp()
    total = weights.sum(dim=dim, keepdim=True)
    return weights / total


@right("scaled_dot_product_attention")
def attend_by_weights(Q, K, V, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", Q, K) / Q.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(float("-inf")))
    weights = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return torch.einsum("...qk,...kd->...qd", weights / weights.sum(dim=-1, keepdim=True), V)


@right("cross_entropy")
def by_one_hot(logits, targets):
    chosen = (torch.arange(logits.shape[-1]) == targets.unsqueeze(-1)).to(logits.dtype)
    shifted = logits - logits.amax(dim=-1, keepdim=True)
    return (shifted.exp().sum(dim=-1).log() - (shifted * chosen).sum(dim=-1)).mean()


@right("cross_entropy")
def token_by_token(logits, targets):
    losses = []
    for row, target in zip(logits.flatten(0, -2), targets.flatten(), strict=True):
        shifted = row - row.max()
        losses.append(shifted.exp().sum().log() - shifted[target])
    return torch.stack(losses).mean()
