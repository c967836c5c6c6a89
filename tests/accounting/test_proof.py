"""Every term of every closed form equals what torch counts, and a wrong term would be seen.

What is proved is first counted without computing anything, then in real steps on a CPU. Notebook 04
proves the same of GPT-2.
"""

from dataclasses import replace

import pytest
import torch

from workbook import accounting
from workbook.accounting import measured, proof
from workbook.config import ModelConfig
from workbook.optimizer.optimizers import AdamW
from workbook.transformer import fused, nn
from workbook.transformer.model import TransformerLM

SIZES = {"vocab_size": 70, "context_length": 9, "d_model": 16, "num_layers": 3, "num_heads": 2}
TINY = ModelConfig(**SIZES, d_ff=22, kernels="textbook")
ABLATIONS = {
    "base": {},
    "fused": {"kernels": "fused"},
    "silu": {"ffn": "silu"},
    "no norm": {"norm": "none"},
    "post-norm": {"norm": "post"},
    "only the final norm": {"norm": "final"},
    "no positions": {"position": "none"},
    "tied": {"tie_embeddings": True},
    "all": {"norm": "post", "ffn": "silu", "position": "none", "tie_embeddings": True},
}
each = pytest.mark.parametrize("changes", ABLATIONS.values(), ids=ABLATIONS)


@each
def test_parameters_and_flops_agree_term_by_term(changes):
    tiny = replace(TINY, **changes)
    assert proof.prove_parameters(tiny)["equal"].all()
    assert proof.prove_forward_flops(tiny, batch_size=5)["equal"].all()


@pytest.mark.slow
@each
def test_a_backward_pass_costs_twice_a_forward_pass(changes):
    table = proof.prove_step_flops(replace(TINY, **changes), batch_size=5)
    assert table["equal"].all()
    assert table.loc["backward", "measured"] == 2 * table.loc["forward", "measured"]


def test_adamw_does_as_many_operations_as_are_counted():
    assert proof.prove_adamw_flops()["equal"].all()


@each
def test_saved_activations_agree_size_by_size(changes):
    assert proof.prove_activations(replace(TINY, **changes), batch_size=5)["equal"].all()


@pytest.mark.slow
@each
def test_the_bytes_of_a_training_step_agree_kind_by_kind(changes):
    assert proof.prove_training_bytes(replace(TINY, **changes), batch_size=2)["equal"].all()


def test_a_forgotten_term_and_a_wrong_one_are_seen():
    right = accounting.parameters(TINY)
    counts = {row.name: row.total for row in right}
    short = proof.term_by_term(accounting.CostTable(right[:-1]), counts)
    assert list(short.index[~short["equal"]]) == ["lm_head", "sum"]
    wrong = proof.term_by_term(right, counts | {"ln1": 1})
    assert list(wrong.index[~wrong["equal"]]) == ["ln1", "sum"]


# --- Real steps ---------------------------------------------------------------------------------

SIZES = {"vocab_size": 512, "context_length": 64, "d_model": 64, "num_layers": 3, "num_heads": 4}
BASE = ModelConfig(**SIZES, d_ff=192)
SHAPES = {
    "even": BASE,
    "large vocabulary": replace(BASE, vocab_size=4_000),
    "long context": replace(BASE, context_length=192, num_heads=8, vocab_size=64),
    "wide feed-forward": replace(BASE, vocab_size=64, d_ff=1_024),
    "two matrices": replace(BASE, ffn="silu"),
    "post-norm": replace(BASE, norm="post"),
    "little data": replace(BASE, d_model=256, d_ff=1_024, context_length=4, vocab_size=16),
}


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


@each
def test_activations_equal_what_autograd_really_keeps_to_the_byte(changes, kernels):
    for batch_size, seq, num_heads, vocab_size in ((2, 16, 4, 101), (1, 1, 2, 5), (5, 9, 1, 50)):
        sizes = {"vocab_size": vocab_size, "num_heads": num_heads, "context_length": seq}
        model = replace(TINY, **{"kernels": kernels, **sizes, **changes})
        step = RealStep(model, batch_size, seq)
        saved = sum(measured.saved_bytes(step.loss, step.model))
        assert accounting.saved_activations(model, batch_size).total == saved, model


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_the_peak_of_a_real_step_is_within_three_percent(shape, kernels):
    model = replace(SHAPES[shape], kernels=kernels)
    for batch_size in (1, 4):
        found = RealStep(model, batch_size, model.context_length).peak()
        assert accounting.peak_bytes(model, batch_size).total == pytest.approx(found, rel=0.03)
