"""`get_batch` as learners write it, right and wrong."""

import random

import numpy as np
import torch
from made_repositories import module

from attempts.lists import almost, mistake, right
from workbook.training.data import get_batch

list_of_windows = right("data_loading")(module("flat", "cs336_basics/training.py").get_batch)


@right("data_loading")
def sliding(dataset, batch_size, context_length, device):
    rows = np.lib.stride_tricks.sliding_window_view(dataset, context_length + 1)
    picked = rows[np.random.default_rng().integers(len(rows), size=batch_size)]
    ids = torch.from_numpy(picked.astype("int64")).to(device)
    return ids[:, :-1], ids[:, 1:]


@right("data_loading")
def plain_python(dataset, batch_size, context_length, device):
    xs = []
    ys = []
    for _ in range(batch_size):
        i = random.randint(0, len(dataset) - context_length - 1)
        xs.append([int(t) for t in dataset[i : i + context_length]])
        ys.append([int(t) for t in dataset[i + 1 : i + context_length + 1]])
    return [torch.tensor(xs, device=device), torch.tensor(ys, device=device)]


@right("data_loading")
def cpu_or_cuda_only(dataset, batch_size, context_length, device):
    if not str(device).startswith(("cpu", "cuda")):
        raise ValueError(f"no such device: {device}")
    return list_of_windows(dataset, batch_size, context_length, device)


@right("data_loading")
class Batches:
    """Made once with a generator of its own, and called for each batch."""

    def __init__(self, tokens, batch_size, context_length, device="cpu", seed=42):
        self.tokens = tokens
        self.context_length = context_length
        self.device = device
        self.batch_size = batch_size
        self.generator = np.random.default_rng(seed)

    def __call__(self):
        room = len(self.tokens) - self.context_length
        starts = self.generator.integers(room, size=self.batch_size)
        return cut(self.tokens, starts, self.context_length, self.device)


def cut(dataset, starts, context_length, device, shift=1, dtype=torch.long):
    def windows(first):
        rows = [np.asarray(dataset[first + int(i) :][:context_length]) for i in starts]
        return torch.stack([torch.tensor(row, dtype=dtype) for row in rows]).to(device)

    return windows(0), windows(shift)


def at(starts, **how):
    """Windows that begin where n tokens, a context of m and a batch of b make it."""

    def get_batch(dataset, batch_size, context_length, device):
        places = starts(len(dataset), context_length, batch_size)
        return cut(dataset, places, context_length, device, **how)

    return get_batch


def starting(low, high, **how):
    """Windows that begin from `low` to n - m + `high`, the upper end left out."""
    return at(lambda n, m, b: torch.randint(low, n - m + high, (b,)), **how)


def then(change):
    """Right batches that are changed afterwards."""

    def get_batch(dataset, batch_size, context_length, device):
        return change(*list_of_windows(dataset, batch_size, context_length, device))

    return get_batch


right("data_loading")(at(lambda n, m, b: torch.randperm(n - m)[:b]))
almost("data_loading", "the cross-entropy take int64")(starting(0, 0, dtype=torch.int32))
almost("data_loading", "not from scratch yet")(get_batch)


@mistake("data_loading", "seeded inside")
def seeded(dataset, batch_size, context_length, device):
    np.random.seed(0)
    return list_of_windows(dataset, batch_size, context_length, device)


@mistake("data_loading", "starts of their own")
def unrelated(dataset, batch_size, context_length, device):
    x, _ = list_of_windows(dataset, batch_size, context_length, device)
    return x, list_of_windows(dataset, batch_size, context_length, device)[1]


@mistake("data_loading", "not a contiguous piece of the data")
def scattered(dataset, batch_size, context_length, device):
    i = np.random.randint(0, len(dataset) - 1, size=(batch_size, context_length))
    return tuple(torch.tensor(dataset[j].astype(np.int64), device=device) for j in (i, i + 1))


@mistake("data_loading", "`device` is not used")
def targets_on_the_cpu(dataset, batch_size, context_length, device):
    x, y = list_of_windows(dataset, batch_size, context_length, "cpu")
    return x.to(device), y


@mistake("data_loading", "changes nothing in place: write `y = y.to(device)`")
def drops_what_it_moved(dataset, batch_size, context_length, device):
    x, y = list_of_windows(dataset, batch_size, context_length, "cpu")
    y.to(device)
    return x.to(device), y


@mistake("data_loading", "Token files hold uint16")
def unconverted(dataset, batch_size, context_length, device):
    torch.from_numpy(dataset).take(torch.arange(3))  # not for uint16, in any version so far
    return list_of_windows(dataset, batch_size, context_length, device)


@mistake("data_loading", "An intermediate type is too small")
def small_type(dataset, batch_size, context_length, device):
    return list_of_windows(dataset.astype(np.int16), batch_size, context_length, device)


for words, wrong in (
    ("The targets are the inputs", starting(0, 0, shift=0)),
    ("shifted differently", starting(0, -1, shift=2)),
    ("made up, or wrapped around", then(lambda x, y: (x, x.roll(-1, dims=1)))),
    ("The last start is never drawn", starting(0, -1)),
    ("The first start is never drawn", starting(1, 0)),
    ("the last start is n - m - 1", starting(0, 1)),
    ("more often than others", at(lambda n, m, b: torch.randint(n, (b,)).clamp(max=n - m - 1))),
    ("Windows may overlap", at(lambda n, m, b: torch.randint((n - 1) // m, (b,)) * m)),
    ("take int64", starting(0, 0, dtype=torch.float32)),
    ("take int64", starting(0, 0, dtype=torch.uint16)),
    ("draw one for each row", at(lambda n, m, b: [random.randrange(n - m)] * b)),
    (
        "The rows follow one another",
        at(lambda n, m, b: random.randrange(max(1, n - m - b)) + np.arange(b)),
    ),
    ("Rows and columns, or batch_size and context_length, are", then(lambda x, y: (x.T, y.T))),
    ("context_length, are swapped", lambda data, b, n, device: list_of_windows(data, n, b, device)),
    ("Inputs and targets are swapped", then(lambda x, y: (y, x))),
    ("does not return two tensors", then(lambda x, y: x)),
):
    mistake("data_loading", words)(wrong)
