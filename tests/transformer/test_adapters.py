"""Each adapter that the course's own tests call is one line with our parts."""

import pytest
import torch
from torch.nn import functional

from workbook.classroom.mine import course_adapters as course
from workbook.classroom.mine.adapters import OF_TENSORS, example
from workbook.transformer import model, nn

D, H, F, V, T = 8, 2, 12, 11, 6
QKVO = {f"{name}_proj.weight" for name in ("q", "k", "v", "output")}
FFN = {"w1.weight", "w2.weight", "w3.weight"}
BLOCK = {"ln1.weight", "ln2.weight"} | {f"attn.{w}" for w in QKVO} | {f"ffn.{w}" for w in FFN}
MODEL = {"token_embeddings.weight", "ln_final.weight", "lm_head.weight"} | {
    f"layers.{number}.{name}" for number in range(3) for name in BLOCK
}


def test_our_parts_have_the_courses_weights_and_no_others():
    """The adapters would also load a part that has more."""
    for part, names in (
        (nn.Linear(D, F), {"weight"}),
        (nn.Embedding(V, D), {"weight"}),
        (nn.RMSNorm(D), {"weight"}),
        (nn.SwiGLU(D, F), FFN),
        (model.MultiHeadSelfAttention(D, H), QKVO),
        (model.MultiHeadSelfAttention(D, H, T, 1e4), QKVO),
        (model.TransformerBlock(D, H, F, T, 1e4), BLOCK),
        (model.TransformerLM(V, T, D, 3, H, F, 1e4), MODEL),
    ):
        assert part.state_dict().keys() == names


@pytest.mark.parametrize("name", sorted(OF_TENSORS))
def test_an_adapter_uses_every_tensor_that_it_is_given(name):
    torch.manual_seed(0)
    adapter, given = getattr(course, name), example(name, spread=0.2)
    result = adapter(**given)
    for argument, value in given.items():
        tensors = value if isinstance(value, dict) else {"": value}
        for own, tensor in tensors.items():
            if isinstance(tensor, torch.Tensor):
                other = {**tensors, own: tensor.flip(-1)}
                other = other if isinstance(value, dict) else other[""]
                assert not torch.equal(adapter(**{**given, argument: other}), result), own


def test_the_adapters_do_not_mix_up_their_weights():
    x, w1, w3 = torch.randn(T, D), torch.randn(F, D), torch.randn(F, D)
    hidden, w2 = functional.silu(x @ w1.T) * (x @ w3.T), torch.randn(D, F)
    torch.testing.assert_close(course.run_swiglu(D, F, w1, w2, w3, x), hidden @ w2.T)
    q, k, v, output = torch.randn(4, D, D)
    Q, K, V = ((x @ w.T).unflatten(-1, (H, -1)).transpose(0, 1) for w in (q, k, v))
    heads = functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
    found = course.run_multihead_self_attention(D, H, q, k, v, output, x)
    torch.testing.assert_close(found, heads.transpose(0, 1).flatten(1) @ output.T)
    positions = torch.zeros(T, dtype=torch.long)  # where nothing is turned
    with_rope = course.run_multihead_self_attention_with_rope
    turned = with_rope(D, H, T, 1e4, q, k, v, output, x, positions)
    torch.testing.assert_close(turned, found)
