"""The checks of chapter 3 and of the loss: right solutions pass, mistakes get their names."""

import pytest
from attempts import (  # noqa: F401 - they fill the lists
    transformer_lists,
    transformer_right,
    transformer_right_functions,
    transformer_right_heads,
    transformer_right_shapes,
    transformer_wrong,
    transformer_wrong_heads,
)
from attempts.ours import copied

from workbook.classroom.study.verbs import check

model, nn = copied("transformer.model"), copied("transformer.nn")
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
RIGHT = [*OURS.items(), *transformer_lists.RIGHT]


def named(problem, attempt):
    return f"{problem}: {getattr(attempt, '__name__', '')}"


@pytest.mark.parametrize(
    ("problem", "solution"), [pytest.param(*pair, id=named(*pair)) for pair in RIGHT]
)
def test_a_right_solution_is_accepted(problem, solution, judged_here):
    report = check(problem, solution)
    assert report.status == "correct", report


@pytest.mark.parametrize(
    ("problem", "wrong", "words"),
    [pytest.param(*case, id=f"{named(*case[:2])}: {case[2]}") for case in transformer_lists.WRONG],
)
def test_a_mistake_is_called_by_its_name(problem, wrong, words, judged_here):
    report = check(problem, wrong)
    assert report.status == ("almost" if "from scratch yet" in report.claim else "wrong")
    assert words.lower() in str(report).lower()


@pytest.mark.parametrize(
    ("problem", "attempt", "words"),
    [pytest.param(*case, id=f"{named(*case[:2])}: {case[2]}") for case in transformer_lists.ALMOST],
)
def test_what_is_right_but_for_a_corner_is_almost_right(problem, attempt, words, judged_here):
    report = check(problem, attempt)
    assert report.status == "almost", report
    assert words.lower() in str(report).lower()
