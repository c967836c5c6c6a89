"""What a loss can be, and that the same loss in three units is one."""

import math
from statistics import median

import pytest

from workbook.corpora import corpora
from workbook.experiments.published import all_claims
from workbook.tokenization import token_files
from workbook.training import loss_bounds
from workbook.training.loss_bounds import BYTES_PER_TOKEN, bits_per_byte, bounds, nats_per_token


@pytest.mark.parametrize("nats", [0.3, 1.45, 9.2])
def test_the_two_units_are_turned_into_each_other(nats):
    assert nats_per_token(bits_per_byte(nats, 4.1), 4.1) == pytest.approx(nats, rel=1e-15)
    assert bits_per_byte(math.log(2), 1) == 1
    assert loss_bounds.uniform_loss(10_000) == pytest.approx(9.2103, abs=1e-4)


def test_every_corpus_has_a_floor_and_an_unknown_one_is_named():
    assert set(BYTES_PER_TOKEN) == set(corpora.CORPORA)
    for corpus in BYTES_PER_TOKEN:
        known = bounds(corpus)
        assert known.floor == loss_bounds.STATED_FLOORS.get(corpus, known.floor) > 0
        assert known.lowest == nats_per_token(known.floor, known.bytes_per_token)
    with pytest.raises(ValueError, match="is not a corpus; choose from tinystories"):
        bounds("wikipedia")


@pytest.mark.slow
def test_the_floor_of_the_stories_is_that_of_the_whole_split():
    # A sample stands for all: the cost of a byte varies by about a hundredth from sample to sample.
    whole = corpora.record(corpora.path("stories", "validation"))["bits_per_byte"]
    assert bounds("stories").floor == pytest.approx(loss_bounds.MARGIN * whole, rel=0.03)


@pytest.mark.slow
def test_a_token_is_as_long_as_is_said():
    _, tokenizer = token_files.tokenizer_for("stories")
    with corpora.path("stories", "validation").open(encoding="utf-8") as file:
        text = file.read(50_000)
    length = len(text.encode()) / len(tokenizer.encode(text))
    assert length == pytest.approx(BYTES_PER_TOKEN["stories"], rel=0.02)


def test_what_a_token_of_the_real_corpora_holds_agrees_with_the_write_ups():
    table = all_claims()
    both = table[table["unit"] == "bytes per token of TinyStories; bytes per token of OWT"]
    measured = [[float(length) for length in claimed.split("; ")] for claimed in both["value"]]
    assert len(measured) == 3
    for corpus, lengths in zip(("tinystories", "owt"), zip(*measured, strict=True), strict=True):
        assert BYTES_PER_TOKEN[corpus] == pytest.approx(median(lengths), rel=0.02)


def test_another_tokenizer_moves_the_floor_in_nats_and_not_in_bits():
    bytewise = bounds("tinystories", 1.0)
    assert bytewise.floor == bounds("tinystories").floor
    assert bytewise.lowest < 0.3 < bounds("tinystories").lowest < 1.45
