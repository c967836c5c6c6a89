"""The plans ask for what they promise, whatever comes out: shown with losses that are invented."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from workbook import accounting
from workbook.config import ModelConfig
from workbook.experiments import studies
from workbook.experiments.dry_run import Imagined
from workbook.experiments.studies import (
    STUDIES,
    at_batch,
    at_rate,
    changed,
    matched_d_ff,
    rate_of,
    tuned,
)
from workbook.training.presets import varied

LAPTOP = studies.laptop_scale()
EVERY_PLAN = pytest.mark.parametrize("name", STUDIES)
EVERY_SCALE = pytest.mark.parametrize("scale", ["laptop", "gpu", "full", "cpu"])


def played(plan, loss):
    """What a plan returns, and all rounds that it asked for, with `loss(config)` as results."""
    rounds, results = [], None
    try:
        while True:
            rounds.append(plan.send(results))
            results = {
                label: Imagined(config, Path(), loss(config))
                for label, config in rounds[-1].items()
            }
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


def asked_by(rounds):
    return {config.key: config for asked in rounds for config in asked.values()}


@EVERY_PLAN
def test_every_plan_begins_with_the_same_sweep(name):
    (first, *_) = played(STUDIES[name].plan(LAPTOP), bowl())[1]
    assert [config.optimizer.max_learning_rate for config in first.values()] == list(LAPTOP.rates)
    assert {replace(config, optimizer=LAPTOP.base.optimizer) for config in first.values()} == {
        LAPTOP.base
    }


@EVERY_PLAN
@EVERY_SCALE
def test_no_label_is_given_to_two_configs(name, scale):
    labels = {}
    for asked in played(STUDIES[name].plan(studies.scale_named(scale, "2025")), bowl(best=3e-3))[1]:
        for label, config in asked.items():
            assert labels.setdefault(label, config) == config, f"{label} has two meanings"


@pytest.mark.parametrize("edge", [0.05, 0.11, 0.7, 2.0])
def test_the_edge_of_stability_is_bracketed_and_the_bracket_halved_in_log_space(edge):
    results, rounds = played(studies.learning_rate(LAPTOP), bowl(edge=edge))
    lower, upper = studies.edge_of_stability(results)
    assert lower < edge <= upper
    sweep = sorted(LAPTOP.rates)
    first = max(rate for rate in sweep if rate < edge), min(r for r in sweep if r >= edge)
    width = math.log(first[1] / first[0])
    for asked in rounds[1 : 1 + LAPTOP.bisections]:
        (config,) = asked.values()
        assert first[0] < config.optimizer.max_learning_rate < first[1]
    assert math.log(upper / lower) == pytest.approx(width / 2**LAPTOP.bisections, rel=1e-9)


def test_without_a_divergence_nothing_is_bisected():
    results, rounds = played(studies.learning_rate(LAPTOP), bowl(edge=math.inf))
    assert studies.edge_of_stability(results) is None
    assert len(rounds) == 2  # the sweep and the seeds


def test_the_edge_is_below_the_smallest_rate_that_diverged():
    found = {
        str(rate): Imagined(at_rate(LAPTOP.base, rate), Path(), loss)
        for rate, loss in [(0.1, 2.0), (0.3, math.inf), (1.0, 7.0), (3.0, math.inf)]
    }
    assert studies.edge_of_stability(found) == (0.1, 0.3)
    del found["0.1"]
    assert studies.edge_of_stability(found) is None


def test_seeds_are_run_at_the_best_rate_of_the_sweep():
    results, _ = played(studies.learning_rate(LAPTOP), bowl(best=2e-2))
    of_seeds = [run for label, run in results.items() if label.startswith("seed ")]
    assert {rate_of(run) for run in of_seeds} == {3e-2}
    assert {run.config.seed for run in of_seeds} == {LAPTOP.base.seed, *LAPTOP.seeds}


@pytest.mark.parametrize(("best", "count"), [(1e-2, 3), (3e-2, 4), (1e-1, 5), (3e-3, 4), (1e-3, 5)])
def test_tuning_ends_when_the_best_rate_has_neighbours(best, count):
    results, _ = played(tuned(LAPTOP.base, 1e-2, "x"), bowl(best=best, edge=math.inf))
    rates = sorted(map(rate_of, results.values()))
    assert rates[0] < rate_of(studies.best(results)) < rates[-1]
    assert len(rates) == count
    for before, after in pairwise(rates):
        assert after / before == pytest.approx(studies.HALF_DECADE, rel=1e-9)


def test_tuning_ends_at_six_rates_going_down_where_all_diverge():
    for best in (1e3, 1e-7):
        results, _ = played(tuned(LAPTOP.base, 1e-2, "x"), bowl(best=best, edge=math.inf))
        assert len(results) == studies.MOST_RATES == 6
    results, _ = played(tuned(LAPTOP.base, 1e-2, "x"), lambda config: math.inf)
    assert len(results) == 6
    assert min(map(rate_of, results.values())) == pytest.approx(1e-4, rel=1e-9)


@EVERY_SCALE
def test_batches_see_equally_many_tokens(scale):
    scale = studies.scale_named(scale, "2025")
    for size in scale.batch_sizes:
        for parts in (1, scale.parts):
            found = at_batch(scale.base, size, parts)
            windows = found.tokens / found.model.context_length
            wanted = scale.base.tokens / scale.base.model.context_length / parts
            assert abs(windows - wanted) <= size / 2, "more than the rounding to whole steps"
            assert found.optimizer.warmup_iters <= found.steps
            if found.steps >= 100:
                share = scale.base.optimizer.warmup_iters / scale.base.steps
                assert found.optimizer.warmup_iters / found.steps == pytest.approx(share, abs=0.01)


def test_a_batch_of_one_is_compared_with_the_usual_one_on_as_few_tokens():
    results, _ = played(studies.batch_size(LAPTOP), bowl())
    tokens = {}
    for label, result in results.items():
        tokens.setdefault(label.split(", rate")[0], set()).add(result.config.tokens)
    few, usual = {LAPTOP.base.tokens // LAPTOP.parts}, {LAPTOP.base.tokens}
    assert tokens.pop("batch 1 on 1/4") == tokens.pop("batch 8 on 1/4") == few
    assert set(map(tuple, tokens.values())) == {tuple(usual)}
    assert list(tokens) == [f"batch {size}" for size in LAPTOP.batch_sizes[1:]]


@EVERY_SCALE
def test_two_matrices_of_the_matched_width_have_as_many_parameters_as_three(scale):
    for config in (studies.scale_named(scale, "2025").base, studies.scale_named(scale, "2025").web):
        matched = replace(config.model, ffn="silu", d_ff=matched_d_ff(config.model.d_ff))
        assert accounting.parameters(matched).total == accounting.parameters(config.model).total
        assert changed(config, ffn="silu").model == matched


@EVERY_SCALE
def test_swiglu_is_compared_at_the_matched_width_and_at_four_times_d_model(scale):
    scale = studies.scale_named(scale, "2025")
    results, _ = played(studies.swiglu(scale), bowl())
    silu = {label: run.config.model for label, run in results.items() if label.startswith("SiLU")}
    assert {model.ffn for model in silu.values()} == {"silu"}
    wide = {model.d_ff for label, model in silu.items() if "4 d_model" in label}
    assert wide == {4 * scale.base.model.d_model}
    matched = {model.d_ff for label, model in silu.items() if "4 d_model" not in label}
    assert matched == {matched_d_ff(scale.base.model.d_ff)}


def test_a_width_is_not_chosen_by_the_luckiest_seed():
    def loss(config):
        return bowl()(config) - config.seed  # later seeds are luckier

    results, _ = played(studies.swiglu(LAPTOP), loss)
    again = [results[label].config.seed for label in results if label.startswith("SiLU, 4 d_model")]
    base = LAPTOP.base.seed
    assert again == [base, base, *LAPTOP.seeds[:2]]


def test_an_ablation_is_run_at_the_old_rate_and_at_its_own_best_with_seeds():
    results, _ = played(studies.STUDIES["layer_norm"].plan(LAPTOP), bowl(best=1e-2, moved=0.1))
    changed_runs = [run for label, run in results.items() if label.startswith("no norm, ")]
    assert {run.config.model.norm for run in changed_runs} == {"none"}
    rates = sorted({rate_of(run) for run in changed_runs})
    assert 1e-2 in rates and rates[0] < 1e-3
    own = [run for label, run in results.items() if label.startswith("no norm, seed")]
    assert [rate_of(run) for run in own] == pytest.approx([1e-3] * 3, rel=1e-9)
    unchanged = [run for label, run in results.items() if label.startswith("unchanged, ")]
    assert {rate_of(run) for run in unchanged} == {1e-2} and len(unchanged) == 5


def test_both_corpora_are_read_for_as_many_tokens_and_then_for_twice_as_many():
    results, _ = played(studies.main_experiment(LAPTOP), bowl())
    longer = [run.config for label, run in results.items() if label.endswith(", longer")]
    assert [config.corpus for config in longer] == ["stories", "pydocs"]
    assert {config.tokens for config in longer} == {2 * LAPTOP.base.tokens}
    others = {run.config.tokens for label, run in results.items() if "longer" not in label}
    assert others == {LAPTOP.base.tokens}


def test_the_leaderboard_tries_each_change_by_itself_and_keeps_those_that_help():
    def loss(config):
        luck = 0.0 if config.seed == LAPTOP.base.seed else 0.03
        tied = 0.1 if config.model.tie_embeddings else 0.0
        silu = 0.01 if config.model.ffn == "silu" else 0.0  # less than the seeds differ by
        return bowl()(varied(config, seed=1)) - tied - silu + luck

    results, _ = played(studies.leaderboard(LAPTOP), loss)
    start = results["start"].config
    for label in studies.CHANGES:
        config = results[label].config
        assert config != start and config.max_seconds == LAPTOP.cap
        assert config.steps == LAPTOP.cap_steps and config.corpus == LAPTOP.web.corpus
    together = results["together"].config
    assert together == varied(start, tie_embeddings=True)
    assert not {"start", "together"} - set(results)


@EVERY_SCALE
def test_changes_of_size_are_relative(scale):
    base = studies.scale_named(scale, "2025").base
    found = {label: changed(base, **changes) for label, changes in studies.CHANGES.items()}
    assert found["half the batch"].batch_size == base.batch_size // 2
    assert found["half the context"].model.context_length == base.model.context_length // 2
    assert found["two layers fewer"].model.num_layers == base.model.num_layers - 2
    for config in found.values():
        assert (
            sum(
                getattr(config, field) != getattr(base, field)
                for field in ("model", "optimizer", "batch_size")
            )
            == 1
        )


@pytest.mark.parametrize("best", [3e-3, 1e-2, 3e-2])
@pytest.mark.parametrize("moved", [0.5, 1.0, 2.0])
def test_all_laptop_plans_together_are_at_most_100_runs_of_at_most_2_million_tokens(best, moved):
    found = {}
    for study in STUDIES.values():
        found |= asked_by(played(study.plan(LAPTOP), bowl(best=best, moved=moved))[1])
    assert len(found) <= 100
    assert max(config.tokens for config in found.values()) <= 2_000_000


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
@pytest.mark.parametrize("scale", ["gpu", "full", "cpu"])
def test_the_large_scales_are_the_course_s(scale, edition):
    found = studies.scale_named(scale, edition)
    assert found.base.model == the_course_s_model(10_000)
    assert found.web.model == the_course_s_model(32_000)
    assert (found.base.corpus, found.web.corpus) == ("tinystories", "owt")
    assert found.base.corpus_bytes is found.web.corpus_bytes is None
    assert {"float32", "cpu"}.isdisjoint({found.base.precision, found.base.device})


def test_the_token_budgets_are_the_course_s():
    full, cpu, gpu = (studies.scale_named(name, "2025") for name in ("full", "cpu", "gpu"))
    assert gpu.base.tokens == gpu.web.tokens == 40_960_000
    assert full.base.tokens == full.web.tokens == 327_680_000
    assert (cpu.base.batch_size, cpu.base.steps, cpu.base.model.context_length) == (32, 5_000, 256)
    assert cpu.base.tokens == cpu.web.tokens == 40_960_000


def test_the_leaderboard_lasts_as_long_as_the_edition_says():
    for scale in ("full", "cpu"):
        assert studies.scale_named(scale, "2025").cap == 90 * 60
        assert studies.scale_named(scale, "2026").cap == 45 * 60
    assert studies.scale_named("full", "2026") == studies.full_scale("2026")
    assert (
        studies.scale_named("laptop", "2026")
        == studies.scale_named("laptop", "2025")
        == studies.laptop_scale()
    )


@EVERY_SCALE
def test_the_web_corpus_gets_the_same_model_but_for_its_vocabulary(scale):
    scale = studies.scale_named(scale, "2025")
    for config in (scale.base, scale.web):
        assert config.batch_size in scale.batch_sizes
    assert scale.base.tokens == scale.web.tokens
    assert scale.web.model.vocab_size > scale.base.model.vocab_size
    assert scale.web.model.d_ff == scale.base.model.d_ff


@EVERY_SCALE
def test_batches_go_from_one_to_half_of_the_memory(scale):
    scale = studies.scale_named(scale, "2025")
    assert scale.batch_sizes[0] == 1
    assert {64, 128} <= set(scale.batch_sizes)
    assert list(scale.batch_sizes) == sorted(scale.batch_sizes)
    last = scale.batch_sizes[-1]

    def needed(batch_size):
        return accounting.peak_bytes(scale.base.model, batch_size).total

    assert last % 128 == 0
    assert needed(last) <= scale.memory / 2 < needed(last + 128)


@EVERY_SCALE
def test_rates_rise_by_half_decades_and_seeds_differ(scale):
    scale = studies.scale_named(scale, "2025")
    assert all(2.5 < after / before < 4 for before, after in pairwise(scale.rates))
    assert len({scale.base.seed, *scale.seeds}) == 1 + len(scale.seeds) >= 5


def test_an_unknown_scale_is_refused():
    with pytest.raises(ValueError, match="'desk' is no scale; there are laptop, full, gpu"):
        studies.scale_named("desk", "2025")
