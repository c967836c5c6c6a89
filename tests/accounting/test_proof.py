"""Every term of every closed form equals what torch counts, and a wrong term would be seen."""

from dataclasses import replace

import pytest

from workbook import accounting, config
from workbook.accounting import proof
from workbook.config import EDITIONS, GPT2_SHAPES, ModelConfig

TINY = ModelConfig(
    vocab_size=70, context_length=9, d_model=16, num_layers=3, num_heads=2, d_ff=22,
    kernels="textbook",
)  # fmt: skip
ABLATIONS = {
    "base": {},
    "fused": {"kernels": "fused"},
    "silu": {"ffn": "silu"},
    "no norm": {"norm": "none"},
    "post-norm": {"norm": "post"},
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
@pytest.mark.parametrize("edition", EDITIONS)
def test_they_agree_for_every_gpt2(edition):
    for size in GPT2_SHAPES:
        model = config.gpt2(size, edition)
        assert proof.prove_parameters(model)["equal"].all(), size
        shallow = replace(model, num_layers=2)
        assert proof.prove_forward_flops(shallow)["equal"].all(), size
        assert proof.prove_step_flops(shallow)["equal"].all(), size
    long = replace(model, num_layers=2, context_length=16_384)
    assert proof.prove_forward_flops(long)["equal"].all()


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


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["textbook", "fused"])
def test_the_peak_of_a_large_step_is_that_of_its_worst_moment(kernels):
    model = replace(config.gpt2("xl", "2025"), num_layers=12, kernels=kernels)
    found = proof.prove_step_peak(model, batch_size=2)
    assert found["measured"] == pytest.approx(found["worst moment"], rel=0.01)
    assert found["measured"] < found["all four kinds"]


def test_a_forgotten_term_and_a_wrong_one_are_seen():
    right = accounting.parameters(TINY)
    counts = {row.name: row.total for row in right}
    short = proof.term_by_term(accounting.CostTable(right[:-1]), counts)
    assert list(short.index[~short["equal"]]) == ["lm_head", "sum"]
    wrong = proof.term_by_term(right, counts | {"ln1": 1})
    assert list(wrong.index[~wrong["equal"]]) == ["ln1", "sum"]
