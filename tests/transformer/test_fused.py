"""The fused parts give what the textbook ones give: values and gradients, in every type."""

import copy

import pytest
import torch

from workbook.accounting import measured
from workbook.transformer import fused, nn

# By how much two orders of the same sums may differ, against values of about 1.
TOLERANCE = {torch.float64: 1e-13, torch.float32: 3e-6, torch.bfloat16: 0.03, torch.float16: 0.005}
LEADING = [(), (3,), (2, 1, 3)]


@pytest.fixture(params=TOLERANCE, ids=lambda dtype: str(dtype).removeprefix("torch."))
def dtype(request):
    return request.param


def compare(textbook, quick, *inputs):
    """Assert that both give the same result, and send the same gradients to inputs and weights."""
    inputs = [x.requires_grad_() if x.is_floating_point() else x for x in inputs]
    results = []
    for part in (textbook, quick):
        weights = list(part.parameters()) if isinstance(part, torch.nn.Module) else []
        leaves = [x for x in inputs if x.requires_grad] + weights
        result = part(*inputs)
        torch.manual_seed(1)  # not randn_like, which draws in the order of the memory's layout
        grad = torch.randn(result.shape, dtype=result.dtype, device=result.device)
        results.append((result, *torch.autograd.grad(result, leaves, grad)))
    dtype = inputs[0].dtype
    tolerance = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
    torch.testing.assert_close(*results, **tolerance)  # types too


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("name", ["RMSNorm", "SwiGLU", "SiLUFeedForward"])
def test_a_layer_is_the_textbooks(name, leading, dtype):
    sizes = (16,) if name == "RMSNorm" else (16, 24)
    textbook = getattr(nn, name)(*sizes, dtype=dtype)
    quick = getattr(fused, name)(*sizes, dtype=dtype)
    quick.load_state_dict(copy.deepcopy(textbook.state_dict()))
    compare(textbook, quick, torch.randn(*leading, 16, dtype=dtype))


@pytest.mark.parametrize("leading", LEADING)
def test_rope_is_the_textbooks(leading, dtype):
    x = torch.randn(*leading, 5, 8, dtype=dtype)
    both = nn.RotaryPositionalEmbedding, fused.RotaryPositionalEmbedding
    textbook, quick = (rope(10_000.0, 8, 64, dtype=dtype) for rope in both)
    compare(textbook, quick, x)
    positions = torch.tensor([0, 63, 7, 7, 8])
    compare(lambda x: textbook(x, positions), lambda x: quick(x, positions), x)
    assert quick.to(torch.bfloat16).table.turns.dtype == torch.float32


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize(("queries", "keys"), [(6, 6), (2, 6), (1, 6), (1, 1)])
def test_causal_attention_is_the_textbooks(queries, keys, leading, dtype):
    Q = torch.randn(*leading, queries, 8, dtype=dtype)
    K, V = (torch.randn(*leading, keys, 8, dtype=dtype) for _ in range(2))
    compare(nn.causal_attention, fused.causal_attention, Q, K, V)
    with torch.no_grad():  # in half precision a CPU takes another kernel here
        found = [part(Q, K, V) for part in (nn.causal_attention, fused.causal_attention)]
    torch.testing.assert_close(*found, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def test_a_cpu_trains_with_the_kernel_for_attention_unless_in_half_precision(dtype):
    Q, K, V = (torch.randn(2, 3, 6, 8, dtype=dtype, requires_grad=True) for _ in range(3))
    a_map_per_head = 2 * 3 * 6 * 6 * dtype.itemsize
    kept = measured.saved_bytes(lambda: fused.causal_attention(Q, K, V))
    assert (a_map_per_head in kept) == (dtype.itemsize < 4)


@pytest.mark.parametrize(("queries", "keys"), [(64, 64), (65, 65), (130, 130), (300, 301)])
def test_attention_in_blocks_is_the_textbooks(queries, keys):
    Q, K, V = (torch.randn(2, 3, each, 8, dtype=torch.float64) for each in (queries, keys, keys))

    def in_blocks(Q, K, V):
        flat = (x.flatten(0, 1) for x in (Q / 8**0.5, K, V))
        return fused.BlockedAttention.apply(*flat).unflatten(0, (2, 3))

    compare(nn.causal_attention, in_blocks, Q, K, V)


def test_half_precision_trains_where_autocast_computes_a_softmax_in_float32(monkeypatch):
    softmax = torch.softmax
    monkeypatch.setattr(torch, "softmax", lambda *args, **kwargs: softmax(*args, **kwargs).float())
    Q, K, V = (torch.randn(2, 6, 8, dtype=torch.bfloat16) for _ in range(3))
    with torch.autocast("cpu", torch.bfloat16):
        result = fused.causal_attention(Q.requires_grad_(), K, V)
    result.sum().backward()
    assert result.dtype == Q.grad.dtype == torch.bfloat16


def test_half_precision_takes_an_empty_batch():
    Q, K, V = (torch.randn(0, 2, 6, 8, dtype=torch.bfloat16) for _ in range(3))
    assert fused.causal_attention(Q, K, V).shape == (0, 2, 6, 8)


def test_half_precision_computes_ten_of_sixteen_squares_of_scores():
    Q, K, V = (torch.randn(3, 256, 8, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    whole = 2 * 3 * 256 * 256 * 8
    step = measured.counted_flops(lambda: fused.causal_attention(Q, K, V).sum().backward())
    assert step == 6 * whole * 10 / 16


@pytest.mark.parametrize("leading", LEADING)
def test_cross_entropy_is_the_textbooks(leading, dtype):
    logits = torch.randn(*leading, 30, dtype=dtype) * 3
    targets = torch.randint(30, leading)
    compare(nn.cross_entropy, fused.cross_entropy, logits, targets)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")
@pytest.mark.parametrize("queries", [6, 1])
def test_attention_on_a_gpu_is_the_textbooks(queries, dtype):
    Q = torch.randn(2, 3, queries, 8, dtype=dtype, device="cuda")
    K, V = (torch.randn(2, 3, 6, 8, dtype=dtype, device="cuda") for _ in range(2))
    compare(nn.causal_attention, fused.causal_attention, Q, K, V)
