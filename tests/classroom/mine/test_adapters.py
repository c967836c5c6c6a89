"""What was solved goes back into a course repository, and works there without the workbook."""

import json
import shutil
import subprocess
import sys

import adapter_runs
import pytest
import torch
from made_repositories import FOLDER, PARTS

from workbook.classroom import cli
from workbook.classroom.mine import adapters, course_adapters
from workbook.classroom.study import solutions

CLEAN = """
import sys

class NoWorkbook:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] in ("workbook", "attempts", "transformer"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoWorkbook())
sys.path.insert(0, "")
import adapter_runs, torch
from tests import adapters
arguments = torch.load("arguments.pt")
names = [*arguments, *adapter_runs.ACTS]
torch.save({n: adapter_runs.result(n, adapters, ".", arguments) for n in names}, "results.pt")
"""


SIZES = {"vocab_size": 50, "d_model": 64, "num_heads": 4, "num_layers": 3, "d_ff": 128, "d_k": 64}
torch.manual_seed(0)
ARGUMENTS = {name: adapters.example(name, 0.2, **SIZES) for name in sorted(adapters.OF_TENSORS)}


def kept(study, problem, source, *names, status="correct"):
    """Write what a study folder keeps of a solved problem."""
    path = study / "mine" / f"{problem}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = solutions.KEPT.format(problem, status)
    named = ", ".join(f'"{name}"' for name in names)
    path.write_text(f"{head}\n{source}\n__all__ = [{named}]\n", encoding="utf-8")


def run_clean(folder):
    """What each adapter of a folder returns in a process that has no workbook."""
    shutil.copy(adapter_runs.__file__, folder)
    torch.save(ARGUMENTS, folder / "arguments.pt")
    run = [sys.executable, "-c", CLEAN]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return torch.load(folder / "results.pt")


def written(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def differing(results, folder):
    ours = {n: adapter_runs.result(n, course_adapters, folder, ARGUMENTS) for n in results}
    return [name for name in results if not adapter_runs.alike(ours[name], results[name])]


def test_every_adapter_works_without_the_workbook(tmp_path):
    study, to = tmp_path / "study", tmp_path / "course"
    for problem, where in PARTS["flat"].items():
        wheres = [where] if isinstance(where, str) else where
        file = f"{wheres[0].partition(':')[0].replace('.', '/')}.py"
        source = (FOLDER / "flat" / file).read_text(encoding="utf-8")
        source = source.replace("from cs336_basics.model import TransformerLM, softmax\n", "")
        kept(study, problem, source, *(each.partition(":")[2] for each in wheres))
    lines = adapters.export_repository(study, to)
    assert "20 solved problems in cs336_basics, and 21 of 21 adapters" in lines[0]
    assert "uv run pytest" in lines[-1] and len(lines) == 2, lines
    for problem in PARTS["flat"]:  # as it was typed
        old, new = study / "mine" / f"{problem}.py", to / "cs336_basics" / f"{problem}.py"
        assert old.read_bytes() == new.read_bytes()
    found = run_clean(to)
    assert len(found) == 21 and differing(found, tmp_path) == []
    text = (to / "tests" / "adapters.py").read_text(encoding="utf-8")
    assert "    from cs336_basics.gradient_clipping import gradient_clipping as clip\n" in text
    assert "    from cs336_basics.checkpointing import load_checkpoint\n" in text


CELLS = [
    "import torch\nfrom workbook.classroom.study.verbs import check",
    "def shifted(x, dim):\n    return x - x.amax(dim, keepdim=True)",
    "def my_softmax(t, axis):\n    powers = shifted(t, axis).exp()\n"
    "    return powers / powers.sum(axis, keepdim=True)",
    'print(check("softmax", my_softmax).status)',
]
PLAY = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(sys.stdin):
    shell.run_cell(cell, store_history=True)
"""


def test_what_a_notebook_solved_is_exported(tmp_path, monkeypatch, capsys):
    study, to = tmp_path / "study", tmp_path / "course"
    (study / ".workbook").mkdir(parents=True)
    monkeypatch.setenv("WORKBOOK_STUDY", str(study))
    run = [sys.executable, "-c", PLAY]
    done = subprocess.run(run, input=json.dumps(CELLS), capture_output=True, text=True, check=True)
    assert "correct" in done.stdout, done
    assert cli.main(["export", str(study), "--adapters", str(to)]) == 0
    said = capsys.readouterr().out
    assert "1 solved problem in cs336_basics, and 1 of 21 adapters" in said
    assert "not solved yet: run_linear, run_embedding" in said
    names = {"cs336_basics/__init__.py", "cs336_basics/softmax.py", "tests/adapters.py"}
    assert written(to) == names
    found = run_clean(to)
    assert found["run_linear"] == ["NotImplementedError: "]
    assert differing({"run_softmax": found["run_softmax"]}, tmp_path) == []
    assert cli.main(["export", str(study), "--adapters", str(to), "--strict"]) == 2
    assert "leave out --strict" in capsys.readouterr().err


SOFTMAX = """
def smooth(x, dim):
    powers = (x - x.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True)
"""
NORM = """
import torch
from torch import nn

class Norm(nn.Module):
    def __init__(self, d_model, eps):
        super().__init__()
        self.gain, self.eps = nn.Parameter(torch.ones(d_model)), 1e-5

    def forward(self, x):
        return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt() * self.gain
"""
CRASHES = """
import os
from torch import nn
class Linear(nn.Module):
    def __init__(self, in_features, out_features):
        os._exit(3)
"""
OURS = """
from workbook.transformer.nn import cross_entropy as theirs
def cross_entropy(logits, targets):
    return theirs(logits, targets)
"""
SCHEDULE = "def at(max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters, it):\n"


def test_what_cannot_be_called_as_the_handout_does_is_left_to_the_learner(tmp_path):
    study, to = tmp_path / "study", tmp_path / "course"
    kept(study, "softmax", SOFTMAX, "smooth")
    kept(study, "rmsnorm", NORM, "Norm")
    kept(study, "linear", CRASHES, "Linear")
    kept(study, "rope", "import no_such_module", "RoPE", status="almost")
    kept(study, "cross_entropy", OURS, "cross_entropy")
    kept(study, "learning_rate_schedule", f"{SCHEDULE}    return 0.1", "at")
    said = "\n".join(adapters.export_repository(study, to))
    assert "6 solved problems in cs336_basics, and 2 of 21 adapters" in said
    assert "run_linear is left to you: Python ended with status 3" in said
    assert "run_rope is left to you: raises ModuleNotFoundError: No module named" in said
    assert "run_rmsnorm is left to you: returns other numbers than ours" in said
    assert "run_get_lr_cosine_schedule is left to you: " in said
    assert "import the workbook, which the course does not install: cross_entropy" in said
    assert "almost right when checked: rope" in said
    text = (to / "tests" / "adapters.py").read_text(encoding="utf-8")
    reason = "    # Not exported: returns other numbers than ours\n    raise NotImplementedError\n"
    assert f"def run_rmsnorm(d_model, eps, weights, in_features):\n{reason}" in text


BLANK = '''
def run_softmax(in_features, dim):
    """What the course says of it."""
    raise NotImplementedError
'''


def test_nothing_that_is_there_is_lost(tmp_path):
    study, to = tmp_path / "study", tmp_path / "clone"
    kept(study, "softmax", SOFTMAX, "smooth")
    old = {"tests/adapters.py": BLANK, "cs336_basics/softmax.py": "mine\n", "pyproject.toml": ""}
    old |= {"cs336_basics/__init__.py": "VERSION = 1\n", "tests/test_model.py": ""}
    for name, text in old.items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_text(text)
    lines = adapters.export_repository(study, to)
    assert "  the old tests/adapters.py is kept as tests/adapters.py.bak" in lines
    assert lines[-1] == f"The course's tests: `uv run pytest` in {to}"
    assert adapters.export_repository(study, to)[1:] == [lines[1], lines[-1]]  # the same once more
    (to / "tests" / "adapters.py").write_text("by hand\n")
    line = "  the old tests/adapters.py is kept as tests/adapters.py.bak1"
    assert line in adapters.export_repository(study, to)
    texts = [(to / name).read_text() for name in written(to)]
    assert {*old.values(), "by hand\n"} <= {*texts}
    assert (to / "cs336_basics" / "__init__.py").read_text() == "VERSION = 1\n"


def test_a_study_folder_without_solutions_is_refused(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "softmax.py").write_text(SOFTMAX)  # no check kept it
    assert cli.main(["export", str(tmp_path), "--adapters", str(tmp_path / "to")]) == 2
    assert "nothing that passed its check is kept" in capsys.readouterr().err
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("name", ["run_linear", "run_softmax", "run_transformer_lm"])
def test_an_adapter_that_does_something_else_differs(name):
    ours = getattr(course_adapters, name)
    assert adapters.differs(ours, name) == ""
    assert "other numbers" in adapters.differs(lambda **given: ours(**given) * 1.01, name)
    assert "raises KeyError" in adapters.differs(lambda **given: {}[name], name)


def test_no_hook_of_a_caught_module_is_left_behind():
    adapters.caught(course_adapters.run_linear, adapters.example("run_linear"))
    assert not torch.nn.modules.module._has_any_global_hook()  # with one, compiling would warn
