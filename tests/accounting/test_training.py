"""Bytes, batches, AdamW's FLOPs and times are those worked out by hand, and those published."""

from dataclasses import replace

import pytest
import torch

from workbook import accounting
from workbook.accounting.measured import state_bytes
from workbook.config import laptop
from workbook.optimizer.optimizers import AdamW
from workbook.transformer.model import TransformerLM


@pytest.mark.parametrize("make", [torch.optim.AdamW, AdamW])
def test_optimizer_bytes_equal_the_state_after_a_step(make):
    config = replace(laptop(), vocab_size=101, num_layers=2, d_ff=40)
    model = TransformerLM.from_config(config)
    optimizer = make(model.parameters())
    assert state_bytes(optimizer) == 0
    model(torch.zeros(1, 4, dtype=torch.long)).sum().backward()
    optimizer.step()
    kinds = accounting.training_bytes(config, accounting.CostTable())
    assert kinds.row("optimizer state").total == state_bytes(optimizer)


@pytest.mark.parametrize(
    ("edition", "count", "a", "b", "days"),
    [("2025", 1_635_537_600, 15.518, 26.169, 5_115), ("2026", 1_640_452_800, 16.373, 26.247, 202)],
)
def test_the_answers_of_adamw_accounting(edition, count, a, b, days):
    config = accounting.asked_model(edition)
    device = accounting.asked_device(edition)
    assert accounting.parameters(config).total == count
    line = accounting.memory_line(config)
    assert [round(x / accounting.GB, 3) for x in line] == [a, b]
    assert accounting.largest_batch(*line) == 3
    assert accounting.adamw_flops(count) == 14 * count
    flops = accounting.step_flops(config, 1_024)
    seconds = accounting.training_seconds(flops, 400_000, device.flops_per_second)
    assert round(seconds / 86_400) == days


def test_utilisation_is_a_share_of_the_peak():
    with pytest.raises(ValueError, match=r"0\.5 means half"):
        accounting.training_seconds(10, 1, 1e12, utilisation=50)
    assert accounting.mfu(2e6, 5_000, 2e10) == 0.5
