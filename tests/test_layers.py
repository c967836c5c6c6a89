"""Which room may import which: chapters earlier ones, and the classroom's rooms those below."""

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# The chapters, each on top of those before it. The classroom may import from all of them, and its
# rooms from those before them: `views` stands below `study`, which shows its figures with it.
CHAPTERS = [
    *("lazy", "config", "files", "corpora", "tokenization", "transformer", "optimizer"),
    *("accounting", "training", "generation", "experiments", "bench"),
]
CLASSROOM = ["problems", "panels", "checks", "views", "study", "mine", "export", "doctor"]
CLASSROOM += ["cli", "jupyter"]


@cache
def modules() -> dict[str, Path]:
    """The file of every module of the package, by its dotted name without the package's."""
    found = {}
    for file in sorted((ROOT / "workbook").rglob("*.py")):
        parts = file.relative_to(ROOT / "workbook").with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = file
    del found[""], found["__main__"]  # the entrance: they load the classroom when it is asked for
    return found


def imported(code: str) -> set[str]:
    """The dotted names that a piece of code imports anywhere, inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import hides where a name comes from"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@cache
def own_imports(file: Path) -> set[str]:
    """The modules of the package that a file imports, named as in `modules`."""
    found = set()
    known = modules()
    for name in imported(file.read_text("utf-8")):
        parts = name.split(".")
        if parts[0] == "workbook":
            longest = (".".join(parts[1:end]) for end in range(len(parts), 1, -1))
            found |= {next((module for module in longest if module in known), "")} - {""}
    return found


def room(module: str) -> str:
    return module.split(".")[0]


def upward(floors: dict[str, int]) -> list[str]:
    """The imports from a lower floor to a higher one, of modules whose floors are these."""
    found = []
    for name, floor in floors.items():
        for other in sorted(own_imports(modules()[name]) & floors.keys()):
            if floors[other] > floor:
                found.append(f"{name} imports {other}")
    return found


def test_chapters_import_only_from_earlier_chapters_and_never_from_the_classroom():
    order = [*CHAPTERS, "classroom"]
    assert {room(name) for name in modules()} == {*order}
    assert upward({name: order.index(room(name)) for name in modules()}) == []


def test_the_classrooms_rooms_import_only_from_those_below_them():
    inside = {name: name.split(".")[1] for name in modules() if name.startswith("classroom.")}
    assert {*inside.values()} == {*CLASSROOM}
    assert upward({name: CLASSROOM.index(its_room) for name, its_room in inside.items()}) == []


def test_the_machinery_of_the_checks_knows_no_subject():
    """But for the table of all checks, which a verdict loads at last."""
    machinery = "classroom.checks.machinery"
    known = set()
    for name, file in modules().items():
        if name.startswith(f"{machinery}."):
            known |= own_imports(file)
    of_checks = {name for name in known if name.startswith("classroom.checks.")}
    outside = {name for name in of_checks if not name.startswith(machinery)}
    assert outside == {"classroom.checks.by_problem"}


def test_no_two_modules_import_each_other():
    graph = {name: own_imports(file) - {name} for name, file in modules().items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


def test_notebooks_import_chapters_verbs_and_pictures():
    names = "|".join([*CHAPTERS, *PUBLIC["workbook"], r"classroom\.views"])
    allowed = re.compile(rf"workbook\.({names})\b")
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        ours = {name for name in imported(code) if name.startswith("workbook")}
        assert [name for name in ours if not allowed.match(name)] == [], path.name


def loaded_by(code: str) -> set[str]:
    """The top-level modules that are loaded in a new Python after it ran `code`."""
    show = f"{code}\nimport sys\nprint(*(name for name in sys.modules if '.' not in name))"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_command_line_is_light():
    heavy = {"torch", "numba", "numpy", "IPython", "matplotlib"}
    assert not loaded_by("import workbook, workbook.classroom.cli") & heavy


@pytest.mark.slow
def test_text_tokens_and_study_need_no_torch():
    light = r"(config|files|corpora|tokenization|classroom\.(study|export))\b"
    names = [name for name in modules() if re.match(light, name)]
    assert "torch" not in loaded_by("\n".join(f"import workbook.{name}" for name in names))


@pytest.mark.slow
def test_a_learners_parts_need_no_nbformat():
    """Its import takes over a second, and `check --all` has a process for each part."""
    assert "nbformat" not in loaded_by("import workbook.classroom.mine.own_parts")


# A word has one meaning, but for these. A check is named after its problem, and so is the study of
# it and its picture; a reference in the checks has the name of what it stands in for.
SHARED = {
    *("ablation", "leaderboard", "learning_rate", "look_up", "main_experiment", "sweep", "swiglu"),
    *("decode", "generate", "silu", "softmax", "train", "train_bpe", "laptop"),
}


# Constants that do not say what they are outside their own file. Rename one when you touch it, and
# take it from here. (`HOMES` is the table of each package's public names.)
SHARED_CONSTANTS = {
    *("ASCII", "BATCH", "BELOW", "BITS", "BLOCK", "BUILTINS", "BYTES", "CEILING", "CHECKPOINTS"),
    *("CLIPPING", "CODE", "COMPARED", "COUNT", "DRAWN", "EDGE", "FAULTS", "FEW", "FIRST"),
    *("FOLDER", "GRADIENT", "HOMES", "IDS", "INSIDE", "INSTALLED", "KEPT", "LEFT"),
    *("LENGTH", "LIBRARIES", "LINES", "LOGS", "LONGEST", "LOSS", "MARK", "MIME", "MISTAKEN"),
    *("NAMES", "NEVER", "NORM", "NOTHING", "NO_END", "NUMBER", "ONE", "OTHER", "PACKAGE"),
    *("PADDING", "PAIRS", "PARTS", "PIECE", "PLACE", "PLAIN", "QUANTITIES", "RIGHT", "ROWS"),
    *("SCALE", "SCHEDULE", "SCORES", "SECOND", "SEED", "SHIFT", "SHORT", "SIGNS", "SKIPPED"),
    *("SMALL", "STEPS", "STREAM", "TOKENS", "TOLERANCE", "UNITS", "UNKNOWN", "UPDATE"),
    *("VALUE", "WEIGHT", "WEIGHTS", "WIDTH", "WINDOW", "WORD", "WORKERS"),
}


def defined_in_several_rooms(names_of) -> set[str]:
    """The names that statements at the top of modules define, as `names_of` lists them."""
    rooms = defaultdict(set)
    for module, file in modules().items():
        parts = module.split(".")
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            for name in names_of(node):
                rooms[name].add(".".join(parts[: 2 if parts[0] == "classroom" else 1]))
    return {name for name, where in rooms.items() if len(where) > 1 and not name.startswith("_")}


def functions_and_classes(node: ast.stmt) -> list[str]:
    return [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []


def constants(node: ast.stmt) -> list[str]:
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return []
    names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
    return [name.id for name in names if isinstance(name.ctx, ast.Store) and name.id.isupper()]


def test_a_public_name_is_defined_in_one_room_only():
    assert defined_in_several_rooms(functions_and_classes) == SHARED


def test_a_constant_is_defined_in_one_room_only():
    assert defined_in_several_rooms(constants) == SHARED_CONSTANTS


PUBLIC = {
    "workbook": [
        *("answer", "calibration", "check", "harden", "hint", "look_up", "mine", "predict"),
        *("recall", "reveal", "tick"),
    ],
    "workbook.tokenization": [
        *("ByteTokenizer", "CharacterTokenizer", "Tokenizer", "WordTokenizer", "train_bpe"),
    ],
    "workbook.transformer": [
        *("Embedding", "Linear", "MultiHeadSelfAttention", "RMSNorm", "RotaryPositionalEmbedding"),
        *("SwiGLU", "TransformerBlock", "TransformerLM", "cross_entropy", "perplexity"),
        *("scaled_dot_product_attention", "silu", "softmax"),
    ],
    "workbook.optimizer": [
        *("AdaGrad", "AdamW", "Momentum", "RMSProp", "SGD", "clip_gradients", "cosine_schedule"),
    ],
    "workbook.training": [
        *("Parts", "get_batch", "load_checkpoint", "prepare", "save_checkpoint", "train"),
    ],
    "workbook.generation": ["decode", "generate"],
}


@pytest.mark.parametrize("package", PUBLIC)
def test_the_public_names_can_be_imported(package):
    names = PUBLIC[package]
    assert set(names) <= set(dir(import_module(package)))  # as completion shows them
    for name in names:
        found = {}
        exec(f"from {package} import {name}", found)
        assert callable(found[name]) or name == "mine"


def test_no_public_name_is_a_module_too():
    for package, names in PUBLIC.items():
        inside = package.removeprefix("workbook").removeprefix(".")
        assert not {f"{inside}.{name}".strip(".") for name in names} & set(modules())
