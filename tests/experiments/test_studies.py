"""The plans ask for what they promise, whatever comes out: shown with losses that are invented.

What each plan asks for after the losses of the recorded runs is held, run by run, in
`test_recorded_runs`: they need them all, and no others.
"""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from made_records import Imagined

from workbook import accounting
from workbook.config import PROFILES, ModelConfig
from workbook.experiments import studies
from workbook.experiments.studies import STUDIES, at_rate, rate_of
from workbook.training.presets import varied

LAPTOP = studies.laptop_scale()
SHORT = LAPTOP.budget(LAPTOP.parts[0])
EVERY_PLAN = pytest.mark.parametrize("name", STUDIES)


@pytest.fixture(params=PROFILES)
def scale(request):
    """The sizes of each profile in turn."""
    return studies.scale_named(request.param, "2025")


def played(plan, loss):
    """What a plan returns, and all rounds that it asked for, with `loss(config)` as results."""
    rounds = []
    results = None
    try:
        while True:
            rounds.append(plan.send(results))
            asked = rounds[-1].items()
            results = {label: Imagined(config, Path(), loss(config)) for label, config in asked}
    except StopIteration as end:
        return end.value, rounds


def bowl(best=1e-2, edge=1.0, moved=1.0):
    """Losses that rise on both sides of the best rate; from the edge on, runs diverge.

    Whatever is changed about the model or the batch moves the best rate by a factor.
    """

    def loss(config):
        rate = config.optimizer.max_learning_rate
        usual = config.model == LAPTOP.base.model and config.batch_size == LAPTOP.base.batch_size
        middle = best if usual else best * moved
        return math.inf if rate >= edge else 2 + math.log10(rate / middle) ** 2 + config.seed / 1e6

    return loss


def labelled(results, prefix):
    """The configs whose labels begin so."""
    return [run.config for label, run in results.items() if label.startswith(prefix)]


@EVERY_PLAN
def test_labels_mean_one_config_and_all_rates_are_powers_of_two_apart(name, scale):
    labels = {}
    for asked in played(STUDIES[name].plan(scale), bowl(best=3e-3, moved=0.5))[1]:
        for label, config in asked.items():
            assert labels.setdefault(label, config) == config, f"{label} has two meanings"
    rates = [config.optimizer.max_learning_rate for config in labels.values()]
    assert all(math.log2(rate / scale.rates[0]).is_integer() for rate in rates)


def failing_from(edge, best=1e-2):
    """Losses of runs that end more than a nat above the best one from some rate on."""

    def loss(config):
        rate = config.optimizer.max_learning_rate
        return 3.5 + rate if rate >= edge else 2 + 0.1 * math.log10(rate / best) ** 2

    return loss


@pytest.mark.parametrize("edge", [0.05, 0.11, 0.7, 2.0])
def test_the_edge_of_stability_lies_between_two_rates_that_get_seeds(edge):
    results, _ = played(studies.learning_rate(LAPTOP), failing_from(edge))
    swept = {label: run for label, run in results.items() if re.fullmatch(r"rate [^,]*", label)}
    lower, upper = studies.edge_of_stability(swept)
    assert lower < edge <= upper == pytest.approx(2 * lower)
    for rate in (lower, upper):
        beside = labelled(results, f"rate {rate:.3g}, seed")
        assert [config.seed for config in beside] == [1, 2, 3]
        assert {config.tokens for config in beside} == {SHORT.tokens}


def test_a_rate_has_failed_where_it_ends_a_nat_above_the_best_or_diverges():
    def edge(losses):
        runs = {rate: Imagined(at_rate(SHORT, rate), Path(), loss) for rate, loss in losses.items()}
        return studies.edge_of_stability(runs)

    # 0.4 came back, and the edge stays
    assert edge({1e-3: 5.0, 1e-2: 2.0, 0.1: 3.0, 0.2: 3.01, 0.4: 2.5}) == (0.1, 0.2)
    assert edge({1e-2: 2.0, 0.1: math.inf}) == (1e-2, 0.1)
    assert edge({1e-3: 9.0, 1e-2: 2.0, 0.1: 2.9}) is None


@pytest.mark.parametrize("best", [1e-2, 2e-2, 8e-2, 5e-3, 1.25e-3])
def test_tuning_ends_when_the_best_rate_has_both_neighbours(best):
    results, _ = played(studies.tuned(SHORT, 1e-2, "x"), bowl(best=best, edge=math.inf))
    top = rate_of(studies.best(results))
    assert top == pytest.approx(best)
    assert {top / 2, top * 2} <= set(map(rate_of, results.values()))


def test_tuning_gives_up_at_some_number_of_rates_going_down_where_all_diverge():
    for best in (1e3, 1e-9):
        results, _ = played(studies.tuned(SHORT, 1e-2, "x"), bowl(best=best, edge=math.inf))
        assert len(results) == studies.MOST_RATES
    results, _ = played(studies.tuned(SHORT, 1e-2, "x"), lambda config: math.inf)
    assert min(map(rate_of, results.values())) < 1e-3
    plan = studies.tuned(SHORT, 1e-2, "x", also=[0.16])
    results, _ = played(plan, bowl(best=2e-2, edge=math.inf))
    assert {0.16, 0.01, 0.02, 0.04} <= set(map(rate_of, results.values())), "0.16 is no neighbour"


def test_tuning_goes_on_downwards_where_all_rates_end_alike():
    def loss(config):
        rate = config.optimizer.max_learning_rate
        return 6.3 + (rate / 10) ** 2 if rate > 2e-3 else 6.0 + rate

    results, _ = played(studies.tuned(SHORT, 1e-2, "x"), loss)
    assert rate_of(studies.best(results)) < 2e-3


def test_budgets_are_parts_of_the_tokens_with_the_same_share_of_warm_up(scale):
    for part in scale.parts:
        found = scale.budget(part)
        windows = found.tokens / found.model.context_length
        assert abs(windows - scale.base.tokens / scale.base.model.context_length / part) <= 64
        share = scale.base.optimizer.warmup_iters / scale.base.steps
        assert found.optimizer.warmup_iters / found.steps == pytest.approx(share, abs=0.005)
    assert scale.budget(1) == scale.base
    assert [*scale.parts] == sorted(scale.parts, reverse=True)


def test_batches_go_from_one_to_the_limit_of_the_memory_at_equal_tokens(scale):
    sizes = studies.batch_sizes(scale)
    assert sizes[0] == 1 and {64, 128} <= set(sizes) and sizes == sorted(set(sizes))

    def needed(batch_size):
        return accounting.peak_bytes(scale.base.model, batch_size).total

    assert needed(sizes[-1]) <= scale.memory < needed(sizes[-1] + 1)
    middle = scale.budget(scale.parts[1])
    for size in sizes:
        found = studies.at_batch(middle, size)
        rounding = size * found.model.context_length / 2
        assert abs(found.tokens - middle.tokens) <= rounding, "more than rounding to whole steps"
        assert 1 <= found.optimizer.warmup_iters <= found.steps


def test_two_matrices_of_the_matched_width_have_as_many_parameters_as_three(scale):
    for config in (scale.base, scale.web):
        matched = replace(config.model, ffn="silu", d_ff=studies.matched_d_ff(config.model.d_ff))
        assert accounting.parameters(matched).total == accounting.parameters(config.model).total
        assert studies.with_change(config, ffn="silu").model == matched


def test_an_ablation_is_tuned_at_every_budget_also_at_the_old_rate_and_gets_fresh_seeds():
    plan = studies.STUDIES["layer_norm"].plan(LAPTOP)
    results, _ = played(plan, bowl(best=1e-2, moved=0.25))
    for tokens in (LAPTOP.budget(part).tokens for part in LAPTOP.parts):
        tried = labelled(results, f"no norm, {tokens:,} tokens, rate")
        again = labelled(results, f"no norm, {tokens:,} tokens, seed")
        rates = {each.optimizer.max_learning_rate for each in tried}
        assert {1.25e-3, 2.5e-3, 5e-3, 1e-2} <= rates, "the old best one, too"
        assert [each.seed for each in again] == [*LAPTOP.seeds]
        assert {each.optimizer.max_learning_rate for each in again} == {2.5e-3}


def test_the_leaderboard_keeps_what_helps_more_than_seeds_differ():
    def loss(config):
        luck = 0.0 if config.seed == LAPTOP.base.seed else 0.03
        half = 0.1 if config.batch_size < LAPTOP.base.batch_size else 0.0
        silu = 0.01 if config.model.ffn == "silu" else 0.0  # less than the seeds differ by
        return bowl()(varied(config, seed=1)) - half - silu + luck

    results, _ = played(studies.leaderboard(LAPTOP), loss)
    start = results["start"].config
    final = labelled(results, "final, seed")
    half = varied(start, batch_size=start.batch_size // 2)
    assert {at_rate(replace(each, seed=336), rate_of(results["start"])) for each in final} == {half}


@pytest.mark.parametrize("best", [2e-2, 1e-2, 5e-3, 1.25e-3, 1e-9])
def test_longer_runs_go_on_until_the_best_rate_has_both_neighbours(best):
    steps = LAPTOP.long.steps

    def loss(config):
        return bowl(best=best if config.steps == steps else 1e-2, moved=0.5)(config)

    results, _ = played(studies.longer(LAPTOP), loss)
    unchanged = {name: run for name, run in results.items() if "longer, unchanged" in name}
    rates = [rate_of(run) for run in unchanged.values()]
    won = rate_of(studies.best(unchanged))
    assert {won / 2, 2 * won} <= set(rates) or len(set(rates)) == studies.MOST_RATES
    assert rates.count(won) == 3 and len(rates) == len(set(rates)) + 2
    bridge = results["longer, bridge"].config
    assert bridge.steps == LAPTOP.base.steps and bridge.corpus_bytes == LAPTOP.long.corpus_bytes


def test_each_idea_differs_in_nothing_else_from_the_unchanged_model_with_its_seed():
    results, _ = played(studies.ideas(LAPTOP), bowl(best=1e-2, moved=0.25))
    for label, changes in studies.IDEAS.items():
        for tokens in (LAPTOP.budget(part).tokens for part in LAPTOP.parts[:2]):
            usual = labelled(results, f"unchanged, {tokens:,} tokens, seed")
            tried = labelled(results, f"{label}, {tokens:,} tokens, seed")
            rate = usual[0].optimizer.max_learning_rate
            assert len(tried) == len(LAPTOP.seeds)
            assert [at_rate(varied(config, **changes), rate) for config in usual] == (
                [at_rate(config, rate) for config in tried]
            )


LARGE = [("full", 327_680_000, 128), ("cpu", 40_960_000, 32), ("gpu", 40_960_000, 64)]


@pytest.mark.parametrize(("name", "tokens", "batch"), LARGE)
def test_the_large_scales_are_the_course_s(name, tokens, batch):
    large = studies.scale_named(name, "2026")
    model = ModelConfig(
        vocab_size=10_000,
        context_length=256,
        d_model=512,
        num_layers=4,
        num_heads=16,
        d_ff=1_344,
        rope_theta=10_000.0,
    )
    assert large.base.model == model
    assert large.web.model == replace(model, vocab_size=32_000)
    assert (large.base.corpus, large.web.corpus) == ("tinystories", "owt")
    assert large.base.corpus_bytes is large.web.corpus_bytes is None
    assert {"float32", "cpu"}.isdisjoint({large.base.precision, large.base.device})
    assert large.base.tokens == large.web.tokens == tokens
    assert large.base.batch_size == batch


def test_the_leaderboard_lasts_as_long_as_the_edition_says():
    asked = {"full 2025": 90, "cpu 2025": 90, "full 2026": 45, "cpu 2026": 45}
    for words, minutes in (asked | {"gpu 2026": 10, "gpu-offline 2026": 10}).items():
        assert studies.scale_named(*words.split()).cap == minutes * 60


def test_the_web_corpus_gets_the_same_model_rates_double_and_seeds_differ(scale):
    assert scale.base.tokens == scale.web.tokens
    vocab_size = scale.web.model.vocab_size
    assert scale.web.model == replace(scale.base.model, vocab_size=vocab_size)
    assert vocab_size > scale.base.model.vocab_size
    assert [rate * 2 for rate in scale.rates[:-1]] == [*scale.rates[1:]]
    assert len({scale.base.seed, *scale.seeds}) == 6
