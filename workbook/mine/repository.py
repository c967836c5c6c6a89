"""The learner's own checkout of the course's repository: which of its objects is which part.

`workbook adopt` finds them, and writes `adopted.toml` into the study folder. The file may be
edited: what is changed by hand stays when the checkout is adopted again.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbook.checks import worker
from workbook.files import atomic_write, locked, write_json
from workbook.mine.checkout import ADAPTERS, Checkout, how_to_install
from workbook.mine.finding import CODE, Adapters
from workbook.study import problems, solutions
from workbook.study.progress import MARK

__all__ = ["Adopted", "adapter", "adopt", "enter", "load", "read"]

FILE = "adopted.toml"
RECORD = "adopted.json"  # what `adopt` itself wrote last: anything else was changed by hand
FIND = "workbook.mine.finding:find"  # runs in a process of its own
SECONDS = 180.0  # for one part
BY_HAND = "by hand"
NEXT = (
    "Next: `workbook check --all` checks them, `workbook twin` trains your model beside ours, and"
    " `workbook train laptop --mine` trains it in earnest."
)
WHERE = re.compile(r"[^:]+:[^\W\d][\w.]*|[^:]+\.py")
Where = str | list[str]


@dataclass
class Adopted:
    """Where a learner's parts are."""

    folder: Path
    parts: dict[str, Where]  # by problem: "module:object", two for a pair, "" to use none
    file: Path  # that says so
    how: dict[str, str] = field(default_factory=dict)  # `adopt` found each part
    notes: list[str] = field(default_factory=list)  # for the learner, by `adopt`

    def where(self, problem: str) -> str:
        """Where the part for a problem is; for a pair, both with a comma between; "" for none."""
        return ", ".join(_both(self.parts.get(problem, "")))

    def __str__(self) -> str:
        rows = [
            (name, " and ".join(_both(where)), self.how.get(name, ""))
            for name, where in self.parts.items()
            if where
        ]
        widths = [max((len(row[n]) for row in rows), default=0) for n in range(2)]
        table = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows]
        found = f"{len(rows)} of {len(CODE)} parts found in {self.folder}"
        return "\n".join([f"{found}:", "", *table, "", *self.notes, f"Kept in {self.file}.", NEXT])


def _both(where: Where) -> list[str]:
    return [where] if isinstance(where, str) else list(where)


# The mapping.


def read(study: Path) -> Adopted | None:
    """Read where the parts are; None if nothing was adopted.

    Raises: ValueError if the file is damaged, with the line of a wrong entry, and FileNotFoundError
    if the folder that it names is gone.
    """
    file = Path(study) / FILE
    found = _read(file)
    if found is not None and not found.folder.is_dir():
        raise FileNotFoundError(
            f"{file} says that your repository is {found.folder}, which is not there; if it moved,"
            " run `workbook adopt PATH` with its new path"
        )
    return found


def places(study: Path) -> dict[str, str]:
    """Where the part for each code problem is, if there is one, in the handout's order.

    Raises: ValueError, OSError if the mapping of a repository cannot be used.
    """
    adopted = read(study)
    found = {name: adopted.where(name) if adopted is not None else "" for name in CODE}
    for name in CODE:
        if not found[name] and (study / solutions.FOLDER / f"{name}.py").is_file():
            names = problems.get(name).names or (name,)
            found[name] = f"{solutions.FOLDER}.{name}:{', '.join(names)}"
    return {name: place for name, place in found.items() if place}


def _read(file: Path) -> Adopted | None:
    try:
        text = file.read_text(encoding="utf-8")
        stored = tomllib.loads(text)
    except FileNotFoundError:
        return None
    except ValueError as error:  # not UTF-8, or not TOML
        raise ValueError(f"{file} cannot be read: {error}; {_MEND}") from error
    folder, parts = stored.get("folder"), stored.get("parts", {})
    if not isinstance(folder, str) or not isinstance(parts, dict):
        missing = "[parts]" if isinstance(folder, str) else 'folder = "PATH"'
        raise ValueError(f"{file} has no valid {missing}; {_MEND}")
    lines = [line.partition("=")[0].strip(" \t\"'") for line in text.splitlines()]
    for name, where in parts.items():
        at = f"line {lines.index(name) + 1} of {file}" if name in lines else str(file)
        _expect_part(name, where, at)
    return Adopted(Path(folder), parts, file)


_MEND = "correct it, or delete the file and run `workbook adopt PATH` again"


def _expect_part(name: str, where: Any, at: str) -> None:
    """Raise ValueError unless an entry names a code problem, and an object for it."""
    try:
        problem = problems.get(name)
    except ValueError as error:
        raise ValueError(f"{at}: {error}") from error
    if not problem.form:
        raise ValueError(f"{at}: {name} is not a code problem; expected one of {', '.join(CODE)}")
    if where == "":
        return
    is_pair = problem.form == "pair"
    each = where if is_pair and isinstance(where, list) else [where]
    fits = len(each) == 1 + is_pair and all(isinstance(w, str) and WHERE.fullmatch(w) for w in each)
    if not fits:
        two = '["module:save", "module:load"]'
        wanted = two if is_pair else '"module:object"'
        raise ValueError(f"{at}: expected {name} = {wanted}, got {where!r}")


def _write(adopted: Adopted, by_adopt: Mapping[str, Where]) -> None:
    lines = [
        "# Where your parts are; `workbook adopt` wrote this, and you may edit it.",
        '# A line that you change stays as it is; "" leaves a part out.',
        f"folder = {json.dumps(str(adopted.folder), ensure_ascii=False)}",
        "",
        "[parts]",
    ]
    for name in CODE:
        if name in adopted.parts:
            lines.append(f"{name} = {json.dumps(adopted.parts[name], ensure_ascii=False)}")
    with atomic_write(adopted.file) as file:
        file.write("\n".join(lines) + "\n")
    write_json(adopted.file.parent / MARK / RECORD, by_adopt)


def _by_hand(before: Adopted | None) -> dict[str, Where]:
    """The entries that were changed by hand or `--set` since `adopt` wrote the file."""
    if before is None:
        return {}
    recorded: dict[str, Where] = {}
    with suppress(OSError, ValueError):
        text = (before.file.parent / MARK / RECORD).read_text(encoding="utf-8")
        recorded = json.loads(text)
    return {name: each for name, each in before.parts.items() if recorded.get(name) != each}


def given(options: list[str]) -> dict[str, str]:
    """Read `problem=module:Name` as `--set` takes it. Raises: ValueError."""
    found: dict[str, str] = {}
    for option in options:
        name, sign, where = option.partition("=")
        if not sign:
            raise ValueError(f"expected --set problem=module:Name, got {option!r}")
        found[problems.get(name.strip()).id] = where.strip()
    return found


# Adopting.


def adopt(path: str | os.PathLike, given: Mapping[str, str], study: str | os.PathLike) -> Adopted:
    """Find a learner's parts in a checkout of the course's repository, and record where they are.

    Arguments:
        path: the folder of the checkout; nothing in it is changed, and only its imports run, in
            a process of their own.
        given: where a part is, by problem, as "module:object" or "module:save,module:load"; ""
            forgets what was given before.
        study: the study folder, which is made if it is missing.

    Raises: ValueError if a given object cannot be used, the folder has no Python code, or
    `adopted.toml` is damaged; OSError, for example if there is no such folder.
    """
    checkout, file = Checkout(path), Path(study) / FILE
    checkout.files  # noqa: B018 - raises if the folder has no Python code
    split = {name: [each.strip() for each in where.split(",")] for name, where in given.items()}
    wanted = {n: each if len(each) > 1 else each[0] for n, each in split.items() if given[n]}
    for name, where in wanted.items():
        _expect_part(name, where, "--set")
    before = _read(file)
    kept = {n: each for n, each in _by_hand(before).items() if n not in given}
    hand, found, how, notes = {**kept, **wanted}, {}, {}, []
    asked = {name: _both(where) for name, where in hand.items() if where}
    try:
        for each in worker.results(FIND, str(checkout.folder), asked, seconds=SECONDS):
            name = each.get("problem")
            if "trouble" in each:
                notes.append(f"Note: {each['trouble']}")
            elif "where" in each:
                found[name], how[name] = each["where"], each["how"]
            elif name in wanted:
                raise ValueError(f"--set {name}={given[name]}: {each['refused']}")
            else:
                said = f"{name} = {json.dumps(hand.pop(name))}, as {FILE} said,"
                notes.append(f"{said} cannot be used: {each['refused']}.")
    except worker.EndedError as error:
        notes.append(f"Note: the search for your parts was cut short: {error}")
    parts = {name: hand.get(name, found.get(name)) for name in CODE}
    adopted = Adopted(checkout.folder, {n: w for n, w in parts.items() if w is not None}, file)
    adopted.how = {name: BY_HAND if name in hand else how.get(name, "") for name in adopted.parts}
    adopted.notes = [*_advice(checkout, adopted), *notes]
    with locked(file.parent / MARK):
        _write(adopted, {name: each for name, each in found.items() if name not in hand})
    return adopted


def _advice(checkout: Checkout, adopted: Adopted) -> Iterator[str]:
    """What to do about missing parts and packages, one sentence per line."""
    for name in CODE:
        if name not in adopted.parts:
            example = f"{name}=module:{(problems.get(name).names or ('main',))[0]}"
            if problems.get(name).form == "pair":
                example = f"{name}=module:save,module:load"
            yield f"Not found: {name}. If you have it, adopt again with `--set {example}`"
    for package, files in checkout.missing.items():
        needing = [
            name
            for name, where in adopted.parts.items()
            if any(checkout.find(each.partition(":")[0]) in files for each in _both(where))
        ]
        of = f"for {', '.join(needing)}" if needing else f"in {files[0].name}"
        yield f"Missing {of}: the package {package}; `{how_to_install(package)}`"


# Using the parts.


_checkouts: dict[Path, Checkout] = {}


def _checkout(adopted: Adopted) -> Checkout:
    return _checkouts.setdefault(adopted.folder, Checkout(adopted.folder))


def enter(adopted: Adopted) -> None:
    """Make this process able to import from the checkout; once is enough."""
    _checkout(adopted).enter()


def load(adopted: Adopted, problem: str) -> Any:
    """Import the part for a problem: an object, a tuple for a pair, the path of a script.

    Raises: KeyError if none was adopted; ValueError if it cannot be imported, with the reason.
    """
    where = adopted.parts.get(problem)
    if not where:
        raise KeyError(problem)
    found = tuple(_checkout(adopted).object(each) for each in _both(where))
    return found if len(found) > 1 else found[0]


def adapter(adopted: Adopted, problem: str) -> Callable | tuple | None:
    """Import the function in the checkout's `tests/adapters.py` for a problem, two for a pair.

    None if there is none, or it is not written yet.
    """
    checkout = _checkout(adopted)
    names = Adapters(checkout).written(problem)
    if not names or (problem == "checkpointing" and len(names) < 2):
        return None
    checkout.enter()
    found = tuple(getattr(checkout.imported(ADAPTERS), name) for name in names)
    return found if problem == "checkpointing" else found[0]
