"""Each adapter that the course's own tests call is one line with our parts."""

import torch
from torch.nn import functional

from workbook.classroom.mine.course_adapters import (
    run_cross_entropy,
    run_embedding,
    run_linear,
    run_multihead_self_attention,
    run_multihead_self_attention_with_rope,
    run_rmsnorm,
    run_rope,
    run_scaled_dot_product_attention,
    run_silu,
    run_softmax,
    run_swiglu,
    run_transformer_block,
    run_transformer_lm,
)
from workbook.transformer import model, nn

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
MODEL = {
    "token_embeddings.weight": draw(V, D),
    "ln_final.weight": draw(D),
    "lm_head.weight": draw(V, D),
} | {f"layers.{i}.{name}": weight for i in range(3) for name, weight in BLOCK.items()}


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


def test_our_parts_have_the_courses_weights_and_no_others():
    """The adapters would also load a part that has more."""
    qkvo = {f"{name}_proj.weight" for name in ("q", "k", "v", "output")}
    for part, names in (
        (nn.Linear(D, F), {"weight"}),
        (nn.Embedding(V, D), {"weight"}),
        (nn.RMSNorm(D), {"weight"}),
        (nn.SwiGLU(D, F), {"w1.weight", "w2.weight", "w3.weight"}),
        (model.MultiHeadSelfAttention(D, H), qkvo),
        (model.MultiHeadSelfAttention(D, H, T, 1e4), qkvo),
        (model.TransformerBlock(D, H, F, T, 1e4), BLOCK.keys()),
        (model.TransformerLM(V, T, D, 3, H, F, 1e4), MODEL.keys()),
    ):
        assert part.state_dict().keys() == names


def test_block_and_model_take_the_courses_state_dicts():
    assert run_transformer_block(D, H, F, T, 1e4, BLOCK, draw(2, T, D)).shape == (2, T, D)
    logits = run_transformer_lm(V, T, D, 3, H, F, 1e4, MODEL, torch.zeros(2, T).long())
    assert logits.shape == (2, T, V)
