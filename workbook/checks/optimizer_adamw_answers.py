"""A learner's AdamW at work: made, given gradients, stepped, saved and loaded."""

import copy
import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, equal, nn  # `equal` by name: an attempt may replace torch's

from workbook.checks.optimizer_adamw_reference import FORMS, Case, Values, after_steps
from workbook.checks.optimizer_values import Outcome, row, same
from workbook.checks.text_variants import Variant
from workbook.checks.verdicts import Words, Wrong, call

# The first optimizer of a process loads the compiler of torch, which takes seconds: no learner's
# call is to be stopped for that.
torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)

# A piece of an error's text, and what it usually comes from.
ERRORS = {
    r"leaf Variable|view of a leaf": "Autograd watches the parameter. Change it without autograd: "
    "`p.data`, or all of the step under `torch.no_grad()`.",
    r"empty parameter list": "`params` is used up before it reaches `super().__init__`: it may be "
    "a generator, as `model.parameters()` is. Hand it on as it came.",
    r"ZeroDivisionError|division by zero": "t begins at 1: with t = 0 both corrections are zero.",
    r"no attribute '(?:param_groups|state|defaults|_\w+)'": "Call `super().__init__(params, "
    "defaults)`, with a dict of the settings: it makes `param_groups` and `state`.",
    r"KeyError": "Before the first step `self.state[p]` is an empty dict: put zeros for m and v, "
    "and t, into it.",
    r"NoneType": "A parameter that took no part in the loss has `p.grad` None: skip it.",
}


class Learner:
    """The learner's class. `notes` is what to tell of a solution that is right all the same."""

    def __init__(self, attempt: type):
        self.attempt = attempt
        self.lr_key, self.decay_key = "lr", "weight_decay"
        self.notes: list[str] = []

    def make(self, params: Any, case: Case, shown: Words) -> Any:
        """An optimizer. The settings go by name where that binds, else by position."""
        settings = {
            "lr": case.rates[0] if case.rates else case.lr,
            "betas": case.betas,
            "eps": case.eps,
            "weight_decay": case.weight_decay,
        }
        try:
            inspect.signature(self.attempt).bind(params, **settings)
        except (TypeError, ValueError):
            return call(self.attempt, params, *settings.values(), given=shown)
        return call(self.attempt, params, **settings, given=shown)

    def run(self, case: Case) -> list[float]:
        """The parameters after the steps of a case."""
        shown = described(case)
        thetas = [parameter(values) for values in case.parameters]
        # A generator, as `model.parameters()` is.
        optimizer = self.make((theta for theta in thetas), case, shown)
        for i, gradients in enumerate(case.gradients):
            if i == case.resumed:
                state = copy.deepcopy(call(optimizer.state_dict, given=shown))
                thetas = [parameter(theta.tolist()) for theta in thetas]
                optimizer = self.make(thetas, case, shown)
                call(optimizer.load_state_dict, state, given=shown)
            if case.rates:
                for group in optimizer.param_groups:
                    group[self.lr_key] = case.rates[i]
            step(optimizer, thetas, gradients, shown)
        return numbers(thetas)

    def outcome(self, case: Case) -> Outcome:
        """What becomes of a case; an error is told with what it usually comes from."""
        try:
            got = self.run(case)
        except Wrong as failure:
            said = dict(failure.rows).get("got", "")
            known = (words for piece, words in ERRORS.items() if re.search(piece, said))
            failure.mistake = failure.mistake or next(known, None)
            return Outcome(case, "error", False, failure)
        return Outcome(case, got, any(same(got, right) for right in predicted(case)))


def parameter(values: Iterable[float]) -> nn.Parameter:
    """A float32 parameter on the CPU, whatever the defaults of torch are."""
    return nn.Parameter(torch.tensor(list(values), dtype=torch.float32, device="cpu"))


def step(
    optimizer: Any,
    thetas: Sequence[nn.Parameter],
    gradients: Sequence[Values | None],
    shown: Words,
) -> None:
    """Take one step with these gradients. Raises: Wrong where they are rewritten."""
    for theta, gradient in zip(thetas, gradients, strict=True):
        theta.grad = None if gradient is None else parameter(gradient).detach()
    before = [theta.grad if theta.grad is None else theta.grad.clone() for theta in thetas]
    call(optimizer.step, given=shown)
    for theta, old in zip(thetas, before, strict=True):
        # A step that clears gradients spoils nothing. One that rewrites them spoils what is
        # accumulated or logged.
        cleared = theta.grad is None or not theta.grad.any()
        if old is not None and not cleared and not equal(theta.grad, old):
            raise Wrong(
                "The step rewrote a gradient.",
                given=shown,
                expected=Words(f"p.grad = {row(numbers([old]))} as before"),
                got=Words(f"p.grad = {row(numbers([theta.grad]))}"),
                mistake="`grad` is the parameter's own tensor: `grad += ...` or `grad.mul_(...)` "
                "writes into it. Make a new tensor; and keep the decay out of the gradient.",
            )


def numbers(tensors: Sequence[Tensor]) -> list[float]:
    """All the numbers of some tensors, one after the other."""
    return [float(value) for tensor in tensors for value in tensor.detach().flatten()]


def predicted(case: Case, variants: tuple[Variant, ...] = ()) -> list[list[float]]:
    """What each of the right forms makes of a case, or would make with these mistakes."""
    return [after_steps(case, form, variants) for form in FORMS]


def described(case: Case) -> Words:
    """The case as code, with the gradients of each step."""
    names = ["p"] if len(case.parameters) == 1 else [f"p{i}" for i in range(len(case.parameters))]
    values = "; ".join(f"{n} = {list(v)}" for n, v in zip(names, case.parameters, strict=True))
    settings = f"betas={case.betas}, eps={case.eps}, weight_decay={case.weight_decay}"
    lines = [f"{values}; AdamW([{', '.join(names)}], lr={case.lr}, {settings})"]
    for i, gradients in enumerate(case.gradients):
        grads = [f"{n}.grad = {g and list(g)}" for n, g in zip(names, gradients, strict=True)]
        before = f"group['lr'] = {case.rates[i]}; " if case.rates else ""
        if i == case.resumed:
            before = "a new AdamW loads the state_dict of this one; "
        lines.append(f"step {i + 1}: {before}{'; '.join(grads)}")
    return Words("\n".join(lines))
