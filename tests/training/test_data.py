"""Batches: every window can come, targets lie one id ahead, and no file is read as a whole."""

import inspect

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workbook.training.data import get_batch, random_starts


@given(st.integers(1, 30), st.integers(1, 8), st.integers(1, 5), st.integers(0, 9))
def test_targets_are_the_inputs_one_id_later(context_length, batch_size, spare, seed):
    ids = np.random.default_rng(seed).integers(0, 60_000, context_length + spare)
    inputs, targets = get_batch(ids, batch_size, context_length, "cpu")
    assert inputs.shape == targets.shape == (batch_size, context_length)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    every_window = {tuple(ids[i : i + context_length + 1]) for i in range(spare)}
    for row, target in zip(inputs.tolist(), targets.tolist(), strict=True):
        assert (*row, target[-1]) in every_window


def test_every_start_with_a_full_target_is_reached_and_no_other():
    generator = torch.Generator().manual_seed(0)
    starts = random_starts(20, 2_000, 7, generator)
    assert sorted(set(starts.tolist())) == list(range(13))
    counts = torch.bincount(starts).double()
    # 2,000 draws of 13 starts: chi² with 12 degrees of freedom is below 32.9 in 99.9 of 100 cases.
    assert ((counts - 2_000 / 13) ** 2 / (2_000 / 13)).sum() < 32.9


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int32, np.int64])
def test_ids_of_any_type_become_int64(dtype):
    top = np.iinfo(dtype).max if dtype != np.int64 else 2**40
    inputs, targets = get_batch(np.array([0, top, 1], dtype), 1, 2, "cpu")
    assert inputs.dtype == targets.dtype == torch.int64
    assert inputs.tolist() == [[0, top]]
    assert targets.tolist() == [[top, 1]]


def test_of_a_memory_map_only_the_windows_are_read():
    ids = np.broadcast_to(np.uint16(7), 10**15)  # a copy would take all memory there is
    assert get_batch(ids, 4, 8, "cpu")[0].tolist() == [[7] * 8] * 4


def test_the_order_of_the_data_goes_on_where_its_generator_stood():
    ids = np.arange(1_000)
    order = torch.Generator().manual_seed(3)
    get_batch(ids, 4, 8, "cpu", order)
    state = order.get_state()
    expected = get_batch(ids, 4, 8, "cpu", order)
    torch.manual_seed(99)  # what others draw makes no difference
    order.set_state(state)
    assert all(map(torch.equal, get_batch(ids, 4, 8, "cpu", order), expected))


def test_too_few_ids_for_a_window_are_said():
    with pytest.raises(ValueError, match=r"4 ids are too few .* give at least 5 ids"):
        get_batch(np.arange(4), 1, 4, "cpu")


@pytest.mark.parametrize(
    "dataset",
    [np.zeros((20, 2), int), np.zeros((20, 1), int), np.zeros(20), np.zeros(20, bool)],
    ids=["two columns", "one column", "floats", "booleans"],
)
def test_what_is_no_row_of_ids_is_refused(dataset):
    with pytest.raises(ValueError, match=r"token ids in one row, of an integer type; got"):
        inspect.unwrap(get_batch)(dataset, 2, 3)  # without the types that tests check
