"""The probabilities that are shown are those that the model gives."""

import pytest
import torch

from workbook.generation import likelihood, sampling
from workbook.tokenization.tokenizer import Tokenizer
from workbook.transformer.model import TransformerLM

TOKENIZER = Tokenizer({value: bytes([value]) for value in range(256)}, [], ["<|endoftext|>"])


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TransformerLM(257, 16, 32, 2, 4, 48).eval()


def test_each_id_is_judged_by_the_ids_before_it_as_far_as_the_model_sees(model):
    ids = [token_id % 257 for token_id in range(0, 400, 9)]
    shares = likelihood.likelihoods(model, ids)
    assert len(shares) == len(ids) - 1
    for place in (1, 7, 16, 17, 30, 44):
        seen = torch.tensor([ids[max(0, place - 16) : place]])
        share = model(seen)[0, -1].softmax(-1)[ids[place]].item()
        assert shares[place - 1] == pytest.approx(share, rel=1e-4)
    assert likelihood.likelihoods(model, ids[:5]) == pytest.approx(shares[:4], rel=1e-4)


def test_the_next_tokens_are_those_that_may_be_drawn(model):
    tokens = likelihood.next_tokens(model, TOKENIZER, "fox")
    assert len(tokens) == 257 and sum(tokens.values()) == pytest.approx(1, abs=1e-5)
    assert list(tokens.values()) == sorted(tokens.values(), reverse=True)
    few = likelihood.next_tokens(model, TOKENIZER, "fox", 0.7, 0.5)
    logits = likelihood.next_logits(model, TOKENIZER.encode("fox"))
    shares, _ = sampling.candidates(logits, 0.7, 0.5)
    assert len(few) == (shares > 0).sum()
    assert sum(few.values()) == pytest.approx(1, abs=1e-5)


def test_at_temperature_0_one_token_is_left(model):
    [(token, share)] = likelihood.next_tokens(model, TOKENIZER, "fox", 0).items()
    assert share == 1
    assert [token[0]] == sampling.decode(model, TOKENIZER.encode("fox"), 1, temperature=0)


def test_nothing_before_means_a_new_document(model):
    new = likelihood.next_tokens(model, TOKENIZER, "<|endoftext|>")
    assert likelihood.next_tokens(model, TOKENIZER, "") == new
