"""A study folder, and imports from a learner's repository that leave nothing behind."""

import sys

import pytest
import tiny_runs

from workbook.classroom.checks.machinery import loading
from workbook.classroom.mine import adopt
from workbook.training import data, trainer


@pytest.fixture
def study(tmp_path, monkeypatch):
    """An empty study folder, which is the nearest one; what is trained goes beside it."""
    for name in ("mine", ".workbook"):
        (tmp_path / "study" / name).mkdir(parents=True)
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    return tmp_path / "study"


@pytest.fixture
def in_study(study, monkeypatch):
    """We are in that folder, and whatever is trained has tiny data."""
    monkeypatch.chdir(study)
    monkeypatch.setattr(trainer, "matmul_peak", lambda *_: 1e15)
    monkeypatch.setattr(data, "prepare", lambda config, *_: tiny_runs.data())


@pytest.fixture
def clean_imports():
    """Each repository has a package of the same name: none is left for the next one."""
    modules = set(sys.modules)
    path = list(sys.path)
    finders = list(sys.meta_path)
    yield
    for name in set(sys.modules) - modules:
        top = name.partition(".")[0]
        if top in ("cs336_basics", "own", "tests", *loading.TRACKERS) or "tensorboard" in name:
            del sys.modules[name]
    sys.path[:] = path
    sys.meta_path[:] = finders
    adopt._entered.clear()
