"""What a run computes with: the device, the precision of its matmuls, and the processes.

Half precision pays only on hardware that multiplies in it. Elsewhere numbers are converted back and
forth, which is slower than float32.
"""

import ctypes
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any, cast

import torch
from torch import Tensor, distributed, nn

from workbook import config
from workbook.optimizer.floats import FORMATS

# Flags of /proc/cpuinfo that say that a processor multiplies bfloat16: x86's two, and ARM's.
BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}
# Of glibc's malloc.h.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
LARGEST = 2**31 - 1  # bytes that mallopt takes
# How long processes wait for each other: the first one may wait for the lock of the run's folder.
LONGEST_WAIT = timedelta(hours=12)


def pick_device(wanted: str = "auto") -> torch.device:
    """The device to train on: the one wanted, or the fastest there is.

    Raises: ValueError if this machine has no such device.
    """
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    # The fastest first; a CPU is always there.
    names = [name for name, is_present in present.items() if is_present] + ["cpu"]
    device = torch.device(names[0] if wanted == "auto" else wanted)
    if device.type not in names:
        raise ValueError(f"there is no {wanted} on this machine; it has {' and '.join(names)}")
    return device


def pick_precision(device: torch.device, wanted: str = "auto") -> torch.dtype:
    """The type that matmuls are computed in: the one wanted, or the fastest that is safe.

    "auto" leaves the choice to `WORKBOOK_PRECISION`, and if that is unset, to the hardware. float16
    is never taken: its range is so small that the loss would have to be scaled.
    """
    # bfloat16 has the range of float32, and so needs no scaling of the loss; float16 would.
    asked = asked_precision(wanted)
    if asked == "auto":
        return torch.bfloat16 if has_bf16(device) else torch.float32
    return FORMATS[asked].dtype


def asked_precision(wanted: str) -> str:
    """The precision that a config, or else `WORKBOOK_PRECISION`, asks for; "auto": neither does."""
    return config.precision() if wanted == "auto" else wanted


def name_of(precision: torch.dtype) -> str:
    """The name of a precision in configs and logs, such as "bfloat16"."""
    return str(precision).removeprefix("torch.")


def has_bf16(device: torch.device) -> bool:
    """Whether the hardware itself multiplies bfloat16."""
    if device.type == "cuda":
        # Emulated, it would be converted back and forth, and slower than float32.
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and bool(BF16_FLAGS & config.processor_flags())


def autocast(device: torch.device, precision: torch.dtype) -> AbstractContextManager[Any]:
    """A context in which matmuls are computed in that precision; weights keep theirs."""
    if precision == torch.float32:
        return nullcontext()
    # Weights and sums stay in float32; only matmuls take copies in half precision.
    return torch.autocast(device.type, precision)


def tune(device: torch.device) -> None:
    """Apply settings that make training faster and change results by rounding at most."""
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32: 10 bits of mantissa in, float32 out
    if platform.libc_ver()[0] == "glibc":
        # It gives blocks of 128 kB and more back to the system as soon as they are freed. Each step
        # would ask for the same ones again, and the system would fill them with zeros first.
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, LARGEST)
        libc.mallopt(M_TRIM_THRESHOLD, LARGEST)


def compiled(model: nn.Module) -> nn.Module:
    """The model through torch.compile."""
    # It compiles the code of a class for eight objects and silently leaves the ninth uncompiled:
    # a process that makes one run after another has to reset it for each.
    torch._dynamo.reset()
    return cast(nn.Module, torch.compile(model))


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was asked for: call it before you read a clock."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    # A GPU works through a queue: a call returns at once, and the time it took is that of asking.
    elif device.type == "mps":
        torch.mps.synchronize()


def gpus() -> list[str]:
    """The NVIDIA or AMD GPUs that this process sees, as `CUDA_VISIBLE_DEVICES` lists them.

    They are counted without initialising any.
    """
    count = torch.cuda.device_count()
    # A batch system may have given this process some of the machine's GPUs, by these names.
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    return (listed.split(",") if listed else [str(number) for number in range(count)])[:count]


def describe(device: torch.device, precision: torch.dtype) -> dict[str, Any]:
    """The device, precision and threads of a run, for its log."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    threads = torch.get_num_threads()
    return {"device": name, "precision": name_of(precision), "threads": threads}


def best_seconds(work: Callable[[], object], device: str = "cpu", at_least: float = 0.3) -> float:
    """The shortest time that `work()` takes, of as many runs as fit into `at_least` seconds."""
    place = torch.device(device)
    work()  # the first time is slower: memory is allocated, kernels are chosen
    synchronize(place)
    # The shortest, not the mean: whatever else the machine does can only make a run longer.
    best = float("inf")
    begin = time.perf_counter()
    while time.perf_counter() - begin < at_least:
        start = time.perf_counter()
        work()
        synchronize(place)
        best = min(best, time.perf_counter() - start)
    return best


def matmul_peak(
    dtype: torch.dtype = torch.float32, device: str = "cpu", size: int | None = None
) -> float:
    """The FLOP/s of one square matmul: the most that this machine reaches, in practice."""
    # A GPU finishes a small one before it is asked for the next.
    size = size or (8_192 if torch.device(device).type == "cuda" else 1_024)
    left, right = (torch.ones(size, size, dtype=dtype, device=device) for _ in range(2))
    # n³ products and as many sums.
    return 2 * size**3 / best_seconds(lambda: left @ right, device)


GROUPS: list[Any] = []  # the process groups so far


@contextmanager
def process_group(wanted_device: str = "auto") -> Iterator[None]:
    """Connect the processes that torchrun started; without torchrun, or inside, do nothing.

    All functions below work in a single process too.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or distributed.is_initialized():
        yield
        return
    on_gpu = wanted_device in ("auto", "cuda") and torch.cuda.is_available()
    if on_gpu:
        # If several processes share a machine, each takes a GPU: "cuda" then means this one.
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    distributed.init_process_group("nccl" if on_gpu else "gloo", timeout=LONGEST_WAIT)
    try:
        yield
        distributed.barrier()  # no process closes a connection that another still uses
    finally:
        # Dropping the last reference to a group waits for gloo's thread while holding Python's
        # lock, which that thread may be waiting for: so keep a reference.
        GROUPS.append(distributed.group.WORLD)
        distributed.destroy_process_group()


def process_count() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def process_rank() -> int:
    """The rank of this process among them; the first, 0, writes the files."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def process_mean(tensor: Tensor) -> Tensor:
    """The mean of a tensor over all processes."""
    if process_count() > 1:
        distributed.all_reduce(tensor)
        # All processes add up, and each divides: so all hold the same number.
        tensor /= process_count()
    return tensor


def any_process(flag: bool) -> bool:
    """Whether the flag is set in any of the processes."""
    if process_count() == 1:
        return flag
    device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    # A mean above 0: at least one of them said so, and now all know it.
    return process_mean(torch.tensor(float(flag), device=device)).item() > 0


def from_first_process(make: Callable[[], Any]) -> Any:
    """What `make()` returns in the first process, which alone calls it; the others get a copy."""
    if process_count() == 1:
        return make()
    # A list, as torch puts what arrives into its place.
    made = [make() if process_rank() == 0 else None]
    distributed.broadcast_object_list(made, src=0)
    return made[0]
