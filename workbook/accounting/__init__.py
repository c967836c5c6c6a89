"""What a model and its training cost: pure functions of a config and of assumptions with names.

Counts are Python ints, exact at any size. Tests hold every one of them against a running model.
"""

from workbook.accounting.activations import handout_activations, saved_activations
from workbook.accounting.sizes import backward_flops, flops_per_token, forward_flops, parameters
from workbook.accounting.tables import Row, Table
from workbook.accounting.training import (
    DEVICES,
    GB,
    Device,
    GiB,
    adamw_flops,
    adamw_operations,
    asked_device,
    asked_model,
    largest_batch,
    memory_line,
    mfu,
    optimizer_bytes,
    step_flops,
    training_bytes,
    training_seconds,
)

__all__ = [
    "DEVICES",
    "GB",
    "Device",
    "GiB",
    "Row",
    "Table",
    "adamw_flops",
    "adamw_operations",
    "asked_device",
    "asked_model",
    "backward_flops",
    "flops_per_token",
    "forward_flops",
    "handout_activations",
    "largest_batch",
    "memory_line",
    "mfu",
    "optimizer_bytes",
    "parameters",
    "saved_activations",
    "step_flops",
    "training_bytes",
    "training_seconds",
]
