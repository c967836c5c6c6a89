"""The checks of chapter 3 and of the loss: right solutions pass, mistakes get their names."""

import pytest
from learners import (  # noqa: F401 - they fill the lists
    model_right,
    model_right_functions,
    model_right_heads,
    model_wrong,
    model_wrong_blocks,
    model_wrong_functions,
    model_wrong_heads,
    model_wrong_layers,
    models,
)

from workbook import model, nn
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
RIGHT = [*OURS.items(), *models.RIGHT]


def named(problem, attempt):
    return f"{problem}: {getattr(attempt, '__name__', '')}"


@pytest.mark.parametrize(
    ("problem", "solution"), [pytest.param(*pair, id=named(*pair)) for pair in RIGHT]
)
def test_a_right_solution_is_accepted(problem, solution):
    report = check(problem, solution)
    assert report.status == "correct", report


@pytest.mark.parametrize(
    ("problem", "wrong", "words"),
    [pytest.param(*case, id=f"{named(*case[:2])}: {case[2]}") for case in models.WRONG],
)
def test_a_mistake_is_called_by_its_name(problem, wrong, words):
    report = check(problem, wrong)
    assert report.status == "wrong"
    assert words.lower() in str(report).lower()
