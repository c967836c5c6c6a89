"""The export itself: from a folder of notebooks to Markdown, HTML, PDF and an archive of code."""

import re
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TypeVar

from workbook import config
from workbook.export import pandoc, pdf, states, web
from workbook.export.document import Document, compose
from workbook.export.states import WriteUp
from workbook.export.stored import Place
from workbook.files import atomic_write
from workbook.study.progress import MARK, Progress

EPOCH = (1980, 1, 1, 0, 0, 0)  # of each file in an archive: the earliest time in the format
SHIPPED = (".py", ".txt", ".typ", ".css")  # files of the package
T = TypeVar("T")
BESIDE = ("LICENSE", "pyproject.toml", "constraints.txt")


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
        known = ", ".join(config.EDITIONS)
        raise ValueError(f"there is no edition {edition!r}; pick one of {known}")
    pandoc.require()
    folder = Path(folder or config.shipped() / "notebooks")
    write_up = states.assess(folder, edition, prove=strict)
    if name is not None:
        if write_up.is_reference:
            raise ValueError(
                "the reference write-up carries no name; give your own folder too, such as study"
            )
        write_up = replace(write_up, name=name)
        if (folder / MARK).is_dir():
            Progress(folder).name = name
    if strict and write_up.missing:
        _refuse(f"is missing or wrong ({len(write_up.missing)})", write_up.missing)
    document = compose(write_up)
    try:
        formats, said = _formats(document)
    except ValueError as error:
        document = _with_faults_as_typed(write_up, document, error)
        formats, said = _formats(document)
    notes = [*document.notes, *said]
    if strict and notes:
        _refuse("cannot be shown", notes)
    for line in write_up.left_aside:
        print(f"workbook: left aside: {line}", file=sys.stderr)
    _save(Path(to), {**formats, "code.zip": code_zip(write_up)})
    notes = dict.fromkeys([*write_up.notes, *notes, *write_up.short])
    return [
        write_up.summary,
        *(f"  note: {line}" for line in notes),
        f"{Path(to) / 'writeup.pdf'} (with writeup.html, writeup.md and code.zip beside it)",
    ]


def _refuse(what: str, lines: list[str]) -> None:
    raise ValueError("\n  ".join([f"nothing was written, because this {what}:", *lines]))


def _formats(document: Document) -> tuple[dict[str, bytes], list[str]]:
    """Write each file of the document; also say what could not be shown in it."""
    missing = pdf.unshown(document)
    done, refused = pdf.pdf(document, missing)
    said = pdf.complaints(missing)
    for formula in [*document.as_code, *refused]:
        place = f" in {document.formulas[formula]}" if formula in document.formulas else ""
        said.append(
            f"a formula{place} cannot be typeset and is shown as it was typed: {formula[:60]}"
        )
    formats = {
        "writeup.md": web.markdown(document).encode(),
        "writeup.html": web.html(document, missing).encode(),
        "writeup.pdf": done,
        **{f"{web.PICTURES}/{name}": data for name, data in document.album.files.items()},
    }
    return formats, said


def _with_faults_as_typed(write_up: WriteUp, document: Document, error: ValueError) -> Document:
    """Show as typed what makes pandoc or typst fail: some formulas, or else some answers.

    Raises the error again if neither is at fault.
    """
    formulas = list(document.formulas)

    def with_formulas(some: list[str]) -> Document:
        return replace(document, as_code=[each for each in formulas if each not in some])

    if bad := _at_fault(formulas, with_formulas):
        return replace(document, as_code=bad)
    places = [answer.place for entry in write_up.entries for answer in entry.answers.values()]

    def with_answers(some: list[Place]) -> Document:
        return compose(write_up, [each for each in places if each not in some])

    if bad := _at_fault(places, with_answers):
        return compose(write_up, bad)
    raise error


def _at_fault(items: list[T], document_with: Callable[[list[T]], Document]) -> list[T]:
    """Find by bisection the items with which a document cannot be written."""

    def works(some: list[T]) -> bool:
        try:
            _formats(document_with(some))
        except ValueError:
            return False
        return True

    def search(some: list[T]) -> list[T]:
        if works(some):
            return []
        if len(some) == 1:
            return some
        middle = len(some) // 2
        return search(some[:middle]) + search(some[middle:])

    return search(items) if items and works([]) else []


def _save(to: Path, files: dict[str, bytes]) -> None:
    """Save files into the folder `to`, and delete the pictures of an earlier export."""
    try:
        for old in (to / web.PICTURES).glob("figure-*"):
            if f"{web.PICTURES}/{old.name}" not in files:
                old.unlink()
        for name, data in files.items():
            with atomic_write(to / name, "wb") as file:
                file.write(data)
    except OSError as error:
        raise OSError(
            f"the write-up cannot be written to {to} ({error.strerror}); name another folder (--to)"
        ) from None


def code_zip(write_up: WriteUp) -> bytes:
    """Pack the package for the reference; for a learner, their passing attempts as Python files.

    The same files give the same bytes on any machine: they are stored uncompressed, because
    versions of zlib differ in what they write.
    """
    files = _package() if write_up.is_reference else _attempts(write_up)
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system = 3  # Unix, wherever it is made
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, files[name].encode(errors="backslashreplace"))
    return buffer.getvalue()


def _package() -> dict[str, str]:
    package, root = config.PACKAGE, config.shipped()
    files = {
        f"workbook/{path.relative_to(package).as_posix()}": path
        for path in package.rglob("*")
        if path.suffix in SHIPPED and path.name not in BESIDE and path.is_file()
    }
    files |= {name: root / name for name in BESIDE if (root / name).is_file()}
    # read_text turns Windows' line endings into plain ones
    return {name: path.read_text(encoding="utf-8") for name, path in files.items()}


def _attempts(write_up: WriteUp) -> dict[str, str]:
    listings = [listing for entry in write_up.entries for listing in entry.listings]
    return {re.sub(r"[^\w.]", "_", name): f"{source}\n" for name, source in listings}
