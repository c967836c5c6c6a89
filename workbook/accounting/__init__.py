"""What a model and its training cost, counted with a pencil and measured while torch runs.

Open `sizes` first: parameters and FLOPs by module, each a `Table` whose rows name their formula.
`activations`, `training` and `peak` go on with bytes and seconds, `measured` counts the same while
a model runs, and `proof` puts both side by side. What an answer takes for granted is in
`assumptions`; `answers` has the numbers that follow, and `explain` finds the assumptions behind
someone's number. All counts are Python ints, exact at any size.
"""

from workbook.accounting.activations import handout_activations, saved_activations
from workbook.accounting.peak import peak_bytes
from workbook.accounting.sizes import (
    Row,
    Table,
    backward_flops,
    flops_per_token,
    forward_flops,
    parameters,
)
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
    "peak_bytes",
    "saved_activations",
    "step_flops",
    "training_bytes",
    "training_seconds",
]
