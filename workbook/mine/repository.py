"""The learner's own checkout of the course's repository: which of its objects is which part.

`workbook adopt` finds them, and writes `adopted.toml` in the study folder, which is there to be
edited: what a hand changed in it stays when the checkout is adopted again.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbook.checks import apart
from workbook.files import atomic_write, locked, write_json
from workbook.mine.checkout import ADAPTERS, Checkout, how_to_install
from workbook.mine.finding import CODE, FUNCTIONS, Source, is_written, lacking
from workbook.mine.tracing import TracedModel
from workbook.study import keeping, problems
from workbook.study.progress import MARK

__all__ = ["Adopted", "TracedModel", "adapter", "adopt", "enter", "load", "read"]

FILE = "adopted.toml"
RECORD = "adopted.json"  # what `adopt` itself wrote last, which tells what a hand has changed
SECONDS = 180.0  # that one part may take
BY_HAND = "by hand"
WHERE = re.compile(r"[^:]+:[^\W\d][\w.]*|[^:]+\.py")
Where = str | list[str]


@dataclass
class Adopted:
    """Where a learner's parts are."""

    folder: Path
    parts: dict[str, Where]  # by problem: "module:object", two of a pair, "" for none to be used
    file: Path  # that says so
    how: dict[str, str] = field(default_factory=dict)  # each was found, by `adopt`
    notes: list[str] = field(default_factory=list)  # for the learner, by `adopt`

    def __str__(self) -> str:
        rows = [
            (name, " and ".join(_both(where)), self.how.get(name, ""))
            for name, where in self.parts.items()
            if where
        ]
        widths = [max((len(row[n]) for row in rows), default=0) for n in range(2)]
        table = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows]
        found = f"{len(rows)} of {len(CODE)} parts found in {self.folder}"
        return "\n".join([f"{found}:", "", *table, "", *self.notes, f"Kept in {self.file}."])


def _both(where: Where) -> list[str]:
    return [where] if isinstance(where, str) else list(where)


# The mapping.


def read(study: Path) -> Adopted | None:
    """Read where the parts are; None where nothing was adopted.

    Raises: ValueError that names the line where the file is damaged, and FileNotFoundError where
    the folder that it names is gone.
    """
    file = Path(study) / FILE
    found = _read(file)
    if found is not None and not found.folder.is_dir():
        raise FileNotFoundError(
            f"{file} says that your repository is {found.folder}, which is not there; if it moved,"
            " `workbook adopt PATH` with the new place"
        )
    return found


def places(study: Path) -> dict[str, str]:
    """Where each code problem's part is, of those that there are, in the handout's order.

    Raises: ValueError, OSError where the mapping of a repository cannot be used.
    """
    adopted = read(study)
    found = dict.fromkeys(CODE, "")
    for name in CODE:
        if adopted is not None and (where := adopted.parts.get(name)):  # "" leaves a part out
            found[name] = where if isinstance(where, str) else ", ".join(where)
        elif (study / keeping.FOLDER / f"{name}.py").is_file():
            names = problems.get(name).names or (name,)
            found[name] = f"{keeping.FOLDER}.{name}:{', '.join(names)}"
    return {name: place for name, place in found.items() if place}


def _read(file: Path) -> Adopted | None:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is no UTF-8 text: {error}; {_MEND}") from error
    try:
        stored = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file} cannot be read: {error}; {_MEND}") from error
    folder, parts = stored.get("folder"), stored.get("parts", {})
    if not isinstance(folder, str) or not isinstance(parts, dict):
        missing = "[parts]" if isinstance(folder, str) else 'folder = "PATH"'
        raise ValueError(f"{file} does not say {missing} as it should; {_MEND}")
    for name, where in parts.items():
        with suppress(StopIteration):
            at = next(
                n
                for n, line in enumerate(text.splitlines(), 1)
                if re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=", line)
            )
            _expect_part(name, where, f"line {at} of {file}")
    return Adopted(Path(folder), parts, file)


_MEND = "mend this line, or delete the file and `workbook adopt PATH` again"


def _expect_part(name: str, where: Any, at: str) -> None:
    """Raise ValueError unless an entry names a code problem, and an object for it."""
    try:
        problem = problems.get(name)
    except ValueError as error:
        raise ValueError(f"{at}: {error}") from error
    if not problem.form:
        raise ValueError(f"{at}: {name} asks for no code; expected one of {', '.join(CODE)}")
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
    record = {"folder": str(adopted.folder), "parts": dict(by_adopt)}
    write_json(adopted.file.parent / MARK / RECORD, record)


def _by_hand(before: Adopted | None) -> dict[str, Where]:
    """The entries that a hand, or `--set`, has written since `adopt` wrote the file."""
    if before is None:
        return {}
    recorded: dict = {}
    with suppress(OSError, ValueError, KeyError, TypeError):
        text = (before.file.parent / MARK / RECORD).read_text(encoding="utf-8")
        recorded = dict(json.loads(text)["parts"])
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
    """Find a learner's parts in a checkout of the course's repository, and write down where.

    Arguments:
        path: the folder of the checkout; nothing in it is changed. Only what is imported and the
            functions in its `tests/adapters.py` run, in a process of their own.
        given: where a part is, by problem, as "module:object" or "module:save,module:load"; ""
            forgets what was given before.
        study: the study folder, which is made where it is missing.

    Raises: ValueError where an object that is given is not there; OSError, such as for no folder.
    """
    checkout, file = Checkout(path), Path(study) / FILE
    checkout.files  # noqa: B018 - raises where it is no folder of Python code
    wanted = {name: _split(name, where) for name, where in given.items() if where}
    for name, where in wanted.items():
        _expect_part(name, where, "--set")
    before = _read(file)
    kept = {n: each for n, each in _by_hand(before).items() if n not in given}
    hand = {**kept, **wanted}
    refused = dict(_tried(checkout, hand))
    for name, why in refused.items():
        if name in wanted:
            raise ValueError(f"--set {name}={given[name]}: {why}")
    notes = []
    for name, why in refused.items():
        notes.append(f"{name} = {json.dumps(hand.pop(name))}, as {FILE} said, is not there: {why}.")
    found, how, troubles = _found(checkout)
    parts = {name: hand.get(name, found.get(name)) for name in CODE}
    adopted = Adopted(checkout.folder, {n: w for n, w in parts.items() if w is not None}, file)
    adopted.how = {name: BY_HAND if name in hand else how.get(name, "") for name in adopted.parts}
    adopted.notes = [*notes, *_advice(checkout, adopted, troubles)]
    with locked(file.parent / MARK):
        _write(adopted, {name: each for name, each in found.items() if name not in hand})
    return adopted


def _split(name: str, where: str) -> Where:
    each = [part.strip() for part in where.split(",")]
    return each if len(each) > 1 else where


def _tried(checkout: Checkout, parts: Mapping[str, Where]) -> list[tuple[str, str]]:
    """Which of these parts are not there, and why."""
    asked = {name: where for name, where in parts.items() if where}
    if not asked:
        return []
    function = f"{__name__}:refusals"
    return apart.result(function, str(checkout.folder), asked, seconds=SECONDS)


def refusals(folder: str, parts: dict[str, Where]):
    """Yield which parts cannot be imported, or are neither function nor class, with the reasons."""
    checkout, found = Checkout(folder), []
    for name, where in parts.items():
        for each in _both(where):
            try:
                value = checkout.object(each)
                if not (callable(value) or isinstance(value, Path)):
                    raise ValueError(f"it is a {type(value).__name__}, no function or class")
            except ValueError as error:
                found.append((name, str(error)))
                break
    yield found


def _found(checkout: Checkout) -> tuple[dict[str, Where], dict[str, str], list[str]]:
    """What a process of its own finds: once more without running the adapters, where it ended."""
    found: dict[str, Where] = {}
    how: dict[str, str] = {}
    troubles: list[str] = []
    for runs in (True, False):
        function = "workbook.mine.finding:find"
        try:
            for each in apart.results(function, str(checkout.folder), runs, seconds=SECONDS):
                troubles += [each["trouble"]] if "trouble" in each else []
                if "problem" in each and each["problem"] not in found:
                    found[each["problem"]], how[each["problem"]] = each["where"], each["how"]
            break
        except apart.EndedError as error:
            troubles.append(f"looking for your parts was cut short: {error}")
    return found, how, list(dict.fromkeys(troubles))


def _advice(checkout: Checkout, adopted: Adopted, troubles: list[str]):
    """What to do about all that was not found, one sentence a line."""
    for name in CODE:
        if name not in adopted.parts:
            example = f"{name}=module:{(problems.get(name).names or ('main',))[0]}"
            if problems.get(name).form == "pair":
                example = f"{name}=module:save,module:load"
            yield f"Not found: {name}. If you have it: `--set {example}`"
    lacks = {
        name: set().union(*(lacking(checkout, each) for each in _both(where) if each))
        for name, where in adopted.parts.items()
    }
    for package, files in checkout.missing.items():
        needing = ", ".join(name for name, packages in lacks.items() if package in packages)
        of = f"for {needing}" if needing else f"in {files[0].relative_to(checkout.folder)}"
        yield f"Missing {of}: the package {package}; `{how_to_install(package)}`"
    yield from (f"Note: {trouble}" for trouble in troubles)


# Using the parts.


_checkouts: dict[Path, Checkout] = {}


def _checkout(adopted: Adopted) -> Checkout:
    return _checkouts.setdefault(adopted.folder, Checkout(adopted.folder))


def enter(adopted: Adopted) -> None:
    """Make this process able to import from the checkout; once is enough."""
    _checkout(adopted).enter()


def load(adopted: Adopted, problem: str) -> Any:
    """Import the part for a problem: an object, a tuple for a pair, the path of a script.

    Raises: KeyError where none was adopted; ValueError where it cannot be imported, with the why.
    """
    where = adopted.parts.get(problem)
    if not where:
        raise KeyError(problem)
    found = tuple(_checkout(adopted).object(each) for each in _both(where))
    return found if len(found) > 1 else found[0]


def adapter(adopted: Adopted, problem: str) -> Callable | tuple | None:
    """Import the function in the checkout's `tests/adapters.py` for a problem, two for a pair.

    None where there is none, or it is still to write.
    """
    checkout = _checkout(adopted)
    if not checkout.find(ADAPTERS):
        return None
    source = Source(checkout, ADAPTERS)
    names = [name for name in FUNCTIONS.get(problem, ()) if is_written(source, name)]
    checkout.enter()
    module = checkout.imported_adapters() if names else None
    found = tuple(getattr(module, name) for name in names)
    if problem == "checkpointing":
        return found if len(found) == 2 else None
    return next(iter(found), None)
