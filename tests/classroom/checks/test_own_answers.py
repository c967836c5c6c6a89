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

# The one notebook whose answers are computed in seconds.
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
    """The answers to an edition as they are stored, by problem and part."""
    outputs = [output for cell in code_cells(name) for output in cell.outputs]
    said = [each for each in (output.get("data", {}).get(MIME) for output in outputs) if each]
    places = {each["edition"]: {} for each in said}
    for each in said:
        places[each["edition"]][each["problem"], each["part"]] = plain(each["text"])
    # An answer that does not differ is stored once.
    return places.get(STORED, {}) | places.get(edition, {})


def computed(name):
    """The answers of both editions, from the cells that they need and no others."""
    answers = {edition: {} for edition in EDITIONS}
    names = {}

    def answer(problem, part, text, *, edition=STORED, **_):
        answers[edition][problem, part] = plain(text)

    for place, cell in enumerate(needed(code_cells(name))):
        exec(cell.source, names)
        if place == 0:
            names["answer"] = answer
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
    for (problem, part), text in answers.items():
        if problems.with_id(problem).kind == "written":
            report = check(problem, text, part)
            assert report.status in ("correct", "read"), report


@pytest.mark.parametrize("edition", EDITIONS)
def test_what_is_computed_is_what_is_stored_under_either_edition(edition, monkeypatch):
    monkeypatch.setenv("WORKBOOK_EDITION", edition)
    answers = computed(COMPUTED)
    for each in EDITIONS:
        assert answers[STORED] | answers[each] == stored(COMPUTED, each)
