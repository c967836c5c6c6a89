"""Progress survives restarts, broken files and several kernels, and never stops a cell."""

import json
import linecache
import subprocess
import sys

import pytest

from workbook import config
from workbook.study import progress
from workbook.study.progress import Progress, current, record_answer, record_check


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study folder that we stand in."""
    (tmp_path / "study" / ".workbook").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "study")
    return Progress(tmp_path / "study")


def square(x):
    return x * x


class Doubler:
    def __call__(self, x):
        return 2 * x


def test_the_last_passing_attempt_is_kept_with_its_source(study):
    record_check("train_bpe", None, "wrong", square)
    assert study.read()["train_bpe"] == {
        "attempted": [""],
        "correct": [],
        "almost": [],
        "answered": [],
        "source": {},
    }
    record_check("train_bpe", None, "correct", square)
    record_check("train_bpe", None, "wrong", lambda x: x)
    entry = study.read()["train_bpe"]
    assert entry["correct"] == [""]
    assert entry["source"] == {"": "def square(x):\n    return x * x\n"}


def test_what_is_almost_correct_is_kept_until_it_is_correct(study):
    record_check("train_bpe", None, "almost", square)
    assert study.read()["train_bpe"]["almost"] == [""]
    assert "x * x" in study.read()["train_bpe"]["source"][""]
    record_check("train_bpe", None, "correct", Doubler)
    record_check("train_bpe", None, "almost", square)
    entry = study.read()["train_bpe"]
    assert (entry["correct"], entry["almost"]) == ([""], [])
    assert "Doubler" in entry["source"][""]


def test_parts_are_counted_apart(study):
    record_check("unicode2", "c", "correct", b"\xc3\x28")
    record_check("unicode2", "b", "read", "a sentence")
    record_answer("unicode2", "a", "Because.")
    assert study.read()["unicode2"] == {
        "attempted": ["b", "c"],
        "correct": ["c"],
        "almost": [],
        "answered": ["a"],
        "source": {"c": "b'\\xc3('"},
    }


def test_an_untouched_stub_leaves_no_trace(study):
    record_check("train_bpe", None, "not attempted", square)
    record_answer("unicode2", "a", "\n")
    assert not study.path.exists()


def test_an_answer_that_was_emptied_no_longer_counts(study):
    record_answer("unicode2", "a", "Because.")
    record_answer("unicode2", "a", " \n")
    assert study.read()["unicode2"]["answered"] == []


def test_a_pair_of_functions_and_a_class_have_sources():
    assert progress.source_of((square, Doubler)).count("return") == 2
    assert progress.source_of(12) == "12"


def test_a_class_from_a_notebook_cell_has_a_source(monkeypatch):
    cell = "x = 1\nclass Tokenizer:\n    def decode(self, ids):\n        return ''\n"
    file = "/tmp/ipykernel_1/1.py"
    monkeypatch.setitem(linecache.cache, file, (len(cell), None, cell.splitlines(True), file))
    names = {"__name__": "a_kernel_has_no_such_module"}
    exec(compile(cell, file, "exec"), names)
    wanted = "class Tokenizer:\n    def decode(self, ids):\n        return ''"
    assert progress.source_of(names["Tokenizer"]) == wanted


def test_nothing_is_recorded_outside_a_study_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record_check("train_bpe", None, "correct", square)
    record_answer("unicode2", "a", "Because.")
    assert list(tmp_path.iterdir()) == []


def test_the_worked_notebooks_record_nothing():
    assert current(config.shipped() / "notebooks") is None


def test_a_folder_below_the_study_folder_belongs_to_it(study):
    below = study.folder / "notes" / "today"
    below.mkdir(parents=True)
    assert current(below).path == study.path


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b'{"version": 1, "problems": {"train_b',
        b"[]",
        b"\xff\xfe",
        b'{"problems": []}',
        b'{"problems": {"train_bpe": 1}}',
        b'{"problems": {"train_bpe": {"attempted": "a", "correct": [], "answered": []}}}',
    ],
)
def test_a_broken_file_is_moved_aside_and_told(study, capsys, broken):
    study.path.write_bytes(broken)
    record_check("unicode2", "c", "correct", b"\xc3\x28")
    assert set(study.read()) == {"unicode2"}
    (aside,) = study.path.parent.glob("progress-broken-*.json")
    assert aside.read_bytes() == broken
    assert aside.name in capsys.readouterr().err


def test_a_full_disk_is_told_and_stops_nothing(study, capsys, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(progress, "write_json", full)
    record_check("unicode2", "c", "correct", b"\xc3\x28")
    assert "No space left" in capsys.readouterr().err


def test_two_kernels_lose_nothing_of_each_other(study):
    code = (
        "import sys\nfrom workbook.study.progress import record_check\n"
        "for n in range(25):\n    record_check(f'{sys.argv[1]}{n}', None, 'correct', n)"
    )
    kernels = [subprocess.Popen([sys.executable, "-c", code, name]) for name in ("one", "two")]
    assert [kernel.wait(300) for kernel in kernels] == [0, 0]
    assert len(study.read()) == 50
    assert {path.name for path in study.path.parent.iterdir()} == {".lock", "progress.json"}


def test_the_file_can_be_read_by_people_and_other_programs(study):
    record_check("unicode2", "c", "correct", "ü")
    assert json.loads(study.path.read_text(encoding="utf-8"))["version"] == 1
    assert "ü" in study.path.read_text(encoding="utf-8")
