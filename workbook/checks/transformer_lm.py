"""The check of `TransformerLM`, and the usual ways in which it goes wrong."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from workbook.checks.tensors import drawn
from workbook.checks.text_variants import Variant
from workbook.checks.transformer_block import BLOCK, IN_PARTS, block, block_weights
from workbook.checks.transformer_functions import praise
from workbook.checks.transformer_modules import check_module, module_remarks
from workbook.checks.transformer_rmsnorm import normalised
from workbook.checks.transformer_trial import Case, Topic

SIGNATURE = (
    "class TransformerLM with TransformerLM(vocab_size, context_length, d_model, num_layers,"
    " num_heads, d_ff, rope_theta)"
)

LANGUAGE_MODEL: dict[str, Callable] = {
    **BLOCK,
    "rows": lambda table, ids: table[ids],
    "blocks": lambda blocks: blocks,
    "final": lambda x, norm: norm(x),
    "head": lambda x, head, table, linear: linear(x, head),
    "logits": lambda logits: logits,
}


def reference(case: Case, stages: dict[str, Callable]) -> Tensor:
    """What the model makes of the ids of a case."""
    _, _, _, num_layers, heads, _, theta = case.arguments
    weights = {name: weight.double() for name, weight in case.weights.items()}
    table = weights["token_embeddings.weight"]

    def layer(number: int) -> Callable[[Tensor], Tensor]:
        prefix = f"layers.{number}."
        own = {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)}
        return lambda x: block(stages, x, own, heads, theta)

    x = stages["rows"](table, case.inputs["token_ids"])
    for each in stages["blocks"]([layer(number) for number in range(num_layers)]):
        x = each(x)
    x = stages["final"](x, lambda x: normalised(stages, x, weights["ln_final.weight"]))
    return stages["logits"](stages["head"](x, weights["lm_head.weight"], table, stages["linear"]))


SOFTMAX = (
    "There is a softmax at the end: the model returns logits, and the loss takes their softmax."
)
IN_MODEL = (
    Variant("final", lambda x, norm: x, "The final norm, `ln_final`, is missing before the head."),
    Variant("final", lambda x, norm: norm(norm(x)), "The final norm is applied twice."),
    Variant("logits", lambda logits: torch.softmax(logits, -1), SOFTMAX),
    Variant("logits", lambda logits: torch.log_softmax(logits, -1), SOFTMAX),
    Variant("logits", lambda logits: torch.softmax(logits, 1), SOFTMAX),
    Variant(
        "logits",
        lambda logits: logits[..., -1, :],
        "Only the last position comes back: logits are wanted for each one.",
    ),
    Variant("logits", lambda logits: logits.transpose(-1, -2), "The last two axes are swapped."),
    Variant("logits", lambda logits: logits.argmax(-1), "Ids come back: return the logits."),
    Variant("head", lambda x, head, table, linear: x, "The head is missing: these are no logits."),
    Variant(
        "head",
        lambda x, head, table, linear: linear(x, table),
        "The head uses the matrix of the embedding: the course gives it its own.",
    ),
    Variant("blocks", lambda blocks: blocks[:1], "Only the first block is used."),
    Variant("blocks", lambda blocks: blocks[-1:], "Only the last block is used."),
    Variant("blocks", lambda blocks: [], "No block is used."),
    Variant(
        "blocks",
        lambda blocks: [blocks[0]] * len(blocks),
        "The first block is used every time: each layer has its own weights.",
    ),
    Variant("blocks", lambda blocks: blocks[::-1], "The blocks come in reverse order."),
    Variant(
        "rows",
        lambda table, ids: table[ids] * math.sqrt(table.shape[1]),
        "The embeddings are multiplied by √d_model, as in the first Transformer: the course does "
        "not.",
    ),
    Variant(
        "rows",
        lambda table, ids: table[ids] / table[ids].square().mean(-1, keepdim=True).sqrt(),
        "The embeddings are normalised: they go into the first block as they are.",
    ),
)


def _case(ids: list, what: str = "") -> Case:
    vocab_size, d_model = 5, 8
    weights = {
        "token_embeddings.weight": drawn(vocab_size, d_model, seed=1),
        **{
            f"layers.{layer}.{name}": weight
            for layer in range(2)
            for name, weight in block_weights(d_model, 12, 100 * layer).items()
        },
        "ln_final.weight": 1 + drawn(d_model, seed=2, std=0.3),
        "lm_head.weight": drawn(vocab_size, d_model, seed=3, std=0.5),
    }
    arguments = (vocab_size, 4, d_model, 2, 2, 12, 50.0)
    made = f"TransformerLM({', '.join(map(str, arguments))})(token_ids)"
    return Case(made, {"token_ids": torch.tensor(ids)}, arguments, weights, what=what, heads=2)


TOPIC = Topic(
    cases=(
        _case([[3]], "a single id"),
        _case([[1, 4, 0]]),
        _case([[2, 2, 3], [0, 1, 4]], "a batch"),
        _case([[0, 1, 2, 3], [4, 4, 1, 0]], "as many ids as the context holds"),
    ),
    reference=reference,
    right=LANGUAGE_MODEL,
    variants=(*IN_MODEL, *IN_PARTS),
)


def transformer_lm(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the first input that fails."""
    learner = check_module(attempt, TOPIC, SIGNATURE, TOPIC.cases[2])
    return praise("Logits for each position, block after block.", module_remarks(learner))
