"""Our own answers, of both editions, are held against our own checks: none is called wrong."""

import ast
from functools import cache

import pytest

from workbook.classroom import problems
from workbook.classroom.study import notebooks
from workbook.classroom.study.answers import MIME
from workbook.classroom.study.notebooks import role
from workbook.classroom.study.verbs import check
from workbook.config import EDITIONS
from workbook.training.loss_bounds import CAPS

# The one notebook whose answers are other numbers in each edition, and are computed in seconds.
COMPUTED = "04_accounting"
STORED = "2025"  # the edition under which the notebooks are run


def plain(text):
    """The text without its line ends."""
    return " ".join(text.split())


@cache
def code_cells(name):
    path = next(path for path in notebooks.find_worked() if path.stem == name)
    return [cell for cell in notebooks.read_notebook(path).cells if cell.cell_type == "code"]


def stored(name, edition):
    """The answers as they are stored, by problem and part."""
    outputs = [output for cell in code_cells(name) for output in cell.outputs]
    said = [each for each in (output.get("data", {}).get(MIME) for output in outputs) if each]
    answers = {(each["problem"], each["part"]): plain(each["text"]) for each in said}
    if ("leaderboard", None) in answers:  # it quotes the time that the handout allows
        told, right = (f"{CAPS[each] / 60:g} minutes" for each in (STORED, edition))
        assert told in answers["leaderboard", None]
        answers["leaderboard", None] = answers["leaderboard", None].replace(told, right)
    return answers


def computed(name):
    """The answers of the edition that is chosen, from the cells that they need and no others."""
    answers = {}
    names = {}
    for place, cell in enumerate(needed(code_cells(name))):
        exec(cell.source, names)
        if place == 0:
            names["answer"] = lambda *place: answers.update({place[:2]: plain(place[2])})
    return answers


def needed(cells):
    """The import cell, the answers, and what gives the names that those use a value."""
    wanted = set()
    found = []
    for cell in reversed(cells):
        names = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Name)]
        bound = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        if role(cell) == "answer" or (bound & wanted and role(cell) != "try") or cell is cells[0]:
            wanted = (wanted | {name.id for name in names}) - bound
            found.append(cell)
    return found[::-1]


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("name", [path.stem for path in notebooks.find_worked()])
def test_no_answer_of_ours_is_called_wrong(name, edition, monkeypatch, judged_here):
    answers = stored(name, edition)
    monkeypatch.setenv("WORKBOOK_EDITION", edition)
    if name == COMPUTED and edition != STORED:
        places = set(answers)
        answers = computed(name)
        assert set(answers) == places
    for (problem, part), text in answers.items():
        if problems.with_id(problem).kind == "written":
            report = check(problem, text, part)
            assert report.status in ("correct", "read"), report


def test_what_is_computed_is_what_is_stored(monkeypatch):
    monkeypatch.setenv("WORKBOOK_EDITION", STORED)
    assert computed(COMPUTED) == stored(COMPUTED, STORED)
