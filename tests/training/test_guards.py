"""A run that diverges or is out of time ends; a loss that looks too good gets a flag."""

import math
from dataclasses import asdict

import numpy as np
import pytest
import tiny_runs
import torch

from workbook.training import data as train_data
from workbook.training import guards
from workbook.training.data import get_batch
from workbook.training.evaluate import Evaluation
from workbook.training.guards import WINDOW, ClimbWatch, TimeLimit
from workbook.training.train import train
from workbook.transformer.model import TransformerLM
from workbook.transformer.nn import scaled_dot_product_attention


def test_ten_losses_are_needed_to_say_anything():
    watch = ClimbWatch(lowest=2.0)
    assert [watch.climbed(100.0) for _ in range(WINDOW - 1)] == [0.0] * (WINDOW - 1)
    assert watch.climbed(100.0) == pytest.approx(98.0)


def test_a_spike_that_heals_is_small_in_the_mean():
    watch = ClimbWatch()
    climbs = [watch.climbed(loss) for loss in [3.0] * 10 + [9.0] + [3.0] * 10]
    assert max(climbs) == pytest.approx(0.6)
    assert climbs[-1] == pytest.approx(0.0)


def test_a_falling_loss_never_climbs():
    watch = ClimbWatch(lowest=8.0)
    assert {watch.climbed(8 - 0.1 * step) for step in range(50)} == {0.0}


def test_a_watch_goes_on_from_its_state():
    one = ClimbWatch(lowest=5.0)
    for loss in range(12):
        one.climbed(loss)
    other = ClimbWatch(**asdict(one))
    assert [one.climbed(20.0), one.climbed(3.0)] == [other.climbed(20.0), other.climbed(3.0)]


def ends_at(limit, steps, before=0.0):
    """How many of the steps are taken, and when they end; `before` is the time before the first."""
    elapsed = before
    for number, step in enumerate(steps, 1):
        elapsed += step
        if limit.is_up(elapsed, step):
            return number, elapsed
    pytest.fail("the steps did not suffice")


def test_a_step_that_would_end_too_late_is_not_begun():
    assert ends_at(TimeLimit(10.0), [3.0] * 9) == (3, 9.0)
    assert ends_at(TimeLimit(9.0), [3.0] * 9) == (3, 9.0)


@pytest.mark.parametrize("slow", [0, 1, 2, 30])
def test_one_slow_step_does_not_end_a_run_early(slow):
    steps = [1.0] * 100
    steps[slow] = 25.0  # the first compiles, and any other may have met a busy machine
    assert ends_at(TimeLimit(60.0), steps) == (36, 60.0)


def test_a_first_step_that_takes_most_of_the_time_is_not_the_last():
    assert ends_at(TimeLimit(60.0), [40.0] + [1.0] * 99) == (21, 60.0)


def test_the_time_of_earlier_sessions_is_no_step():
    assert ends_at(TimeLimit(60.0), [1.0] * 99, before=45.0) == (15, 60.0)


def test_time_between_the_steps_counts_but_is_no_step():
    limit, elapsed, steps = TimeLimit(60.0), 0.0, 0
    while True:
        elapsed, steps = elapsed + 1.0, steps + 1
        if limit.is_up(elapsed, 1.0):
            break
        elapsed += 20.0 * (steps == 10)  # an evaluation
    assert (steps, elapsed) == (40, 60.0)


def test_steps_that_become_slower_are_expected_to_stay_so():
    count, end = ends_at(TimeLimit(60.0), [1.0] * 20 + [9.0] * 20)
    assert (count, end) == (24, 56.0)


def test_without_a_limit_time_is_never_up():
    limit = TimeLimit(None)
    assert not limit.is_up(1e12, 1e12)
    assert limit.share(1e12) == 0.0


def test_the_share_of_the_time_ends_at_one():
    assert [TimeLimit(4.0).share(seconds) for seconds in (0.0, 1.0, 4.0, math.inf)] == [
        0,
        0.25,
        1,
        1,
    ]


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
    assert "before the first step: the forward pass overflows" in guards.looks_ahead(
        model, batch[0]
    )


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


def test_runs_on_the_same_tokens_count_shared_documents_once(monkeypatch):
    kinds = [tiny_runs.data(train=tiny_runs.ids(2_000, seed=9)) for _ in range(2)]
    read, documents = [], train_data.documents
    monkeypatch.setattr(
        train_data, "documents", lambda ids, end_id: read.append(ids) or documents(ids, end_id)
    )
    assert [train_data.shared_documents(kind) for kind in kinds] == [0, 0]
    assert len(read) == 2, "each split is read once"
    other = tiny_runs.data(train=kinds[0].train, validation=kinds[0].train[500:600])
    assert train_data.shared_documents(other) == 2, "other tokens were taken for the same"


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


def test_a_loss_that_is_no_number_is_not_too_good_to_be_true():
    nan = Evaluation(loss=math.nan, tokens=100, bytes=100)
    assert guards.too_good(nan, tiny_runs.data()) is None


def test_a_loss_below_the_floor_is_too_good_to_be_true():
    data = tiny_runs.data(floor=0.5, floor_reason="stated")
    honest = Evaluation(loss=1.0, tokens=100, bytes=100)
    assert guards.too_good(honest, data) is None
    lucky = Evaluation(loss=0.3, tokens=100, bytes=100)
    assert guards.too_good(lucky, data).startswith("too good to be true: 0.433 bits")


def test_a_run_that_cheats_is_flagged_with_the_reasons(tmp_path):
    ids = tiny_runs.ids(1_000)
    data = tiny_runs.data(train=ids, validation=ids[:500], floor=6.0, floor_reason="stated")
    run = train(tiny_runs.tiny(), data, tmp_path)
    assert len(run.flags) == 2  # said once, however often it is seen
    assert "in the train split too: 10;" in run.flags[0]
    assert "too good to be true" in run.flags[1]
