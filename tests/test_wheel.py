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
from pathlib import Path
from zipfile import ZipFile

import pytest
from jupyterlab.commands import get_app_dir
from made_repositories import FOLDER as REPOSITORIES
from real_lab import PATIENCE, ROOT, Desk, browse, menu, require_browser, serve, settings

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

START = "from workbook.classroom.study import lab; lab.has_browser = lambda: False; lab.start_lab()"
POSIX = pytest.mark.skipif(os.name != "posix", reason="the server is stopped by a signal")


def run(command: list, folder: Path, environment: dict | None = None, status: int = 0) -> str:
    """Run a command that must end with this status; return what it said."""
    command = [str(word) for word in command]
    ended = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert ended.returncode == status, f"{command}: {ended.returncode}\n{ended.stdout}"
    return ended.stdout


def tracked() -> list[str]:
    """List the files of this checkout that git knows; skip the test where it is none."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = listed.stdout.decode().split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def copy_checkout(folder: Path) -> Path:
    """Copy this checkout, as git knows it, into a new folder."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    run(["git", "init", "--quiet"], folder)
    run(["git", "add", "--all"], folder)
    return folder


def build_wheel(source: Path) -> Path:
    """Build a wheel from a folder of sources."""
    made = source / "dist"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    run([*pip, "--no-deps", "--no-build-isolation", "--no-index", "-w", made, "."], source)
    [wheel] = made.glob("*.whl")
    return wheel


class Installed:
    """The workbook in an environment of its own, and a user with an empty home and folder."""

    def __init__(self, wheel: Path, folder: Path):
        self.home, self.work = folder / "home", folder / "work"
        self.work.mkdir()
        run([sys.executable, "-m", "venv", "--without-pip", folder / "environment"], folder)
        paths = {"base": folder / "environment", "platbase": folder / "environment"}
        self.python = Path(sysconfig.get_path("scripts", "venv", paths), "python")
        self.packages = Path(sysconfig.get_path("purelib", "venv", paths))
        # The *.pth files of a folder named here are not read: no editable install comes along.
        (self.packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
        switches = ("WORKBOOK_", "JUPYTER", "IPYTHON", "PYTHON", "XDG_")
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(switches)
        } | {
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "JUPYTERLAB_DIR": get_app_dir(),
            "PYTHONUTF8": "1",
            "OMP_NUM_THREADS": "1",
        }
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", self.python]
        run(
            [*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], folder, self.environment
        )
        self.at_first = self.files()

    def files(self) -> set[tuple[str, int]]:
        """The names and sizes of all installed files."""
        paths = (path for path in self.packages.rglob("*") if path.is_file())
        return {(str(path), path.stat().st_size) for path in paths}

    def ask(self, code: str) -> str:
        """Run code; return the line that it printed."""
        return run([self.python, "-c", code], self.work, self.environment).strip()

    def workbook(self, *arguments, status: int = 0) -> str:
        """Run the command `workbook`; return what it said."""
        program = self.python.with_name("workbook")
        return run([program, *arguments], self.work, self.environment, status)

    def lab(self):
        """Run `workbook lab` in the user's folder."""
        environment = self.environment | settings(self.home / "jupyter")
        return serve(self.work, environment, START, self.python)


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


@POSIX
def test_the_lab_opens_a_copy_in_the_working_directory(installed):
    with installed.lab() as server:
        assert server.first == "study/01_unicode.ipynb"
        assert len(list((installed.work / "study").glob("*.ipynb"))) == 8
        with server.open(f"lab/tree/{server.first}") as page:
            assert '"name": "cs336-workbook"' in page.read().decode(), "our extension is lacking"
        with server.open(f"api/contents/{server.first}") as model:
            assert "# " in json.load(model)["content"]["cells"][0]["source"]


def test_after_all_of_this_no_installed_file_has_changed(installed):
    assert installed.files() == installed.at_first
    assert not (installed.packages / "study").exists()


# The week


FIGURE = """
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
axes.bar(["repr", "print"], [len(repr("a" + chr(0))), 2])
"""


def typed(file: str, *names: str) -> list[str]:
    """Cells of a learner: the imports and constants of their file, and some definitions in it."""
    source = (REPOSITORIES / "flat" / "cs336_basics" / file).read_text(encoding="utf-8")
    first, by_name = [], {}
    for statement in ast.parse(source).body:
        text = ast.get_source_segment(source, statement)
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            by_name[statement.name] = text
        elif "cs336_basics" not in text:
            first.append(text)
    return ["\n".join(first), *(by_name[name] for name in names)]


class Exercises(Desk):
    """One notebook of a study folder, and what was typed into it."""

    def __init__(self, page, server, name: str):
        super().__init__(page, server, f"study/{name}.ipynb")
        self.typed: list[str] = []

    def cell(self, role: str, problem: str, part: str | None = None):
        """The cell of a problem in this role, scrolled into sight and selected."""
        notes = [cell.metadata.get("workbook", {}) for cell in self.save().cells]
        roles = [(note.get("role"), note.get("problem"), note.get("part")) for note in notes]
        return self.select(roles.index((role, problem, part)))

    def show(self, cell) -> str:
        """Run a cell; return all that it shows."""
        outputs = self.run(cell)
        self.wait()
        return "\n".join(outputs.all_inner_texts())

    def fill(self, cell, source: str) -> str:
        """Type a source over what a cell holds, and run it."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source.strip())
        self.typed.append(source.strip())
        self.page.keyboard.press("Escape")
        return self.show(cell)

    def above(self, cell, source: str) -> str:
        """Type a source into a new cell above the selected one, and run it."""
        self.page.keyboard.press("a")
        return self.fill(self.page.locator(".jp-Notebook .jp-Cell.jp-mod-selected"), source)

    def solve(self, problem: str, *sources: str, part: str | None = None) -> str:
        """Type helpers into cells of their own, the attempt into its cell, and check it."""
        *helpers, attempt = sources
        for helper in helpers:
            self.above(self.cell("try", problem, part), helper)
        self.fill(self.cell("try", problem, part), attempt)
        return self.show(self.cell("check", problem, part))

    def restart(self) -> None:
        menu(self.page, "Kernel", "Restart Kernel…")
        self.page.get_by_role("button", name="Confirm Kernel Restart").click()
        self.page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for()


def table(student: Installed) -> dict[str, str]:
    """The lines of `workbook study` by problem, and all of them under "" """
    printed = student.workbook("study")
    rows = (line.strip() for line in printed.splitlines() if line.startswith("  "))
    return {row.split()[0]: row for row in rows} | {"": printed}


@POSIX
def test_a_week(installed):
    require_browser()
    student = copy.copy(installed)
    student.work = installed.work.parent / "week"
    student.work.mkdir()
    study, desks = student.work / "study", []
    with student.lab() as server, browse() as (context, left):

        def sit_down(name: str) -> Exercises:
            desks.append(Exercises(context.new_page(), server, name))
            return desks[-1]

        # Monday: Unicode. No setup cell has run; `check` is there all the same.
        monday = sit_down("01_unicode")
        assert "a, b, c ○ open" in table(student)["unicode1"]
        said = monday.solve("unicode1", 'my_character = "U+0041"', part="a")
        assert "✗ unicode1 (a): wrong" in said
        said = monday.solve("unicode1", 'my_character = "U+0000"', part="a")
        assert "✓ unicode1 (a): correct" in said
        said = monday.fill(
            monday.cell("answer", "unicode1", "a"),
            'answer("unicode1", "a", """\nIt is the null character, U+0000: mine.\n""")',
        )
        assert "null character, U+0000: mine" in said and "unicode1 (a): " in said
        said = monday.fill(
            monday.cell("answer", "unicode1", "b"),
            FIGURE + 'answer("unicode1", "b", """\nThe repr escapes it, my words.\n""", figure)',
        )
        assert "✎ unicode1 (b): read" in said and 'tick("unicode1", "b")' in said
        monday.above(monday.cell("answer", "unicode1", "c"), 'tick("unicode1", "b")')
        row = table(student)["unicode1"]
        assert "a ✓ correct, answered · b ✓ ticked, answered · c ○ open" in row
        monday.save()

        # Tuesday: BPE, with helpers in cells of their own.
        tuesday = sit_down("02_bpe")
        said = tuesday.solve("train_bpe", *typed("tokenizer.py", "merge_word", "train_bpe"))
        assert "✓ train_bpe: correct" in said and "study/mine/train_bpe.py" in said
        tuesday.save()

        # Wednesday: the model; the kernel is restarted between two parts.
        wednesday = sit_down("03_transformer")
        assert "✓ softmax: correct" in wednesday.solve("softmax", *typed("model.py", "softmax"))
        wednesday.restart()
        assert "✓ linear: correct" in wednesday.solve("linear", *typed("model.py", "Linear"))
        wednesday.save()

        # Thursday: a file in another folder, checked from the command line.
        code = student.work / "code"
        code.mkdir()
        shutil.copy(REPOSITORIES / "flat" / "cs336_basics" / "model.py", code)
        program = student.python.with_name("workbook")
        said = run([program, "check", "rmsnorm", "model.py:RMSNorm"], code, student.environment)
        assert "✓ rmsnorm: correct" in said and "study/mine/rmsnorm.py" in said
        thursday = sit_down("05_optimizer")
        imports, schedule = typed("training.py", "get_lr_cosine_schedule")
        schedule = schedule.replace("get_lr_cosine_schedule", "schedule")
        said = thursday.solve("learning_rate_schedule", imports, schedule)
        assert "✓ learning_rate_schedule: correct" in said
        thursday.save()
        lines = table(student)
        for solved in ("train_bpe", "softmax", "linear", "rmsnorm", "learning_rate_schedule"):
            assert "✓ correct" in lines[solved]
        assert "Solved: 18.7 of 107 points" in lines[""]
        assert "Answered for the write-up: 2 of 35" in lines[""]
        assert "Next: unicode1 (b)" not in lines[""] and "Next: unicode1 (c), open" in lines[""]
        assert left == []

    # Friday: a newer version of the workbook.
    original = student.packages / "workbook" / "shipped" / "notebooks" / "01_unicode.ipynb"
    newer = notebooks.read_notebook(original)
    [prompt] = [cell for cell in newer.cells if cell.id == "unicode1-prompt"]
    prompt.source = prompt.source.replace("play with", "PLAY with")
    newer.cells[3].source += "\n\nAND THIS IS NEW."
    notebooks.write_notebook(original, newer)
    assert "study/01_unicode.ipynb is older than its original" in student.workbook("study")
    assert "is up to date now" in student.workbook("study", "--update")
    assert "older" not in student.workbook("study")
    updated = "\n".join(
        cell.source for cell in notebooks.read_notebook(study / "01_unicode.ipynb").cells
    )
    assert "PLAY with" in updated and "AND THIS IS NEW." in updated

    # The weekend: the folder gets another name, and is written up from there.
    shutil.copytree(study, student.work / "my first week", ignore=shutil.ignore_patterns(".*"))
    study.rename(student.work / "week one")
    for folder in ("week one", "my first week"):
        said = student.workbook("export", folder, "--name", "Ada Lovelace", "--to", "handed in")
        write_up = (student.work / "handed in" / "writeup.md").read_text(encoding="utf-8")
        assert "**Name** Ada Lovelace" in write_up and "**Date** 20" in write_up
        for words in ("U+0000: mine", "my words", "class Linear", "def merge_word", "math.cos("):
            assert words in write_up
        assert "Figure 1." in write_up and "answered: a, b; unanswered: c" in write_up
        packed = ZipFile(student.work / "handed in" / "code.zip")
        assert sorted(packed.namelist()) == [
            "learning_rate_schedule.py", "linear.py", "rmsnorm.py", "softmax.py", "train_bpe.py",
        ]  # fmt: skip
        shutil.rmtree(student.work / "unpacked", ignore_errors=True)
        packed.extractall(student.work / "unpacked")
        for name in packed.namelist():
            run([student.python, "-I", name], student.work / "unpacked", student.environment)
    for name in packed.namelist():
        assert "✓" in student.workbook("check", Path(name).stem, f"unpacked/{name}")

    # Nothing that was typed is lost.
    for desk in desks:
        cells = notebooks.read_notebook(student.work / "week one" / desk.path.name).cells
        replaced = {'my_character = "U+0041"'}
        assert {*desk.typed} - {cell.source for cell in cells} - replaced == set()
