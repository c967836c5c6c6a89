"""What a model and its training cost: pure functions of a config and of assumptions with names.

Counts are Python ints, exact at any size. Tests hold every one of them against a running model.
"""

from workbook.accounting.activations import handout_activations, saved_activations
from workbook.accounting.answers import Figure, answers, model_of
from workbook.accounting.assumptions import SWITCHES, Assumptions, Switch, asked, switches
from workbook.accounting.explain import Explained, Explanation, Found, explain
from workbook.accounting.peak import peak_bytes
from workbook.accounting.quoted import Quoted, numbers, significant
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
    "SWITCHES",
    "Assumptions",
    "Device",
    "Explained",
    "Explanation",
    "Figure",
    "Found",
    "GiB",
    "Quoted",
    "Row",
    "Switch",
    "Table",
    "adamw_flops",
    "adamw_operations",
    "answers",
    "asked",
    "asked_device",
    "asked_model",
    "backward_flops",
    "explain",
    "flops_per_token",
    "forward_flops",
    "handout_activations",
    "largest_batch",
    "memory_line",
    "mfu",
    "model_of",
    "numbers",
    "optimizer_bytes",
    "parameters",
    "peak_bytes",
    "saved_activations",
    "significant",
    "step_flops",
    "switches",
    "training_bytes",
    "training_seconds",
]
