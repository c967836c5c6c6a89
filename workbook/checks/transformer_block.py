"""The check of `TransformerBlock`, and the usual ways in which it goes wrong."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from workbook.checks import transformer_feedforward, transformer_multihead, transformer_rmsnorm
from workbook.checks.tensors import drawn
from workbook.checks.text_variants import Variant
from workbook.checks.transformer_feedforward import feed_forward
from workbook.checks.transformer_functions import open_question, praise
from workbook.checks.transformer_modules import check_module, module_remarks
from workbook.checks.transformer_multihead import MAX_SEQ_LEN, multihead, weights_of
from workbook.checks.transformer_rmsnorm import normalised
from workbook.checks.transformer_trial import Case, Topic

SIGNATURE = (
    "class TransformerBlock with TransformerBlock(d_model, num_heads, d_ff, max_seq_len=None,"
    " theta=None)"
)


def _pre_norm(x: Tensor, attn: Callable, ffn: Callable, ln1: Callable, ln2: Callable) -> Tensor:
    x = x + attn(ln1(x))
    return x + ffn(ln2(x))


BLOCK: dict[str, Callable] = {
    **transformer_multihead.MULTIHEAD,
    **transformer_feedforward.FEED_FORWARD,
    **transformer_rmsnorm.NORM,
    "block": _pre_norm,
}


def block(
    stages: dict[str, Callable],
    x: Tensor,
    weights: Mapping[str, Tensor],
    heads: int,
    theta: float | None,
) -> Tensor:
    """A block by its stages."""
    inner = {
        part: {
            name.removeprefix(f"{part}."): weight
            for name, weight in weights.items()
            if name.startswith(f"{part}.")
        }
        for part in ("attn", "ffn")
    }
    return stages["block"](
        x,
        lambda x: multihead(stages, x, inner["attn"], heads, theta=theta),
        lambda x: feed_forward(stages, x, inner["ffn"]),
        lambda x: normalised(stages, x, weights["ln1.weight"]),
        lambda x: normalised(stages, x, weights["ln2.weight"]),
    )


def reference(case: Case, stages: dict[str, Callable]) -> Tensor:
    """What the block makes of the input of a case."""
    _, heads, _, _, theta = (*case.arguments, None, None)[:5]
    return block(stages, case.inputs["x"].double(), case.weights, heads, theta)


def _post_norm(x, attn, ffn, ln1, ln2):
    x = ln1(x + attn(x))
    return ln2(x + ffn(x))


def _from_normed(x, attn, ffn, ln1, ln2):
    x = ln1(x)
    x = ln2(x + attn(x))
    return x + ffn(x)


def _from_normed_first(x, attn, ffn, ln1, ln2):
    x = ln1(x)
    x = x + attn(x)
    return x + ffn(ln2(x))


def _from_normed_second(x, attn, ffn, ln1, ln2):
    x = ln2(x + attn(ln1(x)))
    return x + ffn(x)


def _second_half(x, ffn, ln2):
    return x + ffn(ln2(x))


def _second_norm_last(x, ffn, ln2):
    return ln2(x + ffn(x))


def _feed_forward_first(x, attn, ffn, ln1, ln2):
    x = x + ffn(ln2(x))
    return x + attn(ln1(x))


def _norm_behind(x, attn, ffn, ln1, ln2):
    x = x + ln1(attn(x))
    return x + ln2(ffn(x))


def _without(x, attn, ffn, ln1, ln2, *, first=True, second=True):
    x = x + attn(ln1(x)) if first else attn(ln1(x))
    return x + ffn(ln2(x)) if second else ffn(ln2(x))


def _norms(*kept: int, swapped: bool = False) -> Callable:
    def block(x, attn, ffn, ln1, ln2):
        norms = [norm if i in kept else lambda x: x for i, norm in ((1, ln1), (2, ln2))]
        return _pre_norm(x, attn, ffn, *(norms[::-1] if swapped else norms))

    return block


RESIDUAL = "The residual connection is missing around "
NORMED = "The residual stream is normalised: add to what came in, not to what the norm made of it."
IN_BLOCK = tuple(
    Variant("block", function, mistake)
    for function, mistake in (
        (
            _post_norm,
            "Post-norm for pre-norm: the norm comes before attention and before the feed-forward "
            "layer, not after the additions.",
        ),
        (
            _norm_behind,
            "The norm comes behind attention and feed-forward layer: it belongs before them.",
        ),
        (_norms(1), "The norm before the feed-forward layer is missing."),
        (_norms(2), "The norm before attention is missing."),
        (_norms(), "Both norms are missing."),
        (_norms(1, 2, swapped=True), "ln1 and ln2 are swapped."),
        (
            lambda x, attn, ffn, ln1, ln2: _pre_norm(x, attn, ffn, ln1, ln1),
            "The first norm, ln1, is used twice: the feed-forward layer has its own, ln2.",
        ),
        (_from_normed, NORMED),
        (_from_normed_first, NORMED),
        (_from_normed_second, NORMED),
        (
            lambda x, attn, ffn, ln1, ln2: x + ffn(ln2(x + attn(ln1(x)))),
            "The second addition goes back to the block's input: add to what attention left.",
        ),
        (
            lambda x, attn, ffn, ln1, ln2: x + attn(ln1(x)) + ffn(ln2(x)),
            "Attention and feed-forward layer stand side by side: the second gets what stands "
            "after the first addition.",
        ),
        (lambda *parts: _without(*parts, first=False), RESIDUAL + "attention."),
        (lambda *parts: _without(*parts, second=False), RESIDUAL + "the feed-forward layer."),
        (lambda *parts: _without(*parts, first=False, second=False), RESIDUAL + "both parts."),
        (
            lambda x, attn, ffn, ln1, ln2: _second_norm_last(x + attn(ln1(x)), ffn, ln2),
            "Post-norm in the second half: ln2 comes before the feed-forward layer, not after.",
        ),
        (
            lambda x, attn, ffn, ln1, ln2: _second_half(ln1(x + attn(x)), ffn, ln2),
            "Post-norm in the first half: ln1 comes before attention, not after the addition.",
        ),
        (
            lambda x, attn, ffn, ln1, ln2: x + attn(ln1(x)) + ffn(ln2(ln1(x))),
            "The second norm gets what the first one made: it should get what stands after the "
            "first addition.",
        ),
        (_feed_forward_first, "The feed-forward layer comes before attention."),
        (lambda x, attn, ffn, ln1, ln2: x + attn(ln1(x)), "The feed-forward layer is missing."),
        (lambda x, attn, ffn, ln1, ln2: x + ffn(ln2(x)), "Attention is missing."),
    )
)
IN_PARTS = (
    *IN_BLOCK,
    Variant(
        "turn",
        lambda x, angles: x,
        "Without RoPE: are `max_seq_len` and `theta` handed on to attention, and used?",
    ),
    *transformer_multihead.VARIANTS,
    *transformer_feedforward.IN_FEED_FORWARD,
    *transformer_rmsnorm.IN_NORM,
)


def block_weights(d_model: int, d_ff: int, seed: int = 0) -> dict[str, Tensor]:
    """The weights of a block by the names of the course."""
    std = 1.5 / math.sqrt(d_model)
    return {
        "ln1.weight": 1 + drawn(d_model, seed=seed + 1, std=0.3),
        **{f"attn.{name}": weight for name, weight in weights_of(d_model, seed + 10).items()},
        "ln2.weight": 1 + drawn(d_model, seed=seed + 2, std=0.3),
        "ffn.w1.weight": drawn(d_ff, d_model, seed=seed + 3, std=std),
        "ffn.w2.weight": drawn(d_model, d_ff, seed=seed + 4, std=std),
        "ffn.w3.weight": drawn(d_ff, d_model, seed=seed + 5, std=std),
    }


def _case(*leading: int, options: tuple = (MAX_SEQ_LEN, 50.0), what: str = "") -> Case:
    arguments = (8, 2, 12, *options)
    made = f"TransformerBlock({', '.join(map(str, arguments))})(x)"
    x = 2 * drawn(*leading, 8, seed=1)
    return Case(made, {"x": x}, arguments, block_weights(8, 12), what=what, heads=2, counted=True)


TOPIC = Topic(
    cases=(
        _case(1, 3),
        _case(1, 1, what="a single position"),
        _case(2, 3, what="a batch"),
        _case(2, 6, what="as many positions as fit"),
    ),
    reference=reference,
    right=BLOCK,
    variants=IN_PARTS,
)


def transformer_block(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = check_module(attempt, TOPIC, SIGNATURE, TOPIC.cases[2])
    remarks = module_remarks(learner)
    for case, remark in (
        (
            _case(2, 3, options=()),
            "It needs max_seq_len and theta. Without them there is no RoPE, as the ablation of "
            "chapter 7 will want.",
        ),
        (_case(2, 3, 3), "Inputs with two batch dimensions fail."),
    ):
        remarks += open_question(learner, TOPIC, case, remark)
    return praise("Pre-norm, with both residual connections.", remarks)
