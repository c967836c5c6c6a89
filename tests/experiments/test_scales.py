"""The scales hold what the course asks for, and the batches that the accounting gives memory to."""

from itertools import pairwise

import pytest

from workbook import accounting
from workbook.config import ModelConfig, near_eight_thirds
from workbook.experiments import studies

EVERY = pytest.mark.parametrize("name", studies.SCALES)


def the_course_s_model(vocab_size):
    return ModelConfig(
        vocab_size=vocab_size,
        context_length=256,
        d_model=512,
        num_layers=4,
        num_heads=16,
        d_ff=1_344,
        rope_theta=10_000.0,
    )


@pytest.mark.parametrize("edition", ["2025", "2026"])
@pytest.mark.parametrize("scale", [studies.full_scale, studies.full_cpu_scale])
def test_the_large_scales_are_the_course_s(scale, edition):
    found = scale(edition)
    assert found.base.model == the_course_s_model(10_000)
    assert found.web.model == the_course_s_model(32_000)
    assert (found.base.corpus, found.web.corpus) == ("tinystories", "owt")
    assert found.base.corpus_bytes is found.web.corpus_bytes is None
    assert {"float32", "cpu"}.isdisjoint({found.base.precision, found.base.device})


def test_the_token_budgets_are_the_course_s():
    full, cpu = studies.full_scale(), studies.full_cpu_scale()
    assert full.base.tokens == full.web.tokens == 327_680_000
    assert (cpu.base.batch_size, cpu.base.steps, cpu.base.model.context_length) == (32, 5_000, 256)
    assert cpu.base.tokens == cpu.web.tokens == 40_960_000


def test_the_leaderboard_lasts_as_long_as_the_edition_says():
    for scale in (studies.full_scale, studies.full_cpu_scale):
        assert scale("2025").cap == 90 * 60
        assert scale("2026").cap == 45 * 60
    assert studies.scale_named("full", "2026") == studies.full_scale("2026")
    assert (
        studies.scale_named("laptop", "2026")
        == studies.scale_named("laptop", "2025")
        == studies.laptop_scale()
    )


def test_d_ff_is_the_multiple_of_64_nearest_to_eight_thirds():
    assert near_eight_thirds(512) == 1_344 == studies.full_scale().base.model.d_ff


@EVERY
def test_the_web_corpus_gets_the_same_model_but_for_its_vocabulary(name):
    scale = studies.scale_named(name, "2025")
    for config in (scale.base, scale.web):
        assert config.batch_size in scale.batch_sizes
    assert scale.base.tokens == scale.web.tokens
    assert scale.web.model.vocab_size > scale.base.model.vocab_size
    assert scale.web.model.d_ff == scale.base.model.d_ff


@EVERY
def test_batches_go_from_one_to_half_of_the_memory(name):
    scale = studies.scale_named(name, "2025")
    assert scale.batch_sizes[0] == 1
    assert {64, 128} <= set(scale.batch_sizes)
    assert list(scale.batch_sizes) == sorted(scale.batch_sizes)
    last = scale.batch_sizes[-1]

    def needed(batch_size):
        return accounting.peak_bytes(scale.base.model, batch_size).total

    assert last % 128 == 0
    assert needed(last) <= scale.memory / 2 < needed(last + 128)


def test_the_laptop_s_largest_batch_is_the_one_that_was_recorded():
    assert studies.laptop_scale().batch_sizes[-1] == 384


@EVERY
def test_rates_are_half_decades_apart_and_rise(name):
    rates = studies.scale_named(name, "2025").rates
    assert all(2.5 < after / before < 4 for before, after in pairwise(rates))


@EVERY
def test_seeds_differ_from_the_base_s(name):
    scale = studies.scale_named(name, "2025")
    assert len({scale.base.seed, *scale.seeds}) == 1 + len(scale.seeds) >= 5


def test_an_unknown_scale_is_refused():
    with pytest.raises(ValueError, match="'desk' is no scale; there are laptop, full, full-cpu"):
        studies.scale_named("desk", "2025")
