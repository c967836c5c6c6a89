"""What a model and its training cost, counted on paper and measured while torch runs.

Open `sizes` first: parameters and FLOPs by module, each a table whose rows name their formula.
`activations`, `training` and `peak` go on with bytes and seconds, `measured` counts the same while
a model runs, and `proof` puts both side by side. What an answer takes for granted is in
`assumptions`; `answers` has the numbers that follow, and `explain` finds the assumptions behind
someone's number. All counts are Python ints, exact at any size.
"""

from workbook.lazy import lazy

# Where each public name lives.
HOMES = {
    "DEVICES": "training",
    "GB": "training",
    "GiB": "training",
    "Row": "sizes",
    "CostTable": "sizes",
    "adamw_flops": "training",
    "adamw_operations": "training",
    "asked_device": "training",
    "asked_model": "training",
    "flops_per_token": "sizes",
    "forward_flops": "sizes",
    "handout_activations": "activations",
    "largest_batch": "training",
    "memory_line": "training",
    "mfu": "training",
    "parameters": "sizes",
    "peak_bytes": "peak",
    "saved_activations": "activations",
    "step_flops": "training",
    "training_bytes": "training",
    "training_seconds": "training",
}
__all__ = list(HOMES)
__getattr__, __dir__ = lazy(__name__, HOMES)
