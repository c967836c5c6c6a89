import csv
import math
from pathlib import Path

import numpy
import pytest
import torch

from workbook import config
from workbook.study.verbs import check


def losses(rate, steps=10, first=24.0, factor=None):
    """The losses of a run, by a factor of the weights or by the right one."""
    factor = factor or (lambda t: 1 - 0.02 * rate / math.sqrt(t + 1))
    found = [first]
    for t in range(steps - 1):
        found.append(found[-1] * factor(t) ** 2)
    return found


def run(rate, steps=10):
    """The losses of the real toy."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.nn.Parameter(5 * torch.randn((10, 10), generator=generator))
    found = []
    for t in range(steps):
        weights.grad = None
        loss = (weights**2).mean()
        found.append(loss.item())
        loss.backward()
        weights.data -= rate / math.sqrt(t + 1) * weights.grad
    return found


@pytest.mark.parametrize(
    "attempt",
    [
        run(10),
        run(100),
        run(1000),
        run(1000, 30),
        losses(100)[1:],
        [round(loss, 2) for loss in run(100)],
        tuple(run(10)),
        torch.tensor(run(100)),
        numpy.array(run(10)),
        [run(10), run(100), run(1000)],
        {10: run(10), 100: run(100), 1000: run(1000)},
        {"lr=1e1": run(10), "lr=1e3": torch.tensor(run(1000))},
        {1.0: run(1), 10.0: run(10), 100.0: run(100)},
        {10: run(10)[-1], 100: run(100)[-1], 1000: run(1000)[-1]},
    ],
)
def test_the_losses_of_the_toy_are_recognised(attempt):
    report = check("learning_rate_tuning", attempt)
    assert report.status == "correct", report


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        ({10: run(100)}, "These are the losses with 100"),
        (
            {100: losses(100, first=100 * 24.0, factor=lambda t: 1 - 200 / math.sqrt(t + 1))},
            "a sum",
        ),
        (losses(10, factor=lambda t: 0.8), "does not shrink"),
        ({10: losses(10, factor=lambda t: 1 - 0.2 / (t + 1))}, "root is missing"),
        (losses(1000, factor=lambda t: 1 - 20 / math.sqrt(t + 2)), "yours begins at 1"),
        ({10: losses(10, factor=lambda t: 1 + 0.2 / math.sqrt(t + 1))}, "up the hill"),
        ({100: losses(100, first=0.01 * 1e5)}, "not drawn anew"),
        (losses(10, first=1.0), "lack the factor 5"),
        ({1000: 0.0}, "the loss grows"),
        ({100: 25.0}, "the loss never rises"),
        ([5.0, 7.0, 2.0, 9.0], "none of the three runs"),
    ],
)
def test_other_losses_are_refused_with_the_slip(attempt, words):
    report = check("learning_rate_tuning", attempt)
    assert report.status == "wrong" and words in report.message, report


@pytest.mark.parametrize(
    "attempt",
    [
        "lr = 10 decays slowly, 100 falls to about zero, 1000 diverges.",
        "It diverges at 1000, and decays at 10.",
        "1e1, 1e2 and 1e3: falls, stays then falls, grows",
        "At 100 it reaches zero, but at a larger rate it diverges.",
        "With lr=100 the loss does not rise: it keeps still for one step, then vanishes.",
        "The loss of 1e3 explodes within ten steps; 1e2 converges fastest; 1e1 is slower.",
        {10: "falls", 100: "zero after 4 steps", 1000: "grows"},
    ],
)
def test_right_words_about_the_toy_are_read(attempt):
    report = check("learning_rate_tuning", attempt)
    assert report.status == "read" and len(report.facts) == 3, report


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        ("With lr = 100 the loss diverges.", "never rises"),
        ("lr=100 bounces back at the end", "never rises"),
        ("10 decays; 100 decays; 1,000 converges in one step", "goes on growing"),
        ("With 1e1 the loss explodes.", "the loss only falls"),
        ({1000: "decays quickly"}, "goes on growing"),
    ],
)
def test_wrong_words_about_the_toy_are_refused(attempt, words):
    report = check("learning_rate_tuning", attempt)
    assert report.status == "wrong" and words in report.message, report


@pytest.mark.parametrize("attempt", [None, ..., "", 3.2, [], [25.0], {}, {"a": 3}, [1, "x"]])
def test_what_says_nothing_of_the_toy_is_not_refused_as_an_answer(attempt):
    report = check("learning_rate_tuning", attempt)
    assert report.status == "not attempted" or "cannot be read" in report.message, report


def test_the_training_script_is_not_judged_but_facts_are_offered():
    def train(config, data):
        raise AssertionError("it must not be run")

    for attempt in (train, math, Path("train.py"), "python train.py --lr 1e-3", print):
        report = check("training_together", attempt)
        assert report.status == "read" and len(report.facts) >= 4
        assert "No check can judge a training script" in report.message


def test_a_training_script_that_is_not_written_is_not_attempted():
    def passing(config): ...

    def raising(config):
        """With a docstring."""
        raise NotImplementedError

    for attempt in (None, ..., "", passing, raising):
        assert check("training_together", attempt).status == "not attempted"
    assert check("training_together", 3).status == "wrong"


@pytest.mark.parametrize("attempt", [256, 300, list(range(256)), tuple(range(400))])
def test_a_text_that_is_long_enough_is_accepted(attempt):
    assert check("generate", attempt).status == "correct"


@pytest.mark.parametrize(
    "attempt",
    [
        "Once upon a time there was a cat. It is fluent; temperature and training time matter.",
        "A sample of 300 tokens: fluent at first, the first 60 tokens above all.",
        "It wrote 60 tokens and ended the story itself, with <|endoftext|>.",
    ],
)
def test_words_about_a_text_are_read(attempt):
    report = check("generate", attempt)
    assert report.status == "read" and any("two things" in fact for fact in report.facts)


@pytest.mark.parametrize("attempt", [60, list(range(60)), "a sample of 60 tokens"])
def test_a_text_that_is_too_short_is_refused(attempt):
    report = check("generate", attempt)
    assert report.status == "wrong" and "too short" in report.message


@pytest.mark.parametrize("problem", ["learning_rate_tuning", "generate"])
def test_what_write_ups_claimed_is_judged_as_recorded(problem):
    path = config.repository() / "data" / "reported" / "claims.csv"
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["problem"] == problem]
    for row in rows:
        status = check(problem, row["claimed"], row["part"]).status
        assert (status == "wrong") == (row["verdict"] in ("wrong", "incomplete")), row
