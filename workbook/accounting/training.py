"""The costs of a training step: bytes by kind, the largest batch, AdamW's FLOPs, time and MFU."""

from dataclasses import dataclass, replace
from typing import Any

from workbook.accounting.activations import handout_activations
from workbook.accounting.sizes import CostTable, Row, forward_flops, parameters
from workbook.config import Edition, ModelConfig, gpt2

FLOAT = 4  # bytes of a float32
GB = 1000**3
GiB = 1024**3
DAY, HOUR = 86_400, 3_600  # seconds


@dataclass(frozen=True, kw_only=True)
class Device:
    """A device as its data sheet describes it."""

    name: str
    precision: str  # of the matmuls
    flops_per_second: float  # at its peak, without sparsity


# Dense peaks. The editions ask for the first two: the first in float32, the second in TF32.
DEVICES = {
    f"{device.name} {device.precision}": device
    for device in (
        Device(name="A100", precision="float32", flops_per_second=19.5e12),
        Device(name="H100", precision="TF32", flops_per_second=495e12),
        Device(name="A100", precision="TF32", flops_per_second=156e12),
        Device(name="A100", precision="bfloat16", flops_per_second=312e12),
        Device(name="H100", precision="float32", flops_per_second=67e12),
        Device(name="H100", precision="bfloat16", flops_per_second=989e12),
    )
}


ASKED_DEVICES = {"2025": "A100 float32", "2026": "H100 TF32"}  # by `adamwAccounting` (d)


def asked_device(edition: Edition) -> Device:
    """The device that `adamwAccounting` (d) asks about."""
    return DEVICES[ASKED_DEVICES[edition]]


def asked_model(edition: Edition, size: str = "xl") -> ModelConfig:
    """The model of `adamwAccounting`: edition 2025 gives its feed-forward layer two matrices only.

    `transformer_accounting` asks about `gpt2(size, edition)`, which has SwiGLU in both editions.
    """
    swiglu = gpt2(size, edition)
    return swiglu if edition == "2026" else replace(swiglu, ffn="silu")


def training_bytes(config: ModelConfig, activations: CostTable) -> CostTable:
    """The bytes of a training step in float32 by kind; `activations` are those of one batch.

    The sum assumes that all four are in memory at once. That is an upper bound: in a backward pass
    activations are freed while gradients are created.
    """
    # P parameters, and for each a gradient and two moments of AdamW: 4 + 4 + 8 bytes.
    weights = FLOAT * parameters(config).total
    return CostTable(
        [
            Row("parameters", "parameters", "4·P", weights),
            Row("gradients", "gradients", "4·P", weights),
            Row("optimizer state", "optimizer", "2·4·P", 2 * weights),
            Row("activations", "activations", "the sum of the saved tensors", activations.total),
        ]
    )


def memory_line(config: ModelConfig, **reading: Any) -> tuple[int, int]:
    """The bytes (a, b) of a·batch + b: per sequence, and for a batch of any size.

    `reading` are arguments of `handout_activations`.
    """
    return handout_activations(config, **reading).total, training_bytes(config, CostTable()).total


def largest_batch(per_sequence: int, fixed: int, memory: int = 80 * GB) -> int:
    """The largest batch whose a·batch + b bytes fit into the memory; 0 if none does."""
    return max((memory - fixed) // per_sequence, 0)


def adamw_operations(
    *,
    first_moment: int = 3,
    second_moment: int = 4,
    bias_corrections: int = 0,
    update: int = 5,
    decay: int = 2,
) -> CostTable:
    """The FLOPs of AdamW per parameter, step by step; how many each step has is a choice.

    What is computed once per step, not once per parameter, costs nothing here: α_t =
    α·√(1 - β2ᵗ) / (1 - β1ᵗ), 1 - β1, 1 - β2 and α·λ. If you correct each moment by itself, you
    count 2 more, and may save one multiplication of the update by folding α into the first.
    """
    # By default m takes three operations, two multiplications and an addition, and v four, with one
    # more for g·g. The update takes five, root, +, ·, / and -, and the decay · and -.
    counted = [
        ("first moment", "m = β1·m + (1 - β1)·g", first_moment),
        ("second moment", "v = β2·v + (1 - β2)·g·g", second_moment),
        ("bias corrections", "folded into α_t: none; else m / (1 - β1ᵗ), …", bias_corrections),
        ("update", "θ = θ - α_t·m / (√v + ε)", update),
        ("decay", "θ = θ - α·λ·θ", decay),
    ]
    return CostTable(
        Row(name, "AdamW", formula, count) for name, formula, count in counted if count
    )


def adamw_flops(count: int, **choices: int) -> int:
    """The FLOPs of one AdamW step for `count` parameters; `choices` as for `adamw_operations`."""
    return adamw_operations(**choices).total * count


def step_flops(config: ModelConfig, batch_size: int) -> int:
    """The FLOPs of the matmuls of one training step: three times those of the forward pass.

    A backward pass takes two matmuls for each C = A·B, dA = dC·Bᵀ and dB = Aᵀ·dC, of the same cost.
    AdamW's own FLOPs are left out: 14 per parameter, against 6 per parameter and *token*.
    """
    return 3 * forward_flops(config, batch_size).total


def training_seconds(
    flops_per_step: float, steps: int, peak: float, utilisation: float = 0.5
) -> float:
    """The time of `steps` steps on a device that reaches `utilisation` of its `peak` FLOP/s."""
    if not 0 < utilisation <= 1:
        raise ValueError(f"utilisation={utilisation!r} is not a share of the peak; 0.5 means half")
    # Half of the peak is a good share: memory is slow, and not everything is a matmul.
    return flops_per_step * steps / (peak * utilisation)


def mfu(flops_per_token: float, tokens_per_second: float, peak: float) -> float:
    """Model FLOPs utilisation: the share of the peak FLOP/s that goes into the model's matmuls.

    Source: Chowdhery et al. 2022 (PaLM), sec. 4.1. Recomputed activations do not count.
    """
    return flops_per_token * tokens_per_second / peak
