"""Notebooks run to their end in a profile that they were not stored with: `make stress`."""

import os
import subprocess
import sys

import pytest
import tiny_profiles

from workbook.classroom.study import notebooks

NAMES = [path.stem for path in notebooks.find_worked()]  # in order
# A notebook is run once in `make test`, in the laptop's profile: here, only in `make stress`.
stress_only = pytest.mark.skipif("STRESS" not in os.environ, reason="a part of `make stress`")
pytestmark = [pytest.mark.stress, stress_only]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("data")
    tiny_profiles.plant(made)
    return made


@pytest.fixture(autouse=True)
def large(folder, monkeypatch):
    """The environment of a kernel in the profile `full`, whose sizes are tiny."""
    monkeypatch.setenv("WORKBOOK_DATA", str(folder))
    monkeypatch.setenv("WORKBOOK_PROFILE", "full")
    path = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{path}" if path else str(folder))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_to_its_end_in_a_large_profile(name, folder):
    if name == "07_generation":  # with the run of its profile; 06 goes on without it
        subprocess.run([sys.executable, "-m", "workbook", "train", "full"], check=True)
    ran = notebooks.execute(notebooks.find_worked([name])[0])
    shown = "\n".join(str(output) for cell in ran.cells for output in cell.get("outputs", []))
    assert "Profile laptop" not in shown
    if name == "06_training":
        assert "`workbook train full` makes it, in about 0.0 hours" in shown
        assert len(list((folder / "trained").iterdir())) == 1, "a cell began a large run"
    if name == "08_experiments":
        assert shown.count("`workbook experiments run leaderboard --scale full` makes them") == 1
