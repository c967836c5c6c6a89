"""One environment, written down once: pip, uv and conda install the same from the same files."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from workbook.corpora.docstrings import LIBRARIES

ROOT = Path(__file__).parents[1]
OLDEST = "3.11.0"
NEWEST = "3.13.0"  # the newest Python that the Makefile asks for by name

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def by_name(lines: list[str]) -> dict[str, Requirement]:
    """What lines of requirements ask for, by the name of the package."""
    asked = map(Requirement, lines)
    return {canonicalize_name(requirement.name): requirement for requirement in asked}


LINES = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
PINS = by_name([line for line in LINES if line and not line.startswith("#")])
INSTALLED = {canonicalize_name(package.name): package for package in distributions()}


def version(pin: Requirement) -> str:
    return str(pin.specifier).removeprefix("==")


def test_a_pin_names_one_version_that_any_system_can_have():
    for pin in PINS.values():
        assert re.fullmatch(r"==[^+*,]+", str(pin.specifier)), pin
        assert not pin.url and not pin.extras, pin


def test_uv_takes_the_pinned_versions_of_what_decides_the_results():
    pins = by_name(PYPROJECT["tool"]["uv"]["constraint-dependencies"])
    assert pins.keys() == by_name([*PROJECT["dependencies"], *LIBRARIES]).keys()
    assert pins.items() <= PINS.items()


def imported(folder: str) -> set[str]:
    """The names of the modules that the files of a folder import, of others than ours."""
    trees = [ast.parse(path.read_text("utf-8")) for path in (ROOT / folder).rglob("*.py")]
    found = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"workbook"}


@pytest.mark.slow
def test_what_is_imported_is_declared():
    """Else it is there only as long as another library brings it."""
    extras = PROJECT["optional-dependencies"]
    declared = {
        "workbook": [*PROJECT["dependencies"], *extras["export"], *extras["cluster"]],
        "docs/site": [*PROJECT["dependencies"], *extras["test"]],
    }
    known = packages_distributions()
    for folder, lines in declared.items():
        asked = by_name(lines).keys()
        lacking = {
            name
            for name in imported(folder)
            if not asked & {canonicalize_name(package) for package in known.get(name, [])}
        }
        assert lacking == set(), folder


def test_a_container_is_set_up_as_by_make():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))
    assert container["postCreateCommand"].startswith("make .venv/complete && ")
    assert "stamp := .venv/complete" in MAKEFILE


@pytest.mark.pins
def test_what_is_installed_is_what_is_pinned():
    pins = {name: version(pin) for name, pin in PINS.items() if name in INSTALLED}
    assert pins == {name: INSTALLED[name].version.split("+")[0] for name in pins}


@pytest.mark.pins
def test_a_pin_can_be_installed_on_every_python_that_we_support():
    for name in PINS.keys() & INSTALLED.keys():
        pythons = SpecifierSet(INSTALLED[name].metadata.get("Requires-Python") or "")
        assert OLDEST in pythons and NEWEST in pythons, (name, pythons)


@pytest.mark.pins
def test_nothing_that_is_asked_for_or_installed_lacks_a_pin():
    """Walks from the package through what its dependencies need on this machine."""
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    seen = set()
    waiting = [Requirement(line) for group in groups for line in group]
    while waiting:
        asked = waiting.pop()
        name = canonicalize_name(asked.name)
        key = (name, *sorted(asked.extras))
        if key in seen:
            continue
        seen.add(key)
        needs = INSTALLED[name].requires if name in INSTALLED else None
        for line in needs or []:
            needed = Requirement(line)
            extras = asked.extras or {""}
            if not needed.marker or any(needed.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(needed)
    optional = {"pip", "setuptools", "cuda-toolkit", "triton"}  # the last two: with CUDA
    lacking = {name for name, *_ in seen} - set(PINS) - optional
    assert not {name for name in lacking if not name.startswith(("nvidia-", "cuda-"))}


def test_conda_and_make_install_what_pip_installs_on_the_same_pythons():
    python, pip, wrapped = CONDA["dependencies"]
    assert (pip, wrapped) == ("pip", {"pip": ["-c constraints.txt", "-e .[test]"]})
    assert '-c constraints.txt -e ".[test]"' in MAKEFILE
    major, minor = re.fullmatch(r">=(\d+)\.(\d+)", PROJECT["requires-python"]).groups()
    assert python == f"python={major}.{minor}" and f"{major}.{minor}.0" == OLDEST
    assert f"sys.version_info < ({major}, {minor})" in (ROOT / ".ci/suitable.py").read_text()


def test_pre_commit_can_read_its_hooks():
    check = [sys.executable, "-m", "pre_commit", "validate-config", ".pre-commit-config.yaml"]
    subprocess.run(check, cwd=ROOT, check=True)


def test_the_tests_that_the_makefile_names_are_there():
    named = re.findall(r"tests/[\w/.*]*\w", MAKEFILE)
    assert named and [path for path in named if not list(ROOT.glob(path))] == []
