"""An ablation is read from labels, each run once, and its verdict does not outrun its spread."""

import math
from dataclasses import replace

import pytest
from made_records import config, record

from workbook.experiments import results as experiment_results
from workbook.experiments.significance import difference


@pytest.fixture
def results(tmp_path):
    def run(loss, diverged=False, **changes):
        return record(tmp_path, config(**changes), [4.0, loss], diverged=diverged)

    usual = {f"unchanged, seed {s}": run(2 + s / 100, seed=s) for s in range(1, 6)}
    at = {rate: {"norm": "none", "max_learning_rate": rate} for rate in (1e-3, 3e-3, 1e-2)}
    tuned = {f"no norm, rate {rate:.3g}": run(2.6, seed=1, **at[rate]) for rate in (1e-3, 3e-3)}
    tuned["no norm, rate 0.01"] = run(7.0, diverged=True, seed=1, **at[1e-2])
    again = {f"no norm, seed {s}": run(2.5 + s / 100, seed=s, **at[3e-3]) for s in (1, 2, 3)}
    return usual | tuned | again | {"no norm, narrow": run(9.0, seed=7)}


def test_it_has_both_sides_by_seed_and_the_rates_that_were_tried(results):
    found = experiment_results.read_ablation(results, "no norm")
    assert list(found.unchanged) == [1, 2, 3, 4, 5]
    assert list(found.changed) == [1, 2, 3]
    assert list(found.tuned) == [1e-3, 3e-3, 1e-2]
    assert (found.old_rate, found.own_rate) == (1e-2, 3e-3)
    assert found.at_old_rate.diverged
    assert found.before.mean == pytest.approx(2.03)
    assert found.after.mean == pytest.approx(2.52)
    assert found.difference.nats == pytest.approx(0.49)


def test_it_is_drawn_at_both_rates_where_they_differ(results):
    found = experiment_results.read_ablation(results, "no norm")
    assert {name: len(side) for name, side in found.groups("norm").items()} == {
        "norm": 5,
        "no norm, own best rate": 3,
        "no norm, old best rate": 1,
    }
    same = replace(found, changed=found.unchanged)
    assert list(same.groups()) == ["unchanged", "no norm"]


def test_a_run_with_two_labels_counts_once(results):
    again = results | {"no norm": results["no norm, seed 2"]}
    assert sorted(experiment_results.by_seed(again, "no norm")) == [1, 2, 3]


def test_a_verdict_claims_only_what_luck_does_not_explain(results):
    found = experiment_results.read_ablation(results, "no norm")
    assert experiment_results.verdict(found.difference) == (
        "worse by 0.490 nats/token, more than luck explains (p = 0.018)"
    )
    close = difference([2.0, 2.1, 2.2], [2.01, 2.11, 2.15])
    assert experiment_results.verdict(close).startswith(
        "no difference that these runs can show (+0.010"
    )
    assert experiment_results.verdict(
        difference([1.0, 1.1, 1.2], [2.0, 2.1, 2.2, 2.3, 2.4])
    ).startswith("better by")


def test_a_verdict_on_runs_that_diverged_speaks_of_no_infinite_number():
    ended, diverged = [2.0, 2.1, 2.2, 2.3, 2.4], [math.inf] * 3
    assert experiment_results.verdict(difference(diverged, ended)).startswith(
        "it diverges, more than luck"
    )
    assert "where the other diverges" in experiment_results.verdict(difference(ended, diverged))
    assert "runs of one side diverged" in experiment_results.verdict(
        difference([math.inf], [2.0, 2.1])
    )


def test_an_ending_is_a_loss_or_a_step(results):
    found = experiment_results.read_ablation(results, "no norm")
    assert experiment_results.ending(found.at_old_rate) == "diverged at step 1"
    assert experiment_results.ending(found.changed[1]) == "ended at 2.510 nats/token"


def test_rates_are_in_order_and_of_one_seed(results):
    tried = {name: run for name, run in results.items() if "rate" in name}
    assert list(experiment_results.by_rate(tried, seed=1)) == [1e-3, 3e-3, 1e-2]
    assert experiment_results.by_rate(tried, seed=2) == {}


def test_each_batch_size_stands_with_its_best_run(tmp_path):
    def run(loss, size, rate):
        return record(tmp_path, config(batch_size=size, max_learning_rate=rate), [4.0, loss])

    results = {
        "batch 2, rate 0.01": run(2.2, 2, 0.01),
        "batch 2, rate 0.02": run(2.1, 2, 0.02),
        "batch 1 on 1/4, rate 0.01": run(3.0, 1, 0.01),
        "batch 2 on 1/4, rate 0.04": run(math.e, 2, 0.04),
    }
    full = experiment_results.by_batch(results)
    assert {size: each.loss for size, each in full.items()} == {2: 2.1}
    part = experiment_results.by_batch(results, " on 1/4")
    assert {size: each.loss for size, each in part.items()} == {1: 3.0, 2: math.e}


def test_the_table_has_both_rates_and_the_size_of_each_model(results):
    shown = experiment_results.ablation_table(experiment_results.read_ablation(results, "no norm"))
    assert shown["at the old best rate"].tolist() == [
        "ended at 2.010 nats/token",
        "diverged at step 1",
    ]
    assert shown["own best rate"].tolist() == ["0.01", "0.003"]
    assert shown.loc["no norm", "loss there (nats/token)"] == "2.520 ± 0.010 (3 seeds)"
    counts = [int(count.replace(",", "")) for count in shown["parameters"]]
    assert counts[0] - counts[1] == 5 * 16  # two norms in each of two blocks, and the last


def test_a_change_that_was_not_tuned_says_so_and_stands_at_the_old_rate(results):
    kept = {f"narrow, seed {s}": results[f"unchanged, seed {s}"] for s in (1, 2)}
    shown = experiment_results.ablation_table(
        experiment_results.read_ablation(results | kept, "narrow")
    )
    assert shown.loc["narrow", "own best rate"] == "0.01 (not tuned)"
    assert shown.loc["narrow", "at the old best rate"] == "ended at 2.010 nats/token"


def test_changes_side_by_side_begin_with_the_costliest(results):
    kept = {f"same, seed {s}": results[f"unchanged, seed {s}"] for s in (1, 2)}
    found = [
        experiment_results.read_ablation(results | kept, label) for label in ("same", "no norm")
    ]
    shown = experiment_results.side_by_side(*found)
    assert shown.index.tolist() == ["no norm", "same"]
    assert shown["a difference"].tolist() == ["yes", "cannot be shown"]
    assert shown["seeds"].tolist() == ["3 against 5", "2 against 5"]
