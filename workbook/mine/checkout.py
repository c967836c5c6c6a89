"""A checkout of the course's repository, made importable in this process, and never written to.

Such a folder is seldom installed: its version is unknown, packages that it needs may be missing,
and its modules import each other as if they were all side by side.
"""

import ast
import atexit
import importlib
import importlib.metadata
import importlib.util
import json
import linecache
import os
import re
import shutil
import sys
import tempfile
import tomllib
import traceback
from abc import ABCMeta
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

SKIPPED = {"venv", "env", "site-packages", "node_modules", "__pycache__", "build", "dist", "wandb"}
MOST_FILES = 2000  # in a checkout; a home folder has more
ADAPTERS = "tests.adapters"
INSTALLED_AS = {"yaml": "pyyaml", "sklearn": "scikit-learn", "cv2": "opencv-python"}
INSTALLED_AS |= {"PIL": "pillow", "dotenv": "python-dotenv"}


class Checkout:
    """A folder with somebody's solutions, read from its files; none of it runs before `enter`."""

    def __init__(self, folder: str | os.PathLike):
        """Find the repository's folder, also from a package inside it. Raises: OSError."""
        path = Path(folder).expanduser().resolve()
        if not path.is_dir():
            what = "a file" if path.exists() else "not there"
            raise NotADirectoryError(f"{path} is {what}; expected the folder of your repository")
        while (path / "__init__.py").is_file() and not (path / "tests").is_dir():
            path = path.parent
        if path.name == "tests" and (path / "adapters.py").is_file():
            path = path.parent
        self.folder = path
        self._errors: dict[Path, Exception] = {}  # of files that cannot be parsed

    @cached_property
    def files(self) -> list[Path]:
        """All Python files and notebooks. Raises: ValueError if there are none, or far too many."""
        found: list[Path] = []
        for folder, below, names in os.walk(self.folder):
            below[:] = sorted(
                name
                for name in below
                if not (name.startswith(".") or name in SKIPPED)
                and not Path(folder, name, "pyvenv.cfg").exists()
            )
            shown = (name for name in sorted(names) if not name.startswith("."))
            found += [Path(folder, n) for n in shown if n.endswith((".py", ".ipynb"))]
            if len(found) > MOST_FILES:
                raise ValueError(
                    f"{self.folder} has more than {MOST_FILES} Python files and notebooks; name the"
                    " folder of your repository itself"
                )
        if not found:
            raise ValueError(f"{self.folder} has no Python files; expected your repository")
        return found

    @cached_property
    def modules(self) -> dict[str, Path]:
        """The file of each module, by the name that it is imported by; notebooks by their path."""
        found: dict[str, Path] = {}
        for file in self.files:
            is_notebook = file.suffix == ".ipynb"
            path = file.relative_to(self.folder).as_posix()
            if name := path if is_notebook else self._placed(file)[1]:
                found.setdefault(name, file)
        return found

    def _placed(self, file: Path) -> tuple[Path, str]:
        """The folder that a file is imported from, and the name that it has there, or ""."""
        root, parts = self.folder, [*file.relative_to(self.folder).with_suffix("").parts]
        # A checkout may lie in a folder such as `assignment1-basics` of another one.
        while not all(part.isidentifier() for part in parts):
            root /= parts.pop(0)
        while len(parts) > 1 and parts[0] not in self._named and not _is_package(root / parts[0]):
            if parts[0] != "src" and not _is_package(root / parts[0] / parts[1]):
                break
            root /= parts.pop(0)
        return root, ".".join(parts[:-1] if parts[-1:] == ["__init__"] else parts)

    @cached_property
    def trees(self) -> dict[Path, ast.Module]:
        """Each file, parsed: only the definitions of a notebook, and nothing if it has an error."""
        found: dict[Path, ast.Module] = {}
        for file in self.files:
            try:
                is_notebook = file.suffix == ".ipynb"
                source = _definitions_of(file) if is_notebook else file.read_bytes()
                found[file] = ast.parse(source, str(file))
            except (OSError, ValueError, SyntaxError) as error:
                found[file] = ast.Module([], [])
                self._errors[file] = error
        return found

    @cached_property
    def unread(self) -> dict[str, str]:
        """Why modules that Python cannot even parse cannot be imported."""
        errors = {name: self._errors.get(file) for name, file in self.modules.items()}
        return {name: self._why(error) for name, error in errors.items() if error}

    @cached_property
    def _named(self) -> set[str]:
        """The first part of every name that a file imports."""
        return {top for tree in self._scripts.values() for top in imports(ast.walk(tree))}

    @cached_property
    def _scripts(self) -> dict[Path, ast.Module]:
        """The trees without those of notebooks."""
        return {file: tree for file, tree in self.trees.items() if file.suffix == ".py"}

    @cached_property
    def roots(self) -> list[Path]:
        """The folders where Python is to look for modules; those for bare imports come last."""
        files = [file for file in self._scripts if self._placed(file)[1]]
        roots = [self.folder, *(self._placed(file)[0] for file in files)]
        roots = list(dict.fromkeys(roots))
        for file, tree in self._scripts.items():
            for top in dict.fromkeys(imports(ast.walk(tree))):
                above = file.parents[: len(file.relative_to(self.folder).parts)]
                beside = [*above, *(other.parent for other in files)]
                place = next((folder for folder in beside if _has([folder], top)), None)
                if place and not _has(roots, top) and not _is_installed(top):
                    roots.append(place)
        return roots

    def find(self, module: str) -> Path | None:
        """The file of a module of this checkout; None if it has no such module."""
        if module in self.modules:
            return self.modules[module]
        paths = [root.joinpath(*module.split(".")) for root in self.roots]
        files = (file for p in paths for file in (p.with_suffix(".py"), p / "__init__.py"))
        return next((file for file in files if file.is_file()), None)

    @cached_property
    def missing(self) -> dict[str, list[Path]]:
        """The packages that are not installed here, each with the files that import it.

        An import in a function, or under `if` or `try`, does not count: the file can be imported
        without it.
        """
        found: dict[str, list[Path]] = {}
        for file, tree in self._scripts.items():
            if not file.is_relative_to(self.folder / "tests") or file.stem == "adapters":
                for top in dict.fromkeys(imports(tree.body)):
                    if not _has(self.roots, top) and not _is_installed(top):
                        found.setdefault(top, []).append(file)
        return found

    def enter(self) -> None:
        """Make this process, and those that it starts, able to import from the folder.

        Nothing is written there, and nothing there shadows Python's own modules.
        """
        if self.folder in _entered:
            return
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        names = (each.partition(".")[0] for each in (*self.modules, ADAPTERS))
        tops = set(filter(str.isidentifier, names))  # no notebooks
        others = tops - sys.stdlib_module_names - {"workbook"}
        for name, module in list(sys.modules.items()):  # of another checkout, or another `tests`
            if name.partition(".")[0] in others and not self._holds(module):
                del sys.modules[name]
        libraries = (n for n, each in enumerate(sys.path) if each.endswith("-packages"))
        first = next(libraries, len(sys.path))
        # Before what is installed, which may be another copy of it, but after Python's own. Folders
        # of loose modules come last: a module may have the name of a library.
        own = [root for root in self.roots if root == self.folder or _holds_packages(root)]
        sys.path[first:first] = map(str, own)
        sys.path += [str(root) for root in self.roots if root not in own]
        self._supply(tops)
        if (self.folder / "tests").is_dir():
            # A regular package `tests`, which many libraries install, goes before a plain folder.
            sys.modules["tests"] = tests = ModuleType("tests")
            tests.__path__ = [str(self.folder / "tests")]
        _broken.update(self.unread)
        _find_stand_ins()
        if "torch" in self._named:
            _mend_torch()
        _entered.add(self.folder)

    def _supply(self, tops: set[str]) -> None:
        """Supply what is not installed, as files: the workers of a pool import it too."""
        supplies = Path(tempfile.mkdtemp(prefix="workbook-adopt-"))
        atexit.register(shutil.rmtree, supplies, ignore_errors=True)
        with suppress(
            OSError, ValueError, LookupError
        ):  # many ask for the version of their own package
            project = tomllib.loads((self.folder / "pyproject.toml").read_text(encoding="utf-8"))
            tops = {*tops, str(project["project"]["name"])}
        for name in tops - {"tests"}:
            try:
                importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                folder = supplies / f"{re.sub('[-_.]+', '_', name)}-0.0.dist-info"
                folder.mkdir(exist_ok=True)
                text = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0\n"
                (folder / "METADATA").write_text(text)
        for top in self.missing:
            (supplies / top).mkdir(exist_ok=True)
            code = f"import sys\nfrom {__name__} import stand_in\nstand_in(sys.modules[__name__])\n"
            (supplies / top / "__init__.py").write_text(code)
        sys.path.append(str(supplies))
        importlib.invalidate_caches()

    def _holds(self, module: ModuleType) -> bool:
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        return any(Path(each).is_relative_to(self.folder) for each in places if each)

    def imported(self, name: str) -> ModuleType:
        """Import a module of the checkout, once entered. Raises: ValueError that says why not.

        A name such as `part1.ipynb` means a notebook: its imports and definitions are run. Where
        `tests.adapters` imports a module that fails, a stand-in takes its place, so that the other
        adapters still work.
        """
        while True:
            try:
                is_notebook = name.endswith(".ipynb")
                return self._notebook(name) if is_notebook else importlib.import_module(name)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a script that ends with sys.exit() too
                failed = self._failed(error) if name == ADAPTERS else None
                if failed is None or failed in _broken:
                    raise ValueError(f"{name} cannot be imported: {self._why(error)}") from error
                _broken[failed] = self._why(error)

    def _failed(self, error: BaseException) -> str | None:
        """The module whose import failed, None if the adapters themselves failed."""
        if isinstance(error, ModuleNotFoundError) and error.name:
            return error.name if error.name != ADAPTERS else None
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        names = [f.f_globals["__name__"] for f in frames if f.f_code.co_name == "<module>"]
        return next((n for n in reversed(names) if n != ADAPTERS and self.find(n)), None)

    def run_import(self, statement: ast.Import | ast.ImportFrom, scope: dict[str, Any]) -> None:
        """Import what a function imports, into a scope. Raises: ValueError."""
        try:
            exec(compile(ast.Module([statement], []), ADAPTERS, "exec"), scope)
        except Exception as error:
            raise ValueError(f"`{ast.unparse(statement)}` fails: {self._why(error)}") from error

    def _why(self, error: BaseException) -> str:
        if isinstance(error, SyntaxError) and error.filename:
            python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
            return (
                f"line {error.lineno} of {self._short(error.filename)} is not valid in {python}:"
                f" {error.msg}; if it needs a newer Python, install the workbook in that one"
            )
        lines = traceback.extract_tb(error.__traceback__)
        own = [each for each in lines if Path(each.filename).is_relative_to(self.folder)]
        where = f", at line {own[-1].lineno} of {self._short(own[-1].filename)}" if own else ""
        return f"{type(error).__name__}: {error}{where}"

    def _short(self, file: str) -> str:
        return file.removeprefix(f"{self.folder}{os.sep}")

    def _notebook(self, name: str) -> ModuleType:
        if name not in sys.modules:
            module = sys.modules[name] = ModuleType(name)
            module.__file__ = file = str(self.folder / name)
            tree = self.trees[self.modules[name]]
            for node in tree.body:
                with suppress(Exception):  # a part may not need what fails here
                    exec(compile(ast.Module([node], []), file, "exec"), vars(module))
            lines = ast.unparse(tree).splitlines(keepends=True)
            linecache.cache[file] = (0, None, lines, file)  # for `inspect.getsource`
        return sys.modules[name]

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
        whole = found = self.imported(module)
        for name in path.split("."):
            if not hasattr(found, name):
                has = [n for n, each in vars(found).items() if self._is_own(n, each)]
                raise ValueError(
                    f"{module} has no {path}; it has {', '.join(has) or 'no function or class'}"
                )
            found = getattr(found, name)
        if "_workbook_why" in getattr(found, "__dict__", ()):
            what = module if isinstance(whole, _StandIn) else where
            raise ValueError(f"{what} cannot be imported: {found._workbook_why}")
        return found

    def _is_own(self, name: str, value: Any) -> bool:
        of = getattr(value, "__module__", None)
        is_theirs = isinstance(of, str) and self.find(of) is not None
        return callable(value) and not name.startswith("__") and is_theirs


_entered: set[Path] = set()


def imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The top-level name of each absolute import among some nodes of a syntax tree."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _definitions_of(path: Path) -> str:
    """The source of the imports, functions, classes and plain constants of a notebook."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found: list[ast.stmt] = []
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    for source in sources:
        plain = (line for line in source.splitlines() if not re.match(r"\s*[%!?]", line))
        with suppress(SyntaxError, ValueError):
            for node in ast.parse("\n".join(plain)).body:
                is_constant = isinstance(node, ast.Assign) and not any(
                    isinstance(each, ast.Call | ast.Name) for each in ast.walk(node.value)
                )
                found += [node] if is_constant or isinstance(node, kinds) else []
    return ast.unparse(ast.Module(found, []))


def _has(roots: Iterable[Path], top: str) -> bool:
    """Whether one of these folders holds a module or package of this name."""
    return any(
        (root / f"{top}.py").is_file()
        or any(next((root / top).glob(each), None) for each in ("*.py", "*/*.py"))
        for root in roots
    )


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


def _holds_packages(root: Path) -> bool:
    """Whether a folder is on the path for its packages, not for the modules inside one."""
    return not _is_package(root) and any(root.glob("*/__init__.py"))


def _is_installed(top: str) -> bool:
    try:
        return top in sys.stdlib_module_names or importlib.util.find_spec(top) is not None
    except ValueError:  # it was made by hand
        return True


def _mend_torch() -> None:
    """Give torch what other versions and builds of it have."""
    import torch

    if not hasattr(torch.serialization, "FILE_LIKE"):
        torch.serialization.FILE_LIKE = Any
    if not torch.cuda.is_available():  # without CUDA, its profiler markers raise
        for name in ("range_push", "range_pop", "mark"):
            setattr(torch.cuda.nvtx, name, lambda *args, **kwargs: 0)


# Missing packages.


def how_to_install(package: str) -> str:
    """The command that installs the package that a missing module belongs to."""
    return f"pip install {INSTALLED_AS.get(package, package.replace('_', '-'))}"


def stand_in(module: ModuleType) -> None:
    """Make a module a stand-in for one that cannot be imported: only later calls into it fail."""
    package, _, _ = module.__name__.partition(".")
    above = sys.modules.get(module.__name__.rpartition(".")[0])
    module.__class__ = _StandIn
    module._workbook_why = (
        _broken.get(module.__name__)
        or (above and vars(above).get("_workbook_why"))
        or f"it needs the package {package}, which is not installed here: {how_to_install(package)}"
    )
    _find_stand_ins()


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return _missing(self.__name__, name, self._workbook_why)


_broken: dict[str, str] = {}  # modules of a checkout that cannot be imported, and why


class _StandIns:
    """Finds stand-ins for broken modules, and for everything below a stand-in."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        is_below = isinstance(sys.modules.get(name.rpartition(".")[0]), _StandIn)
        return ModuleSpec(name, cls, is_package=True) if is_below or name in _broken else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Python makes it."""

    exec_module = staticmethod(stand_in)


def _find_stand_ins() -> None:
    if _StandIns not in sys.meta_path:
        sys.meta_path.insert(0, _StandIns)


class _Missing(ABCMeta):
    """The type of anything taken from a missing package: it can be subclassed, and more."""

    def __new__(mcs, name: str, bases: tuple, names: dict, **options: Any):
        return super().__new__(mcs, name, bases, names)

    def __init__(cls, name: str, bases: tuple, names: dict, **options: Any):
        super().__init__(name, bases, names)

    def __getattr__(cls, name: str) -> Any:
        return _missing(cls._workbook_path, name, cls._workbook_why)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not _is_importing():
            raise ModuleNotFoundError(f"{cls._workbook_path} is missing: {cls._workbook_why}")
        if len(args) == 1 and not kwargs and isinstance(args[0], FunctionType | type):
            return args[0]  # it decorates
        return _missing(cls._workbook_path, "result", cls._workbook_why)

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__


def _missing(path: str, name: str, why: str) -> Any:
    if name == "__version__":
        return "0"
    if name.startswith("__"):
        raise AttributeError(name)
    names = {"__module__": path, "_workbook_path": f"{path}.{name}", "_workbook_why": why}
    return _Missing(name, (), names)


def _is_importing() -> bool:
    """Whether a module is being imported: what is called meanwhile need not work."""
    codes = (frame.f_code for frame, _ in traceback.walk_stack(None))
    importing = "<frozen importlib"
    return any(c.co_name == "exec_module" and c.co_filename.startswith(importing) for c in codes)
