import math

import torch


class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr, betas, eps=1e-8, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "wd": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, p.grad, self.state[p], **group)
        return loss

    def _update(self, p, grad, state, lr, betas, eps, wd, **_):
        t = state["t"] = state.get("t", 0) + 1
        m = state.get("exp_avg", torch.zeros_like(grad))
        v = state.get("exp_avg_sq", torch.zeros_like(grad))
        state["exp_avg"] = m = torch.lerp(grad, m, betas[0])
        state["exp_avg_sq"] = v = torch.lerp(grad.square(), v, betas[1])
        m_hat = m / (1 - betas[0] ** t)
        v_hat = v / (1 - betas[1] ** t)
        p.sub_(lr * wd * p)
        p.sub_(lr * m_hat / (v_hat.sqrt() + eps))


class CosineSchedule:
    def __init__(self, max_lr, min_lr, warmup_steps, total_steps):
        self.max_lr = max_lr
        self.min_lr = min_lr
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps

    def get_lr(self, step):
        if step < self.warmup_steps:
            return self.max_lr * step / self.warmup_steps
        if step >= self.total_steps:
            return self.min_lr
        done = (step - self.warmup_steps) / (self.total_steps - self.warmup_steps)
        return self.min_lr + 0.5 * (1 + math.cos(done * math.pi)) * (self.max_lr - self.min_lr)


def clip_grad_norm(model_params, max_norm):
    grads = [p.grad for p in model_params if p.grad is not None]
    if not grads:
        return 0.0
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
    if norm >= max_norm:
        torch._foreach_mul_(grads, float(max_norm / (norm + 1e-6)))
    return float(norm)
