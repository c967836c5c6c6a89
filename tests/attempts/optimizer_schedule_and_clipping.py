"""Schedules and clipping as learners write them, right and wrong."""

import math

import torch
from made_repositories import module

from attempts.lists import almost, judged, mistake, right
from workbook.optimizer.optimizers import cosine_schedule

SCHEDULE, CLIP = "learning_rate_schedule", "gradient_clipping"


flat = module("flat", "cs336_basics/training.py")
handout = right(SCHEDULE)(flat.get_lr_cosine_schedule)
clip_handout = right(CLIP)(flat.gradient_clipping)


@right(SCHEDULE)
def with_tensors(t, alpha_max, alpha_min, T_w, T_c):
    """Both ends clamped, in float32."""
    t = torch.tensor(float(t))
    done = torch.clamp((t - T_w) / max(1, T_c - T_w), 0, 1)
    wave = alpha_min + (alpha_max - alpha_min) * (1 + torch.cos(torch.pi * done)) / 2
    return torch.minimum(wave, alpha_max * t / T_w) if T_w and t < T_w else wave


@right(SCHEDULE)
class Schedule:
    """Made once, asked for each step; what it is stepped by is of no concern."""

    def __init__(self, max_lr, min_lr, warmup_steps, total_steps):
        self.settings = max_lr, min_lr, warmup_steps, total_steps

    def get_lr(self, it):
        return handout(it, *self.settings)

    def step(self, optimizer): ...


@right(SCHEDULE)
def wants_room(it, max_lr, min_lr, warmup, end):
    if not 0 < warmup < end:
        raise ValueError("expected 0 < warmup_iters < cosine_cycle_iters")
    return handout(it, max_lr, min_lr, warmup, end)


@mistake(SCHEDULE, "in each of the three branches")
def nothing(it, a, b, w, c):
    if it < c:
        return handout(it, a, b, w, c)


@mistake(SCHEDULE, "Or hand in a small function")
def of_a_fraction(it, max_lr, min_lr, total, warmup_fraction=0.1):
    return 0.0


@almost(SCHEDULE, "check `it > cosine_cycle_iters`")
def no_room(it, a, b, w, c):
    if it < w:
        return it / w * a
    return b + (a - b) * (1 + math.cos(math.pi * min(1, (it - w) / (c - w)))) / 2


@judged(CLIP, "correct", "there is no ε")
def clip_without_eps(parameters, limit):
    parameters = list(parameters)
    norm = math.sqrt(sum(float((p.grad**2).sum()) for p in parameters if p.grad is not None))
    for p in parameters:
        if p.grad is not None and norm > limit:
            p.grad.mul_(limit / norm)


@mistake(CLIP, "flatten them first")
def clip_joined(params, limit):
    clip_handout(params := list(params), limit)
    torch.cat([p.grad for p in params if p.grad is not None])


@right(CLIP)
def clip_with_clamp(params, max_norm):
    grads = [p.grad.detach() for p in params if p.grad is not None]
    total = torch.cat([g.reshape(-1) for g in grads]).norm()
    scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(grads, scale)
    return total


@right(CLIP)
def clip_with_new_tensors(params, max_norm):
    params = [p for p in params if p.grad is not None]
    norm = sum(torch.linalg.vector_norm(p.grad).item() ** 2 for p in params) ** 0.5
    scale = min(1.0, max_norm / max(norm, 1e-12))
    for p in params:
        p.grad = p.grad * scale


def clip(change=lambda p, times: p.grad.mul_(times), eps=1e-6, takes=lambda p: p.grad is not None):
    """Clipping whose steps can be got wrong one by one."""

    def learners(parameters, max_l2_norm):
        parameters = [p for p in parameters if takes(p)]
        norm = math.sqrt(sum(float((p.grad**2).sum()) for p in parameters))
        for p in parameters:
            change(p, min(1.0, max_l2_norm / (norm + eps)))

    return learners


for words, wrong in (
    ("Scale `p.grad`, and not `p`", clip(change=lambda p, factor: p.data.mul_(factor))),
    ("A gradient is gone", clip(change=lambda p, factor: setattr(p, "grad", None))),
    ("the norm is 0: add ε", clip(eps=0.0)),
    ("`p.grad` None: skip it", clip(takes=lambda p: True)),
    ("This is a list: loop over it", lambda parameters, limit: parameters.grad),
):
    mistake(CLIP, words)(wrong)


@almost(CLIP, "is a generator: make a list")
def clip_of_a_list(parameters, limit):
    clip_handout(parameters[:], limit)


@almost(CLIP, "ready `get_total_norm`")
def clip_in_torchs_halves(parameters, max_l2_norm):
    parameters = list(parameters)
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    torch.nn.utils.clip_grads_with_norm_(parameters, max_l2_norm, norm)


almost(SCHEDULE, "not from scratch yet")(cosine_schedule)
almost(CLIP, "not from scratch yet")(torch.nn.utils.clip_grad_norm_)
