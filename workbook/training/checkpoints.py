"""Checkpoints, so that a crash costs only minutes: written whole or not at all, read with distrust.

`save_checkpoint` and `load_checkpoint` are the course's pair: model, optimizer and step. A
training run keeps more in the same file, whatever it needs to go on as if nothing had happened
(`write_state`, `read_state`), and the last few files of a folder (`keep_last`, `newest`).

Loading runs no code from the file. A file that is cut short, damaged or of another kind is refused
before anything is changed.
"""

import os
import pickle
import random
import sys
import zipfile
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import nn, optim

from workbook.config import as_python
from workbook.files import atomic_write, files_like

KIND = "workbook checkpoint 1"
DOS_FOLDER = 0x10  # among the attributes of a zip archive's entry
PathOrFile = str | os.PathLike[str] | IO[bytes]
State = dict[str, Any]  # numbers, strings, tensors, and lists and dicts of them


def save_checkpoint(
    model: nn.Module, optimizer: optim.Optimizer, iteration: int, out: PathOrFile
) -> None:
    """Write model, optimizer and the step `iteration` to `out`, a path or an open file."""
    step = as_python(iteration)  # of NumPy, perhaps
    if type(step) is not int or step < 0:
        raise ValueError(f"iteration={iteration!r} is not a step; give a whole number >= 0")
    weights = unwrapped(model).state_dict()
    # Without AdamW's averages, training would go on from m = v = 0, and the loss would jump.
    moments = optimizer.state_dict()
    # Settings that a loop has set to NumPy's numbers, which no file of ours may hold.
    for group in moments["param_groups"]:
        group |= {name: x.item() for name, x in group.items() if isinstance(x, np.generic)}
    write_state({"model": weights, "optimizer": moments, "iteration": step}, out)


def load_checkpoint(src: PathOrFile, model: nn.Module, optimizer: optim.Optimizer) -> int:
    """Restore model and optimizer from `src`; return the step of the checkpoint.

    Raises: FileNotFoundError; ValueError for a file that cannot be used. Either way, model and
    optimizer are left unchanged.
    """
    state = read_state(src)
    restore(state, model, optimizer)
    return int(state["iteration"])


def write_state(state: State, out: PathOrFile) -> None:
    """Write `state` to a file atomically: it is complete afterwards, or as it was before.

    Raises: OSError if there is no room or no permission.
    """
    # Into memory first: then a file is written in one go, and torch never sees a full disk.
    buffer = BytesIO()
    torch.save({"kind": KIND, **state}, buffer)
    if not isinstance(out, str | os.PathLike):
        out.write(buffer.getbuffer())
        return
    # To a temporary name, then renamed: a crash in the middle leaves the old checkpoint as it was,
    # and never half of a new one under its name.
    with atomic_write(out, "wb") as file:
        file.write(buffer.getbuffer())


def read_state(src: PathOrFile) -> State:
    """What `write_state` stored, on the CPU.

    Raises: FileNotFoundError; ValueError for a file that is not a checkpoint, or only part of one.
    """
    if isinstance(src, str | os.PathLike):
        name = str(src)
        # Read once, and then only this copy is looked at: nobody can change it in between.
        content = Path(src).read_bytes()
    else:  # it may hold something else before its position: torch reads a file from its start
        name = "the file object (was seek(0) forgotten?)"
        content = src.read()
    if another := other_kind(content):
        raise ValueError(f"{name} is {another}; expected a checkpoint of `save_checkpoint`")
    file = BytesIO(content)
    # Damage can make zipfile and torch raise almost anything, so whatever they raise means the
    # same; except for a lack of memory, of which the file is innocent.
    try:
        # A checkpoint is a zip archive. Its index is at the end, so a file that is cut short has
        # none.
        damaged = _damaged_entry(file)
    except MemoryError:
        raise
    except Exception:
        damaged = "its end"  # where the index is
    if damaged:
        raise ValueError(
            f"{name} is not a complete checkpoint ({damaged} is missing or damaged);"
            " load an older one"
        )
    file.seek(0)
    try:
        # `weights_only` builds tensors and plain containers, and runs no code from the file.
        state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        if isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error):
            raise  # the second is torch's RuntimeError if the memory is not enough
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        # What `weights_only` refuses: a pickle may name any function, and loading would call it.
        if isinstance(error, pickle.UnpicklingError):
            what = "holds more than numbers, strings and tensors, or was not written by torch"
            raise ValueError(f"{name} {what}; nothing in it was run ({reason})") from error
        what = "is damaged, or was not written by torch"
        raise ValueError(f"{name} {what} ({reason}); load an older one") from error
    # A file of torch's, but of another program: its keys would mean something else.
    if not isinstance(state, dict) or state.get("kind") != KIND:
        raise ValueError(f"{name} is not a workbook checkpoint; save_checkpoint writes one")
    return state


# How the files begin that are taken for a checkpoint: what they are, and what to do with them.
BEGINNINGS = {
    b"version https://git-lfs": "a pointer of Git LFS: fetch the file itself, by `git lfs pull`",
    b"\x80\x02\x8a\x0al\xfc\x9cF\xf9": "in torch's format before 1.6: load it and save it again",
    b"\x80": "a pickle, which could run code when it is loaded",
}


def other_kind(content: bytes) -> str:
    """What a file is that is no archive of torch's, if that can be told; "" if not."""
    if not content:
        return "empty"
    header = int.from_bytes(content[:8], "little")
    if content[8:9] == b"{" and 2 <= header <= len(content) - 8:
        return "a safetensors file: its tensors are read by `safetensors.torch.load_file`"
    kinds = (what for start, what in BEGINNINGS.items() if content.startswith(start))
    return next(kinds, "")


def _damaged_entry(file: IO[bytes]) -> str | None:
    """The first entry of a checkpoint's zip archive that is not as torch wrote it, or None.

    Raises: whatever zipfile does; of a file that is cut short, whose index came last.
    """
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            # torch stores tensors uncompressed. Of an entry that is marked as a folder it reads
            # nothing, and returns whatever was in memory as the tensor's values.
            if entry.compress_type != zipfile.ZIP_STORED or entry.external_attr & DOS_FOLDER:
                return entry.filename
        return archive.testzip()  # torch does not compare the checksums


def restore(state: State, model: nn.Module, optimizer: optim.Optimizer | None = None) -> None:
    """Put what `read_state` returned into the model and the optimizer, or into neither.

    Raises: ValueError if the checkpoint's model or optimizer has another shape, or holds a NaN.
    """
    model = unwrapped(model)  # as when it was saved
    weights = state["model"]
    # `DistributedDataParallel(model).state_dict()` has this before each name.
    if weights and all(name.startswith("module.") for name in weights):
        weights = {name.removeprefix("module."): tensor for name, tensor in weights.items()}
    # All is checked before anything is changed: half a model would train on, and nobody would know.
    check_shapes(weights, model)
    # Of the parameters: a buffer, such as a mask, may well hold infinities.
    numbers = {name: weights[name] for name, _ in model.named_parameters()}
    if optimizer is not None:
        for place, moments in state["optimizer"]["state"].items():
            numbers |= {f"{name} of parameter {place}": x for name, x in moments.items()}
    for name, values in numbers.items():
        if isinstance(values, torch.Tensor) and not values.isfinite().all():
            raise ValueError(
                f"the checkpoint is spoilt: {name} is NaN or infinite there, so the run had"
                " diverged before it was saved; remove it, and go on from an older one"
            )
    if optimizer is not None:
        optimizer.load_state_dict(state["optimizer"])  # it checks its groups before it changes any
    # Last, as nothing can fail here any more.
    model.load_state_dict(weights)


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside of what `torch.compile` or data parallelism made of it.

    These put `_orig_mod.` or `module.` before the names of its weights.
    """
    while isinstance(inside := getattr(model, "_orig_mod", None) or _parallel(model), nn.Module):
        model = inside
    return model


def _parallel(model: nn.Module) -> nn.Module | None:
    kinds = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    return model.module if isinstance(model, kinds) else None


def check_shapes(weights: dict[str, torch.Tensor], model: nn.Module) -> None:
    """Raise ValueError unless the model has these weights, in these shapes.

    `load_state_dict` would raise too, but only after it had copied those that fit.
    """
    # By name and shape: a missing weight and one too many are told alike.
    here = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    there = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in here | there:
        if here.get(name) != there.get(name):
            raise ValueError(
                f"the checkpoint is of another model: {name} is {there.get(name, 'missing')} there"
                f" and {here.get(name, 'missing')} here; build the model with the saved sizes"
            )


def seed_everything(seed: int) -> None:
    """Seed all generators of random numbers: torch's, NumPy's and Python's."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    # Python's and NumPy's too: a learner's part may draw from any of the three.
    random.seed(seed)


def random_state() -> State:
    """The states of all generators of random numbers."""
    kind, key, *rest = np.random.get_state()
    version, numbers, gauss = random.getstate()
    # Whatever a resumed run draws, it draws as if it had never stopped.
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "numpy": [kind, torch.from_numpy(np.array(key, np.int64)), *rest],
        "python": [version, list(numbers), gauss],
    }


def restore_random_state(state: State) -> None:
    """Put the generators back into these states."""
    torch.set_rng_state(state["torch"])
    # On another number of GPUs there is no "same" state, and the run goes on without.
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["cuda"])
    kind, key, *rest = state["numpy"]
    np.random.set_state((kind, key.numpy().astype(np.uint32), *rest))
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))


def saved(folder: str | os.PathLike[str]) -> list[Path]:
    """The checkpoints in a folder, the newest first."""
    # Names with leading zeros sort like the numbers in them.
    return files_like(folder, "step-*.pt")[::-1]


def keep_last(state: State, folder: str | os.PathLike[str], count: int) -> Path:
    """Write a checkpoint of a run and return its path; the last `count` checkpoints stay."""
    target = Path(folder) / f"step-{state['iteration']:09d}.pt"
    for abandoned in target.parent.glob(".step-*.tmp"):  # left by a process that was killed
        abandoned.unlink(missing_ok=True)
    write_state(state, target)
    # Only after the new one is complete, so at least one is always there.
    for old in saved(folder)[count:]:
        old.unlink(missing_ok=True)
    return target


def newest(folder: str | os.PathLike[str]) -> State | None:
    """The newest checkpoint of a run that can be read; None if there is none at all.

    A file that has to be skipped is named on standard error: it may mean a damaged disk.
    Raises: ValueError if there are files, but none of them can be used.
    """
    files = saved(folder)
    for file in files:
        try:
            # The first that can be read. Usually two are kept, so that a damaged one costs a few
            # minutes only.
            return read_state(file)
        except (OSError, ValueError) as error:
            print(f"looking for an older checkpoint: {error}", file=sys.stderr, flush=True)
    if files:
        raise ValueError(
            f"no checkpoint in {folder} can be read: put back a copy of one, or, to begin anew,"
            " remove that folder"
        )
    return None
