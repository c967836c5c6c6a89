"""Each adapter that the course's own tests call is one line with our parts."""

import torch
from torch.nn import functional

from workbook.transformer import model, nn

# As in the course's `tests/adapters.py`: plain sizes, weights and inputs in, one tensor out.


def run_linear(d_in, d_out, weights, in_features):
    return loaded(nn.Linear(d_in, d_out), {"weight": weights})(in_features)


def run_embedding(vocab_size, d_model, weights, token_ids):
    return loaded(nn.Embedding(vocab_size, d_model), {"weight": weights})(token_ids)


def run_swiglu(d_model, d_ff, w1_weight, w2_weight, w3_weight, in_features):
    named = {"w1.weight": w1_weight, "w2.weight": w2_weight, "w3.weight": w3_weight}
    return loaded(nn.SwiGLU(d_model, d_ff), named)(in_features)


def run_scaled_dot_product_attention(Q, K, V, mask=None):
    return nn.scaled_dot_product_attention(Q, K, V, mask)


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    layer = model.MultiHeadSelfAttention(d_model, num_heads)
    four = qkvo(q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return loaded(layer, four)(in_features)


def run_multihead_self_attention_with_rope(
    d_model,
    num_heads,
    max_seq_len,
    theta,
    q_proj_weight,
    k_proj_weight,
    v_proj_weight,
    o_proj_weight,
    in_features,
    token_positions=None,
):
    layer = model.MultiHeadSelfAttention(d_model, num_heads, max_seq_len, theta)
    four = qkvo(q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return loaded(layer, four)(in_features, token_positions)


def run_rope(d_k, theta, max_seq_len, in_query_or_key, token_positions):
    return nn.RotaryPositionalEmbedding(theta, d_k, max_seq_len)(in_query_or_key, token_positions)


def run_transformer_block(d_model, num_heads, d_ff, max_seq_len, theta, weights, in_features):
    block = model.TransformerBlock(d_model, num_heads, d_ff, max_seq_len, theta)
    return loaded(block, weights)(in_features)


def run_transformer_lm(
    vocab_size,
    context_length,
    d_model,
    num_layers,
    num_heads,
    d_ff,
    rope_theta,
    weights,
    in_indices,
):
    sizes = vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta
    return loaded(model.TransformerLM(*sizes), weights)(in_indices)


def run_rmsnorm(d_model, eps, weights, in_features):
    return loaded(nn.RMSNorm(d_model, eps), {"weight": weights})(in_features)


def run_silu(in_features):
    return nn.silu(in_features)


def run_softmax(in_features, dim):
    return nn.softmax(in_features, dim)


def run_cross_entropy(inputs, targets):
    return nn.cross_entropy(inputs, targets)


def loaded(layer, weights):
    """The layer with these weights, all of them and no other."""
    layer.load_state_dict(weights)
    return layer


def qkvo(q, k, v, o):
    return {f"{name}_proj.weight": w for name, w in zip("qkv", (q, k, v), strict=True)} | {
        "output_proj.weight": o
    }


D, H, F, V, T = 8, 2, 12, 11, 6


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


BLOCK = {
    "attn.q_proj.weight": draw(D, D),
    "attn.k_proj.weight": draw(D, D),
    "attn.v_proj.weight": draw(D, D),
    "attn.output_proj.weight": draw(D, D),
    "ln1.weight": draw(D),
    "ffn.w1.weight": draw(F, D),
    "ffn.w2.weight": draw(D, F),
    "ffn.w3.weight": draw(F, D),
    "ln2.weight": draw(D),
}


def test_the_parts_take_the_courses_weights():
    x = draw(2, T, D)
    assert torch.equal(run_linear(D, F, draw(F, D), x), x @ draw(F, D).T)
    assert torch.equal(run_embedding(V, D, draw(V, D), torch.tensor([3])), draw(V, D)[[3]])
    assert run_swiglu(D, F, draw(F, D), draw(D, F), draw(F, D), x).shape == x.shape
    mask = torch.ones(2, T, T, dtype=torch.bool).tril()
    assert run_scaled_dot_product_attention(x, x, x, mask).shape == x.shape
    assert run_rmsnorm(D, 1e-5, draw(D), x).shape == x.shape
    assert torch.equal(run_silu(x), x * torch.sigmoid(x))
    torch.testing.assert_close(run_softmax(x, -1), functional.softmax(x, -1))
    assert run_cross_entropy(x[0], torch.arange(T)).ndim == 0


def test_attention_takes_the_courses_weights():
    x, four = draw(2, T, D), [draw(D, D)] * 4
    plain = run_multihead_self_attention(D, H, *four, x)
    turned = run_multihead_self_attention_with_rope(D, H, T, 1e4, *four, x, torch.arange(T)[None])
    assert plain.shape == turned.shape == x.shape
    assert torch.equal(plain[:, 0], turned[:, 0]) and not torch.equal(plain, turned)
    positions = torch.arange(T).expand(2, T)
    assert run_rope(D, 1e4, T, x, positions).shape == x.shape


def test_block_and_model_take_the_courses_state_dicts():
    assert run_transformer_block(D, H, F, T, 1e4, BLOCK, draw(2, T, D)).shape == (2, T, D)
    weights = {
        "token_embeddings.weight": draw(V, D),
        "ln_final.weight": draw(D),
        "lm_head.weight": draw(V, D),
    }
    weights |= {f"layers.{i}.{name}": weight for i in range(3) for name, weight in BLOCK.items()}
    logits = run_transformer_lm(V, T, D, 3, H, F, 1e4, weights, torch.zeros(2, T).long())
    assert logits.shape == (2, T, V)
