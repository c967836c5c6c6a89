"""The worked notebooks: found, run from top to bottom, and stored in normal form.

The normal form is what readers need, and nothing that a run left behind. Two runs of an unchanged
notebook give the same bytes, because times, random ids, widget state, progress bars and the paths
of this machine are taken out. nbval compares a new run with the stored one, so `tests/sanitize.cfg`
gives it the same replacements. A cell whose output differs between machines is tagged
`nbval-ignore-output`, and asserts what it claims; one that compiles a model or starts `torchrun` is
tagged `nbval-skip` too, and only `make stress` runs it. Roles decide what a study copy folds:
`prose` and `evidence` until the problem is solved, `examples` until they are written, `help` never.
"""

import hashlib
import os
import re
import time
import warnings
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import nbformat
from nbformat import NotebookNode

from workbook import bench, config
from workbook.classroom.panels import lines_on_screen
from workbook.files import atomic_write, notebooks_in, unchanged

# Replaced in every text output, in this order. tests/sanitize.cfg holds the same list for nbval.
REPLACEMENTS = (
    (r"\bat 0x[0-9A-Fa-f]{8,16}\b", "at 0x..."),  # <function f at 0x7f3a2c1d5e10>
    (r"\btmp[a-z0-9_]{8}\b", "tmp..."),  # the names that tempfile draws
    (r"\b[A-Za-z]:\\Users\\(?:[\w.@+-]+\\)*", ".../"),  # a Windows path but for its last part
    (r"(?<![\w.:/<+)\]}-])(?:/[\w.@+-]+)+(?=/[\w.@+-])", "..."),  # the same elsewhere
    (r"([^ \t\r\n]?)(?<![ \t\r])[ \t\r]++(?=\n|\Z)", r"\1"),  # trailing blanks
)
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# "help" is for those whose attempt failed: it is never folded, so it gives nothing away. A "guess"
# is a call of `predict` above the evidence.
ONCE_PER_PART = {"prompt", "examples", "try", "check", "hint", "reveal", "answer"}
CELL_ROLES = ONCE_PER_PART | {"prose", "setup", "help", "guess", "evidence"}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
PICTURE_MIMES = ("image/png", "image/jpeg")
PROGRESS = re.compile(r"\d%\|.*\[\d.*\]|\d\S{0,20} \[\d\d:\d\d, .*\]")  # a line written by tqdm
OUTPUT_VARIES = "nbval-ignore-output"  # the tag of a cell whose output differs between machines
CELL_SECONDS = 3600  # only a cell that hangs takes so long


def find_worked(names: Sequence[str] = ()) -> list[Path]:
    """Find the files of the notebooks named ("02_bpe", or a path), or else of all worked ones."""
    folder = config.shipped() / "notebooks"
    worked = notebooks_in(folder)
    if not names:
        return worked
    paths = [Path(name) if name.endswith(".ipynb") else folder / f"{name}.ipynb" for name in names]
    for path in paths:
        if not path.is_file():
            known = ", ".join(other.stem for other in worked)
            raise ValueError(f"there is no notebook {path.stem!r}; pick from {known or 'none yet'}")
    return paths


def read_notebook(path: str | Path) -> NotebookNode:
    """Read a notebook as nbformat's version 4; each cell has an id of its own, as since 4.5.

    Raises: ValueError if there is no such file, or it is not a notebook.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # nbformat mends what it warns of here
            notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:  # TypeError if one of our notes or of the tags is no text
            "".join([*cell.metadata.get("workbook", {}).values(), *cell.metadata.get("tags", [])])
        taken = {cell.get("id") for cell in notebook.cells}
        seen = {None}
        for cell, name in zip(notebook.cells, cell_ids(notebook.cells), strict=True):
            if cell.get("id") in seen:  # other programs, such as Colab, leave ids out or copy them
                cell.id = str(uuid4()) if name in taken else name
            seen.add(cell.id)
        notebook.nbformat_minor = max(notebook.nbformat_minor, 5)
    except Exception as error:  # what nbformat raises depends on what is wrong
        link = f", a link to {os.readlink(path)}," if os.path.islink(path) else ""
        cause = error.__cause__ or error  # nbformat quotes the file, its cause names the line
        reason = getattr(cause, "strerror", None) or str(cause).partition("\n")[0]
        raise ValueError(
            f"{path}{link} cannot be read as a notebook ({type(cause).__name__}: {reason}); "
            "move it away, or restore an older copy"
        ) from error
    return notebook


def write_notebook(
    path: Path, notebook: NotebookNode, before: tuple[int, int] | None = None
) -> None:
    """Store a notebook in the layout that JupyterLab writes, whole or not at all.

    `before` is the file's `file_state` when it was read: what was saved since is not overwritten.
    Raises: ValueError then, or if it is not a valid notebook; OSError that names the file.
    """
    try:
        nbformat.validate(notebook)
        content = f"{nbformat.writes(notebook)}\n".encode()
    except (nbformat.ValidationError, UnicodeError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{path} is not a valid notebook ({reason}); open it in JupyterLab and save it"
        ) from error
    with atomic_write(path, "wb") as file, unchanged(path, before):
        file.write(content)


def role(cell: NotebookNode) -> str | None:
    """Return what a cell is for, one of `CELL_ROLES`, or None if it does not say."""
    return cell.metadata.get("workbook", {}).get("role")


def normalise(notebook: NotebookNode) -> NotebookNode:
    """Copy a notebook into normal form; one that is in normal form comes back as it is."""
    result = deepcopy(notebook)
    result.metadata = nbformat.from_dict(METADATA)
    result.nbformat, result.nbformat_minor = 4, 5
    for cell in result.cells:
        cell.source = cell.source.rstrip()
        cell.metadata = _cell_metadata(cell.metadata)
        if cell.cell_type == "code":
            cell.outputs = _outputs(cell.outputs)
    for cell, name in zip(result.cells, cell_ids(result.cells), strict=True):
        cell.id = name
    return result


def _cell_metadata(metadata: NotebookNode) -> NotebookNode:
    """Keep our own record, and the tags in order."""
    kept: dict[str, Any] = {}
    if "workbook" in metadata:
        keys = ("problem", "role", "part")
        kept["workbook"] = {key: metadata.workbook[key] for key in keys if key in metadata.workbook}
    if metadata.get("tags"):
        kept["tags"] = sorted(set(metadata.tags))
    return nbformat.from_dict(kept)


def digest(cell: NotebookNode | SimpleNamespace) -> str:
    """Hash a cell's kind and text to 8 hex digits.

    Windows' line ends count as ours, and the blanks and empty lines at the end of the cell as none.
    How it is computed must not change: the ids of copies that earlier versions made end in it.
    """
    source = cell.source.replace("\r\n", "\n").rstrip()
    return hashlib.sha256(f"{cell.cell_type}\n{source}".encode(errors="replace")).hexdigest()[:8]


def cell_ids(cells: list[NotebookNode]) -> list[str]:
    """Make an id for each cell from what it is for, or else from its text.

    So ids do not change when a cell is inserted before theirs.
    """
    ids: list[str] = []
    for cell in cells:
        about = cell.metadata.get("workbook", {})
        words = [about[key] for key in ("problem", "role", "part") if about.get(key)]
        name = re.sub(r"[^\w-]", "-", "-".join(map(str, words)) or "cell", flags=re.ASCII)[:48]
        if not (about.get("problem") and about.get("role") in ONCE_PER_PART):
            name += f"-{digest(cell)}"
        first = name
        copies = 1
        while name in ids:
            copies += 1
            name = f"{first}-{copies}"
        ids.append(name)
    return ids


def _outputs(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Clean a cell's outputs, and join streams of one name that follow each other."""
    kept: list[NotebookNode] = []
    streams: dict[str, NotebookNode] = {}  # those since the last output of another kind
    for output in outputs:
        if output.output_type == "stream":
            if output.name in streams:
                streams[output.name].text += output.text
                continue
            streams[output.name] = output
        elif "data" in output:  # what a cell shows, and no error: none is stored
            _clean_bundle(output)
            if not output.data:
                continue
            streams = {}
        kept.append(output)
    for output in kept:
        if output.output_type == "stream":
            output.text = _plain(_without_progress(output.text))
    return [output for output in kept if output.get("text") != ""]


def _clean_bundle(output: NotebookNode) -> None:
    """Take the live widget out of an output's mime bundle; its picture and text stay."""
    output.data.pop(WIDGET_VIEW, None)
    for mime, value in output.data.items():
        if isinstance(value, str):
            output.data[mime] = value.replace("\n", "") if mime in PICTURE_MIMES else _plain(value)


def _plain(text: str) -> str:
    """Take out of a text what differs from run to run."""
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    return text


def _without_progress(text: str) -> str:
    """Drop the lines that a terminal would overwrite at "\\r", and tqdm's bars."""
    lines = lines_on_screen(text)
    if not any(PROGRESS.search(line) for line in lines):
        return "\n".join(lines)
    kept = [line for line in lines if not PROGRESS.search(line)]
    return "\n".join(kept) if any(line.strip() for line in kept) else ""


def is_normal(path: str | Path) -> bool:
    """Tell whether a file is in normal form, to the last indent."""
    return Path(path).read_text("utf-8") == nbformat.writes(normalise(read_notebook(path))) + "\n"


def execute(path: str | Path) -> NotebookNode:
    """Run a notebook in a new kernel, in its own folder; return it in normal form, not stored."""
    import nbclient

    notebook = read_notebook(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
            cell.execution_count = None
    folder = str(Path(path).resolve().parent)
    quiet = ["--log-level=ERROR"]
    nbclient.execute(
        notebook, folder, timeout=CELL_SECONDS, kernel_name="python3", extra_arguments=quiet
    )
    return normalise(notebook)


def run_worked(names: Sequence[str] = ()) -> None:
    """Run notebooks and store them; print what became of each.

    Raises: ValueError if the package is installed, or if the machine is busy before or after a
        notebook runs: the times in its outputs would be wrong.
    """
    if config.checkout() is None:
        raise ValueError("this is an installed package: clone the repository to run its notebooks")
    disturbed = bench.disturbance()
    for path in find_worked(names):
        start = time.perf_counter()
        if not disturbed:
            new = execute(path)
            disturbed = bench.disturbance()  # after this one is before the next one
        if disturbed:
            raise ValueError(f"{path.stem} is not stored, its times would be wrong: {disturbed}")
        outcome = "unchanged" if new == read_notebook(path) else "stored"
        if outcome == "stored":
            write_notebook(path, new)
        print(f"{path.stem}: {outcome} ({time.perf_counter() - start:.0f} s)", flush=True)
