"""What is counted while torch runs is what one works out by hand, for small enough matmuls."""

import pytest
import torch
from torch import nn

from workbook.accounting import measured
from workbook.config import ModelConfig
from workbook.transformer import fused
from workbook.transformer.model import TransformerLM

SIZES = {"vocab_size": 50, "context_length": 8, "d_model": 16, "num_layers": 2, "num_heads": 2}
TINY = ModelConfig(**SIZES, d_ff=24, kernels="textbook")


@pytest.fixture(params=["cpu", "meta"])
def device(request):
    return request.param


def tiny(device):
    model = TransformerLM.from_config(TINY, device=device)
    return model, torch.zeros(3, 8, dtype=torch.long, device=device)


def test_a_matmul_counts_two_flops_a_pair_forward_and_four_backward(device):
    x = torch.ones(5, 3, device=device, requires_grad=True)
    w = torch.ones(3, 7, device=device, requires_grad=True)
    assert measured.counted_flops(lambda: x @ w) == 2 * 5 * 3 * 7
    assert measured.counted_flops(lambda: (x @ w).sum().backward()) == 3 * 2 * 5 * 3 * 7


def test_the_attention_kernel_of_a_cpu_counts_two_matmuls_forward_and_five_backward():
    Q, K, V = (torch.ones(2, 3, 5, 8, requires_grad=True) for _ in range(3))
    product = 2 * (2 * 3) * 5 * 5 * 8
    assert measured.counted_flops(lambda: fused.causal_attention(Q, K, V)) == 2 * product
    step = measured.counted_flops(lambda: fused.causal_attention(Q, K, V).sum().backward())
    assert step == (2 + 5) * product


def test_every_matmul_is_listed_with_its_module_and_flops(device):
    model, ids = tiny(device)
    found = measured.matmuls(lambda: model(ids))
    assert sum(flops for _, flops in found) == measured.counted_flops(lambda: model(ids))
    first = [(name, flops) for name, flops in found if name.startswith("layers.0.")]
    assert [name.removeprefix("layers.0.") for name, _ in first] == [
        "attn.q_proj",
        "attn.k_proj",
        "attn.v_proj",
        "attn",
        "attn",
        "attn.output_proj",
        "ffn.w1",
        "ffn.w3",
        "ffn.w2",
    ]
    assert first[3] == ("layers.0.attn", 2 * 6 * 8 * 8 * 8)
    assert first[-1] == ("layers.0.ffn.w2", 2 * 3 * 8 * 16 * 24)
    assert found[-1] == ("lm_head", 2 * 24 * 16 * 50)


def test_saved_memory_counts_once_however_many_users_it_has(device):
    x = torch.ones(10, device=device, requires_grad=True)

    def twice():
        y = x.exp()  # keeps y
        return y * y, y.view(5, 2).sin()  # keep y again, and y as a view

    assert measured.saved_bytes(twice) == [40]


def test_parameters_and_what_is_not_kept_do_not_count(device):
    linear = nn.Linear(4, 3, bias=False, device=device)
    x = torch.ones(2, 4, device=device)
    assert measured.saved_bytes(lambda: linear(x), linear) == [4 * 2 * 4]  # x, for the weight
    assert measured.saved_bytes(lambda: linear(x) + 1, linear) == [4 * 2 * 4]
    with torch.no_grad():
        assert measured.saved_bytes(lambda: linear(x), linear) == []


def test_elementwise_operations_are_counted_for_each_value(device):
    x = torch.ones(2, 5, device=device)
    y = torch.ones(2, 5, device=device)
    assert measured.elementwise_flops(lambda: x * y + x.sqrt()) == 3 * 10
    assert measured.elementwise_flops(lambda: x.add_(y, alpha=0.5)) == 2 * 10
    assert measured.elementwise_flops(lambda: x.addcmul_(x, y, value=0.5)) == 3 * 10
    assert measured.elementwise_flops(lambda: torch.zeros_like(x)) == 0
    with pytest.raises(ValueError, match="how many FLOPs per value sin costs"):
        measured.elementwise_flops(lambda: x.sin())


def test_the_peak_is_what_lives_at_once(device):
    x = torch.ones(100, device=device)  # 400 bytes

    def work():
        y = x + 1  # 400 more
        y = y.exp()  # both the old and the new y
        del y
        return x.sum()  # 4 more, after the others are gone

    assert measured.peak_live_bytes(work, already=[x]) == 3 * 400
    assert measured.peak_live_bytes(work) == 2 * 400
    assert measured.peak_live_bytes(lambda: x.view(10, 10).T, already=[x]) == 400
