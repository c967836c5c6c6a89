"""Generation: cached as recomputed, several prompts as one, text without broken characters."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workbook.config import ModelConfig
from workbook.generation import sampling
from workbook.generation.fast_step import OneStep
from workbook.tokenization.bpe import train_bpe
from workbook.tokenization.tokenizer import Tokenizer
from workbook.transformer.model import TransformerLM

BASE = ModelConfig(vocab_size=97, context_length=24, d_model=32, num_layers=2, num_heads=4, d_ff=48)
ABLATIONS = {
    "base": BASE,
    "textbook": replace(BASE, kernels="textbook"),
    "post": replace(BASE, norm="post"),
    "no norm": replace(BASE, norm="none"),
    "no position": replace(BASE, position="none"),
    "silu": replace(BASE, ffn="silu"),
    "tied": replace(BASE, tie_embeddings=True),
}
PROMPTS = [[5, 7, 11], [2], [3, 1, 4, 1, 5, 9, 2, 6]]


@pytest.fixture(params=ABLATIONS)
def model(request):
    return model_of(ABLATIONS[request.param])


def model_of(config, dtype=None):
    torch.manual_seed(1)
    return TransformerLM.from_config(config, dtype=dtype)


def seed(number=0):
    return torch.Generator().manual_seed(number)


@pytest.mark.parametrize(
    ("name", "dtype", "atol"),
    [*((name, torch.float64, 1e-12) for name in ABLATIONS), ("base", torch.bfloat16, 0.1)],
)
@torch.inference_mode()
def test_one_step_at_a_time_gives_the_logits_of_the_whole_sequence(name, dtype, atol):
    model = model_of(ABLATIONS[name], dtype)
    ids = torch.randint(97, (3, 24), generator=seed())
    step = OneStep(model)
    caches = model.new_caches()
    parts = [model(ids[:, :4], caches=caches)]
    parts += [step(ids[:, [at]], caches) for at in range(4, 24)]
    torch.testing.assert_close(torch.cat(parts, 1), model(ids), atol=atol, rtol=0)


@pytest.mark.slow
def test_beyond_the_window_the_last_context_length_ids_count(model):
    window = BASE.context_length
    prompt = [token_id % 97 for token_id in range(window - 3)]
    ids = list(prompt)
    for _ in range(10):
        ids.append(model(torch.tensor([ids[-window:]]))[0, -1].argmax().item())
    new = ids[len(prompt) :]
    assert sampling.decode(model, prompt, 10, temperature=0) == new
    assert sampling.generate(model, [prompt, [1]], 10, temperature=0)[0] == new
    long = prompt * 3
    slow = sampling.decode(model, long, 3, temperature=0)
    assert sampling.generate(model, [long], 3, temperature=0) == [slow]


@pytest.mark.slow
def test_several_prompts_get_what_each_gets_alone(model):
    alone = [sampling.decode(model, prompt, 20, temperature=0) for prompt in PROMPTS]
    assert sampling.generate(model, PROMPTS, 20, temperature=0) == alone
    end = alone[0][5]
    cut = [ids[: ids.index(end)] if end in ids else ids for ids in alone]
    assert sampling.generate(model, PROMPTS, 20, temperature=0, end_id=end) == cut
    assert len(cut[0]) <= 5


@pytest.mark.slow
def test_the_same_seed_gives_the_same_ids_by_either_way():
    model = model_of(BASE)
    for settings in ({}, {"top_p": 0.8}, {"top_k": 5}, {"temperature": 0.5, "top_p": 0.5}):
        one, other = (sampling.decode(model, [3], 20, generator=seed(), **settings) for _ in "ab")
        [cached] = sampling.generate(model, [[3]], 20, generator=seed(), **settings)
        assert one == other == cached
        assert one != sampling.decode(model, [3], 20, generator=seed(1), **settings)


def test_decode_takes_any_function_and_the_handouts_arguments_by_position():
    def counts_up(ids):
        return torch.nn.functional.one_hot((ids + 1) % 10, 10).float() * 100

    assert sampling.decode(counts_up, [3], 4, 1.0, 1.0, None) == [4, 5, 6, 7]
    assert sampling.decode(counts_up, [3], 9, 1.0, 0.9, 8) == [4, 5, 6, 7]
    assert sampling.decode(counts_up, [7, 3], 0) == []


def test_temperature_divides_the_logits():
    logits = torch.tensor([[1.0, 2.0, 4.0]])
    for temperature in (0.5, 1.0, 3.0):
        shares, ids = sampling.candidates(logits, temperature)
        torch.testing.assert_close(shares, (logits / temperature).softmax(-1))
        assert ids.tolist() == [[0, 1, 2]]
    assert sampling.draw(logits, temperature=0).tolist() == [2]
    for small in (1e-30, 1e-300):
        assert sampling.candidates(logits, small)[0].tolist() == [[0, 0, 1]]
    with pytest.raises(ValueError, match="at temperature 0 nothing is drawn"):
        sampling.candidates(logits, 0)
    shares, _ = sampling.candidates(torch.zeros(1, 1_000, dtype=torch.bfloat16), top_p=0.25)
    assert shares.dtype == torch.float32 and (shares > 0).sum() == 250


def test_top_k_keeps_the_likeliest():
    shares, ids = sampling.candidates(torch.tensor([[0.0, 3.0, 1.0, 2.0]]), top_k=2)
    assert ids.tolist() == [[1, 3]]
    torch.testing.assert_close(shares, torch.tensor([[3.0, 2.0]]).softmax(-1))
    assert sampling.candidates(torch.zeros(1, 4), top_k=9)[0].shape == (1, 4)


KEPT = [(0.4, 1), (0.5, 1), (0.51, 2), (0.75, 2), (0.8, 3), (0.99, 4)]


@pytest.mark.parametrize(("top_p", "kept"), KEPT)
def test_top_p_keeps_the_fewest_that_have_p_together(top_p, kept):
    logits = torch.tensor([[0.125, 0.5, 0.125, 0.25]]).log()
    shares, ids = sampling.candidates(logits, top_p=top_p)
    assert (shares > 0).sum() == kept
    assert ids[0, 0] == 1 and shares.sum() == pytest.approx(1)


def by_sorting(logits, top_p):
    """Top-p as it is usually written: sort all, and keep while those before have less than p."""
    shares, order = logits.softmax(-1).sort(descending=True)
    shares[shares.cumsum(-1) - shares >= top_p] = 0
    return torch.zeros_like(shares).scatter(-1, order, shares / shares.sum(-1, keepdim=True))


@pytest.mark.parametrize("top_p", [0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_the_quick_top_p_is_exact(top_p, scale):
    logits = torch.randn(3, 3_000, generator=seed()) * scale
    shares, ids = sampling.candidates(logits, top_p=top_p)
    whole = torch.zeros_like(logits).scatter(-1, ids, shares)
    torch.testing.assert_close(whole, by_sorting(logits, top_p), atol=1e-6, rtol=0)
    assert torch.equal(whole > 0, by_sorting(logits, top_p) > 0)


def test_ids_are_drawn_as_often_as_they_are_likely():
    logits = torch.tensor([[0.5, 0.3, 0.0, 0.2]]).log().expand(20_000, 4)
    counts = Counter(sampling.draw(logits, generator=seed()).tolist())
    assert set(counts) == {0, 1, 3}
    for token_id, share in ((0, 0.5), (1, 0.3), (3, 0.2)):
        assert counts[token_id] / 20_000 == pytest.approx(share, abs=0.015)


LEAVING_NOTHING = [
    ({"temperature": -1}, "temperature=-1 is not 0 or more; 0 takes the likeliest"),
    ({"top_p": 0}, "top_p must be above 0 and at most 1, got 0; 1 keeps every token"),
    ({"top_k": 0}, "top_k=0 keeps no token"),
]


@pytest.mark.parametrize(("settings", "message"), LEAVING_NOTHING)
def test_settings_that_leave_nothing_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        sampling.decode(model_of(BASE), [1], 5, **settings)


@pytest.mark.parametrize("temperature", [0, 1.0])
@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_a_model_that_has_diverged_is_said_so(odd, temperature):
    def model(ids):
        return torch.tensor([0.0, 1.0, odd]).expand(*ids.shape, 3)

    with pytest.raises(ValueError, match="the model's logits are NaN or infinite"):
        sampling.decode(model, [1], 3, temperature)


def test_prompts_that_cannot_be_continued_are_refused():
    model = model_of(BASE)
    for prompts in ([], [[1], []]):
        with pytest.raises(ValueError, match="a prompt needs at least one token"):
            sampling.generate(model, prompts, 5)
    with pytest.raises(ValueError, match="max_new_tokens=-1 is below 0"):
        sampling.decode(model, [1], -1)
    with pytest.raises(ValueError, match="id 97 is outside the vocabulary"):
        sampling.decode(model, [97], 1)


BYTES = Tokenizer({value: bytes([value]) for value in range(256)}, [], ["<|endoftext|>"])


@given(st.lists(st.integers(0, 255)))
def test_the_pieces_joined_are_what_decode_gives(ids):
    assert "".join(sampling.decode_stream(BYTES, ids)) == BYTES.decode(ids)


def test_a_piece_comes_before_the_next_id_is_asked_for():
    asked = []

    def ids():
        for token_id in BYTES.encode("aüb"):
            asked.append(token_id)
            yield token_id

    pieces = sampling.decode_stream(BYTES, ids())
    assert next(pieces) == "a" and len(asked) == 1
    assert next(pieces) == "ü" and len(asked) == 3
    with pytest.raises(ValueError, match="id 300 is not in the vocabulary of 257 tokens"):
        list(sampling.decode_stream(BYTES, [300]))


def test_text_is_written_until_its_end(tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("a fox ran. " * 50, "utf-8")
    tokenizer = Tokenizer(*train_bpe(corpus, 270, ["<|endoftext|>"]), ["<|endoftext|>"])
    assert sampling.end_of_text(tokenizer) == 0
    assert sampling.end_of_text(Tokenizer(tokenizer.vocab, tokenizer.merges)) is None
    model = model_of(replace(BASE, vocab_size=tokenizer.vocab_size, context_length=64))
    for prompt in ("a fox", ""):
        text = "".join(sampling.write_text(model, tokenizer, prompt, 30, temperature=0))
        start = tokenizer.encode(prompt) or [0]
        assert text == tokenizer.decode(sampling.decode(model, start, 30, temperature=0, end_id=0))


def test_the_smallest_of_shares_keeps_the_likeliest_token():
    logits = torch.tensor([[0.0, 3.0, 1.0]])
    for top_p in (1e-300, 5e-324, np.float32(1e-6)):
        assert int(sampling.draw(logits, 1.0, top_p)) == 1
