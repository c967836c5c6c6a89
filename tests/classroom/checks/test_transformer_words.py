"""What the checks of chapter 3 say, and that nothing a learner's part does disturbs them."""

import pytest
import torch
from attempts import lists, transformer_right, transformer_right_heads
from attempts import transformer_right_functions as functions
from torch import nn
from work import calls

from workbook.classroom.checks import by_problem, transformer
from workbook.classroom.checks.machinery import modules, tensors
from workbook.classroom.checks.machinery.modules import _place as place_of
from workbook.classroom.checks.machinery.modules import named_weights, place_of_learners
from workbook.classroom.checks.machinery.verdicts import Wrong
from workbook.classroom.study.verbs import check

# The first right attempt at each problem of chapter 3, and at the loss.
RIGHT = {problem: one for problem, one, status, _ in lists.ATTEMPTS[::-1] if status == "correct"}
RIGHT = {problem: attempt for problem, attempt in RIGHT.items() if hasattr(transformer, problem)}


def rows(report):
    return dict(report.rows)


def test_the_first_failing_input_stands_beside_both_results(judged_here):
    report = check("softmax", lambda x, dim: functions.softmax(x, 0))
    assert rows(report) == {
        "input": "softmax(x, dim), x = [[0.7, 0.3, 0.1], [0.6, -0.5, -0.2]], dim = -1",
        "expected": "[[0.4506, 0.3021, 0.2473], [0.5611, 0.1868, 0.2521]]",
        "got": "[[0.525, 0.69, 0.5744], [0.475, 0.31, 0.4256]]",
    }


@pytest.mark.slow
def test_of_a_large_result_the_first_row_that_differs_is_shown(judged_here):
    class Block(transformer_right_heads.TransformerBlock):
        def forward(self, x):
            right = super().forward(x)
            return right if x.numel() <= 48 else right + 1

    report = check("transformer_block", Block)
    assert rows(report)["expected"].startswith("at [0, 0]: [")
    assert len(str(report)) < 900


def test_a_result_of_another_shape_is_told_by_the_shape(judged_here):
    flat = type("Flat", (transformer_right.RMSNorm,), {"forward": lambda self, x: x[0]})
    report = check("rmsnorm", flat)
    assert report.claim == "The result does not have the expected shape."
    assert rows(report)["expected"].startswith("shape (1, 1, 4)")


FAULTS_OF_OURS = [
    (modules, "LEARNED", "(", "checks/machinery/modules.py, line"),
    (tensors, "_scale", None, "checks/machinery/tensors.py, line"),
    (by_problem, "CHECKS", {}, "machinery/judging.py, line"),  # before there is a check
]


@pytest.mark.parametrize(("place", "name", "value", "words"), FAULTS_OF_OURS)
def test_an_error_of_ours_is_told_as_ours(place, name, value, words, monkeypatch, judged_here):
    monkeypatch.setattr(place, name, value)
    report = check("rmsnorm", transformer_right.RMSNorm)
    assert report.status == "not attempted" and not report.rows
    assert report.claim.startswith("The check itself failed (") and words in report.claim
    assert "a fault of the workbook, not of your code" in report.claim


NO_TENSORS = [
    (lambda x: (x, x), "more than one value after `return`"),
    (lambda x: x.tolist(), "a list"),
    (lambda x: x.detach().numpy(), "numpy"),
    (lambda x: x.to("meta"), "on meta"),
    (lambda x: x * 1j, "complex"),
    (lambda x: x.mean().item(), "`.item()`"),
    (lambda x: "0.5", "a str"),
    (lambda x: x.to_sparse(), "`to_dense()`"),
    (lambda x: torch.quantize_per_tensor(x.detach(), 0.1, 0, torch.quint8), "`dequantize()`"),
    (lambda x: torch.nested.nested_tensor([*x.detach()]), "a nested tensor"),
    (lambda x: Pretender(), "a Pretender"),
]


class Pretender:
    """Something that only claims to be a tensor."""

    __class__ = torch.Tensor


@pytest.mark.filterwarnings("ignore")  # of torch, about quantized and nested tensors
@pytest.mark.parametrize(("result", "words"), NO_TENSORS)
def test_what_is_no_tensor_of_numbers_is_told_in_words(result, words, judged_here):
    report = check("softmax", lambda x, dim: result(x))
    assert report.status == "wrong"
    assert words in str(report)
    assert rows(report)["expected"] == "a tensor of numbers"


@pytest.mark.parametrize("kind", [dict, nn.Module, nn.Identity, nn.MultiheadAttention, Exception])
def test_any_class_is_judged_without_an_error_of_ours(kind, judged_here):
    for problem in ("linear", "rope", "multihead_self_attention", "transformer_lm"):
        report = check(problem, kind)
        assert report.status in ("wrong", "not attempted")
        assert "could not be examined" not in report.claim and "broke off" not in report.claim


class Plain:
    """RoPE that is no module of torch."""

    def __init__(self, theta, d_k, max_seq_len=4096):
        self.rope = transformer_right.RotaryPositionalEmbedding(theta, d_k, max_seq_len)

    def __call__(self, x, positions):
        return self.rope(x, positions)


class PlainWithForward(Plain):
    def forward(self, x, token_positions):
        return self.rope(x, token_positions)


def rotated(x, positions, theta):
    return Plain(theta, x.shape[-1])(x, positions)


def test_rope_need_be_no_module_of_torch(judged_here):
    for right in (rotated, Plain, PlainWithForward):
        report = check("rope", right)
        assert report.status == "correct", report
    ignoring = check("rope", lambda x, pos, theta: rotated(x, torch.arange(x.shape[-2]), theta))
    assert "`token_positions` is ignored" in ignoring.likely


class OfANamedDevice(transformer_right_heads.Steps):
    """Whose device may be the right one elsewhere."""

    def seen(self, length):
        return torch.ones(length, length, dtype=torch.bool, device="cpu").tril()


class AsksForTheDevice(transformer_right_heads.Steps):
    """It finds out whether there is a GPU, by itself."""

    def seen(self, length):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.ones(length, length, dtype=torch.bool).tril().to(device)


class ReadsNumbers(transformer_right_heads.Steps):
    """Which tensors that hold none do not have."""

    def seen(self, length):
        assert self.q_proj.weight.abs().sum().item() > 0
        return super().seen(length)


@pytest.mark.slow
def test_no_fault_on_another_device_is_told_of_what_may_work_there(judged_here):
    kinds = (OfANamedDevice, AsksForTheDevice, ReadsNumbers)
    unclear = [("multihead_self_attention", kind) for kind in kinds]
    for problem, attempt in [*RIGHT.items(), *unclear]:
        report = check(problem, attempt)
        assert report.status == "correct" and "On a GPU" not in report.message, report
    report = check("multihead_self_attention", transformer_right_heads.MultiHeadSelfAttention)
    assert report.status == "correct" and "Worth knowing" not in report.message, report


@pytest.mark.slow
@pytest.mark.parametrize("problem", RIGHT)
def test_a_right_attempt_is_judged_with_little_work(problem, judged_here):
    check(problem, RIGHT[problem])
    assert calls(lambda: check(problem, RIGHT[problem])) < 200_000


def test_names_of_other_code_are_understood():
    attention = [place_of(f"{role}_proj.weight") for role in ("q", "k", "v", "output")]
    for names in (
        "W_q W_k W_v W_o",
        "wq.weight wk.weight wv.weight wo.weight",
        "query key value out_proj",
        "to_q.weight to_k.weight to_v.weight to_out.weight",
        "attn.Wq attn.Wk attn.Wv attn.proj",
        "q_linear.W k_linear.W v_linear.W output_linear.W",
        "query_proj k values.weight w_out",
        "muti_head_att.W_Q muti_head_att.W_K muti_head_att.W_V muti_head_att.W_O",
        "Q K V W0",
        "L_q.W L_k.W L_v.W L_o.W",
        "q_proj_weight k_proj_weight v_proj_weight o_proj_weight",
    ):
        assert [place_of_learners(name, attention) for name in names.split()] == attention, names
    feed = [place_of(f"w{number}.weight") for number in (1, 2, 3)]
    for names in (
        "w1_weight w2_weight w3_weight",
        "W1_proj.weight W2_proj.weight W3_proj.weight",
        "weight1 weight_2 w3_w",
        "gate_weight down_proj_weight ffn_up.weight",
        "proj_1.weight proj_2.weight proj_3.weight",
    ):
        assert [place_of_learners(name, feed) for name in names.split()] == feed, names


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


def test_what_needs_a_mask_is_told_once(judged_here):
    def attention(Q, K, V, mask=None):
        scores = torch.where(mask, Q @ K.mT / Q.shape[-1] ** 0.5, -torch.inf)
        powers = torch.exp(scores - scores.amax(-1, keepdim=True))
        return powers / powers.sum(-1, keepdim=True) @ V

    report = check("scaled_dot_product_attention", attention)
    assert report.status == "almost" and not report.also
    assert "one corner case fails" in report.claim and "`mask=None` must work" in report.likely
