"""AdamW as learners write it: right in different styles, and wrong."""

import math

import torch
from torch.optim import Optimizer

from attempts.lists import almost, mistake, right
from workbook.optimizer.optimizers import AdamW


@right("adamw")
class Plain(Optimizer):
    """Algorithm 1 as it is printed, in methods, so that one of them can be got wrong."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    def step(self, closure=None):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                if self.takes(p):
                    self.update(p, p.grad.data, self.state_of(p), group)
        return loss

    def state_of(self, p):
        return self.state[p]

    def update(self, p, g, state, group):
        if "t" not in state:
            state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
        state["t"] += 1
        t = state["t"]
        b1, b2 = group["betas"]
        g = self.gradient(p, g)
        state["m"] = m = self.first(state["m"], g, b1)
        state["v"] = v = self.second(state["v"], g, b2)
        lr = self.rate(group["lr"], b1, b2, t)
        with torch.no_grad():
            self.move(p, lr * m / (v.sqrt() + group["eps"]))
            p *= self.decay(group["lr"], group["weight_decay"])

    takes = staticmethod(lambda p: p.grad is not None)
    gradient = staticmethod(lambda p, g: g)
    first = staticmethod(lambda m, g, b1: b1 * m + (1 - b1) * g)
    second = staticmethod(lambda v, g, b2: b2 * v + (1 - b2) * g**2)
    rate = staticmethod(lambda lr, b1, b2, t: lr * math.sqrt(1 - b2**t) / (1 - b1**t))
    move = staticmethod(lambda p, change: p.sub_(change))
    decay = staticmethod(lambda lr, decay: 1 - lr * decay)


@right("adamw")
class Paper(Optimizer):
    """Decay before the step, corrected moments, everything in place and without autograd."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.update(p, self.state[p], **group)
        return loss

    def update(self, p, state, lr, betas, eps, weight_decay, **others):
        if not state:
            state.update(step=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
        state["step"] += 1
        p.mul_(1 - lr * weight_decay)
        state["m"].lerp_(p.grad, 1 - betas[0])
        state["v"].mul_(betas[1]).addcmul_(p.grad, p.grad, value=1 - betas[1])
        m_hat = state["m"] / (1 - betas[0] ** state["step"])
        v_hat = state["v"] / (1 - betas[1] ** state["step"])
        p.addcdiv_(m_hat, v_hat.sqrt().add_(eps), value=-lr)


@right("adamw")
class OneDecay(Paper):
    """Groups that hold the learning rate alone; the other settings belong to the optimizer."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        Optimizer.__init__(self, params, {"lr": lr})
        self.others = {"betas": betas, "eps": eps, "weight_decay": weight_decay}

    def update(self, p, state, lr, **others):
        super().update(p, state, lr, **self.others)


@right("adamw")
class OfGreekNames(Paper):
    """The handout's letters, in the groups too."""

    def __init__(self, params, alpha, beta_1, beta_2, epsilon, lam):
        settings = {"alpha": alpha, "beta_1": beta_1, "beta_2": beta_2, "epsilon": epsilon}
        Optimizer.__init__(self, params, {**settings, "lam": lam})

    def update(self, p, state, alpha, beta_1, beta_2, epsilon, lam, **others):
        super().update(p, state, alpha, (beta_1, beta_2), epsilon, lam)


@right("adamw")
class StateFromTheStart(Paper):
    """The state is made in `__init__`, with t as a tensor."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0):
        super().__init__(params, lr, betas, eps, weight_decay)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = {"step": torch.tensor(0.0), "m": 0 * p.data, "v": 0 * p.data}


@right("adamw")
class Strict(Plain):
    """Keyword-only, and no setting may be 0; the closure is taken and forgotten."""

    def __init__(self, params, *, lr, weight_decay, betas, eps):
        assert lr > 0 and weight_decay > 0 and eps > 0 and all(0 < beta < 1 for beta in betas)
        super().__init__(params, lr, betas, eps, weight_decay)

    def step(self, closure=None):
        return super().step()


@right("adamw")
class TwoBetas(Plain):
    """The betas as two numbers, and gradients that are cleared in the step."""

    def __init__(self, parameters, learning_rate, beta1, beta2, wd, epsilon=1e-8, foreach=False):
        super().__init__(parameters, learning_rate, (beta1, beta2), epsilon, wd)

    def step(self, closure=None):
        loss = super().step(closure)
        self.zero_grad()
        return loss


class Wrapped(Plain):
    """Torch's own, inside."""

    def step(self, closure=None):
        inner = torch.optim.AdamW(self.param_groups)
        inner.state = self.state
        return inner.step(closure)


class Kernel(Paper):
    """Torch's own, in C."""

    def update(self, p, state, lr, betas, eps, weight_decay, **others):
        if not state:
            state.update(t=torch.zeros(()), m=torch.zeros_like(p), v=torch.zeros_like(p))
        held = [p], [p.grad], [state["m"]], [state["v"]], [], [state["t"].add_(1)]
        settings = {"lr": lr, "beta1": betas[0], "beta2": betas[1], "weight_decay": weight_decay}
        torch._fused_adamw_(*held, **settings, eps=eps, amsgrad=False, maximize=False)


for ready in (Wrapped, Kernel, AdamW, torch.optim.AdamW):
    almost("adamw", "not from scratch yet")(ready)


def but(**steps):
    """Plain, but for some of its steps."""
    return type("Learners", (Plain,), {name: staticmethod(step) for name, step in steps.items()})


def under_autograd(p, change):
    with torch.enable_grad():
        p -= change


STATES = {}  # of all optimizers that a class makes

for words, wrong in (
    ("rewrote a gradient", but(gradient=lambda p, g: g.add_(p.data))),
    ("t begins at 1", but(rate=lambda lr, b1, b2, t: Plain.rate(lr, b1, b2, t - 1))),
    ("is β2ᵗ a power", but(rate=lambda lr, b1, b2, t: lr * math.sqrt(1 - b2 * t) / (1 - b1**t))),
    # The second beta of a case, and not a mistake that fits one case alone.
    ("Look at the first step", but(first=lambda m, g, b1: 0.9 * m + 0.1 * g)),
    # Nobody foresaw that v never falls.
    ("Look at what is kept", but(second=lambda v, g, b2: Plain.second(v, g, b2).maximum(v))),
    ("Autograd tracks the parameter", but(move=under_autograd)),
    ("kept from call to call", but(state_of=lambda p: STATES.setdefault(tuple(p.shape), {}))),
):
    mistake("adamw", words)(wrong)


@mistake("adamw", "The group has no such key")
class Misspelt(Plain):
    def update(self, p, g, state, group):
        super().update(p, g, state, {"lr": self.param_groups[0]["learning_rate"], **group})


almost("adamw", "`p.grad` None: skip it")(but(takes=lambda p: True))


@mistake("adamw", "before it reaches `super().__init__`")
class UsesUp(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        self.number = sum(1 for p in params)
        super().__init__(params, lr, betas, eps, weight_decay)


@mistake("adamw", "Look at the first step")
class OnItsOwn(torch.optim.Optimizer):
    """Without `super().__init__`: some cases end in an error of its own, none in one of ours."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        self.params = list(params)
        self.lr = lr

    def step(self, closure=None):
        for p in self.params:
            p.data -= self.lr * (0 if p.grad is None else p.grad)


@mistake("adamw", "Begin `__init__` with `super().__init__(params, defaults)`")
class NoGroups(OnItsOwn):
    """Near `add_param_group`, which is torch's and not meant."""

    def step(self, closure=None):
        for group in self.param_groups:
            group["params"].clear()


@mistake("adamw", "not a subclass of torch.optim.Optimizer")
class Alone:
    def __init__(self, params, lr, betas, eps, weight_decay):
        self.inner = Plain(params, lr, betas, eps, weight_decay)

    def step(self, closure=None):
        return self.inner.step(closure)
