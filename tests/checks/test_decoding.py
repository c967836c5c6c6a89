from itertools import combinations

import pytest
import torch
from attempts import decoding as attempts

from workbook.checks import verdicts
from workbook.checks.decoding import (
    CHAIN_SLIPS,
    CHAINS,
    CHOICE_SLIPS,
    CHOICES,
    SHARES,
    Choice,
    Sure,
    Undecided,
    probabilities,
    written,
)
from workbook.study.verbs import check


@pytest.mark.parametrize("solution", attempts.RIGHT)
def test_a_right_function_is_accepted(solution):
    report = check("decoding", solution)
    assert report.status == "correct", report


@pytest.mark.parametrize(("wrong", "words"), attempts.WRONG)
def test_a_mistake_is_called_by_its_name(wrong, words):
    report = check("decoding", wrong)
    assert report.status == "wrong" and words in report.message, report


def test_what_the_course_leaves_open_is_told_but_not_refused():
    message = check("decoding", attempts.with_numpy).message
    assert "torch.no_grad()" in message and "left in `eval()`" in message
    no_window = attempts.changed("ids[:, -model.context_length :]", "ids")
    assert "show it the last ones" in check("decoding", no_window).message
    assert "seeded inside" in check("decoding", attempts.seeded).message
    assert "Worth knowing" not in check("decoding", attempts.masked_logits).message


def test_what_is_not_written_yet_is_not_attempted():
    def raising(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
        raise NotImplementedError

    def passing(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
        """Only a docstring."""

    def begun(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
        torch.tensor([prompt_ids])

    for attempt in (None, ..., raising, passing, begun):
        assert check("decoding", attempt).status == "not attempted"


def test_what_hangs_is_stopped(monkeypatch):
    monkeypatch.setitem(verdicts.call.__kwdefaults__, "seconds", 0.5)

    def hanging(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
        while True:
            pass

    report = check("decoding", hanging)
    assert report.status == "wrong" and "stopped after" in report.message


def test_the_models_say_what_the_reference_expects():
    for case in CHAINS:
        model, ids = Sure(case.context_length), list(case.prompt)
        for token in written(case):
            seen = torch.tensor([ids[-case.context_length :]])
            assert model(seen)[0, -1].argmax() == token
            ids.append(token)
    shares = Undecided()(torch.tensor([[1, 2]])).softmax(-1)
    torch.testing.assert_close(shares[0, 1], torch.tensor(SHARES))
    assert sum(SHARES) == pytest.approx(1)


def test_probabilities_are_those_of_the_course():
    shares = torch.tensor(SHARES, dtype=torch.float64)
    expected = (shares.log() / 0.4).softmax(-1)
    assert probabilities(Choice(temperature=0.4)) == pytest.approx(expected.tolist())
    first, second = 0.21, 0.18  # the smallest set that reaches 0.3
    kept = probabilities(Choice(top_p=0.3))
    assert kept[1] == pytest.approx(first / (first + second)) and kept[3] == pytest.approx(
        second / (first + second)
    )
    assert sum(share > 0 for share in kept) == 2


def test_each_known_mistake_shows_and_no_two_look_alike():
    for slips, outcome in (
        (CHAIN_SLIPS, lambda *slip: [written(case, slip) for case in CHAINS]),
        (CHOICE_SLIPS, lambda *slip: [probabilities(case, slip) for case in CHOICES]),
    ):
        seen = {repr(outcome()): "the right way"}
        for slip in slips:
            assert repr(outcome(slip)) not in seen, (slip, seen[repr(outcome(slip))])
            seen[repr(outcome(slip))] = slip


def test_two_mistakes_together_can_be_worked_out():
    for slips, cases, outcome in (
        (CHAIN_SLIPS, CHAINS, written),
        (CHOICE_SLIPS, CHOICES, probabilities),
    ):
        for two in combinations(slips, 2):
            if two[0].stage != two[1].stage:
                assert all(isinstance(outcome(case, two), list) for case in cases)
