"""What was solved goes back into a course repository, and works there without the workbook."""

import subprocess
import sys

import pytest
import torch
from made_repositories import FOLDER, PARTS

from workbook.classroom import cli
from workbook.classroom.mine import adapters, course_adapters
from workbook.classroom.study import solutions

# What the adapters of tensors return, after the others were called, too: the export has judged
# what these return. A module that is None cannot be imported.
CLEAN = """
import sys
sys.modules["workbook"] = None
sys.path.insert(0, "")
import numpy, torch
from tests import adapters
model = torch.nn.Linear(3, 2)
optimizer = adapters.get_adamw_cls()(model.parameters(), lr=0.1)
model(torch.ones(3)).sum().backward()
adapters.run_gradient_clipping(model.parameters(), 0.5)
optimizer.step()
adapters.run_save_checkpoint(model, optimizer, 7, "saved.pt")
assert adapters.run_load_checkpoint("saved.pt", model, optimizer) == 7
assert adapters.run_get_lr_cosine_schedule(7, 1, 0.1, 7, 21) == 1
assert adapters.run_get_batch(numpy.arange(50), 8, 5, "cpu")[0].shape == (8, 5)
vocab, merges = adapters.run_train_bpe(adapters.__file__, 300, [])
tokenizer = adapters.get_tokenizer(vocab, merges)
assert tokenizer.decode(tokenizer.encode("the cat")) == "the cat"
asked = torch.load("arguments.pt")
torch.save({n: getattr(adapters, n)(**asked[n]).detach() for n in asked}, "results.pt")
"""
SIZES = {"vocab_size": 50, "d_model": 64, "num_heads": 4, "num_layers": 3, "d_ff": 128, "d_k": 64}
SOFTMAX = """
def shifted(x, dim):
    return x - x.amax(dim, keepdim=True)

def smooth(x, dim):
    powers = shifted(x, dim).exp()
    return powers / powers.sum(dim, keepdim=True)
"""


def kept(study, problem, source, *names, status="correct"):
    """Write what a study folder keeps of a solved problem."""
    head = solutions.KEPT.format(problem, status)
    named = ", ".join(f'"{name}"' for name in names)
    file = study / "mine" / f"{problem}.py"
    file.write_text(f"{head}\n{source}\n__all__ = [{named}]\n", encoding="utf-8")


def written(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_every_adapter_works_without_the_workbook(study, tmp_path):
    for problem, where in PARTS["flat"].items():
        wheres = [where] if isinstance(where, str) else where
        file = f"{wheres[0].partition(':')[0].replace('.', '/')}.py"
        source = (FOLDER / "flat" / file).read_text(encoding="utf-8")
        kept(study, problem, source, *(each.partition(":")[2] for each in wheres))
    to = tmp_path / "course"
    lines = adapters.export_repository(study, to)
    assert "20 solved problems in cs336_basics, and 21 of 21 adapters" in lines[0]
    assert "uv run pytest" in lines[-1] and len(lines) == 2, lines
    for problem in PARTS["flat"]:  # as it was typed
        old = study / "mine" / f"{problem}.py"
        new = to / "cs336_basics" / f"{problem}.py"
        assert old.read_bytes() == new.read_bytes()
    text = (to / "tests" / "adapters.py").read_text(encoding="utf-8")
    assert "    from cs336_basics.gradient_clipping import gradient_clipping as clip\n" in text
    assert "    from cs336_basics.checkpointing import load_checkpoint\n" in text
    torch.manual_seed(0)
    asked = {name: adapters.example(name, 0.2, **SIZES) for name in sorted(adapters.OF_TENSORS)}
    torch.save(asked, to / "arguments.pt")
    run = [sys.executable, "-c", CLEAN]
    done = subprocess.run(run, cwd=to, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name, result in torch.load(to / "results.pt").items():
        expected = getattr(course_adapters, name)(**asked[name])
        torch.testing.assert_close(result, expected.detach(), rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("judged_here")
def test_what_a_check_kept_is_exported(study, tmp_path, capsys):
    file = tmp_path / "smooth.py"
    to = tmp_path / "course"
    file.write_text(SOFTMAX)
    assert cli.main(["check", "softmax", f"{file}:smooth"]) == 0
    assert cli.main(["export", str(study), "--adapters", str(to)]) == 0
    said = capsys.readouterr().out
    assert "1 solved problem in cs336_basics, and 1 of 21 adapters" in said
    assert "not solved yet: run_linear, run_embedding" in said
    names = {"cs336_basics/__init__.py", "cs336_basics/softmax.py", "tests/adapters.py"}
    names |= {"AGENTS.md", "CLAUDE.md"}
    assert written(to) == names
    path = study / "mine" / "softmax.py"
    source = path.read_text()
    for theirs in ("__all__ = [\n    'softmax',\n]", ""):  # as other programs and people have it
        path.write_text(source.replace('__all__ = ["softmax"]', theirs))
        assert "and 1 of 21 adapters" in adapters.export_repository(study, to)[0]
    assert cli.main(["export", str(study), "--adapters", str(to), "--strict"]) == 2
    assert "leave out --strict" in capsys.readouterr().err


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


def test_what_cannot_be_called_as_the_handout_does_is_left_to_the_learner(study, tmp_path):
    kept(study, "softmax", SOFTMAX, "smooth")
    kept(study, "rmsnorm", NORM, "Norm")
    kept(study, "linear", CRASHES, "Linear")
    kept(study, "rope", "import no_such_module", "RoPE", status="almost")
    kept(study, "cross_entropy", OURS, "cross_entropy")
    kept(study, "learning_rate_schedule", f"{SCHEDULE}    return 0.1", "at")
    said = "\n".join(adapters.export_repository(study, tmp_path))
    assert "6 solved problems in cs336_basics, and 2 of 21 adapters" in said
    assert "run_linear is left to you: Python ended with status 3" in said
    assert "run_rope is left to you: raises ModuleNotFoundError: No module named" in said
    assert "run_rmsnorm is left to you: returns other numbers than ours" in said
    assert "run_get_lr_cosine_schedule is left to you: " in said
    assert "import the workbook, which the course does not install: cross_entropy" in said
    assert "almost right when checked: rope" in said
    text = (tmp_path / "tests" / "adapters.py").read_text(encoding="utf-8")
    reason = "    # Not exported: returns other numbers than ours\n    raise NotImplementedError\n"
    assert f"def run_rmsnorm(d_model, eps, weights, in_features):\n{reason}" in text


BLANK = "def run_softmax(in_features, dim):\n    raise NotImplementedError\n"


def test_nothing_that_is_there_is_lost(study, tmp_path):
    to = tmp_path / "clone"
    kept(study, "softmax", SOFTMAX, "smooth")
    old = {"tests/adapters.py": BLANK, "cs336_basics/softmax.py": "mine\n", "pyproject.toml": ""}
    old |= {"cs336_basics/__init__.py": "VERSION = 1\n", "tests/test_model.py": ""}
    for name, text in old.items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_text(text)
    lines = adapters.export_repository(study, to)
    assert "  the old tests/adapters.py is kept as tests/adapters.py.bak" in lines
    assert lines[-1].startswith(f"The course's tests: `uv run pytest` in {to}")
    assert adapters.export_repository(study, to)[1:] == [lines[1], lines[-1]]  # the same once more
    (to / "tests" / "adapters.py").write_text("by hand\n")
    line = "  the old tests/adapters.py is kept as tests/adapters.py.bak1"
    assert line in adapters.export_repository(study, to)
    texts = [(to / name).read_text() for name in written(to)]
    assert {*old.values(), "by hand\n"} <= {*texts}
    assert (to / "cs336_basics" / "__init__.py").read_text() == "VERSION = 1\n"


def test_a_study_folder_without_solutions_is_refused(study, tmp_path, capsys):
    (study / "mine" / "softmax.py").write_text(SOFTMAX)  # no check kept it
    assert cli.main(["export", str(study), "--adapters", str(tmp_path / "to")]) == 2
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
