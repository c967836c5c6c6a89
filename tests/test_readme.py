"""What the README and `docs/` tell you to type can be typed, and what they point to is there."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from benchmarks import readme

from workbook import __version__
from workbook.classroom import cli
from workbook.classroom.study import notebooks
from workbook.corpora import corpora

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = ["README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]
TEXT = "\n".join((ROOT / page).read_text("utf-8") for page in PAGES)
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.M | re.S)
COMMANDS = "".join(block for language, block in BLOCKS if not language)


def test_every_make_target_exists():
    named = set(re.findall(r"\bmake ([a-z]+)\b", COMMANDS))
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split()
    assert named == {"lab", "test", "writeup"}
    assert named <= set(targets)


@pytest.mark.parametrize(
    "arguments",
    re.findall(r"\bworkbook ((?:[a-z].*)?)$", COMMANDS, re.M),
)
def test_every_workbook_command_is_understood(arguments):
    assert cli.parser().parse_args(shlex.split(arguments)).run


def test_every_way_to_set_a_checkout_up_installs_the_same():
    ways = [line for line in COMMANDS.splitlines() if "pip install" in line and ".whl" not in line]
    assert len(ways) == 2
    assert all(way.endswith('pip install -c constraints.txt -e ".[test]"') for way in ways)


@pytest.mark.slow
def test_the_code_on_the_page_about_runs_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("workbook.training.trainer.matmul_peak", lambda *_: 1e15)
    (tmp_path / "mine.txt").write_text("A text of one's own, over and over again. " * 99)
    page = (ROOT / "docs/running.md").read_text("utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    small = {"vocab_size=1024": "vocab_size=270, context_length=8, steps=20", ", 1024,": ", 270,"}
    for whole, part in small.items():
        assert code.count(whole) == 1
        code = code.replace(whole, part)
    found = {}
    exec(code, found)
    assert found["run"].status == "finished" and len(found["ids"]) > 99


def test_every_switch_is_one_that_is_read():
    switches = set(re.findall(r"WORKBOOK_[A-Z]+", TEXT))
    source = (ROOT / "workbook" / "config.py").read_text("utf-8")
    assert switches and all(switch in source for switch in switches)


@pytest.mark.parametrize("page", [*PAGES, "data/README.md", "CONTRIBUTING.md"])
def test_every_link_leads_somewhere(page):
    text = (ROOT / page).read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert not [link for link in links if not (ROOT / page).parent.joinpath(link).exists()]


def test_the_table_lists_every_notebook_with_its_problems():
    rows = re.findall(r"^\| \[(\w+)\]\(notebooks/\w+\.ipynb\) \| (.*) \|$", README, re.M)
    listed = {name: problems.split(", ") for name, problems in rows}
    worked = {}
    for path in notebooks.find_worked():
        cells = notebooks.read_notebook(path).cells
        prompts = [cell for cell in cells if notebooks.role(cell) == "prompt"]
        worked[path.stem] = [cell.metadata.workbook.problem for cell in prompts]
    assert listed == worked


def test_the_pages_about_data_name_every_corpus():
    text = (ROOT / "data" / "README.md").read_text("utf-8")
    for corpus in corpora.CORPORA.values():
        [row] = re.findall(rf"^\| `{corpus.name}` \|.*$", text, re.M)
        assert corpus.licence in row
        assert corpus.repository in row


def test_the_wheel_that_is_installed_has_this_version():
    wheels = re.findall(r"cs336_workbook-([\d.]+)-py3", TEXT)
    assert wheels and set(wheels) == {__version__}


def test_the_readme_fits_on_a_screen_and_a_half_and_points_to_every_other_page():
    assert len(README.splitlines()) <= 104
    linked = set(re.findall(r"\]\((?:docs/)?([\w]+\.md)\)", TEXT))
    assert {Path(page).name for page in PAGES[1:]} <= linked


def test_the_figures_of_the_bench_are_those_of_the_records():
    assert readme.with_figures(README) == README


def test_the_badges_are_made_from_the_public_address():
    assert readme.with_badges(README, readme.address()) == README
    made = readme.with_badges(README, "https://github.com/ada/book")
    assert "(https://github.com/ada/book/actions/workflows/test.yml/badge.svg)" in made
    assert "com/github/ada/book/blob/HEAD/notebooks/01_unicode.ipynb)" in made
    assert readme.with_badges(made, "") == readme.with_badges(README, "")


def test_the_oldest_python_is_named():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in README
