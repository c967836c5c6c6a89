"""What a model costs as torch itself counts it: the measurements to compare formulas with.

All but the clock work on the meta device too, where tensors have shapes and no values: so a model
far too large for this machine is measured to the byte and to the FLOP, in seconds.
"""

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
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

    A matmul of (n, k) by (k, m) counts 2 n k m: torch's own count, which leaves out all else. A
    kernel for attention counts with every score, those that a mask hides too; in the backward pass
    it computes the scores again, so one more matmul.
    """
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


@dataclass(frozen=True)
class Matmul:
    """One matmul: the module that computed it, the shapes of its two factors, its FLOPs."""

    module: str  # such as "layers.0.ffn.w1"; "" outside of any
    shapes: tuple[tuple[int, ...], ...]
    flops: int


class _Matmuls(TorchDispatchMode):
    """Records every matmul that torch has a count for, and the innermost module that runs."""

    def __init__(self):
        super().__init__()
        self.found: list[Matmul] = []
        self._modules = ModuleTracker()

    def __enter__(self):
        self._modules.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._modules.__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        count = flop_registry.get(func._overloadpacket)
        if count is not None:
            # `parents` has all modules that run: "TransformerLM", "TransformerLM.layers.0", ...
            inner = max(self._modules.parents, key=lambda name: name.count("."))
            shapes = tuple(tuple(arg.shape) for arg in args if isinstance(arg, Tensor))
            flops = count(*args, **(kwargs or {}), out_val=result)
            self.found.append(Matmul(inner.partition(".")[2], shapes, flops))
        return result


def matmuls(forward: Work) -> list[Matmul]:
    """Every matmul of a forward pass, in the order in which they are computed."""
    with _Matmuls() as recorded, torch.no_grad():
        forward()
    return recorded.found


# FLOPs per value. What allocates memory, or views the same values in another shape, has none.
ELEMENTWISE = {"mul": 1, "add": 1, "sub": 1, "div": 1, "sqrt": 1, "addcmul": 3, "addcdiv": 3}
ALLOCATIONS = {"zeros_like", "empty_like", "detach", "zeros", "empty"}


class _Elementwise(TorchDispatchMode):
    """Adds up the FLOPs of element-wise operations."""

    def __init__(self):
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        name = func._overloadpacket.__name__.rstrip("_")
        if name not in ALLOCATIONS and func.namespace == "aten":  # the profiler's marks are others
            if name not in ELEMENTWISE:
                raise ValueError(f"how many FLOPs per value {name} costs is not in ELEMENTWISE")
            scaled = (kwargs or {}).get("alpha", 1) != 1  # a + alpha b: one multiplication more
            self.flops += (ELEMENTWISE[name] + scaled) * result.numel()
        return result


def elementwise_flops(work: Work) -> int:
    """The FLOPs of work that treats each value by itself, as an optimizer does.

    Raises: ValueError for an operation that is not in `ELEMENTWISE`.
    """
    with _Elementwise() as counted:
        work()
    return counted.flops


@dataclass(frozen=True)
class Saved:
    """One piece of memory that waits for the backward pass; `shape` is that of its first user."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    bytes: int


def saved_tensors(forward: Work, model: Module | None = None) -> list[Saved]:
    """The tensors of `forward()` that autograd keeps for the backward pass, in order of creation.

    Tensors that share their memory count once. The parameters and buffers of `model` do not count:
    they are there anyway. What no derivative needs is not kept, so not listed.
    """
    known = {} if model is None else storages([*model.parameters(), *model.buffers()])
    found: dict[int, Saved] = {}
    alive = []  # freed memory could be given to another tensor, and both would count as one

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in known and storage._cdata not in found:
            alive.append(storage)
            found[storage._cdata] = Saved(tuple(tensor.shape), tensor.dtype, storage.nbytes())
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        result = forward()
    del result
    return list(found.values())


def saved_bytes(forward: Work, model: Module | None = None) -> int:
    """The bytes of `saved_tensors`, all together."""
    return sum(each.bytes for each in saved_tensors(forward, model))


def storages(tensors: Iterable[Tensor]) -> dict[int, torch.UntypedStorage]:
    """The memory of the tensors, each piece once, by a number that identifies it."""
    return {t.untyped_storage()._cdata: t.untyped_storage() for t in tensors}


def optimizer_bytes(optimizer: Optimizer) -> int:
    """The bytes of the tensors in an optimizer's state that are as large as a parameter.

    Step counters, at most one number for each parameter tensor, are left out.
    """
    return sum(
        value.nbytes
        for parameter, state in optimizer.state.items()
        for value in state.values()
        if isinstance(value, Tensor) and value.shape == parameter.shape
    )


class _Alive(TorchDispatchMode):
    """Adds up the memory of all tensors that are created, as long as each of them lives."""

    def __init__(self, already: Iterable[Tensor]):
        super().__init__()
        self._seen: dict[int, weakref.ref] = {}
        self.now = self.peak = 0
        for tensor in already:
            self._add(tensor)

    def _add(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._seen:
            return

        def freed(_) -> None:
            del self._seen[key]
            self.now -= size

        self._seen[key] = weakref.ref(storage, freed)  # called once no tensor uses the memory
        self.now += size
        self.peak = max(self.peak, self.now)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self._add(leaf)
        return result


def peak_bytes(work: Work, already: Iterable[Tensor] = ()) -> int:
    """The most bytes of tensors that live at once while `work()` runs.

    `already` are tensors that exist before, such as parameters: they count from the start. The
    workspace of a kernel, and what an allocator rounds up, is not seen.
    """
    with _Alive(already) as alive:
        work()
    return alive.peak
