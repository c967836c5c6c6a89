"""`workbook doctor`: one screen, and the remedy for what is wrong."""

import sys

import pytest

from workbook import config
from workbook.classroom import cli, doctor


def test_a_machine_that_is_well_is_described_on_one_screen(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["doctor"]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert len(lines) == len(doctor.THINGS) and "✗" not in said
    assert f"sees {config.PACKAGE}" in said and "torch " in said and sys.prefix in said


def test_what_is_wrong_has_a_remedy_and_a_fault_of_ours_ends_nothing(monkeypatch, capsys):
    examined = {
        "libraries": doctor._libraries,
        "data": doctor._data,
        "odd": lambda: 1 / 0,
    }
    monkeypatch.setattr(doctor, "THINGS", examined)
    needed = ["numpy>=99", "no-such-library", "typst>=0.15; extra == 'export'"]
    monkeypatch.setattr(doctor, "requires", lambda name: needed)
    monkeypatch.setenv("WORKBOOK_DATA", "/proc/none")
    assert cli.main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "is older than 99; no-such-library is missing: pip install --upgrade" in said
    assert "set WORKBOOK_DATA to another" in said and "ZeroDivisionError" in said
    assert "typst" not in said


@pytest.mark.parametrize("seen", ["", "/elsewhere/workbook/__init__.py"])
def test_a_kernel_that_sees_another_package_is_told(seen, monkeypatch):
    script = f"print({seen!r})" if seen else "raise SystemExit(1)"
    monkeypatch.setattr(doctor, "ASK_KERNEL", script)
    assert "ipykernel install" in doctor._kernel().remedy
