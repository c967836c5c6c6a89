"""Answers, figures and code, read from the saved outputs of a folder of notebooks.

Nothing is run. The files are somebody else's: every field is checked before it is used, and what
does not fit is left out. An answer that cannot be read is noted.
"""

import base64
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from workbook.config import EDITIONS
from workbook.corpora.corpora import CORPORA
from workbook.files import notebooks_in
from workbook.study import problems
from workbook.study.answers import CHECK_MIME, MIME
from workbook.study.progress import RISING, Part

FORMAT = 4  # of notebooks, since 2014
PICTURES = ("image/png", "image/jpeg")
PART = re.compile(r"^(?:- )?\*\*\(?([a-z])\)\*\* ", re.MULTILINE)  # "- **(a)** ", "**a)** "
OURS = re.compile(r"^(?:Our answer to \w|# workbook\.)", re.MULTILINE)
Place = tuple[str, str]  # a problem's id and its part, "" if it has none


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Something that a cell displayed."""

    kind: Literal["picture", "html", "markdown", "text"]
    text: str = ""  # of a picture: its description
    picture: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One written answer, with what its cell showed beside it."""

    place: Place
    text: str
    edition: str
    profile: str
    corpora: tuple[str, ...]
    stand_in: bool
    device: str | None
    has_figure: bool  # a figure was given to `answer`
    verdict: str | None  # what the check said of its text
    loss: float | None  # the one given to `answer`
    source: str  # of the cell
    shown: list[Shown]

    def __str__(self) -> str:
        return named(self.place)

    @property
    def figures(self) -> int:
        """The number of pictures, beside the text and in it."""
        beside = sum(each.kind == "picture" for each in self.shown)
        return beside + self.text.count("(data:image/")


@dataclass(frozen=True, kw_only=True)
class Found:
    """All that was found in one folder."""

    answers: list[Answer] = field(default_factory=list)  # in the order of notebooks and cells
    evidence: dict[Place, list[Shown]] = field(default_factory=dict)  # pictures only
    revealed: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # name, source
    checks: dict[Place, Part] = field(default_factory=dict)  # from the outputs of checks alone
    prompts: dict[str, dict[str, str]] = field(default_factory=dict)  # by problem and part
    notes: list[str] = field(default_factory=list)
    left_aside: list[str] = field(default_factory=list)  # files that cannot be read, and why


def named(place: Place) -> str:
    """Write a place in words, such as "unicode2 (a)"."""
    return f"{place[0]} ({place[1]})" if place[1] else place[0]


def read_folder(folder: Path) -> Found:
    """Read the notebooks of a folder, and leave aside those that cannot be read.

    Raises: ValueError if there are none, or if none can be read.
    """
    if not folder.is_dir():
        raise ValueError(
            f"there is no folder {folder}; name the one with your notebooks, such as study"
        )
    paths = notebooks_in(folder)
    if not paths:
        raise ValueError(f"{folder} has no notebooks; name the folder with yours, such as study")
    found = Found()
    for path in paths:
        try:
            cells = cells_of(path)
        except ValueError as error:
            found.left_aside.append(str(error))
            continue
        for cell in cells:
            _collect(cell, path.name, found)
    if len(found.left_aside) == len(paths):
        raise ValueError("\n  ".join(found.left_aside))
    return found


def cells_of(path: Path) -> list[dict]:
    """Read the cells of a notebook; raise ValueError if the file is not a notebook."""
    advice = "open it in JupyterLab and save it again, or move it out of the folder"
    try:
        notebook = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); {advice}") from None
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise ValueError(f"{path} is not a complete notebook ({reason}); {advice}") from None
    if not isinstance(notebook, dict) or notebook.get("nbformat") != FORMAT:
        raise ValueError(f"{path} is not a notebook of format {FORMAT}; {advice}")
    cells = notebook.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise ValueError(f"{path} has no list of cells; {advice}")
    return cells


def _collect(cell: dict, notebook: str, found: Found) -> None:
    """Take from a cell what concerns the write-up."""
    about = _dict(_dict(cell.get("metadata")).get("workbook"))
    if about.get("role") == "prompt" and (place := _place(about)):
        found.prompts[place[0]] = _asked(_text(cell.get("source")))
    if cell.get("cell_type") != "code":
        return
    outputs = _dicts(cell.get("outputs"))
    for output in outputs:
        _collect_check(_dict(_dict(output.get("data")).get(CHECK_MIME)), found)
    records = [_dict(output.get("data")).get(MIME) for output in outputs]
    if any(record is not None for record in records):
        _collect_answers(cell, outputs, notebook, found)
    elif about.get("role") == "answer":
        _note_silence(cell, outputs, about, found)
    elif about.get("role") in ("evidence", "reveal") and (place := _place(about)):
        if about["role"] == "evidence":
            shown = [each for output in outputs for each in _shown(output)]
            pictures = [each for each in shown if each.kind == "picture"]
            found.evidence.setdefault(place, []).extend(pictures)
        for output in outputs if about["role"] == "reveal" else ():
            name, _, source = _text(_dict(output.get("data")).get("text/plain")).partition("\n")
            if name.startswith("# "):
                found.revealed.setdefault(place[0], []).append((name[2:], source))


def _collect_check(record: dict, found: Found) -> None:
    """Take the outcome of a check, with the code that was kept when it passed."""
    place, status = _place(record), record.get("status")
    if place is None or status not in RISING:
        return
    part = found.checks.setdefault(place, Part())
    source, trouble = _text(record.get("source")), record.get("trouble")
    if source and RISING.index(status) >= RISING.index(part.best):
        part.source, part.trouble = source, trouble if isinstance(trouble, str) else None
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


def _collect_answers(cell: dict, outputs: list[dict], notebook: str, found: Found) -> None:
    """Take a cell's answers; each has what was shown before it, and the last one also the rest."""
    answers: list[Answer] = []
    shown: list[Shown] = []
    for output in outputs:
        record = _dict(output.get("data")).get(MIME)
        if record is None:
            shown += _shown(output)
        elif answer := _answer(_dict(record), _text(cell.get("source")), shown):
            answers.append(answer)
            shown = []
        else:
            what = ascii(_dict(record).get("problem"))  # of a stranger's file, onto a terminal
            what = what if len(what) <= 60 else f"{what[:57]}..."
            found.notes.append(f"{notebook} holds an answer to {what} that cannot be read")
    if answers:
        answers[-1].shown.extend(shown)
    for answer in answers:
        if answer.has_figure and not any(each.kind == "picture" for each in answer.shown):
            found.notes.append(f"the figure of {answer} is not in {notebook}: run its cell again")
    found.answers.extend(answers)


def _answer(record: dict, source: str, shown: list[Shown]) -> Answer | None:
    """Make the answer that a record holds; return None if it is not one of ours."""
    place = _place(record)
    texts = [record.get(key) for key in ("text", "edition", "profile")]
    if place is None or not all(isinstance(text, str) for text in texts):
        return None
    if record["edition"] not in EDITIONS or (problems.PROBLEMS[place[0]].parts and not place[1]):
        return None
    names = [each.get("name") for each in _dicts(record.get("corpora"))]
    device = record.get("device")
    return Answer(
        place=place,
        text=record["text"],
        edition=record["edition"],
        profile=record["profile"],
        corpora=tuple(name for name in names if isinstance(name, str) and name in CORPORA),
        stand_in=record.get("stand_in") is True,
        device=device if isinstance(device, str) else None,
        has_figure=record.get("figure") is True,
        verdict=record.get("verdict") if record.get("verdict") in RISING else None,
        loss=record["loss"] if isinstance(record.get("loss"), float) else None,
        source=source,
        shown=shown,
    )


def _note_silence(cell: dict, outputs: list[dict], about: dict, found: Found) -> None:
    """Note an answer that was written but that its cell has not shown."""
    place = _place(about)
    if place is None:
        return
    if any(output.get("output_type") == "error" for output in outputs):
        found.notes.append(
            f"the cell that answers {named(place)} ended in an error: fix it and run it again"
        )
    elif '"""\n"""' not in _text(cell.get("source")):
        found.notes.append(f"the cell that answers {named(place)} was not run: run it and save")


def _place(about: dict) -> Place | None:
    """Return the place that a record names, None if there is no such problem or part."""
    try:
        problem = problems.get(about.get("problem"))
        return problem.id, problems.part_of(problem, about.get("part")) or ""
    except ValueError:
        return None


def _shown(output: dict) -> list[Shown]:
    """List what an output shows, in its best form; nothing if it is folded away.

    What a check says below its answer is left out: it is for the writer, not for readers.
    """
    if output.get("output_type") == "stream":
        return _printed(_text(output.get("text")))
    data = _dict(output.get("data"))
    if CHECK_MIME in data:
        return []
    plain = _text(data.get("text/plain"))
    for mime in PICTURES:
        if mime in data:
            notes = _dict(_dict(output.get("metadata")).get(mime))
            alt = _text(notes.get("alt")) or ("" if plain.startswith("<") else plain)
            picture = b""  # for invalid base64
            with suppress(ValueError):
                picture = base64.b64decode(_text(data[mime]))
            return [Shown(kind="picture", text=alt, picture=picture)]
    html, markdown = _text(data.get("text/html")), _text(data.get("text/markdown"))
    if "<details" in html or "<details" in markdown:
        return []  # our answers and our code are shown folded, and are nobody's answer
    if html:
        # Of a long table, the text that pandas printed is taken: it is short.
        is_long = len(html) > 200_000 and plain
        return [Shown(kind="text", text=plain) if is_long else Shown(kind="html", text=html)]
    latex = _text(data.get("text/latex"))
    if markdown or latex:
        return [Shown(kind="markdown", text=markdown or latex)]
    return _printed(plain)


def _printed(text: str) -> list[Shown]:
    """List printed text, unless it is empty or one of our folded answers and sources, unfolded."""
    return [Shown(kind="text", text=text)] if text.strip() and not OURS.search(text) else []


def _dict(value: Any) -> dict:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict]:
    """Return the dicts of a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return a text of a notebook, which may be stored as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""
