"""An evaluation is the mean loss over fixed windows, and its units fit together."""

import math

import numpy as np
import pytest
import tiny_runs
import torch

from workbook.training import evaluate as module
from workbook.training.evaluate import evaluate
from workbook.transformer.model import TransformerLM


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TransformerLM.from_config(tiny_runs.tiny().model)


def test_the_loss_is_the_mean_over_windows_that_do_not_overlap(model):
    ids = tiny_runs.ids(100)
    lengths = np.arange(64)
    found = evaluate(model, tiny_runs.data(validation=ids, token_bytes=lengths), 16, 70)
    whole = torch.from_numpy(ids[:65].astype(np.int64))
    logits = model(whole[:64].view(4, 16)).flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(logits, whole[1:]).item()
    assert found.loss == pytest.approx(loss, rel=1e-6)
    assert found.perplexity == pytest.approx(math.exp(loss), rel=1e-5)
    bits = 64 * loss / math.log(2)
    size = lengths[ids[1:65]].sum()  # the bytes of the targets
    assert found.bits_per_byte == pytest.approx(bits / size, rel=1e-5)


@pytest.mark.parametrize("together", [1, 5, 100])  # 5: the last batch has only two of 12 windows
def test_how_many_windows_go_together_makes_no_difference(model, together, monkeypatch):
    data = tiny_runs.data(validation=tiny_runs.ids(300))
    usual = evaluate(model, data, 16, 200)
    monkeypatch.setattr(module, "TOGETHER", together)
    assert evaluate(model, data, 16, 200).loss == pytest.approx(usual.loss, rel=1e-6)


def test_a_model_that_trains_goes_on_training(model):
    model.train()
    evaluate(model, tiny_runs.data(), 16, 32)
    assert model.training


def test_too_little_text_is_said(model):
    with pytest.raises(ValueError, match="do not fill one window of 16"):
        evaluate(model, tiny_runs.data(validation=tiny_runs.ids(16)), 16, 32)
