"""What a model costs as torch itself counts it: the measurements to compare formulas with.

They all work on the meta device too, where tensors have shapes but no values: so a model far too
large for this machine is measured to the byte and to the FLOP, in seconds.
"""

import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import Module
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, flop_registry
from torch.utils.module_tracker import ModuleTracker

Work = Callable[[], Any]  # a forward pass, a whole step: it takes nothing

# Torch knows what the attention of a GPU costs. The kernel of a CPU computes the same matmuls.
FLASH = "_scaled_dot_product_flash_attention"
for _direction in ("", "_backward"):
    _kernel = getattr(torch.ops.aten, f"{FLASH}_for_cpu{_direction}")
    flop_registry.setdefault(_kernel, flop_registry[getattr(torch.ops.aten, FLASH + _direction)])


def counted_flops(work: Work) -> int:
    """The FLOPs of the matmuls that are computed while `work()` runs, forward or backward.

    A matmul of (n, k) by (k, m) counts 2 n k m: torch's own count, which leaves out all else. An
    attention kernel counts every score, even those that a mask hides; in the backward pass it
    computes the scores again, which is one more matmul.
    """
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


class _Watch(TorchDispatchMode):
    """Calls `after(func, args, kwargs, result)` after every operation of torch."""

    def __init__(self, after: Callable[..., None]) -> None:
        super().__init__()
        self._after = after

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._after(func, args, kwargs or {}, result)
        return result


def matmuls(forward: Work) -> list[tuple[str, int]]:
    """Every matmul of a forward pass, in order: the module that computed it, and its FLOPs.

    The name is that of the innermost module, such as "layers.0.ffn.w1", or "" outside of any.
    """
    flops_by_module: list[tuple[str, int]] = []

    def record(func: Any, args: Any, kwargs: Any, result: Any) -> None:
        count = flop_registry.get(func._overloadpacket)  # None for all but matmuls
        if count is not None:
            # `parents` has all modules that run: "TransformerLM", "TransformerLM.layers.0", ...
            inner = max(modules.parents, key=lambda name: name.count("."))
            inner = inner.partition(".")[2]  # without the name of the model's class
            flops_by_module.append((inner, count(*args, **kwargs, out_val=result)))

    with ModuleTracker() as modules, _Watch(record), torch.no_grad():
        forward()
    return flops_by_module


# FLOPs per value. What allocates memory, or views the same values in another shape, has none.
ELEMENTWISE = {"mul": 1, "add": 1, "sub": 1, "div": 1, "sqrt": 1, "addcmul": 3, "addcdiv": 3}
ALLOCATIONS = {"zeros_like", "empty_like", "detach", "zeros", "empty"}


def elementwise_flops(work: Work) -> int:
    """The FLOPs of work that treats each value by itself, as an optimizer does.

    Raises: ValueError for an operation that is not in `ELEMENTWISE`.
    """
    flops = 0

    def count(func: Any, args: Any, kwargs: Any, result: Any) -> None:
        nonlocal flops
        name = func._overloadpacket.__name__.rstrip("_")
        if name in ALLOCATIONS or func.namespace != "aten":  # such as the profiler's marks
            return
        if name not in ELEMENTWISE:
            raise ValueError(f"how many FLOPs per value {name} costs is missing in ELEMENTWISE")
        scaled = kwargs.get("alpha", 1) != 1  # a + alpha b: one multiplication more
        flops += (ELEMENTWISE[name] + scaled) * result.numel()

    with _Watch(count):
        work()
    return flops


def saved_bytes(forward: Work, model: Module | None = None) -> list[int]:
    """The bytes of each tensor of `forward()` that autograd keeps for the backward pass.

    They are in order of creation. Tensors that share their memory count once. The parameters and
    buffers of `model` do not count: they are there anyway. What no derivative needs is not kept.
    """
    known = [] if model is None else [*model.parameters(), *model.buffers()]
    # By a number that identifies the memory. It is held until the end: freed memory could be given
    # to another tensor, and both would count as one.
    there = {tensor.untyped_storage()._cdata for tensor in known}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in there:
            kept.setdefault(storage._cdata, storage)
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        result = forward()
    del result  # only now, because dropping the result frees its graph and what it saved
    return [storage.nbytes() for storage in kept.values()]


def state_bytes(optimizer: Optimizer) -> int:
    """The bytes of the tensors in an optimizer's state that are as large as a parameter.

    Step counters, at most one number for each parameter tensor, are left out.
    """
    return sum(
        value.nbytes
        for parameter, state in optimizer.state.items()
        for value in state.values()
        if isinstance(value, Tensor) and value.shape == parameter.shape
    )


def peak_live_bytes(work: Work, already: Iterable[Tensor] = ()) -> int:
    """The most bytes of tensors that live at once while `work()` runs.

    `already` are tensors that exist before, such as parameters: they count from the start. The
    workspace of a kernel, and what an allocator rounds up, are not seen.
    """
    alive: dict[int, weakref.ref[torch.UntypedStorage]] = {}
    now = peak = 0

    def forget(key: int, size: int, _: object) -> None:
        nonlocal now
        del alive[key]
        now -= size

    def add(values: Iterable[Any]) -> None:
        nonlocal now, peak
        for tensor in values:
            if not isinstance(tensor, Tensor):
                continue
            storage = tensor.untyped_storage()  # the memory, which views share
            key = storage._cdata
            size = storage.nbytes()
            if key not in alive:
                # A weak reference does not keep the memory, and says when it is freed.
                alive[key] = weakref.ref(storage, partial(forget, key, size))
                now += size
                peak = max(peak, now)

    add(already)
    with _Watch(lambda func, args, kwargs, result: add(tree_leaves(result))):
        work()
    return peak
