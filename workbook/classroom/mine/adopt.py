"""The learner's own repository of the course: which of its objects is which part, and its imports.

`workbook adopt PATH` looks for the parts in a process of its own, by what the functions in the
repository's `tests/adapters.py` use, and writes `adopted.toml` into the study folder. That file may
be edited: what is changed by hand stays when the repository is adopted again.

Such a repository is seldom installed: the version of its package is unknown, and packages that it
needs may be missing. Nothing is ever written into it.
"""

import __future__

import ast
import builtins
import importlib
import inspect
import json
import os
import re
import sys
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, chdir, suppress
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from importlib.machinery import PathFinder, all_suffixes
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any, NamedTuple, NoReturn
from unittest.mock import MagicMock

from workbook.classroom import problems
from workbook.classroom.checks.machinery import worker
from workbook.classroom.checks.machinery.calling import meaning, plain
from workbook.classroom.checks.machinery.loading import is_installed, module_of, replace_trackers
from workbook.classroom.checks.machinery.timeout import TimedOut, limited
from workbook.classroom.checks.machinery.verdicts import NETWORK, NotJudged
from workbook.classroom.mine.course_parts import OTHER_IN_2024, PARTS, is_named
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study import solutions
from workbook.classroom.study.progress import MARK
from workbook.files import atomic_write, locked

FILE = "adopted.toml"
ADAPTERS = "tests.adapters"
SEARCH_SECONDS = 180.0  # for one part
STATEMENT_SECONDS = 60.0  # for one statement of a module
LATER_SECONDS = 10.0  # once one of them did not come to an end
NO_END = (
    'it does not come to an end; put what a script does under `if __name__ == "__main__":`, so'
    " that an import only defines"
)
NEXT = "Next: `workbook check --all`, then `workbook twin`, then `workbook train laptop --mine`."
NOTHING = (
    "there is no code of yours yet: solve a code problem in a notebook of your study folder, or run"
    " `workbook adopt PATH` with the path of your repository of the course"
)
OF_2024 = (
    "this is the course's 2024 edition, with a GELU, learned positions and masks that are True"
    " where they hide; these parts are judged only as far as the editions agree: {}"
)
ADD = "if you have one, add `--set {}=module:name` to `workbook adopt PATH`"
# What tells the adapters of this assignment from those of the course's others.
OF_ASSIGNMENT = re.compile("|".join(n for part in PARTS.values() for n in part.adapters).encode())
INSTALL_THERE = ": install the workbook in that one"
NEWER_TYPE = re.compile(r"Too few arguments for typing\.\w*Generator")  # as in Generator[int]
WHERE = re.compile(r"[^:]+:[^\W\d][\w.]*|[^:]+\.py")
SKIPPED = {"venv", "env", "site-packages", "node_modules", "__pycache__", "build", "dist", "wandb"}
MOST_FILES = 2000  # in a repository; a home folder has more
CODE = tuple(problem.id for problem in PROBLEMS.values() if problem.form)
GENERATES = ("model", "prompt", "max_new_tokens", "temperature", "top_p", "end_token")
ONLY_GENERATES = {"max_new_tokens", "temperature", "top_p"}
OF_TEXT = {"prompt", "max_new_tokens"}  # what samples a single token has neither
UNLIKELY = re.compile("/(old|backup|scratch)/|sweep|tuning|ablation")
ASIDE = re.compile(f"/(scripts?|experiments?|examples?)/|{UNLIKELY.pattern}")  # rather not the part
FOUND_BY_NAME = "by its name"
COMPILED = (".pyi", ".pyx", ".c", ".cc", ".cpp", ".cu", ".rs")  # what a compiler makes modules of
# As if the course's package were installed, in version 0.0: its `__init__.py` asks for its version.
INSTALLED = Path(__file__).with_name("installed")
Where = str | list[str]


# A repository, and imports from it.


class Loss(NamedTuple):
    """A name that a statement should have made, and has not, because it failed."""

    why: str  # the statement failed: the first reason, and what to do
    path: str = ""  # where the object is, such as "package.module.name", as far as that is known


class LostError(NotJudged):
    """Code of the repository reads a name that is lost, so nothing is known of that code."""

    def __init__(self, name: str, loss: Loss):
        super().__init__(f"`{name}` is missing, because a line that makes it fails: {loss.why}.")
        self.loss = loss


class LostNameError(LostError, NameError):
    """As Python's own error, for code that catches that."""


class LostAttributeError(LostError, AttributeError):
    """The same for an attribute of a module."""


class _Builtins(dict):
    """The `__builtins__` of a module of the repository, where Python looks for a name at last.

    A name that is in none of its places is lost, or else it is the learner's mistake.
    """

    def __init__(self, expect_not_lost: Callable[[str], None]):
        # Python reads these two without asking `__missing__`.
        hooks = ("__import__", "__build_class__")
        super().__init__({name: getattr(builtins, name) for name in hooks})
        self.expect_not_lost = expect_not_lost

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            return getattr(builtins, name)
        self.expect_not_lost(name)
        raise KeyError(name)  # which Python turns into a NameError


class _UnbuiltFinder:
    """A finder of imports, which refuses a folder that has no more than the sources of a module.

    Python itself takes such a folder for a package, and then each name in it is missing.
    """

    def __init__(self, repository: "Repository"):
        self.repository = repository

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Find nothing. Raises: ModuleNotFoundError where Python would find such a folder."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is None:
            folders = [Path(place) for place in spec.submodule_search_locations or ()]
            if folders and all(map(self.repository.is_unbuilt, folders)):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class Repository:
    """A folder with somebody's solutions, read from its files; none of it runs before `enter`."""

    def __init__(self, folder: str | os.PathLike):
        """Find the repository, also from a folder inside it, or from one of the whole course.

        It is the one whose adapters have functions of this assignment. Raises: OSError.
        """
        # `resolve` would raise for a link to itself, which here is a folder that is not there.
        path = Path(os.path.realpath(Path(folder).expanduser()))
        if not path.is_dir():
            what = "a file" if path.exists() else "not there"
            raise NotADirectoryError(f"{path} is {what}; expected the folder of your repository")
        files = [place / "tests" / "adapters.py" for place in (path, *path.parents[:2])]
        for below in ("*", "*/*"):
            files += sorted(path.glob(f"{below}/tests/adapters.py"))
        files = [file for file in files if file.is_file()]
        ours = [file for file in files if OF_ASSIGNMENT.search(file.read_bytes())]
        self.adapters_file = next(iter(ours), path / "tests" / "adapters.py")
        self.folder = self.adapters_file.parents[1]
        self.other_adapters = [] if ours else files  # those of other assignments
        self.troubles: dict[str, str] = {}  # what could not be imported, by the reason
        self.seconds = STATEMENT_SECONDS  # for the next statement
        # What statements that failed should have made, by module and name. "*" stands for all
        # other names, after an `import *` from a module of unknown content.
        self.lost: dict[str, dict[str, Loss]] = {}

    @cached_property
    def adapters_trouble(self) -> str:
        """Why the adapters lead to no part; "" if they may."""
        if self.other_adapters:
            return f"{self.other_adapters[0]} has no function of this assignment (`run_linear` ...)"
        if not self.adapters_file.is_file():
            return f"{self.folder} has no tests/adapters.py"
        try:
            _parsed(self.adapters_file)
        except (SyntaxError, ValueError) as error:
            return f"tests/adapters.py cannot be read: {self.why(error)}"
        return ""

    @cached_property
    def trees(self) -> dict[Path, ast.Module]:
        """All Python files, parsed; one that Python cannot parse is empty.

        Raises: ValueError if there are none, or far too many.
        """
        trees: dict[Path, ast.Module] = {}
        for file in self._python_files():
            trees[file] = ast.Module([], [])
            # The last two: it is nested too deep, as only generated code is.
            with suppress(OSError, ValueError, SyntaxError, RecursionError, MemoryError):
                trees[file] = _parsed(file)
            if len(trees) > MOST_FILES:
                raise ValueError(f"{self.folder} has too many Python files; name your repository")
        if not trees:
            raise ValueError(f"{self.folder} has no Python files; expected your repository")
        return trees

    @cached_property
    def adapters(self) -> dict[str, ast.FunctionDef]:
        """The functions in the adapters, by name."""
        tree = self.trees.get(self.adapters_file, ast.Module([], []))
        return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}

    def _python_files(self) -> Iterator[Path]:
        """Yield those that somebody wrote, folder by folder."""
        for folder, below, names in os.walk(self.folder):
            hidden = [name for name in below if name.startswith(".") or name in SKIPPED]
            hidden += [name for name in below if Path(folder, name, "pyvenv.cfg").exists()]
            below[:] = sorted({*below} - {*hidden})
            files = (Path(folder, name) for name in sorted(names) if name.endswith(".py"))
            yield from filter(Path.is_file, files)  # to read a pipe would take for ever

    @cached_property
    def roots(self) -> list[Path]:
        """The folders where Python is to look for modules; after the second, for loose ones."""
        inside = {f for file in self.trees for f in file.parents if f.is_relative_to(self.folder)}
        loose = sorted(inside, key=lambda folder: (len(folder.parts), folder))
        return list(dict.fromkeys([self.folder, self.folder / "src", *loose]))

    def path_of(self, file: Path) -> str:
        """The path of a file, from the repository's folder."""
        return file.relative_to(self.folder).as_posix()

    def name_of(self, file: Path) -> str:
        """The name by which the module in a file is imported."""
        root = next(root for root in self.roots[1::-1] if file.is_relative_to(root))
        parts = file.relative_to(root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def modules(self) -> dict[str, Path]:
        """The files by the names of their modules."""
        return {self.name_of(file): file for file in self.trees}

    def holds(self, module: Any) -> bool:
        """Whether a module, or the one of this name, is of this repository."""
        module = sys.modules.get(module) if isinstance(module, str) else module
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        return any(Path(place).is_relative_to(self.folder) for place in places if place)

    def enter(self) -> None:
        """Make this process, and those that it starts, able to import from the folder.

        Nothing is written there, and nothing there shadows Python's own modules.
        """
        if self.folder in _entered:
            return
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        for name, module in list(sys.modules.items()):
            is_others = any(other.holds(module) for other in _entered.values())
            if is_others or name.partition(".")[0] == "tests":  # many libraries install a `tests`
                del sys.modules[name]
        _entered[self.folder] = self
        # Before what is installed, which may be another copy of it, but after Python's own. Loose
        # modules come last: one may have the name of a library.
        libraries = (n for n, entry in enumerate(sys.path) if entry.endswith("-packages"))
        first = next(libraries, len(sys.path))
        sys.path[first:first] = map(str, self.roots[:2])
        sys.path += map(str, [*self.roots[2:], INSTALLED])
        importlib.invalidate_caches()
        if self.adapters_file.is_file():
            sys.modules["tests"] = tests = ModuleType("tests")
            tests.__path__ = [str(self.adapters_file.parent)]
        finder: Any = _UnbuiltFinder(self)
        sys.meta_path.insert(0, finder)
        replace_trackers(also_installed=False)
        torch: Any = importlib.import_module("torch")
        vars(torch.serialization).setdefault("FILE_LIKE", Any)  # a type of its older versions
        if not hasattr(torch._C, "_nvtx"):  # marks for a profiler, which builds for CPUs refuse
            torch.cuda.nvtx._nvtx = torch.cuda.nvtx._NVTX = MagicMock()

    def importing(self, run: Callable[[], Any], what: str) -> Any:
        """Return what a function returns that imports modules of the repository.

        A file that it does not find is looked for in the repository's folder, where learners run
        their code; a package whose `__init__` fails is used without the statements that fail.

        Args:
            what: the beginning of an error's message.

        Raises: ValueError that says why it fails.
        """
        with ExitStack() as stack:
            while True:
                try:
                    return run()
                except (Exception, SystemExit) as error:
                    file = self.folder / str(getattr(error, "filename", ""))
                    is_there = isinstance(error, FileNotFoundError) and file.is_file()
                    if is_there and Path.cwd() != self.folder:
                        stack.enter_context(chdir(self.folder))
                    elif package := self._broken_package(error):
                        self._in_pieces(*package)
                    else:
                        raise ValueError(f"{what}: {self.why(error)}") from error

    def _broken_package(self, error: BaseException) -> tuple[str, Path] | None:
        """The name and the file of the package whose `__init__` raised an error."""
        for frame, _ in traceback.walk_tb(error.__traceback__):
            name = frame.f_globals.get("__name__")
            file = Path(frame.f_code.co_filename)
            if file.name == "__init__.py" and file in self.trees and name not in sys.modules:
                return name, file
        return None

    def _in_pieces(self, name: str, file: Path) -> ModuleType:
        """Run a module statement by statement: one that fails is noted, and the rest works."""
        module = module_of(file, name)
        parent, _, last = name.rpartition(".")
        # As an import does, and for those below it that an earlier try has imported.
        if parent in sys.modules:
            setattr(sys.modules[parent], last, module)
        for other, below in list(sys.modules.items()):
            if other.rpartition(".")[0] == name:
                setattr(module, other.rpartition(".")[2], below)
        self._tell_losses(module)
        for node in _parsed(file).body:
            self.run_statement(node, vars(module), name)
        return module

    def run_statement(self, node: ast.stmt, scope: dict, where: str) -> None:
        """Run a statement of a module; if it fails, note that, and the names that it has not made.

        Such a name is not there afterwards, even if a statement before had made it.
        """
        flags = __future__.annotations.compiler_flag  # as at the top of the course's adapters
        what = f"`{ast.unparse(node).splitlines()[0]}` in {where} fails"
        before = scope.copy()
        why = ""

        def run() -> None:
            exec(compile(ast.Module([node], []), scope["__file__"], "exec", flags), scope)

        try:
            limited(self.seconds, lambda: self.importing(run, what))
        except TimedOut:  # what imports the same module again has to wait as long
            self.seconds = LATER_SECONDS
            why = NO_END
        except ValueError as error:
            why = str(error).removeprefix(f"{what}: ")
        origin = ""
        if isinstance(node, ast.ImportFrom):
            origin = solutions.origin(node, scope["__package__"])
        alone = _one_by_one(node) if not origin or origin in sys.modules else []
        if why and alone:  # one name that fails costs no other
            for statement in alone:
                self.run_statement(statement, scope, where)
            return
        if why and not why.startswith("PackageNotFoundError"):  # its own version is no matter
            self.troubles.setdefault(why, what)
        if isinstance(node, ast.ImportFrom):
            self._after_import_from(node, origin, scope, where, why)
        elif why:
            for name, module in _made_by(node).items():
                made = scope.get(name)
                # A module is the same one, whichever statement imports it.
                if made is before.get(name) and not isinstance(made, ModuleType):
                    self._lose(scope, where, name, Loss(why, module or f"{where}.{name}"))
            for part in ast.walk(node):
                if isinstance(part, ast.Import):
                    for alias in part.names:
                        self._lose_module(alias.name, why)

    def _after_import_from(
        self, node: ast.ImportFrom, origin: str, scope: dict, where: str, why: str
    ) -> None:
        """Note what `from origin import names` has not made; `why` it failed, "" if it did not.

        `import *` from a module that has lost names succeeds without them.
        """
        module = sys.modules.get(origin)
        lost = self.lost.get(origin, {})
        made = {alias.asname or alias.name: alias.name for alias in node.names}
        if "*" in made:
            made = {name: name for name in (*self._exported(origin), *lost)}
        for name, original in made.items():
            if module is not None and hasattr(module, original):
                continue
            if original in lost:
                self._lose(scope, where, name, lost[original])
            elif why:
                self._lose(scope, where, name, Loss(why, f"{origin}.{original}"))
        if why:
            for name in (origin, *(f"{origin}.{alias.name}" for alias in node.names)):
                self._lose_module(name, why)

    def _exported(self, module: str) -> set[str]:
        """The names that `import *` takes from a module, by its source.

        "*" is among them if some are not known: it is no module of the repository, or has an
        `import *` itself.
        """
        if module not in self.modules:
            return {"*"}
        body = self.trees[self.modules[module]].body
        for node in body:
            if isinstance(node, ast.Assign) and "__all__" in _made_by(node):
                with suppress(ValueError, TypeError):  # it is computed
                    return set(ast.literal_eval(node.value))
        return {name for node in body for name in _made_by(node) if not name.startswith("_")}

    def _lose(self, scope: dict, where: str, name: str, loss: Loss) -> None:
        """Note that a name of a module is lost; of several reasons, the first is the true one."""
        scope.pop(name, None)
        self.lost.setdefault(where, {}).setdefault(name, loss)

    def _lose_module(self, name: str, why: str) -> None:
        """Note in its package that a module, or one on the way to it, could not be imported."""
        parts = name.split(".")
        for length in range(1, len(parts)):
            package = ".".join(parts[:length])
            path = ".".join(parts[: length + 1])
            module = sys.modules.get(package)
            if module is None or path not in self.modules:
                return
            if path not in sys.modules and not hasattr(module, parts[length]):
                self._tell_losses(module)
                self._lose(vars(module), package, parts[length], Loss(why, path))
                return

    def loss_of(self, module: str, name: str) -> Loss | None:
        """The loss of a name of a module, which must not be there; None if it is not lost."""
        lost = self.lost.get(module, {})
        if name in lost:
            return lost[name]
        if "*" in lost and not name.startswith("_"):
            return Loss(lost["*"].why, f"{lost['*'].path.removesuffix('*')}{name}")
        return None

    def _tell_losses(self, module: ModuleType) -> None:
        """Make code that reads a lost name of a module say so, in place of a misleading error."""

        def expect_not_lost(name: str) -> None:
            if loss := self.loss_of(module.__name__, name):
                raise LostNameError(name, loss)

        def lost_attribute(name: str) -> NoReturn:
            if loss := self.loss_of(module.__name__, name):
                raise LostAttributeError(f"{module.__name__}.{name}", loss)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        vars(module).setdefault("__getattr__", lost_attribute)
        # A module that was imported whole keeps its own: it has lost nothing but modules below it.
        vars(module).setdefault("__builtins__", _Builtins(expect_not_lost))

    def _lacks(self, error: BaseException) -> str:
        """What this computer lacks, and what to do, if an import fails for that; else ""."""
        settings = self.folder / "pyproject.toml"
        text = settings.read_text("utf-8", "replace") if settings.is_file() else ""
        if NETWORK.search(f"{type(error).__name__}: {error}"):
            return "; it needs the network while it is imported: load that in a function"
        if isinstance(error, FileNotFoundError):
            return "; it opens a file while it is imported: do that in a function"
        if sources := self._compiled_sources(*_not_imported(error)):
            return f"; it is compiled code, of which only {sources[0]} is here: build it first"
        name = str(error.name) if isinstance(error, ImportError) else ""
        if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
            name = error.obj.__name__
        top = name.partition(".")[0]
        is_here = any((root / top).exists() for root in self.roots)
        is_of_python = top in sys.stdlib_module_names
        if is_of_python and is_here:
            return f"; Python has a module `{top}` of its own, which comes first: rename yours"
        if is_of_python or isinstance(error, SyntaxError | TypeError):
            needs = re.search(r"requires-python\D*3\.(\d+)", text)
            if needs and int(needs[1]) > sys.version_info.minor:
                return f"; your pyproject.toml asks for Python 3.{needs[1]}{INSTALL_THERE}"
            if is_of_python or NEWER_TYPE.search(str(error)):
                return f"; it needs a newer Python{INSTALL_THERE}"
        if not isinstance(error, ModuleNotFoundError):
            return ""
        for module in self.modules:
            if module.lower() == name.lower() and module != name:
                return f"; your module is `{module}`: upper and lower case matter"
        if is_installed(top) or is_here:
            return ""
        # The package may have another name than the module: `hydra` is in `hydra-core`.
        asked = re.findall(rf'"([\w.-]*{re.escape(top)}\b[^"\n]*)"', text, re.I)
        its_name = f" ({asked[0]} in your pyproject.toml)" if asked else ""
        return f"; install the package that has `{top}` first{its_name}"

    def _compiled_sources(self, package: str, name: str) -> list[str]:
        """The files of a module of the repository that Python itself cannot run, such as C++."""
        above = sys.modules.get(package)
        places = getattr(above, "__path__", []) if package else map(str, self.roots)
        files = (Path(place, f"{name}{ending}") for place in places for ending in ("", *COMPILED))
        inside = (file for file in files if name and file.is_relative_to(self.folder))
        return [self.path_of(file) for file in inside if file.is_file() or self.is_unbuilt(file)]

    def is_unbuilt(self, folder: Path) -> bool:
        """Whether a folder of the repository has sources of compiled code, and no Python files."""
        if not folder.is_relative_to(self.folder):
            return False
        names = [file.name for pattern in ("*", "*/*") for file in folder.glob(pattern)]
        has_modules = any(name.endswith(tuple(all_suffixes())) for name in names)
        return not has_modules and any(name.endswith(COMPILED) for name in names)

    def why(self, error: BaseException) -> str:
        """Say in words why an import fails, and what to do: the first reason of several."""
        loss = error.loss if isinstance(error, LostError) else self.loss_of(*_not_imported(error))
        if loss is not None:
            return loss.why
        message = f"{type(error).__name__}: {error}"
        lines = traceback.extract_tb(error.__traceback__)
        own = [line for line in lines if Path(line.filename).is_relative_to(self.folder)]
        place = "".join(f", at line {line.lineno} of {line.filename}" for line in own[-1:])
        if isinstance(error, SyntaxError) and error.text:  # the lines only led to the file
            message = f"{type(error).__name__}: {error.msg}"
            place = f", at line {error.lineno} of {error.filename}: `{error.text.strip()}`"
        return f"{message}{place}{self._lacks(error)}"

    def imported(self, name: str) -> ModuleType:
        """Import a module, once entered. Raises: as `importing`."""

        def run() -> ModuleType:
            if name == ADAPTERS and name not in sys.modules:
                return self._in_pieces(name, self.adapters_file)
            return importlib.import_module(name)

        return self.importing(run, f"{name} cannot be imported")

    def object(self, where: str) -> Any:
        """Import what "module:object" names. Raises: ValueError that lists what the module has.

        "scripts/train.py" names a script: its path is returned, and the script does not run.
        """
        module, _, path = where.rpartition(":")
        if not module and where.endswith(".py"):
            if not (self.folder / where).is_file():
                raise ValueError(f"{self.folder} has no file {where}")
            return self.folder / where
        self.enter()
        value: Any = self.imported(module)
        for name in path.split("."):
            if not hasattr(value, name):
                if isinstance(value, ModuleType) and (loss := self.loss_of(module, name)):
                    raise ValueError(f"{where} cannot be imported: {loss.why}")
                named = ((n, getattr(v, "__module__", None)) for n, v in vars(value).items())
                has = [n for n, home in named if isinstance(home, str) and self.holds(home)]
                raise ValueError(f"{module} has no {path}; it has {', '.join(has) or 'nothing'}")
            value = getattr(value, name)
        return value


_entered: dict[Path, Repository] = {}


# The search for the parts.


def find_parts(folder: str, wanted: dict[str, list[str]]) -> Iterator[dict]:
    """Find the object of each problem in a repository; each comes as soon as it is found.

    Yields dicts: `problem`, `where` ("module:object", two for a pair) and `how` in words; at last
    one `trouble` each, a sentence on what cannot be imported.

    Raises: ValueError if an object that is `wanted` for a problem cannot be used.
    """
    repository = Repository(folder)
    repository.enter()
    for where in (place for places in wanted.values() for place in places):
        repository.object(where)
    search = _Search(repository)
    yield from search.by_adapters()
    yield from search.by_handouts_names()
    yield from search.by_names()
    yield from ({"trouble": f"{what}: {why}"} for why, what in repository.troubles.items())
    if is_of_2024(repository.folder):
        yield {"trouble": OF_2024.format(", ".join(OTHER_IN_2024))}


def is_of_2024(folder: Path) -> bool:
    """Whether a repository is of the course's 2024 edition, by what its adapters are asked for."""
    path = folder / "tests" / "adapters.py"
    return path.is_file() and b"def run_gelu(" in path.read_bytes()


class _Candidate(NamedTuple):
    """An object that an adapter uses. The least one is likeliest the part."""

    has_other_name: bool  # than learners give the part
    is_beside: bool  # it is there, but its name says nothing: a helper, if the part itself is lost
    is_others: bool
    is_unfit: bool  # a class where a function is asked for, or the other way round
    order: int  # the last one that is used first
    where: str


class _Search:
    """What is found so far in one repository."""

    def __init__(self, repository: Repository):
        self.repository = repository
        self.found: set[str] = set()  # problems
        self.taken: dict[str, str] = {}  # the problem that has an object, by its place
        self.adapters = repository.adapters
        paths = {file: f"/{repository.path_of(file)}" for file in repository.trees}
        # Where parts may be: the likeliest file first.
        self.files = [file for file, path in paths.items() if "/tests/" not in path]
        self.files.sort(key=lambda file: (bool(ASIDE.search(paths[file])), len(paths[file])))

    def by_adapters(self) -> Iterator[dict]:
        """Yield what the adapters use that are written."""
        repository = self.repository
        names = _written_adapters(self.repository)
        module = repository.imported(ADAPTERS) if names else None
        if module is None:
            return
        for problem, details in PARTS.items():
            uses = {name: self.uses(name, module) for name in details.adapters if name in names}
            is_pair = problem == "checkpointing"
            if not is_pair:  # one is enough; the second does less
                uses = dict(sorted(uses.items(), key=lambda item: not item[1].keys() - {""})[:1])
            parts = [self.part(problem, *used) for used in uses.items()]
            if None not in parts and len(parts) == 1 + is_pair:
                self.found.add(problem)
                wheres = [where for where, _ in parts]
                where = wheres if len(wheres) > 1 else wheres[0]
                if problem in CODE:
                    yield {"problem": problem, "where": where, "how": parts[0][1]}

    def uses(self, name: str, module: ModuleType) -> dict[str, Any]:
        """The objects of the repository that an adapter names, also through its helpers, in order.

        The names come from its source, and their values from its module; it does not run. They
        come by the places where they are defined, those that are lost as a `Loss`; "" stands for
        one of an unknown place.
        """
        uses: dict[str, Any] = {}
        todo = [name]
        scope = dict(vars(module))
        for adapter in todo:  # which grows
            node = self.adapters.get(adapter, ast.Name(adapter, ast.Load()))
            for part in ast.walk(node):
                if isinstance(part, ast.Import | ast.ImportFrom):
                    self.repository.run_statement(part, scope, ADAPTERS)
            its_own = _local_names(node)
            for first, *rest in filter(None, map(_path, ast.walk(node))):
                is_adapter = any(first in details.adapters for details in PARTS.values())
                if first in self.adapters:
                    todo += [] if is_adapter or first in todo else [first]
                elif first not in its_own:
                    uses |= self.used(scope, first, rest)
        return uses

    def used(self, scope: dict, first: str, rest: list[str]) -> dict[str, Any]:
        """What `first.rest` is in a scope of the adapters, by its place; {} if it is not theirs."""
        if first not in scope:
            is_builtin = hasattr(builtins, first)
            loss = None if is_builtin else self.repository.loss_of(ADAPTERS, first)
            return self.lost(loss, rest)
        value = scope[first]
        for place, name in enumerate(rest):
            if not isinstance(value, ModuleType):
                return self.home(value, rest[place:])
            if not hasattr(value, name):
                module = value.__name__
                loss = self.repository.loss_of(module, name)
                if loss is None and self.repository.holds(value):
                    loss = Loss(f"{module} has no {name}", f"{module}.{name}")
                    what = f"`{'.'.join((first, *rest))}` in {ADAPTERS} fails"
                    self.repository.troubles.setdefault(loss.why, what)
                return self.lost(loss, rest[place + 1 :])
            value = getattr(value, name)
        return self.home(value, [])

    def lost(self, loss: Loss | None, rest: list[str]) -> dict[str, Any]:
        """A lost object by the place where it would be, or by "" if none is known."""
        if loss is None:
            return {}
        parts = [*loss.path.split("."), *rest]
        for length in range(len(parts) - 1, 0, -1):
            module = ".".join(parts[:length])
            below = ".".join(parts[: length + 1])
            if module in self.repository.modules and below not in self.repository.modules:
                # Its import says why there is no such module.
                if length + 1 < len(parts) and f"No module named {below!r}" in loss.why:
                    return {f"{below}:{parts[length + 1]}": loss}
                return {f"{module}:{parts[length]}": loss}
        return {"": loss}

    def home(self, value: Any, rest: list[str]) -> dict[str, Any]:
        """An object of the repository, or its static method, by where it is; else {}."""
        method = inspect.getattr_static(value, rest[0], None) if rest else None
        if isinstance(method, staticmethod | classmethod):
            value = getattr(value, rest[0])
        module, path = (getattr(value, name, None) for name in ("__module__", "__qualname__"))
        has_place = isinstance(module, str) and isinstance(path, str) and "<" not in path
        return {f"{module}:{path}": value} if has_place and self.repository.holds(module) else {}

    def part(self, problem: str, name: str, uses: dict[str, Any]) -> tuple[str, str] | None:
        """The object an adapter uses that is likeliest the problem's own, or else the adapter.

        Returns where it is, and how it was found, in words.
        """
        best = min(self.candidates(problem, uses), default=None)
        if best is not None and not (best.is_beside and "" in uses):
            self.taken[best.where] = problem
            but = ", but it cannot be imported" if isinstance(uses[best.where], Loss) else ""
            return best.where, f"{name} uses it{but}"
        is_lost = any(isinstance(value, Loss) for value in uses.values())
        is_class = problem in CODE and PROBLEMS[problem].form == "class"
        # An adapter may put loose pieces together, where there is a class that does so too.
        if (is_class or (is_lost and problem in CODE)) and (own := self.named(problem)):
            return own[0], FOUND_BY_NAME
        # `get_adamw_cls` is not an optimizer itself: it takes no arguments.
        if problem in ("silu", "adamw"):
            return None
        how = "it uses what cannot be imported" if is_lost else "its body is in tests/adapters.py"
        return f"{ADAPTERS}:{name}", how

    def candidates(self, problem: str, uses: dict[str, Any]) -> Iterator[_Candidate]:
        """Yield the objects an adapter uses that may be the problem's own."""
        known = {other for other, details in PARTS.items() if details.adapters}
        others = known - self.found - {problem}
        is_class = problem in PROBLEMS and PROBLEMS[problem].form == "class"
        for place, (where, value) in enumerate(uses.items()):
            own = plain(re.split("[:.]", where)[-1])
            is_its_own = is_named(own, problem)
            is_others = any(is_named(own, other) for other in others)
            # A helper in a body of its own; SiLU may be a method of the class for SwiGLU.
            is_helper = not is_its_own and (problem == "silu" or is_others)
            # It trains by a method, which only the adapter knows to call.
            is_helper |= problem == "train_bpe" and own.endswith("tokenizer")
            if not where or is_helper or self.taken.get(where, problem) != problem:
                continue
            is_lost = isinstance(value, Loss)
            yield _Candidate(
                has_other_name=not is_its_own,
                is_beside=not is_its_own and not is_lost,
                is_others=is_others,
                is_unfit=not is_lost and inspect.isclass(value) != is_class,
                order=-place,
                where=where,
            )

    def by_handouts_names(self) -> Iterator[dict]:
        """Yield what the adapters do not lead to, but has the name that the handout gives it."""
        for problem in CODE:
            is_missing = PARTS[problem].adapters and problem not in self.found
            if is_missing and (wheres := self.named(problem)):
                where = wheres if len(wheres) > 1 else wheres[0]
                yield {"problem": problem, "where": where, "how": FOUND_BY_NAME}

    def named(self, problem: str) -> list[str]:
        """Where what has the handout's name is, both of a pair; [] if it is not there."""
        details = PROBLEMS[problem]
        names = [name.removeprefix("run_") for name in PARTS[problem].adapters]
        wanted = [[name] for name in names]
        if details.form != "pair":
            # Our own names for the functions are no more than words: `clip`, `schedule`.
            wanted = [[*names, problem, *(details.names if details.form == "class" else ())]]
        kind: Any = ast.ClassDef if details.form == "class" else ast.FunctionDef
        wheres: list[str] = []
        for alternatives in wanted:
            meant = set(map(plain, alternatives))
            wheres += [
                f"{self.repository.name_of(file)}:{name}"
                for file in self.files
                for name in _written(self.repository.trees[file], kind)
                if plain(name) in meant
            ][:1]
        return wheres if len(wheres) == len(wanted) else []

    def by_names(self) -> Iterator[dict]:
        """Yield what trains and what generates, for which the course has no adapters."""
        for problem, search in (("training_together", self.trainers), ("decoding", self.decoders)):
            ranked = [found for file in self.files for found in search(file)]
            if ranked:
                where = min(ranked, key=lambda found: found[:-1])[-1]
                yield {"problem": problem, "where": where, "how": FOUND_BY_NAME}

    def trainers(self, file: Path) -> Iterator[tuple]:
        """Yield what may train in a file: its rank, the least first, and at last where it is."""
        tree = self.repository.trees[file]
        path = self.repository.path_of(file)
        in_script = "train" in file.stem.lower() and not UNLIKELY.search(f"/{path}")
        tops = {name.partition(".")[0] for name in self.repository.modules}
        imported = set(_imported(tree))
        knows_model = "torch" in imported or (in_script and imported & {"", *tops})
        if not knows_model or re.search("bpe|tok|test", path.lower()):
            return
        able = {}
        for prefix, node in _functions(tree):
            name = plain(node.name)
            if not prefix and is_named(name, "training_together") and "train" in path + name:
                able[node.name] = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        for name in able:
            # One that another uses is a single step.
            is_step = any(name in able[other] for other in able if other not in (name, "main"))
            where = f"{self.repository.name_of(file)}:{name}"
            yield not in_script, is_step or name == "main", where
        if in_script and any(map(_does, tree.body)):  # for want of a function
            yield True, True, path

    def decoders(self, file: Path) -> Iterator[tuple]:
        """Yield what may generate in a file: its rank, the least first, and at last where it is."""
        for prefix, node in _functions(self.repository.trees[file]):
            arguments = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
            known = {meaning(argument, GENERATES) for argument in arguments} - {None}
            is_decoder = is_named(plain(node.name), "decoding") and "token" not in prefix.lower()
            is_decoder &= len(known) > 1 and bool(known & OF_TEXT)
            if is_decoder and known & ONLY_GENERATES:
                yield -len(known), f"{self.repository.name_of(file)}:{prefix}{node.name}"


def _written_adapters(repository: Repository) -> set[str]:
    """The names in `tests/adapters.py` that are imported, or of functions that are no stubs."""
    tree = repository.trees.get(repository.adapters_file, ast.Module([], []))
    imports = (node.names for node in tree.body if isinstance(node, ast.ImportFrom))
    names = {alias.asname or alias.name for names in imports for alias in names}
    return names | {node.name for _, node in _functions(tree)}


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions and methods of a file that are no stubs, with "Class." or "" before them."""
    for node in tree.body:
        owner = ""
        members = [node]
        if isinstance(node, ast.ClassDef):
            owner = f"{node.name}."
            members = node.body
        for function in members:
            if isinstance(function, ast.FunctionDef) and not all(map(_is_of_stub, function.body)):
                yield owner, function


def _parsed(file: Path) -> ast.Module:
    """A file as a tree; a warning of its escape sequences would be no news."""
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(file.read_bytes(), str(file))


def _written(tree: ast.Module, kind: Any) -> set[str]:
    """The names of the classes, or of the functions, in a file that are no stubs."""
    written = {prefix[:-1] or node.name for prefix, node in _functions(tree)}
    return {node.name for node in tree.body if isinstance(node, kind) and node.name in written}


def _is_of_stub(line: ast.stmt) -> bool:
    """Whether a statement does nothing: `pass`, `...`, a docstring, or an error that it raises."""
    is_constant = isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
    return is_constant or isinstance(line, ast.Pass | ast.Raise)


def _path(node: ast.AST) -> list[str]:
    """The names in `a.b.c` as it is read; [] for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return [node.id, *parts]
    return []


def _made_by(node: ast.stmt) -> dict[str, str]:
    """The names that a statement of a module makes there; "*" for those of another module.

    By each, the module that it is, such as "package.module", or "" for anything else.
    """
    if isinstance(node, ast.Import):
        tops = {alias.name.partition(".")[0] for alias in node.names if not alias.asname}
        named = {alias.asname: alias.name for alias in node.names if alias.asname}
        return {**{top: top for top in tops}, **named}
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name: "" for alias in node.names}
    # A `return` there is an error, and Python warns when the module is imported.
    with suppress(SyntaxError), warnings.catch_warnings(action="ignore"):
        return dict.fromkeys(solutions.names_bound(compile(ast.Module([node], []), "", "exec")), "")
    return {}


def _imported(tree: ast.Module) -> Iterator[str]:
    """The top names of the modules that a file imports, anywhere in it; "" for its own package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "" if node.level else str(node.module).partition(".")[0]


def _one_by_one(node: ast.stmt) -> list[ast.stmt]:
    """A statement that imports several names, as a statement for each; [] for any other."""
    alone: list[ast.stmt] = []
    if isinstance(node, ast.Import | ast.ImportFrom) and len(node.names) > 1:
        for alias in node.names:
            alone.append(copy(node))
            alone[-1].names = [alias]  # type: ignore[attr-defined]
    return alone


def _not_imported(error: BaseException) -> tuple[str, str]:
    """The module, and the name in it, that an error says cannot be imported; "" for both if none.

    The name may be that of a module, in the package or, without one, at the top.
    """
    name = str(error.name) if isinstance(error, ImportError) else ""
    if isinstance(error, ModuleNotFoundError):
        package, _, missing = name.rpartition(".")
        return package, missing
    found = re.match("cannot import name '(.*?)' from", str(error))
    return (name, found[1]) if name and found else ("", "")


def _local_names(node: ast.AST) -> set[str]:
    """The names that a function makes itself, other than by imports."""
    names = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            names.add(part.id)
        elif isinstance(part, ast.FunctionDef | ast.ClassDef) and part is not node:
            names.add(part.name)
    return names


def _does(node: ast.stmt) -> bool:
    """Whether a statement does something, unlike definitions and imports."""
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return is_call or isinstance(node, ast.For | ast.While | ast.With | ast.If)


# The mapping.


@dataclass
class Adopted:
    """Where a learner's parts are: "module:object", two for a pair, "" to use none."""

    folder: Path
    file: Path  # that says so
    found: dict[str, Where]  # by problem
    by_hand: dict[str, Where]  # with `--set`, or in the file: it wins
    how: dict[str, str] = field(default_factory=dict)  # `adopt` found each part
    notes: list[str] = field(default_factory=list)  # for the learner, by `adopt`

    @property
    def parts(self) -> dict[str, Where]:
        """Where the part for each problem is."""
        both = {**self.found, **self.by_hand}
        return {name: both[name] for name in CODE if name in both}

    def where(self, problem: str) -> str:
        """Where the part for a problem is; for a pair, both with a comma between; "" for none."""
        return ", ".join(_both(self.parts.get(problem, "")))

    def __str__(self) -> str:
        how = {**self.how, **dict.fromkeys(self.by_hand, "by hand")}
        rows = [(n, " and ".join(_both(w)), how[n]) for n, w in self.parts.items() if w]
        table = [f"{name:<28}  {where}  ({how})" for name, where, how in rows]
        title = f"{len(rows)} of {len(CODE)} parts found in {self.folder}"
        kept = [*self.notes, f"Kept in {self.file}."]
        if not rows:  # so nothing can be checked yet
            return "\n".join([f"{title}.", "", *kept])
        return "\n".join([f"{title}:", "", *table, "", *kept, NEXT])


def _both(where: Where) -> list[str]:
    return [where] if isinstance(where, str) else list(where)


def read_adopted(study: Path) -> Adopted | None:
    """Read where the parts are; None if nothing was adopted.

    Raises: ValueError if the file is damaged, FileNotFoundError if the folder in it is gone.
    """
    adopted = _read(Path(study) / FILE)
    if adopted is not None and not adopted.folder.is_dir():
        raise FileNotFoundError(
            f"{adopted.file} says that your repository is {adopted.folder}, which is not there; if"
            " it moved, run `workbook adopt PATH` with its new path"
        )
    return adopted


def _read(file: Path) -> Adopted | None:
    try:
        stored = tomllib.loads(file.read_text(encoding="utf-8"))
        tables = [stored.get(name, {}) for name in ("parts", "by_hand")]
        if not isinstance(stored.get("folder"), str) or not all(
            isinstance(t, dict) for t in tables
        ):
            raise ValueError('expected folder = "PATH" and the tables [parts] and [by_hand]')
        for table in tables:
            for name, where in table.items():
                _expect_part(name, where)
    except FileNotFoundError:
        return None
    except ValueError as error:  # not UTF-8, or not TOML, among others
        mend = "correct it, or delete the file and run `workbook adopt PATH` again"
        raise ValueError(f"{file} cannot be used: {error}; {mend}") from error
    return Adopted(Path(stored["folder"]), file, *tables)


def _expect_part(name: str, where: Any) -> None:
    """Raise ValueError unless an entry names a code problem, and an object for it."""
    problem = problems.with_id(name)
    if not problem.form:
        raise ValueError(f"{name} is not a code problem; expected one of {', '.join(CODE)}")
    is_pair = problem.form == "pair"
    wheres = where if is_pair and isinstance(where, list) else [where]
    fits = all(isinstance(place, str) and WHERE.fullmatch(place) for place in wheres)
    if where != "" and not (fits and len(wheres) == 1 + is_pair):
        wanted = '["module:save", "module:load"]' if is_pair else '"module:object"'
        raise ValueError(f"expected {name} = {wanted}, got {where!r}")


def _write(adopted: Adopted) -> None:
    lines = [
        "# Where your parts are. `workbook adopt` writes [parts] anew each time; what you put",
        '# under [by_hand] stays, and wins: problem = "module:name", or "" to leave a part out.',
        f"folder = {json.dumps(str(adopted.folder), ensure_ascii=False)}",
    ]
    for title, table in (("parts", adopted.found), ("by_hand", adopted.by_hand)):
        entries = (f"{n} = {json.dumps(w, ensure_ascii=False)}" for n, w in table.items())
        lines += ["", f"[{title}]", *entries]
    with locked(adopted.file.parent / MARK), atomic_write(adopted.file) as file:
        file.write("\n".join(lines) + "\n")


def read_options(options: list[str]) -> dict[str, Where]:
    """Read `problem=module:name` as `--set` takes it, two names for a pair. Raises: ValueError."""
    places: dict[str, Where] = {}
    for option in options:
        name, sign, where = option.partition("=")
        if not sign:
            raise ValueError(f"expected --set problem=module:name, got {option!r}")
        wheres = [place.strip() for place in where.split(",")]
        places[problems.with_id(name.strip()).id] = wheres if len(wheres) > 1 else wheres[0]
    return places


def adopt(path: str | os.PathLike, options: Mapping[str, Where], study: Path | str) -> Adopted:
    """Find a learner's parts in their repository of the course, and record where they are.

    Args:
        path: the folder of the repository; nothing in it is changed, and only its imports run, in
            a process of their own.
        options: where a part is, by problem; "" forgets what was set before.
        study: the study folder, which is made if it is missing.

    Raises: ValueError if an object of `options` cannot be used, the folder has no Python code, or
    `adopted.toml` is damaged; OSError, for example if there is no such folder.
    """
    repository = Repository(path)
    file = Path(study) / FILE
    repository.trees  # noqa: B018 - raises if the folder has no Python code
    wanted = {name: where for name, where in options.items() if where}
    for name, where in wanted.items():
        _expect_part(name, where)
    before = _read(file)
    kept = {n: w for n, w in (before.by_hand if before else {}).items() if n not in options}
    adopted = Adopted(repository.folder, file, {}, {**kept, **wanted})
    asked = {name: _both(where) for name, where in wanted.items()}
    search = find_parts, str(repository.folder), asked
    try:
        for finding in worker.results(*search, seconds=SEARCH_SECONDS):
            if "trouble" in finding:
                adopted.notes.append(f"Note: {finding['trouble']}")
            else:
                name = finding["problem"]
                adopted.found[name] = finding["where"]
                adopted.how[name] = finding["how"]
    except worker.EndedError as error:
        adopted.notes.append(f"Note: the search for your parts was cut short: {error}")
    if trouble := repository.adapters_trouble:
        adopted.notes.append(f"Note: {trouble}; so only the handout's own names were looked for.")
    missing = [name for name in CODE if name not in adopted.parts]
    stubs = repository.adapters.keys() - _written_adapters(repository)
    unwritten = [name for name in missing if stubs.intersection(PARTS[name].adapters)]
    if unwritten:
        adopted.notes.append(f"Not written yet in tests/adapters.py: {', '.join(unwritten)}.")
    if others := [name for name in missing if name not in unwritten]:
        adopted.notes.append(f"Not found: {', '.join(others)}; {ADD.format(others[0])}.")
    _write(adopted)
    return adopted


# The parts, imported.


def why_nothing(study: Path) -> str:
    """Why there is no part of the learner's, and what to do. Raises: as `places`."""
    adopted = read_adopted(study)
    if adopted is None:
        return NOTHING
    trouble = Repository(adopted.folder).adapters_trouble or "its tests/adapters.py calls none yet"
    return f"no part of yours was found in {adopted.folder}: {trouble}; {ADD.format(CODE[0])}"


def places(study: Path) -> dict[str, str]:
    """Where the part for each code problem is, if there is one, in the handout's order.

    Raises: ValueError, OSError if the mapping of a repository cannot be used.
    """
    adopted = read_adopted(study)
    there = {}
    for name in CODE:
        if adopted is not None and adopted.where(name):
            there[name] = adopted.where(name)
        elif (study / solutions.FOLDER / f"{name}.py").is_file():
            names = problems.with_id(name).names or (name,)
            there[name] = f"{solutions.FOLDER}.{name}:{', '.join(names)}"
    return there


def enter(adopted: Adopted) -> Repository:
    """Make this process able to import from the repository; the second time, it already is."""
    repository = _entered.get(adopted.folder) or Repository(adopted.folder)
    repository.enter()
    return repository


def load_adopted(adopted: Adopted, problem: str) -> Any:
    """Import the part for a problem: an object, a tuple for a pair, the path of a script.

    Raises: ValueError if it cannot be imported, with the reason.
    """
    objects = tuple(map(enter(adopted).object, _both(adopted.parts[problem])))
    return objects if len(objects) > 1 else objects[0]


def adapters(adopted: Adopted, problem: str, part: Any = None) -> dict[str, Callable]:
    """The functions in `tests/adapters.py` for a problem, without those that are not written.

    There are none for a `part`, if that is given, which none of them leads to.
    """
    repository = enter(adopted)
    written = _written_adapters(repository)
    names = [name for name in PARTS[problem].adapters if name in written]
    module = repository.imported(ADAPTERS) if names else None
    functions = {name: getattr(module, name) for name in names if hasattr(module, name)}
    first = part[0] if isinstance(part, tuple) else part
    is_used = any(leads_to(function, first, repository.holds) for function in functions.values())
    return functions if part is None or is_used else {}


def leads_to(thing: Any, other: Any, holds: Callable[[Any], bool]) -> bool:
    """Whether an object's source names another, or does so through others of the repository.

    Where that cannot be seen, it may.
    """
    todo = [thing]
    for each in todo:  # which grows
        if each == other:
            return True
        try:
            tree = ast.parse(dedent(inspect.getsource(each)))
            scope = vars(sys.modules[each.__module__])
        except (OSError, TypeError, SyntaxError, LookupError):
            return True
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                return True
            first, *rest = _path(node) or [""]
            value = scope.get(first)
            for name in rest:
                value = getattr(value, name, None)
            kinds = (inspect.isclass, inspect.isfunction, inspect.ismethod)
            is_code = any(is_kind(value) for is_kind in kinds)
            if is_code and value not in todo and holds(value.__module__):
                todo.append(value)
    return False
