"""The most memory that a training step of our model needs at once, and when.

The backward pass begins with all activations, hands them back from the last to the first, and needs
some tensors in passing: for the gradient of a softmax two or more as large as the softmax itself.
So the worst moment is that of the largest tensors, if not the update at the end:

    forward ... loss | loss, head | last feed-forward | last attention | ... earlier blocks | update
"""

from workbook.accounting.activations import saved_activations
from workbook.accounting.sizes import Row, Table, parameters
from workbook.accounting.training import FLOAT, training_bytes
from workbook.config import ModelConfig


def peak_bytes(config: ModelConfig, batch_size: int, *, keep_gradients: bool = False) -> Table:
    """The bytes at the worst moment of a step, by kind, in float32.

    The gradients of the last step are there from the beginning if they are kept and filled with
    zeros (`zero_grad(set_to_none=False)`). Else they come one by one as activations go.
    """
    activations = saved_activations(config, batch_size)
    model = training_bytes(config, activations)
    weights = parameters(config)
    moments = [
        _moment(model, activations, weights, keep_gradients, passed, passing)
        for passed, passing in _backward(config, batch_size)
    ]
    largest = FLOAT * max(row.each for row in weights)  # AdamW goes through one tensor at a time
    update = Row("update", "in passing", "4·(the largest matrix)", largest, 2)
    moments.append(Table([*(row for row in model if row.name != "activations"), update]))
    return max(moments, key=lambda table: table.total)


def _backward(config: ModelConfig, batch_size: int) -> list[tuple[list[str], Row]]:
    """Moments of a backward pass: the names of what is done with, and what is needed in passing."""
    BT, fused = batch_size * config.context_length, config.kernels == "fused"
    inner, logits = FLOAT * BT * config.d_ff, FLOAT * BT * config.vocab_size
    # Of two factors both gradients live for a moment; SiLU by its own kernel needs no second.
    inners = 1 if fused and config.ffn == "silu" else 2
    after_loss = ["loss", "head", "ln_final"]
    moments = [
        ([], Row("logits' gradient", "in passing", "2·4·B·T·V", logits, 2)),
        (after_loss, Row("inner values' gradient", "in passing", "4·B·T·d_ff", inner, inners)),
    ]
    if not fused:  # whose attention makes no tensor of T × T, in either pass
        maps = FLOAT * BT * config.num_heads * config.context_length
        scores = Row("scores' gradient", "in passing", "4·B·h·T·T", maps, 4)
        moments.append(([*after_loss, "feed-forward", "ln2"], scores))
    return moments


def _moment(
    model: Table,
    activations: Table,
    weights: Table,
    keep_gradients: bool,
    passed: list[str],
    passing: Row,
) -> Table:
    """What is there after some parts were passed: in each block's part only the last block's."""
    gone = sum(row.each for row in activations if _belongs(row, passed))
    come = sum(row.each for row in weights if _belongs(row, passed))
    gradients = model["gradients"] if keep_gradients else Row("gradients", "gradients", "", come)
    kept = Row("activations", "activations", "see their table", activations.total - gone)
    return Table([model["parameters"], gradients, model["optimizer state"], kept, passing])


def _belongs(row: Row, passed: list[str]) -> bool:
    return row.part in passed or row.name.split(":")[0] in passed
