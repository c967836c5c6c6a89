"""The language model: equal to Llama on the same weights, causal, and fused as the textbook is."""

import copy
from dataclasses import replace
from itertools import product

import pytest
import torch
from transformers import LlamaForCausalLM

from workbook.config import ModelConfig, check_heads
from workbook.generation import formats
from workbook.transformer import nn
from workbook.transformer.model import KeyValueCache, MultiHeadSelfAttention, TransformerLM

BASE = ModelConfig(vocab_size=53, context_length=12, d_model=32, num_layers=2, num_heads=4, d_ff=48)
ABLATIONS = {}
for norm, position, ffn in product(("pre", "post", "none"), ("rope", "none"), ("swiglu", "silu")):
    ablated = replace(BASE, norm=norm, position=position, ffn=ffn)
    ABLATIONS[f"{norm}-{position}-{ffn}"] = ablated
    ABLATIONS[f"{norm}-{position}-{ffn}-tied"] = replace(ablated, tie_embeddings=True)
ABLATIONS["final"] = replace(BASE, norm="final")


@pytest.fixture(params=ABLATIONS)
def ablation(request):
    return ABLATIONS[request.param]


def model_of(config, dtype=None):
    """A model with weights, gains too, that are all different."""
    model = TransformerLM.from_config(config, dtype=dtype)
    for name, weight in model.named_parameters():
        if "ln" in name:
            weight.data.uniform_(0.5, 1.5)
    return model


def ids(*shape):
    return torch.randint(BASE.vocab_size, shape)


def test_tied_weights_begin_the_stream_at_the_size_that_it_has_without_tying():
    wide = replace(BASE, vocab_size=2_000, d_model=64)
    tied = TransformerLM.from_config(replace(wide, tie_embeddings=True))
    separate = TransformerLM.from_config(wide)
    assert tied.token_embeddings.weight is tied.lm_head.weight
    every = torch.arange(2_000)[:, None]
    sizes = [model.embed(every).std().item() for model in (tied, separate)]
    assert sizes == pytest.approx([0.99, 0.99], rel=0.02)  # N(0, 1), truncated at 3


@pytest.mark.parametrize("kernels", ["textbook", "fused"])
def test_the_model_is_huggingfaces_llama(kernels, tmp_path):
    """Logits and the gradient of every parameter; Llama keeps its angles in float32."""
    model = model_of(replace(BASE, kernels=kernels), torch.float64)
    llama = LlamaForCausalLM.from_pretrained(
        formats.save_model(model, tmp_path), dtype=torch.float64, attn_implementation="eager"
    )
    inputs = ids(3, 12)
    targets = ids(3, 12)
    logits = model(inputs), llama(inputs).logits
    torch.testing.assert_close(*logits, atol=1e-5, rtol=0)
    for one in logits:
        nn.cross_entropy(one, targets).backward()
    weights = dict(model.named_parameters())
    llama_weights = dict(llama.named_parameters())
    for name, llama_name in formats.weight_names(BASE):
        grad = formats.reordered(name, weights[name].grad, BASE)  # it rotates halves, not pairs
        torch.testing.assert_close(llama_weights[llama_name].grad, grad, atol=1e-6, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_fused_is_textbook_for_every_ablation(ablation, dtype):
    textbook = model_of(replace(ablation, kernels="textbook"), dtype)
    fused = TransformerLM.from_config(ablation, dtype=dtype)
    fused.load_state_dict(copy.deepcopy(textbook.state_dict()))
    inputs = ids(2, 12)
    targets = ids(2, 12)
    atol = {torch.float64: 1e-12, torch.float32: 1e-4, torch.bfloat16: 0.25}[dtype]
    results = []
    for model in (textbook, fused):
        logits = model(inputs)
        nn.cross_entropy(logits, targets).backward()
        results.append([logits, *(weight.grad for weight in model.parameters())])
    torch.testing.assert_close(*results, atol=atol, rtol=0)


@pytest.mark.parametrize("kernels", ["textbook", "fused"])
def test_a_later_id_never_changes_an_earlier_logit(ablation, kernels):
    model = model_of(replace(ablation, kernels=kernels))
    before = ids(1, 12).repeat(12, 1)
    each = torch.arange(12)
    after = before.clone()
    after[each, each] = (before[each, each] + 1) % BASE.vocab_size  # row i has another id i
    moved = (model(after) != model(before)).any(-1)
    for changed in range(12):
        assert not moved[changed, :changed].any() and moved[changed, changed]


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["textbook", "fused"])
def test_a_cache_gives_the_logits_of_the_whole_sequence(ablation, kernels):
    model = model_of(replace(ablation, kernels=kernels))
    inputs = ids(2, 12)
    with torch.no_grad():
        whole = model(inputs)
        caches = model.new_caches()
        parts = [model(part, caches=caches) for part in inputs.split([5, 1, 1, 3, 2], dim=-1)]
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-5, rtol=0)
    assert all(len(cache) == 12 for cache in caches)


@pytest.mark.parametrize("kernels", ["textbook", "fused"])
def test_any_number_of_sequences_goes_in(ablation, kernels):
    model = model_of(replace(ablation, kernels=kernels))
    inputs = ids(2, 1, 3, 7)
    whole = model(inputs)
    assert whole.shape == (2, 1, 3, 7, BASE.vocab_size)
    torch.testing.assert_close(model(inputs[1, 0, 2]), whole[1, 0, 2], atol=1e-5, rtol=1e-5)


def test_positions_may_be_given():
    model = model_of(BASE)
    inputs = ids(2, 6)
    moved = torch.stack((torch.arange(6), torch.arange(6) + 5))
    torch.testing.assert_close(model(inputs, moved), model(inputs), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(model(inputs, torch.arange(6) * 2), model(inputs), atol=1e-3)


def test_without_positions_order_still_tells_through_the_mask_alone():
    """NoPE: the last position gathers the same from any order of what stands before it."""
    model = model_of(replace(BASE, position="none", num_layers=1))
    inputs = ids(1, 6)
    mixed = inputs[:, [3, 1, 0, 2, 4, 5]]
    torch.testing.assert_close(model(mixed)[:, -1], model(inputs)[:, -1])
    assert not torch.allclose(model_of(BASE)(mixed)[:, -1], model_of(BASE)(inputs)[:, -1])


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["textbook", "fused"])
def test_two_threads_give_the_same_bits_every_time(kernels):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        config = replace(BASE, d_model=64, vocab_size=512, context_length=64, kernels=kernels)
        model = model_of(config)
        inputs = torch.randint(40, (16, 64))  # the same ids many times
        runs = []
        for _ in range(3):
            model.zero_grad()
            nn.cross_entropy(model(inputs), inputs.roll(1)).backward()
            runs.append([weight.grad.clone() for weight in model.parameters()])
        for run in runs[1:]:
            assert all(map(torch.equal, run, runs[0]))
    finally:
        torch.set_num_threads(threads)


def test_a_sequence_that_is_too_long_is_refused_with_what_fits():
    model = TransformerLM.from_config(BASE)
    with pytest.raises(ValueError, match="13 ids are more than context_length=12; keep the last"):
        model(ids(1, 13))
    caches = model.new_caches()
    with torch.no_grad():
        model(ids(1, 10), caches=caches)
        with pytest.raises(ValueError, match="13 ids are more"):
            model(ids(1, 3), caches=caches)
    full = KeyValueCache(2)
    with pytest.raises(ValueError, match="3 positions do not fit in a cache of 2"):
        full.extend(torch.zeros(1, 3, 4), torch.zeros(1, 3, 4))


IMPOSSIBLE = [
    ({"num_heads": 5}, "d_model=32 is not a multiple of num_heads=5; try 30 or 35"),
    ({"num_heads": 32}, "RoPE rotates them in pairs; try d_model=64"),
    ({"num_layers": 0}, "num_layers=0 is not a positive whole number"),
    ({"norm": "middle"}, "norm='middle' is not one of 'pre', 'post', 'none'"),
    ({"rope_theta": 0.0}, "rope_theta=0.0 is not positive"),
]


@pytest.mark.parametrize(("changes", "said"), IMPOSSIBLE)
def test_a_config_that_cannot_be_is_refused_with_one_that_can(changes, said):
    with pytest.raises(ValueError, match=said):
        replace(BASE, **changes)


def test_theta_needs_to_know_for_how_many_positions():
    with pytest.raises(ValueError, match="theta needs max_seq_len"):
        MultiHeadSelfAttention(32, 4, theta=10_000.0)
    check_heads(33, 3, rope=False)  # 11 values a head: fine where nothing is turned
