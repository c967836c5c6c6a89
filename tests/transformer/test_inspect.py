"""What is seen inside a model is what it computes, and looking changes nothing."""

import pytest
import torch

from workbook.transformer.inspect import attention_maps, residual_rms
from workbook.transformer.model import TransformerLM


@pytest.fixture(params=["textbook", "fused"])
def model(request):
    torch.manual_seed(1)
    return TransformerLM(11, 8, 12, 3, 2, 16, kernels=request.param)


IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def test_maps_are_the_softmax_of_the_scaled_scores(model):
    attention = model.layers[0].attn
    x = model.layers[0].ln1(model.token_embeddings(IDS))
    projections = attention.q_proj, attention.k_proj
    heads = (project(x).unflatten(-1, (2, 6)).transpose(1, 2) for project in projections)
    Q, K = map(attention.rope, heads)
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    scores = (Q @ K.transpose(-1, -2) / 6**0.5).masked_fill(later, -torch.inf)
    maps = attention_maps(model, IDS)
    assert maps.shape == (3, 2, 2, 5, 5)  # of every layer, text and head
    torch.testing.assert_close(maps[0], scores.softmax(-1))


@pytest.mark.parametrize("look", [attention_maps, residual_rms])
def test_looking_leaves_the_model_as_it_was_even_if_it_fails(model, look):
    before = model(IDS)
    attend = model.layers[0].attn.attend
    look(model, IDS)
    with pytest.raises(ValueError, match="context_length"):
        look(model, torch.zeros(1, 9, dtype=torch.long))
    assert model.layers[0].attn.attend is attend
    assert not any(part._forward_hooks for part in model.modules())
    assert torch.equal(model(IDS), before)


def test_the_residual_stream_is_measured_after_the_embedding_and_each_block(model):
    sizes = residual_rms(model, IDS)
    x = model.token_embeddings(IDS)
    expected = [x]
    for layer in model.layers:
        x = layer(x)
        expected.append(x)
    torch.testing.assert_close(sizes, torch.stack(expected).square().mean(-1).sqrt().mean((1, 2)))
