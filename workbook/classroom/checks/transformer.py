"""The checks of chapter 3 and of the loss: one plain Transformer, and what goes wrong in it.

The functions of the first part are the reference of every problem: a problem takes those that it
needs (`Program`), and common mistakes in a small part are looked for in every part that uses it.
"""

import inspect
import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from workbook.classroom.checks.machinery.calling import MODEL_ARGUMENTS
from workbook.classroom.checks.machinery.engine import (
    Exercise,
    Mistake,
    Program,
    instead_of,
    is_about_sizes,
    judge,
    mistake,
    tried,
    usual,
)
from workbook.classroom.checks.machinery.from_scratch import expect_from_scratch
from workbook.classroom.checks.machinery.modules import (
    ADOPTED,
    ModuleRunner,
    TensorRunner,
    Unseen,
    Weights,
    check_first_weights,
    check_gradients,
)
from workbook.classroom.checks.machinery.tensors import (
    Case,
    NamedDevices,
    OneDevice,
    TwoDevicesError,
    alike,
    dropped,
    kind,
    mismatch,
    noise,
    same_kind,
)
from workbook.classroom.checks.machinery.verdicts import (
    CALLED,
    Findings,
    NotAttempted,
    Wrong,
    call,
    expect_function,
    is_refusal,
    where,
    work_of,
)

# The reference: a Transformer in float64. `weights` go by the names of the course.


def project(x: Tensor, weight: Tensor) -> Tensor:
    """A linear layer: the weight has one row for each output."""
    return x @ weight.T  # the product


def look_up(token_ids: Tensor, weight: Tensor) -> Tensor:
    """An embedding: the rows that the ids name."""
    return weight[token_ids]  # how the rows are taken


def rms_norm(x: Tensor, gain: Tensor, eps: float = 1e-5) -> Tensor:
    """Each vector divided by its root mean square, times the gain."""
    came_in = x.dtype
    x = x.double()  # the type in which the norm is computed
    mean_square = x.square().sum(-1, keepdim=True) / x.shape[-1]  # the norm's mean of squares
    normed = x / (mean_square + eps).sqrt() * gain  # what the norm does with its mean of squares
    return normed.to(came_in)


def silu(x: Tensor) -> Tensor:
    """x · sigmoid(x)."""
    return x / (1 + torch.exp(-x))  # SiLU


def swiglu(x: Tensor, weights: Weights) -> Tensor:
    """The feed-forward layer: W2 (SiLU(W1 x) ⊙ W3 x)."""
    w1, w2, w3 = (weights[f"w{number}.weight"] for number in (1, 2, 3))
    gate = silu(project(x, w1))  # what goes through SiLU
    up = project(x, w3)  # what goes through SiLU
    return project(gate * up, w2)  # how the two sides of SwiGLU are joined


def rotate(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """RoPE: pair k = 0, 1, ... of neighbours rotated by position · theta^(-2k / d_k)."""
    d_k = x.shape[-1]
    k = torch.arange(d_k // 2, device=x.device).double()  # how RoPE counts its pairs, from 0
    frequency = theta ** (-2 * k / d_k)  # RoPE's frequencies, theta^(-2k / d_k)
    angles = positions.unsqueeze(-1) * frequency  # RoPE's angles
    cos = angles.cos()  # RoPE's cosines and sines
    sin = angles.sin()  # RoPE's cosines and sines
    even = x[..., 0::2]  # which numbers RoPE takes as pairs
    odd = x[..., 1::2]  # which numbers RoPE takes as pairs
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
    return shares @ V  # the weighted sum of the values


def causal(length: int) -> Tensor:
    """The mask in which a position sees itself and what comes before."""
    return torch.ones(length, length, dtype=torch.bool).tril()  # the causal mask


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(..., seq, d_model) as (..., heads, seq, d_head)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)  # how the heads are split


def merge_heads(x: Tensor) -> Tensor:
    """(..., heads, seq, d_head) as (..., seq, d_model)."""
    return x.transpose(-2, -3).flatten(-2)  # how the heads are put together


def multihead(x: Tensor, weights: Weights, num_heads: int, theta=None, positions=None) -> Tensor:
    """Causal self-attention; with RoPE if there is a theta. Positions may have a batch axis."""
    q, k, v, output = (weights[f"{role}_proj.weight"] for role in ("q", "k", "v", "output"))
    Q, K, V = (split_heads(project(x, weight), num_heads) for weight in (q, k, v))  # Q, K and V
    if theta is not None:  # when RoPE is applied
        places = torch.arange(x.shape[-2]) if positions is None else positions.unsqueeze(-2)  # RoPE
        Q = rotate(Q, places, theta)  # RoPE
        K = rotate(K, places, theta)  # RoPE
    gathered = attention(Q, K, V, causal(Q.shape[-2]))
    return project(merge_heads(gathered), output)  # the output projection


def inside(weights: Weights, part: str) -> Weights:
    """The weights of a part, by their names inside it."""
    return {
        name.removeprefix(part): weight for name, weight in weights.items() if name.startswith(part)
    }


def block(x: Tensor, weights: Weights, num_heads: int, theta=None, positions=None) -> Tensor:
    """A pre-norm block: attention and feed-forward layer, each added to what came in."""
    ln1, ln2 = (partial(rms_norm, gain=weights[f"ln{number}.weight"]) for number in (1, 2))
    heads = {"num_heads": num_heads, "theta": theta, "positions": positions}
    attn: Callable = partial(multihead, weights=inside(weights, "attn."), **heads)
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
    """Call a function of the reference with the values of a case for its arguments."""
    values = {**case.arguments, **case.high, "weights": case.high}
    values |= {role: values[name] for role, name in COURSE.items() if name in values}
    names = inspect.signature(function).parameters
    return function(**{name: values[name] for name in names if name in values})


reference = partial(Program, call=with_case)  # of some of these functions, the last one called


class ReadyRope(nn.Module):
    """RoPE for a class that is handed one, called with (x, positions)."""

    def __init__(self, theta: float, d_k: int, max_seq_len: int | None):
        super().__init__()
        self.theta = theta
        self.d_k = d_k
        self.max_seq_len = max_seq_len

    def forward(self, *tensors: Tensor | None, **named: Tensor | None) -> Tensor | tuple:
        """Rotate what is inside a head, or queries and keys at once; the heads share positions."""
        *others, last = (tensor for tensor in (*tensors, *named.values()) if tensor is not None)
        rotated = others
        positions = last
        if last.is_floating_point():
            rotated = [*others, last]
            positions = torch.arange(last.shape[-2], device=last.device)
        if 1 < positions.ndim < rotated[0].ndim - 1:
            positions = positions.unsqueeze(-2)
        results = [rotate(x, positions, self.theta).to(x.dtype) for x in rotated]
        return results[0] if len(results) == 1 else tuple(results)


# What is asked of every part.


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(Exercise):
    """The exercise of one problem, what else is asked of a right solution, and its check."""

    praise: str
    gradients: Case  # whose gradients are compared
    large: Case | None = None  # whose initial weights are checked

    def __call__(self, attempt: Any) -> str:
        """Praise for what is right; raises `Wrong`."""
        part = self
        case = self.gradients
        runner: Any = self.runner(attempt)
        is_class = isinstance(runner, ModuleRunner)
        if "num_heads" in case.arguments:
            part = runner.exercise = possible(self, runner)
        findings = judge(part, runner)
        # To refuse a d_ff that the handout advises against is a choice.
        for wrong in [*findings.wrongs]:
            if wrong.case.what == ODD["what"] and is_refusal(wrong.error):
                findings.wrongs.remove(wrong)
        if not findings.in_use:
            with findings("use"):
                check_gradients(runner, part, case)
                if is_class:
                    check_second_calls(part, runner)
                if {"theta", "num_heads"} <= case.arguments.keys():
                    check_own_positions(part, runner)
        if not findings.in_use:
            if is_class:
                with findings("corner"):
                    runner.expect_upright()
                with findings("corner"):
                    expect_no_axis_added(part, runner)
            with findings("style"):
                expect_from_scratch(lambda: runner.rerun(case), runner.consists_of())
        praise = self.praise
        is_ready_made = any(wrong.weight == "style" for wrong in findings.wrongs)
        if self.large and not findings.in_use and not is_ready_made:
            try:
                with findings("use"):
                    check_first_weights(runner, self.large, findings)
            except Unseen:
                praise = f"{praise.removesuffix(INITIAL).rstrip('.')}. Initial weights not judged."
        for wrong in findings.wrongs:
            part.explain(wrong, runner, findings)
        remarks = [] if findings else worth_knowing(part, runner)
        if is_class:
            remarks = [*runner.remarks, *remarks]
        return findings.verdict(praise, remarks)

    def runner(self, attempt: Any) -> TensorRunner:
        """What runs the attempt: a function will do where nothing is learned."""
        case = self.gradients
        if not case.weights and (not case.arguments or is_plain(attempt)):
            expect_function(attempt, case.signature)
            return TensorRunner(attempt)
        make = getattr(attempt, ADOPTED, ModuleRunner)
        return make(attempt, self, ReadyRope)

    def explain(self, wrong: Wrong, runner: TensorRunner, findings: Findings) -> None:
        """Add to a finding what an error comes from, how weights were read, and what is right."""
        words = [wrong.mistake or usual(wrong.error) or ""]
        if wrong.case:
            words.append(runner.assumed())
            if wrong.case.dtype != torch.float32:
                words.append(dropped(runner.attempt))
            if "d_k" in wrong.case.arguments:
                words.append(_positions_that_work(self, runner))
            # No corner is tried without RoPE.
            has_rope = "theta" in wrong.case.arguments.keys() - self.cases[0].arguments
            if has_rope and wrong.weight == "use":
                findings.passes.append("The cases without RoPE are right.")
        wrong.mistake = "".join(words).strip() or None


NOT_TAKEN = {
    "TypeCheckError|BeartypeCall": "The types in the signature do not allow this "
    "shape: `...` stands for any number of axes.",
    r"must be a (matrix|3D)|expects a tensor with <= 2|subscripts|expected \d+ dims": "This works "
    "for one number of axes only: `@`, `.mT` and the `...` of an einsum work for any.",
    "view size is not compatible": "After a transpose, call `.contiguous()` before `view`.",
}
of_tensors = partial(
    Task, run=lambda runner, case: runner.run(case), same=alike, report=mismatch, errors=NOT_TAKEN
)
NO_POSITIONS = (
    "Where no positions are passed, count them as `torch.arange(x.shape[-2])`, and give positions "
    "(batch, seq) an axis for the heads, or the batch is taken for it."
)
SIZES_KEPT = "Something keeps the sizes of the first call, such as a mask: make it in each call."


def possible(part: Task, runner: ModuleRunner) -> Task:
    """A part without the cases that a class has no place for.

    Where RoPE is always applied these are the cases without it; where `forward` takes no positions,
    those with other positions than 0, 1, ...
    """
    always_rope = runner.turns()
    takes_positions = runner.takes_positions()
    cases = []
    for case in part.cases:
        positions = case.inputs.get("token_positions")
        counted = positions is None or positions.flatten().tolist() == [*range(positions.numel())]
        has_rope = bool({"theta", "rope_theta"} & case.arguments.keys())
        if (has_rope or not always_rope) and (counted or takes_positions):
            cases.append(case)
    return replace(part, cases=tuple(cases))


def check_second_calls(part: Task, runner: ModuleRunner) -> None:
    """Raise `Wrong` unless an instance can be called again, with an input of another size.

    Generation does that: its text grows token by token, and the next one starts short again.
    """
    made_alike = [case for case in part.cases if case.arguments == part.gradients.arguments]
    inputs = [one for one in made_alike if one.dtype == part.gradients.dtype and not one.seldom]
    again = replace(part, run=lambda runner, case: runner.rerun(case))
    for first, case in pairwise((*inputs, inputs[0])):
        if not runner.makes_alike(first, case):
            continue  # it is made for these inputs, so nobody calls it with others
        before, now = (tuple(next(iter(one.inputs.values())).shape) for one in (first, case))
        runner.run(first)
        outcome = tried(again, runner, case)
        if not outcome.right:
            wrong = outcome.failure or part.report(case, part.expected(case), outcome.result)
            wrong.claim = f"A second call, with an input of shape {now} after {before}, fails."
            wrong.mistake = SIZES_KEPT
            raise wrong


def expect_no_axis_added(part: Task, runner: ModuleRunner) -> None:
    """Raise `Wrong` if a layer's result for an x of two axes is not right; it may refuse one."""
    case = part.gradients
    if "x" not in case.inputs or "num_heads" in case.arguments or "theta" in case.arguments:
        return
    case = replace(case, inputs={"x": case.inputs["x"][0]}, what="an x with two axes")
    outcome = tried(part, runner, case)
    if not (outcome.right or outcome.failure):
        raise part.report(case, part.expected(case), outcome.result)


def check_own_positions(part: Task, runner: ModuleRunner) -> None:
    """Raise `Wrong` if `forward` is called without positions, and those it makes do not fit.

    Without them, some do not rotate at all, some refuse, and some turn by all their angles,
    which are as many as the positions here: only sizes that clash even so are a mistake.
    """
    case = next(case for case in part.cases if "theta" in case.arguments)
    runner.hands_in_positions = False  # from here on
    try:
        runner.run(replace(case, inputs={"x": noise(3, LONGEST, 8, seed=6)}))
    except Wrong as wrong:
        if is_about_sizes(wrong.error) and not is_refusal(wrong.error):
            wrong.mistake = NO_POSITIONS
            raise


# What is worth knowing of a right part.

STAYS_BEHIND = (
    "On a GPU it fails{}, where one tensor is still on the CPU: make new tensors with "
    "`device=x.device`, and keep tables by `self.register_buffer(name, table, persistent=False)`, "
    "which `.to` moves."
)
WIDENED = "For {} in bfloat16{} its result is in {}: convert it back, `.to({}.dtype)`."
UNTURNED = "Called without `token_positions`, it does not rotate: let it count 0, 1, 2, ... itself."


def worth_knowing(part: Task, runner: TensorRunner) -> list[str]:
    """What a right part does elsewhere than here, in sentences."""
    remarks = []
    for remark in (_on_another_device, _in_half_precision, _with_positions, _without_positions):
        with suppress(Wrong, NotAttempted):  # it cannot be tried
            remarks.append(remark(part, runner))
    return list(filter(None, remarks))


def _on_another_device(part: Task, runner: TensorRunner) -> str | None:
    case = part.gradients
    if isinstance(runner, ModuleRunner):
        made = runner.make(case)
        # A copy: what modules share, such as a cached table, is to stay here for the others.
        runner.module = call(lambda module: deepcopy(module).to("meta"), made, given=None)
    elif inspect.isclass(runner.attempt):
        return None  # `.to` does not reach it: it is told its device when it is made
    moved = {n: x.to("meta") if isinstance(x, Tensor) else x for n, x in case.inputs.items()}
    try:
        with NamedDevices() as named, OneDevice():
            runner.rerun(replace(case, inputs=moved))
    except Wrong as wrong:
        place = where(wrong.error)
        if isinstance(wrong.error, TwoDevicesError) and place and not named.any_named:
            return STAYS_BEHIND.format(place)
    return None


def _in_half_precision(part: Task, runner: TensorRunner) -> str | None:
    case = part.gradients
    halved = {
        name: x.bfloat16() if isinstance(x, Tensor) and x.is_floating_point() else x
        for name, x in case.inputs.items()
    }
    name, x = next(iter(halved.items()))
    if x.dtype != torch.bfloat16:  # logits of ids may well be in float32
        return None
    # Where its type matters, weights may be in float32, as in mixed precision.
    for weights in (torch.bfloat16, torch.float32) if part.same is same_kind else (torch.bfloat16,):
        if isinstance(runner, ModuleRunner):
            runner.module = runner.make(case)
            for parameter in runner.module.parameters():
                parameter.data = parameter.data.to(weights)
        result = runner.rerun(replace(case, inputs=halved))
        if result.ndim and result.dtype != x.dtype:  # a loss, too, may be in float32
            others = "" if weights == x.dtype else f", and weights in {kind(weights)},"
            remark = WIDENED.format(name, others, kind(result.dtype), name)
            return remark + dropped(runner.attempt)
    return None


def _turns_heads(runner: TensorRunner, part: Task) -> TypeGuard[ModuleRunner]:
    """Whether heads are rotated, by positions that may be handed in."""
    turns = {"theta", "num_heads"} <= part.gradients.arguments.keys()
    return turns and isinstance(runner, ModuleRunner) and runner.takes_positions()


def _with_positions(part: Task, runner: TensorRunner) -> str | None:
    if not _turns_heads(runner, part):
        return None
    by_row = {**part.gradients.inputs, "token_positions": torch.tensor(BY_ROW)}
    case = replace(part.gradients, inputs=by_row)
    with suppress(Wrong):
        if alike(runner.run(case), part.expected(case)):
            return None
    return FOR_EACH_HEAD


def _without_positions(part: Task, runner: TensorRunner) -> str | None:
    case = part.gradients
    if not _turns_heads(runner, part):
        return None
    runner.hands_in_positions = False
    bare = replace(case, inputs={"x": case.inputs["x"]})
    settings = {name: value for name, value in case.arguments.items() if name != "theta"}
    unturned = part.expected(replace(bare, arguments=settings))
    return UNTURNED if alike(runner.run(bare), unturned) else None


def is_plain(attempt: Any) -> bool:
    """Whether it is a function, or a class whose objects are called but are no torch modules."""
    is_class = inspect.isclass(attempt) and not issubclass(attempt, nn.Module)
    is_function = isinstance(attempt, partial) or inspect.isroutine(attempt)
    return is_function or (is_class and work_of(attempt) in CALLED)


def but(mistakes: Sequence[Mistake], *words: str) -> tuple[Mistake, ...]:
    """The mistakes whose words contain none of these."""
    return tuple(known for known in mistakes if not any(some in known.words for some in words))


# Softmax.

MAXIMUM, EXP, TOTAL = "x.amax(dim, keepdim=True)", ".exp()", "powers.sum(dim, keepdim=True)"
SHIFTED = f"(x - {MAXIMUM}){EXP}"
SHARES = f"powers / {TOTAL}"
NO_SHIFT = mistake(
    "exp of a large number overflows: subtract the maximum along `dim` first.", SHIFTED, f"x{EXP}"
)
NO_KEEPDIM = "The axis is lost: without `keepdim=True` the result is broadcast along another one."
SOFTMAX_MISTAKES = (
    NO_SHIFT,
    *instead_of(
        MAXIMUM,
        {
            "The maximum is that of the whole tensor, or of another axis: take it along `dim`.": (
                "x.max()",
                "x.amax(-1, keepdim=True)",
                "x.amax(0, keepdim=True)",
            )
        },
    ),
    mistake(
        "x is divided by its maximum, which changes the shares: subtract it.",
        SHIFTED,
        f"(x / {MAXIMUM}){EXP}",
    ),
    mistake(NO_KEEPDIM, MAXIMUM, "x.amax(dim)"),
    *instead_of(
        SHIFTED,
        {
            "The sign: it is exp(x - max), not exp(max - x).": f"({MAXIMUM} - x){EXP}",
            "The base is e, as in `torch.exp`.": f"(x - {MAXIMUM}).exp2()",
        },
    ),
    *instead_of(
        TOTAL,
        {
            NO_KEEPDIM: "powers.sum(dim)",
            "An ε is added to the sum, which is never 0: without it the numbers add up to 1.": [
                f"({TOTAL} + {eps})" for eps in (1, 0.1, 1e-2, 1e-3)
            ],
        },
    ),
    *instead_of(
        SHIFTED,
        {
            "Large numbers are clamped, which makes them equal: subtract the maximum instead.": (
                f"x.clamp(max=50){EXP}",
                f"x.clamp(-50, 50){EXP}",
            )
        },
    ),
    *instead_of(
        TOTAL,
        {
            "The sum is that of the whole tensor, or of another axis: take it along `dim`.": (
                "powers.sum()",
                "powers.sum(0)",
                "powers.sum(-1, keepdim=True)",
            )
        },
    ),
    *instead_of(
        SHIFTED,
        {"The numbers were divided by their sum: exp comes first.": (f"x - {MAXIMUM}", "x")},
    ),
    *instead_of(
        SHARES,
        {
            "The division by the sum is missing.": "powers",
            "This is the softmax of a softmax: take it once.": f"({SHARES}).softmax(dim)",
            "This is the logarithm of softmax: leave the log out.": f"({SHARES}).log()",
        },
    ),
    *instead_of(
        "powers = (x",
        {
            "The wrong axis: `dim` is ignored.": [
                f"dim = {axis}\npowers = (x" for axis in (-1, 0, 1)
            ]
        },
    ),
)


def _softmax(x: Tensor, dim: int, what: str = "") -> Case:
    return Case("softmax", {"x": x, "dim": dim}, what=what)


FAR_APART = torch.tensor([[1000.0, 1001.0, 1002.0], [-1.0, 0.0, 1.0]])
softmax = of_tensors(
    program=reference(soft_max),
    mistakes=SOFTMAX_MISTAKES,
    cases=(
        _softmax(torch.tensor([1.0, 2.0, 3.0]), -1),
        _softmax(noise(2, 3, seed=1), -1),
        _softmax(noise(3, 3, seed=2), -1),
        _softmax(noise(3, 3, seed=2), 0),
        _softmax(noise(2, 3, 2, seed=3), 1),
        _softmax(noise(2, 3, 2, seed=3), -3),
        _softmax(noise(2, 2, 2, 2, seed=4), 2),
        _softmax(torch.tensor([1000.0, 1001.0, 999.0]), 0, "large numbers"),
        _softmax(torch.tensor([-1000.0, -1001.0, -999.0]), -1, "very negative numbers"),
        _softmax(FAR_APART, -1, "rows that are far apart"),
        _softmax(FAR_APART.T.contiguous(), 0, "columns that are far apart"),
        _softmax(torch.tensor([0.5, -torch.inf, 1.5]), -1, "-inf entries, as a mask makes them"),
    ),
    errors={
        "return_types": "`torch.max(x, dim)` gives values and their indices: use its `.values`.",
        **NOT_TAKEN,
    },
    gradients=_softmax(noise(2, 3, seed=1), -1),
    praise="Right along every axis, and large numbers do not overflow.",
)

# Attention.

NEVER = -1e9  # what many write in place of -inf; a row with nothing else becomes uniform
SCALE, FILL = "math.sqrt(Q.shape[-1])", "scores.masked_fill(~mask, -math.inf)"
HIDDEN, WEIGH, GATHER = "~mask, -math.inf", "soft_max(scores, -1)", "shares @ V"
IF, SCORES = "if mask is not None:", "Q @ K.transpose(-1, -2)"
IN_SCALE = instead_of(
    SCALE,
    {
        "The scores are not scaled: divide by √d_k.": "1",
        "Divided by d_k, not by its square root.": "Q.shape[-1]",
        "The scores are multiplied by √d_k: divide by it.": "(1 / math.sqrt(Q.shape[-1]))",
    },
)
IN_MASK = (
    *instead_of(
        FILL,
        {
            "The mask is not used.": "scores",
            "The mask itself is added to the scores, as 0 and 1: add 0 and -inf.": (
                "scores + mask.double()",
                "scores - (~mask).double()",
            ),
            "0 · -inf is NaN: use `masked_fill`.": "scores + (~mask).double() * -math.inf",
        },
    ),
    *instead_of(
        HIDDEN,
        {
            "The masked scores become 0, or another small number, and its exp counts: make them "
            "-inf, before the softmax.": ("~mask, 0.0", "~mask, -1.0")
        },
    ),
    mistake(
        "The mask comes after the softmax: the weights no longer add up to 1.",
        FILL,
        "scores",
        f"return {GATHER}",
        "if mask is not None:\n    shares = shares * mask\nreturn shares @ V",
    ),
)
IN_WEIGHTS = (
    *instead_of(
        WEIGH,
        {
            "The wrong softmax axis: it must run over the keys, the last axis.": (
                "soft_max(scores, -2)",
                "soft_max(scores, 0)",
                "soft_max(scores, 1)",
                "soft_max(scores.flatten(-2), -1).unflatten(-1, scores.shape[-2:])",
            ),
            "The softmax is missing: exp alone is not one.": ("scores", "scores.exp()"),
        },
    ),
    *instead_of(
        SCORES,
        {
            "Queries and keys are swapped: the scores need one row for each query, Q Kᵀ.": (
                "K @ Q.transpose(-1, -2)"
            ),
            "K is not transposed, or with `.T`, which reverses all axes: the scores are Q Kᵀ, "
            "`Q @ K.mT`.": "Q @ K",
        },
    ),
    *instead_of(GATHER, {"These are the weights: multiply them by V.": ("shares", "shares @ K")}),
)
NUMBER_BY_NUMBER = "`*` multiplies number by number: this is a product of matrices, `@`."
ATTENTION_MISTAKES = (
    *IN_SCALE,
    *instead_of(
        SCALE,
        {
            "Scaled by another number: divide by √d_k, where d_k is the "
            "width of queries and keys.": (
                "math.sqrt(V.shape[-1])",
                "V.shape[-1]",
                "math.sqrt(K.shape[-2])",
                "math.sqrt(Q.shape[-2])",
                "(Q.shape[-1] / 2)",
            )
        },
    ),
    *instead_of(
        HIDDEN,
        {
            "The mask is inverted: True means that the query may look at the key. (In the course's "
            "2024 edition it meant the opposite.)": (
                "mask, -math.inf",
                "mask, NEVER",
            )
        },
    ),
    *IN_MASK,
    *instead_of(
        HIDDEN,
        {
            "The masked scores become large, not -inf: the sign.": (
                "~mask, 1e9",
                "~mask, math.inf",
            ),
            "The mask is transposed: it has one row for each query.": "~mask.mT, -math.inf",
            "The masked scores are not below all others: make them -inf.": "~mask, -100.0",
        },
    ),
    mistake(
        "Without a mask every key counts: yours is causal though no mask is given.",
        IF,
        f"if mask is None:\n    mask = torch.ones_like(scores).tril().bool()\n{IF}",
    ),
    *IN_WEIGHTS,
    mistake(NUMBER_BY_NUMBER, SCORES, "Q * K"),
    mistake(NUMBER_BY_NUMBER, GATHER, "shares * V"),
    mistake(
        "The axes of K are counted from the front: swap the last two, -2 and -1, however many "
        "come before them.",
        SCORES,
        "Q @ K.transpose(1, 2)",
    ),
    mistake(
        "The softmax comes before the scale: divide the scores, not the weights.",
        SCALE,
        "1",
        GATHER,
        "shares / math.sqrt(Q.shape[-1]) @ V",
    ),
    NO_SHIFT,
)


def _attention(*leading: int, mask=None, what="", queries=2, scale=1.0, d_k=4) -> Case:
    Q = scale * noise(*leading, queries, d_k, seed=1)
    K = scale * noise(*leading, 3, d_k, seed=2)
    inputs = {"Q": Q, "K": K, "V": noise(*leading, 3, 5, seed=3), "mask": mask}
    what = what or ("no mask" if mask is None else "")
    return Case("scaled_dot_product_attention", inputs, what=what, seldom=mask is None)


SEEN = torch.tensor([[True, False, True], [False, False, True]])
scaled_dot_product_attention = of_tensors(
    program=reference(soft_max, attention),
    mistakes=ATTENTION_MISTAKES,
    cases=(
        _attention(1),
        _attention(1, mask=SEEN),
        _attention(1, queries=3, mask=causal(3)),
        _attention(5),
        _attention(5, mask=SEEN),
        _attention(2, mask=torch.stack((SEEN, SEEN.flip(1)))),
        _attention(2, 3, what="two leading dimensions"),
        _attention(2, 3, mask=SEEN, what="two leading dimensions"),
        # 4 is its own root times 2, and 4 · 0.5; here Q and K have the same shape.
        _attention(1, queries=3, d_k=3, what="another d_k"),
        _attention(1, scale=100.0, what="large scores"),
        _attention(1, scale=30.0, mask=SEEN, what="large scores and a mask"),
    ),
    errors={
        r"(?s)NoneType.*`\w*mask|got \(bool": "Without a mask every key counts: `mask=None` must "
        "work.",
        r"einsum\(\): subscript": "The keys need a letter of their own: `...qd, ...kd -> ...qk`.",
        "operator, with a bool tensor": "True and False are not numbers: `~mask` inverts a mask.",
        "shape of the mask": "One mask of shape (queries, keys) serves the whole batch, but "
        "indexing does not broadcast it: use `masked_fill` or `torch.where`.",
        "Dimension out of range": "An axis is counted from the front: with fewer leading "
        "dimensions that is another axis, or none. The last axis is -1.",
        **NOT_TAKEN,
    },
    gradients=_attention(2, mask=SEEN),
    praise="Right with and without a mask, for any leading dimensions.",
)

# The loss.

LOGS = "logits - logits.logsumexp(-1, keepdim=True)"
SHIFT = "logits - logits.amax(-1, keepdim=True)"
CHOSEN = "-1, targets.unsqueeze(-1)).squeeze(-1)"
MEAN = "-chosen.mean()"
ONE_BATCH = "This works for one batch dimension only: flatten them, or use `gather(-1, ...)`."
LOSS_MISTAKES = (
    *instead_of(
        LOGS,
        {
            "You take the log of a softmax, and log(0) is -inf: write it as x - max - log Σ exp(x "
            "- max).": "soft_max(logits, -1).log()",
            "exp of large logits overflows: subtract the maximum first.": (
                "logits - logits.exp().sum(-1, keepdim=True).log()",
                "(logits.exp() / logits.exp().sum(-1, keepdim=True)).log()",
            ),
            "The maximum is that of all logits: exp of a row far below it is 0. Subtract each "
            "row's own.": (
                "logits - logits.max() - (logits - logits.max()).exp().sum(-1, keepdim=True).log()"
            ),
            "The maximum is subtracted from only one of the two: log Σ "
            "exp and the target's logit.": (
                f"{LOGS} + logits.amax(-1, keepdim=True)",
                f"{LOGS} - logits.amax(-1, keepdim=True)",
            ),
            "The wrong axis: softmax must run over the vocabulary, the last axis.": (
                "logits.log_softmax(0)",
                "logits.log_softmax(1)",
                "logits - logits.logsumexp(-1).max()",
                "logits - logits.flatten().logsumexp(0)",
            ),
            "The logarithm is missing.": "soft_max(logits, -1)",
            "This is the log of a mean of exp: take their sum.": (
                f"{LOGS} + math.log(logits.shape[-1])"
            ),
            "Only the target's logit counts: log Σ exp of all logits is missing.": (
                "logits",
                "logits.log()",
                SHIFT,
            ),
            "A softmax comes before the loss's own.": "soft_max(logits, -1).log_softmax(-1)",
            "A small number is added before the log, which spoils the loss of an unlikely target: "
            "write x - max - log Σ exp(x - max).": [
                f"(soft_max(logits, -1) + 1e-{power}).log()"
                for power in (5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 30)
            ],
            "This is `log2`: the loss takes the natural logarithm, `torch.log`.": (
                f"({LOGS}) / math.log(2)",
                f"{SHIFT} - ({SHIFT}).exp().sum(-1, keepdim=True).log2()",
            ),
        },
    ),
    *instead_of(
        MEAN,
        {
            "The sign: the loss is log Σ exp minus the target's logit.": "chosen.mean()",
            "The losses are summed, not averaged.": "-chosen.sum()",
            "There is one loss per target: take their mean.": "-chosen",
            "A number is asked for, of shape (): this is a tensor with one entry. Leave out "
            "`keepdim`, or `reshape(())`.": (
                "-chosen.mean().reshape(1)",
                "-chosen.mean().reshape(1, 1)",
            ),
            "The mean runs over the vocabulary, too, as with a one-hot matrix: sum over that axis, "
            "and take the mean over the targets.": "-chosen.mean() / logits.shape[-1]",
            "Averaged over only one of several dimensions: take the mean over all targets.": (
                "-chosen.sum() / len(chosen)",
                "-chosen.sum() / chosen.shape[-1]",
                "-chosen.mean(0)",
                "-chosen.mean(-1)",
                "-chosen.sum(-1).mean()",
            ),
            "This is how often the likeliest id is right, or wrong, which has no gradient.": [
                f"(logits.argmax(-1) {sign} targets).double().mean()" for sign in ("!=", "==")
            ],
            "This is the perplexity, exp of the loss.": "(-chosen.mean()).exp().float()",
            "The logarithm is taken twice.": "(-chosen.mean()).log()",
            "The mean is that of the probabilities: take that of their logarithms.": (
                "-chosen.exp().mean().log()"
            ),
            "Targets of 0 are left out: 0 is no padding.": "-chosen[targets != 0].mean()",
        },
    ),
    mistake(
        "`[:, targets]` takes every target of each row: use `gather`.",
        f"logs.gather({CHOSEN}",
        "logs[:, targets]",
    ),
    mistake(
        "`one_hot` makes only as many classes as these targets need: pass it the size of the "
        "vocabulary, `logits.shape[-1]`.",
        f"logs.gather({CHOSEN}",
        "(logs * nn.functional.one_hot(targets)).sum(-1)",
    ),
    mistake(
        "This is the loss of the likeliest id: take the number of the target.",
        f"logs.gather({CHOSEN}",
        "logs.amax(-1)",
    ),
    *(mistake(ONE_BATCH, CHOSEN, f"{axis}, targets.unsqueeze(1)).squeeze(1)") for axis in (1, -1)),
)


def _loss(logits: Tensor, targets: list, what: str = "") -> Case:
    inputs = {"logits": logits, "targets": torch.tensor(targets)}
    return Case("cross_entropy", inputs, what=what, seldom=what == BATCHES)


BATCHES = "several batch dimensions"
cross_entropy = of_tensors(
    program=reference(soft_max, mean_loss),
    mistakes=LOSS_MISTAKES,
    cases=(
        _loss(torch.tensor([[1.0, 2.0, 3.0]]), [1]),
        _loss(noise(2, 3, seed=1), [2, 0]),
        _loss(noise(4, 3, seed=2), [1, 1, 0, 2]),
        _loss(noise(3, 3, seed=3), [0, 2, 2]),
        _loss(noise(2, 3, 4, seed=4), [[0, 3, 1], [2, 2, 0]], BATCHES),
        _loss(noise(1, 2, 2, 5, seed=5), [[[0, 4], [1, 3]]], BATCHES),
        _loss(torch.tensor([[1000.0, 1001.0, 999.0]]), [1], "large logits"),
        _loss(torch.tensor([[-1000.0, -1001.0, -999.0]]), [0], "very negative logits"),
        _loss(torch.tensor([[0.0, 500.0, 1000.0], [1.0, 2.0, 0.0]]), [0, 1], "an unlikely target"),
    ),
    errors={
        "for dimension 0|Index tensor must have the same number": "A target names a column of its "
        "row, not a row: `logits.gather(-1, targets.unsqueeze(-1))` takes them.",
        "indexing tensors could not be broadcast": ONE_BATCH,
        **NOT_TAKEN,
    },
    gradients=_loss(noise(3, 3, seed=3), [0, 2, 2]),
    praise="The mean over all batch dimensions, in nats, and large logits are safe.",
)

# Linear and Embedding.

INITIAL = ", and a right initial weight."
PRODUCT, ROWS = "x @ weight.T", "weight[token_ids]"
AS_IT_IS = "A weight has one row for each output: the product is `x @ W.T`, not `x @ W` or `W @ x`."
NO_TRANSPOSE = mistake(AS_IT_IS, PRODUCT, "x @ weight")
EMBEDDING_MISTAKES = (
    *instead_of(
        ROWS,
        {
            "Multiplied by √d_model: leave it out.": f"{ROWS} * math.sqrt(weight.shape[1])",
            "Row 0 is treated as padding: it is a vector like any other.": (
                f"{ROWS} * (token_ids > 0).unsqueeze(-1)"
            ),
            "Ids count from 0: id 0 is the first row.": "weight[token_ids - 1]",
            "These are columns: an id names a row, `weight[ids]`.": "weight[:, token_ids]",
        },
    ),
)


def _linear(*leading: int, sizes: tuple[int, int] = (3, 2)) -> Case:
    arguments = dict(zip(("in_features", "out_features"), sizes, strict=True))
    x = noise(*leading, sizes[0], seed=1)
    weight = noise(sizes[1], sizes[0], seed=2)
    return Case("Linear", {"x": x}, arguments, {"weight": weight})


linear = of_tensors(
    program=reference(project),
    mistakes=(
        NO_TRANSPOSE,
        *instead_of(PRODUCT, {NUMBER_BY_NUMBER: ("x * weight", "x * weight.T")}),
    ),
    cases=(_linear(1, 1), _linear(1, 2), _linear(2, 2, sizes=(3, 3)), _linear(5, 2)),
    gradients=_linear(1, 2),
    large=_linear(1, 1, sizes=(64, 256)),
    praise=f"Right values{INITIAL}",
)


def _embedding(ids: list, rows: int = 4, width: int = 2) -> Case:
    sizes = {"num_embeddings": rows, "embedding_dim": width}
    table = noise(rows, width, seed=1)
    return Case("Embedding", {"token_ids": torch.tensor(ids)}, sizes, {"weight": table})


embedding = of_tensors(
    program=reference(look_up),
    mistakes=EMBEDDING_MISTAKES,
    cases=(_embedding([[1]]), _embedding([[2, 0, 3, 2]]), _embedding([[0, 1], [1, 3], [2, 0]])),
    gradients=_embedding([[2, 0, 3, 2]]),
    large=_embedding([[0]], 256, 64),
    praise=f"The right rows{INITIAL}",
)

# RMSNorm.

ROOT, SQUARES = "(mean_square + eps).sqrt()", "x.square().sum(-1, keepdim=True) / x.shape[-1]"
IN_NORM = (
    *instead_of(
        ROOT,
        {
            "ε is outside the root: it is √(mean of squares + ε).": "(mean_square.sqrt() + eps)",
            "ε is missing: a vector of zeros gives 0 / 0.": "mean_square.sqrt()",
            "The square root is missing.": "(mean_square + eps)",
            "Nothing is divided: each vector is divided by its root mean square.": "1",
        },
    ),
    mistake(
        "This is LayerNorm: the mean is subtracted. RMSNorm leaves the mean where it is.",
        "x = x.double()",
        "x = x.double() - x.double().mean(-1, keepdim=True)",
    ),
    *instead_of(
        SQUARES,
        {
            "The standard deviation subtracts the mean: divide by the "
            "root of the mean of squares.": (
                "x.var(-1, keepdim=True, unbiased=False)",
                "x.var(-1, keepdim=True)",
            ),
            "The squares are summed, not averaged.": "x.square().sum(-1, keepdim=True)",
            "The squares are missing.": (
                "x.abs().mean(-1, keepdim=True).square()",
                "x.mean(-1, keepdim=True)",
            ),
            "The wrong axis, or the whole tensor: each vector has a root mean square of its own.": (
                "x.square().mean()",
                *(f"x.square().mean({axis}, keepdim=True)" for axis in (0, 1, -2)),
            ),
            "The mean lost its axis: `keepdim=True` is missing.": "x.square().mean(-1)",
            "ε is divided by d_model, too: add it to the mean.": (
                f"{SQUARES} + eps / x.shape[-1] - eps"
            ),
        },
    ),
    *instead_of(
        "sqrt() * gain",
        {
            "The gain is forgotten: multiply by the weight.": "sqrt()",
            "The gain is added: multiply by it.": "sqrt() + gain",
            "Multiplied by 1 + gain: the weight itself is the gain.": "sqrt() * (1 + gain)",
        },
    ),
)
NORM_MISTAKES = (
    *IN_NORM,
    mistake(
        "The gain comes before the norm: multiply what is normed.",
        "x = x.double()",
        "x = x.double() * gain",
        "sqrt() * gain",
        "sqrt()",
    ),
    mistake(
        "No upcast: in half precision the squares overflow. `x.to(...)` alone changes nothing: "
        "assign its result.",
        "x = x.double()",
        "x = x",
    ),
    mistake(
        "After computing in float32, convert the result back to the type that x had on "
        "entry: `.to(in_dtype)`, which gives a new tensor.",
        "normed.to(came_in)",
        "normed",
    ),
    mistake("The `eps` passed in is not used.", "mean_square = ", "eps = 1e-5\nmean_square = "),
    *instead_of(
        "float = 1e-5",
        {
            "The default of `eps` is 1e-5.": [
                f"float = {eps}" for eps in (1e-3, 1e-4, 1e-6, 1e-7, 1e-8, 1e-12, 2**-23)
            ]
        },
    ),
)


def _norm(x: Tensor, eps: float | None = None, what: str = "", dtype=torch.float32) -> Case:
    sizes = {"d_model": 4} if eps is None else {"d_model": 4, "eps": eps}
    gain = {"weight": torch.tensor([0.5, 2.0, -1.0, 1.5])}
    return Case("RMSNorm", {"x": x.to(dtype)}, sizes, gain, dtype, what)


HALF = "half precision"
rmsnorm = of_tensors(
    program=reference(rms_norm),
    mistakes=NORM_MISTAKES,
    cases=(
        _norm(noise(1, 1, 4, seed=1), 0.5),
        _norm(noise(1, 2, 4, seed=1), what="ε by default, 1e-5"),
        _norm(noise(2, 1, 4, seed=2) + 1, 0.5),
        _norm(noise(1, 2, 4, seed=2, std=0.003, digits=4), what="small numbers, so that ε matters"),
        _norm(noise(4, 4, 4, seed=3), 0.5),
        _norm(noise(2, 3, 4, seed=4), 0.5),
        _norm(torch.zeros(1, 1, 4), what="only zeros"),
        _norm(noise(1, 2, 4, seed=6, std=300, digits=0), what=HALF, dtype=torch.float16),
        _norm(noise(1, 2, 4, seed=7), what=HALF, dtype=torch.bfloat16),
        _norm(noise(1, 2, 4, seed=8), what="double precision", dtype=torch.float64),
    ),
    same=same_kind,
    gradients=_norm(noise(2, 1, 4, seed=2) + 1, 0.5),
    large=_norm(noise(1, 1, 4, seed=1)),
    praise="Right values, in half precision too, and in the input's type.",
)

# Weights of larger parts, by their names in the course.

WIDE = 128  # d_model where initial weights are checked
HEADS = ("q_proj", "k_proj", "v_proj", "output_proj")
FEED = ("w1", "w2", "w3")
IN_ONE_BLOCK = ("ln1", *(f"attn.{n}" for n in HEADS), "ln2", *(f"ffn.{n}" for n in FEED))
SHAPES = {
    **dict.fromkeys(("ln1", "ln2", "ln_final"), ("d_model",)),
    **dict.fromkeys(HEADS, ("d_model", "d_model")),
    **dict.fromkeys(("w1", "w3"), ("d_ff", "d_model")),
    "w2": ("d_model", "d_ff"),
    **dict.fromkeys(("token_embeddings", "lm_head"), ("vocab_size", "d_model")),
}


def _made_of(names: Iterable[str], case: Case) -> Case:
    """A case with weights of these names, drawn for the sizes among its arguments."""
    weights = {}
    std = 1.5 / math.sqrt(case.arguments["d_model"])
    for seed, name in enumerate(names, start=1):
        shape = [case.arguments[size] for size in SHAPES[name.rpartition(".")[2]]]
        weight = noise(*shape, seed=seed, std=std)
        weights[f"{name}.weight"] = 1 + weight / 3 if len(shape) == 1 else weight
    return replace(case, weights=weights)


def _of_large_scores(case: Case) -> Case:
    """The case with queries and keys so long that exp of their products is infinite."""
    weights = {
        name: 16 * weight if re.search(r"[qk]_proj", name) else weight
        for name, weight in case.weights.items()
    }
    return replace(case, weights=weights, what="large scores")


# The feed-forward layer.

USED_TWICE = "One matrix is used twice: SiLU(W1 x) is multiplied by W3 x."
GATE = "silu(project(x, w1))"
UP = "up = project(x, w3)"
GATED = "project(gate * up, w2)"
SILU, NOT_SILU = "x / (1 + torch.exp(-x))", "SiLU is x · sigmoid(x): here it is "
IN_FEED_FORWARD = (
    mistake(
        "W1 and W3 are swapped: SiLU belongs to W1 x, the gate, and not to W3 x.",
        GATE,
        "silu(project(x, w3))",
        UP,
        "up = project(x, w1)",
    ),
    mistake(USED_TWICE, UP, "up = project(x, w1)"),
    mistake(USED_TWICE, GATE, "silu(project(x, w3))"),
    *instead_of(
        GATED,
        {
            "SiLU is applied to W3 x too: only W1 x goes through"
            " it.": "project(gate * silu(up), w2)",
            "W2 is missing: it brings the product back to d_model numbers.": "gate * up",
            "There is no gate: SiLU(W1 x) must be multiplied by W3 x.": "project(gate, w2)",
            "The gate is added: SiLU(W1 x) and W3 x are multiplied.": "project(gate + up, w2)",
        },
    ),
    mistake(
        "SiLU comes after the product: it belongs to W1 x alone.",
        GATE,
        "project(x, w1)",
        GATED,
        "project(silu(gate * up), w2)",
    ),
    *instead_of(
        SILU,
        {
            "There is no SiLU: W1 x must go through it.": "x",
            f"{NOT_SILU}sigmoid(x) alone.": "torch.sigmoid(x)",
            f"{NOT_SILU}a ReLU.": "torch.relu(x)",
            f"{NOT_SILU}a GELU, or another function.": (
                "torch.nn.functional.gelu(x)",
                'torch.nn.functional.gelu(x, approximate="tanh")',
                "x * torch.sigmoid(1.702 * x)",
                "torch.tanh(x)",
                "torch.nn.functional.softplus(x)",
                "x * torch.tanh(x)",
                "x * torch.softmax(x, -1)",
            ),
        },
    ),
)


# Nearly every d_ff is a multiple of 64: the handout advises that, and some insist on it.
ODD: dict[str, Any] = {"d_ff": 12, "seldom": True, "what": "a d_ff that is no multiple of 64"}


def _feed_forward(*leading: int, d_model: int = 2, d_ff: int = 128, scale=1, **why: Any) -> Case:
    x = scale * noise(*leading, d_model, seed=4)
    sizes = {"d_model": d_model, "d_ff": d_ff}
    return _made_of(FEED, Case("SwiGLU", {"x": x}, sizes, **why))


positionwise_feedforward = of_tensors(
    program=reference(project, silu, swiglu),
    mistakes=(
        *IN_FEED_FORWARD,
        NO_TRANSPOSE,
        mistake("x is added inside: leave that to the block.", GATED, f"x + {GATED}"),
    ),
    cases=(
        _feed_forward(1, 1),
        _feed_forward(1, 2, d_model=64, d_ff=64),
        _feed_forward(1, 2, d_model=4, d_ff=64),
        _feed_forward(5, 3),
        _feed_forward(1, 2, **ODD),
    ),
    corners=(_feed_forward(2, 3, scale=200, what="large numbers"),),
    gradients=_feed_forward(2, 3),
    large=_feed_forward(1, 1, d_model=WIDE, d_ff=2 * WIDE),
    praise="It is W2 (SiLU(W1 x) ⊙ W3 x).",
)

# RoPE.

PLACES, POWER = "positions.unsqueeze(-1)", "(-2 * k / d_k)"
COS = "cos = angles.cos()"
SIN = "sin = angles.sin()"
FIRST, SECOND = "even * cos - odd * sin", "even * sin + odd * cos"
WOVEN = "torch.stack((first, second), -1).flatten(-2)"
TO_HALVES = ("x[..., 0::2]", "x.chunk(2, -1)[0]", "x[..., 1::2]", "x.chunk(2, -1)[1]")
FROM_HALVES = (WOVEN, "torch.cat((first, second), -1)")
PAIRED = (FIRST, "even * a.cos() - odd * a.sin()", SECOND, "even * b.sin() + odd * b.cos()")
HALVES = "RoPE on halves, as in Llama's code: the course rotates neighbours, (0, 1), (2, 3), ..."
SIGN = "The sign of the rotation is wrong: it is (x cos - y sin, x sin + y cos) for a pair (x, y)."
OVERWRITTEN = "One number of each pair is computed from the other's new value: keep both old ones."
IN_ROPE = (
    mistake(HALVES, *TO_HALVES, *FROM_HALVES),
    mistake(
        "The angles are not in the order of the pairs: use `repeat_interleave`, not `cat`.",
        COS,
        "a, b = torch.cat((angles, angles), -1).unflatten(-1, (-1, 2)).unbind(-1)",
        *PAIRED,
    ),
    mistake(
        "Both numbers of a pair turn by one angle: there are d_k / 2 angles, not d_k.",
        COS,
        f"a = angles\nb = {PLACES} * theta ** (-(2 * k + 1) / d_k)",
        *PAIRED,
    ),
    mistake(SIGN, SIN, "sin = -angles.sin()"),
    mistake(SIGN, FIRST, "even * cos + odd * sin"),
    *instead_of(SECOND, {SIGN: "even * sin - odd * cos", OVERWRITTEN: "first * sin + odd * cos"}),
    mistake(OVERWRITTEN, FIRST, f"even * cos - ({SECOND}) * sin"),
    *instead_of(
        POWER,
        {
            "The exponent of theta is wrong: pair k = 0, 1, ... turns by theta^(-2k / d_k).": (
                "(-2 * (k + 1) / d_k)",
                "(-(2 * k + 1) / d_k)",
                "(-(2 * k - 1) / d_k)",
                "(-k / d_k)",
                "(-4 * k / d_k)",
                "(2 * k / d_k)",
                "(-k)",
                "(-2 * k)",
                "(0 * k)",
                "(0 * k - 1)",
                "(-2 * k.flip(0) / d_k)",
                "(-2 * k / max(d_k - 2, 1))",
            )
        },
    ),
    mistake("`theta` is ignored: 10,000 is used.", "theta **", "10_000.0 **"),
)
ROPE_MISTAKES = (
    *IN_ROPE,
    mistake("Neighbours are rotated, but put back as halves: interleave them.", *FROM_HALVES),
    mistake("The pairs have an axis of their own: flatten the last two.", ".flatten(-2)", ""),
    mistake("The pairs are halves, but put back as neighbours: take neighbours.", *TO_HALVES),
    *instead_of(
        "angles = positions",
        {
            "The angles are in radians already: convert no degrees.": [
                f"angles = {factor} * positions" for factor in ("180 / math.pi", "math.pi / 180")
            ]
        },
    ),
    *(
        mistake(f"The {one} stands where the {other} belongs.", *edit)
        for one, other, edits in (
            ("sine", "cosine", ((COS, "cos = angles.sin()"), (FIRST, "even * sin - odd * sin"))),
            ("cosine", "sine", ((SIN, "sin = angles.cos()"), (FIRST, "even * cos - odd * cos"))),
        )
        for edit in edits
    ),
    mistake("Sine and cosine are swapped.", COS, "cos = angles.sin()", SIN, "sin = angles.cos()"),
    *instead_of(
        PLACES,
        {
            "Positions are off by one: they count from 0.": (
                "(positions + 1).unsqueeze(-1)",
                "(positions - 1).unsqueeze(-1)",
            ),
            "`token_positions` is ignored.": "torch.arange(x.shape[-2]).unsqueeze(-1)",
            "The positions are in half precision, which is exact up to 256 (bfloat16) or 2048 "
            "(float16) only: count in float32.": (
                "positions.to(torch.bfloat16).double().unsqueeze(-1)",
                "positions.to(torch.float16).double().unsqueeze(-1)",
            ),
        },
    ),
)


def _rope(
    x: Tensor, positions: list, theta: float = 50.0, what: str = "", longest: int = 8, **kind: Any
) -> Case:
    arguments = {"theta": theta, "d_k": x.shape[-1], "max_seq_len": longest}
    inputs = {"x": x, "token_positions": torch.tensor(positions)}
    return Case("RotaryPositionalEmbedding", inputs, arguments, what=what, **kind)


BY_ROW = [[0, 1, 2], [5, 3, 4]]


def _positions_that_work(part: Task, runner: TensorRunner) -> str:
    """Say which of the two shapes of positions work for a batch, if one does and one does not."""
    x = noise(2, 3, 4, seed=6)
    cases = {"(seq,)": _rope(x, [0, 2, 1]), "(batch, seq)": _rope(x, [[0, 2, 1], [2, 1, 0]])}
    works = {shape: tried(part, runner, case).right for shape, case in cases.items()}
    right, wrong = sorted(works, key=works.__getitem__, reverse=True)
    if works[right] == works[wrong]:
        return ""
    return f" For x (batch, seq, d_k), positions {right} work, and positions {wrong} do not."


rope = of_tensors(
    program=reference(rotate),
    mistakes=ROPE_MISTAKES,
    cases=(
        _rope(noise(1, 3, 4, seed=1), [0, 1, 2]),
        _rope(noise(1, 3, 4, seed=1), [3, 0, 5]),
        _rope(noise(1, 2, 6, seed=2), [1, 2], 10_000.0),
        _rope(noise(2, 3, 4, seed=3), [0, 1, 2], what="a batch"),
        _rope(noise(5, 3, 4, seed=4), [4, 1, 0], what="a batch"),
        _rope(noise(2, 3, 2, 4, seed=5), [1, 6], what="two leading dimensions", seldom=True),
        _rope(noise(1, 1, 4, seed=7), [7], what="the last position, max_seq_len - 1"),
        _rope(noise(1, 8, 2, seed=8), list(range(8)), 10_000.0, "as many positions as fit"),
        _rope(noise(1, 2, 4, seed=9), [509, 511], 10_000.0, "a long text", longest=512),
    ),
    corners=(
        _rope(noise(1, 2, 4, seed=9), [4093, 4095], 10_000.0, "a long text", longest=4096),
        _rope(noise(3, 4, seed=6), [0, 2, 1], what="an x with two axes, (seq, d_k)"),
        _rope(noise(2, 3, 4, seed=6), BY_ROW, what="positions of shape (batch, seq)"),
    ),
    errors={
        **NOT_TAKEN,
        "size of tensor|broadcast": "Any x (..., seq, d_k) must work, with positions (..., seq) or "
        "(seq,): take the pairs by `[..., i]`, and let the leading axes broadcast.",
        "IndexError: index": "Positions index a table, never x itself. It needs a row for each of "
        "max_seq_len positions, however short x is.",
    },
    gradients=_rope(noise(2, 3, 4, seed=3), [0, 1, 2]),
    praise="Neighbours are rotated by the positions that are handed in.",
)

# Attention with several heads.

SPLIT = "x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)"
MERGE = "x.transpose(-2, -3).flatten(-2)"
STRAIGHT = "x.reshape(*x.shape[:-2], num_heads, x.shape[-2], -1)"
STRAIGHT_BACK = "x.reshape(*x.shape[:-3], x.shape[-2], -1)"
EVERY_NTH = "x.unflatten(-1, (-1, num_heads)).movedim(-1, -3)"
EVERY_NTH_BACK = "x.movedim(-3, -1).flatten(-2)"
TURN_Q = "Q = rotate(Q, places, theta)"
TURN_K = "K = rotate(K, places, theta)"
TURN = f"{TURN_Q}  # RoPE\n        {TURN_K}"
TRIANGLE = "dtype=torch.bool).tril()"
ROLES, OUTPUT = "in (q, k, v))", "project(merge_heads(gathered), output)"
TURNED_ROUND = "The mask is inverted: each position looks at what comes after it, not before."
DIAGONAL = "The diagonal is masked: a position may look at itself."
FOR_MODEL = "RoPE is made for d_model numbers: inside a head, d_k is d_model / num_heads."
FOR_EACH_HEAD = "Positions (batch, seq) need an axis for the heads, or the batch is taken for it."
LONGEST, BASE = 6, 50.0
COUNTED, GIVEN_PLACES = "torch.arange(x.shape[-2])", " if positions is None else positions"
HEADS_SHARE = f"{COUNTED}{GIVEN_PLACES}.unsqueeze(-2)"
IGNORED = mistake(
    "`token_positions` is ignored: RoPE always counts from 0.", f"{GIVEN_PLACES}.unsqueeze(-2)", ""
)


def _reordered(words: str, split: str, back: str) -> tuple[Mistake, Mistake]:
    """The mistakes of splitting heads another way, and of merging them alike or rightly."""
    return mistake(words, SPLIT, split), mistake(words, SPLIT, split, MERGE, back)


IN_HEADS = (
    *_reordered(
        "The heads are split without the transpose: view x as (seq, heads, d_head), then "
        "swap those two axes.",
        STRAIGHT,
        STRAIGHT_BACK,
    ),
    *_reordered(
        "The heads are interleaved: head h takes d_head numbers in a row, (heads d_head).",
        EVERY_NTH,
        EVERY_NTH_BACK,
    ),
    *_reordered(
        "Heads attend to heads: (seq, heads, d_head) needs seq and heads swapped before attention.",
        "x.unflatten(-1, (num_heads, -1))",
        "x.flatten(-2)",
    ),
    mistake("It is one head as wide as d_model: `num_heads` is unused.", SPLIT, "x.unsqueeze(-3)"),
    *instead_of(
        MERGE,
        {
            "The heads are put together in the wrong order: transpose back to (seq, heads, "
            "d_head), then flatten the last two.": (STRAIGHT_BACK, EVERY_NTH_BACK)
        },
    ),
    mistake(
        "There is no causal mask: a position sees what comes after it. Make the mask inside.",
        TRIANGLE,
        "dtype=torch.bool)",
    ),
    mistake(DIAGONAL, TRIANGLE, "dtype=torch.bool).tril(-1)", HIDDEN, "~mask, NEVER"),
    mistake(TURNED_ROUND, TRIANGLE, "dtype=torch.bool).triu()"),
    mistake(TURNED_ROUND, TRIANGLE, "dtype=torch.bool).triu(1)", HIDDEN, "~mask, NEVER"),
    mistake("Off by one: a position sees the one after it.", TRIANGLE, "dtype=torch.bool).tril(1)"),
    mistake("Scaled by √d_model: take √d_head.", SCALE, "math.sqrt(Q.shape[-1] * Q.shape[-3])"),
    mistake(
        "`num_heads` is used as the width of a head.",
        SPLIT,
        "x.unflatten(-1, (-1, num_heads)).transpose(-2, -3)",
    ),
    *instead_of(
        TURN,
        {
            "RoPE is applied to the values too: only queries and keys are rotated.": (
                "Q, K, V = (rotate(each, places, theta) for each in (Q, K, V))"
            ),
            "RoPE is applied to the queries only, or to the keys only.": (TURN_Q, TURN_K),
            "RoPE is applied to the whole d_model: rotate each head, with d_k = d_head.": (
                "places = places.reshape(-1, x.shape[-2])  # without the axis of the heads\n"
                "Q, K = (rotate(merge_heads(each), places, theta) for each in (Q, K))\n"
                "Q, K = (split_heads(each, num_heads) for each in (Q, K))"
            ),
            "RoPE is applied before the axes of heads and positions are "
            "swapped: it counts heads.": (
                "Q, K = (rotate(each.mT, places, theta).mT for each in (Q, K))".replace(
                    ".mT", ".transpose(-2, -3)"
                )
            ),
            "`theta` and `max_seq_len` are swapped where RoPE, or attention, is made.": (
                "Q = rotate(Q, places, LONGEST)\nK = rotate(K, places, LONGEST)"
            ),
        },
    ),
    mistake(FOR_EACH_HEAD, HEADS_SHARE, f"({COUNTED}{GIVEN_PLACES}).expand(x.shape[:-1])"),
    mistake(FOR_MODEL, "d_k = x.shape[-1]", "d_k = 2 * x.shape[-1]"),  # there are two heads
    *instead_of(
        ROLES,
        {
            "The matrices of queries, keys and values are swapped.": (
                "in (k, q, v))",
                "in (q, v, k))",
                "in (v, k, q))",
            ),
            "One matrix is used twice: queries, keys and values each have their own.": (
                "in (q, q, v))",
                "in (k, k, v))",
                "in (q, k, k))",
                "in (q, q, q))",
            ),
        },
    ),
    mistake(AS_IT_IS, "project(x, weight), num_heads", "x @ weight, num_heads"),
    *instead_of(
        OUTPUT,
        {
            AS_IT_IS: "merge_heads(gathered) @ output",
            "The output projection is missing.": "merge_heads(gathered)",
        },
    ),
)
HIDING = (  # a position without any key becomes NaN, and so does all that comes after it
    *instead_of(
        TRIANGLE,
        {DIAGONAL: "dtype=torch.bool).tril(-1)", TURNED_ROUND: "dtype=torch.bool).triu(1)"},
    ),
)
IN_ATTENTION = (*IN_SCALE, *IN_MASK[1:], *but(IN_WEIGHTS, "swapped"))
MULTIHEAD_MISTAKES = (
    mistake("RoPE is missing: queries and keys are not rotated.", TURN, "pass"),
    *IN_HEADS,
    *HIDING,
    mistake("x is added inside: leave that to the block.", OUTPUT, f"x + {OUTPUT}"),
    IGNORED,
    *IN_ROPE,
    *IN_ATTENTION,
    NO_SHIFT,
)
PARTS_OF_HEADS = (project, rotate, soft_max, attention, causal, split_heads, merge_heads, multihead)


def _heads(x: Tensor, num_heads: int, positions: list | None = None, what: str = "") -> Case:
    arguments: dict[str, Any] = {"d_model": x.shape[-1], "num_heads": num_heads}
    inputs: dict[str, Any] = {"x": x}
    if positions is not None:  # of shape (1, seq), as in the course's tests
        arguments |= {"max_seq_len": LONGEST, "theta": BASE}
        inputs["token_positions"] = torch.tensor([positions])
    return _made_of(HEADS, Case("MultiHeadSelfAttention", inputs, arguments, what=what))


BATCH = noise(2, 3, 8, seed=7)
multihead_self_attention = of_tensors(
    program=reference(*PARTS_OF_HEADS),
    mistakes=MULTIHEAD_MISTAKES,
    cases=(
        _heads(noise(1, 3, 8, seed=1), 2),
        _heads(noise(5, 3, 8, seed=2), 2),
        _heads(noise(2, 3, 6, seed=3), 3),
        _heads(noise(1, 4, 4, seed=4), 1, what="a single head"),
        _heads(noise(1, 3, 8, seed=5), 2, [0, 1, 2], what="RoPE"),
        _heads(noise(3, 4, 8, seed=6), 2, [0, 1, 2, 3], what="RoPE"),
        _heads(BATCH, 2, [0, 2, 5], what="RoPE, other positions"),
        _heads(noise(2, 6, 8, seed=8), 2, [*range(6)], what="RoPE, all positions"),
        _heads(noise(1, 2, 8, seed=9), 2, [0, 1], what="RoPE"),
        _heads(noise(1, 3, 12, seed=9), 2, [0, 1, 2], what="RoPE"),
    ),
    corners=(_of_large_scores(_heads(BATCH, 2, [0, 1, 2])),),
    gradients=_heads(BATCH, 2, [0, 1, 2]),
    large=_heads(torch.zeros(1, 1, WIDE), 2, [0]),
    praise="Right with RoPE, and no position sees what follows it.",
)

# The block.

ADD_ATTENTION, ADD_FFN = "x = x + attn(ln1(x))", "return x + ffn(ln2(x))"
NORMS = "for number in (1, 2))"
NORMED = "The residual stream is normalised: add to the block's input, not to the norm's output."
IN_BLOCK = (
    mistake(
        "Post-norm instead of pre-norm: put norms before attention and the feed-forward layer.",
        ADD_ATTENTION,
        "x = ln1(x + attn(x))",
        ADD_FFN,
        "return ln2(x + ffn(x))",
    ),
    mistake(
        "The norms come after attention and the feed-forward layer: put them before.",
        ADD_ATTENTION,
        "x = x + ln1(attn(x))",
        ADD_FFN,
        "return x + ln2(ffn(x))",
    ),
    mistake("The norm before attention is missing.", ADD_ATTENTION, "x = x + attn(x)"),
    mistake("The norm before the feed-forward layer is missing.", ADD_FFN, "return x + ffn(x)"),
    *instead_of(
        NORMS,
        {
            "ln1 and ln2 are swapped.": "for number in (2, 1))",
            "ln1 is used twice: the feed-forward layer has ln2.": "for number in (1, 1))",
        },
    ),
    mistake(NORMED, ADD_ATTENTION, "x = ln1(x)\nx = x + attn(x)"),
    mistake(NORMED, ADD_FFN, "x = ln2(x)\nreturn x + ffn(x)"),
    mistake(
        "The second addition adds to the block's input: add to the sum of the first.",
        ADD_FFN,
        "return before + ffn(ln2(x))",
        ADD_ATTENTION,
        f"before = x\n{ADD_ATTENTION}",
    ),
    mistake(
        "Attention and the feed-forward layer run in parallel, not one after the other.",
        ADD_ATTENTION,
        "pass",
        ADD_FFN,
        "return x + attn(ln1(x)) + ffn(ln2(x))",
    ),
    mistake("There is no residual connection around attention.", ADD_ATTENTION, "x = attn(ln1(x))"),
    mistake(
        "The residual connection is missing around the feed-forward layer.",
        ADD_FFN,
        "return ffn(ln2(x))",
    ),
    mistake(
        "Both residual connections are missing.",
        ADD_ATTENTION,
        "x = attn(ln1(x))",
        ADD_FFN,
        "return ffn(ln2(x))",
    ),
    mistake(
        "The feed-forward layer comes before attention.",
        ADD_ATTENTION,
        "x = x + ffn(ln2(x))",
        ADD_FFN,
        "return x + attn(ln1(x))",
    ),
    mistake(
        "The block ends in a norm: norms are on the branches alone.",
        ADD_FFN,
        "return ln2(x + ffn(ln2(x)))",
    ),
    mistake("Attention is missing.", ADD_ATTENTION, "pass"),
    mistake("The feed-forward layer is missing.", ADD_FFN, "return x"),
    mistake("RoPE is missing: is `theta` passed to attention?", '"theta": theta', '"theta": None'),
)
IN_MODELS_BLOCK = (
    *IN_BLOCK,
    # Without those that here give shape errors like any other, or that show only in isolation.
    *but(IN_HEADS, FOR_MODEL, "Heads attend to heads", "it counts heads"),
    *but(IN_ATTENTION, "K is not transposed", "These are the weights"),
    *IN_ROPE,
    *IN_FEED_FORWARD,
    *but(IN_NORM, "ε", "squares are missing", "keepdim"),
    NO_SHIFT,
)
PARTS_OF_BLOCK = (*PARTS_OF_HEADS, rms_norm, silu, swiglu, inside, block)


def _block(*leading, d_model=8, d_ff=128, positions=None, **why) -> Case:
    arguments = {"d_model": d_model, "num_heads": 2, "d_ff": d_ff}
    arguments |= {"max_seq_len": LONGEST, "theta": BASE}
    inputs = {"x": 2 * noise(*leading, d_model, seed=1)}
    if positions:
        inputs["token_positions"] = torch.tensor([positions])
    return _made_of(IN_ONE_BLOCK, Case("TransformerBlock", inputs, arguments, **why))


transformer_block = of_tensors(
    program=reference(*PARTS_OF_BLOCK),
    mistakes=(*IN_MODELS_BLOCK, *HIDING, IGNORED),
    cases=(
        _block(1, 3),
        _block(1, 1, what="a single position"),
        _block(3, 4, what="a batch"),
        _block(5, 4, d_ff=64, what="a batch"),
        _block(2, 3, d_model=12, what="a batch"),
        _block(3, 6, what="as many positions as fit"),
        _block(3, 3, positions=[0, 2, 5], what="other positions"),
        _block(1, 3, **ODD),
    ),
    corners=(_of_large_scores(_block(2, 3)),),
    gradients=_block(2, 3),
    large=_block(1, 1, d_model=WIDE, d_ff=2 * WIDE),
    praise="Pre-norm, with both residual connections.",
)

# The language model.

EMBEDDED = 'look_up(token_ids, weights["token_embeddings.weight"])'
LM_HEAD, NUMBERS = 'project(x, weights["lm_head.weight"])', "numbers = range(num_layers)"
ONCE = "`ln_final` is used once: after the last block, before the head."
IN_MODEL = (
    mistake(
        "The final norm, `ln_final`, is missing before the head.",
        'x = rms_norm(x, weights["ln_final.weight"])',
        "pass",
    ),
    *instead_of(
        LM_HEAD,
        {
            "There is a softmax at the end: return the logits.": (
                f"torch.softmax({LM_HEAD}, -1)",
                f"torch.log_softmax({LM_HEAD}, -1)",
                f"torch.softmax({LM_HEAD}, 1)",
            ),
            "Only the last position is returned: return all of them.": (
                f"{LM_HEAD}[..., -1, :]",
                f"{LM_HEAD}[..., -1:, :]",
            ),
            "The likeliest ids are returned: return the logits.": f"{LM_HEAD}.argmax(-1)",
        },
    ),
    mistake(
        ONCE,
        EMBEDDED,
        f"rms_norm({EMBEDDED}, weights['ln_final.weight'])",
        'x = rms_norm(x, weights["ln_final.weight"])',
        "pass",
    ),
    mistake(ONCE, EMBEDDED, f"rms_norm({EMBEDDED}, weights['ln_final.weight'])"),
    mistake(
        "The head uses the embedding's matrix: in the course it has its own.",
        LM_HEAD,
        'project(x, weights["token_embeddings.weight"])',
    ),
    *instead_of(
        NUMBERS,
        {
            "The blocks are not all used once and in order.": (
                "numbers = [0]",
                "numbers = [num_layers - 1]",
                "numbers = []",
                "numbers = [0] * num_layers",
                "numbers = range(num_layers)[::-1]",
            )
        },
    ),
    mistake(
        "What goes into a block is added to what comes out: the block has done that itself.",
        "x = block(x",
        "x = x + block(x",
    ),
    mistake(
        "The embeddings are multiplied by √d_model: leave that out.",
        EMBEDDED,
        f"math.sqrt(weights['ln_final.weight'].numel()) * {EMBEDDED}",
    ),
    mistake(
        "A position sees no key at all: is the mask inverted, or the diagonal masked?",
        TRIANGLE,
        "dtype=torch.bool).tril(-1)",
    ),
)


def _model(ids: list | Tensor, what="", vocab_size=5, d_model=8, layers=2, d_ff=128, **why) -> Case:
    sizes = (vocab_size, LONGEST, d_model, layers, 2, d_ff, BASE)
    arguments = dict(zip(MODEL_ARGUMENTS, sizes, strict=True))
    names = [f"layers.{layer}.{name}" for layer in range(layers) for name in IN_ONE_BLOCK]
    case = Case("TransformerLM", {"token_ids": torch.as_tensor(ids)}, arguments, what=what, **why)
    return _made_of(["token_embeddings", *names, "ln_final", "lm_head"], case)


transformer_lm = of_tensors(
    program=reference(look_up, *PARTS_OF_BLOCK, language_model),
    mistakes=(*IN_MODEL, *but(IN_MODELS_BLOCK, "0 · -inf")),
    cases=(
        _model([[3]], "a single token"),
        _model([[1, 4, 0]]),
        _model([[2, 2, 3, 1], [0, 1, 4, 4], [3, 0, 1, 2]], "a batch"),
        _model([[2, 1]], d_ff=64),
        _model([[2, 0]], d_model=12),
        _model(torch.arange(30).reshape(5, 6) % 5, "as many tokens as the context holds"),
        _model([[1, 4]], **ODD),
    ),
    corners=(_of_large_scores(_model([[2, 2, 3], [0, 1, 4]])),),
    gradients=_model([[2, 2, 3], [0, 1, 4]]),
    large=_model([[0]], "", WIDE, WIDE, 1, 2 * WIDE),
    praise="Logits for each position, block after block.",
)
