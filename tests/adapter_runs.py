"""What the course's adapters return for some arguments.

It also runs where only an exported folder is, without the workbook.
"""

import math
from pathlib import Path

import numpy as np
import torch

TEXT = "low low low low low lower lower widest widest widest newest newest newest newest\n"
END = "<|endoftext|>"
SETTINGS = {"lr": 1e-2, "weight_decay": 0.1, "betas": (0.8, 0.95), "eps": 1e-6}


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator) / math.sqrt(shape[-1])


def scheduled(adapters, folder):
    settings = {"max_learning_rate": 1, "min_learning_rate": 0.1}
    settings |= {"warmup_iters": 7, "cosine_cycle_iters": 21}
    steps = (1, 5, 7, 12, 21, 30)
    rates = [adapters.run_get_lr_cosine_schedule(it=it, **settings) for it in steps]
    return [torch.tensor(rates)]


def clipped(adapters, folder):
    parameters = [torch.nn.Parameter(draw(5, seed=i)) for i in range(3)]
    for i, parameter in enumerate(parameters[:2]):
        parameter.grad = 3 * draw(5, seed=10 + i)
    adapters.run_gradient_clipping(parameters, 0.5)
    return [parameter.grad for parameter in parameters[:2]]


def optimized(adapters, steps=3):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = adapters.get_adamw_cls()(model.parameters(), **SETTINGS)
    for i in range(steps):
        optimizer.zero_grad()
        model(draw(4, 3, seed=i)).square().sum().backward()
        optimizer.step()
    return model, optimizer


def stepped(adapters, folder):
    return [p.detach() for p in optimized(adapters)[0].parameters()]


def restored(adapters, folder):
    torch.manual_seed(0)
    model, new = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    optimizer, other = (torch.optim.AdamW(net.parameters()) for net in (model, new))
    path = Path(folder, "saved.pt")
    adapters.run_save_checkpoint(model, optimizer, 7, path)
    iteration = adapters.run_load_checkpoint(path, new, other)
    return [iteration, new.weight.detach() - model.weight.detach()]


def batches(adapters, folder):
    options = {"batch_size": 8, "context_length": 5, "device": "cpu"}
    inputs, targets = adapters.run_get_batch(np.arange(50), **options)
    return [inputs.shape, targets.shape, (targets - inputs).float()]


def trained(adapters, folder):
    path = Path(folder, "text.txt")
    path.write_text(TEXT + END + TEXT, encoding="utf-8")
    vocab, merges = adapters.run_train_bpe(path, 256 + 1 + 12, [END])
    return [sorted(vocab.values()), [*map(tuple, merges)]]


def encoded(adapters, folder):
    vocab = {i: bytes([i]) for i in range(256)} | {256: b"th", 257: b"the", 258: END.encode()}
    tokenizer = adapters.get_tokenizer(vocab, [(b"t", b"h"), (b"th", b"e")], [END])
    ids = tokenizer.encode(f"the cat{END}é")
    return [list(ids), tokenizer.decode(ids)]


ACTS = {
    "run_get_lr_cosine_schedule": scheduled,
    "run_gradient_clipping": clipped,
    "get_adamw_cls": stepped,
    "run_save_checkpoint": restored,
    "run_load_checkpoint": restored,
    "run_get_batch": batches,
    "run_train_bpe": trained,
    "get_tokenizer": encoded,
}


def result(name, adapters, folder, arguments):
    """What an adapter returns, in lists and tensors; the error's words where it raises one."""
    try:
        if name in ACTS:
            return ACTS[name](adapters, folder)
        return [getattr(adapters, name)(**arguments[name]).detach()]
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def alike(ours, theirs):
    """Whether two results are equal, up to rounding."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    if isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor):
        same = ours.shape == theirs.shape
        return same and torch.allclose(ours.double(), theirs.double(), rtol=1e-3, atol=1e-4)
    return ours == theirs
