"""Wrong solutions of `adamw`: each is a plain one with one of its steps done wrongly."""

import math
from typing import ClassVar

import torch
from torch.optim import Optimizer

from attempts import catalogue

WRONG, mistake = catalogue()


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


@mistake("which is Adam with L2")
class Coupled(Plain):
    def gradient(self, p, g, group):
        return g + group["weight_decay"] * p.data

    def decay(self, p, lr, weight_decay, corrected):
        pass


@mistake("rewrote a gradient")
class CoupledInPlace(Coupled):
    def gradient(self, p, g, group):
        g += group["weight_decay"] * p.data
        return g


@mistake("not multiplied by the learning rate")
class BareDecay(Plain):
    def decay(self, p, lr, weight_decay, corrected):
        p -= weight_decay * p


@mistake("takes the corrected rate")
class CorrectedDecay(Plain):
    def decay(self, p, lr, weight_decay, corrected):
        p -= corrected * weight_decay * p


@mistake("Yours has no decay")
class NoDecay(Plain):
    def decay(self, p, lr, weight_decay, corrected):
        pass


@mistake("makes the parameters grow")
class Growing(Plain):
    def decay(self, p, lr, weight_decay, corrected):
        p += lr * weight_decay * p


@mistake("betas are swapped")
class Swapped(Plain):
    def update(self, p, g, state, group):
        super().update(p, g, state, {**group, "betas": group["betas"][::-1]})


@mistake("betas are always 0.9 and 0.999")
class FixedBetas(Plain):
    def update(self, p, g, state, group):
        super().update(p, g, state, {**group, "betas": (0.9, 0.999)})


@mistake("no bias correction")
class Uncorrected(Plain):
    def rate(self, group, b1, b2, t):
        return group["lr"]


@mistake("only m is corrected")
class OnlyFirst(Plain):
    def rate(self, group, b1, b2, t):
        return group["lr"] / (1 - b1**t)


@mistake("only v is corrected")
class OnlySecond(Plain):
    def rate(self, group, b1, b2, t):
        return group["lr"] * math.sqrt(1 - b2**t)


@mistake("root over 1 - β2ᵗ is missing")
class NoRootOfCorrection(Plain):
    def rate(self, group, b1, b2, t):
        return group["lr"] * (1 - b2**t) / (1 - b1**t)


@mistake("upside down")
class UpsideDown(Plain):
    def rate(self, group, b1, b2, t):
        return group["lr"] * (1 - b1**t) / math.sqrt(1 - b2**t)


@mistake("β1 and β2 have changed places")
class CorrectionsSwapped(Plain):
    def rate(self, group, b1, b2, t):
        return super().rate(group, b2, b1, t)


@mistake("multiplied by the learning rate twice")
class DecayTwiceSmall(Plain):
    def decay(self, p, lr, weight_decay, corrected):
        p -= lr * lr * weight_decay * p


@mistake("look at what is kept from step to step")
class Largest(Plain):
    """Nobody foresaw that: v never falls."""

    def second(self, v, g, b2):
        return torch.maximum(v, super().second(v, g, b2))


@mistake("pile up from step to step")
class Piling(Plain):
    def rate(self, group, b1, b2, t):
        group["lr"] *= math.sqrt(1 - b2**t) / (1 - b1**t)
        return group["lr"]


@mistake("t begins at 1")
class FromZero(Plain):
    def rate(self, group, b1, b2, t):
        return super().rate(group, b1, b2, t - 1)


@mistake("t begins at 0")
class FromZeroAsTensor(Plain):
    def rate(self, group, b1, b2, t):
        t = torch.tensor(float(t - 1))
        return group["lr"] * torch.sqrt(1 - b2**t) / (1 - b1**t)


@mistake("t is one too large")
class FromTwo(Plain):
    def rate(self, group, b1, b2, t):
        return super().rate(group, b1, b2, t + 1)


@mistake("t stays 1")
class AlwaysFirst(Plain):
    def rate(self, group, b1, b2, t):
        return super().rate(group, b1, b2, 1)


@mistake("t goes up for each parameter")
class CountsParameters(Plain):
    def rate(self, group, b1, b2, t):
        self.t = getattr(self, "t", 0) + 1
        return super().rate(group, b1, b2, self.t)


@mistake("share one m and one v")
class SharedState(Plain):
    def state_of(self, p):
        return self.state["all"]


@mistake("Something is kept outside of the instance")
class StateOfTheClass(Plain):
    states: ClassVar[dict] = {}

    def state_of(self, p):
        return self.states.setdefault((tuple(p.shape), len(self.param_groups)), {})


@mistake("begins with an empty state")
class Forgetful(Plain):
    def state_of(self, p):
        return {}


@mistake("m lacks the factor")
class UnweightedFirst(Plain):
    def first(self, m, g, b1):
        return b1 * m + g


@mistake("v lacks the factor")
class UnweightedSecond(Plain):
    def second(self, v, g, b2):
        return b2 * v + g**2


@mistake("β1 and 1 - β1 are swapped")
class FirstTurned(Plain):
    def first(self, m, g, b1):
        return (1 - b1) * m + b1 * g


@mistake("v averages g² and not g")
class NotSquared(Plain):
    def second(self, v, g, b2):
        return b2 * v + (1 - b2) * g


@mistake("root of v is missing")
class NoRoot(Plain):
    def below(self, v, eps):
        return v + eps


@mistake("ε stands inside the root")
class EpsInside(Plain):
    def below(self, v, eps):
        return (v + eps).sqrt()


@mistake("ε is missing")
class NoEps(Plain):
    def below(self, v, eps):
        return v.sqrt()


@mistake("ε is always 1e-8")
class FixedEps(Plain):
    def below(self, v, eps):
        return v.sqrt() + 1e-8


@mistake("goes up the hill")
class Ascending(Plain):
    def move(self, p, change):
        p += change


@mistake("nothing is changed")
class LocalName(Plain):
    def move(self, p, change):
        p = p - change


@mistake("its average m")
class NoMomentum(Plain):
    def first(self, m, g, b1):
        return g


@mistake("leave it alone, decay included")
class DecaysAll(Plain):
    def without_gradient(self, p, group):
        p.data -= group["lr"] * group["weight_decay"] * p.data


@mistake("has `p.grad` None")
class NeedsGradients(Plain):
    def without_gradient(self, p, group):
        self.update(p, p.grad, self.state[p], group)


@mistake("Autograd watches the parameter")
class UnderAutograd(Plain):
    def move(self, p, change):
        with torch.enable_grad():
            p -= change


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


@mistake("read the learning rate there, each time")
class StoredRate(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        super().__init__(params, lr, betas, eps, weight_decay)
        self.rates = {p: group["lr"] for group in self.param_groups for p in group["params"]}

    def update(self, p, g, state, group):
        super().update(p, g, state, {**group, "lr": self.rates[p]})


@mistake("All groups get the settings of the first")
class StoredSettings(Plain):
    def update(self, p, g, state, group):
        super().update(p, g, state, self.param_groups[0])


@mistake("Only the first group is stepped")
class FirstGroup(Plain):
    def step(self, closure=None):
        groups, self.param_groups = self.param_groups, self.param_groups[:1]
        loss = super().step(closure)
        self.param_groups = groups
        return loss


@mistake("The learning rate is not in `param_groups`")
class EmptyDefaults(Plain):
    def __init__(self, params, lr, betas, eps, weight_decay):
        Optimizer.__init__(self, params, {})
        self.settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}

    def update(self, p, g, state, group):
        super().update(p, g, state, self.settings)


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


@mistake("Call the closure first")
class ClosureLast(Plain):
    def step(self, closure=None):
        super().step()
        return closure and closure()


@mistake("decay included")
class BothDecayAndGradient(DecaysAll):
    """The same again in another guise: gradients that are None count as zero."""

    def without_gradient(self, p, group):
        self.update(p, torch.zeros_like(p), self.state[p], group)


WRONG.append((torch.optim.Adam, "which is Adam with L2"))


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


@mistake("The first step, from averages of zero")  # and not a mistake that fits one case alone
class SecondBetaForM(Plain):
    def first(self, m, g, b1):
        beta = self.param_groups[0]["betas"][1]
        return beta * m + (1 - beta) * g


@mistake("Nothing is changed: `p = p - ...`")
class Rebound(LocalName):
    """Step and decay are both lost."""

    def decay(self, p, lr, weight_decay, corrected):
        p = p - lr * weight_decay * p


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
