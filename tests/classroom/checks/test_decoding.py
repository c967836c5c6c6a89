import pytest
import torch
from attempts import decoding as attempts

from workbook.classroom.checks.decoding import (
    SHARES,
    Request,
    probabilities,
    sure,
    undecided,
    written,
)
from workbook.classroom.study.verbs import check
from workbook.generation.generate import decode


@pytest.mark.parametrize("solution", attempts.RIGHT)
def test_a_right_function_is_accepted(solution, judged_here):
    report = check("decoding", solution)
    assert report.status == "correct", report


@pytest.mark.parametrize(("wrong", "words"), attempts.WRONG)
def test_a_mistake_is_called_by_its_name(wrong, words, judged_here):
    report = check("decoding", wrong)
    assert report.status == "wrong" and words in report.message, report


def test_what_asks_the_tokenizer_for_more_than_it_has_is_not_judged():
    report = check("decoding", attempts.by_other_names)
    assert report.status == "not attempted" and "has no `to_numbers`" in report.claim


def test_what_a_longer_text_or_a_larger_model_would_show_is_told_but_not_refused():
    assert "torch.no_grad()" in check("decoding", attempts.with_numpy).message
    no_window = attempts.changed("ids[:, -model.context_length :]", "ids")
    assert "give it only the last ones" in check("decoding", no_window).message
    assert "Worth knowing" not in check("decoding", attempts.masked_logits).message


def test_what_hurts_a_second_call_is_almost_right():
    for attempt, words in ((attempts.seeded, "seeded inside"), (attempts.appends, "copy it")):
        report = check("decoding", attempt)
        assert report.status == "almost" and words in report.message, report


def test_the_models_say_what_the_reference_expects():
    model, ids = sure(5), [3, 1, 4, 2]
    for token in written(Request((3, 1, 4, 2), 5)):
        assert model(torch.tensor([ids]))[0, -1].argmax() == token
        ids.append(token)
    shares = undecided()(torch.tensor([[1, 2]])).softmax(-1)
    torch.testing.assert_close(shares[0, 1], torch.tensor(SHARES))
    assert sum(SHARES) == pytest.approx(1)


def test_probabilities_are_those_of_the_course():
    shares = torch.tensor(SHARES, dtype=torch.float64)
    expected = (shares.log() / 0.4).softmax(-1)
    assert probabilities(Request(temperature=0.4)) == pytest.approx(expected.tolist())
    first, second = 0.27, 0.2  # the smallest set that reaches 0.3
    kept = probabilities(Request(top_p=0.3))
    assert kept[0] == pytest.approx(first / (first + second)) and kept[3] == pytest.approx(
        second / (first + second)
    )
    assert sum(share > 0 for share in kept) == 2


def test_our_own_function_is_not_from_scratch():
    assert check("decoding", decode).status == "almost"
