"""Solved code, kept as files that run on their own: `study/mine/softmax.py`.

An attempt needs more than its own lines: imports, constants, helpers, base classes. One rule finds
them, starting from the name of the attempt: each statement at the top level of a cell, or of one of
the learner's files, that binds or changes a needed name is needed, and so are the names that it
reads. Of several definitions the last one counts. Imports come first, the rest in the order in
which it ran. What the rule does not find is told, and no file is written: `collect` sees what is
missing, and `why_not_alone` imports the result in a clean process.

What is kept is what was judged. The rule reads text, and an object need not be what the text says:
`exec`, `globals()` and `setattr` leave none. So the objects of the new module are compared with
those that were judged, and where they are not seen to be the same code, the module is judged too.
"""

import ast
import builtins
import copyreg
import dis
import inspect
import json
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import decode_source, resolve_name
from itertools import count
from pathlib import Path
from types import (
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

from workbook.classroom.checks.machinery import judging, worker
from workbook.classroom.checks.machinery.loading import LOAD_SECONDS, load_file
from workbook.classroom.checks.machinery.verdicts import CACHED, failure, innermost, is_learners
from workbook.classroom.panels import SIGNS
from workbook.classroom.problems import PROBLEMS, Problem, with_id
from workbook.classroom.study.progress import MARK, Part
from workbook.config import PACKAGE
from workbook.files import atomic_write, notebooks_in

FOLDER = "mine"
KEPT = "# {}, kept when its check said {}"  # the first line; "decoding:" would name an encoding
NOT_RUN = "This is about the version before cell [{}], which rewrites it but stopped at an error."
REMEDY = (
    "Define all that it needs in cells or a file of your own, run them from top to bottom, and"
    " check again."
)
OUTDATED = (
    "It is not kept: what your cells and files define last is another version than the one that was"
    ' checked, and its own check says "{}". Define the right one in a cell, with `def` or `class`,'
    " or import it from a file of your own, and check again."
)
NOT_OWN = "it is imported, not your own code"
OTHER = "it is another version than the one that was checked"
IMPORT_SECONDS = 60  # on a busy machine torch alone takes ten
# A kernel adds to Python's own names some that only a notebook has.
BUILTINS = set(dir(builtins)) - {"display", "get_ipython"}
MAGIC = re.compile(r"\A\s*%%(time|capture|prun)\b.*\n")  # of cells that are Python below it
CONTAINERS = (list, dict, set, bytearray)  # whose methods change them
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.Match)  # may not run what is inside
READS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"}  # of names that are not local


def status_of(source: str, problem: str) -> str | None:
    """Read from a kept file's first line what the check said; None if it is not such a file."""
    first = source.partition("\n")[0]
    return next((status for status in SIGNS if first == KEPT.format(problem, status)), None)


def stored(study: Path) -> dict[str, tuple[str, str]]:
    """What checks kept in a study folder: by problem, its source and what the check said.

    A file of the learner's own, or one whose first line they changed, is none of these.
    """
    sources = {}
    for path in sorted((study / FOLDER).glob("*.py")):
        if path.stem in PROBLEMS and path.is_file():
            source = path.read_text("utf-8", errors="replace")
            if status := status_of(source, path.stem):
                sources[path.stem] = source, status
    return sources


def imported(
    path: Path, problem: Problem, seconds: float = LOAD_SECONDS
) -> tuple[tuple[str, ...], Any]:
    """Import a file that was kept for a problem: the names, and the object or the pair of them.

    Raises: as `load_file`.
    """
    module = load_file(path, f"workbook_study_{problem.id}", seconds)
    # What a file of the study folder defines for its problem is in its `__all__`.
    names = tuple(getattr(module, "__all__", problem.names))
    things = tuple(getattr(module, name) for name in names)
    return names, things if len(things) > 1 else things[0]


def why_not_alone(source: str, name: str, judged: tuple = ()) -> str:
    """Import a module of this source in a process of its own; return what it raises, or "".

    The process is clean but for the libraries that a check needs, which are loaded already: a
    verdict waits for this, and importing torch alone takes seconds. It has an empty folder to work
    in, and is ended after `IMPORT_SECONDS`.

    Arguments:
        judged: the objects that a check has judged. Where what the module hands out is not seen to
            be the same code, `OTHER` is returned.
    """
    try:
        return worker.result(tried_import, source, name, judged, seconds=IMPORT_SECONDS)
    except worker.EndedError as error:
        return f"{error}"


def tried_import(source: str, name: str, judged: tuple) -> Iterator[str]:
    """Yield what `why_not_alone` returns; in a worker."""
    path = Path(f"{name}.py").resolve()
    path.write_text(source, encoding="utf-8")
    try:
        module = load_file(path, name)
    except BaseException as error:
        yield traceback.format_exception_only(error)[-1].strip()
        return
    handed_out = tuple(getattr(module, each) for each in getattr(module, "__all__", ()))
    yield "" if not judged or is_same_code(judged, handed_out) else OTHER


def keep_code(
    folder: Path,
    problem: Problem,
    attempt: Any,
    status: str,
    before: Part,
) -> tuple[tuple | None, str]:
    """Keep an attempt that passed as `mine/PROBLEM.py` in a study folder.

    Arguments:
        status: what the check said of it.
        before: the record of what was kept last; a file that says something else was edited by
            hand, and is not overwritten but moved aside.

    Returns a pair: the source and why it cannot be imported on its own ("": it can), or None if
    nothing of it can be kept, or if what was kept before works and this does not; and a sentence
    for the learner. A source that does not work on its own is for the write-up: no file is written.
    A source that is not what was judged is kept if it gets the same verdict, or else not at all.
    """
    names = problem.names or (getattr(attempt, "__name__", problem.id),)
    not_own = own_cells(folder, problem) if shell() is not None else frozenset()
    source, trouble = collect(attempt, names, not_own)
    if not source:
        return None, f"It is not kept: {trouble}. {REMEDY}"
    source = f"{KEPT.format(problem.id, status)}\n{source}"
    if not trouble and (source, "") != (before.source, before.trouble):
        trouble = why_not_alone(source, problem.id, tuple(_in_order(attempt, names)))
    if trouble == OTHER:
        again = judging.from_worker(judge_source, problem, None, source, IMPORT_SECONDS).status
        if again != status:
            return None, OUTDATED.format(again)
        trouble = ""
    if trouble and before.trouble == "" and status_of(before.source, problem.id) == status:
        return None, f"What was kept before stays, as this does not work on its own: {trouble}."
    path = folder / FOLDER / f"{problem.id}.py"
    return (source, trouble), _write_kept(path, source, trouble, before)


def _write_kept(path: Path, source: str, trouble: str, before: Part) -> str:
    """Write the file of a solution, if it works on its own; say where it is, or why not."""
    try:
        make_way(path, set() if trouble else {before.source, source})
        if trouble:
            return f"It is not kept as a file, as it does not work on its own: {trouble}. {REMEDY}"
        with atomic_write(path) as file:
            file.write(source)
    except OSError as error:
        return f"Its code is kept in your progress, but not as a file: {error}."
    # As JupyterLab shows it; in full only for a command that was called somewhere else.
    study = path.parents[1]
    where = path.relative_to(study.parent) if Path.cwd() in (study, study.parent) else path
    return f"Kept as `{where}`: it holds all that it needs, and can be imported on its own."


def judge_source(problem: str, source: str, seconds: float) -> Iterator[dict]:
    """Yield the report on what a module of this source hands out; in a worker.

    `seconds` is how long its import may take.
    """
    path = Path("..", f"{problem}.py").resolve()  # beside the empty folder that it is judged in
    path.write_text(source, encoding="utf-8")
    try:
        _, attempt = imported(path, with_id(problem), seconds)
    except Exception as error:
        claim = f"It cannot be imported any more: {failure(error)}."
        yield judging.Report("wrong", problem, None, claim).to_json()
    else:
        yield judging.judge_here(problem, attempt, None).to_json()


def make_way(path: Path, known: set[str]) -> None:
    """Rename a file that holds something else than is known."""
    if path.exists() and path.read_text("utf-8", errors="replace") not in known:
        names = (path.with_name(f"{path.stem}-{n}.py") for n in count(1))
        path.replace(next(name for name in names if not name.exists()))


def own_cells(folder: Path, problem: Problem) -> frozenset[str]:
    """List digests of the workbook's own cells, of this version and of those copied before."""
    from workbook.classroom.study import copy, notebooks  # not in each kernel: they load nbformat

    worked = [copy.fresh(path) for path in notebooks.find_worked([problem.notebook])]
    for path in [*notebooks_in(folder), *notebooks_in(folder / MARK / "backup")]:
        with suppress(OSError, ValueError):
            worked.append(notebooks.read_notebook(path))
    notes = [cell.metadata.get("workbook", {}) for notebook in worked for cell in notebook.cells]
    noted = [note for note in notes if "original" in note and note.get("role") not in copy.STUBS]
    return frozenset(note["original"][:8] for note in noted)


def collect(attempt: Any, names: tuple[str, ...], not_own: frozenset[str] = frozenset()) -> tuple:
    """Write a module that holds an attempt and all that it needs, and nothing else.

    Arguments:
        attempt: a function, a class, or a pair of these (a dict of two counts as one).
        names: what the problem calls them; the module has them under these names, and in `__all__`.
        not_own: digests of cells that are not the learner's: only their imports are taken.

    Returns the source ("" if there is none), and what is missing from it ("" if nothing is known).
    """
    attempts = _in_order(attempt, names)
    if len(attempts) != len(names):
        return "", f"expected {' and '.join(names)}, got {len(attempts)} objects"
    gathered = _Gathered(not_own)
    held = {}
    for name, thing in zip(names, attempts, strict=True):
        home = _home(thing)
        if home is None:
            return "", NOT_OWN
        own = getattr(thing, "__name__", "")
        if home.get(own) is not thing:
            called = (key for key, value in home.items() if value is thing and key[:1] != "_")
            own = next(called, "")
        if not own:
            return "", f"it has no name; write `{name} = ...` in a cell or file, and check `{name}`"
        held[name] = own
        gathered.need(gathered.space(home), own)
    return gathered.module(held)


def _in_order(attempt: Any, names: tuple[str, ...]) -> list[Any]:
    """List the objects of an attempt in the order of the names, as the check takes them."""
    attempts = list(attempt.values()) if isinstance(attempt, dict) else attempt
    attempts = list(attempts) if isinstance(attempts, list | tuple) else [attempts]
    if len(names) == 2:
        attempts.sort(key=lambda function: "load" in getattr(function, "__name__", ""))
    return attempts


@dataclass(frozen=True)
class Statement:
    """One statement of a cell, or of the top level of a file."""

    node: ast.stmt
    text: str
    is_ours: bool  # of a cell that is not the learner's
    binds: set[str]
    now: set[str]  # names that it reads when it runs
    later: set[str]  # names that functions and classes inside it read
    sets: set[str]  # names whose items or attributes it sets
    calls: set[str]  # names whose methods it calls without using the result
    sets_later: set[str]  # names that its functions set, by `global`
    codes: list[CodeType]  # of the functions and classes inside it

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    def changes(self, name: str, value: Any) -> bool:
        """Whether it changes the value that a name stands for: a module's settings do not count."""
        is_set = name in self.sets and not isinstance(value, ModuleType)
        return is_set or (name in self.calls and isinstance(value, CONTAINERS))

    def binds_anew(self, name: str) -> bool:
        """Whether nothing of what the name stood for before is left."""
        # `import torch.nn` and `import torch.optim` both make `torch`.
        adds = isinstance(self.node, ast.Import) and name not in {a.asname for a in self.node.names}
        may_run = isinstance(self.node, BRANCHES)
        return name in self.binds and name not in self.now and not (adds or may_run)


@dataclass(eq=False)
class _Space:
    """The names of a notebook's kernel or of a module, and the statements that made them."""

    names: dict[str, Any]
    statements: list[Statement]
    needed: set[str] = field(default_factory=set)
    taken: set[int] = field(default_factory=set)  # by their place in the list
    stand_ins: dict[str, str] = field(default_factory=dict)  # for imports, by name: the import

    def makers_of(self, name: str) -> list[int]:
        """Find the statements that made what a name stands for, from its last definition on."""
        value = self.names.get(name)
        made = list[int]()
        for place, statement in enumerate(self.statements):
            if statement.binds_anew(name):
                made = []
            is_changed = statement.changes(name, value) and not statement.is_ours
            if name in statement.binds or is_changed:
                made.append(place)
        return made


@dataclass
class _Gathered:
    """The statements taken so far, by namespace, and what is written above them."""

    not_own: frozenset[str]  # digests of cells that are not the learner's
    spaces: dict[int, _Space] = field(default_factory=dict)  # by the id of the dict of names
    imports: set[str] = field(default_factory=set)
    owners: dict[str, tuple[_Space, str]] = field(default_factory=dict)  # of the names
    troubles: list[str] = field(default_factory=list)

    def space(self, names: dict[str, Any]) -> _Space:
        """Find the namespace of a dict of names; those of the files it imports come before it."""
        if id(names) not in self.spaces:
            space = self.spaces[id(names)] = _Space(names, list(_statements(names, self.not_own)))
            nodes: list[Any] = [s.node for s in space.statements if s.is_import]
            for node in nodes:
                modules = [names.get(alias.asname or alias.name) for alias in node.names]
                modules += [_module(node, names)] if isinstance(node, ast.ImportFrom) else []
                for module in filter(_is_own, modules):
                    self.space(vars(module))
            self.spaces[id(names)] = self.spaces.pop(id(names))  # to the end
        return self.spaces[id(names)]

    def need(self, space: _Space, name: str) -> None:
        """Take the statements that made a name, and those that made what they read."""
        todo = [(space, name)]
        while todo:
            space, name = todo.pop()
            if name in space.needed:
                continue
            space.needed.add(name)
            makers = space.makers_of(name)
            is_known = name in space.names or hasattr(builtins, name)
            if not makers and is_known and name not in BUILTINS and name[:2] != "__":
                self.troubles.append(f"no statement of your cells or files makes `{name}`")
            for place in makers:
                statement = space.statements[place]
                if statement.is_import:
                    todo += self._import(space, statement.node, name)
                elif statement.is_ours:
                    self.troubles.append(f"it uses `{name}`, which the notebook's own cell makes")
                elif place not in space.taken:
                    space.taken.add(place)
                    todo += self._take(space, statement)

    def _take(self, space: _Space, statement: Statement) -> Iterator[tuple[_Space, str]]:
        """List what a statement needs."""
        for name in statement.binds:
            self._own(space, name, statement.text)
        reads = statement.now | statement.later
        yield from ((space, name) for name in sorted(reads))
        for node in ast.walk(statement.node):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = space.names.get(node.value.id)
                if node.value.id in reads and _is_own(module):
                    yield self.space(vars(module)), node.attr
            elif isinstance(node, ast.ImportFrom) and _is_own(_module(node, space.names)):
                self.troubles.append(f"`{ast.unparse(node)}` is not at the top of your file")

    def _own(self, space: _Space, name: str, text: str) -> None:
        owner = self.owners.setdefault(name, (space, text))
        if owner[0] is not space and owner[1] != text:
            self.troubles.append(f"two of your files mean different things by `{name}`")

    def _import(self, space: _Space, node: Any, name: str) -> Iterator[tuple[_Space, str]]:
        """Note the import of a name; of the learner's own files it lists what is needed instead."""
        alias = next(a for a in node.names if name == (a.asname or a.name.partition(".")[0]))
        line = f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
        value = space.names.get(name)
        if isinstance(node, ast.ImportFrom):
            module = _module(node, space.names)
            if _is_own(module) and not isinstance(value, ModuleType):
                yield self.space(vars(module)), alias.name
                if alias.asname:
                    space.stand_ins[name] = alias.name
                return
            line = f"from {'.' * node.level}{node.module or ''} {line}"
        self._own(space, name, line)
        if _is_own(value) or line.split()[1].partition(".")[0] == PACKAGE.name:
            space.stand_ins[name] = line
        else:
            self.imports.add(line)

    def module(self, held: dict[str, str]) -> tuple[str, str]:
        """Write the module; `held` has what each name to hand out is called in it."""
        if not any(space.taken for space in self.spaces.values()):
            return "", next(iter(self.troubles), NOT_OWN)
        blocks = [block for space in self.spaces.values() for block in self._blocks(space)]
        handed_out = []
        for name, own in held.items():
            if name not in self.owners:
                blocks.append(f"{name} = {own}")
                own = name
            handed_out.append(f'"{own}"')
        blocks.append(f"__all__ = [{', '.join(handed_out)}]\n")
        source = "\n\n".join(["\n".join(self._top()), *blocks]).lstrip()
        return source, next(iter(self.troubles), "")

    def _top(self) -> list[str]:
        """List the lines of the imports, `import` before `from`."""
        future = "from __future__ import annotations"  # holds in the cells below too
        texts = {statement.text for space in self.spaces.values() for statement in space.statements}
        imports = sorted(self.imports, key=lambda line: (line.startswith("from"), line))
        return [future, *imports] if future in texts else imports

    def _blocks(self, space: _Space) -> list[str]:
        """List what is written of a namespace: stand-ins for imports, then what was taken."""
        taken = [space.statements[place] for place in sorted(space.taken)]
        nodes = [node for statement in taken for node in ast.walk(statement.node)]
        for statement in space.statements:
            if statement not in taken and space.needed & statement.sets_later:
                first = statement.text.partition("\n")[0]
                self.troubles.append(f"`{first}` sets what it needs, by `global`")
        stand_ins = [self._stand_in(space, name, nodes) for name in space.stand_ins]
        return [*filter(None, stand_ins), *(statement.text for statement in taken)]

    def _stand_in(self, space: _Space, name: str, nodes: list[ast.AST]) -> str:
        """Write what an import brings in from the learner's files, or from our package.

        The course does not install that: where only plain values of it are used, these are kept.
        Returns "" where the import itself stays.
        """
        line = space.stand_ins[name]
        value = space.names.get(name)
        if line.isidentifier():  # another name of one of the learner's objects
            return f"{name} = {line}"
        if type(value) in (str, int):
            return f"{name} = {value!r}"
        uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
        asked = [n.attr for n in nodes if isinstance(n, ast.Attribute) and n.value in uses]
        values = {attribute: getattr(value, attribute, None) for attribute in sorted(asked)}
        own = _is_own(value)
        are_plain = all(type(part) in (str, int) for part in values.values())
        if not own and not (isinstance(value, ModuleType) and are_plain):
            self.imports.add(line)
            return ""
        if len(asked) < len(uses) or any(isinstance(e, ModuleType) for e in values.values()):
            self.troubles.append(f"`{line}` takes a whole file")
        self.imports.add("from types import SimpleNamespace")
        fields = [f"{key}={key if own else repr(values[key])}" for key in values]
        return f"{name} = SimpleNamespace({', '.join(fields)})"


def _statements(names: dict[str, Any], not_own: frozenset[str]) -> Iterator[Statement]:
    """List the statements that ran in a namespace: of a kernel's cells, or of a module's file."""
    ipython = shell()
    if ipython is not None and ipython.user_ns is names:
        from workbook.classroom.study.notebooks import digest

        for raw in ipython.history_manager.input_hist_raw:
            is_ours = digest(SimpleNamespace(cell_type="code", source=raw)) in not_own
            yield from parsed(MAGIC.sub("", raw), is_ours, ipython.transform_cell)
        return
    with suppress(OSError, SyntaxError, TypeError):  # None for a folder's file
        yield from parsed(_source_in(Path(names.get("__file__"))))


def _source_in(path: Path) -> str:
    """The text of a module: Python forgives a comment for bytes of another encoding."""
    stored = path.read_bytes()
    try:
        return decode_source(stored)
    except (UnicodeError, SyntaxError):  # in a first line it is the latter
        return stored.decode(errors="replace")


def shell() -> Any:
    """Return the IPython that runs us, or None."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None else None


def make_ready() -> None:
    """Have a new kernel judge without delay, and know what its notebook imports.

    The imports of the notebook's own first cell run before whatever cell comes first: after a
    restart, that is seldom the one at the top. They wait for it, because a kernel that takes long
    to start is given up. VS Code says in the kernel which notebook it is, Jupyter's server in the
    environment.
    """
    worker.start()  # the first check then need not wait for torch
    ipython = shell()

    def run_imports(_: Any) -> None:
        ipython.events.unregister("pre_run_cell", run_imports)
        with suppress(Exception):  # the cell at the top then says what is wrong
            path = ipython.user_ns.get("__vsc_ipynb_file__") or os.environ["JPY_SESSION_NAME"]
            cells = json.loads(Path(path).read_bytes())["cells"]
            ours = [c for c in cells if c["metadata"].get("workbook", {}).get("role") == "setup"]
            statements = parsed("".join(ours[0]["source"]), transform=ipython.transform_cell)
            imports = "\n".join(each.text for each in statements if each.is_import)
            ipython.history_manager.input_hist_raw[0] = imports  # the place before the first cell
            exec(imports, ipython.user_ns)

    ipython.events.register("pre_run_cell", run_imports)


def not_run(attempt: Any) -> str:
    """Say so where the newest cell that writes an attempt stopped at an error before it did.

    What was handed in is then what an earlier cell wrote.
    """
    ipython = shell()
    if ipython is None:
        return ""
    for thing in attempt if isinstance(attempt, tuple | list) else (attempt,):
        is_named = inspect.isclass(thing) or inspect.isroutine(thing)
        if is_named and getattr(thing, "__module__", None) == "__main__":
            number = _stopped_after(thing, ipython)
            if number is not None:
                return NOT_RUN.format(number)
    return ""


def _stopped_after(thing: Any, ipython: Any) -> int | None:
    """Find the newest cell that writes a name, if it stopped at an error and `thing` is older."""
    codes = [f.__code__ for f in _functions(thing) if f.__code__.co_filename != "<string>"]
    if not codes:  # nothing shows which cell wrote it
        return None
    stopped = getattr(ipython.history_manager, "exceptions", {})  # by the number of the cell
    definition = re.compile(rf"^(async )?(def|class) {re.escape(thing.__name__)}\b", re.M)
    newest = None
    for number, raw in reversed([*enumerate(ipython.history_manager.input_hist_raw)]):
        cell = MAGIC.sub("", raw)
        statements = parsed(cell, transform=ipython.transform_cell)
        written = [code for statement in statements for code in statement.codes]
        if all(any(is_same_code(code, other) for other in written) for code in codes):
            return newest
        if newest is None and statements:
            if any(thing.__name__ in statement.binds for statement in statements):
                if number not in stopped:
                    return None
                newest = number
        elif newest is None and definition.search(cell):  # it is no Python, and has not run
            newest = number
    return None


@lru_cache(maxsize=1000)
def parsed(cell: str, is_ours: bool = False, transform: Callable = str) -> list[Statement]:
    """Split the code of a cell into statements; a cell that is not Python has none.

    `transform` replaces magics; it raises a SyntaxError of its own where the indentation is odd.
    """
    statements = []
    # Python has warned when the cell ran.
    with suppress(SyntaxError, ValueError), warnings.catch_warnings(action="ignore"):
        cell = transform(cell)
        for node in ast.parse(cell).body:
            test = ast.unparse(node.test) if isinstance(node, ast.If) else ""
            if test != "__name__ == '__main__'":
                text = _text(cell, node)
                flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
                code, *inside = _with_inner(compile(text, "<statement>", "exec", flags, True))
                names = _names(node, code, inside)
                changes = _changes(node)
                statements.append(Statement(node, text, is_ours, *names, *changes, inside))
    return statements


def _text(cell: str, node: ast.stmt) -> str:
    """Return a statement as it was typed, with its decorators and the comments right above it."""
    lines = re.split("\r\n?|\n", cell)  # `splitlines` knows more line ends than Python's parser
    decorators = getattr(node, "decorator_list", [])
    first = min(part.lineno for part in (node, *decorators))
    before = lines[node.lineno - 1].encode()[: node.col_offset]
    after = lines[node.end_lineno - 1].encode()[node.end_col_offset :].strip()
    if before.strip() or after.startswith(b";"):  # not alone on its lines
        return ast.get_source_segment(cell, node)
    while first > 1 and re.match(r"#(?! ?%%)", lines[first - 2]):
        first -= 1
    return "\n".join(lines[first - 1 : node.end_lineno])


def _names(
    node: ast.stmt, code: CodeType, inside: list[CodeType]
) -> tuple[set[str], set[str], set[str]]:
    """List the names that a statement binds, reads when it runs, and reads in code inside it."""
    # A function does not evaluate the annotations of its local names, but its reader does.
    notes = [e.annotation for e in ast.walk(node) if isinstance(e, ast.AnnAssign)]
    noted = {e.id for note in notes for e in ast.walk(note) if isinstance(e, ast.Name)}
    return names_bound(code), _reads(code), noted.union(*map(_reads, inside))


def names_bound(code: CodeType) -> set[str]:
    """List the names that the code of a statement, at the top level of a file, binds."""
    return {e.argval for e in dis.get_instructions(code) if e.opname == "STORE_NAME"}


def _with_inner(code: CodeType) -> list[CodeType]:
    """List code, and the code of the functions and classes inside it."""
    codes = [code]
    for outer in codes:  # which grows
        codes += [constant for constant in outer.co_consts if isinstance(constant, CodeType)]
    return codes


def _reads(code: CodeType) -> set[str]:
    """List the names that code takes from around it, and has not stored before; no local names."""
    reads = set()
    stored = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_NAME", "STORE_GLOBAL"):
            stored.add(instruction.argval)
        elif instruction.opname in READS and instruction.argval not in stored:
            reads.add(instruction.argval)
    return reads


def _changes(node: ast.AST) -> tuple[set[str], set[str], set[str]]:
    """List the names that a statement changes or calls, as `Statement` has them."""
    sets = set()
    calls = set()
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, SCOPES):  # what a function would do if it were called
            continue
        todo += ast.iter_child_nodes(part)
        is_target = isinstance(getattr(part, "ctx", None), ast.Store | ast.Del)
        if isinstance(part, ast.Subscript | ast.Attribute) and is_target:
            sets |= _root(part)
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
            calls |= _root(part.value.func)
    sets_later = {name for e in ast.walk(node) if isinstance(e, ast.Global) for name in e.names}
    return sets, calls, sets_later


def _root(node: ast.expr) -> set[str]:
    """Return the name that an expression such as `a.b[0].c` begins with, in a set, or none."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _functions(value: Any) -> Iterator[FunctionType]:
    """List the function that a value is or wraps, or those that its class wrote."""
    for member in vars(value).values() if isinstance(value, type) else [value]:
        member = innermost(member)
        if isinstance(member, FunctionType) and member.__module__ == value.__module__:
            yield member


def _home(attempt: Any) -> dict[str, Any] | None:
    """Find the names around an attempt: of the kernel, or of the file that it was written in."""
    names = next((function.__globals__ for function in _functions(attempt)), None)
    if names is None and (ipython := shell()) is not None:
        names = ipython.user_ns
    return names if names is not None and _is_file_own(names) else None


def _is_own(module: Any) -> bool:
    """Tell whether something is a module of the learner's, not Python's, ours or installed."""
    return isinstance(module, ModuleType) and _is_file_own(vars(module))


def _is_file_own(names: dict[str, Any]) -> bool:
    """Whether the names are those of the learner's notebook, or of a file of theirs."""
    places = [names.get("__file__"), *names.get("__path__", [])]
    path = next(filter(None, places), None)
    return is_learners(os.path.realpath(path)) if path else names.get("__name__") == "__main__"


def _module(node: ast.ImportFrom, names: dict[str, Any]) -> ModuleType | None:
    """Find the module that `from module import name` names."""
    return sys.modules.get(origin(node, names.get("__package__") or ""))


def origin(node: ast.ImportFrom, package: str) -> str:
    """The module that a statement in a package takes names from; "" where its dots lead outside."""
    dots = "." * node.level
    with suppress(ImportError):
        return resolve_name(f"{dots}{node.module or ''}", package)
    return ""


def is_same_code(one: Any, other: Any) -> bool:
    """Whether two objects are seen to be the same code, with the same values around it.

    False means no more than that this is not seen.
    """
    with suppress(Exception):  # what cannot be looked into is not seen
        return _Comparison().agrees(one, other)
    return False


# What an object of these types is made of.
MADE_OF: dict[type, tuple[str, ...]] = {
    CodeType: (
        "co_code",
        "co_consts",
        "co_names",
        "co_varnames",
        "co_freevars",
        "co_cellvars",
        "co_argcount",
        "co_posonlyargcount",
        "co_kwonlyargcount",
        "co_exceptiontable",
    ),
    FunctionType: ("__code__", "__defaults__", "__kwdefaults__", "__closure__", "__dict__"),
    MethodType: ("__func__", "__self__"),
    classmethod: ("__func__",),
    staticmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    CACHED: ("__wrapped__",),
    CellType: ("cell_contents",),
    MemberDescriptorType: ("__name__",),
    GetSetDescriptorType: ("__name__",),
}
PLAIN = (int, float, complex, bool, str, bytes, type(None), type(...))
# Attributes of classes that say where a class stands, or that only readers of its text need.
NOT_COMPARED = {
    "__module__",
    "__doc__",
    "__dict__",
    "__weakref__",
    "__slotnames__",
    "_abc_impl",
    "__annotations__",
    "__orig_bases__",
    "__parameters__",
    "__type_params__",
    "__firstlineno__",  # this and the next: from 3.13 on
    "__static_attributes__",
}
OUT_OF_SIGHT = {"globals", "vars", "locals", "eval", "exec", "__import__", "__main__"}
KIND_OF_FUNCTION = 0xFFFF  # the flags of code without those of `from __future__ import`


class _Comparison:
    """Walks two objects side by side, and whatever they are made of."""

    def __init__(self):
        # By id, the two objects that were met there. They stay alive, so that no id is used twice.
        self.met: dict[int, tuple[Any, Any]] = {}

    def agrees(self, one: Any, other: Any) -> bool:
        if one is other:
            return True
        if type(one) in PLAIN:
            return type(one) is type(other) and repr(one) == repr(other)
        if id(one) in self.met or id(other) in self.met:
            first, second = self.met.get(id(one), (None, None))
            return first is one and second is other
        self.met[id(one)] = self.met[id(other)] = one, other
        if isinstance(one, type) and isinstance(other, type):
            return self._classes_agree(one, other)
        if type(one) is type(other):
            if type(one) in MADE_OF:
                return self._parts_agree(one, other)
            if type(one) in (tuple, list):
                return len(one) == len(other) and all(map(self.agrees, one, other))
            if type(one) in (set, frozenset):
                return self.agrees(sorted(one, key=repr), sorted(other, key=repr))
            if type(one) is dict:
                return self.agrees([*one.items()], [*other.items()])
        return self.agrees(_as_copied(one), _as_copied(other))

    def _classes_agree(self, one: type, other: type) -> bool:
        ours = {name: value for name, value in vars(one).items() if name not in NOT_COMPARED}
        theirs = {name: value for name, value in vars(other).items() if name not in NOT_COMPARED}
        return (
            self.agrees(type(one), type(other))
            and self.agrees(one.__bases__, other.__bases__)
            and ours.keys() == theirs.keys()
            and all(self.agrees(value, theirs[name]) for name, value in ours.items())
        )

    def _parts_agree(self, one: Any, other: Any) -> bool:
        if isinstance(one, CodeType) and (one.co_flags ^ other.co_flags) & KIND_OF_FUNCTION:
            return False
        for part in MADE_OF[type(one)]:
            if not self.agrees(getattr(one, part), getattr(other, part)):
                return False
        if not isinstance(one, FunctionType) or one.__globals__ is other.__globals__:
            return True
        reads = {
            instruction.argval
            for code in _with_inner(one.__code__)
            for instruction in dis.get_instructions(code)
            if instruction.opname in {"IMPORT_NAME", *READS}
        }
        return reads.isdisjoint(OUT_OF_SIGHT) and all(
            self.agrees(_global(one, name), _global(other, name)) for name in reads
        )


def _global(function: FunctionType, name: str) -> Any:
    """Return what a name outside of a function stands for; `...` if it stands for nothing."""
    built_in = getattr(function, "__builtins__", {})
    return function.__globals__.get(name, built_in.get(name, ...))


def _as_copied(value: Any) -> list[Any]:
    """List what pickle makes a copy of an object from. Raises: TypeError if that is nothing."""
    reduce = copyreg.dispatch_table.get(type(value))
    parts = reduce(value) if reduce else value.__reduce_ex__(4)
    if isinstance(parts, str):
        raise TypeError(f"{parts} is found by its name")
    return [list(part) if isinstance(part, Iterator) else part for part in parts]
