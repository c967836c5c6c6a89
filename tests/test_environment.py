"""One environment, written down once: pip, uv and conda install the same from the same files."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
OLDEST = "3.11.0"
NEWEST = "3.13.0"  # the newest Python that the Makefile asks for by name

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PINS = {
    canonicalize_name(pin.name): pin
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
    for pin in [Requirement(line)]
}


def direct() -> set[str]:
    """The names of everything that pyproject.toml asks for, extras included."""
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    return {canonicalize_name(Requirement(line).name) for group in groups for line in group}


def installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def version(pin: Requirement) -> str:
    [specifier] = pin.specifier
    return specifier.version


def test_a_pin_names_one_version_that_any_system_can_have():
    for pin in PINS.values():
        assert [specifier.operator for specifier in pin.specifier] == ["=="], pin
        assert not pin.url and not pin.extras, pin
        assert not set(version(pin)) & set("+*"), pin


def test_every_direct_dependency_is_pinned():
    assert direct() <= set(PINS)


def test_what_is_installed_is_what_is_pinned():
    pins = {name: version(pin) for name, pin in PINS.items() if installed(name)}
    assert pins == {name: installed(name).version.split("+")[0] for name in pins}


def test_a_pin_can_be_installed_on_every_python_that_we_support():
    asked = {
        name: installed(name).metadata.get("Requires-Python") for name in PINS if installed(name)
    }
    supported = {OLDEST, NEWEST}
    for name, pythons in asked.items():
        assert supported <= set(SpecifierSet(pythons or "").filter(supported)), (name, pythons)


def test_nothing_that_is_installed_lacks_a_pin():
    """Walks from the package through what its dependencies need on this machine."""
    groups = [PROJECT["dependencies"], PROJECT["optional-dependencies"]["test"]]
    seen, waiting = set(), [Requirement(line) for group in groups for line in group]
    while waiting:
        asked = waiting.pop()
        key = (canonicalize_name(asked.name), *sorted(asked.extras))
        if key in seen or installed(asked.name) is None:
            continue
        seen.add(key)
        for line in installed(asked.name).requires or []:
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


def test_no_file_of_the_project_is_large():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert not [str(f) for f in files if f.is_file() and f.stat().st_size > 500_000]


def test_the_tests_that_the_makefile_names_are_there():
    named = re.findall(r"tests/[\w/.*]*\w", MAKEFILE)
    assert named and [path for path in named if not list(ROOT.glob(path))] == []
