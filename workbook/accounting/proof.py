"""Formulas of `workbook.accounting` beside what a model on the meta device really costs.

Each function returns a table of terms with the columns formula, computed, measured and equal. The
numbers that are compared come from two sources: a formula, and torch while it runs.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import cycle

import pandas as pd
import torch

from workbook import accounting
from workbook.accounting import CostTable, Row, measured
from workbook.config import ModelConfig
from workbook.optimizer.optimizers import AdamW
from workbook.transformer import fused, nn
from workbook.transformer.model import MultiHeadSelfAttention, TransformerLM


class _Step:
    """The forward pass, loss and update of a model whose tensors have shapes but no values.

    On the meta device torch takes fused attention apart, and its FLOPs are counted from the pieces.
    For `memory` the kernel is called by name, so that it keeps what a real one keeps.
    """

    def __init__(self, config: ModelConfig, batch_size: int, memory: bool = False):
        self.model = TransformerLM.from_config(config, device="meta")
        if memory and config.kernels == "fused":
            for module in self.model.modules():
                if isinstance(module, MultiHeadSelfAttention):
                    module.attend = _attention_kernel
        self.cross_entropy = {"textbook": nn, "fused": fused}[config.kernels].cross_entropy
        self.optimizer = AdamW(self.model.parameters())
        shape = batch_size, config.context_length
        self.ids = torch.zeros(shape, dtype=torch.long, device="meta")
        self.targets = torch.zeros_like(self.ids)

    def loss(self) -> torch.Tensor:
        return self.cross_entropy(self.model(self.ids), self.targets)

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()

    def gradients(self) -> Iterator[torch.Tensor]:
        """Those of the last step; not a list, which would keep them in memory."""
        return (theta.grad for theta in self.model.parameters() if theta.grad is not None)

    def tensors(self) -> Iterator[torch.Tensor]:
        """All that is in memory between two steps."""
        yield from (self.ids, self.targets, *self.model.parameters(), *self.model.buffers())
        yield from self.gradients()
        for state in self.optimizer.state.values():
            yield from (value for value in state.values() if isinstance(value, torch.Tensor))


def _attention_kernel(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """The result of `fused.causal_attention` on a CPU."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return kernel(Q, K, V, is_causal=True)[0]


def prove_parameters(config: ModelConfig) -> pd.DataFrame:
    """The learned numbers by module, and those of the model."""
    counts: Counter[str] = Counter()
    for name, parameter in _Step(config, 1).model.named_parameters():
        counts[_any_layer(name.removesuffix(".weight"))] += parameter.numel()
    return term_by_term(accounting.parameters(config), counts)


def prove_forward_flops(config: ModelConfig, batch_size: int = 1) -> pd.DataFrame:
    """The FLOPs of each kind of matmul, and those of the matmuls that torch computes."""
    step = _Step(config, batch_size)
    counts: Counter[str] = Counter()
    # In each layer, two matmuls belong to no linear layer, in this order:
    inside_attention = cycle(("attn.scores", "attn.weighted_sum"))
    for module, flops in measured.matmuls(lambda: step.model(step.ids)):
        name = _any_layer(module)
        counts[next(inside_attention) if name == "attn" else name] += flops
    return term_by_term(accounting.forward_flops(config, batch_size), counts)


def prove_step_flops(config: ModelConfig, batch_size: int = 1) -> pd.DataFrame:
    """The FLOPs of the matmuls of a forward pass, a backward pass and both."""
    step = _Step(config, batch_size)
    # A forward pass without a loss, then both passes; what is left is the backward pass.
    forward = measured.counted_flops(lambda: step.model(step.ids))
    both = measured.counted_flops(lambda: step.loss().backward())
    computed = accounting.forward_flops(config, batch_size).total
    rows = [Row("forward", "forward", "see (b)", computed)]
    rows += [Row("backward", "backward", "2 × forward", 2 * computed)]
    return term_by_term(CostTable(rows), {"forward": forward, "backward": both - forward})


def prove_adamw_flops(numbers: int = 1_000) -> pd.DataFrame:
    """AdamW's FLOPs for one parameter: those of our code are counted, operation by operation.

    Our code decays by one multiplication with 1 - α·λ, where the usual count has two operations.
    """
    parameter = torch.nn.Parameter(torch.empty(numbers, device="meta"))
    parameter.grad = torch.empty_like(parameter)
    counted = measured.elementwise_flops(AdamW([parameter]).step)
    row = Row("AdamW", "AdamW", "3 + 4 + 5 + 1", accounting.adamw_flops(1, decay=1))
    return term_by_term(CostTable([row]), {"AdamW": counted // numbers})


def prove_activations(config: ModelConfig, batch_size: int = 1) -> pd.DataFrame:
    """The bytes that wait for the backward pass by size of tensor, and those that autograd saves.

    Torch does not say which of its saved tensors is which. So those of one size are one row.
    """
    step = _Step(config, batch_size, memory=True)
    saved = Counter(measured.saved_bytes(step.loss, step.model))
    formulas: dict[int, str] = {}
    computed: Counter[int] = Counter()
    for row in accounting.saved_activations(config, batch_size):
        formulas.setdefault(row.each, row.formula)
        computed[row.each] += row.times
    sizes = sorted({*computed, *saved}, reverse=True)
    rows = {(formulas.get(size, "none"), size): (computed[size], saved[size]) for size in sizes}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["computed", "measured"])
    table.index = pd.MultiIndex.from_tuples(rows, names=["formula", "bytes each"])
    table["equal"] = table["computed"] == table["measured"]
    return table


def prove_training_bytes(config: ModelConfig, batch_size: int = 1) -> pd.DataFrame:
    """The bytes of parameters, gradients, AdamW's state and activations after one real step."""
    step = _Step(config, batch_size, memory=True)
    saved = sum(measured.saved_bytes(step.loss, step.model))
    step()  # now there are gradients and moments
    bytes_of = {
        "parameters": sum(parameter.nbytes for parameter in step.model.parameters()),
        "gradients": sum(tensor.nbytes for tensor in step.gradients()),
        "optimizer state": measured.state_bytes(step.optimizer),
        "activations": saved,
    }
    kept = accounting.saved_activations(config, batch_size)
    return term_by_term(accounting.training_bytes(config, kept), bytes_of)


def prove_step_peak(config: ModelConfig, batch_size: int = 1) -> dict[str, int]:
    """Bytes of a training step: all four kinds, those of the worst moment, and the most measured.

    The four kinds never exist in full at once: gradients come while activations go.
    """
    step = _Step(config, batch_size, memory=True)
    step()  # from the second on, the moments are there from the start
    kept = accounting.saved_activations(config, batch_size)
    return {
        "all four kinds": accounting.training_bytes(config, kept).total,
        "worst moment": accounting.peak_bytes(config, batch_size).total,
        "measured": measured.peak_live_bytes(step, already=step.tensors()),
    }


def term_by_term(table: CostTable, counts: Mapping[str, int]) -> pd.DataFrame:
    """The rows of a table, what was measured for each, and their sum; nothing may be left over."""
    rows = {row.name: (row.formula, row.times, row.total, counts.get(row.name, 0)) for row in table}
    rows |= {name: ("none", 1, 0, count) for name, count in counts.items() if name not in rows}
    rows["sum"] = "", 1, table.total, sum(counts.values())
    columns = ["formula", "times", "computed", "measured"]
    result = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    result["equal"] = result["computed"] == result["measured"]
    return result


def _any_layer(name: str) -> str:
    """The name of a module without the number of its layer: those of all layers are one row."""
    return re.sub(r"^layers\.\d+\.", "", name)
