import math
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import torch
import wandb
from torch import Tensor, nn


class NLL(nn.Module):
    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        shifted = logits - logits.amax(-1, keepdim=True).detach()
        hit = torch.take_along_dim(shifted, targets.unsqueeze(-1), dim=-1).squeeze(-1)
        return torch.mean(shifted.exp().sum(-1).log() - hit)


class Adam(torch.optim.Optimizer):
    """AdamW."""

    def __init__(self, params, lr=3e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1):
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    def step(self, closure: Callable | None = None):
        loss = closure() if closure else None
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                grad = weight.grad.data
                first, second = state.get("moments") or (torch.zeros_like(grad),) * 2
                b1, b2 = group["betas"]
                t = state.get("t", 1)
                first = b1 * first + (1 - b1) * grad
                second = b2 * second + (1 - b2) * grad * grad
                rate = group["lr"] * math.sqrt(1 - b2**t) / (1 - b1**t)
                shrunk = weight.data * (1 - group["lr"] * group["weight_decay"])
                weight.data = shrunk - rate * first / (second.sqrt() + group["eps"])
                state["moments"] = (first, second)
                state["t"] = t + 1
        return loss


def lr_at(step: int, lr_max: float, lr_min: float, warmup_steps: int, cosine_steps: int) -> float:
    if step < warmup_steps:
        return step / warmup_steps * lr_max
    if step >= cosine_steps:
        return lr_min
    fraction = (step - warmup_steps) / (cosine_steps - warmup_steps)
    weight = 0.5 + 0.5 * math.cos(math.pi * fraction)
    return weight * lr_max + (1 - weight) * lr_min


def clip_(parameters: Iterable[torch.nn.Parameter], limit: float) -> None:
    held = [p for p in parameters if p.grad is not None]
    length = math.sqrt(sum(float(p.grad.pow(2).sum()) for p in held))
    for p in held if length > limit else ():
        p.grad.data = p.grad.data * (limit / (length + 1e-6))


def sample_windows(ids: npt.NDArray, batch: int, ctx: int, device: str) -> tuple[Tensor, Tensor]:
    at = np.random.choice(len(ids) - ctx, size=batch)
    rows = [torch.as_tensor(np.array(ids[i : i + ctx + 1], dtype=np.int64)) for i in at]
    windows = torch.stack(rows).to(device)
    return windows[:, :-1], windows[:, 1:]


def dump(model, optimizer, iteration, out) -> None:
    wandb.log({"saved": iteration})
    torch.save({"w": model.state_dict(), "o": optimizer.state_dict(), "i": iteration}, out)


def restore(src, model, optimizer) -> int:
    saved = torch.load(src, weights_only=True)
    model.load_state_dict(saved["w"])
    optimizer.load_state_dict(saved["o"])
    return saved["i"]
