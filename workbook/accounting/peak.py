"""The most memory that a training step of our model needs at once, and when.

The backward pass begins with all activations, frees them from the last to the first, and needs some
temporary tensors: for the gradient of a softmax two or more as large as the softmax itself. So the
worst moment is that of the largest tensors, if not the update at the end:

    forward ... loss | loss, head | last feed-forward | last attention | ... earlier blocks | update
"""

from workbook.accounting.activations import saved_activations
from workbook.accounting.sizes import CostTable, Row, Term, computed, parameters
from workbook.accounting.training import FLOAT, training_bytes
from workbook.config import ModelConfig


def peak_bytes(config: ModelConfig, batch_size: int) -> CostTable:
    """The bytes at the worst moment of a step, by kind, in float32.

    There are no gradients at the beginning, as after `zero_grad()`.
    """
    activations = saved_activations(config, batch_size)
    weights = parameters(config)
    model = training_bytes(config, activations)
    weights_row = model.row("parameters")
    state = model.row("optimizer state")
    moments = []
    for done, term in _backward(config):
        # Of each part that is done, the last block has freed activations and created gradients.
        freed = sum(row.each for row in activations if _belongs(row, done))
        created = FLOAT * sum(row.each for row in weights if _belongs(row, done))
        gradients = Row("gradients", "gradients", "", created)
        saved = activations.total - freed
        kept = Row("activations", "activations", "the sum of the saved tensors", saved)
        temporary = computed([term], config, batch_size)
        moments.append([weights_row, gradients, state, kept, *temporary])
    # The two temporaries of the update, √v and √v + ε, are as large as the tensor itself.
    largest = FLOAT * max(row.each for row in weights)  # AdamW goes through one tensor at a time
    update = Row("update", "temporary", "4·(the largest matrix)", largest, 2)
    moments.append([*(row for row in model if row.name != "activations"), update])
    return max(map(CostTable, moments), key=lambda table: table.total)


def _backward(config: ModelConfig) -> list[tuple[list[str], Term]]:
    """Moments of a backward pass: the names of the parts that are done, and a temporary tensor."""
    fused = config.kernels == "fused"
    # The gradients of two factors exist at once; SiLU's own kernel needs only one.
    inners = 1 if fused and config.ffn == "silu" else 2
    after_loss = ["loss", "head", "ln_final"]
    moments = [
        ([], ("logits' gradient", "temporary", "4·B·T·V", 2)),
        (after_loss, ("inner values' gradient", "temporary", "4·B·T·d_ff", inners)),
    ]
    if not fused:  # fused attention creates no tensor of T × T, in either pass
        scores = ("scores' gradient", "temporary", "4·B·h·T·T", 4)
        moments.append(([*after_loss, "feed-forward", "ln2"], scores))
    return moments


def _belongs(row: Row, done: list[str]) -> bool:
    return row.part in done or row.name.split(":")[0] in done
