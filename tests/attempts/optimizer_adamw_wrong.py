"""Wrong solutions of `adamw`: each is a plain one with one of its steps done wrongly."""

import math

import torch
from torch.optim import Optimizer

from attempts import catalogue

WRONG, mistake = catalogue()
ALMOST, corner = catalogue()


class Plain(Optimizer):
    """Algorithm 1 in methods, so that one of them can be got wrong."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    def step(self, closure=None):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    self.without_gradient(p, group)
                    continue
                self.update(p, p.grad.data, self.state_of(p), group)
        return loss

    def without_gradient(self, p, group):
        pass

    def state_of(self, p):
        return self.state[p]

    def update(self, p, g, state, group):
        group = self.of_group(self.param_groups, group)
        if "t" not in state:
            state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
        state["t"] += 1
        t, (b1, b2) = state["t"], group["betas"]
        g = self.gradient(p, g, group)
        state["m"] = m = self.first(state["m"], g, b1)
        state["v"] = v = self.second(state["v"], g, b2)
        lr = self.rate(group["lr"], b1, b2, t)
        with torch.no_grad():
            self.move(p, lr * m / self.below(v, group["eps"]))
            p *= self.decay(group["lr"], group["weight_decay"], lr)

    of_group = staticmethod(lambda groups, group: group)
    gradient = staticmethod(lambda p, g, group: g)
    first = staticmethod(lambda m, g, b1: b1 * m + (1 - b1) * g)
    second = staticmethod(lambda v, g, b2: b2 * v + (1 - b2) * g**2)
    rate = staticmethod(lambda lr, b1, b2, t: lr * math.sqrt(1 - b2**t) / (1 - b1**t))
    below = staticmethod(lambda v, eps: v.sqrt() + eps)
    move = staticmethod(lambda p, change: p.sub_(change))
    decay = staticmethod(lambda lr, decay, corrected: 1 - lr * decay)


def but(**steps):
    """Plain, but for some of its steps."""
    return type("Learners", (Plain,), {name: staticmethod(step) for name, step in steps.items()})


def with_decay(p, g, group):
    return g + group["weight_decay"] * p.data


def no_decay(lr, decay, corrected):
    return 1


def rebound(p, change):
    p = p - change


def under_autograd(p, change):
    with torch.enable_grad():
        p -= change


def from_zero_as_tensor(lr, b1, b2, t):
    t = torch.tensor(float(t - 1))
    return lr * torch.sqrt(1 - b2**t) / (1 - b1**t)


STATES = {}  # of all optimizers that a class makes


WRONG += [
    (but(gradient=with_decay, decay=no_decay), "which is Adam with L2"),
    (torch.optim.Adam, "which is Adam with L2"),
    (but(gradient=lambda p, g, group: g.add_(p.data)), "rewrote a gradient"),
    (but(decay=lambda lr, decay, corrected: 1 - decay), "not multiplied by the learning rate"),
    (but(decay=lambda lr, decay, corrected: 1 - corrected * decay), "uses the corrected"),
    (but(decay=no_decay), "yours has no decay"),
    (but(decay=lambda lr, decay, corrected: 1 + lr * decay), "makes the parameters grow"),
    (but(decay=lambda lr, decay, corrected: 1 - lr * lr * decay), "by the learning rate twice"),
    (
        but(of_group=lambda groups, group: {**group, "betas": group["betas"][::-1]}),
        "betas are swapped",
    ),
    (but(of_group=lambda groups, group: {**group, "betas": (0.9, 0.999)}), "betas are hard-coded"),
    (but(of_group=lambda groups, group: groups[0]), "All groups get the settings of the first"),
    (but(rate=lambda lr, b1, b2, t: lr), "no bias correction"),
    (but(rate=lambda lr, b1, b2, t: lr / (1 - b1**t)), "only m is corrected"),
    (but(rate=lambda lr, b1, b2, t: lr * math.sqrt(1 - b2**t)), "only v is corrected"),
    (
        but(rate=lambda lr, b1, b2, t: lr * (1 - b2**t) / (1 - b1**t)),
        "root over 1 - β2ᵗ is missing",
    ),
    (but(rate=lambda lr, b1, b2, t: lr * (1 - b1**t) / math.sqrt(1 - b2**t)), "upside down"),
    (but(rate=lambda lr, b1, b2, t: Plain.rate(lr, b2, b1, t)), "β1 and β2 are swapped"),
    (but(rate=lambda lr, b1, b2, t: Plain.rate(lr, b1, b2, t - 1)), "t begins at 1"),
    (but(rate=from_zero_as_tensor), "t begins at 0"),
    (but(rate=lambda lr, b1, b2, t: Plain.rate(lr, b1, b2, t + 1)), "t is one too large"),
    (but(rate=lambda lr, b1, b2, t: Plain.rate(lr, b1, b2, 1)), "t stays 1"),
    (but(first=lambda m, g, b1: b1 * m + g), "In m, the gradient lacks the factor"),
    (but(first=lambda m, g, b1: (1 - b1) * m + b1 * g), "β1 and 1 - β1 are swapped"),
    (but(first=lambda m, g, b1: g), "its average m"),
    # The second beta of a case, and not a mistake that fits one case alone.
    (but(first=lambda m, g, b1: 0.96 * m + 0.04 * g), "Look at the first step"),
    (but(second=lambda v, g, b2: b2 * v + g**2), "In v, the square lacks the factor"),
    (but(second=lambda v, g, b2: b2 * v + (1 - b2) * g), "v averages g² and not g"),
    # Nobody foresaw that v never falls.
    (but(second=lambda v, g, b2: Plain.second(v, g, b2).maximum(v)), "Look at what is kept"),
    (but(below=lambda v, eps: v + eps), "root of v is missing"),
    (but(below=lambda v, eps: (v + eps).sqrt()), "ε is inside the root"),
    (but(below=lambda v, eps: v.sqrt()), "ε is missing"),
    (but(below=lambda v, eps: v.sqrt() + 1e-8), "ε is hard-coded"),
    (but(move=lambda p, change: p.add_(change)), "goes uphill"),
    (but(move=rebound), "The step changes nothing"),
    (but(move=rebound, decay=no_decay), "The step changes nothing"),
    (but(move=under_autograd), "Autograd tracks the parameter"),
    (but(state_of=lambda p: STATES.setdefault(tuple(p.shape), {})), "kept from call to call"),
    (but(state_of=lambda p: {}), "begins with an empty state"),
]


@mistake("corrections pile up")
class WrittenOver(Plain):
    def update(self, p, g, state, group):
        super().update(p, g, state, group)
        group["lr"] = self.rate(group["lr"], *group["betas"], state["t"])


@mistake("t goes up for each parameter")
class CountsParameters(Plain):
    t = 0

    def rate(self, lr, b1, b2, t):
        self.t += 1
        return Plain.rate(lr, b1, b2, self.t)


@mistake("share one m and one v")
class SharedState(Plain):
    def state_of(self, p):
        return self.state["all"]


@mistake("leave it alone, decay included")
class DecaysAll(Plain):
    def without_gradient(self, p, group):
        p.data -= group["lr"] * group["weight_decay"] * p.data


@mistake("leave it alone, decay included")
class TakesNoneForZero(Plain):
    def without_gradient(self, p, group):
        self.update(p, torch.zeros_like(p), self.state[p], group)


@mistake("before it reaches `super().__init__`")
class UsesUp(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        self.number = sum(1 for p in params)
        super().__init__(params, lr, betas, eps, weight_decay)


@mistake("not a subclass of torch.optim.Optimizer")
class Alone:
    def __init__(self, params, lr, betas, eps, weight_decay):
        self.inner = Plain(params, lr, betas, eps, weight_decay)

    def step(self, closure=None):
        return self.inner.step(closure)


@mistake("not from what was stored once")
class StoredRate(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        super().__init__(params, lr, betas, eps, weight_decay)
        self.rates = {p: group["lr"] for group in self.param_groups for p in group["params"]}

    def update(self, p, g, state, group):
        super().update(p, g, state, {**group, "lr": self.rates[p]})


@mistake("hand `super().__init__` a dict of all settings")
class EmptyDefaults(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        Optimizer.__init__(self, params, {})
        self.settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}

    def update(self, p, g, state, group):
        super().update(p, g, state, self.settings)


@mistake("A schedule sets `group['lr']`")
class OtherKeys(Plain):
    """Symbols of the algorithm as keys, which no schedule knows."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        Optimizer.__init__(self, params, {"α": lr, "β": betas, "eps": eps, "λ": weight_decay})

    def update(self, p, g, state, group):
        settings = {"lr": group["α"], "betas": group["β"], "weight_decay": group["λ"]}
        super().update(p, g, state, {**settings, "eps": group["eps"]})


@mistake("Only the first group is stepped")
class FirstGroup(Plain):
    def step(self, closure=None):
        groups, self.param_groups = self.param_groups, self.param_groups[:1]
        loss = super().step(closure)
        self.param_groups = groups
        return loss


@mistake("a resumed run lacks m, v and t")
class OwnDict(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        super().__init__(params, lr, betas, eps, weight_decay)
        self.own = {}

    def state_of(self, p):
        return self.own.setdefault(p, {})


@mistake("a resumed run lacks t")
class OwnTime(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        super().__init__(params, lr, betas, eps, weight_decay)
        self.t = 0

    def step(self, closure=None):
        self.t += 1
        return super().step(closure)

    def rate(self, lr, b1, b2, t):
        return Plain.rate(lr, b1, b2, self.t)


@mistake("but not those after it")
class StopsAtNone(Plain):
    def step(self, closure=None):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    break
                self.update(p, p.grad.data, self.state_of(p), group)
        return loss


@mistake("has `p.grad` None: skip it")
class ReadsTheDataOfNone(Plain):
    def step(self, closure=None):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                self.update(p, p.grad.data, self.state_of(p), group)
        return loss


@mistake("The group has no such key")
class NoRateInTheGroup(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        Optimizer.__init__(self, params, {"betas": betas, "eps": eps, "weight_decay": weight_decay})


@mistake("takes different arguments")
class NoRateForUpdate(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        Optimizer.__init__(self, params, {"betas": betas, "eps": eps, "weight_decay": weight_decay})

    def update(self, p, g, state, group):
        self.rate_of(**group)

    def rate_of(self, lr, **others):
        return lr


@mistake("Only the last group is stepped")
class LastGroup(Plain):
    """The loop over the parameters stands after the loop over the groups, not inside."""

    def step(self, closure=None):
        groups, self.param_groups = self.param_groups, self.param_groups[-1:]
        loss = super().step(closure)
        self.param_groups = groups
        return loss


@corner("when the closure is called")
class ClosureLast(Plain):
    def step(self, closure=None):
        super().step()
        return closure and closure()


WRONG += [
    (but(gradient=with_decay), "The decay is applied twice"),
    (but(rate=lambda lr, b1, b2, t: math.sqrt(1 - b2**t) / (1 - b1**t)), "α itself is missing"),
    (
        but(rate=lambda lr, b1, b2, t: lr * (1 - b2**t) / math.sqrt(1 - b1**t)),
        "the root belongs over 1 - β2",
    ),
    (
        but(rate=lambda lr, b1, b2, t: lr * math.sqrt(1 - b2**t) / (1 - b1**t) ** 2),
        "yours corrects m twice",
    ),
    (but(rate=lambda lr, b1, b2, t: lr * math.sqrt(1 - b2**t) / (1 - b1 * t)), "it is a power"),
    (but(rate=lambda lr, b1, b2, t: lr * math.sqrt(1 - b2 * t) / (1 - b1**t)), "is β2ᵗ a power"),
    (but(second=lambda v, g, b2: b2 * v + (1 - b2) * (g**2).mean()), "one number for all entries"),
    (but(below=lambda v, eps: v.sqrt() + 1e-6), "ε is hard-coded"),
]
