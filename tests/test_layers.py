"""The house has one staircase of rooms: a room imports only from those above it."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# From the ground that everything stands on to the command line.
ROOMS = [
    "config",
    "files",
    "corpora",
    "tokenization",
    "transformer",
    "optimizer",
    "accounting",
    "training",
    "generation",
    "experiments",
    "bench",
    "views",
    "checks",
    "study",
    "mine",
    "export",
    "cli",
]


@cache
def modules() -> dict[str, Path]:
    """The file of every module of the package, by its dotted name without the package's."""
    found = {}
    for file in sorted((ROOT / "workbook").rglob("*.py")):
        parts = file.relative_to(ROOT / "workbook").with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = file
    del found[""], found["__main__"]  # the door: they load `study` and `cli` when they are used
    return found


def imports(file: Path) -> set[str]:
    """The dotted names that a file imports anywhere, inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import hides where a name comes from"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@cache
def own_imports(file: Path) -> set[str]:
    """The modules of the package that a file imports, named as in `modules`."""
    found, known = set(), modules()
    for name in imports(file):
        parts = name.split(".")
        if parts[0] == "workbook":
            longest = (".".join(parts[1:end]) for end in range(len(parts), 1, -1))
            found |= {next((module for module in longest if module in known), "")} - {""}
    return found


def test_imports_come_from_rooms_above():
    upward = []
    for name, file in modules().items():
        room = name.split(".")[0]
        above = ROOMS[: ROOMS.index(room) + 1] if room in ROOMS else ()
        upward += [
            f"{name} imports {other}"
            for other in sorted(own_imports(file))
            if above and other.split(".")[0] in ROOMS and other.split(".")[0] not in above
        ]
    assert upward == []


def test_no_two_modules_import_each_other():
    graph = {name: own_imports(file) - {name} for name, file in modules().items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


def loaded_by(code: str) -> set[str]:
    """The top-level modules that are loaded in a new Python after it ran `code`."""
    show = f"{code}\nimport sys\nprint(*(name for name in sys.modules if '.' not in name))"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_itself_is_light():
    assert not loaded_by("import workbook") & {"torch", "numba", "numpy", "IPython", "matplotlib"}


def test_the_command_line_is_light():
    assert not loaded_by("import workbook.cli") & {"torch", "numba", "numpy", "IPython"}


@pytest.mark.slow
def test_text_tokens_and_study_need_no_torch():
    light = ("config", "files", "corpora", "tokenization", "study", "export")
    names = [name for name in modules() if name.split(".")[0] in light]
    assert "torch" not in loaded_by("\n".join(f"import workbook.{name}" for name in names))
