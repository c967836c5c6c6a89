"""The records that came along say where they were made, and all plans are played from them."""

import re

import pytest

from workbook import config
from workbook.classroom.study import notebooks
from workbook.classroom.study.notebooks import role
from workbook.experiments import records, results
from workbook.experiments.studies import STUDIES
from workbook.training.loss_bounds import bits_per_byte

PLACE = config.shipped() / "data" / "runs"
NOTEBOOK = config.shipped() / "notebooks" / "08_experiments.ipynb"


@pytest.fixture(autouse=True)
def only_what_came_along(monkeypatch):
    """No other records."""
    monkeypatch.delenv("WORKBOOK_DATA", raising=False)


def faults(run):
    """What is wrong with the record of a run."""
    asked = run.config
    found = run.environment
    ended = run.status in ("finished", "diverged")
    overflowed = run.diverged and all("forward pass overflows" in flag for flag in run.flags)
    timed = asked.max_seconds is not None
    bits = bits_per_byte(run.loss, run.levels.bytes_per_token)
    holds = {
        "where": found["device"] and found["processor"] and found["precision"],
        "threads and cores": found["threads"] >= 1 and found["cores"] >= 1,
        "versions": {"python", "numpy", "torch", "workbook"} <= found["versions"].keys(),
        "commit": re.fullmatch("[0-9a-f]{40}", found["commit"]),
        "length": run.diverged or timed or run.tokens == asked.tokens <= 15_000_000,
        "tokens": run.tokens == asked.batch_size * run.steps * asked.model.context_length,
        "time": not timed or run.seconds < asked.max_seconds + 0.5,
        "end": ended and (run.flags == [] or overflowed),
        "text": run.diverged == (run.sample is None),
        "levels": run.diverged or bits == pytest.approx(run.bits_per_byte, rel=1e-12),
    }
    return [name for name, is_held in holds.items() if not is_held]


@pytest.mark.slow
def test_every_record_is_whole():
    runs = records.all_records()
    assert {f"{run.study}: {run.config.name}": faults(run) for run in runs if faults(run)} == {}
    assert 0 < len(runs) <= 380
    assert len({run.precision for run in runs}) == 1, "comparisons are in one precision"


def test_every_record_has_one_line_under_the_hash_of_its_config_and_one_log():
    for path in records.files_of_runs():
        lines = records.read_lines(path)
        logs = path.name.replace(records.RUNS, records.LOGS)
        keys = [records.config_from(line["config"]).key for line in lines.values()]
        assert keys == [*lines] and len(path.read_text("utf-8").splitlines()) == len(keys)
        assert [*records.read_lines(path.with_name(logs))] == keys


def test_records_are_a_handful_of_files_that_git_takes():
    files = [path for path in PLACE.iterdir() if not path.name.startswith(".")]
    assert {path.suffix for path in files} == {".jsonl"} and len(files) == 2 * len(STUDIES) + 1


@pytest.mark.slow
def test_every_plan_of_the_laptop_is_played_from_them_and_needs_them_all():
    found = results.Recorded("laptop", "2025")
    assert found.unfinished == []
    asked = {run.config.key for runs in found.so_far.values() for run in runs.values()}
    assert asked == {run.config.key for run in records.all_records()}


def test_few_cells_of_the_notebook_do_not_follow_from_them():
    cells = [cell for cell in notebooks.read_notebook(NOTEBOOK).cells if cell.cell_type == "code"]
    told = [cell for cell in cells if role(cell) in ("evidence", "answer")]
    live = [cell for cell in told if notebooks.OUTPUT_VARIES in cell.metadata.get("tags", [])]
    trained = [cell for cell in live if "train(" in cell.source or "run(" in cell.source]
    assert len(trained) <= 2 and len(live) <= 4, "also the text at hand, and your own entries"


@pytest.mark.slow
def test_every_experiment_has_a_verdict():
    """`longer` once had none, whatever its runs said."""
    words = results.verdicts(results.Recorded("laptop", "2025").so_far)
    assert words.keys() == STUDIES.keys()
    assert "not finished yet" not in words.values()
    assert words["longer"].startswith("no norm +0.054; post-norm +0.023; no RoPE +0.072; SiLU")
