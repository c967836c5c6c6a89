"""Study notebooks, brought up to date with their originals, or started over problem by problem.

There are three versions of a cell: the learner's, today's original, and the original that the copy
was made from, of which the cell notes the digest. A cell that the learner has not changed gives way
to today's; one that they changed or added stays. Solutions and answers take the places of their
stubs; any other cell that both sides changed is followed by ours. A backup is made first.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from uuid import uuid4

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from workbook.classroom import problems
from workbook.classroom.study import copy, notebooks
from workbook.classroom.study.mistakes import forget_mistakes
from workbook.classroom.study.notebooks import ONCE_PER_PART, digest, role
from workbook.classroom.study.progress import MARK, Progress, nearest
from workbook.classroom.study.solutions import FOLDER as KEPT
from workbook.files import atomic_write, file_state, locked, notebooks_in

NEWER_BELOW = (
    "*The cell below is new in the workbook, and yours above has changed: keep what you need.*"
)
# In a cell: `def f` or `class A`, `x = ...` and `answer("id", "part", ...`.
DEFINED = re.compile(r'^(?:def|class) (\w+)|^(\w+) = |^answer\((".*?", [^,]+),', re.MULTILINE)
# JupyterLab shows what it once read, and notices a change of the file only when it saves.
RELOAD = "If it is open in JupyterLab, reload it there: File > Reload Notebook from Disk."


def notices(folder: str | Path) -> list[str]:
    """Say which notebooks of a folder are older than their originals, and which are damaged."""
    lines = []
    for path in notebooks_in(folder):
        try:
            if (news := _news(path, notebooks.read_notebook(path))) is not None:
                lines.append(
                    f"{path.parent.name}/{path.name} is older than its original ({news}). `workbook"
                    " study --update` brings it up to date and keeps what you wrote."
                )
        except (OSError, ValueError) as error:
            lines.append(str(error))
    return lines


def update(folder: str | Path | None = None) -> None:
    """Bring the notebooks of a study folder up to date, by default of the nearest one.

    What became of each is printed. Raises: ValueError at the end if any cannot be read.
    """
    wrong = []
    for path in notebooks_in(folder or nearest()):
        try:
            is_old = _news(path, notebooks.read_notebook(path)) is not None
            done = _update(path) if is_old else ""  # another command may do so meanwhile
            print(done or f"{path.parent.name}/{path.name} is up to date.")
        except (OSError, ValueError) as error:
            wrong.append(str(error))
    if wrong:
        raise ValueError("\n".join(wrong))


def _original(path: Path, study: NotebookNode) -> NotebookNode | None:
    """Make a new copy of what a study notebook, of whatever name, was made from."""
    about = study.metadata.get("workbook")
    name = about.get("notebook", path.stem) if isinstance(about, dict) else path.stem
    worked = next((path for path in notebooks.find_worked() if path.stem == name), path)
    return None if worked.resolve() == path.resolve() else copy.fresh(worked)


def _news(path: Path, study: NotebookNode) -> str | None:
    """Say what is new in the original of a notebook; None if nothing is."""
    original = _original(path, study)
    if original is None or study.metadata.get("workbook") == original.metadata.workbook:
        return None
    matched = _matches(study.cells, original.cells)
    new = len(original.cells) - len(matched)
    new += sum(_is_new(original.cells[slot], study.cells[i]) for i, slot in matched.items())
    return f"new or changed cells: {new}" if new else "cells gone, moved or marked differently"


def _is_new(cell: NotebookNode, learners: NotebookNode) -> bool:
    """Tell whether a cell of the original has a text that the learner's in its place never had.

    Where nothing says what a stub was, it is the learner who changed it.
    """
    before = _was(learners) or (role(cell) in copy.FILLED and _was(cell))
    return before != _was(cell) and digest(learners) != digest(cell)


def _update(path: Path) -> str:
    """Update one notebook, whole or not at all; return what to say about it, "" if nothing is."""

    def merge(study: NotebookNode) -> str:
        news = _news(path, study)
        return f"({news}). {_merge(study, _original(path, study))}" if news else ""

    backup, summary = _rewrite(path, path.stem, merge)
    where = f"{path.parent.name}/{path.name}"
    told = f"{where} is up to date now {summary} What you had is in {backup}. {RELOAD}"
    return told if summary else ""


def _rewrite(path: Path, name: str, change: Callable[[NotebookNode], str]) -> tuple[Path, str]:
    """Change a study notebook, whole or not at all; return the backup, and what was said.

    Where `change` says nothing, nothing has changed: then nothing is written.
    Raises: ValueError if it is saved meanwhile, by JupyterLab for instance.
    """
    # a link to a file stays one
    folder = path.parent
    path = Path(os.path.realpath(path))
    with locked(folder / MARK):
        before = file_state(path)
        stored = path.read_bytes()
        study = notebooks.read_notebook(path)
        summary = change(study)
        backup = copy.backup_path(folder, name)
        if not summary:
            return backup, ""
        with atomic_write(backup, "wb") as file:
            file.write(stored)
        notebooks.write_notebook(path, study, before)
    return backup, summary


def _merge(study: NotebookNode, original: NotebookNode) -> str:
    """Lay the cells of a new copy in their order, with what the learner has in and after them."""
    new = original.cells
    matched = _matches(study.cells, new)
    notes = {_note(cell) for cell in new}
    own: dict[int, NotebookNode] = {}  # the learner's version of a cell, by its index in the copy
    added: dict[int, list[NotebookNode]] = defaultdict(list)  # by what they follow; -1: the start
    here = -1
    for index, cell in enumerate(study.cells):
        here = matched.get(index, here)
        if index in matched:
            if _is_changed(cell) or digest(cell) == digest(new[here]):
                own[here] = cell
        elif _is_changed(cell) or _note(cell) in notes:
            added[here].append(cell)  # written or pasted; any other is gone from the original
    kept = sum(map(_is_changed, chain(*added.values())))
    twice = []  # the learner's version, where both sides changed a cell
    cells = [*added[-1]]
    for slot, new_cell in enumerate(new):
        cell = own.get(slot, new_cell)
        if digest(cell) != digest(new_cell):
            kept += 1
            if _was(cell) != _was(new_cell) and role(new_cell) not in copy.FILLED:
                twice.append(cell)
                cells += [cell, new_markdown_cell(NEWER_BELOW)]
                cell = new_cell
        cells += [_marked(cell, new_cell), *added[slot]]
    ids = {cell.id for cell in new}
    for cell in [*twice, *chain(*added.values())]:
        if cell.id in ids:
            cell.id = str(uuid4())
    study.cells = cells
    study.metadata["workbook"] = original.metadata.workbook
    summary = f"Cells kept as you had them: {kept}"
    return summary + (f", {len(twice)} of them above our new version." if twice else ".")


def _is_changed(cell: NotebookNode) -> bool:
    """Tell whether the learner wrote a cell, or changed what it was in the original."""
    return _was(cell) != digest(cell)


def _marked(cell: NotebookNode, new_cell: NotebookNode) -> NotebookNode:
    """Give a learner's cell the id, the notes and the tags of the one that it replaces."""
    cell.id = new_cell.id
    cell.metadata["workbook"] = new_cell.metadata.workbook
    if tags := {*cell.metadata.get("tags", []), *new_cell.metadata.get("tags", [])}:
        cell.metadata["tags"] = sorted(tags)
    return cell


def _matches(cells: list[NotebookNode], new: list[NotebookNode]) -> dict[int, int]:
    """Find the places of the learner's cells in the new copy: from index to index.

    Programs that clean notebooks drop ids or notes. Then texts count too, and what a solution
    defines or answers: where its stub does the same, it is that stub's.
    """
    stubs = [cell.source for cell in new if role(cell) in copy.STUBS]
    names = set(chain(*map(DEFINED.findall, stubs)))

    def of_stub(cell: NotebookNode) -> tuple | None:
        """Return the first thing that a cell defines or answers as a stub does."""
        return next((name for name in DEFINED.findall(cell.source) if name in names), None)

    matched: dict[int, int] = {}
    for key in (lambda cell: cell.id, _note, digest, of_stub):
        slots = defaultdict(list)
        for slot in set(range(len(new))) - set(matched.values()):
            slots[key(new[slot])].append(slot)
        for index, cell in enumerate(cells):
            if index not in matched and key(cell) and slots[key(cell)]:
                matched[index] = slots[key(cell)].pop(0)
    return matched


def _note(cell: NotebookNode) -> tuple | None:
    """Return a key, unique in a fresh copy, that a pasted cell shares; None if it has no notes."""
    about = cell.metadata.get("workbook", {})
    place = about.get("problem"), about.get("role"), about.get("part")
    if place[0] and place[1] in ONCE_PER_PART:
        return place
    return (*place, about["original"]) if "original" in about else None


def _was(cell: NotebookNode) -> str:
    """Return the digest of the original that a cell was made from; "" if nothing says it."""
    return cell.metadata.get("workbook", {}).get("original", "")[:8]


def reset(problem: str) -> None:
    """Start one problem over: its try-it and answer cells are as in today's original.

    The rest of the notebook is brought up to date, and the kept code is moved away.
    """
    details = problems.with_id(problem)
    folder = nearest()
    original = copy.fresh(notebooks.find_worked([details.notebook])[0])
    path = copy.copies(folder).get(details.notebook)
    progress = Progress(folder)
    if path is None:
        missing = f"there is no notebook {details.notebook!r} in {folder}"
        raise ValueError(f"{missing}; `workbook lab` creates those of ours that are missing")
    progress.read()  # OSError if it is of a later version: then nothing has changed yet
    backup, _ = _rewrite(path, details.id, lambda study: _start_over(study, original, details.id))
    kept = folder / KEPT / f"{details.id}.py"
    if kept.is_file():
        kept.replace(backup.with_suffix(".py"))
    progress.forget(details.id)
    forget_mistakes(progress, details.id)
    print(f"{details.id} starts over in {path.name}. What you had is in {backup}. {RELOAD}")


def _start_over(study: NotebookNode, original: NotebookNode, problem: str) -> str:
    """Put fresh stubs in the places of the learner's, and update the rest of the notebook."""
    matched = _matches(study.cells, original.cells)
    cells = []
    for index, cell in enumerate(study.cells):
        if index in matched and _is_stub_of(original.cells[matched[index]], problem):
            cells.append(original.cells[matched[index]])
        elif not _is_stub_of(cell, problem):  # otherwise it was split off, or is a second copy
            cells.append(cell)
        if role(cell) == "check" and cell.metadata.workbook.get("problem") == problem:
            cell.outputs = []
            cell.execution_count = None
    study.cells = cells
    return _merge(study, original)


def _is_stub_of(cell: NotebookNode, problem: str) -> bool:
    return role(cell) in copy.STUBS and cell.metadata.workbook.get("problem") == problem
