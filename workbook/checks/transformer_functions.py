"""How a check calls a learner's function of tensors: softmax, attention, the loss."""

from collections.abc import Callable
from typing import Any

from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.tensors import alike, copied
from workbook.checks.transformer_gradients import check_gradients
from workbook.checks.transformer_trial import Case, Topic, check_cases
from workbook.checks.verdicts import Words, call

QUICK = 5.0  # seconds that a call with a few numbers may take


def called(attempt: Callable) -> Callable[[Case], Any]:
    """A function of a case: what the learner's function makes of copies of its inputs."""

    def run(case: Case) -> Any:
        inputs = [copied(value) for value in case.inputs.values()]
        return call(attempt, *inputs, seconds=QUICK, given=Words(str(case)))

    return run


def check_function(attempt: Callable, topic: Topic, gradients: Case) -> list[str]:
    """Raise `Wrong` unless all is right; remarks on what the course leaves open."""
    run = called(attempt)
    check_cases(run, topic)
    remarks = check_gradients(run, topic.graph, gradients)
    expect_from_scratch(lambda: run(topic.cases[0]), [attempt])
    return remarks


def open_question(run: Callable[[Case], Any], topic: Topic, case: Case, remark: str) -> list[str]:
    """The remark where a case goes wrong that the course does not ask for."""
    try:
        result = run(case)
        if alike(result, topic.expected(case), 0.02) and result.dtype == case.dtype:
            return []
    except Exception:
        pass
    return [remark]


def praise(sentence: str, remarks: list[str]) -> str:
    """What is said of a right attempt."""
    return " ".join([sentence, *(["Worth knowing:"] if remarks else []), *remarks])
