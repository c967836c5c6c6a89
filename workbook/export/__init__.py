"""The write-up from saved notebooks: Markdown, HTML, PDF and an archive of the code."""

from pathlib import Path

from workbook import config
from workbook.files import atomic_write


def export(
    folder: str | Path | None = None,
    *,
    edition: str | None = None,
    strict: bool = False,
    to: str | Path = "build",
) -> list[str]:
    """What was written and what the writer should know, line by line.

    From the worked notebooks, the default, it is the reference write-up; from a learner's folder
    it holds the learner's answers and code alone. `strict` raises ValueError where anything is
    missing, and writes nothing.
    """
    from workbook.export import codezip, pandoc, states, web
    from workbook.export.document import compose

    edition = edition or config.edition()
    if edition not in config.EDITIONS:
        known = ", ".join(config.EDITIONS)
        raise ValueError(f"there is no edition {edition!r}; pick one of {known}")
    pandoc.require()
    write_up = states.assess(Path(folder or config.repository() / "notebooks"), edition)
    if strict and write_up.missing:
        lines = "\n  ".join(write_up.missing)
        raise ValueError(
            f"nothing is written, for this is missing ({len(write_up.missing)}):\n  {lines}"
        )
    document = compose(write_up)
    try:
        formats, said = _formats(document)
    except ValueError as error:
        document = _with_faults_as_typed(write_up, error)
        formats, said = _formats(document)
    if strict and (document.notes or said):
        lines = "\n  ".join([*document.notes, *said])
        raise ValueError(f"nothing is written, for this cannot be shown:\n  {lines}")
    to = Path(to)
    files = {
        **formats,
        "code.zip": codezip.code_zip(write_up),
        **{f"{web.PICTURES}/{name}": data for name, data in document.album.files.items()},
    }
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
    return report(write_up, to, [*write_up.notes, *document.notes, *said])


def _formats(document) -> tuple[dict[str, bytes], list[str]]:
    """The write-up in each format, and what could not be shown in it."""
    from workbook.export import pdf, web

    missing = pdf.unshown(document)
    set_in_type, refused = pdf.pdf(document, missing)
    said = pdf.complaints(missing)
    for formula in refused:
        place = f" of {document.formulas[formula]}" if formula in document.formulas else ""
        said.append(f"a formula{place} cannot be set and stands as it was typed: {formula[:60]}")
    formats = {
        "writeup.md": web.markdown(document).encode(),
        "writeup.html": web.html(document, missing).encode(),
        "writeup.pdf": set_in_type,
    }
    return formats, said


def _with_faults_as_typed(write_up, error: ValueError):
    """The document with each answer as it was typed that makes pandoc or typst fail.

    Raises the error again where no answer is at fault.
    """
    from workbook.export import pdf
    from workbook.export.document import compose

    places = [answer.place for entry in write_up.entries for answer in entry.answers.values()]

    def work(some) -> bool:
        try:
            _formats(compose(write_up, [place for place in places if place not in some]))
        except ValueError:
            return False
        return True

    bad = pdf.at_fault(places, work) if work([]) else []
    if not bad:
        raise error
    return compose(write_up, bad)


def report(write_up, to: Path, notes: list[str]) -> list[str]:
    """The lines that the command prints: what there is, what to know, what is missing."""
    kind = "Reference write-up" if write_up.is_reference else "Write-up"
    counts: dict[str, int] = {}
    for entry in write_up.entries:
        counts[entry.state] = counts.get(entry.state, 0) + 1
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    short = [line for line in write_up.missing if not line.endswith(": unanswered")]
    return [
        f"{kind}, edition {write_up.edition}: {len(write_up.entries)} problems, {states}.",
        *(f"  note: {line}" for line in dict.fromkeys([*notes, *short])),
        f"{to / 'writeup.pdf'} (with writeup.html, writeup.md and code.zip beside it)",
    ]
