"""The export itself: from a folder of notebooks to Markdown, HTML, PDF and an archive of code."""

import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

from workbook import config
from workbook.classroom.export import pandoc, pdf, status, web
from workbook.classroom.export.document import Document, compose
from workbook.classroom.export.saved_notebooks import Place
from workbook.classroom.export.status import WriteUp
from workbook.classroom.study.progress import MARK, Progress
from workbook.files import atomic_write, say

EPOCH = (1980, 1, 1, 0, 0, 0)  # of each file in an archive: the earliest time in the format


def export(
    folder: str | Path | None = None,
    *,
    edition: str | None = None,
    strict: bool = False,
    name: str | None = None,
    to: str | Path = "build",
) -> list[str]:
    """Write the write-up of a folder of notebooks into the folder `to`.

    From the worked notebooks, the default, it is the reference write-up; from a learner's folder
    it holds the learner's answers and code alone, with their `name`, which a study folder keeps for
    the next time. `strict` raises ValueError if anything is missing, wrong, short of what is asked
    or cannot be shown, or if code does not import by itself in a clean process, and writes nothing.
    Without it, a notebook that cannot be read is named on standard error, and left aside.
    Returns what was written and what the writer should know, line by line.
    """
    edition = edition or config.edition()
    if edition not in config.EDITIONS:
        raise ValueError(f"there is no edition {edition!r}; pick {' or '.join(config.EDITIONS)}")
    pandoc.require()
    folder = Path(folder or config.shipped() / "notebooks")
    to = Path(to)
    write_up = status.assess(folder, edition, prove=strict)
    if name is not None:
        write_up = _named(write_up, name, folder)
    if strict and write_up.missing:
        _refuse(f"is missing or wrong ({len(write_up.missing)})", write_up.missing)
    document = compose(write_up)
    try:
        formats, notes = _formats(document)
    except ValueError:  # which is raised again if no answer is at fault
        document = compose(write_up, as_typed=_failing(write_up))
        formats, notes = _formats(document)
    notes = [*document.cleaner.notes, *notes]
    if strict and notes:
        _refuse("cannot be shown", notes)
    for line in write_up.saved.left_aside:
        say(f"workbook: left aside: {pandoc.legible(line)}")
    _save(to, {**formats, "code.zip": code_zip(write_up)})
    unique_notes = dict.fromkeys([*write_up.notes, *notes, *write_up.short])
    return [
        write_up.summary,
        *(f"  note: {pandoc.legible(line)}" for line in unique_notes),
        f"{to / 'writeup.pdf'} (with writeup.html, writeup.md and code.zip beside it)",
    ]


def _named(write_up: WriteUp, name: str, folder: Path) -> WriteUp:
    """Put a name on a learner's write-up; a study folder remembers it."""
    if write_up.is_reference:
        raise ValueError("the reference write-up carries no name; give your own folder, too")
    try:
        if (folder / MARK).is_dir():
            Progress(folder).name = name
    except OSError as error:
        write_up.notes.append(f"the name cannot be remembered in {folder} ({error})")
    return replace(write_up, name=name)


def _refuse(what: str, lines: list[str]) -> None:
    raise ValueError("\n  ".join([f"nothing was written, because this {what}:", *lines]))


def _formats(document: Document) -> tuple[dict[str, bytes], list[str]]:
    """Write each file of the document; also say what could not be shown in it."""
    done, notes = pdf.pdf(document)
    formats = {
        "writeup.md": web.as_markdown(document).encode(),
        "writeup.html": web.html(document).encode(),
        "writeup.pdf": done,
    }
    for name, data in document.cleaner.pictures.items():
        formats[f"{web.FIGURES_FOLDER}/{name}"] = data
    return formats, notes


def _failing(write_up: WriteUp) -> list[Place]:
    """Find the answers that make pandoc or typst fail, by writing a document of each alone."""
    failing = []
    for entry in write_up.entries:
        for part, answer in entry.answers.items():
            alone = replace(entry, answers={part: answer}, listings=[])
            try:
                _formats(compose(replace(write_up, entries=[alone])))
            except ValueError:
                failing.append(answer.place)
    return failing


def _save(to: Path, files: dict[str, bytes]) -> None:
    """Save files into the folder `to`, and delete the pictures of an earlier export."""
    try:
        for old in (to / web.FIGURES_FOLDER).glob("figure-*"):
            if f"{web.FIGURES_FOLDER}/{old.name}" not in files:
                old.unlink()
        for name, data in files.items():
            with atomic_write(to / name, "wb") as file:
                file.write(data)
    except OSError as error:
        reason = error.strerror or error
        raise OSError(f"cannot write to {to} ({reason}); name another folder (--to)") from None


def code_zip(write_up: WriteUp) -> bytes:
    """Pack the code that the write-up shows, as Python files.

    The same files give the same bytes on any machine: they are stored uncompressed, because
    versions of zlib differ in what they write.
    """
    listings = [listing for entry in write_up.entries for listing in entry.listings]
    if write_up.is_reference:
        listings = [(name.replace(".", "_"), _importable(name, code)) for name, code in listings]
    files = {f"{name.removesuffix('.py')}.py": f"{source}\n" for name, source in listings}
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system = 3  # Unix, wherever it is made
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, files[name].encode(errors="backslashreplace"))
    return buffer.getvalue()


def _importable(name: str, source: str) -> str:
    """Our code with the names that it needs, so that its file imports; a method is a function.

    `name` is that of a function, method or class of the package, with its module.
    """
    path = name.split(".")
    classes = (place for place, part in enumerate(path) if part[0].isupper())
    module = ".".join(path[: next(classes, len(path) - 1)])
    return f"from __future__ import annotations\n\nfrom {module} import *\n\n{source}"
