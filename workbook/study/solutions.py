"""Solved code, kept as files that run on their own: `study/mine/softmax.py`.

An attempt needs more than its own lines: imports, constants, helpers and base classes, often from
other cells or files. `gather` finds the statements that made them, and writes these alone, in the
order in which they ran; `why_not_alone` imports the file in a clean process.
"""

import ast
import builtins
import inspect
import linecache
import re
import subprocess
import symtable
import sys
import sysconfig
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.util import decode_source
from itertools import accumulate, count, pairwise
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

from workbook.checks.guard import TimedOut, limited
from workbook.files import atomic_write
from workbook.study.problems import Problem
from workbook.study.progress import SIGNS, Part

FOLDER = "mine"
KEPT = "# {}, kept when its check said {}"  # the first line; "decoding:" would name an encoding
GATHER_SECONDS = 5
IMPORT_SECONDS = 60  # on a busy machine torch alone takes ten
MOST_CHARACTERS = 10_000  # of a value that no statement of a cell has made
LIBRARIES = tuple(
    {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib")}
    | {Path(sysconfig.get_path("platlib")).resolve(), Path(__file__).resolve().parents[1]}
)
CONTAINERS = (list, dict, set, bytearray)  # whose methods change them
Place = tuple[int, int, int]  # the cell that ran, and the line and column in it
END = (sys.maxsize, 0, 0)
COMPREHENSIONS = {"listcomp", "setcomp", "dictcomp", "genexpr"}  # as a table of symbols names them
MAY_SKIP = (ast.If, ast.For, ast.While, ast.Try, ast.Match)  # may not run what is inside
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
RUN_AS_CODE = {"time", "timeit", "capture", "prun"}  # cell magics whose cell is plain Python


class NotKeptError(ValueError):
    """Why an attempt cannot be written as a file, in a sentence."""


def gather(attempt: Any, names: tuple[str, ...]) -> str:
    """Write a module that holds an attempt and all that it needs, and nothing else.

    Arguments:
        attempt: a function, a class, or a pair of these (a dict of two counts as one).
        names: what the problem calls them; the module has them under these names, and in `__all__`.

    Raises: NotKeptError if no statement of a cell or file made what is needed.
    """
    attempts = _each(attempt)
    if len(attempts) != len(names):
        raise NotKeptError(f"expected {' and '.join(names)}, got {len(attempts)} objects")
    if len(names) == 2:  # in the order of the names, as the check takes them
        attempts.sort(key=lambda each: "load" in getattr(each, "__name__", ""))
    gathered = _Gathered(attempts=frozenset(getattr(a, "__name__", "") for a in attempts))
    homes = [_home(each) for each in attempts]
    held = [gathered.expression(*each) for each in zip(attempts, homes, strict=True)]
    return gathered.module(dict(zip(names, held, strict=True)))


def status_of(source: str, problem: str) -> str | None:
    """Read from a kept file's first line what the check said; None if it is not such a file."""
    first = source.partition("\n")[0]
    return next((each for each in SIGNS if first == KEPT.format(problem, each)), None)


def why_not_alone(source: str, name: str) -> str | None:
    """Import a module of this source in a clean process; return what it raises, None if nothing.

    The process has an empty folder to work in, and is ended after `IMPORT_SECONDS`.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{name}.py").write_text(source, encoding="utf-8")
        # First in the path: a library may have the name of a problem.
        code = f"import sys; sys.path.insert(0, {folder!r}); import {name}"
        try:
            ended = subprocess.run(
                [sys.executable, "-c", code],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=IMPORT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"the import takes longer than {IMPORT_SECONDS} s"
    if ended.returncode == 0:
        return None
    lines = ended.stderr.strip().splitlines()
    return lines[-1] if lines else f"Python ended with status {ended.returncode}"


def keep(
    folder: Path, problem: Problem, attempt: Any, status: str, before: Part
) -> tuple[tuple | None, str]:
    """Keep an attempt that passed as `mine/PROBLEM.py` in a study folder.

    Arguments:
        status: what the check said of it.
        before: the record of what was kept last; a file that says something else was edited by
            hand, and is not overwritten but moved aside.

    If not all that it needs is found, its own lines are kept. Returns a pair: the source and why it
    cannot be imported on its own ("": it can), or None if it is not the learner's own code, or if
    what was kept before works and this does not; and a sentence for the learner.
    """
    names = problem.names or (getattr(attempt, "__name__", problem.id),)
    first = KEPT.format(problem.id, status)
    try:
        source = f"{first}\n{limited(GATHER_SECONDS, lambda: gather(attempt, names))}"
        is_known = (source, "") == (before.source, before.trouble)
        trouble = "" if is_known else why_not_alone(source, problem.id) or ""
        advice = "Define all that it needs in this notebook or file, and check again."
    except (NotKeptError, TimedOut) as error:
        advice = "Change that, and check again."
        source, trouble = f"{first}\n{_as_written(attempt)}", str(error)
        if source == f"{first}\n":
            return None, f"It is not kept: {trouble}."
    if trouble and before.trouble == "" and status_of(before.source, problem.id) == status:
        return None, f"What was kept before stays, as this does not work on its own: {trouble}."
    path = folder / FOLDER / f"{problem.id}.py"
    try:
        _write(path, source, before.source)
    except OSError as error:
        return (source, trouble), f"Its code is kept in your progress, but not as a file: {error}."
    # As JupyterLab shows it; in full only for a command that was called somewhere else.
    is_near = Path.cwd() in (folder, folder.parent)
    where = f"Kept as `{path.relative_to(folder.parent) if is_near else path}`"
    if trouble:
        return (source, trouble), f"{where}, but it does not work on its own: {trouble}. {advice}"
    return (source, ""), f"{where}: it holds all that it needs, and can be imported on its own."


def _write(path: Path, source: str, before: str) -> None:
    if path.exists() and path.read_text("utf-8", errors="replace") not in (before, source):
        names = (path.with_name(f"{path.stem}-{n}.py") for n in count(1))
        path.replace(next(name for name in names if not name.exists()))
    with atomic_write(path) as file:
        file.write(source)


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement of a cell, or of the top level of a file."""

    place: Place
    node: ast.stmt
    text: str
    cell: str  # all of the cell's code
    binds: frozenset[str]
    surely: frozenset[str]  # those that it binds whatever happens, unlike under an `if`
    now: frozenset[str]  # names of the namespace that it reads when it runs
    later: frozenset[str]  # names that its functions read when they are called
    sets: frozenset[str]  # names whose items or attributes it sets
    calls: frozenset[str]  # names whose methods it calls without using the result
    asks: frozenset[str]  # names that it calls when it runs, by a decorator too

    def makes(self, name: str, value: Any) -> bool:
        """True if it binds a name, or changes the value that the name stands for."""
        if name in self.binds:
            return True
        if isinstance(value, type) and name in self.now:
            own = (each for each in value.__mro__ if each.__module__ == value.__module__)
            if any(map(self.holds, own)):
                return True  # a method that a decorator, or `setattr`, adds to a class
        is_set = name in self.sets and not isinstance(value, ModuleType)
        return is_set or (name in self.calls and isinstance(value, CONTAINERS))

    def sets_global(self, name: str) -> bool:
        """True for a function that says `global` of a name."""
        says = (each for each in ast.walk(self.node) if isinstance(each, ast.Global))
        is_function = isinstance(self.node, ast.FunctionDef)
        return is_function and name in self.later and any(name in each.names for each in says)

    @property
    def is_call(self) -> bool:
        """True for a call whose result is not used."""
        return isinstance(self.node, ast.Expr) and isinstance(self.node.value, ast.Call)

    @property
    def is_plain(self) -> bool:
        """True for a number or string that gets a name."""
        return isinstance(self.node, ast.Assign) and isinstance(self.node.value, ast.Constant)

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    def is_beside(self, value: Any) -> bool:
        """True for a function or class whose code is in the same cell or file."""
        return any(_code_around(each) == self.cell.strip() for each in _functions(value))

    def holds(self, value: Any) -> bool:
        """True for a function or class whose code is this very statement's."""
        lines = {each.__code__.co_firstlineno for each in _functions(value)}
        first = min([self.node.lineno, *(each.lineno for each in _decorators(self.node))])
        inside = any(first <= line <= self.node.end_lineno for line in lines)
        return inside and self.is_beside(value)

    def binds_anew(self, name: str) -> bool:
        """True if nothing of what the name stood for before is left."""
        return name in self.surely and name not in self.now

    def says_otherwise(self, name: str, value: Any) -> bool:
        """True if it assigns a number or string other than the one that the name stands for."""
        match self.node:
            case ast.Assign([ast.Name(target)], ast.Constant(constant)) if target == name:
                return type(constant) is not type(value) or constant != value
        return False


@dataclass(frozen=True, eq=False)
class _Namespace:
    """The names of a notebook's kernel or of a module, and the statements that made them."""

    names: dict[str, Any]
    statements: list[Statement]

    def makers_of(self, name: str, moment: Place, attempts: frozenset[str]) -> list[Statement]:
        """Find the statements that made what a name stood for at a moment, in the order they ran.

        Mere calls of the `attempts` are left out: they only filled what every call fills.
        """
        value = self.names.get(name)
        setters = {each.node.name for each in self.statements if each.sets_global(name)}
        here = [
            each
            for each in self.statements
            if each.place < moment
            and (each.makes(name, value) or (each.is_call and setters & each.asks))
            and (name in each.binds or name in attempts or not attempts & each.asks)
        ]
        if any(name in e.surely and not e.says_otherwise(name, value) for e in here):
            here = [e for e in here if not e.says_otherwise(name, value)]
        for holds in (Statement.holds, Statement.is_beside):
            # Other cells hold other versions of it, or raised before they came to theirs.
            if any(holds(each, value) for each in here if name in each.binds):
                here = [e for e in here if name not in e.binds or holds(e, value)]
                break
        found: list[Statement] = []
        for statement in reversed(here):
            found.insert(0, statement)
            if statement.binds_anew(name):
                break
        return found


@dataclass
class _Gathered:
    """The statements taken so far, by namespace, and what is written above and between them."""

    spaces: dict[int, _Namespace] = field(default_factory=dict)  # by the id of the dict of names
    taken: dict[Statement, _Namespace] = field(default_factory=dict)
    seen: set[tuple] = field(default_factory=set)  # names by moment, and statements
    attempts: frozenset[str] = frozenset()  # the names of what is gathered
    imports: dict[str, None] = field(default_factory=dict)
    values: dict[int, dict[str, str]] = field(default_factory=dict)  # that nobody wrote, by space
    texts: dict[Statement, str] = field(default_factory=dict)  # of those that are not as typed
    owners: dict[str, tuple] = field(default_factory=dict)  # of names in the new module
    fields: dict[str, dict] = field(default_factory=dict)  # asked of the learner's modules

    def expression(self, attempt: Any, names: dict[str, Any]) -> str:
        """Gather what an attempt needs, and return the expression that stands for it."""
        space = self._space(names)
        own_name = getattr(attempt, "__name__", None)
        held = [key for key, value in names.items() if value is attempt and key[:1] != "_"]
        if own_name in held or held:
            name = own_name if own_name in held else held[0]
            self._need(space, name)
            return name
        if isinstance(attempt, partial):
            self.imports["from functools import partial"] = None
            arguments = [self.expression(attempt.func, names)]
            arguments += [_literal(each) for each in attempt.args]
            arguments += [f"{key}={_literal(each)}" for key, each in attempt.keywords.items()]
            return f"partial({', '.join(arguments)})"
        if isinstance(attempt, MethodType):
            return f"{self.expression(attempt.__self__, names)}.{attempt.__name__}"
        path = getattr(attempt, "__qualname__", "").split(".")
        if path[0] in names and _attribute(names[path[0]], path[1:]) is attempt:
            self._need(space, path[0])
            return ".".join(path)
        if isinstance(attempt, FunctionType) and (written := _lambda(attempt)):
            for read in frozenset.union(*_reads(written)):
                self._need(space, read)
            return f"({written})"
        raise NotKeptError("it has no name; give it one before the check")

    def _space(self, names: dict[str, Any]) -> _Namespace:
        """Find the namespace of a dict of names; those of the files it imports come before it."""
        if id(names) not in self.spaces:
            statements = _statements(names)
            self.spaces[id(names)] = space = _Namespace(names, statements)
            for module in (m for each in statements for m in _imported(each.node, names)):
                if not _is_library(module):
                    self._space(vars(module))
            del self.spaces[id(names)]  # so that it moves to the end
            self.spaces[id(names)] = space
        return self.spaces[id(names)]

    def _need(self, space: _Namespace, name: str, moment: Place = END) -> None:
        """Take the statements that made a name up to a moment, and those that made what they read.

        A statement that ran needed what its names stood for then, such as the base of a class; a
        function needs what they stand for when it is called.
        """
        if (id(space.names), name, moment) in self.seen:
            return
        self.seen.add((id(space.names), name, moment))
        value = space.names.get(name)
        if isinstance(value, ModuleType) and not _is_library(value):
            self._own(space, name, value)
            self._give(space, name, "")  # written when all that is asked of it is known
            return
        makers = space.makers_of(name, moment, self.attempts)
        if not makers and moment != END:
            self._need(space, name)
            return
        if not makers and (name not in space.names or re.fullmatch("__.*__", name)):
            if name == "display" and _shell() is not None:
                self.imports["from IPython.display import display"] = None
            return  # Python's own, every module's own, or a name that no call has asked for
        if not makers and hasattr(builtins, name):
            return  # a kernel has an `open` of its own
        others = value.__globals__ if isinstance(value, FunctionType) else space.names
        is_theirs = others is not space.names and not _is_library_file(others.get("__file__"))
        if not makers and is_theirs and others.get(name) is value:
            self._need(self._space(others), name)  # of a file that `%run` ran, before this
            self.spaces = {id(others): self.spaces.pop(id(others)), **self.spaces}
            return
        if not makers or any(statement.is_import for statement in makers):
            self._import(space, name, value, makers)
            return
        self._own(space, name, value, "\n".join(statement.text for statement in makers))
        for statement in makers:
            self._take(space, statement)

    def _take(self, space: _Namespace, statement: Statement, moment: Place = END) -> None:
        """Take a statement, and what its functions need when they are called at a moment."""
        if (statement, moment) in self.seen:
            return
        self.seen.add((statement, moment))
        self.taken[statement] = space
        reads = statement.now | statement.later
        if "get_ipython" in reads:
            raise NotKeptError(
                f"`{_first_line(statement.text)}` contains a magic or a shell command, which only a"
                " notebook can run; write it without one"
            )
        for name in sorted(statement.now):
            self._need(space, name, statement.place)
        for name in sorted(statement.later):
            self._need(space, name, moment)
        for name in statement.asks:  # whose functions are called at this moment already
            for maker in space.makers_of(name, statement.place, self.attempts):
                if maker in self.taken:
                    self._take(space, maker, statement.place)
        for node in ast.walk(statement.node):
            if isinstance(node, ast.Attribute):
                self._need_of_module(space, _dotted(node))
            elif (
                isinstance(node, ast.Constant) and "globals" in reads and node.value in space.names
            ):
                self._need(space, node.value)  # as in `globals()["SIZE"]`
            elif not all(map(_is_library, _imported(node, space.names))):
                self._need_inside(space, statement, node)

    def _need_inside(
        self, space: _Namespace, statement: Statement, node: ast.Import | ast.ImportFrom
    ) -> None:
        """Take what a function imports from the learner's own files, which the module then has."""
        module = _module(node, space.names) if isinstance(node, ast.ImportFrom) else None
        if module is None or any(
            isinstance(vars(module).get(a.name), ModuleType) for a in node.names
        ):
            raise NotKeptError(f"`{ast.unparse(node)}` is not at the top of its file; put it there")
        for alias in node.names:
            self._need(self._space(vars(module)), alias.name)
        renamed = [f"{a.asname} = {a.name}" for a in node.names if a.asname not in (None, a.name)]
        written = ast.get_source_segment(statement.cell, node)
        text = self.texts.get(statement, statement.text)
        self.texts[statement] = text.replace(written, "; ".join(renamed) or "pass")

    def _need_of_module(self, space: _Namespace, path: list[str]) -> None:
        """Take what `module.name` asks of the learner's own modules, also of one inside another."""
        names, fields = space.names, self.fields
        for name, asked in pairwise(path):
            module = names.get(name)
            if not isinstance(module, ModuleType) or _is_library(module):
                return
            fields = fields.setdefault(name, {})
            fields.setdefault(asked, {})
            names = vars(module)
            if not isinstance(names.get(asked), ModuleType) or _is_library(names[asked]):
                self._need(self._space(names), asked)

    def _give(self, space: _Namespace, name: str, value: str) -> None:
        """Have a name assigned before the statements of its namespace."""
        self.values.setdefault(id(space.names), {})[name] = value

    def _import(self, space: _Namespace, name: str, value: Any, makers: list[Statement]) -> None:
        """Take a name that was imported, or that is there although no statement has made it."""
        self._own(space, name, value)
        for statement in makers:
            for alias in statement.node.names if statement.is_import else ():
                if (alias.asname or alias.name.partition(".")[0]) != name:
                    continue
                if isinstance(statement.node, ast.Import):
                    # `import torch.nn` and `import torch.optim` both make `torch`
                    self.imports[f"import {_named(alias)}"] = None
                    continue
                module = _module(statement.node, space.names)
                if module is not None and not _is_library(module):
                    self._need(self._space(vars(module)), alias.name)
                    if alias.name != name:
                        self._give(space, name, alias.name)
                else:
                    source = "." * statement.node.level + (statement.node.module or "")
                    self.imports[f"from {source} import {_named(alias)}"] = None
        if makers:
            return
        if isinstance(value, ModuleType):
            as_name = "" if value.__name__ == name else f" as {name}"
            self.imports[f"import {value.__name__}{as_name}"] = None
        elif (found := _importable(name, value, space.statements)) is not None:
            module, there = found
            as_name = "" if there == name else f" as {name}"
            self.imports[f"from {module} import {there}{as_name}"] = None
        elif (names := _starred(name, value, space)) is not None:
            self._need(self._space(names), name)
        else:
            try:
                self._give(space, name, _literal(value))
            except NotKeptError:
                raise NotKeptError(
                    f"no statement of a cell or file has made `{name}`; assign it in one"
                ) from None

    def _own(self, space: _Namespace, name: str, value: Any, text: str = "") -> None:
        """Note what a name of the new module stands for; NotKeptError if it is two things.

        One thing is one object, equal numbers or strings, or what the same `text` made.
        """
        owner, other, made_by = self.owners.setdefault(name, (space, value, text))
        is_equal = isinstance(value, str | bytes | int | float) and other == value
        is_one = owner is space or other is value or is_equal or (text and made_by == text)
        if not is_one:
            raise NotKeptError(f"two of your files mean different things by `{name}`: rename one")

    def module(self, held: dict[str, str]) -> str:
        """Write the module; `held` has the expression for each name to hand out."""
        handed_out, last = [], []
        for name, expression in held.items():
            if name == expression or name not in self.owners:
                handed_out.append(name)
                last += [f"{name} = {expression}"] if name != expression else []
            elif expression.isidentifier():
                handed_out.append(expression)  # what it needs is called `name` already
            else:
                raise NotKeptError(f"`{name}` is the name of something else that it needs")
        if not self.taken and not last:
            raise NotKeptError("it is imported, not your own code")
        blocks = [block for space in self.spaces.values() for block in self._blocks(space)]
        top = sorted(self.imports, key=lambda line: (line.startswith("from"), line))
        ran = (
            ast.unparse(e.node) for s in self.spaces.values() for e in s.statements if e.is_import
        )
        if (future := "from __future__ import annotations") in ran:  # holds in the cells below too
            top.insert(0, future)
        names = ", ".join(f'"{name}"' for name in handed_out)
        parts = ["\n".join(top), *blocks, *last, f"__all__ = [{names}]"]
        return "\n\n".join(filter(None, parts)) + "\n"

    def _blocks(self, space: _Namespace) -> Iterator[str]:
        """Write what was taken from a namespace, in the order in which it ran."""
        itself: list[str] = []
        for name, value in self.values.get(id(space.names), {}).items():
            if not value:
                self.imports["from types import SimpleNamespace"] = None
                value = _written(self.fields.get(name, {}))
                if vars(space.names[name]) is space.names:  # a module that imports itself
                    itself.append(f"{name} = {value}")
                    continue
            yield f"{name} = {value}"
        taken = [statement for statement, owner in self.taken.items() if owner is space]
        written: dict[str, str] = {}  # by name, the last definition of it
        for each in sorted(taken, key=lambda each: each.place):
            # The same cell may have run before and after another one that needs it.
            if {written.get(name) for name in each.binds} == {each.text} and not each.sets:
                continue
            yield self.texts.get(each, each.text)
            for name in each.binds | each.sets | each.calls:
                is_whole = isinstance(each.node, DEFINITIONS) or each.is_plain
                written[name] = each.text if is_whole and name in each.binds else ""
        yield from itself


def _statements(names: dict[str, Any]) -> list[Statement]:
    """List the statements that ran in a namespace: of a kernel's cells, or of a module's file."""
    shell = _shell()
    if shell is not None and shell.user_ns is names:
        cells = list(shell.user_ns.get("In", ()))
        return [statement for place, cell in enumerate(cells) for statement in _parsed(cell, place)]
    file = names.get("__file__")  # None for a folder without an `__init__.py`
    try:
        source = decode_source(Path(file).read_bytes()) if file else ""
    except (OSError, SyntaxError, UnicodeError):
        return []
    return list(_parsed(source, 0))


def _shell() -> Any:
    """Return the IPython that runs us, or None."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None else None


@lru_cache(maxsize=1000)
def _parsed(cell: str, place: int) -> tuple[Statement, ...]:
    """Split the code of a cell into statements; a cell that is not Python has none."""
    try:
        nodes = ast.parse(cell).body
    except (SyntaxError, ValueError):
        return ()
    found: list[Statement] = []
    for node in nodes:
        if body := _in_magic(node):
            found += _parsed(_shell().transform_cell(body), place)
        elif not _is_main_guard(node):
            text = _text(cell, node)
            where = (place, node.lineno, node.col_offset)
            found.append(Statement(where, node, text, cell, *_analyse(text), *_changes(node)))
    return tuple(found)


def _in_magic(node: ast.stmt) -> str | None:
    """Return the code below `%%time` and its like; None for any other statement."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(attr="run_cell_magic"), arguments)):
            values = [each.value for each in arguments if isinstance(each, ast.Constant)]
            return values[2] if len(values) == 3 and values[0] in RUN_AS_CODE else None
    return None


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def _text(cell: str, node: ast.stmt) -> str:
    """Return a statement as it was typed, with its decorators and the comments right above it."""
    lines = re.split("\r\n?|\n", cell)  # `splitlines` knows more line ends than Python's parser
    first = min([node.lineno, *(each.lineno for each in _decorators(node))])
    before = lines[node.lineno - 1].encode()[: node.col_offset]
    after = lines[node.end_lineno - 1].encode()[node.end_col_offset :].strip()
    if before.strip() or after.startswith(b";"):  # not alone on its lines
        return ast.get_source_segment(cell, node)
    while first > 1 and re.match(r"#(?! ?%%)", lines[first - 2]):
        first -= 1
    return "\n".join(lines[first - 1 : node.end_lineno])


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return getattr(node, "decorator_list", [])


@lru_cache(maxsize=10_000)
def _analyse(text: str) -> tuple[frozenset[str], ...]:
    """List the names that a statement binds, surely binds, reads now, and reads later."""
    try:
        table, node = symtable.symtable(text, "<statement>", "exec"), ast.parse(text).body[0]
    except SyntaxError:  # such as `await` at the top level, which only IPython runs
        return (frozenset(),) * 4
    binds = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    binds = set() if isinstance(node, ast.Delete) else binds
    return frozenset(binds), frozenset(() if isinstance(node, MAY_SKIP) else binds), *_reads(text)


def _reads(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """List the names that code takes from around it when it runs, and when it is called."""
    now, later, targets = set(), set(), []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.AugAssign):
            now |= set(_root(node.target))  # which the table of symbols does not say
        elif isinstance(node, ast.For | ast.AsyncFor):
            targets.append(node.target)
        elif isinstance(node, ast.withitem) and node.optional_vars:
            targets.append(node.optional_vars)
    tables = [(symtable.symtable(text, "<statement>", "exec"), now)]
    while tables:
        table, reads = tables.pop()
        is_inner = table.get_type() != "module"
        reads |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if (symbol.is_global() if is_inner else symbol.is_referenced())
        }
        for inner in table.get_children():
            is_function = inner.get_type() == "function" and inner.get_name() not in COMPREHENSIONS
            tables.append((inner, later if is_function else reads))
    made = {node.id for each in targets for node in ast.walk(each) if _is_stored(node)}
    return frozenset(now - made), frozenset(later)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _changes(node: ast.stmt) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """List the names that a statement changes or calls, as `Statement` has them.

    These are `sets`, `calls` and `asks`. What a function would do if it were called does not count.
    """
    sets, calls, asks = [], [], []
    for each in ast.walk(node) if not isinstance(node, DEFINITIONS) else ():
        is_target = isinstance(getattr(each, "ctx", None), ast.Store | ast.Del)
        if isinstance(each, ast.Subscript | ast.Attribute) and is_target:
            sets += _root(each)
        elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Call):
            call = each.value
            if isinstance(call.func, ast.Name) and call.func.id == "setattr" and call.args:
                sets += _root(call.args[0])
            calls += _root(call.func)
        if isinstance(each, ast.Call):
            asks += _root(each.func)
    asks += [name for each in _decorators(node) for name in _root(getattr(each, "func", each))]
    return frozenset(sets), frozenset(calls), frozenset(asks)


def _root(node: ast.expr) -> list[str]:
    """Return the name that an expression such as `a.b[0].c` begins with, in a list, or []."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return [node.id] if isinstance(node, ast.Name) else []


def _dotted(node: ast.expr) -> list[str]:
    """Return the names of an expression such as `a.b.c`; [] if it does not begin with a name."""
    path = []
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
    return [node.id, *path] if isinstance(node, ast.Name) else []


def _written(fields: dict[str, dict]) -> str:
    """Write an object with the fields that are asked of a module."""
    values = [f"{name}={_written(own) if own else name}" for name, own in sorted(fields.items())]
    return f"SimpleNamespace({', '.join(values)})"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _code_around(function: FunctionType) -> str:
    return "".join(linecache.getlines(function.__code__.co_filename)).strip()


def _functions(value: Any) -> Iterator[FunctionType]:
    """List the function that a value is or wraps, or those that its class wrote."""
    for each in vars(value).values() if isinstance(value, type) else [value]:
        each = getattr(each, "__func__", None) or getattr(each, "fget", None) or each
        each = inspect.unwrap(each) if callable(each) else each
        if isinstance(each, FunctionType) and each.__module__ == value.__module__:
            yield each


def _each(attempt: Any) -> list:
    """List the objects of an attempt: those of a pair or a dict, or the one that it is."""
    values = list(attempt.values()) if isinstance(attempt, dict) else attempt
    return list(values) if isinstance(values, list | tuple) else [values]


def _as_written(attempt: Any) -> str:
    """Return the learner's own lines of an attempt, and no more, or else the cell around them."""
    texts = []
    for each in _each(attempt):
        own = [f for f in _functions(each) if not _is_library_file(f.__globals__.get("__file__"))]
        try:
            texts += [textwrap.dedent(inspect.getsource(each))] if own else []
        except (TypeError, OSError):
            texts += [_code_around(own[0])]
    return "\n\n".join(texts)


def _home(attempt: Any) -> dict[str, Any]:
    """Find the names around an attempt: of the kernel, or of the file that it was written in."""
    while isinstance(attempt, partial | MethodType):
        attempt = attempt.func if isinstance(attempt, partial) else attempt.__func__
    for each in (attempt, type(attempt)):
        for function in _functions(each):
            if not _is_library_file(function.__globals__.get("__file__")):
                return function.__globals__
    module = sys.modules.get(getattr(attempt, "__module__", None) or "")
    if module is not None and not _is_library(module):
        return vars(module)
    if (shell := _shell()) is None:
        raise NotKeptError("it was not written in a cell or a file")
    return shell.user_ns


def _is_library(module: ModuleType) -> bool:
    """Tell whether a module is installed or comes with Python, and is not the learner's own."""
    file = getattr(module, "__file__", None)
    if file is None:  # built in, a package without a file of its own, or the notebook itself
        paths = list(getattr(module, "__path__", []))
        return all(map(_is_library_file, paths)) and module.__name__ != "__main__"
    return _is_library_file(file)


def _is_library_file(file: str | None) -> bool:
    if file is None:
        return False
    path = Path(file).resolve()
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    return bool(installed) or any(path.is_relative_to(each) for each in LIBRARIES)


def _imported(node: ast.AST, names: dict[str, Any]) -> Iterator[ModuleType]:
    """List the modules that a node imports and that are loaded; none if it is not an import."""
    modules: list[Any] = []
    if isinstance(node, ast.ImportFrom):
        modules = [_module(node, names), *(names.get(_bound(alias)) for alias in node.names)]
    elif isinstance(node, ast.Import):
        above = [accumulate(alias.name.split("."), "{}.{}".format) for alias in node.names]
        modules = [sys.modules.get(name) for names in above for name in names]
    yield from (module for module in modules if isinstance(module, ModuleType))


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name


def _module(node: ast.ImportFrom, names: dict[str, Any]) -> ModuleType | None:
    """Find the module that `from module import name` names."""
    name = node.module or ""
    if node.level:
        above = (names.get("__package__") or "").split(".")
        name = ".".join([*above[: len(above) - node.level + 1], *filter(None, [name])])
    return sys.modules.get(name)


def _named(alias: ast.alias) -> str:
    return alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"


def _importable(name: str, value: Any, statements: list[Statement]) -> tuple[str, str] | None:
    """Name a library's module that holds a value, and the name it has there."""
    starred = [
        statement.node.module
        for statement in statements
        if isinstance(statement.node, ast.ImportFrom) and statement.node.names[0].name == "*"
    ]
    own = getattr(value, "__name__", name)
    own = own if isinstance(own, str) else name
    for module_name in [*starred, getattr(value, "__module__", None)]:
        module = sys.modules.get(module_name) if isinstance(module_name, str) else None
        if module is not None and _is_library(module) and module_name != "__main__":
            for there in (name, own):
                if getattr(module, there, None) is value:
                    return module_name, there
    return None


def _starred(name: str, value: Any, space: _Namespace) -> dict[str, Any] | None:
    """Return the names of the learner's file whose star import has brought in a value."""
    for statement in reversed(space.statements):
        if isinstance(statement.node, ast.ImportFrom) and statement.node.names[0].name == "*":
            module = _module(statement.node, space.names)
            if module is not None and not _is_library(module) and vars(module).get(name) is value:
                return vars(module)
    return None


def _literal(value: Any) -> str:
    """Write a plain value as Python. Raises: NotKeptError if it is not one."""
    try:
        written = repr(value) if type(value).__module__ == "builtins" else ""
        if len(written) <= MOST_CHARACTERS and ast.literal_eval(written) == value:
            return written
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    raise NotKeptError("a value in it cannot be written as text; name it in a cell of its own")


def _attribute(value: Any, path: list[str]) -> Any:
    for name in path:
        value = getattr(value, name, None)
    return value


def _lambda(function: FunctionType) -> str | None:
    """Return the code of a lambda that was written where it was handed over."""
    code, cell = function.__code__, "".join(linecache.getlines(function.__code__.co_filename))
    try:
        nodes = [node for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.Lambda)]
    except SyntaxError:
        return None
    # The first and the last instruction have no columns.
    asked = [(line, column) for line, _, column, end in code.co_positions() if end]
    here = [
        node
        for node in nodes
        if all(_start(node.body) <= each < _end(node.body) for each in asked)
        and node.lineno == code.co_firstlineno
    ]
    here.sort(key=_start)  # the innermost last
    return ast.get_source_segment(cell, here[-1]) if here else None


def _start(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset
