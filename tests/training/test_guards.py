"""A run that diverges or is out of time ends; a loss that looks too good gets a flag."""

import math

import numpy as np
import pytest
import tiny_runs
import torch

from workbook.training import data as train_data
from workbook.training import guards
from workbook.training.guards import WINDOW, ClimbWatch
from workbook.transformer.model import TransformerLM
from workbook.transformer.nn import scaled_dot_product_attention

INPUTS = torch.from_numpy(tiny_runs.ids(64).astype(np.int64)).view(4, 16)


CLIMBS = [
    (2.0, [100.0] * (WINDOW - 1), 0.0),  # ten losses are needed to say anything
    (2.0, [100.0] * WINDOW, 98.0),
    (math.inf, [3.0] * 10 + [9.0] + [3.0] * 10, 0.6),  # a spike that heals
    (8.0, [8 - 0.1 * step for step in range(50)], 0.0),
]


@pytest.mark.parametrize(("lowest", "losses", "most"), CLIMBS)
def test_a_climb_is_that_of_the_mean_of_ten_losses(lowest, losses, most):
    watch = ClimbWatch(lowest=lowest)
    assert max(watch.climbed(loss) for loss in losses) == pytest.approx(most)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TransformerLM.from_config(tiny_runs.tiny().model)


@pytest.mark.parametrize("reach", [0, 1, 5, 16])
def test_a_model_that_sees_ahead_is_caught(model, reach):
    def attend(Q, K, V):
        mask = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool).tril(reach)
        return scaled_dot_product_attention(Q, K, V, mask)

    model.layers[0].attn.attend = attend
    flag = guards.looks_ahead(model, INPUTS)
    assert flag is None if reach == 0 else "is the causal mask missing?" in flag


def test_logits_that_are_no_numbers_are_no_proof(model):
    model.lm_head.weight.data[0, 0] = torch.nan
    assert "the forward pass overflows" in guards.looks_ahead(model, INPUTS)


@pytest.mark.parametrize("shift", [1, 0, 2, -1])
def test_targets_shifted_otherwise_are_caught(shift):
    ids = torch.from_numpy(tiny_runs.ids(100).astype(np.int64))
    inputs = ids[10:26][None]
    targets = ids[10 + shift : 26 + shift][None]
    flag = guards.targets_shifted(inputs, targets)
    assert flag is None if shift == 1 else "one position later" in flag


@pytest.mark.parametrize("block", [7, 50, 1 << 20])
def test_documents_in_both_splits_are_counted(monkeypatch, block):
    monkeypatch.setattr(train_data, "BLOCK", block)
    train = tiny_runs.ids(1_000)
    held_out = tiny_runs.ids(500, seed=1)
    held_out[100:200] = train[300:400]  # two documents of 50 ids
    data = tiny_runs.data(train=train, validation=held_out)
    assert guards.splits_apart(data).partition("; ")[0].endswith("too: 2")


def test_a_last_document_without_an_end_is_compared_and_a_line_end_is_none():
    train, others = (np.append(tiny_runs.ids(1_000, seed), np.uint16(9)) for seed in (0, 1))
    open_end = train[500:549].copy()
    assert tiny_runs.data(train=train, validation=open_end).shared_documents == 1
    assert tiny_runs.data(train=train, validation=others).shared_documents == 0


def test_a_loss_below_the_floor_is_too_good_to_be_true():
    data = tiny_runs.data(floor=0.5, floor_reason="stated")
    assert guards.too_good(1.44, data) is None and guards.too_good(math.nan, data) is None
    assert guards.too_good(0.433, data).startswith("too good to be true: 0.433 bits")


def test_a_run_that_cheats_is_flagged_with_the_reasons(tmp_path):
    ids = tiny_runs.ids(1_000)
    data = tiny_runs.data(train=ids, validation=ids[:500], floor=6.0, floor_reason="stated")
    run = tiny_runs.trained(tmp_path, on=data)
    assert len(run.flags) == 2  # said once, however often it is seen
    assert "in the train split too: 10;" in run.flags[0]
    assert "too good to be true" in run.flags[1]
