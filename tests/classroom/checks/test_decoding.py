import inspect

import pytest
import torch
from attempts import decoding as attempts

from workbook.classroom.checks import decoding
from workbook.classroom.checks.decoding import SHARES, Request, ScriptedModel, probabilities
from workbook.classroom.study.verbs import check


def test_what_asks_for_more_than_the_check_has_is_not_judged(judged_here):
    by_a_head = attempts.changed("model(torch", "model.head(torch")
    for attempt, name in ((attempts.by_other_names, "to_numbers"), (by_a_head, "head")):
        report = check("decoding", attempt)
        assert report.status == "not attempted" and f"has no `{name}`" in report.claim


def of_files(model_config_path, checkpoint_path, prompt: str, vocab_filepath, merges_filepath):
    raise AssertionError("nothing calls it")


def by_top_k(model, prompt_ids, max_new_tokens, temperature=1.0, top_k=None):
    raise AssertionError("nothing calls it")


def test_a_form_without_a_value_in_the_problem_is_not_judged_and_told_in_full(judged_here):
    report = check("decoding", of_files)
    assert report.status == "not attempted", report
    for name in inspect.signature(of_files).parameters.keys() - {"prompt"}:
        assert f"`{name}`" in report.claim, report
    report = check("decoding", by_top_k)
    assert report.status == "not attempted" and "which one is `top_p`?" in report.claim, report


@pytest.mark.slow
def test_what_a_larger_model_would_show_is_told_but_not_refused(judged_here):
    assert "torch.no_grad()" in check("decoding", attempts.with_numpy).message
    no_window = attempts.changed("ids[-context_length:]", "ids")
    assert "give it only the last ones" in check("decoding", no_window).message
    assert "Worth knowing" not in check("decoding", attempts.decode).message
    everything = check("decoding", attempts.method)
    assert "The end token comes back" in everything.message, everything
    assert "The prompt comes back" in everything.message


def test_the_models_say_what_the_reference_expects():
    model = ScriptedModel(*decoding.sure(5))
    ids = [3, 1, 4, 2]
    for token in decoding.written(Request((3, 1, 4, 2), 5)):
        assert model(torch.tensor([ids]))[0, -1].argmax() == token
        ids.append(token)
    shares = ScriptedModel(*decoding.undecided())(torch.tensor([[1, 2]])).softmax(-1)
    torch.testing.assert_close(shares[0, 1], torch.tensor(SHARES))
    assert sum(SHARES) == pytest.approx(1)


def test_probabilities_are_those_of_the_course():
    shares = torch.tensor(SHARES, dtype=torch.float64)
    expected = (shares.log() / 0.4).softmax(-1)
    assert probabilities(Request(temperature=0.4)) == pytest.approx(expected.tolist())
    kept = probabilities(Request(top_p=0.3))
    assert [kept[0], kept[3]] == pytest.approx([0.27 / 0.47, 0.2 / 0.47])
    assert sum(share > 0 for share in kept) == 2  # the smallest set that reaches 0.3
