"""A study folder for the tests of this room."""

import pytest

from workbook.classroom.study.progress import MARK, Progress


@pytest.fixture
def study(tmp_path, monkeypatch):
    """An empty study folder that we stand in."""
    (tmp_path / "study" / MARK).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "study")
    return Progress(tmp_path / "study")
