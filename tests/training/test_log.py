"""The log of a run survives a crash, and reads as a table."""

import json
import math
import re
import shutil
from contextlib import suppress
from functools import partial

import pytest
from tiny_runs import trained

from workbook.experiments.own_runs import row_of
from workbook.experiments.records import load_run
from workbook.generation.formats import open_model
from workbook.training import log as runlog
from workbook.training.log import RunLog


def written(folder, *steps):
    with RunLog(folder) as log:
        for step in steps:
            log.append({"step": step, "tokens": 10 * step, "train_loss": 1 / step})


def test_a_run_reads_back_as_a_table_by_step(tmp_path):
    runlog.claim_folder(tmp_path / "run", {"batch_size": 8})
    with RunLog(tmp_path / "run") as log:
        log.append({"step": 0, "tokens": 0, "validation_loss": 7.5})
        log.append({"step": 5, "tokens": 50, "train_loss": 0.1 + 0.2})
    frame = runlog.read_log(tmp_path / "run")
    assert frame.index.name == "step"
    assert frame["tokens"].tolist() == [0, 50]
    assert frame["train_loss"].dropna().to_dict() == {5: 0.1 + 0.2}  # every bit of it
    assert runlog.load_json(tmp_path / "run" / runlog.CONFIG) == {"batch_size": 8}


def test_a_line_is_there_as_soon_as_its_step_is_done(tmp_path):
    with RunLog(tmp_path) as log:
        log.append({"step": 1})
        assert runlog.records(tmp_path) == [{"step": 1}]


def test_what_is_not_finite_is_null_and_reads_back_with_both_losses(tmp_path):
    with RunLog(tmp_path) as log:
        for step, loss in enumerate((math.nan, math.inf, -math.inf)):
            log.append({"step": step, "validation_loss": loss})
    for line in (tmp_path / "log.jsonl").read_text().splitlines():
        assert json.loads(line, parse_constant=pytest.fail)["validation_loss"] is None
    frame = runlog.read_log(tmp_path)
    assert frame[["train_loss", "validation_loss", "gradient_norm"]].isna().all(axis=None)


def test_half_a_line_after_a_crash_is_skipped(tmp_path):
    written(tmp_path, 1, 2)
    whole = (tmp_path / "log.jsonl").read_bytes()
    for cut in range(len(whole) + 1):
        (tmp_path / "log.jsonl").write_bytes(whole[:cut])
        steps = [record["step"] for record in runlog.records(tmp_path)]
        assert steps == [1, 2][: whole[:cut].count(b"\n")]


def test_what_follows_half_a_line_is_a_line_of_its_own(tmp_path):
    written(tmp_path, 1, 2)
    path = tmp_path / "log.jsonl"
    path.write_bytes(path.read_bytes()[:-7])
    written(tmp_path, 3)
    assert [record["step"] for record in runlog.records(tmp_path)] == [1, 3]


def test_a_resumed_run_cuts_off_what_lies_behind_its_checkpoint(tmp_path):
    with RunLog(tmp_path) as log:
        log.append({"step": 1})
        position = log.position()
        log.append({"step": 2})
    with RunLog(tmp_path) as log:
        log.truncate(position)
        log.append({"step": 2, "again": True})
        log.truncate(10_000)  # a log that lost lines is not filled up with zeros
        log.append({"step": 3})
    assert runlog.records(tmp_path) == [{"step": 1}, {"step": 2, "again": True}, {"step": 3}]


def test_a_log_that_somebody_edited_or_removed_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="give the folder of a run"):
        runlog.read_log(tmp_path)
    written(tmp_path, 1, 2)
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"oops\n" + path.read_bytes())
    with pytest.raises(ValueError, match=r"a line of .* is not valid JSON"):
        runlog.read_log(tmp_path)


def test_a_run_that_measured_nothing_yet_is_empty(tmp_path):
    written(tmp_path)
    assert runlog.read_log(tmp_path).empty


CONFIG = {"name": "one", "seed": 1, "optimizer": {"betas": (0.9, 0.95)}}


def test_a_claimed_folder_is_ours_whatever_the_label_and_refused_to_another_config(tmp_path):
    (tmp_path / "notes.txt").write_text("no run writes such a file")
    runlog.claim_folder(tmp_path, CONFIG)
    runlog.claim_folder(tmp_path, CONFIG | {"name": "other"})
    other = {"name": "one", "seed": 2, "steps": 7, "optimizer": {"betas": (0.9, 0.99)}}
    words = "another config (seed: 1 there, 2 here; betas: [0.9, 0.95] there, [0.9, 0.99] here;"
    with pytest.raises(ValueError, match=re.escape(f"{words} steps: none there, 7 here); give")):
        runlog.claim_folder(tmp_path, other)
    betas = {"optimizer": {"betas": [0.9, 0.95]}}
    assert runlog.load_json(tmp_path / runlog.CONFIG) == CONFIG | betas


@pytest.mark.parametrize("steps", ["x", None, [7], 1e999, True])
def test_steps_of_another_type_are_another_config(tmp_path, steps):
    asked = CONFIG | {"steps": 60}
    runlog.claim_folder(tmp_path, asked)
    edited = asked | {"steps": steps, "optimizer": steps}
    (tmp_path / runlog.CONFIG).write_text(json.dumps(edited))
    with pytest.raises(ValueError, match=r"another config \(steps: .* there, 60 here"):
        runlog.claim_folder(tmp_path, asked)


@pytest.mark.parametrize("name", ["log.jsonl", "environment.json", "outcome.json"])
def test_a_folder_with_somebody_elses_files_is_refused_and_left_as_it_was(tmp_path, name):
    (tmp_path / name).write_text("precious")
    with pytest.raises(ValueError, match=f"holds {name} and no config.json"):
        runlog.claim_folder(tmp_path, CONFIG)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {name: "precious"}


@pytest.mark.parametrize("name, remedy", [("outcome", "Remove it"), ("config", "Restore a copy")])
def test_damaged_json_is_named(tmp_path, name, remedy):
    path = tmp_path / f"{name}.json"
    path.write_text('{"status": "run')
    with pytest.raises(ValueError, match=rf"{name}\.json is not valid JSON .* {remedy}"):
        runlog.load_json(path)


def read_all(folder):
    """What stands in each file of a run."""
    run = load_run(folder)
    return row_of(run), run.precision


OF_ANOTHER_KIND = ["", "{}", "null", "3", "[]", '"x"', "NaN", "true", "1" * 400, "[" * 100_000, "{"]


@pytest.mark.slow
@pytest.mark.parametrize("content", OF_ANOTHER_KIND)
def test_a_file_of_a_run_that_holds_something_else_is_told_in_words(tmp_path, content):
    trained(tmp_path / "run")
    for name in (runlog.CONFIG, runlog.OUTCOME, runlog.ENVIRONMENT, runlog.LINES):
        folder = shutil.copytree(tmp_path / "run", tmp_path / name)
        (folder / name).write_text(f"{content}\n")
        for use in (
            trained,
            partial(trained, steps=30),
            read_all,
            open_model,
        ):
            with suppress(ValueError, OSError):  # any other error is a traceback
                use(folder)
        with pytest.raises((ValueError, OSError), match=str(tmp_path)):
            read_all(folder)


def test_a_loss_that_is_no_number_is_told_with_its_file(tmp_path):
    run = trained(tmp_path)
    (tmp_path / runlog.LINES).write_text('{"step": 1, "validation_loss": []}\n')
    with pytest.raises(ValueError, match=r"log\.jsonl holds what is no number \(validation_loss: "):
        _ = run.loss


def test_a_run_that_was_made_longer_says_so_to_the_shorter_command(tmp_path):
    trained(tmp_path)
    trained(tmp_path, steps=30)
    with pytest.raises(ValueError, match=r"made longer: it is of 30 steps now.*--steps 30"):
        trained(tmp_path)


def test_what_killed_processes_left_in_a_run_is_swept_when_it_goes_on(tmp_path):
    trained(tmp_path)
    left = [
        tmp_path / ".environment.json.0123456789abcdef.tmp",
        tmp_path / runlog.TOKENIZER / ".record.json.0123456789abcdef.tmp",
    ]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    trained(tmp_path, steps=30)
    assert not any(path.exists() for path in left)
