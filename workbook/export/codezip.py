"""The archive that goes with a write-up: the same files give the same bytes, on any machine."""

import re
import zipfile
from io import BytesIO
from pathlib import Path

from workbook import config
from workbook.export.states import WriteUp

LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest time that the format knows
SHIPPED = (".py", ".txt", ".typ", ".css")  # files of the package
BESIDE = ("LICENSE", "pyproject.toml", "constraints.txt")


def code_zip(write_up: WriteUp) -> bytes:
    """The package for the reference; for a learner, their passing attempts as Python files."""
    return packed(_package() if write_up.is_reference else _attempts(write_up))


def packed(files: dict[str, str]) -> bytes:
    """An archive of texts by name. Stored and not compressed: zlib's versions differ in bytes."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.create_system = 3  # Unix, wherever it is made
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, files[name].encode(errors="backslashreplace"))
    return buffer.getvalue()


def _package() -> dict[str, str]:
    root = config.repository()
    package = Path(__file__).parents[1]
    paths = [path for path in package.rglob("*") if path.suffix in SHIPPED and path.is_file()]
    paths += [root / name for name in BESIDE if (root / name).is_file()]
    # read_text takes Windows' line ends for what they are
    return {
        (Path("workbook") / path.relative_to(package)).as_posix()
        if path.is_relative_to(package)
        else path.name: path.read_text(encoding="utf-8")
        for path in paths
    }


def _attempts(write_up: WriteUp) -> dict[str, str]:
    files = {}
    for entry in write_up.entries:
        for name, source in entry.listings:
            files[re.sub(r"[^\w.]", "_", name)] = f"{source}\n"
    return files
