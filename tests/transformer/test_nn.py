"""The parts, written out as the papers have them, are what torch computes: values and gradients."""

import math

import pytest
import torch
from torch.nn import functional

from workbook.transformer import fused, nn

LEADING = [(), (3,), (2, 1, 3)]  # batch dimensions: none, one, several


def random(*shape, dtype=torch.float32, scale=1.0):
    return (torch.randn(*shape, dtype=dtype) * scale).requires_grad_()


def same(result, expected, inputs, tolerance=1e-5):
    """Assert that two results, and the gradients that flow from them to the inputs, are equal."""
    upstream = torch.randn_like(expected)
    torch.testing.assert_close(result, expected, atol=tolerance, rtol=tolerance)
    grads = [torch.autograd.grad(one, inputs, upstream) for one in (result, expected)]
    torch.testing.assert_close(*grads, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("leading", LEADING)
def test_linear_is_torchs(leading):
    layer = nn.Linear(5, 7)
    x = random(*leading, 5)
    same(layer(x), functional.linear(x, layer.weight), (x, layer.weight))


@pytest.mark.parametrize("leading", [(), (4,), (2, 1, 4)])
def test_embedding_is_torchs(leading):
    table = nn.Embedding(11, 6)
    ids = torch.randint(11, leading)
    assert table(ids).shape == (*leading, 6)
    assert table(ids.to(torch.uint16)).equal(table(ids))  # as token files hold them
    same(table(ids), functional.embedding(ids, table.weight), (table.weight,))


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_rms_norm_is_torchs(leading, eps):
    norm = nn.RMSNorm(6, eps)
    x = random(*leading, 6)
    norm.weight.data.normal_()
    same(norm(x), functional.rms_norm(x, (6,), norm.weight, eps), (x, norm.weight))


@pytest.mark.parametrize("leading", LEADING)
def test_feed_forward_layers_are_made_of_torchs_silu(leading):
    x = random(*leading, 6)
    gated = nn.SwiGLU(6, 10)
    plain = nn.SiLUFeedForward(6, 10)
    w1, w2, w3 = (getattr(gated, name).weight for name in ("w1", "w2", "w3"))
    inner = functional.silu(functional.linear(x, w1)) * functional.linear(x, w3)
    same(gated(x), functional.linear(inner, w2), (x, w1, w2, w3))
    w1 = plain.w1.weight
    w2 = plain.w2.weight
    inner = functional.silu(functional.linear(x, w1))
    same(plain(x), functional.linear(inner, w2), (x, w1, w2))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_is_torchs_along_any_axis(dim):
    x = random(3, 4, 5, scale=30)
    same(nn.softmax(x, dim), functional.softmax(x, dim), (x,), tolerance=1e-6)


def test_softmax_of_huge_numbers_is_finite():
    shares = nn.softmax(torch.tensor([1e30, 1e30, -1e30, -math.inf]), 0)
    assert shares.tolist() == [0.5, 0.5, 0, 0]


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("masked", ["not", "alike", "each apart", "causal"])
def test_attention_is_torchs(leading, masked):
    Q = random(*leading, 6, 8)
    K = random(*leading, 6, 8)
    V = random(*leading, 6, 5)
    mask = None
    if masked != "not":
        apart = leading if masked == "each apart" else ()
        mask = torch.rand(*apart, 6, 6) < 0.5
        mask[..., 0] = True  # a query must see a key
    attended = nn.scaled_dot_product_attention(Q, K, V, mask)
    if masked == "causal":
        attended = nn.causal_attention(Q, K, V)
        mask = torch.ones(6, 6, dtype=torch.bool).tril()
    expected = functional.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    same(attended, expected, (Q, K, V))


def test_the_last_query_sees_all_keys_when_there_are_more_keys():
    assert nn.causal_mask(2, 4).tolist() == [[True, True, True, False], [True] * 4]


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_cross_entropy_is_torchs(leading, dtype):
    logits = random(*leading, 9, scale=20)
    targets = torch.randint(9, leading, dtype=dtype)
    theirs = functional.cross_entropy(logits.reshape(-1, 9), targets.flatten().long())
    same(nn.cross_entropy(logits, targets), theirs, (logits,), tolerance=1e-6)


def test_cross_entropy_of_huge_logits_is_exact():
    logits = torch.tensor([[1e30, 0.0], [0.0, 1000.0]])
    assert nn.cross_entropy(logits, torch.tensor([0, 0])).item() == 500


def test_perplexity_of_even_odds_counts_them():
    logits = torch.zeros(3, 50)
    loss = nn.cross_entropy(logits, torch.tensor([1, 2, 3]))
    assert nn.perplexity(loss).item() == pytest.approx(50, rel=1e-6)


def turned_as_complex_numbers(x, positions, theta):
    """RoPE another way: pairs are complex numbers, multiplied by exp(i · angle)."""
    d_k = x.shape[-1]
    rates = torch.tensor([theta ** (-2 * k / d_k) for k in range(d_k // 2)], dtype=torch.float64)
    turns = torch.polar(torch.ones(()).double(), positions.double()[..., None] * rates)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2)


@pytest.mark.parametrize("leading", LEADING)
def test_rope_multiplies_pairs_as_complex_numbers(leading):
    rope = nn.RotaryPositionalEmbedding(10_000.0, 8, 1_024)
    x = random(*leading, 5, 8)
    each_apart = torch.randint(1_024, (*leading, 5))
    for positions in (None, torch.tensor([3, 0, 1_023, 1_000, 3]), each_apart):
        counted = torch.arange(5) if positions is None else positions
        expected = turned_as_complex_numbers(x, counted, 10_000.0).float()
        same(rope(x, positions), expected, (x,), tolerance=1e-6)


def test_rope_keeps_its_tables_exact_in_a_model_of_another_type():
    rope = nn.RotaryPositionalEmbedding(10_000.0, 8, 1_024)
    exact = turned_as_complex_numbers(torch.eye(8)[None, 0], torch.tensor([1_000]), 10_000.0)
    assert rope.to(torch.bfloat16).table.turns.dtype == torch.float32
    x = torch.eye(8)[None, 0]
    torch.testing.assert_close(rope(x, torch.tensor([1_000])), exact.float(), atol=1e-7, rtol=0)
    fresh = nn.RotaryPositionalEmbedding(10_000.0, 8, 1_024, device="meta").to_empty(device="cpu")
    assert torch.equal(fresh.table.turns, rope.table.turns) and not rope.state_dict()
    turned = rope.double()(x.double(), torch.tensor([1_000]))
    torch.testing.assert_close(turned, exact, atol=1e-15, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_costs_one_rounding_of_the_result(dtype):
    """What adds up many numbers does it in float32: only what goes in and comes out is rounded."""
    x = random(4, 300, dtype=dtype).detach()
    norm = nn.RMSNorm(300, dtype=dtype)
    rope = nn.RotaryPositionalEmbedding(1e4, 300, 8)
    for part in (norm, rope, lambda x: nn.softmax(x, -1)):
        result = part(x)
        assert result.dtype == dtype
        assert torch.equal(result, part(x.float()).to(dtype))
    loss = nn.cross_entropy(x, torch.arange(4))
    assert loss.dtype == torch.float32 and loss == nn.cross_entropy(x.float(), torch.arange(4))


def test_float64_stays_float64_and_its_gradients_are_right():
    layer = nn.SwiGLU(4, 6, dtype=torch.float64)
    norm = nn.RMSNorm(4, dtype=torch.float64)
    rope = nn.RotaryPositionalEmbedding(100.0, 4, 8, dtype=torch.float64)
    x = random(2, 3, 4, dtype=torch.float64)

    def all_of_them(x):
        x = rope(norm(layer(x)))
        return nn.cross_entropy(nn.causal_attention(x, x, x), torch.tensor([[0, 1, 2]] * 2))

    assert all_of_them(x).dtype == torch.float64
    assert torch.autograd.gradcheck(all_of_them, x)


def test_weights_are_drawn_as_the_course_says():
    linear = nn.Linear(300, 500).weight
    table = nn.Embedding(300, 500).weight
    std = math.sqrt(2 / 800)
    assert linear.shape == (500, 300) and table.shape == (300, 500)
    # Cutting a normal distribution at 3 standard deviations takes 1.3 % off the deviation.
    assert linear.std().item() == pytest.approx(std * 0.9866, rel=0.01)
    assert table.std().item() == pytest.approx(0.9866, rel=0.01)
    assert 2.9 * std < linear.abs().max() <= 3 * std
    assert torch.equal(nn.RMSNorm(5).weight, torch.ones(5))


def test_ids_that_no_row_belongs_to_are_named():
    table = nn.Embedding(1_000, 2)
    for wrong in (-1, 1_000):
        with pytest.raises(ValueError, match=f"id {wrong} is outside .* from 0 to 999"):
            table(torch.tensor([[3, wrong]]))
    for parts in (nn, fused):
        with pytest.raises(ValueError, match=r"target 5 is outside the vocabulary, .* from 0 to 4"):
            parts.cross_entropy(torch.zeros(2, 5), torch.tensor([0, 5]))


def test_integers_are_no_shares():
    with pytest.raises(ValueError, match=r"floats, got torch.int64: convert it by `.float\(\)`"):
        nn.float_type(torch.tensor([1, 2, 3]))


def test_positions_beyond_the_tables_are_named():
    rope = nn.RotaryPositionalEmbedding(10_000.0, 4, 8)
    x = torch.zeros(9, 4)
    with pytest.raises(ValueError, match="a sequence of 9 is longer than max_seq_len=8"):
        rope(x)
    with pytest.raises(ValueError, match=r"position 8 is outside max_seq_len, .* from 0 to 7"):
        rope(x[:2], torch.tensor([0, 8]))
    with pytest.raises(ValueError, match=r"d_k=5 is odd, .* try 6"):
        nn.RotaryPositionalEmbedding(10_000.0, 5, 8)
