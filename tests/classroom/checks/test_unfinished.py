"""What is begun is wrong, and what is missing is named; only an untouched stub is not attempted."""

import inspect

import pytest
import torch
from attempts.ours import copied
from torch import nn

from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study.verbs import check

ours = copied("transformer.nn")


def softmax(x, dim):
    """Written, but for the line that the stub had."""
    shares = ours.softmax(x, dim)
    assert shares.shape == x.shape
    raise NotImplementedError


def get_batch(dataset, batch_size, context_length, device):
    copied("training.data").get_batch(dataset, batch_size, context_length, device)
    raise NotImplementedError


def save_checkpoint(model, optimizer, iteration, out):
    torch.save({"model": model.state_dict()}, out)


def load_checkpoint(src, model, optimizer):
    raise NotImplementedError


def decode(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
    torch.tensor([prompt_ids])


def cross_entropy(logits, targets):
    raise NotImplementedError  # Python compiles nothing of what follows
    return ours.cross_entropy(logits, targets)


class RMSNorm(ours.RMSNorm):
    def forward(self, x):
        super().forward(x)
        raise NotImplementedError


class RMSNormOfNoForward(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))


class RMSNormMisspelt(RMSNormOfNoForward):
    def forwrad(self, x):
        return x


class RMSNormStub(RMSNormOfNoForward):
    def forward(self, x):
        """Still to write."""


class RMSNormWithoutReturn(RMSNormOfNoForward):
    def forward(self, x):
        x = x * self.weight


class FeedForwardOfAMisspeltNorm(ours.SwiGLU):
    def forward(self, x):
        return super().forward(RMSNormMisspelt(x.shape[-1])(x))


class Empty(torch.optim.Optimizer):
    def __init__(self, params, lr, betas, eps, weight_decay): ...


class AdamW(Empty):
    def __init__(self, params, lr, betas, eps, weight_decay):
        torch.optim.Optimizer.__init__(self, params, {"lr": lr})

    def setp(self, closure=None): ...


class Tokenizer:
    def __init__(self, vocab, merges, special_tokens=None):
        self.vocab = vocab

    def encod(self, text):
        return []

    def decode(self, ids):
        b"".join(self.vocab[i] for i in ids).decode()


def left(function):
    """What is said of a function whose last line is that of the stub."""
    lines, first = inspect.getsourcelines(function)
    number = first + len(lines) - 1
    return f"`raise NotImplementedError` is still there, in line {number}, in `{function.__name__}`"


FORWRAD = "`RMSNormMisspelt` has no `forward`; is `forwrad` meant?"
RETURN = "It returned None: is a `return` missing?"
BEGUN = [
    ("train_bpe", lambda *arguments: print(), "is `return vocab, merges` missing?"),
    ("softmax", softmax, left(softmax)),
    ("cross_entropy", cross_entropy, "is still there, in line"),
    ("data_loading", get_batch, left(get_batch)),
    ("checkpointing", (save_checkpoint, load_checkpoint), "One of the two functions is still"),
    ("rmsnorm", RMSNorm, left(RMSNorm.forward)),
    ("rmsnorm", RMSNormOfNoForward, "`RMSNormOfNoForward` has no `forward`."),
    ("rmsnorm", RMSNormMisspelt, FORWRAD),
    ("rmsnorm", RMSNormStub, "`forward` is still missing."),
    ("rmsnorm", RMSNormWithoutReturn, RETURN),
    ("positionwise_feedforward", FeedForwardOfAMisspeltNorm, FORWRAD),
    ("adamw", AdamW, "`step` is still missing; is `setp` meant?"),
    ("tokenizer", Tokenizer, "`encode` is still missing; is `encod` meant?"),
    ("tokenizer", Tokenizer, "`decode` returned None: is a `return` missing?"),
    ("decoding", decode, RETURN),
]


@pytest.mark.parametrize(("problem", "attempt", "words"), BEGUN)
def test_what_is_begun_is_wrong_and_what_is_missing_is_named(problem, attempt, words, judged_here):
    report = check(problem, attempt)
    assert report.status == "wrong" and words in report.claim, report


def raises(*arguments):
    raise NotImplementedError


def says(*arguments):
    raise NotImplementedError("write me")


def passes(*arguments):
    """Still to write."""


class Bare(nn.Module):
    def __init__(self, *sizes):
        super().__init__()


def made_of(base, **methods):
    return type("Stub", (base,), methods)


# What learners leave of a cell that they have not written yet, by the form of the problem.
STUBS = {
    "function": [raises, says, passes],
    "pair": [(None, None), (..., ...), (raises, raises), (passes, passes)],
    "class": [
        made_of(nn.Module, __init__=raises),
        made_of(nn.Module, __init__=passes),
        Bare,
        made_of(Bare, forward=raises),
        made_of(Bare, forward=passes),
    ],
    "adamw": [Empty, made_of(Empty, step=raises), made_of(Empty, step=passes)],
    "tokenizer": [made_of(object, __init__=raises)],
    "script": [],
}


@pytest.mark.parametrize(
    "problem", [each for each in PROBLEMS.values() if each.kind == "code"], ids=lambda each: each.id
)
def test_an_untouched_stub_is_not_attempted(problem, judged_here):
    for stub in (None, ..., *STUBS.get(problem.id, STUBS[problem.form])):
        report = check(problem.id, stub)
        assert report.status == "not attempted", stub
        assert report.claim.startswith(f"Nothing to check yet. Write {problem.hand_in}"), report


def test_what_is_neither_function_nor_class_is_told_in_words(judged_here):
    others = {"function": (7, "text", nn.Linear), "class": (7, "text", nn)}
    for problem in PROBLEMS.values():
        for thing in others.get(problem.form, ()):
            report = check(problem.id, thing)
            assert report.status == "wrong" and f"not a {problem.form}" in report.claim, report
