"""The numbers that the accounting problems ask for, under any assumptions."""

from dataclasses import dataclass, replace

from workbook.accounting.activations import handout_activations
from workbook.accounting.assumptions import Assumptions
from workbook.accounting.sizes import FFN, PROJECTIONS, SCORES, forward_flops, parameters
from workbook.accounting.training import DEVICES, GB, adamw_operations, training_seconds
from workbook.config import ModelConfig, gpt2, near_eight_thirds

STEPS = 400_000  # of (d)
UPDATE = 5  # FLOPs of θ - α_t·m / (√v + ε), per parameter


@dataclass(frozen=True)
class Quantity:
    """A number, and what is measured."""

    value: float
    kind: str  # "count", "bytes", "flops", "per parameter", "share", "factor", "batch", "seconds"


def answers(problem: str, part: str, assumed: Assumptions) -> dict[str, Quantity]:
    """The numbers of one part by name. For `transformer_accounting` (d) they are those of one size.

    >>> from workbook.accounting.assumptions import asked
    >>> answers("adamwAccounting", "b", asked("adamwAccounting", "b", "2025"))["largest batch"]
    Quantity(value=3, kind='batch')
    """
    if problem == "adamwAccounting":
        return {"a": _to_train, "b": _of_memory, "c": _of_adamw, "d": _of_time}[part](assumed)
    if part == "a":
        return _to_load(assumed)
    numbers = _of_matmuls(assumed)
    if part == "e":
        short = _forward_and_backward(replace(assumed, context_length=1_024))
        numbers["growth"] = Quantity(numbers["FLOPs"].value / short, "factor")
    return numbers


def _to_load(assumed: Assumptions) -> dict[str, Quantity]:
    count = _count(assumed)
    return {
        "parameters": Quantity(count, "count"),
        "bytes of the parameters": Quantity(assumed.copies * assumed.number_bytes * count, "bytes"),
    }


def _to_train(assumed: Assumptions) -> dict[str, Quantity]:
    count = _count(assumed)
    weights = assumed.number_bytes * count
    return {
        "parameters": Quantity(count, "count"),
        "bytes of the parameters": Quantity(weights, "bytes"),
        "bytes of the optimizer state": Quantity(2 * weights, "bytes"),  # AdamW's two moments
        "bytes of all but the activations": Quantity(assumed.copies * weights, "bytes"),
    }


def _of_matmuls(assumed: Assumptions) -> dict[str, Quantity]:
    flops = _flops(assumed)
    total = sum(flops.values())
    numbers = {"FLOPs": Quantity(_forward_and_backward(assumed), "flops")}
    if assumed.by_parameters:  # which says nothing about the parts
        return numbers
    shares = {
        "feed-forward layers": flops[FFN],
        "projections": flops[PROJECTIONS],
        "scores and weighted sums": flops[SCORES],
        "attention": flops[PROJECTIONS] + flops[SCORES],
        "head": flops["head"],
    }
    return numbers | {f"share of the {x}": Quantity(n / total, "share") for x, n in shares.items()}


def _of_memory(assumed: Assumptions) -> dict[str, Quantity]:
    config = _config(assumed)
    activations = handout_activations(
        config,
        maps=assumed.maps,
        residual_copies=assumed.residual_copies,
        embedding_output=assumed.embedding_output,
        value_bytes=assumed.number_bytes,
    ).total
    # The list has two tensors of T × V, the logits and their cross-entropy.
    logits = assumed.number_bytes * config.context_length * config.vocab_size
    per_sequence = activations - (2 - assumed.logits) * logits
    fixed = assumed.copies * assumed.number_bytes * _count(assumed)
    batch = (80 * GB - fixed) // per_sequence
    if assumed.rounding == "up":
        batch += 1
    return {
        "bytes per sequence": Quantity(per_sequence, "bytes"),
        "bytes whatever the batch": Quantity(fixed, "bytes"),
        "largest batch": Quantity(max(batch, 0), "batch"),
    }


def _of_adamw(assumed: Assumptions) -> dict[str, Quantity]:
    first, second = assumed.moments
    update = UPDATE if assumed.epsilon else UPDATE - 1
    if assumed.bias_corrections == 1:  # one for each moment, of which the first may include α
        update -= 1
    operations = adamw_operations(
        first_moment=first,
        second_moment=second,
        bias_corrections=2 if assumed.bias_corrections else 0,
        update=update,
        decay=assumed.decay,
    ).total
    return {
        "FLOPs per parameter": Quantity(operations, "per parameter"),
        "FLOPs of a step": Quantity(operations * _count(assumed), "flops"),
    }


def _of_time(assumed: Assumptions) -> dict[str, Quantity]:
    flops = _forward_and_backward(assumed) * assumed.batch
    peak = DEVICES[assumed.device].flops_per_second
    return {"time": Quantity(training_seconds(flops, STEPS, peak, assumed.utilisation), "seconds")}


def _count(assumed: Assumptions) -> int:
    """The parameters that are counted."""
    config = _config(assumed, only_matmuls=True)
    d = config.d_model
    L = config.num_layers
    parts = parameters(config).by_part()
    tables = {"separate": 2, "tied": 1, "none": 0}[assumed.embeddings]  # of V × d
    # Two norms per block and the final one, each with a gain for every value of d.
    norms = {"all": 2 * L + 1, "no final": 2 * L, "none": 0}[assumed.norms]
    count = parts["attention"] + parts[FFN] + tables * parts["embedding"] + norms * d
    if assumed.positions:
        count += assumed.context_length * d
    if assumed.biases:  # of Q, K, V and output, of W1 and W2, of the norms: GPT-2 uses LayerNorm
        count += L * (4 * d + config.d_ff + d + 2 * d) + d
    return count


def _forward_and_backward(assumed: Assumptions) -> float:
    """The FLOPs of one sequence, with the backward passes that are counted."""
    return sum(_flops(assumed).values()) * (1 + assumed.backward)


def _flops(assumed: Assumptions) -> dict[str, float]:
    """The FLOPs of a forward pass by part of the model, as they are counted."""
    if assumed.by_parameters:  # one multiplication and one addition per parameter and token
        return {"all": 2 * _count(assumed) * assumed.context_length}
    config = _config(assumed, only_matmuls=True)
    flops: dict[str, float] = dict(forward_flops(config).by_part())
    flops[PROJECTIONS] *= assumed.projections / 4
    # Of the scores and weighted sums: both matmuls, one of them, or half of both under the mask.
    flops[SCORES] *= {"both": 1, "one": 0.5, "half": 0.5, "none": 0}[assumed.scores]
    flops["head"] *= assumed.head
    if not assumed.every_block:
        flops |= {part: flops[part] / config.num_layers for part in (FFN, PROJECTIONS, SCORES)}
    return {part: n * assumed.multiply_add / 2 for part, n in flops.items()}


def _config(assumed: Assumptions, only_matmuls: bool = False) -> ModelConfig:
    """The config that is assumed; what is left out or added is not part of it.

    An inner width of 8/3·d_model has to be rounded. `only_matmuls` avoids that if nothing but the
    sizes of the matrices counts: two matrices of 4·d_model have exactly as many parameters.
    """
    model = gpt2(assumed.size, "2025", assumed.context_length)
    matrices = assumed.matrices
    rule = assumed.d_ff
    d = model.d_model
    if only_matmuls and (matrices, rule) == (3, "8/3"):
        matrices, rule = 2, "4"
    widths = {"4": 4 * d, "64": near_eight_thirds(d), "8/3": 8 * d // 3, "6400": 6_400}
    return replace(model, d_ff=widths[rule], ffn="silu" if matrices == 2 else "swiglu")
