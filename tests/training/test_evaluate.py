"""An evaluation is the mean loss over fixed windows, and its units fit together."""

import math

import numpy as np
import pytest
import tiny_runs
import torch

from workbook.training.evaluate import Evaluation, evaluate
from workbook.transformer.model import TransformerLM


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TransformerLM.from_config(tiny_runs.tiny().model)


def test_the_loss_is_the_mean_over_windows_that_do_not_overlap(model):
    ids = tiny_runs.ids(100)
    found = evaluate(model, ids, np.ones(64, np.int64), 16, 70)
    whole = torch.from_numpy(ids[:65].astype(np.int64))
    logits = model(whole[:64].view(4, 16)).flatten(0, 1)
    assert found.tokens == found.bytes == 64
    assert found.loss == pytest.approx(
        torch.nn.functional.cross_entropy(logits, whole[1:]).item(), rel=1e-6
    )


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_the_batch_size_makes_no_difference(model, batch_size):
    ids, lengths = tiny_runs.ids(300), np.ones(64, np.int64)
    expected = evaluate(model, ids, lengths, 16, 200)
    found = evaluate(model, ids, lengths, 16, 200, batch_size)
    assert found.loss == pytest.approx(expected.loss, rel=1e-6)


def test_the_bytes_are_those_of_the_targets(model):
    lengths = np.arange(64)
    found = evaluate(model, tiny_runs.ids(100), lengths, 16, 32)
    assert found.bytes == lengths[tiny_runs.ids(100)[1:33]].sum()


def test_units_fit_together():
    found = Evaluation(loss=math.log(8), tokens=100, bytes=400)
    assert found.perplexity == pytest.approx(8)
    assert found.bits_per_byte == pytest.approx(3 / 4)
    assert Evaluation(loss=1e4, tokens=1, bytes=1).perplexity == math.inf


def test_a_model_that_trains_goes_on_training(model):
    model.train()
    evaluate(model, tiny_runs.ids(100), np.ones(64, np.int64), 16, 32)
    assert model.training


def test_too_little_text_is_said(model):
    with pytest.raises(ValueError, match="do not fill one window of 16"):
        evaluate(model, tiny_runs.ids(16), np.ones(64, np.int64), 16, 32)
