"""Schedules and clipping as learners write them, right and wrong."""

import math

import numpy as np
import torch

from attempts.ours import copied
from workbook.optimizer.optimizers import clip_gradients, cosine_schedule

optimizers = copied("optimizer.optimizers")

cos, pi = math.cos, math.pi


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


def strict(it, max_lr, min_lr, warmup, end):
    if not isinstance(it, int) or it < 0 or warmup > end:
        raise ValueError("no such step")
    return handout(it, max_lr, min_lr, warmup, end + (warmup == end))


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
    strict,
    wants_room,
    lambda *arguments: handout(*arguments),
    Schedule,
    optimizers.cosine_schedule,
]


def schedule(
    warm=lambda it, a, b, w, c: it / w * a,
    cosine=lambda it, a, b, w, c: b + (1 + cos((it - w) / (c - w) * pi)) / 2 * (a - b),
    rest=lambda it, a, b, w, c: b,
):
    """A schedule whose branches can be got wrong one by one."""

    def learners(it, a, b, w, c):
        branch = warm if it < w else cosine if it <= c else rest
        return branch(it, a, b, w, c)

    return learners


def cosine(
    angle=lambda done: pi * done,
    wave=lambda x: (1 + cos(x)) / 2,
    done=lambda it, w, c: (it - w) / (c - w),
    low=lambda b: b,
):
    """A schedule whose cosine can be got wrong."""

    def between(it, a, b, w, c):
        return low(b) + wave(angle(done(it, w, c))) * (a - b)

    return schedule(cosine=between)


def no_rest(it, a, b, w, c):
    return (
        handout(it, a, b, w, c) if it < w else b + (1 + cos(pi * (it - w) / (c - w))) / 2 * (a - b)
    )


def nothing(it, a, b, w, c):
    if it < c:
        return handout(it, a, b, w, c)


def warm_up_with_equals(it, a, b, w, c):
    return it / w * a if it <= w else handout(it, a, b, w, c)


def no_room(it, a, b, w, c):
    if it < w:
        return it / w * a
    return b + (a - b) * (1 + cos(pi * min(1, (it - w) / (c - w)))) / 2


WRONG_SCHEDULES = [
    (schedule(warm=lambda it, a, b, w, c: (it + 1) / w * a), "one step ahead"),
    (schedule(warm=lambda it, a, b, w, c: (it + 1) / (w + 1) * a), "one too large or too small"),
    (schedule(warm=lambda it, a, b, w, c: it / (w - 1) * a), "one too large or too small"),
    (schedule(warm=lambda it, a, b, w, c: b + it / w * (a - b)), "starts at the minimum"),
    (schedule(warm=lambda it, a, b, w, c: a), "at the maximum right away"),
    (schedule(warm=lambda it, a, b, w, c: it // w * a), "rounds down to 0"),
    (schedule(warm=lambda it, a, b, w, c: it / w), "does not multiply by max"),
    (cosine(lambda done: 180 * done), "not degrees"),
    (cosine(lambda done: done), "π is missing"),
    (cosine(lambda done: done * pi / 2), "half the way"),
    (cosine(wave=lambda x: 0.5 + cos(x)), "the 1/2 applies to the whole sum"),
    (cosine(wave=lambda x: 1 + cos(x)), "1/2 is missing"),
    (cosine(wave=lambda x: (1 - cos(x)) / 2), "it rises"),
    (cosine(wave=lambda x: 1 - x / pi), "a straight line"),
    (cosine(done=lambda it, w, c: it / c), "does not start at the maximum"),
    (cosine(done=lambda it, w, c: (it - w) / c), "does not reach the minimum"),
    (cosine(low=lambda b: 0), "min is not added"),
    (no_rest, "rises again"),
    (schedule(rest=lambda it, a, b, w, c: 0), "not at 0"),
    (schedule(rest=lambda it, a, b, w, c: a), "not at the maximum"),
    (schedule(warm=lambda it, a, b, w, c: a, rest=lambda it, a, b, w, c: 0), "And: "),
    (lambda it, a, b, w, c: handout(it, b, a, w, c), "swapped"),
    (lambda it, a, b, w, c: handout(it, a, b, w, w + c), "not from the warm-up's end"),
    (lambda it, a, b, w, c: handout(it + 1, a, b, w, c), "whole schedule is one step ahead"),
    (nothing, "in each of the three branches"),
    (lambda it, a, b, w, c: "0.1", "It does not return a number"),
    (lambda it, a, b: a, "cannot be called with the arguments"),
    (lambda it, max_lr, min_lr, total, warmup_fraction=0.1: 0.0, "Or hand in a small function"),
]


WRONG_SCHEDULES += [
    (schedule(warm=lambda it, a, b, w, c: max(b, it / w * a)), "never goes below the minimum"),
    (schedule(cosine=lambda it, a, b, w, c: max(b, schedule()(it, a, 0, w, c))), "cut off at min"),
    (schedule(cosine=lambda it, a, b, w, c: a * (b / a) ** ((it - w) / (c - w))), "exponential"),
    (
        schedule(cosine=lambda it, a, b, w, c: b + cos((it - w) / (c - w) * pi / 2) * (a - b)),
        "bare cosine up to π/2",
    ),
    (
        schedule(
            cosine=lambda it, a, b, w, c: b + 0.5 * 1 + cos((it - w) / (c - w) * pi) * (a - b)
        ),
        "parentheses around 1 + cos",
    ),
    (
        schedule(
            cosine=lambda it, a, b, w, c: b + (1 + cos((it - w / (c - w)) * pi)) / 2 * (a - b)
        ),
        "`it - warmup` needs parentheses",
    ),
    (
        schedule(rest=lambda it, a, b, w, c: schedule()(w + (it - w) % (c - w), a, b, w, c)),
        "starts the cosine again",
    ),
    (lambda it, a, b, w, c: schedule()(it, a, b, w, c) / a, "returns a factor"),
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
    norm=lambda grads: math.sqrt(sum(float((g**2).sum()) for g in grads)),
    factor=lambda norm, limit: min(1.0, limit / (norm + 1e-6)),
    targets=lambda parameters: parameters,
    change=lambda p, factor: p.grad.mul_(factor),
    measured=lambda p: p.grad,
):
    """Clipping whose steps can be got wrong one by one."""

    def learners(parameters, max_l2_norm):
        parameters = [p for p in parameters if p.grad is not None]
        scale = factor(norm([measured(p) for p in parameters]), max_l2_norm)
        for p in targets(parameters):
            change(p, scale)

    return learners


def one_norm(grads):
    return sum(float(torch.linalg.norm(g, 2)) ** 2 if g.ndim else 0.0 for g in grads) ** 0.5


def one_by_one(parameters, limit):
    for p in parameters:
        if p.grad is not None and p.grad.norm() > limit:
            p.grad *= limit / p.grad.norm()


def needs_gradients(parameters, limit):
    norm = sum((p.grad**2).sum() for p in parameters) ** 0.5
    for p in parameters:
        p.grad *= min(1, limit / (norm + 1e-6))


def by_value(parameters, limit):
    torch.nn.utils.clip_grad_value_(list(parameters), limit)


def leftover(parameters, limit):
    total = 0.0
    for p in parameters:
        if p.grad is not None:
            grad = p.grad
            total += float((grad**2).sum())
    if total**0.5 > limit:
        grad *= limit / total**0.5


def running(parameters, limit):
    total = 0.0
    for p in parameters:
        if p.grad is not None:
            total += float((p.grad**2).sum())
            if total**0.5 > limit:
                p.grad *= limit / total**0.5


WRONG_CLIPS = [
    (one_by_one, "you took each parameter's own"),
    (clip(factor=lambda norm, limit: limit / (norm + 1e-6)), "scaled up to it"),
    (clip(norm=lambda grads: sum(float((g**2).sum()) for g in grads)), "the root is missing"),
    (clip(norm=lambda grads: max(float(g.abs().max()) for g in grads)), "the largest entry"),
    (clip(norm=lambda grads: sum(float(g.abs().sum()) for g in grads)), "(l1)"),
    (clip(norm=lambda grads: sum(float(g.norm()) for g in grads)), "add their squares"),
    (clip(norm=lambda grads: max(float(g.norm()) for g in grads)), "largest of the parameters"),
    (clip(norm=lambda grads: float(grads[-1].norm())), "the last gradient's norm"),
    (clip(norm=one_norm), "largest singular value"),
    (clip(measured=lambda p: p.data), "you took the norm of the parameters"),
    (clip(factor=lambda norm, limit: max(1.0, norm / limit)), "upside down"),
    (clip(factor=lambda norm, limit: 1 / norm if norm > limit else 1.0), "scaled to norm 1"),
    (clip(factor=lambda norm, limit: limit / norm if 0 < norm < limit else 1.0), "reversed"),
    (clip(factor=lambda norm, limit: limit if norm > limit else 1.0), "not divided by the norm"),
    (clip(targets=lambda parameters: parameters[-1:]), "Only the last gradient"),
    (clip(change=lambda p, factor: p.grad * factor), "only gives a name a new value"),
    (clip(change=lambda p, factor: p.data.mul_(factor)), "Scale `p.grad`, and not `p`"),
    (clip(change=lambda p, factor: setattr(p, "grad", None)), "A gradient is gone"),
    (leftover, "Only the last gradient"),
    (running, "still adding up"),
    (needs_gradients, "`p.grad` None: skip it"),
    (by_value, "Each entry is clipped"),
    (two_loops, "is a generator, which can be iterated over only once"),
    (lambda parameters, limit: clip_handout(parameters[:], limit), "is a generator: make a list"),
    (lambda parameters: parameters, "cannot be called with the arguments"),
]


def anew(parameters, limit):
    parameters = [p for p in parameters if p.grad is not None]
    for p in parameters:
        norm = math.sqrt(sum(float((q.grad**2).sum()) for q in parameters))
        p.grad.mul_(min(1.0, limit / (norm + 1e-6)))


WRONG_CLIPS += [
    (anew, "recomputed after some gradients are scaled"),
    (clip(targets=lambda parameters: parameters[:1]), "Only the first gradient"),
    (clip(norm=lambda grads: sum(g.norm() for g in grads) ** 0.5), "norms that were not squared"),
    (clip(norm=lambda grads: math.hypot(*(float(g.sum()) for g in grads))), "squared sums"),
    (clip(factor=lambda norm, limit: min(1.0, limit / (norm + 0.1))), "ε is too large"),
    (clip(factor=lambda norm, limit: min(1.0, limit / norm)), "the norm is 0: add ε"),
    (
        clip(factor=lambda norm, limit: limit / (norm + 1e-6) if norm**2 > limit else 1.0),
        "The square of the norm is compared",
    ),
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
