"""A checkout of the course's repository, made importable in this process, and never written to.

Such a folder is seldom installed: its version is unknown, packages that it names are missing here,
and its modules import each other as if they all lay side by side.
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
from abc import ABCMeta
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

SKIPPED = {"venv", "env", "site-packages", "node_modules", "__pycache__", "build", "dist", "wandb"}
MOST_FILES = 2000  # that a checkout has; a home folder has more
ADAPTERS = "tests.adapters"
INSTALLED_AS = {"yaml": "pyyaml", "sklearn": "scikit-learn", "cv2": "opencv-python"}
INSTALLED_AS |= {"PIL": "pillow", "dotenv": "python-dotenv", "omegaconf": "omegaconf"}
NEWER = re.compile(r"\s*(type \w+.*=|(async )?def \w+\[|class \w+\[)")  # of Python 3.12
CATCH_IMPORTS = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


class Import(NamedTuple):
    """A module that a file imports, or imports from."""

    module: str
    is_needed: bool  # at the top level, and nothing catches its failure


class Checkout:
    """A folder with somebody's solutions, as its files say; nothing of it runs before `enter`."""

    def __init__(self, folder: str | os.PathLike):
        """Find the folder that holds it all, for one of a package inside too. Raises: OSError."""
        path = Path(folder).expanduser().resolve()
        if not path.is_dir():
            what = "a file" if path.exists() else "not there"
            raise NotADirectoryError(f"{path} is {what}; expected the folder of your repository")
        while (path / "__init__.py").is_file() and not (path / "tests").is_dir():
            path = path.parent
        if path.name == "tests" and (path / "adapters.py").is_file():
            path = path.parent
        self.folder = path

    @cached_property
    def files(self) -> list[Path]:
        """All files of Python code and notebooks. Raises: ValueError where there are none."""
        found: list[Path] = []
        for folder, below, names in os.walk(self.folder):
            below[:] = sorted(
                name
                for name in below
                if not (name.startswith(".") or name in SKIPPED)
                and not Path(folder, name, "pyvenv.cfg").exists()
            )
            found += [Path(folder, n) for n in sorted(names) if n.endswith((".py", ".ipynb"))]
            if len(found) > MOST_FILES:
                raise ValueError(
                    f"{self.folder} has more than {MOST_FILES} files of Python; name the folder of"
                    " your repository itself"
                )
        if not found:
            raise ValueError(f"{self.folder} has no Python file; expected your repository")
        return found

    @cached_property
    def modules(self) -> dict[str, Path]:
        """The file of each module, by the name that it is imported by."""
        found: dict[str, Path] = {}
        for file in self.files:
            if file.suffix == ".py" and (name := self._dotted(file)):
                found.setdefault(name, file)
        return found

    def _dotted(self, file: Path) -> str:
        """The name by which a file is imported; "" where it has none."""
        parts = [*file.relative_to(self.folder).parent.parts, file.stem]
        # A checkout may lie in a folder such as `assignment1-basics` of another one.
        last = max((n for n, part in enumerate(parts) if not part.isidentifier()), default=-1)
        folder, parts = self.folder.joinpath(*parts[: last + 1]), parts[last + 1 :]
        while len(parts) > 1 and parts[0] not in self._named:
            folder /= parts[0]
            is_package = (folder.parent / parts[0] / "__init__.py").is_file()
            if is_package or not (
                parts[0] == "src" or (folder / parts[1] / "__init__.py").is_file()
            ):
                break
            parts = parts[1:]
        return ".".join(parts[:-1] if parts[-1:] == ["__init__"] else parts)

    @cached_property
    def trees(self) -> dict[Path, ast.Module | SyntaxError]:
        """Each file of Python code, parsed."""
        found: dict[Path, ast.Module | SyntaxError] = {}
        for file in self.files:
            if file.suffix == ".py":
                try:
                    found[file] = ast.parse(file.read_bytes(), str(file))
                except SyntaxError as error:
                    found[file] = error
                except (OSError, ValueError) as error:
                    found[file] = SyntaxError(str(error))
        return found

    @cached_property
    def _named(self) -> set[str]:
        """The first part of every name that a file imports."""
        trees = [tree for tree in self.trees.values() if isinstance(tree, ast.Module)]
        return {each.module.partition(".")[0] for tree in trees for each in imports(tree)}

    @cached_property
    def roots(self) -> list[Path]:
        """The folders in which Python is to look for modules, those that bare imports need last."""
        roots = [self.folder]
        for file in self.modules.values():
            depth = len(self._dotted(file).split(".")) + (file.stem == "__init__")
            roots.append(file.parents[depth - 1])
        roots = list(dict.fromkeys(roots))
        for file, tree in self.trees.items():
            for each in imports(tree) if isinstance(tree, ast.Module) else ():
                top = each.module.partition(".")[0]
                if not each.module or _has(roots, top) or top in sys.stdlib_module_names:
                    continue
                above = file.parents[: len(file.relative_to(self.folder).parts)]
                beside = [*above, *dict.fromkeys(other.parent for other in self.modules.values())]
                beside = [folder for folder in beside if _has([folder], top)]
                if beside and not _is_installed(top):
                    roots.append(beside[0])
        return list(dict.fromkeys(roots))

    def find(self, module: str) -> Path | None:
        """The file of a module of this checkout, None where it has no such module."""
        if module in self.modules:
            return self.modules[module]
        for root in self.roots:
            path = root.joinpath(*module.split("."))
            for file in (path.with_suffix(".py"), path / "__init__.py"):
                if file.is_file():
                    return file
        return None

    @cached_property
    def missing(self) -> dict[str, list[Path]]:
        """The packages that are not installed here, each with the files that import it."""
        found: dict[str, list[Path]] = {}
        for file, tree in self.trees.items():
            is_test = file.is_relative_to(self.folder / "tests") and file.stem != "adapters"
            if is_test or not isinstance(tree, ast.Module):
                continue
            for each in imports(tree):
                top = each.module.partition(".")[0]
                if each.is_needed and top and not _has(self.roots, top) and not _is_installed(top):
                    found.setdefault(top, []).append(file)
        return {top: list(dict.fromkeys(files)) for top, files in found.items()}

    @cached_property
    def _project(self) -> dict:
        with suppress(OSError, ValueError):
            text = (self.folder / "pyproject.toml").read_text(encoding="utf-8")
            return tomllib.loads(text).get("project", {})
        return {}

    def enter(self) -> None:
        """Make this process, and those that it starts, able to import from the folder.

        Nothing is written there, and nothing there comes before Python's own modules.
        """
        if self.folder in _entered:
            return
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        tops = {name.partition(".")[0] for name in (*self.modules, ADAPTERS)}
        others = tops - sys.stdlib_module_names - {"workbook"}
        for name, module in list(sys.modules.items()):  # of another checkout, or another `tests`
            if name.partition(".")[0] in others and not self._holds(module):
                del sys.modules[name]
        libraries = (n for n, each in enumerate(sys.path) if each.endswith("-packages"))
        first = next(libraries, len(sys.path))
        # Before what is installed, another copy of it perhaps, but after Python's own.
        own = [root for root in self.roots if root == self.folder or self._is_plain(root)]
        sys.path[first:first] = [str(root) for root in own]
        sys.path += [str(root) for root in self.roots if root not in own]
        supplies = _supplies()
        for name in {*tops, str(self._project.get("name", ""))} - {"tests", ""}:
            _supply_version(supplies, name)
        for top in self.missing:
            (supplies / top).mkdir(exist_ok=True)
            code = f"from {__name__} import stand_in\nstand_in(__name__)\n"
            (supplies / top / "__init__.py").write_text(code)
        sys.path.append(str(supplies))
        importlib.invalidate_caches()
        if "tests" not in sys.modules and (self.folder / "tests").is_dir():
            # A regular package `tests`, which many a library installs, goes before a folder.
            _load_package("tests", self.folder / "tests")
        for name, file in self.modules.items():
            if isinstance(error := self.trees[file], SyntaxError):
                _broken[name] = self._why(error)
        if not any(isinstance(finder, _StandIns) for finder in sys.meta_path):
            sys.meta_path.insert(0, _StandIns())
        if "torch" in self._named:
            _mend_torch()
        _entered.add(self.folder)

    def _is_plain(self, root: Path) -> bool:
        """Whether a folder is on the path for packages, not for modules inside of one."""
        return not (root / "__init__.py").exists() and any(root.glob("*/__init__.py"))

    def _holds(self, module: ModuleType) -> bool:
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        return any(Path(each).is_relative_to(self.folder) for each in places if each)

    def imported(self, name: str) -> ModuleType:
        """Import a module of the checkout, which was entered. Raises: ValueError that says why not.

        A name such as `part1.ipynb` is that of a notebook: its imports and definitions.
        """
        try:
            return (
                self._notebook(name) if name.endswith(".ipynb") else importlib.import_module(name)
            )
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a script that ends with sys.exit() too
            raise ValueError(f"{name} cannot be imported: {self._why(error)}") from error

    def imported_adapters(self) -> ModuleType:
        """Import `tests.adapters`; what one module of the checkout lacks spares the others.

        A module that fails is replaced, and only what is called of it fails later.
        """
        while True:
            try:
                return self.imported(ADAPTERS)
            except ValueError as error:
                broken = self._broken(error.__cause__)
                if broken is None or broken in _broken:
                    raise
                _broken[broken] = str(error)

    def _broken(self, error: BaseException | None) -> str | None:
        """The module, beside the adapters, whose import failed."""
        if isinstance(error, ModuleNotFoundError) and error.name not in (None, ADAPTERS):
            return error.name
        trace, found = error.__traceback__ if error else None, None
        while trace is not None:
            frame = trace.tb_frame
            if frame.f_code.co_name == "<module>" and self.find(frame.f_globals["__name__"]):
                found = frame.f_globals["__name__"]
            trace = trace.tb_next
        return found if found != ADAPTERS else None

    def _why(self, error: BaseException) -> str:
        if isinstance(error, SyntaxError) and error.filename:
            asks = re.fullmatch(r">=\s*3\.(\d+).*", str(self._project.get("requires-python", "")))
            here = f"{sys.version_info.major}.{sys.version_info.minor}"
            newer = asks and int(asks[1]) > sys.version_info.minor
            if newer or (sys.version_info < (3, 12) and NEWER.match(error.text or "")):
                needs = f"3.{asks[1]}" if newer else "3.12"
                return (
                    f"line {error.lineno} of {self._short(error.filename)} is not understood by"
                    f" Python {here}; install the workbook in an environment with Python {needs}"
                )
            return f"line {error.lineno} of {self._short(error.filename)}: {error.msg}"
        where, trace = "", error.__traceback__
        while trace is not None:
            if Path(trace.tb_frame.f_code.co_filename).is_relative_to(self.folder):
                file = self._short(trace.tb_frame.f_code.co_filename)
                where = f", at line {trace.tb_lineno} of {file}"
            trace = trace.tb_next
        return f"{type(error).__name__}: {error}{where}"

    def _short(self, file: str) -> str:
        path = Path(file)
        return str(path.relative_to(self.folder) if path.is_relative_to(self.folder) else path)

    def _notebook(self, name: str) -> ModuleType:
        if name in sys.modules:
            return sys.modules[name]
        module = sys.modules[name] = ModuleType(name)
        module.__file__ = file = str(self.folder / name)
        lines: list[str] = []
        for node in notebook_definitions(self.folder / name):
            text = ast.unparse(node)
            tree = ast.increment_lineno(ast.parse(text), len(lines))
            lines += [f"{line}\n" for line in text.splitlines()]
            with suppress(Exception):  # what a cell lacks here, another part may do without
                exec(compile(tree, file, "exec"), vars(module))
        linecache.cache[file] = (0, None, lines, file)  # for `inspect.getsource`, and tracebacks
        return module

    def object(self, where: str) -> Any:
        """Import what "module:object" names. Raises: ValueError that lists what the module has.

        "scripts/train.py" names a script: its path comes back, and nothing of it runs.
        """
        if where.endswith(".py") and ":" not in where:
            if not (self.folder / where).is_file():
                raise ValueError(f"{self.folder} has no file {where}")
            return self.folder / where
        module, _, path = where.rpartition(":")
        if not (module and path):
            raise ValueError(f"{where!r} names no object; expected module:object")
        self.enter()
        found: Any = self.imported(module)
        for name in path.split("."):
            if not hasattr(found, name):
                has = [n for n, each in vars(found).items() if self._is_own(n, each, module)]
                raise ValueError(
                    f"{module} has no {path}; it has {', '.join(has) or 'no function or class'}"
                )
            found = getattr(found, name)
        if "_workbook_why" in getattr(found, "__dict__", ()):
            raise ValueError(f"{where} cannot be imported: {found._workbook_why}")
        return found

    def _is_own(self, name: str, value: Any, module: str) -> bool:
        of = getattr(value, "__module__", None)
        return (
            callable(value)
            and not name.startswith("__")
            and (of == module or bool(isinstance(of, str) and self.find(of)))
        )


_entered: set[Path] = set()


def imports(tree: ast.AST) -> Iterator[Import]:
    """What a file imports, inside functions too, but not relative to itself."""

    def visit(node: ast.AST, needed: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, needed) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield Import(node.module or "", needed)
        elif isinstance(node, ast.Try):
            catches = {
                part.id
                for handler in node.handlers
                for part in ast.walk(handler.type or ast.Name("Exception"))
                if isinstance(part, ast.Name)
            }
            for child in node.body:
                yield from visit(child, needed and not catches & CATCH_IMPORTS)
            for child in (*node.handlers, *node.orelse, *node.finalbody):
                yield from visit(child, False)
        else:
            is_body = not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            skips = isinstance(node, ast.If) and re.search(
                "TYPE_CHECKING|__main__", ast.unparse(node.test)
            )
            for child in ast.iter_child_nodes(node):
                yield from visit(child, needed and is_body and not skips)

    return visit(tree, True)


def notebook_definitions(path: Path) -> list[ast.stmt]:
    """The imports, functions, classes and plain constants in the code cells of a notebook."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found: list[ast.stmt] = []
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    for source in sources:
        plain = (line for line in source.splitlines() if not re.match(r"\s*[%!?]", line))
        with suppress(SyntaxError, ValueError):
            for node in ast.parse("\n".join(plain)).body:
                if isinstance(node, kinds) or (isinstance(node, ast.Assign) and _is_literal(node)):
                    found.append(node)
    return found


def _is_literal(node: ast.Assign) -> bool:
    with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        ast.literal_eval(node.value)
        return True
    return False


def _has(roots: list[Path], top: str) -> bool:
    """Whether one of these folders holds a module or package of this name."""
    return any((r / f"{top}.py").is_file() or _is_package(r / top) for r in roots)


def _is_package(folder: Path) -> bool:
    return folder.is_dir() and any(next(folder.glob(each), None) for each in ("*.py", "*/*.py"))


def _is_installed(top: str) -> bool:
    with suppress(ValueError, ImportError):
        return top in sys.stdlib_module_names or importlib.util.find_spec(top) is not None
    return top in sys.modules


def _load_package(name: str, folder: Path) -> None:
    file = folder / "__init__.py"
    if file.is_file():
        places = {"submodule_search_locations": [str(folder)]}
        spec = importlib.util.spec_from_file_location(name, file, **places)
    else:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if spec.loader and file.is_file():
        with suppress(Exception):  # what it lacks, `tests.adapters` may do without
            spec.loader.exec_module(module)


def _supplies() -> Path:
    """A folder for what the checkout lacks: files, because workers of pools import too."""
    folder, process = tempfile.mkdtemp(prefix="workbook-adopt-"), os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # not in a fork of it
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return Path(folder)


def _supply_version(supplies: Path, name: str) -> None:
    """Make `importlib.metadata.version(name)` work where the package was never installed."""
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        folder = supplies / f"{re.sub('[-_.]+', '_', name)}-0.0.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0\n")


def _mend_torch() -> None:
    """Give torch what other versions and builds of it have."""
    import torch

    if not hasattr(torch.serialization, "FILE_LIKE"):
        torch.serialization.FILE_LIKE = Any
    if not torch.cuda.is_available():  # without CUDA, its marks for a profiler raise
        for name in ("range_push", "range_pop", "mark"):
            setattr(torch.cuda.nvtx, name, lambda *args, **kwargs: 0)


# Missing packages.


def how_to_install(package: str) -> str:
    """The command that installs the package of which a module is missing."""
    return f"pip install {INSTALLED_AS.get(package, package.replace('_', '-'))}"


def stand_in(name: str) -> None:
    """Let a module stand for a package that is missing: only what is called later fails."""
    module = sys.modules[name]
    module.__class__ = _StandIn
    package = name.partition(".")[0]
    needs = f"it needs the package {package}, which is not installed here"
    vars(module)["_workbook_why"] = f"{needs}: {how_to_install(package)}"
    if not any(isinstance(finder, _StandIns) for finder in sys.meta_path):
        sys.meta_path.insert(0, _StandIns())


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return _missing(self.__name__, name, self._workbook_why)


_broken: dict[str, str] = {}  # modules of a checkout that cannot be imported, and why


class _StandIns:
    """Finds what takes the place of broken modules, and of all that is below a stand-in."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        is_below = isinstance(sys.modules.get(name.rpartition(".")[0]), _StandIn)
        return ModuleSpec(name, self, is_package=True) if is_below or name in _broken else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module, above = _StandIn(spec.name), sys.modules.get(spec.name.rpartition(".")[0])
        why = _broken.get(spec.name) or above._workbook_why
        vars(module)["_workbook_why"] = why
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Missing(ABCMeta):
    """The type of whatever a missing package is asked for: it can be inherited from, and more."""

    def __new__(mcs, name: str, bases: tuple, names: dict, **options: Any):
        return super().__new__(mcs, name, bases, names)

    def __init__(cls, name: str, bases: tuple, names: dict, **options: Any):
        super().__init__(name, bases, names)

    def __getattr__(cls, name: str) -> Any:
        return _missing(cls._workbook_path, name, cls._workbook_why)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not _is_importing():
            raise ModuleNotFoundError(f"{cls._workbook_path} is not there: {cls._workbook_why}")
        is_decorator = len(args) == 1 and not kwargs and isinstance(args[0], FunctionType | type)
        return (
            args[0] if is_decorator else _missing(cls._workbook_path, "result", cls._workbook_why)
        )

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
    names = {"_workbook_path": f"{path}.{name}", "_workbook_why": why}
    return _Missing(name, (), names)


def _is_importing() -> bool:
    """Whether a module is being imported: what is called meanwhile need not work."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "exec_module" and code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
