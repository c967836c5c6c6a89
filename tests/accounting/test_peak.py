"""The closed form of a step's peak memory is within three percent of what a real step needs."""

from dataclasses import replace

import pytest
import torch

from workbook import accounting
from workbook.accounting.measured import peak_live_bytes
from workbook.config import ModelConfig
from workbook.optimizer.optimizers import AdamW
from workbook.transformer import fused, nn
from workbook.transformer.model import TransformerLM

BASE = ModelConfig(
    vocab_size=512, context_length=64, d_model=64, num_layers=3, num_heads=4, d_ff=192
)
SHAPES = {
    "even": BASE,
    "large vocabulary": replace(BASE, vocab_size=4_000),
    "long context": replace(BASE, context_length=192, num_heads=8, vocab_size=64),
    "wide feed-forward": replace(BASE, vocab_size=64, d_ff=1_024),
    "two matrices": replace(BASE, ffn="silu"),
    "post-norm": replace(BASE, norm="post"),
}


def measured(config: ModelConfig, batch_size: int) -> int:
    """The bytes that live at once in the second of two steps, when AdamW has its state."""
    model = TransformerLM.from_config(config)
    optimizer = AdamW(model.parameters())
    loss_of = (fused if config.kernels == "fused" else nn).cross_entropy
    ids, targets = torch.randint(config.vocab_size, (2, batch_size, config.context_length))

    def step() -> None:
        loss = loss_of(model(ids), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    state = [x for each in optimizer.state.values() for x in each.values()]
    tensors = [x for x in state if isinstance(x, torch.Tensor)]
    return peak_live_bytes(step, [*model.parameters(), *model.buffers(), *tensors, ids, targets])


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["textbook", "fused"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_peak_of_a_real_step_is_within_three_percent(shape, kernels):
    config = replace(SHAPES[shape], kernels=kernels)
    for batch_size in (1, 4):
        table = accounting.peak_bytes(config, batch_size)
        assert table.total == pytest.approx(measured(config, batch_size), rel=0.03), batch_size


def test_the_update_is_the_worst_moment_of_a_large_model_with_little_data():
    config = replace(BASE, d_model=512, d_ff=2_048, context_length=4, vocab_size=16)
    table = accounting.peak_bytes(config, 1)
    assert table[-1].name == "update"
    assert table.total == pytest.approx(measured(config, 1), rel=0.03)
