"""Solved code, kept as files that run on their own: `study/mine/softmax.py`.

An attempt needs more than its own lines: imports, constants, helpers, base classes. One rule finds
them, starting from the name of the attempt: each statement at the top level of a cell, or of one of
the learner's files, that binds or changes a needed name is needed, and so are the names that it
reads. Of several definitions the last one counts. Imports come first, the rest in the order in
which it ran. What the rule does not find is told, and no file is written: `collect` sees what is
missing or stale, and `why_not_alone` imports the result in a clean process.
"""

import ast
import builtins
import dis
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import decode_source, module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from workbook.classroom.checks import worker
from workbook.classroom.checks.verdicts import is_learners, unwrapped
from workbook.classroom.study.problems import PROBLEMS, Problem
from workbook.classroom.study.progress import MARK, SIGNS, Part
from workbook.files import atomic_write, notebooks_in

FOLDER = "mine"
KEPT = "# {}, kept when its check said {}"  # the first line; "decoding:" would name an encoding
NOT_RUN = "This is about the version before cell [{}], which rewrites it but stopped at an error."
IMPORT_SECONDS = 60  # on a busy machine torch alone takes ten
OURS = __name__.partition(".")[0]
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


def imported(path: Path, problem: Problem) -> tuple[tuple[str, ...], Any]:
    """Import a file that was kept for a problem: the names, and the object or the pair of them.

    Raises: what the import raises.
    """
    name = f"workbook_study_{problem.id}"
    spec = spec_from_file_location(name, path)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    # What a file of the study folder defines for its problem is in its `__all__`.
    names = tuple(getattr(module, "__all__", problem.names))
    things = tuple(getattr(module, name) for name in names)
    return names, things if len(things) > 1 else things[0]


def why_not_alone(source: str, name: str) -> str:
    """Import a module of this source in a process of its own; return what it raises, or "".

    The process is clean but for the libraries that a check needs, which are loaded already: a
    verdict waits for this, and importing torch alone takes seconds. It has an empty folder to work
    in, and is ended after `IMPORT_SECONDS`.
    """
    if worker.is_inside:
        return _in_new_python(source, name)
    try:
        return worker.result(f"{__name__}:tried_import", source, name, seconds=IMPORT_SECONDS)
    except worker.EndedError as error:
        return f"{error}"


def tried_import(source: str, name: str) -> Iterator[str]:
    """Yield what the import of a module of this source raises, "" if nothing; in a worker."""
    path = Path(f"{name}.py").resolve()
    path.write_text(source, encoding="utf-8")
    spec = spec_from_file_location(name, path)
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        yield traceback.format_exception_only(error)[-1].strip()
    else:
        yield ""


def _in_new_python(source: str, name: str) -> str:
    """The same for a worker, which has run code of the learner's and has no server of its own."""
    quiet: Any = {"stdin": subprocess.DEVNULL, "capture_output": True, "errors": "replace"}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"{name}.py").write_text(source, encoding="utf-8")
        # First in the path: a library may have the name of a problem.
        code = f"import sys; sys.path.insert(0, {folder!r}); import {name}"
        run = [sys.executable, "-c", code]
        try:
            ended = subprocess.run(run, cwd=folder, timeout=IMPORT_SECONDS, **quiet)
        except subprocess.TimeoutExpired:
            return f"it was stopped after {IMPORT_SECONDS} s"
    if ended.returncode == 0:
        return ""
    lines = ended.stderr.strip().splitlines()
    return lines[-1] if lines else f"Python ended with status {ended.returncode}"


def keep_code(
    folder: Path, problem: Problem, attempt: Any, status: str, before: Part
) -> tuple[tuple | None, str]:
    """Keep an attempt that passed as `mine/PROBLEM.py` in a study folder.

    Arguments:
        status: what the check said of it.
        before: the record of what was kept last; a file that says something else was edited by
            hand, and is not overwritten but moved aside.

    Returns a pair: the source and why it cannot be imported on its own ("": it can), or None if
    nothing of it can be kept, or if what was kept before works and this does not; and a sentence
    for the learner. A source that does not work on its own is for the write-up: no file is written.
    """
    names = problem.names or (getattr(attempt, "__name__", problem.id),)
    not_own = _own_cells(folder, problem) if shell() is not None else frozenset()
    source, trouble = collect(attempt, names, not_own)
    if not source:
        return None, f"It is not kept: {trouble}."
    source = f"{KEPT.format(problem.id, status)}\n{source}"
    if not trouble and (source, "") != (before.source, before.trouble):
        trouble = why_not_alone(source, problem.id)
    if trouble and before.trouble == "" and status_of(before.source, problem.id) == status:
        return None, f"What was kept before stays, as this does not work on its own: {trouble}."
    path = folder / FOLDER / f"{problem.id}.py"
    try:
        make_way(path, set() if trouble else {before.source, source})
        if trouble:
            return (source, trouble), (
                f"It is not kept as a file, as it does not work on its own: {trouble}. Define all"
                " that it needs in cells or a file of your own, run them from top to bottom, and"
                " check again."
            )
        with atomic_write(path) as file:
            file.write(source)
    except OSError as error:
        return (source, trouble), f"Its code is kept in your progress, but not as a file: {error}."
    # As JupyterLab shows it; in full only for a command that was called somewhere else.
    is_near = Path.cwd() in (folder, folder.parent)
    where = f"Kept as `{path.relative_to(folder.parent) if is_near else path}`"
    return (source, ""), f"{where}: it holds all that it needs, and can be imported on its own."


def make_way(path: Path, known: set[str]) -> None:
    """Rename a file that holds something else than is known."""
    if path.exists() and path.read_text("utf-8", errors="replace") not in known:
        names = (path.with_name(f"{path.stem}-{n}.py") for n in count(1))
        path.replace(next(name for name in names if not name.exists()))


def _own_cells(folder: Path, problem: Problem) -> frozenset[str]:
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
    attempts = list(attempt.values()) if isinstance(attempt, dict) else attempt
    attempts = list(attempts) if isinstance(attempts, list | tuple) else [attempts]
    if len(attempts) != len(names):
        return "", f"expected {' and '.join(names)}, got {len(attempts)} objects"
    if len(names) == 2:  # in the order of the names, as the check takes them
        attempts.sort(key=lambda function: "load" in getattr(function, "__name__", ""))
    gathered, held = _Gathered(not_own), {}
    for name, thing in zip(names, attempts, strict=True):
        home = _home(thing)
        if home is None:
            return "", "it is imported, not your own code"
        own = getattr(thing, "__name__", "")
        if home.get(own) is not thing:
            called = (key for key, value in home.items() if value is thing and key[:1] != "_")
            own = next(called, "")
        if not own:
            return "", f"it has no name; write `{name} = ...` in a cell or file, and check `{name}`"
        held[name] = own
        gathered.need(gathered.space(home), own)
    return gathered.module(held)


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
        value, made = self.names.get(name), list[int]()
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
        if _is_own(value) or line.split()[1].partition(".")[0] == OURS:
            space.stand_ins[name] = line
        else:
            self.imports.add(line)

    def module(self, held: dict[str, str]) -> tuple[str, str]:
        """Write the module; `held` has what each name to hand out is called in it."""
        if not any(space.taken for space in self.spaces.values()):
            return "", next(iter(self.troubles), "it is imported, not your own code")
        blocks: list[str] = []
        for space in self.spaces.values():
            taken = [space.statements[place] for place in sorted(space.taken)]
            nodes = [node for statement in taken for node in ast.walk(statement.node)]
            for name, line in space.stand_ins.items():
                blocks += self._stand_in(name, line, space.names.get(name), nodes)
            blocks += (statement.text for statement in taken)
            for statement in space.statements:
                if statement not in taken and space.needed & statement.sets_later:
                    first = statement.text.partition("\n")[0]
                    self.troubles.append(f"`{first}` sets what it needs, by `global`")
        renamed = {name: own for name, own in held.items() if name not in self.owners}
        blocks += [f"{name} = {own}" for name, own in renamed.items()]
        handed_out = [name if name in renamed else own for name, own in held.items()]
        future = "from __future__ import annotations"  # holds in the cells below too
        texts = {statement.text for space in self.spaces.values() for statement in space.statements}
        top = [*{future} & texts, *sorted(self.imports, key=lambda line: (line[0] == "f", line))]
        names = ", ".join(f'"{name}"' for name in handed_out)
        source = "\n\n".join(["\n".join(top), *blocks, f"__all__ = [{names}]\n"]).lstrip()
        for space in self.spaces.values():
            for name in space.needed:
                self._compare(space.names.get(name), source)
        return source, next(iter(self.troubles), "")

    def _stand_in(self, name: str, line: str, value: Any, nodes: list[ast.AST]) -> Iterator[str]:
        """Write what an import brings in from the learner's files, or from our package.

        The course does not install that: where only plain values of it are used, these are kept.
        """
        uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
        asked = [n.attr for n in nodes if isinstance(n, ast.Attribute) and n.value in uses]
        values = {attribute: getattr(value, attribute, None) for attribute in sorted(asked)}
        are_plain = all(type(part) in (str, int) for part in values.values())
        if _is_own(value) or (isinstance(value, ModuleType) and are_plain):
            self.imports.add("from types import SimpleNamespace")
            own = _is_own(value)
            fields = [f"{key}={key if own else repr(values[key])}" for key in values]
            yield f"{name} = SimpleNamespace({', '.join(fields)})"
            if len(asked) < len(uses) or any(isinstance(e, ModuleType) for e in values.values()):
                self.troubles.append(f"`{line}` takes a whole file")
        elif type(value) in (str, int):
            yield f"{name} = {value!r}"
        elif line.isidentifier():
            yield f"{name} = {line}"
        else:
            self.imports.add(line)

    def _compare(self, value: Any, source: str) -> None:
        """See that the code that a name stands for now is in the new module."""
        for part in value.__mro__ if isinstance(value, type) else [value]:
            for function in filter(lambda f: _is_file_own(f.__globals__), _functions(part)):
                if _source(function) not in source and function.__name__ != "<lambda>":
                    self.troubles.append(
                        f"`{function.__qualname__}` is another version than your cells or file"
                        " define last, or was put into its class later"
                    )


def _statements(names: dict[str, Any], not_own: frozenset[str]) -> Iterator[Statement]:
    """List the statements that ran in a namespace: of a kernel's cells, or of a module's file."""
    ipython = shell()
    if ipython is not None and ipython.user_ns is names:
        from workbook.classroom.study.notebooks import digest

        for raw in ipython.history_manager.input_hist_raw:
            is_ours = digest(SimpleNamespace(cell_type="code", source=raw)) in not_own
            yield from parsed(MAGIC.sub("", raw), is_ours, ipython.transform_cell)
        return
    with suppress(OSError, SyntaxError, UnicodeError, TypeError):  # None for a folder's file
        yield from parsed(decode_source(Path(names.get("__file__")).read_bytes()))


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
    """Say so where the last cell that writes an attempt stopped at an error before it had done so.

    What was handed in is then what an earlier cell wrote.
    """
    things, ipython = attempt if isinstance(attempt, tuple | list) else (attempt,), shell()
    typed = [e for e in things if inspect.isclass(e) or inspect.isroutine(e)]
    typed = [e for e in typed if getattr(e, "__module__", None) == "__main__"]
    if ipython is None or not typed:
        return ""
    sources = [_source(function) for each in typed for function in _functions(each)] or [""]
    names = "|".join(each.__name__ for each in typed)
    writes = re.compile(rf"^(async )?(def|class) ({names})\b", re.M)
    for number, cell in reversed([*enumerate(ipython.history_manager.input_hist_raw)]):
        if writes.search(cell):
            written = parsed(MAGIC.sub("", cell), transform=ipython.transform_cell)
            is_it = any(source in statement.text for statement in written for source in sources)
            return "" if is_it else NOT_RUN.format(number)
    return ""


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
                names, changes = _names(node, text), _changes(node)
                statements.append(Statement(node, text, is_ours, *names, *changes))
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


def _names(node: ast.stmt, text: str) -> tuple[set[str], set[str], set[str]]:
    """List the names that a statement binds, reads when it runs, and reads in code inside it."""
    code = compile(text, "<statement>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
    inside = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    for inner in inside:  # which grows
        inside += [constant for constant in inner.co_consts if isinstance(constant, CodeType)]
    binds = {e.argval for e in dis.get_instructions(code) if e.opname == "STORE_NAME"}
    # A function does not evaluate the annotations of its local names, but its reader does.
    notes = [e.annotation for e in ast.walk(node) if isinstance(e, ast.AnnAssign)]
    noted = {e.id for note in notes for e in ast.walk(note) if isinstance(e, ast.Name)}
    return binds, _reads(code), noted.union(*map(_reads, inside))


def _reads(code: CodeType) -> set[str]:
    """List the names that code takes from around it, and has not stored before; no local names."""
    reads, stored = set(), set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_NAME", "STORE_GLOBAL"):
            stored.add(instruction.argval)
        elif instruction.opname in READS and instruction.argval not in stored:
            reads.add(instruction.argval)
    return reads


def _changes(node: ast.AST) -> tuple[set[str], set[str], set[str]]:
    """List the names that a statement changes or calls, as `Statement` has them."""
    sets, calls, todo = set(), set(), [node]
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
        member = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        member = unwrapped(member)
        if isinstance(member, FunctionType) and member.__module__ == value.__module__:
            yield member


def _source(function: FunctionType) -> str:
    """Return the text of a function; "" if it has none: generated, or below `%%time`."""
    with suppress(OSError, TypeError):
        return re.sub(r"(\n\s*(#.*)?)+\Z", "", inspect.getsource(function)).strip()
    return ""


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
    return is_learners(os.path.realpath(path)) if path else names["__name__"] == "__main__"


def _module(node: ast.ImportFrom, names: dict[str, Any]) -> ModuleType | None:
    """Find the module that `from module import name` names."""
    name = node.module or ""
    if node.level:
        above = (names.get("__package__") or "").split(".")
        name = ".".join([*above[: len(above) - node.level + 1], *filter(None, [name])])
    return sys.modules.get(name)
