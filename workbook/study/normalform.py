"""The normal form of a notebook: what readers need, and nothing that a run left behind.

Two runs of an unchanged notebook give the same bytes, because times, random ids, widget state,
progress bars and the paths of this machine are taken out. nbval compares a new run with the stored
one, so `tests/sanitize.cfg` tells it the same replacements.
"""

import base64
import hashlib
import re
import struct
from copy import deepcopy

import nbformat
from nbformat import NotebookNode

# Replaced in every text output, in this order. tests/sanitize.cfg holds the same list for nbval.
REPLACEMENTS = (
    (r"\bat 0x[0-9A-Fa-f]{8,16}\b", "at 0x..."),  # <function f at 0x7f3a2c1d5e10>
    (r"\btmp[a-z0-9_]{8}\b", "tmp..."),  # the names that tempfile draws
    (r"\b[A-Za-z]:\\Users\\(?:[\w.@+-]+\\)*", ".../"),  # a Windows path but for its last part
    (r"(?<![\w.:/<+)\]}-])(?:/[\w.@+-]+)+(?=/[\w.@+-])", "..."),  # the same elsewhere
    (r"([^ \t\r\n]?)(?<![ \t\r])[ \t\r]++(?=\n|\Z)", r"\1"),  # blanks at a line's end
)
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
ROLES = ("prose", "setup", "prompt", "try", "check", "hint", "reveal", "evidence", "answer")
ONCE = {"prompt", "try", "check", "hint", "reveal", "answer"}  # once a problem, or a part of it
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
PICTURES = ("image/png", "image/jpeg")
PICTURE_METADATA = ("alt", "height", "width")
PNG_NOTES = {b"tEXt", b"zTXt", b"iTXt", b"tIME", b"eXIf"}  # who drew it, when, with what
PROGRESS = re.compile(r"\d%\|.*\[\d.*\]|\d\S{0,20} \[\d\d:\d\d, .*\]")  # a line written by tqdm


def role(cell: NotebookNode) -> str | None:
    """What a cell is for: one of `ROLES`, None where nobody said."""
    return cell.metadata.get("workbook", {}).get("role")


def normalise(notebook: NotebookNode) -> NotebookNode:
    """The same notebook in normal form; a notebook in normal form comes back as it is."""
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
    _renumber([cell for cell in result.cells if cell.cell_type == "code"])
    return result


def _cell_metadata(metadata: NotebookNode) -> NotebookNode:
    """What may stay: our own record, and the tags in order."""
    kept = {}
    if "workbook" in metadata:
        ours = ("problem", "role", "part")
        kept["workbook"] = {key: metadata.workbook[key] for key in ours if key in metadata.workbook}
    if metadata.get("tags"):
        kept["tags"] = sorted(set(metadata.tags))
    return nbformat.from_dict(kept)


def cell_ids(cells: list[NotebookNode]) -> list[str]:
    """An id for each cell, made from what it is for, or else from its text.

    So ids do not move when a cell is put in before them.
    """
    ids: list[str] = []
    for cell in cells:
        about = cell.metadata.get("workbook", {})
        words = [about[key] for key in ("problem", "role", "part") if about.get(key)]
        name = re.sub(r"[^\w-]", "-", "-".join(map(str, words)) or "cell", flags=re.ASCII)[:48]
        if not (about.get("problem") and about.get("role") in ONCE):
            text = f"{cell.cell_type}\n{cell.source}"
            name += "-" + hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]
        first, copies = name, 1
        while name in ids:
            copies += 1
            name = f"{first}-{copies}"
        ids.append(name)
    return ids


def _renumber(cells: list[NotebookNode]) -> None:
    """Count the cells that ran by their place, unless they ran out of order: that must show."""
    counts = [cell.execution_count for cell in cells if cell.execution_count is not None]
    if counts != sorted(set(counts)):
        return
    for place, cell in enumerate(cells, start=1):
        if cell.execution_count is None:
            continue
        cell.execution_count = place
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = place


def _outputs(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """A cell's outputs, cleaned; of streams that follow each other, one a name is left."""
    kept: list[NotebookNode] = []
    streams: dict[str, NotebookNode] = {}  # those since the last output of another kind
    for output in outputs:
        if output.output_type == "stream":
            if output.name in streams:
                streams[output.name].text += output.text
                continue
            streams[output.name] = output
        elif output.output_type == "error":
            output.evalue = _plain(output.evalue)
            output.traceback = [_plain(line) for line in output.traceback]
            streams = {}
        else:
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
        if mime == "image/png":
            output.data[mime] = _plain_png(value)
        elif isinstance(value, str) and mime not in PICTURES:
            output.data[mime] = _plain(value)
    if PROGRESS.search(output.data.get("text/plain", "")) and not set(PICTURES) & set(output.data):
        output.data = NotebookNode()
    notes = {mime: output.metadata.get(mime, {}) for mime in PICTURES if mime in output.data}
    output.metadata = nbformat.from_dict(
        {
            mime: {key: note[key] for key in PICTURE_METADATA if key in note}
            for mime, note in notes.items()
            if set(PICTURE_METADATA) & set(note)
        }
    )


def _plain(text: str) -> str:
    """A text without what differs from run to run."""
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    return text


def _without_progress(text: str) -> str:
    """What a terminal shows in the end: lines that "\\r" overwrote and tqdm's bars are gone."""
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    if not any(PROGRESS.search(line) for line in lines):
        return "\n".join(lines)
    kept = [line for line in lines if not PROGRESS.search(line)]
    return "\n".join(kept) if any(line.strip() for line in kept) else ""


def _plain_png(encoded: str) -> str:
    """A picture without the notes that its writer left in it, so that equal plots are equal."""
    try:
        data = base64.b64decode(encoded)
    except ValueError:
        return encoded
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        return encoded
    kept, start = data[:8], 8
    while start + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, start)
        end = start + 12 + length  # length, kind, data, checksum
        if kind not in PNG_NOTES:
            kept += data[start:end]
        start = end
    return base64.b64encode(kept).decode("ascii")
