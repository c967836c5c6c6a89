"""The records that came along say where they were made, and all plans are played from them."""

import re

import pytest

from workbook import config
from workbook.classroom.study import notebooks
from workbook.classroom.study.notebooks import role
from workbook.experiments import records, results
from workbook.experiments.studies import STUDIES

PLACE = config.shipped() / "data" / "runs"
NOTEBOOK = config.shipped() / "notebooks" / "08_experiments.ipynb"


@pytest.fixture(autouse=True)
def only_what_came_along(monkeypatch):
    """No other records."""
    monkeypatch.delenv("WORKBOOK_DATA", raising=False)


def offenders(problem) -> list[str]:
    """The names of the recorded runs about which `problem` is true."""
    return [f"{run.study}: {run.config.name}" for run in records.all_records() if problem(run)]


def test_records_name_where_and_from_what_they_were_made():
    def problem(run):
        found = run.environment
        named = found["device"] and found["processor"] and found["precision"]
        counted = found["threads"] >= 1 and found["cores"] >= 1
        versioned = {"python", "numpy", "torch", "workbook"} <= found["versions"].keys()
        return not (
            named and counted and versioned and re.fullmatch("[0-9a-f]{40}", found["commit"])
        )

    assert offenders(problem) == []


def test_every_record_has_one_line_under_the_hash_of_its_config_and_one_log():
    for path in records.files_of_runs():
        lines, logs = records.read_lines(path), path.name.replace(records.RUNS, records.LOGS)
        keys = [records.config_from(line["config"]).key for line in lines.values()]
        assert keys == [*lines] and len(path.read_text(encoding="utf-8").splitlines()) == len(keys)
        assert [*records.read_lines(path.with_name(logs))] == keys


def test_tokens_are_batch_times_steps_times_context():
    def problem(run):
        asked = run.config
        whole = run.diverged or asked.max_seconds is not None or run.tokens == asked.tokens
        counted = run.tokens == asked.batch_size * run.steps * asked.model.context_length
        return not (whole and counted)

    assert offenders(problem) == []


def test_records_ended_in_time_without_flags_and_with_a_text_unless_they_diverged():
    def problem(run):
        in_time = run.config.max_seconds is None or run.seconds < run.config.max_seconds + 0.5
        overflowed = run.diverged and all("forward pass overflows" in flag for flag in run.flags)
        ended = run.status in ("finished", "diverged") and (run.flags == [] or overflowed)
        return not (in_time and ended and run.diverged == (run.sample is None))

    assert offenders(problem) == []


def test_records_are_a_handful_of_files_that_git_takes():
    files = [path for path in PLACE.iterdir() if not path.name.startswith(".")]
    assert {path.suffix for path in files} == {".jsonl"} and len(files) == 2 * len(STUDIES) + 1
    assert max(path.stat().st_size for path in files) < 500_000


def test_there_are_at_most_340_of_at_most_4_million_tokens():
    assert 0 < len(records.all_records()) <= 340
    assert offenders(lambda run: run.config.max_seconds is None and run.tokens > 4_000_000) == []


def test_all_of_one_comparison_are_in_one_precision():
    assert len({run.precision for run in records.all_records()}) == 1


def test_every_plan_of_the_laptop_is_played_from_them_and_needs_them_all():
    found = results.Recorded("laptop", "2025")
    assert [study for study, stage in found.stages.items() if not stage.over] == []
    asked = {run.config.key for runs in found.so_far.values() for run in runs.values()}
    assert asked == {run.config.key for run in records.all_records()}


def test_few_cells_of_the_notebook_do_not_follow_from_them():
    cells = [cell for cell in notebooks.read_notebook(NOTEBOOK).cells if cell.cell_type == "code"]
    told = [cell for cell in cells if role(cell) in ("evidence", "answer")]
    live = [cell for cell in told if notebooks.VARIES in cell.metadata.get("tags", [])]
    trained = [cell for cell in live if "train(" in cell.source or "run(" in cell.source]
    assert len(trained) <= 2 and len(live) <= 5, "also the text at hand, and your own entries"
