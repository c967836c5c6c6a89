"""`get_batch` as learners write it, right and wrong."""

import random

import numpy as np
import torch

from attempts.ours import copied

data = copied("training.data")


def list_of_windows(dataset, batch_size, context_length, device):
    starts = torch.randint(len(dataset) - context_length, (batch_size,))
    x = [torch.from_numpy(dataset[i : i + context_length].astype(np.int64)) for i in starts]
    y = [torch.from_numpy(dataset[i + 1 : i + 1 + context_length].astype(np.int64)) for i in starts]
    x, y = torch.stack(x), torch.stack(y)
    if "cuda" in device:
        return x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device)
    return x.to(device), y.to(device)


def by_index(dataset, batch_size, context_length, device):
    starts = np.random.randint(0, len(dataset) - context_length, size=batch_size)
    ids = dataset[starts[:, None] + np.arange(context_length + 1)[None, :]]
    ids = torch.tensor(ids, dtype=torch.long, device=device)
    return ids[:, :-1], ids[:, 1:]


def sliding(dataset, batch_size, context_length, device):
    rows = np.lib.stride_tricks.sliding_window_view(dataset, context_length + 1)
    picked = rows[np.random.default_rng().integers(len(rows), size=batch_size)]
    ids = torch.from_numpy(picked.astype("int64")).to(device)
    return ids[:, :-1], ids[:, 1:]


def plain_python(dataset, batch_size, context_length, device):
    xs, ys = [], []
    for _ in range(batch_size):
        i = random.randint(0, len(dataset) - context_length - 1)
        xs.append([int(t) for t in dataset[i : i + context_length]])
        ys.append([int(t) for t in dataset[i + 1 : i + context_length + 1]])
    return [torch.tensor(xs, device=device), torch.tensor(ys, device=device)]


def cpu_or_cuda_only(dataset, batch_size, context_length, device):
    if not str(device).startswith(("cpu", "cuda")):
        raise ValueError(f"no such device: {device}")
    return list_of_windows(dataset, batch_size, context_length, device)


def of_the_files_type(dataset, batch_size, context_length, device):
    """Token files hold uint16, which an embedding refuses."""
    starts = torch.randint(len(dataset) - context_length, (batch_size,))
    rows = [torch.from_numpy(np.array(dataset[i : i + context_length + 1])) for i in starts]
    ids = torch.stack(rows).to(device)
    return ids[:, :-1], ids[:, 1:]


class Batches:
    """Made once with a generator of its own, and called for each batch."""

    def __init__(self, tokens, batch_size, context_length, device="cpu", seed=42):
        self.tokens, self.context_length, self.device = tokens, context_length, device
        self.batch_size, self.generator = batch_size, np.random.default_rng(seed)

    def __call__(self):
        starts = self.generator.integers(
            len(self.tokens) - self.context_length, size=self.batch_size
        )
        return cut(self.tokens, starts, self.context_length, self.device)


class Sampler:
    """It holds the data, and is asked for batches of any size."""

    def __init__(self, data, device="cpu"):
        self.data, self.device = data, device

    def sample(self, batch_size, context_length):
        return list_of_windows(self.data, batch_size, context_length, self.device)


def cut(dataset, starts, context_length, device, shift=1, dtype=torch.long):
    starts = [int(i) for i in starts]
    x = [torch.tensor(np.asarray(dataset[i : i + context_length]), dtype=dtype) for i in starts]
    y = [
        torch.tensor(np.asarray(dataset[i + shift : i + shift + context_length]), dtype=dtype)
        for i in starts
    ]
    return torch.stack(x).to(device), torch.stack(y).to(device)


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


def seeded(dataset, batch_size, context_length, device):
    torch.manual_seed(0)
    return list_of_windows(dataset, batch_size, context_length, device)


def unrelated(dataset, batch_size, context_length, device):
    x, _ = list_of_windows(dataset, batch_size, context_length, device)
    return x, list_of_windows(dataset, batch_size, context_length, device)[1]


def scattered(dataset, batch_size, context_length, device):
    i = np.random.randint(0, len(dataset) - 1, size=(batch_size, context_length))
    return tuple(torch.tensor(dataset[j].astype(np.int64), device=device) for j in (i, i + 1))


def targets_on_the_cpu(dataset, batch_size, context_length, device):
    x, y = list_of_windows(dataset, batch_size, context_length, "cpu")
    return x.to(device), y


def unconverted(dataset, batch_size, context_length, device):
    """Torch has no index_select for uint16."""
    places = torch.randint(len(dataset) - context_length, (batch_size, 1))
    places = (places + torch.arange(context_length + 1)).flatten()
    ids = torch.from_numpy(dataset).to(device).index_select(0, places).view(batch_size, -1)
    return ids[:, :-1], ids[:, 1:]


def small_type(dataset, batch_size, context_length, device):
    return list_of_windows(dataset.astype(np.int16), batch_size, context_length, device)


def stacked(dataset, batch_size, context_length, device):
    """`random.randint` takes the upper end in, and a window there is short by one."""
    starts = [random.randint(0, len(dataset) - context_length) for _ in range(batch_size)]
    rows = np.stack([dataset[i : i + context_length + 1] for i in starts]).astype(np.int64)
    ids = torch.from_numpy(rows).to(device)
    return ids[:, :-1], ids[:, 1:]


RIGHT = [
    list_of_windows,
    by_index,
    sliding,
    plain_python,
    at(lambda n, m, b: torch.randperm(n - m)[:b]),
    cpu_or_cuda_only,
    starting(0, 0, dtype=torch.int32),
    data.get_batch,
    Batches,
    Sampler,
]


WRONG = [
    (starting(0, 0, shift=0), "The targets are the inputs"),
    (starting(0, -1, shift=2), "shifted differently"),
    (then(lambda x, y: (x, x.roll(-1, dims=1))), "made up, or wrapped around"),
    (unrelated, "starts of their own"),
    (starting(0, -1), "The last start is never drawn"),
    (starting(1, 0), "The first start is never drawn"),
    (starting(1, -1), "The first and the last start"),
    (starting(0, 1), "the last start is n - m - 1"),
    (stacked, "the last start is n - m - 1"),
    (at(lambda n, m, b: torch.randint(n, (b,)).clamp(max=n - m - 1)), "more often than others"),
    (at(lambda n, m, b: torch.randint((n - 1) // m, (b,)) * m), "Windows may overlap"),
    (starting(0, 0, dtype=torch.float32), "take int64"),
    (of_the_files_type, "got       torch.uint16"),
    (unconverted, "Token files hold uint16"),
    (small_type, "An intermediate type is too small"),
    (targets_on_the_cpu, "`device` is not used"),
    (at(lambda n, m, b: [random.randrange(n - m)] * b), "draw one for each row"),
    (
        at(lambda n, m, b: random.randrange(max(1, n - m - b)) + np.arange(b)),
        "The rows follow one another",
    ),
    (seeded, "seeded inside"),
    (scattered, "not a contiguous piece of the data"),
    (then(lambda x, y: (x.T, y.T)), "Rows and columns are swapped"),
    (then(lambda x, y: x), "does not return two tensors"),
    (lambda dataset, batch_size: 3, "cannot be called with the arguments"),
]
