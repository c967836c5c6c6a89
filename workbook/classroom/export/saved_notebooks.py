"""Answers, figures and code, read from the saved outputs of a folder of notebooks.

Nothing is run. The files are somebody else's: every field is checked before it is used, and what
does not fit is left out. An answer that cannot be read is noted.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from workbook.classroom import problems
from workbook.classroom.checks.machinery.judging import MIME as CHECK_MIME
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study.answers import MIME
from workbook.classroom.study.progress import RISING, Part
from workbook.classroom.study.records import as_dict
from workbook.config import EDITIONS, shipped
from workbook.corpora.corpora import CORPORA
from workbook.files import notebooks_in

PART = re.compile(r"^(?:- )?\*\*\(?([a-z])\)\*\* ", re.MULTILINE)  # "- **(a)** ", "**a)** "
PRINTED_BY_US = re.compile(r"^(?:Our answer to \w|# workbook\.)", re.MULTILINE)
Kind = Literal["picture", "html", "markdown", "text"]
Place = tuple[str, str]  # a problem's id and its part, "" if it has none
Listing = tuple[str, str]  # of code: a name and its source


@dataclass(frozen=True, kw_only=True)
class Output:
    """Something that a cell displayed."""

    kind: Kind
    text: str  # of a picture: its description
    picture: str = ""  # in base64


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One written answer, with what its cell showed beside it."""

    place: Place
    text: str
    edition: str
    profile: str
    corpora: tuple[str, ...]
    sizes: tuple[int | None, ...]  # of the files of these corpora in bytes, if they are known
    stand_in: bool
    device: str
    verdict: str  # what the check said of its text
    loss: float | None  # the one given to `answer`
    source: str  # of the cell
    notebook: str  # the name of its file
    outputs: list[Output]

    def __str__(self) -> str:
        return problems.label(*self.place)


@dataclass(frozen=True, kw_only=True)
class SavedNotebooks:
    """All that was found in one folder."""

    answers: list[Answer] = field(default_factory=list)  # in the order of notebooks and cells
    evidence: dict[Place, list[Output]] = field(default_factory=dict)  # pictures only
    revealed: dict[str, list[Listing]] = field(default_factory=dict)  # by problem
    checks: dict[Place, Part] = field(default_factory=dict)  # from the outputs of checks alone
    prompts: dict[str, dict[str, str]] = field(default_factory=dict)  # by problem and part
    notes: list[str] = field(default_factory=list)
    left_aside: list[str] = field(default_factory=list)  # files that cannot be read, and why


def read_folder(folder: Path) -> SavedNotebooks:
    """Read the notebooks of a folder, and leave aside those that cannot be read.

    Raises: ValueError if there are none, or if none can be read.
    """
    paths = notebooks_in(folder)
    worked = shipped() / "notebooks"
    if not paths:
        raise ValueError(f"{folder} has no notebooks; name the folder with yours (ours: {worked})")
    saved = SavedNotebooks()
    for path in paths:
        try:
            for cell in cells_of(path):
                _collect(cell, path.name, saved)
        except ValueError as error:
            saved.left_aside.append(str(error))
    if len(saved.left_aside) == len(paths):
        raise ValueError("\n  ".join(saved.left_aside))
    return saved


def cells_of(path: Path) -> list[dict]:
    """Read the cells of a notebook; raise ValueError if the file is not a notebook."""
    advice = "open it in JupyterLab and save it again, or move it out of the folder"
    try:
        notebook = as_dict(json.loads(path.read_bytes()))
        if not isinstance(notebook.get("cells"), list):
            raise ValueError("it has no list of cells, as notebooks of format 4 have")
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as a notebook ({error}); {advice}") from None
    return _dicts(notebook["cells"])


def _collect(cell: dict, notebook: str, saved: SavedNotebooks) -> None:
    """Take from a cell what concerns the write-up."""
    about = as_dict(as_dict(cell.get("metadata")).get("workbook"))
    role = about.get("role")
    place = _place(about)
    if role == "prompt" and place:
        saved.prompts[place[0]] = _asked(_text(cell.get("source")))
    if cell.get("cell_type") != "code":
        return
    outputs: list[Output] = []  # since the last answer
    answer = None
    for output in _dicts(cell.get("outputs")):
        data = as_dict(output.get("data"))
        if CHECK_MIME in data:
            _collect_check(as_dict(data[CHECK_MIME]), saved)
        if role == "reveal" and place:
            name, _, source = _text(data.get("text/plain")).partition("\n")
            if re.fullmatch(r"# [\w.]{1,200}", name):  # it names a file, too
                saved.revealed.setdefault(place[0], []).append((name[2:], source))
        if MIME not in data:
            outputs += _shown(output)
            continue
        answer = _answer(as_dict(data[MIME]), _text(cell.get("source")), notebook, outputs)
        if answer is None:
            what = ascii(as_dict(data[MIME]).get("problem"))[:60]  # a stranger's, onto a terminal
            saved.notes.append(f"{notebook} holds an answer to {what} that cannot be read")
        elif answer.text.strip():
            saved.answers.append(answer)
            outputs = []
    if answer:
        answer.outputs.extend(outputs)
    elif role == "evidence" and place:
        pictures = [output for output in outputs if output.kind == "picture"]
        saved.evidence.setdefault(place, []).extend(pictures)


def _collect_check(record: dict, saved: SavedNotebooks) -> None:
    """Take the outcome of a check, with the code that was kept when it passed."""
    place = _place(record)
    status = record.get("status")
    if place is None or status not in RISING:
        return
    part = saved.checks.setdefault(place, Part())
    source = _text(record.get("source"))
    trouble = record.get("trouble")
    if source and RISING.index(status) >= RISING.index(part.best):
        part.source = source
        part.trouble = trouble if isinstance(trouble, str) else None
    part.reach(status)


def _asked(prompt: str) -> dict[str, str]:
    """Split what a prompt asks by part; "" has what it says about all of them.

    >>> _asked("## unicode1\\n\\nLook.\\n\\n- **(a)** Which one?\\n- **(b)** Why?\\n\\nGo on.")
    {'': 'Look.\\n\\nGo on.', 'a': 'Which one?', 'b': 'Why?'}
    """
    asked: dict[str, list[str]] = {}
    for paragraph in prompt.split("\n\n")[1:]:  # below the heading
        whole, *parts = PART.split(paragraph)
        if whole:
            asked.setdefault("", []).append(whole)
        for part, text in zip(parts[::2], parts[1::2], strict=True):
            asked.setdefault(part, []).append(text.strip())
    return {part: "\n\n".join(paragraphs) for part, paragraphs in asked.items()}


def _answer(record: dict, source: str, notebook: str, outputs: list[Output]) -> Answer | None:
    """Make the answer that a record holds; return None if it is not one of ours."""
    place = _place(record)
    edition = record.get("edition")
    if place is None or edition not in EDITIONS:
        return None
    if PROBLEMS[place[0]].parts and not place[1]:  # of which part, nothing says
        return None
    named = [corpus for corpus in _dicts(record.get("corpora")) if corpus.get("name") in [*CORPORA]]
    sizes = [corpus.get("bytes") for corpus in named]
    return Answer(
        place=place,
        text=_text(record.get("text")),
        edition=edition,
        profile=_text(record.get("profile")),
        corpora=tuple(corpus["name"] for corpus in named),
        sizes=tuple(size if _is_size(size) else None for size in sizes),
        stand_in=record.get("stand_in") is True,
        device=_text(record.get("device")),
        verdict=_text(record.get("verdict")),
        loss=record["loss"] if isinstance(record.get("loss"), float) else None,
        source=source,
        notebook=notebook,
        outputs=outputs,
    )


def _is_size(size: object) -> bool:
    """Whether it can be the size of a file in bytes."""
    return type(size) is int and 0 <= size < 2**63


def _place(record: dict) -> Place | None:
    """Return the place that a record names, None if there is no such problem or part."""
    try:
        problem = PROBLEMS[problems.with_id(record.get("problem")).id]
        return problem.id, problems.part_of(problem, record.get("part")) or ""
    except (ValueError, KeyError):  # KeyError: an optional step
        return None


def _shown(output: dict) -> list[Output]:
    """List what an output shows, in its best form; nothing if it is folded away.

    What a check says below its answer is left out: it is for the writer, not for readers.
    """
    data = as_dict(output.get("data"))
    plain = _text(output.get("text")) or _text(data.get("text/plain"))
    html = _text(data.get("text/html"))
    markdown = _text(data.get("text/markdown")) or _text(data.get("text/latex"))
    for mime in ("image/png", "image/jpeg"):
        if mime in data:
            about = as_dict(as_dict(output.get("metadata")).get(mime))
            alt = _text(about.get("alt")) or ("" if plain.startswith("<") else plain)
            return [Output(kind="picture", text=alt, picture=_text(data[mime]))]
    # Our answers and our code are shown folded, or printed, and are nobody's answer.
    if CHECK_MIME in data or "<details" in html + markdown or PRINTED_BY_US.search(plain):
        return []
    texts: dict[Kind, str] = {"html": html, "markdown": markdown, "text": plain}
    outputs = [Output(kind=kind, text=text) for kind, text in texts.items() if text.strip()]
    return outputs[:1]


def _dicts(value: Any) -> list[dict]:
    """Return the dicts of a list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return a text of a notebook, which may be stored as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""
