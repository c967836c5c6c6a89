"""The check of `MultiHeadSelfAttention`, and the usual ways in which it goes wrong."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from workbook.checks import transformer_attention, transformer_linear, transformer_rope
from workbook.checks.tensors import drawn
from workbook.checks.text_variants import Variant
from workbook.checks.transformer_attention import NEVER, attend
from workbook.checks.transformer_axes import IN_AXES, merge, split
from workbook.checks.transformer_functions import open_question, praise
from workbook.checks.transformer_modules import check_module, module_remarks
from workbook.checks.transformer_rope import rotated
from workbook.checks.transformer_trial import Case, Topic

SIGNATURE = (
    "class MultiHeadSelfAttention with MultiHeadSelfAttention(d_model, num_heads,"
    " max_seq_len=None, theta=None)"
)
NAMES = tuple(f"{role}_proj.weight" for role in ("q", "k", "v", "output"))


def _causal(length: int) -> tuple[Tensor, float]:
    return torch.ones(length, length, dtype=torch.bool).tril(), -math.inf


MULTIHEAD: dict[str, Callable] = {
    **transformer_linear.RIGHT,
    **transformer_attention.RIGHT,
    **transformer_rope.ROPE,
    "roles": lambda q, k, v, output: (q, k, v, output),
    "heads": lambda: (split, merge),
    "turned": lambda Q, K, V, split, turn: (turn(split(Q)), turn(split(K)), split(V)),
    "causal": _causal,
    "output": lambda x, linear, weight: linear(x, weight),
}


def multihead(
    stages: dict[str, Callable],
    x: Tensor,
    weights: Mapping[str, Tensor],
    heads: int,
    positions: Tensor | None = None,
    theta: float | None = None,
) -> Tensor:
    """Causal self-attention with several heads by its stages; RoPE where there is a theta."""
    q, k, v, output = stages["roles"](*(weights[name].double() for name in NAMES))
    Q, K, V = (stages["linear"](x, weight) for weight in (q, k, v))
    if positions is None:
        positions = torch.arange(x.shape[-2])

    def turn(heads: Tensor) -> Tensor:
        if theta is None:
            return heads
        shared = positions.ndim > 1 and heads.ndim > x.ndim  # the same for all heads
        return rotated(stages, heads, positions.unsqueeze(-2) if shared else positions, theta)

    apart, together = stages["heads"]()
    Q, K, V = stages["turned"](Q, K, V, partial(apart, heads=heads), turn)
    mask, fill = stages["causal"](Q.shape[-2])
    if fill != -math.inf:
        stages = {**stages, "masked": lambda scores, mask: scores.masked_fill(~mask, fill)}
    gathered = attend(stages, Q, K, V, mask)
    return stages["output"](together(gathered), stages["linear"], output)


def reference(case: Case, stages: dict[str, Callable]) -> Tensor:
    """What the layer makes of the inputs of a case."""
    _, heads, _, theta = (*case.arguments, None, None)[:4]
    x, positions = case.inputs["x"].double(), case.inputs.get("token_positions")
    return multihead(stages, x, case.weights, heads, positions, theta)


def _masks(diagonal: int, upper: bool, mistake: str) -> tuple[Variant, Variant]:
    """A wrong triangle: a row without any key becomes NaN, or uniform, as it is filled."""

    def causal(length: int, fill: float) -> tuple[Tensor, float]:
        ones = torch.ones(length, length, dtype=torch.bool)
        return (ones.triu(diagonal) if upper else ones.tril(diagonal)), fill

    return tuple(Variant("causal", partial(causal, fill=f), mistake) for f in (-math.inf, NEVER))


def _turned_unswapped(x: Tensor, turn: Callable) -> Tensor:
    return turn(x.transpose(-2, -3)).transpose(-2, -3)


def _angles_of_model(positions: Tensor, d_k: int, theta: float) -> Tensor:
    return transformer_rope.ROPE["angles"](positions, 2 * d_k, theta)  # there are two heads


def _no_turn(x: Tensor, angles: Tensor) -> Tensor:
    return x


FOR_MODEL = (
    "RoPE is made for d_model numbers: inside a head its d_k is d_head = d_model / num_heads."
)
MAX_SEQ_LEN = 6
INVERTED = "The mask is inverted: each position looks at what comes after it, not before."
IN_HEADS = (
    *IN_AXES,
    Variant(
        "causal",
        lambda length: (torch.ones(length, length, dtype=torch.bool), -math.inf),
        "There is no causal mask: a position sees what comes after it.",
    ),
    *_masks(-1, False, "The diagonal is masked: a position may look at itself."),
    *_masks(0, True, INVERTED),
    *_masks(1, True, INVERTED),
    *_masks(1, False, "The mask is off by one: a position sees the one after it."),
    Variant(
        "divisor",
        lambda Q, K, V: math.sqrt(Q.shape[-1] * Q.shape[-3]),
        "Scaled by √d_model: inside a head it is √d_head, the width of its queries and keys.",
    ),
    Variant(
        "turned",
        lambda Q, K, V, split, turn: (turn(split(Q)), turn(split(K)), turn(split(V))),
        "RoPE is applied to the values too: only queries and keys are turned.",
    ),
    Variant(
        "turned",
        lambda Q, K, V, split, turn: (turn(split(Q)), split(K), split(V)),
        "RoPE is applied to the queries only: keys are turned as well.",
    ),
    Variant(
        "turned",
        lambda Q, K, V, split, turn: (split(Q), turn(split(K)), split(V)),
        "RoPE is applied to the keys only: queries are turned as well.",
    ),
    Variant(
        "turned",
        lambda Q, K, V, split, turn: (split(turn(Q)), split(turn(K)), split(V)),
        "RoPE is applied to the whole d_model, before the heads are split: turn each head, with "
        "d_k = d_head.",
    ),
    Variant(
        "turned",
        lambda Q, K, V, split, turn: (
            _turned_unswapped(split(Q), turn),
            _turned_unswapped(split(K), turn),
            split(V),
        ),
        "RoPE is applied before the axes of heads and positions are swapped, so that it counts "
        "heads: first (heads, seq, d_head), then RoPE.",
    ),
    Variant("angles", _angles_of_model, FOR_MODEL),
    Variant(
        "angles",
        lambda positions, d_k, theta: _angles_of_model(positions, d_k, theta)[..., : d_k // 2],
        FOR_MODEL,
    ),
    Variant("turn", _no_turn, "RoPE is missing: queries and keys are not turned."),
    Variant(
        "angles",
        lambda positions, d_k, theta: transformer_rope.ROPE["angles"](positions, d_k, MAX_SEQ_LEN),
        "The third argument is taken for theta: it is max_seq_len, and theta is the fourth.",
    ),
    Variant("roles", lambda q, k, v, output: (k, q, v, output), "Queries and keys are swapped."),
    Variant("roles", lambda q, k, v, output: (q, v, k, output), "Keys and values are swapped."),
    Variant("roles", lambda q, k, v, output: (v, k, q, output), "Queries and values are swapped."),
    Variant("output", lambda x, linear, weight: x, "The output projection is missing."),
)
IN_ATTENTION = (
    *transformer_attention.SCALES[:3],
    *transformer_attention.MASKS[2:8],
    *transformer_attention.MASKS[-1:],
    *transformer_attention.WEIGHTS,
    *transformer_attention.PRODUCTS,
)
VARIANTS = (*IN_HEADS, *IN_ATTENTION, *transformer_rope.IN_ROPE, transformer_linear.VARIANTS[0])


def weights_of(d_model: int, seed: int = 0) -> dict[str, Tensor]:
    """Four square matrices by the names of the course."""
    std = 1.5 / math.sqrt(d_model)
    return {name: drawn(d_model, d_model, seed=seed + i, std=std) for i, name in enumerate(NAMES)}


def _case(x: Tensor, *options: Any, positions: list | None = None, what: str = "") -> Case:
    d_model = x.shape[-1]
    inputs = {"x": x}
    call = "(x)"
    if positions is not None:
        inputs["token_positions"], call = torch.tensor(positions), "(x, token_positions)"
    arguments = (d_model, *options)
    made = f"MultiHeadSelfAttention({', '.join(map(str, arguments))}){call}"
    return Case(made, inputs, arguments, weights_of(d_model, 10), what=what, heads=options[0])


ROPE = (2, MAX_SEQ_LEN, 50.0)
TOPIC = Topic(
    cases=(
        _case(drawn(1, 3, 6, seed=1), 2),
        _case(drawn(2, 3, 6, seed=2), 2),
        _case(drawn(2, 3, 6, seed=3), 3),
        _case(drawn(1, 4, 4, seed=4), 1, what="a single head"),
        _case(drawn(1, 3, 8, seed=5), *ROPE, positions=[0, 1, 2], what="RoPE"),
        _case(drawn(2, 3, 8, seed=6), *ROPE, positions=[0, 1, 2], what="RoPE"),
        _case(drawn(2, 3, 8, seed=7), *ROPE, positions=[0, 2, 5], what="RoPE, other positions"),
        _case(drawn(2, 6, 8, seed=8), *ROPE, positions=[*range(6)], what="RoPE, all positions"),
        _case(drawn(1, 2, 8, seed=9), *ROPE, positions=[0, 1], what="RoPE"),
    ),
    reference=reference,
    right=MULTIHEAD,
    variants=VARIANTS,
)


def multihead_self_attention(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = check_module(attempt, TOPIC, SIGNATURE, TOPIC.cases[6])
    remarks = module_remarks(learner)
    for case, remark in (
        (_case(drawn(2, 3, 3, 6, seed=9), 2), "Inputs with two batch dimensions fail."),
        (
            _case(drawn(3, 3, 8, seed=7), *ROPE, positions=[[0, 1, 2], [3, 2, 5], [1, 1, 4]]),
            "Positions of their own for each sequence of a batch (shape (batch, seq)) fail: they "
            "need an axis for the heads.",
        ),
        (
            _case(drawn(2, 3, 8, seed=7), *ROPE),
            "Where no positions are given it should count them from 0, and does not.",
        ),
        (
            _case(drawn(2, 3, 8, seed=7), *ROPE, positions=[[3, 2, 5]]),
            "Positions of shape (1, seq), as in the course's tests, fail.",
        ),
    ):
        remarks += open_question(learner, TOPIC, case, remark)
    return praise("Right with and without RoPE, and no position sees what follows it.", remarks)
