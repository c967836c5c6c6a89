"""What makes a loss look better than the model is gets a flag; an honest run gets none."""

import numpy as np
import pytest
import tiny_runs
import torch

from workbook.training import data as train_data
from workbook.training import guards
from workbook.training.data import get_batch
from workbook.training.evaluate import Evaluation
from workbook.training.train import train
from workbook.transformer.model import TransformerLM
from workbook.transformer.nn import scaled_dot_product_attention


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TransformerLM.from_config(tiny_runs.tiny().model)


@pytest.fixture
def batch():
    return get_batch(tiny_runs.ids(1_000), 4, 16, "cpu", torch.Generator())


def test_a_causal_model_has_no_flag(model, batch):
    assert guards.looks_ahead(model, batch[0]) is None


def test_a_model_without_a_mask_is_caught(model, batch):
    model.layers[1].attn.attend = scaled_dot_product_attention
    assert "is the causal mask missing?" in guards.looks_ahead(model, batch[0])


@pytest.mark.parametrize("reach", [1, 5])
def test_a_model_that_sees_a_little_ahead_is_caught(model, batch, reach):
    def attend(Q, K, V):
        mask = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool).tril(reach)
        return scaled_dot_product_attention(Q, K, V, mask)

    model.layers[0].attn.attend = attend
    assert guards.looks_ahead(model, batch[0])


def test_logits_that_are_no_numbers_are_no_proof(model, batch):
    model.lm_head.weight.data[0, 0] = torch.nan
    assert guards.looks_ahead(model, batch[0])


def test_shifted_targets_have_no_flag(batch):
    assert guards.targets_shifted(*batch) is None


@pytest.mark.parametrize("shift", [0, 2, -1])
def test_targets_shifted_otherwise_are_caught(shift):
    ids = torch.from_numpy(tiny_runs.ids(100).astype(np.int64))
    inputs, targets = ids[10:26][None], ids[10 + shift : 26 + shift][None]
    assert "one position later" in guards.targets_shifted(inputs, targets)


def test_splits_without_a_common_document_have_no_flag():
    assert guards.splits_apart(tiny_runs.data()) is None


@pytest.mark.parametrize("block", [7, 50, 1 << 20])
def test_documents_in_both_splits_are_counted(monkeypatch, block):
    monkeypatch.setattr(train_data, "BLOCK", block)
    train, held_out = tiny_runs.ids(1_000), tiny_runs.ids(500, seed=1)
    held_out[100:200] = train[300:400]  # two documents of 50 ids
    data = tiny_runs.data(train=train, validation=held_out)
    assert guards.splits_apart(data).partition("; ")[0].endswith("too: 2")


def test_a_last_document_without_an_end_is_compared_too():
    train = tiny_runs.ids(1_000)
    data = tiny_runs.data(train=train, validation=train[500:549].copy())
    assert train_data.shared_documents(data) == 1


def test_the_line_end_of_a_file_is_no_document():
    train, held_out = (np.append(tiny_runs.ids(100, seed), np.uint16(9)) for seed in (0, 1))
    assert train_data.shared_documents(tiny_runs.data(train=train, validation=held_out)) == 0


def test_the_same_array_for_both_splits_is_caught_without_documents():
    ids = tiny_runs.ids(100)
    data = tiny_runs.data(train=ids, validation=ids[:50], end_id=None)
    assert "the same tokens" in guards.splits_apart(data)
    assert guards.splits_apart(tiny_runs.data(end_id=None)) is None


def test_tokens_are_batch_times_steps_times_context():
    config = tiny_runs.tiny()
    assert guards.tokens_add_up(config, 10, 10 * 8 * 16) is None
    assert "and batch · steps · context is 1,280" in guards.tokens_add_up(config, 10, 10 * 8)


def test_a_loss_below_the_floor_is_too_good_to_be_true():
    data = tiny_runs.data(floor=0.5, floor_reason="stated")
    honest = Evaluation(loss=1.0, tokens=100, bytes=100)
    assert guards.too_good(honest, data) is None
    lucky = Evaluation(loss=0.3, tokens=100, bytes=100)
    assert guards.too_good(lucky, data).startswith("too good to be true: 0.433 bits")


def test_a_run_that_cheats_is_flagged_with_the_reasons(tmp_path):
    ids = tiny_runs.ids(1_000)
    data = tiny_runs.data(train=ids, validation=ids[:500], floor=6.0, floor_reason="stated")
    run = train(tiny_runs.tiny(), tmp_path, data)
    assert len(run.flags) == 2  # said once, however often it is seen
    assert "in the train split too: 10;" in run.flags[0]
    assert "too good to be true" in run.flags[1]
