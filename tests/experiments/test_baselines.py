"""What counting alone can do is what a model with a bias and nothing else would learn."""

import math

import numpy as np
import pytest
import tiny_runs
from made_records import config, record

from workbook.experiments import results
from workbook.experiments.results import unigram_loss


def test_it_lies_between_the_entropy_of_the_counts_and_blind_guessing():
    ids = tiny_runs.ids(20_000)
    loss = unigram_loss(ids, ids, tiny_runs.VOCAB_SIZE)
    shares = np.bincount(ids) / len(ids)
    entropy = -(shares * np.log(shares)).sum()
    assert entropy <= loss < entropy + 0.01
    assert loss < math.log(tiny_runs.VOCAB_SIZE)


def test_an_id_that_training_never_saw_is_not_impossible():
    assert unigram_loss(np.zeros(8, int), np.array([1]), 2) == pytest.approx(math.log(10))


def test_a_vocabulary_that_is_too_small_is_named():
    with pytest.raises(ValueError, match="the id 7, and there are 4 ids"):
        unigram_loss(np.array([7]), np.array([0]), 4)


@pytest.fixture(params=[None, 1.0])
def data(request, monkeypatch):
    """What runs of any config train on, with and without a known entropy."""
    lengths = np.full(tiny_runs.VOCAB_SIZE, 2)
    found = tiny_runs.data(entropy=request.param, floor=0.5, token_bytes=lengths)
    monkeypatch.setattr(results, "train_data", lambda config: found)
    return found


def test_the_levels_are_of_the_ids_evaluated_on_in_nats_a_token(data):
    found = results.levels(config())
    assert found.text < found.counting
    assert found.counting == unigram_loss(data.train, data.validation[:256], 64)
    assert found.guessing == pytest.approx(math.log(64))
    bits = data.entropy or data.floor
    assert found.text == pytest.approx(bits * math.log(2) * 2)
    assert found.text_bits == pytest.approx(bits)
    assert (found.bytes_a_token, found.train_tokens) == (2.0, len(data.train))


def test_a_stated_level_is_not_called_known(data, tmp_path):
    found = results.levels(config())
    stated = data.entropy is None
    assert found.known is not stated
    assert any("stated" in name for name in found.named) is stated
    shown = results.loss_facts(record(tmp_path, config(), [4.0, 3.0]))
    assert shown["validation loss (nats/token)"] == "3.000"
    assert shown["validation loss (bits/byte)"] == "1.500"
    assert (shown["the text itself (bits/byte)"] == "unknown") is stated
