"""The numbers that the accounting problems ask for, under any assumptions."""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import floor, log10

from workbook.accounting.activations import handout_activations
from workbook.accounting.assumptions import Assumptions
from workbook.accounting.sizes import FFN, PROJECTIONS, SCORES, forward_flops, parameters
from workbook.accounting.training import DEVICES, GB, GiB, adamw_operations, training_seconds
from workbook.config import ModelConfig, gpt2, near_eight_thirds

STEPS = 400_000  # of (d)
MEMORY = {"80 GB": 80 * GB, "80 GiB": 80 * GiB, "40 GB": 40 * GB}
MOMENTS = {"3 + 4": (3, 4), "2 + 3": (2, 3)}
UPDATE = 5  # FLOPs of θ - α_t·m / (√v + ε), per parameter

# `explain` asks for thousands of answers, about few different configs.
cached = lru_cache(maxsize=256)
_parameters, _forward_flops = cached(parameters), cached(forward_flops)
_activations = cached(handout_activations)


@dataclass(frozen=True)
class Figure:
    """A number and its unit: "count", "bytes", "bytes per sequence", "flops", "per parameter",
    "share", "factor", "batch" or "seconds".
    """

    value: float
    unit: str


def answers(problem: str, part: str, given: Assumptions) -> dict[str, Figure]:
    """The numbers of one part by name. For `transformer_accounting` (d) they are those of one size.

    >>> from workbook.accounting.assumptions import asked
    >>> answers("adamwAccounting", "b", asked("adamwAccounting", "b", "2025"))["largest batch"]
    Figure(value=3, unit='batch')
    """
    if problem == "adamwAccounting":
        return {"a": _to_train, "b": _of_memory, "c": _of_adamw, "d": _of_time}[part](given)
    if part == "a":
        return _to_load(given)
    found = _of_matmuls(given)
    if part == "e":
        short = _forward_and_backward(replace(given, context_length=1_024))
        found["growth"] = Figure(found["FLOPs"].value / short, "factor")
    return found


def significant(value: float, digits: int = 5) -> str:
    """A number with a few digits and separators: 4.5133e12, 15.518, 2,127,057,600.

    >>> significant(4513336524800.0), significant(15.5177), significant(2127057600)
    ('4.5133e12', '15.518', '2,127,057,600')
    """
    if float(value).is_integer() and abs(value) < 1e11:
        return f"{int(value):,}"
    if abs(value) >= 1e6:
        power = floor(log10(abs(value)))
        return f"{value / 10**power:.{digits - 1}f}e{power}"
    return f"{value:,.{max(digits - 1 - floor(log10(abs(value))), 0) if value else 0}f}"


def _to_load(given: Assumptions) -> dict[str, Figure]:
    count = _count(given)
    return {
        "parameters": Figure(count, "count"),
        "bytes of the parameters": Figure(given.copies * given.number_bytes * count, "bytes"),
    }


def _to_train(given: Assumptions) -> dict[str, Figure]:
    count = _count(given)
    one = given.number_bytes * count
    return {
        "parameters": Figure(count, "count"),
        "bytes of the parameters": Figure(one, "bytes"),
        "bytes of the optimizer state": Figure(2 * one, "bytes"),
        "bytes of all but the activations": Figure(given.copies * one, "bytes"),
    }


def _of_matmuls(given: Assumptions) -> dict[str, Figure]:
    sums = _flops(given)
    total = sum(sums.values())
    found = {"FLOPs": Figure(_forward_and_backward(given), "flops")}
    if given.by_parameters:  # which says nothing about the parts
        return found
    shares = {
        "feed-forward layers": sums[FFN],
        "projections": sums[PROJECTIONS],
        "scores and weighted sums": sums[SCORES],
        "attention": sums[PROJECTIONS] + sums[SCORES],
        "head": sums["head"],
        "blocks": total - sums["head"],
    }
    return found | {f"share of the {x}": Figure(n / total, "share") for x, n in shares.items()}


def _of_memory(given: Assumptions) -> dict[str, Figure]:
    config = _config_of(given)
    kept = _activations(
        config,
        maps=given.maps,
        residual_copies=given.residual_copies,
        embedding_output=given.embedding_output,
        value_bytes=1,
    ).total
    logits = config.context_length * config.vocab_size
    if not given.every_block:
        kept = (kept - 2 * logits) / config.num_layers + 2 * logits
    per_sequence = given.number_bytes * (kept - (2 - given.logits) * logits)
    fixed = given.copies * given.number_bytes * _count(given)
    room = (MEMORY[given.memory] - fixed) / per_sequence
    batch = max(int(room) + (given.rounding == "up"), 0)
    return {
        "bytes per sequence": Figure(per_sequence, "bytes per sequence"),
        "bytes whatever the batch": Figure(fixed, "bytes"),
        "largest batch": Figure(batch, "batch"),
    }


def _of_adamw(given: Assumptions) -> dict[str, Figure]:
    first, second = MOMENTS[given.moments]
    # With a correction for each moment, the first includes α: the update needs one FLOP less.
    folded = given.bias_corrections == 1
    each = adamw_operations(
        first_moment=first,
        second_moment=second,
        bias_corrections=2 if given.bias_corrections else 0,
        update=UPDATE - folded - (not given.epsilon),
        decay=given.decay,
    ).total
    return {
        "FLOPs per parameter": Figure(each, "per parameter"),
        "FLOPs of a step": Figure(each * _count(given), "flops"),
    }


def _of_time(given: Assumptions) -> dict[str, Figure]:
    flops = _forward_and_backward(given) * given.batch
    peak = DEVICES[given.device].flops_per_second
    return {"time": Figure(training_seconds(flops, STEPS, peak, given.utilisation), "seconds")}


def _count(given: Assumptions) -> int:
    """The parameters that are counted."""
    config = _config_of(given, only_matmuls=True)
    d, L = config.d_model, config.num_layers
    sums = _parameters(config).by_part()
    count = sums["attention"] + sums[FFN]
    count += {"separate": 2, "tied": 1, "none": 0}[given.embeddings] * sums["embedding"]
    count += {"all": 2 * L + 1, "no final": 2 * L, "no block": 1, "none": 0}[given.norms] * d
    if given.positions:
        count += given.context_length * d
    if given.biases:  # of Q, K, V and output, of W1 and W2, of the norms: GPT-2 uses LayerNorm
        count += L * (4 * d + config.d_ff + d + 2 * d) + d
    return count


def _forward_and_backward(given: Assumptions) -> float:
    """The FLOPs of one sequence, with the backward passes that are counted."""
    return sum(_flops(given).values()) * (1 + given.backward)


def _flops(given: Assumptions) -> dict[str, float]:
    """The FLOPs of a forward pass by part of the model, as they are counted."""
    if given.by_parameters:
        return {"all": 2 * _count(given) * given.context_length}
    config = _config_of(given, only_matmuls=True)
    sums = _forward_flops(config).by_part()
    sums[PROJECTIONS] = sums[PROJECTIONS] * given.projections // 4
    which = {"both": 1, "one": 0.5, "half": 0.5, "none": 0, "wide": config.num_heads}
    sums[SCORES] *= which[given.scores]
    if not given.head:
        sums["head"] = 0
    blocks = 1 if given.every_block else config.num_layers
    return {
        part: flops * given.multiply_add / 2 / (1 if part == "head" else blocks)
        for part, flops in sums.items()
    }


def _config_of(given: Assumptions, only_matmuls: bool = False) -> ModelConfig:
    """The config that is assumed; what is left out or added is not part of it.

    An inner width of 8/3·d_model has to be rounded. `only_matmuls` avoids that if nothing but the
    sizes of the matrices counts: two matrices of 4·d_model have exactly as many parameters.
    """
    if only_matmuls and (given.matrices, given.d_ff) == (3, "8/3"):
        return _config(given.size, given.context_length, 2, "4")
    return _config(given.size, given.context_length, given.matrices, given.d_ff)


@cached
def _config(size: str, context_length: int, matrices: int, d_ff: str) -> ModelConfig:
    model = gpt2(size, "2025", context_length)
    d_model = model.d_model
    inner = {"4": 4 * d_model, "64": near_eight_thirds(d_model), "8/3": 8 * d_model // 3}
    kind = {2: "silu", 3: "swiglu"}[matrices]
    return replace(model, d_ff=inner.get(d_ff) or int(d_ff), ffn=kind)
