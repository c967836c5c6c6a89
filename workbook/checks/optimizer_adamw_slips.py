"""The mistakes that are made in each stage of AdamW, each with its name."""

from collections.abc import Callable

from workbook.checks.optimizer_adamw_reference import into_the_gradient, root
from workbook.checks.optimizer_values import quotient
from workbook.checks.text_variants import Variant


def _forgets(*names: str) -> Callable[[dict], dict]:
    def remember(state: dict) -> dict:
        zeros = {"t": 0} | {name: [0.0] * len(state["m"]) for name in "mv"}
        return state | {name: zeros[name] for name in names}

    return remember


DECOUPLED = "AdamW's decay is kept apart from the gradient: θ ← θ - α λ θ, beside the step. "
CORRECTION = "Both averages start at 0, so the rate of step t is α √(1 - β2ᵗ) / (1 - β1ᵗ): "
SLIPS = (
    Variant("decay", lambda p, g, lr, a, d: (p, g), DECOUPLED + "Yours has no decay."),
    Variant(
        "decay",
        into_the_gradient,
        DECOUPLED + "Yours adds λ θ to the gradient, which is Adam with L2: then the decay is "
        "divided by √v like everything else.",
    ),
    Variant(
        "decay",
        lambda p, g, lr, a, d: (p * (1 - d), g),
        DECOUPLED + "Yours is not multiplied by the learning rate α.",
    ),
    Variant(
        "decay",
        lambda p, g, lr, a, d: (p * (1 - a * d), g),
        DECOUPLED + "Yours takes the corrected rate α_t for it, and it is the plain α.",
    ),
    Variant(
        "decay",
        lambda p, g, lr, a, d: (p * (1 + lr * d), g),
        DECOUPLED + "Yours makes the parameters grow: the sign is wrong.",
    ),
    Variant(
        "decay",
        lambda p, g, lr, a, d: (p * (1 - lr * lr * d), g),
        DECOUPLED + "Yours is multiplied by the learning rate twice.",
    ),
    Variant(
        "decay",
        lambda p, g, lr, a, d: (p * (1 - lr * d) ** 2, g),
        DECOUPLED + "Yours is applied twice.",
    ),
    Variant(
        "settings",
        lambda lr, betas, eps, decay: (lr, betas[::-1], eps, decay),
        "The two betas are swapped: β1 belongs to m, β2 to v.",
    ),
    Variant(
        "settings",
        lambda lr, betas, eps, decay: (lr, (0.9, 0.999), eps, decay),
        "The betas are always 0.9 and 0.999: take those that were handed in.",
    ),
    Variant(
        "settings",
        lambda lr, betas, eps, decay: (lr, (0.9, 0.95), eps, decay),
        "The betas are always 0.9 and 0.95: take those that were handed in.",
    ),
    Variant(
        "settings",
        lambda lr, betas, eps, decay: (1e-3, betas, eps, decay),
        "The learning rate is always 0.001: take the one that was handed in.",
    ),
    Variant(
        "settings",
        lambda lr, betas, eps, decay: (lr, betas, 1e-8, decay),
        "ε is always 1e-8: take the one that was handed in.",
    ),
    Variant(
        "settings",
        lambda lr, betas, eps, decay: (lr, betas, eps, 0.01),
        "The weight decay is always 0.01: take the one that was handed in.",
    ),
    Variant(
        "correct",
        lambda s, c: 1.0,
        CORRECTION + "there is no bias correction in yours.",
    ),
    Variant("correct", lambda s, c: quotient(1.0, c), CORRECTION + "only m is corrected."),
    Variant("correct", lambda s, c: s, CORRECTION + "only v is corrected."),
    Variant(
        "correct",
        lambda s, c: quotient(s * s, c),
        CORRECTION + "the root over 1 - β2ᵗ is missing.",
    ),
    Variant("correct", lambda s, c: quotient(c, s), CORRECTION + "yours is upside down."),
    Variant(
        "correct",
        lambda s, c: quotient(root(c), s * s),
        CORRECTION + "in yours β1 and β2 have changed places.",
    ),
    Variant("count", lambda own, calls: own - 1, "t begins at 0: the first step is t = 1."),
    Variant("count", lambda own, calls: own + 1, "t is one too large: the first step is t = 1."),
    Variant("count", lambda own, calls: 1, "t stays 1: it counts the steps."),
    Variant(
        "count",
        lambda own, calls: calls,
        "t goes up for each parameter: it must count steps, so keep it with each parameter's "
        "state.",
    ),
    Variant(
        "keep",
        lambda rate, lr, corrected: (corrected, lr),
        "The corrected rate α_t is written over α, so the next parameter's is corrected twice.",
    ),
    Variant(
        "keep",
        lambda rate, lr, corrected: (corrected, corrected),
        "The corrected rate α_t is written over α, and so the corrections pile up from step to "
        "step.",
    ),
    Variant(
        "owner",
        lambda parameter: 0,
        "All parameters share one m and one v: each needs its own, in self.state[p].",
    ),
    Variant(
        "remember",
        _forgets("t", "m", "v"),
        "Each step begins with an empty state: m, v and t must outlast the step, in self.state[p].",
    ),
    Variant(
        "schedule",
        lambda rates, step: rates[0],
        "A schedule sets `group['lr']` in `param_groups` before each step: read the rate there, "
        "each time, and not from an attribute that `__init__` stored.",
    ),
    Variant(
        "resume",
        _forgets("t", "m", "v"),
        "`state_dict` does not hold m, v and t: keep them in `self.state[p]`, and not in lists or "
        "dicts of your own, or a run that is resumed begins anew.",
    ),
    Variant(
        "resume",
        _forgets("t"),
        "`state_dict` does not hold t: keep it in `self.state[p]` too, not on `self`.",
    ),
    Variant(
        "resume",
        _forgets("m", "v"),
        "`state_dict` does not hold m and v: keep them in `self.state[p]`.",
    ),
    Variant(
        "remember",
        _forgets("m", "v"),
        "m and v begin at zero in each step: write the new ones back to self.state[p].",
    ),
    Variant("remember", _forgets("m"), "m begins at zero in each step: write it back."),
    Variant("remember", _forgets("v"), "v begins at zero in each step: write it back."),
    Variant("first", lambda m, g, beta: beta * m + g, "m lacks the factor 1 - β1 of the gradient."),
    Variant(
        "first",
        lambda m, g, beta: (1 - beta) * m + beta * g,
        "In m, β1 and 1 - β1 are swapped: β1 keeps the old.",
    ),
    Variant("first", lambda m, g, beta: g, "The step takes g itself, not its average m."),
    Variant(
        "second", lambda v, g, beta: beta * v + g * g, "v lacks the factor 1 - β2 of the square."
    ),
    Variant(
        "second",
        lambda v, g, beta: (1 - beta) * v + beta * g * g,
        "In v, β2 and 1 - β2 are swapped: β2 keeps the old.",
    ),
    Variant(
        "second",
        lambda v, g, beta: beta * v + (1 - beta) * g,
        "v averages g² and not g: square it.",
    ),
    Variant(
        "second",
        lambda v, g, beta: beta * v + (1 - beta) * abs(g),
        "v averages g² and not |g|: square it.",
    ),
    Variant("root", lambda v, eps, e, s: v / e + eps * e, "The root of v is missing."),
    Variant(
        "root",
        lambda v, eps, e, s: root(v + eps * e * e),
        "ε stands inside the root, and belongs outside: √v + ε.",
    ),
    Variant(
        "root",
        lambda v, eps, e, s: root(v),
        "ε is missing: it keeps a gradient of 0 from being divided by 0.",
    ),
    Variant(
        "root",
        lambda v, eps, e, s: root(v) - eps * e,
        "ε is subtracted, and belongs added: √v + ε.",
    ),
    Variant(
        "move",
        lambda theta, change: theta + change,
        "The step goes up the hill: subtract it.",
    ),
    Variant("move", lambda theta, change: theta, "The step is worked out, but nothing is changed."),
    Variant(
        "missing",
        lambda size: (0.0,) * size,
        "A parameter without gradient took no part in this loss: leave it alone, decay included.",
    ),
)
