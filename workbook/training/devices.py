"""What this machine computes with: the device, the precision of products, and memory that stays.

Half precision only pays where the hardware multiplies in it. Elsewhere it is converted back and
forth, and slower than float32.
"""

import ctypes
import platform
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path

import torch
from torch import nn

from workbook import config

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# Flags of /proc/cpuinfo that say that a processor multiplies bfloat16: x86's two, and ARM's.
BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
KEEP = 2**31 - 1  # bytes: the largest that mallopt takes


def pick_device(wanted: str = "auto") -> torch.device:
    """The device to train on: the one wanted, or the fastest there is.

    Raises: ValueError where this machine has no such device.
    """
    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if wanted == "auto":
        return torch.device(next(name for name, found in there.items() if found))
    device = torch.device(wanted)
    if not there.get(device.type):
        found = " and ".join(name for name, found in there.items() if found)
        raise ValueError(f"there is no {wanted} on this machine; it has {found}")
    return device


def pick_precision(device: torch.device, wanted: str = "auto") -> torch.dtype:
    """The type that matmuls are computed in: the one wanted, or the fastest that is safe.

    "auto" leaves the choice to `WORKBOOK_PRECISION`, and if that is unset, to the hardware.
    Raises: ValueError for float16 anywhere but on a GPU of NVIDIA's or AMD's: a CPU computes it
    hundreds of times slower, and its small range needs a loss scaler.
    """
    if wanted == "float16" and device.type != "cuda":
        raise ValueError(
            f"float16 is for CUDA: on {device.type} it is far slower than float32; take"
            " precision='auto'"
        )
    asked = asked_precision(wanted)
    if asked == "auto":
        return torch.bfloat16 if has_bf16(device) else torch.float32
    return DTYPES[asked]


def asked_precision(wanted: str) -> str:
    """The precision that a config, or else `WORKBOOK_PRECISION`, asks for; "auto": neither does."""
    return config.precision() if wanted == "auto" else wanted


def name_of(precision: torch.dtype) -> str:
    """The name of a precision in configs and logs, such as "bfloat16"."""
    return str(precision).removeprefix("torch.")


def has_bf16(device: torch.device) -> bool:
    """Whether the hardware itself multiplies bfloat16."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and bool(BF16_FLAGS & processor_flags())


@cache
def processor_flags() -> set[str]:
    """What the processor can do, as Linux tells; nothing elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return {
        flag
        for line in lines
        if line.startswith(("flags", "Features"))
        for flag in line.partition(":")[2].split()
    }


def autocast(device: torch.device, precision: torch.dtype) -> AbstractContextManager:
    """A context in which matrix products are computed in that precision; weights keep theirs."""
    if precision == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, precision)


def tune(device: torch.device) -> None:
    """Nothing; sets what makes training faster and changes no result beyond rounding."""
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32: 10 bits of mantissa in, float32 out
    keep_freed_memory()


@cache
def keep_freed_memory() -> bool:
    """Whether the C library now keeps large blocks that are freed, and hands them out again.

    glibc gives blocks from 128 kB on back to the system at once. Each step would ask for the same
    ones again, and the system fill them with zeros first.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(M_MMAP_THRESHOLD, KEEP) and libc.mallopt(M_TRIM_THRESHOLD, KEEP))


def compiled(model: nn.Module) -> nn.Module:
    """The model through torch.compile. Raises: ValueError on mps, where there is no Inductor."""
    if next(model.parameters()).device.type == "mps":
        raise ValueError("torch.compile has no Inductor for mps; take compile=False")
    return torch.compile(model)


def synchronize(device: torch.device) -> None:
    """Nothing; returns when the device has done what it was asked for: before a clock is read."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def describe(device: torch.device, precision: torch.dtype) -> dict:
    """What the log of a run says about where it ran."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return {
        "device": name,
        "precision": name_of(precision),
        "threads": torch.get_num_threads(),
    }
