"""AdamW in plain Python numbers, stage by stage, so that one stage can be done wrongly.

Two forms are right, each with the decay before or after the step. ε is added to √v, and the
corrections stand in the learning rate (the handout); or it is added to √(v / (1 - β2ᵗ)) (torch).
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from workbook.checks.optimizer_values import quotient
from workbook.checks.text_variants import Variant, stages

Values = tuple[float, ...]
ALMOST_NONE = 1e-7  # a weight decay that changes nothing that float32 can tell; 0 may be refused


class Case(NamedTuple):
    """Parameters, their gradients at each step, and the settings."""

    parameters: tuple[Values, ...]
    gradients: tuple[tuple[Values | None, ...], ...]  # by step, then by parameter
    weight_decay: float = ALMOST_NONE
    lr: float = 0.1
    betas: tuple[float, float] = (0.8, 0.96)
    eps: float = 1e-8
    rates: Values = ()  # of each step, set in `param_groups`, where a schedule changes it
    resumed: int | None = None  # after how many steps a new optimizer loads the state of the old


class Form(NamedTuple):
    """One of the right ways to write the algorithm."""

    torch_eps: bool
    decay_first: bool


FORMS = tuple(Form(eps, first) for eps in (False, True) for first in (False, True))

# `s` is √(1 - β2ᵗ), `c` is 1 - β1ᵗ; ε counts `e` times: 1 in the handout's form, `s` in torch's.
RIGHT: dict[str, Callable] = {
    "settings": lambda lr, betas, eps, decay: (lr, betas, eps, decay),
    "schedule": lambda rates, step: rates[step],
    "resume": lambda state: state,
    "missing": lambda size: None,
    "owner": lambda parameter: parameter,
    "remember": lambda state: state,
    "count": lambda own, calls: own,
    "first": lambda m, g, beta: beta * m + (1 - beta) * g,
    "second": lambda v, g, beta: beta * v + (1 - beta) * g * g,
    "correct": lambda s, c: quotient(s, c),
    "keep": lambda rate, lr, corrected: (rate, lr),
    "root": lambda v, eps, e, s: root(v) + eps * e,
    "move": lambda theta, change: theta - change,
    "decay": lambda theta, g, lr, corrected, decay: (theta * (1 - lr * decay), g),
}


def root(x: float) -> float:
    """√x as a tensor has it: NaN for what has no root."""
    return math.sqrt(x) if x >= 0 else math.nan


def into_the_gradient(theta: float, g: float, lr: float, corrected: float, decay: float):
    """Adam with L2: the decay joins the gradient, and so both moments."""
    return theta, g + decay * theta


@lru_cache(maxsize=4096)
def after_steps(case: Case, form: Form, variants: tuple[Variant, ...] = ()) -> list[float]:
    """All parameters after the last step, one after the other."""
    do = stages(RIGHT, variants)
    settings = do["settings"](case.lr, case.betas, case.eps, case.weight_decay)
    lr, (beta1, beta2), eps, weight_decay = settings
    thetas = [list(values) for values in case.parameters]
    states: dict[int, dict] = {}
    calls = 0
    for step, gradients in enumerate(case.gradients):
        if step == case.resumed:
            states = {i: do["resume"](state) for i, state in states.items()}
        rate = lr = do["schedule"](case.rates, step) if case.rates else lr
        for i, theta in enumerate(thetas):
            gradient = gradients[i] or do["missing"](len(theta))
            if gradient is None:
                continue
            calls += 1
            empty = {"t": 0, "m": [0.0] * len(theta), "v": [0.0] * len(theta)}
            state = do["remember"](states.get(do["owner"](i), empty))
            state["t"] += 1
            states[do["owner"](i)] = state
            t = do["count"](state["t"], calls)
            s, c = root(1 - beta2**t), 1 - beta1**t
            corrected = rate * do["correct"](s, c)
            for j, g in enumerate(gradient):
                first = form.decay_first or do["decay"] is into_the_gradient
                if first:
                    theta[j], g = do["decay"](theta[j], g, rate, corrected, weight_decay)
                state["m"][j] = do["first"](state["m"][j], g, beta1)
                state["v"][j] = do["second"](state["v"][j], g, beta2)
                below = do["root"](state["v"][j], eps, s if form.torch_eps else 1.0, s)
                theta[j] = do["move"](theta[j], corrected * quotient(state["m"][j], below))
                if not first:
                    theta[j], g = do["decay"](theta[j], g, rate, corrected, weight_decay)
            rate, lr = do["keep"](rate, lr, corrected)
    return [value for theta in thetas for value in theta]
