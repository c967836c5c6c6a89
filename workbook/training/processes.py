"""Several processes that train one model: each computes a part of every batch.

    torchrun --nproc-per-node 2 -m workbook train laptop

Every process draws the same batch, takes its own sequences of it, and gets the mean of all
gradients: the weights stay equal, and the loss is that of one process with the whole batch.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed


@dataclass(frozen=True)
class Team:
    """The processes of a run, and which of them this is."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes the log and the checkpoints."""
        return self.rank == 0

    def share(self, batch_size: int) -> slice:
        """Which sequences of a batch are this process'."""
        each = batch_size // self.size
        return slice(self.rank * each, (self.rank + 1) * each)

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Nothing; each tensor becomes the mean of those of all processes."""
        if self.size == 1:
            return
        tensors = list(tensors)
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        distributed.all_reduce(flat)
        flat /= self.size
        for tensor, mean in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(mean.view_as(tensor))

    def wait(self) -> None:
        """Nothing; returns when all processes have come this far."""
        if self.size > 1:
            distributed.barrier()

    def in_turn(self, make: Callable[[], Any]) -> Any:
        """What `make` returns: the leader goes first, and the others find what it made."""
        if not self.leads:
            self.wait()
        made = make()
        if self.leads:
            self.wait()
        return made

    def agree(self, flag: bool) -> bool:
        """Whether any of the processes says so."""
        if self.size == 1:
            return flag
        said = torch.tensor(float(flag), device=own_device() or "cpu")
        distributed.all_reduce(said)
        return bool(said > 0)


def own_device() -> str | None:
    """The GPU of this process where several share a machine; None without a GPU of its own."""
    if "LOCAL_RANK" in os.environ and torch.cuda.is_available():
        return f"cuda:{int(os.environ['LOCAL_RANK']) % torch.cuda.device_count()}"
    return None


@contextmanager
def team(wanted_device: str = "auto") -> Iterator[Team]:
    """The processes that torchrun started, connected; a team of one without it."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Team()
        return
    on_gpu = wanted_device in ("auto", "cuda") and torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(own_device())
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        yield Team(distributed.get_rank(), distributed.get_world_size())
        distributed.barrier()  # nobody closes a connection that another one still uses
    finally:
        distributed.destroy_process_group()
