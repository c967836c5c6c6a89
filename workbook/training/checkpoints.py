"""Checkpoints, so that a crash costs only minutes: written whole or not at all, read with distrust.

`save_checkpoint` and `load_checkpoint` are the course's pair: model, optimizer and step. A
training run keeps more in the same file, whatever it needs to go on as if nothing had happened
(`write`, `read`), and the last few files of a folder (`keep`, `newest`).

Loading runs no code from the file. A file that is cut short, damaged or of another kind is refused
before anything is changed.
"""

import os
import pickle
import random
import re
import sys
import zipfile
from collections.abc import Collection
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import nn, optim

from workbook.files import atomic_write

KIND = "workbook checkpoint 1"
NAME = "step-{:09d}.pt"


def save_checkpoint(
    model: nn.Module,
    optimizer: optim.Optimizer,
    iteration: int,
    out: str | os.PathLike | IO[bytes],
    **more,
) -> None:
    """Write model, optimizer, the step `iteration` and whatever `more` there is to `out`.

    `out` is a path or an open file; `more` may hold numbers, strings, tensors, and lists and dicts
    of them.
    """
    if type(iteration) is not int or iteration < 0:
        raise ValueError(f"iteration={iteration!r} is not a step; give a whole number >= 0")
    write(
        {
            "kind": KIND,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "iteration": iteration,
            **more,
        },
        out,
    )


def load_checkpoint(
    src: str | os.PathLike | IO[bytes], model: nn.Module, optimizer: optim.Optimizer
) -> int:
    """Restore model and optimizer from `src`; return the step of the checkpoint.

    Raises: FileNotFoundError; ValueError for a file that cannot be used. Either way, model and
    optimizer are left unchanged.
    """
    state = read(src, ("model", "optimizer", "iteration"))
    restore(state, model, optimizer)
    return state["iteration"]


def write(state: dict, out: str | os.PathLike | IO[bytes]) -> None:
    """Write `state` to a file atomically: it is complete afterwards, or as it was before.

    Raises: OSError if there is no room or no permission.
    """
    if not isinstance(out, str | os.PathLike):
        torch.save(state, out)
        return
    try:
        with atomic_write(out, "wb") as file:
            torch.save(state, file)
    except RuntimeError as error:  # torch raises this if the system could not write
        reason = error.__context__ if isinstance(error.__context__, OSError) else error
        raise OSError(f"{out} could not be written: {reason}; is the disk full?") from error


def read(src: str | os.PathLike | IO[bytes], needs: Collection[str] = ()) -> dict:
    """What `write` stored, on the CPU; it holds at least the entries that `needs` names.

    Raises: FileNotFoundError; ValueError for a file that is not a checkpoint, or only part of one.
    """
    if isinstance(src, str | os.PathLike):
        with open(src, "rb") as file:
            return _read(file, str(src), needs)
    # An open file may hold something else before its position: torch reads a file from its start.
    return _read(BytesIO(src.read()), "the file object", needs)


def _read(file: IO[bytes], name: str, needs: Collection[str]) -> dict:
    if not file.read(1):
        raise ValueError(
            f"{name} is empty from where it is read; is the file unfinished, or was seek(0)"
            " forgotten?"
        )
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as parts:
            damaged = parts.testzip()  # torch does not compare the check sums
    except zipfile.BadZipFile:
        damaged = "its end"
    if damaged:
        raise ValueError(
            f"{name} is not a complete checkpoint ({damaged} is missing or damaged); load an older"
            " one"
        )
    file.seek(0)
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, KeyError, EOFError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{name} holds more than numbers, strings and tensors, or was not written by torch;"
            f" nothing in it was run ({reason})"
        ) from error
    if not isinstance(state, dict) or state.get("kind") != KIND:
        raise ValueError(f"{name} is not a workbook checkpoint; save_checkpoint writes one")
    if missing := ", ".join(sorted(set(needs) - state.keys())):
        raise ValueError(f"{name} lacks {missing}; another version of the workbook wrote it")
    return state


def restore(state: dict, model: nn.Module, optimizer: optim.Optimizer | None = None) -> None:
    """Put what `read` returned into the model and the optimizer, or into neither.

    Raises: ValueError if the checkpoint's model or optimizer has another shape.
    """
    check_model(state["model"], model)
    if optimizer is not None:
        check_optimizer(state["optimizer"], optimizer)
        optimizer.load_state_dict(state["optimizer"])
    model.load_state_dict(state["model"])


def check_model(saved: dict[str, torch.Tensor], model: nn.Module) -> None:
    """Raise ValueError unless the model has these tensors, in these shapes.

    `load_state_dict` would raise too, but only after it had copied those that fit.
    """
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in saved.items()}
    for name in wanted | found:
        if wanted.get(name) != found.get(name):
            raise ValueError(
                f"the checkpoint is of another model: {name} is {found.get(name, 'missing')} there"
                f" and {wanted.get(name, 'missing')} here; build the model with the sizes that it"
                " was saved with"
            )


def check_optimizer(saved: dict, optimizer: optim.Optimizer) -> None:
    """Raise ValueError unless the optimizer has as many parameters, with state of their shapes."""
    groups = [len(group["params"]) for group in saved["param_groups"]]
    here = [len(group["params"]) for group in optimizer.param_groups]
    if groups != here:
        raise ValueError(
            f"the checkpoint's optimizer has groups of {groups} parameters and this one of {here};"
            " build it as it was when it was saved"
        )
    ids = [number for group in saved["param_groups"] for number in group["params"]]
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, parameter in zip(ids, parameters, strict=True):
        for name, value in saved["state"].get(number, {}).items():
            if isinstance(value, torch.Tensor) and value.ndim and value.shape != parameter.shape:
                raise ValueError(
                    f"the checkpoint's {name} of parameter {number} is {tuple(value.shape)}, and"
                    f" the parameter {tuple(parameter.shape)}; build the optimizer as it was saved"
                )


def seed_everything(seed: int) -> None:
    """Seed all generators of random numbers: torch's, NumPy's and Python's."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def random_state() -> dict:
    """The states of all generators of random numbers."""
    kind, key, *rest = np.random.get_state()
    version, numbers, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "numpy": [kind, torch.from_numpy(key.astype(np.int64)), *rest],
        "python": [version, list(numbers), gauss],
    }


def restore_random_state(state: dict) -> None:
    """Put the generators back into these states."""
    torch.set_rng_state(state["torch"])
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["cuda"])
    kind, key, *rest = state["numpy"]
    np.random.set_state((kind, key.numpy().astype(np.uint32), *rest))
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))


def saved(folder: str | os.PathLike) -> list[Path]:
    """The checkpoints in a folder, the newest first."""
    return sorted(
        (
            file
            for file in Path(folder).glob("*.pt")
            if re.fullmatch(r"step-\d+\.pt", file.name) and file.is_file()
        ),
        reverse=True,
    )


def keep(state: dict, folder: str | os.PathLike, last: int) -> Path:
    """Write a checkpoint of a run and return its path; of older ones all but `last` are removed."""
    target = Path(folder) / NAME.format(state["iteration"])
    for abandoned in target.parent.glob(".step-*.tmp"):  # left by a process that was killed
        abandoned.unlink(missing_ok=True)
    write({"kind": KIND, **state}, target)
    for old in saved(folder)[last:]:
        old.unlink(missing_ok=True)
    return target


def newest(folder: str | os.PathLike, needs: Collection[str] = ()) -> dict | None:
    """The newest checkpoint of a run that can be read; None if there is none at all.

    It holds the entries that `needs` names. Files that have to be skipped are named on standard
    error: a damaged file may mean a damaged disk.
    Raises: ValueError if there are files, but none of them can be used.
    """
    reasons = []
    for file in saved(folder):
        try:
            state = read(file, needs)
        except (OSError, ValueError) as error:
            reasons.append(str(error))
            continue
        for reason in reasons:
            print(f"using {file.name}, and not a newer one: {reason}", file=sys.stderr, flush=True)
        return state
    if reasons:
        raise ValueError("; ".join(reasons) + f"; to begin anew, remove {folder}")
    return None
