"""The workbook from a wheel, in a folder that is no checkout: it all works, and nothing changes it.

The wheel is built from a checkout that was used, and installed into an environment of its own,
which borrows all else that the workbook needs from the environment of the tests.
"""

import json
import os
import re
import sys
import tarfile
import urllib.request
from pathlib import Path
from zipfile import ZipFile

import pytest
from installed import ROOT, Installed, build_wheel, copy_checkout, run, tracked

from workbook.classroom.study import notebooks

# What is never shipped: made by users, left by an earlier build.
USED = """
    build/lib/workbook/gone.py build/writeup.pdf data/bench/tokenizer-mine.json
    data/corpora/stories/train-20MB.txt data/runs/mine.runs.jsonl
    data/tokenizers/stories-2048/vocab.json data/tokens/stories-2048/train-20MB.npy
    data/trained/mine-0123456789ab/step-20.pt notebooks/scratch.ipynb study/01_unicode.ipynb
    study/.workbook/progress.json
"""
SOFTMAX = """
import torch
def softmax(x, dim):
    e = torch.exp(x - x.max(dim, keepdim=True).values)
    return e / e.sum(dim, keepdim=True)
def wrong(x, dim):
    return x
"""
RUN_A_NOTEBOOK = """
import sys
import nbformat
from nbclient import NotebookClient
from workbook import config
from workbook.classroom.study import notebooks

notebook = notebooks.read_notebook(config.shipped() / "notebooks" / sys.argv[1])
NotebookClient(notebook, kernel_name="python3", extra_arguments=["--log-level=ERROR"]).execute()
notebooks.write_notebook(sys.argv[1], notebooks.normalise(notebook))
"""

ASK_A_KERNEL = """
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

notebook = new_notebook(cells=[new_code_cell('check("softmax", None)')])
NotebookClient(notebook, kernel_name="python3").execute()
print(notebook.cells[0].outputs[0].data["text/plain"])
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of this checkout, after it was used."""
    folder = copy_checkout(tmp_path_factory.mktemp("used") / "checkout")
    for name in USED.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return folder


@pytest.fixture(scope="module")
def wheel(checkout) -> Path:
    return build_wheel(checkout)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Installed:
    return Installed(wheel, tmp_path_factory.mktemp("installed"))


def test_a_wheel_holds_what_is_in_git_and_nothing_of_its_user(wheel):
    known = tracked()
    names = {name for name in ZipFile(wheel).namelist() if name.startswith("workbook/")}
    shipped = ("notebooks/", "data/runs/", "data/reported/", "data/bench/")
    beside = ("LICENSE", "pyproject.toml", "constraints.txt")
    expected = {name for name in known if name.startswith("workbook/")} | {
        f"workbook/shipped/{name}" for name in known if name.startswith(shipped) or name in beside
    }
    assert names == expected
    chapters = [name for name in names if name.endswith(".ipynb")]
    assert len(chapters) == 8 and wheel.stat().st_size < 10_000_000


def test_a_wheel_from_the_source_distribution_is_the_same(wheel, checkout, tmp_path):
    make = "from setuptools import build_meta; print(build_meta.build_sdist('dist'))"
    name = run([sys.executable, "-c", make], checkout).split()[-1]
    with tarfile.open(checkout / "dist" / name) as archive:
        archive.extractall(tmp_path, filter="data")
    again = build_wheel(tmp_path / name.removesuffix(".tar.gz"))
    assert sorted(ZipFile(again).namelist()) == sorted(ZipFile(wheel).namelist())


def test_it_is_found_where_it_was_installed_and_keeps_data_with_the_user(installed):
    [place] = installed.ask("import workbook; print(workbook.__file__)").splitlines()
    assert Path(place).is_relative_to(installed.packages)
    asked = "from importlib.metadata import version; print(version('cs336-workbook'))"
    assert installed.workbook("--version") == f"workbook {installed.ask(asked)}\n"
    folder = installed.ask("from workbook import config; print(config.data_folder())")
    assert Path(folder).is_relative_to(installed.home)


def test_an_attempt_is_checked(installed):
    (installed.work / "mine.py").write_text(SOFTMAX)
    said = installed.workbook("check", "softmax", "mine.py")
    assert "correct" in said and "Not counted: there is no study folder" in said
    assert not (installed.work / "study").exists()
    installed.workbook("check", "softmax", "mine.py:wrong", status=1)


def test_a_corpus_is_made_a_model_trained_and_a_text_generated(installed):
    small = ["--corpus-bytes", "1000000", "--eval-tokens", "1000", "--batch-size", "2"]
    shape = ["--d-model", "32", "--num-layers", "1", "--num-heads", "2", "--d-ff", "64"]
    corpus = installed.workbook("data", "make", "stories", "--size", "1MB").split()[-1]
    said = installed.workbook(
        "train", "laptop", "--steps", "2", "--warmup-iters", "1", *small, *shape
    )
    trained = re.search(r"trained: (.+)", said)[1]
    assert all(Path(path).is_relative_to(installed.home) for path in (corpus, trained))
    said = installed.workbook("generate", trained, "Once", "--tokens", "5", "--seed", "1")
    assert said.startswith("Once")
    environment = json.loads(Path(trained, "environment.json").read_text(encoding="utf-8"))
    assert environment["commit"] is None and environment["versions"]["workbook"]


def test_recorded_runs_and_published_claims_come_along(installed):
    shown = installed.workbook("experiments", "show", "learning_rate")
    assert "rate 0.01" in shown and "missing" not in shown
    claims = "from workbook.experiments import published; print(len(published.all_claims()))"
    assert int(installed.ask(claims)) > 50
    bench = "from workbook.bench import recorded; print(recorded('train')['machine'])"
    assert "processor" in installed.ask(bench)


def test_what_needs_a_checkout_says_so(installed):
    said = installed.workbook("notebooks", status=2)
    assert said.startswith("workbook: this is an installed package: clone the repository")
    assert said.count("\n") == 1 and "clone the repository" in said


def test_the_worked_answers_are_written_up(installed):
    said = installed.workbook("export", "--to", "ours")
    assert said.startswith("Reference write-up") and "unanswered" not in said
    packed = ZipFile(installed.work / "ours" / "code.zip").namelist()
    assert {"workbook/config.py", "LICENSE", "pyproject.toml", "constraints.txt"} <= set(packed)
    assert not [name for name in packed if "shipped" in name]


def test_a_worked_notebook_runs_in_any_folder(installed):
    run([installed.python, "-c", RUN_A_NOTEBOOK, "01_unicode.ipynb"], installed.work,
        installed.environment)  # fmt: skip
    stored, new = (
        [
            c
            for c in notebooks.read_notebook(path).cells
            if notebooks.VARIES not in c.metadata.get("tags", [])
        ]
        for path in (ROOT / "notebooks" / "01_unicode.ipynb", installed.work / "01_unicode.ipynb")
    )
    assert stored == new
    (installed.work / "01_unicode.ipynb").unlink()


@pytest.mark.skipif(os.name != "posix", reason="the server is stopped by a signal")
def test_the_lab_opens_a_copy_in_the_working_directory(installed):
    with installed.lab() as (base, first, token):
        assert first == "study/01_unicode.ipynb"
        assert len(list((installed.work / "study").glob("*.ipynb"))) == 8
        with urllib.request.urlopen(f"{base}lab/tree/{first}?token={token}") as page:
            assert '"name": "cs336-workbook"' in page.read().decode(), "our extension is lacking"
        with urllib.request.urlopen(f"{base}api/contents/{first}?token={token}") as answered:
            assert "# " in json.load(answered)["content"]["cells"][0]["source"]
    asked = [installed.python, "-c", ASK_A_KERNEL]
    assert "not attempted" in run(asked, installed.work / "study", installed.environment)
    (installed.work / "mine.py").write_text(SOFTMAX)
    installed.workbook("check", "softmax", "mine.py")
    assert re.search(r": 1 of \d+ points\.", installed.workbook("study"))
    said = installed.workbook("export", "study", "--to", "mine")
    assert said.startswith("Write-up") and (installed.work / "mine" / "writeup.pdf").is_file()


def test_after_all_of_this_no_installed_file_has_changed(installed):
    assert installed.files() == installed.at_first
    assert not (installed.packages / "study").exists()
