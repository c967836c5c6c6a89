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


RIGHT_SCHEDULES = [
    handout,
    with_numpy,
    with_tensors,
    wants_room,
    lambda *arguments: handout(*arguments),
    Schedule,
    optimizers.cosine_schedule,
]


def no_rest(it, a, b, w, c):
    done = (it - w) / (c - w)
    return it / w * a if it < w else b + (1 + math.cos(math.pi * done)) / 2 * (a - b)


def nothing(it, a, b, w, c):
    if it < c:
        return handout(it, a, b, w, c)


def warm_up_with_equals(it, a, b, w, c):
    return it / w * a if it <= w else handout(it, a, b, w, c)


def no_room(it, a, b, w, c):
    if it < w:
        return it / w * a
    return b + (a - b) * (1 + math.cos(math.pi * min(1, (it - w) / (c - w)))) / 2


WRONG_SCHEDULES = [
    (lambda it, a, b, w, c: handout(it, b, a, w, c), "swapped"),
    (lambda it, a, b, w, c: handout(it + 1, a, b, w, c), "whole schedule is one step ahead"),
    (no_rest, "rises again"),
    (nothing, "in each of the three branches"),
    (lambda it, a, b, w, c: "0.1", "It does not return a number"),
    (lambda it, a, b: a, "cannot be called with the arguments"),
    (lambda it, max_lr, min_lr, total, warmup_fraction=0.1: 0.0, "Or hand in a small function"),
]


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


def two_loops(parameters, limit):
    norm = sum((p.grad**2).sum() for p in parameters if p.grad is not None) ** 0.5
    for p in parameters:
        if p.grad is not None and norm > limit:
            p.grad *= limit / norm


RIGHT_CLIPS = [
    clip_handout,
    clip_without_eps,
    clip_with_clamp,
    clip_with_new_tensors,
    Clipper,
    optimizers.clip_gradients,
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


def one_by_one(parameters, limit):
    for p in parameters:
        if p.grad is not None and p.grad.norm() > limit:
            p.grad *= limit / p.grad.norm()


def needs_gradients(parameters, limit):
    norm = sum((p.grad**2).sum() for p in parameters) ** 0.5
    for p in parameters:
        p.grad *= min(1, limit / (norm + 1e-6))


def leftover(parameters, limit):
    total = 0.0
    for p in parameters:
        if p.grad is not None:
            grad = p.grad
            total += float((grad**2).sum())
    if total**0.5 > limit:
        grad *= limit / total**0.5


WRONG_CLIPS = [
    (one_by_one, "you took each parameter's own"),
    (leftover, "Only the last gradient"),
    (clip(change=lambda p, factor: p.grad * factor), "only gives a name a new value"),
    (clip(change=lambda p, factor: p.data.mul_(factor)), "Scale `p.grad`, and not `p`"),
    (clip(change=lambda p, factor: setattr(p, "grad", None)), "A gradient is gone"),
    (clip(factor=lambda norm, limit: min(1.0, limit / norm)), "the norm is 0: add ε"),
    (needs_gradients, "`p.grad` None: skip it"),
    (two_loops, "is a generator, which can be iterated over only once"),
    (lambda parameters, limit: clip_handout(parameters[:], limit), "is a generator: make a list"),
    (lambda parameters: parameters, "cannot be called with the arguments"),
]

ALMOST = [
    ("learning_rate_schedule", no_room, "check `it > cosine_cycle_iters`"),
    ("learning_rate_schedule", warm_up_with_equals, "before dividing"),
    ("learning_rate_schedule", cosine_schedule, "not from scratch yet"),
    ("gradient_clipping", clip_gradients, "not from scratch yet"),
    ("gradient_clipping", torch.nn.utils.clip_grad_norm_, "not from scratch yet"),
    (
        "gradient_clipping",
        lambda parameters, limit: torch.nn.utils.clip_grad_norm_(parameters, limit) and None,
        "not from scratch yet",
    ),
]
