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


def in_one_line(it, a, b, w, c):
    return (
        a * it / w
        if it < w
        else b
        if it > c
        else b + (a - b) * cos(pi * (it - w) / (c - w) / 2) ** 2
    )


def strict(it, max_lr, min_lr, warmup, end):
    if not isinstance(it, int) or it < 0 or warmup > end:
        raise ValueError("no such step")
    return handout(it, max_lr, min_lr, warmup, end + (warmup == end))


def meets_the_maximum_in_the_warm_up(it, a, b, w, c):
    if w > 0 and it <= w:
        return a * (it / w)
    return b if it >= c else handout(it, a, b, w, c)


def wants_room(it, max_lr, min_lr, warmup, end):
    if not 0 < warmup < end:
        raise ValueError("expected 0 < warmup_iters < cosine_cycle_iters")
    return handout(it, max_lr, min_lr, warmup, end)


RIGHT_SCHEDULES = [
    handout,
    with_numpy,
    with_tensors,
    in_one_line,
    strict,
    meets_the_maximum_in_the_warm_up,
    wants_room,
    lambda *arguments: handout(*arguments),
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


def degrees(it, a, b, w, c):
    return b + 0.5 * (1 + cos(180 * (it - w) / (c - w))) * (a - b)


def cosine_all_the_way(it, a, b, w, c):
    return b + 0.5 * (1 + cos(pi * (it - w) / (c - w))) * (a - b)


def nothing(it, a, b, w, c):
    if it < w:
        return it / w * a
    if it < c:
        return cosine_all_the_way(it, a, b, w, c)


def warm_up_with_equals(it, a, b, w, c):
    return it / w * a if it <= w else handout(it, a, b, w, c)


def no_room(it, a, b, w, c):
    if it < w:
        return it / w * a
    return b + (a - b) * (1 + cos(pi * min(1, (it - w) / (c - w)))) / 2


WRONG_SCHEDULES = [
    (
        schedule(cosine=lambda it, a, b, w, c: b + (0.5 + cos((it - w) / (c - w) * pi)) * (a - b)),
        "the 1/2 belongs to the sum",
    ),
    (schedule(warm=lambda it, a, b, w, c: (it + 1) / w * a), "one step ahead"),
    (schedule(warm=lambda it, a, b, w, c: (it + 1) / (w + 1) * a), "one too high"),
    (schedule(warm=lambda it, a, b, w, c: it / (w - 1) * a), "one too few"),
    (schedule(warm=lambda it, a, b, w, c: b + it / w * (a - b)), "begins at the minimum"),
    (schedule(warm=lambda it, a, b, w, c: a), "at the maximum at once"),
    (schedule(warm=lambda it, a, b, w, c: it // w * a), "rounds down to 0"),
    (schedule(warm=lambda it, a, b, w, c: it / w), "lacks the maximum"),
    (schedule(cosine=lambda it, a, b, w, c: degrees(it, a, b, w, c)), "not degrees"),
    (schedule(cosine=lambda *s: b_plus_half(*s, angle=lambda done: done)), "π is missing"),
    (
        schedule(cosine=lambda *s: b_plus_half(*s, angle=lambda done: done * pi / 2)),
        "half of the way",
    ),
    (schedule(cosine=lambda it, a, b, w, c: a - (a - b) * (it - w) / (c - w)), "a straight line"),
    (
        schedule(cosine=lambda it, a, b, w, c: b + (1 + cos(it / c * pi)) / 2 * (a - b)),
        "it / cosine",
    ),
    (
        schedule(cosine=lambda it, a, b, w, c: b + (1 + cos((it - w) / c * pi)) / 2 * (a - b)),
        "does not get to the minimum",
    ),
    (
        schedule(cosine=lambda it, a, b, w, c: (1 + cos((it - w) / (c - w) * pi)) / 2 * (a - b)),
        "min is not added",
    ),
    (
        schedule(cosine=lambda it, a, b, w, c: b + (1 + cos((it - w) / (c - w) * pi)) * (a - b)),
        "1/2 is missing",
    ),
    (
        schedule(
            cosine=lambda it, a, b, w, c: b + (1 - cos((it - w) / (c - w) * pi)) / 2 * (a - b)
        ),
        "it rises",
    ),
    (schedule(rest=cosine_all_the_way), "rises again"),
    (schedule(rest=lambda it, a, b, w, c: 0), "not at 0"),
    (schedule(rest=lambda it, a, b, w, c: a), "not at the maximum"),
    (schedule(warm=lambda it, a, b, w, c: a, rest=lambda it, a, b, w, c: 0), "And: "),
    (lambda it, a, b, w, c: handout(it, b, a, w, c), "swapped"),
    (lambda it, a, b, w, c: handout(it, a, b, w, w + c), "not from the warm-up's end"),
    (lambda it, a, b, w, c: handout(it + 1, a, b, w, c), "whole schedule is one step ahead"),
    (nothing, "no branch fits"),
    (lambda it, a, b, w, c: "0.1", "It returns no number"),
    (lambda it, a, b: a, "cannot be called with the arguments"),
]


def b_plus_half(it, a, b, w, c, angle):
    return b + (1 + cos(angle((it - w) / (c - w)))) / 2 * (a - b)


def clip_handout(parameters, max_l2_norm, eps=1e-6):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = torch.sqrt(sum((g.data**2).sum() for g in grads))
    if norm >= max_l2_norm:
        for g in grads:
            g.data *= max_l2_norm / (norm + eps)


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
    optimizers.clip_gradients,
]


def clip(
    norm=lambda grads: math.sqrt(sum(float((g**2).sum()) for g in grads)),
    factor=lambda norm, limit: min(1.0, limit / (norm + 1e-6)),
    targets=lambda grads: grads,
    change=lambda g, factor: g.mul_(factor),
):
    """Clipping whose steps can be got wrong one by one."""

    def learners(parameters, max_l2_norm):
        grads = [p.grad for p in parameters if p.grad is not None]
        scale = factor(norm(grads), max_l2_norm)
        for g in targets(grads):
            change(g, scale)

    return learners


def one_by_one(parameters, limit):
    for p in parameters:
        if p.grad is not None and p.grad.norm() > limit:
            p.grad *= limit / p.grad.norm()


def needs_gradients(parameters, limit):
    norm = sum((p.grad**2).sum() for p in parameters) ** 0.5
    for p in parameters:
        p.grad *= min(1, limit / (norm + 1e-6))


def of_values(parameters, limit):
    parameters = list(parameters)
    norm = sum((p.data**2).sum() for p in parameters if p.grad is not None) ** 0.5
    for p in parameters:
        if p.grad is not None and norm > limit:
            p.grad *= limit / norm


def scales_values(parameters, limit):
    parameters = list(parameters)
    norm = sum((p.grad**2).sum() for p in parameters if p.grad is not None) ** 0.5
    if norm > limit:
        for p in parameters:
            p.data *= limit / norm


def by_value(parameters, limit):
    torch.nn.utils.clip_grad_value_(list(parameters), limit)


def local_name(parameters, limit):
    parameters = list(parameters)
    norm = sum((p.grad**2).sum() for p in parameters if p.grad is not None) ** 0.5
    for p in parameters:
        grad = p.grad
        if grad is not None and norm > limit:
            grad = grad * limit / norm


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


def clears(parameters, limit):
    for p in parameters:
        p.grad = None


WRONG_CLIPS = [
    (one_by_one, "you took each parameter's own"),
    (clip(factor=lambda norm, limit: limit / (norm + 1e-6)), "scaled up to it"),
    (clip(norm=lambda grads: sum(float((g**2).sum()) for g in grads)), "the root is missing"),
    (clip(norm=lambda grads: max(float(g.abs().max()) for g in grads)), "the largest entry"),
    (clip(norm=lambda grads: sum(float(g.abs().sum()) for g in grads)), "(l1)"),
    (clip(norm=lambda grads: sum(float(g.norm()) for g in grads)), "add squares"),
    (clip(norm=lambda grads: max(float(g.norm()) for g in grads)), "largest of the parameters"),
    (clip(norm=lambda grads: float(grads[-1].norm())), "the last parameter's"),
    (
        clip(
            norm=lambda grads: (
                sum(float(torch.linalg.norm(g, 2)) ** 2 if g.ndim else 0.0 for g in grads) ** 0.5
            )
        ),
        "largest singular value",
    ),
    (clip(factor=lambda norm, limit: max(1.0, norm / limit)), "upside down"),
    (clip(factor=lambda norm, limit: 1 / norm if norm > limit else 1.0), "scaled to the norm 1"),
    (clip(factor=lambda norm, limit: limit / norm if 0 < norm < limit else 1.0), "turned round"),
    (clip(factor=lambda norm, limit: limit if norm > limit else 1.0), "not divided by the norm"),
    (clip(targets=lambda grads: grads[-1:]), "Only the last gradient"),
    (leftover, "Only the last gradient"),
    (running, "still adding up"),
    (needs_gradients, "`p.grad` None: skip it"),
    (of_values, "you took the parameters, not their gradients"),
    (scales_values, "Scale `p.grad`, and not `p`"),
    (by_value, "Each entry is cut"),
    (local_name, "only gives a name a new value"),
    (two_loops, "which is a generator"),
    (clears, "A gradient is gone"),
    (lambda parameters: parameters, "cannot be called with the arguments"),
]

ALMOST = [
    ("learning_rate_schedule", no_room, "ask `it > cosine_cycle_iters`"),
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
