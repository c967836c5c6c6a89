"""Schedules and clipping as learners write them, right and wrong."""

import math

import numpy as np
import torch

from attempts.ours import copied
from workbook.optimizer.optimizers import clip_gradients, cosine_schedule

optimizers = copied("optimizer.optimizers")


def handout(it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters):
    if it < warmup_iters:
        return it / warmup_iters * max_learning_rate
    elif it <= cosine_cycle_iters:
        done = (it - warmup_iters) / (cosine_cycle_iters - warmup_iters)
        wave = 0.5 * (1 + math.cos(done * math.pi))
        return min_learning_rate + wave * (max_learning_rate - min_learning_rate)
    else:
        return min_learning_rate


def with_numpy(t, alpha_max, alpha_min, T_w, T_c):
    if t < T_w:
        return np.float64(alpha_max * t / T_w)
    if t >= T_c:
        return alpha_min
    return alpha_min + (1 + np.cos(np.pi * (t - T_w) / (T_c - T_w))) / 2 * (alpha_max - alpha_min)


def with_tensors(it, high, low, warm, end):
    """Both ends clamped, in float32."""
    it = torch.tensor(float(it))
    done = torch.clamp((it - warm) / max(1, end - warm), 0, 1)
    wave = low + (high - low) * (1 + torch.cos(torch.pi * done)) / 2
    return torch.minimum(wave, high * it / warm) if warm and it < warm else wave


class Schedule:
    """Made once, asked for each step; what it is stepped by is of no concern."""

    def __init__(self, max_lr, min_lr, warmup_steps, total_steps):
        self.settings = max_lr, min_lr, warmup_steps, total_steps

    def get_lr(self, it):
        return handout(it, *self.settings)

    def step(self, optimizer): ...


def wants_room(it, max_lr, min_lr, warmup, end):
    if not 0 < warmup < end:
        raise ValueError("expected 0 < warmup_iters < cosine_cycle_iters")
    return handout(it, max_lr, min_lr, warmup, end)


def nothing(it, a, b, w, c):
    if it < c:
        return handout(it, a, b, w, c)


def warm_up_with_equals(it, a, b, w, c):
    return it / w * a if it <= w else handout(it, a, b, w, c)


def no_room(it, a, b, w, c):
    if it < w:
        return it / w * a
    return b + (a - b) * (1 + math.cos(math.pi * min(1, (it - w) / (c - w)))) / 2


def clip_handout(parameters, max_l2_norm, eps=1e-6):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = torch.sqrt(sum((g.data**2).sum() for g in grads))
    if norm >= max_l2_norm:
        for g in grads:
            g.data *= max_l2_norm / (norm + eps)


class Clipper:
    def __init__(self, parameters, max_norm):
        self.parameters, self.max_norm = list(parameters), max_norm

    def __call__(self):
        clip_handout(self.parameters, self.max_norm)


def clip_without_eps(parameters, limit):
    parameters = list(parameters)
    norm = math.sqrt(sum(float((p.grad**2).sum()) for p in parameters if p.grad is not None))
    for p in parameters:
        if p.grad is not None and norm > limit:
            p.grad.mul_(limit / norm)


def clip_with_clamp(params, max_norm):
    grads = [p.grad.detach() for p in params if p.grad is not None]
    total = torch.cat([g.reshape(-1) for g in grads]).norm()
    scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(grads, scale)
    return total


def clip_with_new_tensors(params, max_norm):
    params = [p for p in params if p.grad is not None]
    norm = sum(torch.linalg.vector_norm(p.grad).item() ** 2 for p in params) ** 0.5
    scale = min(1.0, max_norm / max(norm, 1e-12))
    for p in params:
        p.grad = p.grad * scale


SCHEDULE, CLIP = "learning_rate_schedule", "gradient_clipping"
RIGHT = [
    *((SCHEDULE, each) for each in (handout, with_numpy, with_tensors, wants_room, Schedule)),
    (SCHEDULE, lambda *arguments: handout(*arguments)),
    (SCHEDULE, optimizers.cosine_schedule),
    *((CLIP, each) for each in (clip_handout, clip_without_eps, clip_with_clamp, Clipper)),
    (CLIP, clip_with_new_tensors),
    (CLIP, optimizers.clip_gradients),
]


def clip(
    change=lambda p, factor: p.grad.mul_(factor),
    factor=lambda norm, limit: min(1.0, limit / (norm + 1e-6)),
):
    """Clipping whose steps can be got wrong one by one."""

    def learners(parameters, max_l2_norm):
        parameters = [p for p in parameters if p.grad is not None]
        norm = math.sqrt(sum(float((p.grad**2).sum()) for p in parameters))
        for p in parameters:
            change(p, factor(norm, max_l2_norm))

    return learners


def needs_gradients(parameters, limit):
    norm = sum((p.grad**2).sum() for p in parameters) ** 0.5
    for p in parameters:
        p.grad *= min(1, limit / (norm + 1e-6))


WRONG = [
    (SCHEDULE, nothing, "in each of the three branches"),
    (SCHEDULE, lambda it, a, b, w, c: "0.1", "It does not return a number"),
    (SCHEDULE, lambda it, a, b: a, "cannot be called with the arguments"),
    (SCHEDULE, lambda it, max_lr, min_lr, total, warmup_fraction=0.1: 0.0,
     "Or hand in a small function"),
    (CLIP, clip(change=lambda p, factor: p.data.mul_(factor)), "Scale `p.grad`, and not `p`"),
    (CLIP, clip(change=lambda p, factor: setattr(p, "grad", None)), "A gradient is gone"),
    (CLIP, clip(factor=lambda norm, limit: min(1.0, limit / norm)), "the norm is 0: add ε"),
    (CLIP, needs_gradients, "`p.grad` None: skip it"),
    (CLIP, lambda parameters, limit: clip_handout(parameters[:], limit),
     "is a generator: make a list"),
    (CLIP, lambda parameters: parameters, "cannot be called with the arguments"),
]  # fmt: skip

ALMOST = [
    (SCHEDULE, no_room, "check `it > cosine_cycle_iters`"),
    (SCHEDULE, warm_up_with_equals, "before dividing"),
    (SCHEDULE, cosine_schedule, "not from scratch yet"),
    (CLIP, clip_gradients, "not from scratch yet"),
    (CLIP, torch.nn.utils.clip_grad_norm_, "not from scratch yet"),
]
