"""The workbook as a user has it: from a wheel, in a folder that is no checkout, for a week.

The wheel is built from a checkout that was used, and installed into an environment of its own,
which borrows all else that the workbook needs from the environment of the tests. The week is played
in a real JupyterLab; it needs Chromium, as `test_browser.py` does.
"""

import ast
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections import defaultdict
from pathlib import Path
from zipfile import ZipFile

import pytest
from jupyterlab.commands import get_app_dir
from made_repositories import FOLDER as REPOSITORIES
from real_lab import ROOT, Desk, browse, menu, require_browser, serve, settings
from work import PATIENCE

from workbook.classroom.study import notebooks

# What is never shipped: made by users, left by an earlier build.
USED = [
    "build/lib/workbook/gone.py",
    "build/writeup.pdf",
    "data/bench/tokenizer-mine.json",
    "data/corpora/stories/train-20MB.txt",
    "data/runs/mine.runs.jsonl",
    "data/tokenizers/stories-2048/vocab.json",
    "data/trained/mine-0123456789ab/step-20.pt",
    "notebooks/scratch.ipynb",
    "study/01_unicode.ipynb",
    "study/.workbook/progress.json",
]
LEARNER = REPOSITORIES / "flat" / "cs336_basics"
RUN_A_NOTEBOOK = """
from nbclient import execute
from workbook import config
from workbook.classroom.study import notebooks

execute(notebooks.read_notebook(config.shipped() / "notebooks" / "01_unicode.ipynb"))
"""
START = "from workbook.classroom.study import lab; lab.has_browser = lambda: False; lab.start_lab()"


def run(command: list, folder: Path, environment: dict | None = None, status: int = 0) -> str:
    """Run a command that must end with this status; return what it said."""
    ended = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    assert ended.returncode == status, f"{command}: {ended.returncode}\n{ended.stdout}"
    return ended.stdout


def tracked() -> list[str]:
    """List the files of this checkout that git knows; skip the test where it is none."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = listed.stdout.decode().split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def build(source: Path, kind: str = "wheel") -> Path:
    """Build a wheel or an sdist from a folder of sources, as pip asks setuptools to."""
    make = f"from setuptools import build_meta; print(build_meta.build_{kind}('dist'))"
    return source / "dist" / run([sys.executable, "-c", make], source).split()[-1]


class Installed:
    """The workbook in an environment of its own, and a user with an empty home and folder."""

    def __init__(self, wheel: Path, folder: Path):
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir()
        run([sys.executable, "-m", "venv", "--without-pip", folder / "environment"], folder)
        paths = {"base": folder / "environment", "platbase": folder / "environment"}
        self.python = Path(sysconfig.get_path("scripts", "venv", paths), "python")
        self.packages = Path(sysconfig.get_path("purelib", "venv", paths))
        # The *.pth files of a folder named here are not read: no editable install comes along.
        (self.packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
        switches = ("WORKBOOK_", "JUPYTER", "IPYTHON", "PYTHON", "XDG_")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(switches)}
        places = {"HOME": self.home, "USERPROFILE": self.home, "JUPYTERLAB_DIR": get_app_dir()}
        self.environment = kept | places | {"PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"}
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", self.python]
        run([*pip, "install", "-q", "--no-deps", "--no-index", wheel], folder, self.environment)
        self.at_first = self.files()

    def files(self) -> set[tuple[str, int]]:
        """The names and sizes of all installed files."""
        paths = (path for path in self.packages.rglob("*") if path.is_file())
        return {(str(path), path.stat().st_size) for path in paths}

    def ask(self, code: str) -> str:
        """Run code; return what it printed."""
        return run([self.python, "-c", code], self.work, self.environment).strip()

    def workbook(self, *arguments, status: int = 0, folder: Path | None = None) -> str:
        """Run the command `workbook`; return what it said."""
        program = self.python.with_name("workbook")
        return run([program, *arguments], folder or self.work, self.environment, status)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of this checkout, as git knows it, after it was used."""
    folder = tmp_path_factory.mktemp("checkout")
    names = tracked()
    for name in [*names, *USED]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes() if name in names else b"{}")
    run(["git", "init", "--quiet"], folder)
    run(["git", "add", *names], folder)
    return folder


@pytest.fixture(scope="module")
def wheel(checkout) -> Path:
    return build(checkout)


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
    archive = build(checkout, "sdist")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    again = build(tmp_path / archive.name.removesuffix(".tar.gz"))
    assert sorted(ZipFile(again).namelist()) == sorted(ZipFile(wheel).namelist())


def test_it_is_found_where_it_was_installed_and_keeps_data_with_the_user(installed):
    asked = "import workbook; from workbook import config; from importlib.metadata import version\n"
    asked += "print(workbook.__file__, config.data_folder(), version('cs336-workbook'), sep='\\n')"
    place, data, version = installed.ask(asked).splitlines()
    assert Path(place).is_relative_to(installed.packages)
    assert Path(data).is_relative_to(installed.home)
    assert installed.workbook("--version") == f"workbook {version}\n"


def test_an_attempt_is_checked(installed):
    shutil.copy(LEARNER / "model.py", installed.work)
    said = installed.workbook("check", "softmax", "model.py")
    assert "correct" in said and "Not counted: there is no study folder" in said
    assert not (installed.work / "study").exists()


def test_a_corpus_is_made_a_model_trained_and_a_text_generated(installed):
    small = ["--corpus-bytes", "1000000", "--eval-tokens", "1000", "--batch-size", "2"]
    shape = ["--d-model", "32", "--num-layers", "1", "--num-heads", "2", "--d-ff", "64"]
    corpus = installed.workbook("data", "make", "stories", "--size", "1MB").split()[-1]
    steps = ["--steps", "2", "--warmup-iters", "1"]
    said = installed.workbook("train", "laptop", *steps, *small, *shape)
    trained = re.search(r"trained: (.+)", said)[1]
    assert all(Path(path).is_relative_to(installed.home) for path in (corpus, trained))
    said = installed.workbook("generate", trained, "Once", "--tokens", "5", "--seed", "1")
    assert said.startswith("Once")
    environment = json.loads(Path(trained, "environment.json").read_text("utf-8"))
    assert environment["commit"] is None and environment["versions"]["workbook"]


def test_what_needs_a_checkout_says_so(installed):
    said = installed.workbook("notebooks", status=2)
    assert said.startswith("workbook: this is an installed package: clone the repository")
    assert said.count("\n") == 1


def test_a_worked_notebook_runs_in_any_folder(installed):
    installed.ask(RUN_A_NOTEBOOK)


def test_after_all_of_this_no_installed_file_has_changed(installed):
    assert installed.files() == installed.at_first
    assert not (installed.packages / "study").exists()


# The week


FIGURE = "import matplotlib.pyplot as plt\n\nfigure, axes = plt.subplots()\n"


def typed(file: str, *names: str) -> list[str]:
    """Cells of a learner: the imports and constants of their file, and some definitions in it."""
    source = (LEARNER / file).read_text("utf-8")
    pieces = defaultdict(str)
    for statement in ast.parse(source).body:
        pieces[getattr(statement, "name", "")] += f"{ast.get_source_segment(source, statement)}\n"
    return [pieces[name].strip() for name in ("", *names)]


class Exercises(Desk):
    """One notebook of a study folder, and what was typed into it."""

    def __init__(self, page, server, name: str):
        super().__init__(page, server, f"study/{name}.ipynb")
        notes = [cell.metadata.get("workbook", {}) for cell in self.save().cells]
        self.places = [tuple(map(note.get, ("role", "problem", "part"))) for note in notes]
        self.typed: list[str] = []

    def cell(self, role: str, problem: str, part: str | None = None):
        """The cell of a problem in this role, scrolled into sight and selected."""
        return self.select(self.places.index((role, problem, part)))

    def fill(self, cell, source: str, *said: str) -> None:
        """Type a source over what a cell holds, and run it; it has to show these words."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source.strip())
        self.typed.append(source.strip())
        self.page.keyboard.press("Escape")
        self.run(cell, *said)

    def above(self, place: tuple, source: str, *said: str) -> None:
        """Type a source into a new cell above the one of this role, problem and part; run it."""
        self.cell(*place)
        self.page.keyboard.press("a")
        self.places.insert(self.places.index(place), ())
        self.fill(self.page.locator(".jp-Notebook .jp-Cell.jp-mod-selected"), source, *said)

    def solve(self, problem: str, *sources: str, part: str | None = None, said: str) -> None:
        """Type helpers into cells of their own, the attempt into its cell, and check it."""
        *helpers, attempt = sources
        for helper in helpers:
            self.above(("try", problem, part), helper)
        self.fill(self.cell("try", problem, part), attempt)
        self.run(self.cell("check", problem, part), said)


@pytest.mark.skipif(os.name != "posix", reason="the server is stopped by a signal")
def test_a_week(installed):
    require_browser()
    student = copy.copy(installed)
    student.work = installed.work.parent / "week"
    student.work.mkdir()
    study = student.work / "study"
    environment = student.environment | settings(student.home / "jupyter")
    server_of = serve(student.work, environment, START, student.python)
    with server_of as server, browse() as (context, left):
        assert server.first == "study/01_unicode.ipynb"
        assert len(list(study.glob("*.ipynb"))) == 8

        # Monday: Unicode. No setup cell has run; `check` is there all the same.
        monday = Exercises(context.new_page(), server, "01_unicode")
        page_config = monday.page.locator("#jupyter-config-data").text_content()
        assert '"cs336-workbook"' in page_config, "our extension of JupyterLab came along"
        for character, verdict in (
            ("U+0041", "✗ unicode1 (a): wrong"),
            ("U+0000", "✓ unicode1 (a)"),
        ):
            attempt = f'my_character = "{character}"'
            monday.solve("unicode1", attempt, part="a", said=verdict)
        text = 'answer("unicode1", "a", """\nIt is the null character, U+0000: mine.\n""")'
        shown = "null character, U+0000: mine", "unicode1 (a): "
        monday.fill(monday.cell("answer", "unicode1", "a"), text, *shown)
        text = 'answer("unicode1", "b", """\nThe repr escapes it, my words.\n""", figure)'
        shown = "✎ unicode1 (b): read", 'tick("unicode1", "b")'
        monday.fill(monday.cell("answer", "unicode1", "b"), FIGURE + text, *shown)
        monday.above(("answer", "unicode1", "c"), 'tick("unicode1", "b")', "✓ unicode1 (b): ticked")
        monday.save()

        # Tuesday: the model, with helpers in cells of their own. The kernel is restarted.
        tuesday = Exercises(context.new_page(), server, "03_transformer")
        tuesday.solve("softmax", *typed("model.py", "softmax"), said="✓ softmax: correct")
        menu(tuesday.page, "Kernel", "Restart Kernel…")
        tuesday.page.get_by_role("button", name="Confirm Kernel Restart").click()
        tuesday.wait()
        parts = typed("model.py", "silu", "Linear", "SwiGLU")
        tuesday.solve("positionwise_feedforward", *parts, said="✓ positionwise_feedforward: cor")
        assert (study / "mine" / "positionwise_feedforward.py").exists()
        tuesday.save()
        assert left == []

    # Wednesday: a file in another folder, checked from the command line.
    (student.work / "code").mkdir()
    shutil.copy(LEARNER / "model.py", student.work / "code")
    said = student.workbook("check", "rmsnorm", "model.py:RMSNorm", folder=student.work / "code")
    assert "✓ rmsnorm: correct" in said and "study/mine/rmsnorm.py" in said
    printed = student.workbook("study")
    lines = {line.split()[0]: line for line in printed.splitlines() if line.startswith("  ")}
    assert "a ✓ correct, answered · b ✓ ticked, answered · c ○ open" in lines["unicode1"]
    for solved in ("positionwise_feedforward", "softmax", "rmsnorm"):
        assert "✓ correct" in lines[solved]
    assert "Solved: 4.7 of 107 points" in printed and "hours, that is" in printed
    assert "Answered for the write-up: 2 of 35" in printed
    assert "Next: unicode1 (b)" not in printed and "Next: unicode1 (c), open" in printed

    # Thursday: the folder gets another name, and is written up from there.
    study.rename(student.work / "week one")
    student.workbook("export", "week one", "--name", "Ada Lovelace", "--to", "handed in")
    write_up = (student.work / "handed in" / "writeup.md").read_text("utf-8")
    assert "**Name** Ada Lovelace" in write_up and "**Date** 20" in write_up
    for words in ("U+0000: mine", "my words", "class SwiGLU", "def silu", "Figure 1."):
        assert words in write_up
    assert "answered: a, b; unanswered: c" in write_up
    packed = ZipFile(student.work / "handed in" / "code.zip")
    assert packed.namelist() == ["positionwise_feedforward.py", "rmsnorm.py", "softmax.py"]

    # Nothing that was typed is lost.
    for desk in (monday, tuesday):
        cells = notebooks.read_notebook(student.work / "week one" / desk.path.name).cells
        replaced = {'my_character = "U+0041"'}
        assert {*desk.typed} - {cell.source for cell in cells} - replaced == set()
