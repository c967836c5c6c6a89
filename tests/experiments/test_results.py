"""What is read from runs: ablations, levels for a loss, batch sizes, the log, what models wrote."""

import json
import math
from dataclasses import replace

import made_records
import numpy as np
import pandas as pd
import pytest
import tiny_runs
from hypothesis import given
from hypothesis import strategies as st
from made_records import config, record

from workbook.corpora import corpora, fluency
from workbook.experiments import results
from workbook.experiments.results import (
    BatchCurve,
    fit_batch_curve,
    fit_batch_curves,
    steps_to,
    unigram_loss,
)
from workbook.experiments.significance import difference
from workbook.training.log import SAMPLE
from workbook.training.parts import NAMES


@pytest.fixture
def runs(tmp_path):
    def run(loss, diverged=False, **changes):
        return record(tmp_path, config(**changes), [4.0, loss], diverged=diverged)

    usual = {f"unchanged, seed {s}": run(2 + s / 100, seed=s) for s in range(1, 6)}
    at = {rate: {"norm": "none", "max_learning_rate": rate} for rate in (1e-3, 3e-3, 1e-2)}
    tuned = {f"no norm, rate {rate:.3g}": run(2.6, seed=1, **at[rate]) for rate in (1e-3, 3e-3)}
    tuned["no norm, rate 0.01"] = run(7.0, diverged=True, seed=1, **at[1e-2])
    again = {f"no norm, seed {s}": run(2.5 + s / 100, seed=s, **at[3e-3]) for s in (1, 2, 3)}
    return usual | tuned | again | {"no norm, narrow": run(9.0, seed=7)}


def test_it_has_both_sides_by_seed_and_the_rates_that_were_tried(runs):
    found = results.read_ablation(runs, "no norm")
    assert list(found.unchanged) == [1, 2, 3, 4, 5]
    assert list(found.changed) == [1, 2, 3]
    assert list(found.tuned) == [1e-3, 3e-3, 1e-2]
    assert (found.old_rate, found.own_rate) == (1e-2, 3e-3)
    assert found.at_old_rate.diverged
    assert found.before.mean == pytest.approx(2.03)
    assert found.after.mean == pytest.approx(2.52)
    assert found.difference.nats == pytest.approx(0.49)


def test_it_is_drawn_at_both_rates_where_they_differ(runs):
    found = results.read_ablation(runs, "no norm")
    assert {name: len(side) for name, side in found.groups("norm").items()} == {
        "norm": 5,
        "no norm, own best rate": 3,
        "no norm, old best rate": 1,
    }
    same = replace(found, changed=found.unchanged)
    assert list(same.groups()) == ["unchanged", "no norm"]


def test_a_run_with_two_labels_counts_once(runs):
    again = runs | {"no norm": runs["no norm, seed 2"]}
    assert sorted(results.by_seed(again, "no norm")) == [1, 2, 3]


def test_a_verdict_claims_only_what_luck_does_not_explain(runs):
    found = results.read_ablation(runs, "no norm")
    assert results.verdict(found.difference) == (
        "worse by 0.490 nats/token, more than luck explains (p = 0.018)"
    )
    close = difference([2.0, 2.1, 2.2], [2.01, 2.11, 2.15])
    assert results.verdict(close).startswith("no difference that these runs can show (+0.010")
    assert results.verdict(difference([1.0, 1.1, 1.2], [2.0, 2.1, 2.2, 2.3, 2.4])).startswith(
        "better by"
    )


def test_a_verdict_on_runs_that_diverged_speaks_of_no_infinite_number():
    ended, diverged = [2.0, 2.1, 2.2, 2.3, 2.4], [math.inf] * 3
    assert results.verdict(difference(diverged, ended)).startswith("it diverges, more than luck")
    assert "where the other diverges" in results.verdict(difference(ended, diverged))
    assert "runs of one side diverged" in results.verdict(difference([math.inf], [2.0, 2.1]))


def test_an_ending_is_a_loss_or_a_step(runs):
    found = results.read_ablation(runs, "no norm")
    assert results.ending(found.at_old_rate) == "diverged at step 1"
    assert results.ending(found.changed[1]) == "ended at 2.510 nats/token"


def test_rates_are_in_order_and_of_one_seed(runs):
    tried = {name: run for name, run in runs.items() if "rate" in name}
    assert list(results.by_rate(tried, seed=1)) == [1e-3, 3e-3, 1e-2]
    assert results.by_rate(tried, seed=2) == {}


def test_each_batch_size_stands_with_its_best_run(tmp_path):
    def run(loss, size, rate):
        return record(tmp_path, config(batch_size=size, max_learning_rate=rate), [4.0, loss])

    found = {
        "batch 2, rate 0.01": run(2.2, 2, 0.01),
        "batch 2, rate 0.02": run(2.1, 2, 0.02),
        "batch 1 on 1/4, rate 0.01": run(3.0, 1, 0.01),
        "batch 2 on 1/4, rate 0.04": run(math.e, 2, 0.04),
    }
    full = results.by_batch(found)
    assert {size: each.loss for size, each in full.items()} == {2: 2.1}
    part = results.by_batch(found, " on 1/4")
    assert {size: each.loss for size, each in part.items()} == {1: 3.0, 2: math.e}


def test_the_table_has_both_rates_and_the_size_of_each_model(runs):
    shown = results.ablation_table(results.read_ablation(runs, "no norm"))
    assert shown["at the old best rate"].tolist() == [
        "ended at 2.010 nats/token",
        "diverged at step 1",
    ]
    assert shown["own best rate"].tolist() == ["0.01", "0.003"]
    assert shown.loc["no norm", "loss there (nats/token)"] == "2.520 ± 0.010 (3 seeds)"
    counts = [int(count.replace(",", "")) for count in shown["parameters"]]
    assert counts[0] - counts[1] == 5 * 16  # two norms in each of two blocks, and the last


def test_a_change_that_was_not_tuned_says_so_and_stands_at_the_old_rate(runs):
    kept = {f"narrow, seed {s}": runs[f"unchanged, seed {s}"] for s in (1, 2)}
    shown = results.ablation_table(results.read_ablation(runs | kept, "narrow"))
    assert shown.loc["narrow", "own best rate"] == "0.01 (not tuned)"
    assert shown.loc["narrow", "at the old best rate"] == "ended at 2.010 nats/token"


def test_changes_side_by_side_begin_with_the_costliest(runs):
    kept = {f"same, seed {s}": runs[f"unchanged, seed {s}"] for s in (1, 2)}
    found = [results.read_ablation(runs | kept, label) for label in ("same", "no norm")]
    shown = results.side_by_side(*found)
    assert shown.index.tolist() == ["no norm", "same"]
    assert shown["a difference"].tolist() == ["yes", "cannot be shown"]
    assert shown["seeds"].tolist() == ["3 against 5", "2 against 5"]


def test_it_lies_between_the_entropy_of_the_counts_and_blind_guessing():
    ids = tiny_runs.ids(20_000)
    loss = unigram_loss(ids, ids, tiny_runs.VOCAB_SIZE)
    shares = np.bincount(ids) / len(ids)
    entropy = -(shares * np.log(shares)).sum()
    assert entropy <= loss < entropy + 0.01
    assert loss < math.log(tiny_runs.VOCAB_SIZE)


def test_an_id_that_training_never_saw_is_not_impossible():
    assert unigram_loss(np.zeros(8, int), np.array([1]), 2) == pytest.approx(math.log(10))


def test_a_vocabulary_that_is_too_small_is_named():
    with pytest.raises(ValueError, match="the token 7, and there are 4 tokens"):
        unigram_loss(np.array([7]), np.array([0]), 4)


@pytest.fixture(params=[None, 1.0])
def data(request, monkeypatch):
    """What runs of any config train on, with and without a known entropy."""
    lengths = np.full(tiny_runs.VOCAB_SIZE, 2)
    found = tiny_runs.data(entropy=request.param, floor=0.5, token_bytes=lengths)
    monkeypatch.setattr(results, "train_data", lambda config: found)
    return found


def test_the_levels_are_of_the_ids_evaluated_on_in_nats_a_token(data):
    found = results.levels(config())
    assert found.text < found.counting
    assert found.counting == unigram_loss(data.train, data.validation[:256], 64)
    assert found.guessing == pytest.approx(math.log(64))
    bits = data.entropy or data.floor
    assert found.text == pytest.approx(bits * math.log(2) * 2)
    assert found.text_bits == pytest.approx(bits)
    assert (found.bytes_per_token, found.train_tokens) == (2.0, len(data.train))


def test_a_stated_level_is_not_called_known(data, tmp_path):
    found = results.levels(config())
    stated = data.entropy is None
    assert found.known is not stated
    assert any("stated" in name for name in found.named) is stated
    shown = results.loss_facts(record(tmp_path, config(), [4.0, 3.0]))
    assert shown["validation loss (nats/token)"] == "3.000"
    assert shown["validation loss (bits/byte)"] == "1.500"
    assert (shown["the text itself (bits/byte)"] == "unknown") is stated


SIZES = (1, 8, 16, 32, 64, 128, 384)
sizes = st.floats(0.5, 5_000)


@given(fewest=sizes, critical=sizes)
def test_it_is_found_where_it_was_put(fewest, critical):
    truth = BatchCurve(fewest, critical)
    found = fit_batch_curve({size: truth.steps(size) for size in SIZES})
    assert found.fewest == pytest.approx(fewest, rel=1e-6)
    assert found.critical == pytest.approx(critical, rel=1e-6)


def test_noise_of_a_few_per_cent_moves_it_little():
    truth, noise = BatchCurve(20, 48), np.random.default_rng(0)
    found = fit_batch_curve({size: truth.steps(size) * noise.normal(1, 0.03) for size in SIZES})
    assert found.critical == pytest.approx(48, rel=0.15)


def test_at_the_critical_batch_a_run_takes_twice_the_fewest_steps():
    assert BatchCurve(20, 48).steps(48) == 40


def test_where_steps_only_halve_no_batch_is_large_yet():
    assert fit_batch_curve({8: 410, 16: 200, 32: 96}).critical == math.inf


def test_where_steps_stay_every_batch_is_large():
    assert fit_batch_curve({8: 100, 16: 100, 32: 101}).critical == 0


def test_two_sizes_are_too_few():
    with pytest.raises(ValueError, match="at least 3 batch sizes, got 2"):
        fit_batch_curve({8: 2.0, 16: 1.0})


@pytest.fixture
def log():
    losses = [4.0, math.nan, 3.0, 2.0, 2.5]
    return pd.DataFrame({"validation_loss": losses}, index=[0, 5, 10, 20, 30])


@pytest.mark.parametrize(
    ("loss", "step"), [(4.5, 0), (3.5, 5), (3.0, 10), (2.25, 17.5), (2.0, 20), (1.9, math.inf)]
)
def test_steps_to_a_loss_lie_on_a_line_between_evaluations(log, loss, step):
    assert steps_to(log, loss) == step


def test_curves_are_fitted_to_the_losses_that_four_sizes_came_to():
    truth = BatchCurve(4, 32)

    def log(size, end):  # the loss falls by one in each of `steps` steps
        places = [truth.steps(size) * part for part in range(end + 1)]
        return pd.DataFrame({"validation_loss": [8.0 - part for part in range(end + 1)]}, places)

    ends = {8: 5, 16: 4, 32: 4, 64: 3, 128: 2}
    found = fit_batch_curves({size: log(size, end) for size, end in ends.items()})
    assert list(found) == [5.0, 6.0]
    assert [list(steps) for steps, _ in found.values()] == [[8, 16, 32, 64], list(ends)]
    assert all(curve.critical == pytest.approx(32) for _, curve in found.values())


def test_a_setting_that_only_some_runs_have_is_a_column(tmp_path):
    asked = {"free": config(), "capped": config(max_seconds=60.0)}
    runs = {label: record(tmp_path, each, [4.0, 3.0]) for label, each in asked.items()}
    shown = results.table(runs)
    assert list(shown)[:2] == ["max_seconds", "status"]
    assert shown.loc["capped", "max_seconds"] == 60 and math.isnan(shown.loc["free", "max_seconds"])


BASE = config()


@pytest.fixture
def studied(tmp_path):
    usual = record(tmp_path, BASE, [4.0, 3.0])
    high = record(tmp_path, config(max_learning_rate=1.0, min_learning_rate=0.01), [4.0, 9.0],
                  diverged=True)  # fmt: skip
    other = record(tmp_path, config(norm="none", seed=1), [4.0, 2.5])
    return {
        "rates": {"rate 0.01": usual, "rate 1": high},
        "norms": {"unchanged": usual, "no norm": other},
    }


def test_every_run_is_a_row_where_it_was_first_asked_for(studied):
    table = results.journal(studied, {BASE.corpus: BASE})
    assert table["run"].tolist() == ["rate 0.01", "rate 1", "no norm"]
    assert table.index.tolist() == ["rates", "rates", "norms"]
    assert table["changed"].tolist() == ["the base run", "max_learning_rate=1", "norm=none, seed=1"]


def test_what_failed_is_in_it_with_its_reason(studied):
    ended = results.journal(studied, {BASE.corpus: BASE})["outcome"].tolist()
    assert ended == ["finished", "diverged: the loss is nan at step 3", "finished"]
    every = [result for each in studied.values() for result in each.values()]
    assert results.journal(studied, {BASE.corpus: BASE})["steps"].tolist() == [
        result.outcome["step"] for result in dict.fromkeys(every)
    ]


def test_a_smallest_rate_of_its_own_is_told():
    assert results.changes(config(min_learning_rate=0.0), BASE) == "min_learning_rate=0"


def test_the_overview_counts_new_runs_and_their_time(studied):
    table = results.overview(studied, {"rates": "Which rate?", "norms": "Why norms?"})
    assert table["runs"].tolist() == [2, 2]
    assert table["of them new"].tolist() == [2, 1]
    assert table["diverged"].tolist() == [1, 0]
    assert table["minutes"].tolist() == pytest.approx([4 / 60, 2 / 60])


def test_places_are_counted(studied):
    (row,) = results.environments(studied).to_dict("records")
    assert row["runs"] == 3
    assert row["machine"] == "Abacus, 2 cores, 1 thread per run, float32"
    assert row["torch"] == "2.13.0" and row["commit"] == made_records.ENVIRONMENT["commit"][:10]


STORY = "\nA fox ran to the hill. " + "The fox sang a song. " * 8 + "\n\nHe flombered.<|endoftext|>"


@pytest.fixture
def result(tmp_path):
    source = "There a fox ran to the river. The fox sang a song on a hill. He left."
    counts = fluency.counts(STORY.replace(corpora.END_OF_TEXT, ""), source)
    made = record(tmp_path, config(), [4.0, 3.0])
    (made.folder / SAMPLE).write_text(json.dumps({"text": STORY, "counts": counts}))
    return made


def test_lines_are_short_and_its_own_line_ends_stay(result):
    lines = results.sample_text(result).split("\n")
    assert max(map(len, lines)) <= results.WIDTH
    assert lines[0].startswith("A fox ran to the hill.")
    assert lines[-2:] == ["", "He flombered."]


def test_what_is_known_repeated_and_copied_is_counted(result):
    counted = results.fluency_facts(result)
    assert counted["words"] == "48"
    assert counted["known words"] == "98%"
    assert counted["longest copy (words)"] == "4"  # "The fox sang a", since "song." is another word
    assert int(counted["repeated"].rstrip("%")) > 50


def test_a_run_that_diverged_wrote_nothing(tmp_path):
    with pytest.raises(ValueError, match="wrote nothing: it diverged"):
        results.sample_text(record(tmp_path, config(), [4.0], diverged=True))


def test_runs_are_compared_with_whose_parts_they_were_made_of(tmp_path):
    ours, mixed, theirs = (record(tmp_path, config(seed=s), [4.0, 2.0]) for s in (1, 2, 3))
    assert "yours" not in results.compare({"one": ours, "other": mixed})
    for run, names in ((mixed, ["optimizer", "loss"]), (theirs, NAMES)):
        asked = json.loads((run.folder / "config.json").read_text())
        asked["parts"] = {"key": "0", "places": dict.fromkeys(names, "mine:part")}
        (run.folder / "config.json").write_text(json.dumps(asked))
    found = results.compare({"ours": ours, "mixed": mixed, "theirs": theirs})
    assert found["yours"].tolist() == ["", "loss, optimizer", "all"]
    assert found["bits_per_byte"].tolist() == [1.0, 1.0, 1.0]
