"""Closed forms of `workbook.accounting` beside what a model on the meta device really costs.

Each function returns a table of terms with the columns formula, computed, measured and equal. The
numbers that are compared come from two sides: a pencil, and torch while it runs.
"""

from collections import Counter
from collections.abc import Callable, Mapping

import pandas as pd
import torch

from workbook import accounting, fused, nn
from workbook import measured_model as measure
from workbook.accounting import Table
from workbook.config import ModelConfig
from workbook.model import TransformerLM
from workbook.optim import AdamW

# Attention multiplies twice itself, outside of its four linear layers: in this order.
OWN_PRODUCTS = ("scores", "weighted_sum")


def parameters(config: ModelConfig) -> pd.DataFrame:
    """The learned numbers by module, and those of the model."""
    measured: Counter[str] = Counter()
    for name, count in measure.parameter_counts(_model(config)).items():
        measured[_any_layer(name.removesuffix(".weight"))] += count
    return beside(accounting.parameters(config), measured)


def forward_flops(config: ModelConfig, batch_size: int = 1) -> pd.DataFrame:
    """The FLOPs of each kind of product, and those of the products that torch computes."""
    model, ids = _model(config), _ids(config, batch_size)
    measured: Counter[str] = Counter()
    own = 0
    for product in measure.products(lambda: model(ids)):
        name = _any_layer(product.module)
        if name == "attn":
            name, own = f"attn.{OWN_PRODUCTS[own % 2]}", own + 1
        measured[name] += product.flops
    return beside(accounting.forward_flops(config, batch_size), measured)


def activations(config: ModelConfig, batch_size: int = 1) -> pd.DataFrame:
    """The bytes that wait for the backward pass by size of tensor, and those that autograd saves.

    Torch does not say which of its saved tensors is which. So those of one size are one row.
    """
    model, ids = _model(config), _ids(config, batch_size)
    loss, targets = _loss(config), _ids(config, batch_size)  # tensors of their own, as in training
    saved = measure.saved_tensors(lambda: loss(model(ids), targets), model)
    measured = Counter(each.bytes for each in saved)
    formulas: dict[int, str] = {}
    computed: Counter[int] = Counter()
    for row in accounting.saved_activations(config, batch_size):
        formulas.setdefault(row.each, row.formula)
        computed[row.each] += row.times
    sizes = sorted({*computed, *measured}, reverse=True)
    rows = {(formulas.get(size, "none"), size): (computed[size], measured[size]) for size in sizes}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["computed", "measured"])
    table.index = pd.MultiIndex.from_tuples(rows, names=["formula", "bytes each"])
    table["equal"] = table["computed"] == table["measured"]
    return table


def training_bytes(config: ModelConfig, batch_size: int = 1) -> pd.DataFrame:
    """The bytes of parameters, gradients, AdamW's state and activations after one real step."""
    model, ids, targets = _model(config), _ids(config, batch_size), _ids(config, batch_size)
    optimizer, loss = AdamW(model.parameters()), _loss(config)
    saved = measure.saved_bytes(lambda: loss(model(ids), targets), model)
    loss(model(ids), targets).backward()
    optimizer.step()
    measured = {
        "parameters": sum(parameter.nbytes for parameter in model.parameters()),
        "gradients": sum(parameter.grad.nbytes for parameter in model.parameters()),
        "optimizer state": measure.optimizer_bytes(optimizer),
        "activations": saved,
    }
    kept = accounting.saved_activations(config, batch_size)
    return beside(accounting.training_bytes(config, kept), measured)


def step_peak(config: ModelConfig, batch_size: int = 1) -> dict[str, int]:
    """The bytes of `training_bytes`, and the most that live at once in a whole training step.

    The two need not be equal. Not all is there at once: gradients come while activations go. And a
    step has temporary tensors that no list names: the gradient of the logits, say.
    """
    model, ids, targets = _model(config), _ids(config, batch_size), _ids(config, batch_size)
    optimizer, loss = AdamW(model.parameters()), _loss(config)

    def step() -> None:
        optimizer.zero_grad()
        loss(model(ids), targets).backward()
        optimizer.step()

    step()  # from the second on, the moments are there from the start
    states = [value for state in optimizer.state.values() for value in state.values()]
    moments = [value for value in states if isinstance(value, torch.Tensor)]
    gradients = [parameter.grad for parameter in model.parameters()]
    there = [*model.parameters(), *model.buffers(), *gradients, *moments, ids, targets]
    kept = accounting.saved_activations(config, batch_size)
    return {
        "computed": accounting.training_bytes(config, kept).total,
        "peak": measure.peak_bytes(step, already=there),
    }


def beside(table: Table, measured: Mapping[str, int]) -> pd.DataFrame:
    """The rows of a table, what was measured for each, and their sum; nothing may be left over."""
    rows = {
        row.name: (row.formula, row.times, row.total, measured.get(row.name, 0)) for row in table
    }
    rows |= {name: ("none", 1, 0, size) for name, size in measured.items() if name not in rows}
    rows["sum"] = "", 1, table.total, sum(measured.values())
    columns = ["formula", "times", "computed", "measured"]
    result = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    result["equal"] = result["computed"] == result["measured"]
    return result


def _any_layer(name: str) -> str:
    """The name of a module without the number of its layer: those of all layers are one row."""
    parts = name.split(".")
    return ".".join(parts[2:]) if parts[0] == "layers" else name


def _model(config: ModelConfig) -> TransformerLM:
    return TransformerLM.from_config(config, device="meta")


def _loss(config: ModelConfig) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The cross-entropy of the same parts as the model's."""
    return {"textbook": nn, "fused": fused}[config.kernels].cross_entropy


def _ids(config: ModelConfig, batch_size: int) -> torch.Tensor:
    return torch.zeros(batch_size, config.context_length, dtype=torch.long, device="meta")
