"""What the checks of chapter 3 say, and that nothing a learner's part does disturbs them."""

import pytest
import torch
from attempts import (
    transformer_right,
    transformer_right_functions,
    transformer_right_heads,
)
from torch import nn
from work import calls

from workbook.classroom.checks import modules, tensors
from workbook.classroom.checks.modules import _place as place_of
from workbook.classroom.checks.modules import named_weights, place_of_learners
from workbook.classroom.checks.verdicts import Wrong
from workbook.classroom.study import problems
from workbook.classroom.study.verbs import check

OURS = {
    "linear": transformer_right.Linear,
    "embedding": transformer_right.Embedding,
    "rmsnorm": transformer_right.RMSNorm,
    "positionwise_feedforward": transformer_right.SwiGLU,
    "rope": transformer_right.RotaryPositionalEmbedding,
    "softmax": transformer_right_functions.softmax,
    "scaled_dot_product_attention": transformer_right_functions.attention,
    "multihead_self_attention": transformer_right_heads.Fused,
    "transformer_block": transformer_right_heads.BlockOfFused,
    "transformer_lm": transformer_right_heads.TransformerLM,
    "cross_entropy": transformer_right_functions.cross_entropy,
}


def rows(report):
    return dict(report.rows)


def test_the_first_failing_input_stands_beside_both_results():
    report = check("softmax", lambda x, dim: transformer_right_functions.softmax(x, 0))
    assert rows(report) == {
        "input": "softmax(x, dim), x = [[0.7, 0.3, 0.1], [0.6, -0.5, -0.2]], dim = -1",
        "expected": "[[0.4506, 0.3021, 0.2473], [0.5611, 0.1868, 0.2521]]",
        "got": "[[0.525, 0.69, 0.5744], [0.475, 0.31, 0.4256]]",
    }


def test_of_a_large_result_the_first_row_that_differs_is_shown():
    class Block(transformer_right_heads.TransformerBlock):
        def forward(self, x):
            right = super().forward(x)
            return right if x.numel() <= 48 else right + 1

    report = check("transformer_block", Block)
    assert rows(report)["expected"].startswith("at [0, 0]: [")
    assert len(str(report)) < 900


def test_a_result_of_another_shape_is_told_by_the_shape():
    report = check(
        "rmsnorm", type("Flat", (transformer_right.RMSNorm,), {"forward": lambda self, x: x[0]})
    )
    assert report.claim == "The result does not have the expected shape."
    assert rows(report)["expected"].startswith("shape (1, 1, 4)")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x * 1.7, "Each number is 1.7 times"),
        (lambda x: x + 0.5, "too large by 0.5"),
        (lambda x: x * 0, "All of it is 0"),
        (lambda x: x / 0 * 0, "NaN"),
        (lambda x: x.roll(1, -1), "in each vector, but in another order"),
        (lambda x: x.bfloat16(), "bfloat16, which is too coarse"),
    ],
)
def test_a_mistake_that_nobody_foresaw_is_told_by_the_numbers(change, words, judged_here):
    def wrong(Q, K, V, mask=None):
        return change(transformer_right_functions.attention(Q, K, V, mask))

    assert words in check("scaled_dot_product_attention", wrong).likely


def test_an_error_names_the_line():
    class Broken(transformer_right.SwiGLU):
        def forward(self, x):
            return self.w9(x)

    assert "self.w9(x)" in rows(check("positionwise_feedforward", Broken))["got"]


@pytest.mark.parametrize(
    ("place", "name", "value", "words"),
    [
        (modules, "LEARNED", "(", "checks/modules.py, line"),
        (tensors, "_scale", None, "checks/tensors.py, line"),
        (problems, "import_module", int, "study/problems.py, line"),  # before there is a check
    ],
)
def test_an_error_of_ours_is_told_as_ours_and_judges_nothing(
    place, name, value, words, monkeypatch, judged_here
):
    monkeypatch.setattr(place, name, value)
    report = check("rmsnorm", transformer_right.RMSNorm)
    assert report.status == "not attempted" and not report.rows
    assert report.claim.startswith("The check itself failed (") and words in report.claim
    assert "a fault of the workbook, not of your code" in report.claim


def test_an_endless_loop_is_stopped(monkeypatch, judged_here):
    monkeypatch.setattr(modules, "QUICK", 0.5)

    def endless(x, dim):
        while True:
            pass

    assert "stopped" in check("softmax", endless).claim


def test_what_a_learner_turns_off_or_on_is_put_back():
    class Vandal(transformer_right.Linear):
        def __init__(self, d_in, d_out):
            super().__init__(d_in, d_out)
            torch.set_default_dtype(torch.float64)
            torch.set_grad_enabled(False)
            torch.manual_seed(1)

    state, threads = torch.get_rng_state(), torch.get_num_threads()
    check("linear", Vandal)
    assert torch.is_grad_enabled() and torch.get_default_dtype() == torch.float32
    assert torch.get_rng_state().equal(state) and torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda x: (x, x), "a tuple"),
        (lambda x: x.tolist(), "a list"),
        (lambda x: x.detach().numpy(), "numpy"),
        (lambda x: x.to("meta"), "on meta"),
        (lambda x: x * 1j, "complex"),
        (lambda x: 0.5, "a float: 0.5"),
        (lambda x: "0.5", "a str"),
    ],
)
def test_what_is_no_tensor_of_numbers_is_told_in_words(result, words, judged_here):
    report = check("softmax", lambda x, dim: result(x))
    assert report.status == "wrong"
    assert words in str(report)
    assert rows(report)["expected"] == "a tensor of numbers"


def test_what_is_no_class_is_told_in_words(judged_here):
    for thing in (7, nn, transformer_right.Linear(2, 3), lambda x: x):
        assert "not a class" in check("linear", thing).claim


@pytest.mark.parametrize(
    "problem", ["linear", "rope", "multihead_self_attention", "transformer_lm"]
)
def test_any_class_is_judged_without_an_error_of_ours(problem, judged_here):
    for kind in (dict, nn.Module, nn.Identity, nn.MultiheadAttention, Exception):
        report = check(problem, kind)
        assert report.status in ("wrong", "not attempted")
        assert "could not be examined" not in report.claim and "broke off" not in report.claim


def test_rope_need_be_no_module_of_torch():
    def rotated(x, positions, theta):
        return Plain(theta, x.shape[-1])(x, positions)

    class Plain:
        def __init__(self, theta, d_k, max_seq_len=None):
            self.frequencies = theta ** (-torch.arange(0, d_k, 2) / d_k)

        def __call__(self, x, positions):
            turns = torch.polar(torch.tensor(1.0), positions[..., None] * self.frequencies)
            return torch.view_as_real(
                torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turns
            ).flatten(-2)

    class Named(Plain):
        def forward(self, x, token_positions):
            return self(x, token_positions)

    for right in (rotated, Plain, Named):
        report = check("rope", right)
        assert report.status == "correct", report
    assert (
        "`token_positions` is ignored"
        in check("rope", lambda x, pos, theta: rotated(x, torch.arange(x.shape[-2]), theta)).likely
    )


@pytest.mark.parametrize("problem", OURS)
def test_a_right_attempt_is_judged_with_little_work(problem):
    check(problem, OURS[problem])
    assert calls(lambda: check(problem, OURS[problem])) < 200_000


def test_names_of_other_code_are_understood():
    attention = [place_of(f"{role}_proj.weight") for role in ("q", "k", "v", "output")]
    for names in (
        "W_q W_k W_v W_o", "wq.weight wk.weight wv.weight wo.weight", "query key value out_proj",
        "to_q.weight to_k.weight to_v.weight to_out.weight", "attn.Wq attn.Wk attn.Wv attn.proj",
        "q_linear.W k_linear.W v_linear.W output_linear.W", "query_proj k values.weight w_out",
        "muti_head_att.W_Q muti_head_att.W_K muti_head_att.W_V muti_head_att.W_O", "Q K V W0",
        "L_q.W L_k.W L_v.W L_o.W", "q_proj_weight k_proj_weight v_proj_weight o_proj_weight",
    ):  # fmt: skip
        assert [place_of_learners(name, attention) for name in names.split()] == attention, names


def test_the_head_and_the_embedding_are_told_apart_by_name():
    places = [place_of(name) for name in ("token_embeddings.weight", "lm_head.weight")]
    for names in ("embed.embeddings output_embed.w", "embedding.W unembedding.W"):
        assert [place_of_learners(name, places) for name in names.split()] == places, names


def test_what_torch_compile_adds_to_names_is_left_out():
    inner = nn.ModuleDict({"_orig_mod": nn.ParameterDict({"wq": torch.zeros(2, 2)})})
    assert list(modules.own_parameters(nn.ModuleDict({"attn": inner}))) == ["attn.wq"]


def test_a_name_that_says_nothing_belongs_to_the_only_weight_without_one():
    def module(*names):
        return nn.ParameterDict({name: nn.Parameter(torch.zeros(2, 2)) for name in names})

    weights = {f"w{i}.weight": torch.full((2, 2), float(i)) for i in (1, 2, 3)}
    assert named_weights(module("odd", "up", "down"), weights)["odd"].eq(1).all()
    for names in (("odd", "other", "up"), ("odd", "up", "down", "w1"), ("w1", "l1", "up")):
        with pytest.raises(Wrong, match="names or shapes other than"):
            named_weights(module(*names), weights)


def test_llamas_rotation_is_not_taken_for_something_else():
    class Llama(nn.Module):
        def __init__(self, theta, d_k, max_seq_len):
            super().__init__()
            self.angles = torch.arange(max_seq_len)[:, None] / theta ** (
                torch.arange(0, d_k, 2) / d_k
            )

        def forward(self, x, token_positions):
            angles = self.angles[token_positions]
            first, second = x.chunk(2, -1)
            cos, sin = angles.cos(), angles.sin()
            return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)

    assert "RoPE on halves" in check("rope", Llama).likely


def test_what_needs_a_mask_is_told_once():
    def attention(Q, K, V, mask=None):
        scores = torch.where(mask, Q @ K.mT / Q.shape[-1] ** 0.5, -torch.inf)
        powers = torch.exp(scores - scores.amax(-1, keepdim=True))
        return powers / powers.sum(-1, keepdim=True) @ V

    report = check("scaled_dot_product_attention", attention)
    assert report.status == "almost" and not report.also
    assert "one corner case fails" in report.claim and "`mask=None` must work" in report.likely
