"""In the kernels of a study folder, and there alone, `check` and its friends need no import."""

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

import workbook
from workbook.classroom.checks.machinery import worker
from workbook.classroom.jupyter import workbook_startup
from workbook.classroom.study import solutions
from workbook.classroom.study.progress import MARK

STARTUP = Path(workbook_startup.__file__)
EXTENSION = STARTUP.with_name("labextension")


@pytest.fixture
def start(tmp_path, monkeypatch):
    """What a new kernel in a folder has in its namespace, besides what Python puts there."""

    def in_folder(name: str, **learners) -> dict:
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(folder)
        namespace = {"__builtins__": __builtins__, **learners}
        exec(compile(STARTUP.read_text("utf-8"), str(STARTUP), "exec"), namespace)
        del namespace["__builtins__"]
        return namespace

    (tmp_path / "study" / MARK).mkdir(parents=True)
    return in_folder


def test_in_a_study_folder_alone_the_verbs_are_those_of_the_package(start, monkeypatch):
    started = Mock()
    monkeypatch.setattr(worker, "start", started)
    assert start("notebooks") == start(".") == {}
    started.assert_not_called()
    verbs = {name: getattr(workbook, name) for name in workbook.__all__}
    assert start("study") == start("study/drafts/old") == verbs
    assert started.call_count == 2, "what judges starts with the kernel"
    assert start("study", check="mine")["check"] == "mine", "names of the learner stay"


def test_before_its_first_cell_a_kernel_imports_what_its_notebook_does(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "start", Mock())
    top = "import json\nfrom math import pi as tau\nbase = 1\nimport no_such_module\nimport math"
    setup = {"metadata": {"workbook": {"role": "setup"}}, "source": top.splitlines(keepends=True)}
    cells = [{"metadata": {}, "source": "import csv"}, setup]
    (tmp_path / "02_bpe.ipynb").write_text(json.dumps({"cells": cells}), "utf-8")
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "02_bpe.ipynb"))
    typed = ["", "def loads(text): return json.loads(text)"]
    names = {"__name__": "__main__"}
    history = Mock(input_hist_raw=typed)
    shell = Mock(user_ns=names, history_manager=history, transform_cell=str)
    monkeypatch.setattr(solutions, "shell", lambda: shell)
    solutions.make_ready()
    assert names.keys() == {"__name__"}, "it waits for a cell"
    _, before_the_cell = shell.events.register.call_args.args
    before_the_cell(None)
    assert names.keys() - {"__name__", "__builtins__"} == {"json", "tau"}
    exec(typed[1], names)
    source, trouble = solutions.collect(names["loads"], ("loads",))
    assert source.startswith("import json\n") and trouble == "", "they are kept with what uses them"


def test_elsewhere_the_package_is_not_loaded(tmp_path):
    show = f"exec(open({str(STARTUP)!r}).read()); import sys; print('workbook' in sys.modules)"
    printed = subprocess.check_output([sys.executable, "-c", show], cwd=tmp_path, text=True)
    assert printed.split() == ["False"]


def test_a_kernel_starts_although_the_package_is_broken(start, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "workbook", None)  # importing it raises ImportError
    assert start("study") == {}
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(os.name != "posix", reason="only POSIX removes the folder that one works in")
def test_a_kernel_starts_although_its_folder_is_gone(start, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    namespace = {}
    exec(STARTUP.read_text("utf-8"), namespace)
    assert set(namespace) == {"__builtins__"}


def test_the_environment_has_what_kernels_and_jupyterlab_look_for_there():
    """An editable install copies these files: after a change of them `make` installs again."""
    lab = Path(sys.prefix, "share", "jupyter")
    installed = {STARTUP: Path(sys.prefix, "etc", "ipython", "startup", STARTUP.name)}
    for file in EXTENSION.rglob("*.*"):
        installed[file] = lab / "labextensions/cs336-workbook" / file.relative_to(EXTENSION)
    (settings,) = STARTUP.parent.glob("overrides.d/*")
    installed[settings] = lab / "lab/settings/overrides.d" / settings.name
    assert len(installed) == 6
    for file, copy in installed.items():
        assert copy.exists() and copy.read_bytes() == file.read_bytes(), "pip install -e ."
    package = json.loads((EXTENSION / "package.json").read_text("utf-8"))
    assert package["version"] == workbook.__version__
