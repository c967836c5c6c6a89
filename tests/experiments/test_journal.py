"""The log of all experiments has every run once, what was changed, and what failed."""

import made_records
import pytest
from made_records import config, record

from workbook.experiments import results as experiment_results

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
    table = experiment_results.journal(studied, {BASE.corpus: BASE})
    assert table["run"].tolist() == ["rate 0.01", "rate 1", "no norm"]
    assert table.index.tolist() == ["rates", "rates", "norms"]
    assert table["changed"].tolist() == ["the base run", "max_learning_rate=1", "norm=none, seed=1"]


def test_what_failed_is_in_it_with_its_reason(studied):
    ended = experiment_results.journal(studied, {BASE.corpus: BASE})["outcome"].tolist()
    assert ended == ["finished", "diverged: the loss is nan at step 3", "finished"]
    every = [result for results in studied.values() for result in results.values()]
    assert experiment_results.journal(studied, {BASE.corpus: BASE})["steps"].tolist() == [
        result.outcome["step"] for result in dict.fromkeys(every)
    ]


def test_a_smallest_rate_of_its_own_is_told():
    assert experiment_results.changes(config(min_learning_rate=0.0), BASE) == "min_learning_rate=0"


def test_the_overview_counts_new_runs_and_their_time(studied):
    table = experiment_results.overview(studied, {"rates": "Which rate?", "norms": "Why norms?"})
    assert table["runs"].tolist() == [2, 2]
    assert table["of them new"].tolist() == [2, 1]
    assert table["diverged"].tolist() == [1, 0]
    assert table["minutes"].tolist() == pytest.approx([4 / 60, 2 / 60])


def test_places_are_counted(studied):
    (row,) = experiment_results.environments(studied).to_dict("records")
    assert row["runs"] == 3
    assert row["machine"] == "Abacus, 2 cores, 1 thread per run, float32"
    assert row["torch"] == "2.13.0" and row["commit"] == made_records.ENVIRONMENT["commit"][:10]
