"""The worked notebooks: found, run from top to bottom, and stored in normal form.

python -m workbook.study.notebooks                 run and store every notebook
python -m workbook.study.notebooks 02_bpe          only this one
python -m workbook.study.notebooks --check         run nothing; name the cells not in normal form
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from workbook import config
from workbook.files import atomic_write
from workbook.study.normalform import PICTURES, cell_ids, normalise, role

VARIES = "nbval-ignore-output"  # the tag of a cell whose output differs from machine to machine
NOISE = 1.5  # two measurements of one thing on one machine differ by less than this factor
CELL_SECONDS = 3600  # which only a cell that hangs takes
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")


def read(path: str | Path) -> NotebookNode:
    """The notebook in a file, in nbformat's version 4; each cell has an id, as since 4.5.

    Raises: OSError where there is no file, ValueError where it is no notebook.
    """
    try:
        notebook = nbformat.read(path, as_version=4)
        for cell, name in zip(notebook.cells, cell_ids(notebook.cells), strict=True):
            cell.setdefault("id", name)  # other programs, such as Colab, leave ids out
        notebook.nbformat_minor = max(notebook.nbformat_minor, 5)
    except OSError:
        raise
    except Exception as error:  # what nbformat raises depends on what is wrong
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{path} cannot be read as a notebook ({type(error).__name__}: {reason}); "
            "move it away, or bring back an older copy"
        ) from error
    return notebook


def write(path: str | Path, notebook: NotebookNode) -> None:
    """Store a notebook in the layout that JupyterLab writes, whole or not at all."""
    nbformat.validate(notebook)
    with atomic_write(path) as file:
        file.write(nbformat.writes(notebook) + "\n")


def problems_in(path: str | Path) -> list[str]:
    """The ids of the problems that a notebook works, in order."""
    cells = read(path).cells
    return [cell.metadata.workbook.problem for cell in cells if role(cell) == "prompt"]


def complaints(path: str | Path) -> list[str]:
    """What in a file is not in normal form, one line a cell; nothing where all is well."""
    stored = read(path)
    normal = normalise(stored)
    found = []
    for place, (cell, wanted) in enumerate(zip(stored.cells, normal.cells, strict=True)):
        fields = [key for key in {**cell, **wanted} if cell.get(key) != wanted.get(key)]
        if fields:
            found.append(f"cell {place} ({wanted.id}): {', '.join(sorted(fields))}")
    if stored.metadata != normal.metadata:
        found.append("the notebook's metadata")
    if not found and Path(path).read_text(encoding="utf-8") != nbformat.writes(normal) + "\n":
        found.append("the layout of the file (indents, order of keys, end of file)")
    return found


def execute(path: str | Path) -> NotebookNode:
    """The notebook after a run in a new kernel, in its own folder, in normal form; not stored."""
    from nbclient import NotebookClient

    notebook = read(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(Path(path).resolve().parent)}},
    ).execute()
    return normalise(notebook)


def is_same_run(old: NotebookNode, new: NotebookNode) -> bool:
    """Whether two runs of one notebook say the same, measuring noise aside.

    Cells must agree to the letter; those tagged `nbval-ignore-output` may differ in their pictures,
    and in numbers by less than a factor of `NOISE`.
    """
    if len(old.cells) != len(new.cells):
        return False
    for before, after in zip(old.cells, new.cells, strict=True):
        if before == after:
            continue
        varies = VARIES in after.metadata.get("tags", [])
        bare = [{**cell, "outputs": None} for cell in (before, after)]
        if not varies or bare[0] != bare[1] or not _is_noise(before.outputs, after.outputs):
            return False
    return True


def _is_noise(old: list[NotebookNode], new: list[NotebookNode]) -> bool:
    """Whether outputs have the same words, and numbers close to each other."""
    texts = []
    for outputs in (old, new):
        shown = deepcopy(outputs)
        for output in shown:
            for mime in PICTURES:
                if mime in output.get("data", {}):
                    output.data[mime] = ""
        texts.append(json.dumps(shown, sort_keys=True, ensure_ascii=False))
    words = [NUMBER.sub("0", re.sub(r"\s+", " ", text)) for text in texts]
    if words[0] != words[1]:
        return False
    numbers = [[float(n.replace(",", "")) for n in NUMBER.findall(text)] for text in texts]
    return all(a == b or max(a, b) < NOISE * min(a, b) for a, b in zip(*numbers, strict=True))


def find(names: Sequence[str] = ()) -> list[Path]:
    """The files of the notebooks named ("02_bpe", or a path); all worked ones if none is."""
    folder = config.repository() / "notebooks"
    if not names:
        return sorted(folder.glob("*.ipynb"))
    paths = [Path(name) if name.endswith(".ipynb") else folder / f"{name}.ipynb" for name in names]
    for path in paths:
        if not path.is_file():
            known = ", ".join(other.stem for other in sorted(folder.glob("*.ipynb")))
            raise ValueError(f"there is no notebook {path.stem!r}; pick from {known or 'none yet'}")
    return paths


def run(names: Sequence[str] = (), *, fresh: bool = False) -> None:
    """Run notebooks and store them, telling what became of each.

    What is stored is always one whole run. Where a new run says the same as the stored one but for
    measuring noise, the stored one stays, and the line printed says so; `fresh` stores the new one.
    """
    for path in find(names):
        start = time.perf_counter()
        old, new = read(path), execute(path)
        if old == new:
            outcome = "unchanged"
        elif not fresh and is_same_run(old, new):
            outcome = "kept as stored: only noise in measured figures (--fresh stores this run)"
        else:
            write(path, new)
            outcome = "stored"
        print(f"{path.stem}: {outcome} ({time.perf_counter() - start:.0f} s)", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status of `python -m workbook.study.notebooks`."""
    parser = argparse.ArgumentParser(prog="python -m workbook.study.notebooks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", help="such as 02_bpe, or a path; all if none is given")
    parser.add_argument("--check", action="store_true", help="run nothing, name what is not normal")
    parser.add_argument("--fresh", action="store_true", help="store the new run, noise and all")
    options = parser.parse_args(arguments)
    if options.check:
        found = [f"{path}: {line}" for path in find(options.names) for line in complaints(path)]
        print(*found, sep="\n", end="\n" if found else "")
        return 1 if found else 0
    run(options.names, fresh=options.fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
