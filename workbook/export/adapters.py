"""Code solved in the notebooks as a course repository, for the course's own tests to run on.

`export` copies the code that a study folder keeps to `cs336_basics/PROBLEM.py`, as it was typed,
and writes `tests/adapters.py`. It needs the workbook only where the learner's code imports it. What
the adapters must say is found by `mine.course_adapters`, in a process of its own: it imports and
calls the learner's code.
"""

import json
import re
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import shorten

from workbook.checks import worker
from workbook.files import atomic_write, write_json
from workbook.study import solutions
from workbook.study.problems import PROBLEMS

PACKAGE, ADAPTERS = "cs336_basics", "tests/adapters.py"
RECORD = ".workbook-export.json"  # of what an export wrote: hashes by file
SECONDS = 300  # for one adapter; on a busy machine torch alone takes ten
COURSE = "https://github.com/stanford-cs336/assignment1-basics"
HEAD = '''"""The course's adapters for the parts in `cs336_basics`.

`workbook export --adapters` wrote them: each loads the course's weights, if there are any, into a
part, under the part's own names, and calls it with the arguments that it takes.
"""

import torch
'''


def export(study: Path, to: Path) -> list[str]:
    """Write what a study folder keeps as a course repository into the folder `to`.

    What is already in `to` stays: if a file that no earlier export wrote is in the way, nothing is
    written. Only the course's own adapters, which are blank, are replaced and kept as
    `adapters.py.bak`. Returns what was written, what was not and how to run the course's tests,
    line by line.

    Raises: ValueError if nothing is kept, or a file is in the way; OSError.
    """
    kept = _kept(study)
    init = f"{PACKAGE}/__init__.py"
    files = {f"{PACKAGE}/{problem}.py": source for problem, source in kept.items()}
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        _write(Path(folder), {init: "", **files})
        stubs, found = _adapters(folder, list(kept))
    files[ADAPTERS] = _module(stubs, found)
    if not (to / init).exists():
        files[init] = ""
    saved = _save(to, files)
    return [*_report(to, kept, found), *saved, _how_to_test(to)]


def _kept(study: Path) -> dict[str, str]:
    """The sources of what passed a check, by problem."""
    folder, kept = study / solutions.FOLDER, {}
    for name, problem in PROBLEMS.items():
        path = folder / f"{name}.py"
        source = path.read_text("utf-8", errors="replace") if path.is_file() else ""
        if problem.form and solutions.status_of(source, name):
            kept[name] = source
    if not kept:
        raise ValueError(
            f"nothing that passed its check is kept in {folder}; check a solution in a notebook of"
            " your study folder first, or name that folder: `workbook export study --adapters ...`"
        )
    return kept


def _adapters(folder: str, problems: list[str]) -> tuple[dict[str, str], dict[str, dict]]:
    """All adapters without a body, and what was found for each; a crash costs only one."""
    stubs: dict[str, str] = {}
    found: dict[str, dict] = {}
    while not stubs or found.keys() != stubs.keys():
        asked = "workbook.mine.course_adapters:write_all", folder, problems, list(found)
        results = worker.results(*asked, seconds=SECONDS)
        try:
            stubs = next(results)
            for each in results:
                found[each["name"]] = each
        except worker.EndedError as error:
            if not stubs:
                raise
            name = next(name for name in stubs if name not in found)
            found[name] = {"name": name, "code": "", "why": str(error)}
    return stubs, found


def _module(stubs: dict[str, str], found: dict[str, dict]) -> str:
    """The text of `tests/adapters.py`."""
    functions = []
    for name, stub in stubs.items():
        code, why = found[name]["code"], found[name]["why"]
        said = shorten(f"write this adapter by hand: {why}", 300, placeholder=" ...")
        raised = f"NotImplementedError({json.dumps(said)})" if why else "NotImplementedError"
        functions.append(code or f"{stub}\n    raise {raised}\n")
    return "\n\n".join([HEAD, *functions])


def _report(to: Path, kept: dict[str, str], found: dict[str, dict]) -> list[str]:
    """What was exported, and what was not."""
    written = sum(bool(each["code"]) for each in found.values())
    lines = [
        f"{to}: {len(kept)} solved problem{'s' * (len(kept) != 1)} in {PACKAGE}, and"
        f" {written} of {len(found)} adapters in {ADAPTERS}"
    ]
    for each in found.values():
        if each["why"]:
            missing = "" if each["code"] else " not written"
            lines.append(f"  {each['name']}{missing}: {' '.join(each['why'].split())}")
    lists = {
        "almost right when checked": [
            name for name, text in kept.items() if solutions.status_of(text, name) == "almost"
        ],
        "import the workbook, which the course does not install": [
            name for name, text in kept.items() if re.search(r"(?m)^ *(from|import) workbook", text)
        ],
        "not solved yet": [n for n, each in found.items() if not each["code"] + each["why"]],
    }
    return lines + [f"  {title}: {', '.join(names)}" for title, names in lists.items() if names]


def _how_to_test(to: Path) -> str:
    if any((to / "tests").glob("test_*.py")):
        return f"The course's tests: `uv run pytest` in {to}"
    return (
        f"The course's tests: clone {COURSE}, copy {PACKAGE} and {ADAPTERS} into it, and run"
        " `uv run pytest` there"
    )


def _save(to: Path, files: dict[str, str]) -> list[str]:
    """Write all files or none; say what was moved aside. Raises: ValueError, OSError."""
    record = to / RECORD
    try:
        before = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = {}
    foreign = {}
    for name, text in files.items():
        path = to / name
        old = path.read_text("utf-8", errors="replace") if path.is_file() else ""
        if path.exists() and old != text and before.get(name) != _hash(old):
            foreign[name] = old
    if refused := [name for name, old in foreign.items() if name != ADAPTERS or not _is_blank(old)]:
        raise ValueError(
            f"nothing was written: {', '.join(refused)} in {to} did not come from an export, or"
            " changed since; move what is in the way, or name another folder"
        )
    for name, old in foreign.items():
        with atomic_write(to / f"{name}.bak") as file:
            file.write(old)
    _write(to, files)
    write_json(record, {**before, **{name: _hash(text) for name, text in files.items()}})
    return [f"  the old {name} is kept as {name}.bak" for name in foreign]


def _write(to: Path, files: dict[str, str]) -> None:
    """Write all files, and only then put them in their places."""
    with ExitStack() as open_files:
        for name, text in files.items():
            file = open_files.enter_context(atomic_write(to / name))
            file.write(text)
            file.flush()


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _is_blank(source: str) -> bool:
    """Whether each function only raises NotImplementedError, as in the course's own file."""
    functions = len(re.findall("^def ", source, re.M))
    return functions == len(re.findall("^    raise NotImplementedError", source, re.M)) > 0
