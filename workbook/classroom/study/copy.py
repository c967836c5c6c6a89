"""The learner's copy of the notebooks: made once, and never overwritten.

In a copy the outputs are cleared and our answers replaced by empty ones, each with a folded
look-up below it; above the stubs stand cells for examples. Everything else is as in the worked
notebook. A copy notes in its metadata what it was made from, so that `study.update` can tell what
the learner changed, wherever it is moved.
"""

import ast
import hashlib
import json
import re
import textwrap
import time
from collections import Counter
from contextlib import suppress
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from workbook import config
from workbook.classroom import problems
from workbook.classroom.study import notebooks
from workbook.classroom.study.notebooks import normalise, role
from workbook.classroom.study.progress import MARK, nearest
from workbook.files import atomic_write, make_folder, notebooks_in, remove_leftovers

LINK_OUT = re.compile(r"\[([^]]+)\]\(\.\./[^)]*\)")
STUBS = {"try", "answer"}  # the roles of the cells that a learner fills
FILLED = STUBS | {"examples"}  # and of those that they may fill
YOUR_TURN = "your-turn"  # their tag
EXAMPLES = '''# Optional, for no points: say what a right one gives, before you write yours.
def test_{problem}({program}):
    """{about}"""
    ...


examples("{problem}", test_{problem})'''
RESUMED = '''# Optional, for no points: 30 steps are 20 steps and, resumed, 10 more. Test it.
def test_resuming(train):
    """train(steps, path, resume=False) returns the losses of so many steps.

    It saves the run to the file `path`, from which it goes on where resume=True. Give your
    files a folder: `with tempfile.TemporaryDirectory() as folder:`
    """
    ...


examples("resuming", test_resuming)'''
# For assistants that write code: most read AGENTS.md, and Claude Code what CLAUDE.md names.
TUTOR_RULES = Path(__file__).with_name("tutor.md").read_text("utf-8")
TUTOR = {"AGENTS.md": TUTOR_RULES, "CLAUDE.md": "@AGENTS.md\n"}


def make_copies(folder: str | Path | None = None) -> list[Path]:
    """Add the notebooks that a study folder lacks; return what was added.

    The folder is by default the one around us, or else the usual one. What is there already is the
    learner's and stays as it is; a line is printed for each addition.
    """
    folder = Path(folder or nearest())
    make_folder(folder / MARK)
    there = copies(folder)
    remove_leftovers(folder)
    write_tutor(folder)
    added = [path for path in notebooks.find_worked() if path.stem not in there]
    for path in added:
        notebooks.write_notebook(folder / path.name, fresh(path))
        print(f"{folder.name}/{path.name} is new: a copy of your own to work in.")
    return [folder / path.name for path in added]


def copies(folder: Path) -> dict[str, Path]:
    """Find the notebooks of a study folder by their own names and by those of their originals.

    So a renamed one is known. Of several with one original, the one that was saved last counts.
    """
    paths = sorted(notebooks_in(folder), key=lambda path: path.lstat().st_mtime)
    by_original = {}
    for path in paths:
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            by_original[json.loads(path.read_bytes())["metadata"]["workbook"]["notebook"]] = path
    return by_original | {path.stem: path for path in paths}


def fresh(path: Path) -> NotebookNode:
    """Make the learner's copy of the worked notebook at `path`; it notes that notebook's name."""
    copy = copy_of(notebooks.read_notebook(path))
    copy.metadata.workbook["notebook"] = path.stem
    return copy


def copy_of(worked: NotebookNode) -> NotebookNode:
    """Copy a worked notebook as the learner gets it, with notes of what it was made from.

    A cell notes a digest of its text as "original", the notebook one of all of its cells.
    """
    cells = []
    has_verbs = False
    empty: dict[str, Any] = {"outputs": [], "execution_count": None}
    for original in worked.cells:
        cleared = empty if original.cell_type == "code" else {}
        cell = deepcopy(NotebookNode({**original, **cleared}))  # without the outputs: faster
        if role(cell) == "setup" and not has_verbs:
            cell.source = _with_verbs(cell.source)
            has_verbs = True
        if role(cell) == "prompt":
            cell.source = _with_effort(cell)
        if cell.cell_type == "markdown" and config.checkout() is None:
            # Beside the study folder of an installed package there is neither code nor data.
            cell.source = LINK_OUT.sub(r"\1", cell.source)
        if role(cell) == "try":
            cells += _examples_cells(cell)
        if role(cell) == "answer":
            cells += _answer_cells(cell)
        else:
            cells.append(cell)
        if role(cell) == "reveal" and cell.metadata.workbook.get("problem") == "training_together":
            cells.append(_cell_of_examples(cell, RESUMED))
    copy = normalise(NotebookNode({**worked, "cells": cells}))
    _note_originals(copy)
    return copy


def _note_originals(copy: NotebookNode) -> None:
    """Mark the cells that a learner fills, and note the original text of every cell.

    Cells with the same text are numbered: no two notes are alike unless the learner pasted a cell.
    """
    counted: Counter[tuple] = Counter()
    for cell in copy.cells:
        if role(cell) in STUBS:
            cell.metadata["tags"] = sorted({*cell.metadata.get("tags", []), YOUR_TURN})
        about = cell.metadata.setdefault("workbook", NotebookNode())
        same = (*about.values(), notebooks.digest(cell))
        counted[same] += 1
        copies = f"-{counted[same]}" if counted[same] > 1 else ""
        about["original"] = notebooks.digest(cell) + copies
    whole = json.dumps(copy.cells, sort_keys=True).encode()
    copy.metadata["workbook"] = NotebookNode(original=hashlib.sha256(whole).hexdigest()[:16])


def _with_verbs(source: str) -> str:
    """Import in the import cell what only a learner needs."""
    imports = [n for n in ast.parse(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
    lines = source.split("\n")
    last = imports[-1].end_lineno if imports else 0
    lines.insert(last, "from workbook import examples, look_up, tick  # for your copy alone")
    return "\n".join(lines)


def _with_effort(prompt: NotebookNode) -> str:
    """Say below the heading of a problem how long it takes, by `problems.PER_POINT`."""
    problem = problems.with_id(prompt.metadata.workbook.problem)
    heading, _, text = prompt.source.partition("\n")
    effort = f"*About {problems.time_in_words(problem.minutes)}*"
    return f"{heading}\n\n{effort}\n{text}"


def write_tutor(folder: Path) -> None:
    """Write what an assistant may do here, and may not, unless something is there already."""
    for name, text in TUTOR.items():
        if not (folder / name).exists():
            with atomic_write(folder / name) as file:
                file.write(text)


def _answer_cells(worked: NotebookNode) -> list[NotebookNode]:
    """Make an empty answer in place of ours, and the look-up of ours below it.

    A code problem gets neither: its code is the answer.
    """
    about = worked.metadata.workbook
    if problems.with_id(about.problem).kind == "code":
        return []
    place = (about.problem, about.get("part"))
    source = problems.in_python("answer", *place, '"""\n"""', *_also_named(worked))
    empty = new_code_cell(source, metadata=worked.metadata)
    empty.metadata.pop("tags", None)
    look_up = new_code_cell(problems.in_python("look_up", *place))
    look_up.metadata["workbook"] = {**about, "role": "look_up"}
    return [empty, look_up]


def _examples_cells(stub: NotebookNode) -> list[NotebookNode]:
    """Make the cell above a stub in which its writer may state what a right one gives."""
    problem = problems.with_id(stub.metadata.workbook.problem)
    if not problem.has_examples:
        return []
    about = f"{problem.signature}: assert what it gives for inputs of your own."
    wrapped = textwrap.fill(about, 90).replace("\n", "\n    ")
    source = EXAMPLES.format(problem=problem.id, program=problem.name, about=wrapped)
    return [_cell_of_examples(stub, source)]


def _cell_of_examples(beside: NotebookNode, source: str) -> NotebookNode:
    cell = new_code_cell(source)
    cell.metadata["workbook"] = {"problem": beside.metadata.workbook.problem, "role": "examples"}
    return cell


def _also_named(worked: NotebookNode) -> list[str]:
    """Write the arguments that the learner names too: a figure, a loss, our answer's corpora."""
    calls = [node for node in ast.walk(ast.parse(worked.source)) if isinstance(node, ast.Call)]
    keywords = {keyword.arg: keyword for call in calls for keyword in call.keywords}
    about = worked.metadata.workbook
    required = problems.with_id(about.problem).requires.get(about.get("part", ""))
    named = []
    if "figure" in keywords or (required and required.figure):
        named.append("figure=None")
    if required and required.loss_at_most is not None:
        named.append("loss=None")
    if "corpora" in keywords:
        named.append(ast.unparse(keywords["corpora"]))
    return named


def backup_path(folder: Path, name: str) -> Path:
    """Choose an unused file name for a backup of what a study folder holds now."""
    backups = folder / MARK / "backup"
    today = time.strftime("%Y-%m-%d")
    paths = (backups / f"{name}-{today}-{n}.ipynb" for n in count(1))
    return next(path for path in paths if not path.exists())
