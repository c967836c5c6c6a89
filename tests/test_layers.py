"""The house has one staircase: a module imports only from those above it, proved from the code."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# From the ground that everything stands on to the command line. A folder counts as one step. Names
# that are not there yet keep their place for when they come.
ORDER = """
    files config presets train_options claims utf8 visible floats toy_sgd frames
    stories pydocs download corpus_files corpora
    pretokens fastbpe bpe ancestry divergence steps gpt2_files remember simple_tokenizers tokenizer
    exchange
    pieces fluency
    data tokens
    accounting ledger runlog nn fused model onestep inside measured_model
    optim optim_studies mixed_precision proof batches checkpoints
    devices processes stop_signals limits train_data loss_limits reported_runs evaluate
    training_checks trainer train step_times
    generate likelihood hugging model_folders runs spread experiments scales studies
    needs foresight rehearsal
    journal ablations critical_batch baselines samples
    measure rivals bench scaling generate_bench nanogpt train_rivals rival_process
    train_bench
    plots train_plots token_plots model_plots accounting_plots optim_plots
    experiment_plots leaderboard_plots
    live train_live
    widget_pictures generate_plots widgets_generate widgets_unicode widgets_bpe widgets_model
    widgets_floats widgets_accounting widgets_optim widgets
    prompts problems requirements normalform notebooks
    checks report hints progress answers study exercise export
    lab model_commands experiment_commands cli __main__
"""
STAIRCASE = ORDER.split()

# All others work where torch is not even installed.
MAY_USE_TORCH = {
    "nn",
    "fused",
    "model",
    "onestep",
    "inside",
    "measured_model",
    "proof",
    "optim",
    "optim_studies",
    "mixed_precision",
    "batches",
    "checkpoints",
    "devices",
    "processes",
    "data",
    "evaluate",
    "training_checks",
    "trainer",
    "train",
    "train_live",
    "nanogpt",
    "train_rivals",
    "rival_process",
    "step_times",
    "generate",
    "likelihood",
    "hugging",
    "model_folders",
    "generate_bench",
    "experiments",
    "studies",
    "needs",
    "foresight",
    "rehearsal",
    "ablations",
    "checks",
}


def modules() -> dict[str, Path]:
    """The file of every module of the package, by its dotted name without the package's."""
    found = {}
    for file in sorted((ROOT / "workbook").rglob("*.py")):
        parts = file.relative_to(ROOT / "workbook").with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = file
    del found[""]  # the package itself imports nothing of its own when it is loaded
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


def own_imports(file: Path) -> set[str]:
    """The modules of the package that a file imports, named as in `modules`."""
    found, known = set(), modules()
    for name in imports(file):
        parts = name.split(".")
        if parts[0] == "workbook":
            longest = (".".join(parts[1:end]) for end in range(len(parts), 1, -1))
            found |= {next((module for module in longest if module in known), "")} - {""}
    return found


def test_every_module_has_its_step():
    steps = {name.split(".")[0] for name in modules()}
    assert steps <= set(STAIRCASE), "write the new module into STAIRCASE"
    assert len(set(STAIRCASE)) == len(STAIRCASE)


@pytest.mark.parametrize("name", modules())
def test_imports_come_from_above(name):
    step = name.split(".")[0]
    above = set(STAIRCASE[: STAIRCASE.index(step) + 1])
    below = {other for other in own_imports(modules()[name]) if other.split(".")[0] not in above}
    assert not below, f"workbook.{name} imports from below: {', '.join(sorted(below))}"


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


def test_what_needs_no_torch_loads_none():
    light = [name for name in modules() if name.split(".")[0] not in MAY_USE_TORCH]
    assert "torch" not in loaded_by("\n".join(f"import workbook.{name}" for name in light))
