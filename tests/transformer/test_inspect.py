"""What is seen inside a model is what it computes, and looking changes nothing."""

import pytest
import torch

from workbook.transformer.inspect import attention_maps, residual_rms, rms
from workbook.transformer.model import TransformerLM


@pytest.fixture(params=["textbook", "fused"])
def model(request):
    torch.manual_seed(1)
    return TransformerLM(11, 8, 12, 3, 2, 16, kernels=request.param)


IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def test_maps_are_causal_weights_of_every_layer_and_head(model):
    maps = attention_maps(model, IDS)
    assert maps.shape == (3, 2, 2, 5, 5)
    torch.testing.assert_close(maps.sum(-1), torch.ones(3, 2, 2, 5))
    assert (maps.triu(1) == 0).all() and (maps.tril() > 0).sum() == 3 * 2 * 2 * 15


def test_maps_are_the_softmax_of_the_scaled_scores(model):
    attention = model.layers[0].attn
    x = model.layers[0].ln1(model.token_embeddings(IDS))
    heads = [proj(x).unflatten(-1, (2, 6)).transpose(1, 2)
             for proj in (attention.q_proj, attention.k_proj)]  # fmt: skip
    Q, K = map(attention.rope, heads)
    scores = (Q @ K.transpose(-1, -2) / 6**0.5).masked_fill(
        torch.ones(5, 5, dtype=torch.bool).triu(1), -torch.inf
    )
    torch.testing.assert_close(attention_maps(model, IDS)[0], scores.softmax(-1))


def test_looking_leaves_the_model_as_it_was(model):
    before, attend = model(IDS), model.layers[0].attn.attend
    attention_maps(model, IDS)
    residual_rms(model, IDS)
    assert model.layers[0].attn.attend is attend
    assert not model.token_embeddings._forward_hooks
    assert torch.equal(model(IDS), before)


def test_a_model_that_fails_is_left_as_it_was_too(model):
    attend = model.layers[0].attn.attend
    with pytest.raises(ValueError, match="context_length"):
        attention_maps(model, torch.zeros(1, 9, dtype=torch.long))
    with pytest.raises(ValueError, match="context_length"):
        residual_rms(model, torch.zeros(1, 9, dtype=torch.long))
    assert model.layers[0].attn.attend is attend
    assert not model.layers[0]._forward_hooks


def test_the_residual_stream_is_measured_after_the_embedding_and_each_block(model):
    sizes = residual_rms(model, IDS)
    x = model.token_embeddings(IDS)
    expected = [rms(x).mean()]
    for layer in model.layers:
        x = layer(x)
        expected.append(rms(x).mean())
    torch.testing.assert_close(sizes, torch.stack(expected))


def test_rms_is_that_of_each_vector():
    assert rms(torch.tensor([[3.0, 4.0], [1.0, 1.0]])).tolist() == pytest.approx([12.5**0.5, 1])
