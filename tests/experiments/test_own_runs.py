"""One's own runs: listed, and handed in as they are."""

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tiny_runs import at_step, tiny, trained

from workbook.classroom import cli
from workbook.classroom.study.verbs import check
from workbook.experiments import compare_runs, my_runs, records
from workbook.experiments.own_runs import as_rows

RATES = (1e-3, 1e-2, 1e-1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The place of `workbook train` after three runs, one that was stopped, and something else."""
    place = tmp_path_factory.mktemp("trained")
    for rate in RATES:
        optimizer = replace(tiny().optimizer, max_learning_rate=rate)
        trained(place / f"at-{rate:g}", optimizer=optimizer, name=f"rate {rate:g}")
    with pytest.raises(KeyboardInterrupt):
        trained(place / "stopped", at_step(5, interrupt))
    (place / "notes").mkdir()
    return place


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.slow
def test_all_runs_are_listed_with_their_settings_and_what_came_out(folder):
    table = my_runs(folder)
    assert [*table.index] == [*(f"at-{rate:g}" for rate in RATES), "stopped"]
    assert [*table["learning_rate"]] == [*RATES, 1e-2]
    assert [*table["status"]] == ["finished"] * 3 + ["stopped"]
    assert table["loss"][:3].between(0, 5).all() and math.isnan(table["loss"]["stopped"])
    assert {"norm", "d_ff", "corpus", "tokens", "seconds"} <= {*table} and "log_every" not in table
    assert Path(table["folder"]["at-0.01"]) == folder / "at-0.01"
    assert "bytes_per_token" in my_runs(folder / "at-0.01")


def test_by_default_those_of_this_machine_are_listed(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    assert my_runs().empty and "loss" in my_runs()
    (tmp_path / "trained").symlink_to(folder, target_is_directory=True)
    assert [*my_runs().index] == [*my_runs(folder).index]
    assert [*my_runs("at-0.01", "at-0.1").index] == ["at-0.01", "at-0.1"]
    assert [row["name"] for row in as_rows(["at-0.1"])] == ["at-0.1"]


def test_a_folder_without_a_run_is_told(folder):
    for place in (folder / "notes", folder / "no" / "such"):
        with pytest.raises(
            ValueError, match=f"{place.name} holds no run: expected the folder that"
        ):
            my_runs(place)
    report = check("experiment_log", str(folder / "no" / "such"))
    assert report.status == "not attempted" and "such holds no run" in report.claim


def test_runs_in_every_form_are_the_same_rows(folder, monkeypatch):
    paths = [folder / f"at-{rate:g}" for rate in RATES]
    rows = [row for path in paths for row in as_rows(path)]
    monkeypatch.chdir(folder)
    for form in (paths, [str(path) for path in paths], [path.name for path in paths]):
        assert as_rows(form) == rows
    assert len(as_rows(folder)) == 4
    runs = {path.name: records.load_run(path) for path in paths}
    outcomes = [(row["learning_rate"], row["loss"]) for row in rows]
    for form in (runs, [*runs.values()]):
        assert [(row["learning_rate"], row["loss"]) for row in as_rows(form)] == outcomes
    assert [row["name"] for row in as_rows(runs)] == [*runs]


@pytest.mark.parametrize(
    "other", ["A sentence.", "word", "long" * 999, 3, None, [{"loss": 1}], pd.DataFrame()]
)
def test_what_is_no_run_stays_as_it_is(other):
    assert as_rows(other) is other or as_rows(other) == other


def test_a_file_may_hand_in_the_place_of_its_runs(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    path = tmp_path / "mine.py"
    path.write_text(f"RUNS = {str(folder)!r}\n")
    cli.main(["check", "experiment_log", f"{path}:RUNS"])
    assert "1 of 4 runs left out: they have not ended." in capsys.readouterr().out


@pytest.mark.slow
def test_a_check_reads_them_in_every_form(folder):
    paths = [folder / f"at-{rate:g}" for rate in RATES]
    runs = {path.name: records.load_run(path) for path in paths}
    compared = compare_runs(runs).drop(columns="bits_per_byte")  # which its tokenizer decides
    forms = (paths, folder, runs, my_runs(*paths), compared)
    reports = [check("learning_rate", form, "a") for form in forms]
    stopped = " 1 of 4 runs left out: they have not ended."
    assert stopped in reports[1].claim
    assert len({str(report).replace(stopped, "") for report in reports}) == 1, reports
    assert reports[0].status in ("possible", "wrong")  # as its best is inside or at an end
