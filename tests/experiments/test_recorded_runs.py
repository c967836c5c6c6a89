"""The records that came along say where they were made, and notebook 08 follows from them."""

import re
from inspect import cleandoc

import matplotlib.pyplot as plt
import pytest

from workbook import config
from workbook.experiments import plans, records, studies
from workbook.study import notebooks
from workbook.study.answers import MIME
from workbook.study.notebooks import role
from workbook.training import log, train
from workbook.views import plots

PLACE = config.repository() / "data" / "runs"
FOLDERS = sorted(PLACE.glob("*-*"))
NOTEBOOK = config.repository() / "notebooks" / "08_experiments.ipynb"
every_record = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


@pytest.fixture(autouse=True)
def only_what_came_along(tmp_path, monkeypatch):
    """No other records, and no training."""
    monkeypatch.setattr(records, "folders", lambda: (PLACE,))

    def refuse(*_):
        raise AssertionError("a run was about to be trained")

    monkeypatch.setattr(train.Trainer, "begin", refuse)
    yield
    plt.close("all")


@every_record
def test_a_record_names_where_and_from_what_it_was_made(folder):
    found = log.load_json(folder / log.ENVIRONMENT)
    assert found["device"] and found["processor"] and found["precision"]
    assert found["threads"] >= 1 and found["cores"] >= 1
    assert {"python", "numpy", "torch", "workbook"} <= found["versions"].keys()
    assert re.fullmatch("[0-9a-f]{40}", found["commit"])


@every_record
def test_a_record_is_found_by_its_config_and_has_its_seed(folder):
    asked = records.read_config(folder)
    assert folder.name == f"{asked.name}-{asked.key}"
    assert records.find(asked).folder == folder
    assert isinstance(asked.seed, int)


@every_record
def test_tokens_are_batch_times_steps_times_context(folder):
    result = records.Run(records.read_config(folder), folder)
    asked = result.config
    assert result.tokens == asked.batch_size * result.steps * asked.model.context_length
    assert result.outcome["status"] in records.ENDED and result.outcome["flags"] == []
    if not result.diverged and asked.max_seconds is None:
        assert result.tokens == asked.tokens
    assert result.diverged == (result.sample is None)
    assert asked.max_seconds is None or result.seconds <= asked.max_seconds


@every_record
def test_a_record_holds_text_alone(folder):
    assert {file.name for file in folder.iterdir()} <= set(records.TEXTS)
    assert sum(file.stat().st_size for file in folder.iterdir()) < 60_000


def test_there_are_at_most_100_of_at_most_2_million_tokens():
    assert 0 < len(FOLDERS) <= 100
    assert max(records.read_config(folder).tokens for folder in FOLDERS) <= 2_000_000


def test_every_plan_of_the_laptop_is_played_from_them_and_needs_them_all():
    scale = studies.laptop_scale()
    played = {name: plans.replay(each.plan(scale)) for name, each in studies.STUDIES.items()}
    used = {result.folder for results in played.values() for result in results.values()}
    assert used == set(FOLDERS)


def varies(cell):
    return notebooks.VARIES in cell.metadata.get("tags", [])


def stored(cells):
    """The words of every picture, and the text of every answer, in order."""
    shown = []
    for cell in cells:
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                shown.append(data["text/plain"])
            if MIME in data:
                shown.append((data[MIME]["problem"], data[MIME]["part"], data[MIME]["text"]))
    return shown


def test_figures_and_answers_of_the_notebook_follow_from_them(monkeypatch):
    cells = [cell for cell in notebooks.read(NOTEBOOK).cells if cell.cell_type == "code"]
    setup, *rest = [cell for cell in cells if role(cell) in ("setup", "evidence", "answer")]
    live = [cell for cell in rest if role(cell) != "setup" and varies(cell)]
    trained = [cell for cell in live if "train(" in cell.source or "run(" in cell.source]
    assert len(trained) <= 2 and len(live) <= 4, "the miniature, the repetition, the text at hand"
    made, names = [], {}

    def answer(problem, part, text, figure, *, alt, measured_on):
        made.extend([alt, (problem, part, cleandoc(text).strip())])
        assert figure is not None and measured_on

    exec(setup.source, names)
    names["answer"] = answer
    monkeypatch.setattr(plots, "show", lambda picture, alt: made.append(alt))
    again = [cell for cell in rest if cell not in live]
    for cell in again:
        exec(cell.source, names)
        plt.close("all")
    assert made == stored(again)
    assert len(made) > 20
