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
        if "t" not in state:
            state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
        state["t"] += 1
        t, (b1, b2) = state["t"], group["betas"]
        g = self.gradient(p, g, group)
        state["m"] = m = self.first(state["m"], g, b1)
        state["v"] = v = self.second(state["v"], g, b2)
        lr = self.rate(group, b1, b2, t)
        with torch.no_grad():
            self.move(p, lr * m / self.below(v, group["eps"]))
            self.decay(p, group["lr"], group["weight_decay"], lr)

    def gradient(self, p, g, group):
        return g

    def first(self, m, g, b1):
        return b1 * m + (1 - b1) * g

    def second(self, v, g, b2):
        return b2 * v + (1 - b2) * g**2

    def rate(self, group, b1, b2, t):
        return group["lr"] * math.sqrt(1 - b2**t) / (1 - b1**t)

    def below(self, v, eps):
        return v.sqrt() + eps

    def move(self, p, change):
        p -= change

    def decay(self, p, lr, weight_decay, corrected):
        p -= lr * weight_decay * p


def but(**methods):
    """Plain, but for some of its methods."""
    return type("Learners", (Plain,), methods)


def gradient_with_decay(self, p, g, group):
    return g + group["weight_decay"] * p.data


def no_decay(self, p, lr, weight_decay, corrected):
    pass


def rebound(self, p, change):
    p = p - change


def under_autograd(self, p, change):
    with torch.enable_grad():
        p -= change


def written_over(self, group, b1, b2, t):
    group["lr"] *= math.sqrt(1 - b2**t) / (1 - b1**t)
    return group["lr"]


def counting_parameters(self, group, b1, b2, t):
    self.t = getattr(self, "t", 0) + 1
    return Plain.rate(self, group, b1, b2, self.t)


def from_zero_as_tensor(self, group, b1, b2, t):
    t = torch.tensor(float(t - 1))
    return group["lr"] * torch.sqrt(1 - b2**t) / (1 - b1**t)


def largest(self, v, g, b2):
    """Nobody foresaw that: v never falls."""
    return torch.maximum(v, Plain.second(self, v, g, b2))


def with_second_beta(self, m, g, b1):
    beta = self.param_groups[0]["betas"][1]
    return beta * m + (1 - beta) * g


def decayed_without_gradient(self, p, group):
    p.data -= group["lr"] * group["weight_decay"] * p.data


STATES = {}  # of all optimizers that a class makes


WRONG += [
    (but(gradient=gradient_with_decay, decay=no_decay), "which is Adam with L2"),
    (torch.optim.Adam, "which is Adam with L2"),
    (but(gradient=lambda self, p, g, group: g.add_(p.data)), "rewrote a gradient"),
    (but(decay=lambda self, p, lr, decay, corrected: p.sub_(decay * p)), "not multiplied by the l"),
    (but(decay=lambda self, p, lr, decay, corrected: p.sub_(corrected * decay * p)), "corrected"),
    (but(decay=no_decay), "yours has no decay"),
    (but(decay=lambda self, p, lr, decay, corrected: p.add_(lr * decay * p)), "parameters grow"),
    (but(decay=lambda self, p, lr, decay, corrected: p.sub_(lr * lr * decay * p)), "rate twice"),
    (
        but(
            update=lambda self, p, g, state, group: Plain.update(
                self, p, g, state, {**group, "betas": group["betas"][::-1]}
            )
        ),
        "betas are swapped",
    ),
    (
        but(
            update=lambda self, p, g, state, group: Plain.update(
                self, p, g, state, {**group, "betas": (0.9, 0.999)}
            )
        ),
        "betas are typed in",
    ),
    (but(rate=lambda self, group, b1, b2, t: group["lr"]), "no bias correction"),
    (but(rate=lambda self, group, b1, b2, t: group["lr"] / (1 - b1**t)), "only m is corrected"),
    (
        but(rate=lambda self, group, b1, b2, t: group["lr"] * math.sqrt(1 - b2**t)),
        "only v is corrected",
    ),
    (
        but(rate=lambda self, group, b1, b2, t: group["lr"] * (1 - b2**t) / (1 - b1**t)),
        "root over 1 - β2ᵗ is missing",
    ),
    (
        but(rate=lambda self, group, b1, b2, t: group["lr"] * (1 - b1**t) / math.sqrt(1 - b2**t)),
        "upside down",
    ),
    (
        but(rate=lambda self, group, b1, b2, t: Plain.rate(self, group, b2, b1, t)),
        "β1 and β2 have changed places",
    ),
    (but(rate=written_over), "corrections pile up"),
    (
        but(rate=lambda self, group, b1, b2, t: Plain.rate(self, group, b1, b2, t - 1)),
        "begins at 1",
    ),
    (but(rate=from_zero_as_tensor), "t begins at 0"),
    (but(rate=lambda self, group, b1, b2, t: Plain.rate(self, group, b1, b2, t + 1)), "too large"),
    (but(rate=lambda self, group, b1, b2, t: Plain.rate(self, group, b1, b2, 1)), "t stays 1"),
    (but(rate=counting_parameters), "t goes up for each parameter"),
    (but(state_of=lambda self, p: self.state["all"]), "share one m and one v"),
    (but(state_of=lambda self, p: STATES.setdefault(tuple(p.shape), {})), "kept from call to call"),
    (but(state_of=lambda self, p: {}), "begins with an empty state"),
    (but(first=lambda self, m, g, b1: b1 * m + g), "m lacks the factor"),
    (but(first=lambda self, m, g, b1: (1 - b1) * m + b1 * g), "β1 and 1 - β1 are swapped"),
    (but(first=lambda self, m, g, b1: g), "its average m"),
    # Not a mistake that fits one case alone.
    (but(first=with_second_beta), "The first step, from averages of zero"),
    (but(second=lambda self, v, g, b2: b2 * v + g**2), "v lacks the factor"),
    (but(second=lambda self, v, g, b2: b2 * v + (1 - b2) * g), "v averages g² and not g"),
    (but(second=largest), "look at what is kept"),
    (but(below=lambda self, v, eps: v + eps), "root of v is missing"),
    (but(below=lambda self, v, eps: (v + eps).sqrt()), "ε stands inside the root"),
    (but(below=lambda self, v, eps: v.sqrt()), "ε is missing"),
    (but(below=lambda self, v, eps: v.sqrt() + 1e-8), "ε is always 1e-8"),
    (but(move=lambda self, p, change: p.add_(change)), "goes up the hill"),
    (but(move=rebound), "The step changes nothing"),
    (but(move=rebound, decay=no_decay), "The step changes nothing"),
    (but(move=under_autograd), "Autograd watches the parameter"),
    (but(without_gradient=decayed_without_gradient), "leave it alone, decay included"),
    (
        but(
            without_gradient=lambda self, p, group: self.update(
                p, torch.zeros_like(p), self.state[p], group
            )
        ),
        "decay included",
    ),
    (
        but(without_gradient=lambda self, p, group: self.update(p, p.grad, self.state[p], group)),
        "has `p.grad` None: skip it",
    ),
    (
        but(
            update=lambda self, p, g, state, group: Plain.update(
                self, p, g, state, self.param_groups[0]
            )
        ),
        "All groups get the settings of the first",
    ),
]


@mistake("before it reaches `super().__init__`")
class UsesUp(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        self.number = sum(1 for p in params)
        super().__init__(params, lr, betas, eps, weight_decay)


@mistake("no subclass of torch.optim.Optimizer")
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


@mistake("Hand the settings to `super().__init__(params, defaults)` as a dict")
class EmptyDefaults(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        Optimizer.__init__(self, params, {})
        self.settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}

    def update(self, p, g, state, group):
        super().update(p, g, state, self.settings)


@mistake("Only the first group is stepped")
class FirstGroup(Plain):
    def step(self, closure=None):
        groups, self.param_groups = self.param_groups, self.param_groups[:1]
        loss = super().step(closure)
        self.param_groups = groups
        return loss


@mistake("`state_dict` does not hold m, v and t")
class OwnDict(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        super().__init__(params, lr, betas, eps, weight_decay)
        self.own = {}

    def state_of(self, p):
        return self.own.setdefault(p, {})


@mistake("`state_dict` does not hold t")
class OwnTime(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        super().__init__(params, lr, betas, eps, weight_decay)
        self.t = 0

    def step(self, closure=None):
        self.t += 1
        return super().step(closure)

    def rate(self, group, b1, b2, t):
        return super().rate(group, b1, b2, self.t)


@mistake("those after it are not")
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


@mistake("takes other arguments")
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


@corner("Call the closure first")
class ClosureLast(Plain):
    def step(self, closure=None):
        super().step()
        return closure and closure()
