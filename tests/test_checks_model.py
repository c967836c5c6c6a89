"""The checks of chapter 3 and of the loss: right solutions pass, mistakes get their names."""

import pytest
from learners import model_right, model_right_heads

from workbook import fused, model, nn
from workbook.exercise import check

OURS = {
    "linear": nn.Linear,
    "embedding": nn.Embedding,
    "rmsnorm": nn.RMSNorm,
    "positionwise_feedforward": nn.SwiGLU,
    "rope": nn.RotaryPositionalEmbedding,
    "softmax": nn.softmax,
    "scaled_dot_product_attention": nn.scaled_dot_product_attention,
    "multihead_self_attention": model.MultiHeadSelfAttention,
    "transformer_block": model.TransformerBlock,
    "transformer_lm": model.TransformerLM,
    "cross_entropy": nn.cross_entropy,
}
RIGHT = [*OURS.items(), *model_right.RIGHT, *model_right_heads.RIGHT]


def named(problem, attempt):
    return f"{problem}: {getattr(attempt, '__name__', '')}"


@pytest.mark.parametrize(
    ("problem", "solution"), [pytest.param(*pair, id=named(*pair)) for pair in RIGHT]
)
def test_a_right_solution_is_accepted(problem, solution):
    report = check(problem, solution)
    assert report.status == "correct", report
