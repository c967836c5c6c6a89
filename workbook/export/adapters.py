"""What was solved in the notebooks as a course repository, on which the course's own tests run.

`export` copies the code that a study folder keeps to `cs336_basics/PROBLEM.py`, as it was typed,
and writes `tests/adapters.py`. None of it needs the workbook. What the adapters must say is found
by `checks.course_adapters`, in a process of its own: it imports and calls the learner's code.
"""

import ast
import json
import re
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import shorten

from workbook.checks import apart
from workbook.files import atomic_write, write_json
from workbook.study import keeping
from workbook.study.problems import PROBLEMS

PACKAGE, ADAPTERS = "cs336_basics", "tests/adapters.py"
RECORD = ".workbook-export.json"  # of what an export wrote: hashes by file
WIDTH = 100
SECONDS = 300  # for one adapter; on a busy machine torch alone takes ten
COURSE = "https://github.com/stanford-cs336/assignment1-basics"
HEAD = '''"""The course's adapters for the parts in `cs336_basics`.

`workbook export --adapters` wrote them: each fills the course's weights into a part, under the
names that it has there, and calls it with the arguments that it takes.
"""

import torch
'''


def export(study: Path, to: Path) -> list[str]:
    """Write what a study folder keeps as a course repository into the folder `to`.

    What is in `to` already stays: files that no earlier export wrote are refused, and then nothing
    is written, except for the course's own adapters, which are blank and kept as `adapters.py.bak`.
    Returns what was written, what was not and how the course's tests are run, line by line.

    Raises: ValueError where nothing is kept, or a file is in the way; OSError.
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
    folder, kept = study / keeping.FOLDER, {}
    for problem in PROBLEMS.values():
        path = folder / f"{problem.id}.py"
        if problem.form and path.is_file():
            source = path.read_text("utf-8", errors="replace")
            if keeping.status_of(source, problem.id):
                kept[problem.id] = source
    if not kept:
        raise ValueError(
            f"nothing that passed its check is kept in {folder}; check a solution in a notebook of"
            " your study folder first, or name that folder, as in `workbook export study`"
        )
    return kept


def _adapters(folder: str, problems: list[str]) -> tuple[dict[str, str], dict[str, dict]]:
    """All adapters without a body, and what was found for each; a crash costs one of them."""
    stubs: dict[str, str] = {}
    found: dict[str, dict] = {}
    while not stubs or found.keys() != stubs.keys():
        asked = "workbook.checks.course_adapters:write_all", folder, problems, list(found)
        results = apart.results(*asked, seconds=SECONDS)
        try:
            stubs = next(results)
            for each in results:
                found[each["name"]] = each
        except apart.EndedError as error:
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
        words = f"    # {shorten(why, WIDTH - 6, placeholder=' ...')}\n" if why else ""
        functions.append(code or f"{stub}\n{words}    raise NotImplementedError\n")
    return "\n\n".join([HEAD, *functions])


def _report(to: Path, kept: dict[str, str], found: dict[str, dict]) -> list[str]:
    """What was exported, and what not."""
    done = [each for each in found.values() if each["code"]]
    refused = [each for each in found.values() if each["why"] and not each["code"]]
    open_ = [name for name, each in found.items() if not (each["code"] or each["why"])]
    almost = [each for each, source in kept.items() if _status(each, source) == "almost"]
    theirs = [each for each, source in kept.items() if _imports_workbook(source)]
    lines = [
        f"{to}: {len(kept)} solved problem{'s' * (len(kept) != 1)} in {PACKAGE}, and"
        f" {len(done)} of {len(found)} adapters in {ADAPTERS}"
    ]
    if almost:
        lines.append(f"  almost right when checked: {', '.join(almost)}")
    if theirs:
        lines.append(f"  import the workbook, which the course's tests lack: {', '.join(theirs)}")
    lines += [f"  {each['name']}: {each['why']}" for each in done if each["why"]]
    lines += [f"  no {each['name']}: {' '.join(each['why'].split())}" for each in refused]
    if open_:
        lines.append(f"  not solved yet: {', '.join(open_)}")
    return lines


def _status(problem: str, source: str) -> str | None:
    return keeping.status_of(source, problem)


def _imports_workbook(source: str) -> bool:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return False
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return any(name.partition(".")[0] == "workbook" for name in names)


def _how_to_test(to: Path) -> str:
    if (to / "pyproject.toml").is_file() and any((to / "tests").glob("test_*.py")):
        return f"The course's tests: `uv run pytest` in {to}"
    return (
        f"The course's tests: clone {COURSE}, copy {PACKAGE} and {ADAPTERS} into it, then"
        " `uv run pytest` there"
    )


def _save(to: Path, files: dict[str, str]) -> list[str]:
    """Write all files or none; say what was moved aside. Raises: ValueError, OSError."""
    record = to / RECORD
    try:
        before = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = {}
    foreign = []
    for name, text in files.items():
        path = to / name
        old = path.read_text("utf-8", errors="replace") if path.is_file() else None
        if path.exists() and old != text and (old is None or before.get(name) != _hash(old)):
            foreign.append((name, old))
    if refused := [name for name, old in foreign if name != ADAPTERS or not _is_blank(old)]:
        raise ValueError(
            f"nothing was written: no export wrote {', '.join(refused)} in {to}, or it was changed"
            " since; move it away, or name another folder"
        )
    for name, old in foreign:
        with atomic_write(to / f"{name}.bak") as file:
            file.write(old)
    _write(to, files)
    write_json(record, {**before, **{name: _hash(text) for name, text in files.items()}})
    return [f"  {name} of before is kept as {name}.bak" for name, _ in foreign]


def _write(to: Path, files: dict[str, str]) -> None:
    """Write all files, and only then put them in their places."""
    with ExitStack() as open_files:
        for name, text in files.items():
            file = open_files.enter_context(atomic_write(to / name))
            file.write(text)
            file.flush()


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _is_blank(source: str | None) -> bool:
    """Whether no adapter in a file does anything, as the course hands it out; None: no file."""
    try:
        nodes = ast.parse(source or "").body
    except SyntaxError:
        return False
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return bool(functions) and all(
        re.fullmatch("raise NotImplementedError.*", ast.unparse(node.body[-1]))
        and all(isinstance(each, ast.Expr) for each in node.body[:-1])
        for node in functions
    )
