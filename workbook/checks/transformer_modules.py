"""How a check makes a learner's module, fills in weights and calls it."""

import inspect
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.tensors import alike
from workbook.checks.transformer_functions import QUICK, copied
from workbook.checks.transformer_gradients import check_gradients
from workbook.checks.transformer_trial import NO_INIT, Case, Topic, check_cases, failure_words
from workbook.checks.transformer_weights import fill, layouts
from workbook.checks.verdicts import (
    NotAttempted,
    Words,
    Wrong,
    call,
    expect_class,
    is_stub,
    kind_of,
)


class Learner:
    """The learner's class; each case gets a module of its own."""

    def __init__(self, attempt: type, topic: Topic):
        self.attempt = attempt
        self.topic = topic
        self.layout = 0  # which of several ways to fill in weights was the right one last
        self.module: nn.Module | None = None  # the last one
        self.remarks: list[str] = []

    def make(self, *arguments: Any, **named: Any) -> nn.Module:
        """A module. Raises `Wrong` or `NotAttempted` like `base.call`."""
        try:
            module = call(self.attempt, *arguments, seconds=QUICK, **named)
        except Wrong as failure:
            if "before Module.__init__" in failure_words(failure):
                failure.mistake = NO_INIT
            raise
        if not isinstance(module, nn.Module):
            raise Wrong(
                "It is no module of torch.",
                expected=Words("a class that inherits from `torch.nn.Module`"),
                got=Words(kind_of(self.attempt)),
            )
        if "_parameters" not in vars(module):
            raise Wrong("It is no complete module of torch.", mistake=NO_INIT)
        devices = {parameter.device.type for parameter in module.parameters()} - {"cpu"}
        if devices:
            raise Wrong(
                "The parameters are not where torch puts tensors by default.",
                expected=Words("on the CPU"),
                got=Words(f"on {devices.pop()}"),
                mistake="Make them on the `device` that the constructor is given; None is fine.",
            )
        return module.eval()

    def __call__(self, case: Case) -> Any:
        """What the module of a case returns."""
        self.module = module = self.make(*case.arguments)
        if case.weights or any(True for _ in module.parameters()):
            self._fill(module, case)
        for parameter in module.parameters():
            parameter.data = parameter.data.to(case.dtype)
        return self.run(module, case)

    def run(self, module: nn.Module, case: Case) -> Any:
        """What a module makes of copies of the inputs of a case."""
        inputs = {name: copied(value) for name, value in case.inputs.items()}
        given, named = _fitting(module, inputs, case)
        return call(module, *given, seconds=QUICK, given=Words(str(case)), **named)

    def _fill(self, module: nn.Module, case: Case) -> None:
        try:
            ways = layouts(module, case.weights, case.heads)
        except Wrong:
            # A skeleton has no parameters yet, and should not be told so.
            if not any(True for _ in module.parameters()) and self.run(module, case) is None:
                raise NotAttempted(
                    "`forward` returned None: is a `return` still to write?"
                ) from None
            raise
        if len(ways) > 1:
            asked = self.topic.expected(case)
            order = sorted(range(len(ways)), key=lambda i: i != self.layout)
            self.layout = next(
                (i for i in order if self._gives(module, ways[i], case, asked)), self.layout
            )
        fill(module, ways[self.layout if self.layout < len(ways) else 0])

    def _gives(self, module: nn.Module, way: dict[str, Tensor], case: Case, asked: Tensor) -> bool:
        fill(module, way)
        try:
            return alike(self.run(module, case), asked)
        except (Wrong, NotAttempted, TypeError, AttributeError):
            return False


def _fitting(module: nn.Module, inputs: dict, case: Case) -> tuple[list, dict]:
    """The inputs by place and by name; where a block takes positions, these too.

    What has its name in the signature, behind the first, is given by name: its place may differ.
    Raises: Wrong where it takes other arguments, in clearer words than torch's own error.
    """
    if is_stub(type(module).forward):
        raise NotAttempted("`forward` is still to write.")
    given, named = [*inputs.values()], {}
    if type(module).__call__ is not nn.Module.__call__:
        return given, named
    try:
        signature = inspect.signature(module.forward)
    except Exception:
        return given, named
    parameters = list(signature.parameters)
    if case.counted and any("pos" in name for name in parameters[1:2]):
        return [*given, torch.arange(given[0].shape[-2])], named
    nameable = {
        name
        for name, parameter in list(signature.parameters.items())[1:]
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    first, *others = inputs
    if nameable.issuperset(others):
        given, named = [inputs[first]], {name: inputs[name] for name in others}
    try:
        signature.bind(*given, **named)
        return given, named
    except TypeError as error:
        raise Wrong(
            "`forward` cannot be called with the arguments that the problem names.",
            given=str(case),
            got=Words(f"a signature of {signature}: {error}"),
        ) from error


def check_module(attempt: Any, topic: Topic, signature: str, gradients: Case) -> Learner:
    """The learner, if all is right; raises `Wrong` for the first case that is not."""
    expect_class(attempt, signature)
    if "__init__" in vars(attempt) and is_stub(attempt.__init__):
        raise NotAttempted("`__init__` is still to write.")
    learner = Learner(attempt, topic)
    check_cases(learner, topic)
    learner.remarks += check_gradients(
        learner, topic.graph, gradients, lambda: _parameters(learner)
    )
    return learner


def _parameters(learner: Learner) -> Iterable[tuple[str, Tensor]]:
    return learner.module.named_parameters()


def module_remarks(learner: Learner) -> list[str]:
    """Remarks on what is torch's own, and on `dtype`; raises `Wrong` for what should be written."""
    case = learner.topic.cases[0]
    learner(case)
    module = learner.module
    remarks = list(learner.remarks)
    expect_from_scratch(lambda: learner.run(module, case), list(module.modules()))
    if "dtype" in inspect.signature(learner.attempt).parameters and case.weights:
        try:
            made = learner.make(*case.arguments, dtype=torch.float64)
            kinds = {parameter.dtype for parameter in made.parameters()}
        except Wrong:
            return [*remarks, "It fails when `dtype=torch.float64` is given."]
        if kinds != {torch.float64}:
            remarks.append("`dtype` is accepted, but not every parameter gets it.")
    return remarks
