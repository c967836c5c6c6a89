"""Closed forms of `workbook.accounting` beside what a model on the meta device really costs.

Each function returns a table of terms with the columns formula, computed, measured and equal. The
numbers that are compared come from two sides: a pencil, and torch while it runs.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import pandas as pd
import torch

from workbook import accounting
from workbook.accounting import Row, Table
from workbook.accounting import measured as measure
from workbook.config import ModelConfig
from workbook.optimizer.optimizers import AdamW
from workbook.transformer import fused, nn
from workbook.transformer.model import TransformerLM

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


def step_flops(config: ModelConfig, batch_size: int = 1) -> pd.DataFrame:
    """The FLOPs of the products of a forward pass, a backward pass and both."""
    model, ids, targets = _model(config), _ids(config, batch_size), _ids(config, batch_size)
    forward = measure.counted_flops(lambda: model(ids))
    both = measure.counted_flops(lambda: _loss(config)(model(ids), targets).backward())
    terms = {
        "forward": accounting.forward_flops(config, batch_size).total,
        "backward": accounting.backward_flops(config, batch_size).total,
    }
    table = Table(Row(name, name, "see (b)", flops) for name, flops in terms.items())
    return beside(table, {"forward": forward, "backward": both - forward})


def adamw_flops(numbers: int = 1_000) -> pd.DataFrame:
    """AdamW's FLOPs for one parameter: those of our code are counted, operation by operation.

    Our code decays by one multiplication with 1 - α·λ, where the usual count has two operations.
    """
    parameter = torch.nn.Parameter(torch.empty(numbers, device="meta"))
    parameter.grad = torch.empty_like(parameter)
    counted = measure.elementwise_flops(AdamW([parameter]).step)
    row = Row("AdamW", "AdamW", "3 + 4 + 5 + 1", accounting.adamw_flops(1, decay=1))
    return beside(Table([row]), {"AdamW": counted // numbers})


def activations(config: ModelConfig, batch_size: int = 1) -> pd.DataFrame:
    """The bytes that wait for the backward pass by size of tensor, and those that autograd saves.

    Torch does not say which of its saved tensors is which. So those of one size are one row.
    """
    model, ids = _as_it_runs(config), _ids(config, batch_size)
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
    model, ids, targets = _as_it_runs(config), _ids(config, batch_size), _ids(config, batch_size)
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
    """Bytes of a training step: all four kinds, those of the worst moment, and the most measured.

    The four kinds are never there at once: gradients come while activations go.
    """
    model, ids, targets = _as_it_runs(config), _ids(config, batch_size), _ids(config, batch_size)
    optimizer, loss = AdamW(model.parameters()), _loss(config)

    def step() -> None:
        optimizer.zero_grad()
        loss(model(ids), targets).backward()
        optimizer.step()

    def there() -> Iterator[torch.Tensor]:  # no list: it would keep the old gradients alive
        yield from (ids, targets, *model.parameters(), *model.buffers())
        yield from (parameter.grad for parameter in model.parameters())
        for state in optimizer.state.values():
            yield from (value for value in state.values() if isinstance(value, torch.Tensor))

    step()  # from the second on, the moments are there from the start
    kept = accounting.saved_activations(config, batch_size)
    return {
        "all four kinds": accounting.training_bytes(config, kept).total,
        "worst moment": accounting.peak_bytes(config, batch_size).total,
        "measured": measure.peak_bytes(step, already=there()),
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


def _as_it_runs(config: ModelConfig) -> TransformerLM:
    """The model with the memory of a real one: on meta, torch takes fused attention to pieces."""
    model = _model(config)
    if config.kernels == "fused":
        for block in model.layers:
            block.attn.attend = _attention_kernel
    return model


def _attention_kernel(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """What `fused.causal_attention` gives on a CPU, by name: so the meta device follows it too."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return kernel(Q, K, V, is_causal=True)[0]


def _loss(config: ModelConfig) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The cross-entropy of the same parts as the model's."""
    return {"textbook": nn, "fused": fused}[config.kernels].cross_entropy


def _ids(config: ModelConfig, batch_size: int) -> torch.Tensor:
    return torch.zeros(batch_size, config.context_length, dtype=torch.long, device="meta")
