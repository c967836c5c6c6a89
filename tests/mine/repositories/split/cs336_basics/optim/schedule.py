from math import cos, pi


def cosine_lr(t, lr_max, lr_min, warmup, total):
    if t < warmup:
        return lr_max * t / warmup
    if t <= total:
        return lr_min + (1 + cos(pi * (t - warmup) / (total - warmup))) / 2 * (lr_max - lr_min)
    return lr_min
