def clip_gradients(params, max_norm):
    params = [p for p in params if p.grad is not None]
    total = sum(p.grad.norm() ** 2 for p in params) ** 0.5
    scale = max_norm / (total + 1e-6)
    if scale < 1:
        for p in params:
            p.grad *= scale
    return total
