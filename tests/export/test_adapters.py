"""What was solved goes back into a course repository, and works there without the workbook."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import adapter_runs
import pytest
import torch
from attempts import (
    bpe_right,
    checkpointing,
    data_loading,
    optimizer_adamw_right,
    optimizer_schedule_and_clipping,
    tokenizer_right,
    transformer_right,
    transformer_right_functions,
    transformer_right_heads,
    transformer_right_shapes,
)

from workbook import cli
from workbook.checks import worker
from workbook.export import adapters
from workbook.study import problems, solutions
from workbook.study.progress import Part

STYLES = {  # each in other words than the handout's
    "linear": transformer_right.LinearOutFirst,
    "embedding": transformer_right.EmbeddingBySelection,
    "rmsnorm": transformer_right.RMSNormAsInLlama,
    "positionwise_feedforward": transformer_right.SwiGLUFused,
    "rope": transformer_right.RopeOfOtherOrder,
    "softmax": transformer_right_functions.SoftmaxOfAnAxis,
    "scaled_dot_product_attention": transformer_right_functions.attention_and_weights,
    "multihead_self_attention": transformer_right_heads.FusedHeadByHead,
    "transformer_block": transformer_right_shapes.HandedRopeBlock,
    "transformer_lm": transformer_right_shapes.ModelOfAConfig,
    "cross_entropy": transformer_right_functions.targets_first,
    "adamw": optimizer_adamw_right.TwoBetas,
    "learning_rate_schedule": optimizer_schedule_and_clipping.Schedule,
    "gradient_clipping": optimizer_schedule_and_clipping.Clipper,
    "data_loading": data_loading.by_other_names,
    "checkpointing": (checkpointing.save_in_other_order, checkpointing.load_in_other_order),
    "tokenizer": tokenizer_right.OtherNames,
    "train_bpe": bpe_right.Trainer,
}
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
torch.save({n: adapter_runs.result(n, adapters, ".") for n in adapter_runs.NAMES}, "results.pt")
"""


def kept(folder, attempts, status="correct"):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solutions, "why_not_alone", lambda *_: "")  # takes seconds for each
        for problem, attempt in attempts.items():
            (_, trouble), said = solutions.keep(
                folder, problems.get(problem), attempt, status, Part()
            )
            assert trouble == "", said
    return folder


def run_clean(folder):
    """What each adapter of a folder returns in a process that has no workbook."""
    shutil.copy(adapter_runs.__file__, folder)
    run = [sys.executable, "-c", CLEAN]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return torch.load(folder / "results.pt")


def written(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_every_adapter_works_without_the_workbook(tmp_path):
    study, to = kept(tmp_path / "study", STYLES), tmp_path / "course"
    lines = adapters.export(study, to)
    assert f"{len(STYLES)} solved problems in cs336_basics, and 21 of 21 adapters" in lines[0]
    assert "uv run pytest" in lines[-1] and len(lines) == 2
    for problem in STYLES:  # as it was typed
        ours, theirs = study / "mine", to / "cs336_basics"
        assert (theirs / f"{problem}.py").read_text() == (ours / f"{problem}.py").read_text()
    found = run_clean(to)
    ours = adapter_runs.ours()
    expected = {name: adapter_runs.result(name, ours, tmp_path) for name in found}
    wrong = [name for name in found if not adapter_runs.alike(expected[name], found[name])]
    assert len(found) == 21 and wrong == [], {name: found[name] for name in wrong}


CELLS = [
    "import torch\nfrom workbook.study.verbs import check",
    "def shifted(x, dim):\n    return x - x.amax(dim, keepdim=True)",
    "def my_softmax(t, axis):\n    powers = shifted(t, axis).exp()\n"
    "    return powers / powers.sum(axis, keepdim=True)",
    'print(check("softmax", my_softmax).status)',
    "def linear(x): pass",
    'check("linear", linear)',
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
    assert written(to) == {
        "cs336_basics/__init__.py",
        "cs336_basics/softmax.py",
        "tests/adapters.py",
        ".workbook-export.json",
    }
    text = (to / "tests" / "adapters.py").read_text()
    assert "    return my_softmax(t=in_features, axis=dim)\n" in text
    assert 'NotImplementedError("write this adapter by hand: None of your files' in text
    found = run_clean(to)
    assert found["run_linear"] == ["NotImplementedError: "]
    expected = adapter_runs.result("run_softmax", adapter_runs.ours(), tmp_path)
    assert adapter_runs.alike(expected, found["run_softmax"])
    assert cli.main(["export", str(study), "--adapters", str(to), "--strict"]) == 2
    assert "leave out --strict" in capsys.readouterr().err


def softmax(x, dim):
    return (x - x.amax(dim, keepdim=True)).exp() / (x - x.amax(dim, keepdim=True)).exp().sum(
        dim, keepdim=True
    )


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study folder whose adapters are not looked for, as this takes seconds."""
    stubs = {"run_softmax": "def run_softmax(in_features, dim):", "run_b": "def run_b(x):"}
    softmax_found = {"name": "run_softmax", "code": f"{stubs['run_softmax']}\n    ...\n", "why": ""}
    found = [stubs, softmax_found, {"name": "run_b", "code": "", "why": ""}]
    monkeypatch.setattr(worker, "results", lambda *_, **options: iter(found))
    return kept(tmp_path / "study", {"softmax": softmax})


BLANK = '''
import torch


def run_linear(d_in, d_out):
    """What the course says of it."""
    raise NotImplementedError


def run_softmax(in_features, dim):
    raise NotImplementedError("to be written")
'''


def test_the_blank_adapters_of_a_checkout_give_way(study, tmp_path):
    to = tmp_path / "checkout"
    for name in ("cs336_basics", "tests"):
        (to / name).mkdir(parents=True)
    (to / "pyproject.toml").touch()
    (to / "tests" / "test_model.py").touch()
    (to / "tests" / "adapters.py").write_text(BLANK)
    (to / "cs336_basics" / "__init__.py").write_text("VERSION = 1\n")
    lines = adapters.export(study, to)
    assert "  the old tests/adapters.py is kept as tests/adapters.py.bak" in lines
    assert lines[-1] == f"The course's tests: `uv run pytest` in {to}"
    assert (to / "tests" / "adapters.py.bak").read_text() == BLANK
    assert (to / "cs336_basics" / "__init__.py").read_text() == "VERSION = 1\n"
    (to / "cs336_basics" / "softmax.py").unlink()
    adapters.export(study, to)  # what an export wrote may be written again
    kept(study, {"softmax": transformer_right_functions.softmax}, "almost")
    assert "  almost right when checked: softmax" in adapters.export(study, to)
    assert (to / "tests" / "adapters.py.bak").read_text() == BLANK


@pytest.mark.parametrize("name", ["cs336_basics/softmax.py", "tests/adapters.py"])
@pytest.mark.parametrize("when", ["before", "since"])
def test_nothing_of_somebody_else_is_overwritten(study, tmp_path, name, when):
    to = tmp_path / "checkout"
    if when == "since":
        adapters.export(study, to)
    else:
        (to / name).parent.mkdir(parents=True)
    (to / name).write_text("def run_softmax(in_features, dim):\n    return 1\n")
    before = {path: (to / path).read_bytes() for path in written(to)}
    with pytest.raises(ValueError, match=f"nothing was written: {name} in .* did not come"):
        adapters.export(study, to)
    assert {path: (to / path).read_bytes() for path in written(to)} == before


def test_nothing_is_half_written(study, tmp_path):
    to = tmp_path / "checkout"
    (to / "tests" / "adapters.py").mkdir(parents=True)
    with pytest.raises(ValueError, match="nothing was written"):
        adapters.export(study, to)
    (to / "tests" / "adapters.py").rmdir()
    (to / "tests").rmdir()
    (to / "tests").touch()
    with pytest.raises(OSError, match="tests is a file"):
        adapters.export(study, to)
    assert written(to) == {"tests"}


def test_a_study_folder_without_solutions_is_refused(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "softmax.py").write_text("def softmax(x, dim): ...\n")  # no check kept it
    assert cli.main(["export", str(tmp_path), "--adapters", str(tmp_path / "to")]) == 2
    assert "nothing that passed its check is kept" in capsys.readouterr().err
    assert not (tmp_path / "to").exists()


CRASHES = """# linear, kept when its check said correct
import os
from torch import nn
class Linear(nn.Module):
    def __init__(self, in_features, out_features):
        os._exit(3)
__all__ = ["Linear"]
"""
ALONE = """# rope, kept when its check said almost
import no_such_module
__all__ = ["RoPE"]
"""
THEIRS = """# cross_entropy, kept when its check said correct
from workbook.transformer.nn import cross_entropy as theirs
def cross_entropy(logits, targets):
    return theirs(logits, targets)
__all__ = ["cross_entropy"]
"""


def test_what_crashes_or_does_not_import_costs_only_its_own_adapter(tmp_path):
    study, to = kept(tmp_path / "study", {"softmax": softmax}), tmp_path / "course"
    for name, text in {"linear": CRASHES, "rope": ALONE, "cross_entropy": THEIRS}.items():
        (study / "mine" / f"{name}.py").write_text(text)
    said = "\n".join(adapters.export(study, to))
    assert "4 solved problems in cs336_basics, and 2 of 21 adapters" in said
    assert "run_linear not written: Python ended with status 3" in said
    assert "run_rope not written: It does not import by itself: ModuleNotFoundError: No" in said
    assert "import the workbook, which the course does not install: cross_entropy" in said
    assert "almost right when checked: rope" in said
    text = Path(to, "tests", "adapters.py").read_text()
    assert "by hand: It does not import by itself" in text and "    return softmax(" in text
