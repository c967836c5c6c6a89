"""The formulas of memory beside real steps on a CPU: what autograd keeps, and the peak."""

from dataclasses import replace

import pytest
import torch

from workbook import accounting
from workbook.accounting import measured
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
ABLATIONS = [
    {},
    {"norm": "post"},
    {"norm": "none"},
    {"position": "none"},
    {"ffn": "silu"},
    {"tie_embeddings": True},
    {"norm": "post", "ffn": "silu", "position": "none", "tie_embeddings": True},
]


@pytest.fixture(params=["textbook", "fused"])
def kernels(request):
    return request.param


class RealStep:
    """A training step of a new model, on random tokens."""

    def __init__(self, config: ModelConfig, batch_size: int, seq: int):
        self.model = TransformerLM.from_config(config)
        self.optimizer = AdamW(self.model.parameters())
        self.cross_entropy = (fused if config.kernels == "fused" else nn).cross_entropy
        self.batch = torch.randint(config.vocab_size, (2, batch_size, seq))

    def loss(self) -> torch.Tensor:
        ids, targets = self.batch
        return self.cross_entropy(self.model(ids), targets)

    def __call__(self) -> None:
        self.loss().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def peak(self) -> int:
        """The bytes that live at once in the second of two steps, when AdamW has its state."""
        self()
        state = [x for each in self.optimizer.state.values() for x in each.values()]
        tensors = [x for x in state if isinstance(x, torch.Tensor)]
        held = [*self.model.parameters(), *self.model.buffers(), *tensors, *self.batch]
        return measured.peak_live_bytes(self, held)


@pytest.mark.parametrize("choices", ABLATIONS, ids=str)
def test_activations_equal_what_autograd_keeps_to_the_byte(choices, kernels):
    for batch_size, seq, num_heads, vocab_size in ((2, 16, 3, 101), (1, 1, 2, 5), (5, 9, 1, 50)):
        config = ModelConfig(
            vocab_size=vocab_size, context_length=seq + 3, d_model=24, num_layers=2,
            num_heads=num_heads, d_ff=40, kernels=kernels, **choices,
        )  # fmt: skip
        step = RealStep(config, batch_size, seq)
        saved = sum(measured.saved_bytes(step.loss, step.model))
        assert accounting.saved_activations(config, batch_size, seq).total == saved, config


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_the_peak_of_a_real_step_is_within_three_percent(shape, kernels):
    config = replace(SHAPES[shape], kernels=kernels)
    for batch_size in (1, 4):
        found = RealStep(config, batch_size, config.context_length).peak()
        table = accounting.peak_bytes(config, batch_size)
        assert table.total == pytest.approx(found, rel=0.03), batch_size


def test_the_update_is_the_worst_moment_of_a_large_model_with_little_data():
    config = replace(BASE, d_model=512, d_ff=2_048, context_length=4, vocab_size=16)
    table = accounting.peak_bytes(config, 1)
    assert table[-1].name == "update"
    assert table.total == pytest.approx(RealStep(config, 1, 4).peak(), rel=0.03)
