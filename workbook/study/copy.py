"""The learner's copy of the notebooks: made once, never overwritten, one problem started over.

In a copy the outputs are cleared and our answers give way to empty ones, each with a folded
look-up below it. Everything else is as in the worked notebook.
"""

import ast
import time
from copy import deepcopy
from itertools import count, pairwise
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from workbook.config import study_folder
from workbook.study import notebooks, problems
from workbook.study.notebooks import normalise, role
from workbook.study.progress import MARK, Progress, current

STUBS = {"try", "answer"}  # the roles of the cells that a learner fills


def make(folder: str | Path | None = None) -> list[Path]:
    """Add the notebooks that a study folder lacks; return what was added.

    The folder is by default `study_folder`. What is there already is the learner's and stays
    as it is; a line is printed for each addition.
    """
    folder = Path(folder or study_folder())
    (folder / MARK).mkdir(parents=True, exist_ok=True)
    added = [path for path in notebooks.find() if not (folder / path.name).exists()]
    for path in added:
        notebooks.write(folder / path.name, copy_of(notebooks.read(path)))
        print(f"{folder.name}/{path.name} is new: a copy of your own to work in.")
    return [folder / path.name for path in added]


def copy_of(worked: NotebookNode) -> NotebookNode:
    """Copy a worked notebook as the learner gets it."""
    cells, has_look_up = [], False
    for cell in deepcopy(worked.cells):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if role(cell) == "setup" and not has_look_up:
            cell.source, has_look_up = _with_look_up(cell.source), True
        if role(cell) == "answer":
            cells += _answer_cells(cell)
        else:
            cells.append(cell)
    return normalise(NotebookNode({**worked, "cells": cells}))


def _with_look_up(source: str) -> str:
    """Add one import to the code of the import cell."""
    imports = [n for n in ast.parse(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
    lines = source.split("\n")
    last = imports[-1].end_lineno if imports else 0
    lines.insert(last, "from workbook import look_up  # our answers, for afterwards")
    return "\n".join(lines)


def _answer_cells(worked: NotebookNode) -> list[NotebookNode]:
    """Make an empty answer in place of ours, and the look-up of ours below it.

    There is none to a code problem, where the code is the answer.
    """
    about = worked.metadata.workbook
    if problems.get(about.problem).kind == "code":
        return []
    quoted = [f'"{name}"' for name in (about.problem, about.get("part")) if name]
    named = quoted if len(quoted) == 2 else [*quoted, "None"]
    rests_on = "".join(f", {keyword}" for keyword in _corpora_of(worked.source))
    source = f'answer({", ".join(named)}, """\n"""{rests_on})'
    empty = new_code_cell(source, metadata=worked.metadata)
    empty.metadata.pop("tags", None)
    look_up = new_code_cell(f"look_up({', '.join(quoted)})")
    look_up.metadata["workbook"] = {**about, "role": "look_up"}
    return [empty, look_up]


def _corpora_of(source: str) -> list[str]:
    """Find the argument by which our answer names its corpora: the learner's names them too."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    keywords = [keyword for call in calls for keyword in call.keywords]
    return [ast.unparse(keyword) for keyword in keywords if keyword.arg == "corpora"]


def _folder() -> Path:
    """Find the study folder that we are in, or else the default one."""
    inside = current()
    return inside.folder if inside else study_folder()


def reset(problem: str) -> None:
    """Start one problem over: its try-it and answer cells are as on the first day.

    The cells as they were go to a notebook in `study/.workbook/backup/`. No other cell changes.
    """
    found = problems.get(problem)
    worked = notebooks.read(notebooks.find([found.notebook])[0])
    folder = _folder()
    path = folder / f"{found.notebook}.ipynb"
    if not path.exists():
        raise ValueError(f"{path} does not exist yet; `workbook lab` makes it")
    mine = notebooks.read(path)
    backup = _backup(folder, found.id, mine)
    mine.cells = _with_fresh_stubs(mine.cells, copy_of(worked).cells, found.id)
    notebooks.write(path, mine)
    Progress(folder).forget(found.id)
    print(f"{found.id} starts over in {path.name}; what you had is in {backup}.")


def _backup(folder: Path, problem: str, study: NotebookNode) -> Path:
    """Store the learner's cells of one problem, outputs and all, in a new notebook."""
    backups, today = folder / MARK / "backup", time.strftime("%Y-%m-%d")
    names = (backups / f"{problem}-{today}-{n}.ipynb" for n in count(1))
    path = next(name for name in names if not name.exists())
    cells = [cell for cell in study.cells if _is_stub_of(cell, problem)]
    notebooks.write(path, NotebookNode({**study, "cells": cells}))
    return path


def _is_stub_of(cell: NotebookNode, problem: str) -> bool:
    return role(cell) in STUBS and cell.metadata.workbook.get("problem") == problem


def _with_fresh_stubs(
    mine: list[NotebookNode], fresh: list[NotebookNode], problem: str
) -> list[NotebookNode]:
    """Put fresh stubs in the places of the learner's, wherever those were moved to.

    A stub that was deleted comes back after the cell that it follows in the fresh copy.
    """
    stubs = {cell.id: cell for cell in fresh if _is_stub_of(cell, problem)}
    cells = []
    for cell in mine:
        if _is_stub_of(cell, problem):
            if cell.id not in stubs:
                continue  # a stub that was split or copied: its first part keeps the id
            cell = stubs.pop(cell.id)
        elif role(cell) == "check" and cell.metadata.workbook.get("problem") == problem:
            cell.outputs, cell.execution_count = [], None
        cells.append(cell)
    for before, cell in pairwise(fresh):
        if cell.id in stubs:
            place = next((i for i, c in enumerate(cells, 1) if c.id == before.id), len(cells))
            cells.insert(place, cell)
    return cells
