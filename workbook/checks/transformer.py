"""The checks of chapter 3 and of the loss: one plain Transformer, and what goes wrong in it.

The functions of the first part are the reference of every problem: a problem takes those that it
needs (`Program`), and the usual mistakes of a small part are looked for in the parts it is used in.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from workbook.checks.calling import call_part, first_of
from workbook.checks.engine import Exercise, Mistake, Program, instead_of, judge, mistake
from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.modules import (
    Learner,
    check_drawn,
    check_first_weights,
    check_gradients,
    judge_class,
)
from workbook.checks.tensors import (
    ROUNDED,
    TOLERANCE,
    Case,
    alike,
    beside,
    compared,
    copied,
    drawn,
    kind,
    tensor_of,
)
from workbook.checks.verdicts import Findings, Words, Wrong, expect_function

# The reference: a Transformer in float64. `weights` go by the names of the course.

Weights = Mapping[str, Tensor]


def project(x: Tensor, weight: Tensor) -> Tensor:
    """A linear layer: the weight has one row for each output."""
    return x @ weight.T  # the product


def look_up(token_ids: Tensor, weight: Tensor) -> Tensor:
    """An embedding: the rows that the ids name."""
    return weight[token_ids]  # how the rows are taken


def rms_norm(x: Tensor, gain: Tensor, eps: float = 1e-5) -> Tensor:
    """Each vector by its root mean square, times the gain."""
    x = x.double()  # the type in which the norm is computed
    mean_square = x.square().sum(-1, keepdim=True) / x.shape[-1]  # the norm's mean of squares
    return x / (mean_square + eps).sqrt() * gain  # what the norm does with its mean of squares


def silu(x: Tensor) -> Tensor:
    """x · sigmoid(x)."""
    return x / (1 + torch.exp(-x))  # SiLU


def swiglu(x: Tensor, weights: Weights) -> Tensor:
    """The feed-forward layer: W2 (SiLU(W1 x) ⊙ W3 x)."""
    w1, w2, w3 = (weights[f"w{number}.weight"] for number in (1, 2, 3))
    gate, up = silu(project(x, w1)), project(x, w3)  # what goes through SiLU
    return project(gate * up, w2)  # how the two sides of SwiGLU are joined


def rotate(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """RoPE: pair k = 0, 1, ... of neighbours rotated by position · theta^(-2k / d_k)."""
    d_k = x.shape[-1]
    k = torch.arange(d_k // 2, dtype=torch.float64)  # how RoPE counts its pairs
    frequency = theta ** (-2 * k / d_k)  # RoPE's frequencies
    angles = positions.unsqueeze(-1) * frequency  # RoPE's angles
    cos, sin = angles.cos(), angles.sin()  # RoPE's cosines and sines
    even, odd = x[..., 0::2], x[..., 1::2]  # which numbers RoPE takes as pairs
    first = even * cos - odd * sin  # the first number of RoPE's pairs
    second = even * sin + odd * cos  # the second number of RoPE's pairs
    return torch.stack((first, second), -1).flatten(-2)  # how RoPE puts its pairs back


def soft_max(x: Tensor, dim: int) -> Tensor:
    """Positive numbers that add up to 1 along `dim`; the shift keeps exp from overflowing."""
    powers = (x - x.amax(dim, keepdim=True)).exp()  # the numerator of the softmax
    return powers / powers.sum(dim, keepdim=True)  # the denominator of the softmax


def attention(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None) -> Tensor:
    """Scaled dot-product attention; a query sees the keys where its row of the mask is True."""
    scores = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])  # the scores and their scale
    if mask is not None:  # when the mask is used
        scores = scores.masked_fill(~mask, -math.inf)  # what the mask does
    shares = soft_max(scores, -1)  # the softmax of the scores
    return shares @ V  # the mean of the values


def causal(length: int) -> Tensor:
    """The mask in which a position sees itself and what comes before."""
    return torch.ones(length, length, dtype=torch.bool).tril()  # the causal mask


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(..., seq, d_model) as (..., heads, seq, d_head)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)  # how the heads are split


def merge_heads(x: Tensor) -> Tensor:
    """(..., heads, seq, d_head) as (..., seq, d_model)."""
    return x.transpose(-2, -3).flatten(-2)  # how the heads are put together


def multihead(
    x: Tensor,
    weights: Weights,
    num_heads: int,
    theta: float | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Causal self-attention; with RoPE where there is a theta. Positions may have a batch axis."""
    q, k, v, output = (weights[f"{role}_proj.weight"] for role in ("q", "k", "v", "output"))
    Q, K, V = (split_heads(project(x, weight), num_heads) for weight in (q, k, v))  # Q, K and V
    if theta is not None:  # when RoPE is applied
        places = torch.arange(x.shape[-2]) if positions is None else positions.unsqueeze(-2)  # RoPE
        Q, K = rotate(Q, places, theta), rotate(K, places, theta)  # RoPE
    gathered = attention(Q, K, V, causal(Q.shape[-2]))
    return project(merge_heads(gathered), output)  # the output projection


def inside(weights: Weights, part: str) -> Weights:
    """The weights of a part, by their names inside it."""
    return {
        name.removeprefix(part): weight for name, weight in weights.items() if name.startswith(part)
    }


def block(x: Tensor, weights: Weights, num_heads: int, theta: float | None = None) -> Tensor:
    """A pre-norm block: attention and feed-forward layer, each added to what came in."""
    ln1, ln2 = (partial(rms_norm, gain=weights[f"ln{number}.weight"]) for number in (1, 2))
    attn = partial(multihead, weights=inside(weights, "attn."), num_heads=num_heads, theta=theta)
    ffn = partial(swiglu, weights=inside(weights, "ffn."))
    x = x + attn(ln1(x))  # attention, its norm and what is added to it
    return x + ffn(ln2(x))  # the feed-forward layer, its norm and what is added to it


def language_model(
    token_ids: Tensor, weights: Weights, num_layers: int, num_heads: int, theta: float
) -> Tensor:
    """The logits at each position."""
    x = look_up(token_ids, weights["token_embeddings.weight"])  # the embedding
    numbers = range(num_layers)  # which blocks are used
    for number in numbers:
        x = block(x, inside(weights, f"layers.{number}."), num_heads, theta)
    x = rms_norm(x, weights["ln_final.weight"])  # the final norm
    return project(x, weights["lm_head.weight"])  # the head


def mean_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean of -log softmax(logits)[target] over all targets, in nats."""
    logs = logits - logits.logsumexp(-1, keepdim=True)  # the logarithm of the softmax
    chosen = logs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)  # how the target's number is taken
    return -chosen.mean()  # the mean


COURSE = {"gain": "weight", "positions": "token_positions", "theta": "rope_theta"}


def with_case(function: Callable[..., Tensor], case: Case) -> Tensor:
    """Call a function of the reference with what its arguments mean in a case."""
    values = {**case.arguments, **case.high, "weights": case.high}
    values |= {ours: values[name] for ours, name in COURSE.items() if name in values}
    names = inspect.signature(function).parameters
    return function(**{name: values[name] for name in names if name in values})


def reference(*functions: Callable) -> Program:
    """The program of these functions; the comments say where mutants tell a learner to look."""
    lines = "\n".join(map(inspect.getsource, functions)).splitlines()
    places = dict(line.strip().split("  # ") for line in lines if "  # " in line)
    return Program(*functions, places=places, call=with_case)


of_tensors = partial(Exercise, run=Learner.__call__, same=alike, report=compared)


# Softmax.


def call_function(attempt: Any, case: Case) -> Tensor:
    """What a learner's function of tensors makes of copies of its inputs. Raises: Wrong."""
    given = Words(str(case))
    result = call_part(attempt, {n: copied(v) for n, v in case.inputs.items()}, given=given)
    if "mask" in case.inputs:  # many return (output, weights)
        result = first_of(result, torch.is_tensor)
    return tensor_of(result, given)


def judge_function(attempt: Any, exercise: Exercise, gradients: Case) -> tuple[Findings, list[str]]:
    """Findings on a function of tensors, and remarks; `gradients` is the case they are asked of."""
    expect_function(attempt, gradients.signature)
    found, remarks = judge(exercise, attempt), []
    if not found:
        with found("use"):
            remarks = check_gradients(
                partial(exercise.run, attempt), exercise.program.edited(), gradients
            )
        with found("style"):
            expect_from_scratch(lambda: exercise.run(attempt, exercise.cases[0]), [attempt])
    return found, remarks


def open_questions(
    found: Findings, exercise: Exercise, attempt: Any, questions: Mapping[str, Case]
) -> Iterator[str]:
    """The remarks whose cases go wrong; the course does not ask for these cases."""
    for remark, case in questions.items() if not found else ():
        with suppress(Exception):
            result = exercise.run(attempt, case)
            if alike(result, exercise.expected(case), 0.02) and result.dtype == case.dtype:
                continue
        yield remark


MAXIMUM, EXP, TOTAL = "x.amax(dim, keepdim=True)", ".exp()", "powers.sum(dim, keepdim=True)"
NO_SHIFT = mistake(
    "exp of a large number overflows to inf (and exp of very negative ones is 0 "
    "everywhere): subtract the maximum along `dim` first. That changes nothing else.",
    f"(x - {MAXIMUM}){EXP}",
    f"x{EXP}",
)
NO_KEEPDIM = (
    "The sum, or the maximum, lost its axis: without `keepdim=True` it is matched with another one."
)
NO_EXP = "The numbers were divided by their sum: exp comes first."
SOFTMAX_MISTAKES = (
    NO_SHIFT,
    *instead_of(MAXIMUM, {
        "x.max()": "The maximum of the whole tensor was subtracted: take it along `dim`.",
        "x.amin(dim, keepdim=True)": "The minimum or the mean was subtracted: exp still overflows.",
        "x.mean(dim, keepdim=True)": "The minimum or the mean was subtracted: exp still overflows.",
        "x.amax(-1, keepdim=True)": "The maximum is that of the last axis, whatever `dim` is.",
        "x.amax(0, keepdim=True)": "The maximum is that of axis 0, whatever `dim` is.",
        "x.amax(dim)": NO_KEEPDIM,
    }),
    mistake("2 was raised to the power, not e: use `torch.exp`.", EXP, ".exp2()"),
    mistake("The sign is flipped: exp(-x), not exp(x).", EXP, ".neg().exp()"),
    mistake(NO_EXP, f"(x - {MAXIMUM}){EXP}", f"x - {MAXIMUM}"),
    mistake(NO_EXP, f"(x - {MAXIMUM}){EXP}", "x"),
    *instead_of(TOTAL, {
        "powers.sum()": "Divided by the sum of the whole tensor: take the sum along `dim`.",
        "powers.sum(dim)": NO_KEEPDIM,
        "powers.sum(-1, keepdim=True)": "The sum is that of the last axis, whatever `dim` is.",
        "powers.mean(dim, keepdim=True)": "Divided by the mean, not by the sum.",
        "powers.norm(dim=dim, keepdim=True)": "Divided by the root of the squares, not by the sum.",
    }),
    mistake("The division by the sum is missing.", f"powers / {TOTAL}", "powers"),
    *instead_of("powers = (x", {
        "dim = -1\npowers = (x": "The wrong axis: `dim` is ignored, the last axis is taken.",
        "dim = 0\npowers = (x": "The wrong axis: `dim` is ignored, and axis 0 is taken.",
        "dim = 1\npowers = (x": "The wrong axis: `dim` is ignored, and axis 1 is taken.",
    }),
    mistake("This is the logarithm of softmax: the numbers should add up to 1.",
            f"powers / {TOTAL}", f"(powers / {TOTAL}).log()"),
)  # fmt: skip


def _softmax(x: Tensor, dim: int, what: str = "") -> Case:
    return Case("softmax", {"x": x, "dim": dim}, what=what)


FAR_APART = torch.tensor([[1000.0, 1001.0, 1002.0], [-1.0, 0.0, 1.0]])
SOFTMAX = of_tensors(
    program=reference(soft_max),
    mistakes=SOFTMAX_MISTAKES,
    cases=(
        _softmax(torch.tensor([1.0, 2.0, 3.0]), -1),
        _softmax(drawn(2, 3, seed=1), -1),
        _softmax(drawn(2, 3, seed=1), 0),
        _softmax(drawn(3, 3, seed=2), -1),
        _softmax(drawn(3, 3, seed=2), 0),
        _softmax(drawn(2, 3, 2, seed=3), 1),
        _softmax(drawn(2, 3, 2, seed=3), -3),
        _softmax(drawn(2, 2, 2, 2, seed=4), 2),
        _softmax(torch.tensor([1000.0, 1001.0, 999.0]), 0, "large numbers"),
        _softmax(torch.tensor([-1000.0, -1001.0, -999.0]), -1, "very negative numbers"),
        _softmax(FAR_APART, -1, "rows that are far apart"),
        _softmax(FAR_APART.T.contiguous(), 0, "columns that are far apart"),
        _softmax(torch.tensor([0.5, -torch.inf, 1.5]), -1, "numbers of -inf, as a mask makes them"),
    ),
    run=call_function,
    errors={
        "return_types": "`torch.max(x, dim)` returns the values and their places: take its "
        "`.values`, or use `torch.amax`."
    },
)


def softmax(attempt: Any, part: str | None = None) -> str:
    """Praise for a right softmax; raises `Wrong` with the first input that fails."""
    found, remarks = judge_function(attempt, SOFTMAX, SOFTMAX.cases[1])
    return found.verdict("Right along every axis, and large numbers do not overflow.", remarks)


# Attention.

NEVER = -1e9  # what many write in place of -inf; a row with nothing else becomes uniform
SCALE, FILL = "math.sqrt(Q.shape[-1])", "scores.masked_fill(~mask, -math.inf)"
HIDDEN, WEIGH, GATHER = "~mask, -math.inf", "soft_max(scores, -1)", "shares @ V"
IF = "if mask is not None:"
FUTURE = "if mask is None:\n    mask = torch.ones_like(scores)"
INVERTED = "The mask is inverted: True means that the query may look at the key."
TO_ZERO = (
    "The masked scores become 0, and exp(0) is 1: these keys still count. They must become "
    "-inf (or a hugely negative number), before the softmax."
)
ADDED = "The mask itself is added to the scores, as 0 and 1: add 0 and -inf."
SQUARE_ROOT = "Divided by d_k, not by its square root."
WRONG_AXIS = "The wrong softmax axis: it runs over "
UNMASKED = "Without a mask every key counts: yours masks what comes later though no mask is given."
IN_SCALE = instead_of(SCALE, {
    "1": "The scores are not scaled: divide by √d_k.",
    "Q.shape[-1]": SQUARE_ROOT,
    "(1 / math.sqrt(Q.shape[-1]))": "The scores are multiplied by √d_k: divide by it.",
})  # fmt: skip
IN_MASK = (
    *instead_of(FILL, {
        "scores": "The mask is not used.",
        "scores + mask.double()": ADDED,
        "scores + (~mask).double()": ADDED,
        "scores - (~mask).double()": ADDED,
        "scores + (~mask).double() * -math.inf": "0 times -inf is NaN: use `masked_fill`.",
    }),
    *instead_of(HIDDEN, {
        "~mask, 0.0": TO_ZERO,
        "mask, 0.0": f"{INVERTED} And: {TO_ZERO}",
        "~mask, math.inf": "Masked scores become +inf.",
    }),
    mistake("The mask comes after the softmax: the weights no longer add up to 1.",
            FILL, "scores", f"return {GATHER}",
            "if mask is not None:\n    shares = shares * mask\nreturn shares @ V"),
)  # fmt: skip
IN_WEIGHTS = (
    *instead_of(WEIGH, {
        "soft_max(scores, -2)": WRONG_AXIS + "the queries. It must run over the keys.",
        "soft_max(scores, 0)": WRONG_AXIS + "axis 0. It must run over the keys, the last axis.",
        "soft_max(scores, 1)": WRONG_AXIS + "axis 1. It must run over the keys, the last axis.",
        "scores": "The softmax is missing.",
        "scores.exp()": "The weights do not add up to 1: exp is not yet a softmax.",
        "torch.sigmoid(scores)": "A sigmoid stands where the softmax should be.",
    }),
    mistake(WRONG_AXIS + "queries and keys together, not over the keys.",
            WEIGH, "soft_max(scores.flatten(-2), -1).unflatten(-1, scores.shape[-2:])"),
    mistake("Queries and keys are swapped: the scores need one row for each query, Q Kᵀ.",
            "Q @ K.transpose(-1, -2)", "K @ Q.transpose(-1, -2)"),
    mistake("K is not transposed: the scores are Q Kᵀ.", "Q @ K.transpose(-1, -2)", "Q @ K"),
    mistake("The weights are transposed before V.", GATHER, "shares.transpose(-1, -2) @ V"),
    mistake("These are the weights: multiply them by V.", GATHER, "shares"),
)  # fmt: skip
ATTENTION_MISTAKES = (
    *IN_SCALE,
    *instead_of(SCALE, {
        "math.sqrt(V.shape[-1])": "Scaled by d_v, the width of the values: divide by √d_k.",
        "V.shape[-1]": "Scaled by d_v, and without the square root: divide by √d_k.",
        "math.sqrt(K.shape[-2])": "Scaled by the number of keys: divide by √d_k, their width.",
        "math.sqrt(Q.shape[-2])": "Scaled by the number of queries: divide by √d_k, their width.",
        "Q.shape[-1] ** 0.25": "Divided by the fourth root of d_k.",
        "(Q.shape[-1] / 2)": "Divided by half of d_k, not by its root.",
    }),
    *instead_of(HIDDEN, {
        "mask, -math.inf": INVERTED,
        "mask, NEVER": INVERTED,
        "~mask.transpose(-1, -2), -math.inf": "The mask is transposed: its rows are the queries.",
    }),
    *IN_MASK,
    mistake(UNMASKED, IF, f"{FUTURE}.tril().bool()\n{IF}"),
    mistake(UNMASKED, IF, f"{FUTURE}.tril(1).bool()\n{IF}"),
    *IN_WEIGHTS,
    mistake("The softmax takes exp of large scores, which overflows: subtract the maximum first.",
            *NO_SHIFT.edits[0]),
)  # fmt: skip


def _attention(
    *leading: int, mask: Tensor | None = None, what: str = "", queries=2, scale=1.0, d_k=4
) -> Case:
    inputs = {
        "Q": scale * drawn(*leading, queries, d_k, seed=1),
        "K": scale * drawn(*leading, 3, d_k, seed=2),
        "V": drawn(*leading, 3, 5, seed=3),
        "mask": mask,
    }
    return Case("scaled_dot_product_attention", inputs, what=what)


SEEN = torch.tensor([[True, False, True], [False, False, True]])
ATTENTION = of_tensors(
    program=reference(soft_max, attention),
    mistakes=ATTENTION_MISTAKES,
    cases=(
        _attention(1),
        _attention(1, mask=SEEN),
        _attention(1, queries=3, mask=causal(3)),
        _attention(2),
        _attention(2, mask=SEEN),
        _attention(2, mask=torch.stack((SEEN, SEEN.flip(1)))),
        _attention(2, 3, what="two leading dimensions"),
        _attention(2, 3, mask=SEEN, what="two leading dimensions"),
        _attention(2, 3, queries=3, mask=causal(3)),
        _attention(1, d_k=6, what="another d_k"),  # 4 is its own root times 2, and 4 · 0.5
        _attention(1, scale=100.0, what="large scores"),
    ),
    run=call_function,
    errors={
        "NoneType": "Without a mask every key counts: `mask=None` must work.",
        "shape of the mask": "One mask of shape (queries, keys) serves the whole batch, and an "
        "index takes no such mask: use `masked_fill` or `torch.where`.",
        "Dimension out of range": "An axis is counted from the front, and then it is another one, "
        "or none, with fewer leading dimensions: the last axis is -1.",
    },
)


def scaled_dot_product_attention(attempt: Any, part: str | None = None) -> str:
    """Praise for right attention; raises `Wrong` with the first input that fails."""
    found, remarks = judge_function(attempt, ATTENTION, _attention(2, mask=SEEN))
    matrices = {"Plain matrices, without leading axes, fail.": _attention(mask=SEEN)}
    remarks += open_questions(found, ATTENTION, attempt, matrices)
    return found.verdict("Right with and without a mask, for any leading dimensions.", remarks)


# The loss.

LOGS = "logits - logits.logsumexp(-1, keepdim=True)"
CHOSEN, MEAN = "logs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)", "-chosen.mean()"
SMALL = (
    "Something small is added before the log (or is the lower limit), so that no log(0) appears: "
    "but the loss of an unlikely target is then wrong. Write log softmax as "
    "x - max - log Σ exp(x - max)."
)
LOSS_NO_SHIFT = "exp of large logits overflows: subtract the maximum first."
NO_LOG, NO_TOTAL = (
    "The logarithm is missing.",
    "Only the target's logit counts: log Σ exp of all logits is missing.",
)
OF_FIRST = "Averaged over the first dimension only: "
OF_LAST = "Averaged over the last batch dimension only: "
LOSS_MISTAKES = (
    *instead_of(LOGS, {
        "soft_max(logits, -1).log()": "This is the log of a softmax, and log(0) is -inf: write it "
        "as x - max - log Σ exp(x - max).",
        "logits - logits.exp().sum(-1, keepdim=True).log()": LOSS_NO_SHIFT,
        "(logits.exp() / logits.exp().sum(-1, keepdim=True)).log()": LOSS_NO_SHIFT,
        "logits - logits.logsumexp(-1).max()": "The sum is of the whole tensor, not of each row.",
        "logits.log_softmax(0)": "The wrong axis: softmax must run over the vocabulary, the last.",
        "logits.log_softmax(1)": "The wrong axis: softmax must run over the vocabulary, the last.",
        f"({LOGS}) / math.log(2)": "The logarithm has base 2: the loss is in nats.",
        f"({LOGS}) / math.log(10)": "The logarithm has base 10: the loss is in nats.",
        "soft_max(logits, -1)": NO_LOG,
        "1 - soft_max(logits, -1)": NO_LOG,
        "logits": NO_TOTAL,
        "logits - logits.amax(-1, keepdim=True)": NO_TOTAL,
        f"{LOGS} + logits.amax(-1, keepdim=True)": "The maximum was subtracted in log Σ exp only.",
        "soft_max(logits, -1).log_softmax(-1)": "There is a softmax before the loss, a second one.",
    }),
    *(
        mistake(SMALL, LOGS, f"(soft_max(logits, -1) + 1e-{power}).log()")
        for power in (5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 30)
    ),
    *instead_of(MEAN, {
        "-chosen.sum()": "The losses are summed, not averaged.",
        "chosen.mean()": "The minus sign is missing.",
        "-chosen.sum() / len(chosen)": OF_FIRST + "divide by the number of all targets.",
        "-chosen.sum() / chosen.shape[-1]": OF_LAST + "divide by the number of all targets.",
        "-chosen": "One loss for each target: take their mean.",
        "-chosen.mean(0)": OF_FIRST + "take the mean over all of them.",
        "-chosen.mean(-1)": OF_LAST + "take the mean over all of them.",
        "-chosen.sum(-1).mean()": "Summed over the sequence: divide by the number of all targets.",
        "-chosen.mean() / logits.shape[-1]": "Averaged over the vocabulary too, not only targets.",
        "(-chosen.mean()).exp()": "This is the perplexity, exp of it.",
        "-chosen.exp().mean().log()": "The probabilities are averaged: average their logarithms.",
        "-chosen.median()": "The median is not the mean.",
    }),
    *instead_of(CHOSEN, {
        "logs[:, targets]": "`[:, targets]` takes every target of each row: use `gather`.",
        "logs.gather(1, targets.unsqueeze(1)).squeeze(1)": "The vocabulary is the last axis, "
        "not axis 1, with several batch dimensions.",
        "logs.amax(-1)": "The largest logit was taken, not the target's.",
        "logs[..., 0]": "Always the first id is taken, not the target.",
        "logs": "The log probabilities of all ids count, not only the target's.",
    }),
    mistake("Off by one: the id after the target was taken.",
            "targets.unsqueeze(-1)", "((targets + 1) % logits.shape[-1]).unsqueeze(-1)"),
    mistake("Off by one: the id before the target was taken.",
            "targets.unsqueeze(-1)", "((targets - 1) % logits.shape[-1]).unsqueeze(-1)"),
)  # fmt: skip


def _loss(logits: Tensor, targets: list, what: str = "") -> Case:
    inputs = {"logits": logits, "targets": torch.tensor(targets)}
    return Case("cross_entropy", inputs, what=what)


BATCHES = "several batch dimensions"
LOSS = of_tensors(
    program=reference(mean_loss),
    mistakes=LOSS_MISTAKES,
    cases=(
        _loss(torch.tensor([[1.0, 2.0, 3.0]]), [1]),
        _loss(drawn(2, 3, seed=1), [2, 0]),
        _loss(drawn(4, 3, seed=2), [1, 1, 0, 2]),
        _loss(drawn(3, 3, seed=3), [0, 2, 2]),
        _loss(drawn(2, 3, 4, seed=4), [[0, 3, 1], [2, 2, 0]], BATCHES),
        _loss(drawn(1, 2, 2, 5, seed=5), [[[0, 4], [1, 3]]], BATCHES),
        _loss(torch.tensor([[1000.0, 1001.0, 999.0]]), [1], "large logits"),
        _loss(torch.tensor([[-1000.0, -1001.0, -999.0]]), [0], "very negative logits"),
        _loss(torch.tensor([[0.0, 500.0, 1000.0], [1.0, 2.0, 0.0]]), [0, 1], "an unlikely target"),
    ),
    run=call_function,
)


def cross_entropy(attempt: Any, part: str | None = None) -> str:
    """Praise for a right loss; raises `Wrong` with the first input that fails."""
    found, remarks = judge_function(attempt, LOSS, LOSS.cases[4])
    return found.verdict(
        "The mean over all batch dimensions, in nats, and large logits are safe.", remarks
    )


# Linear and Embedding.

PRODUCT, ROWS = "x @ weight.T", "weight[token_ids]"
NO_TRANSPOSE = mistake(
    "The product is `x @ W`. The weight has one row for each output, so that it is "
    "`x @ W.T` (y = W x for a single vector).",
    PRODUCT,
    "x @ weight",
)
LINEAR_MISTAKES = (
    NO_TRANSPOSE,
    *instead_of(PRODUCT, {
        f"{PRODUCT} / math.sqrt(x.shape[-1])": "Divided by √d_in: that is for the first weights.",
        f"{PRODUCT} + 1": "A bias of 1 is added.",
        f"torch.relu({PRODUCT})": "A ReLU follows: leave it out.",
    }),
)  # fmt: skip
ROW_0 = "Row 0 is treated as padding: it is a vector like any other, and learns like any other."
EMBEDDING_MISTAKES = instead_of(ROWS, {
    "weight[token_ids - 1]": "Off by one: row id - 1 was taken.",
    "weight[(token_ids + 1) % len(weight)]": "Off by one: row id + 1 was taken.",
    f"{ROWS} * math.sqrt(weight.shape[1])": "Multiplied by √d_model: leave that out.",
    f"{ROWS} * (token_ids > 0).unsqueeze(-1)": ROW_0,
    f"{ROWS} / {ROWS}.norm(dim=-1, keepdim=True)": "The vectors are brought to length 1.",
    "weight.T[token_ids]": "The table has one row for each id: yours is stored transposed.",
    f"{ROWS}.sum(-2)": "The vectors of a sequence are added up: each id keeps its own.",
    "weight[token_ids.flatten()]": "The axes of the ids are lost.",
    "weight[: token_ids.shape[-1]]": "Positions, not ids, are used.",
})  # fmt: skip


def _linear(*leading: int, sizes: tuple[int, int] = (3, 2), what: str = "") -> Case:
    return Case(
        "Linear",
        {"x": drawn(*leading, sizes[0], seed=1)},
        dict(zip(("in_features", "out_features"), sizes, strict=True)),
        {"weight": drawn(sizes[1], sizes[0], seed=2)},
        what=what,
    )


LINEAR = of_tensors(
    program=reference(project),
    mistakes=LINEAR_MISTAKES,
    cases=(
        _linear(1),
        _linear(2),
        _linear(2, sizes=(3, 3)),
        _linear(2, 2, what="two leading dimensions"),
    ),
)


def linear(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = Learner(attempt, LINEAR)
    found, remarks = judge_class(learner, _linear(2))
    d_in, d_out = 64, 256
    others = {
        2 / (d_in + d_out): "The variance was taken for the standard deviation: √ is missing.",
        math.sqrt(1 / (d_in + d_out)): "The 2 is missing: the variance is 2 / (d_in + d_out).",
        math.sqrt(2 / d_in): "The variance is 2 / d_in, not 2 / (d_in + d_out).",
        math.sqrt(2 / d_out): "The variance is 2 / d_out, not 2 / (d_in + d_out).",
        math.sqrt(1 / d_in): "The variance is 1 / d_in, not 2 / (d_in + d_out).",
        math.sqrt(1 / d_out): "The variance is 1 / d_out, not 2 / (d_in + d_out).",
        1.0: "The standard deviation is 1: these are plain `randn`, not scaled at all.",
        0.02: "The standard deviation is GPT-2's 0.02: the course asks for √(2 / (d_in + d_out)).",
    }
    if is_usable(found):
        with found("use"):
            sizes = {"in_features": d_in, "out_features": d_out}
            weight = only_weight(learner, Case("Linear", {}, sizes))
            check_drawn(weight, math.sqrt(2 / (d_in + d_out)), others, f"Linear({d_in}, {d_out})")
    questions = {
        "A single vector, without leading axes, fails.": _linear(),
        "Three leading axes fail.": _linear(2, 1, 2),
    }
    remarks += open_questions(found, LINEAR, learner, questions)
    return found.verdict("Right values, and a right first weight.", remarks)


def is_usable(found: Findings) -> bool:
    """Whether all that was found so far leaves the part usable."""
    return all(wrong.weight != "use" for wrong in found.found)


def only_weight(learner: Learner, case: Case) -> Tensor:
    """The one parameter of a new layer, drawn in the same way each time."""
    torch.manual_seed(0)
    (weight,) = learner.make(case).parameters()
    return weight


def _embedding(ids: list, what: str = "") -> Case:
    sizes = {"num_embeddings": 4, "embedding_dim": 2}
    table = {"weight": drawn(4, 2, seed=1)}
    return Case("Embedding", {"token_ids": torch.tensor(ids)}, sizes, table, what=what)


EMBEDDING = of_tensors(
    program=reference(look_up),
    mistakes=EMBEDDING_MISTAKES,
    cases=(_embedding([[1]]), _embedding([[2, 0, 3, 2]]), _embedding([[0, 1, 1], [3, 2, 0]])),
)


def embedding(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner, case = Learner(attempt, EMBEDDING), EMBEDDING.cases[1]
    found, remarks = judge_class(learner, case)
    others = {
        math.sqrt(2 / (256 + 64)): "That is the standard deviation of Linear: here it is 1.",
        math.sqrt(1 / 64): "The standard deviation is 1/√d_model: here it is 1.",
        0.02: "The standard deviation is GPT-2's 0.02: here it is 1.",
    }
    if is_usable(found):
        with found("use"):
            _check_rows(learner, case)
        with found("use"):
            sizes = {"num_embeddings": 256, "embedding_dim": 64}
            weight = only_weight(learner, Case("Embedding", {}, sizes))
            check_drawn(weight, 1.0, others, "Embedding(256, 64)")
            if (weight[0] == 0).all():
                raise Wrong("Row 0 of a new embedding is 0.", mistake=ROW_0)
    questions = {
        "Ids with 1 axis, not 2, fail.": _embedding([1, 0]),
        "Ids with 3 axes, not 2, fail.": _embedding([[[0], [1]], [[3], [1]]]),
    }
    remarks += open_questions(found, EMBEDDING, learner, questions)
    return found.verdict("The right rows, and a right first weight.", remarks)


def _check_rows(learner: Learner, case: Case) -> None:
    """Raise `Wrong` unless each row learns as often as its id comes."""
    learner(case).sum().backward()
    ((name, parameter),) = learner.module.named_parameters()
    ids = case.inputs["token_ids"]
    asked = torch.stack([(ids == row).sum().expand(2) for row in range(4)]).float()
    asked = asked.T if learner.transposed else asked
    if not alike(parameter.grad, asked):
        right, got = beside(asked, parameter.grad)
        raise Wrong(
            f"The gradient of `{name}` is not the right one.",
            given=Words(f"the gradient of the sum, for {case}"),
            expected=right,
            got=got,
            mistake=ROW_0 if not parameter.grad[0].any() else None,
        )


# RMSNorm.

ROOT, SQUARES = "(mean_square + eps).sqrt()", "x.square().sum(-1, keepdim=True) / x.shape[-1]"
AXIS = "Each vector, along the last axis, has its own root mean square."
DEVIATION = "Divided by the standard deviation, which subtracts the mean"
NO_SQUARES, OTHER_AXIS = "The squares are missing.", f"The wrong axis. {AXIS}"
IN_NORM = (
    *instead_of(ROOT, {
        "(mean_square.sqrt() + eps)": "ε is outside the root: it is √(mean of squares + ε).",
        "mean_square.sqrt()": "ε is missing: a vector of zeros gives 0 / 0.",
        "mean_square.clamp(min=eps).sqrt()": "ε is a lower limit here: add it to the mean square.",
        "(mean_square + eps * eps).sqrt()": "ε is squared: add it as it is.",
        "(mean_square - eps).sqrt()": "ε is subtracted: add it to the mean of squares.",
        "(mean_square + eps)": "The square root is missing.",
    }),
    mistake("Multiplied by the root: divide by it.", f"x / {ROOT}", f"x * {ROOT}"),
    mistake("This is LayerNorm: the mean is subtracted. RMSNorm leaves the mean where it is.",
            "x = x.double()", "x = x.double() - x.double().mean(-1, keepdim=True)"),
    *instead_of(SQUARES, {
        "x.var(-1, keepdim=True, unbiased=False)": f"{DEVIATION}: it is the mean of squares.",
        "x.var(-1, keepdim=True)": f"{DEVIATION} (and counts n - 1): it is the mean of squares.",
        "x.square().sum(-1, keepdim=True)": "The squares are summed, not averaged.",
        "x.abs().mean(-1, keepdim=True).square()": NO_SQUARES,
        "x.mean(-1, keepdim=True)": NO_SQUARES,
        "x.square().mean()": f"One mean of the whole tensor. {AXIS}",
        "x.square().mean(0, keepdim=True)": OTHER_AXIS,
        "x.square().mean(1, keepdim=True)": OTHER_AXIS,
        "x.square().mean(-2, keepdim=True)": OTHER_AXIS,
        "x.square().mean(-1)": "The mean lost its axis: `keepdim=True` is missing.",
    }),
    *instead_of("sqrt() * gain", {
        "sqrt()": "The gain is forgotten: multiply by the weight.",
        "sqrt() * (1 + gain)": "1 + gain: the weight itself is the gain.",
        "sqrt() + gain": "The gain is added: it must be multiplied.",
    }),
)  # fmt: skip
NORM_MISTAKES = (
    *IN_NORM,
    mistake("Missing upcast: in half precision the squares overflow.", "x = x.double()", "x = x"),
    mistake("`eps` that is handed in is not used.", "mean_square = ", "eps = 1e-5\nmean_square = "),
    *(
        mistake("The default of `eps` is 1e-5.", "float = 1e-5", f"float = {eps}")
        for eps in (1e-3, 1e-4, 1e-6, 1e-7, 1e-8, 1e-12, torch.finfo(torch.float32).eps)
    ),
)  # fmt: skip


def _norm(x: Tensor, eps: float | None = None, what: str = "", dtype=torch.float32) -> Case:
    sizes = {"d_model": 4} if eps is None else {"d_model": 4, "eps": eps}
    gain = {"weight": torch.tensor([0.5, 2.0, -1.0, 1.5])}
    return Case("RMSNorm", {"x": x.to(dtype)}, sizes, gain, dtype, what)


def call_norm(learner: Learner, case: Case) -> Tensor:
    """What a learner's norm makes of a case. Raises: Wrong where it comes in another type."""
    result = learner(case)
    if result.dtype != case.dtype:
        expected, got = (Words(f"a tensor of {kind(t)}") for t in (case.dtype, result.dtype))
        raise Wrong(
            "The result has not the type of the input.",
            given=str(case),
            expected=expected,
            got=got,
            mistake="After the work in float32 the result must go back to the type that came in: "
            "`.to(x.dtype)`.",
        )
    return result


NORM = of_tensors(
    program=reference(rms_norm),
    mistakes=NORM_MISTAKES,
    cases=(
        _norm(drawn(1, 1, 4, seed=1), 0.5),
        _norm(drawn(1, 2, 4, seed=1), what="ε by default, 1e-5"),
        _norm(drawn(2, 1, 4, seed=2) + 1, 0.5),
        _norm(drawn(1, 2, 4, seed=2, std=0.003, digits=4), what="small numbers, so that ε matters"),
        _norm(drawn(4, 4, 4, seed=3), 0.5),
        _norm(drawn(2, 3, 4, seed=4), 0.5),
        _norm(torch.zeros(1, 1, 4), what="only zeros"),
        _norm(
            drawn(1, 2, 4, seed=6, std=300, digits=0), what="half precision", dtype=torch.float16
        ),
        _norm(drawn(1, 2, 4, seed=7), what="half precision", dtype=torch.bfloat16),
        _norm(drawn(1, 2, 4, seed=8), what="double precision", dtype=torch.float64),
    ),
    run=call_norm,
    same=lambda one, other: alike(one, other, ROUNDED.get(other.dtype, TOLERANCE)),
)


def rmsnorm(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = Learner(attempt, NORM)
    found, remarks = judge_class(learner, NORM.cases[2])
    if is_usable(found):
        with found("use"):
            check_first_weights(learner, NORM.cases[1])
    questions = {
        f"Inputs with {axes} axes, not 3, fail.": _norm(drawn(*leading, 4, seed=5), 0.5)
        for axes, leading in ((2, (2,)), (4, (2, 1, 3)))
    }
    remarks += open_questions(found, NORM, learner, questions)
    return found.verdict("Right values, in half precision too, and the type that came in.", remarks)


# The feed-forward layer.

GATE_AND_UP, GATED = "silu(project(x, w1)), project(x, w3)", "project(gate * up, w2)"
SILU = "x / (1 + torch.exp(-x))"
NOT_SILU = "SiLU is x · sigmoid(x): here it is "
IN_FEED_FORWARD = (
    mistake("W1 and W3 are swapped: SiLU belongs to W1 x, the gate, and not to W3 x.",
            GATE_AND_UP, "silu(project(x, w3)), project(x, w1)"),
    *instead_of(GATED, {
        "project(gate, w2) * up": "The gate comes after W2 instead of before.",
        "project(gate, w2) * project(up, w2)": "W2 is used on each side: multiply first.",
        "project(gate * silu(up), w2)": "SiLU is applied to W3 x too: only W1 x goes through it.",
        "project(gate, w2)": "There is no gate: SiLU(W1 x) must be multiplied by W3 x.",
        "project(gate + up, w2)": "The gate is added: SiLU(W1 x) and W3 x are multiplied.",
        "gate * up": "W2 is missing: it leads back from d_ff to d_model.",
        f"silu({GATED})": "SiLU is applied to the result as well: only W1 x goes through it.",
        f"x + {GATED}": "x is added inside: that is the block's business.",
    }),
    mistake("SiLU comes after the product: it belongs to W1 x alone.",
            GATE_AND_UP, "project(x, w1), project(x, w3)", GATED, "project(silu(gate * up), w2)"),
    *instead_of(SILU, {
        "x": "There is no SiLU: W1 x must go through it.",
        "torch.sigmoid(x)": NOT_SILU + "sigmoid(x) alone.",
        "torch.relu(x)": NOT_SILU + "a ReLU.",
        "torch.nn.functional.gelu(x)": NOT_SILU + "a GELU.",
        'torch.nn.functional.gelu(x, approximate="tanh")': NOT_SILU + "a GELU.",
        "torch.tanh(x)": NOT_SILU + "a tanh.",
        "x * torch.sigmoid(1.702 * x)": NOT_SILU + "a GELU, nearly.",
        "x * torch.sigmoid(-x)": NOT_SILU + "x · sigmoid(-x).",
        "torch.nn.functional.softplus(x)": NOT_SILU + "a softplus.",
    }),
)  # fmt: skip


def _feed_forward(*leading: int, d_model: int = 2, d_ff: int = 3) -> Case:
    weights = {
        "w1.weight": drawn(d_ff, d_model, seed=1),
        "w2.weight": drawn(d_model, d_ff, seed=2),
        "w3.weight": drawn(d_ff, d_model, seed=3),
    }
    x = drawn(*leading, d_model, seed=4)
    return Case("SwiGLU", {"x": x}, {"d_model": d_model, "d_ff": d_ff}, weights)


FEED_FORWARD = of_tensors(
    program=reference(project, silu, swiglu),
    mistakes=(*IN_FEED_FORWARD, NO_TRANSPOSE),
    cases=(
        _feed_forward(1, 1),
        _feed_forward(1, 2, d_model=3, d_ff=3),
        _feed_forward(1, 2, d_model=4, d_ff=2),
        _feed_forward(2, 3),
    ),
)


def positionwise_feedforward(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = Learner(attempt, FEED_FORWARD)
    found, remarks = judge_class(learner, FEED_FORWARD.cases[3])
    questions = {
        f"Inputs with {axes} axes, not 3, fail.": _feed_forward(*leading)
        for axes, leading in ((2, (2,)), (4, (2, 1, 3)))
    }
    remarks += open_questions(found, FEED_FORWARD, learner, questions)
    return found.verdict("It is W2 (SiLU(W1 x) ⊙ W3 x).", remarks)


# RoPE.

PLACES, POWER, BACK = "positions.unsqueeze(-1)", "(-2 * k / d_k)", "(first, second), -1)"
TURNS, EVEN_ODD = "cos, sin = angles.cos(), angles.sin()", "x[..., 0::2], x[..., 1::2]"
FIRST, SECOND = "even * cos - odd * sin", "even * sin + odd * cos"
WOVEN = "torch.stack((first, second), -1).flatten(-2)"
TO_HALVES, FROM_HALVES = (EVEN_ODD, "x.chunk(2, -1)"), (WOVEN, "torch.cat((first, second), -1)")
PAIRED = (FIRST, "even * a.cos() - odd * a.sin()", SECOND, "even * b.sin() + odd * b.cos()")
HALVES = (
    "RoPE on halves: number k is rotated with number k + d_k/2, as in Llama's code. The course "
    "rotates neighbours, (0, 1), (2, 3), and so on."
)
SIGN = "The sign of the rotation: it is (x cos - y sin, x sin + y cos) for a pair (x, y)."
OFF_BY_ONE = "Positions are off by one: they count from 0."
OVERWRITTEN = (
    "One number of each pair is made of the other's new value: the x that both need was "
    "overwritten. Write into a new tensor, or keep both old numbers first."
)
EXPONENT = (
    "The exponent of theta is wrong: the frequency of pair k = 0, 1, ... is theta^(-2k/d_k): here "
)
DEGREES = "The angles are taken as degrees: they are in radians."
IN_ROPE = (
    mistake(HALVES, *TO_HALVES, *FROM_HALVES),
    mistake("The angles are in another order than the pairs: each comes twice in a row "
            "(`repeat_interleave`, not `cat`).",
            TURNS, "a, b = torch.cat((angles, angles), -1).unflatten(-1, (-1, 2)).unbind(-1)",
            *PAIRED),
    mistake(HALVES,
            *TO_HALVES, *FROM_HALVES, TURNS,
            "a, b = angles.repeat_interleave(2, -1).chunk(2, -1)", *PAIRED),
    *instead_of(TURNS, {
        "cos, sin = angles.cos(), -angles.sin()": SIGN,
        "angles = torch.deg2rad(angles)\ncos, sin = angles.cos(), angles.sin()": DEGREES,
        "angles = torch.rad2deg(angles)\ncos, sin = angles.cos(), angles.sin()": DEGREES,
    }),
    mistake(f"A minus is missing. {SIGN}", FIRST, "even * cos + odd * sin"),
    mistake(SIGN, SECOND, "even * sin - odd * cos"),
    mistake(OVERWRITTEN, SECOND, "first * sin + odd * cos"),
    mistake(OVERWRITTEN, FIRST, f"even * cos - ({SECOND}) * sin"),
    mistake("Sines and cosines are added to x: RoPE rotates x.",
            WOVEN, "x + torch.stack((sin, cos), -1).flatten(-2)"),
    mistake("x comes back as it was: nothing is rotated.", WOVEN, "x"),
    *instead_of(POWER, {
        "(-2 * (k + 1) / d_k)": f"{EXPONENT}k begins at 1.",
        "(-(2 * k + 1) / d_k)": f"{EXPONENT}it is (2k + 1)/d_k.",
        "(-(2 * k - 1) / d_k)": f"{EXPONENT}it is (2k - 1)/d_k.",
        "(-k / d_k)": f"{EXPONENT}the 2 is missing.",
        "(-4 * k / d_k)": f"{EXPONENT}it is 4k/d_k, the 2 came twice.",
        "(2 * k / d_k)": f"{EXPONENT}the minus is missing.",
        "(-k)": f"{EXPONENT}it is not divided by d_k.",
        "(-2 * k)": f"{EXPONENT}it is not divided by d_k.",
        "(0 * k)": f"{EXPONENT}all pairs rotate alike.",
        "(0 * k - 1)": f"{EXPONENT}all pairs rotate alike.",
        "(-2 * k.flip(0) / d_k)": f"{EXPONENT}the last pair rotates fastest.",
        "(-2 * k / max(d_k - 2, 1))": f"{EXPONENT}it ends at -1.",
    }),
    mistake("`theta` is ignored: 10,000 is taken.", "theta **", "10_000.0 **"),
    mistake("There is a factor of 2π too many.", f"{PLACES} *", f"2 * math.pi * {PLACES} *"),
)  # fmt: skip
ROPE_MISTAKES = (
    *IN_ROPE,
    mistake("Neighbours are rotated, but put back as halves: weave them together.", *FROM_HALVES),
    mistake("Halves are rotated, but put back as neighbours.", *TO_HALVES),
    mistake("Sine and cosine are swapped.", TURNS, "sin, cos = angles.cos(), angles.sin()"),
    mistake("The two numbers of each pair come back swapped.", BACK, "(second, first), -1)"),
    *instead_of(PLACES, {
        "(positions + 1).unsqueeze(-1)": OFF_BY_ONE,
        "(positions - 1).unsqueeze(-1)": OFF_BY_ONE,
        "torch.arange(x.shape[-2]).unsqueeze(-1)": "`token_positions` is ignored.",
    }),
    mistake("All of it is 0: is the rotation still to be written?", WOVEN, "torch.zeros_like(x)"),
)  # fmt: skip


def _rope(x: Tensor, positions: list, theta: float = 50.0, what: str = "", **kind: Any) -> Case:
    arguments = {"theta": theta, "d_k": x.shape[-1], "max_seq_len": 8}
    inputs = {"x": x, "token_positions": torch.tensor(positions)}
    return Case("RotaryPositionalEmbedding", inputs, arguments, what=what, **kind)


ROPE = of_tensors(
    program=reference(rotate),
    mistakes=ROPE_MISTAKES,
    cases=(
        _rope(drawn(1, 3, 4, seed=1), [0, 1, 2]),
        _rope(drawn(1, 3, 4, seed=1), [3, 0, 5]),
        _rope(drawn(1, 2, 6, seed=2), [1, 2], 10_000.0),
        _rope(drawn(2, 3, 4, seed=3), [0, 1, 2], what="a batch"),
        _rope(drawn(3, 3, 4, seed=4), [4, 1, 0], what="a batch"),
        _rope(drawn(2, 3, 2, 4, seed=5), [1, 6], what="two leading dimensions"),
        _rope(drawn(1, 1, 4, seed=7), [7], what="the last position, max_seq_len - 1"),
        _rope(drawn(1, 8, 2, seed=8), list(range(8)), 10_000.0, "as many positions as fit"),
    ),
    corners=(
        _rope(drawn(3, 4, seed=6), [0, 2, 1], what="an x of two axes, (seq, d_k)"),
        _rope(
            drawn(2, 3, 4, seed=6),
            [[0, 1, 2], [5, 3, 4]],
            what="positions of their own for each sequence, of shape (batch, seq)",
        ),
    ),
)


def rope(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = Learner(attempt, ROPE)
    found, remarks = judge_class(learner, ROPE.cases[3])
    if is_usable(found):
        found.passes.append("Right where all sequences of a batch share their positions.")
    half = _rope(drawn(1, 3, 4, seed=1).bfloat16(), [3, 0, 5], dtype=torch.bfloat16)
    if not found and learner.module.state_dict():
        remarks.append("Its tables are saved with the model: `persistent=False` keeps them out.")
    questions = {"An x in bfloat16 fails, or comes back in another type.": half}
    remarks += open_questions(found, ROPE, learner, questions)
    return found.verdict("Neighbours are rotated by the positions that are handed in.", remarks)


# Attention with several heads.


def but(mistakes: Sequence[Mistake], *words: str) -> tuple[Mistake, ...]:
    """The mistakes without those of which any of these is said."""
    return tuple(each for each in mistakes if not any(some in each.words for some in words))


SPLIT, MERGE = (
    "x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)",
    "x.transpose(-2, -3).flatten(-2)",
)
STRAIGHT, STRAIGHT_BACK = (
    "x.reshape(*x.shape[:-2], num_heads, x.shape[-2], -1)",
    "x.reshape(*x.shape[:-3], x.shape[-2], -1)",
)
INTERLEAVED, INTERLEAVED_BACK = (
    "x.unflatten(-1, (-1, num_heads)).movedim(-1, -3)",
    "x.movedim(-3, -1).flatten(-2)",
)
UNSWAPPED, UNSWAPPED_BACK = "x.unflatten(-1, (num_heads, -1))", "x.flatten(-2)"
TURN = "Q, K = rotate(Q, places, theta), rotate(K, places, theta)"
TRIANGLE, SIGHT = "dtype=torch.bool).tril()", "causal(Q.shape[-2])"
ROLES, OUTPUT = "in (q, k, v))", "project(merge_heads(gathered), output)"
STRAIGHT_SPLIT = (
    "The heads are split without the transpose: first (seq, heads, d_head), then swap the two "
    "axes. Viewed straight as (heads, seq, d_head) the numbers of positions and heads mix."
)
EVERY_NTH = (
    "The heads are interleaved: head h takes every num_heads-th number. It should take d_head "
    "numbers in a row: (heads d_head), not (d_head heads)."
)
HEADS_TO_HEADS = (
    "Heads attend to heads: (seq, heads, d_head) needs seq and heads swapped before attention."
)
TURNED_ROUND = "The mask is inverted: each position looks at what comes after it, not before."
NO_MASK = "There is no causal mask: a position sees what comes after it."
DIAGONAL = "The diagonal is masked: a position may look at itself."
SEES_NEXT = "The mask is off by one: a position sees the one after it."
FOR_MODEL = (
    "RoPE is made for d_model numbers: inside a head its d_k is d_head = d_model / num_heads."
)
SAME_MATRIX = "One matrix serves twice: queries, keys and values are made by a matrix each."
LONGEST, THETA = 6, 50.0
NO_ROPE = mistake("RoPE is missing: queries and keys are not rotated.", TURN, "pass")
IN_HEADS = (
    mistake(STRAIGHT_SPLIT, SPLIT, STRAIGHT),
    mistake(STRAIGHT_SPLIT, SPLIT, STRAIGHT, MERGE, STRAIGHT_BACK),
    mistake(EVERY_NTH, SPLIT, INTERLEAVED),
    mistake(EVERY_NTH, SPLIT, INTERLEAVED, MERGE, INTERLEAVED_BACK),
    mistake(HEADS_TO_HEADS, SPLIT, UNSWAPPED),
    mistake(HEADS_TO_HEADS, SPLIT, UNSWAPPED, MERGE, UNSWAPPED_BACK),
    mistake(HEADS_TO_HEADS, SPLIT, UNSWAPPED, SIGHT, "causal(x.shape[-2])"),
    mistake("It is one head as wide as d_model: `num_heads` is unused.", SPLIT, "x.unsqueeze(-3)"),
    mistake("The heads are put together without the transpose back.", MERGE, STRAIGHT_BACK),
    mistake("The heads are interleaved when they are put together.", MERGE, INTERLEAVED_BACK),
    mistake("The heads are added up, or averaged: put them side by side.", MERGE, "x.sum(-3)"),
    mistake(NO_MASK, TRIANGLE, "dtype=torch.bool)"),
    mistake(DIAGONAL, TRIANGLE, "dtype=torch.bool).tril(-1)", HIDDEN, "~mask, NEVER"),
    mistake(TURNED_ROUND, TRIANGLE, "dtype=torch.bool).triu()"),
    mistake(TURNED_ROUND, TRIANGLE, "dtype=torch.bool).triu(1)", HIDDEN, "~mask, NEVER"),
    mistake(SEES_NEXT, TRIANGLE, "dtype=torch.bool).tril(1)"),
    mistake("Scaled by √d_model: divide by √d_head.",
            SCALE, "math.sqrt(Q.shape[-1] * Q.shape[-3])"),
    mistake("RoPE is applied to the values too: only queries and keys are rotated.",
            TURN, "Q, K, V = (rotate(each, places, theta) for each in (Q, K, V))"),
    mistake("RoPE is applied to the queries only.", TURN, "Q = rotate(Q, places, theta)"),
    mistake("RoPE is applied to the keys only.", TURN, "K = rotate(K, places, theta)"),
    mistake(
        "RoPE is applied to the whole d_model: rotate each head, with d_k = d_head.",
        TURN,
        "Q, K = (rotate(merge_heads(each), places, theta) for each in (Q, K))\n"
        "Q, K = split_heads(Q, num_heads), split_heads(K, num_heads)"
    ),
    mistake(
        "RoPE is applied before the axes of heads and positions are swapped: it counts heads.",
        TURN,
        "Q, K = (rotate(each.transpose(-2, -3), places, theta) for each in (Q, K))\n"
        "Q, K = Q.transpose(-2, -3), K.transpose(-2, -3)"
    ),
    mistake(FOR_MODEL, "d_k = x.shape[-1]", "d_k = 2 * x.shape[-1]"),  # there are two heads
    mistake("Queries and keys are swapped.", ROLES, "in (k, q, v))"),
    mistake("Keys and values are swapped.", ROLES, "in (q, v, k))"),
    mistake("Queries and values are swapped.", ROLES, "in (v, k, q))"),
    mistake(SAME_MATRIX, ROLES, "in (q, q, v))"),
    mistake(SAME_MATRIX, ROLES, "in (q, k, k))"),
    mistake(SAME_MATRIX, ROLES, "in (q, q, q))"),
    mistake("The output projection is missing.", OUTPUT, "merge_heads(gathered)"),
)  # fmt: skip
HIDING = (  # a position without any key becomes NaN, and with it all that comes after it
    mistake(DIAGONAL, TRIANGLE, "dtype=torch.bool).tril(-1)"),
    mistake(TURNED_ROUND, TRIANGLE, "dtype=torch.bool).triu(1)"),
)
IN_ATTENTION = (*IN_SCALE, *IN_MASK[1:], *but(IN_WEIGHTS, "swapped"))
MULTIHEAD_MISTAKES = (
    NO_ROPE,
    *IN_HEADS,
    *HIDING,
    mistake("The third argument is taken for theta: it is max_seq_len, and theta is the fourth.",
            TURN, f"Q, K = rotate(Q, places, {LONGEST}), rotate(K, places, {LONGEST})"),
    mistake("x is added inside: that is the block's business.", OUTPUT, f"x + {OUTPUT}"),
    mistake("`token_positions` is ignored: RoPE always counts from 0.",
            " if positions is None else positions.unsqueeze(-2)", ""),
    *but(IN_ROPE, "nothing is rotated"),
    *IN_ATTENTION,
)  # fmt: skip
PARTS_OF_HEADS = (
    project, rotate, soft_max, attention, causal, split_heads, merge_heads, multihead,
)  # fmt: skip


def attention_weights(d_model: int, seed: int = 0) -> dict[str, Tensor]:
    """Four square matrices by the names of the course."""
    std = 1.5 / math.sqrt(d_model)
    roles = ("q", "k", "v", "output")
    return {
        f"{role}_proj.weight": drawn(d_model, d_model, seed=seed + i, std=std)
        for i, role in enumerate(roles)
    }


def _heads(
    x: Tensor, num_heads: int, positions: Any = None, what: str = "", rope: bool = False
) -> Case:
    arguments = {"d_model": x.shape[-1], "num_heads": num_heads}
    inputs: dict[str, Any] = {"x": x}
    if rope or positions is not None:
        arguments |= {"max_seq_len": LONGEST, "theta": THETA}
        inputs["token_positions"] = positions if positions is None else torch.tensor(positions)
    weights = attention_weights(x.shape[-1], 10)
    return Case("MultiHeadSelfAttention", inputs, arguments, weights, what=what)


WIDE = 128  # numbers of a vector where first weights are looked at
MULTIHEAD = of_tensors(
    program=reference(*PARTS_OF_HEADS),
    mistakes=MULTIHEAD_MISTAKES,
    cases=(
        _heads(drawn(1, 3, 6, seed=1), 2),
        _heads(drawn(2, 3, 6, seed=2), 2),
        _heads(drawn(2, 3, 6, seed=3), 3),
        _heads(drawn(1, 4, 4, seed=4), 1, what="a single head"),
        _heads(drawn(1, 3, 8, seed=5), 2, [0, 1, 2], what="RoPE"),
        _heads(drawn(2, 3, 8, seed=6), 2, [0, 1, 2], what="RoPE"),
        _heads(drawn(2, 3, 8, seed=7), 2, [0, 2, 5], what="RoPE, other positions"),
        _heads(drawn(2, 6, 8, seed=8), 2, [*range(6)], what="RoPE, all positions"),
        _heads(drawn(1, 2, 8, seed=9), 2, [0, 1], what="RoPE"),
        _heads(drawn(1, 3, 12, seed=9), 2, [0, 1, 2], what="RoPE"),
    ),
)


def without_rope(learner: Learner, cases: Sequence[Case]) -> tuple[tuple[Case, ...], list[str]]:
    """The cases that a class can be asked for, and remarks on those that it cannot.

    One that always has RoPE cannot go without, and one whose `forward` takes no positions counts.
    """
    remarks = []
    if learner.turns():
        cases = [case for case in cases if "theta" in case.arguments]
        remarks.append("It cannot do without RoPE, as the ablation of chapter 7 will want it to.")
    if not learner.takes_positions():
        cases = [case for case in cases if _from_0(case.inputs.get("token_positions"))]
        remarks.append("`forward` takes no positions: they are always counted from 0.")
    return tuple(cases), remarks


def _from_0(positions: Tensor | None) -> bool:
    return positions is None or positions.tolist() == [*range(len(positions))]


def multihead_self_attention(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = Learner(attempt, MULTIHEAD)
    x = drawn(2, 3, 8, seed=7)
    cases, remarks = without_rope(learner, MULTIHEAD.cases)
    learner.exercise = replace(MULTIHEAD, cases=cases)
    found, more = judge_class(learner, MULTIHEAD.cases[6 if learner.takes_positions() else 5])
    remarks += more
    for wrong in found.found:
        if wrong.weight == "use" and "RoPE" in getattr(wrong.case, "what", ""):
            found.passes.append("Right without RoPE.")
    if not found:
        with found("corner"):
            check_first_weights(learner, _heads(torch.zeros(1, 1, WIDE), 2, [0]))
    questions = {
        "Inputs with two batch dimensions fail.": _heads(drawn(2, 3, 3, 6, seed=9), 2),
        "Positions of their own for each sequence of a batch (shape (batch, seq)) fail: they need "
        "an axis for the heads.": _heads(x, 2, [[0, 1, 2], [3, 2, 5]]),
        "Where no positions are given it should count them from 0, and does not.": _heads(
            x, 2, rope=True
        ),
        "Positions of shape (1, seq), as in the course's tests, fail.": _heads(x, 2, [[3, 2, 5]]),
    }
    askable, _ = without_rope(learner, tuple(questions.values()))
    questions = {remark: case for remark, case in questions.items() if case in askable}
    remarks += open_questions(found, MULTIHEAD, learner, questions)
    return found.verdict("Right with RoPE, and no position sees what follows it.", remarks)


# The block.

ADD_ATTENTION, ADD_FFN = "x = x + attn(ln1(x))", "return x + ffn(ln2(x))"
NORMS = "for number in (1, 2))"
RESIDUAL = "The residual connection is missing around "
NORMED = "The residual stream is normalised: add to what came in, not to what the norm made of it."
IN_BLOCK = (
    mistake("Post-norm for pre-norm: norms come before attention and feed-forward layer.",
            ADD_ATTENTION, "x = ln1(x + attn(x))", ADD_FFN, "return ln2(x + ffn(x))"),
    mistake("The norms come after attention and feed-forward layer: put them before.",
            ADD_ATTENTION, "x = x + ln1(attn(x))", ADD_FFN, "return x + ln2(ffn(x))"),
    mistake("The norm before the feed-forward layer is missing.", ADD_FFN, "return x + ffn(x)"),
    mistake("The norm before attention is missing.", ADD_ATTENTION, "x = x + attn(x)"),
    mistake("Both norms are missing.",
            ADD_ATTENTION, "x = x + attn(x)", ADD_FFN, "return x + ffn(x)"),
    mistake("ln1 and ln2 are swapped.", NORMS, "for number in (2, 1))"),
    mistake("ln1 is used twice: the feed-forward layer has ln2.", NORMS, "for number in (1, 1))"),
    mistake(NORMED,
            ADD_ATTENTION, "x = ln1(x)\nx = ln2(x + attn(x))", ADD_FFN, "return x + ffn(x)"),
    mistake(NORMED, ADD_ATTENTION, "x = ln1(x)\nx = x + attn(x)"),
    mistake(NORMED, ADD_FFN, "x = ln2(x)\nreturn x + ffn(x)"),
    mistake("The second addition goes back to the block's input.",
            ADD_FFN, "return before + ffn(ln2(x))", ADD_ATTENTION, f"before = x\n{ADD_ATTENTION}"),
    mistake("Attention and feed-forward layer stand side by side.",
            ADD_ATTENTION, "pass", ADD_FFN, "return x + attn(ln1(x)) + ffn(ln2(x))"),
    mistake(RESIDUAL + "attention.", ADD_ATTENTION, "x = attn(ln1(x))"),
    mistake(RESIDUAL + "the feed-forward layer.", ADD_FFN, "return ffn(ln2(x))"),
    mistake(RESIDUAL + "both.", ADD_ATTENTION, "x = attn(ln1(x))", ADD_FFN, "return ffn(ln2(x))"),
    mistake("Post-norm in the second half: ln2 comes first.", ADD_FFN, "return ln2(x + ffn(x))"),
    mistake("Post-norm in the first half: ln1 comes first.", ADD_ATTENTION, "x = ln1(x + attn(x))"),
    mistake("The second norm gets what the first one made.",
            ADD_ATTENTION, "normed = ln1(x)\nx = x + attn(normed)", ADD_FFN,
            "return x + ffn(ln2(normed))"),
    mistake("The feed-forward layer comes before attention.",
            ADD_ATTENTION, "x = x + ffn(ln2(x))", ADD_FFN, "return x + attn(ln1(x))"),
    mistake("The feed-forward layer is missing.", ADD_FFN, "return x"),
    mistake("Attention is missing.", ADD_ATTENTION, "pass"),
    mistake("Without RoPE: is `theta` handed on to attention?", "theta=theta", "theta=None"),
)  # fmt: skip
BLOCK_MISTAKES = (
    *IN_BLOCK,
    # Without what gives errors of sizes here, like any other, and what shows only alone.
    *but(IN_HEADS, "added up", FOR_MODEL),
    *HIDING,
    *IN_ATTENTION,
    *but(IN_ROPE, "nothing is rotated"),
    *IN_FEED_FORWARD,
    *but(IN_NORM, "ε", NO_SQUARES, "keepdim"),
)
PARTS_OF_BLOCK = (*PARTS_OF_HEADS, rms_norm, silu, swiglu, inside, block)


def block_weights(d_model: int, d_ff: int, seed: int = 0) -> dict[str, Tensor]:
    """The weights of a block by the names of the course."""
    std = 1.5 / math.sqrt(d_model)
    heads = attention_weights(d_model, seed + 10)
    return {
        "ln1.weight": 1 + drawn(d_model, seed=seed + 1, std=0.3),
        **{f"attn.{name}": weight for name, weight in heads.items()},
        "ln2.weight": 1 + drawn(d_model, seed=seed + 2, std=0.3),
        "ffn.w1.weight": drawn(d_ff, d_model, seed=seed + 3, std=std),
        "ffn.w2.weight": drawn(d_model, d_ff, seed=seed + 4, std=std),
        "ffn.w3.weight": drawn(d_ff, d_model, seed=seed + 5, std=std),
    }


def _block(*leading: int, d_model: int = 8, d_ff: int = 12, rope=True, what: str = "") -> Case:
    arguments = {"d_model": d_model, "num_heads": 2, "d_ff": d_ff}
    if rope:
        arguments |= {"max_seq_len": LONGEST, "theta": THETA}
    x = {"x": 2 * drawn(*leading, d_model, seed=1)}
    return Case("TransformerBlock", x, arguments, block_weights(d_model, d_ff), what=what)


BLOCK = of_tensors(
    program=reference(*PARTS_OF_BLOCK),
    mistakes=BLOCK_MISTAKES,
    cases=(
        _block(1, 3),
        _block(1, 1, what="a single position"),
        _block(2, 3, what="a batch"),
        _block(2, 4, d_ff=8, what="a batch"),
        _block(1, 2),
        _block(2, 6, d_model=12, what="as many positions as fit"),
    ),
)


def transformer_block(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = Learner(attempt, BLOCK)
    found, remarks = judge_class(learner, BLOCK.cases[2])
    if not found:
        with found("corner"):
            check_first_weights(learner, _block(1, 1, d_model=WIDE, d_ff=2 * WIDE))
    questions = {
        "It needs max_seq_len and theta. Without them there is no RoPE, as the ablation of chapter "
        "7 will want.": _block(2, 3, rope=False),
        "Inputs with two batch dimensions fail.": _block(2, 3, 3),
    }
    remarks += open_questions(found, BLOCK, learner, questions)
    return found.verdict("Pre-norm, with both residual connections.", remarks)


# The language model.

EMBEDDED = 'look_up(token_ids, weights["token_embeddings.weight"])'
LAST_NORM = 'x = rms_norm(x, weights["ln_final.weight"])'
HEAD, NUMBERS = 'project(x, weights["lm_head.weight"])', "numbers = range(num_layers)"
PROBABILITIES = (
    "There is a softmax at the end: return the logits, the loss makes probabilities of them."
)
IN_MODEL = (
    mistake("The final norm, `ln_final`, is missing before the head.", LAST_NORM, "pass"),
    mistake("The final norm is applied twice.", LAST_NORM, f"{LAST_NORM}; {LAST_NORM}"),
    mistake(PROBABILITIES, HEAD, f"torch.softmax({HEAD}, -1)"),
    mistake(PROBABILITIES, HEAD, f"torch.log_softmax({HEAD}, -1)"),
    mistake(PROBABILITIES, HEAD, f"torch.softmax({HEAD}, 1)"),
    mistake("Only the last position comes back: return all.", HEAD, f"{HEAD}[..., -1, :]"),
    mistake("The last two axes are swapped.", HEAD, f"{HEAD}.transpose(-1, -2)"),
    mistake("Tokens come back: return the logits.", HEAD, f"{HEAD}.argmax(-1)"),
    mistake("The head is missing: these are no logits.", f"return {HEAD}", "return x"),
    mistake("The head uses the matrix of the embedding: the course gives it its own.",
            HEAD, 'project(x, weights["token_embeddings.weight"])'),
    mistake("Only the first block is used.", NUMBERS, "numbers = [0]"),
    mistake("Only the last block is used.", NUMBERS, "numbers = [num_layers - 1]"),
    mistake("No block is used.", NUMBERS, "numbers = []"),
    mistake("The first block is used every time.", NUMBERS, "numbers = [0] * num_layers"),
    mistake("The blocks come in reverse order.", NUMBERS, "numbers = range(num_layers)[::-1]"),
    mistake("The embeddings are multiplied by √d_model: leave that out.",
            EMBEDDED, f"math.sqrt(weights['ln_final.weight'].numel()) * {EMBEDDED}"),
    mistake("A position sees no key at all: is the mask inverted, or the diagonal masked?",
            TRIANGLE, "dtype=torch.bool).tril(-1)"),
    mistake("The embeddings are normalised.", EMBEDDED, f"rms_norm({EMBEDDED}, 1, 0)"),
)  # fmt: skip


def model_weights(vocab_size: int, d_model: int, num_layers: int, d_ff: int) -> dict[str, Tensor]:
    """The weights of a language model by the names of the course."""
    return {
        "token_embeddings.weight": drawn(vocab_size, d_model, seed=1),
        **{
            f"layers.{layer}.{name}": weight
            for layer in range(num_layers)
            for name, weight in block_weights(d_model, d_ff, 100 * layer).items()
        },
        "ln_final.weight": 1 + drawn(d_model, seed=2, std=0.3),
        "lm_head.weight": drawn(vocab_size, d_model, seed=3, std=0.5),
    }


def _model(ids: list, what: str = "", vocab_size=5, d_model=8, layers=2, d_ff=12) -> Case:
    arguments = {
        "vocab_size": vocab_size,
        "context_length": 4,
        "d_model": d_model,
        "num_layers": layers,
        "num_heads": 2,
        "d_ff": d_ff,
        "rope_theta": THETA,
    }
    weights = model_weights(vocab_size, d_model, layers, d_ff)
    return Case("TransformerLM", {"token_ids": torch.tensor(ids)}, arguments, weights, what=what)


MODEL = of_tensors(
    program=reference(look_up, *PARTS_OF_BLOCK, language_model),
    mistakes=(
        *IN_MODEL,
        *(each for each in but(BLOCK_MISTAKES, "0 times -inf", "+inf") if each not in HIDING),
    ),
    cases=(
        _model([[3]], "a single token"),
        _model([[1, 4, 0]]),
        _model([[2, 2, 3], [0, 1, 4]], "a batch"),
        _model([[2, 1]], d_ff=8),
        _model([[2, 0]], d_model=12),
        _model([[0, 1, 2, 3], [4, 4, 1, 0]], "as many tokens as the context holds"),
    ),
    pairs=False,  # of so many there is no time for all
)


def transformer_lm(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = Learner(attempt, MODEL)
    found, remarks = judge_class(learner, MODEL.cases[2])
    if not found:
        with found("corner"):
            check_first_weights(learner, _model([[0]], "", WIDE, WIDE, 1, 2 * WIDE))
    return found.verdict("Logits for each position, block after block.", remarks)
