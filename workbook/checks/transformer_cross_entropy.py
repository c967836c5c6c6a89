"""The check of `cross_entropy`, and the usual ways in which it goes wrong."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from workbook.checks.tensors import drawn
from workbook.checks.text_variants import Variant
from workbook.checks.transformer_functions import check_function, praise
from workbook.checks.transformer_trial import Case, Topic
from workbook.checks.verdicts import expect_function

SIGNATURE = "cross_entropy(logits, targets)"


def _gather(values: Tensor, targets: Tensor) -> Tensor:
    return values.gather(-1, targets.unsqueeze(-1)).squeeze(-1)


RIGHT: dict[str, Callable] = {
    "prepare": lambda logits: logits,
    "log": lambda logits: torch.log_softmax(logits, -1),
    "pick": _gather,
    "average": lambda logs, vocab: -logs.mean(),
}


def reference(case: Case, stages: dict[str, Callable]) -> Tensor:
    """The loss by its stages."""
    logits = stages["prepare"](case.inputs["logits"].double())
    picked = stages["pick"](stages["log"](logits), case.inputs["targets"])
    return stages["average"](picked, logits.shape[-1])


def _log_of_softmax(logits: Tensor, small: float = 0.0) -> Tensor:
    return (torch.softmax(logits, -1) + small).log()


def _unshifted(logits: Tensor) -> Tensor:
    return logits - logits.exp().sum(-1, keepdim=True).log()


LOG_OF_SOFTMAX = (
    "This is the log of a softmax: where a probability is too small it becomes 0, and log(0) is "
    "-inf. Write log softmax as x - max - log Σ exp(x - max)."
)
SMALL = (
    "Something small is added before the log (or is the lower limit), so that no log(0) appears: "
    "but the loss of an unlikely target is then wrong. Write log softmax as "
    "x - max - log Σ exp(x - max)."
)
NO_SHIFT = "exp of large logits overflows: take the maximum away first."
SUMMED = "The losses are summed, not averaged."
VARIANTS = (
    Variant("log", _log_of_softmax, LOG_OF_SOFTMAX),
    Variant("log", _unshifted, NO_SHIFT),
    Variant(
        "log", lambda logits: (logits.exp() / logits.exp().sum(-1, keepdim=True)).log(), NO_SHIFT
    ),
    *(
        Variant("log", partial(_log_of_softmax, small=10.0**-power), SMALL)
        for power in (5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 30)
    ),
    Variant(
        "log",
        lambda logits: logits - logits.logsumexp(-1).max(),
        "The maximum, or the sum, is that of the whole tensor: each row of logits has its own.",
    ),
    Variant(
        "log",
        lambda logits: torch.log_softmax(logits, 0),
        "The wrong axis: softmax runs over the first one, and not over the vocabulary, the last.",
    ),
    Variant(
        "log",
        lambda logits: torch.log_softmax(logits, 1),
        "The wrong axis: softmax runs over axis 1. It must run over the vocabulary, the last.",
    ),
    Variant(
        "log",
        lambda logits: torch.log_softmax(logits, -1) / math.log(2),
        "The logarithm has base 2: the loss is in nats, by the natural logarithm.",
    ),
    Variant(
        "log",
        lambda logits: torch.log_softmax(logits, -1) / math.log(10),
        "The logarithm has base 10: the loss is in nats, by the natural logarithm.",
    ),
    Variant("log", lambda logits: torch.softmax(logits, -1), "The logarithm is missing."),
    Variant("log", lambda logits: 1 - torch.softmax(logits, -1), "The logarithm is missing."),
    Variant(
        "log",
        lambda logits: logits,
        "Only the target's logit counts: log Σ exp of all logits is missing.",
    ),
    Variant(
        "log",
        lambda logits: logits - logits.amax(-1, keepdim=True),
        "Only the target's logit counts: log Σ exp of all logits is missing.",
    ),
    Variant(
        "log",
        lambda logits: torch.log_softmax(logits, -1) + logits.amax(-1, keepdim=True),
        "The maximum was taken away inside log Σ exp only: take it from the target's logit too, or "
        "add it again.",
    ),
    Variant(
        "prepare",
        lambda logits: torch.softmax(logits, -1),
        "There is a softmax before the loss: the logits go through softmax twice.",
    ),
    Variant("average", lambda logs, vocab: -logs.sum(), SUMMED),
    Variant("average", lambda logs, vocab: logs.mean(), "The minus sign is missing."),
    Variant(
        "average",
        lambda logs, vocab: -logs.sum() / len(logs),
        "Averaged over the first dimension only: divide by the number of all targets.",
    ),
    Variant(
        "average",
        lambda logs, vocab: -logs.sum() / logs.shape[-1],
        "Averaged over the last batch dimension only: divide by the number of all targets.",
    ),
    Variant("average", lambda logs, vocab: -logs, "One loss for each target: take their mean."),
    Variant(
        "average",
        lambda logs, vocab: -logs.mean(0),
        "Averaged over the first dimension only: take the mean over all of them.",
    ),
    Variant(
        "average",
        lambda logs, vocab: -logs.mean(-1),
        "Averaged over the last batch dimension only: take the mean over all of them.",
    ),
    Variant(
        "average",
        lambda logs, vocab: -logs.sum(-1).mean(),
        "Summed over the sequence, averaged over the batch: divide by the number of all targets.",
    ),
    Variant(
        "average",
        lambda logs, vocab: -logs.mean() / vocab,
        "Averaged over the vocabulary too: divide by the number of targets.",
    ),
    Variant(
        "average", lambda logs, vocab: (-logs.mean()).exp(), "This is the perplexity, exp of it."
    ),
    Variant(
        "average",
        lambda logs, vocab: -logs.exp().mean().log(),
        "The probabilities are averaged before the logarithm: take the mean of the logarithms.",
    ),
    Variant("average", lambda logs, vocab: -logs.median(), "The median is not the mean."),
    Variant(
        "pick",
        lambda logs, targets: logs[:, targets],
        "`[:, targets]` takes every target of each row. Take one number of each row: `gather`, or "
        "an index with the row's number.",
    ),
    Variant(
        "pick",
        lambda logs, targets: logs.amax(-1),
        "The largest logit was taken, not the target's.",
    ),
    Variant(
        "pick", lambda logs, targets: logs[..., 0], "Always the first id is taken, not the target."
    ),
    Variant(
        "pick",
        lambda logs, targets: _gather(logs, (targets + 1) % logs.shape[-1]),
        "Off by one: the id after the target was taken.",
    ),
    Variant(
        "pick",
        lambda logs, targets: _gather(logs, (targets - 1) % logs.shape[-1]),
        "Off by one: the id before the target was taken.",
    ),
    Variant(
        "pick",
        lambda logs, targets: logs,
        "The log probabilities of all ids count, not only the target's.",
    ),
)


def _case(logits: Tensor, targets: list, what: str = "") -> Case:
    return Case(SIGNATURE, {"logits": logits, "targets": torch.tensor(targets)}, what=what)


BATCHES = "several batch dimensions"
TOPIC = Topic(
    cases=(
        _case(torch.tensor([[1.0, 2.0, 3.0]]), [1]),
        _case(drawn(2, 3, seed=1), [2, 0]),
        _case(drawn(4, 3, seed=2), [1, 1, 0, 2]),
        _case(drawn(3, 3, seed=3), [0, 2, 2]),
        _case(drawn(2, 3, 4, seed=4), [[0, 3, 1], [2, 2, 0]], BATCHES),
        _case(drawn(1, 2, 2, 5, seed=5), [[[0, 4], [1, 3]]], BATCHES),
        _case(torch.tensor([[1000.0, 1001.0, 999.0]]), [1], "large logits"),
        _case(torch.tensor([[-1000.0, -1001.0, -999.0]]), [0], "very negative logits"),
        _case(torch.tensor([[0.0, 500.0, 1000.0], [1.0, 2.0, 0.0]]), [0, 1], "an unlikely target"),
    ),
    reference=reference,
    right=RIGHT,
    variants=VARIANTS,
)


def cross_entropy(attempt: Any, part: str | None = None) -> str:
    """Praise for a right loss; raises `Wrong` with the first input that fails."""
    expect_function(attempt, SIGNATURE)
    remarks = check_function(attempt, TOPIC, TOPIC.cases[4])
    return praise(
        "The mean over all batch dimensions, in nats, and large logits are safe.", remarks
    )
