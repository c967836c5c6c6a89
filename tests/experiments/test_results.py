"""What is read from runs: settings, comparisons, verdicts, what is missing.

What notebook 08 shows of the recorded runs, to the letter, is not asked here again: the log, the
board, the best rates in words, what models wrote.
"""

import json
import math

import pytest
from made_records import config, record

from workbook.experiments import records, results, significance
from workbook.experiments.significance import PairedDifference
from workbook.experiments.studies import STUDIES
from workbook.training.parts import NAMES


def recorded(tmp_path, loss, diverged=False, **changes):
    """A run that began at 4 nats per token and ended with this loss."""
    return record(tmp_path, config(**changes), [4.0, loss], diverged=diverged)


@pytest.fixture
def runs(tmp_path):
    """The runs of an ablation at two budgets; at the second, the change has no seeds yet."""
    found = {}
    for steps, tokens in ((4, "100"), (8, "1,200")):
        for rate in (5e-3, 1e-2, 2e-2):
            asked = {"steps": steps, "max_learning_rate": rate}
            label = f"{tokens} tokens, rate"
            found[f"unchanged, {label} {rate:.3g}"] = recorded(tmp_path, 2 + rate, **asked)
            broken = rate > 5e-3
            found[f"no norm, {label} {rate:.3g}"] = recorded(
                tmp_path, 7.0 if broken else 2.5, broken, **asked, norm="none"
            )
        for seed in range(1, 6):
            asked = {"steps": steps, "max_learning_rate": 5e-3, "seed": seed}
            label = f"{tokens} tokens, seed {seed}"
            loss = 2 + seed / 100
            found[f"unchanged, {label}"] = recorded(tmp_path, loss, **asked)
            if steps == 4:
                costly = recorded(tmp_path, loss + 0.49 + seed / 1_000, **asked, norm="none")
                found[f"no norm, {label}"] = costly
    return found


def test_a_setting_has_its_rates_in_order_and_the_seeds_at_the_best(runs):
    found = results.settings(runs, "unchanged")
    assert list(found) == [100, 1_200]
    first = found[100]
    assert list(first.tuned) == [5e-3, 1e-2, 2e-2] and first.rate == 5e-3
    assert first.losses == pytest.approx({seed: 2 + seed / 100 for seed in range(1, 6)})
    assert first.spread.mean == pytest.approx(2.03)
    assert results.settings(runs, "norm") == {}


def test_a_comparison_is_there_once_both_sides_have_their_seeds(runs):
    by_budget = results.comparisons(runs, "no norm")
    assert list(by_budget) == [100]
    assert by_budget[100].at_old_rate.loss == 2.5
    assert by_budget[100].difference.nats == pytest.approx(0.493)
    shown = results.Family({"layer_norm": runs}).table("no norm", "with norms")
    assert shown.index.tolist() == ["100"]
    assert shown["with norms"].tolist() == ["2.030 ± 0.016 (5 seeds) at 0.005"]
    assert shown["no norm at the rate of with norms"].tolist() == ["ended at 2.500 nats/token"]
    assert shown[["cost", "significant"]].to_numpy().tolist() == [["+0.493 ± 0.001", "yes"]]
    first, rule, row = results.markdown(shown[["cost", "significant"]]).split("\n")
    assert [first, rule] == ["| tokens | cost | significant |", "| --- | --- | --- |"]
    assert row == "| 100 | +0.493 ± 0.001 | yes |"
    assert results.Family({}).table("no norm").empty


def family_of(*gaps):
    """A family whose changes cost these gaps, by seed, at one budget."""
    found = results.Family({})
    for label, one in zip(results.CHANGES, gaps, strict=False):
        found.differences[label, 100] = PairedDifference(one)
        found.by_change[label] = {100: None}
    found.claimed = significance.claimed(found.differences)
    return found


CLEAR = (0.48, 0.5, 0.49, 0.51, 0.47)
FAINT = (0.1, 0.2, 0.0, 0.1, 0.05)


def test_a_verdict_claims_only_what_luck_does_not_explain(runs):
    found = results.Family({"layer_norm": runs})
    assert [*found.differences] == [("no norm", 100)] and found.by_change["no RoPE"] == {}
    found = family_of(CLEAR, FAINT, tuple(-gap for gap in CLEAR))
    said = "no norm raises the loss by 0.490 ± 0.007 nats per token (p < 0.0001)"
    assert found.verdict("no norm", 100) == said
    assert PairedDifference(FAINT).chance < 0.1
    shown = "no difference shown for post-norm (+0.090 ± "
    assert found.verdict("post-norm", 100).startswith(shown)
    assert found.verdict("no RoPE", 100).startswith("no RoPE lowers the loss by 0.490")
    lost = family_of((math.inf, 0.1, 0.2))
    assert "1 of 3 seeds diverged" in lost.verdict("no norm", 100)


def test_an_ending_is_a_loss_or_a_step(runs):
    diverged = runs["no norm, 100 tokens, rate 0.02"]
    assert results.ending(diverged) == "diverged at step 1"
    vars(diverged)["log"] = diverged.log.assign(validation_loss=None)
    assert results.ending(diverged) == "had an infinite or NaN loss before the first step"
    assert results.ending(runs["no norm, 100 tokens, rate 0.005"]) == "ended at 2.500 nats/token"


def test_what_never_began_is_not_said_to_have_diverged(runs):
    lost = {rate: runs[f"no norm, 100 tokens, rate {rate:.3g}"] for rate in (0.01, 0.02)}
    said = results.best_in_words({"without norms": results.Setting(lost, {})})
    assert said == "without norms diverged at every learning rate"
    for run in lost.values():
        vars(run)["log"] = run.log.assign(validation_loss=None)
    said = results.best_in_words({"without norms": results.Setting(lost, {})})
    assert said.startswith("without norms, no run could start")


def test_an_experiment_of_no_runs_has_no_verdict_yet():
    assert results.verdicts({"batch_size": {}}) == {"batch_size": "not finished yet"}


def test_a_run_belongs_to_the_experiment_that_asked_for_it_first(tmp_path):
    usual = recorded(tmp_path, 3.0)
    other = recorded(tmp_path, 2.5, norm="none")
    asked = {"rates": {"rate 0.01": usual}, "norms": {"unchanged": usual, "no norm": other}}
    wanted = {"rates": {"rate 0.01": usual}, "norms": {"no norm": other}}
    assert results.first_asked(asked) == wanted


@pytest.mark.slow
def test_a_scale_without_all_its_records_gives_way_to_the_laptops(capsys):
    assert results.recorded_at("laptop", "2025").name == "laptop"
    assert capsys.readouterr().out == ""
    with records.temporary_folder():
        found = results.recorded_at("gpu", "2025")
        assert found.name == "laptop" and found.so_far == {} and found.unfinished == [*STUDIES]
    said = capsys.readouterr().out
    assert "these have no complete records: learning_rate, batch_size, " in said
    assert "`workbook experiments run --scale gpu` makes the runs" in said


def test_the_longer_runs_stand_beside_the_same_rate_and_the_rate_that_was_searched(tmp_path):
    before = recorded(tmp_path, 2.25, seed=1, steps=5)
    long = {
        "longer, bridge": recorded(tmp_path, 2.5, seed=1, steps=6),
        "longer, unchanged, 12 tokens, rate 0.01": recorded(tmp_path, 2.0, seed=1),
        "longer, unchanged, 12 tokens, rate 0.005": recorded(
            tmp_path, 1.5, seed=1, max_learning_rate=0.005
        ),
        "longer, no norm, seed 1": recorded(
            tmp_path, 1.75, seed=1, max_learning_rate=0.005, norm="none"
        ),
    }
    table = results.longest_table(long, before)
    assert table.iloc[0, 1] == "2.500 (on the shorter text 2.250)"
    assert table.loc["no norm"].tolist() == [0.005, "1.750", "-0.250", "+0.250"]
    assert list(results.longest_unchanged(long)) == [0.01, 0.005]
    said = results.longest_in_words(long)["no norm"]
    assert said.endswith(
        "at 1.750, and the unchanged model with the same seed and rate (0.005) at 1.500"
    )
    assert results.gaps_in_words(long) == "no norm +0.250 nats per token in one run each"


def test_a_loss_is_worth_the_tokens_at_which_the_unchanged_model_has_it(tmp_path):
    by_tokens = {
        tokens: results.Setting(
            {}, {seed: recorded(tmp_path, loss, seed=seed, steps=tokens) for seed in (1, 2)}
        )
        for tokens, loss in ((100, 3.0), (400, 2.0))
    }
    assert results.worth(by_tokens, 100, 2.5) == pytest.approx(2)
    assert results.worth(by_tokens, 100, 3.0) == pytest.approx(1)


def test_an_entry_stands_beside_the_start_with_the_same_seeds(tmp_path):
    def entry(name, *losses, first=1):
        return {
            seed: recorded(tmp_path / name, loss, seed=seed)
            for seed, loss in enumerate(losses, first)
        }

    board = {
        "start": entry("start", 3.0, 3.2),
        "Muon": entry("Muon", 2.5, 2.7),
        "start again": entry("again", 3.0, 3.4, first=7),
        "final": entry("final", 2.0, 2.4, first=7),
    }
    table = results.entries_table(board)
    assert table["beside the start"].tolist() == ["", "-0.500 ± 0.000", "", "-1.000 ± 0.000"]
    assert table.loc["Muon", "loss (nats/token)"] == "2.600 ± 0.141 (2 seeds)"


def test_runs_are_compared_with_whose_parts_they_were_made_of(tmp_path):
    usual, mixed, own = (recorded(tmp_path, 2.0, seed=seed) for seed in (1, 2, 3))
    assert "yours" not in results.compare_runs({"one": usual, "other": mixed})
    for run, names in ((mixed, ["optimizer", "loss"]), (own, NAMES)):
        asked = json.loads((run.folder / "config.json").read_text())
        asked["parts"] = {"key": "0", "places": dict.fromkeys(names, "mine:part")}
        (run.folder / "config.json").write_text(json.dumps(asked))
    found = results.compare_runs({"ours": usual, "mixed": mixed, "theirs": own})
    assert found["yours"].tolist() == ["", "loss, optimizer", "all"]
    assert found["bits_per_byte"].tolist() == [1.0, 1.0, 1.0]
